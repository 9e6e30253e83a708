//! What a generation's steps looked like, for `logprobs` and for the inspector. Costs nothing where it is not asked for.

use louver::engine::Matcher;
use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_candle::scalar;
use serde::{Deserialize, Serialize};

/// What is kept of each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Nothing.
    #[default]
    Nothing,
    /// The chosen token's probability and those of the `top` likeliest allowed tokens. Cost: two passes over the row with an
    /// exponential for each logit.
    Logprobs {
        /// How many.
        top: usize,
    },
    /// That, how much probability the mask removed, and the `top` likeliest refused tokens with the reason.
    Trace {
        /// How many of each.
        top: usize,
        /// Most bytes of steps, in memory; as JSON they are about as many. The step that reaches it is the last: see [`Step::cut`].
        bytes: usize,
        /// From there on steps are recorded as with [`Record::Logprobs`], with so many alternatives; not at all if none.
        then: Option<usize>,
    },
}

impl Record {
    fn top(self) -> usize {
        match self {
            Record::Nothing => 0,
            Record::Logprobs { top } | Record::Trace { top, .. } => top,
        }
    }
}

/// What a token belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Free text.
    Text,
    /// Reasoning.
    Reasoning,
    /// The answer that a response format asks for.
    Response,
    /// Markers and separators, the stop token too.
    Marker,
    /// The header of a call.
    Header,
    /// The arguments of a call.
    Arguments,
    /// The end of a call.
    Trailer,
    /// A generation without a constraint.
    #[default]
    Free,
}

/// A token that could have been chosen, or could not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its id.
    pub token: u32,
    /// Its text; bytes that are no text as `\xNN`.
    pub text: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One decoding step. Probabilities are those of the model's softmax at temperature 1, penalties included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its place among the generated tokens.
    pub position: usize,
    /// The chosen token.
    pub token: u32,
    /// Its text; bytes that are no text as `\xNN`.
    pub text: String,
    /// Its bytes; none for special tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<u8>,
    /// What it belongs to.
    pub phase: Phase,
    /// How many tokens were allowed.
    pub allowed: usize,
    /// Natural logarithm of the chosen token's probability among the allowed.
    pub logprob: f32,
    /// How much probability the refused tokens had, 0 to 1.
    pub removed_mass: f32,
    /// Only one token was allowed.
    pub forced: bool,
    /// The likeliest allowed tokens: probabilities among the allowed.
    pub top: Vec<Candidate>,
    /// The likeliest refused tokens: probabilities among all.
    pub refused: Vec<Candidate>,
    /// The trace reached its bound with this step: what follows is not part of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Step {
    /// Its memory, in bytes.
    fn size(&self) -> usize {
        let candidate = |c: &Candidate| {
            size_of::<Candidate>() + c.text.len() + c.reason.as_ref().map_or(0, String::len)
        };
        let candidates = self.top.iter().chain(&self.refused).map(candidate).sum::<usize>();
        size_of::<Step>() + self.text.len() + self.bytes.len() + candidates
    }
}

/// Notes of the step whose token is not known yet.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    record: Record,
    /// The row before the mask.
    row: Vec<f32>,
    pending: Option<Step>,
    /// Logarithm of the sum over the allowed.
    allowed_sum: f32,
    /// Bytes of a trace's steps so far.
    recorded: usize,
}

