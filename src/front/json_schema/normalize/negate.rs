//! Negation: the alternatives of `not S`, for `not`, `if` and overlapping `oneOf` branches.
//!
//! By De Morgan, a negated schema object is a disjunction: one alternative for each keyword that a
//! value can violate. `minimum: 3` becomes `exclusiveMaximum: 3` on numbers; `required: [a]`
//! becomes an object without `a`; `additionalProperties: S` becomes an object with a [`Witness`]:
//! an additional member that violates `S`. Keywords that cannot be negated are reported.

use std::rc::Rc;

use super::super::error::SchemaErrorReason as Reason;
use super::super::format;
use super::super::read::doc::LocId;
use super::super::read::facets::{
    ArrayFacets, ArrayPart, Bound, Contains, Evaluates, Facets, JsonTypes, NameTest, NumberFacets,
    ObjectFacets, ObjectPart, StringFacets, UnenforcedKeyword, Witness,
};
use super::super::read::keywords::{Conditional, ParsedKeywords};
use super::{Alternatives, FUEL_PER_LOCATION, Normalizer};
use crate::decimal::Decimal;
use crate::hash::HashSet;
use crate::spec::json::{Json, Object};

/// Fuel for an element before the one that an alternative is about.
const FUEL_PER_POSITION: usize = 4;

