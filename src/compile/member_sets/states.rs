//! States of rules with member sets: pairs of seen members and a position, encoded as `u32`.

use indexmap::IndexSet;

use super::{EquivalenceKey, MemberLikelihood, StateRole, Substitutes, UNDECLARED_LIKELIHOOD};
use crate::compile::rule_nfa::{RuleNfa, StateSummary};
use crate::fsm::Edge;
use crate::hash::Seeded;
use crate::ir::{MemberBounds, NextMember, SeenMembers};

/// The encoded states of a rule with member sets: pairs (seen members, position), as `u32`.
#[derive(Debug)]
pub(in crate::compile) struct MemberSetStates {
    /// Interned sets of seen members; index 0 is the empty set.
    seen_sets: IndexSet<SeenMembers, Seeded>,
    /// A state is `seen << position_bits | position`, if that fits.
    position_bits: u32,
    /// Pairs that do not fit. The state is the index here, with [`OVERFLOW_BIT`].
    overflow: IndexSet<(u32, u32), Seeded>,
    /// Seen members are not recorded; for reports.
    ignores_members: bool,
}

/// Marks a state as an index into `MemberSetStates::overflow`.
const OVERFLOW_BIT: u32 = 1 << 31;

/// Id of the empty set of members.
const NO_MEMBERS: u32 = 0;
/// In an equivalence key, in place of the seen members: bit 0 tells whether the set may
/// end, bit 1 whether it may go on.
const ABSTRACTED: u32 = 1 << 31;
/// In an equivalence key, in place of the seen members: they have no effect at all.
const UNCONSTRAINED: u32 = u32::MAX;

impl MemberSetStates {
    /// No states; `ignores_members` is for reports.
    pub(in crate::compile) fn new(rule_nfa: &RuleNfa, ignores_members: bool) -> MemberSetStates {
        let bits = rule_nfa.main.nfa.len().next_power_of_two().trailing_zeros();
        let seen_sets = IndexSet::from_iter([SeenMembers::default()]);
        MemberSetStates {
            seen_sets,
            position_bits: bits,
            overflow: IndexSet::default(),
            ignores_members,
        }
    }

    /// Approximate memory of one state, in bytes.
    pub(in crate::compile) const BYTES: usize = size_of::<SeenMembers>() + 40;

    /// Number of distinct sets of seen members.
    pub(in crate::compile) fn seen_count(&self) -> usize {
        self.seen_sets.len()
    }

    /// The state of a set of seen members at a position.
    fn intern(&mut self, seen: SeenMembers, position: u32) -> u32 {
        let seen = self.seen_sets.insert_full(seen).0 as u32;
        self.encode(seen, position)
    }

    /// The state of an interned set at a position.
    #[inline]
    fn encode(&mut self, seen: u32, position: u32) -> u32 {
        if seen < OVERFLOW_BIT >> self.position_bits {
            return seen << self.position_bits | position;
        }
        self.overflow.insert_full((seen, position)).0 as u32 | OVERFLOW_BIT
    }

    /// The id of the seen members, and the position.
    #[inline]
    pub(in crate::compile) fn decode(&self, state: u32) -> (u32, u32) {
        match state & OVERFLOW_BIT {
            0 => (state >> self.position_bits, state & ((1 << self.position_bits) - 1)),
            _ => self.overflow[(state & !OVERFLOW_BIT) as usize],
        }
    }

    /// The seen members of a state.
    fn seen(&self, state: u32) -> SeenMembers {
        self.seen_sets[self.decode(state).0 as usize]
    }

    /// The start state of the rule.
    pub(in crate::compile) fn start(&mut self, rule_nfa: &RuleNfa) -> u32 {
        self.encode(NO_MEMBERS, rule_nfa.main.nfa.start())
    }

    /// The seen members after one more; `None` if that cannot be completed.
    fn add_member(
        &self,
        bounds: MemberBounds,
        seen: SeenMembers,
        next_member: NextMember,
    ) -> Option<SeenMembers> {
        if self.ignores_members { Some(seen) } else { bounds.add(seen, next_member) }
    }

