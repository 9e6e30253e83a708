//! A sequence that goes on under another grammar: an agent that has found more tools, a schema that was widened.

use crate::ids::TokenId;
use crate::matcher::AdvanceError;

use super::{Constraint, Matcher};

/// Why a sequence cannot go on under another constraint. The matcher is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The text so far is no beginning of the other grammar's sentences.
    #[error("token {token}, number {at} of the sequence, does not fit the other grammar: {error}")]
    Differs {
        /// How many tokens fit.
        at: usize,
        /// The one that does not.
        token: TokenId,
        /// Why not.
        error: AdvanceError,
    },
    /// The other constraint is bound to another vocabulary: its ids mean something else.
    #[error("the other constraint belongs to another vocabulary")]
    Vocabulary,
}

impl Matcher {
    /// A matcher of another constraint that has taken the same tokens. This one is unchanged. Budgets and counters are as if the
    /// other grammar had been there from the beginning. Cost: the tokens so far, a table look-up a byte once known; masks that
    /// both grammars share are not built again.
    ///
    /// For a dispatch with more tags, compile [`Grammar::with_tags`](crate::ir::Grammar::with_tags). Text that was free
    /// until now and spells a new trigger is an error: under the new grammar the tag's body would have had to follow.
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
    use crate::ids::RuleId;
    use crate::ir::{
        AfterTag, Dispatch, DispatchEnd, Expr, Grammar, GrammarBuilder, NewTrigger, TagsError,
        Trigger,
    };
    use crate::mask::bit;
    use crate::vocab::Vocabulary;

    fn single(text: &str) -> Grammar {
        let mut b = GrammarBuilder::new();
        let start = b.rule("body", Expr::text(text));
        b.finish(start).unwrap()
    }

    fn tools() -> Grammar {
        let mut b = GrammarBuilder::new();
        let one = b.rule("one", Expr::text("(1)"));
        let dispatch = Dispatch {
            tags: vec![(Trigger::Text(b"<one>".to_vec()), one)],
            stops: Vec::new(),
            excludes: Vec::new(),
            after: AfterTag::Loop,
            end: DispatchEnd::Anywhere,
        };
        let start = b.rule("start", Expr::seq([Expr::Dispatch(Box::new(dispatch))]));
        b.finish(start).unwrap()
    }

    fn take(matcher: &mut Matcher, text: &str) -> Result<(), AdvanceError> {
        text.bytes().try_for_each(|byte| matcher.advance(TokenId::from_raw(u32::from(byte))))
    }

    #[test]
    fn tags_are_added_to_a_live_dispatch() {
        let vocab = Arc::new(Vocabulary::toy(&[b"<two>(", b"<two>x"]));
        let engine = Engine::new(vocab.clone(), EngineOptions::default());
        let grammar = tools();
        let constraint = engine.compile(&grammar).unwrap();
        let mut matcher = constraint.matcher();
        take(&mut matcher, "hello <one>(1) and ").unwrap();
        let mut row = vec![0; vocab.mask_words()];
        matcher.fill_mask(&mut row);
        assert!(bit(&row, TokenId::from_raw(258)), "<two> is still text");

        let rule = grammar.dispatching().next().unwrap();
        let more = grammar
            .with_tags(rule, &[(NewTrigger::Text(b"<two>".to_vec()), single("(2)"))])
            .unwrap();
        let mut matcher = matcher.resumed_in(&engine.compile(&more).unwrap()).unwrap();
        matcher.fill_mask(&mut row);
        assert!(bit(&row, TokenId::from_raw(257)) && !bit(&row, TokenId::from_raw(258)));
        take(&mut matcher, "<two>(2) <one>(1)").unwrap();
        assert!(matcher.is_complete());
        assert!(take(&mut matcher, "<two>(1").is_err());

        // What was text and is a call now.
        let mut early = constraint.matcher();
        take(&mut early, "say <two>x").unwrap();
        let resumed = early.resumed_in(&engine.compile(&more).unwrap());
        assert!(matches!(resumed, Err(ResumeError::Differs { at: 9, .. })), "{resumed:?}");
        let other = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
        assert_eq!(
            early.resumed_in(&other.compile(&more).unwrap()).unwrap_err(),
            ResumeError::Vocabulary
        );
        let refused = more.with_tags(RuleId::new(0), &[]);
        assert!(matches!(refused, Err(TagsError::NotOne { found: 0, .. })));
    }
}
