//! From what users write to a constraint, in one call: each front end's door.

use super::{Constraint, Engine};
use crate::compile::CompileError;
use crate::front::LoweredGrammar;
use crate::front::diagnostic::Diagnostics;
use crate::front::ebnf::{self, EbnfOptions};
use crate::front::json_schema::{
    self, Policy, Registry, SchemaError, SchemaErrors, SchemaKey, SchemaOptions,
};
use crate::front::lark::{self, LarkOptions};
use crate::front::regex::{self, RegexError, RegexOptions};
use crate::front::structural_tag::{self, StructuralTagErrors, StructuralTagOptions};
use crate::fuel;
use crate::spec::json::{Json, JsonError};

/// Why a JSON Schema did not become a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaCompileError {
    /// It is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// It is malformed, unsupported or unsatisfiable, with JSON pointers.
    #[error(transparent)]
    Schema(#[from] SchemaErrors),
    /// The grammar it lowers to is not compilable.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Why a structural tag did not become a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StructuralTagCompileError {
    /// It is malformed or contradictory, with JSON pointers.
    #[error(transparent)]
    Document(#[from] StructuralTagErrors),
    /// The grammar it lowers to is not compilable.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Why a regular expression did not become a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegexCompileError {
    /// It is malformed, or no automaton matches it.
    #[error(transparent)]
    Regex(#[from] RegexError),
    /// The grammar it lowers to is not compilable: nothing matches, or a limit was reached.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Why the text of a grammar did not become a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextCompileError {
    /// All that is wrong with the text.
    #[error(transparent)]
    Text(#[from] Diagnostics),
    /// The grammar it lowers to is not compilable.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Bytes of a schema that is kept, for each of its text.
const KEPT: usize = 4;

impl Engine {
    /// Reads, lowers and compiles a JSON Schema. It may refer to itself only, and nothing is relaxed. The constraint of a schema that said the
    /// same (annotations such as `title`, `description` and `default` apart) is given again while it is kept.
    pub fn compile_json_schema(
        &self,
        schema: &str,
        options: &SchemaOptions,
    ) -> Result<Constraint, SchemaCompileError> {
        let options = SchemaOptions { policy: Policy::Strict, ..*options };
        self.compile_json_schema_in(schema, &Registry::default(), &options)
            .map(|(constraint, _)| constraint)
    }

    /// As [`Engine::compile_json_schema`], of a schema that may refer to the documents of a registry, and obeying the options' policy.
    /// Returns also what was relaxed. Kept as there, if the registry is empty.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::engine::{Engine, EngineOptions};
    /// # use louver::front::json_schema::{Registry, SchemaOptions};
    /// # use louver::limits::Limits;
    /// # use louver::spec::json::Json;
    /// # use louver::vocab::Vocabulary;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut registry = Registry::new();
    /// registry.insert("https://example.org/unit", Json::parse(r#"{"enum": ["m", "s"]}"#, &Limits::default())?);
    /// let schema = r#"{"$ref": "https://example.org/unit"}"#;
    /// assert!(engine.compile_json_schema(schema, &SchemaOptions::default()).is_err());
    /// let (constraint, relaxed) = engine.compile_json_schema_in(schema, &registry, &SchemaOptions::default())?;
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
        fuel::with_default_budget(
            || limits.compile_budget(schema.len()),
            || self.compile_schema_within(schema, registry, options),
        )
    }

    fn compile_schema_within(
        &self,
        schema: &str,
        registry: &Registry,
        options: &SchemaOptions,
    ) -> Result<(Constraint, Vec<SchemaError>), SchemaCompileError> {
        let limits = &self.options.limits;
        let parsed = Json::parse(schema, limits)?;
        let make = |schema: &Json, options: &SchemaOptions| {
            let lowered = json_schema::lower_reported(schema, registry, options, limits)?;
            Ok((self.compile(lowered.grammar)?, lowered.relaxed))
        };
        if !registry.is_empty() {
            return make(&parsed, options);
        }
        let key = SchemaKey::new(parsed, *options);
        let (constraint, relaxed) = self
            .kept(key, schema.len() * KEPT, |key: &SchemaKey| make(key.schema(), key.options()))?;
        Ok((constraint, relaxed.to_vec()))
    }

    /// Reads, lowers and compiles a grammar in EBNF (or GBNF, or KBNF). [`ebnf::lower`] also has the warnings.
    pub fn compile_ebnf(
        &self,
        text: &str,
        options: &EbnfOptions,
    ) -> Result<Constraint, TextCompileError> {
        self.compile_text(text, || ebnf::lower(text, options, &self.options.limits))
    }

    /// Reads, lowers and compiles a Lark grammar. Warnings are dropped; [`lark::lower`] has them.
    pub fn compile_lark(
        &self,
        text: &str,
        options: &LarkOptions,
    ) -> Result<Constraint, TextCompileError> {
        self.compile_text(text, || lark::lower(text, options, &self.options.limits))
    }

    /// Reads, lowers and compiles a structural tag. Special tokens of the vocabulary may stand in its markers as themselves.
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
            || Ok(self.compile(structural_tag::lower(text, &options, limits)?.grammar)?),
        )
    }

    /// Reads, lowers and compiles a regular expression.
    pub fn compile_regex(
        &self,
        pattern: &str,
        options: &RegexOptions,
    ) -> Result<Constraint, RegexCompileError> {
        let limits = &self.options.limits;
        fuel::with_default_budget(
            || limits.compile_budget(pattern.len()),
            || Ok(self.compile(regex::lower(pattern, options, limits)?)?),
        )
    }

    fn compile_text(
        &self,
        text: &str,
        lower: impl FnOnce() -> Result<LoweredGrammar, Diagnostics>,
    ) -> Result<Constraint, TextCompileError> {
        fuel::with_default_budget(
            || self.options.limits.compile_budget(text.len()),
            || Ok(self.compile_at(lower()?.grammar, self.options.simplify_texts)?),
        )
    }
}