impl Recorder {
    pub(crate) fn new(record: Record) -> Recorder {
        Recorder { record, ..Recorder::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.record != Record::Nothing
    }

    /// Notes a row as the model gave it, and what is allowed.
    pub(crate) fn note(
        &mut self,
        position: usize,
        row: &[f32],
        mask: Option<&[u32]>,
        matcher: Option<&mut Matcher>,
        vocab: &Vocabulary,
    ) {
        self.row.clear();
        self.row.extend_from_slice(row);
        let allows = |id: usize| mask.is_none_or(|mask| scalar::allows(mask, id));
        let all_sum = log_sum(row.iter().copied());
        let allowed_rows = || row.iter().enumerate().filter(|(id, _)| allows(*id)).map(|(_, x)| *x);
        self.allowed_sum = log_sum(allowed_rows());
        let allowed = allowed_rows().count();
        let candidate = |(id, logprob): (usize, f32)| Candidate {
            token: id as u32,
            text: shown(vocab, id as u32),
            logprob,
            reason: None,
        };
        let top = largest(row, self.record.top(), allows);
        let top = top.into_iter().map(|(id, x)| candidate((id, x - self.allowed_sum))).collect();
        let (mut refused, mut removed_mass) = (Vec::new(), 0.0);
        if let Record::Trace { top, .. } = self.record {
            removed_mass = (1.0 - (self.allowed_sum - all_sum).exp()).clamp(0.0, 1.0);
            let found = largest(row, top, |id| !allows(id));
            refused = found.into_iter().map(|(id, x)| candidate((id, x - all_sum))).collect();
            if let Some(matcher) = matcher {
                for candidate in &mut refused {
                    candidate.reason = Some(refusal(matcher, candidate.token));
                }
            }
        }
        self.pending = Some(Step {
            position,
            token: 0,
            text: String::new(),
            bytes: Vec::new(),
            phase: Phase::Free,
            allowed,
            logprob: 0.0,
            removed_mass,
            forced: allowed == 1,
            top,
            refused,
            cut: false,
        });
    }

    /// The step at this place, now that its token is known; the reader finds its phase.
    pub(crate) fn settle(
        &mut self,
        position: usize,
        token: u32,
        vocab: &Vocabulary,
    ) -> Option<Step> {
        let step = self.pending.take().filter(|step| step.position == position)?;
        let logit = self.row.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let logprob = (logit - self.allowed_sum).max(f32::MIN);
        let bytes = vocab.bytes(TokenId::from_raw(token)).unwrap_or_default().to_vec();
        let mut step = Step { token, text: shown(vocab, token), bytes, logprob, ..step };
        if let Record::Trace { bytes, then, .. } = self.record {
            self.recorded += step.size();
            step.cut = self.recorded >= bytes;
            if step.cut {
                self.record = then.map_or(Record::Nothing, |top| Record::Logprobs { top });
            }
        }
        Some(step)
    }
}

fn refusal(matcher: &mut Matcher, token: u32) -> String {
    match matcher.refusal(TokenId::from_raw(token)) {
        Ok(Some(refusal)) => refusal.to_string(),
        Ok(None) => "too long for what is left of the length limit".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn shown(vocab: &Vocabulary, token: u32) -> String {
    if (token as usize) < vocab.width() {
        vocab.shown(TokenId::from_raw(token))
    } else {
        format!("<{token}>")
    }
}

/// Logarithm of the sum of exponentials of what is finite.
fn log_sum(values: impl Iterator<Item = f32> + Clone) -> f32 {
    let finite = values.filter(|x| x.is_finite());
    let max = finite.clone().fold(f32::NEG_INFINITY, f32::max);
    if max == f32::NEG_INFINITY {
        return max;
    }
    max + finite.map(|x| f64::from(x - max).exp()).sum::<f64>().ln() as f32
}

/// The `n` largest finite values among those of `which`, largest first.
pub(crate) fn largest(row: &[f32], n: usize, which: impl Fn(usize) -> bool) -> Vec<(usize, f32)> {
    let mut best: Vec<(usize, f32)> = Vec::with_capacity(n + 1);
    if n == 0 {
        return best;
    }
    for (id, &x) in row.iter().enumerate() {
        let is_better = best.len() < n || best.last().is_some_and(|(_, least)| x > *least);
        if is_better && x.is_finite() && which(id) {
            let at = best.partition_point(|(_, other)| *other >= x);
            best.insert(at, (id, x));
            best.truncate(n);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_are_the_largest() {
        let row = [1.0, f32::NAN, 3.0, 2.0, 3.0, f32::NEG_INFINITY];
        assert_eq!(largest(&row, 3, |_| true), [(2, 3.0), (4, 3.0), (3, 2.0)]);
        assert_eq!(largest(&row, 9, |id| id != 2), [(4, 3.0), (3, 2.0), (0, 1.0)]);
        assert!(largest(&row, 0, |_| true).is_empty());
    }

    #[test]
    fn probabilities() {
        let vocab = Vocabulary::toy(&[]);
        let mut recorder = Recorder::new(Record::Trace { top: 2, bytes: usize::MAX, then: None });
        let mut row = vec![f32::NEG_INFINITY; 258];
        row[97] = 0.5f32.ln();
        row[98] = 0.3f32.ln();
        row[99] = 0.2f32.ln();
        let mut mask = vec![0u32; 9];
        mask[3] = 0b1100; // 98 and 99
        recorder.note(4, &row, Some(&mask), None, &vocab);
        let step = recorder.settle(4, 98, &vocab).unwrap();
        assert_eq!((step.allowed, step.forced, &*step.text), (2, false, "b"));
        assert!((step.removed_mass - 0.5).abs() < 1e-5 && (step.logprob.exp() - 0.6).abs() < 1e-5);
        assert_eq!(step.top.iter().map(|c| c.token).collect::<Vec<_>>(), [98, 99]);
        assert_eq!(step.refused.iter().map(|c| c.token).collect::<Vec<_>>(), [97]);
        assert!((step.refused[0].logprob.exp() - 0.5).abs() < 1e-5);
        assert!(recorder.settle(4, 98, &vocab).is_none());
    }

    #[test]
    fn traces_are_bounded_while_they_grow() {
        let vocab = Vocabulary::toy(&[]);
        let (row, mask) = (vec![0.5; 258], vec![1u32; 9]);
        let steps = |bytes, then| {
            let mut recorder = Recorder::new(Record::Trace { top: 4, bytes, then });
            let mut step = |position| {
                if !recorder.is_on() {
                    return None;
                }
                recorder.note(position, &row, Some(&mask), None, &vocab);
                recorder.settle(position, 0, &vocab)
            };
            (0..50).map_while(&mut step).collect::<Vec<Step>>()
        };
        let all = steps(usize::MAX, None);
        assert!(all.len() == 50 && all.iter().all(|step| !step.cut && step.refused.len() == 4));
        let bound = 10 * all[0].size();
        let cut = steps(bound, None);
        assert_eq!(
            cut.iter().map(|step| step.cut).collect::<Vec<_>>(),
            [[false; 9].as_slice(), &[true]].concat()
        );
        assert!(cut.iter().map(Step::size).sum::<usize>() < bound + all[0].size());
        // Probabilities are still wanted: no more than those.
        let on = steps(bound, Some(1));
        assert_eq!((on.len(), on.iter().filter(|step| step.cut).count()), (50, 1));
        assert!(on[10..].iter().all(|step| step.top.len() == 1 && step.refused.is_empty()));
    }
}
