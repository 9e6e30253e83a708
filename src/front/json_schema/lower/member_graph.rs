//! Order and number of an object's members, as a member set or as a graph.
//!
//! If members may come in any order and only the number of members is bounded, an object is a
//! member set of the grammar ([`Members`]). Otherwise it is a graph whose nodes are pairs of
//!
//! * a position: which declared members may still come, and whether a member or its end comes next,
//!   and
//! * counts: what `minProperties`, `maxProperties` and witnesses depend on.
//!
//! With [`MemberOrder::Declared`], a graph has two sequences of declared members: as declared, and
//! required ones first. They share the nodes of their common suffix.

use smallvec::{SmallVec, smallvec};

use super::super::options::MemberOrder;
use super::super::read::facets::ObjectFacets;
use super::SchemaLowering;
use super::interned_graph::InternedGraph;
use super::punctuation::Delimiters;
use crate::fuel;
use crate::ir::{self, Expr, Members, PresenceClause, are_propagated};

/// The largest number of nodes of a graph, unless it has only a few for each member.
const MAX_NODES: usize = 20_000;
/// The largest number of declared members in any order in a graph (one node for each subset).
const MAX_ANY_ORDER_GRAPH: usize = 12;
/// With [`MemberOrder::Declared`], the largest number of declared members that may also come in any
/// order in a graph.
const MAX_UNORDERED_GRAPH: usize = 8;
/// The largest number of cases into which clauses divide an object.
const MAX_CLAUSE_CASES: usize = 1_024;
/// The largest number of declared members of a set that are rules of their own.
const MAX_MEMBER_RULES: usize = 4;

/// A declared member, or a class of additional members.
#[derive(Clone)]
pub(super) struct ObjectMember {
    /// Variants of name, colon and value, each with the witnesses (one bit each) that the member
    /// then serves as. Ascending by number of bits; a variant with fewer bits has more values.
    pub(super) variants: SmallVec<[(u32, Expr); 1]>,
    pub(super) required: bool,
}

/// The syntax of values cannot write the name of a member.
pub(super) struct UnwritableName;

impl ObjectMember {
    /// A member that is not a witness.
    pub(super) fn new(body: Expr, required: bool) -> ObjectMember {
        ObjectMember { variants: smallvec![(0, body)], required }
    }
}

/// The counts of a node, as far as `minProperties`, `maxProperties` and witnesses need them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct MemberCounts {
    /// The number of members; 0 without an upper bound.
    total: u32,
    /// The number of members with certainly distinct names, up to the lower bound: declared members
    /// and, if additional names may repeat, one additional member.
    distinct: u32,
    /// Whether `distinct` includes the additional member.
    additional: bool,
    /// Witnesses that are still missing, one bit each.
    missing: u32,
}

/// The declared members that may still come.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Remaining {
    /// Those of a sequence, by its index, from a position on.
    From(usize, usize),
    /// Those whose bit is not set (any order).
    Except(u32),
}

/// The position of a node among the members.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Position {
    /// A remaining declared member comes next, or an additional one.
    BeforeMember(Remaining),
    /// A remaining declared member comes next; optional ones before it have been skipped.
    BeforeDeclared(Remaining),
    /// A member has just ended.
    AfterMember(Remaining),
}

/// A sequence in which declared members may come.
struct Sequence {
    members: Vec<usize>,
    /// The position after the last required member.
    end: usize,
}

/// The sequences of declared members.
struct Sequences {
    /// As declared, and, if that differs, with required members first.
    list: Vec<Sequence>,
    /// From this position on, all sequences are equal.
    common_from: usize,
}

/// The index of the sequence as declared.
const AS_DECLARED: usize = 0;

impl Sequences {
    /// `required`: the required members in the order of the keyword; `None` if only the declared
    /// sequence is allowed.
    fn new(members: &[ObjectMember], required: Option<&[usize]>) -> Sequences {
        let end = members.iter().rposition(|member| member.required).map_or(0, |i| i + 1);
        let declared: Vec<usize> = (0..members.len()).collect();
        let mut out =
            Sequences { list: vec![Sequence { members: declared.clone(), end }], common_from: 0 };
        let Some(required) = required else { return out };
        let optional = declared.iter().copied().filter(|&i| !members[i].required);
        let required_first: Vec<usize> = required.iter().copied().chain(optional).collect();
        let suffixes = declared.iter().rev().zip(required_first.iter().rev());
        out.common_from = members.len() - suffixes.take_while(|(a, b)| a == b).count();
        if out.common_from > 0 {
            out.list.push(Sequence { members: required_first, end: required.len() });
        }
        out
    }

