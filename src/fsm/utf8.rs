//! What UTF-8 allows next: the table of Unicode 15, chapter 3, as eight states.

/// Between code points.
pub(crate) const WHOLE: u8 = 0;
/// How many states there are.
const STATES: u8 = 8;

/// Where a byte leads from one of the states; `None` where the text is not UTF-8.
const fn step(state: u8, byte: u8) -> Option<u8> {
    match (state, byte) {
        (WHOLE, 0..=0x7F) => Some(WHOLE),
        (WHOLE, 0xC2..=0xDF) => Some(1),
        (WHOLE, 0xE0) => Some(3),
        (WHOLE, 0xE1..=0xEC | 0xEE | 0xEF) => Some(2),
        (WHOLE, 0xED) => Some(4),
        (WHOLE, 0xF0) => Some(5),
        (WHOLE, 0xF1..=0xF3) => Some(6),
        (WHOLE, 0xF4) => Some(7),
        (1, 0x80..=0xBF) => Some(WHOLE),
        (2, 0x80..=0xBF) | (3, 0xA0..=0xBF) | (4, 0x80..=0x9F) => Some(1),
        (5, 0x90..=0xBF) | (6, 0x80..=0xBF) | (7, 0x80..=0x8F) => Some(2),
        _ => None,
    }
}

/// How many states there are where no code point but ASCII is white space.
const BLACK_STATES: u8 = 18;

/// As [`step`], for texts in which the only white space is ASCII: others may not be written (the property `White_Space` of Unicode 15, and the
/// byte order mark, which `\s` of ECMAScript has as well).
const fn black_step(state: u8, byte: u8) -> Option<u8> {
    match (state, byte) {
        (WHOLE, 0xC2) => Some(8),
        (WHOLE, 0xE1) => Some(9),
        (WHOLE, 0xE2) => Some(11),
        (WHOLE, 0xE3) => Some(14),
        (WHOLE, 0xEF) => Some(16),
        (8, 0x85 | 0xA0)
        | (10 | 15, 0x80)
        | (12, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF)
        | (13, 0x9F)
        | (17, 0xBF) => None,
        (8 | 10 | 12 | 13 | 15 | 17, 0x80..=0xBF) => Some(WHOLE),
        (9, 0x9A) => Some(10),
        (11, 0x80) => Some(12),
        (11, 0x81) => Some(13),
        (14, 0x80) => Some(15),
        (16, 0xBB) => Some(17),
        (9 | 11 | 14 | 16, 0x80..=0xBF) => Some(1),
        _ => step(state, byte),
    }
}

/// Steps of one of the automata over bytes that are not ASCII, looked up.
#[derive(Debug)]
pub(crate) struct Steps {
    /// How many states it has.
    pub(crate) states: u8,
    /// By state and byte less 0x80: the state behind it.
    table: [[u8; 128]; BLACK_STATES as usize],
}

/// The steps of [`step`] and of [`black_step`].
pub(crate) static ANY: Steps = Steps::new(STATES, false);
pub(crate) static BLACK: Steps = Steps::new(BLACK_STATES, true);

impl Steps {
    const NONE: u8 = u8::MAX;

    const fn new(states: u8, black: bool) -> Steps {
        let mut table = [[Steps::NONE; 128]; BLACK_STATES as usize];
        let mut state = 0;
        while state < states {
            let mut at = 0;
            while at < 128 {
                let byte = at as u8 + 0x80;
                let next = if black { black_step(state, byte) } else { step(state, byte) };
                if let Some(next) = next {
                    table[state as usize][at] = next;
                }
                at += 1;
            }
            state += 1;
        }
        Steps { states, table }
    }

    /// Where a byte that is not ASCII leads.
    #[inline]
    pub(crate) fn next(&self, state: u8, byte: u8) -> Option<u8> {
        Some(self.table[usize::from(state)][usize::from(byte - 0x80)])
            .filter(|&next| next != Steps::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn states(bytes: &[u8]) -> Option<u8> {
        bytes.iter().try_fold(WHOLE, |state, &byte| step(state, byte))
    }

    proptest! {
        #[test]
        fn texts_and_their_beginnings_are_what_the_standard_library_says(bytes in prop::collection::vec(any::<u8>(), 0..6), text: String) {
            for bytes in [&bytes[..], text.as_bytes()] {
                let read = std::str::from_utf8(bytes);
                prop_assert_eq!(states(bytes) == Some(WHOLE), read.is_ok());
                // An error without a length is an end inside a code point.
                let begun = read.is_ok() || read.is_err_and(|error| error.error_len().is_none());
                prop_assert_eq!(states(bytes).is_some(), begun);
            }
        }
    }

    #[test]
    fn every_code_point_is_read() {
        for c in '\0'..=char::MAX {
            assert_eq!(states(c.encode_utf8(&mut [0; 4]).as_bytes()), Some(WHOLE));
        }
        for c in '\u{80}'..=char::MAX {
            let black = c.encode_utf8(&mut [0; 4]).bytes().try_fold(WHOLE, black_step);
            assert_eq!(
                black,
                c.encode_utf8(&mut [0; 4])
                    .bytes()
                    .try_fold(WHOLE, |state, byte| BLACK.next(state, byte))
            );
            assert_eq!(black, (!c.is_whitespace() && c != '\u{FEFF}').then_some(WHOLE), "{c:?}");
        }
        assert!((0..BLACK_STATES).all(|state| {
            (0..=255).all(|byte| black_step(state, byte).is_none_or(|to| to < BLACK_STATES))
        }));
        let surrogates = (0xD800u32..0xE000)
            .map(|c| [0xED, 0x80 | (c >> 6 & 0x3F) as u8, 0x80 | (c & 0x3F) as u8]);
        assert!(surrogates.into_iter().all(|bytes| states(&bytes).is_none()));
    }
}
