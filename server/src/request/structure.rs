//! Structured-output parameters of other servers, rewritten as `response_format`.
//!
//! ```text
//! {"guided_regex": R}, {"grammar": {"type": "regex", "value": R}}, ...
//!     -> {"response_format":
//!            {"type": "structural_tag", "format": {"type": "regex", "pattern": R}}}
//! ```
//!
//! docs/SERVER.md lists all parameters; a test checks that list against [`MEMBERS`].

use louver::limits::Limits;
use louver::spec::json::Json;

use crate::error::ApiFault;
use crate::request::members::{Faults, Members, quoted};
use crate::request::pointers::PointerMap;
use crate::request::{object, text};

/// The kind of value that a structured-output parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConstraintKind {
    /// A JSON Schema, or its text.
    Schema,
    /// A regular expression that the whole response must match.
    Regex,
    /// A grammar in this notation of structural tags, or in Lark if it reads like that.
    Grammar(&'static str),
    /// A list of strings; the response is one of them.
    Choice,
    /// `true`: a JSON object.
    Object,
    /// A structural tag, or its text.
    StructuralTag,
    /// A string with a grammar, or an object with `type` and `value`.
    TypedValue,
    /// `"json"` or a JSON Schema.
    OllamaFormat,
    /// An object of options that contains one constraint.
    Options,
}

/// Members of request bodies that constrain the response, besides `response_format`.
const MEMBERS: [(&str, ConstraintKind); 14] = [
    ("guided_json", ConstraintKind::Schema),
    ("guided_regex", ConstraintKind::Regex),
    ("guided_choice", ConstraintKind::Choice),
    ("guided_grammar", ConstraintKind::Grammar("ebnf")),
    ("guided_json_object", ConstraintKind::Object),
    ("structured_outputs", ConstraintKind::Options),
    ("json_schema", ConstraintKind::Schema),
    ("regex", ConstraintKind::Regex),
    ("ebnf", ConstraintKind::Grammar("ebnf")),
    ("lark", ConstraintKind::Grammar("lark")),
    ("choice", ConstraintKind::Choice),
    ("structural_tag", ConstraintKind::StructuralTag),
    ("grammar", ConstraintKind::TypedValue),
    ("format", ConstraintKind::OllamaFormat),
];

/// Members of `structured_outputs`.
const OPTIONS: [(&str, ConstraintKind); 7] = [
    ("json", ConstraintKind::Schema),
    ("json_object", ConstraintKind::Object),
    ("regex", ConstraintKind::Regex),
    ("choice", ConstraintKind::Choice),
    ("grammar", ConstraintKind::Grammar("ebnf")),
    ("lark", ConstraintKind::Grammar("lark")),
    ("structural_tag", ConstraintKind::StructuralTag),
];

/// The member of `structured_outputs` that leaves white space out of JSON.
pub(super) const NO_WHITE_SPACE: &str = "disable_any_whitespace";

/// Members of `structured_outputs`, or of a body, that change what the constraint allows, which is
/// not supported, and their replacements.
pub(super) const UNSUPPORTED_OPTIONS: [(&str, &str); 2] = [
    ("whitespace_pattern", "use `louver.whitespace`"),
    ("disable_additional_properties", "write `\"additionalProperties\": false` in the schema"),
];

/// Members of `structured_outputs` that select an implementation, which are ignored.
const IGNORED_OPTIONS: [&str; 3] = ["disable_fallback", "backend", "_backend"];

/// Types of `response_format`, and of an object `grammar`, in other servers, and the members that
/// may hold the value.
const TYPES: [(&str, ConstraintKind, &[&str]); 10] = [
    ("json_object", ConstraintKind::Schema, &["schema"]),
    ("json_schema", ConstraintKind::Schema, &["schema", "value"]),
    ("json", ConstraintKind::Schema, &["value", "schema"]),
    ("regex", ConstraintKind::Regex, &["value", "pattern", "regex"]),
    ("grammar", ConstraintKind::Grammar("ebnf"), &["value", "grammar"]),
    ("ebnf", ConstraintKind::Grammar("ebnf"), &["value", "ebnf", "grammar"]),
    ("gbnf", ConstraintKind::Grammar("gbnf"), &["value", "gbnf", "grammar"]),
    ("kbnf", ConstraintKind::Grammar("kbnf"), &["value", "kbnf", "grammar"]),
    ("lark", ConstraintKind::Grammar("lark"), &["value", "lark", "grammar"]),
    ("choice", ConstraintKind::Choice, &["value", "choice"]),
];

