//! Representatives of member-set states, for masks.
//!
//! After a member, the state remembers which members have been seen, as that decides which names
//! may follow. If no token spans both the end of a separator and the distinguishing part of the
//! next name, no token can observe it. All such states then share one representative, and so one
//! mask.
//!
//! See docs/internals/MEMBER_SETS.md.

use std::sync::Arc;

use super::{InstanceId, Program, StateId};
use crate::compile::ByteEdge;
use crate::compile::member_sets::{CoveredBytes, EquivalenceKey, MemberSetId};
use crate::compile::rule_nfa::{EdgeSymbol, RuleNfa};
use crate::fsm::Trigrams;
use crate::hash::HashMap;

/// Longest common prefix of all members that is examined, in bytes.
const MAX_COMMON_PREFIX: usize = 32;
/// Longest chain of calls that is followed at the start of a member.
const MAX_CALL_DEPTH: u32 = 8;
/// Most distinct bytes in a separator that is analyzed.
const MAX_SEPARATOR_BYTES: usize = 16;

/// Representatives of member-set states, and memos of how they are found; by instance.
#[derive(Debug, Default)]
pub(super) struct MemberClasses {
    /// The first state of each instance with each equivalence key.
    representatives: HashMap<(InstanceId, EquivalenceKey), StateId>,
    /// Results of [`Program::separates_members`].
    separation: HashMap<InstanceId, bool>,
    /// Results of [`Program::covered_names`].
    covered: HashMap<InstanceId, Arc<CoveredNames>>,
}

/// By member set and unique member: see [`CoveredBytes`].
type CoveredNames = Vec<Vec<usize>>;

impl Program {
    /// The representative of a state, as far as it has been computed; else the state itself.
    #[inline]
    pub(crate) fn cached_representative_state(&self, state: StateId) -> StateId {
        let representative = self.states.get(state).memo.representative;
        if representative == StateId::UNKNOWN { state } else { representative }
    }

    /// The representative of a state: no token tells the two apart. It is the first state with the
    /// same equivalence key. Memoised.
    pub(crate) fn representative_state(&mut self, state: StateId, tokens: &Trigrams) -> StateId {
        if self.states.get(state).memo.representative == StateId::UNKNOWN {
            let representative = self.find_equivalent(state, tokens);
            self.states.memo_mut(state).representative = representative;
        }
        self.states.get(state).memo.representative
    }

    /// Computes the representative of a state.
    fn find_equivalent(&mut self, state: StateId, tokens: &Trigrams) -> StateId {
        let instance = self.states.get(state).key.instance;
        let Some(key) = self.equivalence_key(state, &|_, _| 0) else { return state };
        let first = *self.members.classes.representatives.entry(key).or_insert(state);
        if first != state {
            return if self.separates_members(instance, tokens) {
                self.cached_representative_state(first)
            } else {
                state
            };
        }
        // No known state continues with the same members. But perhaps no token reaches the end of a
        // name in which they differ.
        let may_repeat = self.repeating_sets(instance);
        let most = |set: MemberSetId, _| if may_repeat[set.index()] { usize::MAX } else { 0 };
        let Some(key) = self.equivalence_key(state, &most) else { return state };
        let first = *self.members.classes.representatives.entry(key).or_insert(state);
        if first == state || !self.separates_members(instance, tokens) {
            return state;
        }
        let covered = self.covered_names(instance, tokens);
        let covered = |set: MemberSetId, member: usize| {
            covered[set.index()].get(member).copied().unwrap_or(0)
        };
        let [key, first_key] = [state, first].map(|state| self.equivalence_key(state, &covered));
        if key == first_key { first } else { state }
    }

    /// The instance and the equivalence key of a state; see [`abstract_key`].
    ///
    /// [`abstract_key`]: crate::compile::member_sets::MemberSetStates::abstract_key
    fn equivalence_key(
        &self,
        state: StateId,
        covered: CoveredBytes<'_>,
    ) -> Option<(InstanceId, EquivalenceKey)> {
        let instance = self.states.get(state).key.instance;
        let (rule_nfa, number) = self.member_instance(instance)?;
        let states = &self.members.states[number.index()];
        Some((instance, states.abstract_key(rule_nfa, self.states.set(state), covered)?))
    }

    /// By member set: whether it has repeatable members without an upper bound.
    fn repeating_sets(&self, instance: InstanceId) -> Vec<bool> {
        let sets = self.member_instance(instance).map(|(rule_nfa, _)| &rule_nfa.member_sets);
        sets.map_or(Vec::new(), |sets| sets.ids().map(|set| sets.may_repeat(set)).collect())
    }

    /// How many bytes of each name a repeatable member covers, see [`CoveredBytes`]. Memoised.
    fn covered_names(&mut self, instance: InstanceId, tokens: &Trigrams) -> Arc<CoveredNames> {
        if let Some(known) = self.members.classes.covered.get(&instance) {
            return known.clone();
        }
        let mut covered = CoveredNames::new();
        for (set, may_repeat) in self.repeating_sets(instance).into_iter().enumerate() {
            let set = MemberSetId::new(set);
            let names: Vec<Vec<u8>> = match self.member_instance(instance) {
                Some((rule_nfa, _)) if may_repeat => {
                    rule_nfa.member_sets.spelled(&rule_nfa.main.nfa, set).collect()
                }
                _ => Vec::new(),
            };
            let of_name = names.iter().map(|bytes| {
                let read = self.repeatable_prefix_len(instance, set, bytes);
                // If no token contains these three bytes, each token that begins before them ends
                // in front of the last one.
                let mut windows = bytes.windows(3).enumerate().rev();
                let last = windows.find(|(at, three)| at + 2 <= read && tokens.excludes(three));
                last.map_or(0, |(at, _)| at + 1)
            });
            covered.push(of_name.collect());
        }
        let covered = Arc::new(covered);
        self.members.classes.covered.insert(instance, covered.clone());
        covered
    }

