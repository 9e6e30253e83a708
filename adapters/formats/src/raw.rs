//! Texts that can stand raw before a delimiter: those in which, delimiter included, it comes nowhere but at the end.

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::{Combine, Dfa, DfaBuilder, TooLarge};
use louver::ir::{Expr, regular};
use std::collections::BTreeSet;

/// What stands behind a raw text. The default is nothing: any text may stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Between the text and what ends it.
    pub(crate) trail: Vec<u8>,
    /// Any of these ends it.
    pub(crate) ends: Vec<Vec<u8>>,
}

/// UTF-8 texts that can stand in the frame. Fails past `limit` states.
pub(crate) fn text_dfa(frame: &Frame, limit: usize) -> Result<Dfa, TooLarge> {
    utf8_and(&frame.ends, Some(&frame.trail), limit)
}

/// UTF-8 texts in which none of these stands. Fails past `limit` states.
pub(crate) fn text_without(excludes: &[Vec<u8>], limit: usize) -> Result<Dfa, TooLarge> {
    utf8_and(excludes, None, limit)
}

fn utf8_and(texts: &[Vec<u8>], before: Option<&[u8]>, limit: usize) -> Result<Dfa, TooLarge> {
    let utf8 =
        regular::automaton(&Expr::star(spell_utf8(&SCALARS)), &[], limit).map_err(|_| TooLarge::States { limit })?;
    if texts.is_empty() {
        return Ok(utf8);
    }
    Ok(utf8.combine(&without(texts, before), Combine::And, limit)?.minimize())
}

/// Bytes in which none of the texts stands. With `before`, those behind which that and one of the texts can stand, and in which,
/// up to its last byte, none has come before.
fn without(texts: &[Vec<u8>], before: Option<&[u8]>) -> Dfa {
    // A state is the longest end of what was read that begins one of the texts.
    let begun: BTreeSet<&[u8]> = texts.iter().flat_map(|text| (0..text.len()).map(move |n| &text[..n])).collect();
    let states: Vec<&[u8]> = begun.into_iter().collect();
    let next = |state: &[u8], byte: u8| -> Option<usize> {
        let read = [state, &[byte]].concat();
        if texts.iter().any(|text| read.ends_with(text)) {
            return None;
        }
        (0..read.len()).find_map(|from| states.binary_search(&&read[from..]).ok()).or(Some(0))
    };
    let fits = |at: usize| {
        let Some(trail) = before else { return true };
        texts.iter().any(|end| {
            let (_, but_last) = end.split_last().unwrap_or((&0, &[]));
            let rest = trail.iter().chain(but_last);
            rest.copied().try_fold(at, |at, byte| next(states[at], byte)).is_some()
        })
    };
    let mut builder = DfaBuilder::new();
    (0..states.len()).for_each(|at| {
        builder.state(fits(at));
    });
    for (at, state) in states.iter().enumerate() {
        let mut from = 0u32;
        while from <= 255 {
            let to = next(state, from as u8);
            let until = (from..=255).take_while(|&byte| next(state, byte as u8) == to).last().unwrap_or(from);
            if let Some(to) = to {
                builder.edge(at as u32, from, until, to as u32);
            }
            from = until + 1;
        }
    }
    builder.finish().minimize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every short text over a few letters: it can stand there exactly if the first end in all of it is the last.
    #[test]
    fn ends_come_at_the_end() {
        let cases: [(&[u8], &[&[u8]]); 5] =
            [(b"", &[b"aba"]), (b"b", &[b"ab"]), (b"", &[b"ab", b"bb"]), (b"\n", &[b"<a\n"]), (b"b", &[b"aa"])];
        let letters = b"ab\n<";
        for (trail, ends) in cases {
            let frame = Frame { trail: trail.to_vec(), ends: ends.iter().map(|end| end.to_vec()).collect() };
            let dfa = text_dfa(&frame, 1_000).expect("small");
            let mut texts = vec![Vec::new()];
            let (mut fitting, mut others) = (0, 0);
            while let Some(text) = texts.pop() {
                if text.len() < 5 {
                    texts.extend(letters.iter().map(|&letter| [&text[..], &[letter]].concat()));
                }
                let first =
                    |whole: &[u8]| (0..=whole.len()).find(|&n| ends.iter().any(|end| whole[..n].ends_with(end)));
                let fits = ends.iter().any(|end| {
                    let whole = [&text, trail, end].concat();
                    first(&whole) == Some(whole.len())
                });
                assert_eq!(dfa.accepts(text.iter().map(|&b| b.into())), fits, "{text:?} before {ends:?}");
                if fits { fitting += 1 } else { others += 1 }
            }
            assert!(fitting > 10 && others > 10, "{fitting} and {others}");
        }
        assert!(!text_dfa(&Frame::default(), 1_000).expect("small").accepts([0xff]));
        // Without: what stands there and contains none at all.
        let dfa = text_without(&[b"ab".to_vec(), b"<".to_vec()], 1_000).expect("small");
        for (text, free) in [("", true), ("a", true), ("aab", false), ("ba\u{e9}", true), ("b<", false)] {
            assert_eq!(dfa.accepts(text.bytes().map(u32::from)), free, "{text:?}");
        }
    }
}
