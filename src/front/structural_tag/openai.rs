//! `response_format` of the OpenAI API, and of servers that follow it, as structural tags.

use super::StructuralTagErrors;
use super::model::{Begin, End, Format, JsonSchema, StructuralTag, Style, Tag, TagCount};
use super::read::{TagReader, member_pointer};
use super::write::{object, text};
use crate::limits::Limits;
use crate::spec::json::{Json, Object};

impl StructuralTag {
    /// Parses a `response_format`, or a request that contains one:
    ///
    /// * `{"type": "structural_tag", "format": ...}`: the document itself;
    /// * `{"type": "structural_tag", "structures": [{"begin", "schema", "end"}, ...],
    ///   "triggers": [...]}`, the older form: free text in which a trigger begins a structure;
    /// * `{"type": "json_schema", "json_schema": {"schema": ...}}`: a value of the schema;
    /// * `{"type": "json_object"}`: an object;
    /// * `{"type": "text"}`: any text.
    ///
    /// Cost: linear.
    pub fn from_response_format(
        value: &Json,
        limits: &Limits,
    ) -> Result<StructuralTag, StructuralTagErrors> {
        let mut reader = TagReader::new(limits);
        let (value, pointer) = match value.get("response_format") {
            Some(inner) => (inner, "/response_format"),
            None => (value, ""),
        };
        let format = reader.response_format(value, pointer);
        reader.finish(format.map(|format| StructuralTag { format }))
    }
}

impl TagReader {
    /// Parses the object `response_format`.
    fn response_format(&mut self, value: &Json, pointer: &str) -> Option<Format> {
        let Some(members) = value.as_object() else {
            return self.malformed(pointer, "must be an object");
        };
        let at = member_pointer(pointer, "type");
        match members.get("type").and_then(Json::as_str) {
            Some("structural_tag") if members.get("structures").is_some() => {
                self.structures(members, pointer)
            }
            Some("structural_tag") => {
                self.check_members(members, pointer, &["type", "format"]);
                match members.get("format") {
                    Some(format) => self.format(format, &member_pointer(pointer, "format"), 1),
                    None => self.malformed(pointer, "lacks `format`"),
                }
            }
            Some("json_schema") => self.schema(members, pointer),
            Some("json_object") => {
                self.check_members(members, pointer, &["type"]);
                Some(schema_format(object(vec![("type", text("object"))])))
            }
            Some("text") => {
                self.check_members(members, pointer, &["type"]);
                Some(Format::AnyText { excludes: Vec::new(), max_tokens: None, max_chars: None })
            }
            _ => self.malformed(
                &at,
                "must be \"structural_tag\", \"json_schema\", \"json_object\" or \"text\"",
            ),
        }
    }

    /// Parses a `response_format` of type `json_schema`.
    fn schema(&mut self, members: &Object, pointer: &str) -> Option<Format> {
        self.check_members(members, pointer, &["type", "json_schema"]);
        let at = member_pointer(pointer, "json_schema");
        let Some(inner) = members.get("json_schema").and_then(Json::as_object) else {
            return self.malformed(pointer, "lacks the object `json_schema`");
        };
        self.check_members(inner, &at, &["name", "description", "schema", "strict"]);
        for name in ["name", "description"] {
            if !matches!(inner.get(name), None | Some(Json::String(_) | Json::Null)) {
                self.malformed::<()>(&member_pointer(&at, name), "must be a string");
            }
        }
        if !matches!(inner.get("strict"), None | Some(Json::Bool(_) | Json::Null)) {
            self.malformed::<()>(&member_pointer(&at, "strict"), "must be true or false");
        }
        match inner.get("schema") {
            Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema_format(schema.clone())),
            Some(_) => {
                self.malformed(&member_pointer(&at, "schema"), "must be an object, true or false")
            }
            None => self.malformed(&at, "lacks `schema`"),
        }
    }

    /// Parses the older form of structural tags.
    fn structures(&mut self, members: &Object, pointer: &str) -> Option<Format> {
        self.check_members(members, pointer, &["type", "structures", "triggers"]);
        let at = member_pointer(pointer, "structures");
        let structures = match members.get("structures").and_then(Json::as_array) {
            Some(list) if !list.is_empty() => list,
            _ => return self.malformed(&at, "must be a list that is not empty"),
        };
        let mut tags = Vec::new();
        for (i, item) in structures.iter().enumerate() {
            let at = format!("{at}/{i}");
            let Some(structure) = item.as_object() else {
                tags.push(self.malformed(&at, "must be an object"));
                continue;
            };
            self.check_members(structure, &at, &["begin", "schema", "end"]);
            let string = |name: &str| structure.get(name).and_then(Json::as_str).map(str::to_owned);
            let schema = structure
                .get("schema")
                .filter(|s| matches!(s, Json::Object(_) | Json::Bool(_)))
                .cloned();
            tags.push(match (string("begin"), schema, string("end")) {
                (Some(begin), Some(schema), Some(end)) => Some(Tag {
                    begin: Begin::Text(begin),
                    content: schema_format(schema),
                    end: End::Text(end),
                }),
                _ => self.malformed(
                    &at,
                    "must have the strings `begin` and `end` and a schema `schema`",
                ),
            });
        }
        let triggers = members.get("triggers").and_then(Json::as_array).unwrap_or_default();
        let texts =
            triggers.iter().map(|t| t.as_str().filter(|t| !t.is_empty()).map(str::to_owned));
        let triggers = match texts.collect::<Option<Vec<String>>>() {
            Some(texts) if !texts.is_empty() => Some(texts),
            _ => self.malformed(
                &member_pointer(pointer, "triggers"),
                "must be a list of strings, neither it nor they empty",
            ),
        };
        let tags = tags.into_iter().collect::<Option<Vec<Tag>>>()?;
        Some(Format::TriggeredTags {
            triggers: triggers?,
            tags,
            excludes: Vec::new(),
            count: TagCount::Any,
        })
    }
}

/// A schema format with default options.
fn schema_format(schema: Json) -> Format {
    Format::JsonSchema(JsonSchema {
        schema,
        style: Style::Json,
        any_order: None,
        max_whitespace: None,
        older_name: false,
    })
}
