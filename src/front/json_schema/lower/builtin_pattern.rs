//! Automata of the patterns that lowering itself uses.

use crate::front::regex::Pattern;
use crate::fsm::Dfa;
use crate::limits::Limits;

/// The minimal automaton of the texts that match a built-in pattern as a whole. To be made in a
/// [`ProcessCell`](crate::cache::ProcessCell), where the fuel of the request does not count.
pub(super) fn builtin_pattern_dfa(source: &str) -> Dfa {
    let limits = Limits::default();
    let dfa =
        Pattern::parse(source, &limits).map(|pattern| pattern.match_dfa(limits.automaton_states));
    match dfa {
        Ok(Ok(dfa)) => dfa,
        Ok(Err(error)) => unreachable!("{source} is small: {error}"),
        Err(error) => unreachable!("{source} is a pattern: {error}"),
    }
}
