//! Member sets: object members in any order, each at most once (interleave, unordered group).
//!
//! The state of a set is which members have been seen, a bit set. States are made as a text is
//! read. They are only enumerated where a graph is requested, for few members.

use std::collections::hash_map::Entry;
use std::ops::Range;

use super::member_bits::MemberBits;
use super::presence::{OpenClauses, PresenceClause, are_propagated};
use super::{Expr, Graph};
use crate::fsm::TooLarge;
use crate::hash::HashMap;

/// Members in any order, with a separator between two: each unique one at most once, required ones
/// exactly once, and repeatable ones within the bounds. Derives the empty text if no member is
/// required.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Members {
    /// Members that occur at most once. No two should derive the same text; such a text counts as
    /// either.
    pub unique: Vec<Member>,
    /// Further members, which may repeat.
    pub repeatable: Vec<Expr>,
    /// The separator between two members.
    pub separator: Expr,
    /// Fewest members.
    pub min: u32,
    /// Whether each repeatable member counts towards `min`. Otherwise all of them count as one,
    /// because they may be one and the same.
    pub count_repeatable: bool,
    /// Most members; all are counted.
    pub max: Option<u32>,
    /// Conditions on which unique members occur, by index. Only conditions that unit propagation
    /// decides are taken, and `min` is then 1 at most and `max` is `None`
    /// ([`GrammarError::Malformed`](super::GrammarError::Malformed)).
    pub clauses: Vec<PresenceClause>,
}

/// A member that occurs at most once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its language; must not contain the empty text.
    pub body: Expr,
    /// It must occur.
    pub required: bool,
}

/// The members seen so far: all that decides which may follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SeenMembers {
    /// Unique members that cannot come any more: they have been seen, or clauses exclude them.
    pub(crate) closed: MemberBits,
    /// Those of them that have not been seen.
    excluded: MemberBits,
    counts: MemberTally,
}

/// What the bounds on the number of members depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct MemberTally {
    /// Number of members; always 0 without an upper bound.
    total: u32,
    /// Members that count towards the lower bound; saturates there.
    counted: u32,
    /// Whether a repeatable member has been counted, and no other one counts.
    repeated: bool,
}

/// The choice of the next member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextMember {
    /// This unique member.
    Unique(usize),
    /// Any repeatable member.
    Repeatable,
}

/// The constraints of a member set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberBounds {
    /// Unique members that are productive.
    usable: MemberBits,
    /// Required members.
    required: MemberBits,
    /// Some repeatable member is productive.
    repeatable: bool,
    /// The separator is productive, so that a second member can follow.
    separable: bool,
    min: u32,
    /// See [`Members::count_repeatable`].
    count_repeatable: bool,
    max: Option<u32>,
    clauses: OpenClauses,
}

/// The members that may come next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberChoices<'b> {
    bounds: &'b MemberBounds,
    seen: &'b SeenMembers,
    /// Required members that have not been seen may come.
    required: bool,
    /// The same for members that are not required.
    optional: bool,
    /// Repeatable members may come.
    repeatable: bool,
}

impl MemberChoices<'_> {
    /// Whether a member may come next.
    pub(crate) fn include(&self, next: NextMember) -> bool {
        match next {
            NextMember::Repeatable => self.repeatable,
            NextMember::Unique(i) => {
                let may_come =
                    if self.bounds.required.contains(i) { self.required } else { self.optional };
                may_come && self.bounds.usable.contains(i) && !self.seen.closed.contains(i)
            }
        }
    }
}

impl SeenMembers {
    /// The largest member that has been seen, and one.
    fn end(&self) -> usize {
        match self.excluded.end() {
            0 => self.closed.end(),
            _ => self.closed.without(&self.excluded).last().map_or(0, |last| last + 1),
        }
    }

    /// Whether a unique member has been seen.
    fn has(&self, member: usize) -> bool {
        self.closed.contains(member) && !self.excluded.contains(member)
    }
}

