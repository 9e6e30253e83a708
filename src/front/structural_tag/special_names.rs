//! Names of special tokens in texts.

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

/// A part of a text that may contain special tokens.
pub(super) enum TextPart<'t> {
    /// Text without special tokens.
    Text(&'t str),
    /// The name of a special token.
    Special(&'t str),
}

/// Finds the names of special tokens in texts.
pub(super) struct SpecialTokenNames(AhoCorasick);

impl SpecialTokenNames {
    /// Builds the search for names. Errors: there are too many names for an automaton.
    pub(super) fn new(names: &[String]) -> Result<SpecialTokenNames, BuildError> {
        let names = names.iter().filter(|name| !name.is_empty());
        // The longest name wins.
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(names)?;
        Ok(SpecialTokenNames(search))
    }

    /// The special tokens of a text, with their offsets.
    pub(super) fn find<'t>(&self, text: &'t str) -> Vec<(usize, &'t str)> {
        self.0.find_iter(text).map(|found| (found.start(), &text[found.range()])).collect()
    }

    /// Splits a text at its special tokens.
    pub(super) fn parts<'t>(&self, text: &'t str) -> Vec<TextPart<'t>> {
        let mut out = Vec::new();
        let mut at = 0;
        for (from, name) in self.find(text) {
            if from > at {
                out.push(TextPart::Text(&text[at..from]));
            }
            out.push(TextPart::Special(name));
            at = from + name.len();
        }
        if at < text.len() {
            out.push(TextPart::Text(&text[at..]));
        }
        out
    }
}
