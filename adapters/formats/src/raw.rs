//! Texts that can stand raw before a delimiter: those in which, delimiter included, it comes nowhere but at the end.

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge};
use louver::ir::{Expr, regular};
use std::collections::VecDeque;

/// What stands behind a raw text. The default is nothing: any text may stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Between the text and what ends it.
    pub(crate) trail: Vec<u8>,
    /// Any of these ends it.
    pub(crate) ends: Vec<Vec<u8>>,
    /// The text contains none of these.
    pub(crate) excludes: Vec<Vec<u8>>,
}

/// UTF-8 texts that can stand in the frame. Fails past `limit` states.
pub(crate) fn text_dfa(frame: &Frame, limit: usize) -> Result<Dfa, TooLarge> {
    let text = if frame.ends.is_empty() {
        utf8(limit)?
    } else {
        utf8(limit)?.combine(&Beginnings::new(&frame.ends).before(frame), Combine::And, limit)?
    };
    if frame.excludes.is_empty() {
        return Ok(text.minimize());
    }
    Ok(text
        .combine(&Beginnings::new(&frame.excludes).dfa(|_| true), Combine::And, limit)?
        .minimize())
}

/// UTF-8 texts in which none of these stands. Fails past `limit` states.
pub(crate) fn text_without(excludes: &[Vec<u8>], limit: usize) -> Result<Dfa, TooLarge> {
    text_dfa(&Frame { excludes: excludes.to_vec(), ..Frame::default() }, limit)
}

/// Bytes in which none of these stands, and whose end begins none.
pub(crate) fn ends_clean(texts: &[Vec<u8>]) -> Dfa {
    Beginnings::new(texts).dfa(|node| node == 0)
}

fn utf8(limit: usize) -> Result<Dfa, TooLarge> {
    regular::automaton(&Expr::star(spell_utf8(&SCALARS)), &[], limit)
        .map_err(|_| TooLarge::States { limit })
}

/// The automaton of Aho and Corasick: a node for each beginning of a text, the first for the empty
/// one.
struct Beginnings {
    /// The bytes of the texts, ascending; any other byte leads to the first node.
    bytes: Vec<u8>,
    /// By node and byte; none where a text is whole.
    next: Vec<Vec<Option<usize>>>,
}

impl Beginnings {
    fn new(texts: &[Vec<u8>]) -> Beginnings {
        let bytes: Vec<u8> = ByteSet::of(&texts.concat()).iter().collect();
        let column = |byte: u8| bytes.binary_search(&byte).unwrap_or(0);
        let (mut children, mut whole) = (vec![vec![None; bytes.len()]], vec![false]);
        for text in texts {
            let mut at = 0;
            for &byte in text {
                at = children[at][column(byte)].unwrap_or_else(|| {
                    children.push(vec![None; bytes.len()]);
                    whole.push(false);
                    let new = children.len() - 1;
                    children[at][column(byte)] = Some(new);
                    new
                });
            }
            whole[at] = true;
        }
        let mut fail = vec![0; children.len()];
        let mut todo = VecDeque::from([0]);
        while let Some(at) = todo.pop_front() {
            let others =
                if at == 0 { vec![Some(0); bytes.len()] } else { children[fail[at]].clone() };
            for (child, other) in children[at].iter_mut().zip(others) {
                match (*child, other.unwrap_or(0)) {
                    (Some(child), other) => {
                        fail[child] = other;
                        whole[child] |= whole[other];
                        todo.push_back(child);
                    }
                    (None, other) => *child = Some(other),
                }
            }
        }
        let unless_whole = |row: Vec<Option<usize>>| {
            row.into_iter().map(|to| to.filter(|&to| !whole[to])).collect()
        };
        let next = children.into_iter().map(unless_whole).collect();
        Beginnings { bytes, next }
    }

    fn step(&self, node: usize, byte: u8) -> Option<usize> {
        self.bytes.binary_search(&byte).map_or(Some(0), |column| self.next[node][column])
    }

    /// Bytes in which no text stands and that lead to a node that fits.
    fn dfa(&self, fits: impl Fn(usize) -> bool) -> Dfa {
        let mut builder = DfaBuilder::new();
        (0..self.next.len()).for_each(|node| {
            builder.state(fits(node));
        });
        for node in 0..self.next.len() {
            let mut from = 0u32;
            while from <= 255 {
                let to = self.step(node, from as u8);
                let until = (from..=255)
                    .take_while(|&byte| self.step(node, byte as u8) == to)
                    .last()
                    .unwrap_or(from);
                if let Some(to) = to {
                    builder.edge(node as u32, from, until, to as u32);
                }
                from = until + 1;
            }
        }
        builder.finish().minimize()
    }

    /// Bytes behind which the trail and an end can stand, and in which, up to its last byte, none
    /// has come before.
    fn before(&self, frame: &Frame) -> Dfa {
        self.dfa(|node| {
            frame.ends.iter().any(|end| {
                let (_, but_last) = end.split_last().unwrap_or((&0, &[]));
                let mut rest = frame.trail.iter().chain(but_last).copied();
                rest.try_fold(node, |node, byte| self.step(node, byte)).is_some()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every short text over a few letters: it can stand there exactly if the first end in all of it is the last.
    #[test]
    fn ends_come_at_the_end() {
        let cases: [(&[u8], &[&[u8]]); 5] = [
            (b"", &[b"aba"]),
            (b"b", &[b"ab"]),
            (b"", &[b"ab", b"bb"]),
            (b"\n", &[b"<a\n"]),
            (b"b", &[b"aa"]),
        ];
        let letters = b"ab\n<";
        for (trail, ends) in cases {
            let frame = Frame {
                trail: trail.to_vec(),
                ends: ends.iter().map(|end| end.to_vec()).collect(),
                ..Frame::default()
            };
            let dfa = text_dfa(&frame, 1_000).expect("small");
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
        assert!(!text_dfa(&Frame::default(), 1_000).expect("small").accepts([0xff]));
        // Without: what stands there and contains none at all.
        let dfa = text_without(&[b"ab".to_vec(), b"<".to_vec()], 1_000).expect("small");
        for (text, free) in
            [("", true), ("a", true), ("aab", false), ("ba\u{e9}", true), ("b<", false)]
        {
            assert_eq!(dfa.accepts(text.bytes().map(u32::from)), free, "{text:?}");
        }
    }
}
