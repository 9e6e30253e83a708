//! Structural tags back to JSON. Every member is written, also where it says what holds anyway.

use std::fmt;

use serde::ser::Error as _;

use super::model::{
    Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Tag, TagCount, Token,
};
use crate::spec::json::{Json, Object};

impl StructuralTag {
    /// The document. Reading it gives the same value again.
    pub fn to_json(&self) -> Json {
        object(vec![("type", text("structural_tag")), ("format", self.format.to_json())])
    }
}

/// As JSON, numbers of schemas with all their digits.
impl fmt::Display for StructuralTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

/// As [`StructuralTag::to_json`], numbers of schemas as serde has them.
impl serde::Serialize for StructuralTag {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: serde_json::Value =
            serde_json::from_str(&self.to_string()).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

impl Format {
    /// The format's object.
    pub fn to_json(&self) -> Json {
        let mut members = vec![("type", text(self.kind()))];
        match self {
            Format::ConstString { value } => members.push(("value", text(value))),
            Format::JsonSchema(format) => json_schema(format, &mut members),
            Format::AnyText { excludes, max_tokens, max_chars } => {
                members.push(("excludes", texts(excludes)));
                members.push(("max_tokens", maybe(*max_tokens)));
                members.push(("max_chars", maybe(*max_chars)));
            }
            Format::Grammar { grammar, syntax } => {
                members.push(("grammar", text(grammar)));
                if *syntax == GrammarSyntax::Lark {
                    members.push(("syntax", text("lark")));
                }
            }
            Format::Regex { pattern } => members.push(("pattern", text(pattern))),
            Format::Sequence { elements } | Format::Or { elements } => {
                members.push((
                    "elements",
                    Json::Array(elements.iter().map(Format::to_json).collect()),
                ));
            }
            Format::Optional { content } | Format::Plus { content } | Format::Star { content } => {
                members.push(("content", content.to_json()));
            }
            Format::Repeat { min, max, content } => {
                members.push(("min", number(i64::from(*min))));
                members.push(("max", number(max.map_or(-1, i64::from))));
                members.push(("content", content.to_json()));
            }
            Format::Tag(tag) => tag_members(tag, &mut members),
            Format::TriggeredTags { triggers, tags, excludes, count: how_many } => {
                members.push(("triggers", texts(triggers)));
                members.push(("tags", all_tags(tags)));
                count(*how_many, &mut members);
                members.push(("excludes", texts(excludes)));
            }
            Format::TagsWithSeparator { tags, separator, count: how_many } => {
                members.push(("tags", all_tags(tags)));
                members.push(("separator", text(separator)));
                count(*how_many, &mut members);
            }
            Format::Dispatch { rules, repeats, excludes } => {
                let pair = |(pattern, format): &(String, Format)| {
                    Json::Array(vec![text(pattern), format.to_json()])
                };
                members.push(("rules", Json::Array(rules.iter().map(pair).collect())));
                members.push(("loop", Json::Bool(*repeats)));
                members.push(("excludes", texts(excludes)));
            }
            Format::Token(token) => members.push(("token", token.to_json())),
            Format::ExcludeToken { exclude_tokens } => {
                members.push(("exclude_tokens", tokens(exclude_tokens)))
            }
            Format::AnyTokens { exclude_tokens, max_tokens } => {
                members.push(("exclude_tokens", tokens(exclude_tokens)));
                members.push(("max_tokens", maybe(*max_tokens)));
            }
            Format::TokenTriggeredTags {
                trigger_tokens,
                tags,
                exclude_tokens,
                count: how_many,
            } => {
                members.push(("trigger_tokens", tokens(trigger_tokens)));
                members.push(("tags", all_tags(tags)));
                members.push(("exclude_tokens", tokens(exclude_tokens)));
                count(*how_many, &mut members);
            }
            Format::TokenDispatch { rules, repeats, exclude_tokens } => {
                let pair = |(token, format): &(Token, Format)| {
                    Json::Array(vec![token.to_json(), format.to_json()])
                };
                members.push(("rules", Json::Array(rules.iter().map(pair).collect())));
                members.push(("loop", Json::Bool(*repeats)));
                members.push(("exclude_tokens", tokens(exclude_tokens)));
            }
        }
        object(members)
    }
}

impl Token {
    fn to_json(&self) -> Json {
        match self {
            Token::Id(id) => number(i64::from(*id)),
            Token::Text(name) => text(name),
        }
    }

    /// As a format.
    fn format(&self) -> Json {
        object(vec![("type", text("token")), ("token", self.to_json())])
    }
}

fn json_schema(format: &JsonSchema, members: &mut Vec<(&'static str, Json)>) {
    members.push(("json_schema", format.schema.clone()));
    if format.older_name {
        return;
    }
    members.push(("style", text(format.style.name())));
    members.push(("any_order", Json::Bool(format.any_order)));
    members.push(("max_whitespace_cnt", maybe(format.max_whitespace)));
}

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

fn all_tags(tags: &[Tag]) -> Json {
    let one = |tag: &Tag| {
        let mut members = vec![("type", text("tag"))];
        tag_members(tag, &mut members);
        object(members)
    };
    Json::Array(tags.iter().map(one).collect())
}

fn count(count: TagCount, members: &mut Vec<(&'static str, Json)>) {
    members.push(("at_least_one", Json::Bool(count.at_least_one())));
    members.push(("stop_after_first", Json::Bool(count.stop_after_first())));
}

pub(super) fn object(members: Vec<(&'static str, Json)>) -> Json {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    // The names above are distinct.
    Json::Object(Object::new(members).unwrap_or_default())
}

pub(super) fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn texts(all: &[String]) -> Json {
    Json::Array(all.iter().map(|one| text(one)).collect())
}

fn tokens(all: &[Token]) -> Json {
    Json::Array(all.iter().map(Token::to_json).collect())
}

fn number(value: i64) -> Json {
    Json::from(&serde_json::Value::from(value))
}

fn maybe(value: Option<u32>) -> Json {
    value.map_or(Json::Null, |value| number(i64::from(value)))
}