    /// How many of `bytes` a repeatable member can read from its start, as far as that is
    /// decidable.
    fn repeatable_prefix_len(
        &mut self,
        instance: InstanceId,
        member_set: MemberSetId,
        bytes: &[u8],
    ) -> usize {
        let Some((rule_nfa, number)) =
            self.member_instance(instance).map(|(rule_nfa, number)| (rule_nfa.clone(), number))
        else {
            return 0;
        };
        let firsts = self.members.states[number.index()].repeatable_starts(&rule_nfa, member_set);
        let mut next = Vec::from_iter(self.target_state(instance, &firsts));
        let mut level = Vec::new();
        for (read, &byte) in bytes.iter().enumerate() {
            level.clear();
            // States that cannot be examined may read the byte or not.
            for &state in &next {
                let _ = self.collect_readers(state, &mut level, MAX_CALL_DEPTH);
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

    /// Whether no token spans the end of a separator and the distinguishing part of a following
    /// member. Memoised.
    fn separates_members(&mut self, instance: InstanceId, tokens: &Trigrams) -> bool {
        if let Some(&known) = self.members.classes.separation.get(&instance) {
            return known;
        }
        let separated = self.find_separation(instance, tokens).unwrap_or(false);
        self.members.classes.separation.insert(instance, separated);
        separated
    }

    /// `None` if that cannot be decided.
    fn find_separation(&mut self, instance: InstanceId, tokens: &Trigrams) -> Option<bool> {
        let (rule_nfa, number) =
            self.member_instance(instance).map(|(rule_nfa, number)| (rule_nfa.clone(), number))?;
        for member_set in rule_nfa.member_sets.ids() {
            let last = separator_bytes(&rule_nfa, member_set)?;
            let mut start = |with_others: bool| {
                let firsts = self.members.states[number.index()].member_starts(
                    &rule_nfa,
                    member_set,
                    with_others,
                );
                self.target_state(instance, &firsts)
            };
            let starts = [start(true)?, start(false)?];
            let (common, next) = self.common_prefix(starts)?;
            let texts = last.iter().flat_map(|&l| next.iter().map(move |&n| (l, n)));
            for (last, next) in texts {
                let text: Vec<u8> =
                    [last].into_iter().chain(common.iter().copied()).chain([next]).collect();
                if !tokens.excludes(&text) {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// The common prefix of all texts from both states, and the bytes that may follow it from the
    /// second state.
    fn common_prefix(&mut self, starts: [StateId; 2]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut levels = [Vec::new(), Vec::new()];
        let mut common = Vec::new();
        let mut is_complete = starts
            .iter()
            .zip(&mut levels)
            .all(|(&start, level)| self.collect_readers(start, level, MAX_CALL_DEPTH));
        while is_complete && common.len() < MAX_COMMON_PREFIX {
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
                is_complete = is_complete
                    && edges.iter().all(|e| self.collect_readers(e.to, level, MAX_CALL_DEPTH));
                level.sort_unstable();
                level.dedup();
            }
        }
        // The rest is unknown: the prefix so far is common.
        let next = common.pop()?;
        Some((common, vec![next]))
    }

    /// Appends the states that read a byte at `state`, called rules included. False if other
    /// continuations exist.
    fn collect_readers(&mut self, state: StateId, out: &mut Vec<StateId>, depth: u32) -> bool {
        self.expand(state);
        let has_others =
            !self.special_edges(state).is_empty() || !self.block_entries(state).is_empty();
        if self.state(state).is_final || has_others || depth == 0 {
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
            let start = self.instantiate(rule);
            self.collect_readers(start, out, depth - 1)
        })
    }
}

/// The distinct bytes of a separator; `None` if it is nullable or calls anything but white space.
fn separator_bytes(rule_nfa: &RuleNfa, member_set: MemberSetId) -> Option<Vec<u8>> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (lo, hi) in rule_nfa.member_sets.separator_symbols(&rule_nfa.main.nfa, member_set)? {
        match EdgeSymbol::decode(lo) {
            EdgeSymbol::Byte(_) => ranges.push((lo, hi)),
            EdgeSymbol::Block(block) => {
                let nfa = &rule_nfa.blocks.get(block.index())?.body.nfa;
                ranges.extend(
                    (0..nfa.len() as u32).flat_map(|state| nfa.edges(state)).map(|e| (e.lo, e.hi)),
                );
            }
            _ => return None,
        }
    }
    if ranges.iter().any(|&(lo, hi)| hi > 255 || (hi - lo) as usize > MAX_SEPARATOR_BYTES) {
        return None;
    }
    let mut bytes: Vec<u8> = ranges.into_iter().flat_map(|(lo, hi)| lo as u8..=hi as u8).collect();
    bytes.sort_unstable();
    bytes.dedup();
    (bytes.len() <= MAX_SEPARATOR_BYTES).then_some(bytes)
}
