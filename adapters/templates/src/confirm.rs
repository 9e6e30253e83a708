//! Confirmation: whether a wire format accepts what a chat template writes, and reads it back.
//!
//! The template renders turns with names and values that no derivation has seen. Each is run
//! through the grammar of a request that offers the tools, byte by byte and with the special tokens
//! of the checkpoint, and extracted again.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::ids::TokenId;
use louver::matcher::Tracer;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{
    ArgumentStyle, LoweredRequest, ParallelPolicy, Reasoning, ToolRequest, Turn, WireFormat,
};
use serde_json::{Value, json};

use crate::chat_template::ChatTemplate;
use crate::message_style::MessageStyle;
use crate::turns::{RenderedTurn, TurnInput};
use crate::written::{StyledTurns, WrittenTurns};

/// The result of [`confirm`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// How the template wants messages.
    pub style: MessageStyle,
    /// The outcome of each turn.
    pub cases: Vec<CaseOutcome>,
}

/// The turns that a confirmation needs.
const ESSENTIAL: [&str; 5] = ["text", "one call", "no arguments", "values", "quotes"];

/// The outcome of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseOutcome {
    /// What the turn is, for people.
    pub name: &'static str,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The grammar accepts it, and the extractor reads back what went in.
    Confirmed,
    /// The template does not write all of it, or the format has no parallel calls.
    NotShown,
    /// The template writes a text without escapes between quotes, so that nobody can read it back.
    Unescaped,
    /// The template refuses it with this message.
    Refused(String),
    /// The format cannot be compiled, for this reason.
    Invalid(String),
    /// The format does not accept it, or reads something else.
    Mismatch {
        /// What the template writes.
        wire: String,
        /// The bytes of `wire` that the grammar accepts.
        accepted: usize,
        /// What is wrong.
        problem: String,
    },
}

impl Confirmation {
    /// Whether text, a call and its values are confirmed and nothing is contradicted.
    pub fn is_full(&self) -> bool {
        !self.cases.is_empty() && self.unconfirmed().next().is_none()
    }

    /// The turns that stand against a full confirmation: those that the format does not accept or
    /// reads otherwise, and essential ones that the template does not write.
    pub fn unconfirmed(&self) -> impl Iterator<Item = &CaseOutcome> {
        self.cases.iter().filter(|case| match case.outcome {
            Outcome::Confirmed | Outcome::Unescaped => false,
            Outcome::Mismatch { .. } => true,
            Outcome::NotShown | Outcome::Refused(_) | Outcome::Invalid(_) => {
                ESSENTIAL.contains(&case.name)
            }
        })
    }

    /// Whether the template writes a call otherwise than the format, from some place on, although
    /// it writes text like it.
    pub fn contradicts_calls(&self) -> bool {
        let outcome = |name| self.cases.iter().find(|case| case.name == name);
        let has_text = outcome("text").is_some_and(CaseOutcome::is_confirmed);
        let is_other = outcome("one call").is_some_and(|case| match &case.outcome {
            Outcome::Mismatch { wire, accepted, .. } => *accepted < wire.len(),
            _ => false,
        });
        has_text && is_other
    }

    /// Replaces turns that the template writes otherwise at the end of a conversation by `others`,
    /// which are not at the end, unless these lack something that the `last` ones show.
    fn completed(
        &self,
        others: Confirmation,
        last: &StyledTurns,
        followed: &StyledTurns,
    ) -> Confirmation {
        let mut completed = self.clone();
        let outcomes = completed.cases.iter_mut().zip(others.cases);
        let turns = last.turns.iter().zip(&followed.turns);
        for ((case, other), ((_, input), turns)) in outcomes.zip(cases().into_iter().zip(turns)) {
            let (Outcome::Mismatch { .. }, (Ok(last), Ok(followed))) = (&case.outcome, turns)
            else {
                continue;
            };
            let is_shown = |text: &str| followed.wire.contains(text) || !last.wire.contains(text);
            if is_shown(input.text) && is_shown(input.reasoning) {
                *case = other;
            }
        }
        completed
    }

    fn confirmed(&self) -> usize {
        self.cases.iter().filter(|case| case.is_confirmed()).count()
    }
}

impl CaseOutcome {
    fn is_confirmed(&self) -> bool {
        self.outcome == Outcome::Confirmed
    }
}

impl fmt::Display for CaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match &self.outcome {
            Outcome::Confirmed => write!(f, "confirmed"),
            Outcome::NotShown => write!(f, "the template does not write it"),
            Outcome::Unescaped => write!(f, "the template does not escape the text"),
            Outcome::Refused(message) => write!(f, "the template refuses it: {message}"),
            Outcome::Invalid(problem) => write!(f, "the format cannot be compiled: {problem}"),
            Outcome::Mismatch { wire, accepted, problem } => {
                let (before, after) = wire.split_at(*accepted);
                write!(f, "{problem}: {before:?} then {after:?}")
            }
        }
    }
}

