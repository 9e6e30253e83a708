//! [`Undeclared::Forbidden`](super::Undeclared): objects and arrays that declare some members or elements have no others.

use std::borrow::Cow;
use std::rc::Rc;

use super::doc::LocId;
use super::facets::{ArrayPart, Covers, Facets, ObjectPart};

impl<'a> Facets<'a> {
    /// Without members and elements that nothing declares, where some are declared and nothing is said of the others. A required
    /// name counts as declared.
    pub(super) fn closed(&self) -> Cow<'_, Facets<'a>> {
        let (object, array) = (&self.object, &self.array);
        let members = |covers: Covers| object.parts.iter().any(|part| part.covers == covers);
        let close_object = members(Covers::Named) && !members(Covers::All);
        let close_array = array.contains.is_empty()
            && array
                .parts
                .iter()
                .any(|part| part.covers == Covers::Named && !part.prefix.is_empty())
            && !array.parts.iter().any(|part| part.covers == Covers::All);
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
            part.covers = Covers::All;
            out.object.parts.push(Rc::new(part));
        }
        if close_array {
            let prefix = vec![LocId::TRUE; array.prefix()];
            out.array.parts.push(Rc::new(ArrayPart {
                prefix,
                rest: Some(LocId::FALSE),
                covers: Covers::All,
            }));
        }
        Cow::Owned(out)
    }
}
