//! Sets of members: in any order, each at most once. A text has been so far along as the set of the members in it; sets are
//! met as a text goes on and never enumerated, but for few members, where a graph is asked for.

use std::collections::hash_map::Entry;

use super::Expr;
use crate::fsm::TooLarge;
use crate::hash::HashMap;

/// Members in any order, with a separator between any two: each of `once` at most once, the required ones in any case, and
/// those of `often` as often as the bounds allow. Where there may be no member at all, the empty string is derived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Members {
    /// At most [`Members::MOST`]. No two should derive the same string: either is then seen for that string.
    pub once: Vec<Member>,
    /// Further members, which may repeat.
    pub often: Vec<Expr>,
    /// What stands between two members.
    pub separator: Expr,
    /// Fewest members; however many of `often` there are, they count as one.
    pub min: u32,
    /// Most members, each counted.
    pub max: Option<u32>,
}

/// A member that comes at most once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// What it derives; never the empty string.
    pub body: Expr,
    /// It may not be missing.
    pub required: bool,
}

/// The members that there have been: what decides about those to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SeenMembers {
    /// By member that comes at most once, one bit.
    pub(crate) once: u64,
    /// All members; 0 where there is no upper bound.
    total: u32,
    /// Members that count for the lower bound, up to it.
    counted: u32,
    /// Whether one that may repeat has been counted.
    repeated: bool,
}

/// Which member comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextMember {
    /// This one of those that come at most once.
    Once(usize),
    /// Any one of the others.
    Often,
}

/// How many of which members there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberBounds {
    /// Members that can be there at all, one bit each.
    usable: u64,
    /// Those that must be there.
    required: u64,
    /// There are others, which may repeat.
    repeatable: bool,
    /// Two members can follow each other.
    separable: bool,
    min: u32,
    max: Option<u32>,
}

impl Members {
    /// Most members that come at most once.
    pub const MOST: usize = 64;

