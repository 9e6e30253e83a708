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
    /// At most [`Members::MOST`]. No two should derive the same string: either is then taken for that string.
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
pub(crate) struct Taken {
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
pub(crate) enum Pick {
    /// This one of those that come at most once.
    Once(usize),
    /// Any one of the others.
    Often,
}

/// How many of which members there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Members that can be there at all, one bit each.
    usable: u64,
    /// Those that must be there.
    required: u64,
    /// There are others, which may repeat.
    often: bool,
    /// Two members can follow each other.
    joined: bool,
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
    pub(crate) fn counts(&self, mut productive: impl FnMut(&Expr) -> bool) -> Counts {
        let bits = |holds: &mut dyn FnMut(&Member) -> bool| {
            let holding = self.once.iter().zip(0..64).filter(|(member, _)| holds(member));
            holding.fold(0u64, |bits, (_, i)| bits | 1 << i)
        };
        Counts {
            usable: bits(&mut |member| productive(&member.body)),
            required: bits(&mut |member| member.required),
            often: self.often.iter().any(&mut productive),
            joined: productive(&self.separator),
            min: self.min,
            max: self.max,
        }
    }

    /// Whether anything is derived, given which expressions are.
    pub(crate) fn derives(&self, productive: impl FnMut(&Expr) -> bool) -> bool {
        self.counts(productive).can_begin()
    }

    /// Whether there need be no member.
    pub(crate) fn nullable(&self) -> bool {
        self.min == 0 && self.once.iter().all(|member| !member.required)
    }

