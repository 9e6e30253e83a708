//! Identical rules become one. Two rules are identical if their labels are, and their bodies are but for the names of rules
//! that are identical themselves: the coarsest such partition, so that copies of mutually recursive rules merge too.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::reach;
use crate::fsm::{Dfa, coarsest};
use crate::ids::RuleId;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, Grammar, Rule, Trigger};

pub(super) fn run(grammar: &mut Grammar) -> bool {
    let rules = grammar.rules.len();
    let mut shapes = Shapes::default();
    // Most rules look like no other one, which their hash shows.
    let hashes: Vec<u64> = grammar.rules.iter().map(|rule| shapes.hash(rule)).collect();
    let mut sorted = hashes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == rules {
        return false;
    }
    let mut count = vec![0u32; sorted.len()];
    let place: Vec<usize> = hashes.iter().map(|hash| sorted.partition_point(|h| h < hash)).collect();
    place.iter().for_each(|&at| count[at] += 1);
    let mut known: hashbrown::HashMap<Box<[u32]>, u32, rustc_hash::FxBuildHasher> = hashbrown::HashMap::default();
    let mut keys = Vec::with_capacity(rules);
    let mut next = 0;
    let (mut tail, mut position, mut head) = (Vec::new(), Vec::new(), Vec::new());
    for (i, rule) in grammar.rules.iter().enumerate() {
        if count[place[i]] == 1 {
            keys.push(next);
            next += 1;
            continue;
        }
        shapes.write_rule(rule, true);
        let key = *known.entry_ref(shapes.text.as_slice()).or_insert(next);
        next = next.max(key + 1);
        keys.push(key);
        for (at, target) in shapes.refs.iter().enumerate() {
            tail.push(i as u32);
            position.push(at as u32);
            head.push(target.raw());
        }
    }
    if next as usize == rules {
        return false;
    }
    let class = coarsest(&keys, &tail, &position, &head);
    // The first of a class stands for all.
    let mut first: Vec<Option<RuleId>> = vec![None; rules];
    let stands: Vec<RuleId> =
        (0..rules).map(|rule| *first[class[rule] as usize].get_or_insert(RuleId::new(rule))).collect();
    let keep: Vec<bool> = stands.iter().enumerate().map(|(rule, &stand)| stand == RuleId::new(rule)).collect();
    if keep.iter().all(|&kept| kept) {
        return false;
    }
    grammar.rules.iter_mut().for_each(|rule| rule.body.remap(&|target| stands[target.index()], &|special| special));
    grammar.start = stands[grammar.start.index()];
    reach::retain(grammar, &keep);
    true
}

/// Writes expressions down without the rules they refer to: equal shapes are equal texts.
#[derive(Default)]
struct Shapes<'g> {
    text: Vec<u32>,
    refs: Vec<RuleId>,
    /// Automata by number; without, they are only sketched.
    automata: FxHashMap<&'g Dfa, u32>,
    exact: bool,
}

impl<'g> Shapes<'g> {
    fn write_rule(&mut self, rule: &'g Rule, exact: bool) {
        self.exact = exact;
        self.text.clear();
        self.refs.clear();
        self.text.extend([u32::from(rule.label.is_some()), rule.label.map_or(0, |label| label.raw())]);
        self.write(&rule.body);
    }

    /// Rules with different hashes have different shapes.
    fn hash(&mut self, rule: &'g Rule) -> u64 {
        self.write_rule(rule, false);
        let mut hasher = FxHasher::default();
        self.text.iter().for_each(|&word| hasher.write_u32(word));
        hasher.finish()
    }

    fn write(&mut self, expr: &'g Expr) {
        match expr {
            Expr::Empty => self.text.push(0),
            Expr::Never => self.text.push(1),
            Expr::Bytes(bytes) => self.bytes(2, bytes),
            Expr::Class(set) => {
                self.text.push(3);
                self.text.extend(set.words().iter().flat_map(|&word| [word as u32, (word >> 32) as u32]));
            }
            Expr::Special(special) => self.text.extend([4, special.raw()]),
            Expr::Ref(rule) => {
                self.text.push(5);
                self.refs.push(*rule);
            }
            Expr::Seq(parts) => {
                self.text.extend([6, parts.len() as u32]);
                parts.iter().for_each(|part| self.write(part));
            }
            Expr::Alt(parts) => {
                self.text.extend([7, parts.len() as u32]);
                parts.iter().for_each(|part| self.write(part));
            }
            Expr::Repeat { body, min, max } => {
                // No bound and a bound of `u32::MAX` would look alike without the flag.
                self.text.extend([8, *min, u32::from(max.is_some()), max.unwrap_or(0)]);
                self.write(body);
            }
            Expr::Automaton(dfa) if !self.exact => {
                self.text.extend([9, dfa.len() as u32, dfa.edge_count() as u32]);
            }
            Expr::Automaton(dfa) => {
                let next = self.automata.len() as u32;
                let number = *self.automata.entry(dfa).or_insert(next);
                self.text.extend([9, number]);
            }
            Expr::Graph(graph) => {
                self.text.extend([10, graph.nodes, graph.start, graph.ends.len() as u32]);
                self.text.extend(&graph.ends);
                self.text.push(graph.edges.len() as u32);
                for (from, expr, to) in &graph.edges {
                    self.text.extend([*from, *to]);
                    self.write(expr);
                }
            }
            Expr::Dispatch(dispatch) => self.dispatch(dispatch),
        }
    }

    fn dispatch(&mut self, dispatch: &'g Dispatch) {
        let Dispatch { tags, stops, excludes, after, end } = dispatch;
        let after = match after {
            AfterTag::Loop => 0,
            AfterTag::End => 1,
        };
        let end = match end {
            DispatchEnd::Anywhere => 0,
            DispatchEnd::AfterOneTag => 1,
            DispatchEnd::AtStop => 2,
        };
        self.text.extend([11, after, end, tags.len() as u32, stops.len() as u32, excludes.len() as u32]);
        for (trigger, body) in tags {
            self.trigger(trigger);
            self.refs.push(*body);
        }
        stops.iter().for_each(|stop| self.trigger(stop));
        excludes.iter().for_each(|exclude| self.bytes(2, exclude));
    }

    fn trigger(&mut self, trigger: &'g Trigger) {
        match trigger {
            Trigger::Text(text) => self.bytes(2, text),
            Trigger::Special(special) => self.text.extend([4, special.raw()]),
        }
    }

    fn bytes(&mut self, code: u32, bytes: &[u8]) {
        self.text.extend([code, bytes.len() as u32]);
        self.text.extend(bytes.chunks(4).map(|chunk| chunk.iter().fold(0, |word, &b| word << 8 | u32::from(b))));
    }
}
