//! What may follow, byte by byte: for explanations, not for decoding.

use super::Matcher;
use crate::fsm::ByteSet;
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

impl Matcher {
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
            return Ok(Expected { good: 0, bytes: ByteSet::EMPTY, specials: Vec::new(), may_end: true });
        }
        let index = self.index.clone();
        let mut state = index.lock();
        let found = self.with_retry(&index, &mut state, |matcher, state| {
            let (mut at, mut good) = (matcher.config(), 0);
            for &byte in bytes {
                match state.parser.step(at, byte)? {
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
            Ok(Expected { good, bytes: state.parser.allowed(at), specials, may_end })
        });
        found.map_err(|limit| AdvanceError::Limit { what: limit.what() })
    }
}
