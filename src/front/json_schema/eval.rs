//! Evaluation of facets without a grammar: does a value satisfy them, does any value. Normalize
//! step of the pipeline, see the [module](super).
//!
//! Normalization filters the values of `enum` and `const` with it, and finds alternatives that are
//! empty.

use smallvec::smallvec;

use super::decimal::Decimal;
use super::doc::{LocId, Locs};
use super::facets::{ArrayFacets, Facets, NameTest, ObjectFacets, StringFacets, TypeSet, Witness};
use super::normalize::Normalizer;
use crate::spec::json::{Json, Object};

impl<'a> Normalizer<'a> {
    /// Whether a value satisfies all facets except `values`. Keywords that are not enforced are
    /// reported if they constrain the value.
    pub(super) fn accepts(&mut self, facets: &Facets<'a>, value: &Json) -> bool {
        let types = TypeSet::of(value);
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

    /// Whether a string satisfies the facets.
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

    /// Whether an array satisfies the facets.
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

    /// Whether an object satisfies the facets.
    fn accepts_object(&mut self, facets: &ObjectFacets<'a>, object: &Object) -> bool {
        object.len() >= facets.min as usize
            && facets.max.is_none_or(|max| object.len() <= max as usize)
            && facets.required.iter().all(|name| object.get(name).is_some())
            && facets.forbidden.iter().all(|name| object.get(name).is_none())
            && object.iter().all(|(name, value)| {
                let locs = self.member_schemas(facets, name);
                self.satisfies(locs, value) && self.accepts_name(facets, name)
            })
            && facets.witnesses.iter().all(|witness| {
                object.iter().any(|(name, value)| {
                    self.can_be_witness(witness, name)
                        && self.satisfies(vec![witness.schema], value)
                })
            })
    }

    /// Whether a member of this name can be the witness.
    pub(super) fn can_be_witness(&mut self, witness: &Witness<'a>, name: &str) -> bool {
        match &witness.matching {
            Some(test) => self.passes(test, name),
            None => {
                !witness.not_named.contains(&name)
                    && !witness.not_matching.iter().any(|test| self.passes(test, name))
            }
        }
    }

    /// Whether a name passes a test.
    fn passes(&mut self, test: &NameTest<'a>, name: &str) -> bool {
        match test {
            NameTest::Pattern(pattern) => self
                .pattern_dfa(pattern)
                .is_some_and(|dfa| dfa.accepts(name.chars().map(u32::from))),
            NameTest::Schema(loc) => self.satisfies(vec![*loc], &Json::String(name.to_owned())),
        }
    }

    /// Whether a value satisfies all of the locations.
    pub(super) fn satisfies(&mut self, locs: impl Into<Locs>, value: &Json) -> bool {
        let conj = self.conjunction(locs);
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

    /// Whether `propertyNames` allows this name.
    pub(super) fn accepts_name(&mut self, facets: &ObjectFacets<'a>, name: &str) -> bool {
        facets.names.is_empty()
            || self.satisfies(facets.names.clone(), &Json::String(name.to_owned()))
    }

    /// The schemas of the member of this name.
    pub(super) fn member_schemas(&mut self, facets: &ObjectFacets<'a>, name: &str) -> Locs {
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

    /// Whether certainly no value satisfies the facets. Searches `depth` levels of members and
    /// elements.
    pub(super) fn is_empty(&mut self, facets: &Facets<'a>, depth: usize) -> bool {
        let mut types = facets.types;
        if let Some(values) = &facets.values {
            return !values.iter().any(|value| self.accepts(facets, value));
        }
        if types.meets(TypeSet::STRING) && self.has_no_text(&facets.string) {
            types = types.minus(TypeSet::STRING);
        }
        if types.meets(TypeSet::ARRAY) && depth > 0 {
            let needed = (facets.array.min as usize).min(facets.array.prefix() + 1);
            if (0..needed).any(|i| self.is_false(facets.array.element(i), depth - 1)) {
                types = types.minus(TypeSet::ARRAY);
            }
        }
        if types.meets(TypeSet::OBJECT) && depth > 0 {
            let impossible = facets.object.required.iter().any(|name| {
                let locs = self.member_schemas(&facets.object, name);
                self.is_false(locs, depth - 1) || !self.accepts_name(&facets.object, name)
            });
            if impossible {
                types = types.minus(TypeSet::OBJECT);
            }
        }
        types.is_none()
    }

    /// Whether certainly no value satisfies all of the locations.
    fn is_false(&mut self, locs: Locs, depth: usize) -> bool {
        let conj = self.conjunction(locs);
        let alternatives = self.alternatives(&conj);
        alternatives.iter().all(|f| self.is_empty(f, depth))
    }

    /// Whether the patterns and excluded strings leave no string. Lengths alone are compared
    /// elsewhere.
    fn has_no_text(&mut self, facets: &StringFacets<'a>) -> bool {
        if facets.patterns.len() + usize::from(!facets.excluded.is_empty()) < 2 {
            return false;
        }
        self.text_dfa(facets).is_some_and(|dfa| dfa.is_empty())
    }
}
