//! Facets: the assertions of a schema, or of a conjunction of schemas, by type of value.
//!
//! [`Facets`] have one field for each type: bounds of numbers, lengths and patterns of strings, and
//! so on. Each constrains only values of its own type, as in JSON Schema. So two facets are
//! conjoined field by field, without looking at subschemas: the constraints of members and elements
//! stay lists of parts, whose locations are conjoined when a member is lowered.

use std::fmt;
use std::hash::Hash;
use std::rc::Rc;

use super::super::decimal::{Decimal, common_multiple};
use super::super::error::SchemaErrorReason as Reason;
use super::doc::{LocId, Locs};
use super::shared_facets::{SharedFacets, Unconstrained};
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::spec::json::Json;

/// A set of JSON types. `INTEGER` (whole numbers) and `FRACTION` are separate; `number` is both.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeSet(u8);

impl TypeSet {
    pub(crate) const NONE: TypeSet = TypeSet(0);
    pub(crate) const NULL: TypeSet = TypeSet(1);
    pub(crate) const BOOLEAN: TypeSet = TypeSet(2);
    pub(crate) const INTEGER: TypeSet = TypeSet(4);
    pub(crate) const FRACTION: TypeSet = TypeSet(8);
    pub(crate) const NUMBER: TypeSet = TypeSet(12);
    pub(crate) const STRING: TypeSet = TypeSet(16);
    pub(crate) const ARRAY: TypeSet = TypeSet(32);
    pub(crate) const OBJECT: TypeSet = TypeSet(64);
    pub(crate) const ALL: TypeSet = TypeSet(127);

    /// The types of a name that `type` may have.
    pub(crate) fn named(name: &str) -> Option<TypeSet> {
        Some(match name {
            "null" => TypeSet::NULL,
            "boolean" => TypeSet::BOOLEAN,
            "integer" => TypeSet::INTEGER,
            "number" => TypeSet::NUMBER,
            "string" => TypeSet::STRING,
            "array" => TypeSet::ARRAY,
            "object" => TypeSet::OBJECT,
            _ => return None,
        })
    }

    /// The type of a value, as a set of one.
    pub(crate) fn of(json: &Json) -> TypeSet {
        match json {
            Json::Null => TypeSet::NULL,
            Json::Bool(_) => TypeSet::BOOLEAN,
            Json::Number(n) if Decimal::parse(n.as_str()).is_integer() => TypeSet::INTEGER,
            Json::Number(_) => TypeSet::FRACTION,
            Json::String(_) => TypeSet::STRING,
            Json::Array(_) => TypeSet::ARRAY,
            Json::Object(_) => TypeSet::OBJECT,
        }
    }

    /// The intersection.
    pub(crate) fn and(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 & other.0)
    }

    /// The union.
    pub(crate) fn or(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }

    /// The difference.
    pub(crate) fn minus(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 & !other.0)
    }

    /// Whether the sets intersect.
    pub(crate) fn meets(self, other: TypeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypeSet({:#09b})", self.0)
    }
}

/// One end of a numeric range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) value: Decimal,
    pub(crate) exclusive: bool,
}

/// Constraints on numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NumberFacets {
    pub(crate) low: Option<Bound>,
    pub(crate) high: Option<Bound>,
    /// `multipleOf`: the number is a multiple of all of these.
    pub(crate) multiples: Vec<Decimal>,
    /// Numbers that are excluded.
    pub(crate) excluded: Vec<Decimal>,
    /// Multiples of these are excluded.
    pub(crate) not_multiples: Vec<Decimal>,
}

/// An assertion that a string contains a match of a pattern, or that it contains none. Equality
/// ignores the location.
#[derive(Clone, Debug)]
pub(crate) struct PatternUse<'a> {
    pub(crate) source: &'a str,
    pub(crate) negated: bool,
    /// Where the schema asserts it, for error messages.
    pub(crate) loc: LocId,
    pub(crate) keyword: &'static str,
}

impl PartialEq for PatternUse<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.source, self.negated) == (other.source, other.negated)
    }
}

/// Constraints on strings; lengths in code points.
#[derive(Clone, Debug, Default, PartialEq)]
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
}

