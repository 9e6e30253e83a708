//! States of rules with member sets: pairs of seen members and a position, encoded as `u32`.

use super::UNDECLARED_LIKELIHOOD;
use super::{CoveredBytes, MemberLikelihood, MemberSetId, NameNode, Spelled, StateRole};
use crate::compile::rule_nfa::{RuleNfa, StateSummary};
use crate::fsm::Edge;
use crate::hash::IndexSet;
use crate::ids::id;
use crate::ir::{MemberBounds, NextMember, SeenMembers};

/// The encoded states of a rule with member sets: pairs (seen members, position), as `u32`.
#[derive(Debug)]
pub(in crate::compile) struct MemberSetStates {
    /// Interned sets of seen members.
    seen_sets: IndexSet<SeenMembers>,
    /// A state is `seen << position_bits | position`, if that fits.
    position_bits: u32,
    /// Pairs that do not fit. The state is the index here, with [`OVERFLOW_BIT`].
    overflow: IndexSet<(SeenSetId, u32)>,
    /// Seen members are not recorded; for reports.
    ignores_members: bool,
}

/// Marks a state as an index into `MemberSetStates::overflow`.
const OVERFLOW_BIT: u32 = 1 << 31;

id! {
    /// A set of seen members: an index into [`MemberSetStates::seen_sets`].
    pub(in crate::compile) SeenSetId
}

impl SeenSetId {
    /// The empty set.
    pub(in crate::compile) const EMPTY: SeenSetId = SeenSetId::from_raw(0);
}

/// The key of states of one instance that differ only in the members seen: positions, each with
/// what is known of the seen members there.
pub(in crate::compile) type EquivalenceKey = Box<[(u32, SeenSummary)]>;

/// What an equivalence key says of the seen members at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::compile) enum SeenSummary {
    /// They are exactly these.
    Exactly(SeenSetId),
    /// They have no effect before the next member begins.
    Unconstrained,
    /// After the current member, the set may end, or may go on.
    After { ends: bool, continues: bool },
    /// This unique member is among them.
    Has(usize),
    /// Of the required members, only this unique member is not among them.
    OnlyLacks(usize),
    /// Whether all required members are among them, and how many unique members may still come:
    /// 2 stands for more, too.
    Left { is_complete: bool, left: u32 },
}

