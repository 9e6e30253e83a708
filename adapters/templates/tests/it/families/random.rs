//! Random turns.

use louver_formats::{ArgumentStyle, Marker, ParallelPolicy, TextPlace, WireFormat};
use serde_json::{Map, Value, json};

use super::FamilyTemplate;

/// A turn, as a message has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<(&'static str, Value)>,
}

/// The offered tools, with arguments of every type. Some families read values without a schema in
/// no syntax or in JSON alone.
pub(super) fn tools(format: &WireFormat, case: &FamilyTemplate) -> Vec<Value> {
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name, "description": "Travel.",
            "parameters": {"type": "object", "properties": properties,
                "additionalProperties": false}}})
    };
    let stops = json!({"type": "array", "items": {"type": "string"}});
    let options = json!({"type": "object", "additionalProperties": false, "properties": {
        "avoid": stops, "max_toll": {"type": "number"}}});
    let mut values = json!({"a_text": {"type": "string"}, "b_count": {"type": "integer"},
        "c_cost": {"type": "number"}, "d_fast": {"type": "boolean"}, "e_stops": stops,
        "f_options": options});
    if !is_nested(format) {
        values["g_none"] = json!({"type": "null"});
    }
    if !is_declared(format, case) {
        values["h_list"] = json!({"type": "array"});
        values["i_object"] = json!({"type": "object"});
    }
    let texts = json!({"from": {"type": "string"}, "to": {"type": "string"}});
    vec![tool("plan_route", texts), tool("get-time2", values), tool("ping_all", json!({}))]
}

fn is_declared(format: &WireFormat, case: &FamilyTemplate) -> bool {
    is_nested(format) || case.differs("values without a schema are JSON")
}

fn is_nested(format: &WireFormat) -> bool {
    matches!(format.call.arguments, ArgumentStyle::Nested(_))
}

/// Without quotes, escapes and line feeds.
const WORDS: [&str; 16] = [
    "Oslo", " ", "天", "é", "a<b>", "{", "}", "[1]", "&amp;", "null", "0", "</", "<|", "🚂",
    "\u{301}", "🇳🇴",
];

const ESCAPED: [&str; 7] = ["\n", "'x'", "\"y\"", "\\", "\\n", "\r\n", "\t"];

/// The arguments of the tool that has values of every type.
const ARGUMENTS: [&str; 9] = [
    "a_text",
    "b_count",
    "c_cost",
    "d_fast",
    "e_stops",
    "f_options",
    "g_none",
    "h_list",
    "i_object",
];

/// Random turns of a family.
pub(super) struct RandomTurns<'a> {
    state: u64,
    case: &'a FamilyTemplate,
    most_calls: usize,
    place: TextPlace,
    /// The number of arguments of the tool that has values of every type.
    arguments: usize,
    reasons: bool,
    /// Pieces of text, and of strings in arguments.
    texts: Vec<String>,
    strings: Vec<String>,
}

impl<'a> RandomTurns<'a> {
    pub(super) fn new(format: &WireFormat, case: &'a FamilyTemplate, seed: u64) -> RandomTurns<'a> {
        let reasoning = format.reasoning.iter();
        let markers = reasoning.flat_map(|reasoning| [&reasoning.begin, &reasoning.end]);
        let markers = markers.chain(format.call.begin.iter()).chain(format.call.end.iter());
        let markers = markers.chain(format.calls_begin_marker()).chain(format.calls_end_marker());
        let markers: Vec<String> = markers.map(Marker::write).collect();
        let words = || WORDS.iter().map(|word| (*word).to_owned());
        let all = words().chain(ESCAPED.iter().map(|word| (*word).to_owned()));
        let ids = &case.checkpoint;
        let tokens: Vec<&String> = ids.tokens.iter().chain(&ids.added).collect();
        let prefixes = markers.iter().map(|marker| prefix(marker, &tokens));
        let all: Vec<String> = all.chain(prefixes).collect();
        // A marker of one character cannot stand in text.
        let is_text = |piece: &&String| {
            let mut single = markers.iter().map(|marker| marker.trim()).filter(|m| m.len() == 1);
            single.all(|marker| !piece.contains(marker))
        };
        let texts = all.iter().filter(is_text).cloned().collect();
        let strings = match case.differs("strings without escapes") {
            true => words().collect(),
            false => all,
        };
        let most_calls = match format.call.parallel {
            ParallelPolicy::Many => case.most_calls,
            ParallelPolicy::One => 1,
        };
        let arguments = match (is_nested(format), is_declared(format, case)) {
            (true, _) => 6,
            (false, true) => 7,
            (false, false) => ARGUMENTS.len(),
        };
        let place = format.text.place;
        let reasons = format.reasoning.is_some();
        RandomTurns { state: seed, case, most_calls, place, arguments, reasons, texts, strings }
    }

    fn below(&mut self, n: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.state >> 33) as usize % n
    }

