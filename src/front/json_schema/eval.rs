//! Deciding things about facets without a grammar: whether a given value satisfies them, whether none can.

use smallvec::smallvec;

use super::decimal::Decimal;
use super::doc::LocId;
use super::facets::{ArrayFacets, Facets, NameTest, ObjectFacets, SomeMember, StringFacets, Types};
use super::normalize::{Locs, Normalizer};
use crate::spec::json::{Json, Object};

impl<'a> Normalizer<'a> {
    /// Whether the value satisfies everything (its membership in `values` aside). Keywords that are not enforced are
    /// reported if they would matter.
    pub(super) fn accepts(&mut self, facets: &Facets<'a>, value: &Json) -> bool {
        let types = Types::of(value);
        let listed = facets.string.excluded.len() + facets.number.excluded.len();
        if !facets.types.meets(types) || !self.spend(1 + listed) {
            return false;
        }
        let accepted = match value {
            Json::Null | Json::Bool(_) => true,
            Json::Number(n) => {
                facets.number.is_free() || facets.number.allow(&Decimal::parse(n.as_str()))
            }
            Json::String(text) => self.accepts_text(&facets.string, text),
            Json::Array(items) => self.accepts_array(&facets.array, items),
            Json::Object(object) => self.accepts_object(&facets.object, object),
        };
        if accepted {
            self.report_unenforced(facets, types);
        }
        accepted
    }

    pub(super) fn accepts_text(&mut self, facets: &StringFacets<'a>, text: &str) -> bool {
        if facets.is_free() {
            return true;
        }
        let length = text.chars().count();
        length >= facets.min as usize
            && facets.max.is_none_or(|max| length <= max as usize)
            && !facets.excluded.contains(&text)
            && facets.patterns.iter().all(|p| {
                self.pattern_dfa(p)
                    .is_none_or(|dfa| dfa.accepts(text.chars().map(u32::from)) != p.negated)
            })
    }

    fn accepts_array(&mut self, facets: &ArrayFacets, items: &[Json]) -> bool {
        items.len() >= facets.min as usize
            && facets.max.is_none_or(|max| items.len() <= max as usize)
            && items.iter().enumerate().all(|(i, item)| self.satisfies(facets.element(i), item))
            && facets.contains.iter().all(|contains| {
                let counted = items.iter().skip(contains.from as usize);
                let hits =
                    counted.filter(|item| self.satisfies(vec![contains.schema], item)).count();
                hits >= contains.min as usize && contains.max.is_none_or(|max| hits <= max as usize)
            })
            && (facets.unique.is_none() || {
                let mut seen = crate::hash::HashSet::default();
                items.iter().all(|item| seen.insert(super::facets::canonical(item)))
            })
    }

    fn accepts_object(&mut self, facets: &ObjectFacets<'a>, object: &Object) -> bool {
        object.len() >= facets.min as usize
            && facets.max.is_none_or(|max| object.len() <= max as usize)
            && facets.required.iter().all(|name| object.get(name).is_some())
            && facets.forbidden.iter().all(|name| object.get(name).is_none())
            && object.iter().all(|(name, value)| {
                let locs = self.member(facets, name);
                self.satisfies(locs, value) && self.accepts_name(facets, name)
            })
            && facets.some.iter().all(|some| {
                object.iter().any(|(name, value)| {
                    self.is_candidate(some, name) && self.satisfies(vec![some.schema], value)
                })
            })
    }

    /// Whether a name is in the class of names a required member may have.
    pub(super) fn is_candidate(&mut self, some: &SomeMember<'a>, name: &str) -> bool {
        match &some.matching {
            Some(test) => self.is_named(test, name),
            None => {
                !some.not_named.contains(&name)
                    && !some.not_matching.iter().any(|test| self.is_named(test, name))
            }
        }
    }

    fn is_named(&mut self, test: &NameTest<'a>, name: &str) -> bool {
        match test {
            NameTest::Pattern(pattern) => self
                .pattern_dfa(pattern)
                .is_some_and(|dfa| dfa.accepts(name.chars().map(u32::from))),
            NameTest::Schema(loc) => self.satisfies(vec![*loc], &Json::String(name.to_owned())),
        }
    }

    /// Whether a value satisfies all of the locations.
    pub(super) fn satisfies(&mut self, locs: impl Into<Locs>, value: &Json) -> bool {
        let conj = self.conj(locs);
        let alternatives = self.alternatives(&conj);
        alternatives.iter().any(|f| {
            if !self.spend(1 + f.values.as_ref().map_or(0, |values| values.len())) {
                return false;
            }
            let listed = f.values.as_ref().is_none_or(|values| {
                let wanted = super::facets::canonical(value);
                values.iter().any(|v| super::facets::canonical(v) == wanted)
            });
            listed && self.accepts(f, value)
        })
    }

    /// Whether a member may have this name.
    pub(super) fn accepts_name(&mut self, facets: &ObjectFacets<'a>, name: &str) -> bool {
        facets.names.is_empty()
            || self.satisfies(facets.names.clone(), &Json::String(name.to_owned()))
    }

    /// Locations that constrain the member of this name.
    pub(super) fn member(&mut self, facets: &ObjectFacets<'a>, name: &str) -> Locs {
        if facets.forbidden.contains(&name) {
            return smallvec![LocId::FALSE];
        }
        let mut out = Locs::new();
        if !self.spend(facets.parts.len()) {
            return out;
        }
        for part in &facets.parts {
            let before = out.len();
            out.extend(part.property(name));
            for (pattern, schema) in &part.patterns {
                if self
                    .pattern_dfa(pattern)
                    .is_some_and(|dfa| dfa.accepts(name.chars().map(u32::from)))
                {
                    out.push(*schema);
                }
            }
            if out.len() == before && part.property(name).is_none() {
                out.extend(part.additional);
            }
        }
        out
    }

    /// Whether certainly no value satisfies the facets. Looks `depth` levels into members and elements.
    pub(super) fn is_empty(&mut self, facets: &Facets<'a>, depth: usize) -> bool {
        let mut types = facets.types;
        if let Some(values) = &facets.values {
            return !values.iter().any(|value| self.accepts(facets, value));
        }
        if types.meets(Types::STRING) && self.no_text(&facets.string) {
            types = types.minus(Types::STRING);
        }
        if types.meets(Types::ARRAY) && depth > 0 {
            let needed = (facets.array.min as usize).min(facets.array.prefix() + 1);
            if (0..needed).any(|i| self.nothing(facets.array.element(i), depth - 1)) {
                types = types.minus(Types::ARRAY);
            }
        }
        if types.meets(Types::OBJECT) && depth > 0 {
            let impossible = facets.object.required.iter().any(|name| {
                let locs = self.member(&facets.object, name);
                self.nothing(locs, depth - 1) || !self.accepts_name(&facets.object, name)
            });
            if impossible {
                types = types.minus(Types::OBJECT);
            }
        }
        types.is_none()
    }

    fn nothing(&mut self, locs: Locs, depth: usize) -> bool {
        let conj = self.conj(locs);
        let alternatives = self.alternatives(&conj);
        alternatives.iter().all(|f| self.is_empty(f, depth))
    }

    /// Whether the patterns exclude each other.
    fn no_text(&mut self, facets: &StringFacets<'a>) -> bool {
        if facets.patterns.len() + usize::from(!facets.excluded.is_empty()) < 2 {
            return false;
        }
        self.text_dfa(facets).is_some_and(|dfa| dfa.is_empty())
    }
}
