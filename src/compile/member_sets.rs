//! Sets of members as automata. A state of a rule with such a set is a position and the members that there have been: positions are
//! those of one automaton for all sets, the sets are those that a parse has met. Nothing is enumerated.

use std::ops::Range;

use indexmap::IndexSet;

use super::rule_nfa::RuleNfa;
use crate::fsm::{Edge, Nfa};
use crate::hash::Seeded;
use crate::ir::{MemberBounds, NextMember, SeenMembers};

/// Most bytes of a name that are looked at.
const MAX_SPELLED: usize = 128;
/// How likely a member is that may repeat, beside the others.
const UNDECLARED_LIKELIHOOD: f64 = 1.0 / 256.0;

/// States that differ only in which members there have been: the instance, and each state's position with what is told of what there has been.
pub(super) type EquivalenceKey = Box<[(u32, u32)]>;

/// What is put in the position of a position in a set of members, where it is not told which members there have been.
pub(super) struct Substitutes {
    /// A position from which its member goes on in the same way.
    pub(super) same_ending: u32,
    /// Where whatever can be read can be read as a member that may repeat as well: what is put in its position, as it makes no difference.
    pub(super) covered_by: Option<u32>,
}

/// How likely something is beside others at the same position, for texts in which members come as they are declared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MemberLikelihood {
    /// It leads on at a position in a set of members: the more the likelier, at most 1.
    Among(f64),
    /// It leads to where a member has ended: the more the likelier, beside others that do.
    Behind(f64),
}

impl MemberLikelihood {
    /// Whether it is what members are that may repeat, and what else is hardly meant.
    pub(crate) fn is_undeclared(self) -> bool {
        matches!(self, MemberLikelihood::Among(likely) if likely <= UNDECLARED_LIKELIHOOD)
    }

    /// That of what may be either.
    pub(crate) fn or(self, other: MemberLikelihood) -> MemberLikelihood {
        match (self, other) {
            (MemberLikelihood::Among(a), MemberLikelihood::Among(b)) => {
                MemberLikelihood::Among(a.max(b))
            }
            (MemberLikelihood::Behind(a), MemberLikelihood::Behind(b)) => {
                MemberLikelihood::Behind(a.max(b))
            }
            (among @ MemberLikelihood::Among(_), behind) | (behind, among)
                if among.is_undeclared() =>
            {
                behind
            }
            (among @ MemberLikelihood::Among(_), _) | (_, among) => among,
        }
    }
}

/// The sets of members in a rule: positions of its automaton that mean more than their edges.
#[derive(Debug, Default)]
pub(super) struct MemberSets {
    all: Vec<MemberSet>,
    /// By state of the automaton.
    roles: Vec<StateRole>,
}

