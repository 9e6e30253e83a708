//! Schemas that need not be looked at until a parse gets to them.

use super::{Formats, Registry, SchemaOptions, lower_reported};
use crate::ir::Deferred;
use crate::limits::Limits;
use crate::spec::json::{Json, Object};

/// Deepest nesting that is looked through.
const MAX_DEPTH: usize = 12;
/// Most schemas, names and constants in one.
const MAX_NODES: usize = 1_000;
/// Most declared members of one object.
const MAX_MEMBERS: usize = 32;
/// Largest bound of a number, so that no arithmetic is needed to compare two.
const MAX_BOUND: i64 = 1 << 50;
/// Longest string with bounds on its length.
const MAX_LENGTH: i64 = 1 << 20;

/// The JSON texts that a schema allows, lowered when a parse gets to them. `None` where it takes lowering to tell whether the schema
/// can be enforced: what is deferred is certain to be. Deferred are schemas of types, properties, items, lists of strings or whole numbers, and plain bounds, as most tools' are. Cost: one
/// look at each part of the schema.
///
/// ```
/// # use louver::front::json_schema::{SchemaOptions, defer};
/// # use louver::limits::Limits;
/// # use louver::spec::json::Json;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits::default();
/// let options = SchemaOptions::default();
/// let schema = Json::parse(r#"{"type": "object", "properties": {"city": {"type": "string"}}}"#, &limits)?;
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
    // Limits that even small schemas may reach are for lowering to check.
    let ample = limits.depth >= default.depth && limits.nodes >= default.nodes;
    let ample = ample && limits.automaton_states >= default.automaton_states;
    let ample = ample && limits.compile_fuel >= default.compile_fuel;
    if !ample || limits.compiled_states < default.compiled_states || options.max_digits.is_some() {
        return None;
    }
    let mut look = Look { options, left: MAX_NODES };
    if !look.is_plain(schema, 0) {
        return None;
    }
    let (schema, options, limits) = (schema.clone(), *options, limits.clone());
    Some(Deferred::new(move || {
        let lowered = lower_reported(&schema, &Registry::default(), &options, &limits);
        Some(lowered.ok()?.grammar)
    }))
}

struct Look<'o> {
    options: &'o SchemaOptions,
    left: usize,
}

impl Look<'_> {
    fn take(&mut self, parts: usize) -> bool {
        let enough = self.left >= parts;
        self.left = self.left.saturating_sub(parts);
        enough
    }

    /// Whether a schema is understood whatever it stands beside, and some value satisfies it.
    fn is_plain(&mut self, schema: &Json, depth: usize) -> bool {
        let object = match schema {
            Json::Bool(true) => return true,
            Json::Object(object) => object,
            _ => return false,
        };
        if depth > MAX_DEPTH || !self.take(1 + object.len()) {
            return false;
        }
        let Some(types) = types(object) else { return false };
        object.iter().all(|(keyword, value)| match keyword {
            "type" | "title" | "description" | "default" | "examples" | "example" | "$comment"
            | "deprecated" | "readOnly" | "writeOnly" => true,
            "$schema" => depth == 0 && value.as_str().is_some_and(is_dialect),
            "properties" => self.properties(value, depth),
            "required" => required(object, value),
            "items" => value.as_array().is_none() && self.is_plain(value, depth + 1),
            "additionalProperties" => {
                matches!(value, Json::Bool(_)) || self.is_plain(value, depth + 1)
            }
            "enum" => self.listed(object, types, value),
            "format" => self.options.formats == Formats::Annotate,
            "minimum" | "maximum" => {
                (types == ["integer"] || types == ["number"]) && object.get("enum").is_none()
            }
            "minLength" | "maxLength" => types == ["string"] && object.get("enum").is_none(),
            "minItems" | "maxItems" => types == ["array"],
            "anyOf" => is_alone(object) && self.alternatives(value, depth),
            _ => false,
        }) && ordered(object, ("minimum", "maximum"), -MAX_BOUND..=MAX_BOUND)
            && ordered(object, ("minLength", "maxLength"), 0..=MAX_LENGTH)
            && ordered(object, ("minItems", "maxItems"), 0..=MAX_LENGTH)
    }

    fn properties(&mut self, value: &Json, depth: usize) -> bool {
        let Some(properties) = value.as_object().filter(|members| members.len() <= MAX_MEMBERS)
        else {
            return false;
        };
        properties.iter().all(|(_, schema)| self.is_plain(schema, depth + 1))
    }

    /// Whether an `enum` is a list of strings or one of whole numbers, none of them twice, where such are allowed.
    fn listed(&mut self, object: &Object, types: Types<'_>, value: &Json) -> bool {
        let Some(values) =
            value.as_array().filter(|values| !values.is_empty() && self.take(values.len()))
        else {
            return false;
        };
        let allows =
            |kinds: &[&str]| types.is_empty() || types.iter().any(|name| kinds.contains(name));
        if values[0].as_str().is_none() {
            return allows(&["integer", "number"])
                && differ(
                    values
                        .iter()
                        .map(|value| whole(value).filter(|n| (-MAX_BOUND..=MAX_BOUND).contains(n))),
                );
        }
        let bounded =
            object.iter().any(|(keyword, _)| matches!(keyword, "minLength" | "maxLength"));
        allows(&["string"]) && !bounded && differ(values.iter().map(Json::as_str))
    }

    fn alternatives(&mut self, value: &Json, depth: usize) -> bool {
        let Some(schemas) = value.as_array() else { return false };
        !schemas.is_empty() && schemas.iter().all(|schema| self.is_plain(schema, depth + 1))
    }
}

