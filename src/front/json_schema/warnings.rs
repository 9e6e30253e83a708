//! Warnings of a schema: what probably constrains less than it was written to.
//!
//! JSON Schema ignores unknown keywords and formats, so that `requried` constrains nothing, without
//! an error.

use std::borrow::Cow;

use super::format;
use super::keyword::{Keyword, KeywordVocabulary, keywords, subschemas};
use super::options::Dialect;
use crate::front::DocumentWarning;
use crate::front::diagnostic::{is_same_name, suggestion};
use crate::front::regex::is_javascript_literal;
use crate::hash::HashSet;
use crate::spec::json::{Json, Object, push_token};

/// Number of warnings, at most.
const MAX_WARNINGS: usize = 20;
/// Unknown names that are compared with the keywords, at most: a schema may have 100,000.
const MAX_COMPARED: usize = 1_000;
/// Longest name that is compared, in bytes.
const MAX_BYTES: usize = 40;

/// Warns of what JSON Schema ignores although it was probably written to constrain: misspelled
/// keywords, such as `requried` and `min_length`, OpenAPI 3.0's `nullable`, unknown formats and
/// dialects, and patterns between slashes. At most 20 warnings; of the unknown names, the first
/// 1,000 are looked at. Cost: one walk over the schema.
///
/// ```
/// use louver::front::json_schema::warnings;
/// use louver::{Json, Limits};
///
/// # fn main() -> Result<(), louver::JsonError> {
/// let schema = r#"{"properties": {"requried": {"min_length": 3}}, "requried": ["requried"]}"#;
/// let found = warnings(&Json::parse(schema, &Limits::default())?);
/// let pointers: Vec<_> = found.iter().map(|warning| &*warning.pointer).collect();
/// assert_eq!(pointers, ["/requried", "/properties/requried/min_length"]);
/// assert_eq!(found[0].message, "no keyword, so it constrains nothing; is `required` meant?");
/// # Ok(())
/// # }
/// ```
pub fn warnings(schema: &Json) -> Vec<DocumentWarning> {
    let mut walk = Walk { pending: vec![(schema, None)], ..Walk::default() };
    while let Some((schema, at)) = walk.pending.pop() {
        walk.schema(schema, at);
        if walk.found.len() >= MAX_WARNINGS || walk.compared >= MAX_COMPARED {
            break;
        }
    }
    walk.found.truncate(MAX_WARNINGS);
    walk.found
}