/// One set of members.
#[derive(Debug)]
struct MemberSet {
    bounds: MemberBounds,
    /// The states between are its own.
    range: Range<u32>,
    /// Where members begin: those that come at most once, then the others.
    once: Vec<u32>,
    often: Vec<u32>,
    separator: u32,
    /// From where on the states inside of each member are, those that come at most once first, and those of the separator, which ends
    /// them all.
    part_starts: Vec<u32>,
    /// The separator may be empty.
    separator_nullable: bool,
    before: u32,
    after: u32,
    /// Where the rule goes on.
    exit: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum StateRole {
    /// No other than its edges.
    #[default]
    None,
    /// Of a member_set: nothing has been there.
    Start(u32),
    /// Before a member.
    Before(u32),
    /// Where a member or a separator begins: nothing of it has been read, and nothing leads back here.
    First,
    /// At the end of a member.
    End(u32, NextMember),
    /// ReturnRole a member.
    Behind(u32),
    /// ReturnRole a separator.
    Between(u32),
}

/// What a set of members is made of, each part as the states where it begins and ends.
pub(super) struct MemberFragments {
    pub(super) bounds: MemberBounds,
    /// There need be no member.
    pub(super) nullable: bool,
    pub(super) once: Vec<(u32, u32)>,
    pub(super) often: Vec<(u32, u32)>,
    pub(super) separator: (u32, u32),
}

impl MemberSets {
    /// No rule has many.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Puts a set of members together, whose parts are the last states of the automaton from `begin` on, so that it begins at `from`.
    /// Returns where it ends.
    pub(super) fn add(
        &mut self,
        nfa: &mut Nfa,
        (from, begin): (u32, u32),
        fragments: MemberFragments,
    ) -> u32 {
        let MemberFragments { bounds, nullable, once, often, separator } = fragments;
        let seen_id = self.all.len() as u32;
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
            (start, StateRole::Start(seen_id)),
            (before, StateRole::Before(seen_id)),
            (after, StateRole::Behind(seen_id)),
        ];
        let mut one = |nfa: &mut Nfa, (begin, to): (u32, u32), role: StateRole| {
            let end = nfa.state();
            nfa.epsilon(to, end);
            let (first, is_empty) = entry_copy(nfa, begin, end);
            roles.extend([(first, StateRole::First), (end, role)]);
            (first, end, is_empty)
        };
        // Edges between positions are there to tell which can lead to the rule's end; where they really lead is for counts to say.
        let mut ends = Vec::new();
        let mut many =
            |nfa: &mut Nfa, parts: Vec<(u32, u32)>, role: &dyn Fn(usize) -> StateRole| {
                let parts = parts.into_iter().enumerate().map(|(i, part)| {
                    let (first, end, _) = one(nfa, part, role(i));
                    ends.push((first, end));
                    first
                });
                parts.collect::<Vec<u32>>()
            };
        let once = many(nfa, once, &|i| StateRole::End(seen_id, NextMember::Once(i)));
        let often = many(nfa, often, &|_| StateRole::End(seen_id, NextMember::Often));
        let (separator, between, separator_nullable) =
            one(nfa, separator, StateRole::Between(seen_id));
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

    /// How many sets there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Which set a position ends a member of.
    pub(super) fn ended_set(&self, position: u32) -> Option<u32> {
        match self.role(position) {
            StateRole::End(member_set, _) => Some(member_set),
            _ => None,
        }
    }

    /// Whether a position means no more than its edges.
    pub(super) fn is_ordinary(&self, position: u32) -> bool {
        matches!(self.role(position), StateRole::None | StateRole::First)
    }

    /// Whether a set has members that may repeat, and any seen_id of them.
    pub(super) fn may_repeat(&self, member_set: usize) -> bool {
        let member_set = &self.all[member_set];
        member_set.bounds.is_unbounded() && !member_set.often.is_empty()
    }

    /// The symbols that a separator is made of; none where it may be empty.
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

    /// What each member of a set that comes at most once begins with, as long as nothing but one byte may follow another: these bytes, and the position before
    /// each.
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

    /// The set of members that a position is in or behind a member of.
    fn enclosing(&self, position: u32) -> Option<&MemberSet> {
        match self.role(position) {
            StateRole::Before(member_set) | StateRole::Behind(member_set) => {
                Some(self.set(member_set))
            }
            _ => self.all.iter().find(|member_set| member_set.range.contains(&position)),
        }
    }

    /// Whether a position that is not in a member is where one may begin without anything read before it; none where that depends on what is called.
    fn is_before_member(&self, nfa: &Nfa, member_set: &MemberSet, position: u32) -> Option<bool> {
        let mut seen = vec![(position, true)];
        let mut at = 0;
        while let Some(&(state, known)) = seen.get(at) {
            if matches!(self.role(state), StateRole::Between(_) | StateRole::Before(_)) {
                return known.then_some(true);
            }
            // Whatever is called may be empty.
            let called = nfa.edges(state).filter(|e| e.lo > 255).map(|e| (e.to, false));
            for (to, by) in nfa.epsilons(state).map(|to| (to, true)).chain(called) {
                if member_set.range.contains(&to) && !seen.iter().any(|&(other, _)| other == to) {
                    seen.push((to, known && by));
                }
            }
            at += 1;
        }
        Some(false)
    }

