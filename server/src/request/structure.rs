//! Structured output in the spellings of other servers, rewritten as `response_format`.
//!
//! ```text
//! {"guided_regex": R}, {"grammar": {"type": "regex", "value": R}}, ...
//!     -> {"response_format": {"type": "structural_tag", "format": {"type": "regex", "pattern": R}}}
//! ```
//!
//! docs/SERVER.md has the table of all members; a test holds the page to [`MEMBERS`].

use louver::limits::Limits;
use louver::spec::json::Json;

use crate::error::ApiFault;
use crate::request::members::{Faults, Members, quoted};
use crate::request::places::Places;
use crate::request::{self, text};

/// What the value of a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A JSON Schema, or the text of one.
    Schema,
    /// A regular expression that the whole answer matches.
    Regex,
    /// A grammar in EBNF or GBNF, its start the rule `root`.
    Grammar,
    /// A Lark grammar, its start the rule `start`.
    Lark,
    /// A list of texts, one of which is the answer.
    Choice,
    /// `true`: a JSON object.
    Object,
    /// A structural tag, or the text of one.
    StructuralTag,
    /// A text is a grammar; an object has `type` and `value`.
    Typed,
    /// `"json"` or a JSON Schema.
    Ollama,
    /// An object of options, one of which is a constraint.
    Options,
}

/// Members of request bodies that constrain the answer, beside `response_format`.
const MEMBERS: [(&str, Kind); 12] = [
    ("guided_json", Kind::Schema),
    ("guided_regex", Kind::Regex),
    ("guided_choice", Kind::Choice),
    ("guided_grammar", Kind::Grammar),
    ("guided_json_object", Kind::Object),
    ("structured_outputs", Kind::Options),
    ("json_schema", Kind::Schema),
    ("regex", Kind::Regex),
    ("ebnf", Kind::Grammar),
    ("structural_tag", Kind::StructuralTag),
    ("grammar", Kind::Typed),
    ("format", Kind::Ollama),
];

/// Members of `structured_outputs`.
const OPTIONS: [(&str, Kind); 6] = [
    ("json", Kind::Schema),
    ("json_object", Kind::Object),
    ("regex", Kind::Regex),
    ("choice", Kind::Choice),
    ("grammar", Kind::Grammar),
    ("structural_tag", Kind::StructuralTag),
];

/// Members of `structured_outputs` that change what the constraint allows, and what to write
/// instead.
const REFUSED_OPTIONS: [(&str, &str); 3] = [
    ("whitespace_pattern", "use `louver.whitespace`"),
    ("disable_any_whitespace", "use `louver.whitespace`: \"compact\" or \"python_like\""),
    ("disable_additional_properties", "write `\"additionalProperties\": false` in the schema"),
];

/// Members of `structured_outputs` that choose an implementation.
const IGNORED_OPTIONS: [&str; 3] = ["disable_fallback", "backend", "_backend"];

/// Types of `response_format`, and of `grammar` where it is an object, that other servers have, and
/// the members that may hold the value.
const TYPES: [(&str, Kind, &[&str]); 9] = [
    ("json_object", Kind::Schema, &["schema"]),
    ("json_schema", Kind::Schema, &["schema", "value"]),
    ("json", Kind::Schema, &["value", "schema"]),
    ("regex", Kind::Regex, &["value", "pattern", "regex"]),
    ("grammar", Kind::Grammar, &["value", "grammar"]),
    ("ebnf", Kind::Grammar, &["value", "ebnf"]),
    ("gbnf", Kind::Grammar, &["value", "gbnf"]),
    ("lark", Kind::Lark, &["value", "lark"]),
    ("choice", Kind::Choice, &["value", "choice"]),
];

const NO_MEMBER: &str = "there is no such member";

/// Members of a `response_format` of another server that constrain nothing.
const LABELS: [&str; 4] = ["type", "name", "description", "strict"];

/// Whether a member constrains the answer.
pub(crate) fn is_structure(name: &str) -> bool {
    MEMBERS.iter().any(|(member, _)| *member == name)
}

/// The names of all members that constrain the answer, beside `response_format`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().map(|(name, _)| *name)
}

/// The body with a `response_format` that says the same, and where its members stood; `None`: it
/// has no other spelling. Errors: a second constraint, and values that are none.
pub(crate) fn rewrite(
    members: &Members<'_>,
    limits: &Limits,
    faults: &mut Faults,
) -> Option<(Json, Places)> {
    let mut reader = Reader { limits, faults, found: None };
    if let Some(format) = members.get("response_format") {
        reader.response_format(&members.pointer("response_format"), format);
    }
    for (name, kind) in MEMBERS {
        if let Some(value) = members.get(name) {
            reader.value(members.pointer(name), kind, value);
        }
    }
    let found = reader.found?;
    let (format, places) = found.rewritten?;
    let kept = members.iter().filter(|(name, _)| *name != "response_format" && !is_structure(name));
    let kept = kept.map(|(name, value)| (name.to_owned(), value.clone()));
    let body = request::object(kept.chain([("response_format".to_owned(), format)]).collect());
    Some((body, places))
}

