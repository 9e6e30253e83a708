//! Conditions on which members of a member set occur: clauses in conjunctive normal form.
//!
//! "If `a` occurs, so does `b`" is the clause {b, not a}. Members occur one after the other, so the
//! set of those seen so far only grows. A member may come if clauses can be met afterwards.
//! That is a satisfiability problem, and unit propagation decides it for the clauses that
//! [`are_propagated`] takes: it excludes exactly the members that may no longer occur.

use super::member_bits::MemberBits;
use crate::disjoint_sets::DisjointSets;
use crate::fuel;

/// A clause: some member of `present` occurs, or some member of `absent` does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PresenceClause<M = usize> {
    /// Members of which one suffices.
    pub present: Vec<M>,
    /// Members of which one is missing suffices.
    pub absent: Vec<M>,
}

impl<M: Copy> PresenceClause<M> {
    /// The members, each with whether its presence meets the clause.
    pub(crate) fn literals(&self) -> impl Iterator<Item = (M, bool)> + Clone + '_ {
        let absent = self.absent.iter().map(|&member| (member, false));
        self.present.iter().map(|&member| (member, true)).chain(absent)
    }

    /// The clause over other names of its members; those without one are left out.
    pub(crate) fn filter_map<N>(&self, name: impl FnMut(M) -> Option<N>) -> PresenceClause<N> {
        let mut name = name;
        PresenceClause {
            present: self.present.iter().filter_map(|&member| name(member)).collect(),
            absent: self.absent.iter().filter_map(|&member| name(member)).collect(),
        }
    }

    /// Whether the clause has no member, so that it fails.
    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_empty() && self.absent.is_empty()
    }

    /// Whether objects with certain members meet the clause.
    pub(crate) fn is_met(&self, mut occurs: impl FnMut(M) -> bool) -> bool {
        self.literals().any(|(member, present)| occurs(member) == present)
    }
}

/// Whether unit propagation decides which members may follow others. That is so if each connected
/// group of clauses is of one of these kinds:
///
/// * At most one member is absent in each: as soon as no clause is left with one member, all
///   other members together meet them.
/// * At most two members in each: propagation leaves whole clauses (2-SAT). Members that contradict
///   themselves are excluded beforehand.
/// * Nothing is present in any: only those clauses fail of which all members occur.
/// * One clause has present members only, and the others, of absent members, are within it.
///
/// Cost: linear.
pub(crate) fn are_propagated(clauses: &[PresenceClause]) -> bool {
    let end = clauses.iter().flat_map(PresenceClause::literals).map(|(i, _)| i + 1).max();
    let mut groups = DisjointSets::new(end.unwrap_or(0));
    for clause in clauses {
        let literals = 1 + clause.present.len() + clause.absent.len();
        fuel::charge(literals * (1 + groups.len() / 1_024));
        let mut members = clause.literals().map(|(member, _)| member);
        if let Some(first) = members.next() {
            members.for_each(|member| groups.join(first, member));
        }
    }
    let mut kinds = vec![GroupKind::default(); groups.len()];
    for clause in clauses {
        if let Some((member, _)) = clause.literals().next() {
            kinds[groups.root(member)].add(clause);
        }
    }
    kinds.iter().all(GroupKind::is_propagated)
}

/// What is known of the clauses of a group.
#[derive(Clone, Default)]
struct GroupKind {
    /// Some clause has more than one absent member.
    excludes: bool,
    /// Some clause has more than two members.
    is_long: bool,
    /// Clauses with present members.
    positive: usize,
    /// Some clause has both.
    is_mixed: bool,
    /// Members that are present in some clause.
    chosen: MemberBits,
    /// Members that are absent in some clause.
    excluded: MemberBits,
}

impl GroupKind {
    fn add(&mut self, clause: &PresenceClause) {
        self.excludes |= clause.absent.len() > 1;
        self.is_long |= clause.present.len() + clause.absent.len() > 2;
        self.positive += usize::from(!clause.present.is_empty());
        self.is_mixed |= !clause.present.is_empty() && !clause.absent.is_empty();
        clause.present.iter().for_each(|&member| self.chosen.insert(member));
        clause.absent.iter().for_each(|&member| self.excluded.insert(member));
    }

    fn is_propagated(&self) -> bool {
        let chooses_one = self.positive == 1
            && !self.is_mixed
            && self.excluded.without(&self.chosen).next().is_none();
        !self.excludes || !self.is_long || self.positive == 0 || chooses_one
    }
}

/// The clauses of a member set that its required and its impossible members leave open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenClauses {
    clauses: Vec<PresenceClause>,
    /// The clauses of each member.
    by_member: Vec<Vec<u32>>,
}

/// Members that certainly occur, and those that certainly do not.
#[derive(Clone, Default)]
struct Decided {
    present: MemberBits,
    absent: MemberBits,
}

