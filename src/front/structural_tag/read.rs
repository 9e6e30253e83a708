//! Parses JSON to structural tags. Unknown types and members are errors; all errors of a document
//! are reported at once.

mod members;

use super::model::{Begin, End, Format, JsonSchema, StructuralTag, Style, Tag};
use super::{StructuralTagError, StructuralTagErrorReason as Reason, StructuralTagErrors};
use crate::front::diagnostic::{MAX_ERRORS, similar, suggestion};
use crate::ir::MAX_COUNT;
use crate::limits::Limits;
use crate::spec::json::{Json, Object, push_token};
use members::MinLength;

/// A format type: its name, its required members and its optional members.
type FormatType = (&'static str, &'static [&'static str], &'static [&'static str]);

/// What `begin` may be.
const BEGIN: &str = "a string or a token; a regular expression goes before the tag in a \
                     `sequence`, and `begin` is then empty";

/// The type `tag`.
const TAG: FormatType = ("tag", &["begin", "content", "end"], &[]);
/// All format types.
const FORMAT_TYPES: [FormatType; 21] = [
    TAG,
    ("const_string", &["value"], &[]),
    ("json_schema", &["json_schema"], &["style", "any_order", "max_whitespace_cnt"]),
    ("any_text", &[], &["excludes", "max_tokens", "max_chars"]),
    ("sequence", &["elements"], &[]),
    ("or", &["elements"], &[]),
    ("triggered_tags", &["triggers", "tags"], &["at_least_one", "stop_after_first", "excludes"]),
    ("tags_with_separator", &["tags", "separator"], &["at_least_one", "stop_after_first"]),
    ("optional", &["content"], &[]),
    ("plus", &["content"], &[]),
    ("star", &["content"], &[]),
    ("repeat", &["min", "max", "content"], &[]),
    ("dispatch", &["rules"], &["loop", "excludes"]),
    ("token_dispatch", &["rules"], &["loop", "exclude_tokens"]),
    // The following formats require the member `type`.
    ("qwen_xml_parameter", &["json_schema"], &[]),
    ("grammar", &["grammar"], &["syntax"]),
    ("regex", &["pattern"], &[]),
    ("token", &["token"], &[]),
    ("exclude_token", &[], &["exclude_tokens"]),
    ("any_tokens", &[], &["exclude_tokens", "max_tokens"]),
    (
        "token_triggered_tags",
        &["trigger_tokens", "tags"],
        &["exclude_tokens", "at_least_one", "stop_after_first"],
    ),
];
/// The number of leading [`FORMAT_TYPES`] that are recognised by their members.
const RECOGNISED_BY_MEMBERS: usize = 14;

impl StructuralTag {
    /// Parses a document: `{"type": "structural_tag", "format": ...}`, with or without the type.
    ///
    /// A format without `type` is the first of `tag`, `const_string`, `json_schema`, `any_text`,
    /// `sequence`, `or`, `triggered_tags`, `tags_with_separator`, `optional`, `plus`, `star`,
    /// `repeat`, `dispatch` and `token_dispatch` that has its members. Cost: linear.
    pub fn read(document: &Json, limits: &Limits) -> Result<StructuralTag, StructuralTagErrors> {
        let mut reader = TagReader { errors: Vec::new(), depth: limits.depth };
        let format = reader.document(document);
        reader.finish(format.map(|format| StructuralTag { format }))
    }

    /// As [`StructuralTag::read`], from text.
    pub fn parse(text: &str, limits: &Limits) -> Result<StructuralTag, StructuralTagErrors> {
        match Json::parse(text, limits) {
            Ok(document) => StructuralTag::read(&document, limits),
            Err(error) => Err(StructuralTagErrors(vec![StructuralTagError {
                pointer: String::new(),
                reason: Reason::Json(error),
            }])),
        }
    }
}

/// As [`StructuralTag::read`].
impl<'de> serde::Deserialize<'de> for StructuralTag {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        StructuralTag::read(&Json::from(&value), &Limits::default())
            .map_err(serde::de::Error::custom)
    }
}

/// A format that is being parsed.
#[derive(Clone, Copy)]
struct FormatObject<'j> {
    members: &'j Object,
    /// Its JSON pointer.
    pointer: &'j str,
    /// The number of formats around it, itself included.
    depth: usize,
}

impl FormatObject<'_> {
    /// The JSON pointer of a member.
    fn pointer_to(&self, name: &str) -> String {
        member_pointer(self.pointer, name)
    }

    /// A format in this one.
    fn inner<'i>(&self, members: &'i Object, pointer: &'i str) -> FormatObject<'i> {
        FormatObject { members, pointer, depth: self.depth + 1 }
    }
}

