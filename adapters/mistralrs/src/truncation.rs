//! Truncation safety: near the length limit the mask narrows, so that what is open can still be closed.
//!
//! The shortest completion of what was said so far is known (in tokens, an upper bound of the fewest). While the room left is far
//! more than that, nothing happens. Near the end only tokens are left behind which a completion still fits: the first token
//! of the shortest completion, and of the likeliest others those that were looked at and fit.

use louver::engine::{CompletionOptions, Matcher};
use louver::fuel;
use louver::ids::TokenId;

use crate::record::largest;

/// When the mask narrows near the length limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Truncation {
    /// Where the turn must have a form: a call is forced, or a response format is given.
    #[default]
    Auto,
    /// Always: a call that was begun of the model's own accord is finished too.
    Safe,
    /// Never: what does not fit is cut off.
    Off,
}

/// How many of the likeliest tokens are looked at near the end.
const CANDIDATES: usize = 8;
/// Room beyond the shortest completion, as multiples of the longest one seen and in tokens, where narrowing begins.
const MARGIN: (usize, usize) = (2, 32);
/// Tokens between looks while there is much room.
const PATIENCE: usize = 16;

/// Keeps a turn within its limit.
#[derive(Debug, Default)]
pub(crate) struct Safety {
    /// Generated tokens at which to look again.
    look_at: usize,
    /// The longest shortest completion so far.
    longest: usize,
    /// Completions known at the last look, each by the token that was kept for it.
    ///
    /// The shortest completion in bytes need not be the shortest in tokens. Of two texts as short,
    /// the search may find the one with fewer tokens now and the other behind its first token, so
    /// what was found before is kept.
    known: Vec<(TokenId, Vec<TokenId>)>,
}

impl Safety {
    /// Narrows the mask, if need be. `room` is how many tokens may still come, a stop token not counted. True if a token
    /// that the model preferred was taken away.
    /// All searches of one step have the fuel of one mask together; past it, only the shortest
    /// completion that was found first is kept.
    pub(crate) fn narrow(
        &mut self,
        matcher: &mut Matcher,
        mask: &mut [u32],
        row: &[f32],
        room: usize,
    ) -> bool {
        let fuel = matcher.mask_fuel();
        fuel::limited(fuel, || self.narrow_within(matcher, mask, row, room))
    }

    fn narrow_within(
        &mut self,
        matcher: &mut Matcher,
        mask: &mut [u32],
        row: &[f32],
        room: usize,
    ) -> bool {
        let position = matcher.tokens().len();
        if position < self.look_at {
            return false;
        }
        let known = self.continued(matcher);
        let found = [shortest(matcher), known].into_iter().flatten().min_by_key(Vec::len);
        let Some(way) = found else {
            self.look_at = position + PATIENCE;
            return false;
        };
        self.longest = self.longest.max(way.len());
        // Nothing fits any more: the turn will be cut off wherever it is.
        let Some(slack) = room.checked_sub(way.len()) else { return false };
        let margin = MARGIN.0 * self.longest + MARGIN.1;
        if slack > margin {
            self.look_at = position + if slack > 2 * margin { PATIENCE } else { 1 };
            return false;
        }
        let allows = |id: usize| mask.get(id / 32).is_some_and(|word| word >> (id % 32) & 1 == 1);
        let likely = largest(row, CANDIDATES, allows);
        // The completion behind a token; a stop token needs none.
        let behind = |matcher: &mut Matcher, token: TokenId| {
            if matcher.vocab().is_stop(token) {
                return Some(Vec::new());
            }
            matcher.advance(token).ok()?;
            let way = shortest(matcher);
            matcher.rollback(1);
            way.filter(|way| way.len() < room)
        };
        let mut pressed = false;
        for (id, _) in likely {
            let token = TokenId::from_raw(id as u32);
            let way = behind(matcher, token);
            pressed |= way.is_none();
            self.known.extend(way.map(|way| (token, way)));
        }
        let mut kept: Vec<u32> = self.known.iter().map(|(token, _)| token.raw()).collect();
        // A stop token may follow where nothing is missing.
        match way.split_first() {
            Some((first, rest)) => {
                kept.push(first.raw());
                self.known.push((*first, rest.to_vec()));
            }
            None => kept.extend(matcher.vocab().stops().iter().map(|stop| stop.raw())),
        }
        mask.fill(0);
        for id in kept {
            mask[id as usize / 32] |= 1 << (id % 32);
        }
        pressed
    }

