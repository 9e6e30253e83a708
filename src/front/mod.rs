//! Stage 1, front ends: lower schemas, regular expressions, EBNF, Lark and structural tags to the
//! grammars of [`crate::ir`].

pub mod diagnostic;
pub mod ebnf;
mod factors;
pub mod json_schema;
pub mod lark;
pub mod regex;
pub mod structural_tag;
mod text_search;

use std::fmt;

use crate::fuel::{self, OutOfFuel};
use crate::ir::Grammar;
use crate::limits::Limits;
use diagnostic::{Diagnostic, Diagnostics};

/// A grammar lowered from text, with warnings.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredGrammar {
    /// The grammar.
    pub grammar: Grammar,
    /// Diagnostics without errors.
    pub warnings: Diagnostics,
}

/// A place of a JSON document that probably constrains less than it was written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentWarning {
    /// JSON pointer into the document.
    pub pointer: String,
    /// What is wrong, in one line.
    pub message: String,
}

impl DocumentWarning {
    /// The warning as one of a document that has the document of this one at a pointer.
    pub fn below(self, pointer: &str) -> DocumentWarning {
        DocumentWarning { pointer: format!("{pointer}{}", self.pointer), ..self }
    }
}

impl fmt::Display for DocumentWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.pointer, self.message)
    }
}

/// Lowers a text with a fuel budget for its length; running out of fuel is an error.
fn within_fuel(
    text: &str,
    limits: &Limits,
    lower: impl FnOnce() -> Result<LoweredGrammar, Diagnostics>,
) -> Result<LoweredGrammar, Diagnostics> {
    fuel::with_default_budget(
        || limits.compile_budget(text.len()),
        || {
            match (lower(), fuel::check()) {
                (lowered, Ok(())) => lowered,
                // A cancelled text is not read to its end, so other errors mean nothing.
                (_, Err(out @ OutOfFuel::Cancelled)) => {
                    let mut diagnostics = Diagnostics::new("grammar", text);
                    diagnostics.push(Diagnostic::error(0..0, out.to_string()));
                    Err(diagnostics)
                }
                (Ok(LoweredGrammar { mut warnings, .. }), Err(out)) => {
                    warnings.push(Diagnostic::error(0..0, out.to_string()));
                    Err(warnings)
                }
                (errors, Err(_)) => errors,
            }
        },
    )
}

/// Writes errors in one line.
fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, list: &[T]) -> fmt::Result {
    for (i, error) in list.iter().enumerate() {
        if i > 0 {
            f.write_str("; ")?;
        }
        write!(f, "{error}")?;
    }
    Ok(())
}
