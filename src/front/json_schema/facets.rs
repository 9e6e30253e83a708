//! What a value must satisfy, type by type: the normal form of a conjunction of schemas.

use std::fmt;
use std::hash::Hash;
use std::rc::Rc;

use super::decimal::Decimal;
use super::doc::LocId;
use super::group::{Free, Group};
use super::multiples::joined;
use super::normalize::Locs;
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::spec::json::Json;

/// A set of JSON types. Whole numbers and fractions are two types; `number` is both.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Types = Types(0);
    pub(super) const NULL: Types = Types(1);
    pub(super) const BOOLEAN: Types = Types(2);
    pub(super) const INTEGER: Types = Types(4);
    pub(super) const FRACTION: Types = Types(8);
    pub(super) const NUMBER: Types = Types(12);
    pub(super) const STRING: Types = Types(16);
    pub(super) const ARRAY: Types = Types(32);
    pub(super) const OBJECT: Types = Types(64);
    pub(super) const ALL: Types = Types(127);

    pub(super) fn named(name: &str) -> Option<Types> {
        Some(match name {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "integer" => Types::INTEGER,
            "number" => Types::NUMBER,
            "string" => Types::STRING,
            "array" => Types::ARRAY,
            "object" => Types::OBJECT,
            _ => return None,
        })
    }

    /// The type of a value.
    pub(super) fn of(json: &Json) -> Types {
        match json {
            Json::Null => Types::NULL,
            Json::Bool(_) => Types::BOOLEAN,
            Json::Number(n) if Decimal::parse(n.as_str()).is_integer() => Types::INTEGER,
            Json::Number(_) => Types::FRACTION,
            Json::String(_) => Types::STRING,
            Json::Array(_) => Types::ARRAY,
            Json::Object(_) => Types::OBJECT,
        }
    }

    pub(super) fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    pub(super) fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub(super) fn minus(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }

    pub(super) fn meets(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Types({:#09b})", self.0)
    }
}

/// One end of a numeric range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    pub(super) value: Decimal,
    pub(super) exclusive: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NumberFacets {
    pub(super) low: Option<Bound>,
    pub(super) high: Option<Bound>,
    pub(super) multiples: Vec<Decimal>,
    /// Numbers that are not allowed.
    pub(super) excluded: Vec<Decimal>,
    /// No whole multiples of these.
    pub(super) not_multiples: Vec<Decimal>,
}

/// A pattern that a text must (or must not) contain a match of.
#[derive(Clone, Debug)]
pub(super) struct PatternUse<'a> {
    pub(super) source: &'a str,
    pub(super) negated: bool,
    /// Where it came from.
    pub(super) loc: LocId,
    pub(super) keyword: &'static str,
}

impl PartialEq for PatternUse<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.source, self.negated) == (other.source, other.negated)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StringFacets<'a> {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    pub(super) patterns: Vec<PatternUse<'a>>,
    /// Texts that are not allowed.
    pub(super) excluded: Vec<&'a str>,
}

/// The elements one location asks for: a prefix, then the rest (`None`: anything).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArrayPart {
    pub(super) prefix: Vec<LocId>,
    pub(super) rest: Option<LocId>,
    /// For `unevaluatedItems`.
    pub(super) covers: Covers,
}

/// What `unevaluatedProperties` and `unevaluatedItems` see of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Covers {
    /// Nothing: it comes from a negation.
    Nothing,
    /// What it names.
    Named,
    /// Everything.
    All,
}

/// Elements that satisfy a schema must be this many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contains {
    pub(super) schema: LocId,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// Index of the first element that counts.
    pub(super) from: u32,
    /// Whether elements that satisfy the schema are evaluated by it.
    pub(super) covers: Covers,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ArrayFacets {
    pub(super) parts: Vec<Rc<ArrayPart>>,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    pub(super) contains: Vec<Contains>,
    /// Elements differ from each other; where that is said.
    pub(super) unique: Option<LocId>,
}

