//! Facets: the assertions of a schema, or of a conjunction of schemas, by type of value.
//!
//! [`Facets`] have one field for each type: bounds of numbers, lengths and patterns of strings, and
//! so on. Each constrains only values of its own type, as in JSON Schema. So two facets are
//! conjoined field by field, without looking at subschemas: the constraints of members and elements
//! stay lists of parts, whose locations are conjoined when a member is lowered.

mod equality;
mod json_types;
mod lists;
mod number;
mod presence;

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::super::error::SchemaErrorReason as Reason;
use super::doc::{LocId, Locs};
use super::shared_facets::{SharedFacets, Unconstrained};
use crate::hash::HashMap;
use crate::ir::PresenceClause;
use crate::spec::json::Json;
pub(super) use equality::intersect_values;
pub(crate) use equality::{are_equal, canonical};
pub use json_types::JsonTypes;
pub(crate) use lists::{MembershipTest, common_item, is_subset};
use lists::{extend_distinct, extend_hashed, extend_shared};
pub(crate) use number::{Bound, NumberFacets, divides};
pub(crate) use presence::{
    MemberCells, MemberClause, MemberTest, cells_of, clauses_of_cells, disjunction, implies,
};

/// An assertion that a string contains a match of a pattern, or that it contains none. Equality
/// ignores the location.
#[derive(Clone, Debug)]
pub(crate) struct PatternUse<'a> {
    /// The text, of the document or of a format.
    pub(crate) source: &'a str,
    /// The pattern in place of `source` once this use is negated: for formats a wider one, if
    /// `source` does not describe all of their texts.
    pub(crate) opposite: &'a str,
    pub(crate) negated: bool,
    /// Where the schema asserts it, for error messages.
    pub(crate) loc: LocId,
    pub(crate) keyword: &'static str,
}

impl<'a> PatternUse<'a> {
    /// The assertion of a keyword that a string contains a match.
    pub(crate) fn new(source: &'a str, loc: LocId, keyword: &'static str) -> Self {
        PatternUse { source, opposite: source, negated: false, loc, keyword }
    }

    /// The opposite assertion.
    pub(crate) fn negation(&self) -> Self {
        let (source, opposite) = (self.opposite, self.source);
        PatternUse { source, opposite, negated: !self.negated, ..self.clone() }
    }
}

impl PartialEq for PatternUse<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.source, self.negated) == (other.source, other.negated)
    }
}

impl Eq for PatternUse<'_> {}

impl Hash for PatternUse<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.source, self.negated).hash(state);
    }
}

/// Constraints on strings; lengths in code points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct StringFacets<'a> {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) patterns: Vec<PatternUse<'a>>,
    /// Strings that are excluded.
    pub(crate) excluded: Vec<&'a str>,
}

/// The constraints that one schema object has on elements: by position, then on the rest (`None`:
/// none).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArrayPart {
    pub(crate) prefix: Vec<LocId>,
    pub(crate) rest: Option<LocId>,
    /// Which elements count as evaluated.
    pub(crate) evaluates: Evaluates,
}

/// Which members or elements a part evaluates, for `unevaluatedProperties` and `unevaluatedItems`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evaluates {
    /// None: the part comes from a negation.
    Nothing,
    /// Those that it names.
    Named,
    /// All.
    All,
}

/// Bounds on the number of elements that satisfy a schema (`contains`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contains {
    pub(crate) schema: LocId,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    /// Index of the first element that is counted.
    pub(crate) from: u32,
    /// Whether elements that satisfy the schema count as evaluated.
    pub(crate) evaluates: Evaluates,
}

impl Contains {
    /// A number of counted elements, as far as the bounds tell numbers apart; `None` if it is too
    /// large.
    pub(crate) fn bounded(&self, count: u32) -> Option<u32> {
        match self.max {
            Some(max) => (count <= max).then_some(count),
            None => Some(count.min(self.min)),
        }
    }
}

/// Constraints on arrays. An element satisfies its schemas of all parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ArrayFacets {
    pub(crate) parts: Vec<Rc<ArrayPart>>,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) contains: Vec<Contains>,
    /// `uniqueItems`, with the location that asserts it.
    pub(crate) unique: Option<LocId>,
    /// Some two elements are equal: a negated `uniqueItems`, with its location.
    pub(crate) repeats: Option<LocId>,
}

