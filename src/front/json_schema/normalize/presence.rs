//! Choices that only say which members are present, as clauses.
//!
//! n of them, such as `dependentRequired`, have up to 2^n combinations. As clauses they stay n
//! conditions of one alternative, which a member set of the grammar tracks while members are read.

use std::rc::Rc;

use super::super::read::facets::{Facets, JsonTypes, clauses_of};
use super::distribute::Choice;
use super::{Alternatives, Normalizer};
use crate::front::json_schema::options::MemberOrder;
use crate::hash::HashMap;
use crate::ir::{PresenceClause, are_propagated};

/// Whether a member set decides these clauses.
fn are_decided<'n>(clauses: &[PresenceClause<&'n str>]) -> bool {
    let mut indices: HashMap<&'n str, usize> = HashMap::default();
    let mut index = |name| {
        let next = indices.len();
        Some(*indices.entry(name).or_insert(next))
    };
    let indexed: Vec<PresenceClause> =
        clauses.iter().map(|clause| clause.filter_map(&mut index)).collect();
    are_propagated(&indexed)
}

impl<'a> Normalizer<'a> {
    /// Makes clauses of the choices that only say which members are present, given what else holds.
    /// Returns the alternatives with the clauses, and the other choices. None become clauses where
    /// a member set cannot decide them: they would be multiplied out later, knowing less.
    pub(super) fn take_clauses(
        &mut self,
        base: Alternatives<'a>,
        mut choices: Vec<Choice<'a>>,
    ) -> (Alternatives<'a>, Vec<Choice<'a>>) {
        let [only] = &base[..] else { return (base, choices) };
        let is_fixed = self.reader.options.order == MemberOrder::Fixed;
        if is_fixed || only.object.max.is_some() || only.object.min > 1 {
            return (base, choices);
        }
        let (mut types, mut all) = (only.types, only.object.clauses.clone());
        let taken: Vec<bool> = choices
            .iter()
            .map(|choice| match self.clauses_of_choice(choice, only) {
                Some((allowed, clauses)) => {
                    types = types.intersect(allowed);
                    all.extend(clauses);
                    true
                }
                None => false,
            })
            .collect();
        if !are_decided(&all) {
            return (base, choices);
        }
        let mut taken = taken.into_iter();
        choices.retain(|_| !taken.next().unwrap_or(false));
        let mut out = Facets::of_types(types);
        out.object.require_clauses(&all);
        out = only.clone().conjoin(&out);
        (Rc::new((!out.types.is_empty()).then_some(out).into_iter().collect()), choices)
    }

    /// A choice as clauses, with the types that it allows. `None`: it says more, or the clauses are
    /// too many.
    fn clauses_of_choice(
        &self,
        choice: &Choice<'a>,
        base: &Facets<'a>,
    ) -> Option<(JsonTypes, Vec<PresenceClause<&'a str>>)> {
        let mut types = JsonTypes::default();
        let mut of_objects = Vec::with_capacity(choice.alternatives.len());
        for facets in choice.alternatives.iter() {
            let allowed = base.types.intersect(facets.types);
            let mut others = facets.clone();
            if !facets.object.allows_all() {
                let object = &mut *others.object;
                (object.required, object.forbidden, object.clauses) = Default::default();
            }
            let says_more = !self.subsumes(&others, &Facets { types: allowed, ..base.clone() })
                || self.declarations_count() && !facets.evaluates_within(base);
            if says_more {
                return None;
            }
            types = types.union(allowed);
            of_objects.extend(allowed.meets(JsonTypes::OBJECT).then_some(facets));
        }
        if of_objects.is_empty() {
            return Some((types, Vec::new()));
        }
        Some((types, clauses_of(of_objects.into_iter())?))
    }
}
