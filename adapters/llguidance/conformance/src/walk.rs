//! Random walks of the two side by side.

use std::collections::BTreeMap;

use louver_test_support::Random;
use serde_json::Value;
use toktrie::{SimpleVob, TokEnv, TokenId};

use crate::{Case, Class, Difference, Side, classify};

/// Longest walk, in tokens.
const LONGEST: usize = 80;
/// Most differences that are kept as text.
const MAX_SHOWN: usize = 40;

/// What walks have found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Masks compared.
    pub masks: usize,
    /// Masks that are equal.
    pub equal: usize,
    /// Tokens outside both masks that were given to both.
    pub refusals: usize,
    /// Grammars that only one side compiles: its name, which side, and the other's message.
    pub refused: Vec<(String, Side, String)>,
    /// Grammars that neither compiles, with our message.
    pub refused_by_both: Vec<String>,
    /// Differences by class: masks that have one.
    pub classes: BTreeMap<Class, usize>,
    /// Differences without a reason.
    pub unexplained: Vec<String>,
}

/// What a matcher does at a token outside its mask.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    /// Whether it takes the token all the same.
    taken: bool,
    /// How many tokens it takes if it may take none, and whether its mask is the same after that.
    tried: Option<usize>,
    is_unchanged: bool,
    /// Its state once it was given the token.
    is_stopped: bool,
    is_error: bool,
    stop_reason: String,
    /// Whether it goes on: by a mask, by taking a token back, by another token.
    goes_on: [bool; 3],
}

/// Gives a token to clones of a matcher.
macro_rules! refusal {
    ($matcher:expr, $token:expr) => {{
        let before = $matcher.clone().compute_mask_or_eos().map(|mask| mask.to_list()).ok();
        let mut tried = $matcher.clone();
        let count = tried.try_consume_tokens(&[$token]).ok();
        let after = tried.compute_mask_or_eos().map(|mask| mask.to_list()).ok();
        let mut given = $matcher.clone();
        let taken = given.consume_token($token).is_ok();
        Refusal {
            taken,
            tried: count,
            is_unchanged: before == after,
            is_stopped: given.is_stopped(),
            is_error: given.is_error(),
            stop_reason: format!("{:?}", given.stop_reason()),
            goes_on: [
                given.clone().compute_mask_or_eos().is_ok(),
                given.clone().rollback(1).is_ok(),
                given.clone().consume_token(0).is_ok(),
            ],
        }
    }};
}

/// The two matchers of a grammar.
struct Pair<'a> {
    case: &'a Case,
    env: &'a TokEnv,
    ours: llguidance::Matcher,
    original: original::Matcher,
    text: Vec<u8>,
    tokens: Vec<TokenId>,
}

/// Walks through a grammar until so many masks were compared.
pub fn walk(case: &Case, env: &TokEnv, masks: usize, seed: u64, report: &mut Report) {
    let grammar = case.grammar();
    let (ours, original) = match (our_parser(env, &grammar), original_parser(env, &grammar)) {
        (Ok(ours), Ok(original)) => (ours, original),
        (Ok(_), Err(error)) => {
            report.refused.push((case.name.clone(), Side::Ours, error.to_string()));
            return;
        }
        (Err(error), Ok(_)) => {
            report.refused.push((case.name.clone(), Side::Original, error.to_string()));
            return;
        }
        (Err(ours), Err(_)) => {
            report.refused_by_both.push(format!("{}: {ours:#}", case.name));
            return;
        }
    };
    let ours = llguidance::Matcher::new(Ok(ours));
    let original = original::Matcher::new(Ok(original));
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let until = report.masks + masks;
    while report.masks < until {
        let (ours, original) = (ours.clone(), original.clone());
        let (text, tokens) = (Vec::new(), Vec::new());
        let mut pair = Pair { case, env, ours, original, text, tokens };
        for _ in 0..LONGEST.min(until - report.masks) {
            if pair.step(&mut random, report).is_none() {
                break;
            }
        }
    }
}

