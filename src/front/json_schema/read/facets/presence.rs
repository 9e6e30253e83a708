//! Clauses on the presence of members, and of members with certain values.
//!
//! A tested schema divides the values of a member into two *cells*: those that satisfy it and those
//! that do not. k schemas make up to 2^k cells. In the member set of a grammar each cell is a
//! member of its own, and at most one of them occurs.

use super::super::doc::{LocId, Locs};
use super::ObjectFacets;
use super::lists::extend_hashed;
use crate::fuel;
use crate::hash::{HashMap, HashSet, IndexMap};
use crate::ir::PresenceClause;

/// A member of this name whose value satisfies a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemberTest<'a> {
    pub(crate) name: &'a str,
    /// [`LocId::TRUE`] where only the presence counts.
    pub(crate) schema: LocId,
}

impl<'a> MemberTest<'a> {
    /// Any member of this name.
    pub(crate) fn any(name: &'a str) -> Self {
        MemberTest { name, schema: LocId::TRUE }
    }

    /// Whether only the presence counts.
    pub(crate) fn is_any(self) -> bool {
        self.schema == LocId::TRUE
    }

    /// A member of this name whose value does not satisfy the schema.
    fn negated(self) -> Self {
        MemberTest { schema: self.schema.negated(), ..self }
    }
}

/// A condition on which members are present.
pub(crate) type MemberClause<'a> = PresenceClause<MemberTest<'a>>;

/// The cells of each member whose value clauses test: the schemas that all values of a cell
/// satisfy, and the index of the cell as a member of a set.
pub(crate) type MemberCells<'a> = IndexMap<&'a str, Vec<(Locs, usize)>>;

/// The largest number of clauses over cells.
const MAX_CELL_CLAUSES: usize = 4_096;

/// The largest number of clauses of a disjunction.
const MAX_CLAUSES: usize = 1_024;
/// Comparisons of clauses for one disjunction.
const MAX_COMPARISONS: usize = 1 << 16;

impl<'a> ObjectFacets<'a> {
    /// Adds clauses.
    pub(crate) fn require_clauses(&mut self, clauses: &[MemberClause<'a>]) {
        extend_hashed(&mut self.clauses, clauses);
        self.propagate_clauses();
    }

    /// Simplifies the clauses by the required and the forbidden members, to which clauses with one
    /// member are added (unit propagation). A clause that fails becomes empty.
    pub(super) fn propagate_clauses(&mut self) {
        if self.clauses.is_empty() {
            return;
        }
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::default();
        for (i, clause) in self.clauses.iter().enumerate() {
            clause.literals().for_each(|(test, _)| by_name.entry(test.name).or_default().push(i));
        }
        let mut required: HashSet<&str> = self.required.iter().copied().collect();
        let mut forbidden: HashSet<&str> = self.forbidden.iter().copied().collect();
        let mut is_met = vec![false; self.clauses.len()];
        let mut queue: Vec<usize> = (0..self.clauses.len()).rev().collect();
        while let Some(i) = queue.pop() {
            let clause = &self.clauses[i];
            fuel::charge(2 + (clause.present.len() + clause.absent.len()) / 4);
            if is_met[i] {
                continue;
            }
            let (mut open, mut has_several) = (None, false);
            for literal in clause.literals() {
                let (test, present) = literal;
                let occurs = test.is_any() && required.contains(test.name);
                if occurs || forbidden.contains(test.name) {
                    is_met[i] |= occurs == present;
                } else {
                    has_several |= open.is_some_and(|other| other != literal);
                    open = Some(literal);
                }
            }
            let (Some((MemberTest { name, schema }, present)), false, false) =
                (open, has_several, is_met[i])
            else {
                continue;
            };
            is_met[i] = schema == LocId::TRUE;
            if !is_met[i] && !present {
                continue;
            }
            match present {
                true if required.insert(name) => self.required.push(name),
                false if forbidden.insert(name) => self.forbidden.push(name),
                _ => continue,
            }
            queue.extend(&by_name[name]);
        }
        let mut is_met = is_met.into_iter();
        self.clauses.retain(|_| !is_met.next().unwrap_or(false));
        for clause in &mut self.clauses {
            clause.present.retain(|test| !forbidden.contains(test.name));
            clause.absent.retain(|test| !test.is_any() || !required.contains(test.name));
        }
    }

    /// The members that clauses declare, as required members are declared: those of clauses that
    /// require one. A name may occur several times.
    pub(crate) fn declared_by_clauses(&self) -> impl Iterator<Item = &'a str> + '_ {
        let require = self.clauses.iter().filter(|clause| !clause.present.is_empty());
        require.flat_map(|clause| clause.literals().map(|(test, _)| test.name))
    }

    /// The required and forbidden members, the clauses, and the declared members of parts, which
    /// have no others, as clauses.
    pub(crate) fn as_clauses(&self) -> Vec<MemberClause<'a>> {
        let unit = |test: MemberTest<'a>, present: bool| PresenceClause {
            present: if present { vec![test] } else { Vec::new() },
            absent: if present { Vec::new() } else { vec![test] },
        };
        let mut out = self.clauses.clone();
        out.extend(self.forbidden.iter().map(|&name| unit(MemberTest::any(name), false)));
        let mut required: HashMap<&'a str, bool> =
            self.required.iter().map(|&name| (name, false)).collect();
        for &(name, schema) in self.parts.iter().flat_map(|part| &part.properties) {
            let test = MemberTest { name, schema };
            match required.get_mut(name).filter(|_| schema != LocId::FALSE) {
                Some(is_tested) => {
                    *is_tested = true;
                    out.push(unit(test, true));
                }
                None => out.push(unit(test.negated(), false)),
            }
        }
        let untested = self.required.iter().filter(|&name| !required[name]);
        out.extend(untested.map(|&name| unit(MemberTest::any(name), true)));
        out
    }
}