/// Confirms a format against a chat template. `tokens` are the texts of the checkpoint's special
/// tokens; without any, the format's markers are taken for special tokens.
///
/// Cost: the compilation of two small grammars, and some fifteen renderings for each message style
/// that has to be tried and differs; milliseconds in all.
pub fn confirm(format: &WireFormat, template: &ChatTemplate, tokens: &[String]) -> Confirmation {
    confirm_written(format, &written_turns(template, tokens))
}

/// The turns of confirmations against a chat template. Several formats can share them.
pub(crate) fn written_turns<'a>(
    template: &'a ChatTemplate,
    tokens: &'a [String],
) -> WrittenTurns<'a> {
    let inputs = cases().into_iter().map(|(_, input)| input).collect();
    WrittenTurns::new(template, tools(), tokens, inputs, &TELLING)
}

/// As [`confirm`].
pub(crate) fn confirm_written(format: &WireFormat, written: &WrittenTurns<'_>) -> Confirmation {
    let checker = Checker::new(format, written.template(), written.tokens());
    let mut best: Option<(Confirmation, Rc<StyledTurns>)> = None;
    for turns in written.in_each_style() {
        let found = confirm_in_style(&checker, &turns);
        if found.is_full() {
            return found;
        }
        if best.as_ref().is_none_or(|(best, _)| found.confirmed() > best.confirmed()) {
            best = Some((found, turns));
        }
    }
    let Some((best, last)) = best else {
        return Confirmation { style: MessageStyle::default(), cases: Vec::new() };
    };
    let followed = written.followed(best.style);
    let other = confirm_in_style(&checker, &followed);
    let completed = best.completed(other, &last, &followed);
    if completed.is_full() { completed } else { best }
}

fn confirm_in_style(checker: &Result<Checker, String>, turns: &StyledTurns) -> Confirmation {
    let cases = cases().into_iter().zip(&turns.turns).map(|((name, input), turn)| {
        let outcome = match (checker, &turns.frame, turn) {
            (Ok(checker), Ok(frame), Ok(turn)) => checker.check(frame, &input, turn),
            (Err(problem), ..) => Outcome::Invalid(problem.clone()),
            (_, Err(problem), _) | (_, _, Err(problem)) => Outcome::Refused(problem.clone()),
        };
        CaseOutcome { name, outcome }
    });
    Confirmation { style: turns.style, cases: cases.collect() }
}

/// The offered tools.
fn tools() -> Vec<Value> {
    let tool = |name: &str, mut properties: Value, required: Value| {
        // Some templates need descriptions.
        for property in properties.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
            property["description"] = "A part of the journey.".into();
        }
        json!({"type": "function", "function": {"name": name, "description": "Travel.",
            "parameters": {"type": "object", "properties": properties, "required": required,
                "additionalProperties": false}}})
    };
    let route = json!({
        "origin": {"type": "string"}, "passengers": {"type": "integer"},
        "stops": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {
            "avoid": {"type": "array", "items": {"type": "string"}},
            "max_toll": {"type": "number"}},
            "required": ["avoid"], "additionalProperties": false},
        "express": {"type": "boolean"}});
    vec![
        tool("plan_route", route, json!(["origin"])),
        tool("get-time2", json!({"zone": {"type": "string"}}), json!(["zone"])),
        tool("ping_all", json!({}), json!([])),
    ]
}

/// A text with characters that strings in quotes must escape.
const QUOTED: &str = "& \"Süd\" \\ 'x'\nline 2";

/// The turns that tell message styles apart, by their index in [`cases`]: their calls have no
/// arguments or some, of each type, with and without text, and with ids.
const TELLING: [usize; 6] = [1, 2, 3, 4, 7, 9];

/// The turns. Their texts occur in no template.
fn cases() -> Vec<(&'static str, TurnInput)> {
    let route = || ("plan_route", json!({"origin": "Oslo", "passengers": 3}));
    let time = || ("get-time2", json!({"zone": "CET"}));
    let ping = || ("ping_all", json!({}));
    let values = json!({"origin": "Zürich  (HB), <b>7</b>",
        "stops": ["a, b", "天"], "options": {"avoid": [], "max_toll": 1.5}});
    let quotes = || ("plan_route", json!({"origin": QUOTED}));
    let booleans = || ("plan_route", json!({"origin": "Oslo", "express": true}));
    let (text, reasoning) = ("It is 7 km away.", "The user wants to know the way.");
    vec![
        ("text", TurnInput::text(text)),
        ("one call", TurnInput::calls(vec![route()])),
        ("no arguments", TurnInput::calls(vec![ping()])),
        ("values", TurnInput::calls(vec![("plan_route", values)])),
        ("quotes", TurnInput::calls(vec![quotes()])),
        ("a boolean", TurnInput::calls(vec![booleans()])),
        ("two calls", TurnInput::calls(vec![route(), time()])),
        ("three calls", TurnInput::calls(vec![time(), ping(), route()])),
        ("text and call", TurnInput::calls(vec![time()]).with_text(text)),
        ("text and two calls", TurnInput::calls(vec![route(), time()]).with_text(text)),
        ("reasoning and text", TurnInput::text(text).with_reasoning(reasoning)),
        ("reasoning and call", TurnInput::calls(vec![route()]).with_reasoning(reasoning)),
        (
            "reasoning, text and call",
            TurnInput::calls(vec![time()]).with_text(text).with_reasoning(reasoning),
        ),
    ]
}

