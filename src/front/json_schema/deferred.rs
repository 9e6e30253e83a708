//! Deferred schemas: a schema is lowered when a parse first reaches it. Used for the argument
//! schemas of tools, most of which a model never calls.
//!
//! Errors must still be found when the request is made. So only schemas are deferred of which a
//! cheap check of the keywords shows that lowering cannot fail.

use super::lower_reported;
use super::options::{Formats, SchemaOptions};
use super::read::registry::Registry;
use super::subschemas::is_annotation;
use crate::ir::Deferred;
use crate::limits::Limits;
use crate::spec::json::{Json, Object};

/// Deepest nesting of a deferred schema.
const MAX_DEPTH: usize = 12;
/// The largest number of schemas, keywords and constants of a deferred schema.
const MAX_NODES: usize = 1_000;
/// The largest number of declared members of one object.
const MAX_MEMBERS: usize = 32;
/// Largest absolute value of a bound; so bounds compare as integers.
const MAX_BOUND: i64 = 1 << 50;
/// Largest bound on a length.
const MAX_LENGTH: i64 = 1 << 20;

/// The grammar of a schema, lowered when a parse first reaches it. `None` if only lowering can tell
/// whether the schema can be enforced; a deferred schema certainly can.
///
/// Schemas can be deferred that use types, properties, items, lists of strings or integers, and
/// plain bounds, as those of most tools do. Cost: linear in the schema.
///
/// ```
/// # use louver::front::json_schema::defer;
/// # use louver::{Json, Limits, SchemaOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits::default();
/// let options = SchemaOptions::default();
/// let text = r#"{"type": "object", "properties": {"city": {"type": "string"}}}"#;
/// let schema = Json::parse(text, &limits)?;
/// let deferred = defer(&schema, &options, &limits).expect("a plain schema");
/// assert!(!deferred.is_made());
/// assert!(deferred.grammar().is_some());
/// let schema = Json::parse(r#"{"type": "string", "pattern": "^("}"#, &limits)?;
/// assert!(defer(&schema, &options, &limits).is_none());
/// # Ok(())
/// # }
/// ```
pub fn defer(schema: &Json, options: &SchemaOptions, limits: &Limits) -> Option<Deferred> {
    let default = Limits::default();
    // With lower limits than the default ones, even small schemas may fail: those are lowered at
    // once.
    let ample = limits.depth >= default.depth && limits.nodes >= default.nodes;
    let ample = ample && limits.automaton_states >= default.automaton_states;
    let ample = ample && limits.compile_fuel >= default.compile_fuel;
    if !ample || limits.compiled_states < default.compiled_states || options.max_digits.is_some() {
        return None;
    }
    let mut check = DeferralCheck { options, remaining: MAX_NODES };
    if !check.can_be_deferred(schema, 0) {
        return None;
    }
    let (schema, options, limits) = (schema.clone(), *options, limits.clone());
    Some(Deferred::new(move || {
        let lowered = lower_reported(&schema, &Registry::default(), &options, &limits);
        Some(lowered.ok()?.grammar)
    }))
}

/// The check whether a schema can be deferred.
struct DeferralCheck<'o> {
    options: &'o SchemaOptions,
    /// How many more schemas, keywords and constants it may have.
    remaining: usize,
}

