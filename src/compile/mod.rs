//! Stage 3. A grammar becomes finite automata. [`Compiled`] holds what has to be known of the whole grammar, found in one
//! walk: it is immutable, shared and knows no vocabulary. The automata themselves are a `Program`: a rule's states are
//! built when a parse first gets to them. Counted repeats are blocks with a counter, tag dispatch is an Aho-Corasick
//! automaton.

mod analysis;
mod budgets;
mod byte_classes;
mod components;
mod counted_graph;
mod dispatch;
mod distinct_scopes;
mod inspect;
mod member_sets;
mod program;
mod residuals;
mod rule_nfa;
mod shared_automata;
mod thompson;

pub(crate) use analysis::RuleFacts;
pub(crate) use budgets::{BudgetMeter, BudgetUnit};
pub(crate) use byte_classes::ByteClasses;
#[allow(unused_imports)] // RENAME-ALIAS
pub(crate) use distinct_scopes::{
    DistinctRole, DistinctScopes, EMPTY_REGISTER, ReturnRole, UNKNOWN_REGISTER,
};
pub use inspect::{
    AutomatonBlock, AutomatonEdge, AutomatonState, DispatchState, EdgeKind, RuleAutomaton,
};
#[allow(unused_imports)] // RENAME-ALIAS
pub(crate) use member_sets::MemberLikelihood;
#[allow(unused_imports)] // RENAME-ALIAS
pub(crate) use program::{NodeRepresentative, Program, SharedAutomaton};
#[allow(unused_imports)] // RENAME-ALIAS
pub(crate) use shared_automata::shared_automata_stats;

pub(crate) use DispatchMark as Mark; // RENAME-ALIAS
pub(crate) use budgets::{BudgetMeter as Meter, BudgetUnit as Unit}; // RENAME-ALIAS
pub(crate) use byte_classes::ByteClasses as Classes; // RENAME-ALIAS
pub(crate) use distinct_scopes::{DistinctRole as Role, ReturnRole as Behind}; // RENAME-ALIAS
pub(crate) use distinct_scopes::{EMPTY_REGISTER as EMPTY, UNKNOWN_REGISTER as NONE}; // RENAME-ALIAS
pub(crate) use member_sets::MemberLikelihood as Likely; // RENAME-ALIAS
pub(crate) use program::NodeRepresentative as StandIn; // RENAME-ALIAS
pub(crate) use shared_automata::shared_automata_stats as leaf_stats; // RENAME-ALIAS

use std::sync::{Arc, OnceLock};

use crate::fsm::{ByteSet, Levels};
use crate::fuel::{self, OutOfFuel};
use crate::hash::HashMap;
use crate::ir::{Expr, Grammar, GrammarError, SpecialToken, Spent};
use crate::limits::Limits;

/// Why a grammar cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// No sentence can be derived.
    #[error("the grammar derives nothing: rule `{rule}` has no finite sentence")]
    Empty {
        /// The start rule.
        rule: String,
    },
    /// A limit was reached.
    #[error("rule `{rule}` needs more than {limit} {what}")]
    Limit {
        /// Where.
        rule: String,
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Compiling, or the first mask, takes too much work.
    #[error("rule `{rule}`: {cause}")]
    Fuel {
        /// Where the work was when it ended.
        rule: String,
        /// Whether the fuel was spent or the request cancelled.
        cause: OutOfFuel,
    },
    /// A text cannot begin: a limit was reached where the first mask was made.
    #[error("the first mask needs more {what} than the limit allows")]
    Start {
        /// Of what.
        what: &'static str,
    },
    /// A set of members has one that may be empty, so that nobody can tell whether it is there.
    #[error("rule `{rule}` has a set of members of which one may be empty")]
    EmptyMember {
        /// Where.
        rule: String,
    },
    /// A scope or an element whose occurrences cannot be told apart.
    #[error("rule `{rule}` is a scope or an element, and {what}")]
    Scope {
        /// Where.
        rule: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A special token of the grammar is not in the vocabulary.
    #[error("the vocabulary has no special token {token}")]
    UnknownSpecial {
        /// Its name or id.
        token: String,
    },
}

impl CompileError {
    /// The work has ended at a rule of the grammar, or at an auxiliary one of it.
    pub(crate) fn fuel(grammar: &Grammar, rule: u32, cause: OutOfFuel) -> CompileError {
        let named =
            grammar.rules.get(rule as usize).or_else(|| grammar.rules.get(grammar.start.index()));
        CompileError::Fuel { rule: named.map(|rule| rule.name.clone()).unwrap_or_default(), cause }
    }
}

/// No block.
pub(crate) const NO_BLOCK: u32 = u32::MAX;

/// A byte edge: any byte of `lo..=hi` leads to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteEdge {
    pub(crate) lo: u8,
    pub(crate) hi: u8,
    pub(crate) to: u32,
}

/// What a state of a dispatch means for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DispatchMark {
    /// Not a dispatch state.
    Plain,
    /// Free text whose last `pending` bytes may be the beginning of a trigger.
    Text { pending: u32 },
    /// A trigger or stop with so many bytes of text has just been read, and a special token behind them if one is part of it.
    Fired { matched: u32, special: bool },
}

/// A counted repeat inside a rule: `min..=max` runs through the block's states, then on to `exit` of the same rule.
/// An item inside carries how many runs are complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) start: u32,
    pub(crate) exit: u32,
    /// It is white space with a bound that hardly any token gets to.
    pub(crate) gap: bool,
}

