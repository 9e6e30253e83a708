//! Explanations: the bytes that may follow, and why a token may not. Not for the decode path.

use std::fmt;

use super::Matcher;
use crate::fsm::{ByteSet, escape};
use crate::ids::{SpecialId, TokenId};
use crate::matcher::{AdvanceError, ConfigId};

/// What may follow a prefix of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// Length of the longest prefix of the bytes that the grammar allows.
    pub accepted: usize,
    /// The bytes that may follow that prefix.
    pub bytes: ByteSet,
    /// The special tokens that may follow it, as the grammar names them.
    pub specials: Vec<String>,
    /// Whether the text may end there.
    pub may_end: bool,
}

/// The bytes, special tokens and the end as text: `[cd], or <|end|>, or the end of the text`.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = (!self.bytes.is_empty()).then(|| self.bytes.to_string());
        let specials = (!self.specials.is_empty()).then(|| self.specials.join(", "));
        let end = self.may_end.then(|| "the end of the text".to_owned());
        let all: Vec<String> = bytes.into_iter().chain(specials).chain(end).collect();
        f.write_str(if all.is_empty() { "nothing" } else { "" })?;
        f.write_str(&all.join(", or "))
    }
}

/// Why a token may not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No token has this id, or its bytes are unknown.
    Unknown,
    /// It is a stop token, and the text may not end here.
    Stop(Expected),
    /// It is a special token, which bytes never spell, and the grammar does not name it here.
    Special(Expected),
    /// The grammar rejects one of its bytes.
    Byte {
        /// The token's bytes before that one, which may follow.
        prefix: Vec<u8>,
        /// The rejected byte.
        byte: u8,
        /// What may follow in its place.
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
            Refusal::Byte { prefix, byte, expected } => {
                write!(f, "its byte {} ({}) is not allowed", prefix.len(), escape(*byte))?;
                if !prefix.is_empty() {
                    write!(f, " after {:?}", String::from_utf8_lossy(prefix))?;
                }
                write!(f, "; expected {expected}")
            }
        }
    }
}

impl Matcher {
    /// Why a token may not follow the tokens taken so far; `None` if it may. The matcher does not
    /// move. Cost: stepping the token's bytes and the grammar's special tokens. Fails only at a
    /// limit of the parser.
    ///
    /// ```
    /// # use louver::{Engine, RegexOptions, TokenId, Vocabulary};
    /// let engine = Engine::new(Vocabulary::toy(&[b"ax"]).into(), Default::default());
    /// let mut matcher = engine.compile_regex("ab", &RegexOptions::default())?.matcher();
    /// assert_eq!(matcher.refusal(TokenId::from_raw(b'a'.into()))?, None);
    /// let refusal = matcher.refusal(TokenId::from_raw(257))?.expect("`ax` may not follow");
    /// let message = r#"its byte 1 (x) is not allowed after "a"; expected [b]"#;
    /// assert_eq!(refusal.to_string(), message);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refusal(&mut self, token: TokenId) -> Result<Option<Refusal>, AdvanceError> {
        if self.find_allowed(token)? {
            return Ok(None);
        }
        let vocab = self.vocab().clone();
        if !vocab.is_used(token) {
            return Ok(Some(Refusal::Unknown));
        }
        let bytes = vocab.bytes(token).filter(|_| !vocab.is_stop(token)).unwrap_or_default();
        let expected = self.expected(bytes)?;
        Ok(Some(match bytes.get(expected.accepted) {
            _ if vocab.is_stop(token) => Refusal::Stop(expected),
            Some(&byte) => {
                Refusal::Byte { prefix: bytes[..expected.accepted].to_vec(), byte, expected }
            }
            None => Refusal::Special(expected),
        }))
    }

    /// How many of these bytes may follow the tokens taken so far, and what may follow after those.
    /// The matcher does not move. After a stop token nothing may follow. Fails only at a limit of
    /// the parser.
    ///
    /// ```
    /// # use louver::{ByteSet, Engine, RegexOptions, Vocabulary};
    /// let engine = Engine::new(Vocabulary::toy(&[]).into(), Default::default());
    /// let mut matcher = engine.compile_regex("ab[cd]?", &RegexOptions::default())?.matcher();
    /// let expected = matcher.expected(b"abx")?;
    /// assert_eq!((expected.accepted, expected.may_end), (2, true));
    /// assert_eq!(expected.bytes, ByteSet::from_bytes(b"cd"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expected(&mut self, bytes: &[u8]) -> Result<Expected, AdvanceError> {
        if self.terminated {
            return Ok(Expected {
                accepted: 0,
                bytes: ByteSet::EMPTY,
                specials: Vec::new(),
                may_end: true,
            });
        }
        let found = self.with_lock(|matcher, state| {
            let (mut config, mut accepted) = (matcher.config(), 0);
            for &byte in bytes {
                match state.parser.step_tracking_keys(config, byte)? {
                    ConfigId::DEAD => break,
                    next => (config, accepted) = (next, accepted + 1),
                }
            }
            let mut specials = Vec::new();
            for (special, token) in
                (0..).map(SpecialId::from_raw).zip(&matcher.masks.compiled.grammar().specials)
            {
                if state.parser.step_special(config, special)? != ConfigId::DEAD {
                    specials.push(token.to_string());
                }
            }
            let may_end = state.parser.store().is_complete(config);
            Ok(Expected { accepted, bytes: state.parser.exact_allowed(config)?, specials, may_end })
        });
        Ok(found?)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Engine;
    use crate::front::regex::RegexOptions;
    use crate::ids::TokenId;
    use crate::vocab::Vocabulary;

    #[test]
    fn refusals_agree_with_masks_and_give_the_reason() {
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
            "its byte 1 (x) is not allowed after \"a\"; expected [b]"
        );
        assert_eq!(why(&mut matcher, id(259)), "its byte 0 (\\xff) is not allowed; expected [a]");
        assert_eq!(why(&mut matcher, id(9_999)), "no token of the vocabulary has this id");
        matcher.advance(id(257)).expect("ab");
        assert_eq!(why(&mut matcher, stop), "");
        let refused = "its byte 0 (a) is not allowed; expected [cd], or the end of the text";
        assert_eq!(why(&mut matcher, id(u32::from(b'a'))), refused);
    }
}