/// The constraints that one schema object has on members.
#[derive(Clone, Debug)]
pub(crate) struct ObjectPart<'a> {
    pub(crate) properties: Vec<(&'a str, LocId)>,
    /// Index of `properties` by name, if there are many.
    pub(crate) index: HashMap<&'a str, LocId>,
    /// `patternProperties`.
    pub(crate) patterns: Vec<(PatternUse<'a>, LocId)>,
    /// The schema of all other members (`None`: no constraint).
    pub(crate) additional: Option<LocId>,
    /// Which members count as evaluated.
    pub(crate) evaluates: Evaluates,
}

/// A test of a member's name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NameTest<'a> {
    /// The name contains a match.
    Pattern(PatternUse<'a>),
    /// The name, as a string, satisfies a schema.
    Schema(LocId),
}

/// A witness: an object must have a member whose name is in a class and whose value satisfies a
/// schema. Negations of member constraints need it: an object violates `additionalProperties: S` if
/// some additional member violates `S`.
#[derive(Debug)]
pub(crate) struct Witness<'a> {
    /// Its name passes this test. `None`: it is not in `not_named` and passes no test of
    /// `not_matching`.
    pub(crate) matching: Option<NameTest<'a>>,
    pub(crate) not_named: Vec<&'a str>,
    pub(crate) not_matching: Vec<NameTest<'a>>,
    /// The schema of its value.
    pub(crate) schema: LocId,
}

impl<'a> Witness<'a> {
    /// A member whose name passes a test and whose value satisfies a schema.
    pub(crate) fn of_names(test: NameTest<'a>, schema: LocId) -> Witness<'a> {
        let (not_named, not_matching) = (Vec::new(), Vec::new());
        Witness { matching: Some(test), not_named, not_matching, schema }
    }
}

/// Constraints on objects. A member satisfies its schemas of all parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectFacets<'a> {
    pub(crate) parts: Vec<Rc<ObjectPart<'a>>>,
    pub(crate) required: Vec<&'a str>,
    pub(crate) forbidden: Vec<&'a str>,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    /// The schemas of `propertyNames`.
    pub(crate) names: Vec<LocId>,
    /// Witnesses that the object must have, not necessarily different members.
    pub(crate) witnesses: Vec<Rc<Witness<'a>>>,
    /// Conditions on which members are present. An empty one fails.
    pub(crate) clauses: Vec<MemberClause<'a>>,
}

/// A keyword that is not enforced, and the types of the values that it constrains.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnenforcedKeyword<'a> {
    pub(crate) types: JsonTypes,
    pub(crate) loc: LocId,
    pub(crate) keyword: &'a str,
    pub(crate) reason: Reason,
}

/// The assertions of a conjunction of schemas. Each group constrains only values of its own type.
/// `'a` is the lifetime of the schema document.
#[derive(Clone, Debug)]
pub(crate) struct Facets<'a> {
    pub(crate) types: JsonTypes,
    pub(crate) number: SharedFacets<NumberFacets>,
    pub(crate) string: SharedFacets<StringFacets<'a>>,
    pub(crate) array: SharedFacets<ArrayFacets>,
    pub(crate) object: SharedFacets<ObjectFacets<'a>>,
    /// `enum` and `const`: the value is one of these, and satisfies everything else.
    pub(crate) values: Option<Rc<Vec<&'a Json>>>,
    /// Keywords that are not enforced.
    pub(crate) unenforced: Vec<UnenforcedKeyword<'a>>,
}

