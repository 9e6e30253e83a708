//! Captures: the texts that rules with a capture name derived, and the temperature of a rule.
//!
//! A parse keeps no derivation, so captures parse the text once more, with an Earley chart that has
//! positions.

use super::Matcher;
use crate::compile::CompiledRuleId;
use crate::fuel;
use crate::mask::MaskState;
use crate::matcher::{AdvanceError, Chart, ChartInput, ChartLimit};

/// Bytes of a captured text that are copied for a unit of fuel.
const BYTES_PER_UNIT: usize = 16;

/// A text that a rule with a capture name derived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capture {
    /// The capture name.
    pub name: String,
    /// The text, without the parts that hidden rules derived. A special token appears as its name.
    pub bytes: Vec<u8>,
    /// The range in the whole text, hidden parts included.
    pub range: std::ops::Range<usize>,
}

impl Matcher {
    /// The captures so far, in the order in which they ended, inner ones first. Rules that have not
    /// ended have none. Of an ambiguous text, the captures of one derivation.
    ///
    /// Errors: [`AdvanceError::Limit`] past the fuel of a compilation of as long a text
    /// ([`Limits::compile_budget`](crate::limits::Limits::compile_budget)), when a
    /// [`CancelToken`](crate::fuel::CancelToken) is cancelled under which this was called, or if
    /// the parse takes more than 96 MiB. Cost: one more parse of the text, linear for grammars that
    /// are nearly deterministic, cubic at worst.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, Expr, GrammarBuilder, TokenId, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut grammar = GrammarBuilder::new();
    /// let name = grammar.rule("name", Expr::alt([Expr::text("ann"), Expr::text("bob")]));
    /// grammar.attributes(name).capture = Some("who".to_owned());
    /// let start = grammar.rule("start", Expr::seq([Expr::text("hi "), Expr::Ref(name)]));
    /// let mut matcher = engine.compile(grammar.finish(start)?)?.matcher();
    /// for byte in *b"hi bob" {
    ///     matcher.advance(TokenId::from_raw(byte.into()))?;
    /// }
    /// let captures = matcher.captures()?;
    /// assert_eq!((&*captures[0].name, &captures[0].bytes[..]), ("who", &b"bob"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn captures(&mut self) -> Result<Vec<Capture>, AdvanceError> {
        if self.masks.compiled.grammar().rules.iter().all(|rule| rule.attributes.capture.is_none())
        {
            return Ok(Vec::new());
        }
        let vocab = &self.masks.vocab;
        let bytes = self.tokens.iter().map(|&token| vocab.text(token).len()).sum();
        fuel::with_budget(self.masks.limits().compile_budget(bytes), || {
            self.find_captures(&mut self.masks.lock())
        })
        .map_err(|limit| AdvanceError::Limit { what: limit.what() })
    }

    /// As [`Matcher::captures`], under the constraint's lock.
    fn find_captures(&self, state: &mut MaskState) -> Result<Vec<Capture>, ChartLimit> {
        let (masks, vocab) = (&self.masks, &self.masks.vocab);
        let compiled = masks.compiled.clone();
        let mut text: Vec<u8> = Vec::new();
        let mut chart = Chart::new(state.parser.program_mut())?;
        for &token in &self.tokens[..self.configs.len() - 1] {
            let bytes = masks.symbols_of(token).bytes;
            if let Some(bytes) = bytes
                && chart.token(ChartInput::Bytes(bytes))?
            {
                text.extend_from_slice(bytes);
                continue;
            }
            let specials: Vec<_> = masks.specials_of(token).collect();
            // The chart reads a token that fits in both ways as bytes, and only so.
            if !chart.token(ChartInput::Special(&specials, vocab.text(token)))? {
                return Err(ChartLimit::Token);
            }
            text.extend_from_slice(vocab.text(token));
        }
        let regions = chart.derived_spans()?;
        let attributes = |rule: CompiledRuleId| {
            compiled.split_grammar.rules.get(rule.index()).map(|rule| &rule.attributes)
        };
        let mut hidden: Vec<_> =
            regions.iter().filter(|r| attributes(r.rule).is_some_and(|a| a.hidden)).collect();
        hidden.sort_by_key(|h| h.start);
        let mut out = Vec::new();
        for region in &regions {
            let Some(name) = attributes(region.rule).and_then(|a| a.capture.clone()) else {
                continue;
            };
            let first = hidden.partition_point(|h| h.start < region.start);
            let inside = hidden[first..].iter().take_while(|h| h.start <= region.end);
            let length = region.end - region.start;
            chart.take_bytes(size_of::<Capture>() + length)?;
            fuel::spend(length / BYTES_PER_UNIT + inside.clone().count())?;
            let (mut bytes, mut position) = (Vec::new(), region.start);
            for h in inside.filter(|h| h.end <= region.end && h.depth > region.depth) {
                bytes.extend_from_slice(&text[position..h.start.max(position)]);
                position = position.max(h.end);
            }
            bytes.extend_from_slice(&text[position..region.end]);
            out.push((region.depth, Capture { name, bytes, range: region.start..region.end }));
        }
        out.sort_by_key(|(depth, c)| {
            (c.range.end, std::cmp::Reverse(c.range.start), std::cmp::Reverse(*depth))
        });
        Ok(out.into_iter().map(|(_, capture)| capture).collect())
    }

    /// The sampling temperature that the grammar asks for here: that of the innermost enclosing
    /// rule that names one, and the highest where derivations disagree. `None` where no rule does.
    /// The engine itself does not use it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, Expr, GrammarBuilder, TokenId, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut grammar = GrammarBuilder::new();
    /// let number = grammar.rule("number", Expr::text("42"));
    /// grammar.attributes(number).temperature = Some(0.0);
    /// let start = grammar.rule("start", Expr::seq([Expr::text("n"), Expr::Ref(number)]));
    /// let mut matcher = engine.compile(grammar.finish(start)?)?.matcher();
    /// assert_eq!(matcher.temperature(), None);
    /// matcher.advance(TokenId::from_raw(b'n'.into()))?;
    /// matcher.advance(TokenId::from_raw(b'4'.into()))?;
    /// assert_eq!(matcher.temperature(), Some(0.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn temperature(&mut self) -> Option<f32> {
        if self.is_over() {
            return None;
        }
        self.with_lock(|matcher, state| Ok(state.parser.temperature(matcher.config()))).ok()?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::engine::{Engine, EngineOptions, Matcher};
    use crate::fsm::ByteSet;
    use crate::fuel::{self, CancelToken};
    use crate::ids::TokenId;
    use crate::ir::{Attributes, Budget, BudgetPolicy, Expr, GrammarBuilder, SpecialToken};
    use crate::limits::Limits;
    use crate::matcher::AdvanceError;
    use crate::vocab::Vocabulary;

    fn named(b: &mut GrammarBuilder, name: &str, body: Expr) -> Expr {
        let rule = b.rule(name, body);
        b.attributes(rule).capture = Some(name.to_owned());
        Expr::Ref(rule)
    }

    fn letters() -> Expr {
        Expr::class(ByteSet::range(b'a', b'z'))
    }

    fn take(matcher: &mut Matcher, text: &str) {
        text.bytes().for_each(|byte| matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap());
    }

    fn captured(matcher: &mut Matcher) -> Vec<(String, String)> {
        let all = matcher.captures().unwrap();
        all.into_iter().map(|c| (c.name, String::from_utf8(c.bytes).unwrap())).collect()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn captures_nest_repeat_and_hide() {
        let mut b = GrammarBuilder::new();
        let key = named(&mut b, "key", Expr::repeat(letters(), 1, Some(200)));
        let end = b.rule("end", Expr::text(";"));
        *b.attributes(end) =
            Attributes { hidden: true, capture: Some("end".into()), ..Attributes::default() };
        let special = b.special(SpecialToken::Name("<|end|>".into()));
        let pair =
            named(&mut b, "pair", Expr::seq([key.clone(), Expr::text("="), key, Expr::Ref(end)]));
        let list = b.declare("list");
        b.define(list, Expr::alt([pair.clone(), Expr::seq([Expr::Ref(list), pair])]));
        let all = named(
            &mut b,
            "all",
            Expr::seq([Expr::Ref(list), Expr::optional(Expr::Special(special))]),
        );
        let start = b.rule("start", all);
        let mut vocab = Vocabulary::builder(258);
        for byte in 0..=255u8 {
            vocab.token(u32::from(byte), &[byte]);
        }
        vocab.special(256, "<|end|>").special(257, "<stop>").stop(257);
        let vocab = Arc::new(vocab.build().unwrap());
        let constraint =
            Engine::new(vocab, EngineOptions::default()).compile(b.finish(start).unwrap()).unwrap();
        let mut matcher = constraint.matcher();
        assert_eq!(captured(&mut matcher), []);
        take(&mut matcher, "a=b;cd=ef");
        let one = [("key", "a"), ("key", "b"), ("end", ";"), ("pair", "a=b")];
        // The open pair has no capture yet; its key may already have ended.
        assert_eq!(captured(&mut matcher)[..5], pairs(&[&one[..], &[("key", "cd")]].concat())[..]);
        take(&mut matcher, ";");
        matcher.advance(TokenId::from_raw(256)).unwrap();
        let two = [
            ("key", "cd"),
            ("key", "ef"),
            ("end", ";"),
            ("pair", "cd=ef"),
            ("all", "a=bcd=ef<|end|>"),
        ];
        assert_eq!(captured(&mut matcher), pairs(&[&one[..], &two].concat()));
        assert_eq!(matcher.captures().unwrap()[3].range, 0..4);
        matcher.advance(TokenId::from_raw(257)).unwrap();
        assert_eq!(captured(&mut matcher).len(), 9);
    }

    /// A matcher that has read `length` letters, each a capture, of this grammar.
    fn read_letters(body: impl Fn(Expr, Expr) -> Expr, limits: Limits, length: usize) -> Matcher {
        let mut b = GrammarBuilder::new();
        let letter = named(&mut b, "letter", Expr::text("a"));
        let root = b.declare("root");
        b.define(root, body(Expr::Ref(root), letter));
        let limits = limits.with_sequence_fuel(u64::MAX);
        let options = EngineOptions::default().with_limits(limits);
        let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), options);
        let mut matcher = engine.compile(b.finish(root).unwrap()).unwrap().matcher();
        take(&mut matcher, &"a".repeat(length));
        matcher
    }

    #[test]
    fn captures_of_ambiguous_texts_end_within_their_fuel() {
        let ambiguous = |root: Expr, letter| {
            let two = Expr::seq([root.clone(), root.clone()]);
            Expr::alt([two, Expr::seq([root.clone(), root.clone(), root]), letter])
        };
        let read = |length| read_letters(ambiguous, Limits::default(), length);
        for length in 1..12 {
            assert_eq!(
                captured(&mut read(length)),
                vec![pairs(&[("letter", "a")])[0].clone(); length]
            );
        }
        let mut long = read(400);
        let (result, spent) = fuel::measure(|| long.captures());
        assert_eq!(result, Err(AdvanceError::Limit { what: "fuel for captures" }));
        assert_eq!(spent, Limits::default().compile_fuel);
        let token = CancelToken::default();
        token.cancel();
        let (result, spent) = token.run(|| fuel::measure(|| long.captures()));
        assert_eq!(result, Err(AdvanceError::Limit { what: "cancellation of the request" }));
        assert_eq!(spent, 0);
    }

    #[test]
    fn captures_end_within_their_memory() {
        let nested = |root, letter: Expr| Expr::seq([letter, Expr::optional(root)]);
        let read =
            |length| read_letters(nested, Limits::default().with_compile_fuel(u64::MAX), length);
        assert_eq!(captured(&mut read(300)).len(), 300);
        let limit = AdvanceError::Limit { what: "memory of a chart for captures" };
        assert_eq!(read(2_000).captures(), Err(limit));
    }

    #[test]
    fn captures_of_rules_cut_by_a_budget_have_their_text() {
        for budget in [(Some(2), None), (None, Some(2))] {
            let mut b = GrammarBuilder::new();
            let body = named(&mut b, "body", Expr::star(letters()));
            let head = named(&mut b, "head", Expr::seq([body, Expr::text("!")]));
            let Expr::Ref(rule) = head.clone() else { unreachable!() };
            b.attributes(rule).budget =
                Some(Budget { tokens: budget.0, chars: budget.1, on_exhausted: BudgetPolicy::Cut });
            b.attributes(rule).temperature = Some(0.5);
            let start = b.rule("start", Expr::seq([head, Expr::text("z")]));
            b.attributes(start).temperature = Some(1.0);
            let vocab = Arc::new(Vocabulary::toy(&[]));
            let constraint = Engine::new(vocab, EngineOptions::default())
                .compile(b.finish(start).unwrap())
                .unwrap();
            let mut matcher = constraint.matcher();
            assert_eq!(matcher.temperature(), Some(0.5));
            take(&mut matcher, "xx");
            assert_eq!(matcher.temperature(), Some(1.0));
            take(&mut matcher, "z");
            assert!(matcher.is_complete());
            assert_eq!(
                captured(&mut matcher),
                pairs(&[("body", "xx"), ("head", "xx")]),
                "{budget:?}"
            );
        }
    }

    #[test]
    fn a_token_that_does_not_fit_as_bytes_leaves_no_open_budget() {
        let mut b = GrammarBuilder::new();
        let name = b.rule("name", Expr::repeat(letters(), 1, None));
        let budget = Budget { tokens: Some(1), chars: None, on_exhausted: BudgetPolicy::Cut };
        *b.attributes(name) = Attributes {
            capture: Some("name".into()),
            budget: Some(budget),
            ..Attributes::default()
        };
        let special = b.special(SpecialToken::Name("<|tool|>".into()));
        let as_text = Expr::seq([Expr::text("<|"), Expr::Ref(name), Expr::text("!")]);
        let as_special = Expr::seq([Expr::Special(special), letters()]);
        let start = b.rule("start", Expr::alt([as_text, as_special]));
        // The special token is an ordinary one, whose bytes begin like the other alternative.
        let vocab = Arc::new(Vocabulary::toy(&[b"<|tool|>"]));
        let constraint =
            Engine::new(vocab, EngineOptions::default()).compile(b.finish(start).unwrap()).unwrap();
        let mut matcher = constraint.matcher();
        matcher.advance(TokenId::from_raw(257)).unwrap();
        assert_eq!(captured(&mut matcher), []);
        take(&mut matcher, "x");
        assert!(matcher.is_complete());
        assert_eq!(captured(&mut matcher), []);
    }
}
