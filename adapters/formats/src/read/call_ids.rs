//! Ids of calls: written by the model or made up, and unique in a conversation.

use std::collections::HashSet;

use louver::internals::{SplitMix64, mix};

use crate::format::{IdStyle, WireFormat};

/// An id that the model has written.
pub(crate) struct WireCallId {
    /// The part of the header that belongs to the id, before the number.
    pub(crate) prefix: String,
    /// The part that numbers calls.
    pub(crate) number: String,
    pub(crate) style: IdStyle,
}

/// The ids of a generation's calls.
#[derive(Clone, Debug)]
pub(crate) struct CallIds {
    seed: u64,
    /// The form of made-up ids. `None`: the format has none.
    form: Option<IdStyle>,
    /// Whether words that the model has written are replaced.
    renews: bool,
    taken: HashSet<String>,
}

impl CallIds {
    pub(crate) fn new(seed: u64, form: Option<IdStyle>) -> Self {
        CallIds { seed, form, renews: false, taken: HashSet::new() }
    }

    /// Reserves ids: no call gets one of them.
    pub(crate) fn reserve(&mut self, ids: impl IntoIterator<Item = String>) {
        self.taken.extend(ids);
    }

    /// See [`Extractor::renew_ids`](crate::Extractor::renew_ids).
    pub(crate) fn renew(&mut self) {
        self.renews = true;
    }

    /// The id of the call with this number: the id that the model has written, the next free one in
    /// its style, or one made up.
    pub(crate) fn next(&mut self, call: usize, written: Option<WireCallId>) -> String {
        let free = |id: &String| !self.taken.contains(id);
        let seeds = (0..).map(|round| self.seed.wrapping_add(round));
        let id = match &written {
            Some(WireCallId { prefix, number, style }) if self.renews && !style.is_number() => {
                let len = number.len().max(RENEWED_LEN);
                seeds.map(|seed| prefix.clone() + &word(seed, call, len)).find(free)
            }
            Some(WireCallId { prefix, number, style }) => {
                let numbered = (call..).map(|number| prefix.clone() + &style.write(number, ""));
                std::iter::once(prefix.clone() + number).chain(numbered).find(free)
            }
            None => seeds.map(|seed| made_up(self.form, seed, call)).find(free),
        };
        let id = id.unwrap_or_default();
        self.taken.insert(id.clone());
        id
    }
}

impl WireFormat {
    /// The id of a call in the form that the format's ids have, for ids that another program has
    /// made: chat templates refuse or rewrite other forms. An id of this form is kept, and so are
    /// all ids if the format has no form or writes numbers. The result depends on the id alone, so
    /// that a call and its result still have the same one. Cost: linear.
    pub fn conforming_id(&self, id: &str) -> String {
        match self.id_form() {
            Some(form) if !form.fits(id) => {
                let add = |hash, byte| SplitMix64::new(hash ^ u64::from(byte)).next_u64();
                made_up(Some(form), id.bytes().fold(0, add), 0)
            }
            _ => id.to_owned(),
        }
    }
}

/// A made-up id of a form, if there is one.
fn made_up(form: Option<IdStyle>, seed: u64, call: usize) -> String {
    let form = form.unwrap_or(IdStyle::Identifier);
    let prefix = if form.has('_') { "call_" } else { "" };
    prefix.to_owned() + &word(seed, call, ID_LEN.min(form.lengths().end() - prefix.len()))
}

/// The number of letters and digits of a made-up id, if its form allows as many.
const ID_LEN: usize = 16;

/// The least number of letters and digits of an id that replaces the model's, which every style of
/// words allows.
const RENEWED_LEN: usize = 9;

/// So many letters and digits, a function of the seed and the call's number.
fn word(seed: u64, call: usize, len: usize) -> String {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = SplitMix64::new(mix(mix(seed).wrapping_add(call as u64)));
    (0..len).map(|_| char::from(ALPHABET[random.below(ALPHABET.len())])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewed_ids_keep_the_form_and_not_the_word() {
        let next = |style: IdStyle, number: &str, seed: u64| {
            let mut ids = CallIds::new(seed, None);
            ids.renew();
            let number = number.to_owned();
            ids.next(2, Some(WireCallId { prefix: "p.".to_owned(), number, style }))
        };
        for (style, written) in [
            (IdStyle::Nine, "abcdefghi"),
            (IdStyle::Word, "abcdefgh"),
            (IdStyle::Word, "abcdefghijklmnop"),
            (IdStyle::Identifier, "x"),
            (IdStyle::Identifier, "call_7-a_long_one"),
        ] {
            let (one, two) = (next(style, written, 1), next(style, written, 2));
            assert_ne!(one, two);
            for id in [one, two] {
                let id = id.strip_prefix("p.").unwrap();
                assert_ne!(id, written);
                assert_eq!(style.write(0, id), id);
            }
        }
        for style in [IdStyle::FromZero, IdStyle::FromOne] {
            assert_eq!(next(style, "4", 1), "p.4");
        }
    }
}
