//! The words for the types of values in the tags of arguments.

use louver_formats::{KindWords, PythonLiterals};

use super::samples::{Samples, TYPED};
use crate::units::{common_end, common_start};

/// What stands between the key and the value of an argument, by the type of the value.
pub(super) struct TypedValues<'a> {
    /// As in [`TYPED`], without the white space at its end. `None` if the value is not written as
    /// it was given.
    middles: [Option<&'a str>; TYPED.len()],
    /// The texts from the key on.
    rests: [Option<&'a str>; TYPED.len()],
    /// The values that are written as Python prints them.
    pub(super) python: Option<PythonLiterals>,
}

/// The words, with what is before and after them.
pub(super) type WordsBetween = (String, KindWords, String);

/// The most bytes by which the text before a value may be longer than that before a string.
const MAX_MIDDLE: usize = 24;

impl<'a> TypedValues<'a> {
    /// Finds the values of the samples. `string` is the text between a key and a string, and
    /// `close` ends values.
    pub(super) fn find(samples: &'a Samples, string: &str, close: &str) -> TypedValues<'a> {
        let mut python = None;
        let rests: [Option<&str>; TYPED.len()] =
            std::array::from_fn(|k| Some(samples.typed[k].as_deref()?.split_once(TYPED[k].key)?.1));
        let middles = std::array::from_fn(|k| {
            let rest = rests[k]?;
            // A scalar may also be a part of its tag: a word for its type.
            let is_value = |at: usize, text: &str| {
                at <= string.len() + MAX_MIDDLE
                    && (!TYPED[k].is_scalar() || rest[at + text.len()..].starts_with(close))
            };
            let texts = TYPED[k].texts.iter().filter_map(|text| {
                let mut found = rest.match_indices(text).map(|(at, _)| at);
                Some((found.find(|&at| is_value(at, text))?, *text))
            });
            let (at, text) = texts.min()?;
            match text {
                "True" => python = python.or(Some(PythonLiterals::Words)),
                text if text.contains('\'') => python = Some(PythonLiterals::Values),
                _ => {}
            }
            Some(rest[..at].trim_end())
        });
        TypedValues { middles, rests, python }
    }

    /// The words for types. `None` if all values stand after the same text.
    pub(super) fn words(&self, string: &str) -> Result<Option<WordsBetween>, String> {
        let known: Vec<&str> = self.middles.iter().flatten().copied().collect();
        if known.iter().all(|middle| *middle == string) {
            return Ok(None);
        }
        let more =
            known.iter().map(|middle| string.strip_prefix(*middle).filter(|s| !s.is_empty()));
        if let Some(more) = more.min().flatten() {
            return Err(format!(
                "strings stand after {more:?} and other values do not; if it opens a quotation, \
                 write it as `quotes.begin` of `tagged` in a description of your own"
            ));
        }
        let all = || known.iter().copied().chain([string]);
        let letter = |c: char| c.is_alphanumeric() || c == '_';
        let start = all().map(|other| common_start(string, other, &[])).min().unwrap_or(0);
        let start = string[..start].trim_end_matches(letter);
        let rest = &string[start.len()..];
        let end = all().map(|other| common_end(rest, other, &[])).min().unwrap_or(0);
        let end = rest[rest.len() - end..].trim_start_matches(letter);
        let kinds = self.by_kind(string, start, end)?;
        Ok(Some((start.to_owned(), kinds, end.to_owned())))
    }

    /// The words between two texts.
    fn by_kind(&self, string: &str, start: &str, end: &str) -> Result<KindWords, String> {
        let word_in = |middle: &str| {
            let word = middle.get(start.len()..middle.len().saturating_sub(end.len()));
            word.filter(|word| !word.is_empty()).map(str::to_owned)
        };
        let string = word_in(string).ok_or("strings have no word for their type")?;
        let mut words: Vec<Option<String>> = Vec::new();
        for (k, sample) in TYPED.iter().enumerate() {
            // Null may be written in a way of its own, behind its word.
            let behind = || {
                let rest = self.rests[k]?.strip_prefix(start)?;
                let at = rest.find(end).filter(|&at| (1..=MAX_MIDDLE).contains(&at))?;
                Some(rest[..at].to_owned()).filter(|_| sample.kind == "null" && !end.is_empty())
            };
            let word = self.middles[k].map_or_else(|| behind().ok_or(()), |m| word_in(m).ok_or(()));
            match word {
                Ok(word) if word == string => {
                    let problem = "and strings have the same word";
                    return Err(format!("values of type {} {problem}: {word:?}", sample.kind));
                }
                Err(()) if sample.kind != "null" => {
                    return Err(format!("values of type {} have no word", sample.kind));
                }
                word => words.push(word.ok()),
            }
        }
        let [integer, number, boolean, null, array, object] = &words[..] else {
            return Err("a type of values is not written".to_owned());
        };
        if integer != number {
            let [integer, number] = [integer, number].map(|word| word.as_deref().unwrap_or(""));
            return Err(format!(
                "integers have the word {integer:?}, other numbers {number:?}, and a description \
                 has one word for all numbers"
            ));
        }
        let is_only = [boolean, array, object].iter().all(|word| *word == number);
        // The one word of all that is not a string is that of a null that is not written.
        let null = null.clone().or_else(|| number.clone().filter(|_| is_only));
        let word = |word: &Option<String>| word.clone().unwrap_or_default();
        Ok(KindWords {
            string,
            number: word(number),
            boolean: word(boolean),
            null: null.ok_or("null is not written with a word for its type")?,
            array: word(array),
            object: word(object),
        })
    }
}
