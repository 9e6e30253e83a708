//! Louver after the common engine interface.

use std::cell::RefCell;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use louver::engine::{Constraint, Engine, EngineOptions, Matcher, PrepareBudget};
use louver::front::json_schema::{self, SchemaOptions};
use louver::ids::TokenId;
use louver::ir::{Expr, Grammar, GrammarBuilder};
use louver::mask::{MaskRow, PoolScope};
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{Tool, ToolRequest, WireFormat};

use super::{Compiled, EngineKind};
use crate::cases::{Ambiguous, Task, Tools};
use crate::clock::Clock;
use crate::options::Masks;
use crate::tool_format::ToolFormat;

/// The engine and the wire formats; threads may share it.
pub(crate) struct LouverCompiler {
    engine: Engine,
    /// In the order of [`ToolFormat::ALL`].
    formats: Vec<WireFormat>,
}

/// A compiler and the mask row that all sequences share, like a batch slot.
pub(crate) struct Louver {
    compiler: LouverCompiler,
    mask: Rc<RefCell<Mask>>,
    prepare: bool,
}

/// A mask in the form in which it is handed over.
enum Mask {
    Kept(Box<MaskRow>),
    Copied(Vec<u32>),
}

impl LouverCompiler {
    pub(crate) fn new(vocab: &Arc<Vocabulary>, options: EngineOptions) -> Result<LouverCompiler> {
        let formats = ToolFormat::ALL
            .iter()
            .map(|format| Ok(format.wire_format()?.bind(vocab)))
            .collect::<Result<_>>()?;
        let options = match options.pool_scope {
            // No cached entries of other engines of this program.
            PoolScope::Process => options.with_pool_scope(PoolScope::Engine),
            PoolScope::Engine | PoolScope::Constraint => options,
        };
        Ok(LouverCompiler { engine: Engine::new(vocab.clone(), options), formats })
    }

    /// The engine itself.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Compiles without the clock, for separate measurements.
    pub(crate) fn constraint(&self, task: &Task) -> Result<Constraint, String> {
        match task {
            Task::Schema(schema) => self.schema(&schema.json),
            Task::Tools(tools) => self.tools(tools),
            Task::Ambiguous(grammar) => self.grammar(ambiguous(*grammar)?),
        }
    }

    fn schema(&self, schema: &Json) -> Result<Constraint, String> {
        let grammar =
            json_schema::lower(schema, &SchemaOptions::default(), &self.engine.options().limits);
        self.grammar(grammar.map_err(text)?)
    }

    fn tools(&self, tools: &Tools) -> Result<Constraint, String> {
        let format = &self.formats[tools.format as usize];
        let tools = Tool::parse_list(&tools.list).map_err(text)?;
        let limits = self.engine.options().limits.clone();
        let lowered = format
            .lower(&ToolRequest::default().with_tools(tools).with_limits(limits))
            .map_err(text)?;
        self.grammar(lowered.grammar().clone())
    }

    fn grammar(&self, grammar: impl Into<Arc<Grammar>>) -> Result<Constraint, String> {
        self.engine.compile(grammar).map_err(text)
    }
}

impl Louver {
    pub(crate) fn new(vocab: &Arc<Vocabulary>, options: EngineOptions) -> Result<Louver> {
        let compiler = LouverCompiler::new(vocab, options)?;
        let mask = Rc::new(RefCell::new(Mask::Kept(Box::new(MaskRow::new(vocab)))));
        Ok(Louver { compiler, mask, prepare: false })
    }

    /// Sets whether masks are prepared, and waited for, after each compilation.
    pub(crate) fn preparing(self, prepare: bool) -> Louver {
        Louver { prepare, ..self }
    }

    /// Sets how masks are handed over.
    pub(crate) fn handing_over(self, masks: Masks) -> Louver {
        if masks == Masks::Copied {
            let words = self.compiler.engine.vocab().mask_words();
            *self.mask.borrow_mut() = Mask::Copied(vec![0; words]);
        }
        self
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn ambiguous(grammar: Ambiguous) -> Result<Grammar, String> {
    let mut builder = GrammarBuilder::new();
    let start = match grammar {
        Ambiguous::Concatenation => {
            let rule = builder.declare("s");
            builder.define(
                rule,
                Expr::alt([Expr::seq([Expr::Ref(rule), Expr::Ref(rule)]), Expr::text("a")]),
            );
            rule
        }
        Ambiguous::Optionals => {
            let optionals = Expr::repeat(Expr::optional(Expr::text("a")), 0, Some(200));
            builder.rule("s", Expr::seq([optionals, Expr::repeat(Expr::text("a"), 0, Some(200))]))
        }
    };
    builder.finish(start).map_err(text)
}

impl super::Engine for Louver {
    fn kind(&self) -> EngineKind {
        EngineKind::Louver
    }

    fn compile(&self, task: &Task) -> Compiled {
        let clock = Clock::start();
        let ready =
            self.compiler.constraint(task).map(|constraint| (constraint.matcher(), constraint));
        let ttfm_ns = clock.nanos();
        let mut prepare_ns = None;
        if let (true, Ok((_, constraint))) = (self.prepare, &ready) {
            // By the wall clock, because another thread works.
            let begin = Instant::now();
            constraint.prepare(PrepareBudget::default()).wait();
            prepare_ns = u64::try_from(begin.elapsed().as_nanos()).ok();
        }
        let outcome = ready.map(|(_, constraint)| -> Box<dyn super::Constraint> {
            Box::new(LouverConstraint { constraint, mask: self.mask.clone() })
        });
        Compiled { ttfm_ns, prepare_ns, outcome }
    }
}

struct LouverConstraint {
    constraint: Constraint,
    mask: Rc<RefCell<Mask>>,
}

impl super::Constraint for LouverConstraint {
    fn matcher(&self) -> Box<dyn super::Matcher> {
        Box::new(LouverMatcher { matcher: self.constraint.matcher(), mask: self.mask.clone() })
    }
}

struct LouverMatcher {
    matcher: Matcher,
    mask: Rc<RefCell<Mask>>,
}

impl super::Matcher for LouverMatcher {
    fn mask(&mut self) -> bool {
        match &mut *self.mask.borrow_mut() {
            Mask::Kept(row) => drop(self.matcher.update_mask(row)),
            Mask::Copied(words) => self.matcher.fill_mask(words),
        }
        true
    }

    fn take(&mut self, token: u32) -> bool {
        let token = TokenId::from_raw(token);
        let allowed = match &*self.mask.borrow() {
            Mask::Kept(row) => row.allows(token),
            Mask::Copied(words) => louver::mask::bit(words, token),
        };
        allowed && self.matcher.advance(token).is_ok()
    }

    fn is_complete(&mut self) -> bool {
        self.matcher.is_complete()
    }
}
