//! Response bodies of completions: finished choices as JSON.

use std::collections::VecDeque;

use louver::internals::partial_char_len;
use louver::vocab::Vocabulary;
use louver_mistralrs::{Step, token_text};
use serde_json::{Map, Value, json};

use crate::chat::{ChoiceBody, ChoiceLogprobs, ResponseMeta};
use crate::generation::{FinishedChoice, finish_reason};

/// The member `object` of response bodies and of chunks.
pub(super) const OBJECT: &str = "text_completion";

/// A finished choice.
pub(super) fn choice<'a>(
    meta: &ResponseMeta,
    choice: &'a FinishedChoice,
    vocab: &'a Vocabulary,
) -> ChoiceBody<'a> {
    let generation = &choice.generation;
    let text = &generation.turn.text;
    let logprobs = meta.logprobs.map(|top| {
        let mut logprobs = Logprobs::new(top);
        logprobs.add_steps(generation.steps.iter().cloned());
        logprobs.take(text, vocab)
    });
    let text = text.as_str().into();
    ChoiceBody::new(choice.index, "text", text, logprobs, Some(finish_reason(generation)))
}

/// The writer of a choice's log probabilities: of the tokens whose bytes make up its text. Their
/// text offsets continue from chunk to chunk.
#[derive(Clone, Debug)]
pub(crate) struct Logprobs {
    /// Number of alternatives per token.
    top: usize,
    /// Steps whose tokens begin in text that is still to come, with the characters before each.
    pending: VecDeque<(usize, Step)>,
    /// Characters of the text so far.
    text: usize,
    /// Characters of the tokens so far.
    tokens: CharacterCounter,
}

/// Counts the characters of bytes that come in pieces. What is not UTF-8 counts as the replacement
/// characters that the text has for it.
#[derive(Clone, Debug, Default)]
struct CharacterCounter {
    /// Number of complete characters.
    complete: usize,
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl CharacterCounter {
    /// Adds a piece. Returns the number of characters that end before it.
    fn push(&mut self, piece: &[u8]) -> usize {
        let mut before = self.complete;
        let bytes = [&self.rest[..], piece].concat();
        let (complete, rest) = bytes.split_at(bytes.len() - partial_char_len(&bytes));
        let (begin, mut at) = (std::mem::replace(&mut self.rest, rest.to_vec()).len(), 0);
        for chunk in complete.utf8_chunks() {
            let replaced = Some(chunk.invalid().len()).filter(|len| *len > 0);
            for len in chunk.valid().chars().map(char::len_utf8).chain(replaced) {
                at += len;
                self.complete += 1;
                before += usize::from(at <= begin);
            }
        }
        before
    }
}

impl Logprobs {
    pub(crate) fn new(top: usize) -> Self {
        let (pending, tokens) = (VecDeque::new(), CharacterCounter::default());
        Logprobs { top, pending, text: 0, tokens }
    }

    /// Adds the next steps. Special tokens, such as the one that ends the text, have no bytes.
    pub(crate) fn add_steps(&mut self, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().filter(|step| !step.bytes.is_empty());
        self.pending.extend(steps.map(|step| (self.tokens.push(&step.bytes), step)));
    }

    /// Natural logarithms for the tokens that begin before the end of `text`, which is the next
    /// part of the choice's text. The probabilities are those among the allowed tokens.
    pub(crate) fn take(&mut self, text: &str, vocab: &Vocabulary) -> ChoiceLogprobs<'static> {
        self.text += text.chars().count();
        let taken = self.pending.partition_point(|(offset, _)| *offset < self.text);
        let (offsets, steps): (Vec<usize>, Vec<Step>) = self.pending.drain(..taken).unzip();
        let top = |step: &Step| -> Map<String, Value> {
            let top = step.top.iter().take(self.top);
            top.map(|c| (token_text(vocab, c.token), c.logprob.into())).collect()
        };
        let top: Option<Vec<Map<String, Value>>> =
            (self.top > 0).then(|| steps.iter().map(top).collect());
        ChoiceLogprobs::Completion(json!({
            "tokens": steps.iter().map(|step| &step.text).collect::<Vec<_>>(),
            "token_logprobs": steps.iter().map(|step| step.logprob).collect::<Vec<_>>(),
            "top_logprobs": top,
            "text_offset": offsets,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_pieces_are_counted() {
        for (pieces, expected) in [
            (&[&b"ab"[..], b"c"][..], &[0, 2][..]),
            (&["ä".as_bytes(), b"b"], &[0, 1]),
            // A character of two pieces, and three bytes that are none.
            (&[b"a\xc3", b"\xa4b", b"c"], &[0, 1, 3]),
            (&[b"\xff", b"\xf2", b"\xd5", b"x"], &[0, 1, 2, 3]),
            (&[b"\xe2\x82", b"\xacx", b"\xe2", b"\x82", b"y"], &[0, 0, 2, 2, 3]),
        ] {
            let mut counter = CharacterCounter::default();
            let found: Vec<usize> = pieces.iter().map(|piece| counter.push(piece)).collect();
            assert_eq!(found, expected, "{pieces:?}");
        }
    }
}
