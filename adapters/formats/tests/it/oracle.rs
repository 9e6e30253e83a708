//! The oracle: an independent interpreter of the descriptions. It makes a pattern over bytes from a
//! description, and decides which prefixes of a text can be completed to a turn. It shares no code
//! with the grammar or the engine.

mod pattern;
mod unless;

use louver_formats::{
    ArgumentStyle, CallSpelling, FixedParts, IdStyle, MAX_GAP, Marker, MarkerPart, NameStyle, Part,
    PythonLiterals, Reasoning, TagPart, TaggedStyle, TextPlace, WireFormat,
};

use self::pattern::{End, Free, Watched};
pub(crate) use self::pattern::{Match, Pattern};
use self::unless::UNLESS;

const SPACE: &[u8] = b" \t\n\r";
const DIGITS: &[u8] = b"0123456789";
const IDENTIFIER: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
const ALNUM: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn text(text: impl Into<String>) -> Pattern {
    Pattern::Text(text.into())
}

fn maybe(pattern: Pattern) -> Pattern {
    Pattern::Upto(Some(1), Box::new(pattern))
}

fn gap() -> Pattern {
    Pattern::Run(SPACE, 0, MAX_GAP as usize)
}

/// The spellings of a marker as text.
fn spellings(marker: &Marker) -> Vec<String> {
    match marker {
        Marker::Text(text) | Marker::Token(text) | Marker::Either(text) => vec![text.clone()],
        Marker::Any(markers) => markers.iter().flat_map(spellings).collect(),
        Marker::Seq(steps) => steps.iter().fold(vec![String::new()], |heads, step| {
            let tails = match step {
                MarkerPart::Text(text) => vec![text.clone()],
                MarkerPart::Marker(marker) => spellings(marker),
            };
            heads
                .iter()
                .flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}")))
                .collect()
        }),
    }
}

fn marker(marker: &Marker) -> Pattern {
    Pattern::Any(spellings(marker).into_iter().map(text).collect())
}

fn parts(of: &[Part], name: &str) -> Pattern {
    let part = |part: &Part| match part {
        Part::Text(t) => text(t),
        // The names of these tests are the same in all styles.
        Part::Name { name: style } => match style {
            NameStyle::Json | NameStyle::Xml | NameStyle::Raw => text(name),
        },
        Part::Id { id } => match id {
            IdStyle::FromZero | IdStyle::FromOne => Pattern::Run(DIGITS, 1, 9),
            IdStyle::Nine => Pattern::Run(ALNUM, 9, 9),
            IdStyle::Word => Pattern::Run(ALNUM, 8, 16),
            IdStyle::Identifier => Pattern::Run(IDENTIFIER, 1, 64),
        },
        Part::Gap { .. } => gap(),
        Part::Maybe { maybe: optional } => maybe(parts(optional, name)),
        Part::Marker(m) => marker(m),
    };
    Pattern::All(of.iter().map(part).collect())
}

fn fixed_parts(of: &FixedParts) -> Pattern {
    match of {
        FixedParts::Text(t) => text(t),
        FixedParts::Parts(of) => parts(of, ""),
    }
}

