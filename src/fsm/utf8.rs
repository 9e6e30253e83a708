//! UTF-8 as automata over bytes: of classes of code points, of all code points, and of all code
//! points that are not white space.
//!
//! Source: the table of well-formed byte sequences in the Unicode Standard 15, chapter 3. Rust's
//! `str` accepts the same sequences.

use super::Edge;
use super::digits::{Digit, NumeralBuilder};

/// A byte after the first one of a code point.
const CONTINUATION: Digit = Digit::byte(6, 0x80);
/// Code points of equal length, and their bytes. Surrogates are none.
const LENGTHS: [((u32, u32), &[Digit]); 4] = [
    ((0x80, 0x7FF), &[Digit::byte(5, 0xC0), CONTINUATION]),
    ((0x800, 0xD7FF), &[Digit::byte(4, 0xE0), CONTINUATION, CONTINUATION]),
    ((0xE000, 0xFFFF), &[Digit::byte(4, 0xE0), CONTINUATION, CONTINUATION]),
    ((0x1_0000, 0x10_FFFF), &[Digit::byte(3, 0xF0), CONTINUATION, CONTINUATION, CONTINUATION]),
];

impl NumeralBuilder {
    /// Appends to `out` the edges over the first byte of the code points of `ranges` that are not
    /// ASCII. Ranges are sorted and disjoint; surrogates are left out.
    pub(crate) fn utf8(&mut self, ranges: &[(u32, u32)], out: &mut Vec<Edge>) {
        for ((lo, hi), bytes) in LENGTHS {
            self.numerals(ranges, lo, hi, 0, bytes, out);
        }
    }
}

/// The number of bytes that follow this first byte of a code point.
#[inline]
pub(crate) const fn continuation_bytes(first: u8) -> u8 {
    match first {
        0..0xC0 => 0,
        0xC0..0xE0 => 1,
        0xE0..0xF0 => 2,
        0xF0.. => 3,
    }
}

/// The number of bytes at the end of `bytes` that begin a code point and do not complete it. Cost:
/// constant.
pub fn partial_char_len(bytes: &[u8]) -> usize {
    let begins_char = |len: &usize| {
        let read = std::str::from_utf8(&bytes[bytes.len() - len..]);
        read.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=bytes.len().min(3)).find(begins_char).unwrap_or(0)
}

/// The state between two code points.
pub(crate) const BOUNDARY: u8 = 0;
/// Number of states of the first automaton.
const ANY_STATES: u8 = 8;

/// The state after a byte; `None` where the text is not UTF-8.
const fn next_state(state: u8, byte: u8) -> Option<u8> {
    match (state, byte) {
        (BOUNDARY, 0..=0x7F) => Some(BOUNDARY),
        (BOUNDARY, 0xC2..=0xDF) => Some(1),
        (BOUNDARY, 0xE0) => Some(3),
        (BOUNDARY, 0xE1..=0xEC | 0xEE | 0xEF) => Some(2),
        (BOUNDARY, 0xED) => Some(4),
        (BOUNDARY, 0xF0) => Some(5),
        (BOUNDARY, 0xF1..=0xF3) => Some(6),
        (BOUNDARY, 0xF4) => Some(7),
        (1, 0x80..=0xBF) => Some(BOUNDARY),
        (2, 0x80..=0xBF) | (3, 0xA0..=0xBF) | (4, 0x80..=0x9F) => Some(1),
        (5, 0x90..=0xBF) | (6, 0x80..=0xBF) | (7, 0x80..=0x8F) => Some(2),
        _ => None,
    }
}

/// Number of states of the second automaton.
const NON_SPACE_STATES: u8 = 18;

/// As [`next_state`], for texts whose only white space is ASCII. Excluded are the property
/// `White_Space` of Unicode 15 and the byte order mark, which `\s` of ECMAScript matches as well.
const fn next_non_space_state(state: u8, byte: u8) -> Option<u8> {
    match (state, byte) {
        (BOUNDARY, 0xC2) => Some(8),
        (BOUNDARY, 0xE1) => Some(9),
        (BOUNDARY, 0xE2) => Some(11),
        (BOUNDARY, 0xE3) => Some(14),
        (BOUNDARY, 0xEF) => Some(16),
        (8, 0x85 | 0xA0)
        | (10 | 15, 0x80)
        | (12, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF)
        | (13, 0x9F)
        | (17, 0xBF) => None,
        (8 | 10 | 12 | 13 | 15 | 17, 0x80..=0xBF) => Some(BOUNDARY),
        (9, 0x9A) => Some(10),
        (11, 0x80) => Some(12),
        (11, 0x81) => Some(13),
        (14, 0x80) => Some(15),
        (16, 0xBB) => Some(17),
        (9 | 11 | 14 | 16, 0x80..=0xBF) => Some(1),
        _ => next_state(state, byte),
    }
}

