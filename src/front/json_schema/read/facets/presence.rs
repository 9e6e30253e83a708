//! Clauses on the presence of members.

use super::lists::extend_hashed;
use super::{Facets, ObjectFacets};
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::ir::PresenceClause;

/// The largest number of clauses of a disjunction.
const MAX_CLAUSES: usize = 1_024;
/// Comparisons of clauses for one disjunction.
const MAX_COMPARISONS: usize = 1 << 16;

impl<'a> ObjectFacets<'a> {
    /// Adds clauses.
    pub(crate) fn require_clauses(&mut self, clauses: &[PresenceClause<&'a str>]) {
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
            clause.literals().for_each(|(name, _)| by_name.entry(name).or_default().push(i));
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
                let (name, present) = literal;
                let (meets, fails) =
                    if present { (&required, &forbidden) } else { (&forbidden, &required) };
                if meets.contains(name) {
                    is_met[i] = true;
                    break;
                }
                if !fails.contains(name) {
                    has_several |= open.is_some_and(|other| other != literal);
                    open = Some(literal);
                }
            }
            let (Some((name, present)), false, false) = (open, has_several, is_met[i]) else {
                continue;
            };
            is_met[i] = true;
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
            clause.present.retain(|name| !forbidden.contains(name));
            clause.absent.retain(|name| !required.contains(name));
        }
    }

    /// The members that clauses declare, as required members are declared: those of clauses that
    /// require one. A name may occur several times.
    pub(crate) fn declared_by_clauses(&self) -> impl Iterator<Item = &'a str> + '_ {
        let require = self.clauses.iter().filter(|clause| !clause.present.is_empty());
        require.flat_map(|clause| clause.literals().map(|(name, _)| name))
    }

    /// Whether objects with certain members meet all clauses.
    pub(crate) fn meets_clauses(&self, has: impl Fn(&str) -> bool) -> bool {
        self.clauses.iter().all(|clause| clause.is_met(&has))
    }
}

/// The disjunction of alternatives as clauses: of each alternative only the required and forbidden
/// members and the clauses count. `None`: too many clauses, or too much work.
pub(crate) fn clauses_of<'f, 'a: 'f>(
    alternatives: impl Iterator<Item = &'f Facets<'a>>,
) -> Option<Vec<PresenceClause<&'a str>>> {
    let mut out = vec![PresenceClause { present: Vec::new(), absent: Vec::new() }];
    let mut compared = 0;
    for facets in alternatives {
        let ObjectFacets { required, forbidden, clauses, .. } = &*facets.object;
        let unit = |name: &'a str, present: bool| PresenceClause {
            present: if present { vec![name] } else { Vec::new() },
            absent: if present { Vec::new() } else { vec![name] },
        };
        let mut own: Vec<PresenceClause<&'a str>> = clauses.clone();
        own.extend(required.iter().map(|&name| unit(name, true)));
        own.extend(forbidden.iter().map(|&name| unit(name, false)));
        let mut all: Vec<PresenceClause<&'a str>> = Vec::new();
        for clause in &out {
            for other in &own {
                let both = union(clause, other);
                let steps = 1 + both.present.len() + both.absent.len() + all.len();
                fuel::charge(steps.div_ceil(4));
                compared += steps;
                let is_tautology = both.present.iter().any(|name| both.absent.contains(name));
                if is_tautology || all.iter().any(|known| implies(known, &both)) {
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

/// A clause that is met if either one is.
fn union<'a>(a: &PresenceClause<&'a str>, b: &PresenceClause<&'a str>) -> PresenceClause<&'a str> {
    let mut out = a.clone();
    out.present.extend(b.present.iter().filter(|name| !a.present.contains(name)));
    out.absent.extend(b.absent.iter().filter(|name| !a.absent.contains(name)));
    out
}

/// Whether a clause is met wherever another one is.
pub(crate) fn implies(a: &PresenceClause<&str>, b: &PresenceClause<&str>) -> bool {
    let within = |a: &[&str], b: &[&str]| a.len() <= b.len() && a.iter().all(|n| b.contains(n));
    within(&a.present, &b.present) && within(&a.absent, &b.absent)
}
