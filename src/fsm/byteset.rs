//! A set of bytes as a 256-bit bitmap.

use std::fmt;

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const EMPTY: ByteSet = ByteSet([0; 4]);
    /// All 256 bytes.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// The bytes `lo..=hi`.
    pub fn range(lo: u8, hi: u8) -> Self {
        let mut set = ByteSet::EMPTY;
        set.insert_range(lo, hi);
        set
    }

    /// The bytes of a slice.
    pub fn of(bytes: &[u8]) -> Self {
        let mut set = ByteSet::EMPTY;
        for &b in bytes {
            set.insert(b);
        }
        set
    }

    /// Adds one byte.
    #[inline]
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Adds the bytes `lo..=hi`.
    pub fn insert_range(&mut self, lo: u8, hi: u8) {
        for b in lo..=hi {
            self.insert(b);
        }
    }

    /// Removes one byte.
    #[inline]
    pub fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    /// Whether the byte is in the set.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Number of bytes in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether the set has no byte.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The bytes in either set.
    #[must_use]
    pub fn union(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// The bytes in both sets.
    #[must_use]
    pub fn intersect(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Whether some byte is in both.
    pub fn meets(&self, other: &ByteSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The bytes not in the set.
    #[must_use]
    pub fn complement(&self) -> ByteSet {
        ByteSet(std::array::from_fn(|i| !self.0[i]))
    }

    /// The bytes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        self.0.into_iter().enumerate().flat_map(|(w, mut rest)| {
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    (w as u32 * 64 + bit) as u8
                })
            })
        })
    }

    /// The bitmap: byte `b` is bit `b % 64` of word `b / 64`.
    pub(crate) fn words(&self) -> [u64; 4] {
        self.0
    }

    /// Maximal runs `(lo, hi)` in ascending order.
    pub fn ranges(&self) -> Vec<(u8, u8)> {
        let mut out: Vec<(u8, u8)> = Vec::new();
        for (w, &word) in self.0.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let lo = rest.trailing_zeros();
                let len = (rest >> lo).trailing_ones();
                // The run's last bit is at most 63, so the sums stay within a byte.
                let base = w as u32 * 64;
                let (lo, hi) = ((base + lo) as u8, (base + lo + len - 1) as u8);
                match out.last_mut() {
                    Some((_, last)) if u32::from(*last) + 1 == u32::from(lo) => *last = hi,
                    _ => out.push((lo, hi)),
                }
                let past = u32::from(hi) % 64 + 1;
                rest = if past == 64 { 0 } else { rest >> past << past };
            }
        }
        out
    }
}

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// As a class: `[a-z"\x00]`.
impl fmt::Display for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[")?;
        for (lo, hi) in self.ranges() {
            write!(f, "{}", escape(lo))?;
            if hi > lo {
                if hi > lo + 1 {
                    write!(f, "-")?;
                }
                write!(f, "{}", escape(hi))?;
            }
        }
        write!(f, "]")
    }
}

/// One byte as printable text; `[ ] - \ "` and everything outside printable ASCII as an escape.
pub fn escape(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        b'[' | b']' | b'-' | b'\\' | b'"' => format!("\\{}", char::from(byte)),
        0x20..=0x7e => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::ByteSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_and_bytes_are_the_set(bytes in prop::collection::vec(any::<u8>(), 0..80), lo: u8, hi: u8) {
            let mut set = ByteSet::of(&bytes);
            if lo <= hi {
                set.insert_range(lo, hi);
            }
            let listed: Vec<u8> = (0..=255).filter(|&b| set.contains(b)).collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), listed.clone());
            let runs = set.ranges();
            prop_assert_eq!(runs.iter().flat_map(|&(lo, hi)| lo..=hi).collect::<Vec<_>>(), listed);
            prop_assert!(runs.windows(2).all(|w| u32::from(w[0].1) + 1 < u32::from(w[1].0)));
        }
    }
}
