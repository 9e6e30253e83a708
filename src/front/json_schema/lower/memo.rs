//! Memo of lowered values, so that equal conjunctions of schemas share their rules; and the rules
//! that all schemas have in common.

use super::super::normalize::Conjunction;
use super::super::read::doc::LocId;
use super::super::read::facets::JsonTypes;
use crate::hash::HashMap;
use crate::ir::Expr;

/// The expressions of the values that have been lowered.
#[derive(Default)]
pub(super) struct ValueMemo {
    /// By conjunction.
    pub(super) by_conjunction: HashMap<Conjunction, Expr>,
    /// Values that are constrained by type only: by those types, and those that a reader expects.
    pub(super) by_types: HashMap<(JsonTypes, JsonTypes), Expr>,
    /// By conjunction: the types that a reader expects of its values, between nested tags.
    pub(super) expected_types: HashMap<Conjunction, JsonTypes>,
}

impl ValueMemo {
    /// For the first location of each conjunction, all locations that are conjoined with it. A
    /// conjunction is lowered at its first location.
    pub(super) fn conjoined(&self) -> HashMap<LocId, Vec<LocId>> {
        let mut conjoined: HashMap<LocId, Vec<LocId>> = HashMap::default();
        for conj in self.by_conjunction.keys() {
            if let Some(&first) = conj.first() {
                conjoined.entry(first).or_default().extend(conj);
            }
        }
        conjoined
    }
}

/// A rule that does not depend on the schema.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CommonRule {
    /// White space between tokens.
    Space,
    String,
    /// The rest of a string.
    Tail,
    /// A character that is not plain ASCII and the rest of a string.
    SpecialTail,
    /// The same two rules for strings of Python with this quote.
    PythonTail(u8),
    PythonSpecialTail(u8),
    Number,
    Integer,
    /// Any value.
    Json,
    Object,
    Array,
    /// Names of members that are distinct in each object.
    DistinctName,
}

impl CommonRule {
    /// The name of the rule in the grammar.
    pub(super) fn name(self) -> &'static str {
        match self {
            CommonRule::Space => "ws",
            CommonRule::String => "string",
            CommonRule::Tail | CommonRule::PythonTail(_) => "string-tail",
            CommonRule::SpecialTail | CommonRule::PythonSpecialTail(_) => "special-tail",
            CommonRule::Number | CommonRule::Integer => "number",
            CommonRule::Json => "json",
            CommonRule::Object => "json-object",
            CommonRule::Array => "json-array",
            CommonRule::DistinctName => "name",
        }
    }
}