impl<'a> Facets<'a> {
    /// No constraint.
    pub(crate) fn any() -> Facets<'a> {
        Facets {
            types: JsonTypes::ALL,
            number: SharedFacets::UNCONSTRAINED,
            string: SharedFacets::UNCONSTRAINED,
            array: SharedFacets::UNCONSTRAINED,
            object: SharedFacets::UNCONSTRAINED,
            values: None,
            unenforced: Vec::new(),
        }
    }

    /// All values of these types.
    pub(crate) fn of_types(types: JsonTypes) -> Facets<'a> {
        Facets { types, ..Facets::any() }
    }

    /// These values.
    pub(crate) fn of_values(values: Vec<&'a Json>) -> Facets<'a> {
        Facets { values: Some(Rc::new(values)), ..Facets::any() }
    }

    /// The numbers with these constraints.
    pub(crate) fn numbers(number: NumberFacets) -> Facets<'a> {
        Facets { number: SharedFacets::new(number), ..Facets::of_types(JsonTypes::NUMBER) }
    }

    /// The strings with these constraints.
    pub(crate) fn strings(string: StringFacets<'a>) -> Facets<'a> {
        Facets { string: SharedFacets::new(string), ..Facets::of_types(JsonTypes::STRING) }
    }

    /// The arrays with these constraints.
    pub(crate) fn arrays(array: ArrayFacets) -> Facets<'a> {
        Facets { array: SharedFacets::new(array), ..Facets::of_types(JsonTypes::ARRAY) }
    }

    /// The objects with these constraints.
    pub(crate) fn objects(object: ObjectFacets<'a>) -> Facets<'a> {
        Facets { object: SharedFacets::new(object), ..Facets::of_types(JsonTypes::OBJECT) }
    }

    /// Whether nothing is constrained. Constraints that hold for every value count.
    pub(crate) fn is_always_true(&self) -> bool {
        let Facets { types, number, string, array, object, values, unenforced } = self;
        *types == JsonTypes::ALL
            && values.is_none()
            && unenforced.is_empty()
            && number.is_unconstrained()
            && string.is_unconstrained()
            && array.is_unconstrained()
            && object.is_unconstrained()
    }

    /// The number of list entries that a copy may have to copy; a measure for fuel.
    pub(crate) fn list_entries(&self) -> usize {
        let Facets { number, string, array, object, .. } = self;
        number.excluded.len()
            + number.multiples.len()
            + number.not_multiples.len()
            + string.patterns.len()
            + string.excluded.len()
            + array.parts.len()
            + array.contains.len()
            + object.parts.len()
            + object.required.len()
            + object.forbidden.len()
            + object.names.len()
            + object.witnesses.len()
            + object.clauses.len()
            + self.unenforced.len()
    }

    /// The conjunction. Cost: linear in the number of keywords, not in their contents.
    pub(crate) fn conjoin(mut self, other: &Facets<'a>) -> Facets<'a> {
        self.types = self.types.intersect(other.types);
        self.number.conjoin_with(&other.number, NumberFacets::conjoin);
        self.string.conjoin_with(&other.string, StringFacets::conjoin);
        self.array.conjoin_with(&other.array, ArrayFacets::conjoin);
        self.object.conjoin_with(&other.object, ObjectFacets::conjoin);
        self.values = match (self.values.take(), &other.values) {
            (Some(a), Some(b)) if Rc::ptr_eq(&a, b) => Some(a),
            (Some(a), Some(b)) => Some(Rc::new(intersect_values(&a, b))),
            (a, b) => a.or_else(|| b.clone()),
        };
        extend_distinct(&mut self.unenforced, &other.unenforced);
        self.drop_contradictory_types();
        self
    }

    /// Lets all members and elements count as evaluated.
    pub(crate) fn evaluate_all(&mut self) {
        let evaluates = Evaluates::All;
        let members = ObjectPart { evaluates, ..ObjectPart::new(Vec::new()) };
        self.object.parts.push(Rc::new(members));
        self.array.parts.push(Rc::new(ArrayPart { prefix: Vec::new(), rest: None, evaluates }));
    }

    /// A copy whose parts evaluate no member or element.
    pub(crate) fn without_evaluation(&self) -> Facets<'a> {
        let mut out = self.clone();
        if !out.array.is_unconstrained() {
            let array = &mut *out.array;
            for part in array.parts.iter_mut().filter(|part| part.evaluates != Evaluates::Nothing) {
                *part = Rc::new(ArrayPart { evaluates: Evaluates::Nothing, ..(**part).clone() });
            }
            for contains in &mut array.contains {
                contains.evaluates = Evaluates::Nothing;
            }
        }
        if !out.object.is_unconstrained() {
            for part in
                out.object.parts.iter_mut().filter(|part| part.evaluates != Evaluates::Nothing)
            {
                *part = Rc::new(ObjectPart { evaluates: Evaluates::Nothing, ..(**part).clone() });
            }
        }
        out
    }

    /// Removes types whose bounds contradict each other, and listed values of removed types.
    pub(crate) fn drop_contradictory_types(&mut self) {
        if !self.number.is_unconstrained() && self.number.is_contradictory() {
            self.types = self.types.minus(JsonTypes::NUMBER);
        }
        if self.string.max.is_some_and(|max| max < self.string.min) {
            self.types = self.types.minus(JsonTypes::STRING);
        }
        let array = &self.array;
        if array.max.is_some_and(|max| max < array.min)
            || array.unique.is_some() && array.repeats.is_some()
        {
            self.types = self.types.minus(JsonTypes::ARRAY);
        }
        let object = &self.object;
        if object.max.is_some_and(|max| max < object.min || (max as usize) < object.required.len())
            || common_item(&object.required, &object.forbidden).is_some()
            || object.clauses.iter().any(PresenceClause::is_empty)
        {
            self.types = self.types.minus(JsonTypes::OBJECT);
        }
        if let Some(values) = &self.values
            && self.types != JsonTypes::ALL
            && values.iter().any(|v| !self.types.meets(JsonTypes::of(v)))
        {
            let types = self.types;
            self.values = Some(Rc::new(
                values.iter().copied().filter(|v| types.meets(JsonTypes::of(v))).collect(),
            ));
        }
        if self.values.as_ref().is_some_and(|values| values.is_empty()) {
            self.types = JsonTypes::default();
        }
    }
}

