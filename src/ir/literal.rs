//! Byte strings with small-string optimisation, as most literals are short: names, brackets,
//! keywords.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Longest literal that is stored inline.
const INLINE_BYTES: usize = 30;

/// A byte string. Up to 30 bytes are stored inline, without an allocation.
#[derive(Clone)]
pub struct Literal(Repr);

/// The storage of a literal.
#[derive(Clone)]
enum Repr {
    Short(u8, [u8; INLINE_BYTES]),
    Long(Box<[u8]>),
}

impl Literal {
    /// The concatenation of `parts`.
    pub fn concat(parts: &[&[u8]]) -> Literal {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > INLINE_BYTES {
            return Literal(Repr::Long(parts.concat().into()));
        }
        let (mut short, mut at) = ([0; INLINE_BYTES], 0);
        for part in parts {
            short[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Literal(Repr::Short(length as u8, short))
    }
}

impl Deref for Literal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Short(length, bytes) => &bytes[..usize::from(*length)],
            Repr::Long(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Literal {
    fn from(bytes: &[u8]) -> Literal {
        let mut short = [0; INLINE_BYTES];
        match short.get_mut(..bytes.len()) {
            Some(begin) => {
                begin.copy_from_slice(bytes);
                Literal(Repr::Short(bytes.len() as u8, short))
            }
            None => Literal(Repr::Long(bytes.into())),
        }
    }
}

impl From<Vec<u8>> for Literal {
    fn from(bytes: Vec<u8>) -> Literal {
        if bytes.len() > INLINE_BYTES {
            Literal(Repr::Long(bytes.into()))
        } else {
            bytes[..].into()
        }
    }
}

impl FromIterator<u8> for Literal {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Literal {
        bytes.into_iter().collect::<Vec<u8>>().into()
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        **self == **other
    }
}

impl Eq for Literal {}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Literal) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Literal {
    fn cmp(&self, other: &Literal) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Expr;

    #[test]
    fn literals_keep_their_bytes_at_any_length() {
        let long: Vec<u8> = (0..100).collect();
        for length in 0..long.len() {
            let literal = Literal::from(&long[..length]);
            assert_eq!(*literal, long[..length]);
            assert_eq!(literal, Literal::from(long[..length].to_vec()));
            assert_eq!(literal, Literal::concat(&[&long[..length / 3], &long[length / 3..length]]));
            assert!(literal < Literal::from(&long[..=length]));
        }
        assert!(size_of::<Expr>() <= 40);
    }
}