    /// The members from this position on; equal for all sequences in their common suffix.
    fn remaining_from(&self, sequence: usize, position: usize) -> Remaining {
        let sequence = if position >= self.common_from { AS_DECLARED } else { sequence };
        Remaining::From(sequence, position)
    }

    /// Whether any declared member remains.
    fn has_remaining(&self, remaining: Remaining) -> bool {
        let taken = match remaining {
            Remaining::From(_, position) => position,
            Remaining::Except(taken) => taken.count_ones() as usize,
        };
        taken < self.list[AS_DECLARED].members.len()
    }

    /// Whether no remaining member is required.
    fn may_end(&self, remaining: Remaining, members: &[ObjectMember]) -> bool {
        match remaining {
            Remaining::From(sequence, position) => position >= self.list[sequence].end,
            Remaining::Except(taken) => {
                members.iter().enumerate().all(|(i, m)| !m.required || taken >> i & 1 == 1)
            }
        }
    }
}

/// The members of an object, which are still to be put in order.
#[derive(Clone)]
pub(super) struct ObjectMembers {
    pub(super) declared: Vec<ObjectMember>,
    /// The indices of the required members, in the order of the keyword.
    pub(super) required: Vec<usize>,
    /// A member for each class of additional names.
    pub(super) additional: Vec<ObjectMember>,
    /// Whether the names of additional members are distinct.
    pub(super) distinct_names: bool,
    /// Conditions on which declared members are present.
    pub(super) clauses: Vec<PresenceClause>,
}

/// What is counted of the members of an object. A bound that always holds is not.
#[derive(Clone, Copy)]
struct CountedBounds {
    min: u32,
    max: Option<u32>,
    /// The number of witnesses.
    witnesses: usize,
}

impl CountedBounds {
    fn new(facets: &ObjectFacets<'_>, members: &ObjectMembers) -> CountedBounds {
        let always = members.required.len() as u32;
        let may_exceed =
            |max: &u32| !members.additional.is_empty() || (*max as usize) < members.declared.len();
        CountedBounds {
            min: if facets.min > always { facets.min } else { 0 },
            max: facets.max.filter(may_exceed),
            witnesses: facets.witnesses.len(),
        }
    }

    /// How many different counts a position of a graph may have.
    fn layers(&self) -> usize {
        let counts = (self.max.unwrap_or(0) as usize + 1).saturating_mul(self.min as usize + 1);
        counts.saturating_mul(1 << self.witnesses)
    }
}