pub(crate) fn our_parser(env: &TokEnv, grammar: &Value) -> anyhow::Result<llguidance::TokenParser> {
    let mut factory = llguidance::ParserFactory::new_simple(env)?;
    factory.quiet().limits_mut().verbose_errors = false;
    factory.create_parser(serde_json::from_value(grammar.clone())?)
}

pub(crate) fn original_parser(
    env: &TokEnv,
    grammar: &Value,
) -> anyhow::Result<original::TokenParser> {
    let mut factory = original::ParserFactory::new_simple(env)?;
    factory.quiet().limits_mut().verbose_errors = false;
    factory.create_parser(serde_json::from_value(grammar.clone())?)
}

impl Pair<'_> {
    /// Compares the masks and takes a token that both allow; None at the end of the walk.
    fn step(&mut self, random: &mut Random, report: &mut Report) -> Option<()> {
        report.masks += 1;
        let (ours, original) =
            (self.ours.compute_mask_or_eos(), self.original.compute_mask_or_eos());
        let (ours, original) = match (ours, original) {
            (Ok(ours), Ok(original)) => (ours, original),
            (Err(_), Err(_)) => {
                report.equal += 1;
                return None;
            }
            (ours, original) => {
                let show = |mask: anyhow::Result<SimpleVob>| match mask {
                    Ok(mask) => format!("{} tokens", mask.num_set()),
                    Err(error) => format!("{error:#}"),
                };
                let message = format!("ours: {}; original: {}", show(ours), show(original));
                self.unexplained(report, &message);
                return None;
            }
        };
        if ours.iter().eq(original.iter()) {
            report.equal += 1;
            if self.ours.is_stopped() != self.original.is_stopped() {
                self.end_differs(report);
                return None;
            }
        } else {
            self.compare(&ours, &original, report);
        }
        if self.ours.is_stopped() || self.original.is_stopped() {
            return None;
        }
        let mut both = ours.clone();
        both.and(&original);
        let mut any = ours;
        any.or(&original);
        let token = self.choose(&both, random)?;
        self.check_validation(token, random, report);
        self.check_refusal(&any, random, report)?;
        let taken = (self.ours.consume_token(token), self.original.consume_token(token));
        match taken {
            (Ok(()), Ok(())) => {
                self.text.extend(self.env.tok_trie().decode(&[token]));
                self.tokens.push(token);
            }
            (Err(_), Err(_)) => return None,
            (ours, original) => {
                self.unexplained(report, &format!("token {token}: {ours:?} {original:?}"));
                return None;
            }
        }
        if random.below(25) == 0 {
            self.roll_back(random, report)?;
        }
        Some(())
    }

    /// Both validate a token that both allow, and one at random alike, if their masks agree on it.
    fn check_validation(&mut self, token: TokenId, random: &mut Random, report: &mut Report) {
        if random.below(8) != 0 {
            return;
        }
        let ours = self.ours.validate_tokens(&[token]).ok();
        let original = self.original.validate_tokens(&[token]).ok();
        if ours != original {
            self.unexplained(report, &format!("validate {token}: {ours:?} {original:?}"));
        }
    }

    /// Both refuse a token that neither mask has, and are the same after it: unchanged where it was
    /// tried, stopped with an error where it was consumed. Where text is forced, both may take it.
    fn check_refusal(
        &mut self,
        allowed: &SimpleVob,
        random: &mut Random,
        report: &mut Report,
    ) -> Option<()> {
        let size = self.env.tok_trie().vocab_size();
        let token = random.below(size) as TokenId;
        if allowed.is_allowed(token) || random.below(4) != 0 {
            return Some(());
        }
        report.refusals += 1;
        let ours = refusal!(self.ours, token);
        let original = refusal!(self.original, token);
        let side = match (ours.taken, original.taken) {
            (true, false) => Side::Ours,
            (false, true) => Side::Original,
            (true, true) => return Some(()),
            (false, false) => {
                if ours != original || !ours.is_unchanged {
                    self.unexplained(report, &format!("refusing {token}: {ours:?} {original:?}"));
                    return None;
                }
                return Some(());
            }
        };
        let difference =
            Difference { side, text: &self.text, token: self.env.tok_trie().token(token) };
        if classify(self.case, &difference).is_none() {
            self.unexplained(report, &format!("{token}, in no mask: {ours:?} {original:?}"));
        }
        Some(())
    }

    /// Takes tokens back on both sides.
    fn roll_back(&mut self, random: &mut Random, report: &mut Report) -> Option<()> {
        let count = random.below(self.tokens.len().min(5) + 1);
        let results = (self.ours.rollback(count), self.original.rollback(count));
        if !matches!(results, (Ok(()), Ok(()))) {
            if self.case.classes.first() != Some(&Class::Budgets) {
                self.unexplained(report, &format!("rollback {count}: {results:?}"));
            }
            return None;
        }
        self.tokens.truncate(self.tokens.len() - count);
        self.text = self.env.tok_trie().decode(&self.tokens);
        Some(())
    }

    /// Finds reasons for all tokens that only one side allows.
    fn compare(&mut self, ours: &SimpleVob, original: &SimpleVob, report: &mut Report) {
        let env = self.env.clone();
        let trie = env.tok_trie();
        let mut classes = Vec::new();
        for (side, a, b) in [(Side::Ours, ours, original), (Side::Original, original, ours)] {
            let mut only = a.clone();
            only.sub(b);
            for token in only.iter() {
                let end = trie.eos_tokens().contains(&token);
                let bytes = if end { &[][..] } else { trie.token(token) };
                let difference = Difference { side, text: &self.text, token: bytes };
                match classify(self.case, &difference) {
                    Some(class) => classes.push(class),
                    None => {
                        let token = String::from_utf8_lossy(bytes).into_owned();
                        self.unexplained(report, &format!("only {side:?} allows {token:?}"));
                        return;
                    }
                }
            }
        }
        classes.sort();
        classes.dedup();
        for class in classes {
            *report.classes.entry(class).or_default() += 1;
        }
    }

    /// One side is at its end and the other is not.
    fn end_differs(&mut self, report: &mut Report) {
        let side = if self.ours.is_stopped() { Side::Original } else { Side::Ours };
        let difference = Difference { side, text: &self.text, token: &[] };
        match classify(self.case, &difference) {
            Some(class) => *report.classes.entry(class).or_default() += 1,
            None => self.unexplained(report, &format!("only {side:?} goes on")),
        }
    }

    /// Notes a difference without a reason.
    fn unexplained(&self, report: &mut Report, what: &str) {
        if report.unexplained.len() < MAX_SHOWN {
            let text = String::from_utf8_lossy(&self.text);
            report.unexplained.push(format!("{} after {text:?}: {what}", self.case.name));
        }
    }

    /// A token: any, or one that ends something, so that walks get far.
    fn choose(&self, mask: &SimpleVob, random: &mut Random) -> Option<TokenId> {
        let trie = self.env.tok_trie();
        let allowed = mask.to_list();
        let ends = |token: &&TokenId| {
            matches!(trie.token(**token), [.., b'"' | b']' | b'}' | b',' | b':' | b')' | b';'])
        };
        if random.below(3) == 0 {
            let closing: Vec<&TokenId> = allowed.iter().filter(ends).collect();
            if !closing.is_empty() {
                return Some(*closing[random.below(closing.len())]);
            }
        }
        let plain: Vec<&TokenId> = allowed
            .iter()
            .filter(|&&t| trie.token(t).iter().all(|b| (32..127).contains(b)))
            .collect();
        if !plain.is_empty() && random.below(4) != 0 {
            return Some(*plain[random.below(plain.len())]);
        }
        (!allowed.is_empty()).then(|| allowed[random.below(allowed.len())])
    }
}