/// The members one location asks for.
#[derive(Clone, Debug)]
pub(super) struct ObjectPart<'a> {
    pub(super) properties: Vec<(&'a str, LocId)>,
    /// The same by name, where there are many.
    pub(super) index: HashMap<&'a str, LocId>,
    /// `(pattern, schema)`
    pub(super) patterns: Vec<(PatternUse<'a>, LocId)>,
    /// What other members must satisfy (`None`: anything).
    pub(super) additional: Option<LocId>,
    /// For `unevaluatedProperties`.
    pub(super) covers: Covers,
}

/// A class of names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NameTest<'a> {
    /// They contain a match.
    Pattern(PatternUse<'a>),
    /// As strings they satisfy a schema.
    Schema(LocId),
}

/// A member that must be there, known by its name's class and its value.
#[derive(Debug)]
pub(super) struct SomeMember<'a> {
    /// Its name is of this class, or (`None`) is none of `not_named` and of no class of `not_matching`.
    pub(super) matching: Option<NameTest<'a>>,
    pub(super) not_named: Vec<&'a str>,
    pub(super) not_matching: Vec<NameTest<'a>>,
    /// What its value satisfies.
    pub(super) schema: LocId,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ObjectFacets<'a> {
    pub(super) parts: Vec<Rc<ObjectPart<'a>>>,
    pub(super) required: Vec<&'a str>,
    pub(super) forbidden: Vec<&'a str>,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// Schemas of `propertyNames`.
    pub(super) names: Vec<LocId>,
    pub(super) some: Vec<Rc<SomeMember<'a>>>,
}

/// A keyword that is not enforced, and the types of values it would constrain.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unenforced {
    pub(super) types: Types,
    pub(super) loc: LocId,
    pub(super) keyword: &'static str,
    pub(super) why: &'static str,
}

/// What a value must satisfy. Each group constrains only values of its own type.
#[derive(Clone, Debug)]
pub(super) struct Facets<'a> {
    pub(super) types: Types,
    pub(super) number: Group<NumberFacets>,
    pub(super) string: Group<StringFacets<'a>>,
    pub(super) array: Group<ArrayFacets>,
    pub(super) object: Group<ObjectFacets<'a>>,
    /// If present, the value is one of these (and satisfies everything else).
    pub(super) values: Option<Rc<Vec<&'a Json>>>,
    pub(super) unenforced: Vec<Unenforced>,
}

