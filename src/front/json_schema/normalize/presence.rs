//! Choices that only say which members are present, as clauses.
//!
//! n of them, such as `dependentRequired`, have up to 2^n combinations. As clauses they stay n
//! conditions of one alternative, which a member set of the grammar tracks while members are read.

use std::rc::Rc;

use super::super::read::facets::{Facets, JsonTypes, clauses_of};
use super::distribute::Choice;
use super::{Alternatives, Normalizer};
use crate::ir::PresenceClause;

impl<'a> Normalizer<'a> {
    /// Makes clauses of the choices that only say which members are present, given what else holds.
    /// Returns the alternatives with the clauses, and the other choices.
    pub(super) fn take_clauses(
        &mut self,
        base: Alternatives<'a>,
        mut choices: Vec<Choice<'a>>,
    ) -> (Alternatives<'a>, Vec<Choice<'a>>) {
        let [only] = &base[..] else { return (base, choices) };
        let (mut types, mut all) = (only.types, Vec::new());
        choices.retain(|choice| match self.clauses_of_choice(choice, only) {
            Some((allowed, clauses)) => {
                types = types.intersect(allowed);
                all.extend(clauses);
                false
            }
            None => true,
        });
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