impl<'a> Normalizer<'a> {
    /// The alternatives of the negation of a schema object. `loc` is the negated location.
    pub(super) fn negate_object(&mut self, loc: LocId, object: &'a Object) -> Rc<Vec<Facets<'a>>> {
        let positive = loc.negated();
        let ParsedKeywords {
            facets,
            all_of,
            any_of,
            one_of,
            conditionals,
            unevaluated_properties,
            unevaluated_items,
        } = self.reader.parse_keywords(positive, object);
        let mut out = Vec::new();
        for item in &facets.unenforced {
            self.report_not_negatable(item.loc, item.keyword, &mut out);
        }
        if !out.is_empty() {
            return Rc::new(out);
        }
        self.negate_facets(positive, facets, &mut out);
        for schema in all_of {
            out.extend(self.expand(schema.negated()).iter().cloned());
        }
        for (_, branches) in any_of {
            let none = self.alternatives_of(branches.into_iter().map(LocId::negated));
            out.extend(none.iter().cloned());
        }
        for branches in one_of {
            self.negate_one_of(positive, &branches, &mut out);
        }
        for conditional in conditionals {
            self.negate_conditional(conditional, &mut out);
        }
        let unevaluated = [unevaluated_properties, unevaluated_items]
            .map(|schema| schema.filter(|&schema| !self.reader.doc.is_always_true(schema)));
        if unevaluated != [None, None] {
            self.negate_unevaluated(positive, object, unevaluated, &mut out);
        }
        if self.reader.tracks_evaluation {
            out = out.iter().map(Facets::without_evaluation).collect();
        }
        Rc::new(out)
    }

    /// Adds the alternatives in which the other keywords of a schema object hold, and a member or
    /// an element that nothing evaluates violates an `unevaluated...` keyword.
    fn negate_unevaluated(
        &mut self,
        loc: LocId,
        object: &'a Object,
        [members, elements]: [Option<LocId>; 2],
        out: &mut Vec<Facets<'a>>,
    ) {
        let mut parsed = self.reader.parse_keywords(loc, object);
        (parsed.unevaluated_properties, parsed.unevaluated_items) = (None, None);
        if self.applies_any_of(&parsed) {
            let keyword =
                if members.is_some() { "unevaluatedProperties" } else { "unevaluatedItems" };
            return self.report_not_negatable(loc, keyword, out);
        }
        for facets in self.expand_object(loc, parsed).iter() {
            if let Some(schema) = members {
                let applied = self.apply_unevaluated_properties(facets, schema);
                let part = applied.object.parts.get(facets.object.parts.len());
                let witness = part.and_then(|part| additional_witness(part));
                out.extend(witness.map(|w| facets.clone().conjoin(&with_witness(w))));
            }
            if let Some(schema) = elements {
                let applied = self.apply_unevaluated_items(facets, loc, schema);
                let part = applied.array.parts.get(facets.array.parts.len());
                let violated = part.and_then(|part| violated_rest(part));
                out.extend(violated.map(|violated| facets.clone().conjoin(&violated)));
            }
        }
    }

    /// Whether `anyOf` applies in place. Its alternatives are sets of branches that hold, and other
    /// branches may hold as well and evaluate more. True also if the fuel does not suffice.
    fn applies_any_of(&mut self, parsed: &ParsedKeywords<'a>) -> bool {
        let mut found = !parsed.any_of.is_empty();
        let (mut pending, mut seen) = (in_place_schemas(parsed), HashSet::default());
        while let Some(loc) = pending.pop().filter(|_| !found) {
            let loc = self.reader.follow_references(loc);
            // What a negated schema evaluates does not count.
            let object = self.reader.doc.object(loc).filter(|_| !loc.is_negated());
            let Some(object) = object.filter(|_| seen.insert(loc)) else { continue };
            found = !self.reader.spend(FUEL_PER_LOCATION + object.len());
            let parsed = self.reader.parse_keywords(loc, object);
            found |= !parsed.any_of.is_empty();
            pending.extend(in_place_schemas(&parsed));
        }
        found
    }

    /// Adds the alternatives in which the condition holds and the consequence fails.
    fn negate_conditional(&mut self, conditional: Conditional<'a>, out: &mut Vec<Facets<'a>>) {
        match conditional {
            Conditional::IfThenElse { condition, then, otherwise } => {
                for (condition, consequence) in
                    [(condition, then), (condition.negated(), otherwise)]
                {
                    if let Some(consequence) = consequence {
                        let violated = self.alternatives_of([condition, consequence.negated()]);
                        out.extend(violated.iter().cloned());
                    }
                }
            }
            Conditional::Dependency { trigger, names, schema, .. } => {
                let required = vec![trigger];
                let present = ObjectFacets { required, ..ObjectFacets::default() };
                for name in names {
                    let forbidden = vec![name];
                    out.push(Facets::objects(ObjectFacets { forbidden, ..present.clone() }));
                }
                let present = Facets::objects(present);
                if let Some(schema) = schema {
                    out.extend(
                        self.expand(schema.negated())
                            .iter()
                            .map(|facets| present.clone().conjoin(facets)),
                    );
                }
            }
        }
    }

    /// Adds the alternatives in which no branch holds, or two do.
    fn negate_one_of(&mut self, loc: LocId, branches: &[LocId], out: &mut Vec<Facets<'a>>) {
        /// The largest number of branches; pairs of them are conjoined.
        const MAX_BRANCHES: usize = 16;
        if branches.len() > MAX_BRANCHES {
            return self.report_not_negatable(loc, "oneOf", out);
        }
        let none = self.alternatives_of(branches.iter().map(|b| b.negated()));
        out.extend(none.iter().cloned());
        for (i, &first) in branches.iter().enumerate() {
            for &second in &branches[i + 1..] {
                // Two equal branches are one conjunct. That is right: both hold or neither does.
                out.extend(self.alternatives_of([first, second]).iter().cloned());
            }
        }
    }

    /// Reports a keyword that cannot be negated. If the policy relaxes it, everything is allowed.
    fn report_not_negatable(&mut self, loc: LocId, keyword: &'a str, out: &mut Vec<Facets<'a>>) {
        let what = "the negation of this keyword, by `not`, `if` or overlapping `oneOf` branches";
        self.reader.unsupported(loc, keyword, what.into());
        let (types, reason) = (JsonTypes::ALL, Reason::Unsupported(what.into()));
        let mut open = Facets::any();
        open.unenforced.push(UnenforcedKeyword { types, loc, keyword, reason });
        out.push(open);
    }

    /// Adds one alternative for each assertion of facets that a value can violate.
    fn negate_facets(&mut self, loc: LocId, facets: Facets<'a>, out: &mut Vec<Facets<'a>>) {
        let Facets { types, number, string, array, object, values, unenforced: _ } = facets;
        if let Some(values) = &values {
            // Contradictory keywords leave no listed value; then every value violates them.
            out.extend(self.negate_values(loc, values).iter().cloned());
        } else if types != JsonTypes::ALL {
            out.push(Facets::of_types(JsonTypes::ALL.minus(types)));
        }
        negate_numbers(&number, out);
        negate_strings(&string, out);
        self.negate_arrays(&array, out);
        negate_objects(&object, out);
    }

    /// Adds one alternative for each constraint on arrays.
    fn negate_arrays(&mut self, array: &ArrayFacets, out: &mut Vec<Facets<'a>>) {
        for (min, max) in violated_bounds(array.min, array.max) {
            out.push(Facets::arrays(ArrayFacets { min, max, ..ArrayFacets::default() }));
        }
        for part in &array.parts {
            self.negate_array_part(part, out);
        }
        for contains in &array.contains {
            for (min, max) in violated_bounds(contains.min, contains.max) {
                let mut array = ArrayFacets::default();
                let evaluates = Evaluates::Nothing;
                array.add_contains(Contains { min, max, evaluates, ..contains.clone() });
                out.push(Facets::arrays(array));
            }
        }
        if let Some(loc) = array.unique {
            let repeats = Some(loc);
            out.push(Facets::arrays(ArrayFacets { min: 2, repeats, ..ArrayFacets::default() }));
        }
    }

    /// The alternatives of all values but these.
    pub(super) fn negate_values(&mut self, loc: LocId, values: &[&'a Json]) -> Alternatives<'a> {
        static BOOLEANS: [Json; 2] = [Json::Bool(false), Json::Bool(true)];
        let mut rest = Facets::any();
        let mut compound = Vec::new();
        for &value in values {
            match value {
                Json::Null => rest.types = rest.types.minus(JsonTypes::NULL),
                Json::Bool(_) => rest.types = rest.types.minus(JsonTypes::BOOLEAN),
                Json::String(text) => rest.string.excluded.push(text),
                Json::Number(n) => rest.number.excluded.push(Decimal::parse(n.as_str())),
                Json::Array(items) => compound.push(self.values_but_array(loc, items)),
                Json::Object(object) => compound.push(self.values_but_object(loc, object)),
            }
        }
        let named = |b: &Json| values.contains(&b);
        let booleans: Vec<&'a Json> = BOOLEANS.iter().filter(|b| !named(b)).collect();
        let mut out = vec![rest];
        if booleans.len() == 1 {
            out.push(Facets { types: JsonTypes::BOOLEAN, ..Facets::of_values(booleans) });
        }
        let mut out = Rc::new(out);
        for others in compound {
            out = self.product(out, others.into(), loc, "enum");
        }
        out
    }

    /// The values that are not this array.
    fn values_but_array(&mut self, loc: LocId, items: &'a [Json]) -> Vec<Facets<'a>> {
        let length = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let mut out = vec![Facets::of_types(JsonTypes::ALL.minus(JsonTypes::ARRAY))];
        for (min, max) in violated_bounds(length, Some(length)) {
            out.push(Facets::arrays(ArrayFacets { min, max, ..ArrayFacets::default() }));
        }
        for (i, item) in items.iter().enumerate() {
            if !self.reader.spend(FUEL_PER_POSITION * (i + 1)) {
                break;
            }
            let other = self.reader.doc.constant_location(loc, item).negated();
            let parts = vec![Rc::new(ArrayPart::of_element(i, other))];
            let (min, max) = (length, Some(length));
            out.push(Facets::arrays(ArrayFacets { parts, min, max, ..ArrayFacets::default() }));
        }
        out
    }

    /// The values that are not this object.
    fn values_but_object(&mut self, loc: LocId, object: &'a Object) -> Vec<Facets<'a>> {
        let mut out = vec![Facets::of_types(JsonTypes::ALL.minus(JsonTypes::OBJECT))];
        out.push(with_witness(Witness {
            matching: None,
            not_named: object.iter().map(|(name, _)| name).collect(),
            not_matching: Vec::new(),
            schema: LocId::TRUE,
        }));
        for (name, value) in object.iter() {
            out.push(without_member(name));
            let other = self.reader.doc.constant_location(loc, value).negated();
            out.push(with_member(name, other));
        }
        out
    }

    /// Adds the arrays with an element that this part does not allow.
    fn negate_array_part(&mut self, part: &ArrayPart, out: &mut Vec<Facets<'a>>) {
        for (i, schema) in part.prefix.iter().enumerate() {
            if !self.reader.spend(FUEL_PER_POSITION * (i + 1)) {
                break;
            }
            let parts = vec![Rc::new(ArrayPart::of_element(i, schema.negated()))];
            let min = i as u32 + 1;
            out.push(Facets::arrays(ArrayFacets { parts, min, ..ArrayFacets::default() }));
        }
        out.extend(violated_rest(part));
    }
}

/// The schemas that apply to the same value, except the branches of `anyOf`.
fn in_place_schemas(parsed: &ParsedKeywords<'_>) -> Vec<LocId> {
    let conditional = |conditional: &Conditional<'_>| match *conditional {
        Conditional::IfThenElse { condition, then, otherwise } => {
            [Some(condition), then, otherwise]
        }
        Conditional::Dependency { schema, .. } => [schema, None, None],
    };
    let conditionals = parsed.conditionals.iter().flat_map(conditional).flatten();
    let all = parsed.all_of.iter().chain(parsed.one_of.iter().flatten()).copied();
    all.chain(conditionals).collect()
}

/// The arrays with an element after the part's prefix that the part does not allow.
fn violated_rest<'a>(part: &ArrayPart) -> Option<Facets<'a>> {
    let schema = part.rest?.negated();
    let from = part.prefix.len() as u32;
    let evaluates = Evaluates::Nothing;
    let contains = vec![Contains { schema, min: 1, max: None, from, evaluates }];
    Some(Facets::arrays(ArrayFacets { contains, ..ArrayFacets::default() }))
}

/// The objects with this witness.
fn with_witness<'a>(witness: Witness<'a>) -> Facets<'a> {
    let witnesses = vec![Rc::new(witness)];
    Facets::objects(ObjectFacets { witnesses, ..ObjectFacets::default() })
}

/// The objects without a member of this name.
fn without_member(name: &str) -> Facets<'_> {
    Facets::objects(ObjectFacets { forbidden: vec![name], ..ObjectFacets::default() })
}

/// The objects with a member of this name that satisfies a schema.
fn with_member(name: &str, schema: LocId) -> Facets<'_> {
    let (required, parts) = (vec![name], vec![Rc::new(ObjectPart::of_member(name, schema))]);
    Facets::objects(ObjectFacets { required, parts, ..ObjectFacets::default() })
}