impl<'a> Facets<'a> {
    /// Any value.
    pub(super) fn any() -> Facets<'a> {
        Facets {
            types: Types::ALL,
            number: Group::FREE,
            string: Group::FREE,
            array: Group::FREE,
            object: Group::FREE,
            values: None,
            unenforced: Vec::new(),
        }
    }

    /// Whether nothing is said.
    pub(super) fn is_any(&self) -> bool {
        let Facets { types, number, string, array, object, values, unenforced } = self;
        *types == Types::ALL
            && values.is_none()
            && unenforced.is_empty()
            && number.is_unsaid()
            && string.is_unsaid()
            && array.is_unsaid()
            && object.is_unsaid()
    }

    /// How much there is to copy.
    pub(super) fn size(&self) -> usize {
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
            + object.some.len()
            + self.unenforced.len()
    }

    /// Both together. Cost: linear in the number of keywords, not in their contents.
    pub(super) fn conjoin(mut self, other: &Facets<'a>) -> Facets<'a> {
        self.types = self.types.and(other.types);
        self.number.join(&other.number, NumberFacets::conjoin);
        self.string.join(&other.string, StringFacets::conjoin);
        self.array.join(&other.array, ArrayFacets::conjoin);
        self.object.join(&other.object, ObjectFacets::conjoin);
        self.values = match (self.values.take(), &other.values) {
            (Some(a), Some(b)) if Rc::ptr_eq(&a, b) => Some(a),
            (Some(a), Some(b)) => Some(Rc::new(common(&a, b))),
            (a, b) => a.or_else(|| b.clone()),
        };
        extend_distinct(&mut self.unenforced, &other.unenforced);
        self.settle();
        self
    }

    /// The same, seen by no `unevaluated...` keyword.
    pub(super) fn unseen(&self) -> Facets<'a> {
        let mut out = self.clone();
        if !out.array.is_unsaid() {
            let array = &mut *out.array;
            for part in array.parts.iter_mut().filter(|part| part.covers != Covers::Nothing) {
                *part = Rc::new(ArrayPart { covers: Covers::Nothing, ..(**part).clone() });
            }
            for contains in &mut array.contains {
                contains.covers = Covers::Nothing;
            }
        }
        if !out.object.is_unsaid() {
            for part in out.object.parts.iter_mut().filter(|part| part.covers != Covers::Nothing) {
                *part = Rc::new(ObjectPart { covers: Covers::Nothing, ..(**part).clone() });
            }
        }
        out
    }

    /// Removes types whose own bounds contradict each other.
    pub(super) fn settle(&mut self) {
        if !self.number.is_unsaid() && self.number.is_contradictory() {
            self.types = self.types.minus(Types::NUMBER);
        }
        if self.string.max.is_some_and(|max| max < self.string.min) {
            self.types = self.types.minus(Types::STRING);
        }
        if self.array.max.is_some_and(|max| max < self.array.min) {
            self.types = self.types.minus(Types::ARRAY);
        }
        let object = &self.object;
        if object.max.is_some_and(|max| max < object.min || (max as usize) < object.required.len())
            || shared(&object.required, &object.forbidden).is_some()
        {
            self.types = self.types.minus(Types::OBJECT);
        }
        if let Some(values) = &self.values
            && self.types != Types::ALL
            && values.iter().any(|v| !self.types.meets(Types::of(v)))
        {
            let types = self.types;
            self.values = Some(Rc::new(
                values.iter().copied().filter(|v| types.meets(Types::of(v))).collect(),
            ));
        }
        if self.values.as_ref().is_some_and(|values| values.is_empty()) {
            self.types = Types::NONE;
        }
    }
}

impl Free for NumberFacets {
    fn free<'f>() -> &'f Self {
        const FREE: &NumberFacets = &NumberFacets {
            low: None,
            high: None,
            multiples: Vec::new(),
            excluded: Vec::new(),
            not_multiples: Vec::new(),
        };
        FREE
    }
}

impl<'a> Free for StringFacets<'a> {
    fn free<'f>() -> &'f Self
    where
        'a: 'f,
    {
        const FREE: &StringFacets<'static> =
            &StringFacets { min: 0, max: None, patterns: Vec::new(), excluded: Vec::new() };
        FREE
    }
}

impl Free for ArrayFacets {
    fn free<'f>() -> &'f Self {
        const FREE: &ArrayFacets = &ArrayFacets {
            parts: Vec::new(),
            min: 0,
            max: None,
            contains: Vec::new(),
            unique: None,
        };
        FREE
    }
}

impl<'a> Free for ObjectFacets<'a> {
    fn free<'f>() -> &'f Self
    where
        'a: 'f,
    {
        const FREE: &ObjectFacets<'static> = &ObjectFacets {
            parts: Vec::new(),
            required: Vec::new(),
            forbidden: Vec::new(),
            min: 0,
            max: None,
            names: Vec::new(),
            some: Vec::new(),
        };
        FREE
    }
}

impl NumberFacets {
    fn conjoin(&mut self, other: &NumberFacets) {
        if let Some(low) = &other.low {
            self.raise(low.clone());
        }
        if let Some(high) = &other.high {
            self.lower(high.clone());
        }
        other.multiples.iter().for_each(|unit| self.multiple_of(unit));
        extend_hashed(&mut self.excluded, &other.excluded);
        other.not_multiples.iter().for_each(|unit| self.not_multiple_of(unit));
    }

