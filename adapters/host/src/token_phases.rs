//! The part of the output that each token belongs to.

use std::collections::VecDeque;

use louver::matcher::Span;
use louver_formats::SpanPhase;

use crate::record::{Phase, Step};

/// Finds the [`Phase`] of each token. A token waits while the tracer holds its bytes back, which
/// may begin a marker, and while they may begin a stop string.
#[derive(Debug, Default)]
pub(crate) struct TokenPhases {
    waiting: VecDeque<WaitingToken>,
    /// Bytes of all tokens so far.
    read: usize,
    /// Bytes that the tracer has labelled.
    labelled: usize,
    /// The phase of the last labelled byte.
    last: Phase,
    /// Whether some bytes are of a call or of a response format.
    has_structure: bool,
}

/// A token whose phase is not decided.
#[derive(Debug)]
struct WaitingToken {
    /// Offset of its first byte.
    begin: usize,
    /// Offset after its last byte.
    end: usize,
    /// The phase of its bytes that are labelled.
    phase: Option<Phase>,
    /// Its recorded step, if steps are recorded.
    step: Option<Box<Step>>,
}

/// A token whose phase is decided.
#[derive(Debug)]
pub(crate) struct PhasedToken {
    pub(crate) phase: Phase,
    pub(crate) step: Option<Box<Step>>,
}

impl TokenPhases {
    /// Adds the next token, by the number of its bytes. A special token has those of its text.
    pub(crate) fn push(&mut self, bytes: usize, step: Option<Box<Step>>) {
        let (begin, end) = (self.read, self.read + bytes);
        self.waiting.push_back(WaitingToken { begin, end, phase: None, step });
        self.read = end;
    }

    /// Labels the next bytes. A token with bytes of several phases has the last of them that is no
    /// marker.
    pub(crate) fn label(&mut self, spans: &[Span]) {
        for span in spans {
            self.last =
                span.label.map_or(Phase::Marker, |label| SpanPhase::from_label(label).into());
            self.has_structure |= is_structure(self.last);
            let begin = self.labelled;
            self.labelled += span.bytes.len();
            let labelled = self.waiting.iter_mut().filter(|token| token.end > begin);
            for token in labelled.take_while(|token| token.begin < self.labelled) {
                if token.phase.is_none() || self.last != Phase::Marker {
                    token.phase = Some(self.last);
                }
            }
        }
    }

    /// A stop string has ended the output at this offset: the tokens from there on are a marker.
    pub(crate) fn stop_at(&mut self, offset: usize) {
        for token in self.waiting.iter_mut().filter(|token| token.begin >= offset) {
            token.phase = Some(Phase::Marker);
        }
    }

    /// Removes and returns the tokens that are decided, but for those in the last `undecided`
    /// labelled bytes.
    pub(crate) fn drain(&mut self, undecided: usize) -> Vec<PhasedToken> {
        let decided = self.labelled.saturating_sub(undecided);
        let count = self.waiting.partition_point(|token| token.end <= decided);
        self.take(count)
    }

    /// Removes and returns the other tokens. Bytes that were never labelled are markers.
    pub(crate) fn finish(&mut self) -> Vec<PhasedToken> {
        self.take(self.waiting.len())
    }

    fn take(&mut self, count: usize) -> Vec<PhasedToken> {
        let tokens = self.waiting.drain(..count);
        let phased = |WaitingToken { phase, step, .. }| PhasedToken {
            phase: phase.unwrap_or(Phase::Marker),
            step,
        };
        tokens.map(phased).collect()
    }

    /// Whether the output has a call or a response in a format, and no text or reasoning after it.
    pub(crate) fn ends_in_structure(&self) -> bool {
        self.has_structure && !matches!(self.last, Phase::Text | Phase::Reasoning)
    }
}

fn is_structure(phase: Phase) -> bool {
    matches!(phase, Phase::Response | Phase::Header | Phase::Arguments | Phase::Trailer)
}

impl From<SpanPhase> for Phase {
    fn from(phase: SpanPhase) -> Phase {
        match phase {
            SpanPhase::Text | SpanPhase::ResumedText => Phase::Text,
            SpanPhase::Reasoning => Phase::Reasoning,
            SpanPhase::Response => Phase::Response,
            SpanPhase::Marker => Phase::Marker,
            SpanPhase::Header(_) => Phase::Header,
            SpanPhase::Arguments(_) => Phase::Arguments,
            SpanPhase::Trailer(_) => Phase::Trailer,
        }
    }
}