/// A constraint on the answer.
struct Constraint {
    pointer: String,
    /// As `response_format`; `None` where it stood there already.
    rewritten: Option<(Json, Places)>,
}

struct Reader<'f> {
    limits: &'f Limits,
    faults: &'f mut Faults,
    found: Option<Constraint>,
}

impl Reader<'_> {
    fn fail(&mut self, pointer: &str, code: &'static str, message: impl Into<String>) {
        self.faults.push(ApiFault::at(pointer, code, message));
    }

    fn take(&mut self, pointer: String, rewritten: Option<(Json, Places)>) {
        if let Some(first) = &self.found {
            let message = format!("{} constrains the answer already", first.pointer);
            return self.fail(&pointer, "contradiction", message);
        }
        self.found = Some(Constraint { pointer, rewritten });
    }

    /// A `response_format`: one of another server is rewritten, the others are read later.
    fn response_format(&mut self, pointer: &str, format: &Json) {
        let kind = format.get("type").and_then(Json::as_str).unwrap_or_default();
        match kind {
            "text" => {}
            // One that has no schema at all is refused where it is read.
            "json_schema" | "json_object"
                if format.get("json_schema").is_some()
                    || !["schema", "value"].iter().any(|name| has(format, name)) =>
            {
                self.take(pointer.to_owned(), None);
            }
            _ if self.typed(pointer, format) => {}
            _ => self.take(pointer.to_owned(), None),
        }
    }

    /// An object with `type` and a value; false if its type is not one of [`TYPES`].
    fn typed(&mut self, pointer: &str, object: &Json) -> bool {
        let name = object.get("type").and_then(Json::as_str).unwrap_or_default();
        let Some((_, kind, holders)) = TYPES.iter().find(|(known, _, _)| *known == name) else {
            return false;
        };
        let Some(members) = Members::of(object, pointer, self.faults) else { return true };
        members.refuse_unknown(self.faults, &[*holders, &LABELS].concat(), NO_MEMBER);
        match holders.iter().find_map(|holder| Some((holder, members.get(holder)?))) {
            Some((holder, value)) => self.value(members.pointer(holder), *kind, value),
            None => self.fail(&members.pointer(holders[0]), "missing", "is missing"),
        }
        true
    }

    fn value(&mut self, pointer: String, kind: Kind, value: &Json) {
        if matches!(value, Json::Null) || value.as_str() == Some("") {
            return;
        }
        let mut places = Places::default();
        let format = match kind {
            Kind::Options => return self.options(&pointer, value),
            Kind::Typed if value.as_object().is_some() => {
                if !self.typed(&pointer, value) {
                    let types: Vec<&str> = TYPES.iter().map(|(name, _, _)| *name).collect();
                    let message = format!("must be one of {}", quoted(&types));
                    self.fail(&format!("{pointer}/type"), "unsupported", message);
                }
                return;
            }
            Kind::Ollama if value.as_str() == Some("json") => {
                Some(object([("type", text("json_object"))]))
            }
            Kind::Object => match value {
                Json::Bool(true) => Some(object([("type", text("json_object"))])),
                Json::Bool(false) => return,
                _ => self.expected(&pointer, "a boolean"),
            },
            Kind::Ollama if value.as_str().is_some() => {
                self.expected(&pointer, "\"json\" or a JSON Schema")
            }
            Kind::Schema | Kind::Ollama => {
                self.parsed(&pointer, value, "a JSON Schema").map(|schema| {
                    places.put("/response_format/json_schema/schema", &*pointer);
                    let holder = object([("name", text("answer")), ("schema", schema)]);
                    object([("type", text("json_schema")), ("json_schema", holder)])
                })
            }
            Kind::Regex => self.text(&pointer, value).map(|pattern| {
                places.put("/response_format/format/pattern", &*pointer);
                structural_tag(object([("type", text("regex")), ("pattern", pattern)]))
            }),
            Kind::Grammar | Kind::Typed | Kind::Lark => self.text(&pointer, value).map(|grammar| {
                places.put("/response_format/format/grammar", &*pointer);
                let syntax = text(if kind == Kind::Lark { "lark" } else { "ebnf" });
                structural_tag(object([
                    ("type", text("grammar")),
                    ("syntax", syntax),
                    ("grammar", grammar),
                ]))
            }),
            Kind::Choice => self.choice(&pointer, value).map(|elements| {
                places.put("/response_format/format", &*pointer);
                structural_tag(object([("type", text("or")), ("elements", elements)]))
            }),
            Kind::StructuralTag => {
                self.parsed(&pointer, value, "a structural tag").map(typed_as_tag)
            }
        };
        places.put("/response_format", &*pointer);
        if let Some(format) = format {
            self.take(pointer, Some((format, places)));
        }
    }

    fn options(&mut self, pointer: &str, value: &Json) {
        let Some(members) = Members::of(value, pointer, self.faults) else { return };
        for name in members.names() {
            let Some(value) = members.get(name) else { continue };
            let pointer = members.pointer(name);
            if let Some((_, kind)) = OPTIONS.iter().find(|(option, _)| *option == name) {
                self.value(pointer, *kind, value);
            } else if let Some((_, instead)) =
                REFUSED_OPTIONS.iter().find(|(option, _)| *option == name)
                && *value != Json::Bool(false)
            {
                self.fail(&pointer, "unsupported", *instead);
            }
        }
        let known: Vec<&str> =
            OPTIONS.iter().map(|(option, _)| *option).chain(IGNORED_OPTIONS).collect();
        let refused: Vec<&str> = REFUSED_OPTIONS.iter().map(|(option, _)| *option).collect();
        members.refuse_unknown(self.faults, &[known, refused].concat(), NO_MEMBER);
    }

    fn expected(&mut self, pointer: &str, what: &str) -> Option<Json> {
        self.fail(pointer, "invalid_type", format!("must be {what}"));
        None
    }

    fn text(&mut self, pointer: &str, value: &Json) -> Option<Json> {
        if value.as_str().is_some() {
            Some(value.clone())
        } else {
            self.expected(pointer, "a string")
        }
    }

    /// An object (or, as a schema, a boolean), perhaps as JSON text.
    fn parsed(&mut self, pointer: &str, value: &Json, what: &str) -> Option<Json> {
        let parsed = match value {
            Json::String(text) => match Json::parse(text, self.limits) {
                Ok(parsed) => parsed,
                Err(error) => {
                    self.fail(
                        pointer,
                        "invalid_json",
                        format!("must be {what}, or its text: {error}"),
                    );
                    return None;
                }
            },
            value => value.clone(),
        };
        if matches!(parsed, Json::Object(_) | Json::Bool(_)) {
            Some(parsed)
        } else {
            self.expected(pointer, what)
        }
    }

    fn choice(&mut self, pointer: &str, value: &Json) -> Option<Json> {
        let texts = value.as_array().filter(|texts| !texts.is_empty());
        let texts =
            texts.and_then(|texts| texts.iter().map(Json::as_str).collect::<Option<Vec<_>>>());
        let Some(texts) = texts else {
            return self.expected(pointer, "a list of strings that is not empty");
        };
        let element =
            |value: &str| object([("type", text("const_string")), ("value", text(value))]);
        Some(Json::Array(texts.into_iter().map(element).collect()))
    }
}

