//! `unevaluatedProperties` and `unevaluatedItems`.

use std::rc::Rc;

use super::super::read::doc::LocId;
use super::super::read::facets::{ArrayPart, Evaluates, Facets, ObjectPart};
use super::Normalizer;
use crate::hash::HashSet;

impl<'a> Normalizer<'a> {
    /// Applies `unevaluatedProperties`: members that no part evaluates satisfy `schema`. After
    /// that, all members are evaluated.
    pub(super) fn apply_unevaluated_properties(
        &self,
        facets: &Facets<'a>,
        schema: LocId,
    ) -> Facets<'a> {
        let mut out = facets.clone();
        let evaluating =
            || facets.object.parts.iter().filter(|part| part.evaluates != Evaluates::Nothing);
        if evaluating().any(|part| part.evaluates == Evaluates::All) {
            return out;
        }
        let names: HashSet<&'a str> =
            evaluating().flat_map(|part| part.properties.iter().map(|(name, _)| *name)).collect();
        let mut names: Vec<&'a str> = names.into_iter().collect();
        // The order of these names has no effect, but it must not depend on hashing.
        names.sort_unstable();
        let mut part = ObjectPart::new(names.into_iter().map(|name| (name, LocId::TRUE)).collect());
        part.patterns = evaluating()
            .flat_map(|part| part.patterns.iter().map(|(p, _)| (p.clone(), LocId::TRUE)))
            .collect();
        part.additional = Some(schema);
        part.evaluates = Evaluates::All;
        out.object.parts.push(Rc::new(part));
        out
    }

    /// As [`Normalizer::apply_unevaluated_properties`], for elements.
    pub(super) fn apply_unevaluated_items(
        &mut self,
        facets: &Facets<'a>,
        loc: LocId,
        schema: LocId,
    ) -> Facets<'a> {
        let mut out = facets.clone();
        let evaluating =
            || facets.array.parts.iter().filter(|part| part.evaluates != Evaluates::Nothing);
        if evaluating().any(|part| part.evaluates == Evaluates::All) {
            return out;
        }
        let prefix =
            vec![LocId::TRUE; evaluating().map(|part| part.prefix.len()).max().unwrap_or(0)];
        let contained = facets
            .array
            .contains
            .iter()
            .filter(|c| c.evaluates != Evaluates::Nothing)
            .map(|c| c.schema);
        let mut allowed: Vec<LocId> = [schema].into_iter().chain(contained).collect();
        let rest = if allowed.len() == 1 {
            allowed.remove(0)
        } else {
            self.reader.doc.union_of(loc, allowed)
        };
        out.array.parts.push(Rc::new(ArrayPart {
            prefix,
            rest: Some(rest),
            evaluates: Evaluates::All,
        }));
        out
    }
}
