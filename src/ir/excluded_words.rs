//! Texts other than some words, up to their closing text: the names that an object does not
//! declare.
//!
//! As an expression, it is as large as its words. As a graph it is a trie with a node for each
//! prefix of a word.

use super::{Expr, Graph, Literal};
use crate::fsm::ByteSet;
use crate::ids::RuleId;

/// Texts that share a prefix with the words and are none of them. A text reads a prefix of a word
/// (perhaps empty), then one of:
///
/// * a byte that no word continues with, and `tail`;
/// * `other`;
/// * `close`, if the prefix is not a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Except {
    /// The words, sorted, without duplicates.
    pub words: Vec<Literal>,
    /// The bytes by which a text may leave the words.
    pub leave: ByteSet,
    /// What follows such a byte.
    pub tail: RuleId,
    /// What may follow a prefix instead.
    pub other: RuleId,
    /// What follows a prefix that is not a word. Not empty.
    pub close: Literal,
}

impl Except {
    /// The expression as a graph: the trie of the words. Cost: linear in the words.
    pub fn to_graph(&self) -> Expr {
        let mut graph = Graph::default();
        let (start, end, free) = (graph.node(), graph.node(), graph.node());
        graph.start = start;
        graph.ends.push(end);
        graph.edge(free, Expr::Ref(self.tail), end);
        // (node, words below it, bytes read of them)
        let mut stack = vec![(start, &self.words[..], 0usize)];
        while let Some((node, words, read)) = stack.pop() {
            let mut rest = match words.split_first() {
                Some((first, rest)) if first.len() == read => rest,
                _ => {
                    graph.edge(node, Expr::bytes(&self.close), end);
                    words
                }
            };
            let mut leave = self.leave;
            while let Some(&byte) = rest.first().and_then(|word| word.get(read)) {
                let group = rest.partition_point(|word| word.get(read) == Some(&byte));
                let child = graph.node();
                graph.edge(node, Expr::bytes(&[byte]), child);
                stack.push((child, &rest[..group], read + 1));
                leave.remove(byte);
                rest = &rest[group..];
            }
            graph.edge(node, Expr::class(leave), free);
            graph.edge(node, Expr::Ref(self.other), end);
        }
        Expr::Graph(Box::new(graph))
    }

    /// Estimated number of states as a graph.
    pub(crate) fn state_estimate(&self) -> usize {
        self.words.iter().map(|word| word.len()).sum::<usize>() + 3
    }

    /// Whether some text is derived, whatever the rules derive.
    pub(crate) fn is_always_productive(&self) -> bool {
        self.words.first().is_none_or(|word| !word.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Compiled;
    use crate::ir::GrammarBuilder;
    use crate::limits::Limits;
    use crate::matcher::Recognizer;

    /// All texts of up to `n` bytes of `abx#`.
    fn texts(n: usize) -> Vec<Vec<u8>> {
        let mut out = vec![Vec::new()];
        for from in 0.. {
            let Some(text) = out.get(from).cloned() else { return out };
            if text.len() < n {
                out.extend(b"abx#".iter().map(|&byte| [&text[..], &[byte]].concat()));
            }
        }
        out
    }

    #[test]
    fn excluded_words_equal_their_graph() {
        for words in
            [vec![], vec!["a"], vec!["", "ab"], vec!["a", "ab", "ba"], vec!["aab", "ab", "b"]]
        {
            let words: Vec<Literal> =
                words.into_iter().map(|word| word.as_bytes().into()).collect();
            let mut builder = GrammarBuilder::new();
            // After the words: letters and `#`. Instead of a byte: `x#`.
            let tail =
                Expr::seq([Expr::star(Expr::Class(ByteSet::from_bytes(b"abx"))), Expr::text("#")]);
            let tail = builder.rule("tail", tail);
            let other = builder.rule("other", Expr::text("x#"));
            let except = Except {
                words: words.clone(),
                leave: ByteSet::from_bytes(b"ab"),
                tail,
                other,
                close: b"#"[..].into(),
            };
            let starts = [except.to_graph(), Expr::Except(Box::new(except))].map(|body| {
                let mut builder = builder.clone();
                let start = builder.rule("start", body);
                let compiled =
                    Compiled::new(builder.finish(start).unwrap(), &Limits::default()).unwrap();
                Recognizer::new(compiled.into())
            });
            let mut starts = starts;
            for text in texts(5) {
                let begins = |read: &[u8]| {
                    read.is_empty() || words.iter().any(|word| word.starts_with(read))
                };
                let expected = (0..=text.len()).any(|read| {
                    let (before, rest) = text.split_at(read);
                    begins(before)
                        && (rest == b"x#"
                            || rest == b"#" && !words.iter().any(|word| **word == *before)
                            || rest.split_first().is_some_and(|(byte, tail)| {
                                b"ab".contains(byte)
                                    && !words.iter().any(|word| word.starts_with(&text[..=read]))
                                    && tail
                                        .strip_suffix(b"#")
                                        .is_some_and(|text| !text.contains(&b'#'))
                            }))
                });
                for recognizer in &mut starts {
                    recognizer.reset();
                    let accepted = recognizer.push(&text).is_ok() && recognizer.is_complete();
                    assert_eq!(
                        accepted,
                        expected,
                        "{words:?} {:?}",
                        String::from_utf8_lossy(&text)
                    );
                }
            }
        }
    }
}
