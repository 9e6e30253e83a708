//! Bytes summed up, so that a set of them fits a word.

/// Bytes are summed up in 64 kinds, so that a subtree's bytes fit a word: punctuation each for itself (it is what grammars turn
/// on), letters, digits and what is not ASCII in groups.
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

/// The kind of a byte, one bit of 64.
#[inline]
pub(crate) fn kind(byte: u8) -> u64 {
    1 << KINDS[usize::from(byte)]
}

/// All bytes, those of one kind together and in ascending order, and where those of each kind begin.
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
pub(crate) fn bytes_of(kind: u64) -> &'static [u8] {
    let (bytes, begins) = &BY_KIND;
    let at = kind.trailing_zeros() as usize;
    &bytes[usize::from(begins[at])..usize::from(begins[at + 1])]
}

/// Stands for the kinds of bytes that are not ASCII, where what they spell is whole code points, but for the last ones of words.
pub(crate) const CODE_POINTS: u64 = 1 << 63;

/// The same where none of these code points is white space.
pub(crate) const BLACK_CODE_POINTS: u64 = 1 << 62;

/// The kinds of the letters of ASCII.
pub(crate) const ASCII_LETTERS: u64 = (1 << 11) - 1;

/// The kinds of all bytes that are not ASCII.
pub(crate) const NOT_ASCII: u64 = 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21;

/// Bytes that grammars seldom tell apart, as a range for each shape of several bytes. All other bytes have shapes of their own.
const GROUPS: [(u8, u8); 12] = [
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

/// Shapes by byte, and the bytes of each.
const SHAPES: ([u8; 256], [(u8, u8); 256]) = {
    let (mut of, mut bytes) = ([0u8; 256], [(0u8, 0u8); 256]);
    let (mut byte, mut own) = (0usize, GROUPS.len());
    let mut group = 0;
    while group < GROUPS.len() {
        bytes[group] = GROUPS[group];
        group += 1;
    }
    while byte < 256 {
        let mut group = 0;
        while group < GROUPS.len()
            && !(GROUPS[group].0 as usize <= byte && byte <= GROUPS[group].1 as usize)
        {
            group += 1;
        }
        if group == GROUPS.len() {
            group = own;
            bytes[own] = (byte as u8, byte as u8);
            own += 1;
        }
        of[byte] = group as u8;
        byte += 1;
    }
    (of, bytes)
};

/// By shape: the kinds of its bytes.
static SHAPE_KINDS: [u64; 256] = {
    let mut kinds = [0u64; 256];
    let mut byte = 0usize;
    while byte < 256 {
        kinds[SHAPES.0[byte] as usize] |= 1 << KINDS[byte];
        byte += 1;
    }
    kinds
};

/// The kinds of a shape's bytes.
#[inline]
pub(crate) fn shape_kinds(shape: u8) -> u64 {
    SHAPE_KINDS[usize::from(shape)]
}

/// The shape of a byte, a number.
#[inline]
pub(crate) fn shape(byte: u8) -> u8 {
    SHAPES.0[usize::from(byte)]
}

/// The lowest and the highest byte of a shape. There are few shapes of several bytes, and those have the lowest numbers.
#[inline]
pub(crate) fn shape_bytes(shape: u8) -> (u8, u8) {
    SHAPES.1[usize::from(shape)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_ascii_or_not_and_leave_bits() {
        assert!((0..=255u8).all(|byte| (kind(byte) & NOT_ASCII != 0) == (byte >= 0x80)));
        assert!((0..=255u8).all(|byte| kind(byte) & (CODE_POINTS | BLACK_CODE_POINTS) == 0));
        for bit in 0..63 {
            let own: Vec<u8> = (0..=255u8).filter(|&byte| kind(byte) == 1 << bit).collect();
            assert_eq!(bytes_of(1 << bit), own);
        }
    }

    #[test]
    fn each_byte_is_of_its_shape() {
        for byte in 0..=255u8 {
            let (lo, hi) = shape_bytes(shape(byte));
            assert!(
                (lo..=hi).contains(&byte) && (lo..=hi).all(|other| shape(other) == shape(byte))
            );
            assert!(lo == hi || usize::from(shape(byte)) < GROUPS.len());
        }
        const { assert!(GROUPS.len() <= u16::BITS as usize) };
    }
}