/// Transitions of one of the automata over bytes that are not ASCII, as a table.
#[derive(Debug)]
pub(crate) struct Utf8Automaton {
    /// Number of states.
    pub(crate) states: u8,
    /// By state and byte less 0x80: the next state, or [`Utf8Automaton::NO_STATE`].
    table: [[u8; 128]; NON_SPACE_STATES as usize],
}

/// The automaton of [`next_state`].
pub(crate) static ANY: Utf8Automaton = Utf8Automaton::new(ANY_STATES, false);
/// The automaton of [`next_non_space_state`].
pub(crate) static NON_SPACE: Utf8Automaton = Utf8Automaton::new(NON_SPACE_STATES, true);

impl Utf8Automaton {
    /// Marks a missing transition.
    const NO_STATE: u8 = u8::MAX;

    /// Tabulates one of the transition functions.
    const fn new(states: u8, non_space: bool) -> Utf8Automaton {
        let mut table = [[Utf8Automaton::NO_STATE; 128]; NON_SPACE_STATES as usize];
        let mut state = 0;
        while state < states {
            let mut index = 0;
            while index < 128 {
                let byte = index as u8 + 0x80;
                let next = if non_space {
                    next_non_space_state(state, byte)
                } else {
                    next_state(state, byte)
                };
                if let Some(next) = next {
                    table[state as usize][index] = next;
                }
                index += 1;
            }
            state += 1;
        }
        Utf8Automaton { states, table }
    }

    /// The state after a byte that is not ASCII.
    #[inline]
    pub(crate) fn next(&self, state: u8, byte: u8) -> Option<u8> {
        Some(self.table[usize::from(state)][usize::from(byte - 0x80)])
            .filter(|&next| next != Utf8Automaton::NO_STATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn states(bytes: &[u8]) -> Option<u8> {
        bytes.iter().try_fold(BOUNDARY, |state, &byte| next_state(state, byte))
    }

    proptest! {
        #[test]
        fn texts_and_prefixes_agree_with_the_standard_library(
            bytes in prop::collection::vec(any::<u8>(), 0..6),
            text: String,
        ) {
            for bytes in [&bytes[..], text.as_bytes()] {
                let read = std::str::from_utf8(bytes);
                prop_assert_eq!(states(bytes) == Some(BOUNDARY), read.is_ok());
                // An error without a length is an incomplete code point at the end.
                let begun = read.is_ok() || read.is_err_and(|error| error.error_len().is_none());
                prop_assert_eq!(states(bytes).is_some(), begun);
                let rest = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
                let is_partial = std::str::from_utf8(rest).is_err_and(|e| e.error_len().is_none());
                prop_assert_eq!(partial_char_len(bytes), if is_partial { rest.len() } else { 0 });
            }
        }
    }

    #[test]
    fn every_code_point_is_read() {
        for c in '\0'..=char::MAX {
            assert_eq!(states(c.encode_utf8(&mut [0; 4]).as_bytes()), Some(BOUNDARY));
        }
        for c in '\u{80}'..=char::MAX {
            let non_space =
                c.encode_utf8(&mut [0; 4]).bytes().try_fold(BOUNDARY, next_non_space_state);
            assert_eq!(
                non_space,
                c.encode_utf8(&mut [0; 4])
                    .bytes()
                    .try_fold(BOUNDARY, |state, byte| NON_SPACE.next(state, byte))
            );
            assert_eq!(
                non_space,
                (!c.is_whitespace() && c != '\u{FEFF}').then_some(BOUNDARY),
                "{c:?}"
            );
        }
        assert!((0..NON_SPACE_STATES).all(|state| {
            (0..=255).all(|byte| {
                next_non_space_state(state, byte).is_none_or(|to| to < NON_SPACE_STATES)
            })
        }));
        let surrogates = (0xD800u32..0xE000)
            .map(|c| [0xED, 0x80 | (c >> 6 & 0x3F) as u8, 0x80 | (c & 0x3F) as u8]);
        assert!(surrogates.into_iter().all(|bytes| states(&bytes).is_none()));
    }
}