/// The clauses over the cells of members. Cells that are not listed allow no value. `None`: too
/// many clauses.
pub(crate) fn clauses_of_cells<'a>(
    clauses: &[MemberClause<'a>],
    cells: &MemberCells<'a>,
    required: &[&'a str],
) -> Option<Vec<PresenceClause>> {
    let mut out = Vec::new();
    for clause in clauses {
        let mut all = vec![PresenceClause { present: Vec::new(), absent: Vec::new() }];
        for (test, present) in clause.literals() {
            let of_name = cells.get(test.name).into_iter().flatten();
            let satisfy = of_name.filter(|(all, _)| test.is_any() || all.contains(&test.schema));
            let cells: Vec<usize> = satisfy.map(|&(_, cell)| cell).collect();
            if present {
                all.iter_mut().for_each(|clause| clause.present.extend(&cells));
                continue;
            }
            let absent = cells.iter().flat_map(|&cell| {
                let mut each = all.clone();
                each.iter_mut().for_each(|clause| clause.absent.push(cell));
                each
            });
            all = absent.take(MAX_CELL_CLAUSES + 1).collect();
        }
        fuel::charge(all.len());
        out.extend(all);
        if out.len() > MAX_CELL_CLAUSES {
            return None;
        }
    }
    for (name, cells) in cells.iter().filter(|(_, cells)| cells.len() > 1) {
        let members: Vec<usize> = cells.iter().map(|&(_, member)| member).collect();
        for (i, &cell) in members.iter().enumerate() {
            let both = |&other: &usize| vec![cell, other];
            let pairs = members[i + 1..].iter().map(both);
            out.extend(pairs.map(|absent| PresenceClause { present: Vec::new(), absent }));
        }
        if required.contains(name) {
            out.push(PresenceClause { present: members, absent: Vec::new() });
        }
    }
    Some(out)
}

/// The cells of the members that clauses name, as lists of schemas; one without schemas if only the
/// presence counts. `None`: more than `max` schemas test one member.
pub(crate) fn cells_of<'a>(
    clauses: &[MemberClause<'a>],
    max: usize,
) -> Option<IndexMap<&'a str, Vec<Locs>>> {
    let mut cells: IndexMap<&'a str, Vec<Locs>> = IndexMap::default();
    for (test, _) in clauses.iter().flat_map(|clause| clause.literals()) {
        fuel::charge(1);
        let of_name = cells.entry(test.name).or_insert_with(|| vec![Locs::new()]);
        let tests = |loc: &LocId| *loc == test.schema || loc.negated() == test.schema;
        if test.is_any() || of_name[0].iter().any(tests) {
            continue;
        }
        if of_name[0].len() == max {
            return None;
        }
        let mut others = of_name.clone();
        of_name.iter_mut().for_each(|cell| cell.push(test.schema));
        others.iter_mut().for_each(|cell| cell.push(test.schema.negated()));
        of_name.append(&mut others);
    }
    Some(cells)
}

