//! Inspection of the automata of a compiled grammar, for reports and drawings. The engine does not
//! use it.

use std::hash::Hash;
use std::sync::Arc;

use super::{Block, BlockId, Compiled, CompiledRuleId, DispatchMark, Program, StateId};
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::ids::{RuleId, SpecialId};

/// Once there are so many states, reports build no further ones. A bounded repeat in a bounded
/// repeat may have millions.
pub const MAX_REPORTED_STATES: usize = 100_000;

/// The automaton of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleAutomaton {
    /// The rule of the grammar; `None` for an auxiliary rule, such as a nested block, a nested
    /// dispatch, or the inner rule of a budget.
    pub rule: Option<RuleId>,
    /// The rule's name; in parentheses if the rule is auxiliary.
    pub name: String,
    /// The states; the first is the start state.
    pub states: Vec<AutomatonState>,
    /// Its counted blocks.
    pub blocks: Vec<AutomatonBlock>,
}

/// A state of a [`RuleAutomaton`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutomatonState {
    /// The rule may end here; inside a block, one repetition may.
    pub is_final: bool,
    /// The block around the state, by index.
    pub block: Option<usize>,
    /// The meaning of the state within a tag dispatch.
    pub dispatch: Option<DispatchState>,
    /// Outgoing edges.
    pub edges: Vec<AutomatonEdge>,
}

/// The meaning of a state within a tag dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchState {
    /// Free text.
    Text {
        /// How many of the last bytes may be the beginning of a trigger.
        pending: u32,
    },
    /// A trigger or stop has been read.
    Fired {
        /// Its length in bytes, without a special token at its end.
        matched: u32,
    },
}

/// A counted block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomatonBlock {
    /// Fewest repetitions.
    pub min: u32,
    /// Most repetitions.
    pub max: Option<u32>,
    /// The start state of a repetition.
    pub start: usize,
    /// The state after the block.
    pub exit: usize,
}

/// An edge of a [`RuleAutomaton`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomatonEdge {
    /// The label.
    pub on: EdgeKind,
    /// The target; for an edge into a block, the block's start state.
    pub to: usize,
}

/// The label of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// Any byte of the set.
    Bytes(ByteSet),
    /// A special token of the grammar.
    Special(SpecialId),
    /// A call of a rule, by index in [`Compiled::automata`].
    Call(usize),
    /// Entry of a block, by index.
    Enter(usize),
}

impl RuleAutomaton {
    /// Number of edges.
    pub fn edge_count(&self) -> usize {
        self.states.iter().map(|s| s.edges.len()).sum()
    }

    /// Whether it is the automaton of a tag dispatch.
    pub fn is_dispatch(&self) -> bool {
        self.states.iter().any(|s| s.dispatch.is_some())
    }
}

impl Compiled {
    /// The automata of all reachable rules, the start rule's first. Past [`MAX_REPORTED_STATES`],
    /// states have no edges. Cost: builds every automaton.
    pub fn automata(self: &Arc<Self>) -> Vec<RuleAutomaton> {
        let program = Program::whole(self.clone());
        Inspect { compiled: self, program, rules: HashMap::default(), order: Vec::new() }.run()
    }

    /// The id and name of a rule of this grammar.
    fn rule_name(&self, rule: CompiledRuleId) -> (Option<RuleId>, String) {
        let id = RuleId::from_raw(rule.raw());
        let id = Some(id).filter(|id| id.index() < self.grammar.rules.len());
        match self.split_grammar.rules.get(rule.index()) {
            Some(named) if id.is_some() => (id, named.name.clone()),
            Some(named) => (None, format!("({})", named.name)),
            None => (None, format!("(rule {rule})")),
        }
    }
}

/// A walk over the automata of a program.
struct Inspect<'c> {
    compiled: &'c Arc<Compiled>,
    program: Program,
    /// By rule: its index in the result.
    rules: HashMap<CompiledRuleId, usize>,
    /// Rules in the order of the result.
    order: Vec<CompiledRuleId>,
}

