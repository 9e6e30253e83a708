//! What may follow, byte by byte: for explanations, not for decoding.

use std::fmt;

use super::Matcher;
use crate::fsm::{ByteSet, escape};
use crate::ids::TokenId;
use crate::matcher::{AdvanceError, DEAD};

/// What may follow some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// How many of the bytes are fine.
    pub good: usize,
    /// The bytes that may follow those.
    pub bytes: ByteSet,
    /// Special tokens that may follow those, as the grammar names them.
    pub specials: Vec<String>,
    /// Whether the text may end behind those.
    pub may_end: bool,
}

/// The bytes, special tokens and the end, as people read it: `[cd], or <|end|>, or the end of the text`.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes)?;
        if !self.specials.is_empty() {
            write!(f, ", or {}", self.specials.join(", "))?;
        }
        if self.may_end { f.write_str(", or the end of the text") } else { Ok(()) }
    }
}

/// Why a token cannot follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No token has this id, or its bytes are unknown.
    Unknown,
    /// It ends the text, which may not end here.
    Stop(Expected),
    /// It is a special token, which bytes never spell, and the grammar does not name it here.
    Special(Expected),
    /// One of its bytes cannot be right.
    Byte {
        /// The token's bytes before that one: they are fine.
        behind: Vec<u8>,
        /// The byte.
        byte: u8,
        /// What could have stood there.
        expected: Expected,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unknown => f.write_str("no token of the vocabulary has this id"),
            Refusal::Stop(expected) => {
                write!(f, "it ends the text, which may not end here; expected {expected}")
            }
            Refusal::Special(expected) => {
                write!(f, "it is a special token, which bytes never spell; expected {expected}")
            }
            Refusal::Byte { behind, byte, expected } => {
                write!(f, "its byte {} ({}) is not allowed", behind.len(), escape(*byte))?;
                if !behind.is_empty() {
                    write!(f, " behind {:?}", String::from_utf8_lossy(behind))?;
                }
                write!(f, "; expected {expected}")
            }
        }
    }
}

impl Matcher {
    /// Why a token cannot follow the tokens taken so far; none if it can. The matcher stays where it is. Costs a walk over the
    /// token's bytes and one over the grammar's special tokens. Fails only at a limit of the parser.
    ///
    /// ```
    /// # use louver::{engine::Engine, front::regex::RegexOptions, ids::TokenId, vocab::Vocabulary};
    /// let engine = Engine::new(Vocabulary::toy(&[b"ax"]).into(), Default::default());
    /// let mut matcher = engine.compile_regex("ab", &RegexOptions::default())?.matcher();
    /// assert_eq!(matcher.refusal(TokenId::from_raw(b'a'.into()))?, None);
    /// let refusal = matcher.refusal(TokenId::from_raw(257))?.map(|refusal| refusal.to_string());
    /// assert_eq!(refusal.as_deref(), Some(r#"its byte 1 (x) is not allowed behind "a"; expected [b]"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refusal(&mut self, token: TokenId) -> Result<Option<Refusal>, AdvanceError> {
        if self.allows(token) {
            return Ok(None);
        }
        let vocab = self.vocab().clone();
        if !vocab.is_used(token) {
            return Ok(Some(Refusal::Unknown));
        }
        let bytes = vocab.bytes(token).filter(|_| !vocab.is_stop(token)).unwrap_or_default();
        let expected = self.expected(bytes)?;
        Ok(Some(match bytes.get(expected.good) {
            _ if vocab.is_stop(token) => Refusal::Stop(expected),
            Some(&byte) => {
                Refusal::Byte { behind: bytes[..expected.good].to_vec(), byte, expected }
            }
            None => Refusal::Special(expected),
        }))
    }

    /// How far these bytes can follow the tokens taken so far, and what could stand where they stop being right. The matcher stays where
    /// it is. After a stop token nothing can follow. Fails only at a limit of the parser.
    ///
    /// ```
    /// # use louver::{engine::Engine, front::regex::RegexOptions, fsm::ByteSet, vocab::Vocabulary};
    /// let engine = Engine::new(Vocabulary::toy(&[]).into(), Default::default());
    /// let mut matcher = engine.compile_regex("ab[cd]?", &RegexOptions::default())?.matcher();
    /// let expected = matcher.expected(b"abx")?;
    /// assert_eq!((expected.good, expected.bytes, expected.may_end), (2, ByteSet::of(b"cd"), true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expected(&mut self, bytes: &[u8]) -> Result<Expected, AdvanceError> {
        if self.terminated {
            return Ok(Expected {
                good: 0,
                bytes: ByteSet::EMPTY,
                specials: Vec::new(),
                may_end: true,
            });
        }
        let index = self.index.clone();
        let mut state = index.lock();
        let found = self.with_retry(&index, &mut state, |matcher, state| {
            let (mut at, mut good) = (matcher.config(), 0);
            for &byte in bytes {
                match state.parser.advance(at, byte)? {
                    DEAD => break,
                    next => (at, good) = (next, good + 1),
                }
            }
            let mut specials = Vec::new();
            for special in 0..index.compiled.grammar().specials.len() {
                if state.parser.step_special(at, special as u32)? != DEAD {
                    specials.push(index.compiled.grammar().specials[special].to_string());
                }
            }
            let may_end = state.parser.store().done(at).root;
            Ok(Expected { good, bytes: state.parser.follows(at)?, specials, may_end })
        });
        found.map_err(|limit| AdvanceError::Limit { what: limit.what() })
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Engine;
    use crate::front::regex::RegexOptions;
    use crate::ids::TokenId;
    use crate::vocab::Vocabulary;

    #[test]
    fn refusals_agree_with_masks_and_say_why() {
        let vocab = Vocabulary::toy(&[b"ab", b"ax", b"\xff"]);
        let (width, stop) = (vocab.width(), vocab.stops()[0]);
        let engine = Engine::new(vocab.into(), Default::default());
        let mut matcher =
            engine.compile_regex("ab[cd]?", &RegexOptions::default()).expect("a regex").matcher();
        let why = |matcher: &mut super::Matcher, token| {
            let refusal = matcher.refusal(token).expect("within limits");
            assert_eq!(refusal.is_none(), matcher.allows(token), "{refusal:?}");
            refusal.map(|refusal| refusal.to_string()).unwrap_or_default()
        };
        for id in 0..width + 3 {
            why(&mut matcher, TokenId::new(id));
        }
        let id = TokenId::from_raw;
        assert_eq!(
            why(&mut matcher, stop),
            "it ends the text, which may not end here; expected [a]"
        );
        assert_eq!(
            why(&mut matcher, id(258)),
            "its byte 1 (x) is not allowed behind \"a\"; expected [b]"
        );
        assert_eq!(why(&mut matcher, id(259)), "its byte 0 (\\xff) is not allowed; expected [a]");
        assert_eq!(why(&mut matcher, id(9_999)), "no token of the vocabulary has this id");
        matcher.advance(id(257)).expect("ab");
        assert_eq!(why(&mut matcher, stop), "");
        let refused = "its byte 0 (a) is not allowed; expected [cd], or the end of the text";
        assert_eq!(why(&mut matcher, id(u32::from(b'a'))), refused);
    }
}
