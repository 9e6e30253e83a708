//! A model that wants recorded answers: the logits of the recorded token are the largest, so that
//! what the loop draws does not depend on a model's weights. Steps are then counted on real texts.

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use louver::{TokenId, Vocabulary};

use crate::serving::model::{Chunk, Model, SequenceCache};

/// Longest token that is looked for within a recorded one, in bytes.
const LONGEST_TOKEN: usize = 64;

/// A recorded text and where its tokens begin.
struct Answer {
    text: Vec<u8>,
    tokens: HashMap<usize, u32>,
}

/// Answers by prompt.
pub(crate) struct Replay {
    vocab: Arc<Vocabulary>,
    stop: u32,
    prompts: Vec<Vec<u32>>,
    answers: Vec<Answer>,
}

/// The tokens of a sequence, and the number of its prompt once that is known.
pub(crate) struct Transcript {
    tokens: Vec<u32>,
    prompt: Option<usize>,
}

impl Replay {
    pub(crate) fn new(vocab: Arc<Vocabulary>, stop: u32) -> Self {
        Self { vocab, stop, prompts: Vec::new(), answers: Vec::new() }
    }

    /// Records the answer to a prompt. No prompt may begin with another one.
    pub(crate) fn record(&mut self, prompt: Vec<u32>, answer: &[u32]) {
        let (mut text, mut tokens) = (Vec::new(), HashMap::new());
        for &token in answer {
            tokens.insert(text.len(), token);
            text.extend_from_slice(self.spelling(token));
        }
        self.prompts.push(prompt);
        self.answers.push(Answer { text, tokens });
    }

    /// The bytes of a token; the name of a special one.
    pub(crate) fn spelling(&self, token: u32) -> &[u8] {
        let token = TokenId::from_raw(token);
        let special = || self.vocab.special_name(token).unwrap_or_default().as_bytes();
        self.vocab.bytes(token).unwrap_or_else(special)
    }

    /// The token that follows: the recorded one, or, where the text so far is cut in another way,
    /// the longest one that spells on. The stop token where the text is not the recorded one.
    fn wanted(&self, prompt: usize, tokens: &[u32]) -> u32 {
        let answer = &self.answers[prompt];
        let so_far: Vec<u8> = tokens[self.prompts[prompt].len()..]
            .iter()
            .flat_map(|&token| self.spelling(token))
            .copied()
            .collect();
        let Some(rest) = answer.text.strip_prefix(&so_far[..]) else { return self.stop };
        if let Some(&token) = answer.tokens.get(&so_far.len()) {
            return token;
        }
        let lengths = (1..=rest.len().min(LONGEST_TOKEN)).rev();
        lengths
            .filter_map(|n| self.vocab.find(&rest[..n]))
            .map(TokenId::raw)
            .next()
            .unwrap_or(self.stop)
    }
}

impl Model for Replay {
    type Cache = Transcript;

    fn device(&self) -> &Device {
        &Device::Cpu
    }

    fn context_length(&self) -> usize {
        1 << 20
    }

    fn new_cache(&self) -> Transcript {
        Transcript { tokens: Vec::new(), prompt: None }
    }

    fn forward(&self, chunks: &mut [Chunk<'_, Transcript>]) -> Result<Tensor> {
        let width = self.vocab.width();
        let mut logits = vec![0f32; width * chunks.iter().map(|chunk| chunk.logits).sum::<usize>()];
        let mut rows = logits.chunks_mut(width);
        for chunk in chunks {
            let Transcript { tokens, prompt } = &mut *chunk.cache;
            tokens.extend_from_slice(&chunk.tokens);
            if chunk.logits == 0 {
                continue;
            }
            let find = || self.prompts.iter().position(|known| tokens.starts_with(known));
            *prompt = prompt.or_else(find);
            let Some(prompt) = *prompt else {
                candle_core::bail!("no answer to this prompt is recorded")
            };
            for end in tokens.len() + 1 - chunk.logits..=tokens.len() {
                if let Some(row) = rows.next() {
                    row[self.wanted(prompt, &tokens[..end]) as usize] = 1.0;
                }
            }
        }
        drop(rows);
        let count = logits.len() / width;
        Tensor::from_vec(logits, (count, width), &Device::Cpu)
    }
}

impl SequenceCache for Transcript {
    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }
}
