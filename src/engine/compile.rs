//! Compilation from each front end's source text to a [`Constraint`].
//!
//! Every function reads and lowers the text, compiles the grammar and binds it, all under one
//! budget of fuel: [`Limits::compile_budget`](crate::limits::Limits::compile_budget) for the length
//! of the text.

use super::{Constraint, Engine};
use crate::compile::CompileError;
use crate::front::LoweredGrammar;
use crate::front::diagnostic::Diagnostics;
use crate::front::ebnf::{self, EbnfOptions};
use crate::front::json_schema::{
    self, LoweredSchema, Policy, Registry, SchemaError, SchemaErrors, SchemaKey, SchemaOptions,
    SchemaSource,
};
use crate::front::lark::{self, LarkOptions};
use crate::front::regex::{self, RegexError, RegexOptions};
use crate::front::structural_tag::{self, StructuralTagErrors, StructuralTagOptions};
use crate::fuel::{self, OutOfFuel};
use crate::ir::Grammar;
use crate::spec::json::{Json, JsonError};

/// Why a JSON Schema was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaCompileError {
    /// The text is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The schema is malformed, unsupported or unsatisfiable; the errors carry JSON pointers.
    #[error(transparent)]
    Schema(#[from] SchemaErrors),
    /// The grammar cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Why a structural tag was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StructuralTagCompileError {
    /// The document is malformed or contradictory; the errors carry JSON pointers.
    #[error(transparent)]
    Document(#[from] StructuralTagErrors),
    /// The grammar cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Why a regular expression was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegexCompileError {
    /// The pattern is malformed, or needs more than a finite automaton.
    #[error(transparent)]
    Regex(#[from] RegexError),
    /// The grammar cannot be compiled: nothing matches, or a limit was reached.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Why a grammar in EBNF or Lark was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextCompileError {
    /// All errors of the text, with their positions.
    #[error(transparent)]
    Text(#[from] Diagnostics),
    /// The grammar cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Estimated memory of a cached schema, in bytes for each byte of its text.
const CACHED_BYTES_PER_SOURCE_BYTE: usize = 4;

/// Lowers a schema, and compiles its grammar with `compile`. Under a policy that relaxes, more of
/// the schema is relaxed until the grammar compiles. Returns what was relaxed as well.
///
/// ```
/// use louver::compile::Compiled;
/// use louver::engine::lower_and_compile;
/// use louver::front::json_schema::{Registry, SchemaSource};
/// use louver::{Json, Limits, SchemaOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (limits, registry, options) = (&Limits::default(), &Registry::new(), Default::default());
/// let schema = &Json::parse(r#"{"type": "integer"}"#, limits)?;
/// let source = SchemaSource { schema, registry, options, limits };
/// let (compiled, relaxed) = lower_and_compile(source, |grammar| Compiled::new(grammar, limits))?;
/// assert!(relaxed.is_empty() && !compiled.grammar().rules.is_empty());
/// # Ok(())
/// # }
/// ```
pub fn lower_and_compile<T>(
    source: SchemaSource<'_>,
    mut compile: impl FnMut(Grammar) -> Result<T, CompileError>,
) -> Result<(T, Vec<SchemaError>), SchemaCompileError> {
    let mut limits = source.limits.clone();
    loop {
        let source = SchemaSource { limits: &limits, ..source };
        let LoweredSchema { grammar, relaxed } = json_schema::lower_reported(source)?;
        let compiled = match source.options.policy {
            Policy::Strict => return Ok((compile(grammar)?, relaxed)),
            Policy::Validate | Policy::BestEffort => fuel::with_half(|| compile(grammar)),
        };
        limits = match (compiled, limits.tightened()) {
            (Ok(compiled), _) => return Ok((compiled, relaxed)),
            (Err(error), Some(tighter)) if error.is_limit() => tighter,
            (Err(error), _) => return Err(error.into()),
        };
    }
}

impl Engine {
    /// Compiles a JSON Schema. It may refer to itself and to the documents of
    /// [`EngineOptions::registry`](super::EngineOptions::registry). Nothing is relaxed.
    ///
    /// A schema with equal constraints (annotations such as `title`, `description` and `default`
    /// apart) and options is taken from the grammar cache.
    ///
    /// Errors: [`SchemaCompileError`], with JSON pointers. A policy other than
    /// [`Policy::Strict`] is an error as well, because what it relaxes would not be reported;
    /// [`Engine::compile_json_schema_in`] takes and reports all policies.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, SchemaOptions, Vocabulary};
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let compile = |schema: &str| engine.compile_json_schema(schema, &SchemaOptions::default());
    /// assert!(compile(r#"{"type": "integer", "minimum": 3}"#).is_ok());
    /// let error = compile(r#"{"properties": {"a": {"type": "text"}}}"#).unwrap_err();
    /// assert!(error.to_string().contains("/properties/a/type"));
    /// ```
    pub fn compile_json_schema(
        &self,
        schema: &str,
        options: &SchemaOptions,
    ) -> Result<Constraint, SchemaCompileError> {
        options.require_strict()?;
        self.compile_json_schema_in(schema, &Registry::default(), options)
            .map(|(constraint, _)| constraint)
    }

    /// As [`Engine::compile_json_schema`], for a schema that may refer to the documents of a
    /// registry, and with the options' policy. Returns the constraint and what was relaxed. An
    /// empty registry stands for [`EngineOptions::registry`](super::EngineOptions::registry); only
    /// then the grammar cache is used.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::front::json_schema::Registry;
    /// # use louver::{Engine, EngineOptions, Json, Limits, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let options = SchemaOptions::default();
    /// let mut registry = Registry::new();
    /// let unit = Json::parse(r#"{"enum": ["m", "s"]}"#, &Limits::default())?;
    /// registry.insert("https://example.org/unit", unit);
    /// let schema = r#"{"$ref": "https://example.org/unit"}"#;
    /// assert!(engine.compile_json_schema(schema, &options).is_err());
    /// let (constraint, relaxed) = engine.compile_json_schema_in(schema, &registry, &options)?;
    /// assert!(relaxed.is_empty());
    /// assert_eq!(constraint.matcher().forced_bytes(9), b"\"");
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_json_schema_in(
        &self,
        schema: &str,
        registry: &Registry,
        options: &SchemaOptions,
    ) -> Result<(Constraint, Vec<SchemaError>), SchemaCompileError> {
        let limits = &self.options.limits;
        let parsed = || Ok::<_, SchemaCompileError>(Json::parse(schema, limits)?);
        if !registry.is_empty() {
            return self.compile_parsed_schema(&parsed()?, registry, options);
        }
        fuel::with_default_budget(
            || options.compile_budget(limits, schema.len()),
            || {
                let bytes = schema.len() * CACHED_BYTES_PER_SOURCE_BYTE;
                let key = SchemaKey::new(parsed()?, *options);
                let (constraint, relaxed) =
                    self.get_or_compile(key, bytes, |key: &SchemaKey| {
                        let registry = &self.options.registry;
                        self.compile_parsed_schema(key.schema(), registry, key.options())
                    })?;
                Ok((constraint, relaxed.to_vec()))
            },
        )
    }

    /// As [`Engine::compile_json_schema_in`], for a parsed schema, and without the grammar cache.
    ///
    /// Under a policy that relaxes, the schema is also relaxed if its grammar cannot be compiled
    /// within the limits, or if the first mask takes too much work.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::front::json_schema::{Policy, Registry};
    /// # use louver::{Engine, EngineOptions, Json, Limits, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = Limits::default().with_automaton_states(1_000);
    /// let options = EngineOptions::default().with_limits(limits.clone());
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), options);
    /// // The automaton of this pattern has 2,048 states.
    /// let schema = r#"{"type": "string", "pattern": "^(?!c)[ab]*a[ab]{10}$"}"#;
    /// let schema = Json::parse(schema, &limits)?;
    /// let compile = |policy| {
    ///     let options = SchemaOptions::default().with_policy(policy);
    ///     engine.compile_parsed_schema(&schema, &Registry::default(), &options)
    /// };
    /// assert!(compile(Policy::Strict).is_err());
    /// let (_, relaxed) = compile(Policy::BestEffort)?;
    /// assert_eq!(relaxed[0].pointer, "/pattern");
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_parsed_schema(
        &self,
        schema: &Json,
        registry: &Registry,
        options: &SchemaOptions,
    ) -> Result<(Constraint, Vec<SchemaError>), SchemaCompileError> {
        fuel::with_default_budget(
            || options.compile_budget(&self.options.limits, schema.text_len()),
            || or_cancelled(|| self.compile_schema_within(schema, registry, options)),
        )
    }

    /// The work of [`Engine::compile_parsed_schema`], under a budget of fuel.
    fn compile_schema_within(
        &self,
        schema: &Json,
        registry: &Registry,
        options: &SchemaOptions,
    ) -> Result<(Constraint, Vec<SchemaError>), SchemaCompileError> {
        let limits = &self.options.limits;
        let source = SchemaSource { schema, registry, options: *options, limits };
        lower_and_compile(source, |grammar| {
            let constraint = self.compile(grammar)?;
            if options.policy != Policy::Strict {
                constraint.make_first_mask()?;
            }
            Ok(constraint)
        })
    }

    /// Compiles a grammar in EBNF, GBNF or KBNF. Warnings are dropped; [`ebnf::lower`] returns
    /// them.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{EbnfOptions, Engine, EngineOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let grammar = "root ::= \"no. \" digit+\ndigit ::= [0-9]\n";
    /// let constraint = engine.compile_ebnf(grammar, &EbnfOptions::default())?;
    /// assert_eq!(constraint.matcher().forced_bytes(9), b"no. ");
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_ebnf(
        &self,
        text: &str,
        options: &EbnfOptions,
    ) -> Result<Constraint, TextCompileError> {
        self.compile_text(text, || ebnf::lower(text, options, &self.options.limits))
    }

    /// Compiles a Lark grammar. Warnings are dropped; [`lark::lower`] returns them.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, LarkOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let grammar = "start: \"no. \" DIGITS\nDIGITS: /[0-9]+/\n";
    /// let constraint = engine.compile_lark(grammar, &LarkOptions::default())?;
    /// assert_eq!(constraint.matcher().forced_bytes(9), b"no. ");
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_lark(
        &self,
        text: &str,
        options: &LarkOptions,
    ) -> Result<Constraint, TextCompileError> {
        self.compile_text(text, || lark::lower(text, options, &self.options.limits))
    }

    /// Compiles a structural tag. Special tokens of the vocabulary may be used in its markers.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, StructuralTagOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let document = r#"{"type": "structural_tag", "format": {"type": "tag",
    ///     "begin": "<n>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</n>"}}"#;
    /// let constraint = engine.compile_structural_tag(document, &StructuralTagOptions::default())?;
    /// assert_eq!(constraint.matcher().forced_bytes(9), b"<n>");
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_structural_tag(
        &self,
        text: &str,
        options: &StructuralTagOptions,
    ) -> Result<Constraint, StructuralTagCompileError> {
        let mut options = options.clone();
        options.special_tokens.extend(self.vocab.specials().iter().map(|(_, name)| name.clone()));
        let limits = &self.options.limits;
        fuel::with_default_budget(
            || limits.compile_budget(text.len()),
            || {
                or_cancelled(|| {
                    Ok(self.compile(structural_tag::lower(text, &options, limits)?.grammar)?)
                })
            },
        )
    }

    /// Compiles a regular expression. The whole text must match, not a part of it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, RegexOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let constraint = engine.compile_regex("(?:x|y)=[0-9]", &RegexOptions::default())?;
    /// assert!(!constraint.matcher().is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_regex(
        &self,
        pattern: &str,
        options: &RegexOptions,
    ) -> Result<Constraint, RegexCompileError> {
        let limits = &self.options.limits;
        fuel::with_default_budget(
            || limits.compile_budget(pattern.len()),
            || or_cancelled(|| Ok(self.compile(regex::lower(pattern, options, limits)?)?)),
        )
    }

    /// Lowers and compiles the text of a grammar, simplified by `EngineOptions::simplify_texts`.
    fn compile_text(
        &self,
        text: &str,
        lower: impl FnOnce() -> Result<LoweredGrammar, Diagnostics>,
    ) -> Result<Constraint, TextCompileError> {
        fuel::with_default_budget(
            || self.options.limits.compile_budget(text.len()),
            || {
                or_cancelled(|| {
                    Ok(self.compile_with(lower()?.grammar, self.options.simplify_texts)?)
                })
            },
        )
    }
}

/// Runs a compilation. Where it was cancelled, its error is [`OutOfFuel::Cancelled`], whatever a
/// front end has made of that.
fn or_cancelled<T, E: From<CompileError>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    work().map_err(|error| match fuel::check() {
        Err(cause @ OutOfFuel::Cancelled) => {
            CompileError::Fuel { rule: "start".to_owned(), cause }.into()
        }
        _ => error,
    })
}