impl<'a> SchemaLowering<'a, '_> {
    /// The object with its delimiters.
    pub(super) fn object_graph(
        &mut self,
        facets: &ObjectFacets<'a>,
        members: ObjectMembers,
        frame: &Delimiters,
    ) -> Expr {
        let (declared, has_additional) = (members.declared.len(), !members.additional.is_empty());
        let mut bounds = CountedBounds::new(facets, &members);
        let order = self.normalizer.reader.options.order;
        let as_set = bounds.witnesses == 0;
        let any_order = order == MemberOrder::Any
            || (order != MemberOrder::Fixed && (as_set || declared <= MAX_UNORDERED_GRAPH));
        let unordered = any_order && declared + usize::from(has_additional) > 1;
        if !members.clauses.is_empty() {
            let is_bounded = bounds.min > 1 || bounds.max.is_some();
            if !(unordered && as_set) || is_bounded || !are_propagated(&members.clauses) {
                return self.object_cases(facets, members, frame);
            }
        }
        if unordered && !as_set && declared > MAX_ANY_ORDER_GRAPH {
            let what = format!(
                "`order: any` with more than {MAX_ANY_ORDER_GRAPH} declared members, where \
                 members are known only by what they satisfy: use `order: declared`"
            );
            self.report_limit(&["properties"], what);
            return Expr::Never;
        }
        if has_additional && bounds.min as usize > declared + 1 && !members.distinct_names {
            let what = "`minProperties` beyond the declared members and one more \
                        (additional names may repeat)";
            self.normalizer.reader.unsupported(self.location, "minProperties", what.into());
            bounds.min = 0;
        }
        match unordered && as_set {
            true => self.member_set(members, bounds, frame),
            false => self.ordered_members(members, bounds, unordered, frame),
        }
    }

    /// The object as a member set: its members in any order.
    fn member_set(
        &mut self,
        mut members: ObjectMembers,
        bounds: CountedBounds,
        Delimiters { open, close, comma, empty }: &Delimiters,
    ) -> Expr {
        if members.declared.len() <= MAX_MEMBER_RULES {
            // As rules, members that several alternatives have in common are parsed together.
            self.make_rules(&mut members);
        }
        let may_be_empty = bounds.min == 0
            && members.declared.iter().all(|m| !m.required)
            && members.clauses.iter().all(|clause| !clause.absent.is_empty());
        let mut unique = Vec::with_capacity(members.declared.len());
        for member in members.declared {
            let required = member.required;
            let bodies = member.variants.into_iter().map(|(_, body)| body);
            unique.extend(bodies.map(|body| ir::Member { body, required }));
        }
        let additional = members.additional.into_iter().flat_map(|member| member.variants);
        let set = Members {
            unique,
            repeatable: additional.map(|(_, body)| body).collect(),
            separator: comma.clone(),
            min: bounds.min.max(u32::from(may_be_empty)),
            count_repeatable: members.distinct_names,
            max: bounds.max,
            clauses: members.clauses,
        };
        let whole = Expr::seq([open.clone(), Expr::Members(Box::new(set)), close.clone()]);
        if may_be_empty { Expr::alt([empty.clone(), whole]) } else { whole }
    }

    /// The object as one object for each case of its clauses: they are multiplied out.
    fn object_cases(
        &mut self,
        facets: &ObjectFacets<'a>,
        mut members: ObjectMembers,
        frame: &Delimiters,
    ) -> Expr {
        let present = members.required.clone();
        let mut cases = Some(vec![ClauseCase { present, absent: Vec::new() }]);
        for clause in std::mem::take(&mut members.clauses) {
            cases = cases.and_then(|cases| divide(cases, &clause));
        }
        let Some(cases) = cases.filter(|_| self.normalizer.reader.spend(1)) else {
            let what = format!(
                "more than {MAX_CLAUSE_CASES} combinations of members that depend on each other: \
                 `order: fixed`, `maxProperties`, a `minProperties` above 1, and members that \
                 exclude others beside conditions on three or more multiply them"
            );
            let keywords = ["dependentRequired", "dependentSchemas", "dependencies", "allOf"];
            self.report_limit(&keywords, what);
            return Expr::Never;
        };
        let mut out = Vec::with_capacity(cases.len());
        for case in cases {
            let members = members.in_case(&case);
            out.push(self.object_graph(facets, members, frame));
        }
        Expr::alt(out)
    }

    /// The object as a graph. `unordered`: declared members come in any order.
    fn ordered_members(
        &mut self,
        mut members: ObjectMembers,
        bounds: CountedBounds,
        unordered: bool,
        frame: &Delimiters,
    ) -> Expr {
        let declared = members.declared.len();
        let fixed = self.normalizer.reader.options.order == MemberOrder::Fixed;
        let required = Some(&members.required[..]).filter(|_| !fixed);
        let sequences = Sequences::new(&members.declared, required);
        let layers = bounds.layers();
        let positions = if unordered { 1 << declared } else { 2 * declared + 1 };
        if layers.saturating_mul(positions) > MAX_NODES.max(2 * declared + 1) {
            let what = format!(
                "counting {declared} members in {layers} counts needs more than {MAX_NODES} nodes"
            );
            self.report_limit(&["minProperties", "maxProperties", "not"], what);
            return Expr::Never;
        }
        if unordered {
            // Each member is on many edges.
            self.make_rules(&mut members);
        } else {
            // Each of these members is on two edges.
            let repeated = &mut members.declared[..sequences.common_from];
            repeated.iter_mut().for_each(|member| self.make_rule(member));
        }
        let graph = MemberOrderGraph {
            graph: InternedGraph::new(),
            bounds,
            members: &members,
            additional_last: fixed,
            sequences,
        };
        graph.build(frame, unordered)
    }

    /// Makes a rule of each member, except additional ones with distinct names: those names must be
    /// called by the object's own rule.
    fn make_rules(&mut self, members: &mut ObjectMembers) {
        let ObjectMembers { declared, additional, distinct_names, .. } = members;
        let additional = if *distinct_names { &mut [] } else { &mut additional[..] };
        declared.iter_mut().chain(additional).for_each(|member| self.make_rule(member));
    }

    /// Makes a rule of each variant of a member.
    fn make_rule(&mut self, member: &mut ObjectMember) {
        for (_, body) in &mut member.variants {
            let whole = std::mem::replace(body, Expr::Never);
            *body = Expr::Ref(self.rule("member".into(), whole));
        }
    }
}

