//! Schema equality up to annotations, as a key of caches of compiled grammars.
//!
//! Two schemas with equal keys lower to the same grammar with the same report. The comparison is
//! syntactic: member for member, in order, without annotations such as `title` and `description`.

use std::hash::{Hash, Hasher};

use super::keyword::{Keyword, KeywordVocabulary, SchemaPosition};
use super::options::SchemaOptions;
use crate::fuel;
use crate::hash::hasher;
use crate::spec::json::{Json, Object};

/// Bytes of a schema in memory that are hashed for one unit of fuel.
const BYTES_PER_UNIT: usize = 8;

/// A schema with its options, as the key of a cache.
///
/// The order of members counts, as the grammar depends on it. Annotations do not count, unless a
/// reference may lead into one. Numbers and strings are compared as parsed.
#[derive(Debug)]
pub(crate) struct SchemaKey {
    schema: Json,
    options: SchemaOptions,
    /// Whether annotations are ignored.
    ignores_annotations: bool,
}

impl SchemaKey {
    /// Makes a key. Cost: linear in the schema.
    pub(crate) fn new(schema: Json, options: SchemaOptions) -> SchemaKey {
        let ignores_annotations = has_simple_references_only(&schema, SchemaPosition::Schema);
        SchemaKey { schema, options, ignores_annotations }
    }

    /// The schema.
    pub(crate) fn schema(&self) -> &Json {
        &self.schema
    }

    /// The options.
    pub(crate) fn options(&self) -> &SchemaOptions {
        &self.options
    }

    /// The position of the whole schema.
    fn root(&self) -> SchemaPosition {
        if self.ignores_annotations { SchemaPosition::Schema } else { SchemaPosition::Data }
    }
}

impl PartialEq for SchemaKey {
    fn eq(&self, other: &Self) -> bool {
        let SchemaKey { schema, options, ignores_annotations } = self;
        *ignores_annotations == other.ignores_annotations
            && *options == other.options
            && equal_values(schema, &other.schema, self.root())
    }
}

impl Eq for SchemaKey {}

impl Hash for SchemaKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.options.hash(state);
        hash_value(&self.schema, self.root(), state);
    }
}

/// The position of a member's value; `None` for an annotation.
fn member_position(position: SchemaPosition, name: &str) -> Option<SchemaPosition> {
    match position {
        SchemaPosition::Schema => match Keyword::lookup(name) {
            Some(known) if known.vocabulary == KeywordVocabulary::Annotation => None,
            known => Some(known.map_or(SchemaPosition::Data, |known| known.value)),
        },
        SchemaPosition::SchemaMap => Some(SchemaPosition::Schema),
        _ => Some(SchemaPosition::Data),
    }
}

/// The position of an array's elements.
fn element_position(position: SchemaPosition) -> SchemaPosition {
    match position {
        SchemaPosition::SchemaList | SchemaPosition::SchemaOrList => SchemaPosition::Schema,
        _ => SchemaPosition::Data,
    }
}

/// The position of an object at this position.
fn object_position(position: SchemaPosition) -> SchemaPosition {
    match position {
        SchemaPosition::SchemaList | SchemaPosition::SchemaOrList => SchemaPosition::Schema,
        other => other,
    }
}

/// The members of an object at this position that are no annotations, with their positions.
fn constraints(
    members: &Object,
    position: SchemaPosition,
) -> impl Iterator<Item = (&str, &Json, SchemaPosition)> {
    let position = object_position(position);
    let members = members.iter();
    members.filter_map(move |(name, value)| Some((name, value, member_position(position, name)?)))
}

/// Whether two schemas are equal, up to annotations.
pub(super) fn equal_schemas(a: &Json, b: &Json) -> bool {
    equal_values(a, b, SchemaPosition::Schema)
}

/// The hash of a schema up to annotations, which equal schemas have in common.
#[derive(Clone, Copy)]
pub(super) struct SchemaHash {
    pub(super) hash: u64,
    /// Fuel for hashing it, or for comparing it with an equal one.
    pub(super) cost: usize,
}

impl SchemaHash {
    /// Hashes a schema.
    pub(super) fn new(schema: &Json) -> SchemaHash {
        let cost = schema.bytes() / BYTES_PER_UNIT;
        fuel::charge(cost);
        let mut hasher = hasher();
        hash_value(schema, SchemaPosition::Schema, &mut hasher);
        SchemaHash { hash: hasher.finish(), cost }
    }
}

