//! Automata of member sets: object members in any order, each at most once.
//!
//! A state is a set of pairs (members seen so far, position in the rule's automaton). Positions
//! exist once; sets of seen members are interned as a parse meets them. So nothing enumerates the
//! exponentially many subsets.
//!
//! See docs/internals/MEMBER_SETS.md.

use std::ops::Range;

use indexmap::IndexSet;

use super::rule_nfa::{RuleNfa, StateSummary};
use crate::fsm::{Edge, Nfa};
use crate::hash::Seeded;
use crate::ir::{MemberBounds, NextMember, SeenMembers};

/// Longest prefix of a name that is examined, in bytes.
const MAX_SPELLED: usize = 128;
/// Likelihood of a repeatable (undeclared) member, relative to declared ones.
const UNDECLARED_LIKELIHOOD: f64 = 1.0 / 256.0;

/// The key of states that differ only in the members seen: pairs of a position and the abstracted
/// seen members, then the instance.
pub(super) type EquivalenceKey = Box<[(u32, u32)]>;

/// Positions that replace a position in an equivalence key.
pub(super) struct Substitutes {
    /// A position with the same continuation to the end of the member.
    pub(super) same_ending: u32,
    /// A position that stands for the whole name, if a repeatable member can read the same text:
    /// then the choice has no effect.
    pub(super) covered_by: Option<u32>,
}

/// The likelihood of a continuation, for previews. Assumes that members come in declaration order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MemberLikelihood {
    /// Of a continuation within a member set: at most 1.
    Among(f64),
    /// Of a state behind a member: comparable only with others of this kind.
    Behind(f64),
}

impl MemberLikelihood {
    /// Whether it is as unlikely as an undeclared member.
    pub(crate) fn is_undeclared(self) -> bool {
        matches!(self, MemberLikelihood::Among(likely) if likely <= UNDECLARED_LIKELIHOOD)
    }

    /// The likelihood of a state with either continuation.
    pub(crate) fn or(self, other: MemberLikelihood) -> MemberLikelihood {
        match (self, other) {
            (MemberLikelihood::Among(a), MemberLikelihood::Among(b)) => {
                MemberLikelihood::Among(a.max(b))
            }
            (MemberLikelihood::Behind(a), MemberLikelihood::Behind(b)) => {
                MemberLikelihood::Behind(a.max(b))
            }
            (among @ MemberLikelihood::Among(_), after) | (after, among)
                if among.is_undeclared() =>
            {
                after
            }
            (among @ MemberLikelihood::Among(_), _) | (_, among) => among,
        }
    }
}

/// The member sets of a rule, and the roles of its automaton states.
#[derive(Debug, Default)]
pub(super) struct MemberSets {
    all: Vec<MemberSet>,
    /// By state of the automaton.
    roles: Vec<StateRole>,
}

/// One member set. Its fields are states of the rule's automaton.
#[derive(Debug)]
struct MemberSet {
    bounds: MemberBounds,
    /// The states of the set: its parts, and the states in between.
    range: Range<u32>,
    /// First states of the members: at-most-once members, then repeatable ones.
    once: Vec<u32>,
    often: Vec<u32>,
    separator: u32,
    /// First state of each part, ascending: at-most-once members, repeatable members, the
    /// separator; then the end.
    part_starts: Vec<u32>,
    /// The separator is nullable.
    separator_nullable: bool,
    /// In front of a member.
    before: u32,
    /// Behind a member.
    after: u32,
    /// Behind the set.
    exit: u32,
}

/// What a state of the automaton means for member sets; the index is that of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum StateRole {
    /// An ordinary state.
    #[default]
    None,
    /// Entry of a set: no member has been seen.
    Start(u32),
    /// In front of a member.
    Before(u32),
    /// First state of a member or separator. No edge leads back to it.
    First,
    /// Last state of a member.
    End(u32, NextMember),
    /// Behind a member.
    Behind(u32),
    /// Behind a separator.
    Between(u32),
}

/// The parts of a member set, each as its first and last state.
pub(super) struct MemberFragments {
    pub(super) bounds: MemberBounds,
    /// The set derives the empty string.
    pub(super) nullable: bool,
    pub(super) once: Vec<(u32, u32)>,
    pub(super) often: Vec<(u32, u32)>,
    pub(super) separator: (u32, u32),
}

