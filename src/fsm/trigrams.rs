//! Trigrams: which three bytes follow each other in some text of a set, as a bit set of 2 MiB.
//!
//! A text with a trigram that is missing is not a part of any text of the set. The converse need
//! not hold.

/// One bit for each three bytes.
#[derive(Debug)]
pub(crate) struct Trigrams(Box<[u64]>);

impl Trigrams {
    /// The trigrams of some texts.
    pub(crate) fn new<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> Trigrams {
        let mut bits = vec![0u64; 1 << 18].into_boxed_slice();
        for text in texts {
            for trigram in text.windows(3) {
                let bit = index(trigram);
                bits[bit / 64] |= 1 << (bit % 64);
            }
        }
        Trigrams(bits)
    }

    /// Whether a trigram of the text is missing, so that no text of the set contains it.
    pub(crate) fn excludes(&self, text: &[u8]) -> bool {
        text.windows(3).any(|trigram| {
            let bit = index(trigram);
            self.0[bit / 64] >> (bit % 64) & 1 == 0
        })
    }
}

/// The index of a trigram's bit.
fn index(trigram: &[u8]) -> usize {
    trigram.iter().fold(0, |index, &byte| index << 8 | usize::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_a_missing_trigram_are_excluded() {
        let trigrams = Trigrams::new([&b"abcd"[..], b"bd", b"", b"\"x\""]);
        for text in [&b"abcd"[..], b"abc", b"bcd", b"\"x\"", b"ab", b"zz", b""] {
            assert!(!trigrams.excludes(text), "{text:?}");
        }
        for text in [&b"abd"[..], b"abcde", b"x\"a", b",\"x"] {
            assert!(trigrams.excludes(text), "{text:?}");
        }
    }
}