/// Whether all are there, and none is there twice.
fn differ<T: Ord>(values: impl Iterator<Item = Option<T>>) -> bool {
    let Some(mut values) = values.collect::<Option<Vec<T>>>() else { return false };
    values.sort_unstable();
    values.windows(2).all(|pair| pair[0] != pair[1])
}

/// Names of types; none: any.
type Types<'a> = &'a [&'a str];

const TYPES: [&[&str]; 7] =
    [&["string"], &["number"], &["integer"], &["boolean"], &["object"], &["array"], &["null"]];

/// The type that a schema asks for, or none; `None` where it is anything else than a name.
fn types(object: &Object) -> Option<Types<'static>> {
    let Some(value) = object.get("type") else { return Some(&[]) };
    let name = value.as_str()?;
    TYPES.into_iter().find(|types| *types == [name])
}

fn is_dialect(uri: &str) -> bool {
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    matches!(
        uri,
        "http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft/2020-12/schema"
    )
}

/// Whether `required` lists declared members, each once.
fn required(object: &Object, value: &Json) -> bool {
    let Some(names) = value.as_array() else { return false };
    let properties = object.get("properties").and_then(Json::as_object);
    let declared = |name: &&str| properties.is_some_and(|members| members.get(name).is_some());
    let mut known: Vec<&str> = names.iter().filter_map(Json::as_str).filter(declared).collect();
    known.sort_unstable();
    known.len() == names.len() && known.windows(2).all(|pair| pair[0] != pair[1])
}

/// Whether nothing but annotations stands beside `anyOf`.
fn is_alone(object: &Object) -> bool {
    object.iter().all(|(keyword, _)| {
        matches!(keyword, "anyOf" | "title" | "description" | "default" | "examples")
    })
}

/// Whether bounds are whole numbers of this range, the lower one not above the upper one.
fn ordered(
    object: &Object,
    (low, high): (&str, &str),
    range: std::ops::RangeInclusive<i64>,
) -> bool {
    let bound = |name: &str, otherwise: i64| match object.get(name) {
        None => Some(otherwise),
        Some(value) => whole(value).filter(|bound| range.contains(bound)),
    };
    matches!((bound(low, *range.start()), bound(high, *range.end())), (Some(low), Some(high)) if low <= high)
}

fn whole(value: &Json) -> Option<i64> {
    match value {
        Json::Number(number) => number.as_str().parse().ok(),
        _ => None,
    }
}
