//! Raw texts: unescaped texts that end at a delimiter.
//!
//! A text can stand before its delimiter if a reader that stops at the first delimiter finds
//! exactly that text: in text and delimiter together, the delimiter occurs at the end only.

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::{Combine, Dfa, TooLarge, WordSearch};
use louver::ir::Expr;
use louver::ir::regular::{self, BYTES};

/// The context of a raw text. By default, nothing follows it and any text is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawContext {
    /// Between the text and its delimiter.
    pub(crate) trail: Vec<u8>,
    /// The delimiters, each of which ends the text.
    pub(crate) ends: Vec<Vec<u8>>,
    /// Texts that the text must not contain.
    pub(crate) excludes: Vec<Vec<u8>>,
}

impl RawContext {
    /// The context of a text that ends at the first of these delimiters.
    pub(crate) fn until(ends: impl IntoIterator<Item = String>) -> RawContext {
        let ends = ends.into_iter().map(String::into_bytes).collect();
        RawContext { ends, ..RawContext::default() }
    }
}

/// The automaton of the UTF-8 texts that are allowed in the context. Fails past `limit` states.
pub(crate) fn text_dfa(context: &RawContext, limit: usize) -> Result<Dfa, TooLarge> {
    let utf8 = Expr::star(spell_utf8(&SCALARS));
    let mut text = regular::automaton(&utf8, &[], limit).map_err(|_| TooLarge::States { limit })?;
    if !context.ends.is_empty() {
        let before = before_delimiter(context);
        text = text.combine(&before, Combine::And, limit)?;
    }
    if !context.excludes.is_empty() {
        let without = search(&context.excludes).without(&BYTES, |_| true);
        text = text.combine(&without, Combine::And, limit)?;
    }
    Ok(text.minimize())
}

/// The automaton of the byte strings that contain none of the texts and do not end with the
/// beginning of one.
pub(crate) fn ends_clean(texts: &[Vec<u8>]) -> Dfa {
    search(texts).without(&BYTES, |node| node == 0)
}

/// The search for delimiters or excluded texts.
fn search(texts: &[Vec<u8>]) -> WordSearch {
    WordSearch::new(texts.iter().map(|text| text.iter().copied()))
}

/// The automaton of the byte strings in which, with the trail and a delimiter after them, the first
/// occurrence of a delimiter is that one.
fn before_delimiter(context: &RawContext) -> Dfa {
    let search = search(&context.ends);
    search.without(&BYTES, |node| {
        context.ends.iter().any(|end| {
            let (_, but_last) = end.split_last().unwrap_or((&0, &[]));
            let mut rest = context.trail.iter().chain(but_last);
            rest.try_fold(node, |node, &byte| search.step(node, byte.into())).is_some()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every short text over a few letters by the definition.
    #[test]
    fn texts_are_allowed_if_the_first_delimiter_is_at_the_end() {
        let cases: [(&[u8], &[&[u8]]); 5] = [
            (b"", &[b"aba"]),
            (b"b", &[b"ab"]),
            (b"", &[b"ab", b"bb"]),
            (b"\n", &[b"<a\n"]),
            (b"b", &[b"aa"]),
        ];
        let letters = b"ab\n<";
        for (trail, ends) in cases {
            let context = RawContext {
                trail: trail.to_vec(),
                ends: ends.iter().map(|end| end.to_vec()).collect(),
                ..RawContext::default()
            };
            let dfa = text_dfa(&context, 1_000).expect("small");
            let mut texts = vec![Vec::new()];
            let (mut fitting, mut others) = (0, 0);
            while let Some(text) = texts.pop() {
                if text.len() < 5 {
                    texts.extend(letters.iter().map(|&letter| [&text[..], &[letter]].concat()));
                }
                let first = |whole: &[u8]| {
                    (0..=whole.len()).find(|&n| ends.iter().any(|end| whole[..n].ends_with(end)))
                };
                let fits = ends.iter().any(|end| {
                    let whole = [&text, trail, end].concat();
                    first(&whole) == Some(whole.len())
                });
                assert_eq!(
                    dfa.accepts(text.iter().map(|&b| b.into())),
                    fits,
                    "{text:?} before {ends:?}"
                );
                if fits { fitting += 1 } else { others += 1 }
            }
            assert!(fitting > 10 && others > 10, "{fitting} and {others}");
        }
        assert!(!text_dfa(&RawContext::default(), 1_000).expect("small").accepts([0xff]));
        let excludes = vec![b"ab".to_vec(), b"<".to_vec()];
        let context = RawContext { excludes, ..RawContext::default() };
        let dfa = text_dfa(&context, 1_000).expect("small");
        for (text, free) in
            [("", true), ("a", true), ("aab", false), ("ba\u{e9}", true), ("b<", false)]
        {
            assert_eq!(dfa.accepts(text.bytes().map(u32::from)), free, "{text:?}");
        }
    }
}
