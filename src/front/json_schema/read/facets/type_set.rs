//! Sets of JSON types.

use std::fmt;

use super::super::super::decimal::Decimal;
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
