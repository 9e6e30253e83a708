//! Incremental decoding of JSON strings: escapes, surrogate pairs and their continuations.

use crate::fsm::{ByteSet, utf8};
use crate::utf16::surrogate_pair;

/// An incomplete character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EscapeState {
    /// The first half of an escaped surrogate pair, if it may still be completed; otherwise zero.
    high_surrogate: u16,
    phase: EscapePhase,
}

/// The part of an escape that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum EscapePhase {
    Plain,
    Backslash,
    /// After `\u` and this many digits with this value.
    Unit(u8, u16),
}

/// Decoded bytes that one byte of input completes.
pub(super) struct Decoded {
    bytes: [u8; 8],
    len: usize,
    /// The byte is the closing quote.
    pub(super) ends_string: bool,
}

impl Decoded {
    const EMPTY: Decoded = Decoded { bytes: [0; 8], len: 0, ends_string: false };

    /// The decoded bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends a code point as UTF-8. A lone surrogate takes three bytes of the same scheme.
    fn code_point(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(c) => self.push(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.push(&[
                0xE0 | (code >> 12) as u8,
                0x80 | (code >> 6 & 63) as u8,
                0x80 | (code & 63) as u8,
            ]),
        }
    }
}

impl EscapeState {
    /// Between two characters.
    pub(super) const NONE: EscapeState =
        EscapeState { high_surrogate: 0, phase: EscapePhase::Plain };

    /// Decodes a byte after the opening quote; `None` if no string continues so.
    pub(super) fn read(&mut self, byte: u8) -> Option<Decoded> {
        let mut decoded = Decoded::EMPTY;
        match self.phase {
            EscapePhase::Plain => match byte {
                b'\\' => self.phase = EscapePhase::Backslash,
                0..0x20 => return None,
                _ => {
                    self.flush_surrogate(&mut decoded);
                    decoded.ends_string = byte == b'"';
                    if !decoded.ends_string {
                        decoded.push(&[byte]);
                    }
                }
            },
            EscapePhase::Backslash => {
                let byte_value = match byte {
                    b'u' => {
                        self.phase = EscapePhase::Unit(0, 0);
                        return Some(decoded);
                    }
                    b'"' | b'\\' | b'/' => byte,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return None,
                };
                self.flush_surrogate(&mut decoded);
                self.phase = EscapePhase::Plain;
                decoded.push(&[byte_value]);
            }
            EscapePhase::Unit(digits, value) => {
                let value = value << 4 | char::from(byte).to_digit(16)? as u16;
                self.phase = EscapePhase::Unit(digits + 1, value);
                if digits == 3 {
                    self.phase = EscapePhase::Plain;
                    self.finish_unit(value, &mut decoded);
                }
            }
        }
        Some(decoded)
    }

    /// A `\u` escape is complete.
    fn finish_unit(&mut self, unit: u16, decoded: &mut Decoded) {
        if let Some(code_point) = surrogate_pair(self.high_surrogate.into(), unit.into()) {
            self.high_surrogate = 0;
            return decoded.code_point(code_point.into());
        }
        self.flush_surrogate(decoded);
        match unit {
            0xD800..0xDC00 => self.high_surrogate = unit,
            _ => decoded.code_point(unit.into()),
        }
    }

    /// Emits a lone first half of a surrogate pair.
    fn flush_surrogate(&mut self, decoded: &mut Decoded) {
        if self.high_surrogate != 0 {
            decoded.code_point(self.high_surrogate.into());
            self.high_surrogate = 0;
        }
    }

    /// The bytes with which a string may continue so that the decoded bytes `rest` follow. Empty if
    /// that is impossible.
    pub(super) fn next_bytes(self, mut rest: &[u8]) -> ByteSet {
        if self.high_surrogate != 0 {
            match Utf16Units::first_of(rest) {
                Some(Utf16Units { first, second: Some(second), .. })
                    if first == self.high_surrogate =>
                {
                    return match self.phase {
                        EscapePhase::Plain => ByteSet::from_bytes(b"\\"),
                        EscapePhase::Backslash => ByteSet::from_bytes(b"u"),
                        EscapePhase::Unit(digits, value) => next_digit(second, digits, value),
                    };
                }
                Some(Utf16Units { first, second: None, len }) if first == self.high_surrogate => {
                    rest = &rest[len..]
                }
                _ => return ByteSet::EMPTY,
            }
        }
        let Some(&byte) = rest.first() else {
            return if self.phase == EscapePhase::Plain {
                ByteSet::from_bytes(b"\"")
            } else {
                ByteSet::EMPTY
            };
        };
        let units = Utf16Units::first_of(rest);
        let mut next = ByteSet::EMPTY;
        match self.phase {
            EscapePhase::Plain => {
                if !matches!(byte, b'"' | b'\\' | 0..0x20) {
                    next.insert(byte);
                }
                if units.is_some() {
                    next.insert(b'\\');
                }
            }
            EscapePhase::Backslash if units.is_some() => {
                next.insert(b'u');
                match byte {
                    b'"' | b'\\' | b'/' => next.insert(byte),
                    b'\n' => next.insert(b'n'),
                    b'\r' => next.insert(b'r'),
                    b'\t' => next.insert(b't'),
                    8 => next.insert(b'b'),
                    12 => next.insert(b'f'),
                    _ => {}
                }
            }
            EscapePhase::Backslash => {}
            EscapePhase::Unit(digits, value) => {
                next = units.map_or(ByteSet::EMPTY, |units| next_digit(units.first, digits, value));
            }
        }
        next
    }
}

/// The next digit of a `\u` escape for `unit`, after this many digits with this value.
fn next_digit(unit: u16, digits: u8, value: u16) -> ByteSet {
    let unit = u32::from(unit);
    if unit >> (16 - 4 * digits) != u32::from(value) {
        return ByteSet::EMPTY;
    }
    match char::from_digit(unit >> (12 - 4 * digits) & 15, 16) {
        Some(digit) => ByteSet::from_bytes(&[digit as u8, digit.to_ascii_uppercase() as u8]),
        None => ByteSet::EMPTY,
    }
}

/// A character in UTF-16: one unit, or a surrogate pair.
struct Utf16Units {
    first: u16,
    second: Option<u16>,
    /// Number of bytes in UTF-8.
    len: usize,
}

impl Utf16Units {
    /// The first character of a text; `None` if no escape can spell its first bytes.
    fn first_of(text: &[u8]) -> Option<Utf16Units> {
        let len = 1 + usize::from(utf8::continuation_bytes(*text.first()?));
        let bytes = text.get(..len)?;
        if let &[0xED, b @ 0xA0..0xC0, c @ 0x80..0xC0] = bytes {
            let high_surrogate = 0xD000 | u16::from(b & 63) << 6 | u16::from(c & 63);
            return Some(Utf16Units { first: high_surrogate, second: None, len });
        }
        let mut units = [0; 2];
        let written =
            std::str::from_utf8(bytes).ok()?.chars().next()?.encode_utf16(&mut units).len();
        Some(Utf16Units { first: units[0], second: (written == 2).then_some(units[1]), len })
    }
}
