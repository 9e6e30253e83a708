//! Streams of text: bytes in chunks -> text in whole code points, without the white space that the
//! format adds.

use std::ops::Deref;

use louver::internals::partial_char_len;
use memchr::memmem;

/// One stream: text, reasoning, or the arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    /// Bytes that were not decided.
    pending: Vec<u8>,
    lead: Vec<u8>,
    trail: Vec<u8>,
    begun: bool,
}

impl Channel {
    /// A stream that may begin with `lead` and end with `trail`, which are not part of its text.
    pub(crate) fn stripping(lead: &[u8], trail: &[u8]) -> Self {
        Channel { lead: lead.to_vec(), trail: trail.to_vec(), ..Channel::default() }
    }

    /// Takes bytes, and returns the text that is decided.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        if !self.begun {
            if self.lead.len() > self.pending.len() && self.lead.starts_with(&self.pending) {
                return String::new();
            }
            self.begin();
        }
        let held = partial_match_len(&self.pending, &[&self.trail[..]]);
        let (text, rest) = decode(&self.pending[..self.pending.len() - held]);
        let used = self.pending.len() - held - rest;
        self.pending.drain(..used);
        text
    }

    /// Whether nothing has been pushed yet.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.begun && self.pending.is_empty()
    }

    /// Ends the stream, and returns the rest of the text without `trail`.
    pub(crate) fn close(&mut self) -> String {
        self.begin();
        if !self.trail.is_empty() && self.pending.ends_with(&self.trail) {
            self.pending.truncate(self.pending.len() - self.trail.len());
        }
        self.flush()
    }

    /// Ends a stream that was cut off, and returns the rest of the text with what may be `trail`.
    pub(crate) fn flush(&mut self) -> String {
        self.begin();
        self.begun = false;
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }

    fn begin(&mut self) {
        if !self.begun && self.pending.starts_with(&self.lead) {
            self.pending.drain(..self.lead.len());
        }
        self.begun = true;
    }
}

/// Text for the user. A piece of text between, before or after calls that is white space alone
/// belongs to the format, and is dropped.
#[derive(Clone, Debug)]
pub(crate) struct TextChannel {
    channel: Channel,
    /// White space at the beginning of the piece.
    held: String,
    /// Whether the piece has other text, too.
    begun: bool,
}

impl TextChannel {
    /// `separator` stands between text and a call.
    pub(crate) fn new(separator: &[u8]) -> Self {
        TextChannel {
            channel: Channel::stripping(b"", separator),
            held: String::new(),
            begun: false,
        }
    }

    /// Takes bytes, and returns the text that is decided.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let text = self.channel.push(bytes);
        self.take(text)
    }

    /// Ends the piece, as a call begins.
    pub(crate) fn close(&mut self) -> String {
        let text = self.channel.close();
        let text = self.take(text);
        (self.held, self.begun) = (String::new(), false);
        text
    }

    /// Ends the text. `calls`: there were calls, so that a last piece of white space is dropped.
    pub(crate) fn finish(&mut self, calls: bool) -> String {
        let text = self.channel.flush();
        let text = self.take(text);
        let held = std::mem::take(&mut self.held);
        if calls { text } else { held + &text }
    }

    fn take(&mut self, text: String) -> String {
        if !self.begun && text.bytes().all(is_space) {
            self.held.push_str(&text);
            return String::new();
        }
        self.begun = true;
        std::mem::take(&mut self.held) + &text
    }
}

/// Bytes that were not decided, in which texts are searched for as more arrive.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchBuffer {
    bytes: Vec<u8>,
    /// Texts, and the offsets before which they do not begin.
    missed: Vec<(Vec<u8>, usize)>,
}

