//! Byte classes of a grammar (alphabet compression): ranges of bytes that no rule tells apart.

use crate::fsm::ByteSet;

/// A partition of the bytes into ranges.
#[derive(Debug)]
pub(crate) struct ByteClasses {
    /// By byte: its class.
    of: [u8; 256],
    /// The first byte of each class.
    firsts: Vec<u8>,
}

impl ByteClasses {
    /// `cuts`: bytes that differ from the byte before them.
    pub(super) fn new(cuts: &ByteSet) -> ByteClasses {
        let (mut of, mut firsts) = ([0; 256], vec![0]);
        for byte in 1..=255u8 {
            if cuts.contains(byte) {
                firsts.push(byte);
            }
            of[usize::from(byte)] = (firsts.len() - 1) as u8;
        }
        ByteClasses { of, firsts }
    }

    /// The common refinement with `other`; `None` if it equals `self`.
    pub(super) fn refined_by(&self, other: &ByteClasses) -> Option<ByteClasses> {
        let [mut cuts, mut more] = [ByteSet::EMPTY; 2];
        self.firsts.iter().for_each(|&byte| cuts.insert(byte));
        other.firsts.iter().for_each(|&byte| more.insert(byte));
        let all = cuts.union(&more);
        (all != cuts).then(|| ByteClasses::new(&all))
    }

    /// The class of a byte.
    #[inline]
    pub(crate) fn class_of(&self, byte: u8) -> u8 {
        self.of[usize::from(byte)]
    }

    /// The first byte of a class.
    pub(crate) fn first(&self, class: u32) -> u8 {
        self.firsts[class as usize]
    }

    /// Number of classes.
    pub(crate) fn len(&self) -> usize {
        self.firsts.len()
    }
}
