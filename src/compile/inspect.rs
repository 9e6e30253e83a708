//! The automata of a compiled grammar as values, for reports and drawings. Nothing in the engine reads them.

use std::sync::Arc;

use super::{Compiled, DispatchMark, NO_BLOCK, Program};
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::ids::{RuleId, SpecialId};

/// One rule's automaton, all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleAutomaton {
    /// The grammar's rule; `None` for one that was made while compiling: a block's body in a block, a dispatch inside a
    /// rule, what a budget is about.
    pub rule: Option<RuleId>,
    /// The rule's name; that of a rule made while compiling is in parentheses.
    pub name: String,
    /// Its states; the first is where it begins.
    pub states: Vec<AutomatonState>,
    /// Its counted blocks.
    pub blocks: Vec<AutomatonBlock>,
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutomatonState {
    /// The rule may end here; inside a block, one run may.
    pub is_final: bool,
    /// The block it is in.
    pub block: Option<usize>,
    /// What it means in a tag dispatch.
    pub dispatch: Option<DispatchState>,
    /// What leaves it.
    pub edges: Vec<AutomatonEdge>,
}

/// What a state of a tag dispatch means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchState {
    /// Free text; this many of the last bytes may be the beginning of a trigger.
    Text {
        /// How many.
        pending: u32,
    },
    /// A trigger or stop has been read.
    Fired {
        /// Its length in bytes; a special token at its end has none.
        matched: u32,
    },
}

/// A counted repeat inside a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomatonBlock {
    /// Fewest runs.
    pub min: u32,
    /// Most runs.
    pub max: Option<u32>,
    /// The state in which a run begins.
    pub start: usize,
    /// The state behind the block.
    pub exit: usize,
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomatonEdge {
    /// What is read or called.
    pub on: EdgeKind,
    /// Where it leads; of an edge into a block, the block's first state.
    pub to: usize,
}

/// What an edge reads or calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// One byte of the set.
    Bytes(ByteSet),
    /// A special token of the grammar.
    Special(SpecialId),
    /// A rule, by its place in [`Compiled::automata`].
    Call(usize),
    /// Into a block of this rule.
    Enter(usize),
}

impl RuleAutomaton {
    /// Edges of all states.
    pub fn edge_count(&self) -> usize {
        self.states.iter().map(|s| s.edges.len()).sum()
    }

    /// Whether it is the automaton of a tag dispatch.
    pub fn is_dispatch(&self) -> bool {
        self.states.iter().any(|s| s.dispatch.is_some())
    }
}

impl Compiled {
    /// The automata of all rules that are called, the start's first, as a parser would build them. Cost: all that a parse would build
    /// only where it gets to it.
    pub fn automata(self: &Arc<Self>) -> Vec<RuleAutomaton> {
        let program = Program::whole(self.clone());
        Inspect { compiled: self, program, rules: HashMap::default(), order: Vec::new() }.run()
    }

    /// The name of one of its own rules.
    fn rule_name(&self, rule: u32) -> (Option<RuleId>, String) {
        let id = Some(RuleId::from_raw(rule)).filter(|id| id.index() < self.grammar.rules.len());
        match self.parsed.rules.get(rule as usize) {
            Some(named) if id.is_some() => (id, named.name.clone()),
            Some(named) => (None, format!("({})", named.name)),
            None => (None, format!("(rule {rule})")),
        }
    }
}

struct Inspect<'c> {
    compiled: &'c Arc<Compiled>,
    program: Program,
    /// A rule's place in the result.
    rules: HashMap<u32, usize>,
    order: Vec<u32>,
}

impl Inspect<'_> {
    fn run(mut self) -> Vec<RuleAutomaton> {
        self.index_of(self.compiled.start);
        let mut out = Vec::new();
        while out.len() < self.order.len() {
            let rule = self.order[out.len()];
            out.push(self.rule(rule));
        }
        out
    }

    fn index_of(&mut self, rule: u32) -> usize {
        *self.rules.entry(rule).or_insert_with(|| {
            self.order.push(rule);
            self.order.len() - 1
        })
    }

    /// A walk from the rule's first state. A state that only returns is shared between rules, so each gets one of its own.
    fn rule(&mut self, rule: u32) -> RuleAutomaton {
        let mut states = LocalIds { ids: vec![self.program.open(rule)], known: HashMap::default() };
        states.known.insert(states.ids[0], 0);
        let mut blocks = LocalIds { ids: Vec::new(), known: HashMap::default() };
        let (mut out, mut placed) = (Vec::new(), Vec::new());
        while out.len() < states.ids.len() {
            let id = states.ids[out.len()];
            self.program.expand(id);
            let mut edges = Vec::new();
            let mut sets: Vec<(u32, ByteSet)> = Vec::new();
            for edge in self.program.byte_edges(id) {
                match sets.iter_mut().find(|(to, _)| *to == edge.to) {
                    Some((_, set)) => set.insert_range(edge.lo, edge.hi),
                    None => sets.push((edge.to, ByteSet::range(edge.lo, edge.hi))),
                }
            }
            for (to, set) in sets {
                edges.push(AutomatonEdge { on: EdgeKind::Bytes(set), to: states.index_of(to) });
            }
            for &(special, to) in self.program.special_edges(id) {
                edges.push(AutomatonEdge {
                    on: EdgeKind::Special(SpecialId::from_raw(special)),
                    to: states.index_of(to),
                });
            }
            for (callee, to) in self.program.calls(id).to_vec() {
                edges.push(AutomatonEdge {
                    on: EdgeKind::Call(self.index_of(callee)),
                    to: states.index_of(to),
                });
            }
            for &block in self.program.enters(id) {
                let block_count = blocks.ids.len();
                let local = blocks.index_of(block);
                let found = *self.program.block(block);
                let start = states.index_of(found.start);
                if local == block_count {
                    let exit = states.index_of(found.exit);
                    placed.push(AutomatonBlock { min: found.min, max: found.max, start, exit });
                }
                edges.push(AutomatonEdge { on: EdgeKind::Enter(local), to: start });
            }
            let state = self.program.state(id);
            out.push(AutomatonState {
                is_final: state.is_final,
                block: (state.block != NO_BLOCK)
                    .then(|| blocks.known.get(&state.block).copied())
                    .flatten(),
                dispatch: match self.program.mark(id) {
                    DispatchMark::Text { pending } => Some(DispatchState::Text { pending }),
                    DispatchMark::Fired { matched, .. } => Some(DispatchState::Fired { matched }),
                    DispatchMark::Plain => None,
                },
                edges,
            });
        }
        let (home, from) = self.program.grammar_of_rule(rule);
        let (id, name) = home.rule_name(rule - from);
        // Ids are those of this grammar, not of one that was deferred.
        let id = id.filter(|_| from == 0);
        RuleAutomaton { rule: id, name, states: out, blocks: placed }
    }
}

/// Ids of the program, numbered anew in the order in which they are met.
struct LocalIds {
    ids: Vec<u32>,
    known: HashMap<u32, usize>,
}

impl LocalIds {
    fn index_of(&mut self, id: u32) -> usize {
        *self.known.entry(id).or_insert_with(|| {
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
    fn automata_are_shown_as_they_are() {
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
            [AutomatonEdge { on: EdgeKind::Bytes(ByteSet::of(b"[")), to: 1 }]
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
        assert!(
            matches!(fired.edges[..], [AutomatonEdge { on: EdgeKind::Call(callee), .. }] if automata[callee].name == "body")
        );
    }
}