/// Members of another server's `response_format` that constrain nothing.
const NEUTRAL_MEMBERS: [&str; 4] = ["type", "name", "description", "strict"];

/// The types whose value is in a member of its own.
fn value_types() -> impl Iterator<Item = &'static str> {
    let is_own = |name: &&str| ["json_schema", "json_object"].contains(name);
    TYPES.iter().map(|(name, _, _)| *name).filter(move |name| !is_own(name))
}

/// Whether a member constrains the response.
pub(crate) fn is_structure(name: &str) -> bool {
    MEMBERS.iter().any(|(member, _)| *member == name)
}

/// The pointer of the member that asks for JSON without white space, if one does.
pub(super) fn without_white_space(body: &Members<'_>) -> Option<String> {
    let is_asked = |options: &Json| options.get(NO_WHITE_SPACE) == Some(&Json::Bool(true));
    let name = "structured_outputs";
    body.get(name).is_some_and(is_asked).then(|| format!("{}/{NO_WHITE_SPACE}", body.pointer(name)))
}

/// The names of all members that constrain the response, besides `response_format`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().map(|(name, _)| *name)
}

/// Rewrites the body to an equivalent one with `response_format`, and maps its JSON pointers back.
/// `None` if there is nothing to rewrite. Errors: a second constraint, and invalid values; the body
/// then has no `response_format`, so that later parsing does not report it again.
pub(crate) fn rewrite(
    members: &Members<'_>,
    limits: &Limits,
    faults: &mut Faults,
    pointers: &mut PointerMap,
) -> Option<Json> {
    let earlier = faults.len();
    let mut reader = ConstraintReader { limits, faults, constraint: None };
    let (mut rewritten, mut is_faulty) = (None, false);
    if let Some(format) = members.get("response_format") {
        reader.response_format(&members.pointer("response_format"), format);
        is_faulty = reader.faults.len() > earlier;
    }
    for (name, kind) in MEMBERS {
        if let Some(value) = members.get(name) {
            reader.value(members.pointer(name), kind, value);
        }
    }
    if let Some((format, of_format)) = reader.constraint.and_then(|found| found.rewritten) {
        *pointers = of_format.compose(std::mem::take(pointers));
        rewritten = Some(format);
    }
    if rewritten.is_none() && !is_faulty {
        return None;
    }
    let others =
        members.iter().filter(|(name, _)| *name != "response_format" && !is_structure(name));
    let others = others.map(|(name, value)| (name, value.clone()));
    Some(object(others.chain(rewritten.map(|format| ("response_format", format)))))
}

/// The constraint of a request.
struct RequestConstraint {
    pointer: String,
    /// The equivalent `response_format` and pointer map; `None` if it is one already.
    rewritten: Option<(Json, PointerMap)>,
}

struct ConstraintReader<'f> {
    limits: &'f Limits,
    faults: &'f mut Faults,
    constraint: Option<RequestConstraint>,
}