/// A tool: its name and its arguments, each with the texts of its values and their kind. The first
/// of two arguments is required.
type Tool = (&'static str, &'static [(&'static str, &'static [&'static str], Kind)]);

/// The kind of the values of an argument.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Number,
    /// `true` or `null`.
    Word,
    /// A list of one text, which is given.
    List,
}

pub(crate) const TOOLS: &str = r#"[
  {"name": "set", "parameters": {"type": "object", "properties": {"mode": {"enum": ["on", "only"]}, "level": {"enum": [1, 2, 13]}},
    "required": ["mode"], "additionalProperties": false}},
  {"name": "set_all", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}},
  {"name": "tune", "parameters": {"type": "object", "properties": {"now": {"enum": [true, null]},
    "keys": {"type": "array", "items": {"enum": ["a"]}, "minItems": 1, "maxItems": 1}}, "required": ["now"],
    "additionalProperties": false}}
]"#;

const KNOWN: [Tool; 3] = [
    ("set", &[("mode", &["on", "only"], Kind::Text), ("level", &["1", "2", "13"], Kind::Number)]),
    ("set_all", &[]),
    ("tune", &[("now", &["true", "null"], Kind::Word), ("keys", &["a"], Kind::List)]),
];

fn arguments(format: &WireFormat, tool: &Tool) -> Pattern {
    arguments_in(&format.call.arguments, tool)
}

/// The spellings of a value in a syntax with these quotes of texts. `words`: whether JSON's and
/// Python's words are written.
fn spelled_value(value: &str, kind: Kind, quotes: &[&str], words: (bool, bool)) -> Vec<String> {
    let quoted = |before: &str, after: &str| -> Vec<String> {
        quotes.iter().map(|q| format!("{before}{q}{value}{q}{after}")).collect()
    };
    match kind {
        Kind::Text => quoted("", ""),
        Kind::List => quoted("[", "]"),
        Kind::Number => vec![value.to_owned()],
        Kind::Word => {
            let python = if value == "true" { "True" } else { "None" };
            let json = words.0.then(|| value.to_owned());
            json.into_iter().chain(words.1.then(|| python.to_owned())).collect()
        }
    }
}

/// A value between tags.
fn tagged_value(style: &TaggedStyle, value: &str, kind: Kind) -> Pattern {
    let quotes: &[&str] = match (kind, style.python) {
        (Kind::Text, _) => &[""],
        (_, Some(PythonLiterals::Values)) => &["\"", "'"],
        (_, Some(PythonLiterals::Words) | None) => &["\""],
    };
    let mut spelled = spelled_value(value, kind, quotes, (true, style.python.is_some()));
    if let (Kind::Text, Some(quotes)) = (kind, &style.quotes) {
        spelled.push(format!("{}{value}{}", quotes.begin, quotes.end));
    }
    let open = style.open.iter().map(|part| match part {
        TagPart::Kind { kind: words } => text(match (kind, value) {
            (Kind::Text, _) => &words.string,
            (Kind::Number, _) => &words.number,
            (Kind::Word, "null") => &words.null,
            (Kind::Word, _) => &words.boolean,
            (Kind::List, _) => &words.array,
        }),
        TagPart::Text(t) => text(t),
        TagPart::Key { .. } => text(""),
        TagPart::Gap { .. } => gap(),
        TagPart::Marker(m) => marker(m),
    });
    let after_key = open.skip(2);
    let value = Pattern::Any(spelled.into_iter().map(text).collect());
    let value = [maybe(text(&style.lead)), value, maybe(text(&style.trail)), marker(&style.close)];
    Pattern::All(after_key.chain(value).collect())
}

fn arguments_in(style: &ArgumentStyle, (_, known): &Tool) -> Pattern {
    // Few arguments may have any order. `value` is the rest of a member after its name.
    let list = |(open, close): (&str, &str),
                name: &dyn Fn(&str) -> Pattern,
                value: &dyn Fn(&str, &str, Kind) -> Pattern,
                between: Pattern| {
        let members: Vec<Pattern> = (known.iter())
            .map(|(member, values, kind)| {
                let values = values.iter().map(|v| value(member, v, *kind)).collect();
                Pattern::All(vec![name(member), Pattern::Any(values)])
            })
            .collect();
        let inner = match &members[..] {
            [required, other] => Pattern::Any(vec![
                Pattern::All(vec![
                    required.clone(),
                    maybe(Pattern::All(vec![between.clone(), other.clone()])),
                ]),
                Pattern::All(vec![other.clone(), between, required.clone()]),
            ]),
            members => Pattern::All(members.to_vec()),
        };
        Pattern::All(vec![text(open), inner, text(close)])
    };
    let spelled = |value: &str, kind: Kind, quotes: &[&str], words: (bool, bool)| {
        let spelled = spelled_value(value, kind, quotes, words);
        Pattern::Any(spelled.into_iter().map(text).collect())
    };
    match style {
        // The requests of these tests demand the spacing of Python's `json.dumps`.
        ArgumentStyle::Json => {
            let value =
                |_: &str, value: &str, kind: Kind| spelled(value, kind, &["\""], (true, false));
            list(("{", "}"), &|name| text(format!("\"{name}\": ")), &value, text(", "))
        }
        ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {
            let words = (*style == ArgumentStyle::JsonKeywords, true);
            let value =
                |_: &str, value: &str, kind: Kind| spelled(value, kind, &["\"", "'"], words);
            let comma = Pattern::All(vec![text(","), maybe(text(" "))]);
            list(("", ""), &|name| text(format!("{name}=")), &value, comma)
        }
        ArgumentStyle::Delimited(quote) => {
            let quotes = spellings(quote);
            let quotes: Vec<&str> = quotes.iter().map(String::as_str).collect();
            let value =
                |_: &str, value: &str, kind: Kind| spelled(value, kind, &quotes, (true, false));
            list(("{", "}"), &|name| text(format!("{name}:")), &value, text(","))
        }
        ArgumentStyle::Nested(tags) => {
            let mark = || marker(&tags.mark);
            let open = |name: &str| Pattern::All(vec![mark(), text(format!("<{name}>"))]);
            let close = |name: &str| Pattern::All(vec![mark(), text(format!("</{name}>"))]);
            let value = |name: &str, value: &str, kind: Kind| match kind {
                Kind::List => Pattern::All(vec![
                    open(&tags.item),
                    text(value),
                    close(&tags.item),
                    close(name),
                ]),
                _ => Pattern::All(vec![text(value), close(name)]),
            };
            list(("", ""), &open, &value, text(""))
        }
        ArgumentStyle::Tagged(style) => {
            let open = |name: &str| {
                let open = style.open.iter().take(2).map(|part| match part {
                    TagPart::Text(t) => text(t),
                    TagPart::Marker(m) => marker(m),
                    _ => text(name),
                });
                Pattern::All(open.collect())
            };
            let value = |_: &str, value: &str, kind: Kind| tagged_value(style, value, kind);
            let inner = list(("", ""), &open, &value, fixed_parts(&style.between));
            let inner = if known.is_empty() {
                inner
            } else {
                Pattern::All(vec![fixed_parts(&style.before), inner])
            };
            Pattern::All(vec![inner, fixed_parts(&style.after)])
        }
    }
}

/// The tool choice of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The tools that may be called: the first of [`TOOLS`].
    pub(crate) tools: usize,
    /// Whether there must be a call.
    pub(crate) forced: bool,
    /// Whether there may be several.
    pub(crate) several: bool,
    pub(crate) reasoning: Reasoning,
}

