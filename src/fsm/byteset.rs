//! Sets of bytes, as bitmaps of 256 bits.

use std::fmt;

/// A set of bytes.
///
/// ```
/// use louver::ByteSet;
///
/// let digits = ByteSet::range(b'0', b'9');
/// let set = digits.union(&ByteSet::from_bytes(b"-+"));
/// assert!(set.contains(b'-') && set.len() == 12);
/// assert_eq!(set.to_string(), r"[+\-0-9]");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// The empty set.
    pub const EMPTY: ByteSet = ByteSet([0; 4]);
    /// All 256 bytes.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);
    /// White space as JSON has it: space, tab, line feed, carriage return.
    pub const WHITE_SPACE: ByteSet =
        ByteSet([1 << b' ' | 1 << b'\t' | 1 << b'\n' | 1 << b'\r', 0, 0, 0]);

    /// The bytes `lo..=hi`.
    pub fn range(lo: u8, hi: u8) -> Self {
        let mut set = ByteSet::EMPTY;
        set.insert_range(lo, hi);
        set
    }

    /// The bytes of a slice.
    pub fn from_bytes(bytes: &[u8]) -> Self {
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
        for (word, bits) in self.0.iter_mut().enumerate() {
            let begin = word as u32 * 64;
            let (from, to) = (u32::from(lo).max(begin), u32::from(hi).min(begin + 63));
            if from <= to {
                *bits |= (u64::MAX >> (63 - (to - from))) << (from - begin);
            }
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

    /// Whether the set is empty.
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

    /// Whether the sets have a byte in common.
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

    /// Maximal ranges `(first, last)` in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = (u8, u8)> + use<> {
        let set = *self;
        let mut at = 0u32;
        std::iter::from_fn(move || {
            let lo = set.first_from(at)?;
            let past = set.complement().first_from(lo).unwrap_or(256);
            at = past;
            Some((lo as u8, (past - 1) as u8))
        })
    }

    /// The first byte of the set that is at least `at`.
    fn first_from(&self, at: u32) -> Option<u32> {
        let mut mask = u64::MAX.checked_shl(at % 64)?;
        for word in at / 64..4 {
            let rest = self.0[word as usize] & mask;
            if rest != 0 {
                return Some(word * 64 + rest.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }

    /// The bytes whose membership differs from that of the byte before them. Byte 255 comes before
    /// byte 0.
    #[must_use]
    pub(crate) fn bounds(&self) -> ByteSet {
        ByteSet(std::array::from_fn(|i| self.0[i] ^ (self.0[i] << 1 | self.0[(i + 3) % 4] >> 63)))
    }
}

/// Longest run of white space, in bytes, that does not count as long: few tokens have more.
pub(crate) const LONG_WHITE_SPACE_RUN: usize = 16;

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// As a character class: `[a-z"\x00]`.
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

/// One byte as printable text. `[ ] - \ "` and all bytes that are not printable ASCII are escaped.
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
        fn ranges_bytes_and_bounds_agree_with_membership(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            lo: u8,
            hi: u8,
        ) {
            let mut set = ByteSet::from_bytes(&bytes);
            if lo <= hi {
                set.insert_range(lo, hi);
            }
            let listed: Vec<u8> = (0..=255).filter(|&b| set.contains(b)).collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), listed.clone());
            let runs: Vec<(u8, u8)> = set.ranges().collect();
            prop_assert_eq!(runs.iter().flat_map(|&(lo, hi)| lo..=hi).collect::<Vec<_>>(), listed);
            prop_assert!(runs.windows(2).all(|w| u32::from(w[0].1) + 1 < u32::from(w[1].0)));
            let bounds = set.bounds();
            let differs = |b: u8| set.contains(b) != set.contains(b.wrapping_sub(1));
            prop_assert!((0..=255).all(|b| bounds.contains(b) == differs(b)));
        }
    }
}
