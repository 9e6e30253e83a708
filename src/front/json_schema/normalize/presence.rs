//! Choices that only say which members are present, or what single values they have, as clauses.
//!
//! n of them, such as `dependentRequired`, have up to 2^n combinations. As clauses they stay n
//! conditions of one alternative, which a member set of the grammar tracks while members are read.
//! A member whose value is tested has a cell for each outcome (see `read::facets::presence`).

use std::rc::Rc;

use super::super::keyword::{Keyword, KeywordVocabulary};
use super::super::options::MemberOrder;
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{
    Facets, JsonTypes, MemberCells, MemberClause, ObjectFacets, ObjectPart, cells_of,
    clauses_of_cells, disjunction,
};
use super::distribute::Choice;
use super::{Alternatives, Normalizer};
use crate::ir::are_propagated;

/// The largest number of schemas that test one member.
const MAX_TESTS: usize = 3;
/// Values are tested in clauses if more combinations than this would be multiplied out.
const MAX_VALUE_COMBINATIONS: usize = 256;

/// A choice as clauses, with the types that it allows.
type ChoiceClauses<'a> = (JsonTypes, Vec<MemberClause<'a>>);

impl<'a> Normalizer<'a> {
    /// Makes clauses of the choices that say no more than which members are present, and what
    /// values they have, given what else holds. Returns the alternatives with the clauses, and the
    /// other choices. None become clauses where a member set cannot decide them: they would be
    /// multiplied out later, knowing less.
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
        let sizes = choices.iter().map(|choice| choice.alternatives.len());
        let multiplies =
            choices.len() > 1 && sizes.fold(1, usize::saturating_mul) > MAX_VALUE_COMBINATIONS;
        for tests_values in [multiplies, false] {
            let taken: Vec<Option<ChoiceClauses<'a>>> = choices
                .iter()
                .map(|choice| self.clauses_of_choice(choice, only, tests_values))
                .collect();
            let (mut types, mut all) = (only.types, only.object.clauses.clone());
            for (allowed, clauses) in taken.iter().flatten() {
                types = types.intersect(*allowed);
                all.extend_from_slice(clauses);
            }
            if self.are_decided(&all, only) {
                let mut taken = taken.into_iter();
                choices.retain(|_| taken.next().is_none_or(|clauses| clauses.is_none()));
                let mut out = Facets::of_types(types);
                out.object.require_clauses(&all);
                out = only.clone().conjoin(&out);
                let out = (!out.types.is_empty()).then_some(out);
                return (Rc::new(out.into_iter().collect()), choices);
            }
        }
        (base, choices)
    }

    /// Whether a member set decides these clauses, given what else holds.
    fn are_decided(&mut self, clauses: &[MemberClause<'a>], base: &Facets<'a>) -> bool {
        let Some(cells) = cells_of(clauses, MAX_TESTS) else { return false };
        let (mut numbered, mut next) = (MemberCells::default(), 0);
        for (name, mut cells) in cells {
            if cells.len() > 1 {
                let given = self.member_schemas(&base.object, name);
                cells.retain(|cell| {
                    let all: Locs = given.iter().chain(cell.iter()).copied().collect();
                    !self.is_contradictory(&all)
                });
            }
            let cells = cells.into_iter().map(|cell| {
                next += 1;
                (cell, next - 1)
            });
            numbered.insert(name, cells.collect());
        }
        let clauses = clauses_of_cells(clauses, &numbered, &base.object.required);
        clauses.is_some_and(|clauses| are_propagated(&clauses))
    }

    /// A choice as clauses. `None`: it says more, or the clauses are too many.
    fn clauses_of_choice(
        &mut self,
        choice: &Choice<'a>,
        base: &Facets<'a>,
        tests_values: bool,
    ) -> Option<ChoiceClauses<'a>> {
        let mut types = JsonTypes::default();
        let mut of_objects = Vec::with_capacity(choice.alternatives.len());
        for facets in choice.alternatives.iter() {
            let allowed = base.types.intersect(facets.types);
            let (mut others, mut object) = (facets.clone(), ObjectFacets::default());
            if !facets.object.allows_all() {
                let rest = &mut *others.object;
                object.required = std::mem::take(&mut rest.required);
                object.forbidden = std::mem::take(&mut rest.forbidden);
                object.clauses = std::mem::take(&mut rest.clauses);
                if tests_values {
                    rest.parts.retain(|part| match self.value_tests(part) {
                        Some(tests) => {
                            object.parts.push(Rc::new(tests));
                            false
                        }
                        None => true,
                    });
                }
            }
            let says_more = !self.subsumes(&others, &Facets { types: allowed, ..base.clone() })
                || self.declarations_count() && !facets.evaluates_within(base);
            if says_more {
                return None;
            }
            types = types.union(allowed);
            of_objects.extend(allowed.meets(JsonTypes::OBJECT).then(|| object.as_clauses()));
        }
        if of_objects.is_empty() {
            return Some((types, Vec::new()));
        }
        Some((types, disjunction(of_objects.into_iter())?))
    }

    /// A part, if it only constrains the values of single members by schemas that divide them.
    fn value_tests(&mut self, part: &ObjectPart<'a>) -> Option<ObjectPart<'a>> {
        if !part.has_properties_only() {
            return None;
        }
        let mut tests = Vec::with_capacity(part.properties.len());
        for &(name, schema) in &part.properties {
            let schema = self.reader.follow_references(schema);
            if self.reader.doc.is_always_true(schema) {
                continue;
            }
            let is_false = self.reader.doc.is_always_true(schema.negated());
            if !is_false && !self.divides_values(schema) {
                return None;
            }
            tests.push((name, if is_false { LocId::FALSE } else { schema }));
        }
        Some(ObjectPart::new(tests))
    }

    /// Whether each value certainly satisfies either a schema or its negation, as both are lowered,
    /// and which one shows without looking into objects and arrays.
    fn divides_values(&mut self, schema: LocId) -> bool {
        let asserts = |(name, _): (&str, _)| {
            let known = Keyword::lookup(name);
            known.is_none_or(|known| {
                matches!(
                    known.vocabulary,
                    KeywordVocabulary::Validation | KeywordVocabulary::Annotation
                )
            })
        };
        let is_plain = self.reader.doc.constant(schema).is_some()
            || self.reader.doc.object(schema).is_some_and(|object| object.iter().all(asserts));
        is_plain
            && !self.reader.patterns.has_narrow_formats
            && self.has_scalar_facets(schema)
            && self.has_scalar_facets(schema.negated())
    }

    /// Whether no alternative of a schema looks into objects and arrays, counts multiples or is
    /// relaxed.
    fn has_scalar_facets(&mut self, schema: LocId) -> bool {
        let alternatives = self.probe(|normalizer| normalizer.alternatives_of([schema]));
        alternatives.is_some_and(|alternatives| {
            alternatives.iter().all(|facets| {
                facets.unenforced.is_empty()
                    && facets.array.allows_all()
                    && facets.object.allows_all()
                    && facets.number.multiples.is_empty()
                    && facets.number.not_multiples.is_empty()
            })
        })
    }
}
