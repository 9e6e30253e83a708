//! Structural tags: the JSON format in which xgrammar, vLLM and others exchange what a whole answer must look like.
//!
//! ```text
//! JSON -> read    typed values (model), unknown types and members refused
//!      -> lower   one rule or expression a format; ends of tags passed down to the text inside
//!         tokens  formats over whole tokens
//!         styles  JSON Schemas whose values stand in tags
//! typed values -> write   JSON again
//! response_format -> openai   what requests call it
//! ```
//!
//! What each format means is written down in `docs/STRUCTURAL_TAGS.md`; `schemas/structural-tag.schema.json` has the shape.

mod lower;
mod model;
mod openai;
mod read;
mod styles;
mod tokens;
mod write;

use std::fmt;

use crate::front::Lowered;
use crate::front::diagnostic::Diagnostics;
use crate::front::json_schema::{MemberOrder, SchemaErrorReason, SchemaOptions, Undeclared};
use crate::front::regex::RegexError;
use crate::fuel;
use crate::limits::Limits;
use crate::spec::json::JsonError;

pub use model::{
    Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Style, Tag, TagCount, Token,
};

/// How structural tags are lowered.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuralTagOptions {
    /// How the schemas of `json_schema` formats are read. By default nothing undeclared is allowed and members come in the order of
    /// the schema, as the format has it. Strict, whatever the policy says.
    pub schema: SchemaOptions,
    /// Names of special tokens. Where one stands in a marker, the token may stand there as well as its spelling; free text has none of
    /// them. [`Engine::compile_structural_tag`](crate::engine::Engine::compile_structural_tag) adds those of its vocabulary.
    pub special_tokens: Vec<String>,
}

impl Default for StructuralTagOptions {
    fn default() -> Self {
        StructuralTagOptions {
            schema: SchemaOptions {
                order: MemberOrder::Fixed,
                undeclared: Undeclared::Forbidden,
                ..SchemaOptions::default()
            },
            special_tokens: Vec::new(),
        }
    }
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: {reason}")]
pub struct StructuralTagError {
    /// JSON pointer to where it is.
    pub pointer: String,
    /// What is wrong.
    pub reason: StructuralTagErrorReason,
}

/// What is wrong with a structural tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StructuralTagErrorReason {
    /// Not JSON.
    #[error("the document is no JSON: {0}")]
    Json(#[from] JsonError),
    /// Not a structural tag: a type, a member or a value that the format does not have.
    #[error("malformed: {0}")]
    Malformed(String),
    /// Nothing can satisfy it, or it cannot end.
    #[error("contradictory: {0}")]
    Contradictory(String),
    /// A schema inside.
    #[error(transparent)]
    Schema(SchemaErrorReason),
    /// A regular expression inside.
    #[error(transparent)]
    Regex(RegexError),
    /// A grammar inside, with places in its own text.
    #[error(transparent)]
    Grammar(Diagnostics),
    /// A limit was reached.
    #[error("limit reached: {0}")]
    Limit(String),
}

/// All that is wrong with a document; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct StructuralTagErrors(pub Vec<StructuralTagError>);

impl StructuralTagErrors {
    /// The errors.
    pub fn iter(&self) -> std::slice::Iter<'_, StructuralTagError> {
        self.0.iter()
    }
}

impl fmt::Display for StructuralTagErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::front::write_list(f, &self.0)
    }
}

/// Reads a document and lowers it to a grammar of the texts it allows. All errors of the document and of the schemas in it are
/// reported, each with a JSON pointer. Cost: linear, but for the schemas and regular expressions inside.
pub fn lower(
    text: &str,
    options: &StructuralTagOptions,
    limits: &Limits,
) -> Result<Lowered, StructuralTagErrors> {
    fuel::with_default_budget(
        || limits.compile_budget(text.len()),
        || StructuralTag::parse(text, limits)?.lower(options, limits),
    )
}