/// A walk over the subschemas of a schema.
#[derive(Default)]
struct Walk<'s> {
    /// The token of each place in its JSON pointer, after the place whose index it has.
    steps: Vec<(Option<usize>, Cow<'s, str>)>,
    /// Schemas that are not visited yet, with the indices of their places.
    pending: Vec<(&'s Json, Option<usize>)>,
    /// The number of names that were compared with the keywords.
    compared: usize,
    /// The unknown formats that were found.
    formats: HashSet<&'s str>,
    found: Vec<DocumentWarning>,
}

impl<'s> Walk<'s> {
    fn schema(&mut self, schema: &'s Json, at: Option<usize>) {
        let Json::Object(members) = schema else { return };
        for (name, value) in members.iter() {
            let place = self.step(at, name.into());
            let Some(keyword) = Keyword::lookup(name) else {
                self.compared += 1;
                if self.compared > MAX_COMPARED {
                    return;
                }
                self.warn(place, unknown_name(name, value, members));
                continue;
            };
            match (keyword.name, value.as_str()) {
                ("format", _) => self.format(value, place),
                ("$schema", Some(uri)) if Dialect::named(uri).is_none() => {
                    let message = "no dialect that is known: without its metaschema in a \
                                   registry, the schema is read as one of draft 2020-12";
                    self.warn(place, Some(message.to_owned()));
                }
                ("pattern", Some(pattern)) if is_javascript_literal(pattern) => {
                    self.warn(place, Some(SLASHES.to_owned()));
                }
                ("divisibleBy" | "disallow" | "extends", _) => {
                    self.warn(place, other_name(name, value));
                }
                _ => {}
            }
            for (token, schema) in subschemas(name, value) {
                let place = token.map_or(place, |token| self.step(Some(place), token));
                self.pending.push((schema, Some(place)));
            }
        }
    }

    /// Warns of an unknown format where it is first met.
    fn format(&mut self, value: &'s Json, place: usize) {
        let Json::String(name) = value else { return };
        if format::lookup(name).is_none() && self.formats.insert(name) {
            let similar = format::names().filter(|known| is_similar(name, known, 3));
            let meant = similar.min_by_key(|known| edits(name, known));
            let message = "an unknown format, so it constrains nothing".to_owned();
            self.warn(place, Some(message + &suggestion(meant)));
        }
    }

    fn warn(&mut self, place: usize, message: Option<String>) {
        let warning =
            message.map(|message| DocumentWarning { pointer: self.pointer(place), message });
        self.found.extend(warning);
    }

    /// The index of a new place.
    fn step(&mut self, from: Option<usize>, token: Cow<'s, str>) -> usize {
        self.steps.push((from, token));
        self.steps.len() - 1
    }

    fn pointer(&self, place: usize) -> String {
        let to_root = std::iter::successors(Some(place), |&place| self.steps[place].0);
        let places: Vec<usize> = to_root.collect();
        let mut pointer = String::new();
        for place in places.into_iter().rev() {
            push_token(&mut pointer, &self.steps[place].1);
        }
        pointer
    }
}

/// Names that other libraries and drafts give to keywords, and that are not similar to these.
const OTHER_NAMES: [(&str, &str); 27] = [
    ("min", "minimum"),
    ("minValue", "minimum"),
    ("ge", "minimum"),
    ("gte", "minimum"),
    ("max", "maximum"),
    ("maxValue", "maximum"),
    ("le", "maximum"),
    ("lte", "maximum"),
    ("gt", "exclusiveMinimum"),
    ("exclusiveMin", "exclusiveMinimum"),
    ("lt", "exclusiveMaximum"),
    ("exclusiveMax", "exclusiveMaximum"),
    ("minLen", "minLength"),
    ("maxLen", "maxLength"),
    ("property", "properties"),
    ("additionalProps", "additionalProperties"),
    ("regex", "pattern"),
    ("regexp", "pattern"),
    ("choices", "enum"),
    ("values", "enum"),
    ("options", "enum"),
    ("allowed", "enum"),
    ("allowedValues", "enum"),
    ("unique", "uniqueItems"),
    ("divisibleBy", "multipleOf"),
    ("disallow", "not"),
    ("extends", "allOf"),
];

/// Names that no keyword corresponds to, with advice.
const NO_KEYWORDS: [(&str, &str); 3] = [
    ("optional", "a member is optional unless the `required` of its object names it"),
    ("formatMinimum", "texts of a format are not compared"),
    ("formatMaximum", "texts of a format are not compared"),
];

/// What is wrong with a name that is not a keyword and was probably meant to be one.
const NO_KEYWORD: &str = "no keyword, so it constrains nothing";

/// What is wrong with a name of [`OTHER_NAMES`] or [`NO_KEYWORDS`].
fn other_name(name: &str, value: &Json) -> Option<String> {
    let has_name = |(other, _): &&(&str, &str)| is_same_name(name, other);
    if let Some((_, advice)) = NO_KEYWORDS.iter().find(has_name) {
        return (*value != Json::Bool(false)).then(|| format!("{NO_KEYWORD}; {advice}"));
    }
    let (_, meant) = OTHER_NAMES.iter().find(has_name)?;
    // Other values under these names are those of annotations.
    let may_be_meant = match *meant {
        "enum" => value.as_array().is_some(),
        "uniqueItems" => *value == Json::Bool(true),
        _ => true,
    };
    may_be_meant.then(|| format!("{NO_KEYWORD}{}", suggestion(Some(meant))))
}

/// What is wrong with a pattern that is written as a regular expression of JavaScript.
pub(super) const SLASHES: &str = "the slashes are characters of the pattern: leave them out, and \
                                  write flags as in `(?i)`";

/// What is wrong with an unknown name among the members of a schema, if it is probably meant to
/// constrain.
fn unknown_name(name: &str, value: &Json, members: &Object) -> Option<String> {
    if name == "nullable" {
        let is_ignored = *value == Json::Bool(true) && !has_null(members);
        let message = "no keyword of JSON Schema, so it is ignored; write \"null\" among the types";
        return is_ignored.then(|| message.to_owned());
    }
    other_name(name, value).or_else(|| {
        let meant = suggestion(Some(meant(name)?));
        Some(format!("{NO_KEYWORD}{meant}"))
    })
}

/// Whether the types of a schema have `null`.
fn has_null(members: &Object) -> bool {
    let is_null = |value: &Json| matches!(value, Json::String(name) if name == "null");
    match members.get("type") {
        Some(Json::Array(types)) => types.iter().any(is_null),
        Some(value) => is_null(value),
        None => false,
    }
}

/// The keyword that an unknown name is probably meant to be. Annotations are not: a name that is
/// similar to one constrains as little.
fn meant(name: &str) -> Option<&'static str> {
    /// Shortest keyword of which one letter may differ: names of three letters are often others.
    const SHORT: usize = 4;
    // Names that begin so are taken out on purpose.
    let is_disabled = name.starts_with("x-") || name.starts_with(['_', '@', '#']);
    let is_meant = |keyword: &&Keyword| {
        keyword.vocabulary != KeywordVocabulary::Annotation && is_similar(name, keyword.name, SHORT)
    };
    let nearest = keywords().filter(is_meant).min_by_key(|keyword| edits(name, keyword.name));
    nearest.filter(|_| !is_disabled).map(|keyword| keyword.name)
}