impl MemberSets {
    /// Whether the rule has no member set.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Connects the parts of a member set, which begins at `from`. The parts are the states from
    /// `begin` on. Returns the state behind the set.
    pub(super) fn add(
        &mut self,
        nfa: &mut Nfa,
        (from, begin): (u32, u32),
        fragments: MemberFragments,
    ) -> u32 {
        let MemberFragments { bounds, nullable, once, often, separator } = fragments;
        let index = self.all.len() as u32;
        let part_starts = once
            .iter()
            .chain(&often)
            .chain([&separator])
            .map(|part| part.0)
            .chain([nfa.len() as u32])
            .collect();
        let [start, before, after, exit] = [(); 4].map(|()| nfa.state());
        nfa.epsilon(from, start);
        let mut roles = vec![
            (start, StateRole::Start(index)),
            (before, StateRole::Before(index)),
            (after, StateRole::Behind(index)),
        ];
        let mut add_part = |nfa: &mut Nfa, (begin, to): (u32, u32), role: StateRole| {
            let end = nfa.state();
            nfa.epsilon(to, end);
            let (first, is_empty) = entry_copy(nfa, begin, end);
            roles.extend([(first, StateRole::First), (end, role)]);
            (first, end, is_empty)
        };
        // These epsilon edges serve the liveness analysis only. Which of them a parse may take
        // depends on the members seen, see `follow_epsilons`.
        let mut ends = Vec::new();
        let mut add_parts =
            |nfa: &mut Nfa, parts: Vec<(u32, u32)>, role: &dyn Fn(usize) -> StateRole| {
                let parts = parts.into_iter().enumerate().map(|(i, part)| {
                    let (first, end, _) = add_part(nfa, part, role(i));
                    ends.push((first, end));
                    first
                });
                parts.collect::<Vec<u32>>()
            };
        let once = add_parts(nfa, once, &|i| StateRole::End(index, NextMember::Once(i)));
        let often = add_parts(nfa, often, &|_| StateRole::End(index, NextMember::Often));
        let (separator, between, separator_nullable) =
            add_part(nfa, separator, StateRole::Between(index));
        for (first, end) in ends {
            nfa.epsilon(before, first);
            nfa.epsilon(end, after);
        }
        nfa.epsilon(after, separator);
        nfa.epsilon(between, before);
        nfa.epsilon(after, exit);
        if bounds.has_sentence() {
            nfa.epsilon(start, before);
        }
        if nullable {
            nfa.epsilon(start, exit);
        }
        self.roles.resize(nfa.len(), StateRole::None);
        roles.into_iter().for_each(|(state, role)| self.roles[state as usize] = role);
        let range = begin..nfa.len() as u32;
        self.all.push(MemberSet {
            bounds,
            range,
            once,
            often,
            separator,
            part_starts,
            separator_nullable,
            before,
            after,
            exit,
        });
        exit
    }

    /// Number of member sets.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The member set of which `position` ends a member.
    pub(super) fn ended_set(&self, position: u32) -> Option<u32> {
        match self.role(position) {
            StateRole::End(member_set, _) => Some(member_set),
            _ => None,
        }
    }

    /// Whether the edges of a position are all that it means.
    pub(super) fn is_ordinary(&self, position: u32) -> bool {
        matches!(self.role(position), StateRole::None | StateRole::First)
    }

    /// Whether the set has repeatable members without an upper bound.
    pub(super) fn may_repeat(&self, member_set: usize) -> bool {
        let member_set = &self.all[member_set];
        member_set.bounds.is_unbounded() && !member_set.often.is_empty()
    }

    /// Ranges of symbols that occur in the separator; `None` if it is nullable.
    pub(super) fn separator_symbols(
        &self,
        nfa: &Nfa,
        member_set: usize,
    ) -> Option<Vec<(u32, u32)>> {
        let member_set = &self.all[member_set];
        let [.., begin, end] = member_set.part_starts[..] else { return None };
        let edges = (begin..end).flat_map(|state| nfa.edges(state)).map(|e| (e.lo, e.hi));
        (!member_set.separator_nullable).then(|| edges.collect())
    }