/// Whether two values are equal, up to annotations.
fn equal_values(a: &Json, b: &Json, position: SchemaPosition) -> bool {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            let (mut a, mut b) = (constraints(a, position), constraints(b, position));
            loop {
                match (a.next(), b.next()) {
                    (None, None) => return true,
                    (Some((name, a, position)), Some((other, b, _)))
                        if name == other && equal_values(a, b, position) => {}
                    _ => return false,
                }
            }
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| equal_values(a, b, element_position(position)))
        }
        (a, b) => a == b,
    }
}

/// Hashes a value, up to annotations.
fn hash_value<H: Hasher>(json: &Json, position: SchemaPosition, state: &mut H) {
    std::mem::discriminant(json).hash(state);
    match json {
        Json::Null => {}
        Json::Bool(value) => value.hash(state),
        Json::Number(number) => number.hash(state),
        Json::String(text) => text.hash(state),
        Json::Array(values) => {
            values.len().hash(state);
            values.iter().for_each(|value| hash_value(value, element_position(position), state));
        }
        Json::Object(members) => {
            for (name, value, position) in constraints(members, position) {
                name.hash(state);
                hash_value(value, position, state);
            }
            // A terminator that no member begins with.
            u8::MAX.hash(state);
        }
    }
}

/// Whether all references lead to the root or a definition, and none into an annotation.
fn has_simple_references_only(json: &Json, position: SchemaPosition) -> bool {
    match json {
        Json::Array(values) => {
            values.iter().all(|value| has_simple_references_only(value, element_position(position)))
        }
        Json::Object(members) => {
            let position = object_position(position);
            members.iter().all(|(name, value)| match (position, name) {
                (SchemaPosition::Schema, "$ref") => value.as_str().is_some_and(is_simple_reference),
                (SchemaPosition::Schema, "$dynamicRef" | "$recursiveRef") => false,
                _ => member_position(position, name).is_none_or(|position| {
                    matches!(position, SchemaPosition::Data)
                        || has_simple_references_only(value, position)
                }),
            })
        }
        _ => true,
    }
}