impl<'a> Unconstrained for StringFacets<'a> {
    fn unconstrained<'f>() -> &'f Self
    where
        'a: 'f,
    {
        const UNCONSTRAINED: &StringFacets<'static> =
            &StringFacets { min: 0, max: None, patterns: Vec::new(), excluded: Vec::new() };
        UNCONSTRAINED
    }
}

impl Unconstrained for ArrayFacets {
    fn unconstrained<'f>() -> &'f Self {
        const UNCONSTRAINED: &ArrayFacets = &ArrayFacets {
            parts: Vec::new(),
            min: 0,
            max: None,
            contains: Vec::new(),
            unique: None,
            repeats: None,
        };
        UNCONSTRAINED
    }
}

impl<'a> Unconstrained for ObjectFacets<'a> {
    fn unconstrained<'f>() -> &'f Self
    where
        'a: 'f,
    {
        const UNCONSTRAINED: &ObjectFacets<'static> = &ObjectFacets {
            parts: Vec::new(),
            required: Vec::new(),
            forbidden: Vec::new(),
            min: 0,
            max: None,
            names: Vec::new(),
            witnesses: Vec::new(),
            clauses: Vec::new(),
        };
        UNCONSTRAINED
    }
}

impl<'a> StringFacets<'a> {
    /// Adds the constraints of other facets.
    fn conjoin(&mut self, other: &StringFacets<'a>) {
        self.min = self.min.max(other.min);
        self.max = min_bound(self.max, other.max);
        extend_distinct(&mut self.patterns, &other.patterns);
        extend_hashed(&mut self.excluded, &other.excluded);
    }

    /// Whether every string satisfies these facets.
    pub(crate) fn allows_all(&self) -> bool {
        self.min == 0 && self.max.is_none() && self.patterns.is_empty() && self.excluded.is_empty()
    }
}

impl ArrayPart {
    /// A part that constrains the element at this index only, and evaluates nothing.
    pub(crate) fn of_element(index: usize, schema: LocId) -> ArrayPart {
        let mut prefix = vec![LocId::TRUE; index];
        prefix.push(schema);
        ArrayPart { prefix, rest: None, evaluates: Evaluates::Nothing }
    }

    /// Whether every array satisfies this part.
    fn allows_all(&self) -> bool {
        self.rest.is_none() && self.prefix.iter().all(|&loc| loc == LocId::TRUE)
    }
}

