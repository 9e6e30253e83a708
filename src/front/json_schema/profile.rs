//! Strict-mode profile: checks whether a schema is within the subset of JSON Schema that OpenAI's
//! strict mode accepts (structured outputs, strict functions), as documented and observed in
//! November 2026.
//!
//! Louver enforces much more than that subset. The messages use the wording of that API.

use std::fmt;

use super::keyword::subschemas;
use super::read::facets::JsonTypes;
use crate::hash::HashSet;
use crate::spec::json::{Json, Object, push_token};

/// The largest number of properties of all objects together.
const MAX_PROPERTIES: usize = 5_000;
/// The largest number of levels of objects and arrays.
const MAX_LEVELS: usize = 10;
/// The largest number of characters of property names, definition names, enum and const values
/// together.
const MAX_CHARACTERS: usize = 120_000;
/// The largest number of values of all enums together.
const MAX_ENUM_VALUES: usize = 1_000;
/// An enum of strings with more values than this may have at most [`MAX_LONG_ENUM`] characters.
const LONG_ENUM: usize = 250;
/// See [`LONG_ENUM`].
const MAX_LONG_ENUM: usize = 15_000;

/// Keywords of the subset. Any other member is refused.
const PERMITTED: [&str; 24] = [
    "$comment",
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// The formats that the subset allows.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// One violation of the subset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileError {
    /// JSON pointer to the schema that violates it.
    pub pointer: String,
    /// The same location as the API names it: the keys and indices of the path.
    pub context: Vec<String>,
    /// What is wrong.
    pub message: String,
}

/// The wording of the API.
impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context: Vec<String> = self.context.iter().map(|step| format!("'{step}'")).collect();
        let comma = if context.len() == 1 { "," } else { "" };
        let message = &self.message;
        write!(f, "Invalid schema: In context=({}{comma}), {message}", context.join(", "))
    }
}

/// All violations of the subset; empty if strict mode accepts the schema. References are not
/// followed: definitions are checked where they are. Cost: linear.
pub fn openai_strict(schema: &Json) -> Vec<ProfileError> {
    let mut check = StrictModeCheck {
        root: schema,
        errors: Vec::new(),
        pending: Vec::new(),
        properties: 0,
        characters: 0,
        values: 0,
    };
    match schema.get("type").and_then(Json::as_str) {
        _ if schema.get("anyOf").is_some() => {
            check.error(&[], "root schema must not be 'anyOf'.".into())
        }
        Some("object") => {}
        other => {
            let other = other.unwrap_or("None");
            let what = "schema must be a JSON Schema of 'type: \"object\"', got 'type: ";
            check.error(&[], format!("{what}\"{other}\"'."));
        }
    }
    check.pending.push((schema, Vec::new(), 0));
    while let Some((schema, path, level)) = check.pending.pop() {
        check.check_schema(schema, &path, level);
    }
    check.check_totals();
    check.errors
}

/// The state of a check.
struct StrictModeCheck<'a> {
    root: &'a Json,
    errors: Vec<ProfileError>,
    /// Schemas still to be checked, with their paths and levels.
    pending: Vec<(&'a Json, Vec<String>, usize)>,
    /// Properties so far.
    properties: usize,
    /// Characters of names and constants so far.
    characters: usize,
    /// Enum values so far.
    values: usize,
}

impl<'a> StrictModeCheck<'a> {
    /// Adds a violation.
    fn error(&mut self, path: &[String], message: String) {
        let mut pointer = String::new();
        path.iter().for_each(|step| push_token(&mut pointer, step));
        self.errors.push(ProfileError { pointer, context: path.to_vec(), message });
    }

