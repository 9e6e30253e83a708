//! Regular expressions of wire formats and of custom tools, in one dialect.

use louver::front::regex::{self, Classes, Dot, RegexOptions};
use louver::fsm::Dfa;
use louver::fuel;
use louver::ir::{Expr, regular};
use louver::limits::Limits;

/// The dialect of OpenAI's documentation: the expression matches the whole text, `.` is any
/// character but a line feed, and classes are those of Unicode. Look-around is allowed.
pub(crate) fn dialect() -> RegexOptions {
    RegexOptions::default()
        .with_scope(regex::Scope::Match)
        .with_look_around(regex::LookAround::Allowed)
        .with_classes(Classes::Unicode)
        .with_dot(Dot::NoLineFeed)
}

/// The automaton of the texts that a regular expression matches as a whole, over bytes.
pub(crate) fn pattern_dfa(pattern: &str, limits: &Limits) -> Result<Dfa, &'static str> {
    let what = "is not a regular expression, or too large";
    let work = || {
        let grammar = regex::lower(pattern, &dialect(), limits).map_err(|_| what)?;
        regular::automaton(&Expr::Ref(grammar.start), &grammar.rules, limits.automaton_states)
            .map_err(|_| what)
    };
    fuel::with_default_budget(|| limits.compile_budget(pattern.len()), work)
}
