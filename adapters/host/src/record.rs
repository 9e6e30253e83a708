//! Recording of decoding steps, for `logprobs` and the inspector. No cost unless requested.

use louver::engine::Matcher;
use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_candle::scalar;
use serde::{Deserialize, Serialize};

/// What is recorded of each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Nothing.
    #[default]
    Nothing,
    /// The sampled token's log probability and those of the `top` most likely allowed tokens. Cost:
    /// two passes over the row, with one exponential per logit.
    Logprobs {
        /// Number of alternatives.
        top: usize,
    },
    /// Also the probability mass that the mask removed, and the `top` most likely rejected tokens
    /// with the reason.
    Trace {
        /// Number of allowed and of rejected alternatives.
        top: usize,
        /// Maximum memory of the steps in bytes; about the same as JSON. The step that reaches it
        /// is the last: see [`Step::cut`].
        bytes: usize,
        /// After that, steps are recorded as with [`Record::Logprobs`] with this many alternatives,
        /// or not at all.
        logprobs: Option<usize>,
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

/// The part of the output that a token belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Free text.
    Text,
    /// Reasoning.
    Reasoning,
    /// The response in a response format.
    Response,
    /// Markers, separators and the stop token.
    Marker,
    /// The header of a call.
    Header,
    /// The arguments of a call.
    Arguments,
    /// The end of a call.
    Trailer,
    /// Unconstrained output.
    #[default]
    Free,
}

/// An alternative token, allowed or rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The token id.
    pub token: u32,
    /// Its log probability (natural logarithm).
    pub logprob: f32,
    /// Recorded with [`Record::Trace`] only: there are up to 20 candidates a token, whose texts
    /// [`token_text`] has.
    #[serde(flatten)]
    pub shown: Option<Box<ShownCandidate>>,
}

/// What a trace shows of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShownCandidate {
    /// The token's text; bytes that are not UTF-8 as `\xNN`.
    pub text: String,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One decoding step. Probabilities are those of the model's softmax at temperature 1, including
/// penalties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Step {
    /// Index among the generated tokens.
    pub position: usize,
    /// The sampled token.
    pub token: u32,
    /// Its text; bytes that are not UTF-8 as `\xNN`.
    pub text: String,
    /// Its bytes; none for special tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<u8>,
    /// The part of the output that the token belongs to.
    pub phase: Phase,
    /// Number of allowed tokens.
    pub allowed: usize,
    /// The sampled token's log probability among the allowed tokens (natural logarithm).
    pub logprob: f32,
    /// Probability mass of the rejected tokens, from 0 to 1.
    pub removed_mass: f32,
    /// Whether only one token was allowed.
    pub forced: bool,
    /// The most likely allowed tokens, with probabilities among the allowed tokens.
    pub top: Vec<Candidate>,
    /// The most likely rejected tokens, with probabilities among all tokens.
    pub refused: Vec<Candidate>,
    /// Whether the trace reached its limit with this step, so that later steps are not part of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Step {
    /// Memory in bytes.
    fn memory(&self) -> usize {
        let shown = |shown: &ShownCandidate| {
            let reason = shown.reason.as_ref().map_or(0, String::len);
            size_of::<ShownCandidate>() + shown.text.len() + reason
        };
        let candidate =
            |c: &Candidate| size_of::<Candidate>() + c.shown.as_deref().map_or(0, shown);
        let candidates = self.top.iter().chain(&self.refused).map(candidate).sum::<usize>();
        size_of::<Step>() + self.text.len() + self.bytes.len() + candidates
    }
}

/// Records the step whose token is not sampled yet.
#[derive(Debug, Default)]
pub(crate) struct StepRecorder {
    record: Record,
    /// The row before masking.
    row: Vec<f32>,
    pending: Option<Step>,
    /// Log-sum-exp of the allowed logits.
    allowed_sum: f32,
    /// Bytes of the trace's steps so far.
    recorded: usize,
}

