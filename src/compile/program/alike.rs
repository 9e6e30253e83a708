//! States of sets of members that stand for others where masks are concerned. Behind a member, which members there have been decides which
//! names may come; where no token holds the separator's last byte and a name's first ones, it makes no difference to any token.

use std::sync::Arc;

use super::{Kind, NO_BLOCK, Program, Source, State, UNKNOWN};
use crate::compile::ByteEdge;
use crate::compile::members::StandIn;
use crate::compile::units::{Symbol, Unit};
use crate::fsm::Triples;
use crate::hash::{HashMap, HashSet};

/// Longest beginning that all members have in common, in bytes.
const COMMON: usize = 32;
/// Deepest chain of rules that members begin with.
const DEPTH: u32 = 8;
/// In place of a symbol: nothing is read.
const NO_SYMBOL: u32 = u32::MAX;
/// Most places that are looked at to find out which others one is like.
const LOOKED_AT: u32 = 64;
/// Most bytes that separators are made of.
const FEW_BYTES: usize = 16;

/// Names of the members of an instance that come at most once, where there are others that may repeat.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The region of each, its bytes, and the place before each.
    spelled: Vec<(usize, Vec<(u32, u8)>)>,
    /// By place: the first that the same text leads to.
    stand_ins: HashMap<u32, u32>,
}

/// Places of an instance from which a member goes on in the same way to its end.
#[derive(Debug, Default)]
pub(super) struct Endings {
    /// The first that was met of those that are like a place.
    firsts: HashMap<u32, u32>,
    by_kind: HashMap<Box<[u32]>, u32>,
}

impl Endings {
    /// A place from which the same can be read up to the end of the member. Inside of words, where only a letter can be read, that is the place itself:
    /// names differ, and it would take long to find out.
    fn of(&mut self, unit: &Unit, place: u32) -> u32 {
        let mut edges = unit.main.nfa.edges(place);
        let inside = edges.next().is_some_and(|e| e.lo == e.hi && is_of_word(e.lo))
            && edges.next().is_none();
        if inside { place } else { self.find(unit, place, &mut { LOOKED_AT }).unwrap_or(place) }
    }

