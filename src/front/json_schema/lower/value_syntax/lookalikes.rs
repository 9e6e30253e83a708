//! The texts that a reader of tagged parameters takes for a value rather than for a string.

use super::super::super::read::facets::JsonTypes;
use super::super::builtin_pattern::builtin_pattern_dfa;
use crate::cache::ProcessCell;
use crate::fsm::Dfa;

/// An anchored pattern of the texts that read as a value of these types rather than as a string.
/// `None` if the set has no other type than strings. A number without another fraction than zeros
/// is taken for a whole number: that is how the grammar writes these, with an exponent, too.
pub(super) fn lookalikes(types: JsonTypes) -> Option<String> {
    let patterns = [
        (JsonTypes::NULL, "null"),
        (JsonTypes::BOOLEAN, "true|false"),
        (JsonTypes::INTEGER, r"-?(?:0|[1-9][0-9]*)(?:\.0+)?(?:[eE][+-]?[0-9]+)?"),
        (JsonTypes::FRACTION, r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
        (JsonTypes::ARRAY, r"\[[^]*"),
        (JsonTypes::OBJECT, r"\{[^]*"),
    ];
    let parts: Vec<&str> =
        patterns.iter().filter(|(kind, _)| types.meets(*kind)).map(|(_, text)| *text).collect();
    (!parts.is_empty()).then(|| format!("^(?:{})$", parts.join("|")))
}

/// The automaton of [`lookalikes`].
pub(super) fn lookalike_dfa(types: JsonTypes) -> Option<&'static Dfa> {
    static CELLS: [ProcessCell<Option<Dfa>>; 128] = [const { ProcessCell::new() }; 128];
    CELLS[types.index()]
        .get_or_make(|| lookalikes(types).map(|source| builtin_pattern_dfa(&source)))
        .as_ref()
}