/// A keyword that is not enforced, and the types of the values that it constrains.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnenforcedKeyword<'a> {
    pub(crate) types: TypeSet,
    pub(crate) loc: LocId,
    pub(crate) keyword: &'a str,
    pub(crate) reason: Reason,
}

/// The assertions of a conjunction of schemas. Each group constrains only values of its own type.
/// `'a` is the lifetime of the schema document.
#[derive(Clone, Debug)]
pub(crate) struct Facets<'a> {
    pub(crate) types: TypeSet,
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
            types: TypeSet::ALL,
            number: SharedFacets::UNCONSTRAINED,
            string: SharedFacets::UNCONSTRAINED,
            array: SharedFacets::UNCONSTRAINED,
            object: SharedFacets::UNCONSTRAINED,
            values: None,
            unenforced: Vec::new(),
        }
    }

    /// Whether nothing is constrained. Constraints that hold for every value count.
    pub(crate) fn is_always_true(&self) -> bool {
        let Facets { types, number, string, array, object, values, unenforced } = self;
        *types == TypeSet::ALL
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
            + string.patterns.len()
            + string.excluded.len()
            + array.parts.len()
            + array.contains.len()
            + object.parts.len()
            + object.required.len()
            + object.forbidden.len()
            + object.names.len()
            + object.witnesses.len()
            + self.unenforced.len()
    }

    /// The conjunction. Cost: linear in the number of keywords, not in their contents.
    pub(crate) fn conjoin(mut self, other: &Facets<'a>) -> Facets<'a> {
        self.types = self.types.and(other.types);
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
    pub(super) fn drop_contradictory_types(&mut self) {
        if !self.number.is_unconstrained() && self.number.is_contradictory() {
            self.types = self.types.minus(TypeSet::NUMBER);
        }
        if self.string.max.is_some_and(|max| max < self.string.min) {
            self.types = self.types.minus(TypeSet::STRING);
        }
        let array = &self.array;
        if array.max.is_some_and(|max| max < array.min)
            || array.unique.is_some() && array.repeats.is_some()
        {
            self.types = self.types.minus(TypeSet::ARRAY);
        }
        let object = &self.object;
        if object.max.is_some_and(|max| max < object.min || (max as usize) < object.required.len())
            || first_common(&object.required, &object.forbidden).is_some()
        {
            self.types = self.types.minus(TypeSet::OBJECT);
        }
        if let Some(values) = &self.values
            && self.types != TypeSet::ALL
            && values.iter().any(|v| !self.types.meets(TypeSet::of(v)))
        {
            let types = self.types;
            self.values = Some(Rc::new(
                values.iter().copied().filter(|v| types.meets(TypeSet::of(v))).collect(),
            ));
        }
        if self.values.as_ref().is_some_and(|values| values.is_empty()) {
            self.types = TypeSet::NONE;
        }
    }
}

impl Unconstrained for NumberFacets {
    fn unconstrained<'f>() -> &'f Self {
        const UNCONSTRAINED: &NumberFacets = &NumberFacets {
            low: None,
            high: None,
            multiples: Vec::new(),
            excluded: Vec::new(),
            not_multiples: Vec::new(),
        };
        UNCONSTRAINED
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
        };
        UNCONSTRAINED
    }
}

impl NumberFacets {
    /// Adds the constraints of other facets.
    fn conjoin(&mut self, other: &NumberFacets) {
        if let Some(low) = &other.low {
            self.add_lower_bound(low.clone());
        }
        if let Some(high) = &other.high {
            self.add_upper_bound(high.clone());
        }
        other.multiples.iter().for_each(|unit| self.add_multiple(unit));
        extend_hashed(&mut self.excluded, &other.excluded);
        other.not_multiples.iter().for_each(|unit| self.exclude_multiples_of(unit));
    }

    /// Adds a divisor. It is merged with a known one into their least common multiple, if that is
    /// representable.
    pub(super) fn add_multiple(&mut self, unit: &Decimal) {
        let both = self
            .multiples
            .iter()
            .enumerate()
            .find_map(|(i, known)| Some((i, common_multiple(known, unit)?)));
        match both {
            Some((i, both)) => self.multiples[i] = both,
            None if self.multiples.contains(unit) => {}
            None => self.multiples.push(unit.clone()),
        }
    }