impl ConstraintReader<'_> {
    fn fail(&mut self, pointer: &str, code: &'static str, message: impl Into<String>) {
        self.faults.push(ApiFault::at(pointer, code, message));
    }

    fn set_constraint(&mut self, pointer: String, rewritten: Option<(Json, PointerMap)>) {
        if let Some(first) = &self.constraint {
            let message = format!("{} already constrains the response", first.pointer);
            return self.fail(&pointer, "contradiction", message);
        }
        self.constraint = Some(RequestConstraint { pointer, rewritten });
    }

    /// Handles `response_format`: rewrites those of other servers and leaves the rest to later
    /// parsing.
    fn response_format(&mut self, pointer: &str, format: &Json) {
        let kind = format.get("type").and_then(Json::as_str).unwrap_or_default();
        match kind {
            "text" => {}
            // A format without any schema is rejected by later parsing.
            "json_schema" | "json_object"
                if has_value(format, "json_schema")
                    || !["schema", "value"].iter().any(|name| has_value(format, name)) =>
            {
                self.set_constraint(pointer.to_owned(), None);
            }
            _ if self.typed_value(pointer, format) => {}
            "structural_tag" => self.set_constraint(pointer.to_owned(), None),
            _ => {
                let own = ["text", "json_schema", "json_object", "structural_tag"];
                let types: Vec<&str> = own.into_iter().chain(value_types()).collect();
                match format.as_object() {
                    Some(_) => {
                        let message = format!("must be one of {}", quoted(&types));
                        self.fail(&format!("{pointer}/type"), "invalid_type", message);
                    }
                    None => {
                        let example = "an object, such as {\"type\": \"json_object\"}";
                        self.expected(pointer, example);
                    }
                }
            }
        }
    }

    /// Handles an object with `type` and a value; false if its type is not one of [`TYPES`]. A
    /// second value is a second constraint.
    fn typed_value(&mut self, pointer: &str, object: &Json) -> bool {
        let name = object.get("type").and_then(Json::as_str).unwrap_or_default();
        let Some((_, kind, value_members)) = TYPES.iter().find(|(known, _, _)| *known == name)
        else {
            return false;
        };
        let Some(members) = Members::from_json(object, pointer, self.faults) else { return true };
        members.refuse_unknown(self.faults, &[*value_members, &NEUTRAL_MEMBERS].concat());
        let values = value_members.iter().filter_map(|name| Some((*name, members.get(name)?)));
        let values: Vec<(&str, &Json)> = values.collect();
        if values.is_empty() {
            self.fail(&members.pointer(value_members[0]), "missing", "is missing");
        }
        for (name, value) in values {
            self.value(members.pointer(name), *kind, value);
        }
        true
    }

    fn value(&mut self, pointer: String, kind: ConstraintKind, value: &Json) {
        if self.is_none(&pointer, kind, value) {
            return;
        }
        let mut pointers = PointerMap::default();
        let format = match kind {
            ConstraintKind::Options => return self.options(&pointer, value),
            ConstraintKind::TypedValue if value.as_object().is_some() => {
                if !self.typed_value(&pointer, value) {
                    self.fail_type(&pointer, value);
                }
                return;
            }
            ConstraintKind::OllamaFormat if value.as_str() == Some("json") => {
                Some(object([("type", text("json_object"))]))
            }
            ConstraintKind::Object => match value {
                Json::Bool(true) => Some(object([("type", text("json_object"))])),
                Json::Bool(false) => return,
                _ => self.expected(&pointer, "a boolean"),
            },
            ConstraintKind::OllamaFormat if value.as_str().is_some() => {
                self.expected(&pointer, "\"json\" or a JSON Schema")
            }
            ConstraintKind::Schema | ConstraintKind::OllamaFormat => {
                self.schema(&pointer, value, &mut pointers)
            }
            ConstraintKind::Regex => self.text(&pointer, value).map(|pattern| {
                pointers.insert("/response_format/format", &*pointer);
                pointers.insert("/response_format/format/pattern", &*pointer);
                structural_tag(object([("type", text("regex")), ("pattern", pattern)]))
            }),
            ConstraintKind::TypedValue => self.grammar(&pointer, value, "ebnf", &mut pointers),
            ConstraintKind::Grammar(syntax) => self.grammar(&pointer, value, syntax, &mut pointers),
            ConstraintKind::Choice => self.choice(&pointer, value).map(|elements| {
                pointers.insert("/response_format/format", &*pointer);
                structural_tag(object([("type", text("or")), ("elements", elements)]))
            }),
            ConstraintKind::StructuralTag => {
                self.parse_if_text(&pointer, value, "a structural tag").map(typed_as_tag)
            }
        };
        pointers.insert("/response_format", &*pointer);
        if let Some(format) = format {
            self.set_constraint(pointer, Some((format, pointers)));
        }
    }

    /// Reports the type of a value that has one, which is none of [`TYPES`].
    fn fail_type(&mut self, pointer: &str, value: &Json) {
        let is_llguidance = value.get("type") == Some(&text("llguidance"));
        let advice = if is_llguidance { ": give its Lark grammar or schema" } else { "" };
        let types = quoted(&TYPES.map(|(name, _, _)| name));
        let message = format!("must be one of {types}{advice}");
        self.fail(&format!("{pointer}/type"), "unsupported", message);
    }

    /// Whether a value constrains nothing: null, or an empty text where other servers take it for
    /// none. Any other empty text is reported.
    fn is_none(&mut self, pointer: &str, kind: ConstraintKind, value: &Json) -> bool {
        let is_empty = value.as_str() == Some("");
        // Clients of llama.cpp (`grammar`) and Ollama (`format`) send empty texts for none.
        let may_be_empty = [ConstraintKind::TypedValue, ConstraintKind::OllamaFormat];
        if is_empty && !may_be_empty.contains(&kind) {
            let message = "must not be empty: leave it out if nothing is constrained";
            self.fail(pointer, "out_of_range", message);
        }
        is_empty || *value == Json::Null
    }

    fn grammar(
        &mut self,
        pointer: &str,
        value: &Json,
        syntax: &str,
        pointers: &mut PointerMap,
    ) -> Option<Json> {
        let grammar = self.text(pointer, value)?;
        pointers.insert("/response_format/format", pointer);
        pointers.insert("/response_format/format/grammar", pointer);
        let is_lark = syntax == "ebnf" && grammar.as_str().is_some_and(is_lark_grammar);
        let syntax = text(if is_lark { "lark" } else { syntax });
        let kind = ("type", text("grammar"));
        Some(structural_tag(object([kind, ("syntax", syntax), ("grammar", grammar)])))
    }

    fn schema(&mut self, pointer: &str, value: &Json, pointers: &mut PointerMap) -> Option<Json> {
        let mut schema = self.parse_if_text(pointer, value, "a JSON Schema")?;
        let mut at = pointer.to_owned();
        if let Some(inner) = schema_of_wrapper(&schema).cloned() {
            schema = inner;
            // Nothing points into a text.
            at.push_str(if value.as_object().is_some() { "/schema" } else { "" });
        }
        pointers.insert("/response_format/json_schema/schema", at);
        let wrapper = object([("name", text("answer")), ("schema", schema)]);
        Some(object([("type", text("json_schema")), ("json_schema", wrapper)]))
    }

    fn options(&mut self, pointer: &str, value: &Json) {
        let Some(members) = Members::from_json(value, pointer, self.faults) else { return };
        // The request's extension takes it over.
        members.boolean(self.faults, NO_WHITE_SPACE);
        for name in members.names() {
            let Some(value) = members.get(name) else { continue };
            let pointer = members.pointer(name);
            if let Some((_, kind)) = OPTIONS.iter().find(|(option, _)| *option == name) {
                self.value(pointer, *kind, value);
            } else if let Some((_, replacement)) =
                UNSUPPORTED_OPTIONS.iter().find(|(option, _)| *option == name)
                && *value != Json::Bool(false)
            {
                self.fail(&pointer, "unsupported", *replacement);
            }
        }
        let known = OPTIONS.iter().map(|(option, _)| *option).chain(IGNORED_OPTIONS);
        let known: Vec<&str> = known.chain([NO_WHITE_SPACE]).collect();
        let unsupported: Vec<&str> =
            UNSUPPORTED_OPTIONS.iter().map(|(option, _)| *option).collect();
        members.refuse_unknown(self.faults, &[known, unsupported].concat());
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

    /// An object (or a boolean, for schemas), or JSON text of one.
    fn parse_if_text(&mut self, pointer: &str, value: &Json, what: &str) -> Option<Json> {
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
        let Some(texts) = value.as_array().filter(|texts| !texts.is_empty()) else {
            return self.expected(pointer, "a non-empty list of strings");
        };
        let element =
            |value: &str| object([("type", text("const_string")), ("value", text(value))]);
        let elements = texts.iter().enumerate().filter_map(|(k, value)| match value.as_str() {
            Some(value) => Some(element(value)),
            None => self.expected(&format!("{pointer}/{k}"), "a string"),
        });
        Some(Json::Array(elements.collect()))
    }
}

