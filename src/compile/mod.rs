//! Stage 3: compilation of a [`Grammar`] into finite automata, one for each rule.
//!
//! [`Compiled`] holds the results of one analysis pass over the grammar: nullable and productive
//! rules, call order, byte classes. It is immutable, shared between sequences, and independent of
//! the vocabulary.
//!
//! A `Program` holds the automata. Each is a lazy DFA: a state is made when a parse first reaches
//! it. A large repeat `{m,n}` is a counted block. Tag dispatch is an Aho-Corasick automaton.
//!
//! * docs/internals/MEMBER_SETS.md: object members in any order
//! * docs/internals/DISPATCH.md: tag dispatch

mod analysis;
mod auxiliary_rules;
mod budgets;
mod byte_classes;
mod counted_graph;
mod dispatch;
mod distinct_scopes;
mod expressions;
mod inspect;
mod live_nfa;
mod member_sets;
mod program;
mod residuals;
mod rule_facts;
mod rule_nfa;
mod shared_automata;
mod thompson;

pub(crate) use budgets::{BudgetMeter, BudgetUnit};
pub(crate) use byte_classes::ByteClasses;
pub(crate) use counted_graph::FAR_FROM_BOUNDS;
pub(crate) use dispatch::DispatchStateId;
pub(crate) use distinct_scopes::{DistinctRole, DistinctScopes, RegisterId, ReturnRole};
#[doc(hidden)]
pub use inspect::{
    AutomatonBlock, AutomatonEdge, AutomatonState, DispatchState, EdgeKind, MAX_REPORTED_STATES,
    RuleAutomaton,
};
pub(crate) use member_sets::MemberLikelihood;
pub(crate) use program::{Program, SharedAutomaton, State, StateId};
pub(crate) use rule_facts::{CompiledRuleId, RuleFacts};
pub(crate) use shared_automata::shared_automata_stats;

use std::sync::{Arc, OnceLock};

use auxiliary_rules::AuxiliaryRules;

use crate::fsm::ByteSet;
use crate::fuel::{self, OutOfFuel};
use crate::hash::HashMap;
use crate::ids::id;
use crate::ir::{Expr, Grammar, GrammarError, SpecialToken};
use crate::limits::Limits;

/// An error of compilation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// The start rule derives no finite sentence.
    #[error("the grammar derives nothing: rule `{rule}` has no finite sentence")]
    Empty {
        /// The start rule.
        rule: String,
    },
    /// A size limit was exceeded.
    #[error("rule `{rule}` needs more than {limit} {what}")]
    Limit {
        /// Name of the rule.
        rule: String,
        /// The counted resource, in the plural.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The fuel of compilation was spent, or the request was cancelled.
    #[error("rule `{rule}`: {cause}")]
    Fuel {
        /// Name of the rule at which the work ended.
        rule: String,
        /// Whether the fuel was spent or the request was cancelled.
        cause: OutOfFuel,
    },
    /// A limit was exceeded while the first mask was computed.
    #[error("the first mask reaches a limit: {what}")]
    Start {
        /// What was reached, such as `memory for configurations`.
        what: &'static str,
    },
    /// No token of the vocabulary begins a text of the grammar.
    #[error(
        "no token of the vocabulary begins a text of the grammar; `Vocabulary::missing_bytes` has \
         the bytes that are no tokens"
    )]
    NoToken,
    /// A member set has a nullable member, so that its presence cannot be decided from the text.
    #[error("rule `{rule}` has a member set with a nullable member")]
    EmptyMember {
        /// Name of the rule.
        rule: String,
    },
    /// A distinct-values scope or element whose occurrences cannot be delimited.
    #[error("rule `{rule}` is a distinct-values scope or element, but {what}")]
    Scope {
        /// Name of the rule.
        rule: String,
        /// The violated requirement.
        what: &'static str,
    },
    /// The vocabulary lacks a special token of the grammar.
    #[error("the vocabulary has no special token {token}")]
    UnknownSpecial {
        /// Name or id of the token.
        token: String,
    },
}

