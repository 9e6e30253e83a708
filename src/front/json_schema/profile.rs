//! The subset of JSON Schema that OpenAI's strict mode takes (structured outputs, strict
//! functions), as documented and observed in November 2026. Louver enforces much more; this tells
//! whether a schema would also be taken there, in that API's terms.

use std::fmt;

use crate::hash::HashSet;
use crate::spec::json::{Json, Object, push_token};

/// Most properties of all objects together.
const MAX_PROPERTIES: usize = 5_000;
/// Most levels of objects and arrays.
const MAX_LEVELS: usize = 10;
/// Most characters of property names, definition names, enum and const values together.
const MAX_CHARACTERS: usize = 120_000;
/// Most enum values of all enums together.
const MAX_ENUM_VALUES: usize = 1_000;
/// An enum of strings with more values than this may have at most [`MAX_LONG_ENUM`] characters.
const LONG_ENUM: usize = 250;
const MAX_LONG_ENUM: usize = 15_000;

/// Keywords that the subset leaves out.
const NOT_PERMITTED: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "additionalItems",
    "$dynamicRef",
    "$recursiveRef",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "minLength",
    "maxLength",
    "default",
];

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// One thing that strict mode would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// JSON pointer to the schema it is about.
    pub pointer: String,
    /// The API's way of naming that place: keys and indices on the way to it.
    pub context: Vec<String>,
    /// What is wrong.
    pub message: String,
}

/// As the API words it.
impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context: Vec<String> = self.context.iter().map(|step| format!("'{step}'")).collect();
        let comma = if context.len() == 1 { "," } else { "" };
        let message = &self.message;
        write!(f, "Invalid schema: In context=({}{comma}), {message}", context.join(", "))
    }
}

/// What strict mode would refuse about a schema; empty if it would be taken. References are not followed: definitions are checked
/// where they stand. Cost: linear.
pub fn openai_strict(schema: &Json) -> Vec<ProfileError> {
    let mut check = Check {
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
        Some(other) => {
            check.error(
                &[],
                format!(
                    "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{other}\"'."
                ),
            );
        }
        None => check.error(
            &[],
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.".into(),
        ),
    }
    check.pending.push((schema, Vec::new(), 0));
    while let Some((schema, path, level)) = check.pending.pop() {
        check.schema(schema, &path, level);
    }
    check.totals();
    check.errors
}

struct Check<'a> {
    root: &'a Json,
    errors: Vec<ProfileError>,
    /// Schemas still to be looked at, their places and levels.
    pending: Vec<(&'a Json, Vec<String>, usize)>,
    properties: usize,
    characters: usize,
    values: usize,
}

impl<'a> Check<'a> {
    fn error(&mut self, path: &[String], message: String) {
        let mut pointer = String::new();
        path.iter().for_each(|step| push_token(&mut pointer, step));
        self.errors.push(ProfileError { pointer, context: path.to_vec(), message });
    }

    fn later(&mut self, schema: &'a Json, path: &[String], steps: &[&str], level: usize) {
        let path =
            path.iter().cloned().chain(steps.iter().map(|step| (*step).to_owned())).collect();
        self.pending.push((schema, path, level));
    }

    fn schema(&mut self, schema: &'a Json, path: &[String], level: usize) {
        let Some(object) = schema.as_object() else {
            return self.error(path, "schema must be an object.".into());
        };
        for keyword in NOT_PERMITTED.iter().filter(|keyword| object.get(keyword).is_some()) {
            self.error(path, format!("'{keyword}' is not permitted."));
        }
        if !["type", "$ref", "anyOf", "enum", "const"]
            .iter()
            .any(|keyword| object.get(keyword).is_some())
        {
            self.error(path, "schema must have a 'type' key.".into());
        }
        self.reference(object, path);
        let types: Vec<&str> = match object.get("type") {
            Some(Json::String(name)) => vec![name],
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        for name in types.iter().filter(|name| !TYPES.contains(name)) {
            self.error(path, format!("'{name}' is not a valid type."));
        }
        self.text(object, path);
        let nested = types.contains(&"object") || types.contains(&"array");
        if nested && level >= MAX_LEVELS {
            let message = format!("{} levels of nesting exceeds limit of {MAX_LEVELS}.", level + 1);
            return self.error(path, message);
        }
        if types.contains(&"object") || object.get("properties").is_some() {
            self.object(object, path);
        }
        if types.contains(&"array") && object.get("items").is_none() {
            self.error(path, "array schema missing items.".into());
        }
        self.listed(object, path);
        let below = level + usize::from(nested);
        for keyword in ["properties", "$defs", "definitions"] {
            for (name, schema) in
                object.get(keyword).and_then(Json::as_object).into_iter().flat_map(Object::iter)
            {
                self.characters += name.chars().count();
                self.later(
                    schema,
                    path,
                    &[keyword, name],
                    if keyword == "properties" { below } else { 0 },
                );
            }
        }
        if let Some(items) = object.get("items") {
            self.later(items, path, &["items"], below);
        }
        for (i, branch) in
            object.get("anyOf").and_then(Json::as_array).unwrap_or_default().iter().enumerate()
        {
            self.later(branch, path, &["anyOf", &i.to_string()], level);
        }
    }

    /// `$ref` stands alone, and leads into the schema.
    fn reference(&mut self, object: &'a Object, path: &[String]) {
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

    /// `format` and `pattern`.
    fn text(&mut self, object: &'a Object, path: &[String]) {
        if let Some(format) = object.get("format") {
            let name = format.as_str().map_or_else(|| format.to_string(), str::to_owned);
            if !FORMATS.contains(&&*name) {
                self.error(path, format!("'{name}' is not a valid format."));
            }
        }
        if object.get("pattern").and_then(Json::as_str).is_some_and(looks_around) {
            self.error(path, "regex lookaround is not supported.".into());
        }
    }

    fn object(&mut self, object: &'a Object, path: &[String]) {
        if object.get("additionalProperties") != Some(&Json::Bool(false)) {
            self.error(
                path,
                "'additionalProperties' is required to be supplied and to be false.".into(),
            );
        }
        let required: HashSet<&str> = object
            .get("required")
            .and_then(Json::as_array)
            .unwrap_or_default()
            .iter()
            .filter_map(Json::as_str)
            .collect();
        let Some(properties) = object.get("properties").and_then(Json::as_object) else { return };
        self.properties += properties.len();
        let all = "'required' is required to be supplied and to be an array including every key in properties.";
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

    /// `enum` and `const`.
    fn listed(&mut self, object: &'a Object, path: &[String]) {
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
                "an enum of more than {LONG_ENUM} strings may have at most {MAX_LONG_ENUM} characters."
            );
            self.error(path, what);
        }
    }

    fn totals(&mut self) {
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

/// Whether a pattern has a group of look-ahead or look-behind.
fn looks_around(pattern: &str) -> bool {
    let (mut escaped, mut in_class) = (false, false);
    pattern.char_indices().any(|(at, c)| {
        let plain = !escaped;
        escaped = plain && c == '\\';
        in_class = plain && c == '[' || in_class && !(plain && c == ']');
        plain
            && !in_class
            && ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern[at..].starts_with(group))
    })
}
