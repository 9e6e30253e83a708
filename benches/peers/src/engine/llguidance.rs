//! llguidance behind the common engine interface, with its JSON slices.

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

/// Free text with lazily matched triggers, one tag per tool.
fn tag_grammar(tools: &Tools) -> String {
    let names: Vec<String> = (0..tools.each.len()).map(|i| format!("call{i}")).collect();
    let mut lark = format!("start: ({})* rest\nrest: TEXT\nTEXT: /(\\n|.)*/\n", names.join(" | "));
    for (call, tool) in names.iter().zip(&tools.each) {
        let header = serde_json::Value::from(format!("{}>", tool.name));
        // Writing to a string cannot fail.
        let _ = writeln!(lark, "{call}_text[lazy]: TEXT \"<function=\"");
        let _ = writeln!(
            lark,
            "{call}: {call}_text {header} %json {} \"</function>\"",
            tool.parameters
        );
    }
    lark
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
            Box::new(InitialMatcher(RefCell::new(matcher)))
        });
        Compiled { ttfm_ns, prepare_ns: None, outcome }
    }
}

/// A matcher in its initial state.
struct InitialMatcher(RefCell<Matcher>);

impl super::Constraint for InitialMatcher {
    fn matcher(&self) -> Box<dyn super::Matcher> {
        Box::new(Sequence { matcher: self.0.borrow().deep_clone(), mask: None })
    }
}

struct Sequence {
    matcher: Matcher,
    mask: Option<SimpleVob>,
}

impl super::Matcher for Sequence {
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