struct TurnPattern<'a> {
    format: &'a WireFormat,
    demand: Demand,
}

/// The turns that a request for [`TOOLS`] allows.
pub(crate) fn turns(format: &WireFormat, demand: Demand) -> Pattern {
    let turn = TurnPattern { format, demand };
    if format.messages.is_some() {
        return turn.messages();
    }
    let mut all = vec![turn.reasoning(), turn.rest()];
    all.extend(format.end.as_ref().map(marker));
    Pattern::All(all)
}

impl TurnPattern<'_> {
    fn reasoning(&self) -> Pattern {
        let Some(format) = &self.format.reasoning else { return text("") };
        let inside = Pattern::All(vec![
            self.until(&format.end, &self.reasoning_excludes()),
            text(&format.after),
        ]);
        let whole = Pattern::All(vec![marker(&format.begin), inside.clone()]);
        let skipped = format.skipped.as_ref().map(marker);
        match self.demand.reasoning {
            Reasoning::Off => skipped.map_or(text(""), maybe),
            Reasoning::Opened => inside,
            Reasoning::Required => whole,
            Reasoning::Optional => {
                maybe(Pattern::Any(skipped.into_iter().chain([whole]).collect()))
            }
        }
    }

    fn until(&self, end: &Marker, excludes: &[String]) -> Pattern {
        let ends = spellings(end)
            .into_iter()
            .map(|end| End { text: end, rest: text(""), again: false })
            .collect();
        Pattern::Free(Box::new(Free {
            excludes: excludes.to_vec(),
            ends,
            last: Vec::new(),
            stops_anywhere: false,
        }))
    }

    /// Begin markers of calls in all spellings: those that always begin a call, and the ambiguous
    /// ones.
    fn begins(&self) -> (Vec<String>, Vec<String>) {
        let is_sure = |spelling: &&CallSpelling| spelling.text_unless.is_none();
        let (sure, unsure): (Vec<_>, Vec<_>) = self.format.all_spellings().partition(is_sure);
        let all = |of: Vec<&CallSpelling>| {
            of.iter().flat_map(|s| spellings(&s.begin)).collect::<Vec<String>>()
        };
        let (mut sure, unsure) = (all(sure), all(unsure));
        let own =
            self.format.builtin.iter().filter_map(|own| own.begin.as_ref()).flat_map(spellings);
        sure.extend(
            self.heads()
                .into_iter()
                .chain(own)
                .filter(|head| !unsure.iter().any(|u| head.starts_with(u))),
        );
        (sure, unsure)
    }

    fn reasoning_excludes(&self) -> Vec<String> {
        let excludes =
            self.format.reasoning.iter().flat_map(|reasoning| reasoning.excludes.clone());
        excludes.chain(self.begins().0).collect()
    }

    /// The texts that free text watches for.
    fn watched(&self) -> Watched {
        let (sure, unsure) = self.begins();
        sure.into_iter().chain(unsure).chain(self.format.text.excludes.clone()).collect()
    }

    /// Alternative spellings of calls in free text.
    fn spelled(&self) -> Vec<End> {
        let names: Vec<String> = KNOWN.iter().map(|tool| tool.0.to_owned()).collect();
        let mut out = Vec::new();
        for spelling in self.format.all_spellings() {
            let style = spelling.arguments.as_ref().unwrap_or(&self.format.call.arguments);
            let calls = KNOWN[..self.demand.tools].iter().map(|tool| {
                let (header, trailer) =
                    (parts(&spelling.header, tool.0), parts(&spelling.trailer, tool.0));
                Pattern::All(vec![header, arguments_in(style, tool), trailer])
            });
            let call = Pattern::Any(calls.collect());
            let more =
                spelling.separator.as_ref().filter(|_| self.demand.several).map(|separator| {
                    Pattern::Upto(
                        None,
                        Box::new(Pattern::All(vec![fixed_parts(separator), call.clone()])),
                    )
                });
            let rest = [Some(call), more, spelling.end.as_ref().map(marker)]
                .into_iter()
                .flatten()
                .collect();
            let rest = Pattern::All(rest);
            for text in spellings(&spelling.begin) {
                if self.demand.tools > 0 {
                    out.push(End {
                        text: text.clone(),
                        rest: rest.clone(),
                        again: self.demand.several,
                    });
                }
                if let Some(unless) = &spelling.text_unless {
                    assert_eq!(unless, UNLESS);
                    out.push(End {
                        text,
                        rest: Pattern::OtherName(names.clone(), self.watched()),
                        again: true,
                    });
                }
            }
        }
        out
    }

    /// A call after its begin marker.
    fn call(&self) -> Pattern {
        let call = &self.format.call;
        let bodies = KNOWN[..self.demand.tools].iter().map(|tool| {
            let headers = [&call.header]
                .into_iter()
                .chain(&call.also)
                .map(|header| parts(header, tool.0))
                .collect();
            let mut all = vec![
                Pattern::Any(headers),
                arguments(self.format, tool),
                parts(&call.trailer, tool.0),
            ];
            all.extend(call.end.as_ref().map(marker));
            Pattern::All(all)
        });
        Pattern::Any(bodies.collect())
    }

    fn begun_call(&self) -> Pattern {
        let begin = self.format.call.begin.as_ref().map_or(text(""), marker);
        Pattern::All(vec![begin, self.call()])
    }

    fn more_calls(&self) -> Pattern {
        let more = Pattern::All(vec![fixed_parts(&self.format.call.separator), self.begun_call()]);
        if self.demand.several { Pattern::Upto(None, Box::new(more)) } else { text("") }
    }

    fn in_section(&self) -> Pattern {
        let calls = Pattern::All(vec![self.begun_call(), self.more_calls()]);
        let Some(section) = &self.format.section else { return calls };
        let end = section.end.as_ref().map_or(text(""), marker);
        Pattern::All(vec![fixed_parts(&section.lead), calls, fixed_parts(&section.trail), end])
    }

    fn calls(&self) -> Pattern {
        match &self.format.section {
            Some(section) => Pattern::All(vec![
                maybe(text(&section.before)),
                marker(&section.begin),
                self.in_section(),
            ]),
            None => self.in_section(),
        }
    }

    fn heads(&self) -> Vec<String> {
        let section = self.format.section.as_ref().map(|section| &section.begin);
        section.or(self.format.call.begin.as_ref()).map(spellings).unwrap_or_default()
    }

    fn rest(&self) -> Pattern {
        let Some(frame) = &self.format.frame else { return self.unframed(&[]) };
        let framed =
            Pattern::All(vec![marker(&frame.begin), self.unframed(&spellings(&frame.end))]);
        Pattern::Any(vec![self.unframed(&[]), framed])
    }

    /// Text and calls, up to one of the texts of `close`, if there are any.
    fn unframed(&self, close: &[String]) -> Pattern {
        let place = self.format.text.place;
        if let (Some(begin), Some(end)) = (&self.format.text.begin, &self.format.text.end) {
            let begin = match self.demand.reasoning {
                Reasoning::Off if place != TextPlace::InsteadOfCalls => maybe(marker(begin)),
                _ => marker(begin),
            };
            let text = Pattern::All(vec![begin, self.until(end, &self.format.text.excludes)]);
            return match (place, self.demand.tools, self.demand.forced) {
                (_, 0, _) => text,
                (TextPlace::InsteadOfCalls, _, true) => self.calls(),
                (TextPlace::InsteadOfCalls, _, false) => Pattern::Any(vec![text, self.calls()]),
                (_, _, true) => Pattern::All(vec![text, self.calls()]),
                (_, _, false) => Pattern::All(vec![text, maybe(self.calls())]),
            };
        }
        let closing = || {
            if close.is_empty() { text("") } else { Pattern::Any(close.iter().map(text).collect()) }
        };
        if self.demand.forced {
            return Pattern::All(vec![self.calls(), closing()]);
        }
        let unsure = self.begins().1;
        let single = self.heads().iter().any(|head| head.chars().count() == 1);
        let free = |begin: Option<(Vec<String>, Pattern)>, again: bool| {
            let mut ends = self.spelled();
            let (heads, body) = begin.unwrap_or((Vec::new(), text("")));
            let heads =
                heads.into_iter().filter(|head| !unsure.iter().any(|u| head.starts_with(u)));
            ends.extend(heads.map(|text| End { text, rest: body.clone(), again }));
            ends.iter_mut().filter(|end| !end.again).for_each(|end| {
                end.rest = Pattern::All(vec![end.rest.clone(), closing()]);
            });
            // Begin markers of calls that are not allowed. One that begins a spelling is read as
            // that.
            let begun = |text: &String| ends.iter().any(|end| end.text.starts_with(text.as_str()));
            // A single character begins a call with a name after it.
            let names = |text: String| match text.len() {
                1 => KNOWN.iter().map(|tool| format!("{text}{}(", tool.0)).collect(),
                _ => vec![text],
            };
            let watched = self.watched().into_iter().flat_map(names);
            let others = watched.filter(|text| !unsure.contains(text) && !begun(text));
            let (excludes, last) = (others.collect(), close.to_vec());
            Pattern::Free(Box::new(Free { excludes, ends, last, stops_anywhere: close.is_empty() }))
        };
        if place == TextPlace::InsteadOfCalls || self.demand.tools == 0 {
            let text = free(None, false);
            let calls = if self.demand.tools > 0 { vec![self.calls()] } else { Vec::new() };
            if !single || place != TextPlace::InsteadOfCalls || self.demand.tools == 0 {
                return Pattern::Any(calls.into_iter().chain([text]).collect());
            }
            let first =
                Pattern::All(vec![Pattern::Mismatch(self.watched(), self.watched()), text.clone()]);
            let spelled = self.spelled().into_iter().map(|end| {
                let rest = if end.again { vec![end.rest, text.clone()] } else { vec![end.rest] };
                Pattern::All([vec![self::text(end.text)], rest].concat())
            });
            return Pattern::Any(
                calls.into_iter().chain([self::text(""), first]).chain(spelled).collect(),
            );
        }
        let anywhere = place == TextPlace::Anywhere && self.demand.several;
        let body = match &self.format.section {
            Some(_) => self.in_section(),
            None if anywhere => self.call(),
            None => Pattern::All(vec![self.call(), self.more_calls()]),
        };
        free(Some((self.heads(), body)), anywhere)
    }

    /// Messages: any number of text and reasoning, then a call or the answer, then more calls with
    /// such messages between them.
    fn messages(&self) -> Pattern {
        let Some(messages) = &self.format.messages else { return text("") };
        let (separator, demand) = (marker(&messages.separator), self.demand);
        let mut others = Vec::new();
        if let (Some(reasoning), true) =
            (&self.format.reasoning, demand.reasoning != Reasoning::Off)
        {
            others.push(Pattern::All(vec![
                marker(&reasoning.begin),
                self.until(&reasoning.end, &reasoning.excludes),
            ]));
        }
        let reasoning = others.first().cloned();
        let excludes = &self.format.text.excludes;
        let ended = |message: Pattern| Pattern::All(vec![message, separator.clone()]);
        let mut others: Vec<Pattern> = others.into_iter().map(ended).collect();
        if let Some(block) = &messages.preamble {
            let inside = match &block.end {
                Some(end) => ended(self.until(end, excludes)),
                None => self.until(&messages.separator, excludes),
            };
            others.push(Pattern::All(vec![marker(&block.begin), inside]));
        }
        let others = Pattern::Upto(None, Box::new(Pattern::Any(others)));
        let mut last = if demand.tools > 0 { vec![self.begun_call()] } else { Vec::new() };
        if let (Some(begin), false) = (&self.format.text.begin, demand.forced) {
            let inside = match &self.format.text.end {
                Some(end) => self.until(end, excludes),
                None => Pattern::Free(Box::new(Free {
                    excludes: [excludes.clone(), spellings(&messages.separator)].concat(),
                    ends: Vec::new(),
                    last: Vec::new(),
                    stops_anywhere: true,
                })),
            };
            last.push(Pattern::All(vec![marker(begin), inside]));
        }
        let mut row = match (demand.reasoning, reasoning, &self.format.reasoning) {
            (Reasoning::Required, Some(reasoning), _) => vec![reasoning, separator.clone()],
            (Reasoning::Opened, _, Some(format)) => {
                vec![self.until(&format.end, &format.excludes), separator.clone()]
            }
            _ => Vec::new(),
        };
        row.extend([others.clone(), Pattern::Any(last)]);
        if demand.several && demand.tools > 0 {
            row.push(Pattern::Upto(
                None,
                Box::new(Pattern::All(vec![separator, others, self.begun_call()])),
            ));
        }
        Pattern::All(row)
    }
}
