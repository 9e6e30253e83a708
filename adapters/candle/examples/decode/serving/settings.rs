//! The switches of the loop. None of them changes which tokens are drawn.

use std::sync::Arc;

use louver::{Matcher, TokenId};

/// Cuts text into tokens as the model does.
pub(crate) type Tokenize = dyn Fn(&[u8]) -> Vec<TokenId> + Send + Sync;

/// How the loop runs.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Most rows of the batch.
    pub(crate) max_rows: usize,
    /// Most tokens of a prompt that a row reads in one step.
    pub(crate) max_chunk: usize,
    /// Whether masks are filled while the forward pass runs.
    pub(crate) overlap: bool,
    /// How forced tokens are taken.
    pub(crate) forced: Forced,
    /// Most tokens of a draft; 0 for none.
    pub(crate) draft: usize,
    /// Bytes of masks that stay on the device when no row uses them; of no use on the CPU.
    pub(crate) kept_masks: usize,
}

/// What happens where the grammar allows one text only.
#[derive(Clone)]
pub(crate) enum Forced {
    /// The model is asked for each token.
    Draw,
    /// Its tokens by longest match are taken.
    LongestMatch,
    /// Its tokens by the model's tokenizer are taken.
    Tokenizer(Arc<Tokenize>),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_rows: 64,
            max_chunk: 512,
            overlap: true,
            forced: Forced::LongestMatch,
            draft: 8,
            kept_masks: 0,
        }
    }
}

impl Settings {
    /// The tokens that the grammar forces next.
    pub(crate) fn forced_tokens(&self, matcher: &mut Matcher, longest: usize) -> Vec<TokenId> {
        match &self.forced {
            Forced::Draw => Vec::new(),
            Forced::LongestMatch => matcher.forced_tokens(longest),
            Forced::Tokenizer(tokenize) => {
                matcher.forced_tokens_with(longest, &mut |bytes| tokenize(bytes))
            }
        }
    }
}
