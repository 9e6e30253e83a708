//! One turn through the grammar of a format and its extractor.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::ids::TokenId;
use louver::matcher::Tracer;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{
    ArgumentStyle, Catalog, LoweredRequest, ParallelPolicy, Reasoning, ToolRequest, Turn,
    WireFormat,
};
use serde_json::{Value, json};

use super::Outcome;
use super::cases::{Case, QUOTED, arguments_end, enforced_tools};
use crate::chat_template::ChatTemplate;
use crate::turns::{Next, RESULT, RenderedTurn, TurnInput};
use crate::units::FirstBytes;

/// Runs turns through the grammar and the extractor.
pub(super) struct Checker {
    /// Special tokens, the longest first.
    specials: Vec<(String, TokenId)>,
    first_bytes: FirstBytes,
    stops: Vec<String>,
    format: WireFormat,
    /// For turns that begin outside and inside of a reasoning block.
    constraints: [Option<(LoweredRequest, Constraint)>; 2],
}

impl Checker {
    pub(super) fn new(
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
        let first_bytes = FirstBytes::of(specials.iter().map(|(name, _)| name));
        let constraints = [None, None];
        let mut checker = Checker { specials, first_bytes, stops, format, constraints };
        let body = Json::from(&json!({"tools": enforced_tools(), "tool_choice": "auto"}));
        let request = ToolRequest::parse(&body).map_err(|error| error.to_string())?;
        let engine = Engine::new(vocab, EngineOptions::default());
        let openings = match checker.format.reasoning {
            Some(_) => &[Reasoning::Optional, Reasoning::Opened][..],
            None => &[Reasoning::Off],
        };
        for (slot, reasoning) in checker.constraints.iter_mut().zip(openings) {
            let request = request.clone().with_reasoning(*reasoning);
            let compiled = request.compile(&engine, &checker.format);
            *slot = Some(compiled.map_err(|error| error.to_string())?);
        }
        Ok(checker)
    }

    /// What comes of a rendered turn.
    pub(super) fn check(&self, case: &Case, rendered: &RenderedTurn) -> Outcome {
        let (input, wire) = (&case.input, &rendered.wire);
        let shows = |text: &str| text.is_empty() || wire.contains(text);
        // A call whose name is written otherwise shows its arguments.
        let is_written = |(name, arguments): &(&str, Value)| {
            let mut keys = arguments.as_object().into_iter().flat_map(|members| members.keys());
            shows(name) || keys.next().is_some_and(|key| shows(key)) && keys.all(|key| shows(key))
        };
        let lacks_text = input.calls.is_empty() && !shows(input.text);
        let lacks_result = case.context.next == Next::Result && !shows(RESULT);
        if !input.calls.iter().all(is_written)
            || lacks_text
            || lacks_result
            || !shows(input.reasoning)
        {
            return Outcome::NotShown;
        }
        if input.calls.len() > 1 && self.format.call.parallel == ParallelPolicy::One {
            return Outcome::OneCall;
        }
        let (wire, inside) = self.start(input, rendered);
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
        let is_end = |at: usize| self.is_case_end(case, rendered, wire, at);
        let mismatch = |accepted: usize, problem: String| Outcome::Mismatch {
            wire: wire.to_owned(),
            accepted,
            problem,
        };
        if self.format.reasoning.is_none() && opens_any_reasoning(&rendered.surroundings.prompt) {
            return mismatch(0, "the prompt opens reasoning, which the format lacks".to_owned());
        }
        let run = self.run(lowered, constraint, wire, &is_end);
        let is_cut = case.context.next == Next::Result && !run.is_complete;
        if is_cut || !is_end(run.accepted) {
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
    fn start<'a>(&self, input: &TurnInput, turn: &'a RenderedTurn) -> (&'a str, bool) {
        let wire = turn.wire.as_str();
        let Some(reasoning) = &self.format.reasoning else { return (wire, false) };
        let opens = |prompt: &str| self.format.prompt_opens_reasoning(prompt);
        let is_shown = !input.reasoning.is_empty() && wire.contains(input.reasoning);
        if is_shown {
            // A template may leave out the begin that its prompts have.
            let begins = wire.trim_start().starts_with(reasoning.begin.write().trim());
            return (wire, opens(&turn.prompt) || (!begins && opens(&turn.surroundings.prompt)));
        }
        match wire.trim_start().strip_prefix(reasoning.end.write().trim()) {
            Some(rest) => (rest.strip_prefix(&*reasoning.after).unwrap_or(rest), false),
            None => (wire, opens(&turn.prompt)),
        }
    }

    /// The ids that the extractor gives the calls of a rendered turn.
    pub(super) fn ids(&self, case: &Case, rendered: &RenderedTurn) -> Vec<String> {
        let (wire, inside) = self.start(&case.input, rendered);
        let Some((lowered, constraint)) = &self.constraints[usize::from(inside)] else {
            return Vec::new();
        };
        let is_end = |at: usize| self.is_case_end(case, rendered, wire, at);
        let run = self.run(lowered, constraint, wire, &is_end);
        run.turn.calls.into_iter().map(|call| call.id).collect()
    }

    /// Whether a turn may end at an offset of its text, with what follows there.
    fn is_case_end(&self, case: &Case, rendered: &RenderedTurn, wire: &str, at: usize) -> bool {
        let rest = &wire[at..];
        match case.context.next {
            Next::Result => rest.contains(RESULT) && at >= arguments_end(&case.input, wire),
            _ => self.is_end(rest, &rendered.surroundings.text_end),
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
        is_end: &dyn Fn(usize) -> bool,
    ) -> ReadBack {
        let (mut matcher, mut tracer) = (constraint.matcher(), Tracer::new());
        let mut extractor = lowered.extractor(0);
        let mut at = 0;
        while at < wire.len() {
            if wire.is_char_boundary(at) && matcher.is_complete() && is_end(at) {
                break;
            }
            let rest = &wire.as_bytes()[at..];
            let mut specials = self.specials.iter().filter(|_| self.first_bytes.start(rest));
            let special = specials.find(|(name, _)| rest.starts_with(name.as_bytes()));
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

/// Whether the prompt ends with what opens reasoning in a family of the catalog.
fn opens_any_reasoning(prompt: &str) -> bool {
    /// Every confirmation asks for each of its turns.
    static FAMILIES: LazyLock<Catalog> = LazyLock::new(Catalog::shipped);
    FAMILIES.formats().iter().any(|format| format.prompt_opens_reasoning(prompt))
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
