//! Check of one input against one spec, with an explanation.

use std::fmt::{self, Write};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use louver::compile::Compiled;
use louver::engine::{CompletionOptions, Engine, EngineOptions};
use louver::front::json_schema::{Registry, SchemaOptions};
use louver::fsm::ByteSet;
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::matcher::Rejected;
use louver::spec::json::{Json, push_token};
use louver::vocab::Vocabulary;
use louver_formats::{Turn, validator_instance};
use serde::Deserialize;
use serde_json::Value;

use crate::spec::{SpecError, SpecSource, UsableSpec};
use crate::validator;

/// Maximum number of violated keywords to show.
const MAX_KEYWORDS: usize = 5;
/// Maximum characters of an example.
const MAX_EXAMPLE: usize = 100;

pub(super) fn run(
    source: &SpecSource,
    registry: &Registry,
    input: Option<&Path>,
) -> Result<ExitCode> {
    let checked = CheckedSpec::new(source, registry).map_err(|error| source.error(error))?;
    let UsableSpec { relaxed, warnings, .. } = &checked.spec;
    relaxed.iter().for_each(|relaxed| eprintln!("not enforced: {relaxed}"));
    let warnings = warnings.text(&source.name);
    if !warnings.is_empty() {
        eprintln!("{warnings}");
    }
    let mut bytes = Vec::new();
    match input {
        Some(path) if path != Path::new("-") => {
            bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        }
        _ => drop(std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?),
    }
    let bytes = strip_line_break(&bytes);
    match checked.check(bytes) {
        Ok(()) => {
            let turn = checked.turn(bytes);
            println!("valid{}", turn.map(|turn| describe(&turn)).unwrap_or_default());
            Ok(ExitCode::SUCCESS)
        }
        Err(reason) => {
            println!("{reason}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Strips the final line break of a text file.
fn strip_line_break(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// A spec that an input is checked against.
struct CheckedSpec<'s> {
    spec: UsableSpec,
    source: &'s SpecSource,
    registry: &'s Registry,
}

impl<'s> CheckedSpec<'s> {
    fn new(source: &'s SpecSource, registry: &'s Registry) -> Result<CheckedSpec<'s>, SpecError> {
        let text = Json::String(source.text.clone());
        let limits = Limits::default();
        let spec = UsableSpec::new(source.kind, &text, &source.options, &limits, registry)?;
        Ok(CheckedSpec { spec, source, registry })
    }

    fn is_schema(&self) -> bool {
        self.source.kind == "json_schema"
    }

    /// Checks the input. The error says where it is not valid, which keyword of a schema it
    /// violates, and what was allowed there; or why it cannot be checked. With the policy
    /// `validate`, relaxed keywords are validated as well.
    fn check(&self, bytes: &[u8]) -> Result<(), String> {
        let mut recognizer = self.spec.recognizer();
        let (offset, what, expected, could_end) = match recognizer.push(bytes) {
            Ok(()) if recognizer.is_complete() => {
                return match self.spec.validator {
                    Some(_) => self.validate_relaxed(bytes),
                    None => Ok(()),
                };
            }
            Ok(()) => {
                let what =
                    format!("the text ends too early, at {}", format_position(bytes, bytes.len()));
                (bytes.len(), what, recognizer.allowed(), false)
            }
            Err(Rejected::Byte { offset, expected, could_end }) => {
                let what = format!(
                    "{} at {} is not allowed",
                    format_character(&bytes[offset..]),
                    format_position(bytes, offset)
                );
                (offset, what, expected, could_end)
            }
            Err(limit) => return Err(format!("not checked: {limit}")),
        };
        let mut out = format!("not valid: {what}");
        if self.is_schema() {
            let pointer = pointer_at_end(&bytes[..offset], expected);
            let _ = write!(out, "\nin the value at {pointer:?}");
            match self.violated_keywords(bytes) {
                _ if could_end && bytes[offset..].trim_ascii().is_empty() => {
                    out += "\nthe value ends before: of white space after it, only one line break \
                            at the end of a file is ignored";
                }
                Ok(violated) => violated.iter().for_each(|keyword| {
                    let _ = write!(out, "\n{keyword}");
                }),
                // What is not JSON violates no keyword.
                Err(reason) if validator_instance(bytes).is_ok() => {
                    let _ = write!(out, "\nwhich keyword it violates is not known: {reason}");
                }
                Err(_) => {}
            }
        }
        let _ = write!(out, "\nallowed there: {}", format_allowed(expected, could_end));
        if let Some(example) = example(self.spec.compiled.clone(), &bytes[..offset]) {
            let _ = write!(out, "\nfor example: {example}");
        }
        Err(out)
    }

    /// The turn that an accepted input is, if the spec is one of tools.
    fn turn(&self, bytes: &[u8]) -> Option<Turn> {
        let request = self.spec.request.as_ref()?;
        request.read_constrained(self.spec.compiled.clone(), bytes).ok()
    }

    /// Validates an input that the grammar accepts.
    fn validate_relaxed(&self, bytes: &[u8]) -> Result<(), String> {
        let unknown = |reason| {
            format!("not checked: the relaxed keywords of the schema cannot be validated: {reason}")
        };
        let violated = self.violated_keywords(bytes).map_err(unknown)?;
        let is_valid = violated.iter().all(|violated| violated.is_spelling());
        let lines: Vec<String> = violated.iter().map(ToString::to_string).collect();
        if is_valid { Ok(()) } else { Err(format!("not valid: {}", lines.join("\n"))) }
    }

    /// Why a value is not generated although it is valid: an option without which it would be, or
    /// its spelling.
    fn refusing_option(&self, bytes: &[u8]) -> String {
        let given = self.source.options.as_object().into_iter().flatten();
        let refusing = given.map(|(name, _)| &**name).find(|name| {
            let mut options = self.source.options.clone();
            options.as_object_mut().and_then(|options| options.remove(*name));
            let (kind, text) = (self.source.kind, self.source.text.clone());
            let source = SpecSource { kind, name: String::new(), text, options };
            CheckedSpec::new(&source, self.registry).is_ok_and(|without| {
                let mut recognizer = without.spec.recognizer();
                recognizer.push(bytes).is_ok() && recognizer.is_complete()
            })
        });
        let Some(option) = refusing else {
            return "the value is valid, but not spelled as it is generated \
                    (docs/JSON_SCHEMA.md, Spelling and Numbers)"
                .to_owned();
        };
        let section = match option {
            "undeclared" | "order" => "Order of members",
            "integers" | "exponents" | "max_digits" => "Numbers",
            _ => "Spelling",
        };
        format!(
            "the value is valid, but the option `{option}` forbids it (docs/JSON_SCHEMA.md, \
             {section})"
        )
    }

    /// The keywords that a complete instance violates. If there are none, the value is valid, but
    /// written in a form that is never generated. `Err`: the instance cannot be validated.
    fn violated_keywords(&self, bytes: &[u8]) -> Result<Vec<ViolatedKeyword>, String> {
        let unreadable = |error: serde_json::Error| error.to_string();
        let schema = validator::read(&self.source.text)?;
        let instance = validator_instance(bytes).map_err(unreadable)?;
        let options = SchemaOptions::deserialize(&self.source.options).map_err(unreadable)?;
        let validator = validator::build(&schema, self.registry, &options)?;
        let all: Vec<_> = validator.iter_errors(&instance).take(MAX_KEYWORDS).collect();
        if all.is_empty() {
            // Two members of one name, say, of which validators see one.
            let text = std::str::from_utf8(bytes).ok();
            let reason = match text.map(|text| Json::parse(text, &Limits::default())) {
                Some(Err(error)) => error.to_string(),
                _ => self.refusing_option(bytes),
            };
            return Ok(vec![ViolatedKeyword { reason, ..Default::default() }]);
        }
        let read = |error: &jsonschema::ValidationError<'_>| ViolatedKeyword {
            pointer: error.instance_path.to_string(),
            keyword: keyword_pointer(&schema, error.schema_path.as_str()),
            reason: error.to_string(),
        };
        Ok(all.iter().map(read).collect())
    }
}

/// The JSON pointer of a keyword in the schema. `path` is its evaluation path, which leads through
/// `$ref`. References to anchors, and those in embedded resources (`$id`), are not resolved: their
/// steps stay in the pointer.
fn keyword_pointer(schema: &Value, path: &str) -> String {
    let has_id = |pointer: &str| {
        let schema = schema.pointer(pointer);
        let ids = ["$id", "id"].map(|name| schema.and_then(|s| s.get(name)?.as_str()));
        ids.into_iter().flatten().any(|id| !id.starts_with('#'))
    };
    let is_embedded =
        |pointer: &str| pointer.match_indices('/').skip(1).any(|(end, _)| has_id(&pointer[..end]));
    let mut pointer = String::new();
    for step in path.split('/').skip(1) {
        let target = || {
            if is_embedded(&pointer) {
                return None;
            }
            let reference = schema.pointer(pointer.strip_suffix("/$ref")?)?.get("$ref")?;
            reference.as_str()?.strip_prefix('#').filter(|target| schema.pointer(target).is_some())
        };
        if let Some(target) = target() {
            pointer = target.to_owned();
        }
        pointer.push('/');
        pointer.push_str(step);
    }
    pointer
}

/// What a turn has, after the verdict: the calls as they are read, one on a line.
fn describe(turn: &Turn) -> String {
    let mut out = match turn.calls.len() {
        0 => ": text, no call".to_owned(),
        1 => ": 1 call".to_owned(),
        n => format!(": {n} calls"),
    };
    for call in &turn.calls {
        let _ = write!(out, "\n{}({})", call.name, call.arguments);
    }
    out
}

/// A keyword that an instance violates.
#[derive(Default)]
struct ViolatedKeyword {
    /// Pointer to the value.
    pointer: String,
    /// Pointer to the keyword; empty if only the spelling is wrong.
    keyword: String,
    reason: String,
}

impl ViolatedKeyword {
    /// Whether the value is valid, but not spelled as it is generated.
    fn is_spelling(&self) -> bool {
        self.keyword.is_empty()
    }
}

impl fmt::Display for ViolatedKeyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_spelling() {
            true => f.write_str(&self.reason),
            false => write!(f, "{:?}: {}; keyword {:?}", self.pointer, self.reason, self.keyword),
        }
    }
}

