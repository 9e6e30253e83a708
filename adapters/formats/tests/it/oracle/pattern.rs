//! Patterns over bytes, and which prefixes of a text can be completed to a text of a pattern.

use std::collections::BTreeSet;

use super::unless::{PatternMatch, match_unless};

/// A set of texts. No pattern is empty, so that every prefix of a text can be completed.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Text(String),
    /// Bytes of a set, with the lowest and highest number of bytes.
    Run(&'static [u8], usize, usize),
    All(Vec<Pattern>),
    Any(Vec<Pattern>),
    /// A repetition, with the highest number of times. `None`: any number.
    Upto(Option<usize>, Box<Pattern>),
    Free(Box<Free>),
    /// The text after an ambiguous begin marker: a name that is none of these, and text that does
    /// not continue as a call.
    OtherName(Vec<String>, Watched),
    /// A shortest text that is no prefix of any of these.
    Mismatch(Vec<String>, Watched),
}

/// The texts that free text watches for. Other texts do not contain them, and do not end with the
/// beginning of one.
pub(super) type Watched = Vec<String>;

fn contains_any(of: &[u8], watched: &[String]) -> bool {
    (0..=of.len()).any(|at| watched.iter().any(|text| of[..at].ends_with(text.as_bytes())))
}

fn ends_with_begin(of: &[u8], watched: &[String]) -> bool {
    (0..of.len()).any(|at| watched.iter().any(|text| text.as_bytes().starts_with(&of[at..])))
}

/// The length of the viable prefix of a [`Pattern::OtherName`], and where it may end.
fn other_name(text: &[u8], names: &[String], watched: &[String]) -> (usize, Option<usize>) {
    let quote = text.iter().position(|&b| b == b'"');
    let name = &text[..quote.unwrap_or(text.len())];
    let begins = |of: &[u8]| names.iter().any(|name| name.as_bytes().starts_with(of));
    let known = (0..=name.len()).rev().find(|&n| begins(&name[..n])).unwrap_or(0);
    if let Some(&left) = name.get(known) {
        // A letter that begins a watched text is searched, too. No name may have it.
        let begins = watched.iter().any(|text| text.as_bytes()[0] == left);
        let is_named = || names.iter().any(|name| name.as_bytes().contains(&left));
        if begins && (!left.is_ascii_alphanumeric() || is_named()) {
            return (known, None);
        }
        let from = if begins { known } else { known + 1 };
        let rest = &name[from..];
        let clean = (0..=rest.len())
            .take_while(|&n| !contains_any(&rest[..n], watched))
            .last()
            .unwrap_or(0);
        if clean < rest.len() {
            return (from + clean, None);
        }
        let Some(quote) = quote else { return (text.len(), None) };
        let closed = &text[from..=quote];
        if contains_any(closed, watched) || ends_with_begin(closed, watched) {
            return (quote, None);
        }
    } else if quote.is_none() || names.iter().any(|known| known.as_bytes() == name) {
        return (name.len(), None);
    }
    let from = quote.map_or(text.len(), |quote| quote + 1);
    for to in from + 1..=text.len() {
        let rest = &text[from..to];
        match match_unless(rest) {
            PatternMatch::Prefix => {}
            PatternMatch::Complete => return (to - 1, None),
            PatternMatch::No if contains_any(rest, watched) || ends_with_begin(rest, watched) => {
                return (to - 1, None);
            }
            PatternMatch::No => return (to, Some(to)),
        }
    }
    (text.len(), None)
}

/// The same for [`Pattern::Mismatch`].
fn mismatch(text: &[u8], known: &[String], watched: &[String]) -> (usize, Option<usize>) {
    for to in 1..=text.len() {
        let read = &text[..to];
        if known.iter().any(|known| known.as_bytes() == read) {
            return (to - 1, None);
        }
        if !known.iter().any(|known| known.as_bytes().starts_with(read)) {
            return if contains_any(read, watched) || ends_with_begin(read, watched) {
                (to - 1, None)
            } else {
                (to, Some(to))
            };
        }
    }
    (text.len(), None)
}

/// Free text: up to and with an end, or of any length if it may stop anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Free {
    pub(super) excludes: Vec<String>,
    pub(super) ends: Vec<End>,
    /// Ends after which nothing follows.
    pub(super) last: Vec<String>,
    pub(super) stops_anywhere: bool,
}

