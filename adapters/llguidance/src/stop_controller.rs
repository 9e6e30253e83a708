//! Stop tokens, stop strings, and text that is safe to show.

use anyhow::{Result, anyhow};
use louver::front::regex::Pattern;
use louver::internals::fsm::Dfa;
use louver::{Limits, RegexOptions};
use toktrie::{TokEnv, TokenId};

/// Most states of the automaton of the stop expressions.
const MAX_STATES: usize = 100_000;

/// Turns tokens into text up to a stop. Text that may become a stop, and incomplete UTF-8, is held
/// back.
///
/// ```
/// use llguidance::StopController;
/// use llguidance::toktrie::ApproximateTokEnv;
///
/// # fn main() -> anyhow::Result<()> {
/// let env = ApproximateTokEnv::single_byte_env();
/// let mut stop = StopController::new(env, vec![], None, vec!["EN+D".to_owned()])?;
/// let text: String = b"okENND!".iter().map(|&byte| stop.commit_token(byte.into())).collect();
/// assert_eq!((text.as_str(), stop.is_stopped()), ("ok", true));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StopController {
    env: TokEnv,
    stop_tokens: Vec<TokenId>,
    stops: Option<Dfa>,
    /// Text that may become a stop.
    held: String,
    /// The beginning of a character.
    partial: Vec<u8>,
    is_stopped: bool,
}

impl StopController {
    /// A controller. The stop strings are regular expressions as well.
    pub fn new(
        env: TokEnv,
        stop_tokens: Vec<TokenId>,
        stop_regex: Option<String>,
        stop_strings: Vec<String>,
    ) -> Result<Self> {
        let all: Vec<String> =
            stop_regex.into_iter().chain(stop_strings).map(|stop| format!("(?:{stop})")).collect();
        let stops = match all.is_empty() {
            true => None,
            false => {
                let options = RegexOptions::default();
                let pattern = Pattern::with_options(&all.join("|"), &options, &Limits::default());
                let pattern = pattern.map_err(|error| anyhow!("regex parse error: {error}"))?;
                Some(pattern.match_dfa(MAX_STATES)?)
            }
        };
        let (held, partial) = (String::new(), Vec::new());
        Ok(StopController { env, stop_tokens, stops, held, partial, is_stopped: false })
    }

    /// Whether a stop was read.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Takes a token; returns the text that can be shown.
    pub fn commit_token(&mut self, token: TokenId) -> String {
        if self.is_stopped {
            return String::new();
        }
        if self.stop_tokens.contains(&token) {
            self.is_stopped = true;
            return std::mem::take(&mut self.held);
        }
        let trie = self.env.tok_trie();
        if trie.is_special_token(token) {
            let name = String::from_utf8_lossy(&trie.decode(&[token])).into_owned();
            return std::mem::take(&mut self.held) + &name;
        }
        self.partial.extend_from_slice(trie.token(token));
        self.take_characters();
        self.release()
    }

    /// Moves complete characters to the held text.
    fn take_characters(&mut self) {
        let complete = match std::str::from_utf8(&self.partial) {
            Ok(text) => text.len(),
            // A character that may be completed.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.partial.len(),
        };
        let rest = self.partial.split_off(complete);
        self.held += &String::from_utf8_lossy(&self.partial);
        self.partial = rest;
    }

    /// Takes the text before the first stop, or before what may become one.
    fn release(&mut self) -> String {
        let Some(stops) = &self.stops else { return std::mem::take(&mut self.held) };
        let mut keep = self.held.len();
        let mut first: Option<(usize, usize)> = None;
        for (start, _) in self.held.char_indices() {
            let mut state = Some(0);
            for (offset, c) in self.held[start..].char_indices() {
                state = state.and_then(|state| stops.next(state, u32::from(c)));
                let end = start + offset + c.len_utf8();
                if state.is_some_and(|state| stops.is_final(state)) {
                    first = first.filter(|&(_, of_first)| of_first <= end).or(Some((start, end)));
                    break;
                }
            }
            if state.is_some() {
                keep = keep.min(start);
            }
        }
        if let Some((start, _)) = first {
            self.is_stopped = true;
            keep = start;
        }
        let rest = self.held.split_off(keep);
        std::mem::replace(&mut self.held, rest)
    }
}
