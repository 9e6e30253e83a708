//! Stage 6, the door: a vocabulary, options and shared caches in; constraints and matchers out.

use std::sync::Arc;

use crate::compile::{CompileError, Compiled};
use crate::front::json_schema::{SchemaErrors, SchemaOptions};
use crate::ids::TokenId;
use crate::ir::Grammar;
use crate::limits::Limits;
use crate::matcher::{AdvanceError, Tracer};
use crate::vocab::Vocabulary;

/// How an [`Engine`] works.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Bounds on every request.
    pub limits: Limits,
}

/// Why a JSON Schema did not become a constraint.
#[derive(Debug, thiserror::Error)]
pub enum SchemaCompileError {
    /// The schema itself: malformed, unsupported or unsatisfiable, with JSON pointers.
    #[error(transparent)]
    Schema(#[from] SchemaErrors),
    /// The grammar it lowers to.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// One model's engine. Cheap to share in an `Arc`; all methods take `&self`.
#[derive(Debug)]
pub struct Engine {}

impl Engine {
    /// An engine for this vocabulary.
    pub fn new(vocab: Arc<Vocabulary>, options: EngineOptions) -> Self {
        todo!()
    }
    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        todo!()
    }
    /// Compiles a grammar and binds it to the vocabulary.
    pub fn compile(&self, grammar: &Grammar) -> Result<Constraint, CompileError> {
        todo!()
    }
    /// Binds an already compiled grammar (shared between vocabularies) to the vocabulary.
    pub fn bind(&self, compiled: Arc<Compiled>) -> Result<Constraint, CompileError> {
        todo!()
    }
    /// Lowers and compiles a JSON Schema text.
    pub fn compile_json_schema(&self, schema: &str, options: &SchemaOptions) -> Result<Constraint, SchemaCompileError> {
        todo!()
    }
}

/// A compiled grammar bound to a vocabulary, with its caches. Cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct Constraint {}

impl Constraint {
    /// A matcher at the beginning.
    pub fn matcher(&self) -> Matcher {
        todo!()
    }
    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocabulary> {
        todo!()
    }
    /// The compiled grammar.
    pub fn compiled(&self) -> &Arc<Compiled> {
        todo!()
    }
}

/// Where one sequence is in its constraint. Small; `clone` is an independent fork.
#[derive(Clone, Debug)]
pub struct Matcher {}

impl Matcher {
    /// Writes the mask of the next token: bit `t % 32` of word `t / 32` is 1 iff token `t` may follow. `mask` must have
    /// [`Vocabulary::mask_words`] words. Stop tokens are allowed exactly where the grammar may end; after a stop token only stop
    /// tokens are.
    pub fn fill_mask(&mut self, mask: &mut [u32]) {
        todo!()
    }
    /// Takes a token. On an error the state is unchanged.
    pub fn advance(&mut self, token: TokenId) -> Result<(), AdvanceError> {
        todo!()
    }
    /// As [`Matcher::advance`], and tells the tracer what each byte was.
    pub fn advance_traced(&mut self, token: TokenId, tracer: &mut Tracer) -> Result<(), AdvanceError> {
        todo!()
    }
    /// Whether a token may follow, without a mask.
    pub fn allows(&mut self, token: TokenId) -> bool {
        todo!()
    }
    /// Takes back the last `n` tokens (all of them if there are fewer).
    pub fn rollback(&mut self, n: usize) {
        todo!()
    }
    /// Tokens taken so far.
    pub fn tokens(&self) -> &[TokenId] {
        todo!()
    }
    /// Whether the text so far is a whole sentence of the grammar (a stop token is allowed).
    pub fn is_complete(&mut self) -> bool {
        todo!()
    }
    /// Whether a stop token has been taken.
    pub fn is_terminated(&self) -> bool {
        todo!()
    }
}
