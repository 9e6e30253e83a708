//! Member sets: object members in any order, each at most once (interleave, unordered group).
//!
//! The state of a set is which members have been seen, a bit set. States are made as a text is
//! read. They are only enumerated where a graph is requested, for few members.

use std::collections::hash_map::Entry;

use super::Expr;
use crate::fsm::TooLarge;
use crate::hash::HashMap;

/// Members in any order, with a separator between two: each of `once` at most once, required ones
/// exactly once, and those of `often` within the bounds. Derives the empty text if no member is
/// required.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Members {
    /// At most [`Members::MOST`]. No two should derive the same text; such a text counts as either.
    pub once: Vec<Member>,
    /// Further members, which may repeat.
    pub often: Vec<Expr>,
    /// The separator between two members.
    pub separator: Expr,
    /// Fewest members. Members of `often` count as one, however many there are.
    pub min: u32,
    /// Most members; all are counted.
    pub max: Option<u32>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SeenMembers {
    /// At-most-once members, one bit each.
    pub(crate) once: u64,
    /// Number of members; always 0 without an upper bound.
    total: u32,
    /// Members that count towards the lower bound; saturates there.
    counted: u32,
    /// Whether a repeatable member has been counted.
    repeated: bool,
}

/// The choice of the next member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextMember {
    /// This at-most-once member.
    Once(usize),
    /// Any repeatable member.
    Often,
}

/// The constraints of a member set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberBounds {
    /// At-most-once members that are productive, one bit each.
    usable: u64,
    /// Required members.
    required: u64,
    /// Some repeatable member is productive.
    repeatable: bool,
    /// The separator is productive, so that a second member can follow.
    separable: bool,
    /// See [`Members::min`].
    min: u32,
    max: Option<u32>,
}

impl Members {
    /// Most at-most-once members of a set.
    pub const MOST: usize = 64;

    /// All expressions of the set.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        self.once.iter().map(|member| &member.body).chain(&self.often).chain([&self.separator])
    }

    /// All expressions of the set.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.once
            .iter_mut()
            .map(|member| &mut member.body)
            .chain(&mut self.often)
            .chain([&mut self.separator])
    }

    /// The constraints, given which expressions are productive.
    pub(crate) fn bounds(&self, mut productive: impl FnMut(&Expr) -> bool) -> MemberBounds {
        let bits = |holds: &mut dyn FnMut(&Member) -> bool| {
            let holding = self.once.iter().zip(0..64).filter(|(member, _)| holds(member));
            holding.fold(0u64, |bits, (_, i)| bits | 1 << i)
        };
        MemberBounds {
            usable: bits(&mut |member| productive(&member.body)),
            required: bits(&mut |member| member.required),
            repeatable: self.often.iter().any(&mut productive),
            separable: productive(&self.separator),
            min: self.min,
            max: self.max,
        }
    }

    /// Whether the set derives any text, given which expressions are productive.
    pub(crate) fn derives(&self, productive: impl FnMut(&Expr) -> bool) -> bool {
        self.bounds(productive).has_sentence()
    }

    /// Whether the set derives the empty text.
    pub(crate) fn nullable(&self) -> bool {
        self.min == 0 && self.once.iter().all(|member| !member.required)
    }

    /// The set as a graph: for each reachable set of seen members, a node in front of the next
    /// member and a node behind the last one. Exponential in the number of members. Fails beyond
    /// `limit` nodes.
    pub(crate) fn to_graph(&self, limit: usize) -> Result<MemberGraph<'_>, TooLarge> {
        let bounds = self.bounds(|expr| *expr != Expr::Never);
        let mut paths = MemberGraph { nodes: 1, ends: Vec::new(), edges: Vec::new() };
        if self.nullable() {
            paths.ends.push(0);
        }
        // By seen members: the node behind the last one.
        let mut nodes: HashMap<SeenMembers, u32> = HashMap::default();
        let mut todo = vec![(SeenMembers::default(), 0)];
        while let Some((seen, before)) = todo.pop() {
            for next in bounds.candidates(seen) {
                let Some(after) = bounds.add(seen, next) else { continue };
                let behind = match nodes.entry(after) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(new) => {
                        let behind = paths.node(limit)?;
                        if bounds.may_end(after) {
                            paths.ends.push(behind);
                        }
                        if bounds.may_continue(after) {
                            let before = paths.node(limit)?;
                            paths.edges.push((behind, &self.separator, before));
                            todo.push((after, before));
                        }
                        *new.insert(behind)
                    }
                };
                match next {
                    NextMember::Once(i) => paths.edges.push((before, &self.once[i].body, behind)),
                    NextMember::Often => {
                        paths.edges.extend(self.often.iter().map(|body| (before, body, behind)))
                    }
                }
            }
        }
        Ok(paths)
    }
}

/// A member set as a graph from node 0.
#[derive(Debug)]
pub(crate) struct MemberGraph<'m> {
    /// Number of nodes.
    pub(crate) nodes: u32,
    /// Accepting nodes.
    pub(crate) ends: Vec<u32>,
    /// `(from, expression, to)`.
    pub(crate) edges: Vec<(u32, &'m Expr, u32)>,
}

impl MemberGraph<'_> {
    /// Adds a node.
    fn node(&mut self, limit: usize) -> Result<u32, TooLarge> {
        if self.nodes as usize >= limit {
            return Err(TooLarge::States { limit });
        }
        self.nodes += 1;
        Ok(self.nodes - 1)
    }
}

