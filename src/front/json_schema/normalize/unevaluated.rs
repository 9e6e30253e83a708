//! Members and elements that nothing evaluates: `unevaluatedProperties`, `unevaluatedItems`, and
//! [`Undeclared::Forbidden`](super::super::Undeclared).
//!
//! Each adds a part that constrains what the other parts leave, so that all members or elements are
//! evaluated.

use std::borrow::Cow;
use std::rc::Rc;

use smallvec::smallvec;

use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{ArrayPart, Evaluates, Facets, ObjectFacets, ObjectPart};
use super::{EMPTINESS_DEPTH, Normalizer};
use crate::hash::IndexSet;

impl<'a> Normalizer<'a> {
    /// Applies `unevaluatedProperties`: members that no part evaluates satisfy `schema`.
    pub(super) fn apply_unevaluated_properties(
        &self,
        facets: &Facets<'a>,
        schema: LocId,
    ) -> Facets<'a> {
        let mut out = facets.clone();
        let parts = facets.object.parts.iter();
        let evaluating = parts.filter(|part| part.evaluates != Evaluates::Nothing);
        if evaluating.clone().all(|part| part.evaluates != Evaluates::All) {
            out.object.parts.push(Rc::new(part_of_other_members(
                evaluating,
                [].into_iter(),
                schema,
            )));
        }
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
        let parts = facets.array.parts.iter();
        let evaluating = parts.filter(|part| part.evaluates != Evaluates::Nothing);
        if evaluating.clone().any(|part| part.evaluates == Evaluates::All) {
            return out;
        }
        let contains = facets.array.contains.iter();
        let contained = contains.filter(|c| c.evaluates != Evaluates::Nothing).map(|c| c.schema);
        let mut allowed: Vec<LocId> = [schema].into_iter().chain(contained).collect();
        let rest = if allowed.len() == 1 {
            allowed.remove(0)
        } else {
            self.reader.doc.union_of(loc, allowed)
        };
        let prefix = evaluating.map(|part| part.prefix.len()).max().unwrap_or(0);
        out.array.parts.push(Rc::new(part_of_other_elements(prefix, rest)));
        out
    }

    /// Forbids additional members if some are declared and nothing constrains the others, and
    /// likewise additional elements. A name that is required, perhaps if others are present, counts
    /// as declared. An object or array that needs more than what is declared stays as it is.
    pub(crate) fn close_undeclared<'f>(&mut self, facets: &'f Facets<'a>) -> Cow<'f, Facets<'a>> {
        let (object, array) = (&facets.object, &facets.array);
        let any_part =
            |evaluates: Evaluates| object.parts.iter().any(|part| part.evaluates == evaluates);
        let is_open_object = any_part(Evaluates::Named) && !any_part(Evaluates::All);
        let closing = (is_open_object && object.witnesses.is_empty())
            .then(|| {
                let required = object.required.iter().copied().chain(object.declared_by_clauses());
                part_of_other_members(object.parts.iter(), required, LocId::FALSE)
            })
            .filter(|part| self.has_enough_members(object, part));
        let names_elements =
            |part: &ArrayPart| part.evaluates == Evaluates::Named && !part.prefix.is_empty();
        let close_array = array.contains.is_empty()
            && array.parts.iter().any(|part| names_elements(part))
            && !array.parts.iter().any(|part| part.evaluates == Evaluates::All)
            && array.prefix() >= array.min as usize;
        if closing.is_none() && !close_array {
            return Cow::Borrowed(facets);
        }
        let mut out = facets.clone();
        out.object.parts.extend(closing.map(Rc::new));
        if close_array {
            let part = part_of_other_elements(array.prefix(), LocId::FALSE);
            out.array.parts.push(Rc::new(part));
        }
        Cow::Owned(out)
    }

    /// Whether an object of the declared members alone, which `closing` lists, may have as many as
    /// it needs.
    fn has_enough_members(&mut self, object: &ObjectFacets<'a>, closing: &ObjectPart<'a>) -> bool {
        let needed = object.min as usize;
        if needed == 0 {
            return true;
        }
        if !object.clauses.is_empty() {
            // Members that are possible one by one may exclude each other.
            return false;
        }
        let allows_any = |normalizer: &mut Self, schemas: Locs| {
            let probe = |normalizer: &mut Self| normalizer.is_false(schemas, EMPTINESS_DEPTH);
            normalizer.probe(probe) != Some(true)
        };
        for (_, schema) in object.parts.iter().flat_map(|part| &part.patterns) {
            if allows_any(self, smallvec![*schema]) {
                return true;
            }
        }
        let mut possible = 0;
        for (name, _) in &closing.properties {
            let schemas = self.member_schemas(object, name);
            let is_possible = self.accepts_name(object, name) && allows_any(self, schemas);
            possible += usize::from(is_possible);
        }
        possible >= needed
    }
}

/// A part in which members satisfy a schema, apart from those that the other parts or `declared`
/// name.
fn part_of_other_members<'p, 'a: 'p>(
    others: impl Iterator<Item = &'p Rc<ObjectPart<'a>>> + Clone,
    declared: impl Iterator<Item = &'a str>,
    schema: LocId,
) -> ObjectPart<'a> {
    let properties = others.clone().flat_map(|part| part.properties.iter().map(|(name, _)| *name));
    let names: IndexSet<&str> = properties.chain(declared).collect();
    let patterns = others.flat_map(|part| &part.patterns);
    ObjectPart {
        patterns: patterns.map(|(pattern, _)| (pattern.clone(), LocId::TRUE)).collect(),
        additional: Some(schema),
        evaluates: Evaluates::All,
        ..ObjectPart::new(names.into_iter().map(|name| (name, LocId::TRUE)).collect())
    }
}

/// A part in which elements satisfy a schema, apart from the first ones.
fn part_of_other_elements(first: usize, schema: LocId) -> ArrayPart {
    ArrayPart { prefix: vec![LocId::TRUE; first], rest: Some(schema), evaluates: Evaluates::All }
}