/// A grammar ready to be parsed. Knows no vocabulary. Immutable; share it in an `Arc`.
///
/// Invariants: every state of its automata can reach the end of its rule (no dead states), so every reachable
/// configuration can be completed; nullable rules are resolved into epsilon steps, so a completed rule always spans at
/// least one byte.
#[derive(Debug)]
pub struct Compiled {
    /// As it was given.
    grammar: Arc<Grammar>,
    /// As it is parsed: every budget, scope and element in a rule of its own.
    pub(crate) parsed: Arc<Grammar>,
    /// What those rules meter.
    pub(crate) meters: HashMap<u32, BudgetMeter>,
    /// Rules that have to do with values that must differ.
    pub(crate) scopes: DistinctScopes,
    /// The grammar's rules, then auxiliary ones.
    pub(crate) rules: Vec<RuleFacts>,
    /// Auxiliary rules by the address of their expression in `grammar`.
    auxiliary: HashMap<usize, u32>,
    /// In how many steps counted graphs end, by the address of their expression.
    step_levels: HashMap<usize, Arc<Levels>>,
    /// Automata that are built with the facts: of auxiliary rules.
    rule_nfas: HashMap<u32, Arc<rule_nfa::RuleNfa>>,
    /// Dispatches, by their rules.
    dispatches: HashMap<u32, Arc<dispatch::CompiledDispatch>>,
    /// There are blocks of white space; see [`Block::gap`]. Never together with budgets.
    pub(crate) gaps: bool,
    /// Bytes that are never told apart.
    pub(crate) classes: Arc<ByteClasses>,
    /// By rule whose body is deferred: what is made of it, once a parse gets to it; none if that is impossible.
    deferred: HashMap<u32, OnceLock<Option<Arc<Compiled>>>>,
    limits: Limits,
    pub(crate) start: u32,
}

/// Sizes of a compiled grammar, for people and for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledSize {
    /// Rules that can be reached from the start.
    pub rules: usize,
    /// States of all automata.
    pub states: usize,
    /// Edges of all automata.
    pub edges: usize,
    /// Counted blocks.
    pub blocks: usize,
    /// Byte classes.
    pub classes: usize,
}

impl Compiled {
    /// Compiles. Cost: one walk over the grammar; automata are built as a parse gets to them. Bounded by
    /// [`Limits::compiled_states`], by [`Limits::automaton_states`] for a dispatch, and by
    /// [`Limits::compile_fuel`].
    pub fn new(
        grammar: impl Into<Arc<Grammar>>,
        limits: &Limits,
    ) -> Result<Compiled, CompileError> {
        let grammar = grammar.into();
        fuel::with_default_budget(
            || limits.compile_fuel,
            || {
                let compiled = Compiled::compile(grammar.clone(), limits)?;
                match fuel::check() {
                    Ok(()) => Ok(compiled),
                    Err(cause) => Err(CompileError::fuel(&grammar, grammar.start.raw(), cause)),
                }
            },
        )
    }

    fn compile(grammar: Arc<Grammar>, limits: &Limits) -> Result<Compiled, CompileError> {
        grammar.validate()?;
        let (parsed, meters) = budgets::split_budgets(grammar.clone());
        let (parsed, scopes) = distinct_scopes::split_scopes(parsed);
        let mut compiled = Compiled {
            start: grammar.start.raw(),
            grammar,
            parsed,
            meters,
            scopes,
            rules: Vec::new(),
            auxiliary: HashMap::default(),
            step_levels: HashMap::default(),
            rule_nfas: HashMap::default(),
            dispatches: HashMap::default(),
            gaps: false,
            classes: Arc::new(ByteClasses::new(&ByteSet::EMPTY)),
            deferred: HashMap::default(),
            limits: limits.clone(),
        };
        analysis::analyze(&mut compiled, limits)?;
        Ok(compiled)
    }

    /// The grammar it was compiled from.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// Sizes. Builds all automata to tell: for reports.
    pub fn size(self: &Arc<Self>) -> CompiledSize {
        Program::whole(self.clone()).size()
    }

    /// What a rule's deferred body is, compiled when it is first asked for; none if it is not what was promised.
    fn deferred_grammar(&self, rule: u32) -> Option<&Arc<Compiled>> {
        let made = || {
            let Expr::Deferred(deferred) = &self.parsed.rules.get(rule as usize)?.body else {
                return None;
            };
            let compiled = Compiled::new(deferred.grammar()?.clone(), &self.limits).ok()?;
            (!compiled.start_nullable()).then(|| Arc::new(compiled))
        };
        // All matchers share it: it must not fail because one request has little fuel left.
        self.deferred
            .get(&rule)?
            .get_or_init(|| fuel::apart(self.limits.compile_fuel, made))
            .as_ref()
    }

    /// Special tokens of the grammar.
    pub(crate) fn specials(&self) -> &[SpecialToken] {
        &self.parsed.specials
    }

    /// Whether nothing is counted or compared in frames.
    #[inline]
    pub(crate) fn keeps_no_account(&self) -> bool {
        self.meters.is_empty() && self.scopes.is_empty()
    }

    /// Whether what one item may read can depend on what others may: an occurrence that has used up its code points goes on only
    /// if nothing else can, so that masks cannot be put together from parts.
    pub(crate) fn is_entangled(&self) -> bool {
        self.meters
            .values()
            .any(|meter| meter.unit == BudgetUnit::Char && meter.spent == Spent::Finish)
    }

    /// How many rules the largest set of mutually recursive ones has: a few in documents, dozens in programming languages, whose
    /// expressions are long chains of rules.
    pub(crate) fn largest_component(&self) -> usize {
        let mut sizes: HashMap<u32, usize> = HashMap::default();
        for rule in &self.rules {
            *sizes.entry(rule.component).or_default() += 1;
        }
        sizes.into_values().max().unwrap_or(0)
    }

    /// Whether the empty text is a sentence.
    pub(crate) fn start_nullable(&self) -> bool {
        self.rules[self.start as usize].nullable
    }
}