    fn role(&self, position: u32) -> StateRole {
        self.roles.get(position as usize).copied().unwrap_or_default()
    }

    fn set(&self, member_set: u32) -> &MemberSet {
        &self.all[member_set as usize]
    }
}

impl MemberSet {
    /// Whether a position is inside of a member.
    fn is_member(&self, position: u32) -> bool {
        self.part_at(position).is_some_and(|part| part + 2 < self.part_starts.len())
    }

    /// Which member or separator a position is inside of, in the order of [`MemberSet::inside`]; the separator is the last one.
    fn part_at(&self, position: u32) -> Option<usize> {
        let part = self.part_starts.partition_point(|&begin| begin <= position).checked_sub(1)?;
        (part + 1 < self.part_starts.len()).then_some(part)
    }

    /// The member that a position is where it begins, or inside of.
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

    /// How likely a position is, seen from where the member or separator begins that it is in.
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

    /// Where a member may begin.
    fn starts(&self, next_member: NextMember) -> &[u32] {
        match next_member {
            NextMember::Once(i) => &self.once[i..=i],
            NextMember::Often => &self.often,
        }
    }
}

/// A state that reads what `begin` does, and that nothing leads to; and whether `begin` leads to `end` without reading.
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

/// The states of a rule with sets of members that have been met.
#[derive(Debug)]
pub(super) struct MemberSetStates {
    /// What has been there, by seen_id; nothing is the first.
    seen_sets: IndexSet<SeenMembers, Seeded>,
    /// A state's seen_id is that of what has been there and, in so many bits, that of a position.
    position_bits: u32,
    /// Those that do not fit, by what is left of their numbers without [`OVERFLOW_BIT`].
    overflow: IndexSet<(u32, u32), Seeded>,
    /// Nothing is noted of what has been there.
    ignores_members: bool,
}

/// In a state's seen_id: it is one of the others.
const OVERFLOW_BIT: u32 = 1 << 31;

/// Nothing.
const NO_MEMBERS: u32 = 0;
/// In position of a seen_id: some of what has been there is told.
const ABSTRACTED: u32 = 1 << 31;
/// In position of a seen_id: nothing is told, not even which members there may be.
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

    /// Memory of one, in bytes, roughly.
    pub(super) const BYTES: usize = size_of::<SeenMembers>() + 40;

    /// How many sets have been met.
    pub(super) fn seen_count(&self) -> usize {
        self.seen_sets.len()
    }

    fn intern(&mut self, seen: SeenMembers, position: u32) -> u32 {
        let seen = self.seen_sets.insert_full(seen).0 as u32;
        self.encode(seen, position)
    }

    #[inline]
    fn encode(&mut self, seen: u32, position: u32) -> u32 {
        if seen < OVERFLOW_BIT >> self.position_bits {
            return seen << self.position_bits | position;
        }
        self.overflow.insert_full((seen, position)).0 as u32 | OVERFLOW_BIT
    }

    /// What has been there, as a seen_id, and the position.
    #[inline]
    pub(super) fn decode(&self, state: u32) -> (u32, u32) {
        match state & OVERFLOW_BIT {
            0 => (state >> self.position_bits, state & ((1 << self.position_bits) - 1)),
            _ => self.overflow[(state & !OVERFLOW_BIT) as usize],
        }
    }

    fn seen(&self, state: u32) -> SeenMembers {
        self.seen_sets[self.decode(state).0 as usize]
    }

    pub(super) fn start(&mut self, rule_nfa: &RuleNfa) -> u32 {
        self.encode(NO_MEMBERS, rule_nfa.main.nfa.start())
    }

    fn add_member(
        &self,
        bounds: MemberBounds,
        seen: SeenMembers,
        next_member: NextMember,
    ) -> Option<SeenMembers> {
        if self.ignores_members { Some(seen) } else { bounds.add(seen, next_member) }
    }