    /// Excludes the multiples of a divisor, unless they are excluded already.
    pub(super) fn exclude_multiples_of(&mut self, unit: &Decimal) {
        if !self.not_multiples.iter().any(|known| divides(known, unit)) {
            self.not_multiples.retain(|known| !divides(unit, known));
            self.not_multiples.push(unit.clone());
        }
    }

    /// Adds a lower bound.
    pub(crate) fn add_lower_bound(&mut self, bound: Bound) {
        if self.is_tightened_from_below_by(&bound) {
            self.low = Some(bound);
        }
    }

    /// Adds an upper bound.
    pub(crate) fn add_upper_bound(&mut self, bound: Bound) {
        if self.is_tightened_from_above_by(&bound) {
            self.high = Some(bound);
        }
    }

    /// Whether a lower bound is tighter than the present one.
    pub(crate) fn is_tightened_from_below_by(&self, bound: &Bound) -> bool {
        self.low.as_ref().is_none_or(|old| {
            bound.value > old.value
                || (bound.value == old.value && bound.exclusive && !old.exclusive)
        })
    }

    /// Whether an upper bound is tighter than the present one.
    pub(crate) fn is_tightened_from_above_by(&self, bound: &Bound) -> bool {
        self.high.as_ref().is_none_or(|old| {
            bound.value < old.value
                || (bound.value == old.value && bound.exclusive && !old.exclusive)
        })
    }

    /// Whether every number satisfies these facets.
    pub(crate) fn is_free(&self) -> bool {
        *self == NumberFacets::default()
    }

    /// Whether the sign of a number decides whether it is accepted.
    pub(crate) fn sign_decides(&self) -> bool {
        [&self.low, &self.high].into_iter().flatten().all(|bound| bound.value.is_zero())
            && self.excluded.iter().all(Decimal::is_zero)
            && self.multiples.is_empty()
            && self.not_multiples.is_empty()
    }

    /// Whether the bounds, or the multiples, leave no number.
    fn is_contradictory(&self) -> bool {
        let apart = |(low, high): (&Bound, &Bound)| {
            low.value > high.value || (low.value == high.value && (low.exclusive || high.exclusive))
        };
        self.low.as_ref().zip(self.high.as_ref()).is_some_and(apart)
            || self
                .not_multiples
                .iter()
                .any(|not| self.multiples.iter().any(|unit| divides(not, unit)))
    }

