//! From what users write to a constraint, in one call: each front end's door.

use super::{Constraint, Engine};
use crate::compile::CompileError;
use crate::front::Lowered;
use crate::front::diagnostic::Diagnostics;
use crate::front::ebnf::{self, EbnfOptions};
use crate::front::json_schema::{self, SchemaErrors, SchemaOptions};
use crate::front::lark::{self, LarkOptions};
use crate::front::regex::{self, RegexError, RegexOptions};
use crate::front::structural_tag::{self, StructuralTagErrors, StructuralTagOptions};
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

impl Engine {
    /// Reads, lowers and compiles a JSON Schema.
    pub fn compile_json_schema(&self, schema: &str, options: &SchemaOptions) -> Result<Constraint, SchemaCompileError> {
        let limits = &self.options.limits;
        let grammar = json_schema::lower(&Json::parse(schema, limits)?, options, limits)?;
        Ok(self.compile(grammar)?)
    }

    /// Reads, lowers and compiles a grammar in EBNF (or GBNF, or KBNF). [`ebnf::lower`] also has the warnings.
    pub fn compile_ebnf(&self, text: &str, options: &EbnfOptions) -> Result<Constraint, TextCompileError> {
        self.compile_text(ebnf::lower(text, options, &self.options.limits)?)
    }

    /// Reads, lowers and compiles a Lark grammar. Warnings are dropped; [`lark::lower`] has them.
    pub fn compile_lark(&self, text: &str, options: &LarkOptions) -> Result<Constraint, TextCompileError> {
        self.compile_text(lark::lower(text, options, &self.options.limits)?)
    }

    /// Reads, lowers and compiles a structural tag. Special tokens of the vocabulary may stand in its markers as themselves.
    pub fn compile_structural_tag(
        &self,
        text: &str,
        options: &StructuralTagOptions,
    ) -> Result<Constraint, StructuralTagCompileError> {
        let mut options = options.clone();
        options.special_tokens.extend(self.vocab.specials().iter().map(|(_, name)| name.clone()));
        Ok(self.compile(structural_tag::lower(text, &options, &self.options.limits)?.grammar)?)
    }

    /// Reads, lowers and compiles a regular expression.
    pub fn compile_regex(&self, pattern: &str, options: &RegexOptions) -> Result<Constraint, RegexCompileError> {
        Ok(self.compile(regex::lower(pattern, options, &self.options.limits)?)?)
    }

    fn compile_text(&self, lowered: Lowered) -> Result<Constraint, TextCompileError> {
        Ok(self.compile_at(lowered.grammar, self.options.simplify_texts)?)
    }
}
