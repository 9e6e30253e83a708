//! xgrammar after the common engine interface: one thread, cache on, JSON Schema as in the
//! standard (not its `strict_mode`).

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, anyhow};
use dlpark::versioned::SafeManagedTensorVersioned;
use louver::vocab::Vocabulary;
use ndarray::{ArrayD, IxDyn};
use serde_json::{Value, json};
use xgrammar::{CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo};

use super::{Compiled, EngineKind};
use crate::cases::{Ambiguous, Task, Tools};
use crate::clock::Clock;
use crate::tool_format::CallMarkers;

/// The tokenizer in xgrammar's format.
pub(crate) fn tokenizer_info(tokenizer: &Path, vocab: &Vocabulary) -> Result<TokenizerInfo> {
    let stops =
        vocab.stops().iter().map(|stop| Ok(i32::try_from(stop.raw())?)).collect::<Result<_>>()?;
    Ok(TokenizerInfo::from_backend_str(&std::fs::read_to_string(tokenizer)?, None, stops)?)
}

/// A tensor for the masks of `rows` sequences.
pub(crate) fn bitmask(info: &TokenizerInfo, rows: usize) -> Result<SafeManagedTensorVersioned> {
    let words = usize::try_from(xgrammar::get_bitmask_size(info.get_vocab_size()))?;
    let zeros = ArrayD::from_shape_vec(IxDyn(&[rows, words]), vec![0i32; rows * words])?;
    SafeManagedTensorVersioned::new(zeros).map_err(|error| anyhow!("no tensor for masks: {error}"))
}

pub(crate) struct Xgrammar {
    compiler: GrammarCompiler,
    mask: Rc<RefCell<SafeManagedTensorVersioned>>,
}

impl Xgrammar {
    pub(crate) fn new(info: &TokenizerInfo) -> Result<Xgrammar> {
        let compiler = GrammarCompiler::with(info, Some(1), Some(true), None);
        Ok(Xgrammar { compiler, mask: Rc::new(RefCell::new(bitmask(info, 1)?)) })
    }

    /// Compiles a grammar and measures the time until a matcher is ready.
    pub(crate) fn compiled(&self, task: &Task) -> (u64, Result<CompiledGrammar, String>) {
        // The input as the engine takes it is made before the clock starts.
        let structural_tag = match task {
            Task::Tools(tools) => structural_tag(tools),
            _ => String::new(),
        };
        let clock = Clock::start();
        let compiled = match task {
            Task::Schema(schema) => self.compiler.compile_json_schema(
                &schema.text,
                Some(true),
                None,
                None,
                Some(false),
                None,
                None,
            ),
            Task::Tools(_) => self.compiler.compile_structural_tag(&structural_tag),
            Task::Ambiguous(grammar) => Grammar::from_ebnf(ambiguous(*grammar), None)
                .and_then(|grammar| self.compiler.compile_grammar(&grammar)),
        };
        let first = compiled.as_ref().ok().map(matcher);
        let ttfm_ns = clock.nanos();
        drop(first);
        (ttfm_ns, compiled.map_err(|error| message(&error.to_string())))
    }
}

/// A matcher in its initial state.
pub(crate) fn matcher(compiled: &CompiledGrammar) -> GrammarMatcher {
    GrammarMatcher::with(compiled, None, None, None)
}

/// An error without its prefix of time and C++ source position.
fn message(error: &str) -> String {
    let after_position = error.split_once(".cc:").and_then(|(_, rest)| rest.split_once(": "));
    after_position.map_or(error, |(_, message)| message).to_owned()
}

fn structural_tag(tools: &Tools) -> String {
    let mut triggers = Vec::new();
    let mut tags: Vec<Value> = Vec::new();
    for tool in &tools.each {
        let CallMarkers { trigger, begin, end } = tools.format.markers(&tool.name);
        let content = json!({"type": "json_schema", "json_schema": tool.parameters});
        tags.push(json!({"type": "tag", "begin": begin, "content": content, "end": end}));
        triggers = vec![trigger];
    }
    let format = json!({"type": "triggered_tags", "triggers": triggers, "tags": tags});
    json!({"type": "structural_tag", "format": format}).to_string()
}

fn ambiguous(grammar: Ambiguous) -> &'static str {
    match grammar {
        Ambiguous::Concatenation => "root ::= root root | \"a\"",
        Ambiguous::Optionals => "root ::= (\"a\"?){0,200} \"a\"{0,200}",
    }
}

impl super::Engine for Xgrammar {
    fn kind(&self) -> EngineKind {
        EngineKind::Xgrammar
    }

    fn compile(&self, task: &Task) -> Compiled {
        let (ttfm_ns, compiled) = self.compiled(task);
        let outcome = compiled.map(|compiled| -> Box<dyn super::Constraint> {
            Box::new(XgrammarConstraint { compiled, mask: self.mask.clone() })
        });
        Compiled { ttfm_ns, prepare_ns: None, outcome }
    }
}

struct XgrammarConstraint {
    compiled: CompiledGrammar,
    mask: Rc<RefCell<SafeManagedTensorVersioned>>,
}

impl super::Constraint for XgrammarConstraint {
    fn matcher(&self) -> Box<dyn super::Matcher> {
        Box::new(XgrammarMatcher { matcher: matcher(&self.compiled), mask: self.mask.clone() })
    }
}

struct XgrammarMatcher {
    matcher: GrammarMatcher,
    mask: Rc<RefCell<SafeManagedTensorVersioned>>,
}

impl super::Matcher for XgrammarMatcher {
    fn mask(&mut self) -> bool {
        self.matcher.fill_next_token_bitmask(&mut self.mask.borrow_mut(), None, None).is_ok()
    }

    /// The engine tests the token itself, as fast as a look into the mask.
    fn take(&mut self, token: u32) -> bool {
        i32::try_from(token).is_ok_and(|token| self.matcher.accept_token(token, None))
    }

    fn is_complete(&mut self) -> bool {
        self.matcher.is_completed()
    }
}
