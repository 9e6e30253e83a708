//! Closed objects and arrays, for [`Undeclared::Forbidden`](super::super::Undeclared): what a
//! schema does not declare is forbidden. Applied to the facets of each alternative before it is
//! lowered.

use std::borrow::Cow;
use std::rc::Rc;

use super::super::read::doc::LocId;
use super::super::read::facets::{ArrayPart, Evaluates, Facets, ObjectPart};

impl<'a> Facets<'a> {
    /// Forbids additional members if some are declared and nothing constrains the others, and
    /// likewise additional elements. A required name counts as declared.
    pub(crate) fn close_undeclared(&self) -> Cow<'_, Facets<'a>> {
        let (object, array) = (&self.object, &self.array);
        let any_part =
            |evaluates: Evaluates| object.parts.iter().any(|part| part.evaluates == evaluates);
        let close_object = any_part(Evaluates::Named) && !any_part(Evaluates::All);
        let close_array = array.contains.is_empty()
            && array
                .parts
                .iter()
                .any(|part| part.evaluates == Evaluates::Named && !part.prefix.is_empty())
            && !array.parts.iter().any(|part| part.evaluates == Evaluates::All);
        if !close_object && !close_array {
            return Cow::Borrowed(self);
        }
        let mut out = self.clone();
        if close_object {
            let mut names: Vec<&'a str> = Vec::new();
            let properties =
                object.parts.iter().flat_map(|part| part.properties.iter().map(|(name, _)| *name));
            let mut seen = crate::hash::HashSet::default();
            names.extend(
                properties.chain(object.required.iter().copied()).filter(|name| seen.insert(*name)),
            );
            let mut part =
                ObjectPart::new(names.into_iter().map(|name| (name, LocId::TRUE)).collect());
            let patterns = object.parts.iter().flat_map(|part| part.patterns.iter());
            part.patterns = patterns.map(|(pattern, _)| (pattern.clone(), LocId::TRUE)).collect();
            part.additional = Some(LocId::FALSE);
            part.evaluates = Evaluates::All;
            out.object.parts.push(Rc::new(part));
        }
        if close_array {
            let prefix = vec![LocId::TRUE; array.prefix()];
            out.array.parts.push(Rc::new(ArrayPart {
                prefix,
                rest: Some(LocId::FALSE),
                evaluates: Evaluates::All,
            }));
        }
        Cow::Owned(out)
    }
}