    /// Whether the set may end after these members.
    fn may_end(&self, bounds: MemberBounds, seen: SeenMembers) -> bool {
        self.ignores_members || bounds.may_end(seen)
    }

    /// If the state has no epsilon edges: whether it is relevant. Else `None`.
    pub(in crate::compile) fn trivial_closure(
        &self,
        rule_nfa: &RuleNfa,
        state: u32,
    ) -> Option<bool> {
        let (_, position) = self.decode(state);
        let plain = rule_nfa.member_sets.is_ordinary(position)
            && rule_nfa.main.nfa.epsilons(position).next().is_none();
        plain.then(|| rule_nfa.main.is_relevant(position))
    }

    /// The only edge of a state, if its target is relevant and without epsilon edges.
    pub(in crate::compile) fn single_edge(
        &mut self,
        rule_nfa: &RuleNfa,
        state: u32,
    ) -> Option<Edge> {
        let (seen_id, position) = self.decode(state);
        let edge = rule_nfa
            .main
            .single_edge(position)
            .filter(|edge| rule_nfa.member_sets.is_ordinary(edge.to))?;
        Some(Edge { to: self.encode(seen_id, edge.to), ..edge })
    }

    /// Appends the epsilon successors of a state. Returns whether the state itself is relevant.
    pub(in crate::compile) fn follow_epsilons(
        &mut self,
        rule_nfa: &RuleNfa,
        state: u32,
        out: &mut Vec<u32>,
    ) -> bool {
        let (seen_id, position) = self.decode(state);
        let (member_sets, live) =
            (&rule_nfa.member_sets, |position: u32| rule_nfa.main.live[position as usize]);
        if !live(position) {
            return false;
        }
        match member_sets.role(position) {
            StateRole::None | StateRole::First => {
                rule_nfa
                    .main
                    .nfa
                    .epsilons(position)
                    .filter(|&to| live(to))
                    .for_each(|to| out.push(self.encode(seen_id, to)));
                rule_nfa.main.is_relevant(position)
            }
            StateRole::Start(_) => {
                rule_nfa
                    .main
                    .nfa
                    .epsilons(position)
                    .filter(|&to| live(to))
                    .for_each(|to| out.push(self.encode(NO_MEMBERS, to)));
                false
            }
            StateRole::Before(member_set) => {
                let (member_set, seen) = (member_sets.set(member_set), self.seen(state));
                for next_member in member_set.bounds.candidates(seen) {
                    if self.add_member(member_set.bounds, seen, next_member).is_some() {
                        let firsts =
                            member_set.starts(next_member).iter().filter(|&&first| live(first));
                        firsts.for_each(|&first| out.push(self.encode(seen_id, first)));
                    }
                }
                true
            }
            StateRole::End(member_set, next_member) => {
                let member_set = member_sets.set(member_set);
                let next = self.add_member(member_set.bounds, self.seen(state), next_member);
                out.extend(next.map(|next| self.intern(next, member_set.after)));
                false
            }
            StateRole::Behind(member_set) => {
                let (member_set, seen) = (member_sets.set(member_set), self.seen(state));
                let (ends, continues) =
                    (self.may_end(member_set.bounds, seen), member_set.bounds.may_continue(seen));
                if ends {
                    out.push(self.encode(NO_MEMBERS, member_set.exit));
                }
                if continues {
                    out.push(self.encode(seen_id, member_set.separator));
                    out.extend(
                        member_set
                            .separator_nullable
                            .then(|| self.encode(seen_id, member_set.before)),
                    );
                }
                // The state itself is kept where both are possible: see
                // [`MemberSetStates::nearing_end`].
                ends && continues
            }
            StateRole::Between(member_set) => {
                out.push(self.encode(seen_id, member_sets.set(member_set).before));
                false
            }
        }
    }

    /// Calls `each` with the edges of a state.
    pub(in crate::compile) fn edges(
        &mut self,
        rule_nfa: &RuleNfa,
        state: u32,
        mut each: impl FnMut(Edge),
    ) {
        let (seen_id, position) = self.decode(state);
        for edge in rule_nfa.main.nfa.edges(position).filter(|e| rule_nfa.main.live[e.to as usize])
        {
            each(Edge { to: self.encode(seen_id, edge.to), ..edge });
        }
    }