    fn may_end(&self, bounds: MemberBounds, seen: SeenMembers) -> bool {
        self.ignores_members || bounds.may_end(seen)
    }

    /// Whether a state is all that epsilon edges lead to from it, and if so, whether it matters; `None` where they lead elsewhere, too.
    pub(super) fn trivial_closure(&self, rule_nfa: &RuleNfa, state: u32) -> Option<bool> {
        let (_, position) = self.decode(state);
        let plain = rule_nfa.member_sets.is_ordinary(position)
            && rule_nfa.main.nfa.epsilons(position).next().is_none();
        plain.then(|| rule_nfa.main.is_relevant(position))
    }

    /// The one edge that leaves a state, if it is one to a state that matters and from which epsilon edges lead nowhere.
    pub(super) fn single_edge(&mut self, rule_nfa: &RuleNfa, state: u32) -> Option<Edge> {
        let (seen_id, position) = self.decode(state);
        let edge = rule_nfa
            .main
            .single_edge(position)
            .filter(|edge| rule_nfa.member_sets.is_ordinary(edge.to))?;
        Some(Edge { to: self.encode(seen_id, edge.to), ..edge })
    }

    /// Adds what epsilon edges of a state lead to; true if the state itself matters.
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
                let (ends, goes_on) =
                    (self.may_end(member_set.bounds, seen), member_set.bounds.may_continue(seen));
                if ends {
                    out.push(self.encode(NO_MEMBERS, member_set.exit));
                }
                if goes_on {
                    out.push(self.encode(seen_id, member_set.separator));
                    out.extend(
                        member_set
                            .separator_nullable
                            .then(|| self.encode(seen_id, member_set.before)),
                    );
                }
                // See [`MemberSetStates::nearing_end`].
                ends && goes_on
            }
            StateRole::Between(member_set) => {
                out.push(self.encode(seen_id, member_sets.set(member_set).before));
                false
            }
        }
    }

    /// The edges of a state.
    pub(super) fn edges(&mut self, rule_nfa: &RuleNfa, state: u32, mut each: impl FnMut(Edge)) {
        let (seen_id, position) = self.decode(state);
        for edge in rule_nfa.main.nfa.edges(position).filter(|e| rule_nfa.main.live[e.to as usize])
        {
            each(Edge { to: self.encode(seen_id, edge.to), ..edge });
        }
    }

    /// Whether a set of states is final, reads something, calls something.
    pub(super) fn summarize(&self, rule_nfa: &RuleNfa, set: &[u32]) -> (bool, bool, bool) {
        let positions: Vec<u32> = set.iter().map(|&state| self.decode(state).1).collect();
        rule_nfa.main.summarize(&positions)
    }

    /// What is left of a set of states of an instance if it is not told which members there have been, none where that is nothing less. States of
    /// which the same is left do the same up to where the member behind a separator begins: where one begins is told by the positions, as sets are
    /// closed, and what there may be behind it, by whether it may be the last one and whether it must be. `stand_in` says what is put in a position's
    /// position.
    pub(super) fn abstract_key(
        &self,
        rule_nfa: &RuleNfa,
        (instance, set): (u32, &[u32]),
        mut stand_in: impl FnMut(u32) -> Substitutes,
    ) -> Option<EquivalenceKey> {
        let mut less = false;
        let kinds = set.iter().map(|&state| {
            let (seen_id, position) = self.decode(state);
            let seen = self.seen(state);
            let Some(told) = self.abstract_seen(rule_nfa, position, seen) else {
                return (position, seen_id);
            };
            less = true;
            // Where members are still counted, one that repeats may not come.
            let enough = || {
                rule_nfa
                    .member_sets
                    .enclosing(position)
                    .is_some_and(|member_set| member_set.bounds.min_reached(seen))
            };
            match stand_in(position) {
                Substitutes { covered_by: Some(covered), .. } if enough() => {
                    (covered, UNCONSTRAINED)
                }
                Substitutes { same_ending, .. } => (same_ending, told),
            }
        });
        let mut kind: Vec<(u32, u32)> = kinds.collect();
        kind.sort_unstable();
        kind.dedup();
        kind.push((instance, 0));
        less.then(|| kind.into())
    }

    /// What is told of the members that there have been at a position; none where it is not known that this is enough.
    fn abstract_seen(&self, rule_nfa: &RuleNfa, position: u32, seen: SeenMembers) -> Option<u32> {
        let member_set = rule_nfa.member_sets.enclosing(position)?;
        if member_set.separator_nullable || !member_set.bounds.is_unbounded() {
            return None;
        }
        let behind = match member_set.member_at(position) {
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
        let (ends, goes_on) =
            (member_set.bounds.may_end(behind), member_set.bounds.may_continue(behind));
        member_set
            .bounds
            .min_reached(behind)
            .then_some(ABSTRACTED | u32::from(ends) | u32::from(goes_on) << 1)
    }

    /// Where the members of a set that come at most once begin, as nothing has been there; `with_others`: all members.
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

    /// Where the members of a set that may repeat begin, as nothing has been there.
    pub(super) fn repeatable_starts(&mut self, rule_nfa: &RuleNfa, member_set: usize) -> Vec<u32> {
        let others = rule_nfa.member_sets.all[member_set]
            .often
            .iter()
            .filter(|&&first| rule_nfa.main.live[first as usize]);
        others.map(|&first| self.encode(NO_MEMBERS, first)).collect()
    }

    /// The most members that may still come in one of these states, of those that come at most once.
    pub(super) fn remaining(&self, rule_nfa: &RuleNfa, set: &[u32]) -> u32 {
        let left = |&state: &u32| {
            let (position, seen) = (self.decode(state).1, self.seen(state));
            let inside = rule_nfa
                .member_sets
                .all
                .iter()
                .find(|member_set| member_set.range.contains(&position));
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

    /// How likely these states are: the greatest of them. See [`MemberLikelihood`].
    pub(super) fn likelihood(
        &self,
        rule_nfa: &RuleNfa,
        set: &[u32],
        returned: bool,
    ) -> MemberLikelihood {
        let mut behind: Option<f64> = None;
        let mut most = 0.0f64;
        for &state in set {
            let (position, seen) = (self.decode(state).1, self.seen(state));
            let member_set = rule_nfa
                .member_sets
                .all
                .iter()
                .find(|member_set| member_set.range.contains(&position));
            if let Some(member_set) =
                member_set.filter(|member_set| returned && position == member_set.before)
            {
                // White space behind a separator has ended: it is as likely as the separator.
                return MemberLikelihood::Among(if member_set.bounds.remaining_once(seen) > 0 {
                    1.0
                } else {
                    UNDECLARED_LIKELIHOOD
                });
            }
            if let Some(member_set) =
                member_set.filter(|member_set| returned && !member_set.is_member(position))
            {
                behind = Some(behind.unwrap_or(0.0).max(member_set.bounds.order_score(seen)));
            }
            most = most
                .max(member_set.map_or(1.0, |member_set| member_set.likelihood(position, seen)));
        }
        behind.map_or(MemberLikelihood::Among(most), MemberLikelihood::Behind)
    }

    /// These states where the nearest end is looked for: members begin as [`MemberBounds::picks_to_end`] has it, and where there may be an
    /// end behind one, nothing follows. `None` where that changes nothing.
    pub(super) fn nearing_end(&mut self, rule_nfa: &RuleNfa, set: &[u32]) -> Option<Vec<u32>> {
        let member_sets = &rule_nfa.member_sets;
        let role = |states: &Self, state: u32| member_sets.role(states.decode(state).1);
        let is_changed =
            |&state: &u32| matches!(role(self, state), StateRole::Before(_) | StateRole::Behind(_));
        if self.ignores_members || !set.iter().any(is_changed) {
            return None;
        }
        // States behind a member are in sets only where there may be an end.
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