/// Most seen members that an equivalence key lists.
const MAX_LISTED: usize = 64;

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
        let seen = SeenSetId::new(self.seen_sets.insert_full(seen).0);
        self.encode(seen, position)
    }

    /// The state of an interned set at a position.
    #[inline]
    fn encode(&mut self, seen: SeenSetId, position: u32) -> u32 {
        if seen.raw() < OVERFLOW_BIT >> self.position_bits {
            return seen.raw() << self.position_bits | position;
        }
        self.overflow.insert_full((seen, position)).0 as u32 | OVERFLOW_BIT
    }

    /// The id of the seen members, and the position.
    #[inline]
    pub(in crate::compile) fn decode(&self, state: u32) -> (SeenSetId, u32) {
        match state & OVERFLOW_BIT {
            0 => (
                SeenSetId::from_raw(state >> self.position_bits),
                state & ((1 << self.position_bits) - 1),
            ),
            _ => self.overflow[(state & !OVERFLOW_BIT) as usize],
        }
    }

    /// The seen members of a state.
    fn seen(&self, state: u32) -> &SeenMembers {
        &self.seen_sets[self.decode(state).0.index()]
    }

    /// The start state of the rule.
    pub(in crate::compile) fn start(&mut self, rule_nfa: &RuleNfa) -> u32 {
        self.encode(SeenSetId::EMPTY, rule_nfa.main.nfa.start())
    }

    /// The seen members after one more; `None` if that cannot be completed.
    fn add_member(
        &self,
        bounds: &MemberBounds,
        seen: &SeenMembers,
        next_member: NextMember,
    ) -> Option<SeenMembers> {
        if self.ignores_members { Some(seen.clone()) } else { bounds.add(seen, next_member) }
    }

    /// Whether the set may end after these members.
    fn may_end(&self, bounds: &MemberBounds, seen: &SeenMembers) -> bool {
        self.ignores_members || bounds.may_end(seen)
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
            role @ (StateRole::None | StateRole::First | StateRole::Start(_)) => {
                let is_start = matches!(role, StateRole::Start(_));
                let seen_id = if is_start { SeenSetId::EMPTY } else { seen_id };
                let next = rule_nfa.main.nfa.epsilons(position).filter(|&to| live(to));
                next.for_each(|to| out.push(self.encode(seen_id, to)));
                !is_start && rule_nfa.main.is_relevant(position)
            }
            StateRole::Before(member_set) | StateRole::Name(member_set, _) => {
                let choices = member_sets.set(member_set).bounds.choices(self.seen(state));
                let may_lead_to = |to: u32| {
                    self.ignores_members || member_sets.may_lead_to(member_set, to, &choices)
                };
                let begin = out.len();
                let epsilons = rule_nfa.main.nfa.epsilons(position);
                out.extend(epsilons.filter(|&to| live(to) && may_lead_to(to)));
                out[begin..].iter_mut().for_each(|to| *to = self.encode(seen_id, *to));
                true
            }
            StateRole::End(member_set, next_member) => {
                let member_set = member_sets.set(member_set);
                let next = self.add_member(&member_set.bounds, self.seen(state), next_member);
                out.extend(next.map(|next| self.intern(next, member_set.after)));
                false
            }
            StateRole::After(member_set) => {
                let (member_set, seen) = (member_sets.set(member_set), self.seen(state));
                let (ends, continues) =
                    (self.may_end(&member_set.bounds, seen), member_set.bounds.may_continue(seen));
                if ends {
                    out.push(self.encode(SeenSetId::EMPTY, member_set.exit));
                }
                if continues {
                    out.push(self.encode(seen_id, member_set.separator));
                    let before = member_set
                        .separator_nullable
                        .then(|| self.encode(seen_id, member_set.before));
                    out.extend(before);
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
        let (member_sets, live) = (&rule_nfa.member_sets, &rule_nfa.main.live);
        let edges = rule_nfa.main.nfa.edges(position).filter(|e| live[e.to as usize]);
        let Some((member_set, _)) =
            member_sets.name_node(position).filter(|_| !self.ignores_members)
        else {
            return edges.for_each(|e| each(Edge { to: self.encode(seen_id, e.to), ..e }));
        };
        let possible: Vec<Edge> = {
            let choices = member_sets.set(member_set).bounds.choices(self.seen(state));
            edges.filter(|e| member_sets.may_lead_to(member_set, e.to, &choices)).collect()
        };
        possible.into_iter().for_each(|e| each(Edge { to: self.encode(seen_id, e.to), ..e }));
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
    /// where a member may begin and which ones (sets are closed), and whether the set may end or
    /// must go on.
    pub(in crate::compile) fn abstract_key(
        &self,
        rule_nfa: &RuleNfa,
        set: &[u32],
        covered: CoveredBytes<'_>,
    ) -> Option<EquivalenceKey> {
        let mut key: Vec<(u32, SeenSummary)> = Vec::with_capacity(set.len() + 1);
        let mut is_abstracted = false;
        for &state in set {
            let ((seen_id, position), seen) = (self.decode(state), self.seen(state));
            if let Some((set, node)) = rule_nfa.member_sets.name_node(position) {
                match self.name_key(rule_nfa, state, set, node, covered, &mut key) {
                    true => is_abstracted = true,
                    false => key.push((position, SeenSummary::Exactly(seen_id))),
                }
                continue;
            }
            let Some(abstracted) = self.abstract_seen(rule_nfa, position, seen) else {
                key.push((position, SeenSummary::Exactly(seen_id)));
                continue;
            };
            is_abstracted = true;
            key.push(match self.is_covered(rule_nfa, position, seen, covered) {
                true => (position, SeenSummary::Unconstrained),
                false => (position, abstracted),
            });
        }
        key.sort_unstable();
        key.dedup();
        is_abstracted.then(|| key.into())
    }

    /// Adds to an equivalence key what the seen members mean at a node of the trie of names: the
    /// members below it that have been seen, except where a repeatable member covers the name; and
    /// what the others allow next. False if more than that matters.
    fn name_key(
        &self,
        rule_nfa: &RuleNfa,
        state: u32,
        member_set: MemberSetId,
        node: &NameNode,
        covered: CoveredBytes<'_>,
        key: &mut Vec<(u32, SeenSummary)>,
    ) -> bool {
        let (position, seen) = (self.decode(state).1, self.seen(state));
        let set = rule_nfa.member_sets.set(member_set);
        let bounds = &set.bounds;
        if set.separator_nullable || !bounds.is_unbounded() || !bounds.min_reached(seen) {
            return false;
        }
        let begin = key.len();
        let mut is_covered = true;
        for i in set.names.members(node) {
            if (node.depth as usize) < covered(member_set, i) {
                continue;
            }
            is_covered = false;
            if bounds.has_clauses() {
                // What may follow a member depends on the others.
                return false;
            }
            if seen.closed.contains(i) {
                key.push((position, SeenSummary::Has(i)));
            }
            if key.len() > begin + MAX_LISTED {
                key.truncate(begin);
                return false;
            }
        }
        if is_covered {
            key.push((position, SeenSummary::Unconstrained));
            return true;
        }
        let mut missing = bounds.missing(seen);
        let (first, second) = (missing.next(), missing.next());
        if let Some(last) = first.filter(|_| second.is_none()) {
            key.push((position, SeenSummary::OnlyLacks(last)));
        }
        let left = bounds.remaining_unique(seen).min(2);
        key.push((position, SeenSummary::Left { is_complete: first.is_none(), left }));
        true
    }

    /// Whether a repeatable member covers a position in the name of a member.
    fn is_covered(
        &self,
        rule_nfa: &RuleNfa,
        position: u32,
        seen: &SeenMembers,
        covered: CoveredBytes<'_>,
    ) -> bool {
        let member_sets = &rule_nfa.member_sets;
        let mut all = member_sets.all.iter().zip(member_sets.ids());
        let Some((set, id)) = all.find(|(set, _)| set.range.contains(&position)) else {
            return false;
        };
        let Some(NextMember::Unique(i)) = set.member_at(position) else { return false };
        // While members are still counted, a repeatable member may be excluded.
        set.bounds.min_reached(seen) && {
            let bytes = covered(id, i);
            let name = (bytes > 0).then(|| Spelled::new(&rule_nfa.main.nfa, set.unique[i]));
            let before = |name: Spelled| {
                let last = name.bytes.len().min(bytes);
                name.positions[..last].contains(&position)
            };
            name.is_some_and(before)
        }
    }

    /// The abstraction of the seen members at a position outside of the trie of names: whether the
    /// set may end, and whether it may go on. `None` if more than that matters.
    fn abstract_seen(
        &self,
        rule_nfa: &RuleNfa,
        position: u32,
        seen: &SeenMembers,
    ) -> Option<SeenSummary> {
        let member_set = rule_nfa.member_sets.enclosing(position)?;
        if member_set.separator_nullable || !member_set.bounds.is_unbounded() {
            return None;
        }
        let added;
        let after = match member_set.member_at(position) {
            Some(next_member) => {
                added = self.add_member(&member_set.bounds, seen, next_member)?;
                &added
            }
            None => match rule_nfa.member_sets.is_before_member(
                &rule_nfa.main.nfa,
                member_set,
                position,
            )? {
                true => return Some(SeenSummary::After { ends: false, continues: false }),
                false => seen,
            },
        };
        let (ends, continues) =
            (member_set.bounds.may_end(after), member_set.bounds.may_continue(after));
        member_set.bounds.min_reached(after).then_some(SeenSummary::After { ends, continues })
    }

    /// Start states of the unique members, and of all members if `with_others`.
    pub(in crate::compile) fn member_starts(
        &mut self,
        rule_nfa: &RuleNfa,
        member_set: MemberSetId,
        with_others: bool,
    ) -> Vec<u32> {
        let mut starts = self.live_starts(rule_nfa, &rule_nfa.member_sets.set(member_set).unique);
        if with_others {
            starts.extend(self.repeatable_starts(rule_nfa, member_set));
        }
        starts
    }

    /// Start states of the repeatable members.
    pub(in crate::compile) fn repeatable_starts(
        &mut self,
        rule_nfa: &RuleNfa,
        member_set: MemberSetId,
    ) -> Vec<u32> {
        self.live_starts(rule_nfa, &rule_nfa.member_sets.set(member_set).repeatable)
    }

    /// The live ones of some positions, before any member.
    fn live_starts(&mut self, rule_nfa: &RuleNfa, firsts: &[u32]) -> Vec<u32> {
        let live = firsts.iter().filter(|&&first| rule_nfa.main.live[first as usize]);
        live.map(|&first| self.encode(SeenSetId::EMPTY, first)).collect()
    }

    /// The most unique members that may still come in one of these states.
    pub(in crate::compile) fn remaining(&self, rule_nfa: &RuleNfa, set: &[u32]) -> u32 {
        let remaining = |&state: &u32| {
            let (position, seen) = (self.decode(state).1, self.seen(state));
            let inside = rule_nfa.member_sets.containing(position);
            let most = || {
                rule_nfa
                    .member_sets
                    .all
                    .iter()
                    .map(|member_set| member_set.bounds.remaining_unique(&SeenMembers::default()))
                    .max()
            };
            inside
                .map(|member_set| member_set.bounds.remaining_unique(seen))
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
                // The end of white space after a separator is as likely as the separator.
                return MemberLikelihood::Among(if member_set.bounds.remaining_unique(seen) > 0 {
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
            let node = rule_nfa.member_sets.name_node(position).map(|(_, node)| node);
            most = most.max(
                member_set.map_or(1.0, |member_set| member_set.likelihood(position, node, seen)),
            );
        }
        after.map_or(MemberLikelihood::Among(most), MemberLikelihood::After)
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
            |&state: &u32| matches!(role(self, state), StateRole::Before(_) | StateRole::After(_));
        if self.ignores_members || !set.iter().any(is_changed) {
            return None;
        }
        // A closed set contains a state after a member only where the set may end.
        let done = set.iter().filter_map(|&state| match role(self, state) {
            StateRole::After(member_set) => Some((member_set, self.decode(state).0)),
            _ => None,
        });
        let done: Vec<(MemberSetId, SeenSetId)> = done.collect();
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
                        firsts.for_each(|&first| out.push(self.intern(seen.clone(), first)));
                    }
                }
                StateRole::First => {
                    let of = member_sets
                        .ids()
                        .find(|&member_set| member_sets.set(member_set).separator == position);
                    out.extend(of.filter(|&of| !done.contains(&(of, seen_id))).map(|_| state));
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
