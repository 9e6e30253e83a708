//! Stage 1. Front ends: what users write becomes the typed grammar of [`crate::ir`].

pub mod diagnostic;
pub mod ebnf;
pub mod json_schema;
pub mod lark;
pub mod regex;
pub mod structural_tag;

use std::fmt;

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

/// Errors in one line.
fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, list: &[T]) -> fmt::Result {
    for (i, one) in list.iter().enumerate() {
        if i > 0 {
            f.write_str("; ")?;
        }
        write!(f, "{one}")?;
    }
    Ok(())
}
