//! Objects: in which order and number members may stand, as a graph over them.

use super::facets::ObjectFacets;
use super::lower::Lowering;
use super::punctuation::{Frame, around};
use super::{MemberOrder, SchemaErrorReason as Reason};
use crate::hash::HashMap;
use crate::ir::{self, Expr, Graph, Members};

/// Most nodes of an object's graph beyond a few per member.
const MAX_NODES: usize = 20_000;
/// Most declared members that may come in any order where others are looked for.
const MAX_ANY: usize = 12;

/// With [`MemberOrder::Declared`], most declared members of objects that take them in any order too; and of those in which others
/// are looked for.
const SMALL: usize = Members::MOST;
const SMALL_COUNTED: usize = 4;

/// A declared member, or a class of additional ones.
pub(super) struct Member {
    /// Name, colon and value, by the members looked for ([`SomeMember`](super::facets::SomeMember), one bit each) that this
    /// one then is. The fewer bits the more values; ascending.
    pub(super) first: (u32, Expr),
    pub(super) more: Vec<(u32, Expr)>,
    pub(super) required: bool,
}

impl Member {
    fn variants(&self) -> impl Iterator<Item = &(u32, Expr)> {
        [&self.first].into_iter().chain(&self.more)
    }

    pub(super) fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        [&mut self.first].into_iter().chain(&mut self.more).map(|(_, body)| body)
    }

    fn into_bodies(self) -> impl Iterator<Item = Expr> {
        [self.first].into_iter().chain(self.more).map(|(_, body)| body)
    }
}

/// What has been emitted so far, as far as `minProperties`, `maxProperties` and the members looked for ask.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Count {
    /// All members, up to the upper bound.
    total: u32,
    /// Members certainly distinct, up to the lower bound: declared ones, and one additional.
    distinct: u32,
    /// Whether an additional one has been counted.
    additional: bool,
    /// Members looked for that are still missing, one bit each.
    missing: u32,
}

/// Which declared members may still come.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Left {
    /// Those of this order from this position on.
    From(Order, usize),
    /// Those whose bit is not set.
    Without(u32),
}

/// The orders declared members may come in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Order {
    /// As declared.
    Declared,
    /// The required ones first.
    RequiredFirst,
}

/// A member comes next, or has just ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// Any of those left, or an additional one.
    Before(Left),
    /// One of those left, those before the first of them having been skipped.
    Declared(Left),
    Behind(Left),
}

impl Place {
    /// A number of its own among the places of so many members.
    fn index(self, members: usize) -> usize {
        let (kind, left) = match self {
            Place::Before(left) => (0, left),
            Place::Declared(left) => (1, left),
            Place::Behind(left) => (2, left),
        };
        let at = match left {
            Left::From(Order::Declared, position) => 2 * position,
            Left::From(Order::RequiredFirst, position) => 2 * position + 1,
            Left::Without(taken) => taken as usize,
        };
        let positions = if let Left::Without(_) = left { 1 << members } else { 2 * (members + 1) };
        kind * positions + at
    }
}

/// Where members stand in each order.
struct Orders {
    declared: Vec<usize>,
    /// The same in the other order; empty if it is the same order.
    required_first: Vec<usize>,
    /// From this position on both orders are the same.
    common: usize,
    /// Behind the last required member, for each order.
    end: [usize; 2],
}

