//! Raw texts: unescaped texts that end at a delimiter.
//!
//! A text can stand before its delimiter if a reader that stops at the first delimiter finds
//! exactly that text: in text and delimiter together, the delimiter occurs at the end only.

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge};
use louver::ir::{Expr, regular};
use std::collections::VecDeque;

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
        let before = AhoCorasick::new(&context.ends).before_delimiter(context);
        text = text.combine(&before, Combine::And, limit)?;
    }
    if !context.excludes.is_empty() {
        let without = AhoCorasick::new(&context.excludes).dfa(|_| true);
        text = text.combine(&without, Combine::And, limit)?;
    }
    Ok(text.minimize())
}

/// The automaton of the byte strings that contain none of the texts and do not end with the
/// beginning of one.
pub(crate) fn ends_clean(texts: &[Vec<u8>]) -> Dfa {
    AhoCorasick::new(texts).dfa(|node| node == 0)
}

/// The automaton of Aho and Corasick (1975): a node for each prefix of a text, the first for the
/// empty prefix.
struct AhoCorasick {
    /// The bytes of the texts, ascending; any other byte leads to the first node.
    bytes: Vec<u8>,
    /// The next node by node and byte. `None` where an occurrence of a text ends.
    next: Vec<Vec<Option<usize>>>,
}

impl AhoCorasick {
    fn new(texts: &[Vec<u8>]) -> AhoCorasick {
        let bytes: Vec<u8> = ByteSet::from_bytes(&texts.concat()).iter().collect();
        let column = |byte: u8| bytes.binary_search(&byte).unwrap_or(0);
        let (mut children, mut is_end) = (vec![vec![None; bytes.len()]], vec![false]);
        for text in texts {
            let mut at = 0;
            for &byte in text {
                at = children[at][column(byte)].unwrap_or_else(|| {
                    children.push(vec![None; bytes.len()]);
                    is_end.push(false);
                    let new = children.len() - 1;
                    children[at][column(byte)] = Some(new);
                    new
                });
            }
            is_end[at] = true;
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
                        is_end[child] |= is_end[other];
                        todo.push_back(child);
                    }
                    (None, other) => *child = Some(other),
                }
            }
        }
        let without_ends = |row: Vec<Option<usize>>| {
            row.into_iter().map(|to| to.filter(|&to| !is_end[to])).collect()
        };
        let next = children.into_iter().map(without_ends).collect();
        AhoCorasick { bytes, next }
    }

    fn step(&self, node: usize, byte: u8) -> Option<usize> {
        self.bytes.binary_search(&byte).map_or(Some(0), |column| self.next[node][column])
    }

    /// The automaton of the byte strings that contain no text and lead to an accepting node.
    fn dfa(&self, accepts: impl Fn(usize) -> bool) -> Dfa {
        let mut builder = DfaBuilder::new();
        (0..self.next.len()).for_each(|node| {
            builder.state(accepts(node));
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

    /// The automaton of the byte strings in which, with the trail and a delimiter after them, the
    /// first occurrence of a delimiter is that one.
    fn before_delimiter(&self, context: &RawContext) -> Dfa {
        self.dfa(|node| {
            context.ends.iter().any(|end| {
                let (_, but_last) = end.split_last().unwrap_or((&0, &[]));
                let mut rest = context.trail.iter().chain(but_last).copied();
                rest.try_fold(node, |node, byte| self.step(node, byte)).is_some()
            })
        })
    }
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
