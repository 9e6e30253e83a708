//! States of sets of members that stand for others where masks are concerned. Behind a member, which members there have been decides which
//! names may come; where no token holds the separator's last byte and a name's first ones, it makes no difference to any token.

use std::sync::Arc;

use super::{Program, Source, State, UNKNOWN};
use crate::compile::ByteEdge;
use crate::compile::units::{Symbol, Unit};
use crate::fsm::Triples;

/// Longest beginning that all members have in common, in bytes.
const COMMON: usize = 32;
/// Deepest chain of rules that members begin with.
const DEPTH: u32 = 8;
/// Most bytes that separators are made of.
const FEW_BYTES: usize = 16;

impl Program {
    /// Whether there are sets of members.
    pub(crate) fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// What has been found to stand for a state; itself where nothing has been looked for.
    #[inline]
    pub(crate) fn known_alike(&self, state: u32) -> u32 {
        let alike = self.states[state as usize].alike;
        if alike == UNKNOWN { state } else { alike }
    }

    /// A state that no token can tell from this one: of states that differ in which members there have been, the one asked for first.
    pub(crate) fn alike(&mut self, state: u32, tokens: &Triples) -> u32 {
        if self.states[state as usize].alike == UNKNOWN {
            let alike = self.find_alike(state, tokens);
            self.states[state as usize].alike = alike;
        }
        self.states[state as usize].alike
    }

    fn find_alike(&mut self, state: u32, tokens: &Triples) -> u32 {
        let State { instance, set, .. } = self.states[state as usize];
        let kind = self
            .members_of(instance)
            .and_then(|(unit, number)| self.members[number].without_names(unit, instance, &self.sets[set.range()]));
        let Some(kind) = kind else { return state };
        let first = *self.first_alike.entry(kind).or_insert(state);
        if first == state || !self.is_apart(instance, tokens) {
            return state;
        }
        first
    }

    fn members_of(&self, instance: u32) -> Option<(&Arc<Unit>, usize)> {
        match &self.instances.get(instance as usize)?.source {
            Source::Members(unit, number) => Some((unit, *number as usize)),
            _ => None,
        }
    }

    /// Whether no token holds both the end of a separator and so much of a member behind it that members can be told apart.
    fn is_apart(&mut self, instance: u32, tokens: &Triples) -> bool {
        if let Some(&known) = self.apart.get(&instance) {
            return known;
        }
        let apart = self.find_apart(instance, tokens).unwrap_or(false);
        self.apart.insert(instance, apart);
        apart
    }

    /// `None` where that cannot be told.
    fn find_apart(&mut self, instance: u32, tokens: &Triples) -> Option<bool> {
        let (unit, number) = self.members_of(instance).map(|(unit, number)| (unit.clone(), number))?;
        for region in 0..unit.members.len() {
            let last = separating(&unit, region)?;
            let mut start = |with_others: bool| {
                let firsts = self.members[number].firsts(&unit, region, with_others);
                let mut set = Vec::new();
                self.close(instance, &firsts, &mut set);
                self.intern(instance, &set)
            };
            let starts = [start(true), start(false)];
            let (common, next) = self.beginnings(starts)?;
            let texts = last.iter().flat_map(|&l| next.iter().map(move |&n| (l, n)));
            for (last, next) in texts {
                let text: Vec<u8> = [last].into_iter().chain(common.iter().copied()).chain([next]).collect();
                if !tokens.lack(&text) {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// What all texts from two states on begin with, and what there may be next from the second one.
    fn beginnings(&mut self, starts: [u32; 2]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut levels = [Vec::new(), Vec::new()];
        let mut common = Vec::new();
        let mut goes_on = starts.iter().zip(&mut levels).all(|(&start, level)| self.readers(start, level, DEPTH));
        while goes_on && common.len() < COMMON {
            let edges = levels.each_ref().map(|level| -> Vec<ByteEdge> {
                level.iter().flat_map(|&state| self.byte_edges(state).iter().copied()).collect()
            });
            let first = edges[1].first()?.lo;
            if edges.iter().flatten().any(|e| (e.lo, e.hi) != (first, first)) {
                let mut next: Vec<u8> = edges[1].iter().flat_map(|e| e.lo..=e.hi).collect();
                next.sort_unstable();
                next.dedup();
                return Some((common, next));
            }
            common.push(first);
            for (level, edges) in levels.iter_mut().zip(&edges) {
                level.clear();
                goes_on = goes_on && edges.iter().all(|e| self.readers(e.to, level, DEPTH));
                level.sort_unstable();
                level.dedup();
            }
        }
        // There is no more to tell, or it is not known what: so much they have in common.
        let next = common.pop()?;
        Some((common, vec![next]))
    }

    /// Adds the states that read something where `state` is, rules that are called there included. False where that is not all there may be.
    fn readers(&mut self, state: u32, out: &mut Vec<u32>, depth: u32) -> bool {
        self.expand(state);
        let State { is_final, specials, enters, .. } = self.states[state as usize];
        if is_final || specials.len > 0 || enters.len > 0 || depth == 0 {
            return false;
        }
        if !self.byte_edges(state).is_empty() {
            out.push(state);
        }
        (0..self.calls(state).len()).all(|i| {
            let (rule, _) = self.calls(state)[i];
            if self.deferred(rule).is_some() {
                return false;
            }
            let start = self.open(rule);
            self.readers(start, out, depth - 1)
        })
    }
}

/// All bytes of a separator; none where it calls what is not white space, or may be empty.
fn separating(unit: &Unit, region: usize) -> Option<Vec<u8>> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (lo, hi) in unit.members.separating(&unit.main.nfa, region)? {
        match Symbol::decode(lo) {
            Symbol::Byte(_) => ranges.push((lo, hi)),
            Symbol::Block(block) => {
                let nfa = &unit.blocks.get(block as usize)?.body.nfa;
                ranges.extend((0..nfa.len() as u32).flat_map(|state| nfa.edges(state)).map(|e| (e.lo, e.hi)));
            }
            _ => return None,
        }
    }
    if ranges.iter().any(|&(lo, hi)| hi > 255 || (hi - lo) as usize > FEW_BYTES) {
        return None;
    }
    let mut bytes: Vec<u8> = ranges.into_iter().flat_map(|(lo, hi)| lo as u8..=hi as u8).collect();
    bytes.sort_unstable();
    bytes.dedup();
    (bytes.len() <= FEW_BYTES).then_some(bytes)
}