    /// What was known at the last look of the token that was taken since, if it completes the text.
    fn continued(&mut self, matcher: &mut Matcher) -> Option<Vec<TokenId>> {
        let known = std::mem::take(&mut self.known);
        let last = *matcher.tokens().last()?;
        let ways = known.into_iter().filter(|(token, _)| *token == last).map(|(_, way)| way);
        ways.filter(|way| completes(matcher, way)).min_by_key(Vec::len)
    }
}

fn completes(matcher: &mut Matcher, way: &[TokenId]) -> bool {
    let read = way.iter().take_while(|token| matcher.advance(**token).is_ok()).count();
    let completes = read == way.len() && matcher.is_complete();
    matcher.rollback(read);
    completes
}

fn shortest(matcher: &mut Matcher) -> Option<Vec<TokenId>> {
    matcher.shortest_completion_tokens(&CompletionOptions::default()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use louver::engine::{Engine, EngineOptions};
    use louver::front::json_schema::SchemaOptions;
    use louver::vocab::Vocabulary;

    use super::*;
    use crate::sampler::mix;

    /// Runs a model that always prefers one token, in a schema, with a limit; gives the text and whether it was pressed.
    fn run(schema: &str, prefers: u8, limit: usize) -> (String, bool, bool) {
        let vocab = Vocabulary::toy(&[b"\":", b"{\"", b"\"}"]);
        run_model(schema, vocab, limit, |_, row| row[usize::from(prefers)] = 5.0)
    }

    /// Runs a model that sets the logits of each position.
    fn run_model(
        schema: &str,
        vocab: Vocabulary,
        limit: usize,
        model: impl Fn(usize, &mut [f32]),
    ) -> (String, bool, bool) {
        let vocab = Arc::new(vocab);
        let engine = Engine::new(vocab.clone(), EngineOptions::default());
        let mut matcher =
            engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap().matcher();
        let mut safety = Safety::default();
        let mut mask = vec![0; vocab.mask_words()];
        let (mut text, mut pressed) = (Vec::new(), false);
        while text.len() < 10_000 {
            let room = limit - matcher.tokens().len();
            if room == 0 {
                break;
            }
            let mut row = vec![0.0; vocab.width()];
            model(matcher.tokens().len(), &mut row);
            vocab.stops().iter().for_each(|stop| row[stop.raw() as usize] = -5.0);
            matcher.fill_mask(&mut mask);
            pressed |= safety.narrow(&mut matcher, &mut mask, &row, room);
            let allows = |id: usize| mask[id / 32] >> (id % 32) & 1 == 1;
            let (id, _) = largest(&row, 1, allows)[0];
            let token = TokenId::from_raw(id as u32);
            if vocab.is_stop(token) {
                break;
            }
            matcher.advance(token).unwrap();
            text.extend_from_slice(vocab.bytes(token).unwrap());
        }
        (String::from_utf8(text).unwrap(), matcher.is_complete(), pressed)
    }

    #[test]
    fn open_objects_are_closed_within_the_limit() {
        let schema = r#"{"type": "object", "properties": {"a": {"enum": ["yes", "no"]}, "b": {"type": "integer"}},
            "required": ["a", "b"]}"#;
        // Texts as long in bytes have different numbers of tokens.
        let words: [&[u8]; 8] =
            [b"\":", b"{\"", b"\"}", b"no\"", b"\n\n", b"\"b\":0", b"b\":0,\"a", b"\",\""];
        for seed in 0..40 {
            for limit in [30, 60, 100] {
                let vocab = Vocabulary::toy(&words);
                let (text, complete, _) = run_model(schema, vocab, limit, |position, row| {
                    for (id, logit) in row.iter_mut().enumerate() {
                        let at = seed << 40 ^ (position as u64) << 20 ^ id as u64;
                        *logit = (mix(at) >> 40) as f32 / 1e5;
                    }
                });
                assert!(complete, "{seed} {limit}: {text}");
            }
        }
    }

    #[test]
    fn whatever_the_limit_the_text_is_whole_if_it_can_be() {
        let schema = r##"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"$ref": "#"}},
            "c": {"type": "integer"}}, "required": ["a", "c"], "additionalProperties": false}"##;
        // {"a":"","c":0} in tokens: {" a ": " " , " c ": 0 }
        for limit in 11..150 {
            for prefers in [b'x', b'[', b'{', b'"', b'1', b' ', b','] {
                let (text, complete, _) = run(schema, prefers, limit);
                assert!(complete, "{limit} {:?}: {text}", char::from(prefers));
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert!(
                    jsonschema::is_valid(&serde_json::from_str(schema).unwrap(), &value),
                    "{text}"
                );
            }
        }
        // Pressed only where the model wanted more.
        assert!(run(schema, b'x', 60).2);
        // What cannot fit is left as it is.
        let (_, complete, _) = run(schema, b'x', 9);
        assert!(!complete);
    }
}
