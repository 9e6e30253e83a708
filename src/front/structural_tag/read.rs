//! JSON to structural tags. Unknown types and members are errors; all errors of a document are found at once.

use super::model::{
    Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Style, Tag, TagCount, Token,
};
use super::{StructuralTagError, StructuralTagErrorReason as Reason, StructuralTagErrors};
use crate::front::diagnostic::similar;
use crate::limits::Limits;
use crate::spec::json::{Json, Object, push_token};

/// A type's name, the members it needs and those it may have.
type Kind = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The members of tags and of formats, by type.
const TAG: Kind = ("tag", &["begin", "content", "end"], &[]);
const KINDS: [Kind; 21] = [
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
    // These need their `type`.
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
/// How many of [`KINDS`], from the first on, are known by their members alone.
const GUESSED: usize = 14;

impl StructuralTag {
    /// Reads a document: `{"type": "structural_tag", "format": ...}`, with or without the type. A format without `type` is the first
    /// of `tag`, `const_string`, `json_schema`, `any_text`, `sequence`, `or`, `triggered_tags`, `tags_with_separator`, `optional`,
    /// `plus`, `star`, `repeat`, `dispatch`, `token_dispatch` that has these members. Cost: linear.
    pub fn read(document: &Json, limits: &Limits) -> Result<StructuralTag, StructuralTagErrors> {
        let mut reader = Reader { errors: Vec::new(), depth: limits.depth };
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

/// Through [`StructuralTag::read`].
impl<'de> serde::Deserialize<'de> for StructuralTag {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        StructuralTag::read(&Json::from(&value), &Limits::default())
            .map_err(serde::de::Error::custom)
    }
}

pub(super) struct Reader {
    errors: Vec<StructuralTagError>,
    depth: usize,
}

/// The place of a member.
pub(super) fn below(pointer: &str, name: &str) -> String {
    let mut out = pointer.to_owned();
    push_token(&mut out, name);
    out
}

fn at(pointer: &str, index: usize) -> String {
    format!("{pointer}/{index}")
}

impl Reader {
    pub(super) fn new(limits: &Limits) -> Reader {
        Reader { errors: Vec::new(), depth: limits.depth }
    }

    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, StructuralTagErrors> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(StructuralTagErrors(self.errors)),
        }
    }

    pub(super) fn wrong<T>(&mut self, pointer: &str, what: impl Into<String>) -> Option<T> {
        self.errors.push(StructuralTagError {
            pointer: pointer.to_owned(),
            reason: Reason::Malformed(what.into()),
        });
        None
    }

    pub(super) fn document(&mut self, document: &Json) -> Option<Format> {
        let Some(object) = document.as_object() else { return self.wrong("", "must be an object") };
        if let Some(kind) = object.get("type")
            && kind.as_str() != Some("structural_tag")
        {
            return self.wrong("/type", "must be \"structural_tag\"");
        }
        self.known(object, "", &["type", "format"]);
        match object.get("format") {
            Some(format) => self.format(format, "/format", 1),
            None => self.wrong("", "lacks `format`"),
        }
    }

    /// Complains of members that are none of these.
    pub(super) fn known(&mut self, object: &Object, pointer: &str, names: &[&str]) {
        for (name, _) in object.iter().filter(|(name, _)| !names.contains(name)) {
            let help =
                similar(name, names.iter().copied()).map(|known| format!("; is `{known}` meant?"));
            let what = format!("no such member here{}", help.unwrap_or_default());
            self.wrong::<()>(&below(pointer, name), what);
        }
    }

    pub(super) fn format(&mut self, value: &Json, pointer: &str, depth: usize) -> Option<Format> {
        if depth > self.depth {
            let what = format!("nested deeper than {}", self.depth);
            self.errors.push(StructuralTagError {
                pointer: pointer.to_owned(),
                reason: Reason::Limit(what),
            });
            return None;
        }
        let Some(object) = value.as_object() else {
            return self.wrong(pointer, "a format must be an object");
        };
        let kind = match object.get("type") {
            Some(Json::String(name)) => match KINDS.iter().find(|(known, ..)| known == name) {
                Some(kind) => kind,
                None => {
                    let help = similar(name, KINDS.iter().map(|(known, ..)| *known));
                    let help =
                        help.map(|known| format!("; is `{known}` meant?")).unwrap_or_default();
                    return self.wrong(
                        &below(pointer, "type"),
                        format!("there is no format {name:?}{help}"),
                    );
                }
            },
            Some(_) => return self.wrong(&below(pointer, "type"), "must be a string"),
            None => match guess(object) {
                Some(kind) => kind,
                None => {
                    return self
                        .wrong(pointer, "has no `type`, and its members are those of no format");
                }
            },
        };
        let (name, needed, more) = *kind;
        self.members(object, pointer, (needed, more))?;
        self.body(name, object, pointer, depth)
    }

    /// Whether the members are those needed; unknown ones are complained of.
    fn members(
        &mut self,
        object: &Object,
        pointer: &str,
        (needed, more): (&[&str], &[&str]),
    ) -> Option<()> {
        let names: Vec<&str> = ["type"].iter().chain(needed).chain(more).copied().collect();
        self.known(object, pointer, &names);
        let missing: Vec<&str> =
            needed.iter().copied().filter(|name| object.get(name).is_none()).collect();
        for name in &missing {
            self.wrong::<()>(pointer, format!("lacks `{name}`"));
        }
        missing.is_empty().then_some(())
    }

    fn body(&mut self, kind: &str, object: &Object, pointer: &str, depth: usize) -> Option<Format> {
        Some(match kind {
            "const_string" => Format::ConstString { value: self.text(object, "value", pointer)? },
            "json_schema" | "qwen_xml_parameter" => self.json_schema(kind, object, pointer)?,
            "any_text" => {
                let excludes = self.excludes(object, pointer);
                let (tokens, chars) = (
                    self.budget(object, "max_tokens", pointer),
                    self.budget(object, "max_chars", pointer),
                );
                Format::AnyText { excludes: excludes?, max_tokens: tokens?, max_chars: chars? }
            }
            "grammar" => {
                let syntax = self.syntax(object, pointer);
                Format::Grammar { grammar: self.text(object, "grammar", pointer)?, syntax: syntax? }
            }
            "regex" => Format::Regex { pattern: self.text(object, "pattern", pointer)? },
            "sequence" => Format::Sequence { elements: self.elements(object, pointer, depth)? },
            "or" => Format::Or { elements: self.elements(object, pointer, depth)? },
            "optional" => Format::Optional { content: self.content(object, pointer, depth)? },
            "plus" => Format::Plus { content: self.content(object, pointer, depth)? },
            "star" => Format::Star { content: self.content(object, pointer, depth)? },
            "repeat" => self.repeat(object, pointer, depth)?,
            "tag" => Format::Tag(Box::new(self.tag(object, pointer, depth)?)),
            "triggered_tags" => {
                let triggers = self.texts(object, "triggers", pointer, Least::One);
                let tags = self.tags(object, pointer, depth);
                let (excludes, count) =
                    (self.excludes(object, pointer), self.count(object, pointer));
                Format::TriggeredTags {
                    triggers: triggers?,
                    tags: tags?,
                    excludes: excludes?,
                    count: count?,
                }
            }
            "tags_with_separator" => {
                let tags = self.tags(object, pointer, depth);
                let (separator, count) =
                    (self.text(object, "separator", pointer), self.count(object, pointer));
                Format::TagsWithSeparator { tags: tags?, separator: separator?, count: count? }
            }
            "dispatch" => {
                let rules = self.rules(object, pointer, depth, Reader::pattern);
                let (repeats, excludes) =
                    (self.flag(object, "loop", pointer, true), self.excludes(object, pointer));
                Format::Dispatch { rules: rules?, repeats: repeats?, excludes: excludes? }
            }
            "token" => Format::Token(self.token(object.get("token")?, &below(pointer, "token"))?),
            "exclude_token" => Format::ExcludeToken {
                exclude_tokens: self.tokens(object, "exclude_tokens", pointer, Least::None)?,
            },
            "any_tokens" => {
                let exclude_tokens = self.tokens(object, "exclude_tokens", pointer, Least::None);
                let max_tokens = self.budget(object, "max_tokens", pointer);
                Format::AnyTokens { exclude_tokens: exclude_tokens?, max_tokens: max_tokens? }
            }
            "token_triggered_tags" => {
                let trigger_tokens = self.tokens(object, "trigger_tokens", pointer, Least::One);
                let tags = self.tags(object, pointer, depth);
                let exclude_tokens = self.tokens(object, "exclude_tokens", pointer, Least::None);
                let count = self.count(object, pointer);
                Format::TokenTriggeredTags {
                    trigger_tokens: trigger_tokens?,
                    tags: tags?,
                    exclude_tokens: exclude_tokens?,
                    count: count?,
                }
            }
            _ => {
                let rules = self.rules(object, pointer, depth, Reader::token);
                let repeats = self.flag(object, "loop", pointer, true);
                let exclude_tokens = self.tokens(object, "exclude_tokens", pointer, Least::None);
                Format::TokenDispatch {
                    rules: rules?,
                    repeats: repeats?,
                    exclude_tokens: exclude_tokens?,
                }
            }
        })
    }

    fn json_schema(&mut self, kind: &str, object: &Object, pointer: &str) -> Option<Format> {
        let older_name = kind == "qwen_xml_parameter";
        let schema = match object.get("json_schema")? {
            schema @ (Json::Object(_) | Json::Bool(_)) => Some(schema.clone()),
            _ => self.wrong(&below(pointer, "json_schema"), "must be an object, true or false"),
        };
        let style = match object.get("style") {
            None if older_name => Some(Style::QwenXml),
            None => Some(Style::Json),
            Some(value) => {
                let known = Style::ALL
                    .iter()
                    .find(|(_, name)| value.as_str() == Some(name))
                    .map(|(style, _)| *style);
                let names = Style::ALL.map(|(_, name)| name).join(", ");
                known.or_else(|| {
                    self.wrong(&below(pointer, "style"), format!("must be one of {names}"))
                })
            }
        };
        let any_order = self.flag(object, "any_order", pointer, false);
        let max_whitespace = self.budget(object, "max_whitespace_cnt", pointer);
        Some(Format::JsonSchema(JsonSchema {
            schema: schema?,
            style: style?,
            any_order: any_order?,
            max_whitespace: max_whitespace?,
            older_name,
        }))
    }

    fn repeat(&mut self, object: &Object, pointer: &str, depth: usize) -> Option<Format> {
        let min = self.number(object.get("min")?, &below(pointer, "min"));
        let max = match object.get("max")? {
            Json::Number(n) if n.as_str() == "-1" => Some(None),
            value => self.number(value, &below(pointer, "max")).map(Some),
        };
        let content = self.content(object, pointer, depth);
        let (min, max) = (min?, max?);
        if max.is_some_and(|max| max < min) {
            return self.wrong(&below(pointer, "max"), "is less than `min`");
        }
        Some(Format::Repeat { min, max, content: content? })
    }

    pub(super) fn tag(&mut self, object: &Object, pointer: &str, depth: usize) -> Option<Tag> {
        let begin = match object.get("begin")? {
            Json::String(begin) => Some(Begin::Text(begin.clone())),
            value => self
                .token_format(value, &below(pointer, "begin"), "a string or a token")
                .map(Begin::Token),
        };
        let end_at = below(pointer, "end");
        let end = match object.get("end")? {
            Json::String(end) => Some(End::Text(end.clone())),
            Json::Array(_) => self.texts(object, "end", pointer, Least::One).map(End::Texts),
            value => self
                .token_format(value, &end_at, "a string, a list of strings or a token")
                .map(End::Token),
        };
        let content = self.format(object.get("content")?, &below(pointer, "content"), depth + 1);
        Some(Tag { begin: begin?, content: content?, end: end? })
    }

    fn tags(&mut self, object: &Object, pointer: &str, depth: usize) -> Option<Vec<Tag>> {
        let pointer = below(pointer, "tags");
        let items = self.list(object.get("tags")?, &pointer, Least::One)?;
        let mut out = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let pointer = at(&pointer, i);
            let tag = match item.as_object() {
                Some(tag) if tag.get("type").is_none_or(|kind| kind.as_str() == Some("tag")) => {
                    self.members(tag, &pointer, (TAG.1, TAG.2))
                        .and_then(|()| self.tag(tag, &pointer, depth + 1))
                }
                _ => self.wrong(&pointer, "must be a tag"),
            };
            out.push(tag);
        }
        out.into_iter().collect()
    }

    fn rules<T>(
        &mut self,
        object: &Object,
        pointer: &str,
        depth: usize,
        trigger: fn(&mut Reader, &Json, &str) -> Option<T>,
    ) -> Option<Vec<(T, Format)>> {
        let pointer = below(pointer, "rules");
        let items = self.list(object.get("rules")?, &pointer, Least::One)?;
        let mut out = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let pointer = at(&pointer, i);
            out.push(match item.as_array() {
                Some([first, second]) => {
                    let first = trigger(self, first, &at(&pointer, 0));
                    let second = self.format(second, &at(&pointer, 1), depth + 1);
                    first.zip(second)
                }
                _ => self.wrong(
                    &pointer,
                    "must be a list of two: what is looked for, and the format behind it",
                ),
            });
        }
        out.into_iter().collect()
    }

    fn pattern(&mut self, value: &Json, pointer: &str) -> Option<String> {
        match value.as_str() {
            Some("") => self.wrong(pointer, "must not be empty"),
            Some(pattern) => Some(pattern.to_owned()),
            None => self.wrong(pointer, "must be a string"),
        }
    }

    fn elements(&mut self, object: &Object, pointer: &str, depth: usize) -> Option<Vec<Format>> {
        let pointer = below(pointer, "elements");
        let items = self.list(object.get("elements")?, &pointer, Least::One)?;
        let read: Vec<Option<Format>> = items
            .iter()
            .enumerate()
            .map(|(i, item)| self.format(item, &at(&pointer, i), depth + 1))
            .collect();
        read.into_iter().collect()
    }

    fn content(&mut self, object: &Object, pointer: &str, depth: usize) -> Option<Box<Format>> {
        self.format(object.get("content")?, &below(pointer, "content"), depth + 1).map(Box::new)
    }

    fn syntax(&mut self, object: &Object, pointer: &str) -> Option<GrammarSyntax> {
        match object.get("syntax").map(Json::as_str) {
            None | Some(Some("ebnf")) => Some(GrammarSyntax::Ebnf),
            Some(Some("lark")) => Some(GrammarSyntax::Lark),
            Some(_) => self.wrong(&below(pointer, "syntax"), "must be \"ebnf\" or \"lark\""),
        }
    }

    fn text(&mut self, object: &Object, name: &str, pointer: &str) -> Option<String> {
        match object.get(name)?.as_str() {
            Some(text) => Some(text.to_owned()),
            None => self.wrong(&below(pointer, name), "must be a string"),
        }
    }

    fn list<'j>(&mut self, value: &'j Json, pointer: &str, least: Least) -> Option<&'j [Json]> {
        match value.as_array() {
            Some([]) if least == Least::One => self.wrong(pointer, "must not be empty"),
            Some(items) => Some(items),
            None => self.wrong(pointer, "must be a list"),
        }
    }

    fn texts(
        &mut self,
        object: &Object,
        name: &str,
        pointer: &str,
        least: Least,
    ) -> Option<Vec<String>> {
        let Some(value) = object.get(name) else { return Some(Vec::new()) };
        let pointer = below(pointer, name);
        let items = self.list(value, &pointer, least)?;
        let mut out = Vec::new();
        for (i, item) in items.iter().enumerate() {
            out.push(match item.as_str() {
                Some("") if name != "end" => self.wrong(&at(&pointer, i), "must not be empty"),
                Some(text) => Some(text.to_owned()),
                None => self.wrong(&at(&pointer, i), "must be a string"),
            });
        }
        out.into_iter().collect()
    }

    fn excludes(&mut self, object: &Object, pointer: &str) -> Option<Vec<String>> {
        self.texts(object, "excludes", pointer, Least::None)
    }

    fn flag(
        &mut self,
        object: &Object,
        name: &str,
        pointer: &str,
        otherwise: bool,
    ) -> Option<bool> {
        match object.get(name) {
            None => Some(otherwise),
            Some(Json::Bool(flag)) => Some(*flag),
            Some(_) => self.wrong(&below(pointer, name), "must be true or false"),
        }
    }

    fn count(&mut self, object: &Object, pointer: &str) -> Option<TagCount> {
        let least = self.flag(object, "at_least_one", pointer, false);
        let stop = self.flag(object, "stop_after_first", pointer, false);
        Some(TagCount::new(least?, stop?))
    }

    fn number(&mut self, value: &Json, pointer: &str) -> Option<u32> {
        let number =
            if let Json::Number(number) = value { number.as_str().parse().ok() } else { None };
        number.or_else(|| {
            self.wrong(pointer, format!("must be a whole number from 0 to {}", u32::MAX))
        })
    }

    /// A number, or none where there is no member or `null`.
    fn budget(&mut self, object: &Object, name: &str, pointer: &str) -> Option<Option<u32>> {
        match object.get(name) {
            None | Some(Json::Null) => Some(None),
            Some(value) => self.number(value, &below(pointer, name)).map(Some),
        }
    }

    fn token(&mut self, value: &Json, pointer: &str) -> Option<Token> {
        match value {
            Json::String(text) if !text.is_empty() => Some(Token::Text(text.clone())),
            Json::String(_) => self.wrong(pointer, "must not be empty"),
            Json::Number(_) => self.number(value, pointer).map(Token::Id),
            _ => self.wrong(pointer, "must be a token's id or text"),
        }
    }

    fn tokens(
        &mut self,
        object: &Object,
        name: &str,
        pointer: &str,
        least: Least,
    ) -> Option<Vec<Token>> {
        let Some(value) = object.get(name) else { return Some(Vec::new()) };
        let pointer = below(pointer, name);
        let items = self.list(value, &pointer, least)?;
        let read: Vec<Option<Token>> =
            items.iter().enumerate().map(|(i, item)| self.token(item, &at(&pointer, i))).collect();
        read.into_iter().collect()
    }

    /// `{"type": "token", "token": ...}` at a tag's edge.
    fn token_format(&mut self, value: &Json, pointer: &str, expected: &str) -> Option<Token> {
        match value.as_object() {
            Some(object)
                if object.get("type").is_none_or(|kind| kind.as_str() == Some("token")) =>
            {
                self.members(object, pointer, (&["token"], &[]))?;
                self.token(object.get("token")?, &below(pointer, "token"))
            }
            _ => self.wrong(pointer, format!("must be {expected}")),
        }
    }
}

/// Fewest items of a list.
#[derive(Clone, Copy, PartialEq)]
enum Least {
    None,
    One,
}

/// The first type with these members.
fn guess(object: &Object) -> Option<&'static Kind> {
    let fits = |(_, needed, more): &&Kind| {
        needed.iter().all(|name| object.get(name).is_some())
            && object.iter().all(|(name, _)| needed.contains(&name) || more.contains(&name))
    };
    if object.is_empty() {
        return None;
    }
    let kind = KINDS[..GUESSED].iter().find(fits)?;
    // Ids are no patterns.
    let first = object
        .get("rules")
        .and_then(Json::as_array)
        .and_then(|rules| rules.first()?.as_array()?.first());
    match (kind.0, first) {
        ("dispatch", Some(Json::Number(_))) if object.get("excludes").is_none() => {
            KINDS.iter().find(|(name, ..)| *name == "token_dispatch")
        }
        _ => Some(kind),
    }
}
