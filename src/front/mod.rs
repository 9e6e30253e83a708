//! Stage 1. Front ends: what users write becomes the typed grammar of [`crate::ir`].

pub mod diagnostic;
pub mod ebnf;
mod factors;
pub mod json_schema;
pub mod lark;
pub mod regex;
pub mod structural_tag;
mod within;

use std::fmt;

use crate::fuel;
use crate::ir::Grammar;
use crate::limits::Limits;
use diagnostic::{Diagnostic, Diagnostics};

/// A grammar read from text, and what may be wrong with it all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The grammar.
    pub grammar: Grammar,
    /// Warnings only.
    pub warnings: Diagnostics,
}

/// Lowers a text within the fuel for its length.
fn within_fuel(
    text: &str,
    limits: &Limits,
    lower: impl FnOnce() -> Result<Lowered, Diagnostics>,
) -> Result<Lowered, Diagnostics> {
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