    /// For each at-most-once member: its unambiguous literal prefix, as bytes with the position in
    /// front of each.
    pub(super) fn spelled(
        &self,
        nfa: &Nfa,
        member_set: usize,
    ) -> impl Iterator<Item = Vec<(u32, u8)>> {
        self.all[member_set].once.iter().map(|&first| {
            let mut spelled = Vec::new();
            let mut position = first;
            while spelled.len() < MAX_SPELLED
                && self.is_ordinary(position)
                && let [Edge { lo, hi, to }] = nfa.edges(position).collect::<Vec<_>>()[..]
                && lo == hi
                && let Ok(byte) = u8::try_from(lo)
                && nfa.epsilons(position).next().is_none()
            {
                spelled.push((position, byte));
                position = to;
            }
            spelled
        })
    }

    /// The member set whose part contains `position`, or that `position` lies in front of or behind
    /// a member of.
    fn enclosing(&self, position: u32) -> Option<&MemberSet> {
        match self.role(position) {
            StateRole::Before(member_set) | StateRole::Behind(member_set) => {
                Some(self.set(member_set))
            }
            _ => self.containing(position),
        }
    }

    /// Whether a position outside of members leads to the start of a member by epsilon edges.
    /// `None` if that depends on whether a called rule is nullable.
    fn is_before_member(&self, nfa: &Nfa, member_set: &MemberSet, position: u32) -> Option<bool> {
        let mut seen = vec![(position, true)];
        let mut at = 0;
        while let Some(&(state, is_certain)) = seen.get(at) {
            if matches!(self.role(state), StateRole::Between(_) | StateRole::Before(_)) {
                return is_certain.then_some(true);
            }
            // A called rule may be nullable.
            let called = nfa.edges(state).filter(|e| e.lo > 255).map(|e| (e.to, false));
            for (to, certain) in nfa.epsilons(state).map(|to| (to, true)).chain(called) {
                if member_set.range.contains(&to) && !seen.iter().any(|&(other, _)| other == to) {
                    seen.push((to, is_certain && certain));
                }
            }
            at += 1;
        }
        Some(false)
    }

    /// The role of a position.
    fn role(&self, position: u32) -> StateRole {
        self.roles.get(position as usize).copied().unwrap_or_default()
    }

    /// The member set that a position belongs to.
    fn containing(&self, position: u32) -> Option<&MemberSet> {
        self.all.iter().find(|member_set| member_set.range.contains(&position))
    }

    /// A member set by its index.
    fn set(&self, member_set: u32) -> &MemberSet {
        &self.all[member_set as usize]
    }
}

impl MemberSet {
    /// Whether a position is inside of a member.
    fn is_member(&self, position: u32) -> bool {
        self.part_at(position).is_some_and(|part| part + 2 < self.part_starts.len())
    }

    /// The index of the part around a position, as in [`MemberSet::part_starts`]; the separator is
    /// the last one.
    fn part_at(&self, position: u32) -> Option<usize> {
        let part = self.part_starts.partition_point(|&begin| begin <= position).checked_sub(1)?;
        (part + 1 < self.part_starts.len()).then_some(part)
    }

    /// The member that begins at or contains a position.
    fn member_at(&self, position: u32) -> Option<NextMember> {
        let nth = |firsts: &[u32]| firsts.iter().position(|&first| first == position);
        let begins = nth(&self.once)
            .map(NextMember::Once)
            .or_else(|| nth(&self.often).map(|_| NextMember::Often));
        begins.or_else(|| match self.part_at(position)? {
            member if member < self.once.len() => Some(NextMember::Once(member)),
            _ => self.is_member(position).then_some(NextMember::Often),
        })
    }

    /// Likelihood of the part around a position, as seen from where members begin.
    fn likelihood(&self, position: u32, seen: SeenMembers) -> f64 {
        let Some(part) = self.part_at(position) else { return 1.0 };
        match part {
            member if member < self.once.len() => self.bounds.likelihood(seen, member),
            part if part + 2 == self.part_starts.len() && self.bounds.remaining_once(seen) > 0 => {
                1.0
            }
            _ => UNDECLARED_LIKELIHOOD,
        }
    }

    /// First states of a member.
    fn starts(&self, next_member: NextMember) -> &[u32] {
        match next_member {
            NextMember::Once(i) => &self.once[i..=i],
            NextMember::Often => &self.often,
        }
    }
}