/// Whether the text of a grammar is in Lark: it defines the rule `start` with a colon, perhaps with
/// attributes or a priority (`start[capture].2:`). In EBNF the colon after a name is followed by
/// another one. `louver.vllm` of the Python package has the same rule.
fn is_lark_grammar(text: &str) -> bool {
    let definition = |line: &str| {
        let rest = line.trim_start().trim_start_matches(['?', '!']).strip_prefix("start")?;
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(attributes) => attributes.split_once(']')?.1.trim_start(),
            None => rest,
        };
        let rest = match rest.strip_prefix('.') {
            Some(priority) => priority.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()),
            None => rest,
        };
        rest.trim_start().strip_prefix(':').map(|rest| !rest.starts_with([':', '=']))
    };
    text.lines().any(|line| definition(line) == Some(true))
}

/// The schema in OpenAI's `json_schema` of a `response_format`: beside it are members that
/// constrain nothing. As a schema, the whole would allow any value.
fn schema_of_wrapper(value: &Json) -> Option<&Json> {
    let members = value.as_object()?;
    let schema = members.get("schema").filter(|schema| schema.as_object().is_some())?;
    let is_neutral = |(name, _): (&str, &Json)| name == "schema" || NEUTRAL_MEMBERS.contains(&name);
    (members.get("name").is_some() && members.get("type").is_none())
        .then_some(schema)
        .filter(|_| members.iter().all(is_neutral))
}