    fn is_one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A text of a word and random pieces round it, with white space at its ends or not.
    fn text(&mut self) -> String {
        let [before, after] = [(); 2].map(|()| self.pieces(3, |turns| &turns.texts));
        format!("{before}word{after}")
    }

    fn string(&mut self) -> Value {
        self.pieces(4, |turns| &turns.strings).into()
    }

    /// Random pieces that do not add up to a special token.
    fn pieces(&mut self, most: usize, of: fn(&Self) -> &[String]) -> String {
        loop {
            let mut out = String::new();
            for _ in 0..self.below(most + 1) {
                let k = self.below(of(self).len());
                out.push_str(&of(self)[k]);
            }
            let ids = &self.case.checkpoint;
            if !ids.tokens.iter().chain(&ids.added).any(|token| out.contains(token.as_str())) {
                return out;
            }
        }
    }

    fn number(&mut self) -> Value {
        match self.below(6) {
            0 => json!(0),
            1 => json!(-1),
            2 => json!(12_345_678_901_u64),
            3 => json!(0.5),
            4 => json!(-2.25),
            _ => json!(self.below(1000)),
        }
    }

    fn integer(&mut self) -> Value {
        json!(self.below(7) as i64 * 17 - 34)
    }

    fn strings(&mut self) -> Value {
        (0..self.below(3)).map(|_| self.string()).collect()
    }

    /// A value of any type.
    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => self.string(),
            1 => self.number(),
            2 => Value::Bool(self.is_one_in(2)),
            3 => Value::Null,
            4 => json!("0"),
            5 => (0..self.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: usize) -> Value {
        (0..self.below(3)).map(|k| (format!("m{k}"), self.value(depth))).collect()
    }

    fn options(&mut self) -> Value {
        let mut members = Map::new();
        if self.is_one_in(2) {
            members.insert("avoid".to_owned(), self.strings());
        }
        if self.is_one_in(2) {
            members.insert("max_toll".to_owned(), self.number());
        }
        members.into()
    }

    fn call(&mut self) -> (&'static str, Value) {
        let mut members = Map::new();
        let name = ["plan_route", "get-time2", "get-time2", "ping_all"][self.below(4)];
        let keys: &[&str] = match name {
            "plan_route" => &["from", "to"],
            "get-time2" => &ARGUMENTS[..self.arguments],
            _ => &[],
        };
        for key in keys {
            if self.is_one_in(2) {
                continue;
            }
            let value = match key.as_bytes()[..2] {
                [b'b', b'_'] => self.integer(),
                [b'c', b'_'] => self.number(),
                [b'd', b'_'] => Value::Bool(self.is_one_in(2)),
                [b'e', b'_'] => self.strings(),
                [b'f', b'_'] => self.options(),
                [b'g', b'_'] => Value::Null,
                [b'h', b'_'] => (0..self.below(3)).map(|_| self.value(2)).collect(),
                [b'i', b'_'] => self.object(2),
                _ => self.string(),
            };
            members.insert((*key).to_owned(), value);
        }
        (name, members.into())
    }

    /// The next turn, of what the template writes.
    pub(super) fn turn(&mut self) -> Message {
        let calls = self.below(self.most_calls + 1);
        let calls: Vec<_> = (0..calls).map(|_| self.call()).collect();
        let is_alone =
            self.place == TextPlace::InsteadOfCalls || self.case.differs("no text beside calls");
        let has_text = calls.is_empty() || (!is_alone && self.is_one_in(2));
        let is_hidden = !self.reasons
            || self.case.differs("no reasoning")
            || (calls.is_empty() && self.case.differs("no reasoning before text"));
        let has_reasoning = self.is_one_in(2) && !is_hidden;
        let mut text = if has_text { self.text() } else { String::new() };
        let mut reasoning = if has_reasoning { self.text() } else { String::new() };
        // Of white space that nobody can tell from the template's there is one character.
        while reasoning.starts_with("\n\n") {
            reasoning.remove(0);
        }
        while text.ends_with("\n\n") || text.ends_with("  ") {
            text.pop();
        }
        Message { text, reasoning, calls }
    }
}

/// The first half of a marker, without a whole special token.
fn prefix(marker: &str, tokens: &[&String]) -> String {
    let at = (0..=marker.len() / 2).rev().find(|&at| marker.is_char_boundary(at));
    let half = &marker[..at.unwrap_or(0)];
    match tokens.iter().any(|token| half.contains(token.as_str())) {
        true => prefix(half, tokens),
        false => half.to_owned(),
    }
}