impl ArrayFacets {
    /// Adds the constraints of other facets.
    fn conjoin(&mut self, other: &ArrayFacets) {
        extend_distinct(&mut self.parts, &other.parts);
        self.min = self.min.max(other.min);
        self.max = min_bound(self.max, other.max);
        extend_distinct(&mut self.contains, &other.contains);
        self.unique = self.unique.or(other.unique);
        self.repeats = self.repeats.or(other.repeats);
    }

    /// Adds bounds on the number of elements that satisfy a schema. If none may, each element
    /// satisfies its negation.
    pub(crate) fn add_contains(&mut self, contains: Contains) {
        if contains.max != Some(0) {
            return self.contains.push(contains);
        }
        self.parts.push(Rc::new(ArrayPart {
            prefix: vec![LocId::TRUE; contains.from as usize],
            rest: Some(contains.schema.negated()),
            evaluates: Evaluates::Nothing,
        }));
    }

    /// Whether every array satisfies these facets.
    pub(crate) fn allows_all(&self) -> bool {
        self.parts.iter().all(|part| part.allows_all())
            && self.min == 0
            && self.max.is_none()
            && self.contains.is_empty()
            && self.unique.is_none()
            && self.repeats.is_none()
    }

    /// The schemas of the element at this index.
    pub(crate) fn element(&self, index: usize) -> Locs {
        self.parts.iter().filter_map(|p| p.prefix.get(index).copied().or(p.rest)).collect()
    }

    /// Length of the longest prefix; all later elements have the same schemas.
    pub(crate) fn prefix(&self) -> usize {
        self.parts.iter().map(|p| p.prefix.len()).max().unwrap_or(0)
    }
}

/// Parts with more properties than this have an index.
const MAX_UNINDEXED: usize = 12;

impl<'a> ObjectPart<'a> {
    /// A part with these properties only.
    pub(crate) fn new(properties: Vec<(&'a str, LocId)>) -> ObjectPart<'a> {
        let index = if properties.len() > MAX_UNINDEXED {
            properties.iter().copied().collect()
        } else {
            HashMap::default()
        };
        ObjectPart {
            properties,
            index,
            patterns: Vec::new(),
            additional: None,
            evaluates: Evaluates::Named,
        }
    }

    /// A part that constrains one member only, and evaluates nothing.
    pub(crate) fn of_member(name: &'a str, schema: LocId) -> ObjectPart<'a> {
        ObjectPart { evaluates: Evaluates::Nothing, ..ObjectPart::new(vec![(name, schema)]) }
    }

    /// Whether every object satisfies this part.
    fn allows_all(&self) -> bool {
        self.properties.is_empty() && self.has_properties_only()
    }

    /// Whether it constrains members with declared names only.
    pub(crate) fn has_properties_only(&self) -> bool {
        self.patterns.is_empty() && self.additional.is_none()
    }

    /// The schema of a declared property.
    pub(crate) fn property(&self, name: &str) -> Option<LocId> {
        if self.index.is_empty() {
            return self.properties.iter().find(|(n, _)| *n == name).map(|(_, loc)| *loc);
        }
        self.index.get(name).copied()
    }
}

impl<'a> ObjectFacets<'a> {
    /// Adds the constraints of other facets.
    fn conjoin(&mut self, other: &ObjectFacets<'a>) {
        extend_shared(&mut self.parts, &other.parts);
        if self.required.is_empty() {
            self.required.clone_from(&other.required);
        } else {
            extend_hashed(&mut self.required, &other.required);
        }
        extend_hashed(&mut self.forbidden, &other.forbidden);
        self.min = self.min.max(other.min);
        self.max = min_bound(self.max, other.max);
        extend_distinct(&mut self.names, &other.names);
        extend_shared(&mut self.witnesses, &other.witnesses);
        if !(self.clauses.is_empty() && other.clauses.is_empty()) {
            self.require_clauses(&other.clauses);
        }
    }

    /// Whether every object satisfies these facets.
    pub(crate) fn allows_all(&self) -> bool {
        self.parts.iter().all(|part| part.allows_all())
            && self.required.is_empty()
            && self.forbidden.is_empty()
            && self.min == 0
            && self.max.is_none()
            && self.names.is_empty()
            && self.witnesses.is_empty()
            && self.clauses.is_empty()
    }
}

/// The smaller of two upper bounds; `None` means unbounded.
pub(crate) fn min_bound(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
