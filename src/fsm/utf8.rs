//! What UTF-8 allows next: the table of Unicode 15, chapter 3, as eight states.

/// Between code points.
pub(crate) const WHOLE: u8 = 0;
/// How many states there are.
pub(crate) const STATES: u8 = 8;

/// Where a byte leads from one of the states; `None` where the text is not UTF-8.
#[inline]
pub(crate) fn step(state: u8, byte: u8) -> Option<u8> {
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
        let surrogates = (0xD800u32..0xE000).map(|c| [0xED, 0x80 | (c >> 6 & 0x3F) as u8, 0x80 | (c & 0x3F) as u8]);
        assert!(surrogates.into_iter().all(|bytes| states(&bytes).is_none()));
    }
}
