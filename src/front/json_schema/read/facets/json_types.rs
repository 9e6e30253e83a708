//! Sets of JSON types.

use std::fmt;

use crate::decimal::Decimal;
use crate::spec::json::Json;

/// A set of JSON types. Whole numbers and fractions are separate types; a number is either.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct JsonTypes(u8);

impl JsonTypes {
    /// `null`.
    pub const NULL: JsonTypes = JsonTypes(1);
    /// Booleans.
    pub const BOOLEAN: JsonTypes = JsonTypes(2);
    /// Whole numbers.
    pub const INTEGER: JsonTypes = JsonTypes(4);
    /// Numbers that are not whole.
    pub const FRACTION: JsonTypes = JsonTypes(8);
    /// All numbers.
    pub const NUMBER: JsonTypes = JsonTypes(12);
    /// Strings.
    pub const STRING: JsonTypes = JsonTypes(16);
    /// Arrays.
    pub const ARRAY: JsonTypes = JsonTypes(32);
    /// Objects.
    pub const OBJECT: JsonTypes = JsonTypes(64);
    /// All types.
    pub const ALL: JsonTypes = JsonTypes(127);

    /// The names that `type` may have, and their types.
    pub const NAMES: [(&'static str, JsonTypes); 7] = [
        ("null", JsonTypes::NULL),
        ("boolean", JsonTypes::BOOLEAN),
        ("integer", JsonTypes::INTEGER),
        ("number", JsonTypes::NUMBER),
        ("string", JsonTypes::STRING),
        ("array", JsonTypes::ARRAY),
        ("object", JsonTypes::OBJECT),
    ];

    /// The types of a name that `type` may have.
    pub fn named(name: &str) -> Option<JsonTypes> {
        JsonTypes::NAMES.iter().find(|(known, _)| *known == name).map(|(_, types)| *types)
    }

    /// The type of a value, as a set of one.
    pub(crate) fn of(json: &Json) -> JsonTypes {
        match json {
            Json::Null => JsonTypes::NULL,
            Json::Bool(_) => JsonTypes::BOOLEAN,
            Json::Number(n) if Decimal::parse(n.as_str()).is_integer() => JsonTypes::INTEGER,
            Json::Number(_) => JsonTypes::FRACTION,
            Json::String(_) => JsonTypes::STRING,
            Json::Array(_) => JsonTypes::ARRAY,
            Json::Object(_) => JsonTypes::OBJECT,
        }
    }

    /// The types of listed values. A whole number may be written in any spelling, such as
    /// `150e-1`, so that it counts as any number.
    pub fn of_listed<'j>(values: impl IntoIterator<Item = &'j Json>) -> JsonTypes {
        let values = values.into_iter().map(JsonTypes::of);
        let types = values.fold(JsonTypes::default(), JsonTypes::union);
        if types.meets(JsonTypes::NUMBER) { types.union(JsonTypes::NUMBER) } else { types }
    }

    /// The union.
    pub const fn union(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 | other.0)
    }

    /// The intersection.
    pub const fn intersect(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 & other.0)
    }

    /// The difference.
    pub const fn minus(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 & !other.0)
    }

    /// Whether the sets intersect.
    pub const fn meets(self, other: JsonTypes) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of the set: less than 128.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Debug for JsonTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonTypes({:#09b})", self.0)
    }
}