/// Declared members that are present in a case, and those that are absent.
#[derive(Clone)]
struct ClauseCase {
    present: Vec<usize>,
    absent: Vec<usize>,
}

/// The cases in which a clause is met, which exclude each other. `None`: too many.
fn divide(cases: Vec<ClauseCase>, clause: &PresenceClause) -> Option<Vec<ClauseCase>> {
    let mut out = Vec::new();
    for mut case in cases {
        fuel::charge(1 + case.present.len() + case.absent.len());
        let decided = |case: &ClauseCase, member: usize| {
            (case.present.contains(&member), case.absent.contains(&member))
        };
        let is_met = |(member, present): (usize, bool)| {
            let (has, lacks) = decided(&case, member);
            if present { has } else { lacks }
        };
        if clause.literals().any(is_met) {
            out.push(case);
            continue;
        }
        for (member, present) in clause.literals() {
            if decided(&case, member) != (false, false) {
                continue;
            }
            let mut met = case.clone();
            let (list, opposite) = match present {
                true => (&mut met.present, &mut case.absent),
                false => (&mut met.absent, &mut case.present),
            };
            list.push(member);
            opposite.push(member);
            out.push(met);
        }
        if out.len() > MAX_CLAUSE_CASES {
            return None;
        }
    }
    Some(out)
}

impl ObjectMembers {
    /// The members of the objects of a case.
    fn in_case(&self, case: &ClauseCase) -> ObjectMembers {
        let mut out = self.clone();
        for &member in &case.present {
            if !out.declared[member].required {
                out.declared[member].required = true;
                out.required.push(member);
            }
        }
        let is_absent = |member: &usize| case.absent.contains(member);
        let (declared, required) = (std::mem::take(&mut out.declared), &mut out.required);
        let indices = |member: usize| member - case.absent.iter().filter(|&&i| i < member).count();
        required.iter_mut().for_each(|member| *member = indices(*member));
        let kept = declared.into_iter().enumerate().filter(|(i, _)| !is_absent(i));
        out.declared = kept.map(|(_, member)| member).collect();
        out
    }
}

/// A graph whose nodes are interned by position and counts.
type MemberGraph = InternedGraph<(Position, MemberCounts)>;

/// The graph of an object under construction.
struct MemberOrderGraph<'m> {
    graph: MemberGraph,
    bounds: CountedBounds,
    members: &'m ObjectMembers,
    /// Whether no declared member may follow an additional one.
    additional_last: bool,
    sequences: Sequences,
}

