//! Objects: in which order and number members may stand, as a graph over them.

use rustc_hash::FxHashMap;

use super::facets::ObjectFacets;
use super::lower::Lowering;
use super::{MemberOrder, SchemaErrorReason as Reason};
use crate::ir::{Expr, Graph};

/// Most nodes of an object's graph beyond one per member.
const MAX_NODES: usize = 20_000;

/// A declared member, or a class of additional ones.
pub(super) struct Member {
    /// Name, colon and value; [`Expr::Never`] if it can only be there as the one that is looked for.
    pub(super) body: Expr,
    /// The same as the member that must be there ([`SomeMember`](super::facets::SomeMember)), where it qualifies.
    pub(super) wanted: Option<Expr>,
    pub(super) required: bool,
}

/// What has been emitted so far, as far as `minProperties`, `maxProperties` and [`Member::wanted`] ask.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Count {
    /// All members, up to the upper bound.
    total: u32,
    /// Members certainly distinct, up to the lower bound: declared ones, and one additional.
    distinct: u32,
    /// Whether an additional one has been counted.
    additional: bool,
    /// Whether the member that must be there has been met (or none is asked for).
    met: bool,
}

/// Which declared members may still come.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Left {
    /// Those from this index on.
    From(usize),
    /// Those whose bit is not set.
    Without(u32),
}

/// A member comes next, or has just ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Before(Left),
    Behind(Left),
}

impl<'a> Lowering<'a, '_> {
    /// The object, braces included.
    pub(super) fn object_graph(
        &mut self,
        facets: &ObjectFacets<'a>,
        mut members: Vec<Member>,
        mut additional: Vec<Member>,
    ) -> Expr {
        let needed = members.iter().filter(|m| m.required).count() as u32;
        let open_ended = !additional.is_empty();
        // Bounds that hold by themselves need no counting.
        let min = if facets.min > needed { facets.min } else { 0 };
        let max = facets.max.filter(|&max| open_ended || (max as usize) < members.len());
        let free = match self.norm.options.order {
            MemberOrder::AnyUpTo(most) => {
                members.len() + usize::from(open_ended) > 1 && members.len() <= most.min(12) as usize
            }
            MemberOrder::Declared => false,
        };
        let layers = (max.unwrap_or(0) as usize + 1).saturating_mul(min as usize + 1);
        let positions = if free { 1 << members.len() } else { members.len() + 1 };
        if layers.saturating_mul(positions) > MAX_NODES.max(members.len() + 1) {
            let what = format!("counting members needs more than {MAX_NODES} nodes");
            self.norm.report(self.at, "", Reason::Limit(what));
            return Expr::Never;
        }
        if min as usize > members.len() + usize::from(open_ended) && open_ended {
            let what = "`minProperties` beyond the declared members and one more (additional names may repeat)";
            self.norm.report(self.at, "minProperties", Reason::Unsupported(what.into()));
            return Expr::Never;
        }
        if free {
            // Each member stands on many edges.
            members.iter_mut().chain(&mut additional).for_each(|member| self.share(member));
        }
        let (open, close, comma) = self.braces();
        let mut build = Build { graph: Graph::default(), known: FxHashMap::default(), pending: Vec::new(), min, max };
        let (start, end) = (build.graph.node(), build.graph.node());
        build.graph.start = start;
        build.graph.ends.push(end);
        let zero = Count { total: 0, distinct: 0, additional: false, met: facets.some.is_empty() };
        let all = if free { Left::Without(0) } else { Left::From(0) };
        let first = build.node(Place::Before(all), zero);
        build.graph.edge(start, open.clone(), first);
        if needed == 0 && min == 0 && zero.met {
            build.graph.edge(start, Expr::seq([open, Expr::text("}")]), end);
        }
        while let Some((place, count, node)) = build.pending.pop() {
            match place {
                Place::Before(left) => build.before(node, left, count, &members, &additional),
                Place::Behind(left) => {
                    if left.may_end(&members) && count.distinct >= min && count.met {
                        build.graph.edge(node, close.clone(), end);
                    }
                    if open_ended || left.any(members.len()) {
                        let next = build.node(Place::Before(left), count);
                        build.graph.edge(node, comma.clone(), next);
                    }
                }
            }
        }
        Expr::Graph(Box::new(build.graph))
    }

    /// Makes a member a rule of its own.
    fn share(&mut self, member: &mut Member) {
        for body in [Some(&mut member.body), member.wanted.as_mut()].into_iter().flatten() {
            if *body != Expr::Never {
                let whole = std::mem::replace(body, Expr::Never);
                *body = Expr::Ref(self.rule("member".into(), whole));
            }
        }
    }
}

impl Left {
    fn any(self, members: usize) -> bool {
        match self {
            Left::From(i) => i < members,
            Left::Without(taken) => (taken.count_ones() as usize) < members,
        }
    }

    /// Whether none of those left is required.
    fn may_end(self, members: &[Member]) -> bool {
        match self {
            Left::From(i) => !members[i..].iter().any(|m| m.required),
            Left::Without(taken) => members.iter().enumerate().all(|(i, m)| !m.required || taken >> i & 1 == 1),
        }
    }
}

struct Build {
    graph: Graph,
    known: FxHashMap<(Place, Count), u32>,
    pending: Vec<(Place, Count, u32)>,
    min: u32,
    max: Option<u32>,
}

impl Build {
    fn node(&mut self, place: Place, count: Count) -> u32 {
        if let Some(&known) = self.known.get(&(place, count)) {
            return known;
        }
        let node = self.graph.node();
        self.known.insert((place, count), node);
        self.pending.push((place, count, node));
        node
    }

    /// The edges of a node before a member.
    fn before(&mut self, node: u32, left: Left, count: Count, members: &[Member], additional: &[Member]) {
        match left {
            Left::From(i) if i < members.len() => {
                self.member(node, &members[i], (Place::Behind(Left::From(i + 1)), count), false);
                if !members[i].required {
                    let skip = self.node(Place::Before(Left::From(i + 1)), count);
                    self.graph.edge(node, Expr::Empty, skip);
                }
                return;
            }
            Left::From(_) => {}
            Left::Without(taken) => {
                for (i, member) in members.iter().enumerate().filter(|(i, _)| taken >> i & 1 == 0) {
                    self.member(node, member, (Place::Behind(Left::Without(taken | 1 << i)), count), false);
                }
            }
        }
        for member in additional {
            self.member(node, member, (Place::Behind(left), count), true);
        }
    }

    /// A member's edges.
    fn member(&mut self, from: u32, member: &Member, (place, count): (Place, Count), is_additional: bool) {
        let Some(next) = self.counted(count, is_additional) else { return };
        if member.body != Expr::Never || next.met {
            let body = match (&member.body, &member.wanted) {
                (Expr::Never, Some(wanted)) => wanted.clone(),
                (body, _) => body.clone(),
            };
            let behind = self.node(place, next);
            self.graph.edge(from, body, behind);
        }
        if let (Some(wanted), false) = (&member.wanted, next.met) {
            let behind = self.node(place, Count { met: true, ..next });
            self.graph.edge(from, wanted.clone(), behind);
        }
    }

    /// The count after one more member; `None` if there are too many.
    fn counted(&self, count: Count, is_additional: bool) -> Option<Count> {
        let total = match self.max {
            Some(max) if count.total >= max => return None,
            Some(_) => count.total + 1,
            None => 0,
        };
        let distinct = count.distinct + u32::from(!is_additional || !count.additional);
        let additional = count.additional || (is_additional && self.min > 0);
        Some(Count { total, distinct: distinct.min(self.min), additional, met: count.met })
    }
}
