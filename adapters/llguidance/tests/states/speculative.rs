//! Speculative use as hosts do it: drafts are validated, consumed and taken back, clones go on, and
//! every state is that of a fresh matcher over the same tokens.

use louver_test_support::Random;

use super::*;

/// Steps of each grammar and environment, and where the random numbers begin.
const STEPS: usize = 300;
const SEED: u64 = 0x2545_F491_4F6C_DD1D;
/// Most matchers that go on beside each other, and most tokens of one.
const MAX_FORKS: usize = 6;
const MAX_TOKENS: usize = 40;

/// All bytes, parts of a text, and two end tokens.
fn environment(canonical: bool) -> TokEnv {
    let text = br#"{"name": "abab", "n": -12.5, "ok": [true, null]} let x = ab;"#;
    let mut words: Vec<Vec<u8>> = (0..=254u8).map(|byte| vec![byte]).collect();
    words.extend((2..=5).flat_map(|length| text.windows(length).map(<[u8]>::to_vec)));
    words.sort();
    words.dedup();
    let end = words.len() as TokenId;
    for name in ["<end>", "<eot>"] {
        words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat());
    }
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words);
    let trie = trie.with_eos_tokens(&[end, end + 1]);
    if canonical { Arc::new(Greedy(trie)) } else { Arc::new(ApproximateTokEnv::new(trie)) }
}

fn grammars() -> Vec<TopLevelGrammar> {
    let object = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "n": {"type": "number", "minimum": -20},
            "ok": {"type": "array", "items": {"type": ["boolean", "null"]}}},
        "required": ["name"], "additionalProperties": false,
    });
    let texts = [
        "start: \"let \" NAME \" = \" value \";\"\nNAME: /[a-z]+/\nvalue: NAME | \"[\" value \"]\"",
        "start: w \"!\"\nw[capture, stop=\";\"]: /.*/",
        "start: (a | b)+\na[capture]: \"ab\"+\nb[capture, max_tokens=2]: /[0-9]+/",
        "start: \"abab\" /[ab]{0,6}/ \"abab\"",
        "start: \"ab\" <eot> \"ab\" | \"n\" <end>",
        "start: /a*/ \"ab\" %json {\"enum\": [\"ab\", [true, null], {\"name\": 1}]}",
    ];
    let texts = texts.map(|text| TopLevelGrammar::from_lark(text.to_owned()));
    let mut limited = TopLevelGrammar::from_regex("[ab]+");
    limited.max_tokens = Some(5);
    texts.into_iter().chain([TopLevelGrammar::from_json_schema(object), limited]).collect()
}

/// Matchers of one grammar, and what they were given.
struct Run {
    env: TokEnv,
    /// Of fresh matchers: it shares no cache with that of the others.
    reference: ParserFactory,
    grammar: TopLevelGrammar,
    forks: Vec<(Matcher, Vec<TokenId>)>,
    /// Which fork is in use.
    at: usize,
    random: Random,
}

impl Run {
    fn new(env: &TokEnv, grammar: TopLevelGrammar, seed: u64) -> Run {
        let make = || {
            let mut factory = ParserFactory::new_simple(env).unwrap();
            factory.quiet().limits_mut().verbose_errors = false;
            factory
        };
        let first = Matcher::new(make().create_parser(grammar.clone()));
        let (env, reference, forks) = (env.clone(), make(), vec![(first, Vec::new())]);
        Run { env, reference, grammar, forks, at: 0, random: Random(seed) }
    }

    /// A matcher that was given these tokens and nothing else.
    fn fresh(&self, tokens: &[TokenId]) -> Matcher {
        let mut fresh = Matcher::new(self.reference.create_parser(self.grammar.clone()));
        tokens.iter().for_each(|&token| fresh.consume_token(token).unwrap());
        fresh
    }

    /// Tokens that a model may propose: allowed ones at first, and then any.
    fn draft(&mut self) -> Vec<TokenId> {
        let mut matcher = self.fresh(&self.forks[self.at].1);
        let size = self.env.tok_trie().vocab_size();
        let mut draft = Vec::new();
        for _ in 0..self.random.below(5) {
            let mask = matcher.compute_mask_or_eos().map(|mask| mask.to_list());
            let allowed = mask.unwrap_or_default();
            if allowed.is_empty() || self.random.below(4) == 0 {
                draft.push(self.random.below(size) as TokenId);
                continue;
            }
            // Half of them end a part, so that texts come to an end.
            let picked = allowed[self.random.below(allowed.len())];
            let closing = |token: &&TokenId| {
                matches!(self.env.tok_trie().token(**token), [.., b'"' | b'}' | b']' | b';'])
            };
            let closing = allowed.iter().find(closing).filter(|_| picked.is_multiple_of(2));
            draft.push(*closing.unwrap_or(&picked));
            if matcher.try_consume_tokens(&draft[draft.len() - 1..]).is_err() {
                break;
            }
        }
        draft
    }