/// Adds one alternative for each constraint on numbers.
fn negate_numbers(number: &NumberFacets, out: &mut Vec<Facets<'_>>) {
    for (bound, order) in number.bounds() {
        let mut number = NumberFacets::default();
        let outside = Bound { exclusive: !bound.exclusive, ..bound.clone() };
        number.add_bound(outside, order.reverse());
        out.push(Facets::numbers(number));
    }
    for unit in &number.multiples {
        let not_multiples = vec![unit.clone()];
        out.push(Facets::numbers(NumberFacets { not_multiples, ..NumberFacets::default() }));
    }
}

/// Adds one alternative for each constraint on strings.
fn negate_strings<'a>(string: &StringFacets<'a>, out: &mut Vec<Facets<'a>>) {
    let is_exact = |max: &u32| {
        !string.patterns.iter().any(|pattern| format::is_narrower_length(pattern.source, *max))
    };
    for (min, max) in violated_bounds(string.min, string.max.filter(is_exact)) {
        out.push(Facets::strings(StringFacets { min, max, ..StringFacets::default() }));
    }
    for pattern in &string.patterns {
        let patterns = vec![pattern.negation()];
        out.push(Facets::strings(StringFacets { patterns, ..StringFacets::default() }));
    }
}

/// An additional member that an object part does not allow.
fn additional_witness<'a>(part: &ObjectPart<'a>) -> Option<Witness<'a>> {
    Some(Witness {
        matching: None,
        not_named: part.properties.iter().map(|(name, _)| *name).collect(),
        not_matching: part.patterns.iter().map(|(p, _)| NameTest::Pattern(p.clone())).collect(),
        schema: part.additional?.negated(),
    })
}