impl MemberOrderGraph<'_> {
    /// The object with its delimiters. `unordered`: declared members come in any order.
    fn build(mut self, frame: &Delimiters, unordered: bool) -> Expr {
        let Delimiters { open, close, comma, empty } = frame;
        let (start, end) = (MemberGraph::START, MemberGraph::END);
        let zero = MemberCounts {
            total: 0,
            distinct: 0,
            additional: false,
            missing: (1 << self.bounds.witnesses) - 1,
        };
        let none_required = self.members.declared.iter().all(|member| !member.required);
        if none_required && self.bounds.min == 0 && zero.missing == 0 {
            self.graph.edge(start, empty.clone(), end);
        }
        let first_positions: Vec<Remaining> = match unordered {
            true => vec![Remaining::Except(0)],
            false => {
                let sequences = 0..self.sequences.list.len();
                sequences.map(|sequence| Remaining::From(sequence, 0)).collect()
            }
        };
        for remaining in first_positions {
            let first = self.graph.node((Position::BeforeMember(remaining), zero));
            self.graph.edge(start, open.clone(), first);
        }
        while let Some(((position, counts), node)) = self.graph.pop() {
            match position {
                Position::BeforeMember(remaining) => self.add_member_edges(node, remaining, counts),
                Position::BeforeDeclared(remaining) => {
                    self.add_declared_edges(node, remaining, counts)
                }
                Position::AfterMember(remaining) => {
                    if self.sequences.may_end(remaining, &self.members.declared)
                        && counts.distinct >= self.bounds.min
                        && counts.missing == 0
                    {
                        self.graph.edge(node, close.clone(), end);
                    }
                    if !self.members.additional.is_empty()
                        || self.sequences.has_remaining(remaining)
                    {
                        let next = self.graph.node((Position::BeforeMember(remaining), counts));
                        self.graph.edge(node, comma.clone(), next);
                    }
                }
            }
        }
        self.graph.finish()
    }

    /// Adds the edges of a node before any member.
    fn add_member_edges(&mut self, node: u32, remaining: Remaining, counts: MemberCounts) {
        self.add_declared_edges(node, remaining, counts);
        let after = match self.additional_last {
            true if !self.sequences.may_end(remaining, &self.members.declared) => return,
            true => Remaining::From(AS_DECLARED, self.members.declared.len()),
            false => remaining,
        };
        for member in &self.members.additional {
            self.add_edges_of(node, member, Position::AfterMember(after), counts, true);
        }
    }

    /// Adds the edges of a node before a declared member.
    fn add_declared_edges(&mut self, node: u32, remaining: Remaining, counts: MemberCounts) {
        let members = &self.members.declared;
        match remaining {
            Remaining::From(sequence, position) => {
                let Some(&i) = self.sequences.list[sequence].members.get(position) else {
                    return;
                };
                let next = self.sequences.remaining_from(sequence, position + 1);
                self.add_edges_of(node, &members[i], Position::AfterMember(next), counts, false);
                if !members[i].required {
                    // Without additional members, both positions are equal.
                    let position = if self.members.additional.is_empty() {
                        Position::BeforeMember(next)
                    } else {
                        Position::BeforeDeclared(next)
                    };
                    let skip = self.graph.node((position, counts));
                    self.graph.edge(node, Expr::Empty, skip);
                }
            }
            Remaining::Except(taken) => {
                for (i, member) in members.iter().enumerate().filter(|(i, _)| taken >> i & 1 == 0) {
                    self.add_edges_of(
                        node,
                        member,
                        Position::AfterMember(Remaining::Except(taken | 1 << i)),
                        counts,
                        false,
                    );
                }
            }
        }
    }

    /// Adds the edges of a member: one for each variant that is not redundant.
    fn add_edges_of(
        &mut self,
        from: u32,
        member: &ObjectMember,
        position: Position,
        counts: MemberCounts,
        is_additional: bool,
    ) {
        let Some(next) = self.count_member(counts, is_additional) else { return };
        let mut reached: Vec<(u32, u32)> = Vec::new();
        for (witnesses, body) in &member.variants {
            let missing = next.missing & !witnesses;
            // A variant with fewer witnesses that reaches the same count has all values of this
            // one.
            if !reached.iter().any(|&(other, fewer)| other == missing && fewer & !witnesses == 0) {
                reached.push((missing, *witnesses));
                let after = self.graph.node((position, MemberCounts { missing, ..next }));
                self.graph.edge(from, body.clone(), after);
            }
        }
    }

    /// The counts after one more member; `None` if the upper bound is exceeded.
    fn count_member(&self, counts: MemberCounts, is_additional: bool) -> Option<MemberCounts> {
        let total = match self.bounds.max {
            Some(max) if counts.total >= max => return None,
            Some(_) => counts.total + 1,
            None => 0,
        };
        let distinct = counts.distinct
            + u32::from(!is_additional || !counts.additional || self.members.distinct_names);
        let additional = counts.additional
            || (is_additional && self.bounds.min > 0 && !self.members.distinct_names);
        Some(MemberCounts {
            total,
            distinct: distinct.min(self.bounds.min),
            additional,
            missing: counts.missing,
        })
    }
}
