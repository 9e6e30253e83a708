//! Closed objects and arrays, for [`Undeclared::Forbidden`](super::super::Undeclared): what a
//! schema does not declare is forbidden. Applied to the facets of each alternative before it is
//! lowered.

use std::borrow::Cow;
use std::rc::Rc;

use super::super::read::doc::LocId;
use super::super::read::facets::{
    ArrayFacets, ArrayPart, Evaluates, Facets, ObjectFacets, ObjectPart,
};

impl<'a> Facets<'a> {
    /// Forbids additional members if some are declared and nothing constrains the others, and
    /// likewise additional elements. A required name counts as declared. An object or array that
    /// needs more than what is declared stays as it is.
    pub(crate) fn close_undeclared(&self) -> Cow<'_, Facets<'a>> {
        let (object, array) = (self.object.closing_part(), self.array.closing_part());
        if object.is_none() && array.is_none() {
            return Cow::Borrowed(self);
        }
        let mut out = self.clone();
        if let Some(part) = object {
            out.object.parts.push(Rc::new(part));
        }
        if let Some(part) = array {
            out.array.parts.push(Rc::new(part));
        }
        Cow::Owned(out)
    }
}

impl<'a> ObjectFacets<'a> {
    /// What forbids all members but the declared ones.
    fn closing_part(&self) -> Option<ObjectPart<'a>> {
        let any_part =
            |evaluates: Evaluates| self.parts.iter().any(|part| part.evaluates == evaluates);
        if !any_part(Evaluates::Named) || any_part(Evaluates::All) || !self.witnesses.is_empty() {
            return None;
        }
        let properties = self.parts.iter().flat_map(|part| part.properties.iter());
        let mut seen = crate::hash::HashSet::default();
        let names: Vec<(&'a str, LocId)> = properties
            .map(|(name, _)| *name)
            .chain(self.required.iter().copied())
            .filter(|name| seen.insert(*name))
            .map(|name| (name, LocId::TRUE))
            .collect();
        let patterns = self.parts.iter().flat_map(|part| part.patterns.iter());
        let patterns: Vec<_> =
            patterns.map(|(pattern, _)| (pattern.clone(), LocId::TRUE)).collect();
        if patterns.is_empty() && names.len() < self.min as usize {
            return None;
        }
        let mut part = ObjectPart::new(names);
        part.patterns = patterns;
        part.additional = Some(LocId::FALSE);
        part.evaluates = Evaluates::All;
        Some(part)
    }
}

impl ArrayFacets {
    /// What forbids all elements after the declared ones.
    fn closing_part(&self) -> Option<ArrayPart> {
        let has_prefix =
            |part: &Rc<ArrayPart>| part.evaluates == Evaluates::Named && !part.prefix.is_empty();
        let is_closed = self.parts.iter().any(|part| part.evaluates == Evaluates::All);
        if !self.contains.is_empty()
            || !self.parts.iter().any(has_prefix)
            || is_closed
            || self.prefix() < self.min as usize
        {
            return None;
        }
        let prefix = vec![LocId::TRUE; self.prefix()];
        Some(ArrayPart { prefix, rest: Some(LocId::FALSE), evaluates: Evaluates::All })
    }
}