    /// Checks one schema, without its subschemas, and queues those.
    fn check_schema(&mut self, schema: &'a Json, path: &[String], level: usize) {
        let Some(object) = schema.as_object() else {
            return self.error(path, "schema must be an object.".into());
        };
        for (keyword, _) in object.iter().filter(|(name, _)| !PERMITTED.contains(name)) {
            self.error(path, format!("'{keyword}' is not permitted."));
        }
        if ["type", "$ref", "anyOf"].iter().all(|keyword| object.get(keyword).is_none()) {
            self.error(path, "schema must have a 'type' key.".into());
        }
        self.check_reference(object, path);
        let types: Vec<&str> = match object.get("type") {
            Some(Json::String(name)) => vec![name],
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        for name in types.iter().filter(|name| JsonTypes::named(name).is_none()) {
            self.error(path, format!("'{name}' is not a valid type."));
        }
        self.check_string(object, path);
        let nested = types.contains(&"object") || types.contains(&"array");
        if nested && level >= MAX_LEVELS {
            let message = format!("{} levels of nesting exceeds limit of {MAX_LEVELS}.", level + 1);
            return self.error(path, message);
        }
        if types.contains(&"object") || object.get("properties").is_some() {
            self.check_object(object, path);
        }
        if types.contains(&"array") && object.get("items").is_none() {
            self.error(path, "array schema missing items.".into());
        }
        self.check_enum(object, path);
        self.check_constants(object, &types, path);
        let inner_level = level + usize::from(nested);
        for (keyword, level) in [
            ("properties", inner_level),
            ("$defs", 0),
            ("definitions", 0),
            ("items", inner_level),
            ("anyOf", level),
        ] {
            let Some(value) = object.get(keyword) else { continue };
            let schemas = match keyword {
                // A list of schemas is none.
                "items" => vec![(None, value)],
                _ => subschemas(keyword, value),
            };
            for (token, schema) in schemas {
                if keyword != "anyOf" {
                    self.characters += token.as_ref().map_or(0, |name| name.chars().count());
                }
                let steps = [keyword].into_iter().chain(token.as_deref()).map(str::to_owned);
                let path = path.iter().cloned().chain(steps).collect();
                self.pending.push((schema, path, level));
            }
        }
    }

    /// Checks `$ref`: it has no siblings, and its target exists.
    fn check_reference(&mut self, object: &'a Object, path: &[String]) {
        let Some(reference) = object.get("$ref") else { return };
        let siblings: Vec<String> = object
            .iter()
            .filter(|(name, _)| *name != "$ref")
            .map(|(name, _)| format!("'{name}'"))
            .collect();
        if !siblings.is_empty() {
            self.error(path, format!("$ref cannot have keywords {{{}}}.", siblings.join(", ")));
        }
        let target = reference.as_str().and_then(|text| text.strip_prefix('#'));
        if target.is_none_or(|pointer| self.root.pointer(pointer).is_none()) {
            let name = reference.as_str().map_or_else(|| reference.to_string(), str::to_owned);
            self.error(
                path,
                format!("reference to component '{name}' which was not found in the schema."),
            );
        }
    }

    /// Checks `format` and `pattern`.
    fn check_string(&mut self, object: &'a Object, path: &[String]) {
        if let Some(format) = object.get("format") {
            let name = format.as_str().map_or_else(|| format.to_string(), str::to_owned);
            if !FORMATS.contains(&&*name) {
                self.error(path, format!("'{name}' is not a valid format."));
            }
        }
        if object.get("pattern").and_then(Json::as_str).is_some_and(has_lookaround) {
            self.error(path, "regex lookaround is not supported.".into());
        }
    }

    /// Checks the members of an object schema.
    fn check_object(&mut self, object: &'a Object, path: &[String]) {
        if object.get("additionalProperties") != Some(&Json::Bool(false)) {
            self.error(
                path,
                "'additionalProperties' is required to be supplied and to be false.".into(),
            );
        }
        let names = object.get("required").and_then(Json::as_array).unwrap_or_default();
        let required: HashSet<&str> = names.iter().filter_map(Json::as_str).collect();
        if required.len() < names.iter().filter_map(Json::as_str).count() {
            let names = Json::Array(names.to_vec());
            self.error(path, format!("{names} has non-unique elements."));
        }
        let Some(properties) = object.get("properties").and_then(Json::as_object) else { return };
        self.properties += properties.len();
        let all = "'required' is required to be supplied and to be an array including every key in \
                   properties.";
        for (name, _) in properties.iter().filter(|(name, _)| !required.contains(name)) {
            self.error(path, format!("{all} Missing '{name}'."));
        }
        let mut extra: Vec<&str> =
            required.into_iter().filter(|name| properties.get(name).is_none()).collect();
        extra.sort_unstable();
        for name in extra {
            self.error(path, format!("{all} Extra required key '{name}' supplied."));
        }
    }

    /// Checks `enum`, and counts values and characters.
    fn check_enum(&mut self, object: &'a Object, path: &[String]) {
        let length = |value: &Json| {
            value.as_str().map_or_else(|| value.to_string().len(), |text| text.chars().count())
        };
        self.characters += object.get("const").map_or(0, length);
        let Some(values) = object.get("enum").and_then(Json::as_array) else { return };
        let characters: usize = values.iter().map(length).sum();
        self.values += values.len();
        self.characters += characters;
        if values.len() > LONG_ENUM
            && values.iter().all(|v| v.as_str().is_some())
            && characters > MAX_LONG_ENUM
        {
            let what = format!(
                "an enum of more than {LONG_ENUM} strings may have at most \
                 {MAX_LONG_ENUM} characters."
            );
            self.error(path, what);
        }
    }

    /// Checks that `enum` and `const` have values of the types.
    fn check_constants(&mut self, object: &'a Object, types: &[&str], path: &[String]) {
        let listed = object.get("enum").and_then(Json::as_array).unwrap_or_default();
        let values = listed.iter().map(|value| ("enum", value));
        for (keyword, value) in values.chain(object.get("const").map(|value| ("const", value))) {
            if !types.is_empty() && !types.iter().any(|name| is_of_type(value, name)) {
                let names = types.join("', '");
                self.error(path, format!("{keyword} value {value} does not match type '{names}'."));
            }
        }
    }

    /// Checks the limits of the whole schema.
    fn check_totals(&mut self) {
        for (count, most, what) in [
            (self.properties, MAX_PROPERTIES, "properties"),
            (self.characters, MAX_CHARACTERS, "characters in names, enum and const values"),
            (self.values, MAX_ENUM_VALUES, "enum values"),
        ] {
            if count > most {
                self.error(
                    &[],
                    format!("schema has {count} {what}; at most {most} are permitted."),
                );
            }
        }
    }
}

/// Whether a value has the type of this name; unknown names are reported as such.
fn is_of_type(value: &Json, name: &str) -> bool {
    JsonTypes::named(name).is_some_and(|types| types.meets(JsonTypes::of(value)))
}

/// Whether a pattern contains look-ahead or look-behind.
fn has_lookaround(pattern: &str) -> bool {
    let (mut escaped, mut in_class) = (false, false);
    pattern.char_indices().any(|(at, c)| {
        let is_literal = !escaped;
        escaped = is_literal && c == '\\';
        in_class = is_literal && c == '[' || in_class && !(is_literal && c == ']');
        is_literal
            && !in_class
            && ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern[at..].starts_with(group))
    })
}