fn has_value(object: &Json, name: &str) -> bool {
    object.get_non_null(name).is_some()
}

fn structural_tag(format: Json) -> Json {
    object([("type", text("structural_tag")), ("format", format)])
}

/// Adds the type `structural_tag`, which a structural tag may omit.
fn typed_as_tag(tag: Json) -> Json {
    match &tag {
        Json::Object(members) if members.get("type").is_none() => {
            let others = members.iter().map(|(name, value)| (name, value.clone()));
            object([("type", text("structural_tag"))].into_iter().chain(others))
        }
        _ => tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::foreign_members::UNSUPPORTED;

    #[test]
    fn lark_is_told_by_its_start_rule() {
        for (text, is_lark) in [
            ("start: \"a\"", true),
            ("A: /x/\n?start : A", true),
            ("%import common.INT\n!start: INT", true),
            ("\n    start: A\n    A: /::=/\n", true),
            ("start[capture]: /x/", true),
            ("start [capture=\"a\", lazy] .2 : /x/", true),
            ("?start.-1: /x/", true),
            ("  start[x] ::= \"a\"", false),
            ("start.two: /x/", false),
            ("root ::= start\nstart ::= \"a\"", false),
            ("start := \"a\"", false),
            ("root ::= \"start: \"", false),
            ("restart: \"a\"", false),
        ] {
            assert_eq!(is_lark_grammar(text), is_lark, "{text}");
        }
    }

    /// The documentation lists every parameter.
    #[test]
    fn documentation_lists_every_structure_parameter() {
        let page = include_str!("../../../docs/SERVER.md");
        let options = OPTIONS.iter().map(|(name, _)| *name).chain(IGNORED_OPTIONS);
        let unsupported = UNSUPPORTED_OPTIONS.map(|(name, _)| name);
        let others = UNSUPPORTED.iter().map(|(name, _)| *name);
        for name in names().chain(options).chain(unsupported).chain(others) {
            assert!(page.contains(&format!("`{name}`")), "docs/SERVER.md does not name {name}");
        }
        for (name, _, _) in TYPES {
            let is_named = page.contains(&format!("`{name}`"))
                || page.contains(&format!("\"type\": \"{name}\""));
            assert!(is_named, "docs/SERVER.md does not name the type {name}");
        }
    }
}
