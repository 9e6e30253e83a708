//! Log probabilities in the format of Chat Completions.

use std::borrow::Cow;

use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_mistralrs::{Candidate, Phase, Step, token_text};
use serde::{Serialize, Serializer};

/// Log probabilities of the tokens of the response text. Tokens of reasoning, calls and markers are
/// left out. They are written token by token: as JSON values they would take many times the memory
/// of the steps.
#[derive(Debug, Serialize)]
pub(crate) struct ChatLogprobs<'a> {
    #[serde(serialize_with = "write_tokens")]
    content: RecordedTokens<'a>,
    refusal: (),
}

#[derive(Debug)]
struct RecordedTokens<'a> {
    steps: &'a [Step],
    /// Number of alternatives per token. Traced steps may have more.
    top: usize,
    vocab: &'a Vocabulary,
}

#[derive(Serialize)]
struct TokenLogprob<'a> {
    token: Cow<'a, str>,
    logprob: f64,
    bytes: Option<&'a [u8]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<Vec<TokenLogprob<'a>>>,
}

impl<'a> ChatLogprobs<'a> {
    pub(super) fn new(steps: &'a [Step], top: usize, vocab: &'a Vocabulary) -> ChatLogprobs<'a> {
        ChatLogprobs { content: RecordedTokens { steps, top, vocab }, refusal: () }
    }
}

/// Whether a step is one of the response text.
pub(super) fn is_text(step: &Step) -> bool {
    matches!(step.phase, Phase::Text | Phase::Response | Phase::Free)
}

fn write_tokens<S: Serializer>(
    RecordedTokens { steps, top, vocab }: &RecordedTokens<'_>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let bytes = |token: u32| vocab.bytes(TokenId::from_raw(token));
    let candidate = |candidate: &Candidate| TokenLogprob {
        token: token_text(vocab, candidate.token).into(),
        logprob: candidate.logprob.into(),
        bytes: bytes(candidate.token),
        top_logprobs: None,
    };
    serializer.collect_seq(steps.iter().filter(|step| is_text(step)).map(|step| TokenLogprob {
        token: step.text.as_str().into(),
        logprob: step.logprob.into(),
        bytes: bytes(step.token),
        top_logprobs: Some(step.top.iter().take(*top).map(candidate).collect()),
    }))
}
