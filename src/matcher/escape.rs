//! Strings of JSON, byte by byte: where in an escape a text is, and what it says.

use crate::fsm::ByteSet;

/// What has been read of a character that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Escape {
    /// The first half of a surrogate pair, escaped: whether it is one half alone is not known yet. Zero, if there is none.
    half: u16,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Nothing,
    Backslash,
    /// Behind `\u` and so many digits, with this value.
    Unit(u8, u16),
}

/// What a byte adds to a string.
pub(super) struct Said {
    bytes: [u8; 8],
    len: usize,
    /// It is the quote behind the string.
    pub(super) ends: bool,
}

impl Said {
    const NOTHING: Said = Said { bytes: [0; 8], len: 0, ends: false };

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// UTF-8 of a code point; of half a surrogate pair, three bytes of the same kind.
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

impl Escape {
    /// Between two characters.
    pub(super) const NONE: Escape = Escape { half: 0, part: Part::Nothing };

    /// A byte behind the opening quote. `None` where no string goes on so.
    pub(super) fn read(&mut self, byte: u8) -> Option<Said> {
        let mut said = Said::NOTHING;
        match self.part {
            Part::Nothing => match byte {
                b'\\' => self.part = Part::Backslash,
                0..0x20 => return None,
                _ => {
                    self.flush(&mut said);
                    said.ends = byte == b'"';
                    if !said.ends {
                        said.push(&[byte]);
                    }
                }
            },
            Part::Backslash => {
                let plain = match byte {
                    b'u' => {
                        self.part = Part::Unit(0, 0);
                        return Some(said);
                    }
                    b'"' | b'\\' | b'/' => byte,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return None,
                };
                self.flush(&mut said);
                self.part = Part::Nothing;
                said.push(&[plain]);
            }
            Part::Unit(digits, value) => {
                let value = value << 4 | char::from(byte).to_digit(16)? as u16;
                self.part = Part::Unit(digits + 1, value);
                if digits == 3 {
                    self.part = Part::Nothing;
                    self.unit(value, &mut said);
                }
            }
        }
        Some(said)
    }

    /// An escape of a UTF-16 unit is complete.
    fn unit(&mut self, unit: u16, said: &mut Said) {
        if self.half != 0 && (0xDC00..0xE000).contains(&unit) {
            let high = u32::from(self.half) - 0xD800;
            self.half = 0;
            said.code_point(0x10000 + (high << 10) + u32::from(unit) - 0xDC00);
            return;
        }
        self.flush(said);
        match unit {
            0xD800..0xDC00 => self.half = unit,
            _ => said.code_point(unit.into()),
        }
    }

    fn flush(&mut self, said: &mut Said) {
        if self.half != 0 {
            said.code_point(self.half.into());
            self.half = 0;
        }
    }

    /// How a string may go on in which the rest is still to be said. Empty: it does not come to say that.
    pub(super) fn next(self, mut rest: &[u8]) -> ByteSet {
        if self.half != 0 {
            match Units::of(rest) {
                Some(Units { first, second: Some(second), .. }) if first == self.half => {
                    return match self.part {
                        Part::Nothing => ByteSet::of(b"\\"),
                        Part::Backslash => ByteSet::of(b"u"),
                        Part::Unit(digits, value) => next_digit(second, digits, value),
                    };
                }
                Some(Units { first, second: None, len }) if first == self.half => {
                    rest = &rest[len..]
                }
                _ => return ByteSet::EMPTY,
            }
        }
        let Some(&byte) = rest.first() else {
            return if self.part == Part::Nothing { ByteSet::of(b"\"") } else { ByteSet::EMPTY };
        };
        let units = Units::of(rest);
        let mut next = ByteSet::EMPTY;
        match self.part {
            Part::Nothing => {
                if !matches!(byte, b'"' | b'\\' | 0..0x20) {
                    next.insert(byte);
                }
                if units.is_some() {
                    next.insert(b'\\');
                }
            }
            Part::Backslash if units.is_some() => {
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
            Part::Backslash => {}
            Part::Unit(digits, value) => {
                next = units.map_or(ByteSet::EMPTY, |units| next_digit(units.first, digits, value));
            }
        }
        next
    }
}

/// How the digits of a unit go on of which so many have been read, with this value.
fn next_digit(unit: u16, digits: u8, value: u16) -> ByteSet {
    let unit = u32::from(unit);
    if unit >> (16 - 4 * digits) != u32::from(value) {
        return ByteSet::EMPTY;
    }
    match char::from_digit(unit >> (12 - 4 * digits) & 15, 16) {
        Some(digit) => ByteSet::of(&[digit as u8, digit.to_ascii_uppercase() as u8]),
        None => ByteSet::EMPTY,
    }
}

/// A character in UTF-16: a unit, or the halves of a pair.
struct Units {
    first: u16,
    second: Option<u16>,
    /// How many bytes it has.
    len: usize,
}

impl Units {
    /// The first character of a text; `None` if it begins with bytes that no escape spells.
    fn of(text: &[u8]) -> Option<Units> {
        let len = match text.first()? {
            0..0x80 => 1,
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        let bytes = text.get(..len)?;
        if let &[0xED, b @ 0xA0..0xC0, c @ 0x80..0xC0] = bytes {
            let half = 0xD000 | u16::from(b & 63) << 6 | u16::from(c & 63);
            return Some(Units { first: half, second: None, len });
        }
        let mut units = [0; 2];
        let written =
            std::str::from_utf8(bytes).ok()?.chars().next()?.encode_utf16(&mut units).len();
        Some(Units { first: units[0], second: (written == 2).then_some(units[1]), len })
    }
}
