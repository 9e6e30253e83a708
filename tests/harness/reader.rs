//! Parses grammars in the form in which they are printed. Strict: the result must print as the
//! given text.

use louver::front::ebnf::{self, EbnfOptions};
use louver::ir::Grammar;
use louver::limits::Limits;

/// The grammar, or the error.
pub(crate) fn grammar(text: &str) -> Result<Grammar, String> {
    let lowered = ebnf::lower(text, &EbnfOptions::default(), &Limits::default())
        .map_err(|e| e.to_string())?;
    let (printed, written) =
        (lowered.grammar.to_string(), text.lines().map(str::trim).collect::<Vec<_>>().join("\n"));
    if printed.trim() != written.trim() {
        return Err(format!("prints differently:\n{printed}"));
    }
    Ok(lowered.grammar)
}
