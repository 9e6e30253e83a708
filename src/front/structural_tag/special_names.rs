//! Names of special tokens in texts.

/// A part of a text that may contain special tokens.
pub(super) enum TextPart<'t> {
    /// Text without special tokens.
    Text(&'t str),
    /// The name of a special token.
    Special(&'t str),
}

/// Finds the names of special tokens in texts.
pub(super) struct SpecialTokenNames(Option<aho_corasick::AhoCorasick>);

impl SpecialTokenNames {
    /// Builds the search for names. Errors: there are too many names for an automaton.
    pub(super) fn new(names: &[String]) -> Result<SpecialTokenNames, aho_corasick::BuildError> {
        let names: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
        // The longest name wins.
        let kind = aho_corasick::MatchKind::LeftmostLongest;
        let search = || aho_corasick::AhoCorasick::builder().match_kind(kind).build(&names);
        Ok(SpecialTokenNames((!names.is_empty()).then(search).transpose()?))
    }

    /// The special tokens of a text, with their offsets.
    pub(super) fn find<'t>(&self, text: &'t str) -> Vec<(usize, &'t str)> {
        let matches = self.0.iter().flat_map(|names| names.find_iter(text));
        matches.map(|found| (found.start(), &text[found.range()])).collect()
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
