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

    /// The bytes not in the set.
    #[must_use]
    pub fn complement(&self) -> ByteSet {
        ByteSet(std::array::from_fn(|i| !self.0[i]))
    }

    /// The bytes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=255u8).filter(|&b| self.contains(b))
    }

    /// Maximal runs `(lo, hi)` in ascending order.
    pub fn ranges(&self) -> Vec<(u8, u8)> {
        let mut out: Vec<(u8, u8)> = Vec::new();
        for b in self.iter() {
            match out.last_mut() {
                Some((_, hi)) if *hi + 1 == b => *hi = b,
                _ => out.push((b, b)),
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
