//! llguidance after the common engine interface, with its JSON slices.

use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv};
use toktrie_hf_tokenizers::ByteTokenizer;

use super::{Compiled, EngineKind};
use crate::cases::{Ambiguous, Task, Tools};
use crate::clock::Clock;
use crate::tool_format::ToolFormat;

/// The tokenizer in llguidance's format.
pub(crate) fn tok_env(tokenizer: &Path) -> Result<TokEnv> {
    ByteTokenizer::from_file(tokenizer)?.into_tok_env(None)
}

pub(crate) struct Llguidance {
    factory: ParserFactory,
}

impl Llguidance {
    pub(crate) fn new(env: &TokEnv) -> Result<Llguidance> {
        let slices = SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(env, InferenceCapabilities::default(), &slices)?;
        factory.quiet();
        Ok(Llguidance { factory })
    }

    /// Creates a matcher and measures the time until it is ready.
    pub(crate) fn matcher(&self, task: &Task) -> (u64, Result<Matcher, String>) {
        // The input in the engine's format is created before the clock starts.
        let input = match task {
            Task::Schema(schema) => Input::Schema(schema.value.clone()),
            Task::Tools(tools) => Input::Lark(tag_grammar(tools)),
            Task::Ambiguous(grammar) => Input::Lark(ambiguous(*grammar).to_owned()),
        };
        let clock = Clock::start();
        let grammar = match input {
            Input::Schema(schema) => TopLevelGrammar::from_json_schema(schema),
            Input::Lark(text) => TopLevelGrammar::from_lark(text),
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        let ttfm_ns = clock.nanos();
        match matcher.get_error() {
            Some(error) => (ttfm_ns, Err(error)),
            None => (ttfm_ns, Ok(matcher)),
        }
    }
}

enum Input {
    Schema(serde_json::Value),
    Lark(String),
}

/// Free text and calls. Free text contains no special tokens, so that a call that begins with one
/// is a call by itself; a trigger of text is matched lazily.
fn tag_grammar(tools: &Tools) -> String {
    let format = tools.format;
    let specials = format.special_tokens();
    let calls: Vec<String> = (0..tools.each.len()).map(|i| format!("call{i}")).collect();
    let calls = calls.join(" | ");
    let mut lark = match format {
        ToolFormat::Llama3Function => {
            format!("start: ({calls})* TEXT\nTEXT: /(\\n|.)*/\n")
        }
        ToolFormat::Qwen3 => format!("start: ({calls} | TEXT)*\nTEXT: /(\\n|.)+/\n"),
        ToolFormat::Harmony => format!(
            "start: message (<|start|> \"assistant\" message)*\nmessage: {calls} | text\n\
             text: <|channel|> /analysis|commentary|final/ <|message|> TEXT <|end|>\n\
             TEXT: /(\\n|.)*/\n"
        ),
    };
    for (i, tool) in tools.each.iter().enumerate() {
        let markers = format.markers(&tool.name);
        let begin = match specials {
            [] => {
                let header = markers.begin.strip_prefix(markers.trigger).unwrap_or_default();
                // Writing to a string cannot fail.
                let _ = writeln!(lark, "call{i}_text[lazy]: TEXT {}", quoted(markers.trigger));
                format!("call{i}_text {}", quoted(header))
            }
            specials => sequence(&markers.begin, specials),
        };
        let (end, parameters) = (sequence(markers.end, specials), &tool.parameters);
        let _ = writeln!(lark, "call{i}: {begin} %json {parameters} {end}");
    }
    lark
}

/// A text as a Lark string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text in which some parts are special tokens, as a sequence of Lark symbols.
fn sequence(text: &str, specials: &[&str]) -> String {
    let mut symbols = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let next = specials.iter().filter_map(|token| Some((rest.find(token)?, *token))).min();
        let (length, token) = next.unwrap_or((rest.len(), ""));
        if length > 0 {
            symbols.push(quoted(&rest[..length]));
        }
        if !token.is_empty() {
            symbols.push(token.to_owned());
        }
        rest = &rest[length + token.len()..];
    }
    symbols.join(" ")
}

fn ambiguous(grammar: Ambiguous) -> &'static str {
    match grammar {
        Ambiguous::Concatenation => "start: s\ns: s s | \"a\"\n",
        Ambiguous::Optionals => "start: o{0,200} l{0,200}\no: \"a\"?\nl: \"a\"\n",
    }
}

impl super::Engine for Llguidance {
    fn kind(&self) -> EngineKind {
        EngineKind::Llguidance
    }

    fn compile(&self, task: &Task) -> Compiled {
        let (ttfm_ns, matcher) = self.matcher(task);
        let outcome = matcher.map(|matcher| -> Box<dyn super::Constraint> {
            Box::new(LlguidanceConstraint(RefCell::new(matcher)))
        });
        Compiled { ttfm_ns, prepare_ns: None, outcome }
    }
}

/// A matcher in its initial state.
struct LlguidanceConstraint(RefCell<Matcher>);

impl super::Constraint for LlguidanceConstraint {
    fn matcher(&self) -> Box<dyn super::Matcher> {
        Box::new(LlguidanceMatcher { matcher: self.0.borrow().deep_clone(), mask: None })
    }
}

struct LlguidanceMatcher {
    matcher: Matcher,
    mask: Option<SimpleVob>,
}

impl super::Matcher for LlguidanceMatcher {
    fn mask(&mut self) -> bool {
        self.mask = self.matcher.compute_mask().ok();
        self.mask.is_some()
    }

    fn take(&mut self, token: u32) -> bool {
        let allowed = self.mask.as_ref().is_some_and(|mask| mask.is_allowed(token));
        allowed && self.matcher.consume_token(token).is_ok()
    }

    fn is_complete(&mut self) -> bool {
        self.matcher.is_accepting().unwrap_or(false)
    }
}