impl Orders {
    /// `required`: the required members as `required` lists them; `None` where there is no other order than the declared one.
    fn new(members: &[Member], required: Option<&[usize]>) -> Orders {
        let declared: Vec<usize> = (0..members.len()).collect();
        let last = declared.iter().rposition(|&i| members[i].required).map_or(0, |i| i + 1);
        let Some(required) = required else {
            return Orders { declared, required_first: Vec::new(), common: 0, end: [last, last] };
        };
        let optional = declared.iter().copied().filter(|&i| !members[i].required);
        let mut required_first: Vec<usize> = required.iter().copied().chain(optional).collect();
        let same = declared
            .iter()
            .rev()
            .zip(required_first.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let common = members.len() - same;
        if common == 0 {
            required_first.clear();
        }
        Orders { declared, required_first, common, end: [last, required.len()] }
    }

    fn of(&self, order: Order) -> &[usize] {
        match order {
            Order::Declared => &self.declared,
            Order::RequiredFirst => &self.required_first,
        }
    }

    /// This position, under one name where the orders agree.
    fn left(&self, order: Order, position: usize) -> Left {
        Left::From(if position >= self.common { Order::Declared } else { order }, position)
    }

    /// Whether any member is left.
    fn any(&self, left: Left) -> bool {
        match left {
            Left::From(_, position) => position < self.declared.len(),
            Left::Without(taken) => (taken.count_ones() as usize) < self.declared.len(),
        }
    }

    /// Whether none of those left is required.
    fn may_end(&self, left: Left, members: &[Member]) -> bool {
        match left {
            Left::From(order, position) => {
                position >= self.end[usize::from(order == Order::RequiredFirst)]
            }
            Left::Without(taken) => {
                members.iter().enumerate().all(|(i, m)| !m.required || taken >> i & 1 == 1)
            }
        }
    }
}

impl<'a> Lowering<'a, '_> {
    /// The object, with its frame: its declared members, the required ones of those, as `required` lists them, and additional ones.
    /// `differ`: these have different names.
    pub(super) fn object_graph(
        &mut self,
        facets: &ObjectFacets<'a>,
        (mut members, required, mut additional): (Vec<Member>, &[usize], Vec<Member>),
        (frame, differ): (&Frame, bool),
    ) -> Expr {
        let needed = required.len() as u32;
        let open_ended = !additional.is_empty();
        // Bounds that hold by themselves need no counting.
        let mut min = if facets.min > needed { facets.min } else { 0 };
        let max = facets.max.filter(|&max| open_ended || (max as usize) < members.len());
        let fixed = self.norm.options.order == MemberOrder::Fixed;
        // A set of members counts its additional ones as one.
        let as_set = facets.some.is_empty() && !(differ && min as usize > members.len() + 1);
        let small = if as_set { SMALL } else { SMALL_COUNTED };
        let any = self.norm.options.order == MemberOrder::Any || (!fixed && members.len() <= small);
        let free = any && members.len() + usize::from(open_ended) > 1;
        // Members that are looked for are counted in a graph, with a node for every subset.
        let most = if as_set { Members::MOST } else { MAX_ANY };
        if free && members.len() > most {
            let what = format!("`order: any` with more than {most} declared members");
            self.norm.report(self.at, "", Reason::Limit(what));
            return Expr::Never;
        }
        if min as usize > members.len() + usize::from(open_ended) && open_ended && !differ {
            let what = "`minProperties` beyond the declared members and one more (additional names may repeat)";
            self.norm.unsupported(self.at, "minProperties", what.into());
            min = 0;
        }
        if free && as_set {
            if members.len() <= SMALL_COUNTED {
                // Alternatives that have members in common then read those together.
                self.share_all(&mut members, (&mut additional, differ));
            }
            return Self::member_set((members, additional), (min, max), frame);
        }
        let orders = Orders::new(&members, if fixed { None } else { Some(required) });
        let layers =
            (max.unwrap_or(0) as usize + 1).saturating_mul(min as usize + 1) << facets.some.len();
        let positions = if free { 1 << members.len() } else { 2 * members.len() + 1 };
        if layers.saturating_mul(positions) > MAX_NODES.max(2 * members.len() + 1) {
            let what = format!("counting members needs more than {MAX_NODES} nodes");
            self.norm.report(self.at, "", Reason::Limit(what));
            return Expr::Never;
        }
        if free {
            // Each member stands on many edges.
            self.share_all(&mut members, (&mut additional, differ));
        } else if orders.common > 0 {
            // On two.
            members[..orders.common].iter_mut().for_each(|member| self.share(member));
        }
        let plain = min == 0 && max.is_none() && facets.some.is_empty();
        let Frame { open, close, comma, empty } = frame;
        let mut build = Build {
            graph: Graph::default(),
            known: HashMap::default(),
            plain: plain.then(|| vec![u32::MAX; 3 * (positions + 1)]),
            pending: Vec::new(),
            min,
            max,
            members: &members,
            additional: &additional,
            additional_last: fixed,
            differ,
            orders,
        };
        let (start, end) = (build.graph.node(), build.graph.node());
        build.graph.start = start;
        build.graph.ends.push(end);
        let zero = Count {
            total: 0,
            distinct: 0,
            additional: false,
            missing: (1 << facets.some.len()) - 1,
        };
        if needed == 0 && min == 0 && zero.missing == 0 {
            build.graph.edge(start, empty.clone(), end);
        }
        let firsts = match (free, build.orders.common) {
            (true, _) => vec![Left::Without(0)],
            (false, 0) => vec![Left::From(Order::Declared, 0)],
            (false, _) => vec![Left::From(Order::Declared, 0), Left::From(Order::RequiredFirst, 0)],
        };
        for left in firsts {
            let first = build.node(Place::Before(left), zero);
            build.graph.edge(start, open.clone(), first);
        }
        while let Some((place, count, node)) = build.pending.pop() {
            match place {
                Place::Before(left) => build.before(node, left, count),
                Place::Declared(left) => build.declared(node, left, count),
                Place::Behind(left) => {
                    if build.orders.may_end(left, &members)
                        && count.distinct >= min
                        && count.missing == 0
                    {
                        build.graph.edge(node, close.clone(), end);
                    }
                    if open_ended || build.orders.any(left) {
                        let next = build.node(Place::Before(left), count);
                        build.graph.edge(node, comma.clone(), next);
                    }
                }
            }
        }
        Expr::Graph(Box::new(build.graph))
    }

