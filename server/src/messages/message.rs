//! The message object of the Messages API: stop reason, usage and content.

use std::sync::Arc;

use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_mistralrs::Generation;
use serde_json::{Value, json};

use crate::messages::translate::MessageOptions;
use crate::served_model::ServedModel;
use crate::turn::{FinishedChoice, RunningTurn};

/// Number of bytes at the end of a text that identify the place where it was stopped.
const TEXT_TAIL_BYTES: usize = 64;

/// Builds the message and its stream events, from what all states of the message share.
#[derive(Debug)]
pub(crate) struct MessageBuilder {
    id: String,
    served: Arc<ServedModel>,
    pub(crate) options: MessageOptions,
    prompt_tokens: usize,
}

impl MessageBuilder {
    /// Creates the builder for a started request. `id` begins with `msg_`.
    pub(crate) fn new(
        id: String,
        running: &RunningTurn,
        options: MessageOptions,
    ) -> MessageBuilder {
        let served = running.served().clone();
        MessageBuilder { id, served, options, prompt_tokens: running.prompt_tokens }
    }

    /// The event `message_start`: the message before its content.
    pub(crate) fn start_event(&self) -> Value {
        let mut message = self.head();
        message["content"] = json!([]);
        message["stop_reason"] = Value::Null;
        message["stop_sequence"] = Value::Null;
        message["usage"] = self.usage(0, 0);
        json!({"type": "message_start", "message": message})
    }

    /// The event `message_delta`: stop reason, usage, and the member `louver`.
    pub(crate) fn delta_event(&self, finished: &FinishedChoice) -> Value {
        let generation = &finished.generation;
        let (reason, sequence) = self.stop_reason(generation);
        let mut event = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": self.usage(generation.tokens.len(), generation.reasoning_tokens),
        });
        if let Some(louver) = finished.louver_member() {
            event["louver"] = louver;
        }
        event
    }

    /// The JSON text of the message with these blocks.
    pub(crate) fn message(&self, blocks: &[String], finished: &FinishedChoice) -> String {
        let generation = &finished.generation;
        let (reason, sequence) = self.stop_reason(generation);
        let mut tail = json!({
            "stop_reason": reason,
            "stop_sequence": sequence,
            "usage": self.usage(generation.tokens.len(), generation.reasoning_tokens),
        });
        if let Some(louver) = finished.louver_member() {
            tail["louver"] = louver;
        }
        let (head, tail) = (self.head().to_string(), tail.to_string());
        // Joins the members of both objects.
        let (head, tail) = (head.trim_end_matches('}'), tail.trim_start_matches('{'));
        format!(r#"{head},"content":[{}],{tail}"#, blocks.join(","))
    }

    fn head(&self) -> Value {
        json!({"id": self.id, "type": "message", "role": "assistant", "model": self.served.name})
    }

    fn usage(&self, output: usize, thinking: usize) -> Value {
        json!({
            "input_tokens": self.prompt_tokens,
            "output_tokens": output,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens_details": {"thinking_tokens": thinking},
        })
    }

    fn stop_reason(&self, generation: &Generation) -> (&'static str, Option<&str>) {
        if generation.is_truncated() {
            return ("max_tokens", None);
        }
        if !generation.turn.calls.is_empty() {
            return ("tool_use", None);
        }
        let vocab = self.served.louver.engine().vocab();
        let answer = generation.tokens.get(generation.reasoning_tokens..).unwrap_or_default();
        let stopped =
            stop_sequence(&self.options.stop_sequences, &generation.turn.text, answer, vocab);
        (if stopped.is_some() { "stop_sequence" } else { "end_turn" }, stopped)
    }
}

/// The stop sequence that ended the text: the one that follows it in the generated tokens. The turn
/// does not contain it. Text contains no stop sequence, so that there is no other place. Invalid
/// UTF-8 became replacement characters, so that only what follows the last of them is compared.
fn stop_sequence<'s>(
    sequences: &'s [String],
    text: &str,
    tokens: &[u32],
    vocab: &Vocabulary,
) -> Option<&'s str> {
    if sequences.is_empty() {
        return None;
    }
    let bytes = tokens.iter().filter_map(|token| vocab.bytes(TokenId::from_raw(*token)));
    let generated: Vec<u8> = bytes.flatten().copied().collect();
    let text = text.rsplit(char::REPLACEMENT_CHARACTER).next().unwrap_or_default();
    let tail = &text.as_bytes()[text.len().saturating_sub(TEXT_TAIL_BYTES)..];
    let follows = |sequence: &&String| {
        let stopped = [tail, sequence.as_bytes()].concat();
        generated.windows(stopped.len()).any(|window| window == stopped)
    };
    // The longest one, if one is the beginning of another.
    sequences.iter().filter(follows).max_by_key(|sequence| sequence.len()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_sequence_follows_the_text() {
        let vocab = Vocabulary::toy(&[]);
        let tokens = |text: &str| -> Vec<u32> { text.bytes().map(u32::from).collect() };
        let sequences = ["\n\n", "END", "ENDED"].map(str::to_owned);
        let long = "x".repeat(200);
        for (text, generated, expected) in [
            ("a", "aEND", Some("END")),
            ("a", "aENDED", Some("ENDED")),
            ("a", "a\n\n</turn>", Some("\n\n")),
            ("", "END", Some("END")),
            ("a", "a", None),
            (&*long, &*format!("{long}END"), Some("END")),
        ] {
            let found = stop_sequence(&sequences, text, &tokens(generated), &vocab);
            assert_eq!(found, expected, "{generated:?}");
        }
        let invalid = [&[0xC3_u32, 0xC3][..], &tokens("aEND")].concat();
        assert_eq!(stop_sequence(&sequences, "\u{fffd}a", &invalid, &vocab), Some("END"));
        assert_eq!(stop_sequence(&[], "a", &tokens("aEND"), &vocab), None);
    }
}