    /// Whether a number satisfies these facets. Divisibility that is too costly to compute (4096
    /// digits) counts as not satisfied.
    pub(crate) fn allow(&self, value: &Decimal) -> bool {
        self.low.as_ref().is_none_or(|b| *value > b.value || (!b.exclusive && *value == b.value))
            && self
                .high
                .as_ref()
                .is_none_or(|b| *value < b.value || (!b.exclusive && *value == b.value))
            && !self.excluded.contains(value)
            && self.multiples.iter().all(|unit| value.is_multiple_of(unit, 4_096) == Some(true))
            && self
                .not_multiples
                .iter()
                .all(|unit| value.is_multiple_of(unit, 4_096) == Some(false))
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
    pub(crate) fn is_free(&self) -> bool {
        self.min == 0 && self.max.is_none() && self.patterns.is_empty() && self.excluded.is_empty()
    }
}

impl ArrayPart {
    /// Whether every array satisfies this part.
    fn is_free(&self) -> bool {
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

    /// Whether every array satisfies these facets.
    pub(crate) fn is_free(&self) -> bool {
        self.parts.iter().all(|part| part.is_free())
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

    /// Whether every object satisfies this part.
    fn is_free(&self) -> bool {
        self.properties.is_empty() && self.patterns.is_empty() && self.additional.is_none()
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
        for part in &other.parts {
            if !self.parts.iter().any(|p| Rc::ptr_eq(p, part)) {
                self.parts.push(part.clone());
            }
        }
        if self.required.is_empty() {
            self.required.clone_from(&other.required);
        } else {
            extend_hashed(&mut self.required, &other.required);
        }
        extend_hashed(&mut self.forbidden, &other.forbidden);
        self.min = self.min.max(other.min);
        self.max = min_bound(self.max, other.max);
        extend_distinct(&mut self.names, &other.names);
        for member in &other.witnesses {
            if !self.witnesses.iter().any(|m| Rc::ptr_eq(m, member)) {
                self.witnesses.push(member.clone());
            }
        }
    }

    /// Whether every object satisfies these facets.
    pub(crate) fn is_free(&self) -> bool {
        self.parts.iter().all(|part| part.is_free())
            && self.required.is_empty()
            && self.forbidden.is_empty()
            && self.min == 0
            && self.max.is_none()
            && self.names.is_empty()
            && self.witnesses.is_empty()
    }
}

/// Whether every multiple of `other` is certainly a multiple of `unit`.
pub(crate) fn divides(unit: &Decimal, other: &Decimal) -> bool {
    other.is_multiple_of(unit, 64) == Some(true)
}

/// The smaller of two upper bounds; `None` is no bound.
pub(crate) fn min_bound(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Adds the items that a list does not have yet.
fn extend_distinct<T: PartialEq + Clone>(list: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// As [`extend_distinct`], for lists that may be long.
fn extend_hashed<T: Eq + Hash + Clone>(list: &mut Vec<T>, more: &[T]) {
    if list.len().saturating_mul(more.len()) <= LINEAR_SEARCH_LIMIT {
        return extend_distinct(list, more);
    }
    let present: HashSet<&T> = list.iter().collect();
    let more: Vec<T> = more.iter().filter(|item| !present.contains(item)).cloned().collect();
    list.extend(more);
}

/// Up to so many comparisons cost less than building a hash set.
const LINEAR_SEARCH_LIMIT: usize = 256;

/// Membership test on a list, by a hash set if the number of queries makes that worthwhile.
pub(crate) struct MembershipTest<'l, T> {
    list: &'l [T],
    set: Option<HashSet<&'l T>>,
}

impl<'l, T: Eq + Hash> MembershipTest<'l, T> {
    /// Prepares a list for this number of queries.
    pub(crate) fn new(list: &'l [T], queries: usize) -> Self {
        let set = (list.len().saturating_mul(queries) > LINEAR_SEARCH_LIMIT)
            .then(|| list.iter().collect());
        MembershipTest { list, set }
    }

    /// Whether the list has an item.
    pub(crate) fn contains(&self, item: &T) -> bool {
        match &self.set {
            Some(set) => set.contains(item),
            None => self.list.contains(item),
        }
    }
}

/// The first item of a list that another list contains, too.
pub(crate) fn first_common<'l, T: Eq + Hash>(list: &'l [T], other: &'l [T]) -> Option<&'l T> {
    fuel::charge(1 + (list.len() + other.len()) / 8);
    let other = MembershipTest::new(other, list.len());
    list.iter().find(|item| other.contains(item))
}

/// Whether `list` is a subset of `other`.
pub(crate) fn is_subset<T: Eq + Hash>(list: &[T], other: &[T]) -> bool {
    fuel::charge(1 + (list.len() + other.len()) / 8);
    let other = MembershipTest::new(other, list.len());
    list.iter().all(|item| other.contains(item))
}

/// The values of the first list that equal a value of the second, as JSON Schema compares.
pub(super) fn intersect_values<'a>(a: &[&'a Json], b: &[&'a Json]) -> Vec<&'a Json> {
    let present: HashSet<String> = b.iter().map(|v| canonical(v)).collect();
    a.iter().copied().filter(|v| present.contains(&canonical(v))).collect()
}

/// The same text for all values that JSON Schema calls equal: numbers compare by value, members in
/// any order.
pub(crate) fn canonical(json: &Json) -> String {
    match json {
        Json::Number(n) => Decimal::parse(n.as_str()).canonical(),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Json::Object(object) => {
            let mut members: Vec<String> = object
                .iter()
                .map(|(k, v)| format!("{}:{}", Json::String(k.to_owned()), canonical(v)))
                .collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        scalar => scalar.to_string(),
    }
}
