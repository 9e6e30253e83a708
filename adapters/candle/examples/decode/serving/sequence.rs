//! One sequence: what it reads next, and which tokens it takes.

use louver::{Constraint, Matcher, TokenId, Vocabulary};

use super::draw::Sampling;
use super::lookup::look_up;
use super::model::{Chunk, SequenceCache};
use super::settings::Settings;

/// Most forced bytes and special tokens that are taken at a time.
const LONGEST_FORCED: usize = 256;

/// What a client asks for.
#[derive(Clone)]
pub(crate) struct Request {
    /// The tokens of the prompt, at least one.
    pub(crate) prompt: Vec<u32>,
    /// `None` leaves the sequence unconstrained.
    pub(crate) constraint: Option<Constraint>,
    /// Most tokens to generate.
    pub(crate) max_tokens: usize,
    pub(crate) sampling: Sampling,
}

/// Why a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// A stop token was drawn.
    Stop,
    /// It has as many tokens as it may have.
    Length,
    /// The matcher reached a limit, so the text may be incomplete.
    Limit,
    /// [`cancel`](super::scheduler::DecodeLoop::cancel) was called.
    Cancelled,
}

/// Where a sequence's tokens came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Forward passes from which a token was drawn.
    pub(crate) steps: usize,
    /// Tokens that the grammar forced.
    pub(crate) forced: usize,
    /// Tokens proposed by drafts.
    pub(crate) drafted: usize,
    /// Tokens of drafts that were the ones to take.
    pub(crate) agreed: usize,
}

/// A finished sequence.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// The number that [`submit`](super::scheduler::DecodeLoop::submit) returned.
    pub(crate) id: usize,
    /// The generated tokens without the stop token.
    pub(crate) tokens: Vec<u32>,
    pub(crate) finish: Finish,
    pub(crate) usage: Usage,
}

/// A running sequence.
pub(crate) struct Sequence<C> {
    pub(crate) id: usize,
    pub(crate) sampling: Sampling,
    pub(crate) matcher: Option<Matcher>,
    pub(crate) usage: Usage,
    /// The prompt and what has been generated. Some last tokens are not in the cache yet.
    tokens: Vec<u32>,
    prompt: usize,
    /// Most tokens, the prompt included.
    max_len: usize,
    cache: C,
    /// End of the chunk that is being read.
    chunk_end: usize,
    draft: Vec<u32>,
    finish: Option<Finish>,
}

/// A sequence's state during a step, in parts that are used at the same time.
pub(crate) struct StepParts<'s, C> {
    pub(crate) chunk: Chunk<'s, C>,
    pub(crate) matcher: Option<&'s mut Matcher>,
    pub(crate) draft: &'s [u32],
    /// The position of the token that the first row of logits is for.
    pub(crate) position: usize,
}

impl<C: SequenceCache> Sequence<C> {
    /// Starts a sequence. Tokens that are forced from the beginning are read with the prompt.
    pub(crate) fn new(
        id: usize,
        request: Request,
        cache: C,
        settings: &Settings,
        context_length: usize,
    ) -> Self {
        let prompt = request.prompt.len();
        let mut sequence = Self {
            id,
            sampling: request.sampling,
            matcher: request.constraint.map(|constraint| constraint.matcher()),
            usage: Usage::default(),
            tokens: request.prompt,
            prompt,
            max_len: (prompt + request.max_tokens).min(context_length),
            cache,
            chunk_end: 0,
            draft: Vec::new(),
            finish: None,
        };
        if sequence.tokens.len() >= sequence.max_len {
            sequence.finish = Some(Finish::Length);
        }
        sequence.take_forced(settings);
        sequence
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Chooses the tokens to read next, and a draft if the chunk is the last known one.
    pub(crate) fn plan(&mut self, settings: &Settings) {
        let unread = self.tokens.len() - self.cache.len();
        self.chunk_end = self.cache.len() + unread.min(settings.max_chunk);
        self.draft.clear();
        if self.chunk_end == self.tokens.len() {
            // The token drawn at the end of the draft needs room as well.
            let room = self.max_len - self.tokens.len() - 1;
            self.draft.extend_from_slice(look_up(&self.tokens, settings.draft.min(room)));
        }
    }

    /// The parts of a planned step.
    pub(crate) fn parts(&mut self) -> StepParts<'_, C> {
        let at_end = self.chunk_end == self.tokens.len();
        let unread = &self.tokens[self.cache.len()..self.chunk_end];
        let chunk = Chunk {
            tokens: unread.iter().chain(&self.draft).copied().collect(),
            cache: &mut self.cache,
            logits: if at_end { 1 + self.draft.len() } else { 0 },
        };
        let (matcher, draft) = (self.matcher.as_mut(), &self.draft[..]);
        StepParts { chunk, matcher, draft, position: self.chunk_end }
    }

    /// Takes the drawn tokens: the first one, and each next one while the draft's tokens before it
    /// are those that were taken. Then takes the rest of the draft out of the cache. The matcher
    /// has not moved along the draft, so nothing is taken back there.
    pub(crate) fn accept(
        &mut self,
        drawn: &[Option<u32>],
        settings: &Settings,
        vocab: &Vocabulary,
    ) {
        if drawn.is_empty() {
            return;
        }
        let draft = std::mem::take(&mut self.draft);
        let mut agreed = 0;
        loop {
            let before = self.tokens.len();
            self.take_drawn(drawn[agreed], vocab);
            self.take_forced(settings);
            let taken = &self.tokens[before..];
            let equal = taken.iter().zip(&draft[agreed..]).take_while(|(a, b)| a == b).count();
            agreed += equal;
            if equal < taken.len() || self.is_finished() {
                break;
            }
        }
        self.cache.truncate(self.chunk_end + agreed);
        self.usage.steps += 1;
        self.usage.drafted += draft.len();
        self.usage.agreed += agreed;
        self.draft = draft;
    }

    fn take_drawn(&mut self, token: Option<u32>, vocab: &Vocabulary) {
        let Some(token) = token else {
            self.finish = Some(Finish::Limit);
            return;
        };
        if vocab.is_stop(TokenId::from_raw(token)) {
            let limit = self.matcher.as_ref().is_some_and(|matcher| matcher.limit().is_some());
            self.finish = Some(if limit { Finish::Limit } else { Finish::Stop });
            return;
        }
        self.take(token);
    }

    /// Takes the tokens that the grammar forces next. They are read in one chunk with the token
    /// before them.
    fn take_forced(&mut self, settings: &Settings) {
        let Some(matcher) = self.matcher.as_mut().filter(|_| self.finish.is_none()) else { return };
        for token in settings.forced_tokens(matcher, LONGEST_FORCED) {
            if self.is_finished() {
                return;
            }
            self.take(token.raw());
            self.usage.forced += 1;
        }
    }

    fn take(&mut self, token: u32) {
        if let Some(matcher) = &mut self.matcher
            && matcher.advance(TokenId::from_raw(token)).is_err()
        {
            // Masks are exact, so this is a limit of the parser.
            self.finish = Some(Finish::Limit);
            return;
        }
        self.tokens.push(token);
        if self.tokens.len() == self.max_len {
            self.finish = Some(Finish::Length);
        }
    }

    /// Ends the sequence. `cancelled` counts only if it has not finished.
    pub(crate) fn into_output(self) -> Output {
        Output {
            id: self.id,
            tokens: self.tokens[self.prompt..].to_vec(),
            finish: self.finish.unwrap_or(Finish::Cancelled),
            usage: self.usage,
        }
    }
}
