//! Counters, results of validation, and slices, under the names of the original's parser module.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Counters of a parser's work. Louver fills in the time and the number of masks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ParserStats {
    /// Time of masks, in microseconds.
    pub compute_time_us: u64,
    /// Tokens consumed.
    pub rows: usize,
    /// Not counted.
    pub cached_rows: usize,
    /// Not counted.
    pub all_items: usize,
    /// Not counted.
    pub lexer_cost: u64,
    /// Not counted.
    pub slices_applied: usize,
    /// Not counted.
    pub trie_nodes_walked: usize,
    /// Bytes consumed.
    pub definitive_bytes: usize,
    /// Not counted.
    pub lexer_ops: usize,
    /// Not counted.
    pub num_lex_errors: usize,
    /// Not counted.
    pub num_lexemes: usize,
}

impl fmt::Display for ParserStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?)
    }
}

/// What a grammar is found to be.
#[derive(Clone, Debug)]
pub enum ValidationResult {
    /// Right.
    Valid,
    /// Right, with these warnings.
    Warnings(Vec<String>),
    /// Refused.
    Error(String),
}

impl ValidationResult {
    /// The result of a grammar with these warnings.
    pub fn from_warning(warnings: Vec<String>) -> Self {
        if warnings.is_empty() { Self::Valid } else { Self::Warnings(warnings) }
    }

    /// Whether it is an error, and all messages.
    pub fn into_tuple(self) -> (bool, Vec<String>) {
        match self {
            ValidationResult::Valid => (false, Vec::new()),
            ValidationResult::Warnings(warnings) => (false, warnings),
            ValidationResult::Error(error) => (true, vec![error]),
        }
    }

    /// The error.
    pub fn into_error(self) -> Option<String> {
        if let ValidationResult::Error(error) = self { Some(error) } else { None }
    }

    /// The messages as text, warnings only if asked for.
    pub fn render(&self, with_warnings: bool) -> String {
        match self {
            ValidationResult::Error(error) => format!("ERROR: {error}"),
            ValidationResult::Warnings(warnings) if with_warnings => {
                let lines: Vec<_> = warnings.iter().map(|w| format!("WARNING: {w}")).collect();
                lines.join("\n")
            }
            _ => String::new(),
        }
    }
}

/// The regular expressions by which the original divides the vocabulary. Louver makes its masks
/// without them: they have no effect.
#[derive(Clone, Debug)]
pub struct SlicedBiasComputer;

impl SlicedBiasComputer {
    /// Slices for JSON: none are needed.
    pub fn json_slices() -> Vec<String> {
        Vec::new()
    }

    /// The slices of [`crate::ParserFactory::new_simple`].
    pub fn general_slices() -> Vec<String> {
        Self::json_slices()
    }
}