impl DeferralCheck<'_> {
    /// Counts parts of the schema; `false` if there are too many.
    fn count(&mut self, parts: usize) -> bool {
        let enough = self.remaining >= parts;
        self.remaining = self.remaining.saturating_sub(parts);
        enough
    }

    /// Whether a schema can certainly be lowered, wherever it stands, and is satisfiable.
    fn can_be_deferred(&mut self, schema: &Json, depth: usize) -> bool {
        let object = match schema {
            Json::Bool(true) => return true,
            Json::Object(object) => object,
            _ => return false,
        };
        if depth > MAX_DEPTH || !self.count(1 + object.len()) {
            return false;
        }
        let Some(types) = type_names(object) else { return false };
        object.iter().all(|(keyword, value)| match keyword {
            "type" | "example" => true,
            _ if is_annotation(keyword) => true,
            "$schema" => depth == 0 && value.as_str().is_some_and(is_dialect),
            "properties" => self.properties_can_be_deferred(value, depth),
            "required" => lists_declared_members(object, value),
            "items" => value.as_array().is_none() && self.can_be_deferred(value, depth + 1),
            "additionalProperties" => {
                matches!(value, Json::Bool(_)) || self.can_be_deferred(value, depth + 1)
            }
            "enum" => self.enum_is_plain(object, types, value),
            "format" => self.options.formats == Formats::Annotate,
            "minimum" | "maximum" => {
                (types == ["integer"] || types == ["number"]) && object.get("enum").is_none()
            }
            "minLength" | "maxLength" => types == ["string"] && object.get("enum").is_none(),
            "minItems" | "maxItems" => types == ["array"],
            "anyOf" => {
                has_only_annotations_beside(object) && self.branches_can_be_deferred(value, depth)
            }
            _ => false,
        }) && bounds_are_ordered(object, ("minimum", "maximum"), -MAX_BOUND..=MAX_BOUND)
            && bounds_are_ordered(object, ("minLength", "maxLength"), 0..=MAX_LENGTH)
            && bounds_are_ordered(object, ("minItems", "maxItems"), 0..=MAX_LENGTH)
    }

    /// Whether all properties can be deferred.
    fn properties_can_be_deferred(&mut self, value: &Json, depth: usize) -> bool {
        let Some(properties) = value.as_object().filter(|members| members.len() <= MAX_MEMBERS)
        else {
            return false;
        };
        properties.iter().all(|(_, schema)| self.can_be_deferred(schema, depth + 1))
    }

    /// Whether an `enum` lists distinct strings, or distinct integers, of a type that the schema
    /// allows.
    fn enum_is_plain(&mut self, object: &Object, types: TypeNames<'_>, value: &Json) -> bool {
        let Some(values) =
            value.as_array().filter(|values| !values.is_empty() && self.count(values.len()))
        else {
            return false;
        };
        let allows =
            |kinds: &[&str]| types.is_empty() || types.iter().any(|name| kinds.contains(name));
        if values[0].as_str().is_none() {
            return allows(&["integer", "number"])
                && all_distinct(
                    values.iter().map(|value| {
                        as_i64(value).filter(|n| (-MAX_BOUND..=MAX_BOUND).contains(n))
                    }),
                );
        }
        let bounded =
            object.iter().any(|(keyword, _)| matches!(keyword, "minLength" | "maxLength"));
        allows(&["string"]) && !bounded && all_distinct(values.iter().map(Json::as_str))
    }

    /// Whether all branches of `anyOf` can be deferred.
    fn branches_can_be_deferred(&mut self, value: &Json, depth: usize) -> bool {
        let Some(schemas) = value.as_array() else { return false };
        !schemas.is_empty() && schemas.iter().all(|schema| self.can_be_deferred(schema, depth + 1))
    }
}

/// Whether all values are present and distinct.
fn all_distinct<T: Ord>(values: impl Iterator<Item = Option<T>>) -> bool {
    let Some(mut values) = values.collect::<Option<Vec<T>>>() else { return false };
    values.sort_unstable();
    values.windows(2).all(|pair| pair[0] != pair[1])
}

/// Type names; an empty list allows all types.
type TypeNames<'a> = &'a [&'a str];

/// All type names.
const TYPES: [&[&str]; 7] =
    [&["string"], &["number"], &["integer"], &["boolean"], &["object"], &["array"], &["null"]];

/// The type of a schema, as a list of at most one name; `None` if `type` is not a type name.
fn type_names(object: &Object) -> Option<TypeNames<'static>> {
    let Some(value) = object.get("type") else { return Some(&[]) };
    let name = value.as_str()?;
    TYPES.into_iter().find(|types| *types == [name])
}

/// Whether the URI is that of draft 7 or 2020-12.
fn is_dialect(uri: &str) -> bool {
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    matches!(
        uri,
        "http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft/2020-12/schema"
    )
}

/// Whether `required` lists declared members, each once.
fn lists_declared_members(object: &Object, value: &Json) -> bool {
    let Some(names) = value.as_array() else { return false };
    let properties = object.get("properties").and_then(Json::as_object);
    let declared = |name: &&str| properties.is_some_and(|members| members.get(name).is_some());
    let mut listed: Vec<&str> = names.iter().filter_map(Json::as_str).filter(declared).collect();
    listed.sort_unstable();
    listed.len() == names.len() && listed.windows(2).all(|pair| pair[0] != pair[1])
}

/// Whether `anyOf` has no sibling but annotations.
fn has_only_annotations_beside(object: &Object) -> bool {
    object.iter().all(|(keyword, _)| keyword == "anyOf" || is_annotation(keyword))
}

/// Whether the bounds are integers in this range, and the lower one is not above the upper one.
fn bounds_are_ordered(
    object: &Object,
    (low, high): (&str, &str),
    range: std::ops::RangeInclusive<i64>,
) -> bool {
    let bound = |name: &str, otherwise: i64| match object.get(name) {
        None => Some(otherwise),
        Some(value) => as_i64(value).filter(|bound| range.contains(bound)),
    };
    let (low, high) = (bound(low, *range.start()), bound(high, *range.end()));
    low.zip(high).is_some_and(|(low, high)| low <= high)
}

/// The value of an integer.
fn as_i64(value: &Json) -> Option<i64> {
    match value {
        Json::Number(number) => number.as_str().parse().ok(),
        _ => None,
    }
}