    /// Adds a unit: one that stands for two where it can be tracked.
    pub(super) fn multiple_of(&mut self, unit: &Decimal) {
        let both = self
            .multiples
            .iter()
            .enumerate()
            .find_map(|(i, known)| Some((i, joined(known, unit)?)));
        match both {
            Some((i, both)) => self.multiples[i] = both,
            None if self.multiples.contains(unit) => {}
            None => self.multiples.push(unit.clone()),
        }
    }

    /// Adds a unit of what is not allowed, unless one is known whose multiples its are.
    pub(super) fn not_multiple_of(&mut self, unit: &Decimal) {
        if !self.not_multiples.iter().any(|known| divides(known, unit)) {
            self.not_multiples.retain(|known| !divides(unit, known));
            self.not_multiples.push(unit.clone());
        }
    }

    /// Adds a lower bound.
    pub(super) fn raise(&mut self, bound: Bound) {
        if self.is_raised_by(&bound) {
            self.low = Some(bound);
        }
    }

    /// Adds an upper bound.
    pub(super) fn lower(&mut self, bound: Bound) {
        if self.is_lowered_by(&bound) {
            self.high = Some(bound);
        }
    }

    /// Whether a lower bound is tighter than what is known.
    pub(super) fn is_raised_by(&self, bound: &Bound) -> bool {
        self.low.as_ref().is_none_or(|old| {
            bound.value > old.value
                || (bound.value == old.value && bound.exclusive && !old.exclusive)
        })
    }

    /// Whether an upper bound is tighter than what is known.
    pub(super) fn is_lowered_by(&self, bound: &Bound) -> bool {
        self.high.as_ref().is_none_or(|old| {
            bound.value < old.value
                || (bound.value == old.value && bound.exclusive && !old.exclusive)
        })
    }

    pub(super) fn is_free(&self) -> bool {
        *self == NumberFacets::default()
    }

    /// Whether they look at nothing but the sign.
    pub(super) fn sign_decides(&self) -> bool {
        [&self.low, &self.high].into_iter().flatten().all(|bound| bound.value.is_zero())
            && self.excluded.iter().all(Decimal::is_zero)
            && self.multiples.is_empty()
            && self.not_multiples.is_empty()
    }

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

    /// Whether a number satisfies the bounds; multiples past the digit limit count as not satisfied.
    pub(super) fn allow(&self, value: &Decimal) -> bool {
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
    fn conjoin(&mut self, other: &StringFacets<'a>) {
        self.min = self.min.max(other.min);
        self.max = least(self.max, other.max);
        extend_distinct(&mut self.patterns, &other.patterns);
        extend_hashed(&mut self.excluded, &other.excluded);
    }

    pub(super) fn is_free(&self) -> bool {
        self.min == 0 && self.max.is_none() && self.patterns.is_empty() && self.excluded.is_empty()
    }
}

impl ArrayPart {
    fn is_free(&self) -> bool {
        self.rest.is_none() && self.prefix.iter().all(|&loc| loc == LocId::TRUE)
    }
}

impl ArrayFacets {
    fn conjoin(&mut self, other: &ArrayFacets) {
        extend_distinct(&mut self.parts, &other.parts);
        self.min = self.min.max(other.min);
        self.max = least(self.max, other.max);
        extend_distinct(&mut self.contains, &other.contains);
        self.unique = self.unique.or(other.unique);
    }

    pub(super) fn is_free(&self) -> bool {
        self.parts.iter().all(|part| part.is_free())
            && self.min == 0
            && self.max.is_none()
            && self.contains.is_empty()
            && self.unique.is_none()
    }

    /// Locations that constrain the element at this index.
    pub(super) fn element(&self, index: usize) -> Locs {
        self.parts.iter().filter_map(|p| p.prefix.get(index).copied().or(p.rest)).collect()
    }