/// An end of free text.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(super) text: String,
    pub(super) rest: Pattern,
    /// Whether text follows again.
    pub(super) again: bool,
}

/// The result of matching a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// The length of the longest prefix that can be completed to a text of the pattern.
    pub(crate) viable: usize,
    /// Whether the text is a text of the pattern.
    pub(crate) whole: bool,
}

impl Pattern {
    pub(crate) fn read(&self, input: &[u8]) -> Match {
        let mut viable = 0;
        let ends = self.ends(input, &BTreeSet::from([0]), &mut viable);
        Match { viable, whole: ends.contains(&input.len()) }
    }

    /// The offsets at which texts of the pattern end that begin at the offsets `from`. `far` is
    /// raised to the end of the longest viable prefix.
    fn ends(&self, input: &[u8], from: &BTreeSet<usize>, far: &mut usize) -> BTreeSet<usize> {
        let mut out = BTreeSet::new();
        match self {
            Pattern::Text(text) => {
                for &at in from {
                    let same = text.bytes().zip(&input[at..]).take_while(|(a, b)| a == *b).count();
                    *far = (*far).max(at + same);
                    out.extend((same == text.len()).then_some(at + same));
                }
            }
            Pattern::Run(bytes, least, most) => {
                for &at in from {
                    let run =
                        input[at..].iter().take(*most).take_while(|b| bytes.contains(b)).count();
                    *far = (*far).max(at + run);
                    out.extend((*least..=run).map(|n| at + n));
                }
            }
            Pattern::All(parts) => {
                return parts.iter().fold(from.clone(), |from, part| part.ends(input, &from, far));
            }
            Pattern::Any(parts) => {
                parts.iter().for_each(|part| out.extend(part.ends(input, from, far)))
            }
            Pattern::Upto(most, body) => {
                out.clone_from(from);
                let (mut last, mut n) = (from.clone(), 0);
                while !last.is_empty() && most.is_none_or(|most| n < most) {
                    last = body.ends(input, &last, far).difference(&out).copied().collect();
                    out.extend(&last);
                    n += 1;
                }
            }
            Pattern::Free(free) => {
                let mut begun = BTreeSet::new();
                let mut todo: Vec<usize> = from.iter().copied().collect();
                while let Some(at) = todo.pop() {
                    if begun.insert(at) {
                        todo.extend(free.ends(input, at, far, &mut out));
                    }
                }
            }
            Pattern::OtherName(known, watched) | Pattern::Mismatch(known, watched) => {
                for &at in from {
                    let read =
                        if matches!(self, Pattern::OtherName(..)) { other_name } else { mismatch };
                    let (viable, end) = read(&input[at..], known, watched);
                    *far = (*far).max(at + viable);
                    out.extend(end.map(|end| at + end));
                }
            }
        }
        out
    }
}

impl Free {
    /// Matches free text that begins at `from`. Adds the offsets at which it may end to `out`, and
    /// returns those at which text begins again.
    fn ends(
        &self,
        input: &[u8],
        from: usize,
        far: &mut usize,
        out: &mut BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        for at in from..=input.len() {
            let seen = &input[from..at];
            let longest = |texts: &mut dyn Iterator<Item = &String>| {
                texts.filter(|text| seen.ends_with(text.as_bytes())).map(String::len).max()
            };
            // An end of the text may contain an excluded text.
            let ended = longest(&mut self.ends.iter().map(|end| &end.text).chain(&self.last));
            if longest(&mut self.excludes.iter()) > ended {
                break;
            }
            *far = (*far).max(at);
            if self.last.iter().any(|end| seen.ends_with(end.as_bytes())) {
                out.insert(at);
                return BTreeSet::new();
            }
            let mut resumed = BTreeSet::new();
            let fired = self.ends.iter().filter(|end| seen.ends_with(end.text.as_bytes()));
            let mut any = false;
            for end in fired {
                any = true;
                let ended = end.rest.ends(input, &BTreeSet::from([at]), far);
                if end.again { resumed.extend(ended) } else { out.extend(ended) }
            }
            if any {
                return resumed;
            }
            if self.stops_anywhere {
                out.insert(at);
            }
        }
        BTreeSet::new()
    }
}