/// Whether a reference leads to the root or a definition.
fn is_simple_reference(reference: &str) -> bool {
    let name =
        reference.strip_prefix("#/$defs/").or_else(|| reference.strip_prefix("#/definitions/"));
    reference == "#" || name.is_some_and(|name| !name.contains(['/', '%']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::json_schema::lower;
    use crate::limits::Limits;

    fn key(text: &str) -> SchemaKey {
        SchemaKey::new(Json::parse(text, &Limits::default()).unwrap(), SchemaOptions::default())
    }

    fn hashed(key: &SchemaKey) -> u64 {
        let mut hasher = hasher();
        key.hash(&mut hasher);
        hasher.finish()
    }

    /// Pairs of schemas that have equal keys, and so lower to the same grammar.
    const EQUAL: &[[&str; 2]] = &[
        [
            r#"{"type": "string", "title": "a"}"#,
            r#"{"description": "b", "type": "string", "examples": [1], "$comment": ""}"#,
        ],
        [
            r#"{"properties": {"a": {"type": "null", "default": {"enum": [1]}}}}"#,
            r#"{"properties": {"a": {"type": "null"}}}"#,
        ],
        [
            r#"{"items": [{"title": "x"}, {"type": "null"}]}"#,
            r#"{"items": [{}, {"readOnly": true, "type": "null"}]}"#,
        ],
        [r#"{"items": {"title": "x", "type": "null"}}"#, r#"{"items": {"type": "null"}}"#],
        [
            r#"{"anyOf": [{"title": "x", "type": "null"}, {"const": 2}]}"#,
            r#"{"anyOf": [{"type": "null"}, {"const": 2, "title": "y"}]}"#,
        ],
        [
            r#"{"additionalProperties": {"not": {"title": "x", "type": "null"}}}"#,
            r#"{"additionalProperties": {"not": {"type": "null"}}}"#,
        ],
        [
            r##"{"$ref": "#/$defs/title", "$defs": {"title": {"type": "null", "title": "x"}}}"##,
            r##"{"$ref": "#/$defs/title", "$defs": {"title": {"type": "null"}}}"##,
        ],
        [r#" { "type" : "null" } "#, r#"{"type":"null"}"#],
        [r#"{"const": "\u0061"}"#, r#"{"const": "a"}"#],
    ];

    /// Pairs of schemas with different keys.
    const DIFFERENT: &[[&str; 2]] = &[
        [r#"{"type": "string"}"#, r#"{"type": "number"}"#],
        [r#"{"properties": {"a": {}, "b": {}}}"#, r#"{"properties": {"b": {}, "a": {}}}"#],
        [r#"{"properties": {"title": {"type": "null"}}}"#, r#"{"properties": {}}"#],
        [
            r#"{"properties": {"title": {"type": "null"}}}"#,
            r#"{"properties": {"title": {"type": "string"}}}"#,
        ],
        [
            r#"{"patternProperties": {"default": {"const": 1}}}"#,
            r#"{"patternProperties": {"default": {"const": 2}}}"#,
        ],
        [r#"{"dependencies": {"default": ["a"]}}"#, r#"{"dependencies": {"default": ["b"]}}"#],
        [r#"{"const": {"title": "a"}}"#, r#"{"const": {"title": "b"}}"#],
        [r#"{"const": {"title": "a"}}"#, r#"{"const": {}}"#],
        [r#"{"enum": [{"default": 1}]}"#, r#"{"enum": [{"default": 2}]}"#],
        [r#"{"enum": [[{"title": 1}]]}"#, r#"{"enum": [[{}]]}"#],
        [r#"{"unknown": {"title": 1}}"#, r#"{"unknown": {"title": 2}}"#],
        [r#"{"const": 1}"#, r#"{"const": "1"}"#],
        [r#"{"const": 1}"#, r#"{"const": 1.0}"#],
        [r#"{"enum": [[1], 2]}"#, r#"{"enum": [[1, 2]]}"#],
        [r#"{"required": ["title"]}"#, r#"{"required": ["default"]}"#],
        [
            r##"{"$ref": "#/default", "default": {"type": "null"}}"##,
            r##"{"$ref": "#/default", "default": {"type": "string"}}"##,
        ],
        [
            r##"{"properties": {"a": {"$ref": "#/properties/b/default"}, "b": {"default": {"const": 1}}}}"##,
            r##"{"properties": {"a": {"$ref": "#/properties/b/default"}, "b": {"default": {"const": 2}}}}"##,
        ],
        [
            r##"{"$ref": "#/%64efault", "default": {"type": "null"}}"##,
            r##"{"$ref": "#/%64efault", "default": {"type": "string"}}"##,
        ],
        [
            r##"{"$ref": "#/$defs/a%2Fdefault", "$defs": {"a": {"default": {"const": 1}}}}"##,
            r##"{"$ref": "#/$defs/a%2Fdefault", "$defs": {"a": {"default": {"const": 2}}}}"##,
        ],
        [
            r##"{"$ref": "#/properties", "properties": {"const": {"title": 1}}}"##,
            r##"{"$ref": "#/properties", "properties": {"const": {"title": 2}}}"##,
        ],
        [
            r#"{"$ref": "x", "default": {"$id": "x", "type": "null"}}"#,
            r#"{"$ref": "x", "default": {"$id": "x", "type": "string"}}"#,
        ],
        [r#"{"$dynamicRef": "\u0023a", "title": "x"}"#, r#"{"$dynamicRef": "\u0023a"}"#],
    ];

    #[test]
    fn schemas_equal_up_to_annotations_have_equal_keys() {
        let limits = Limits::default();
        let lowered = |key: &SchemaKey| {
            lower(key.schema(), key.options(), &limits).map(|grammar| grammar.to_string())
        };
        for [a, b] in EQUAL {
            let (x, y) = (key(a), key(b));
            assert!(x == y && hashed(&x) == hashed(&y), "{a} and {b}");
            assert_eq!(lowered(&x), lowered(&y), "{a} and {b}");
            let hash = |key: &SchemaKey| SchemaHash::new(key.schema()).hash;
            assert!(hash(&x) == hash(&y) || !equal_schemas(x.schema(), y.schema()), "{a} and {b}");
            let compact = SchemaOptions {
                whitespace: crate::front::json_schema::Whitespace::Compact,
                ..*x.options()
            };
            assert!(SchemaKey { options: compact, ..key(a) } != y, "{a} with other options");
        }
        for [a, b] in DIFFERENT {
            assert!(key(a) != key(b), "{a} and {b}");
            assert!(key(a) == key(a) && hashed(&key(a)) == hashed(&key(a)), "{a}");
        }
        let all: Vec<SchemaKey> = DIFFERENT.iter().flatten().map(|text| key(text)).collect();
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            assert!(a != b || lowered(a) == lowered(b), "{a:?} and {b:?}");
        }
    }
}