impl StepRecorder {
    pub(crate) fn new(record: Record) -> StepRecorder {
        StepRecorder { record, ..StepRecorder::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.record != Record::Nothing
    }

    /// Records a row of logits before masking, and the allowed tokens.
    pub(crate) fn observe(
        &mut self,
        position: usize,
        row: &[f32],
        mask: Option<&[u32]>,
        matcher: Option<&mut Matcher>,
        vocab: &Vocabulary,
    ) {
        self.row.clear();
        // As in the repaired row.
        self.row
            .extend(row.iter().map(|&x| if x == f32::INFINITY { crate::row::LARGE } else { x }));
        let row = &self.row;
        let allows = |id: usize| mask.is_none_or(|mask| scalar::allows(mask, id));
        let all_sum = log_sum_exp(row.iter().copied());
        let allowed_rows = || row.iter().enumerate().filter(|(id, _)| allows(*id)).map(|(_, x)| *x);
        self.allowed_sum = log_sum_exp(allowed_rows());
        let allowed = allowed_rows().count();
        let is_traced = matches!(self.record, Record::Trace { .. });
        let candidate = |(id, x): (usize, f32), sum: f32| {
            let token = id as u32;
            let shown = || ShownCandidate { text: token_text(vocab, token), reason: None };
            let shown = is_traced.then(|| Box::new(shown()));
            Candidate { token, logprob: x - sum, shown }
        };
        let top = largest(row, self.record.top(), allows);
        let top = top.into_iter().map(|allowed| candidate(allowed, self.allowed_sum)).collect();
        let (mut refused, mut removed_mass) = (Vec::new(), 0.0);
        if let Record::Trace { top, .. } = self.record {
            removed_mass = (1.0 - (self.allowed_sum - all_sum).exp()).clamp(0.0, 1.0);
            let rejected = largest(row, top, |id| !allows(id));
            refused = rejected.into_iter().map(|rejected| candidate(rejected, all_sum)).collect();
            if let Some(matcher) = matcher {
                for Candidate { token, shown, .. } in &mut refused {
                    let reason = refusal(matcher, *token);
                    shown.iter_mut().for_each(|shown| shown.reason = Some(reason.clone()));
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

    /// Completes the step at this position with its token. The reader adds the phase.
    pub(crate) fn complete(
        &mut self,
        position: usize,
        token: u32,
        vocab: &Vocabulary,
    ) -> Option<Step> {
        let step = self.pending.take().filter(|step| step.position == position)?;
        let logit = self.row.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let logprob = (logit - self.allowed_sum).max(f32::MIN);
        let bytes = vocab.bytes(TokenId::from_raw(token)).unwrap_or_default().to_vec();
        let mut step = Step { token, text: token_text(vocab, token), bytes, logprob, ..step };
        if let Record::Trace { bytes, logprobs, .. } = self.record {
            self.recorded += step.memory();
            step.cut = self.recorded >= bytes;
            if step.cut {
                self.record = logprobs.map_or(Record::Nothing, |top| Record::Logprobs { top });
            }
        }
        Some(step)
    }
}

fn refusal(matcher: &mut Matcher, token: u32) -> String {
    match matcher.refusal(TokenId::from_raw(token)) {
        Ok(Some(refusal)) => refusal.to_string(),
        Ok(None) => "too long for the rest of the length limit".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The text of a token; bytes that are not UTF-8 as `\xNN`, and unused ids as `<N>`.
pub fn token_text(vocab: &Vocabulary, token: u32) -> String {
    if (token as usize) < vocab.width() {
        vocab.shown(TokenId::from_raw(token))
    } else {
        format!("<{token}>")
    }
}

/// Log-sum-exp of the finite values.
fn log_sum_exp(values: impl Iterator<Item = f32> + Clone) -> f32 {
    let finite = values.filter(|x| x.is_finite());
    let max = finite.clone().fold(f32::NEG_INFINITY, f32::max);
    if max == f32::NEG_INFINITY {
        return max;
    }
    max + finite.map(|x| f64::from(x - max).exp()).sum::<f64>().ln() as f32
}

/// The `n` largest values whose index satisfies `filter`, largest first, without NaN and `-inf`.
pub(crate) fn largest(row: &[f32], n: usize, filter: impl Fn(usize) -> bool) -> Vec<(usize, f32)> {
    let mut best: Vec<(usize, f32)> = Vec::with_capacity(n.min(row.len()) + 1);
    if n == 0 {
        return best;
    }
    for (id, &x) in row.iter().enumerate() {
        let is_better = best.len() < n || best.last().is_some_and(|(_, least)| x > *least);
        if is_better && x > f32::NEG_INFINITY && filter(id) {
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
    fn largest_returns_finite_values_in_order() {
        let row = [1.0, f32::NAN, 3.0, 2.0, 3.0, f32::NEG_INFINITY];
        assert_eq!(largest(&row, 3, |_| true), [(2, 3.0), (4, 3.0), (3, 2.0)]);
        assert_eq!(largest(&row, 9, |id| id != 2), [(4, 3.0), (3, 2.0), (0, 1.0)]);
        assert!(largest(&row, 0, |_| true).is_empty());
    }

    #[test]
    fn probabilities_and_removed_mass() {
        let vocab = Vocabulary::toy(&[]);
        let mut recorder =
            StepRecorder::new(Record::Trace { top: 2, bytes: usize::MAX, logprobs: None });
        let mut row = vec![f32::NEG_INFINITY; 258];
        row[97] = 0.5f32.ln();
        row[98] = 0.3f32.ln();
        row[99] = 0.2f32.ln();
        let mut mask = vec![0u32; 9];
        mask[3] = 0b1100; // 98 and 99
        recorder.observe(4, &row, Some(&mask), None, &vocab);
        let step = recorder.complete(4, 98, &vocab).unwrap();
        assert_eq!((step.allowed, step.forced, &*step.text), (2, false, "b"));
        assert!((step.removed_mass - 0.5).abs() < 1e-5 && (step.logprob.exp() - 0.6).abs() < 1e-5);
        assert_eq!(step.top.iter().map(|c| c.token).collect::<Vec<_>>(), [98, 99]);
        assert_eq!(step.refused.iter().map(|c| c.token).collect::<Vec<_>>(), [97]);
        assert!((step.refused[0].logprob.exp() - 0.5).abs() < 1e-5);
        assert!(recorder.complete(4, 98, &vocab).is_none());
    }

    /// 16,384 tokens with 20 alternatives each take 8 MiB at most.
    #[test]
    fn log_probabilities_are_recorded_compactly() {
        let vocab = Vocabulary::toy(&[]);
        let mut recorder = StepRecorder::new(Record::Logprobs { top: 20 });
        recorder.observe(0, &[0.5; 258], None, None, &vocab);
        let step = recorder.complete(0, 97, &vocab).unwrap();
        assert_eq!(step.top.len(), 20);
        assert!(step.memory() <= 512, "{}", step.memory());
    }

    #[test]
    fn traces_are_bounded_while_they_grow() {
        let vocab = Vocabulary::toy(&[]);
        let (row, mask) = (vec![0.5; 258], vec![1u32; 9]);
        let steps = |bytes, logprobs| {
            let mut recorder = StepRecorder::new(Record::Trace { top: 4, bytes, logprobs });
            let mut step = |position| {
                if !recorder.is_on() {
                    return None;
                }
                recorder.observe(position, &row, Some(&mask), None, &vocab);
                recorder.complete(position, 0, &vocab)
            };
            (0..50).map_while(&mut step).collect::<Vec<Step>>()
        };
        let all = steps(usize::MAX, None);
        assert!(all.len() == 50 && all.iter().all(|step| !step.cut && step.refused.len() == 4));
        let bound = 10 * all[0].memory();
        let cut = steps(bound, None);
        assert_eq!(
            cut.iter().map(|step| step.cut).collect::<Vec<_>>(),
            [[false; 9].as_slice(), &[true]].concat()
        );
        assert!(cut.iter().map(Step::memory).sum::<usize>() < bound + all[0].memory());
        // Log probabilities are still recorded, nothing else.
        let on = steps(bound, Some(1));
        assert_eq!((on.len(), on.iter().filter(|step| step.cut).count()), (50, 1));
        assert!(on[10..].iter().all(|step| step.top.len() == 1 && step.refused.is_empty()));
    }
}
