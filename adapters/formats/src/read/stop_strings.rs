//! Stop strings in a response that is constrained. Its grammar knows nothing of them, so that they
//! are found in what was generated.

use louver::engine::Matcher;

use crate::channel::partial_match_len;
use crate::format::{Atom, Marker};
use crate::lowered::LoweredRequest;

/// Finds the first of some texts in bytes that come in chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopStrings {
    stops: Vec<Vec<u8>>,
    /// Bytes that may begin a stop string.
    held: Vec<u8>,
    /// The number of bytes of the turn that have been read.
    read: usize,
    found: Option<FoundStop>,
    /// See [`Extractor::stop_string`](crate::Extractor::stop_string).
    pub(crate) ended_by: Option<String>,
}

/// The stop string that has ended the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundStop {
    /// The number of bytes of the turn before it.
    pub(crate) at: usize,
    /// Its index among the stop strings.
    pub(crate) index: usize,
}

impl StopStrings {
    pub(crate) fn new(stops: &[String]) -> Self {
        let stops = stops.iter().map(|stop| stop.clone().into_bytes()).collect();
        StopStrings { stops, ..StopStrings::default() }
    }

    /// Searches for other texts from here on, unless one was found. Returns the bytes that were
    /// held back and begin none of them.
    pub(crate) fn replace(&mut self, stops: &[String]) -> Vec<u8> {
        if self.found.is_some() {
            return Vec::new();
        }
        let held = self.flush();
        self.stops = StopStrings::new(stops).stops;
        self.push(&held)
    }

    /// Counts the bytes that are read next.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.read += bytes;
    }

    /// Takes the bytes that were counted last, and returns those that belong to the text. The stop
    /// string that ends first ends it; of several that end together, the longest one.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.stops.is_empty() {
            return bytes.to_vec();
        }
        for (k, byte) in bytes.iter().enumerate().filter(|_| self.found.is_none()) {
            self.held.push(*byte);
            let stops = self.stops.iter().enumerate();
            let found = stops.filter(|(_, stop)| self.held.ends_with(stop));
            if let Some((index, stop)) = found.max_by_key(|(_, stop)| stop.len()) {
                let len = stop.len();
                self.held.truncate(self.held.len() - len);
                let at = self.read.saturating_sub(len + bytes.len() - (k + 1));
                self.found = Some(FoundStop { at, index });
                return self.flush();
            }
        }
        let stops: Vec<&[u8]> = self.stops.iter().map(Vec::as_slice).collect();
        let kept = self.held.len() - partial_match_len(&self.held, &stops);
        self.held.drain(..kept).collect()
    }

    /// The bytes that are held back, which end the text.
    pub(crate) fn flush(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// The number of bytes that are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn found_stop(&self) -> Option<FoundStop> {
        self.found
    }

    /// The stop string that has ended the text.
    pub(crate) fn found_text(&self) -> Option<String> {
        let text = self.stops.get(self.found?.index)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

impl LoweredRequest {
    /// Whether the response is complete after the matcher's tokens and these bytes: the turn may
    /// end there, or with the markers that end a response.
    pub fn may_end_response(&self, matcher: &mut Matcher, bytes: &[u8]) -> bool {
        may_end_with(&self.end_markers(), matcher, bytes)
    }

    /// The stop string of free text that ends it, if one does, in the bytes after the text's last:
    /// it, and the markers that end text.
    pub(crate) fn stop_string_in(&self, bytes: &[u8]) -> Option<&str> {
        let mut rest = bytes;
        for end in self.end_markers().into_iter().rev() {
            let texts = end.as_texts().into_iter();
            let without = texts.filter_map(|text| rest.strip_suffix(text.as_bytes()));
            rest = without.min_by_key(|rest| rest.len()).unwrap_or(rest);
        }
        let stops = self.inner.text_stops.iter();
        let found = stops.filter(|stop| rest.ends_with(stop.as_bytes()));
        found.max_by_key(|stop| stop.len()).map(String::as_str)
    }

    /// The markers that end text, in their order.
    fn end_markers(&self) -> Vec<&Marker> {
        let format = &self.inner.format;
        let frame = format.frame.as_ref().map(|frame| &frame.end);
        format.text.end.iter().chain(frame).chain(&format.end).collect()
    }
}

/// Whether the turn may end after these bytes and some of the markers, in their order. A special
/// token of one of them decides, as no response has it.
fn may_end_with(ends: &[&Marker], matcher: &mut Matcher, bytes: &[u8]) -> bool {
    let Ok(expected) = matcher.expected(bytes) else { return false };
    if expected.accepted < bytes.len() || expected.may_end {
        return expected.accepted == bytes.len();
    }
    let mut later = ends.iter().enumerate();
    later.any(|(k, end)| {
        end.variants().iter().any(|variant| match &variant[..] {
            [Atom::Token(name), ..] => expected.specials.contains(name),
            [Atom::Text(text), Atom::Token(name), ..] => {
                let text = [bytes, text.as_bytes()].concat();
                let expected = matcher.expected(&text).ok();
                expected.is_some_and(|found| {
                    found.accepted == text.len() && found.specials.contains(name)
                })
            }
            [Atom::Text(text), ..] => {
                let text = [bytes, text.as_bytes()].concat();
                may_end_with(&ends[k + 1..], matcher, &text)
            }
            [] => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_stop_strings_end_what_was_held_back() {
        for (text, replaced, shown, stop) in [
            ("aEN", &["N"][..], "aE", Some((2, "N"))),
            ("aEN", &["x"], "aEN", None),
            ("aEN", &[], "aEN", None),
            ("aEN", &["ENDE"], "a", None),
            ("aEND", &["a"], "a", Some((1, "END"))),
        ] {
            let mut stops = StopStrings::new(&["END".to_owned()]);
            stops.count(text.len());
            let mut found = stops.push(text.as_bytes());
            found.extend(
                stops.replace(&replaced.iter().map(ToString::to_string).collect::<Vec<_>>()),
            );
            let ended = stops.found_stop().map(|found| found.at).zip(stops.found_text());
            let expected = stop.map(|(at, text)| (at, text.to_owned()));
            assert_eq!((&*found, ended), (shown.as_bytes(), expected), "{text} {replaced:?}");
        }
    }

    #[test]
    fn the_first_stop_string_ends_the_text_however_it_is_cut() {
        let found = |at, index| Some(FoundStop { at, index });
        for (text, expected, expected_stop) in [
            ("abc", "abc", None),
            ("ab\ncd", "ab", found(2, 0)),
            ("aENxENDb", "aENx", found(4, 1)),
            ("aEN", "aEN", None),
            ("xENDEND", "x", found(1, 1)),
            ("xENDED", "x", found(1, 1)),
            ("END", "", found(0, 1)),
            ("aDEND", "a", found(1, 2)),
        ] {
            for cut in 0..1u32 << (text.len() - 1) {
                let mut stops =
                    StopStrings::new(&["\n", "END", "DEND", "ENDED"].map(str::to_owned));
                let (mut found, mut from) = (Vec::new(), 0);
                for at in 1..=text.len() {
                    if at == text.len() || cut >> (at - 1) & 1 == 1 {
                        stops.count(at - from);
                        found.extend(stops.push(&text.as_bytes()[from..at]));
                        from = at;
                    }
                }
                found.extend(stops.flush());
                assert_eq!(
                    (&*found, stops.found_stop()),
                    (expected.as_bytes(), expected_stop),
                    "{text}"
                );
            }
        }
    }
}
