//! Resumption: a sequence continues under another grammar.
//!
//! An agent discovers more tools, or a schema is widened, in the middle of a generation. The tokens
//! so far are replayed under the new constraint.

use crate::ids::TokenId;
use crate::matcher::AdvanceError;

use super::{Constraint, Matcher};

/// Why a sequence cannot continue under another constraint. The matcher is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The other grammar does not allow the text so far.
    #[error(
        "the other grammar does not allow token {token} at index {at} of the sequence: {error}"
    )]
    Differs {
        /// Index of the first token that it does not allow.
        at: usize,
        /// That token.
        token: TokenId,
        /// Why it is not allowed.
        error: AdvanceError,
    },
    /// The other constraint is bound to another vocabulary, so its token ids differ.
    #[error("the constraints use different vocabularies")]
    Vocabulary,
}

impl Matcher {
    /// A matcher of another constraint that has taken the same tokens. This one is unchanged.
    /// Budgets and counters are as if the other grammar had been used from the beginning.
    ///
    /// If the other grammar has more tags in a dispatch, it is an error if text that was free until
    /// now spells a new trigger: the body of the tag would have had to follow.
    ///
    /// Cost: one table look-up a byte once transitions are cached. Masks that both grammars share
    /// are not made again.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, RegexOptions, TokenId, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let compile = |pattern| engine.compile_regex(pattern, &RegexOptions::default());
    /// let (narrow, wide) = (compile("a")?, compile("a|ab")?);
    /// let mut matcher = narrow.matcher();
    /// matcher.advance(TokenId::from_raw(b'a'.into()))?;
    /// let mut resumed = matcher.resumed_in(&wide)?;
    /// assert!(resumed.allows(TokenId::from_raw(b'b'.into())));
    /// # Ok(())
    /// # }
    /// ```
    pub fn resumed_in(&self, constraint: &Constraint) -> Result<Matcher, ResumeError> {
        if constraint.vocab() != self.vocab() {
            return Err(ResumeError::Vocabulary);
        }
        let mut matcher = constraint.matcher();
        for (at, &token) in self.tokens().iter().enumerate() {
            matcher.advance(token).map_err(|error| ResumeError::Differs { at, token, error })?;
        }
        Ok(matcher)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::{Engine, EngineOptions};
    use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, Grammar, GrammarBuilder, Trigger};
    use crate::mask::bit;
    use crate::vocab::Vocabulary;

    /// Free text in which each trigger begins a tag.
    fn tools(tags: &[(&str, &str)]) -> Grammar {
        let mut b = GrammarBuilder::new();
        let tags = tags.iter().map(|(trigger, body)| {
            (Trigger::Text(trigger.as_bytes().to_vec()), b.rule("body", Expr::text(body)))
        });
        let dispatch = Dispatch {
            tags: tags.collect(),
            stops: Vec::new(),
            excludes: Vec::new(),
            after: AfterTag::Loop,
            end: DispatchEnd::Anywhere,
        };
        let start = b.rule("start", Expr::Dispatch(Box::new(dispatch)));
        b.finish(start).unwrap()
    }

    fn take(matcher: &mut Matcher, text: &str) -> Result<(), AdvanceError> {
        text.bytes().try_for_each(|byte| matcher.advance(TokenId::from_raw(u32::from(byte))))
    }

    #[test]
    fn tags_are_added_to_a_live_dispatch() {
        let vocab = Arc::new(Vocabulary::toy(&[b"<two>(", b"<two>x"]));
        let engine = Engine::new(vocab.clone(), EngineOptions::default());
        let constraint = engine.compile(tools(&[("<one>", "(1)")])).unwrap();
        let mut matcher = constraint.matcher();
        take(&mut matcher, "hello <one>(1) and ").unwrap();
        let mut row = vec![0; vocab.mask_words()];
        matcher.fill_mask(&mut row);
        assert!(bit(&row, TokenId::from_raw(258)), "<two> is still text");

        let more = tools(&[("<one>", "(1)"), ("<two>", "(2)")]);
        let mut matcher = matcher.resumed_in(&engine.compile(&more).unwrap()).unwrap();
        matcher.fill_mask(&mut row);
        assert!(bit(&row, TokenId::from_raw(257)) && !bit(&row, TokenId::from_raw(258)));
        take(&mut matcher, "<two>(2) <one>(1)").unwrap();
        assert!(matcher.is_complete());
        assert!(take(&mut matcher, "<two>(1").is_err());

        // Text under the old grammar, a tag under the new one.
        let mut early = constraint.matcher();
        take(&mut early, "say <two>x").unwrap();
        let resumed = early.resumed_in(&engine.compile(&more).unwrap());
        assert!(matches!(resumed, Err(ResumeError::Differs { at: 9, .. })), "{resumed:?}");
        let other = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
        assert_eq!(
            early.resumed_in(&other.compile(&more).unwrap()).unwrap_err(),
            ResumeError::Vocabulary
        );
    }
}