impl Decided {
    fn get(&self, member: usize) -> Option<bool> {
        let present = self.present.contains(member);
        (present || self.absent.contains(member)).then_some(present)
    }

    fn insert(&mut self, member: usize, present: bool) {
        let list = if present { &mut self.present } else { &mut self.absent };
        list.insert(member);
    }
}

impl OpenClauses {
    fn new(clauses: Vec<PresenceClause>) -> OpenClauses {
        let mut by_member: Vec<Vec<u32>> = Vec::new();
        for (i, clause) in clauses.iter().enumerate() {
            for (member, _) in clause.literals() {
                by_member.resize_with(by_member.len().max(member + 1), Vec::new);
                by_member[member].push(i as u32);
            }
        }
        OpenClauses { clauses, by_member }
    }

    /// The clauses that are left open. Adds the members that they require to `required`, and takes
    /// those that they exclude from `usable`. `None`: they contradict each other.
    pub(crate) fn settle(
        clauses: &[PresenceClause],
        required: &mut MemberBits,
        usable: &mut MemberBits,
    ) -> Option<OpenClauses> {
        if clauses.is_empty() {
            return Some(OpenClauses::default());
        }
        let all = OpenClauses::new(clauses.to_vec());
        let mut decided = Decided { present: required.clone(), absent: MemberBits::default() };
        let members = 0..all.by_member.len();
        let impossible = members.clone().rev().filter(|&member| !usable.contains(member));
        impossible.for_each(|member| decided.absent.insert(member));
        if !clauses.iter().all(|clause| all.propagate_clause(clause, &mut decided).is_some()) {
            return None;
        }
        if !all.propagate(members.clone().collect(), &mut decided) {
            return None;
        }
        // Without clauses on both, what propagation leaves contradicts nothing.
        let has_exclusions = clauses.iter().any(|clause| clause.absent.len() > 1);
        let has_choices = clauses.iter().any(|clause| !clause.present.is_empty());
        let assumed_members = if has_exclusions && has_choices { members } else { 0..0 };
        for member in assumed_members {
            if fuel::check().is_err() {
                break;
            }
            for present in [true, false] {
                let mut assumed = decided.clone();
                if decided.get(member).is_none() {
                    assumed.insert(member, present);
                    if !all.propagate(vec![member], &mut assumed) {
                        decided.insert(member, !present);
                        if !all.propagate(vec![member], &mut decided) {
                            return None;
                        }
                    }
                }
            }
        }
        let is_met = |clause: &PresenceClause| {
            clause.literals().any(|(member, present)| decided.get(member) == Some(present))
        };
        let if_open = |member: usize| decided.get(member).is_none().then_some(member);
        let open = clauses.iter().filter(|clause| !is_met(clause));
        let open = open.map(|clause| clause.filter_map(if_open));
        let open = OpenClauses::new(open.collect());
        decided.present.without(required).collect::<Vec<_>>().into_iter().for_each(|member| {
            required.insert(member);
        });
        *usable = usable.without(&decided.absent).collect();
        Some(open)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// The clauses that are not met if no member but these occurs.
    pub(crate) fn unmet(
        &self,
        occurs: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = &PresenceClause> {
        fuel::charge(self.clauses.len() / 4);
        self.clauses.iter().filter(move |clause| !clause.is_met(&occurs))
    }

    /// Adds to `excluded` the members that cannot occur together with those that are `present`.
    pub(crate) fn exclude(&self, present: MemberBits, excluded: &mut MemberBits) {
        let members = (0..self.by_member.len()).filter(|&member| present.contains(member));
        let queue = members.collect();
        let mut decided = Decided { present, absent: std::mem::take(excluded) };
        // Those that may come are consistent.
        self.propagate(queue, &mut decided);
        *excluded = decided.absent;
    }

    /// Decides what the clauses of decided members imply. `false`: a clause fails.
    fn propagate(&self, mut queue: Vec<usize>, decided: &mut Decided) -> bool {
        while let Some(member) = queue.pop() {
            for &clause in &self.by_member[member] {
                match self.propagate_clause(&self.clauses[clause as usize], decided) {
                    Some(next) => queue.extend(next),
                    None => return false,
                }
            }
        }
        true
    }

    /// Decides the only open member of a clause, which is returned. `None`: the clause fails.
    fn propagate_clause(
        &self,
        clause: &PresenceClause,
        decided: &mut Decided,
    ) -> Option<Option<usize>> {
        fuel::charge(1 + (clause.present.len() + clause.absent.len()) / 8);
        let mut open = None;
        for (member, present) in clause.literals() {
            match decided.get(member) {
                Some(occurs) if occurs == present => return Some(None),
                Some(_) => {}
                None if open.is_none_or(|only| only == (member, present)) => {
                    open = Some((member, present));
                }
                None => return Some(None),
            }
        }
        let (member, present) = open?;
        decided.insert(member, present);
        Some(Some(member))
    }
}
