//! Sets of JSON types, as readers of tagged parameters know them, and the texts that such a reader
//! takes for a value rather than for a string.

use super::super::read::facets::TypeSet;
use super::builtin_pattern::builtin_pattern_dfa;
use crate::cache::ProcessCell;
use crate::fsm::Dfa;

/// A set of JSON types, for `ParameterStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JsonTypes(u8);

impl JsonTypes {
    /// `null`.
    pub const NULL: JsonTypes = JsonTypes(1);
    /// Booleans.
    pub const BOOLEAN: JsonTypes = JsonTypes(2);
    /// Numbers, integers included.
    pub const NUMBER: JsonTypes = JsonTypes(4);
    /// Strings.
    pub const STRING: JsonTypes = JsonTypes(8);
    /// Arrays.
    pub const ARRAY: JsonTypes = JsonTypes(16);
    /// Objects.
    pub const OBJECT: JsonTypes = JsonTypes(32);
    /// All types.
    pub const ALL: JsonTypes = JsonTypes(63);
    /// Integers. Only for type names in `ParameterStyle::other_kinds`; in no other set.
    pub const INTEGER: JsonTypes = JsonTypes(64);

    /// The set of the given bits, in the order of the constants, lowest first.
    pub const fn from_bits(bits: u8) -> JsonTypes {
        JsonTypes(bits & JsonTypes::ALL.0)
    }

    /// The bits of the set.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The union of both sets.
    pub const fn with(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 | other.0)
    }

    /// The intersection of both sets.
    pub fn within(self, other: JsonTypes) -> JsonTypes {
        JsonTypes(self.0 & other.0)
    }

    /// Whether the sets have a type in common.
    pub fn meets(self, other: JsonTypes) -> bool {
        self.0 & other.0 != 0
    }

    /// The types of a set that schema facets know.
    pub(super) fn of(types: TypeSet) -> JsonTypes {
        let all = JsonTypes::each().filter(|kind| types.meets(kind.types()));
        all.fold(JsonTypes::default(), JsonTypes::with)
    }

    /// The same set as schema facets know it.
    pub(super) fn types(self) -> TypeSet {
        let pairs = [
            (JsonTypes::NULL, TypeSet::NULL),
            (JsonTypes::BOOLEAN, TypeSet::BOOLEAN),
            (JsonTypes::NUMBER, TypeSet::NUMBER),
            (JsonTypes::INTEGER, TypeSet::INTEGER),
            (JsonTypes::STRING, TypeSet::STRING),
            (JsonTypes::ARRAY, TypeSet::ARRAY),
            (JsonTypes::OBJECT, TypeSet::OBJECT),
        ];
        pairs
            .iter()
            .filter(|(kind, _)| self.meets(*kind))
            .fold(TypeSet::NONE, |all, (_, types)| all.or(*types))
    }

    /// An anchored pattern of the texts that a reader takes for a value of these types rather than
    /// for a string. `None` if the set has no other type than strings.
    pub fn lookalikes(self) -> Option<String> {
        let patterns = [
            (JsonTypes::NULL, "null"),
            (JsonTypes::BOOLEAN, "true|false"),
            (JsonTypes::NUMBER, r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
            (JsonTypes::ARRAY, r"\[[^]*"),
            (JsonTypes::OBJECT, r"\{[^]*"),
        ];
        let parts: Vec<&str> =
            patterns.iter().filter(|(kind, _)| self.meets(*kind)).map(|(_, text)| *text).collect();
        (!parts.is_empty()).then(|| format!("^(?:{})$", parts.join("|")))
    }

    /// Sets of one type each.
    pub(super) fn each() -> impl Iterator<Item = JsonTypes> {
        (0..6).map(|bit| JsonTypes(1 << bit))
    }
}

/// The automaton of the texts that read as a value of these types rather than as a string. `None`
/// if there are none.
pub(super) fn lookalike_dfa(kinds: JsonTypes) -> Option<&'static Dfa> {
    static CELLS: [ProcessCell<Option<Dfa>>; 64] = [const { ProcessCell::new() }; 64];
    CELLS[usize::from(kinds.bits())]
        .get_or_make(|| kinds.lookalikes().map(|source| builtin_pattern_dfa(&source)))
        .as_ref()
}