    /// The members in any order.
    fn member_set(
        (members, additional): (Vec<Member>, Vec<Member>),
        (min, max): (u32, Option<u32>),
        Frame { open, close, comma, empty }: &Frame,
    ) -> Expr {
        let may_be_empty = min == 0 && members.iter().all(|member| !member.required);
        let mut once = Vec::with_capacity(members.len());
        for member in members {
            let required = member.required;
            once.extend(member.into_bodies().map(|body| ir::Member { body, required }));
        }
        let set = Members {
            once,
            often: additional.into_iter().flat_map(Member::into_bodies).collect(),
            separator: comma.clone(),
            min: min.max(u32::from(may_be_empty)),
            max,
        };
        let whole = around(open, Expr::Members(Box::new(set)), close);
        if may_be_empty { Expr::alt([empty.clone(), whole]) } else { whole }
    }

    /// Makes all members rules of their own, but for such as differ in their names: those are called by the object's rule.
    fn share_all(&mut self, members: &mut [Member], (additional, differ): (&mut [Member], bool)) {
        let additional = if differ { &mut [] } else { additional };
        members.iter_mut().chain(additional).for_each(|member| self.share(member));
    }

    /// Makes a member a rule of its own.
    fn share(&mut self, member: &mut Member) {
        for body in member.bodies_mut() {
            let whole = std::mem::replace(body, Expr::Never);
            *body = Expr::Ref(self.rule("member".into(), whole));
        }
    }
}

struct Build<'m> {
    graph: Graph,
    known: HashMap<(Place, Count), u32>,
    /// The same where nothing is counted, by place.
    plain: Option<Vec<u32>>,
    pending: Vec<(Place, Count, u32)>,
    min: u32,
    max: Option<u32>,
    members: &'m [Member],
    additional: &'m [Member],
    /// Whether nothing declared may follow an additional member.
    additional_last: bool,
    /// Whether additional members have different names.
    differ: bool,
    orders: Orders,
}

impl Build<'_> {
    fn node(&mut self, place: Place, count: Count) -> u32 {
        let next = self.graph.nodes;
        let known = match &mut self.plain {
            Some(plain) => {
                let slot = &mut plain[place.index(self.members.len())];
                if *slot == u32::MAX {
                    *slot = next;
                }
                *slot
            }
            None => *self.known.entry((place, count)).or_insert(next),
        };
        if known != next {
            return known;
        }
        let node = self.graph.node();
        self.pending.push((place, count, node));
        node
    }

    /// The edges of a node before a member.
    fn before(&mut self, node: u32, left: Left, count: Count) {
        self.declared(node, left, count);
        let behind = match self.additional_last {
            true if !self.orders.may_end(left, self.members) => return,
            true => Left::From(Order::Declared, self.members.len()),
            false => left,
        };
        for member in self.additional {
            self.member(node, member, (Place::Behind(behind), count), true);
        }
    }

    /// The edges of a node before a declared member.
    fn declared(&mut self, node: u32, left: Left, count: Count) {
        let members = self.members;
        match left {
            Left::From(order, position) => {
                let Some(&i) = self.orders.of(order).get(position) else { return };
                let next = self.orders.left(order, position + 1);
                self.member(node, &members[i], (Place::Behind(next), count), false);
                if !members[i].required {
                    // Without additional members both are the same.
                    let place = if self.additional.is_empty() {
                        Place::Before(next)
                    } else {
                        Place::Declared(next)
                    };
                    let skip = self.node(place, count);
                    self.graph.edge(node, Expr::Empty, skip);
                }
            }
            Left::Without(taken) => {
                for (i, member) in members.iter().enumerate().filter(|(i, _)| taken >> i & 1 == 0) {
                    self.member(
                        node,
                        member,
                        (Place::Behind(Left::Without(taken | 1 << i)), count),
                        false,
                    );
                }
            }
        }
    }

    /// A member's edges.
    fn member(
        &mut self,
        from: u32,
        member: &Member,
        (place, count): (Place, Count),
        is_additional: bool,
    ) {
        let Some(next) = self.counted(count, is_additional) else { return };
        let mut reached: Vec<(u32, u32)> = Vec::new();
        for (found, body) in member.variants() {
            let missing = next.missing & !found;
            // What is less than this one has all of its values.
            if !reached.iter().any(|&(same, less)| same == missing && less & !found == 0) {
                reached.push((missing, *found));
                let behind = self.node(place, Count { missing, ..next });
                self.graph.edge(from, body.clone(), behind);
            }
        }
    }

    /// The count after one more member; `None` if there are too many.
    fn counted(&self, count: Count, is_additional: bool) -> Option<Count> {
        let total = match self.max {
            Some(max) if count.total >= max => return None,
            Some(_) => count.total + 1,
            None => 0,
        };
        let distinct =
            count.distinct + u32::from(!is_additional || !count.additional || self.differ);
        let additional = count.additional || (is_additional && self.min > 0 && !self.differ);
        Some(Count { total, distinct: distinct.min(self.min), additional, missing: count.missing })
    }
}