    /// The summary of a set of states.
    pub(in crate::compile) fn summarize(&self, rule_nfa: &RuleNfa, set: &[u32]) -> StateSummary {
        let positions: Vec<u32> = set.iter().map(|&state| self.decode(state).1).collect();
        rule_nfa.main.summarize(&positions)
    }

    /// The equivalence key of a set of states: positions, with the seen members abstracted to what
    /// they allow next. `None` if nothing can be abstracted.
    ///
    /// States with equal keys continue alike up to the start of the next member. The key tells
    /// where a member may begin (sets are closed) and whether the set may end or must go on.
    /// `substitutes` replaces positions.
    pub(in crate::compile) fn abstract_key(
        &self,
        rule_nfa: &RuleNfa,
        (instance, set): (u32, &[u32]),
        mut substitutes: impl FnMut(u32) -> Substitutes,
    ) -> Option<EquivalenceKey> {
        let mut is_abstracted = false;
        let pairs = set.iter().map(|&state| {
            let (seen_id, position) = self.decode(state);
            let seen = self.seen(state);
            let Some(abstracted) = self.abstract_seen(rule_nfa, position, seen) else {
                return (position, seen_id);
            };
            is_abstracted = true;
            // While members are still counted, a repeatable member may be excluded.
            let enough = || {
                rule_nfa
                    .member_sets
                    .enclosing(position)
                    .is_some_and(|member_set| member_set.bounds.min_reached(seen))
            };
            match substitutes(position) {
                Substitutes { covered_by: Some(covered), .. } if enough() => {
                    (covered, UNCONSTRAINED)
                }
                Substitutes { same_ending, .. } => (same_ending, abstracted),
            }
        });
        let mut key: Vec<(u32, u32)> = pairs.collect();
        key.sort_unstable();
        key.dedup();
        key.push((instance, 0));
        is_abstracted.then(|| key.into())
    }

    /// The abstraction of the seen members at a position: whether the set may end, and whether it
    /// may go on. `None` if more than that matters.
    fn abstract_seen(&self, rule_nfa: &RuleNfa, position: u32, seen: SeenMembers) -> Option<u32> {
        let member_set = rule_nfa.member_sets.enclosing(position)?;
        if member_set.separator_nullable || !member_set.bounds.is_unbounded() {
            return None;
        }
        let after = match member_set.member_at(position) {
            Some(next_member) => self.add_member(member_set.bounds, seen, next_member)?,
            None => match rule_nfa.member_sets.is_before_member(
                &rule_nfa.main.nfa,
                member_set,
                position,
            )? {
                true => return Some(ABSTRACTED),
                false => seen,
            },
        };
        let (ends, continues) =
            (member_set.bounds.may_end(after), member_set.bounds.may_continue(after));
        member_set
            .bounds
            .min_reached(after)
            .then_some(ABSTRACTED | u32::from(ends) | u32::from(continues) << 1)
    }

    /// Start states of the at-most-once members, and of all members if `with_others`.
    pub(in crate::compile) fn member_starts(
        &mut self,
        rule_nfa: &RuleNfa,
        member_set: usize,
        with_others: bool,
    ) -> Vec<u32> {
        let member_set = &rule_nfa.member_sets.all[member_set];
        let others = if with_others { &member_set.often[..] } else { &[] };
        let firsts = member_set
            .once
            .iter()
            .chain(others)
            .filter(|&&first| rule_nfa.main.live[first as usize]);
        firsts.map(|&first| self.encode(NO_MEMBERS, first)).collect()
    }

    /// Start states of the repeatable members.
    pub(in crate::compile) fn repeatable_starts(
        &mut self,
        rule_nfa: &RuleNfa,
        member_set: usize,
    ) -> Vec<u32> {
        let others = rule_nfa.member_sets.all[member_set]
            .often
            .iter()
            .filter(|&&first| rule_nfa.main.live[first as usize]);
        others.map(|&first| self.encode(NO_MEMBERS, first)).collect()
    }