fn has(object: &Json, name: &str) -> bool {
    object.get(name).is_some_and(|value| *value != Json::Null)
}

fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    request::object(members.map(|(name, value)| (name.to_owned(), value)).into())
}

fn structural_tag(format: Json) -> Json {
    object([("type", text("structural_tag")), ("format", format)])
}

/// A structural tag may leave out its own type.
fn typed_as_tag(tag: Json) -> Json {
    match &tag {
        Json::Object(members) if members.get("type").is_none() => {
            let kept = members.iter().map(|(name, value)| (name.to_owned(), value.clone()));
            let kind = ("type".to_owned(), text("structural_tag"));
            request::object([kind].into_iter().chain(kept).collect())
        }
        _ => tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::unknown::REFUSED;

    /// The page names every member, so that nobody has to read this file.
    #[test]
    fn the_page_has_every_member() {
        let page = include_str!("../../../docs/SERVER.md");
        let options = OPTIONS.iter().map(|(name, _)| *name).chain(IGNORED_OPTIONS);
        let refused = REFUSED_OPTIONS.iter().chain(&REFUSED).map(|(name, _)| *name);
        for name in names().chain(options).chain(refused) {
            assert!(page.contains(&format!("`{name}`")), "docs/SERVER.md does not name {name}");
        }
        for (name, _, _) in TYPES {
            let is_named = page.contains(&format!("`{name}`"))
                || page.contains(&format!("\"type\": \"{name}\""));
            assert!(is_named, "docs/SERVER.md does not name the type {name}");
        }
    }
}