impl CompileError {
    /// Whether a smaller grammar may compile: a limit was reached or the fuel was spent.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            CompileError::Limit { .. }
                | CompileError::Start { .. }
                | CompileError::Fuel { cause: OutOfFuel::Spent { .. }, .. }
        )
    }

    /// The error for work that ended at `rule`, which may be an auxiliary rule.
    pub(crate) fn fuel(grammar: &Grammar, rule: CompiledRuleId, cause: OutOfFuel) -> CompileError {
        let named =
            grammar.rules.get(rule.index()).or_else(|| grammar.rules.get(grammar.start.index()));
        CompileError::Fuel { rule: named.map(|rule| rule.name.clone()).unwrap_or_default(), cause }
    }
}

/// A byte edge: each byte of `lo..=hi` leads to state `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteEdge {
    pub(crate) lo: u8,
    pub(crate) hi: u8,
    pub(crate) to: StateId,
}

/// The meaning of an automaton state within a tag dispatch; read by traces and previews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DispatchMark {
    /// Not a state of a dispatch.
    Plain,
    /// Free text. Its last `pending` bytes are the beginning of some trigger.
    Text { pending: u32 },
    /// A trigger or stop has just been read: `matched` bytes of text, then a special token if
    /// `special`.
    Fired { matched: u32, special: bool },
}

id! {
    /// A placed block: an index into [`Program::blocks`].
    pub(crate) BlockId
}

impl BlockId {
    /// Outside of every block.
    pub(crate) const NONE: BlockId = BlockId::from_raw(u32::MAX);
}

/// A counted block: between `min` and `max` repetitions of the automaton at `start`, then state
/// `exit` of the same rule. An item inside carries the number of completed repetitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Fewest repetitions.
    pub(crate) min: u32,
    /// Most repetitions; `None` is unbounded.
    pub(crate) max: Option<u32>,
    /// The start state of the body.
    pub(crate) start: StateId,
    /// The state after the block.
    pub(crate) exit: StateId,
    /// The block is white space whose bound is longer than nearly every token.
    pub(crate) is_bounded_white_space: bool,
}

/// What may follow when a run of a block ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEnd {
    /// The count of completed runs with which a further run begins; `None` if none may come.
    pub(crate) next_run: Option<u32>,
    /// Whether the block may end.
    pub(crate) may_exit: bool,
}

impl Block {
    /// The end of a run that began with this count of completed runs.
    #[inline]
    pub(crate) fn end_run(&self, count: u32) -> RunEnd {
        let runs = count.saturating_add(1);
        let next_run = match self.max {
            Some(max) => (runs < max).then_some(runs),
            // Without an upper bound, all counts from `min` on are equivalent.
            None => Some(runs.min(self.min)),
        };
        RunEnd { next_run, may_exit: runs >= self.min }
    }
}

/// A compiled grammar. It is immutable and independent of the vocabulary; share it in an `Arc`.
///
/// Invariants:
///
/// * Every state of its automata reaches the end of its rule. So every reachable configuration can
///   be completed.
/// * Nullable rules are resolved into epsilon edges. So a completed rule spans at least one byte.
#[derive(Debug)]
pub struct Compiled {
    /// The grammar as given.
    grammar: Arc<Grammar>,
    /// The grammar as parsed: each budget, scope and element is split into a rule of its own.
    pub(crate) split_grammar: Arc<Grammar>,
    /// Budgets, by rule of `split_grammar`.
    pub(crate) budgets: HashMap<CompiledRuleId, BudgetMeter>,
    /// Rules that take part in distinct-value constraints.
    pub(crate) scopes: DistinctScopes,
    /// Analysis results, by rule: the rules of `split_grammar`, then auxiliary rules.
    pub(crate) rules: Vec<RuleFacts>,
    auxiliary: AuxiliaryRules,
    /// Tag dispatches, by rule.
    dispatches: HashMap<CompiledRuleId, Arc<dispatch::CompiledDispatch>>,
    /// Some block has [`Block::is_bounded_white_space`]. Never set together with budgets.
    pub(crate) has_bounded_white_space: bool,
    /// The byte classes: bytes that no rule tells apart.
    pub(crate) classes: Arc<ByteClasses>,
    /// Compiled deferred bodies, by rule. `None`: the body could not be made.
    deferred: HashMap<CompiledRuleId, OnceLock<Option<Arc<Compiled>>>>,
    /// Limits of deferred bodies, too.
    limits: Limits,
    pub(crate) start: CompiledRuleId,
}

