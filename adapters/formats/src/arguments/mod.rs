//! Argument styles: how a tool's arguments stand on the wire, and how they are read back as JSON. A style is code;
//! families choose one by name and give its markers.

mod input;
mod json;
mod literal;
mod object;
mod tagged;
mod write;

pub(crate) use input::{read_input, write_input};
pub use json::python_json;
pub(crate) use json::spaced;
pub(crate) use literal::LiteralReader;
pub(crate) use tagged::TaggedReader;
pub use write::RenderError;
pub(crate) use write::{arguments as write, code};

use louver::front::json_schema::{
    self, LoweredParameters, Parameters, Piece, Raw, Reading, Registry, SchemaError, SchemaErrors,
    Syntax, Whitespace,
};
use louver::ids::RuleId;
use louver::ir::Expr;
use louver::spec::json::Json;

use self::input::InputReader;
use crate::channel::Channel;
use crate::format::{ArgumentStyle, TagPart, TaggedStyle};
use crate::lower::{Lowering, gap};
use crate::request::LazyTools;

/// Arguments lowered: their rule, and how they are read.
pub(crate) struct Lowered {
    pub(crate) rule: RuleId,
    pub(crate) reader: Reader,
}

/// Reads arguments in one style, in any chunks, as JSON text.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    /// JSON already.
    Copy(Channel),
    /// Literals that are not JSON.
    Literal(LiteralReader),
    /// Arguments between tags.
    Tagged(Box<TaggedReader>),
    /// Code: the member `code` of an object.
    Code(Channel),
    /// Text that stands in such arguments as their one string.
    Input(Box<Reader>, InputReader),
}

impl Default for Reader {
    fn default() -> Self {
        Reader::Copy(Channel::default())
    }
}

impl Reader {
    /// Code that has not begun.
    pub(crate) fn code() -> Reader {
        Reader::Code(Channel::framed(b"", b""))
    }

    /// Takes bytes; gives the JSON text that is decided.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        match self {
            Reader::Copy(channel) => channel.push(bytes),
            Reader::Literal(reader) => reader.push(bytes),
            Reader::Tagged(reader) => reader.push(bytes),
            Reader::Code(channel) => {
                let begins = if channel.is_fresh() { "{\"code\": \"" } else { "" };
                begins.to_owned() + &escaped(&channel.push(bytes))
            }
            Reader::Input(json, input) => input.push(&json.push(bytes)),
        }
    }

    /// The arguments are whole: the rest of the JSON text.
    pub(crate) fn close(&mut self) -> String {
        match self {
            Reader::Copy(channel) => channel.flush(),
            Reader::Literal(reader) => reader.close(),
            Reader::Tagged(reader) => reader.close(),
            Reader::Code(channel) => {
                let begins = if channel.is_fresh() { "{\"code\": \"" } else { "" };
                begins.to_owned() + &escaped(&channel.flush()) + "\"}"
            }
            Reader::Input(json, input) => input.push(&json.close()) + &input.cut(),
        }
    }

    /// The generation stops within the arguments: what is decided of the JSON text.
    pub(crate) fn cut(&mut self) -> String {
        match self {
            Reader::Copy(channel) => channel.flush(),
            Reader::Literal(_) => String::new(),
            Reader::Tagged(reader) => reader.cut(),
            Reader::Code(channel) => escaped(&channel.flush()),
            Reader::Input(json, input) => input.push(&json.cut()) + &input.cut(),
        }
    }

    /// Whether it is code that is read.
    pub(crate) fn is_code(&self) -> bool {
        matches!(self, Reader::Code(_))
    }

    /// The same, as JSON text.
    pub(crate) fn json(self) -> Reader {
        match self {
            Reader::Input(json, _) => *json,
            other => other,
        }
    }
}

/// Text as the inside of a JSON string.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    json_schema_string(&mut out, text);
    out[1..out.len() - 1].to_owned()
}

fn json_schema_string(out: &mut String, text: &str) {
    louver::spec::json::write_string(out, text);
}