    /// All expressions inside.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        self.once.iter().map(|member| &member.body).chain(&self.often).chain([&self.separator])
    }

    /// All expressions inside.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.once
            .iter_mut()
            .map(|member| &mut member.body)
            .chain(&mut self.often)
            .chain([&mut self.separator])
    }

    /// How members are counted, given which expressions derive anything.
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

    /// Whether anything is derived, given which expressions are.
    pub(crate) fn derives(&self, productive: impl FnMut(&Expr) -> bool) -> bool {
        self.bounds(productive).has_sentence()
    }

    /// Whether there need be no member.
    pub(crate) fn nullable(&self) -> bool {
        self.min == 0 && self.once.iter().all(|member| !member.required)
    }

    /// As a graph over the same expressions: a node before and one behind members for every set of them. Fails past `limit` nodes.
    pub(crate) fn to_graph(&self, limit: usize) -> Result<MemberGraph<'_>, TooLarge> {
        let bounds = self.bounds(|expr| *expr != Expr::Never);
        let mut paths = MemberGraph { nodes: 1, ends: Vec::new(), edges: Vec::new() };
        if self.nullable() {
            paths.ends.push(0);
        }
        // Behind how many members: its node.
        let mut known: HashMap<SeenMembers, u32> = HashMap::default();
        let mut todo = vec![(SeenMembers::default(), 0)];
        while let Some((seen, before)) = todo.pop() {
            for next in bounds.candidates(seen) {
                let Some(after) = bounds.add(seen, next) else { continue };
                let behind = match known.entry(after) {
                    Entry::Occupied(known) => *known.get(),
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

/// A set of members as a graph that begins at node 0.
#[derive(Debug)]
pub(crate) struct MemberGraph<'m> {
    pub(crate) nodes: u32,
    pub(crate) ends: Vec<u32>,
    /// From, over, to.
    pub(crate) edges: Vec<(u32, &'m Expr, u32)>,
}

impl MemberGraph<'_> {
    fn node(&mut self, limit: usize) -> Result<u32, TooLarge> {
        if self.nodes as usize >= limit {
            return Err(TooLarge::States { limit });
        }
        self.nodes += 1;
        Ok(self.nodes - 1)
    }
}

impl MemberBounds {
    /// Whether there is a sentence.
    pub(crate) fn has_sentence(self) -> bool {
        self.may_end(SeenMembers::default())
            || self
                .candidates(SeenMembers::default())
                .any(|next| self.add(SeenMembers::default(), next).is_some())
    }

    /// Whether there is no upper bound on their number.
    pub(crate) fn is_unbounded(self) -> bool {
        self.max.is_none()
    }

    /// Whether there are as many as there must be: from here on it only matters which there have been.
    pub(crate) fn min_reached(self, seen: SeenMembers) -> bool {
        seen.counted >= self.min
    }

    /// Whether these may be all.
    pub(crate) fn may_end(self, seen: SeenMembers) -> bool {
        self.required & !seen.once == 0 && seen.counted >= self.min
    }

    /// Whether another member may follow.
    pub(crate) fn may_continue(self, seen: SeenMembers) -> bool {
        self.separable && self.candidates(seen).any(|next| self.add(seen, next).is_some())
    }

    /// The members that have not been there, and the others.
    pub(crate) fn candidates(self, seen: SeenMembers) -> impl Iterator<Item = NextMember> {
        let mut left = self.usable & !seen.once;
        let once = std::iter::from_fn(move || {
            let next = (left != 0).then(|| NextMember::Once(left.trailing_zeros() as usize));
            left &= left.wrapping_sub(1);
            next
        });
        once.chain(self.repeatable.then_some(NextMember::Often))
    }

    /// With one more member; `None` if that leads nowhere.
    pub(crate) fn add(self, seen: SeenMembers, next: NextMember) -> Option<SeenMembers> {
        let mut after = seen;
        match next {
            NextMember::Once(i) => after.once |= 1 << i,
            NextMember::Often => after.repeated |= self.min > 0,
        }
        let counts = matches!(next, NextMember::Once(_)) || !seen.repeated;
        after.counted = (seen.counted + u32::from(counts)).min(self.min);
        // What need not be known any more is the same for all.
        after.repeated &= after.counted < self.min;
        after.total += u32::from(self.max.is_some());
        self.can_complete(after).then_some(after)
    }

    /// Whether there may be an end behind at least one member.
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

    /// The members that may come where one must and the nearest end is looked for, each with what is seen to have been there
    /// before it. In which order members come makes no text longer, so required ones come in theirs. Of the others, those that
    /// are missing in number come in theirs, and what was left out is seen to be gone. Where nothing is missing, any one will do.
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

    /// How likely it is that this member comes next, where members come as they are declared: those before it come first, if they must
    /// be there, and likely so if they need not.
    pub(crate) fn likelihood(self, seen: SeenMembers, member: usize) -> f64 {
        let begun = below(u64::BITS - seen.once.leading_zeros());
        let skipped = self.usable & !seen.once & below(member as u32);
        let must = (skipped & self.required).count_ones() as i32;
        let late = if begun >> member & 1 == 1 { 1.0 / 64.0 } else { 1.0 };
        let may = (skipped & !self.required & !begun).count_ones() as i32;
        late * (1.0f64 / 64.0).powi(must) * 0.125f64.powi(may)
    }

    /// How likely these are the members so far, beside others of which one has one more or less: the more there are, and the fewer
    /// are left out.
    pub(crate) fn order_score(self, seen: SeenMembers) -> f64 {
        let left_out = self.usable & !seen.once & below(u64::BITS - seen.once.leading_zeros());
        let (must, may) =
            ((left_out & self.required).count_ones(), (left_out & !self.required).count_ones());
        256f64.powi(seen.once.count_ones() as i32)
            * 64f64.powi(-(must as i32))
            * 8f64.powi(-(may as i32))
    }

    /// Members that may still come at most once.
    pub(crate) fn remaining_once(self, seen: SeenMembers) -> u32 {
        (self.usable & !seen.once).count_ones()
    }
}

/// The members in front of `member`, all of them from the 65th on.
fn below(member: u32) -> u64 {
    1u64.checked_shl(member).map_or(u64::MAX, |bit| bit - 1)
}
