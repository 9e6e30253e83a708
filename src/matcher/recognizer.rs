//! Recognition of bytes without a vocabulary.

use std::sync::Arc;

use super::parser::Parser;
use super::store::ConfigId;
use crate::compile::Compiled;
use crate::fsm::ByteSet;
use crate::limits::Limits;

/// Input that the grammar does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// A byte that is not allowed.
    #[error("byte {offset} is not allowed; expected one of {expected}")]
    Byte {
        /// Offset from the beginning of all input.
        offset: usize,
        /// Bytes that the grammar allows there.
        expected: ByteSet,
        /// Whether the input could have ended there.
        could_end: bool,
    },
    /// The parser reached a limit.
    #[error("parser limit reached at byte {offset}: {what}")]
    Limit {
        /// Offset from the beginning of all input.
        offset: usize,
        /// The limit's description.
        what: &'static str,
    },
}

impl Rejected {
    /// The offset from the beginning of all input.
    pub fn offset(&self) -> usize {
        match *self {
            Rejected::Byte { offset, .. } | Rejected::Limit { offset, .. } => offset,
        }
    }
}

/// Recognises bytes, and special tokens by name, without a vocabulary.
///
/// ```
/// use std::sync::Arc;
/// use louver::front::regex;
/// use louver::{ByteSet, Compiled, Limits, Recognizer, RegexOptions, Rejected};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits::default();
/// let grammar = regex::lower("[0-9]+(?:px|em)", &RegexOptions::default(), &limits)?;
/// let mut recognizer = Recognizer::new(Arc::new(Compiled::new(grammar, &limits)?));
/// recognizer.push(b"12p")?;
/// assert!(!recognizer.is_complete());
/// assert_eq!(recognizer.allowed(), ByteSet::from_bytes(b"x"));
/// assert!(matches!(recognizer.push(b"t"), Err(Rejected::Byte { offset: 3, .. })));
/// recognizer.push(b"x")?;
/// assert!(recognizer.is_complete());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recognizer {
    parser: Parser,
    config: ConfigId,
    offset: usize,
}

impl Recognizer {
    /// A recognizer at the beginning of the text, with default limits.
    pub fn new(compiled: Arc<Compiled>) -> Recognizer {
        Recognizer::with_limits(compiled, &Limits::default())
    }

    /// A recognizer at the beginning of the text.
    pub fn with_limits(compiled: Arc<Compiled>, limits: &Limits) -> Recognizer {
        let parser = Parser::new(compiled, None, limits);
        Recognizer { config: parser.start(), parser, offset: 0 }
    }

    /// Reads bytes. Stops at the first one that is not allowed, in the state before it. Cost:
    /// amortised constant time per byte.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Rejected> {
        for &byte in bytes {
            match self.parser.step_tracking_keys(self.config, byte) {
                // No grammar is empty: a limit ended the first prediction.
                Ok(_) if self.config == ConfigId::DEAD => {
                    let what = self.parser.start_limit().what();
                    return Err(Rejected::Limit { offset: self.offset, what });
                }
                Ok(ConfigId::DEAD) => {
                    return Err(Rejected::Byte {
                        offset: self.offset,
                        expected: self.allowed(),
                        could_end: self.is_complete(),
                    });
                }
                Ok(next) => self.config = next,
                Err(limit) => {
                    return Err(Rejected::Limit { offset: self.offset, what: limit.what() });
                }
            }
            self.offset += 1;
        }
        Ok(())
    }

    /// Whether the input is a complete text of the grammar.
    pub fn is_complete(&self) -> bool {
        self.parser.store().is_complete(self.config)
    }

    /// The bytes that may follow.
    pub fn allowed(&mut self) -> ByteSet {
        self.parser.exact_allowed(self.config).unwrap_or_else(|_| self.parser.allowed(self.config))
    }

    /// Returns to the beginning of the text; caches are kept unless they are full.
    pub fn reset(&mut self) {
        if self.parser.is_full() {
            self.parser.clear();
        }
        self.config = self.parser.start();
        self.offset = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::ebnf::{self, EbnfOptions};

    #[test]
    fn a_limit_at_the_start_is_no_rejected_byte() {
        let text = "root ::= a b c\na ::= \"a\"?\nb ::= \"b\" | a b?\nc ::= \"c\" | b c?\n";
        let grammar = ebnf::lower(text, &EbnfOptions::default(), &Limits::default()).unwrap();
        let compiled = Arc::new(Compiled::new(grammar.grammar, &Limits::default()).unwrap());
        assert!(Recognizer::new(compiled.clone()).push(b"abc").is_ok());
        let limits = Limits::default().with_config_items(1);
        let error = Recognizer::with_limits(compiled, &limits).push(b"abc").unwrap_err();
        assert!(matches!(error, Rejected::Limit { offset: 0, .. }), "{error}");
    }
}