/// Runs turns through the grammar and the extractor.
struct Checker {
    /// Special tokens, the longest first.
    specials: Vec<(String, TokenId)>,
    stops: Vec<String>,
    format: WireFormat,
    /// For turns that begin outside and inside of a reasoning block.
    constraints: [Option<(LoweredRequest, Constraint)>; 2],
}

impl Checker {
    fn new(
        format: &WireFormat,
        template: &ChatTemplate,
        tokens: &[String],
    ) -> Result<Checker, String> {
        let [_, eos, _] = template.tokens();
        let stops: Vec<String> = format.stop_tokens.iter().cloned().chain(eos).collect();
        let mut names: BTreeSet<String> = stops.iter().cloned().collect();
        names.extend(tokens.iter().cloned());
        let (needed, possible) = format.tokens();
        names.extend(needed);
        if tokens.is_empty() {
            names.extend(possible);
        }
        names.remove("");
        let mut specials: Vec<(String, TokenId)> =
            (256..).map(TokenId::from_raw).zip(names).map(|(id, name)| (name, id)).collect();
        let vocab = Arc::new(byte_vocabulary(&specials, &stops)?);
        specials.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let format = format.bind(&vocab);
        // The names of stop tokens may have a part that the vocabulary decides.
        let stops = stops.into_iter().chain(format.stop_tokens.iter().cloned()).collect();
        let mut checker = Checker { specials, stops, format, constraints: [None, None] };
        let body = Json::from(&json!({"tools": tools(), "tool_choice": "auto"}));
        let request = ToolRequest::parse(&body).map_err(|error| error.to_string())?;
        let engine = Engine::new(vocab, EngineOptions::default());
        let openings = match checker.format.reasoning {
            Some(_) => &[Reasoning::Optional, Reasoning::Opened][..],
            None => &[Reasoning::Off],
        };
        for (slot, reasoning) in checker.constraints.iter_mut().zip(openings) {
            let request = ToolRequest { reasoning: *reasoning, ..request.clone() };
            let compiled = request.compile(&engine, &checker.format);
            *slot = Some(compiled.map_err(|error| error.to_string())?);
        }
        Ok(checker)
    }

    /// `frame`: the prompt, and what ends a turn of text.
    fn check(
        &self,
        [prompt, text_end]: &[String; 2],
        input: &TurnInput,
        rendered: &RenderedTurn,
    ) -> Outcome {
        let wire = &rendered.wire;
        let shows = |text: &str| text.is_empty() || wire.contains(text);
        let has_calls = input.calls.iter().all(|(name, _)| shows(name));
        let lacks_text = input.calls.is_empty() && !shows(input.text);
        if !has_calls || lacks_text || !shows(input.reasoning) {
            return Outcome::NotShown;
        }
        if input.calls.len() > 1 && self.format.call.parallel == ParallelPolicy::One {
            return Outcome::NotShown;
        }
        let (wire, inside) = self.start(prompt, input, rendered);
        let Some((lowered, constraint)) = &self.constraints[usize::from(inside)] else {
            return Outcome::NotShown;
        };
        let is_raw = matches!(
            self.format.call.arguments,
            ArgumentStyle::Tagged(_) | ArgumentStyle::Delimited(_)
        );
        if !is_raw && wire.contains(QUOTED) {
            return Outcome::Unescaped;
        }
        let run = self.run(lowered, constraint, wire, text_end);
        let mismatch = |accepted: usize, problem: String| Outcome::Mismatch {
            wire: wire.to_owned(),
            accepted,
            problem,
        };
        if !self.is_end(&wire[run.accepted..], text_end) {
            return mismatch(run.accepted, "the format does not accept".to_owned());
        }
        if !run.is_complete {
            return mismatch(run.accepted, "the turn is not complete".to_owned());
        }
        match difference(input, &run.turn, wire) {
            None => Outcome::Confirmed,
            Some(problem) => mismatch(run.accepted, problem),
        }
    }