/// Adds one alternative for each constraint on objects.
fn negate_objects<'a>(object: &ObjectFacets<'a>, out: &mut Vec<Facets<'a>>) {
    for (min, max) in violated_bounds(object.min, object.max) {
        out.push(Facets::objects(ObjectFacets { min, max, ..ObjectFacets::default() }));
    }
    out.extend(object.required.iter().map(|name| without_member(name)));
    for &names in &object.names {
        let test = NameTest::Schema(names.negated());
        out.push(with_witness(Witness::of_names(test, LocId::TRUE)));
    }
    for part in &object.parts {
        for (pattern, schema) in &part.patterns {
            let test = NameTest::Pattern(pattern.clone());
            out.push(with_witness(Witness::of_names(test, schema.negated())));
        }
        out.extend(additional_witness(part).map(with_witness));
        for &(name, schema) in &part.properties {
            out.push(with_member(name, schema.negated()));
        }
    }
}

/// The bounds `(min, max)` below and above a range of lengths or counts.
fn violated_bounds(min: u32, max: Option<u32>) -> impl Iterator<Item = (u32, Option<u32>)> {
    let below = (min > 0).then(|| (0, Some(min - 1)));
    let above = max.filter(|&max| max < u32::MAX).map(|max| (max + 1, None));
    below.into_iter().chain(above)
}