/// The number of letters in which a name differs from a known one.
fn edits(name: &str, known: &str) -> usize {
    if is_same_name(name, known) { 0 } else { strsim::damerau_levenshtein(name, known) }
}

/// Whether a name differs from a known one in little: in capitals, underscores and hyphens, or in
/// one letter, from `shortest` bytes on, two in long names.
fn is_similar(name: &str, known: &str, shortest: usize) -> bool {
    /// Shortest known name of which two letters may differ.
    const LONG: usize = 9;
    let allowed = usize::from(known.len() >= shortest) + usize::from(known.len() >= LONG);
    name.len() <= MAX_BYTES
        && (is_same_name(name, known)
            || (name.len().abs_diff(known.len()) <= allowed
                && strsim::damerau_levenshtein(name, known) <= allowed))
}

/// Keywords that constrain values of one type.
const TYPED: [(&str, &[&str]); 4] = [
    (
        "object",
        &[
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
        ],
    ),
    ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"]),
    ("string", &["minLength", "maxLength", "pattern", "format"]),
    ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
];

/// Keywords beside which a schema needs no `type`: they choose values, or lead to schemas that do.
const CHOOSING: [&str; 10] =
    ["type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef"];

/// Warns of a whole schema that says how values of a type are, but not that values are of it:
/// `{"properties": {...}}` allows all that is no object. Not for subschemas, in which this is
/// usual, nor where values are of a type anyway, as arguments of tools are.
pub fn missing_type(schema: &Json) -> Option<DocumentWarning> {
    let members = schema.as_object()?;
    if CHOOSING.iter().any(|name| members.get(name).is_some()) {
        return None;
    }
    let typed = |name: &str| TYPED.iter().find(|(_, names)| names.contains(&name));
    let (name, of) = members.iter().find_map(|(name, _)| Some((name, typed(name)?.0)))?;
    let message = format!(
        "constrains values of the type `{of}` only, so all others are allowed; add \
         `\"type\": \"{of}\"` if they are not meant"
    );
    Some(DocumentWarning { pointer: format!("/{name}"), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    /// The pointers, each with what is to be written instead.
    fn advice_by_pointer(schema: &str) -> Vec<(String, String)> {
        let warnings = warnings(&Json::parse(schema, &Limits::default()).unwrap());
        let advice = |message: String| match message.rsplit_once("; ") {
            Some((_, advice)) => advice.replace("is `", "").replace("` meant?", ""),
            None => message,
        };
        warnings.into_iter().map(|w| (w.pointer, advice(w.message))).collect()
    }

    #[test]
    fn misspelled_keywords_are_found_in_all_subschemas() {
        for (schema, pointer, meant) in [
            (r#"{"requird": ["a"]}"#, "/requird", "required"),
            (r#"{"propertes": {"a": {"type": "string"}}}"#, "/propertes", "properties"),
            (
                r#"{"items": {"anyOf": [{}, {"max_length": 3}]}}"#,
                "/items/anyOf/1/max_length",
                "maxLength",
            ),
            (r#"{"$defs": {"a/b": {"MinItems": 1}}}"#, "/$defs/a~1b/MinItems", "minItems"),
            (r#"{"additionalproperties": false}"#, "/additionalproperties", "additionalProperties"),
            (r#"{"aditionalPropertes": false}"#, "/aditionalPropertes", "additionalProperties"),
            (r#"{"item": {"type": "string"}}"#, "/item", "items"),
            (r#"{"mnLength": 1}"#, "/mnLength", "minLength"),
            (r#"{"exclusiveMnimum": 1}"#, "/exclusiveMnimum", "exclusiveMinimum"),
            (r#"{"type": "number", "min": 1}"#, "/min", "minimum"),
            (r#"{"property": {"a": {}}}"#, "/property", "properties"),
            (r#"{"items": {"regex": "a"}}"#, "/items/regex", "pattern"),
            (r#"{"ge": 1}"#, "/ge", "minimum"),
            (r#"{"lt": 1}"#, "/lt", "exclusiveMaximum"),
            (r#"{"min_value": 1}"#, "/min_value", "minimum"),
            (r#"{"choices": ["a"]}"#, "/choices", "enum"),
            (r#"{"maxLen": 1}"#, "/maxLen", "maxLength"),
            (r#"{"exclusiveMin": 1}"#, "/exclusiveMin", "exclusiveMinimum"),
            (r#"{"unique": true}"#, "/unique", "uniqueItems"),
            (r#"{"additionalProps": false}"#, "/additionalProps", "additionalProperties"),
            (r#"{"divisibleBy": 2}"#, "/divisibleBy", "multipleOf"),
            (r#"{"disallow": "null"}"#, "/disallow", "not"),
            (
                r#"{"items": {"optional": true}}"#,
                "/items/optional",
                "a member is optional unless the `required` of its object names it",
            ),
            (r#"{"formatMinimum": "a"}"#, "/formatMinimum", "texts of a format are not compared"),
        ] {
            assert_eq!(
                advice_by_pointer(schema),
                [(pointer.to_owned(), meant.to_owned())],
                "{schema}"
            );
        }
    }

    #[test]
    fn unknown_dialects_and_patterns_between_slashes_are_found() {
        for (schema, pointer) in [
            (r#"{"$schema": "http://json-schema.org/draft-05/schema"}"#, "/$schema"),
            (r#"{"$schema": "draft 7"}"#, "/$schema"),
            (r#"{"items": {"pattern": "/a+/i"}}"#, "/items/pattern"),
            (r#"{"pattern": "/^a$/"}"#, "/pattern"),
        ] {
            let found = advice_by_pointer(schema);
            assert!(found.len() == 1 && found[0].0 == pointer, "{schema}: {found:?}");
        }
        for schema in [
            r#"{"$schema": "http://json-schema.org/schema#"}"#,
            r#"{"$schema": "https://json-schema.org/draft/2020-12/schema#"}"#,
            r#"{"$schema": "draft-07"}"#,
            r#"{"pattern": "/api/"}"#,
            r#"{"pattern": "/api/v1"}"#,
            r#"{"pattern": "/api/.*/"}"#,
            r#"{"pattern": "^/a+/i"}"#,
            r#"{"pattern": "/dev/sd"}"#,
            r#"{"pattern": "/[^/]+/"}"#,
        ] {
            assert_eq!(advice_by_pointer(schema), [], "{schema}");
        }
    }

    #[test]
    fn nullable_and_unknown_formats_are_found() {
        for (schema, pointer, advice) in [
            (
                r#"{"type": "string", "nullable": true}"#,
                "/nullable",
                "write \"null\" among the types",
            ),
            (r#"{"format": "url"}"#, "/format", "uri"),
            (r#"{"format": "host-name"}"#, "/format", "hostname"),
            (
                r#"{"items": {"format": "phone"}, "contains": {"format": "date"}}"#,
                "/items/format",
                "an unknown format, so it constrains nothing",
            ),
        ] {
            assert_eq!(
                advice_by_pointer(schema),
                [(pointer.to_owned(), advice.to_owned())],
                "{schema}"
            );
        }
        let twice = r#"{"prefixItems": [{"format": "phone"}, {"format": "phone"}]}"#;
        assert_eq!(advice_by_pointer(twice).len(), 1);
    }

    #[test]
    fn whole_schemas_without_a_type_are_found() {
        for (schema, found) in [
            (r#"{"properties": {"a": {}}}"#, Some(("/properties", "object"))),
            (r#"{"title": "T", "required": ["a"]}"#, Some(("/required", "object"))),
            (r#"{"items": {}}"#, Some(("/items", "array"))),
            (r#"{"maxLength": 3}"#, Some(("/maxLength", "string"))),
            (r#"{"minimum": 3}"#, Some(("/minimum", "number"))),
            (r#"{"type": "object", "properties": {"a": {"minLength": 1}}}"#, None),
            (r##"{"$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": {}}}"##, None),
            (r#"{"anyOf": [{"minLength": 1}], "required": ["a"]}"#, None),
            (r#"{"enum": [1], "minimum": 0}"#, None),
            ("{}", None),
            ("true", None),
        ] {
            let warning = missing_type(&Json::parse(schema, &Limits::default()).unwrap());
            let is_expected = match (&warning, found) {
                (Some(warning), Some((pointer, of))) => {
                    warning.pointer == pointer
                        && warning.message.contains(&format!("`\"type\": \"{of}\"`"))
                }
                (warning, found) => warning.is_none() && found.is_none(),
            };
            assert!(is_expected, "{schema}: {warning:?}");
        }
    }

    /// Names of members, data, annotations of other tools and short names are not misspellings.
    #[test]
    fn other_names_are_not_reported() {
        for schema in [
            r#"{"properties": {"requird": {}, "item": {}}, "enum": [{"requird": 1}]}"#,
            r#"{"example": 1, "nullable": false, "discriminator": {}, "xml": {}, "deprecated": true}"#,
            r##"{"_format": "date", "@type": "a", "#enum": [], "_$schema": "", "-": 1}"##,
            r#"{"x-requird": 1, "markdownDescription": "", "propertyOrdering": [], "no": 1, "units": 1}"#,
            r#"{"type": ["string", "null"], "nullable": true, "format": "date-time"}"#,
            r#"{"options": {"hidden": true}, "values": 1, "unique": false, "optional": false}"#,
            r#"{"enumNames": [], "label": "", "order": 1, "name": "a", "strict": true, "is": 1}"#,
        ] {
            assert_eq!(advice_by_pointer(schema), [], "{schema}");
        }
        let many: String = (0..100).map(|k| format!(r#""p{k}": {{"requird": []}},"#)).collect();
        let all = format!(r#"{{"properties": {{{many} "p": {{}}}}}}"#);
        assert_eq!(advice_by_pointer(&all).len(), MAX_WARNINGS);
        let unknown: String = (0..MAX_COMPARED).map(|k| format!(r#""zz{k}": 1,"#)).collect();
        assert_eq!(advice_by_pointer(&format!(r#"{{{unknown} "requird": []}}"#)), []);
    }
}
