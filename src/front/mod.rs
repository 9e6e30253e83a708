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

use crate::fuel;
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

/// Lowers a text with a fuel budget for its length; running out of fuel is an error.
fn within_fuel(
    text: &str,
    limits: &Limits,
    lower: impl FnOnce() -> Result<LoweredGrammar, Diagnostics>,
) -> Result<LoweredGrammar, Diagnostics> {
    fuel::with_default_budget(
        || limits.compile_budget(text.len()),
        || {
            let mut lowered = lower()?;
            match fuel::check() {
                Ok(()) => Ok(lowered),
                Err(out) => {
                    lowered.warnings.push(Diagnostic::error(0..0, out.to_string()));
                    Err(lowered.warnings)
                }
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