    /// How many tokens of a draft a fresh matcher takes, one by one.
    fn taken(&self, draft: &[TokenId]) -> usize {
        let mut fresh = self.fresh(&self.forks[self.at].1);
        let takes = |&&token: &&TokenId| !fresh.is_stopped() && fresh.consume_token(token).is_ok();
        draft.iter().take_while(takes).count()
    }

    fn step(&mut self) {
        let draft = self.draft();
        let is_limited = self.grammar.max_tokens.is_some();
        let expected = self.taken(&draft);
        let kind = self.random.below(9);
        let count = self.random.below(6);
        let forks = self.forks.len();
        let (matcher, tokens) = &mut self.forks[self.at];
        match kind {
            0 => {
                let valid = matcher.validate_tokens(&draft).unwrap();
                // Validation knows no limit of a whole grammar, and has an end token after a text
                // that stops without one.
                let is_end = |token: &TokenId| self.env.tok_trie().eos_tokens().contains(token);
                let ends = draft.get(expected).is_some_and(is_end) && valid == expected + 1;
                let is_right = valid == expected || ends || is_limited && valid > expected;
                assert!(is_right, "{draft:?} after {tokens:?}: {valid}, {expected} consumed");
            }
            1 | 2 => {
                matcher.consume_tokens(&draft[..expected]).unwrap();
                tokens.extend(&draft[..expected]);
            }
            3 if !is_limited => {
                assert_eq!(matcher.try_consume_tokens(&draft).unwrap(), expected);
                tokens.extend(&draft[..expected]);
            }
            4 | 5 => {
                let count = count.min(tokens.len());
                matcher.rollback(count).unwrap();
                tokens.truncate(tokens.len() - count);
            }
            6 if forks < MAX_FORKS => {
                let fork = (matcher.deep_clone(), tokens.clone());
                self.forks.push(fork);
            }
            6 => drop(self.forks.remove(count % MAX_FORKS)),
            7 if expected < draft.len() => {
                // A refused token ends a clone, and leaves the rest as it is.
                let mut fork = matcher.deep_clone();
                fork.consume_tokens(&draft[..expected]).unwrap();
                fork.consume_token(draft[expected]).unwrap_err();
                assert!(fork.is_error() && fork.rollback(1).is_err());
            }
            7 => {
                matcher.reset().unwrap();
                tokens.clear();
            }
            _ if !is_limited => {
                let forced = matcher.compute_ff_tokens();
                assert_eq!(matcher.consume_ff_tokens(), forced);
                tokens.extend(forced);
            }
            _ => {}
        }
        self.at = self.random.below(self.forks.len());
        let (matcher, tokens) = &mut self.forks[self.at];
        if tokens.len() > MAX_TOKENS {
            matcher.rollback(tokens.len() / 2).unwrap();
            tokens.truncate(tokens.len() - tokens.len() / 2);
        }
        self.compare();
    }

    /// What the matcher in use says is what a fresh one says.
    fn compare(&mut self) {
        let mut fresh = self.fresh(&self.forks[self.at].1);
        let asks_mask_first = self.random.below(2) == 0;
        let (matcher, tokens) = &mut self.forks[self.at];
        let observe = |matcher: &mut Matcher| {
            let mask = |matcher: &mut Matcher| list(matcher.compute_mask_or_eos());
            let early = asks_mask_first.then(|| mask(matcher));
            let forced = (matcher.compute_ff_tokens(), matcher.compute_ff_bytes());
            let mask = early.unwrap_or_else(|| mask(matcher));
            let captures = matcher.captures().to_vec();
            let state = (matcher.is_accepting().unwrap(), matcher.stop_reason());
            (mask, forced, captures, state)
        };
        let (found, expected) = (observe(matcher), observe(&mut fresh));
        assert_eq!(found, expected, "after {tokens:?}");
        let (forced, _) = &found.1;
        assert_eq!(matcher.validate_tokens(forced).unwrap(), forced.len());
    }
}

#[test]
fn speculation_leaves_no_trace() {
    for canonical in [false, true] {
        let env = environment(canonical);
        for (at, grammar) in grammars().into_iter().enumerate() {
            let mut run = Run::new(&env, grammar, SEED + at as u64);
            (0..STEPS).for_each(|_| run.step());
        }
    }
}