    /// Length of the longest prefix.
    pub(super) fn prefix(&self) -> usize {
        self.parts.iter().map(|p| p.prefix.len()).max().unwrap_or(0)
    }
}

/// Parts with more properties than this are looked up by hash.
const INDEXED: usize = 12;

impl<'a> ObjectPart<'a> {
    pub(super) fn new(properties: Vec<(&'a str, LocId)>) -> ObjectPart<'a> {
        let index = if properties.len() > INDEXED {
            properties.iter().copied().collect()
        } else {
            HashMap::default()
        };
        ObjectPart {
            properties,
            index,
            patterns: Vec::new(),
            additional: None,
            covers: Covers::Named,
        }
    }

    fn is_free(&self) -> bool {
        self.properties.is_empty() && self.patterns.is_empty() && self.additional.is_none()
    }

    pub(super) fn property(&self, name: &str) -> Option<LocId> {
        if self.index.is_empty() {
            return self.properties.iter().find(|(n, _)| *n == name).map(|(_, loc)| *loc);
        }
        self.index.get(name).copied()
    }
}

impl<'a> ObjectFacets<'a> {
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
        self.max = least(self.max, other.max);
        extend_distinct(&mut self.names, &other.names);
        for member in &other.some {
            if !self.some.iter().any(|m| Rc::ptr_eq(m, member)) {
                self.some.push(member.clone());
            }
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.parts.iter().all(|part| part.is_free())
            && self.required.is_empty()
            && self.forbidden.is_empty()
            && self.min == 0
            && self.max.is_none()
            && self.names.is_empty()
            && self.some.is_empty()
    }
}

/// Whether every multiple of the second is known to be one of the first.
pub(super) fn divides(unit: &Decimal, other: &Decimal) -> bool {
    other.is_multiple_of(unit, 64) == Some(true)
}

/// The tighter of two upper bounds.
pub(super) fn least(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn extend_distinct<T: PartialEq + Clone>(list: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// The same for lists that may be long.
fn extend_hashed<T: Eq + Hash + Clone>(list: &mut Vec<T>, more: &[T]) {
    if list.len().saturating_mul(more.len()) <= FEW {
        return extend_distinct(list, more);
    }
    let known: HashSet<&T> = list.iter().collect();
    let more: Vec<T> = more.iter().filter(|item| !known.contains(item)).cloned().collect();
    list.extend(more);
}

/// So many comparisons cost less than a set.
const FEW: usize = 256;

/// A list that is asked so many times whether it has something: by a set, if it pays.
pub(super) struct Among<'l, T> {
    list: &'l [T],
    known: Option<HashSet<&'l T>>,
}

impl<'l, T: Eq + Hash> Among<'l, T> {
    pub(super) fn new(list: &'l [T], asked: usize) -> Self {
        let known = (list.len().saturating_mul(asked) > FEW).then(|| list.iter().collect());
        Among { list, known }
    }

    pub(super) fn has(&self, item: &T) -> bool {
        match &self.known {
            Some(known) => known.contains(item),
            None => self.list.contains(item),
        }
    }
}

/// The first of a list that is also in another one.
pub(super) fn shared<'l, T: Eq + Hash>(list: &'l [T], other: &'l [T]) -> Option<&'l T> {
    fuel::charge(1 + (list.len() + other.len()) / 8);
    let other = Among::new(other, list.len());
    list.iter().find(|item| other.has(item))
}

/// Whether another list has all of a list.
pub(super) fn contained<T: Eq + Hash>(list: &[T], other: &[T]) -> bool {
    fuel::charge(1 + (list.len() + other.len()) / 8);
    let other = Among::new(other, list.len());
    list.iter().all(|item| other.has(item))
}

/// Values of the first list that equal one of the second.
pub(super) fn common<'a>(a: &[&'a Json], b: &[&'a Json]) -> Vec<&'a Json> {
    let known: HashSet<String> = b.iter().map(|v| canonical(v)).collect();
    a.iter().copied().filter(|v| known.contains(&canonical(v))).collect()
}

/// One text for all values that JSON Schema calls equal: numbers by value, members in any order.
pub(super) fn canonical(json: &Json) -> String {
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
