//! Which three bytes follow each other in some text of many.

/// A bit for each three bytes: 2 MiB.
#[derive(Debug)]
pub(crate) struct Triples(Box<[u64]>);

impl Triples {
    pub(crate) fn of<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> Triples {
        let mut bits = vec![0u64; 1 << 18].into_boxed_slice();
        for text in texts {
            for three in text.windows(3) {
                let at = index(three);
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        Triples(bits)
    }

    /// Whether none of the texts has this one in it, as far as its threes of bytes say.
    pub(crate) fn lack(&self, text: &[u8]) -> bool {
        text.windows(3).any(|three| {
            let at = index(three);
            self.0[at / 64] >> (at % 64) & 1 == 0
        })
    }
}

fn index(three: &[u8]) -> usize {
    three.iter().fold(0, |at, &byte| at << 8 | usize::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_text_holds_is_told() {
        let triples = Triples::of([&b"abcd"[..], b"bd", b"", b"\"x\""]);
        for text in [&b"abcd"[..], b"abc", b"bcd", b"\"x\"", b"ab", b"zz", b""] {
            assert!(!triples.lack(text), "{text:?}");
        }
        for text in [&b"abd"[..], b"abcde", b"x\"a", b",\"x"] {
            assert!(triples.lack(text), "{text:?}");
        }
    }
}
