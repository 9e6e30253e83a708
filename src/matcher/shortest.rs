//! The shortest way to the end of a sentence: per state of a rule's automaton, through calls and counted blocks, then
//! through frames. Knuth's generalisation of Dijkstra's algorithm ("A generalization of Dijkstra's algorithm", 1977):
//! a call costs what the shortest sentence of its rule does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::parser::Parser;
use super::store::{BOTTOM, ConfigId, FrameId, Item, ROOT};
use crate::compile::Program;
use crate::fsm::ByteSet;

/// There is no way.
const NEVER: u64 = u64::MAX;
/// Lengths beyond are not told apart.
const FAR: u64 = u64::MAX - 1;

fn plus(a: u64, b: u64) -> u64 {
    if a == NEVER || b == NEVER { NEVER } else { a.saturating_add(b).min(FAR) }
}

fn times(n: u64, a: u64) -> u64 {
    match (n, a) {
        (0, _) => 0,
        (_, NEVER) => NEVER,
        _ => n.saturating_mul(a).min(FAR),
    }
}

/// What leads out of a state.
#[derive(Clone, Copy, Debug)]
enum Edge {
    Read { cost: u64, to: u32 },
    Call { rule: u32, to: u32 },
    Enter { block: u32 },
}

/// The only place that looks at automata.
fn edges(program: &mut Program, state: u32, special: u64) -> Vec<Edge> {
    program.expand(state);
    let mut out: Vec<Edge> = program.byte_edges(state).iter().map(|e| Edge::Read { cost: 1, to: e.to }).collect();
    out.extend(program.special_edges(state).iter().map(|&(_, to)| Edge::Read { cost: special, to }));
    out.extend(program.calls(state).iter().map(|&(rule, to)| Edge::Call { rule, to }));
    out.extend(program.enters(state).iter().map(|&block| Edge::Enter { block }));
    out
}

/// What a length is known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// From a state to the end of its rule, or of its run where it is in a block.
    State(u32),
    /// The shortest sentence of a rule that is not empty.
    Rule(u32),
    /// The shortest run of a block that is not empty.
    Run(u32),
    /// From the end of a rule with this frame to the end of the text.
    Frame(FrameId),
}

/// One way to get a node's length from others'.
#[derive(Clone, Copy, Debug)]
struct Way {
    of: u32,
    /// Its own length, and those of the parts found so far.
    length: u64,
    /// Parts not yet found.
    open: u8,
}

/// A system of lengths that depend on each other.
#[derive(Debug, Default)]
struct System {
    nodes: Vec<Node>,
    numbers: FxHashMap<Node, u32>,
    ways: Vec<Way>,
    /// Per node: the ways it is part of, and how often it counts there.
    uses: Vec<Vec<(u32, u64)>>,
}

impl System {
    fn number(&mut self, node: Node) -> u32 {
        let next = self.nodes.len() as u32;
        let number = *self.numbers.entry(node).or_insert(next);
        if number == next {
            self.nodes.push(node);
            self.uses.push(Vec::new());
        }
        number
    }

    fn way(&mut self, lengths: &FxHashMap<Node, u64>, of: u32, own: u64, parts: &[(Node, u64)]) {
        let mut way = Way { of, length: own, open: 0 };
        for &(part, count) in parts {
            match lengths.get(&part) {
                Some(&known) => way.length = plus(way.length, times(count, known)),
                None => {
                    let part = self.number(part) as usize;
                    self.uses[part].push((self.ways.len() as u32, count));
                    way.open += 1;
                }
            }
        }
        if way.length != NEVER {
            self.ways.push(way);
        } else {
            // What was noted above refers to this number: keep it, and never let it be complete.
            self.ways.push(Way { open: u8::MAX, ..way });
        }
    }

    /// Adds the least solution to what is known.
    fn solve(mut self, lengths: &mut FxHashMap<Node, u64>) {
        let mut found: Vec<u64> = vec![NEVER; self.nodes.len()];
        let complete = self.ways.iter().filter(|way| way.open == 0);
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> = complete.map(|way| Reverse((way.length, way.of))).collect();
        while let Some(Reverse((length, node))) = queue.pop() {
            if found[node as usize] != NEVER {
                continue;
            }
            found[node as usize] = length;
            for &(way, count) in &self.uses[node as usize] {
                let way = &mut self.ways[way as usize];
                if way.open == u8::MAX {
                    continue;
                }
                way.length = plus(way.length, times(count, length));
                way.open -= 1;
                if way.open == 0 {
                    queue.push(Reverse((way.length, way.of)));
                }
            }
        }
        lengths.extend(self.nodes.into_iter().zip(found));
    }
}

/// Lengths of shortest ways, found when first asked for. They belong to one parser, whose states and frames they
/// name.
#[derive(Debug)]
pub(crate) struct Lengths {
    /// What a special token counts.
    special: u64,
    known: FxHashMap<Node, u64>,
    frames: FxHashMap<Node, u64>,
}

/// What to read next on a shortest way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Byte(u8),
    Special(u32),
}

