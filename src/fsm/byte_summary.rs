//! Byte summaries: two fixed partitions of the 256 bytes.
//!
//! * *Kinds* are up to 62 sets of bytes, so that the bytes below a trie node are summed up in one
//!   `u64`. Each ASCII punctuation character is a kind of its own, since grammars turn on
//!   punctuation; letters, digits and bytes that are not ASCII are grouped. Two more bits stand for
//!   whole code points.
//! * *Shapes* are sets of bytes that grammars seldom tell apart, numbered by a `u8`; the shape tree
//!   of a vocabulary merges tokens that differ only in bytes of one shape.

/// By byte: the index of its kind.
const KINDS: [u8; 256] = {
    let mut kinds = [0u8; 256];
    let (mut byte, mut own) = (0usize, 22u8);
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b @ b'a'..=b'z' => (b - b'a') / 4,
            b @ b'A'..=b'Z' => 7 + (b - b'A') / 7,
            b @ b'0'..=b'9' => 11 + (b - b'0') / 5,
            b' ' => 13,
            b'\n' => 14,
            b'\t' | b'\r' => 15,
            0..=31 | 127 => 16,
            0x80..=0xBF => 17,
            0xC2..=0xDF => 18,
            0xE0..=0xEF => 19,
            0xF0..=0xF4 => 20,
            0xC0 | 0xC1 | 0xF5..=0xFF => 21,
            _ => {
                own += 1;
                own - 1
            }
        };
        byte += 1;
    }
    kinds
};

/// The kind of a byte, as one bit of 64.
#[inline]
pub(crate) fn kind_bit(byte: u8) -> u64 {
    1 << KINDS[usize::from(byte)]
}

/// All bytes, kind by kind and ascending, and where each kind begins.
static BY_KIND: ([u8; 256], [u16; 65]) = {
    let (mut bytes, mut begins) = ([0u8; 256], [0u16; 65]);
    let (mut kind, mut at) = (0usize, 0usize);
    while kind < 64 {
        begins[kind] = at as u16;
        let mut byte = 0usize;
        while byte < 256 {
            if KINDS[byte] as usize == kind {
                bytes[at] = byte as u8;
                at += 1;
            }
            byte += 1;
        }
        kind += 1;
    }
    begins[64] = at as u16;
    (bytes, begins)
};

/// The bytes of a kind, in ascending order.
pub(crate) fn kind_bytes(kind_bit: u64) -> &'static [u8] {
    let (bytes, begins) = &BY_KIND;
    let kind = kind_bit.trailing_zeros() as usize;
    &bytes[usize::from(begins[kind])..usize::from(begins[kind + 1])]
}

/// Replaces the kinds that are not ASCII where those bytes spell whole code points, except perhaps
/// an incomplete one at the end of a token.
pub(crate) const CODE_POINTS: u64 = 1 << 63;

/// As [`CODE_POINTS`], where none of the code points is white space.
pub(crate) const NON_SPACE_CODE_POINTS: u64 = 1 << 62;

/// The kinds of the letters of ASCII.
pub(crate) const ASCII_LETTERS: u64 = (1 << 11) - 1;

/// The kinds of all bytes that are not ASCII.
pub(crate) const NOT_ASCII: u64 = 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21;

/// The shapes of several bytes, as ranges. Every other byte is a shape of its own.
const SHARED_SHAPES: [(u8, u8); 12] = [
    (b'a', b'z'),
    (b'A', b'Z'),
    (b'0', b'9'),
    (0x80, 0x8F),
    (0x90, 0x9F),
    (0xA0, 0xBF),
    (0xC2, 0xDF),
    (0xE1, 0xEC),
    (0xEE, 0xEF),
    (0xF1, 0xF3),
    (0x00, 0x08),
    (0x0E, 0x1F),
];

/// By byte: its shape. By shape: its first and last byte.
const SHAPES: ([u8; 256], [(u8, u8); 256]) = {
    let (mut shape_of, mut bytes) = ([0u8; 256], [(0u8, 0u8); 256]);
    let (mut byte, mut own) = (0usize, SHARED_SHAPES.len());
    let mut group = 0;
    while group < SHARED_SHAPES.len() {
        bytes[group] = SHARED_SHAPES[group];
        group += 1;
    }
    while byte < 256 {
        let mut group = 0;
        while group < SHARED_SHAPES.len()
            && !(SHARED_SHAPES[group].0 as usize <= byte && byte <= SHARED_SHAPES[group].1 as usize)
        {
            group += 1;
        }
        if group == SHARED_SHAPES.len() {
            group = own;
            bytes[own] = (byte as u8, byte as u8);
            own += 1;
        }
        shape_of[byte] = group as u8;
        byte += 1;
    }
    (shape_of, bytes)
};

/// The shape of a byte.
#[inline]
pub(crate) fn shape(byte: u8) -> u8 {
    SHAPES.0[usize::from(byte)]
}

/// The first and the last byte of a shape. Shapes of several bytes are few and have the lowest
/// numbers.
#[inline]
pub(crate) fn shape_bytes(shape: u8) -> (u8, u8) {
    SHAPES.1[usize::from(shape)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_do_not_mix_ascii_and_leave_two_bits_free() {
        assert!((0..=255u8).all(|byte| (kind_bit(byte) & NOT_ASCII != 0) == (byte >= 0x80)));
        assert!(
            (0..=255u8).all(|byte| kind_bit(byte) & (CODE_POINTS | NON_SPACE_CODE_POINTS) == 0)
        );
        for bit in 0..63 {
            let own: Vec<u8> = (0..=255u8).filter(|&byte| kind_bit(byte) == 1 << bit).collect();
            assert_eq!(kind_bytes(1 << bit), own);
        }
    }

    #[test]
    fn each_byte_is_in_the_range_of_its_shape() {
        for byte in 0..=255u8 {
            let (lo, hi) = shape_bytes(shape(byte));
            assert!(
                (lo..=hi).contains(&byte) && (lo..=hi).all(|other| shape(other) == shape(byte))
            );
            assert!(lo == hi || usize::from(shape(byte)) < SHARED_SHAPES.len());
        }
        const { assert!(SHARED_SHAPES.len() <= u16::BITS as usize) };
    }
}