    /// None where there is too much to look at.
    fn find(&mut self, unit: &Unit, place: u32, left: &mut u32) -> Option<u32> {
        if let Some(&known) = self.firsts.get(&place) {
            return Some(known);
        }
        *left = left.checked_sub(1)?;
        let (members, main) = (&unit.members, &unit.main);
        let mut kind = Vec::new();
        if let Some(region) = members.ends(place) {
            kind.push(region);
        } else if members.is_plain(place) && !main.nfa.is_final(place) {
            // Until it is known, a place that leads back to itself is like no other.
            self.firsts.insert(place, place);
            let epsilons = main.nfa.epsilons(place).map(|to| (NO_SYMBOL, NO_SYMBOL, to));
            let edges = main.nfa.edges(place).map(|e| (e.lo, e.hi, e.to));
            for (lo, hi, to) in edges.chain(epsilons).filter(|&(_, _, to)| main.live[to as usize]) {
                let Some(to) = self.find(unit, to, left) else {
                    self.firsts.remove(&place);
                    return None;
                };
                kind.extend([lo, hi, to]);
            }
        } else {
            return Some(place);
        }
        let first = *self.by_kind.entry(kind.into()).or_insert(place);
        self.firsts.insert(place, first);
        Some(first)
    }
}

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
        let State { instance, block, .. } = self.states[state as usize];
        if block != NO_BLOCK {
            return self.alike_in_block(state, block, tokens);
        }
        let Some(kind) = self.kind(state, |_| None) else { return state };
        let first = *self.first_alike.entry(kind).or_insert(state);
        if first != state {
            return if self.is_apart(instance, tokens) { self.known_alike(first) } else { state };
        }
        // No other is known that goes on with the same members, but perhaps no token gets to the end of a name in which they differ.
        let names = self.names_of(instance);
        let Some(kind) = self.kind(state, |place| names.stand_ins.get(&place).copied()) else {
            return state;
        };
        let first = *self.first_alike.entry(kind).or_insert(state);
        if first == state || !self.is_apart(instance, tokens) {
            return state;
        }
        let covered = self.covered(instance, &names, tokens);
        let told =
            |place: u32| names.stand_ins.get(&place).copied().filter(|_| covered.contains(&place));
        let [kind, other] = [state, first].map(|state| self.kind(state, told));
        if kind == other { first } else { state }
    }

    /// The state of the same block with what stands for the state behind it.
    fn alike_in_block(&mut self, state: u32, block: u32, tokens: &Triples) -> u32 {
        let exit = self.blocks[block as usize].exit;
        let alike = self.alike(exit, tokens);
        let State { instance, set, .. } = self.states[state as usize];
        let Source::Sets(unit, part) = &self.instances[instance as usize].source else {
            return state;
        };
        let (unit, Some(number)) = (unit.clone(), part.checked_sub(1)) else { return state };
        if alike == exit || alike == Program::RETURN {
            return state;
        }
        let other = self.place(self.states[alike as usize].instance, &unit, number, alike);
        let inner = self.states[self.blocks[other as usize].start as usize].instance;
        let set = self.sets[set.range()].to_vec();
        self.intern(inner, &set)
    }

    /// See [`MemberStates::without_names`](super::MemberStates::without_names).
    fn kind(&mut self, state: u32, covered: impl Fn(u32) -> Option<u32>) -> Option<Kind> {
        let State { instance, set, .. } = self.states[state as usize];
        self.members_of(instance)?;
        let mut endings = self.endings.remove(&instance).unwrap_or_default();
        let (unit, number) = self.members_of(instance)?;
        let stand_in =
            |place: u32| StandIn { like: endings.of(unit, place), covered: covered(place) };
        let kind =
            self.members[number].without_names(unit, (instance, &self.sets[set.range()]), stand_in);
        self.endings.insert(instance, endings);
        kind
    }

    fn names_of(&mut self, instance: u32) -> Arc<Names> {
        if let Some(known) = self.names.get(&instance) {
            return known.clone();
        }
        let mut names = Names::default();
        if let Some((unit, _)) = self.members_of(instance) {
            let regions = (0..unit.members.len()).filter(|&region| unit.members.may_repeat(region));
            for region in regions {
                let begin = names.spelled.len();
                names.spelled.extend(
                    unit.members.spelled(&unit.main.nfa, region).map(|spelled| (region, spelled)),
                );
                // By what stands in for a place, and the byte behind it.
                let mut known: HashMap<(u32, u8), u32> = HashMap::default();
                let first =
                    names.spelled[begin..].iter().find_map(|(_, spelled)| Some(spelled.first()?.0));
                for (_, spelled) in &names.spelled[begin..] {
                    let mut stand_in = first;
                    for (at, &(place, byte)) in spelled.iter().enumerate() {
                        let Some(here) = stand_in else { break };
                        names.stand_ins.insert(place, here);
                        let next = spelled.get(at + 1).map(|&(next, _)| next);
                        stand_in = next.map(|next| *known.entry((here, byte)).or_insert(next));
                    }
                }
            }
        }
        let names = Arc::new(names);
        self.names.insert(instance, names.clone());
        names
    }

    /// The places in names from which no token gets past what a member that may repeat reads, too.
    fn covered(&mut self, instance: u32, names: &Names, tokens: &Triples) -> Arc<HashSet<u32>> {
        if let Some(known) = self.covered.get(&instance) {
            return known.clone();
        }
        let mut covered = HashSet::default();
        for (region, spelled) in &names.spelled {
            let bytes: Vec<u8> = spelled.iter().map(|&(_, byte)| byte).collect();
            let read = self.others_read(instance, *region, &bytes);
            // Where three bytes are in no token, each token that begins before them ends in front of the last one at the latest.
            let last = bytes
                .windows(3)
                .enumerate()
                .rev()
                .find(|(at, three)| at + 2 <= read && tokens.lack(three));
            covered.extend(
                last.into_iter().flat_map(|(at, _)| &spelled[..=at]).map(|&(place, _)| place),
            );
        }
        let covered = Arc::new(covered);
        self.covered.insert(instance, covered.clone());
        covered
    }

    /// How many of these bytes can be read from where a member begins that may repeat, as far as that can be told.
    fn others_read(&mut self, instance: u32, region: usize, bytes: &[u8]) -> usize {
        let Some((unit, number)) =
            self.members_of(instance).map(|(unit, number)| (unit.clone(), number))
        else {
            return 0;
        };
        let firsts = self.members[number].others(&unit, region);
        let mut next = vec![self.closed(instance, &firsts)];
        let mut level = Vec::new();
        for (read, &byte) in bytes.iter().enumerate() {
            level.clear();
            // Those that cannot be looked through may read it or not.
            for &state in &next {
                let _ = self.readers(state, &mut level, DEPTH);
            }
            next.clear();
            for &state in &level {
                next.extend(
                    self.byte_edges(state)
                        .iter()
                        .filter(|e| e.lo <= byte && byte <= e.hi)
                        .map(|e| e.to),
                );
            }
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return read;
            }
        }
        bytes.len()
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
        let (unit, number) =
            self.members_of(instance).map(|(unit, number)| (unit.clone(), number))?;
        for region in 0..unit.members.len() {
            let last = separating(&unit, region)?;
            let mut start = |with_others: bool| {
                let firsts = self.members[number].firsts(&unit, region, with_others);
                self.closed(instance, &firsts)
            };
            let starts = [start(true), start(false)];
            let (common, next) = self.beginnings(starts)?;
            let texts = last.iter().flat_map(|&l| next.iter().map(move |&n| (l, n)));
            for (last, next) in texts {
                let text: Vec<u8> =
                    [last].into_iter().chain(common.iter().copied()).chain([next]).collect();
                if !tokens.lack(&text) {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// The state of what epsilon edges of these lead to.
    fn closed(&mut self, instance: u32, from: &[u32]) -> u32 {
        let mut set = Vec::new();
        self.close(instance, from, &mut set);
        self.intern(instance, &set)
    }

    /// What all texts from two states on begin with, and what there may be next from the second one.
    fn beginnings(&mut self, starts: [u32; 2]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut levels = [Vec::new(), Vec::new()];
        let mut common = Vec::new();
        let mut goes_on =
            starts.iter().zip(&mut levels).all(|(&start, level)| self.readers(start, level, DEPTH));
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

/// Whether a symbol is a byte that names are made of, or one of the quotes around them.
fn is_of_word(symbol: u32) -> bool {
    u8::try_from(symbol).is_ok_and(|byte| {
        byte.is_ascii_alphanumeric() || b"_-\"".contains(&byte) || !byte.is_ascii()
    })
}

/// All bytes of a separator; none where it calls what is not white space, or may be empty.
fn separating(unit: &Unit, region: usize) -> Option<Vec<u8>> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (lo, hi) in unit.members.separating(&unit.main.nfa, region)? {
        match Symbol::decode(lo) {
            Symbol::Byte(_) => ranges.push((lo, hi)),
            Symbol::Block(block) => {
                let nfa = &unit.blocks.get(block as usize)?.body.nfa;
                ranges.extend(
                    (0..nfa.len() as u32).flat_map(|state| nfa.edges(state)).map(|e| (e.lo, e.hi)),
                );
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
