//! Limits that stop the parser.

use crate::fuel::OutOfFuel;

/// A limit that the parser reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParserLimit {
    /// One configuration has too many items.
    Items,
    /// The items of one configuration call too many rules.
    Calls,
    /// A value that must be distinct is nested too deeply to be compared.
    Values,
    /// No distinct value is left, or the search for a completion gave up.
    Search,
    /// All configurations together take too much memory.
    Memory,
    /// A deferred part of the grammar could not be built.
    Deferred,
    /// One mask or token takes more work than its fuel.
    Fuel,
    /// All masks and tokens of one sequence take more work than its fuel.
    SequenceFuel,
    /// The request was cancelled.
    Cancelled,
}

impl From<OutOfFuel> for ParserLimit {
    fn from(out: OutOfFuel) -> Self {
        match out {
            OutOfFuel::Spent { .. } => ParserLimit::Fuel,
            OutOfFuel::Cancelled => ParserLimit::Cancelled,
        }
    }
}

impl ParserLimit {
    /// What was reached, for error messages: a noun.
    pub(crate) fn what(self) -> &'static str {
        match self {
            ParserLimit::Items => "items of one configuration",
            ParserLimit::Calls => "calls of one configuration",
            ParserLimit::Values => "nesting of a value that must differ from others",
            ParserLimit::Search => "the search for a value that differs from earlier ones",
            ParserLimit::Memory => "memory for configurations",
            ParserLimit::Deferred => "a part of the grammar that is built on demand",
            ParserLimit::Fuel => "fuel for one mask or token",
            ParserLimit::SequenceFuel => "fuel for the masks and tokens of one sequence",
            ParserLimit::Cancelled => "cancellation of the request",
        }
    }
}