/// The prefix with its shortest completion.
fn example(compiled: Arc<Compiled>, prefix: &[u8]) -> Option<String> {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let mut matcher = engine.bind(compiled).ok()?.matcher();
    for &byte in prefix {
        matcher.advance(TokenId::from_raw(byte.into())).ok()?;
    }
    let completion = matcher.shortest_completion(&CompletionOptions::default()).ok()?.bytes()?;
    let text = String::from_utf8([prefix, &completion].concat()).ok()?;
    let begin = text.char_indices().rev().nth(MAX_EXAMPLE - 1).map_or(0, |(index, _)| index);
    Some(format!("{}{}", if begin > 0 { "..." } else { "" }, &text[begin..]))
}

/// The JSON pointer of the value that is being written at the end of a truncated text, after which
/// the bytes `expected` may follow.
fn pointer_at_end(text: &[u8], expected: ByteSet) -> String {
    // Per open container: the index in an array, or the name of an object's current member.
    enum OpenContainer {
        Array(usize),
        Object(Option<String>),
    }
    let mut open_containers: Vec<OpenContainer> = Vec::new();
    // Whether a value has begun in the innermost container, and the text ends inside of a string.
    let (mut has_begun, mut in_string) = (false, false);
    let mut index = 0;
    while let Some(&byte) = text.get(index) {
        index += 1;
        has_begun = match byte {
            b'[' | b'{' | b',' | b':' => false,
            b' ' | b'\t' | b'\n' | b'\r' => has_begun,
            _ => true,
        };
        match byte {
            b'"' => {
                let begin = index - 1;
                in_string = true;
                while let Some(&byte) = text.get(index) {
                    index += if byte == b'\\' { 2 } else { 1 };
                    if byte == b'"' {
                        in_string = false;
                        break;
                    }
                }
                if let Some(OpenContainer::Object(name @ None)) = open_containers.last_mut() {
                    *name = serde_json::from_slice(&text[begin..index.min(text.len())]).ok();
                }
            }
            b'[' => open_containers.push(OpenContainer::Array(0)),
            b'{' => open_containers.push(OpenContainer::Object(None)),
            b']' | b'}' => drop(open_containers.pop()),
            b',' => match open_containers.last_mut() {
                Some(OpenContainer::Array(index)) => *index += 1,
                Some(OpenContainer::Object(name)) => *name = None,
                None => {}
            },
            _ => {}
        }
    }
    // After a complete value, the container goes on or ends.
    let closes = ByteSet::from_bytes(b",]}").meets(&expected);
    if has_begun && !in_string && closes {
        match open_containers.last_mut() {
            Some(OpenContainer::Object(name)) => *name = None,
            Some(OpenContainer::Array(_)) => drop(open_containers.pop()),
            None => {}
        }
    }
    let mut out = String::new();
    for container in open_containers {
        match container {
            OpenContainer::Array(index) => push_token(&mut out, &index.to_string()),
            OpenContainer::Object(Some(name)) => push_token(&mut out, &name),
            OpenContainer::Object(None) => {}
        }
    }
    out
}

