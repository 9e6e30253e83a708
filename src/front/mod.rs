//! Stage 1. Front ends: what users write becomes the typed grammar of [`crate::ir`].

pub mod diagnostic;
pub mod ebnf;
pub mod json_schema;
pub mod lark;
pub mod regex;
pub mod structural_tag;

use crate::ir::Grammar;
use diagnostic::Diagnostics;

/// A grammar read from text, and what may be wrong with it all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The grammar.
    pub grammar: Grammar,
    /// Warnings only.
    pub warnings: Diagnostics,
}