/// The disjunction of conjunctions of clauses, as clauses. `None`: too many, or too much work.
pub(crate) fn disjunction<'a>(
    alternatives: impl Iterator<Item = Vec<MemberClause<'a>>>,
) -> Option<Vec<MemberClause<'a>>> {
    let mut out = vec![PresenceClause { present: Vec::new(), absent: Vec::new() }];
    let mut compared = 0;
    for own in alternatives {
        let mut all: Vec<MemberClause<'a>> = Vec::new();
        for clause in &out {
            for other in &own {
                let literals = clause.literals().chain(other.literals());
                let steps = 1 + literals.clone().count() + all.len();
                fuel::charge(steps.div_ceil(4));
                compared += steps;
                let Some(both) = clause_of(literals) else { continue };
                if all.iter().any(|known| implies(known, &both)) {
                    continue;
                }
                all.retain(|known| !implies(&both, known));
                all.push(both);
            }
            if all.len() > MAX_CLAUSES || compared > MAX_COMPARISONS {
                return None;
            }
        }
        out = all;
    }
    Some(out)
}

/// What a literal allows: an absent member, and one that satisfies a schema or does not.
const ABSENT: u8 = 1;
const SATISFIES: u8 = 2;
const VIOLATES: u8 = 4;

/// The clause of literals; those on one member and schema become one. `None`: it always holds.
fn clause_of<'a>(
    literals: impl Iterator<Item = (MemberTest<'a>, bool)>,
) -> Option<MemberClause<'a>> {
    let mut merged: Vec<(MemberTest<'a>, u8)> = Vec::new();
    for (test, present) in literals {
        let known = merged.iter_mut().find(|(other, _)| {
            let is_alike = |a: LocId, b: LocId| a == b || a.negated() == b;
            other.name == test.name
                && (other.is_any() || test.is_any() || is_alike(other.schema, test.schema))
        });
        if let Some((other, allowed)) = known {
            if other.is_any() {
                other.schema = test.schema;
            }
            *allowed |= allowed_by(test, present, *other);
        } else {
            merged.push((test, allowed_by(test, present, test)));
        }
    }
    let mut out = PresenceClause { present: Vec::new(), absent: Vec::new() };
    for (test, allowed) in merged {
        let any = MemberTest::any(test.name);
        match allowed {
            ABSENT => out.absent.push(any),
            SATISFIES => out.present.push(test),
            VIOLATES => out.present.push(test.negated()),
            _ if allowed & ABSENT == 0 => out.present.push(any),
            _ if allowed & SATISFIES == 0 => out.absent.push(test),
            _ if allowed & VIOLATES == 0 => out.absent.push(test.negated()),
            _ => return None,
        }
    }
    Some(out)
}

/// What a literal allows, with respect to the schema of `by`.
fn allowed_by(test: MemberTest<'_>, present: bool, by: MemberTest<'_>) -> u8 {
    let satisfying = match test.schema == by.schema {
        _ if test.is_any() => SATISFIES | VIOLATES,
        true => SATISFIES,
        false => VIOLATES,
    };
    if present { satisfying } else { (ABSENT | SATISFIES | VIOLATES) & !satisfying }
}

/// Whether a clause is met wherever another one is.
pub(crate) fn implies(a: &MemberClause<'_>, b: &MemberClause<'_>) -> bool {
    let within = |a: &[MemberTest<'_>], b: &[MemberTest<'_>]| {
        a.len() <= b.len() && a.iter().all(|n| b.contains(n))
    };
    within(&a.present, &b.present) && within(&a.absent, &b.absent)
}