    /// The most at-most-once members that may still come in one of these states.
    pub(in crate::compile) fn remaining(&self, rule_nfa: &RuleNfa, set: &[u32]) -> u32 {
        let remaining = |&state: &u32| {
            let (position, seen) = (self.decode(state).1, self.seen(state));
            let inside = rule_nfa.member_sets.containing(position);
            let most = || {
                rule_nfa
                    .member_sets
                    .all
                    .iter()
                    .map(|member_set| member_set.bounds.remaining_once(SeenMembers::default()))
                    .max()
            };
            inside
                .map(|member_set| member_set.bounds.remaining_once(seen))
                .or_else(most)
                .unwrap_or(0)
        };
        set.iter().map(remaining).max().unwrap_or(0)
    }

    /// The likelihood of a set: the maximum of its states. See [`MemberLikelihood`].
    pub(in crate::compile) fn likelihood(
        &self,
        rule_nfa: &RuleNfa,
        set: &[u32],
        returned: bool,
    ) -> MemberLikelihood {
        let mut after: Option<f64> = None;
        let mut most = 0.0f64;
        for &state in set {
            let (position, seen) = (self.decode(state).1, self.seen(state));
            let member_set = rule_nfa.member_sets.containing(position);
            if let Some(member_set) =
                member_set.filter(|member_set| returned && position == member_set.before)
            {
                // The end of white space behind a separator is as likely as the separator.
                return MemberLikelihood::Among(if member_set.bounds.remaining_once(seen) > 0 {
                    1.0
                } else {
                    UNDECLARED_LIKELIHOOD
                });
            }
            if let Some(member_set) =
                member_set.filter(|member_set| returned && !member_set.is_member(position))
            {
                after = Some(after.unwrap_or(0.0).max(member_set.bounds.order_score(seen)));
            }
            most = most
                .max(member_set.map_or(1.0, |member_set| member_set.likelihood(position, seen)));
        }
        after.map_or(MemberLikelihood::Among(most), MemberLikelihood::Behind)
    }

    /// The set for the search of the nearest end: members begin as
    /// [`MemberBounds::completion_candidates`] orders them, and nothing follows a member that may
    /// be the last. `None` if that changes nothing.
    pub(in crate::compile) fn nearing_end(
        &mut self,
        rule_nfa: &RuleNfa,
        set: &[u32],
    ) -> Option<Vec<u32>> {
        let member_sets = &rule_nfa.member_sets;
        let role = |states: &Self, state: u32| member_sets.role(states.decode(state).1);
        let is_changed =
            |&state: &u32| matches!(role(self, state), StateRole::Before(_) | StateRole::Behind(_));
        if self.ignores_members || !set.iter().any(is_changed) {
            return None;
        }
        // A closed set contains a state behind a member only where the set may end.
        let done = set.iter().filter_map(|&state| match role(self, state) {
            StateRole::Behind(member_set) => Some((member_set, self.decode(state).0)),
            _ => None,
        });
        let done: Vec<(u32, u32)> = done.collect();
        let mut out = Vec::new();
        for &state in set {
            let (seen_id, position) = self.decode(state);
            match role(self, state) {
                StateRole::Before(at) if !done.contains(&(at, seen_id)) => {
                    let member_set = member_sets.set(at);
                    for (seen, next_member) in
                        member_set.bounds.completion_candidates(self.seen(state))
                    {
                        let firsts = member_set
                            .starts(next_member)
                            .iter()
                            .filter(|&&first| rule_nfa.main.live[first as usize]);
                        firsts.for_each(|&first| out.push(self.intern(seen, first)));
                    }
                }
                StateRole::First => {
                    let of = member_sets
                        .all
                        .iter()
                        .position(|member_set| member_set.separator == position);
                    out.extend(
                        of.filter(|&of| !done.contains(&(of as u32, seen_id))).map(|_| state),
                    );
                }
                StateRole::Before(_) => {}
                _ => out.push(state),
            }
        }
        out.sort_unstable();
        out.dedup();
        Some(out)
    }
}