/// State of parsing one document.
pub(super) struct TagReader {
    errors: Vec<StructuralTagError>,
    /// Limit on nesting.
    depth: usize,
}

/// The JSON pointer of a member.
pub(super) fn member_pointer(pointer: &str, name: &str) -> String {
    let mut out = pointer.to_owned();
    push_token(&mut out, name);
    out
}

/// The JSON pointer of an array element.
fn element_pointer(pointer: &str, index: usize) -> String {
    format!("{pointer}/{index}")
}

impl TagReader {
    /// A reader without errors.
    pub(super) fn new(limits: &Limits) -> TagReader {
        TagReader { errors: Vec::new(), depth: limits.depth }
    }

    /// The value, or the errors if there are any.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, StructuralTagErrors> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(StructuralTagErrors(self.errors)),
        }
    }

    /// Reports a malformed value.
    pub(super) fn malformed<T>(&mut self, pointer: &str, what: impl Into<String>) -> Option<T> {
        self.report(pointer, Reason::Malformed(what.into()));
        None
    }

    /// Reports an error, unless there are very many.
    fn report(&mut self, pointer: &str, reason: Reason) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(StructuralTagError { pointer: pointer.to_owned(), reason });
        }
    }

    /// Parses a document.
    pub(super) fn document(&mut self, document: &Json) -> Option<Format> {
        let Some(object) = document.as_object() else {
            return self.malformed("", "must be an object");
        };
        if let Some(kind) = object.get("type")
            && kind.as_str() != Some("structural_tag")
        {
            let is_format = FORMAT_TYPES.iter().any(|(known, ..)| Some(*known) == kind.as_str());
            if is_format && object.get("format").is_none() {
                return self.malformed("", "a format alone: put it in `format`");
            }
            return self.malformed("/type", "must be \"structural_tag\"");
        }
        self.check_members(object, "", &["type", "format"]);
        match object.get("format") {
            Some(format) => self.format(format, "/format", 1),
            None => self.malformed("", "lacks `format`"),
        }
    }

    /// Reports members that are not in `names`.
    pub(super) fn check_members(&mut self, object: &Object, pointer: &str, names: &[&str]) {
        for (name, _) in object.iter().filter(|(name, _)| !names.contains(name)) {
            let known = similar(name, names.iter().copied(), self.errors.len());
            let what = format!("no such member here{}", suggestion(known));
            self.malformed::<()>(&member_pointer(pointer, name), what);
        }
    }

    /// Parses a format.
    pub(super) fn format(&mut self, value: &Json, pointer: &str, depth: usize) -> Option<Format> {
        if depth > self.depth {
            let what = format!("nested deeper than {}", self.depth);
            self.report(pointer, Reason::Limit(what));
            return None;
        }
        let Some(object) = value.as_object() else {
            return self.malformed(pointer, "a format must be an object");
        };
        let kind = match object.get("type") {
            Some(Json::String(name)) => {
                match FORMAT_TYPES.iter().find(|(type_name, ..)| type_name == name) {
                    Some(kind) => kind,
                    None => {
                        let known = FORMAT_TYPES.iter().map(|(known, ..)| *known);
                        let help = suggestion(similar(name, known, self.errors.len()));
                        return self.malformed(
                            &member_pointer(pointer, "type"),
                            format!("there is no format {name:?}{help}"),
                        );
                    }
                }
            }
            Some(_) => return self.malformed(&member_pointer(pointer, "type"), "must be a string"),
            None => match recognise_type(object) {
                Some(kind) => kind,
                None => {
                    return self.malformed(
                        pointer,
                        "has no `type`, and its members are those of no format",
                    );
                }
            },
        };
        let (name, required, optional) = *kind;
        self.check_required_members(object, pointer, required, optional)?;
        self.format_of_type(name, FormatObject { members: object, pointer, depth })
    }

    /// Reports unknown members and missing ones; `None` if members are missing.
    fn check_required_members(
        &mut self,
        object: &Object,
        pointer: &str,
        required: &[&str],
        optional: &[&str],
    ) -> Option<()> {
        let names: Vec<&str> = ["type"].iter().chain(required).chain(optional).copied().collect();
        self.check_members(object, pointer, &names);
        let missing: Vec<&str> =
            required.iter().copied().filter(|name| object.get(name).is_none()).collect();
        for name in &missing {
            self.malformed::<()>(pointer, format!("lacks `{name}`"));
        }
        missing.is_empty().then_some(())
    }

    /// Parses the members of a format of a known type.
    fn format_of_type(&mut self, kind: &str, format: FormatObject<'_>) -> Option<Format> {
        Some(match kind {
            "const_string" => Format::ConstString { value: self.text(format, "value")? },
            "json_schema" | "qwen_xml_parameter" => self.json_schema(kind, format)?,
            "any_text" => {
                let excludes = self.excludes(format);
                let tokens = self.budget(format, "max_tokens");
                let chars = self.budget(format, "max_chars");
                Format::AnyText { excludes: excludes?, max_tokens: tokens?, max_chars: chars? }
            }
            "grammar" => {
                let syntax = self.syntax(format);
                Format::Grammar { grammar: self.text(format, "grammar")?, syntax: syntax? }
            }
            "regex" => Format::Regex { pattern: self.text(format, "pattern")? },
            "sequence" => Format::Sequence { elements: self.elements(format)? },
            "or" => Format::Or { elements: self.elements(format)? },
            "optional" => Format::Optional { content: self.content(format)? },
            "plus" => Format::Plus { content: self.content(format)? },
            "star" => Format::Star { content: self.content(format)? },
            "repeat" => self.repeat(format)?,
            "tag" => Format::Tag(Box::new(self.tag(format)?)),
            "triggered_tags" => self.triggered_tags(format)?,
            "tags_with_separator" => {
                let tags = self.tags(format);
                let (separator, count) = (self.text(format, "separator"), self.count(format));
                Format::TagsWithSeparator { tags: tags?, separator: separator?, count: count? }
            }
            "dispatch" => {
                let rules = self.rules(format, TagReader::pattern);
                let (repeats, excludes) = (self.flag(format, "loop", true), self.excludes(format));
                Format::Dispatch { rules: rules?, repeats: repeats?, excludes: excludes? }
            }
            "token" => {
                let token = format.members.get("token")?;
                Format::Token(self.token(token, &format.pointer_to("token"))?)
            }
            "exclude_token" => {
                Format::ExcludeToken { exclude_tokens: self.excluded_tokens(format)? }
            }
            "any_tokens" => {
                let exclude_tokens = self.excluded_tokens(format);
                let max_tokens = self.budget(format, "max_tokens");
                Format::AnyTokens { exclude_tokens: exclude_tokens?, max_tokens: max_tokens? }
            }
            "token_triggered_tags" => self.token_triggered_tags(format)?,
            _ => {
                let rules = self.rules(format, TagReader::token);
                let repeats = self.flag(format, "loop", true);
                let exclude_tokens = self.excluded_tokens(format)?;
                Format::TokenDispatch { rules: rules?, repeats: repeats?, exclude_tokens }
            }
        })
    }

    /// Parses free text with tags.
    fn triggered_tags(&mut self, format: FormatObject<'_>) -> Option<Format> {
        let triggers = self.texts(format, "triggers", MinLength::One);
        let tags = self.tags(format);
        let excludes = self.excludes(format);
        let count = self.count(format)?;
        Some(Format::TriggeredTags { triggers: triggers?, tags: tags?, excludes: excludes?, count })
    }

    /// Parses free tokens with tags.
    fn token_triggered_tags(&mut self, format: FormatObject<'_>) -> Option<Format> {
        let trigger_tokens = self.tokens(format, "trigger_tokens", MinLength::One);
        let tags = self.tags(format);
        let exclude_tokens = self.excluded_tokens(format);
        let count = self.count(format)?;
        Some(Format::TokenTriggeredTags {
            trigger_tokens: trigger_tokens?,
            tags: tags?,
            exclude_tokens: exclude_tokens?,
            count,
        })
    }

    /// Parses a schema format.
    fn json_schema(&mut self, kind: &str, format: FormatObject<'_>) -> Option<Format> {
        let older_name = kind == "qwen_xml_parameter";
        let schema = match format.members.get("json_schema")? {
            schema @ (Json::Object(_) | Json::Bool(_)) => Some(schema.clone()),
            _ => self
                .malformed(&format.pointer_to("json_schema"), "must be an object, true or false"),
        };
        let style = match format.members.get("style") {
            None if older_name => Some(Style::QwenXml),
            None => Some(Style::Json),
            Some(value) => {
                let style = Style::ALL
                    .iter()
                    .find(|(_, name)| value.as_str() == Some(name))
                    .map(|(style, _)| *style);
                let names = Style::ALL.map(|(_, name)| name).join(", ");
                style.or_else(|| {
                    self.malformed(&format.pointer_to("style"), format!("must be one of {names}"))
                })
            }
        };
        let any_order = self
            .flag(format, "any_order", false)
            .map(|flag| format.members.get("any_order").map(|_| flag));
        let max_whitespace = self.budget(format, "max_whitespace_cnt");
        Some(Format::JsonSchema(JsonSchema {
            schema: schema?,
            style: style?,
            any_order: any_order?,
            max_whitespace: max_whitespace?,
            older_name,
        }))
    }

    /// Parses the format `repeat`.
    fn repeat(&mut self, format: FormatObject<'_>) -> Option<Format> {
        let min = self.number(format.members.get("min")?, &format.pointer_to("min"));
        let max = match format.members.get("max")? {
            Json::Number(n) if n.as_str() == "-1" => Some(None),
            value => self.number(value, &format.pointer_to("max")).map(Some),
        };
        let content = self.content(format);
        let (min, max) = (min?, max?);
        if max.is_some_and(|max| max < min) {
            return self.malformed(&format.pointer_to("max"), "is less than `min`");
        }
        if min > MAX_COUNT {
            return self.malformed(&format.pointer_to("min"), format!("is over {MAX_COUNT}"));
        }
        Some(Format::Repeat { min, max, content: content? })
    }

    /// Parses a tag.
    fn tag(&mut self, format: FormatObject<'_>) -> Option<Tag> {
        let begin = match format.members.get("begin")? {
            Json::String(begin) => Some(Begin::Text(begin.clone())),
            value => self.token_format(value, &format.pointer_to("begin"), BEGIN).map(Begin::Token),
        };
        let end_at = format.pointer_to("end");
        let end = match format.members.get("end")? {
            Json::String(end) => Some(End::Text(end.clone())),
            Json::Array(_) => self.texts(format, "end", MinLength::One).map(End::Texts),
            value => self
                .token_format(value, &end_at, "a string, a list of strings or a token")
                .map(End::Token),
        };
        let content = self.content(format);
        Some(Tag { begin: begin?, content: *content?, end: end? })
    }

    /// Parses the member `tags`.
    fn tags(&mut self, format: FormatObject<'_>) -> Option<Vec<Tag>> {
        self.list_of(format, "tags", MinLength::One, |reader, item, pointer| {
            match item.as_object() {
                Some(tag) if tag.get("type").is_none_or(|kind| kind.as_str() == Some("tag")) => {
                    reader.check_required_members(tag, pointer, TAG.1, TAG.2)?;
                    reader.tag(format.inner(tag, pointer))
                }
                _ => reader.malformed(pointer, "must be a tag"),
            }
        })
    }

    /// Parses the member `rules`: pairs of a trigger and a format.
    fn rules<T>(
        &mut self,
        format: FormatObject<'_>,
        trigger: fn(&mut TagReader, &Json, &str) -> Option<T>,
    ) -> Option<Vec<(T, Format)>> {
        self.list_of(format, "rules", MinLength::One, |reader, item, pointer| {
            let Some([first, second]) = item.as_array() else {
                let what = "must be a list of two: what is looked for, and the format after it";
                return reader.malformed(pointer, what);
            };
            let first = trigger(reader, first, &element_pointer(pointer, 0));
            let second = reader.format(second, &element_pointer(pointer, 1), format.depth + 1);
            first.zip(second)
        })
    }

    /// Parses the member `elements`.
    fn elements(&mut self, format: FormatObject<'_>) -> Option<Vec<Format>> {
        self.list_of(format, "elements", MinLength::One, |reader, item, pointer| {
            reader.format(item, pointer, format.depth + 1)
        })
    }

    /// Parses the member `content`.
    fn content(&mut self, format: FormatObject<'_>) -> Option<Box<Format>> {
        self.format(format.members.get("content")?, &format.pointer_to("content"), format.depth + 1)
            .map(Box::new)
    }
}

/// The first format type that has all members of the object.
fn recognise_type(object: &Object) -> Option<&'static FormatType> {
    let fits = |(_, required, optional): &&FormatType| {
        required.iter().all(|name| object.get(name).is_some())
            && object.iter().all(|(name, _)| required.contains(&name) || optional.contains(&name))
    };
    if object.is_empty() {
        return None;
    }
    let kind = FORMAT_TYPES[..RECOGNISED_BY_MEMBERS].iter().find(fits)?;
    // Token ids as triggers mean `token_dispatch`.
    let first = object
        .get("rules")
        .and_then(Json::as_array)
        .and_then(|rules| rules.first()?.as_array()?.first());
    match (kind.0, first) {
        ("dispatch", Some(Json::Number(_))) if object.get("excludes").is_none() => {
            FORMAT_TYPES.iter().find(|(name, ..)| *name == "token_dispatch")
        }
        _ => Some(kind),
    }
}
