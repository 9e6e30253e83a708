//! Surrogate pairs of UTF-16: escapes such as `\uD83D\uDE00` spell one code point by two units.

use std::ops::Range;

/// The units of surrogate pairs. Alone, they are no characters.
pub(crate) const SURROGATES: Range<u32> = 0xD800..0xE000;

/// The first units of surrogate pairs.
pub(crate) const HIGH_SURROGATES: Range<u32> = 0xD800..0xDC00;

/// The code point of a surrogate pair; `None` if the units are none.
pub(crate) fn surrogate_pair(high: u32, low: u32) -> Option<char> {
    match (high, low) {
        (0xD800..0xDC00, 0xDC00..0xE000) => {
            char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        }
        _ => None,
    }
}