impl Lengths {
    pub(crate) fn new(special: u64) -> Lengths {
        Lengths { special, known: FxHashMap::default(), frames: FxHashMap::default() }
    }

    /// What a special token counts.
    pub(crate) fn special(&self) -> u64 {
        self.special
    }

    /// Forgets everything: the parser was cleared, or is another.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.frames.clear();
    }

    /// The fewest bytes from a configuration to the end of a sentence, and what to read first (nothing where the text
    /// may end here). `missing` are bytes to avoid where others are as good. `None` for a dead configuration.
    ///
    /// Cost: a few look-ups an item once lengths are known; the first time, all states that can be reached from here.
    pub(crate) fn of(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
        missing: ByteSet,
    ) -> Option<(u64, Option<Step>)> {
        if parser.store().done(config).root {
            return Some((0, None));
        }
        let mut best: Option<(u64, bool, Step)> = None;
        parser.expand(config);
        for item in parser.store().items(config).to_vec() {
            let program = parser.program();
            let bytes = program.byte_edges(item.state).iter().map(|e| {
                let byte = (e.lo..=e.hi).find(|&b| !missing.contains(b));
                (1, byte.is_none(), Step::Byte(byte.unwrap_or(e.lo)), e.to)
            });
            let specials = program.special_edges(item.state).iter();
            let specials = specials.map(|&(s, to)| (self.special, false, Step::Special(s), to));
            for (own, avoid, step, to) in bytes.chain(specials).collect::<Vec<_>>() {
                let rest = self.rest(parser.program_mut(), Item { state: to, ..item });
                let after = if rest == NEVER { NEVER } else { self.frame(parser, item.frame) };
                let length = plus(own, plus(rest, after));
                if length != NEVER && best.is_none_or(|(l, a, _)| (length, avoid) < (l, a)) {
                    best = Some((length, avoid, step));
                }
            }
        }
        best.map(|(length, _, step)| (length, Some(step)))
    }

    /// From an item that has just moved, or to which a call returns, to the end of its rule.
    fn rest(&mut self, program: &mut Program, item: Item) -> u64 {
        let state = self.state(program, item.state);
        let block = program.state(item.state).block;
        let Some(&placed) = program.block_of(item.state) else { return state };
        let more = u64::from(placed.min.saturating_sub(item.count.saturating_add(1)));
        let run = if more == 0 { 0 } else { self.node(program, Node::Run(block)) };
        plus(state, plus(times(more, run), self.state(program, placed.exit)))
    }

    fn state(&mut self, program: &mut Program, state: u32) -> u64 {
        self.node(program, Node::State(state))
    }

    fn node(&mut self, program: &mut Program, node: Node) -> u64 {
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let mut system = System::default();
        system.number(node);
        let mut at = 0;
        while at < system.nodes.len() {
            let (of, state) = match system.nodes[at] {
                Node::State(state) => {
                    if program.state(state).is_final {
                        system.way(&self.known, at as u32, 0, &[]);
                    }
                    (at as u32, state)
                }
                Node::Rule(rule) => (at as u32, program.open(rule)),
                Node::Run(block) => (at as u32, program.blocks[block as usize].start),
                Node::Frame(_) => {
                    at += 1;
                    continue;
                }
            };
            for edge in edges(program, state, self.special) {
                match edge {
                    Edge::Read { cost, to } => system.way(&self.known, of, cost, &[(Node::State(to), 1)]),
                    Edge::Call { rule, to } => {
                        system.way(&self.known, of, 0, &[(Node::Rule(rule), 1), (Node::State(to), 1)]);
                    }
                    Edge::Enter { block } => {
                        // A block that need not run at all can be gone around; one that is entered runs.
                        let placed = program.blocks[block as usize];
                        let runs = u64::from(placed.min.max(1));
                        let parts = [(Node::Run(block), runs), (Node::State(placed.exit), 1)];
                        system.way(&self.known, of, 0, &parts);
                    }
                }
            }
            at += 1;
        }
        system.solve(&mut self.known);
        self.known.get(&node).copied().unwrap_or(NEVER)
    }

    /// From the end of a rule with this frame to the end of the text.
    fn frame(&mut self, parser: &mut Parser, frame: FrameId) -> u64 {
        match frame {
            ROOT => return 0,
            BOTTOM => return NEVER,
            _ => {}
        }
        if let Some(&known) = self.frames.get(&Node::Frame(frame)) {
            return known;
        }
        let mut system = System::default();
        system.number(Node::Frame(frame));
        let mut at = 0;
        while at < system.nodes.len() {
            if let Node::Frame(frame) = system.nodes[at] {
                for item in parser.store().returns(frame).to_vec() {
                    let rest = self.rest(parser.program_mut(), item);
                    match item.frame {
                        ROOT => system.way(&self.frames, at as u32, rest, &[]),
                        BOTTOM => {}
                        outer => system.way(&self.frames, at as u32, rest, &[(Node::Frame(outer), 1)]),
                    }
                }
            }
            at += 1;
        }
        system.solve(&mut self.frames);
        self.frames.get(&Node::Frame(frame)).copied().unwrap_or(NEVER)
    }
}