/// Adds a copy of the epsilon closure of `begin` that no edge leads back to. Also returns whether
/// `begin` reaches `end` without reading.
fn entry_copy(nfa: &mut Nfa, begin: u32, end: u32) -> (u32, bool) {
    let mut closure = vec![begin];
    let mut at = 0;
    while at < closure.len() {
        for to in nfa.epsilons(closure[at]) {
            if !closure.contains(&to) {
                closure.push(to);
            }
        }
        at += 1;
    }
    let is_empty = closure.contains(&end);
    let edges: Vec<Edge> =
        closure.into_iter().flat_map(|state| nfa.edges(state).collect::<Vec<_>>()).collect();
    let first = nfa.state();
    edges.into_iter().for_each(|e| nfa.edge(first, e.lo, e.hi, e.to));
    (first, is_empty)
}

/// The encoded states of a rule with member sets: pairs (seen members, position), as `u32`.
#[derive(Debug)]
pub(super) struct MemberSetStates {
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
    pub(super) fn new(rule_nfa: &RuleNfa, ignores_members: bool) -> MemberSetStates {
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
    pub(super) const BYTES: usize = size_of::<SeenMembers>() + 40;

    /// Number of distinct sets of seen members.
    pub(super) fn seen_count(&self) -> usize {
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
    pub(super) fn decode(&self, state: u32) -> (u32, u32) {
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
    pub(super) fn start(&mut self, rule_nfa: &RuleNfa) -> u32 {
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
    pub(super) fn trivial_closure(&self, rule_nfa: &RuleNfa, state: u32) -> Option<bool> {
        let (_, position) = self.decode(state);
        let plain = rule_nfa.member_sets.is_ordinary(position)
            && rule_nfa.main.nfa.epsilons(position).next().is_none();
        plain.then(|| rule_nfa.main.is_relevant(position))
    }

    /// The only edge of a state, if its target is relevant and without epsilon edges.
    pub(super) fn single_edge(&mut self, rule_nfa: &RuleNfa, state: u32) -> Option<Edge> {
        let (seen_id, position) = self.decode(state);
        let edge = rule_nfa
            .main
            .single_edge(position)
            .filter(|edge| rule_nfa.member_sets.is_ordinary(edge.to))?;
        Some(Edge { to: self.encode(seen_id, edge.to), ..edge })
    }

    /// Appends the epsilon successors of a state. Returns whether the state itself is relevant.
    pub(super) fn follow_epsilons(
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
    pub(super) fn edges(&mut self, rule_nfa: &RuleNfa, state: u32, mut each: impl FnMut(Edge)) {
        let (seen_id, position) = self.decode(state);
        for edge in rule_nfa.main.nfa.edges(position).filter(|e| rule_nfa.main.live[e.to as usize])
        {
            each(Edge { to: self.encode(seen_id, edge.to), ..edge });
        }
    }

    /// The summary of a set of states.
    pub(super) fn summarize(&self, rule_nfa: &RuleNfa, set: &[u32]) -> StateSummary {
        let positions: Vec<u32> = set.iter().map(|&state| self.decode(state).1).collect();
        rule_nfa.main.summarize(&positions)
    }

    /// The equivalence key of a set of states: positions, with the seen members abstracted to what
    /// they allow next. `None` if nothing can be abstracted.
    ///
    /// States with equal keys continue alike up to the start of the next member. The key tells
    /// where a member may begin (sets are closed) and whether the set may end or must go on.
    /// `substitutes` replaces positions.
    pub(super) fn abstract_key(
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
    pub(super) fn member_starts(
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
    pub(super) fn repeatable_starts(&mut self, rule_nfa: &RuleNfa, member_set: usize) -> Vec<u32> {
        let others = rule_nfa.member_sets.all[member_set]
            .often
            .iter()
            .filter(|&&first| rule_nfa.main.live[first as usize]);
        others.map(|&first| self.encode(NO_MEMBERS, first)).collect()
    }

    /// The most at-most-once members that may still come in one of these states.
    pub(super) fn remaining(&self, rule_nfa: &RuleNfa, set: &[u32]) -> u32 {
        let left = |&state: &u32| {
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
        set.iter().map(left).max().unwrap_or(0)
    }

    /// The likelihood of a set: the maximum of its states. See [`MemberLikelihood`].
    pub(super) fn likelihood(
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
    pub(super) fn nearing_end(&mut self, rule_nfa: &RuleNfa, set: &[u32]) -> Option<Vec<u32>> {
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