    /// As a graph over the same expressions: a node before and one behind members for every set of them. Fails past `limit` nodes.
    pub(crate) fn paths(&self, limit: usize) -> Result<Paths<'_>, TooLarge> {
        let counts = self.counts(|expr| *expr != Expr::Never);
        let mut paths = Paths { nodes: 1, ends: Vec::new(), edges: Vec::new() };
        if self.nullable() {
            paths.ends.push(0);
        }
        // Behind how many members: its node.
        let mut known: HashMap<Taken, u32> = HashMap::default();
        let mut todo = vec![(Taken::default(), 0)];
        while let Some((taken, before)) = todo.pop() {
            for pick in counts.picks(taken) {
                let Some(next) = counts.take(taken, pick) else { continue };
                let behind = match known.entry(next) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        let behind = paths.node(limit)?;
                        if counts.may_end(next) {
                            paths.ends.push(behind);
                        }
                        if counts.goes_on(next) {
                            let before = paths.node(limit)?;
                            paths.edges.push((behind, &self.separator, before));
                            todo.push((next, before));
                        }
                        *new.insert(behind)
                    }
                };
                match pick {
                    Pick::Once(i) => paths.edges.push((before, &self.once[i].body, behind)),
                    Pick::Often => {
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
pub(crate) struct Paths<'m> {
    pub(crate) nodes: u32,
    pub(crate) ends: Vec<u32>,
    /// From, over, to.
    pub(crate) edges: Vec<(u32, &'m Expr, u32)>,
}

impl Paths<'_> {
    fn node(&mut self, limit: usize) -> Result<u32, TooLarge> {
        if self.nodes as usize >= limit {
            return Err(TooLarge::States { limit });
        }
        self.nodes += 1;
        Ok(self.nodes - 1)
    }
}

impl Counts {
    /// Whether there is a sentence.
    pub(crate) fn can_begin(self) -> bool {
        self.may_end(Taken::default())
            || self.picks(Taken::default()).any(|pick| self.take(Taken::default(), pick).is_some())
    }

    /// Whether there is no upper bound on their number.
    pub(crate) fn is_unbounded(self) -> bool {
        self.max.is_none()
    }

    /// Whether there are as many as there must be: from here on it only matters which there have been.
    pub(crate) fn are_enough(self, taken: Taken) -> bool {
        taken.counted >= self.min
    }

    /// Whether these may be all.
    pub(crate) fn may_end(self, taken: Taken) -> bool {
        self.required & !taken.once == 0 && taken.counted >= self.min
    }

    /// Whether another member may follow.
    pub(crate) fn goes_on(self, taken: Taken) -> bool {
        self.joined && self.picks(taken).any(|pick| self.take(taken, pick).is_some())
    }

    /// The members that have not been there, and the others.
    pub(crate) fn picks(self, taken: Taken) -> impl Iterator<Item = Pick> {
        let mut left = self.usable & !taken.once;
        let once = std::iter::from_fn(move || {
            let next = (left != 0).then(|| Pick::Once(left.trailing_zeros() as usize));
            left &= left.wrapping_sub(1);
            next
        });
        once.chain(self.often.then_some(Pick::Often))
    }

    /// With one more member; `None` if that leads nowhere.
    pub(crate) fn take(self, taken: Taken, pick: Pick) -> Option<Taken> {
        let mut next = taken;
        match pick {
            Pick::Once(i) => next.once |= 1 << i,
            Pick::Often => next.repeated |= self.min > 0,
        }
        let counts = matches!(pick, Pick::Once(_)) || !taken.repeated;
        next.counted = (taken.counted + u32::from(counts)).min(self.min);
        // What need not be known any more is the same for all.
        next.repeated &= next.counted < self.min;
        next.total += u32::from(self.max.is_some());
        self.can_end(next).then_some(next)
    }

    /// Whether there may be an end behind at least one member.
    fn can_end(self, taken: Taken) -> bool {
        let missing = self.required & !taken.once;
        let uncounted = self.min.saturating_sub(taken.counted);
        let left = (self.usable & !taken.once).count_ones();
        let countable = left + u32::from(self.often && !taken.repeated);
        let fewest = missing.count_ones().max(uncounted);
        missing & !self.usable == 0
            && uncounted <= countable
            && (fewest == 0 || self.joined)
            && self.max.is_none_or(|max| taken.total <= max && fewest <= max - taken.total)
    }

    /// The members that may come where one must and the nearest end is looked for, each with what is taken to have been there
    /// before it. In which order members come makes no text longer, so required ones come in theirs. Of the others, those that
    /// are missing in number come in theirs, and what was left out is taken to be gone. Where nothing is missing, any one will do.
    pub(crate) fn picks_to_end(self, taken: Taken) -> Vec<(Taken, Pick)> {
        let missing = self.required & !taken.once;
        if missing != 0 {
            return vec![(taken, Pick::Once(missing.trailing_zeros() as usize))];
        }
        if taken.counted >= self.min {
            let leads_on = |pick: &Pick| self.take(taken, *pick).is_some();
            return self.picks(taken).filter(leads_on).map(|pick| (taken, pick)).collect();
        }
        let mut out = Vec::new();
        let mut before = taken;
        for pick in self.picks(taken) {
            let useful = pick != Pick::Often || !taken.repeated;
            if useful && self.take(before, pick).is_some() {
                out.push((before, pick));
            }
            if let Pick::Once(i) = pick {
                before.once |= 1 << i;
            }
        }
        out
    }

    /// How likely it is that this member comes next, where members come as they are declared: those before it come first, if they must
    /// be there, and likely so if they need not.
    pub(crate) fn likely(self, taken: Taken, member: usize) -> f64 {
        let begun = below(u64::BITS - taken.once.leading_zeros());
        let skipped = self.usable & !taken.once & below(member as u32);
        let must = (skipped & self.required).count_ones() as i32;
        let late = if begun >> member & 1 == 1 { 1.0 / 64.0 } else { 1.0 };
        let may = (skipped & !self.required & !begun).count_ones() as i32;
        late * (1.0f64 / 64.0).powi(must) * 0.125f64.powi(may)
    }

    /// How likely these are the members so far, beside others of which one has one more or less: the more there are, and the fewer
    /// are left out.
    pub(crate) fn in_order(self, taken: Taken) -> f64 {
        let left_out = self.usable & !taken.once & below(u64::BITS - taken.once.leading_zeros());
        let (must, may) =
            ((left_out & self.required).count_ones(), (left_out & !self.required).count_ones());
        256f64.powi(taken.once.count_ones() as i32)
            * 64f64.powi(-(must as i32))
            * 8f64.powi(-(may as i32))
    }

    /// Members that may still come at most once.
    pub(crate) fn left(self, taken: Taken) -> u32 {
        (self.usable & !taken.once).count_ones()
    }
}

/// The members in front of `member`, all of them from the 65th on.
fn below(member: u32) -> u64 {
    1u64.checked_shl(member).map_or(u64::MAX, |bit| bit - 1)
}