impl MemberBounds {
    /// Whether the set derives any text.
    pub(crate) fn has_sentence(self) -> bool {
        self.may_end(SeenMembers::default())
            || self
                .candidates(SeenMembers::default())
                .any(|next| self.add(SeenMembers::default(), next).is_some())
    }

    /// Whether there is no upper bound.
    pub(crate) fn is_unbounded(self) -> bool {
        self.max.is_none()
    }

    /// Whether the lower bound has been reached. Without an upper bound, only the bit set matters
    /// from here on.
    pub(crate) fn min_reached(self, seen: SeenMembers) -> bool {
        seen.counted >= self.min
    }

    /// Whether the set may end.
    pub(crate) fn may_end(self, seen: SeenMembers) -> bool {
        self.required & !seen.once == 0 && seen.counted >= self.min
    }

    /// Whether another member may follow.
    pub(crate) fn may_continue(self, seen: SeenMembers) -> bool {
        self.separable && self.candidates(seen).any(|next| self.add(seen, next).is_some())
    }

    /// The members that have not been seen, then the repeatable ones.
    pub(crate) fn candidates(self, seen: SeenMembers) -> impl Iterator<Item = NextMember> {
        let mut left = self.usable & !seen.once;
        let once = std::iter::from_fn(move || {
            let next = (left != 0).then(|| NextMember::Once(left.trailing_zeros() as usize));
            left &= left.wrapping_sub(1);
            next
        });
        once.chain(self.repeatable.then_some(NextMember::Often))
    }

    /// The members seen after one more; `None` if the bounds can no longer be met.
    pub(crate) fn add(self, seen: SeenMembers, next: NextMember) -> Option<SeenMembers> {
        let mut after = seen;
        match next {
            NextMember::Once(i) => after.once |= 1 << i,
            NextMember::Often => after.repeated |= self.min > 0,
        }
        let counts = matches!(next, NextMember::Once(_)) || !seen.repeated;
        after.counted = (seen.counted + u32::from(counts)).min(self.min);
        // Forget what no longer matters, so that states coincide.
        after.repeated &= after.counted < self.min;
        after.total += u32::from(self.max.is_some());
        self.can_complete(after).then_some(after)
    }

    /// Whether the set can still end, after at least one member.
    fn can_complete(self, seen: SeenMembers) -> bool {
        let missing = self.required & !seen.once;
        let uncounted = self.min.saturating_sub(seen.counted);
        let left = (self.usable & !seen.once).count_ones();
        let countable = left + u32::from(self.repeatable && !seen.repeated);
        let fewest = missing.count_ones().max(uncounted);
        missing & !self.usable == 0
            && uncounted <= countable
            && (fewest == 0 || self.separable)
            && self.max.is_none_or(|max| seen.total <= max && fewest <= max - seen.total)
    }

    /// The choices that the search for the shortest completion must examine, each with the members
    /// to assume as seen.
    ///
    /// The order of members does not change the length of a text. So required members come in
    /// declaration order. If only a number of members is missing, the others come in order, and
    /// skipped ones are assumed to be seen. If nothing is missing, every choice is examined.
    pub(crate) fn completion_candidates(self, seen: SeenMembers) -> Vec<(SeenMembers, NextMember)> {
        let missing = self.required & !seen.once;
        if missing != 0 {
            return vec![(seen, NextMember::Once(missing.trailing_zeros() as usize))];
        }
        if seen.counted >= self.min {
            let leads_on = |next: &NextMember| self.add(seen, *next).is_some();
            return self.candidates(seen).filter(leads_on).map(|next| (seen, next)).collect();
        }
        let mut out = Vec::new();
        let mut before = seen;
        for next in self.candidates(seen) {
            let useful = next != NextMember::Often || !seen.repeated;
            if useful && self.add(before, next).is_some() {
                out.push((before, next));
            }
            if let NextMember::Once(i) = next {
                before.once |= 1 << i;
            }
        }
        out
    }

    /// Likelihood that this member is next, if members mostly come in declaration order: skipped
    /// required members make it unlikely, skipped optional ones less so.
    pub(crate) fn likelihood(self, seen: SeenMembers, member: usize) -> f64 {
        let begun = below(u64::BITS - seen.once.leading_zeros());
        let skipped = self.usable & !seen.once & below(member as u32);
        let must = (skipped & self.required).count_ones() as i32;
        let late = if begun >> member & 1 == 1 { 1.0 / 64.0 } else { 1.0 };
        let may = (skipped & !self.required & !begun).count_ones() as i32;
        late * (1.0f64 / 64.0).powi(must) * 0.125f64.powi(may)
    }

    /// Score of the members seen so far, to compare alternatives that differ by one member: higher
    /// for more members and for fewer gaps.
    pub(crate) fn order_score(self, seen: SeenMembers) -> f64 {
        let left_out = self.usable & !seen.once & below(u64::BITS - seen.once.leading_zeros());
        let (must, may) =
            ((left_out & self.required).count_ones(), (left_out & !self.required).count_ones());
        256f64.powi(seen.once.count_ones() as i32)
            * 64f64.powi(-(must as i32))
            * 8f64.powi(-(may as i32))
    }

    /// At-most-once members that have not been seen.
    pub(crate) fn remaining_once(self, seen: SeenMembers) -> u32 {
        (self.usable & !seen.once).count_ones()
    }
}

/// The bits below `member`; all bits from 64 on.
fn below(member: u32) -> u64 {
    1u64.checked_shl(member).map_or(u64::MAX, |bit| bit - 1)
}
