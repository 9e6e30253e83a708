//! Member names that are written without quotes.

use super::super::SchemaLowering;
use super::super::builtin_pattern::builtin_pattern_dfa;
use super::{CountedNames, TextSpelling};
use crate::cache::ProcessCell;
use crate::fsm::{ByteSet, Combine, Dfa, DfaBuilder};
use crate::ir::Expr;

/// Names that may be written without quotes.
const BARE_NAME: &str = "^[A-Za-z_$][A-Za-z0-9_$.-]*$";

/// All names that may be written without quotes ([`BARE_NAME`]), except these. Cost: linear in the
/// names.
pub(in super::super) fn bare_complement(mut excluded: Vec<&str>) -> Expr {
    let letters = ByteSet::range(b'a', b'z').union(&ByteSet::range(b'A', b'Z'));
    let first = letters.union(&ByteSet::from_bytes(b"_$"));
    let more = first.union(&ByteSet::range(b'0', b'9')).union(&ByteSet::from_bytes(b".-"));
    excluded.sort_unstable();
    excluded.dedup();
    let mut builder = DfaBuilder::new();
    let (start, free) = (builder.state(false), builder.state(true));
    let edges = |builder: &mut DfaBuilder, from: u32, bytes: &ByteSet, to: u32| {
        for (lo, hi) in bytes.ranges() {
            builder.edge(from, lo.into(), hi.into(), to);
        }
    };
    edges(&mut builder, free, &more, free);
    // (state, names below it, bytes read of them)
    let mut stack = vec![(start, &excluded[..], 0)];
    while let Some((state, names, read)) = stack.pop() {
        let mut leave = if read == 0 { first } else { more };
        let mut rest = names;
        while let Some(name) = rest.first() {
            let Some(&byte) = name.as_bytes().get(read) else {
                builder.set_final(state, false);
                rest = &rest[1..];
                continue;
            };
            let below = rest.partition_point(|other| other.as_bytes()[read] == byte);
            if leave.contains(byte) {
                leave.remove(byte);
                let child = builder.state(true);
                builder.edge(state, byte.into(), byte.into(), child);
                stack.push((child, &rest[..below], read + 1));
            }
            rest = &rest[below..];
        }
        edges(&mut builder, state, &leave, free);
    }
    Expr::Automaton(builder.finish().into())
}

/// The automaton of names that may be written without quotes.
fn bare_name_dfa() -> &'static Dfa {
    static CELL: ProcessCell<Dfa> = ProcessCell::new();
    CELL.get_or_make(|| builtin_pattern_dfa(BARE_NAME))
}

impl SchemaLowering<'_, '_> {
    /// The names of the automaton that may be written without quotes.
    pub(super) fn bare_names(&mut self, (dfa, lengths): &CountedNames) -> Expr {
        let limits = self.normalizer.reader.limits;
        let bare = dfa.combine(bare_name_dfa(), Combine::And, limits.automaton_states);
        let spelled =
            bare.and_then(|bare| self.spell_of_length(&bare, *lengths, TextSpelling::Utf8));
        spelled.unwrap_or_else(|error| self.too_large(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_complement_is_the_bare_names_but_some() {
        let lists: [&[&str]; 4] =
            [&[], &["a"], &["ab", "a", "a-9", "b é", "é", "", "_", "a"], &["9", "-a", "$"]];
        for excluded in lists {
            let Expr::Automaton(dfa) = bare_complement(excluded.to_vec()) else {
                panic!("an automaton");
            };
            let mut texts = vec![String::new()];
            let mut accepted = 0;
            while let Some(text) = texts.pop() {
                if text.chars().count() < 4 {
                    let letters = ['a', 'b', 'Z', '_', '$', '9', '-', '.', 'é', ' '];
                    texts.extend(letters.iter().map(|letter| format!("{text}{letter}")));
                }
                let is_bare = bare_name_dfa().accepts_text(&text);
                let is_other = is_bare && !excluded.contains(&&*text);
                let accepts = dfa.accepts(text.bytes().map(u32::from));
                assert_eq!(accepts, is_other, "{text:?} beside {excluded:?}");
                accepted += usize::from(accepts);
            }
            assert!(accepted > 1_000, "{accepted} beside {excluded:?}");
        }
    }
}