/// Formats a byte offset with its line and column in characters, both from 1.
fn format_position(bytes: &[u8], offset: usize) -> String {
    let before = &bytes[..offset];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let begin = before.iter().rposition(|&b| b == b'\n').map_or(0, |index| index + 1);
    let column = String::from_utf8_lossy(&before[begin..]).chars().count() + 1;
    format!("byte {offset} (line {line}, column {column})")
}

/// Formats the first character, or the first byte if it is not UTF-8.
fn format_character(rest: &[u8]) -> String {
    let head = &rest[..rest.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    match (valid.chars().next(), rest.first()) {
        (Some(c), _) => format!("{c:?}"),
        (None, Some(byte)) => format!("byte 0x{byte:02x}"),
        (None, None) => "the end".to_owned(),
    }
}

fn format_allowed(bytes: ByteSet, end: bool) -> String {
    match (bytes.is_empty(), end) {
        (true, true) => "the end of the text".to_owned(),
        (true, false) => "nothing".to_owned(),
        (false, true) => format!("{bytes} or the end of the text"),
        (false, false) => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn explain(schema: &str, input: &str) -> String {
        explain_with(schema, input, json!({}))
    }

    fn explain_with(schema: &str, input: &str, options: Value) -> String {
        explain_kind("json_schema", schema, input, options)
    }

    fn explain_kind(kind: &'static str, text: &str, input: &str, options: Value) -> String {
        let (name, text) = (String::new(), text.to_owned());
        let source = SpecSource { kind, name, text, options };
        let registry = Registry::new();
        let checked = CheckedSpec::new(&source, &registry).unwrap();
        let input = strip_line_break(input.as_bytes());
        checked.check(input).map_or_else(|reason| reason, |()| "valid".to_owned())
    }

    #[test]
    fn all_kinds_of_specs_are_checked() {
        let (grammar, tools) = ("root ::= \"a\"+ \"b\"", r#"[{"name": "f", "parameters": {}}]"#);
        for (kind, text, valid, reason) in [
            ("regex", "[ab]{2}", "ab", "allowed there: [ab]\nfor example: aa"),
            ("ebnf", grammar, "aab", "allowed there: [ab]\nfor example: ab"),
            ("lark", "start: /a+/ \"b\"", "ab", "allowed there: [ab]\nfor example: ab"),
        ] {
            assert_eq!(explain_kind(kind, text, valid, json!({})), "valid", "{kind}");
            let got = explain_kind(kind, text, "ac", json!({}));
            let begin = "not valid: 'c' at byte 1 (line 1, column 2) is not allowed\n";
            assert_eq!(got, format!("{begin}{reason}"), "{kind}");
        }
        let call = |name: &str| {
            format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{}}}}\n</tool_call>")
        };
        assert_eq!(explain_kind("tools", tools, &call("f"), json!({})), "valid");
        let reason = explain_kind("tools", tools, &call("g"), json!({}));
        assert!(reason.contains("'g' at byte 22") && reason.contains("\"f\""), "{reason}");
    }

    #[test]
    fn relaxed_keywords_are_validated() {
        let schema = r#"{"type": "string", "pattern": "^(a|b)\\1$"}"#;
        let options = json!({"policy": "validate"});
        assert_eq!(explain_with(schema, "\"aa\"", options.clone()), "valid");
        let reason = explain_with(schema, "\"ab\"", options);
        assert!(reason.ends_with("keyword \"/pattern\""), "{reason}");
        let options = json!({"policy": "best_effort"});
        assert_eq!(explain_with(schema, "\"ab\"", options), "valid");
    }

    #[test]
    fn errors_have_position_keyword_and_example() {
        let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}, "ä": {"enum": ["x", "y"]}},
            "required": ["n", "ä"], "additionalProperties": false}"#;
        assert_eq!(explain(schema, "{\"n\": 1, \"ä\": \"x\"}\r\n"), "valid");
        assert_eq!(
            explain(schema, "{\"n\": 1,\n \"ä\": \"é\"}"),
            "not valid: 'é' at byte 17 (line 2, column 8) is not allowed\n\
             in the value at \"/ä\"\n\
             \"/ä\": \"é\" is not one of \"x\" or \"y\"; keyword \"/properties/ä/enum\"\n\
             allowed there: [xy]\nfor example: {\"n\": 1,\n \"ä\": \"x\"}"
        );
        assert_eq!(
            explain(schema, "{\"n\": 1, \"ä\": \"y\""),
            "not valid: the text ends too early, at byte 18 (line 1, column 18)\n\
             in the value at \"\"\n\
             allowed there: [\\t\\n\\r }]\nfor example: {\"n\": 1, \"ä\": \"y\"}"
        );
        let schema = r#"{"properties": {"list": {"items": {"multipleOf": 5, "type": "integer"}}}, "type": "object"}"#;
        let reason = explain(schema, r#"{"list": [10, 12]}"#);
        assert!(reason.contains("\"/list/1\": 12 is not a multiple of 5"), "{reason}");
        assert!(reason.contains("keyword \"/properties/list/items/multipleOf\""), "{reason}");
        assert!(reason.contains("for example: {\"list\": [10, 120]}"), "{reason}");
        let reason = explain(r#"{"type": "integer"}"#, "7.0");
        assert!(
            reason.contains("the value is valid, but not spelled as it is generated"),
            "{reason}"
        );
        let schema = r#"{"type": "object", "properties": {"a": {}, "b": {}}}"#;
        for (options, input, option) in [
            (json!({"undeclared": "forbidden"}), r#"{"c": 1}"#, "undeclared"),
            (json!({"order": "fixed"}), r#"{"b": 1, "a": 1}"#, "order"),
            (json!({"order": "fixed", "whitespace": "compact"}), r#"{"a": 1}"#, "whitespace"),
        ] {
            let reason = explain_with(schema, input, options);
            assert!(reason.contains(&format!("the option `{option}` forbids it")), "{reason}");
        }
        let reason = explain(r#"{"type": "object", "required": ["a"]}"#, "{}");
        assert!(reason.contains("\"a\" is a required property; keyword \"/required\""), "{reason}");
    }

    #[test]
    fn a_missing_member_is_missed_in_its_object() {
        let schema = r#"{"type": "object", "properties": {"a": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city", "b"]}}}"#;
        let reason = explain(schema, r#"{"a": {"city": "x"}}"#);
        assert!(reason.contains("in the value at \"/a\"\n"), "{reason}");
        let reason = explain(schema, "{}\n\n");
        assert!(reason.contains("\nthe value ends before: ") && !reason.contains("keyword"));
        let reason = explain(r#"{"type": "integer"}"#, "7.0");
        assert!(!reason.contains("keyword") && !reason.contains("\"\": "), "{reason}");
    }

    #[test]
    fn truncated_texts_have_pointers() {
        for (text, want) in [
            ("", ""),
            ("[1, 2", "/1"),
            (r#"{"a": [{"b~/c": tr"#, "/a/0/b~0~1c"),
            (r#"{"a": "x\", "b"#, "/a"),
            (r#"{"a": 1, "b"#, ""),
            (r#"{"\u0061": {"x": [[], {}]}, "c": [0, ["#, "/c/1/0"),
            ("]]}", ""),
        ] {
            assert_eq!(pointer_at_end(text.as_bytes(), ByteSet::EMPTY), want, "{text}");
        }
        let end = ByteSet::from_bytes(b",");
        for (text, want) in [
            (r#"{"a": "x""#, ""),
            (r#"{"a": "x"#, "/a"),
            (r#"{"a": [1, 2 "#, "/a"),
            (r#"{"a": [1, {"b": 3}"#, "/a"),
            (r#"{"a": ["#, "/a/0"),
        ] {
            assert_eq!(pointer_at_end(text.as_bytes(), end), want, "{text}");
        }
    }

    #[test]
    fn invalid_utf8_is_shown_as_bytes() {
        assert_eq!(format_character(&[0xff, b'a']), "byte 0xff");
        assert_eq!(format_character(&[0xc3, 0xa9, 0xff, 0xff]), "'é'");
        assert_eq!(format_position(&[0xff, b'\n', b'a'], 3), "byte 3 (line 2, column 2)");
    }
}