impl Deref for SearchBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl SearchBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Drops the first bytes.
    pub(crate) fn drop_front(&mut self, len: usize) {
        self.bytes.drain(..len);
        self.missed.clear();
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }

    /// The offset of the first occurrence of a text at or after `from`, which is always the same
    /// for a text until bytes are dropped. Bytes without the text are not searched again.
    pub(crate) fn find(&mut self, text: &[u8], from: usize) -> Option<usize> {
        let known = self.missed.iter().position(|(missed, _)| missed == text);
        let from = known.map_or(from, |known| from.max(self.missed[known].1));
        let rest = self.bytes.get(from..)?;
        #[cfg(test)]
        SEARCHED_BYTES.set(SEARCHED_BYTES.get() + rest.len());
        if let Some(at) = memmem::find(rest, text) {
            return Some(from + at);
        }
        let next = (self.bytes.len() + 1).saturating_sub(text.len()).max(from);
        match known {
            Some(known) => self.missed[known].1 = next,
            None => self.missed.push((text.to_vec(), next)),
        }
        None
    }
}

#[cfg(test)]
thread_local! {
    static SEARCHED_BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The number of bytes that this thread has searched in buffers.
#[cfg(test)]
pub(crate) fn searched_bytes() -> usize {
    SEARCHED_BYTES.get()
}

/// Decodes UTF-8, with U+FFFD for invalid bytes. Also returns the number of bytes at the end that
/// may begin a code point.
pub(crate) fn decode(bytes: &[u8]) -> (String, usize) {
    let rest = partial_char_len(bytes);
    (String::from_utf8_lossy(&bytes[..bytes.len() - rest]).into_owned(), rest)
}

/// White space of JSON.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The number of bytes of white space at the beginning of a text.
pub(crate) fn leading_spaces(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_space(**byte)).count()
}

/// The length of the longest suffix of a text that is a prefix of one of the markers.
pub(crate) fn partial_match_len(text: &[u8], markers: &[&[u8]]) -> usize {
    let longest = markers.iter().map(|marker| marker.len()).max().unwrap_or(0);
    let begins =
        |n: &usize| markers.iter().any(|marker| marker.starts_with(&text[text.len() - n..]));
    (1..=longest.min(text.len())).rev().find(begins).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Channel, SearchBuffer};

    /// Bytes, lead, trail, and the text they make.
    type Case = (&'static [u8], &'static [u8], &'static [u8], &'static str);

    fn all_chunkings(bytes: &[u8], lead: &[u8], trail: &[u8]) -> Vec<String> {
        let cuts = 1u32 << (bytes.len() - 1);
        let run = |cut: u32| {
            let mut channel = Channel::stripping(lead, trail);
            let mut text = String::new();
            let mut from = 0;
            for at in 1..=bytes.len() {
                if at == bytes.len() || cut >> (at - 1) & 1 == 1 {
                    text.push_str(&channel.push(&bytes[from..at]));
                    from = at;
                }
            }
            text + &channel.close()
        };
        (0..cuts).map(run).collect()
    }

    #[test]
    fn text_does_not_depend_on_chunks() {
        let cases: [Case; 8] = [
            ("\nhé😀\n".as_bytes(), b"\n", b"\n", "hé😀"),
            (b"\n\n\n\n", b"\n", b"\n", "\n\n"),
            (b"\n", b"\n", b"\n", ""),
            (b"ab\n\n\n", b"", b"\n\n", "ab\n"),
            (b"a\xff\xe2\x82b", b"", b"", "a\u{fffd}\u{fffd}b"),
            (b"a\xe2\x82", b"", b"", "a\u{fffd}"),
            (b"--x", b"---", b"", "--x"),
            ("é\n".as_bytes(), b"", b"\n", "é"),
        ];
        for (bytes, lead, trail, want) in cases {
            for text in all_chunkings(bytes, lead, trail) {
                assert_eq!(text, want, "{bytes:?}");
            }
        }
    }

    #[test]
    fn searches_find_what_is_cut_into_chunks() {
        let mut buffer = SearchBuffer::default();
        for (bytes, found) in [("aa", None), ("aa</", None), ("a</b", None), ("></b>", Some(7))] {
            buffer.push(bytes.as_bytes());
            assert_eq!(buffer.find(b"</b>", 0), found, "{bytes}");
        }
        assert_eq!(buffer.find(b">", 3), Some(10));
        buffer.drop_front(8);
        assert_eq!(buffer.find(b"</b>", 0), Some(3));
    }

    #[test]
    fn flush_returns_the_trail() {
        let mut channel = Channel::stripping(b"", b"\n");
        assert_eq!(channel.push(b"a\n"), "a");
        assert_eq!(channel.flush(), "\n");
    }
}
