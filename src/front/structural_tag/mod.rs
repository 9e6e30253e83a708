//! Structural tags: a JSON document format for the structure of a whole answer, used by xgrammar,
//! vLLM and others.
//!
//! ```text
//! JSON -> read    typed values (model); unknown types and members are errors
//!      -> lower   one rule or expression per format; passes the ends of tags down to free text
//!         free_text  free text, triggers in it
//!         tokens  formats over whole tokens
//!         styles  JSON Schemas whose values are written in tags
//! typed values -> write   JSON again
//! response_format -> openai   the request member of the OpenAI API
//! ```
//!
//! `docs/STRUCTURAL_TAGS.md` defines the meaning of each format, and
//! `schemas/structural-tag.schema.json` the syntax.

mod free_text;
mod lower;
mod model;
mod openai;
mod read;
mod special_names;
mod styles;
mod tokens;
mod write;

use std::fmt;

use crate::front::DocumentWarning;
use crate::front::diagnostic::Diagnostics;
use crate::front::json_schema::{MemberOrder, SchemaErrorReason, SchemaOptions, Undeclared};
use crate::front::regex::RegexError;
use crate::fuel;
use crate::ir::Grammar;
use crate::limits::Limits;
use crate::setters::with_methods;
use crate::spec::json::JsonError;

pub use model::{
    Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Style, Tag, TagCount, Token,
};

/// Options of structural tags.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StructuralTagOptions {
    /// Options of the schemas in `json_schema` formats. By default, undeclared members are
    /// forbidden and members are in the order of the schema, as the format requires. The policy
    /// must be strict, because what another one relaxes would not be reported.
    pub schema: SchemaOptions,
    /// Names of special tokens. Where one occurs in a marker, both the token and its spelling are
    /// accepted; free text contains no special tokens.
    /// [`Engine::compile_structural_tag`](crate::engine::Engine::compile_structural_tag) adds those
    /// of its vocabulary.
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

with_methods!(StructuralTagOptions {
    with_schema: schema = SchemaOptions,
    with_special_tokens: special_tokens = Vec<String>,
});

/// A document lowered to a grammar, with warnings.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredTag {
    /// The grammar.
    pub grammar: Grammar,
    /// The warnings of the schemas and grammars in the document.
    pub warnings: Vec<DocumentWarning>,
}

/// An error in a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: {reason}")]
pub struct StructuralTagError {
    /// JSON pointer to the erroneous value.
    pub pointer: String,
    /// The reason.
    pub reason: StructuralTagErrorReason,
}

/// The reason of an error in a structural tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StructuralTagErrorReason {
    /// The document is not JSON.
    #[error("the document is not valid JSON: {0}")]
    Json(#[from] JsonError),
    /// The document is not a structural tag: a type, a member or a value is unknown.
    #[error("malformed: {0}")]
    Malformed(String),
    /// No text can satisfy the format, or it cannot end.
    #[error("contradictory: {0}")]
    Contradictory(String),
    /// An error in a schema.
    #[error(transparent)]
    Schema(SchemaErrorReason),
    /// An error in a regular expression.
    #[error(transparent)]
    Regex(RegexError),
    /// Errors in a grammar, with positions in its own text.
    #[error(transparent)]
    Grammar(Diagnostics),
    /// A limit is exceeded.
    #[error("limit reached: {0}")]
    Limit(String),
}

/// The errors of a document; never empty.
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

/// Parses a document and lowers it to a grammar. Reports all errors of the document and its
/// schemas, each with a JSON pointer. Cost: linear, except for the schemas and regular expressions
/// inside.
///
/// ```
/// use louver::front::structural_tag;
/// use louver::{Limits, StructuralTagOptions};
///
/// let lower = |text| {
///     structural_tag::lower(text, &StructuralTagOptions::default(), &Limits::default())
/// };
/// let document = r#"{"type": "structural_tag", "format": {"type": "tag",
///     "begin": "<n>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</n>"}}"#;
/// assert!(lower(document).is_ok());
/// let errors = lower(r#"{"type": "structural_tag", "format": {"type": "tog"}}"#).unwrap_err();
/// assert_eq!(errors.0[0].pointer, "/format/type");
/// ```
pub fn lower(
    text: &str,
    options: &StructuralTagOptions,
    limits: &Limits,
) -> Result<LoweredTag, StructuralTagErrors> {
    fuel::with_default_budget(
        || limits.compile_budget(text.len()),
        || StructuralTag::parse(text, limits)?.lower(options, limits),
    )
}