    /// The part of a rendered turn that the model writes, and whether it begins inside of a block
    /// of reasoning. A template that writes an empty block, or the end of one, does so in prompts
    /// without reasoning, too.
    fn start<'a>(
        &self,
        prompt: &str,
        input: &TurnInput,
        turn: &'a RenderedTurn,
    ) -> (&'a str, bool) {
        let wire = turn.wire.as_str();
        let Some(reasoning) = &self.format.reasoning else { return (wire, false) };
        let opens = |prompt: &str| self.format.prompt_opens_reasoning(prompt);
        let is_shown = !input.reasoning.is_empty() && wire.contains(input.reasoning);
        if is_shown {
            // A template may leave out the begin that its prompts have.
            let begins = wire.trim_start().starts_with(reasoning.begin.write().trim());
            return (wire, opens(&turn.prompt) || (!begins && opens(prompt)));
        }
        match wire.trim_start().strip_prefix(reasoning.end.write().trim()) {
            Some(rest) => (rest.strip_prefix(&*reasoning.after).unwrap_or(rest), false),
            None => (wire, opens(&turn.prompt)),
        }
    }

    /// Whether this is the end of a turn: nothing, white space, a stop token, or what ends a turn
    /// of text.
    fn is_end(&self, rest: &str, text_end: &str) -> bool {
        let trimmed = rest.trim();
        trimmed.is_empty()
            || rest == text_end
            || self.stops.iter().any(|stop| !stop.is_empty() && trimmed == stop)
    }

    /// Runs the turn until a token is refused or the turn ends.
    fn run(
        &self,
        lowered: &LoweredRequest,
        constraint: &Constraint,
        wire: &str,
        text_end: &str,
    ) -> ReadBack {
        let (mut matcher, mut tracer) = (constraint.matcher(), Tracer::new());
        let mut extractor = lowered.extractor(0);
        let mut at = 0;
        while at < wire.len() {
            if matcher.is_complete()
                && wire.get(at..).is_some_and(|rest| self.is_end(rest, text_end))
            {
                break;
            }
            let rest = &wire.as_bytes()[at..];
            let special = self.specials.iter().find(|(name, _)| rest.starts_with(name.as_bytes()));
            let (token, len) = match special {
                Some((name, token)) => (*token, name.len()),
                None => (TokenId::from_raw(u32::from(rest[0])), 1),
            };
            if matcher.advance_traced(token, &mut tracer).is_err() {
                break;
            }
            at += len;
        }
        let is_complete = matcher.is_complete();
        let mut events = extractor.push(tracer.finish());
        events.extend(extractor.finish(is_complete));
        let accepted = (0..=at).rev().find(|&at| wire.is_char_boundary(at)).unwrap_or(0);
        ReadBack { accepted, is_complete, turn: Turn::collect(&events) }
    }
}

/// What the grammar accepts of a rendered turn, and how it is read.
struct ReadBack {
    accepted: usize,
    is_complete: bool,
    turn: Turn,
}

/// A vocabulary of all bytes and special tokens.
fn byte_vocabulary(specials: &[(String, TokenId)], stops: &[String]) -> Result<Vocabulary, String> {
    let mut builder = Vocabulary::builder(256 + specials.len());
    for byte in 0..=255u8 {
        builder.token(u32::from(byte), &[byte]);
    }
    for (name, id) in specials {
        builder.special(id.raw(), name);
        if stops.contains(name) {
            builder.stop(id.raw());
        }
    }
    builder.build().map_err(|error| error.to_string())
}

/// What the extracted turn has that the input does not, or the other way round. Text and reasoning
/// that the template leaves out are not expected.
fn difference(input: &TurnInput, turn: &Turn, wire: &str) -> Option<String> {
    let expected = |text: &'static str| if wire.contains(text) { text } else { "" };
    // A template may write text beside calls as reasoning.
    let is_moved = input.reasoning.is_empty()
        && turn.text.is_empty()
        && turn.reasoning.trim() == expected(input.text);
    if !is_moved && turn.text.trim() != expected(input.text) {
        return Some(format!("the text is read as {:?}", turn.text));
    }
    if !is_moved && turn.reasoning.trim() != expected(input.reasoning) {
        return Some(format!("the reasoning is read as {:?}", turn.reasoning));
    }
    // Members may come in another order.
    let calls: Vec<(&str, Option<Value>)> = (turn.calls.iter())
        .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).ok()))
        .collect();
    let expected: Vec<(&str, Option<Value>)> =
        input.calls.iter().map(|(name, arguments)| (*name, Some(arguments.clone()))).collect();
    (calls != expected).then(|| {
        let calls = turn.calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
        format!("the calls are read as {:?}", calls.collect::<Vec<_>>())
    })
}