/// The size of a compiled grammar, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompiledSize {
    /// Rules reachable from the start rule.
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
    /// Compiles a grammar. Cost: one pass over its expressions; automata are built later, on
    /// demand.
    ///
    /// # Errors
    ///
    /// [`CompileError`], in particular if [`Limits::compiled_states`], [`Limits::automaton_states`]
    /// (per dispatch) or [`Limits::compile_fuel`] is exceeded.
    ///
    /// ```
    /// use louver::{CompileError, Compiled, Expr, GrammarBuilder, Limits};
    ///
    /// # fn main() -> Result<(), louver::GrammarError> {
    /// let mut grammar = GrammarBuilder::new();
    /// let start = grammar.declare("start");
    /// // A list without an end.
    /// grammar.define(start, Expr::seq([Expr::text("x"), Expr::Ref(start)]));
    /// let compiled = Compiled::new(grammar.finish(start)?, &Limits::default());
    /// assert!(matches!(compiled, Err(CompileError::Empty { .. })));
    /// # Ok(())
    /// # }
    /// ```
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
                    Err(cause) => Err(CompileError::fuel(&grammar, grammar.start.into(), cause)),
                }
            },
        )
    }

    /// Validates, rewrites and analyzes the grammar.
    fn compile(grammar: Arc<Grammar>, limits: &Limits) -> Result<Compiled, CompileError> {
        grammar.validate()?;
        let (split_grammar, budgets) = budgets::split_budgets(grammar.clone());
        let (split_grammar, scopes) = distinct_scopes::split_scopes(split_grammar);
        let mut compiled = Compiled {
            start: grammar.start.into(),
            grammar,
            split_grammar,
            budgets,
            scopes,
            rules: Vec::new(),
            auxiliary: AuxiliaryRules::default(),
            dispatches: HashMap::default(),
            has_bounded_white_space: false,
            classes: Arc::new(ByteClasses::new(&ByteSet::EMPTY)),
            deferred: HashMap::default(),
            limits: limits.clone(),
        };
        analysis::analyze(&mut compiled, limits)?;
        Ok(compiled)
    }

    /// The grammar as given.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// The size of the grammar, counted up to [`MAX_REPORTED_STATES`] states. Cost: builds every
    /// automaton; for reports only.
    pub fn size(self: &Arc<Self>) -> CompiledSize {
        Program::whole(self.clone()).size()
    }

    /// The compiled deferred body of a rule; compiled on first use. `None` if the body could not be
    /// made.
    fn deferred_grammar(&self, rule: CompiledRuleId) -> Option<&Arc<Compiled>> {
        let made = || {
            let Expr::Deferred(deferred) = &self.split_grammar.rules.get(rule.index())?.body else {
                return None;
            };
            let grammar = deferred.grammar_within(self.specials())?;
            let compiled = Compiled::new(grammar, &self.limits).ok()?;
            (compiled.start_nullable() == deferred.is_nullable()).then(|| Arc::new(compiled))
        };
        let make = || fuel::with_shared_budget(self.compile_fuel(), made);
        self.deferred.get(&rule)?.get_or_init(make).as_ref()
    }

    /// The budget of its compilation, in units of fuel.
    pub(crate) fn compile_fuel(&self) -> u64 {
        self.limits.compile_fuel
    }

    /// The special tokens that the grammar names.
    pub(crate) fn specials(&self) -> &[SpecialToken] {
        &self.split_grammar.specials
    }

    /// Whether no rule has a budget or a distinct-value constraint, so that frames hold no counts.
    #[inline]
    pub(crate) fn frames_hold_no_counts(&self) -> bool {
        self.budgets.is_empty() && self.scopes.is_empty()
    }

    /// The size of the largest strongly connected component of the call graph: a few rules in
    /// documents, dozens in programming languages with their chains of expression rules.
    pub(crate) fn largest_component(&self) -> usize {
        let mut sizes: HashMap<u32, usize> = HashMap::default();
        for rule in &self.rules {
            *sizes.entry(rule.component).or_default() += 1;
        }
        sizes.into_values().max().unwrap_or(0)
    }

    /// Whether the empty text is a sentence.
    pub(crate) fn start_nullable(&self) -> bool {
        self.rules[self.start.index()].nullable
    }
}
