//! Writes structural tags as JSON. All members are written, defaults included.

use std::fmt;

use serde::ser::Error as _;

use super::model::{
    Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Tag, TagCount, Token,
};
use crate::spec::json::{Json, Object};

impl StructuralTag {
    /// The document as JSON. [`StructuralTag::read`] returns the same value for it.
    pub fn to_json(&self) -> Json {
        object(vec![("type", text("structural_tag")), ("format", self.format.to_json())])
    }
}

/// Writes JSON; numbers in schemas keep all their digits.
impl fmt::Display for StructuralTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

/// As [`StructuralTag::to_json`], with the numeric precision of `serde_json`.
impl serde::Serialize for StructuralTag {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: serde_json::Value =
            serde_json::from_str(&self.to_string()).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

impl Format {
    /// The format as a JSON object.
    pub fn to_json(&self) -> Json {
        let mut members = vec![("type", text(self.kind()))];
        self.push_members(&mut members);
        object(members)
    }

    /// Appends all members but the type.
    fn push_members(&self, members: &mut Vec<(&'static str, Json)>) {
        match self {
            Format::ConstString { value } => members.push(("value", text(value))),
            Format::JsonSchema(format) => json_schema(format, members),
            Format::AnyText { excludes, max_tokens, max_chars } => {
                members.push(("excludes", texts(excludes)));
                members.push(("max_tokens", optional_number(*max_tokens)));
                members.push(("max_chars", optional_number(*max_chars)));
            }
            Format::Grammar { grammar, syntax } => grammar_members(grammar, *syntax, members),
            Format::Regex { pattern } => members.push(("pattern", text(pattern))),
            Format::Sequence { elements } | Format::Or { elements } => {
                let elements = elements.iter().map(Format::to_json).collect();
                members.push(("elements", Json::Array(elements)));
            }
            Format::Optional { content } | Format::Plus { content } | Format::Star { content } => {
                members.push(("content", content.to_json()));
            }
            Format::Repeat { min, max, content } => {
                members.push(("min", number(i64::from(*min))));
                members.push(("max", number(max.map_or(-1, i64::from))));
                members.push(("content", content.to_json()));
            }
            Format::Tag(tag) => tag_members(tag, members),
            Format::TriggeredTags { triggers, tags, excludes, count } => {
                members.push(("triggers", texts(triggers)));
                members.push(("tags", tags_json(tags)));
                count_members(*count, members);
                members.push(("excludes", texts(excludes)));
            }
            Format::TagsWithSeparator { tags, separator, count } => {
                members.push(("tags", tags_json(tags)));
                members.push(("separator", text(separator)));
                count_members(*count, members);
            }
            Format::Dispatch { rules, repeats, excludes } => {
                dispatch_members(rules_json(rules, |pattern| text(pattern)), *repeats, members);
                members.push(("excludes", texts(excludes)));
            }
            Format::Token(token) => members.push(("token", token.to_json())),
            Format::ExcludeToken { exclude_tokens } => {
                members.push(("exclude_tokens", tokens(exclude_tokens)))
            }
            Format::AnyTokens { exclude_tokens, max_tokens } => {
                members.push(("exclude_tokens", tokens(exclude_tokens)));
                members.push(("max_tokens", optional_number(*max_tokens)));
            }
            Format::TokenTriggeredTags { trigger_tokens, tags, exclude_tokens, count } => {
                members.push(("trigger_tokens", tokens(trigger_tokens)));
                members.push(("tags", tags_json(tags)));
                members.push(("exclude_tokens", tokens(exclude_tokens)));
                count_members(*count, members);
            }
            Format::TokenDispatch { rules, repeats, exclude_tokens } => {
                dispatch_members(rules_json(rules, Token::to_json), *repeats, members);
                members.push(("exclude_tokens", tokens(exclude_tokens)));
            }
        }
    }
}

impl Token {
    /// The token as JSON.
    fn to_json(&self) -> Json {
        match self {
            Token::Id(id) => number(i64::from(*id)),
            Token::Text(name) => text(name),
        }
    }

    /// The token as a format.
    fn format(&self) -> Json {
        object(vec![("type", text("token")), ("token", self.to_json())])
    }
}

/// Appends the members of a schema format.
fn json_schema(format: &JsonSchema, members: &mut Vec<(&'static str, Json)>) {
    members.push(("json_schema", format.schema.clone()));
    if format.older_name {
        return;
    }
    members.push(("style", text(format.style.name())));
    members.extend(format.any_order.map(|any_order| ("any_order", Json::Bool(any_order))));
    members.push(("max_whitespace_cnt", optional_number(format.max_whitespace)));
}

/// Appends the members of a grammar.
fn grammar_members(grammar: &str, syntax: GrammarSyntax, members: &mut Vec<(&'static str, Json)>) {
    members.push(("grammar", text(grammar)));
    if syntax != GrammarSyntax::default() {
        members.push(("syntax", text(syntax.name())));
    }
}

/// Appends the rules of a dispatch.
fn dispatch_members(rules: Json, repeats: bool, members: &mut Vec<(&'static str, Json)>) {
    members.push(("rules", rules));
    members.push(("loop", Json::Bool(repeats)));
}

/// Appends the members of a tag.
fn tag_members(tag: &Tag, members: &mut Vec<(&'static str, Json)>) {
    members.push((
        "begin",
        match &tag.begin {
            Begin::Text(begin) => text(begin),
            Begin::Token(token) => token.format(),
        },
    ));
    members.push(("content", tag.content.to_json()));
    members.push((
        "end",
        match &tag.end {
            End::Text(end) => text(end),
            End::Texts(ends) => texts(ends),
            End::Token(token) => token.format(),
        },
    ));
}

/// The pairs of a trigger and a format.
fn rules_json<T>(rules: &[(T, Format)], trigger: impl Fn(&T) -> Json) -> Json {
    let pair = |(first, format): &(T, Format)| Json::Array(vec![trigger(first), format.to_json()]);
    Json::Array(rules.iter().map(pair).collect())
}

/// An array of tags.
fn tags_json(tags: &[Tag]) -> Json {
    let tag_json = |tag: &Tag| {
        let mut members = vec![("type", text("tag"))];
        tag_members(tag, &mut members);
        object(members)
    };
    Json::Array(tags.iter().map(tag_json).collect())
}

/// Appends the members of a tag count.
fn count_members(count: TagCount, members: &mut Vec<(&'static str, Json)>) {
    members.push(("at_least_one", Json::Bool(count.at_least_one())));
    members.push(("stop_after_first", Json::Bool(count.stop_after_first())));
}

/// A JSON object.
pub(super) fn object(members: Vec<(&'static str, Json)>) -> Json {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    // The names are distinct.
    Json::Object(Object::new(members).unwrap_or_default())
}

/// A JSON string.
pub(super) fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

/// A JSON array of strings.
fn texts(texts: &[String]) -> Json {
    Json::Array(texts.iter().map(|one| text(one)).collect())
}

/// A JSON array of tokens.
fn tokens(tokens: &[Token]) -> Json {
    Json::Array(tokens.iter().map(Token::to_json).collect())
}

/// A JSON number.
fn number(value: i64) -> Json {
    Json::from(&serde_json::Value::from(value))
}

/// A JSON number or `null`.
fn optional_number(value: Option<u32>) -> Json {
    value.map_or(Json::Null, |value| number(i64::from(value)))
}