impl Members {
    /// All expressions of the set.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        self.unique
            .iter()
            .map(|member| &member.body)
            .chain(&self.repeatable)
            .chain([&self.separator])
    }

    /// All expressions of the set.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.unique
            .iter_mut()
            .map(|member| &mut member.body)
            .chain(&mut self.repeatable)
            .chain([&mut self.separator])
    }

    /// The constraints, given which expressions are productive.
    pub(crate) fn bounds(&self, mut productive: impl FnMut(&Expr) -> bool) -> MemberBounds {
        let bits = |holds: &mut dyn FnMut(&Member) -> bool| {
            let mut bits = MemberBits::default();
            // From the last one on, so that the set grows once.
            let holding = self.unique.iter().enumerate().rev().filter(|(_, member)| holds(member));
            holding.for_each(|(i, _)| bits.insert(i));
            bits
        };
        let mut usable = bits(&mut |member| productive(&member.body));
        let mut required = bits(&mut |member| member.required);
        let clauses = OpenClauses::settle(&self.clauses, &mut required, &mut usable);
        if clauses.is_none() {
            // A required member that does not exist: the set derives nothing.
            (usable, required) = (MemberBits::default(), [self.unique.len()].into_iter().collect());
        }
        MemberBounds {
            usable,
            required,
            clauses: clauses.unwrap_or_default(),
            repeatable: self.repeatable.iter().any(&mut productive),
            separable: productive(&self.separator),
            min: self.min,
            count_repeatable: self.count_repeatable,
            max: self.max,
        }
    }

    /// Whether the clauses are as [`Members::clauses`] says.
    pub(super) fn has_valid_clauses(&self) -> bool {
        let is_member = |(i, _)| i < self.unique.len();
        self.clauses.is_empty()
            || self.max.is_none()
                && self.min <= 1
                && self.clauses.iter().flat_map(PresenceClause::literals).all(is_member)
                && are_propagated(&self.clauses)
    }

    /// Whether the set derives any text, given which expressions are productive.
    pub(crate) fn derives(&self, productive: impl FnMut(&Expr) -> bool) -> bool {
        self.bounds(productive).has_sentence()
    }

    /// Whether the set derives the empty text.
    pub(crate) fn nullable(&self) -> bool {
        self.min == 0
            && self.unique.iter().all(|member| !member.required)
            && self.clauses.iter().all(|clause| clause.is_met(|_| false))
    }

    /// The set as a graph: for each reachable set of seen members, a node in front of the next
    /// member and a node after the last one. Exponential in the number of members. Fails beyond
    /// `limit` nodes.
    pub(crate) fn to_graph(&self, limit: usize) -> Result<Graph<&Expr>, TooLarge> {
        let bounds = self.bounds(|expr| *expr != Expr::Never);
        let add_node = |graph: &mut Graph<&Expr>| match graph.nodes as usize >= limit {
            true => Err(TooLarge::States { limit }),
            false => Ok(graph.node()),
        };
        let mut graph = Graph::default();
        graph.node();
        if self.nullable() {
            graph.ends.push(0);
        }
        // By seen members: the node after the last one.
        let mut nodes: HashMap<SeenMembers, u32> = HashMap::default();
        let mut todo = vec![(SeenMembers::default(), 0)];
        while let Some((seen, before)) = todo.pop() {
            for next in bounds.candidates(&seen) {
                let Some(after) = bounds.add(&seen, next) else { continue };
                let node_after = match nodes.entry(after.clone()) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(new) => {
                        let node_after = add_node(&mut graph)?;
                        if bounds.may_end(&after) {
                            graph.ends.push(node_after);
                        }
                        if bounds.may_continue(&after) {
                            let before = add_node(&mut graph)?;
                            graph.edge(node_after, &self.separator, before);
                            todo.push((after, before));
                        }
                        *new.insert(node_after)
                    }
                };
                match next {
                    NextMember::Unique(i) => graph.edge(before, &self.unique[i].body, node_after),
                    NextMember::Repeatable => {
                        self.repeatable.iter().for_each(|body| graph.edge(before, body, node_after))
                    }
                }
            }
        }
        Ok(graph)
    }
}

impl MemberBounds {
    /// Whether the set derives any text.
    pub(crate) fn has_sentence(&self) -> bool {
        let none = SeenMembers::default();
        self.may_end(&none) || self.may_add(&none)
    }