impl Inspect<'_> {
    /// The automata of all reachable rules.
    fn run(mut self) -> Vec<RuleAutomaton> {
        self.index_of(self.compiled.start);
        let mut out = Vec::new();
        while out.len() < self.order.len() {
            let rule = self.order[out.len()];
            out.push(self.rule(rule));
        }
        out
    }

    /// The index of a rule in the result.
    fn index_of(&mut self, rule: CompiledRuleId) -> usize {
        *self.rules.entry(rule).or_insert_with(|| {
            self.order.push(rule);
            self.order.len() - 1
        })
    }

    /// Walks from the rule's start state. The shared return state is copied into each rule.
    fn rule(&mut self, rule: CompiledRuleId) -> RuleAutomaton {
        let mut numbers = RuleNumbers::default();
        numbers.states.index_of(self.program.instantiate(rule));
        let mut states = Vec::new();
        while let Some(&id) = numbers.states.ids.get(states.len()) {
            self.program.expand(id);
            states.push(self.state(id, &mut numbers));
        }
        let local = self.program.local_rule(rule);
        let (id, name) = local.grammar.rule_name(local.rule);
        // Rules of deferred grammars have no id in this one.
        let id = id.filter(|_| local.rule == rule);
        RuleAutomaton { rule: id, name, states, blocks: numbers.placed }
    }

    /// A state that has been expanded.
    fn state(&mut self, id: StateId, local: &mut RuleNumbers) -> AutomatonState {
        let edges = self.edges(id, local);
        let state = self.program.state(id);
        AutomatonState {
            is_final: state.is_final,
            block: (state.block != BlockId::NONE)
                .then(|| local.blocks.index.get(&state.block).copied())
                .flatten(),
            dispatch: match self.program.dispatch_mark(id) {
                DispatchMark::Text { pending } => Some(DispatchState::Text { pending }),
                DispatchMark::Fired { matched, .. } => Some(DispatchState::Fired { matched }),
                DispatchMark::Plain => None,
            },
            edges,
        }
    }

    /// The edges of a state.
    fn edges(&mut self, id: StateId, local: &mut RuleNumbers) -> Vec<AutomatonEdge> {
        let mut sets: Vec<(StateId, ByteSet)> = Vec::new();
        for edge in self.program.byte_edges(id) {
            match sets.iter_mut().find(|(to, _)| *to == edge.to) {
                Some((_, set)) => set.insert_range(edge.lo, edge.hi),
                None => sets.push((edge.to, ByteSet::range(edge.lo, edge.hi))),
            }
        }
        let bytes = sets.into_iter().map(|(to, set)| (EdgeKind::Bytes(set), to));
        let specials = self.program.special_edges(id).iter();
        let specials = specials.map(|&(special, to)| (EdgeKind::Special(special), to));
        let mut edges = Vec::new();
        for (on, to) in bytes.chain(specials) {
            edges.push(AutomatonEdge { on, to: local.states.index_of(to) });
        }
        for (callee, to) in self.program.calls(id).to_vec() {
            let on = EdgeKind::Call(self.index_of(callee));
            edges.push(AutomatonEdge { on, to: local.states.index_of(to) });
        }
        for &block in self.program.block_entries(id) {
            let number = local.block_number(block, self.program.block(block));
            let on = EdgeKind::Enter(number);
            edges.push(AutomatonEdge { on, to: local.placed[number].start });
        }
        edges
    }
}

/// The states and blocks of a rule, numbered as they are met.
#[derive(Default)]
struct RuleNumbers {
    states: LocalIds<StateId>,
    blocks: LocalIds<BlockId>,
    /// The blocks by number.
    placed: Vec<AutomatonBlock>,
}

impl RuleNumbers {
    /// The number of a block, which is added if it is new.
    fn block_number(&mut self, id: BlockId, block: &Block) -> usize {
        let number = self.blocks.index_of(id);
        let start = self.states.index_of(block.start);
        if number == self.placed.len() {
            let exit = self.states.index_of(block.exit);
            self.placed.push(AutomatonBlock { min: block.min, max: block.max, start, exit });
        }
        number
    }
}