impl Lowering<'_> {
    /// JSON text of a schema; faults, and what the policy lets go, are collected, with pointers into the request.
    pub(crate) fn json(&mut self, schema: &Json, pointer: &str) -> Option<RuleId> {
        let (options, limits) = (self.request.schema_options, &self.request.limits);
        let registry = Registry::default();
        let lowered = json_schema::lower_into_reported(
            &mut self.builder,
            schema,
            &registry,
            &options,
            limits,
        );
        let (rule, relaxed) = self.settle(lowered, pointer)?;
        self.relaxed.extend(relaxed.into_iter().map(|error| rebased(error, pointer)));
        Some(rule)
    }

    /// The same, lowered when a parse gets to it, if that is asked for and nothing can be wrong with the schema.
    fn json_later(&mut self, schema: &Json) -> Option<RuleId> {
        let LazyTools::From(tools) = self.request.lazy else { return None };
        if self.request.tools.len() < tools {
            return None;
        }
        let deferred =
            json_schema::defer(schema, &self.request.schema_options, &self.request.limits)?;
        Some(self.builder.rule("value", Expr::Deferred(deferred)))
    }

    fn settle<T>(&mut self, lowered: Result<T, SchemaErrors>, pointer: &str) -> Option<T> {
        match lowered {
            Ok(lowered) => Some(lowered),
            Err(errors) => {
                self.parts
                    .schemas
                    .extend(errors.0.into_iter().map(|error| rebased(error, pointer)));
                None
            }
        }
    }

    /// Arguments that satisfy the schema, in the format's style.
    pub(crate) fn lower_arguments(&mut self, schema: &Json, pointer: &str) -> Option<Lowered> {
        self.lower_in(self.style, schema, pointer)
    }

    /// The same in any style. Arguments are an object, whatever the schema leaves out.
    pub(crate) fn lower_in(
        &mut self,
        style: &ArgumentStyle,
        schema: &Json,
        pointer: &str,
    ) -> Option<Lowered> {
        let (mut options, limits) = (self.request.schema_options, &self.request.limits);
        let schema = &*self.settle(object::and_object(schema, options.dialect), pointer)?;
        match style {
            ArgumentStyle::Json => {
                let rule = self.json_later(schema).or_else(|| self.json(schema, pointer))?;
                Some(Lowered { rule, reader: Reader::default() })
            }
            ArgumentStyle::Keywords => {
                let comma = Expr::seq([Expr::text(","), Expr::optional(Expr::text(" "))]);
                let style = Parameters {
                    open: Expr::Empty,
                    between: comma,
                    close: Expr::Empty,
                    member: vec![Piece::Name, Piece::Fixed(Expr::text("=")), Piece::Value],
                    raw: None,
                    syntax: Syntax::Python,
                    other_kinds: Vec::new(),
                    name: &|name| keyword(name).then(|| name.to_owned()),
                };
                let lowered = json_schema::lower_parameters(
                    &mut self.builder,
                    schema,
                    &options,
                    limits,
                    &style,
                );
                let rule = self.settle(lowered, pointer)?.rule;
                Some(Lowered { rule, reader: Reader::Literal(LiteralReader::keywords()) })
            }
            ArgumentStyle::Delimited(marker) => {
                let syntax = Syntax::Delimited(self.triggers(marker));
                options.whitespace = Whitespace::Compact;
                let lowered =
                    json_schema::lower_syntax(&mut self.builder, schema, &options, limits, &syntax);
                let rule = self.settle(lowered, pointer)?;
                Some(Lowered {
                    rule,
                    reader: Reader::Literal(LiteralReader::delimited(&marker.write())),
                })
            }
            ArgumentStyle::Tagged(style) => {
                let lowered = self.tagged(style, schema, pointer)?;
                let reader = TaggedReader::new(style, lowered.kinds, lowered.others);
                Some(Lowered { rule: lowered.rule, reader: Reader::Tagged(Box::new(reader)) })
            }
        }
    }

    fn tagged(
        &mut self,
        style: &TaggedStyle,
        schema: &Json,
        pointer: &str,
    ) -> Option<LoweredParameters> {
        let mut member = Vec::new();
        let mut key = None;
        for part in &style.open {
            member.push(match part {
                TagPart::Text(text) => Piece::Fixed(Expr::text(text)),
                TagPart::Marker(marker) => Piece::Fixed(self.marker(marker)),
                TagPart::Gap(_) => Piece::Fixed(gap()),
                TagPart::Key(part) => {
                    key = Some(part.key);
                    Piece::Name
                }
                TagPart::Kind(part) => Piece::Kind(tagged::kinds_by_word(&part.kind)),
            });
        }
        member.push(Piece::Value);
        let end = self.heads(&style.close);
        let behind_name = tagged::text_behind_name(style);
        let excludes =
            self.format.excluded_values(style).into_iter().map(String::into_bytes).collect();
        let style = Parameters {
            open: self.glue(&style.before),
            between: self.glue(&style.between),
            close: self.glue(&style.behind),
            member,
            raw: Some(Raw {
                end,
                lead: style.lead.clone().into_bytes(),
                trail: style.trail.clone().into_bytes(),
                excludes,
                spaced: false,
                reading: Reading::Json,
            }),
            syntax: Syntax::Json,
            other_kinds: Vec::new(),
            name: &|name| {
                let written = key?.write(name);
                (!written.is_empty() && !written.contains(&behind_name)).then_some(written)
            },
        };
        let (options, limits) = (self.request.schema_options, &self.request.limits);
        let lowered =
            json_schema::lower_parameters(&mut self.builder, schema, &options, limits, &style);
        self.settle(lowered, pointer)
    }
}

fn rebased(error: SchemaError, pointer: &str) -> SchemaError {
    SchemaError { pointer: format!("{pointer}{}", error.pointer), ..error }
}

/// Whether a name can stand before `=`.
pub(crate) fn keyword(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', ',', '(', ')', '"', '\''])
        && !name.contains(char::is_whitespace)
}