    /// Whether there is no upper bound.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.max.is_none()
    }

    /// Whether the lower bound has been reached. Without an upper bound, only the bit set matters
    /// from here on.
    pub(crate) fn min_reached(&self, seen: &SeenMembers) -> bool {
        seen.counts.counted >= self.min
    }

    /// Whether the set may end.
    pub(crate) fn may_end(&self, seen: &SeenMembers) -> bool {
        self.min_reached(seen)
            && self.required.words_without(&seen.closed).all(|word| word == 0)
            && self.meets_clauses(seen)
    }

    /// Whether all clauses are met if no further member comes.
    fn meets_clauses(&self, seen: &SeenMembers) -> bool {
        self.clauses.unmet(|i| seen.has(i)).next().is_none()
    }

    /// If no further member comes and some clause is not met then: members that meet the first such
    /// clause. All of them if there are few choices in all, else one.
    fn members_for_unmet(&self, seen: &SeenMembers) -> Option<Vec<usize>> {
        /// The largest number of choices for all clauses together.
        const MAX_CHOICES: usize = 64;
        let possible = |clause: &PresenceClause| {
            let present = clause.present.iter().copied();
            present.filter(|&i| !seen.closed.contains(i)).collect::<Vec<_>>()
        };
        let mut choices = self.clauses.unmet(|i| seen.has(i)).map(possible);
        let mut first = choices.next()?;
        let all = choices.map(|choice| choice.len()).fold(first.len(), usize::saturating_mul);
        first.truncate(if all <= MAX_CHOICES { all } else { 1 });
        Some(first)
    }

    /// Whether clauses constrain which members occur.
    pub(crate) fn has_clauses(&self) -> bool {
        !self.clauses.is_empty()
    }

    /// Whether another member may follow.
    pub(crate) fn may_continue(&self, seen: &SeenMembers) -> bool {
        self.separable && self.may_add(seen)
    }

    /// Whether any member may be added.
    fn may_add(&self, seen: &SeenMembers) -> bool {
        if self.has_clauses() && !self.separable {
            return self.candidates(seen).any(|next| self.add(seen, next).is_some());
        }
        let choices = self.choices(seen);
        choices.repeatable
            || self.usable.words_without(&seen.closed).enumerate().any(|(word, unseen)| {
                let required = self.required.word(word);
                choices.required && unseen & required != 0
                    || choices.optional && unseen & !required != 0
            })
    }

    /// The members that have not been seen, then the repeatable ones.
    pub(crate) fn candidates<'a>(
        &'a self,
        seen: &'a SeenMembers,
    ) -> impl Iterator<Item = NextMember> + 'a {
        let unique = self.usable.without(&seen.closed).map(NextMember::Unique);
        unique.chain(self.repeatable.then_some(NextMember::Repeatable))
    }

    /// The members that may come next.
    pub(crate) fn choices<'a>(&'a self, seen: &'a SeenMembers) -> MemberChoices<'a> {
        let (missing, left) =
            (self.required.count_without(&seen.closed), self.usable.count_without(&seen.closed));
        let after = |missing: u32, left: u32, is_unique| {
            self.can_complete(missing, left, self.count(seen.counts, is_unique))
        };
        MemberChoices {
            bounds: self,
            seen,
            required: missing > 0 && left > 0 && after(missing - 1, left - 1, true),
            optional: left > 0 && after(missing, left - 1, true),
            repeatable: self.repeatable && after(missing, left, false),
        }
    }

    /// The members seen after one more; `None` if the bounds can no longer be met.
    pub(crate) fn add(&self, seen: &SeenMembers, next: NextMember) -> Option<SeenMembers> {
        let (mut closed, mut excluded) = (seen.closed.clone(), seen.excluded.clone());
        if let NextMember::Unique(i) = next {
            closed.insert(i);
            if self.has_clauses() {
                self.clauses.exclude(closed.without(&excluded).collect(), &mut excluded);
                excluded.without(&seen.excluded).for_each(|i| closed.insert(i));
            }
        }
        let counts = self.count(seen.counts, next != NextMember::Repeatable);
        let (missing, left) =
            (self.required.count_without(&closed), self.usable.count_without(&closed));
        let next = SeenMembers { closed, excluded, counts };
        let is_possible = self.can_complete(missing, left, counts)
            && (self.separable || self.meets_clauses(&next));
        is_possible.then_some(next)
    }

    /// The counts after one more member.
    fn count(&self, seen: MemberTally, is_unique: bool) -> MemberTally {
        let counts = is_unique || !seen.repeated;
        let counted = (seen.counted + u32::from(counts)).min(self.min);
        MemberTally {
            total: seen.total + u32::from(self.max.is_some()),
            counted,
            // Forget what no longer matters, so that states coincide.
            repeated: (seen.repeated || !is_unique && !self.count_repeatable) && counted < self.min,
        }
    }

    /// Whether the set can still end, after at least one member. `missing`: required members that
    /// have not been seen; `left`: productive ones.
    fn can_complete(&self, missing: u32, left: u32, seen: MemberTally) -> bool {
        let uncounted = self.min.saturating_sub(seen.counted);
        let repeats = match self.repeatable && !seen.repeated {
            true if self.count_repeatable => u32::MAX,
            can_repeat => u32::from(can_repeat),
        };
        let countable = left.saturating_add(repeats);
        let fewest = missing.max(uncounted);
        self.required.words_without(&self.usable).all(|word| word == 0)
            && uncounted <= countable
            && (fewest == 0 || self.separable)
            && self.max.is_none_or(|max| seen.total <= max && fewest <= max - seen.total)
    }

    /// The required members that have not been seen.
    pub(crate) fn missing<'a>(&'a self, seen: &'a SeenMembers) -> impl Iterator<Item = usize> + 'a {
        self.required.without(&seen.closed)
    }

    /// The choices that the search for the shortest completion must examine, each with the members
    /// to assume as seen.
    ///
    /// The order of members does not change the length of a text. So required members come in
    /// declaration order. If only a number of members is missing, the others come in order, and
    /// skipped ones are assumed to be seen. If nothing is missing, every choice is examined. If
    /// clauses leave many choices, one is taken: the shortest completion is then hard to find
    /// (hitting set), and this one may be longer.
    pub(crate) fn completion_candidates(
        &self,
        seen: &SeenMembers,
    ) -> Vec<(SeenMembers, NextMember)> {
        if let Some(missing) = self.missing(seen).next() {
            return vec![(seen.clone(), NextMember::Unique(missing))];
        }
        if let Some(members) = self.members_for_unmet(seen).filter(|_| self.min_reached(seen)) {
            let next = members.into_iter().map(NextMember::Unique);
            return next.map(|next| (seen.clone(), next)).collect();
        }
        if self.min_reached(seen) || self.has_clauses() {
            let choices = self.choices(seen);
            return self
                .candidates(seen)
                .filter(|&next| choices.include(next))
                .map(|next| (seen.clone(), next))
                .collect();
        }
        let mut out = Vec::new();
        let mut before = seen.clone();
        for next in self.candidates(seen) {
            let useful = next != NextMember::Repeatable || !seen.counts.repeated;
            if useful && self.choices(&before).include(next) {
                out.push((before.clone(), next));
            }
            if let NextMember::Unique(i) = next {
                before.closed.insert(i);
            }
        }
        out
    }

    /// Likelihood that this member is next, if members mostly come in declaration order: skipped
    /// required members make it unlikely, skipped optional ones less so.
    pub(crate) fn likelihood(&self, seen: &SeenMembers, member: usize) -> f64 {
        let (must, may) = self.left_out(seen, seen.end()..member);
        let (must_before, _) = self.left_out(seen, 0..seen.end().min(member));
        let late = if member < seen.end() { 1.0 / 64.0 } else { 1.0 };
        late * (1.0f64 / 64.0).powi(must + must_before) * 0.125f64.powi(may)
    }

    /// Score of the members seen so far, to compare alternatives that differ by one member: higher
    /// for more members and for fewer gaps.
    pub(crate) fn order_score(&self, seen: &SeenMembers) -> f64 {
        let (must, may) = self.left_out(seen, 0..seen.end());
        let present = seen.closed.count_without(&seen.excluded);
        // Bounded, so that the product is a number.
        256f64.powi(present.min(64) as i32) * 64f64.powi(-must.min(32)) * 8f64.powi(-may.min(32))
    }

    /// How many members of a range have not been seen: required ones, and others.
    fn left_out(&self, seen: &SeenMembers, range: Range<usize>) -> (i32, i32) {
        let (mut must, mut may) = (0, 0);
        for word in range.start / 64..range.end.div_ceil(64) {
            let within = below(range.end, word) & !below(range.start, word);
            let unseen = self.usable.word(word) & !seen.closed.word(word) & within;
            must += (unseen & self.required.word(word)).count_ones() as i32;
            may += (unseen & !self.required.word(word)).count_ones() as i32;
        }
        (must, may)
    }

    /// Unique members that have not been seen.
    pub(crate) fn remaining_unique(&self, seen: &SeenMembers) -> u32 {
        self.usable.count_without(&seen.closed)
    }
}

/// In the word of members with this number, the bits of those below `member`.
fn below(member: usize, word: usize) -> u64 {
    match member.saturating_sub(64 * word) {
        bits @ 0..64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}