/// Local numbering of program ids, in order of first use.
struct LocalIds<I> {
    ids: Vec<I>,
    index: HashMap<I, usize>,
}

impl<I> Default for LocalIds<I> {
    fn default() -> Self {
        LocalIds { ids: Vec::new(), index: HashMap::default() }
    }
}

impl<I: Copy + Eq + Hash> LocalIds<I> {
    fn index_of(&mut self, id: I) -> usize {
        *self.index.entry(id).or_insert_with(|| {
            self.ids.push(id);
            self.ids.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, GrammarBuilder, Trigger};
    use crate::limits::Limits;

    #[test]
    fn rule_automata_have_blocks_and_calls() {
        let mut b = GrammarBuilder::new();
        let list = b.declare("list");
        let letter = Expr::class(ByteSet::range(b'a', b'z'));
        let item = b.rule("item", Expr::repeat(Expr::seq([letter, Expr::text(",")]), 3, Some(100)));
        b.define(
            list,
            Expr::seq([
                Expr::text("["),
                Expr::Ref(item),
                Expr::optional(Expr::Ref(list)),
                Expr::text("]"),
            ]),
        );
        let compiled =
            Arc::new(Compiled::new(b.finish(list).unwrap(), &Limits::default()).unwrap());
        let automata = compiled.automata();
        assert_eq!(automata.iter().map(|a| &a.name[..]).collect::<Vec<_>>(), ["list", "item"]);
        let [list, item] = &automata[..] else { panic!("{automata:?}") };
        assert_eq!(
            list.states[0].edges,
            [AutomatonEdge { on: EdgeKind::Bytes(ByteSet::from_bytes(b"[")), to: 1 }]
        );
        assert_eq!(list.states[1].edges, [AutomatonEdge { on: EdgeKind::Call(1), to: 2 }]);
        assert!(list.states[2].edges.iter().any(|e| e.on == EdgeKind::Call(0)));
        assert!(list.states.iter().filter(|s| s.is_final).count() == 1 && list.blocks.is_empty());
        let [block] = item.blocks[..] else { panic!("{item:?}") };
        assert_eq!((block.min, block.max), (3, Some(100)));
        assert_eq!(
            item.states[0].edges,
            [AutomatonEdge { on: EdgeKind::Enter(0), to: block.start }]
        );
        assert_eq!(item.states[block.start].block, Some(0));
        assert!(item.states[block.exit].is_final && item.states[block.exit].block.is_none());
    }

    #[test]
    fn dispatches_have_text_and_fired_states() {
        let mut b = GrammarBuilder::new();
        let body = b.rule("body", Expr::text("x>"));
        let start = b.rule(
            "start",
            Expr::Dispatch(Box::new(Dispatch {
                tags: vec![(Trigger::Text(b"<f".to_vec()), body)],
                stops: Vec::new(),
                excludes: Vec::new(),
                after: AfterTag::Loop,
                end: DispatchEnd::Anywhere,
            })),
        );
        let compiled =
            Arc::new(Compiled::new(b.finish(start).unwrap(), &Limits::default()).unwrap());
        let automata = compiled.automata();
        let dispatch = automata.iter().find(|a| a.is_dispatch()).unwrap();
        let has = |want| dispatch.states.iter().any(|s| s.dispatch == Some(want));
        assert!(has(DispatchState::Text { pending: 0 }) && has(DispatchState::Text { pending: 1 }));
        assert!(
            has(DispatchState::Fired { matched: 2 }) && !has(DispatchState::Text { pending: 2 })
        );
        let fired = dispatch
            .states
            .iter()
            .find(|s| s.dispatch == Some(DispatchState::Fired { matched: 2 }))
            .unwrap();
        let [AutomatonEdge { on: EdgeKind::Call(callee), .. }] = fired.edges[..] else {
            panic!("{fired:?}")
        };
        assert_eq!(automata[callee].name, "body");
    }
}
