//! When two schemas say the same: member for member as they are written, but for annotations.

use std::hash::{Hash, Hasher};

use super::SchemaOptions;
use crate::spec::json::Json;

/// Keywords that constrain nothing, in no dialect.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "$comment"
            | "title"
            | "description"
            | "examples"
            | "default"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
    )
}

/// A schema and how it is read, as the key of a cache. Schemas with equal keys lower to the same grammar, with the same report.
///
/// The order of members counts, as objects have their members in the order they are declared. Annotations do not, unless references may lead into
/// them. Numbers and strings are compared as they are written and read.
#[derive(Debug)]
pub(crate) struct SchemaKey {
    schema: Json,
    options: SchemaOptions,
    /// Whether annotations are left out.
    apart: bool,
}

/// What stands at some place of a schema.
#[derive(Clone, Copy)]
enum Place {
    Schema,
    /// An array of schemas, or one.
    Schemas,
    /// An object whose members are schemas, whatever their names.
    Named,
    /// Values, and whatever is not known.
    Data,
}

impl SchemaKey {
    /// Cost: a look at every subschema.
    pub(crate) fn new(schema: Json, options: SchemaOptions) -> SchemaKey {
        let apart = refers_simply(&schema, Place::Schema);
        SchemaKey { schema, options, apart }
    }

    pub(crate) fn schema(&self) -> &Json {
        &self.schema
    }

    pub(crate) fn options(&self) -> &SchemaOptions {
        &self.options
    }

    fn root(&self) -> Place {
        if self.apart { Place::Schema } else { Place::Data }
    }
}

impl PartialEq for SchemaKey {
    fn eq(&self, other: &Self) -> bool {
        let SchemaKey { schema, options, apart } = self;
        *apart == other.apart
            && *options == other.options
            && same(schema, &other.schema, self.root())
    }
}

impl Eq for SchemaKey {}

impl Hash for SchemaKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.options.hash(state);
        hash(&self.schema, self.root(), state);
    }
}

/// What a member of an object holds. Members of schemas that say nothing have none.
fn below(place: Place, name: &str) -> Option<Place> {
    Some(match place {
        Place::Data | Place::Schemas => Place::Data,
        Place::Named => Place::Schema,
        Place::Schema if is_annotation(name) => return None,
        Place::Schema => match name {
            "additionalItems"
            | "additionalProperties"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Place::Schema,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" | "items" => Place::Schemas,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => Place::Named,
            _ => Place::Data,
        },
    })
}

/// The place of an array's elements, and what an object at this place is.
fn elements(place: Place) -> Place {
    if matches!(place, Place::Schemas) { Place::Schema } else { Place::Data }
}

fn object(place: Place) -> Place {
    if matches!(place, Place::Schemas) { Place::Schema } else { place }
}

fn same(a: &Json, b: &Json, place: Place) -> bool {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            let place = object(place);
            let said = |name: &str| below(place, name);
            let mut a = a.iter().filter_map(|(name, value)| Some((name, value, said(name)?)));
            let mut b = b.iter().filter_map(|(name, value)| Some((name, value, said(name)?)));
            loop {
                match (a.next(), b.next()) {
                    (None, None) => return true,
                    (Some((name, a, place)), Some((other, b, _)))
                        if name == other && same(a, b, place) => {}
                    _ => return false,
                }
            }
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, elements(place)))
        }
        (a, b) => a == b,
    }
}

fn hash<H: Hasher>(json: &Json, place: Place, state: &mut H) {
    std::mem::discriminant(json).hash(state);
    match json {
        Json::Null => {}
        Json::Bool(value) => value.hash(state),
        Json::Number(number) => number.hash(state),
        Json::String(text) => text.hash(state),
        Json::Array(values) => {
            values.len().hash(state);
            values.iter().for_each(|value| hash(value, elements(place), state));
        }
        Json::Object(members) => {
            let place = object(place);
            for (name, value) in members.iter() {
                if let Some(place) = below(place, name) {
                    name.hash(state);
                    hash(value, place, state);
                }
            }
            // No member has an empty discriminant in front of it.
            u8::MAX.hash(state);
        }
    }
}

/// Whether all references lead to the root or to a definition, and none into an annotation.
fn refers_simply(json: &Json, place: Place) -> bool {
    match json {
        Json::Array(values) => values.iter().all(|value| refers_simply(value, elements(place))),
        Json::Object(members) => {
            let place = object(place);
            members.iter().all(|(name, value)| match (place, name) {
                (Place::Schema, "$ref") => value.as_str().is_some_and(is_simple),
                (Place::Schema, "$dynamicRef" | "$recursiveRef") => false,
                _ => below(place, name).is_none_or(|place| {
                    matches!(place, Place::Data) || refers_simply(value, place)
                }),
            })
        }
        _ => true,
    }
}

fn is_simple(reference: &str) -> bool {
    let name =
        reference.strip_prefix("#/$defs/").or_else(|| reference.strip_prefix("#/definitions/"));
    reference == "#" || name.is_some_and(|name| !name.contains(['/', '%']))
}

#[cfg(test)]
mod tests {
    use crate::hash::hasher;

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

    /// Pairs that say the same, and so lower to the same grammar.
    const SAME: &[[&str; 2]] = &[
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

    /// Pairs that do not, or for which that is not looked into.
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
    fn schemas_that_say_the_same_have_equal_keys() {
        let limits = Limits::default();
        let lowered = |key: &SchemaKey| {
            lower(key.schema(), key.options(), &limits).map(|grammar| grammar.to_string())
        };
        for [a, b] in SAME {
            let (x, y) = (key(a), key(b));
            assert!(x == y && hashed(&x) == hashed(&y), "{a} and {b}");
            assert_eq!(lowered(&x), lowered(&y), "{a} and {b}");
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
