//! Symbols: what the texts of a grammar consist of.

use crate::compile::{Program, StateId};
use crate::ids::SpecialId;

/// A byte, or a special token of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Byte(u8),
    Special(SpecialId),
}

/// A symbol as one number: a byte is itself, and a special token is 256 plus its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(super) struct SymbolCode(u32);

impl SymbolCode {
    /// The byte; `None` for a special token.
    pub(super) fn byte(self) -> Option<u8> {
        u8::try_from(self.0).ok()
    }
}

impl From<u8> for SymbolCode {
    fn from(byte: u8) -> SymbolCode {
        SymbolCode(byte.into())
    }
}

impl From<SpecialId> for SymbolCode {
    fn from(special: SpecialId) -> SymbolCode {
        SymbolCode(256 + special.raw())
    }
}

impl Symbol {
    /// The byte; `None` for a special token.
    pub(crate) fn byte(self) -> Option<u8> {
        match self {
            Symbol::Byte(byte) => Some(byte),
            Symbol::Special(_) => None,
        }
    }

    /// Where the symbol leads from an expanded state of a rule.
    pub(super) fn targets(
        self,
        program: &Program,
        state: StateId,
    ) -> impl Iterator<Item = StateId> {
        let (bytes, specials) = match self {
            Symbol::Byte(_) => (program.byte_edges(state), &[][..]),
            Symbol::Special(_) => (&[][..], program.special_edges(state)),
        };
        let reads = move |lo, hi| self.byte().is_some_and(|byte| lo <= byte && byte <= hi);
        let over_byte = bytes.iter().filter(move |e| reads(e.lo, e.hi)).map(|e| e.to);
        let over_special = specials.iter().filter(move |(s, _)| self == Symbol::Special(*s));
        over_byte.chain(over_special.map(|&(_, to)| to))
    }
}
