//! The token reader: turns generated tokens into events with its own matcher, off the host's
//! thread, from token ids rather than text.

use std::sync::Arc;
use std::time::{Duration, Instant};

use louver::engine::{Constraint, Matcher};
use louver::ids::TokenId;
use louver::internals::partial_char_len;
use louver::matcher::{AdvanceError, Span, Tracer};
use louver::vocab::Vocabulary;
use louver_formats::{Event, Extractor, LoweredRequest};

use crate::error::EnforcementError;
use crate::record::{Phase, Step};
use crate::token_phases::{PhasedToken, TokenPhases};

/// Reads the tokens of one generation.
pub(crate) struct Reader {
    vocab: Arc<Vocabulary>,
    mode: Mode,
    tokens: Vec<u32>,
    /// Recorded steps of decided tokens.
    steps: Vec<Step>,
    /// Number of reasoning tokens.
    reasoning_tokens: usize,
    error: Option<EnforcementError>,
    /// Whether the response was complete at the stop string that has ended it.
    stopped: Option<bool>,
    elapsed: Duration,
}

enum Mode {
    /// Constrained output, parsed with the same grammar.
    Constrained {
        matcher: Box<Matcher>,
        tracer: Tracer,
        extractor: Box<Extractor>,
        delivered: DeliveredBytes,
        phases: TokenPhases,
    },
    /// Unconstrained output, all text. Bytes of an incomplete character are held back.
    Text { held: Vec<u8> },
}

impl Reader {
    pub(crate) fn constrained(
        vocab: Arc<Vocabulary>,
        matcher: Matcher,
        extractor: Extractor,
    ) -> Reader {
        let (matcher, extractor) = (Box::new(matcher), Box::new(extractor));
        Reader::new(
            vocab,
            Mode::Constrained {
                matcher,
                tracer: Tracer::new(),
                extractor,
                delivered: DeliveredBytes::default(),
                phases: TokenPhases::default(),
            },
        )
    }

    pub(crate) fn text(vocab: Arc<Vocabulary>) -> Reader {
        Reader::new(vocab, Mode::Text { held: Vec::new() })
    }

    fn new(vocab: Arc<Vocabulary>, mode: Mode) -> Reader {
        Reader {
            vocab,
            mode,
            tokens: Vec::new(),
            steps: Vec::new(),
            reasoning_tokens: 0,
            error: None,
            stopped: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Processes tokens and returns the events they complete. Stop tokens are not part of the
    /// output. `step` is the recorded step of the last token.
    pub(crate) fn push(&mut self, tokens: &[u32], mut step: Option<Box<Step>>) -> Vec<Event> {
        let started = Instant::now();
        let mut events = Vec::new();
        for (i, &raw) in tokens.iter().enumerate() {
            let token = TokenId::from_raw(raw);
            if self.vocab.is_stop(token) || self.error.is_some() || self.stopped.is_some() {
                continue;
            }
            self.tokens.push(raw);
            let step = step.take_if(|_| i + 1 == tokens.len());
            match self.read(token, step) {
                Ok(new_events) => events.extend(new_events),
                Err(error) => self.error = Some(EnforcementError::rejected_token(raw, &error)),
            }
        }
        self.elapsed += started.elapsed();
        events
    }

    /// Processes one token.
    fn read(
        &mut self,
        token: TokenId,
        step: Option<Box<Step>>,
    ) -> Result<Vec<Event>, AdvanceError> {
        let text = self.vocab.text(token);
        match &mut self.mode {
            Mode::Constrained { matcher, tracer, extractor, delivered, phases } => {
                if let Err(error) = matcher.advance_traced(token, tracer) {
                    phases.push(0, step);
                    return Err(error);
                }
                phases.push(text.len(), step);
                let events = deliver(tracer.drain(), extractor, delivered, phases);
                self.stopped = stopped(extractor, matcher, &self.vocab);
                let decided = phases.drain(extractor.undecided_bytes());
                self.count(decided);
                Ok(events)
            }
            Mode::Text { held } => {
                held.extend_from_slice(text);
                let complete = held.len() - partial_char_len(held);
                let delta = String::from_utf8_lossy(&held[..complete]).into_owned();
                held.drain(..complete);
                self.steps.extend(step.map(|step| *step));
                Ok((!delta.is_empty()).then_some(Event::TextDelta { delta }).into_iter().collect())
            }
        }
    }

    /// Counts tokens whose phase is decided, and keeps their steps.
    fn count(&mut self, tokens: Vec<PhasedToken>) {
        for PhasedToken { phase, step } in tokens {
            self.reasoning_tokens += usize::from(phase == Phase::Reasoning);
            self.steps.extend(step.map(|step| Step { phase, ..*step }));
        }
    }

    /// Removes and returns the recorded steps of the tokens whose phase is decided. They are
    /// decided before the events that their bytes complete are returned.
    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// Continues under another plan: replays the tokens with its grammar, without repeating events.
    pub(crate) fn replan(
        &mut self,
        constraint: &Constraint,
        lowered: LoweredRequest,
    ) -> Vec<Event> {
        let started = Instant::now();
        let mut events = Vec::new();
        if let Mode::Constrained { matcher, tracer, extractor, delivered, phases } = &mut self.mode
        {
            (**matcher, *tracer) = (constraint.matcher(), Tracer::new());
            for raw in &self.tokens {
                if let Err(error) = matcher.advance_traced(TokenId::from_raw(*raw), tracer) {
                    self.error.get_or_insert(EnforcementError::rejected_token(*raw, &error));
                }
            }
            delivered.replayed = delivered.bytes;
            extractor.replace_request(lowered);
            events = deliver(tracer.drain(), extractor, delivered, phases);
            let decided = phases.drain(extractor.undecided_bytes());
            self.count(decided);
        }
        self.elapsed += started.elapsed();
        events
    }

    /// Reads the final stop token, if the turn is incomplete without it (formats whose calls end
    /// with a stop token). `token` is the one that was sampled, if known, and `step` its recorded
    /// step.
    pub(crate) fn stop(&mut self, token: Option<u32>, step: Option<Box<Step>>) -> Vec<Event> {
        if self.error.is_some() || self.stopped.is_some() {
            return Vec::new();
        }
        let Mode::Constrained { matcher, tracer, extractor, delivered, phases } = &mut self.mode
        else {
            self.steps.extend(step.map(|step| *step));
            return Vec::new();
        };
        let stops = self
            .vocab
            .stops()
            .iter()
            .copied()
            .filter(|stop| token.is_none_or(|token| token == stop.raw()));
        let is_needed = !matcher.is_complete();
        // Several stop tokens may denote the same marker.
        let stop = stops.clone().find(|stop| is_needed && matcher.allows(*stop));
        match stop.filter(|stop| matcher.advance_traced(*stop, tracer).is_ok()) {
            Some(stop) => {
                phases.push(self.vocab.text(stop).len(), step);
                let events = deliver(tracer.drain(), extractor, delivered, phases);
                self.stopped = stopped(extractor, matcher, &self.vocab);
                events
            }
            None => {
                phases.push(0, step);
                Vec::new()
            }
        }
    }

    /// Marks the generation as truncated: a following stop token is not the model's choice.
    pub(crate) fn cut_off(&mut self) {
        if let Mode::Constrained { extractor, .. } = &mut self.mode {
            extractor.cut_off();
        }
    }

    /// Ends the output. The last event is [`Event::End`].
    pub(crate) fn finish(&mut self) -> Vec<Event> {
        let started = Instant::now();
        let events = match &mut self.mode {
            Mode::Constrained { extractor, phases, .. } if self.stopped.is_some() => {
                let rest = phases.finish();
                let events = extractor.finish(true);
                self.count(rest);
                events
            }
            Mode::Constrained { matcher, tracer, extractor, delivered, phases } => {
                let mut events = deliver(tracer.finish(), extractor, delivered, phases);
                self.stopped = stopped(extractor, matcher, &self.vocab);
                events.extend(extractor.finish(matcher.is_complete()));
                let rest = phases.finish();
                self.count(rest);
                events
            }
            Mode::Text { held } => {
                let delta = String::from_utf8_lossy(held).into_owned();
                let text = (!delta.is_empty()).then_some(Event::TextDelta { delta });
                text.into_iter().chain([Event::End]).collect()
            }
        };
        self.elapsed += started.elapsed();
        events
    }

    /// `Some` if a stop string has ended the response: whether it was complete there. Later tokens
    /// are not read.
    pub(crate) fn stopped(&self) -> Option<bool> {
        self.stopped
    }

    /// The stop string that has ended the output, once it is finished.
    pub(crate) fn stop_string(&self) -> Option<&str> {
        match &self.mode {
            Mode::Constrained { extractor, .. } => extractor.stop_string(),
            Mode::Text { .. } => None,
        }
    }

    /// Whether a stop token may follow.
    pub(crate) fn may_end(&mut self) -> bool {
        match &mut self.mode {
            Mode::Constrained { .. } if self.stopped.is_some() => true,
            Mode::Constrained { matcher, .. } => matcher.is_complete(),
            Mode::Text { .. } => true,
        }
    }

    /// Whether the output ends with a call or with a response in a format.
    pub(crate) fn ends_in_structure(&self) -> bool {
        match &self.mode {
            Mode::Constrained { phases, .. } => phases.ends_in_structure(),
            Mode::Text { .. } => false,
        }
    }

    /// Whether the host's text ends in an incomplete character. The host then sends no chunk, not
    /// even the final one.
    pub(crate) fn host_holds_back(&self) -> bool {
        let mut tail: Vec<u8> = Vec::new();
        for token in self.tokens.iter().rev() {
            let Some(bytes) = self.vocab.bytes(TokenId::from_raw(*token)) else { continue };
            tail.splice(..0, bytes.iter().copied());
            if tail.len() > 8 {
                break;
            }
        }
        String::from_utf8_lossy(&tail).ends_with(char::REPLACEMENT_CHARACTER)
    }

    /// The generated tokens, without the stop token.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Number of reasoning tokens.
    pub(crate) fn reasoning_tokens(&self) -> usize {
        self.reasoning_tokens
    }

    pub(crate) fn error(&self) -> Option<&EnforcementError> {
        self.error.as_ref()
    }

    /// Time spent in the reader.
    pub(crate) fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

/// Tracks the bytes of spans that were delivered to the extractor.
#[derive(Clone, Copy, Debug, Default)]
struct DeliveredBytes {
    bytes: usize,
    /// Number of following bytes that are replayed under another plan and were delivered before.
    replayed: usize,
}

impl DeliveredBytes {
    /// Removes bytes that were delivered before.
    fn retain_new(&mut self, mut spans: Vec<Span>) -> Vec<Span> {
        spans.retain_mut(|span| {
            let skipped = self.replayed.min(span.bytes.len());
            self.replayed -= skipped;
            span.bytes.drain(..skipped);
            self.bytes += span.bytes.len();
            skipped == 0 || !span.bytes.is_empty()
        });
        spans
    }
}

/// Delivers the new spans to the extractor, and labels their tokens.
fn deliver(
    spans: Vec<Span>,
    extractor: &mut Extractor,
    delivered: &mut DeliveredBytes,
    phases: &mut TokenPhases,
) -> Vec<Event> {
    let spans = delivered.retain_new(spans);
    phases.label(&spans);
    let events = extractor.push(spans);
    if let Some(offset) = extractor.stopped_at() {
        phases.stop_at(offset);
    }
    events
}

/// If a stop string has ended the response: whether it was complete there, to which the matcher
/// goes back.
fn stopped(extractor: &Extractor, matcher: &mut Matcher, vocab: &Vocabulary) -> Option<bool> {
    let (mut whole, mut rest) = (0, extractor.stopped_at()?);
    let tokens = matcher.tokens().to_vec();
    for token in &tokens {
        match rest.checked_sub(vocab.text(*token).len()) {
            Some(left) => (whole, rest) = (whole + 1, left),
            None => break,
        }
    }
    matcher.rollback(tokens.len() - whole);
    let cut = tokens.get(whole).map_or(&[][..], |token| vocab.text(*token));
    Some(extractor.request().may_end_response(matcher, &cut[..rest]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_never_split() {
        let vocab = Arc::new(Vocabulary::toy(&[]));
        let mut reader = Reader::text(vocab);
        let mut text = String::new();
        let mut add = |events: Vec<Event>| {
            for event in events {
                if let Event::TextDelta { delta } = event {
                    text.push_str(&delta);
                }
            }
        };
        for byte in "aß世🌍".bytes() {
            add(reader.push(&[u32::from(byte)], None));
        }
        assert!(!reader.host_holds_back());
        add(reader.push(&[0xf0, 0x9f, 256], None));
        assert!(reader.host_holds_back());
        assert_eq!(reader.tokens().len(), 12);
        add(reader.finish());
        assert_eq!(text, "aß世🌍\u{fffd}");
    }

    /// Reads a text byte by byte. Returns the turn, the bytes of the steps of its text, and the
    /// stop string that has ended it.
    fn read_text(
        body: &serde_json::Value,
        text: &str,
    ) -> (louver_formats::Turn, String, Option<String>) {
        let engine =
            louver::engine::Engine::new(Arc::new(Vocabulary::toy(&[])), Default::default());
        let catalog = louver_formats::Catalog::shipped();
        let format = catalog.get("qwen3").unwrap().bind(engine.vocab());
        let request = louver_formats::ToolRequest::parse(&body.into()).unwrap();
        let plan = crate::plan::TurnPlan::compile(&engine, &format, request).unwrap();
        let mut reader = plan.generation_reader(&[]);
        let (mut events, mut steps) = (Vec::new(), Vec::new());
        let step = |position: usize, token: u8| Step {
            position,
            token: token.into(),
            text: String::new(),
            bytes: vec![token],
            phase: Phase::Free,
            allowed: 1,
            logprob: 0.0,
            removed_mass: 0.0,
            forced: false,
            top: Vec::new(),
            refused: Vec::new(),
            cut: false,
        };
        for (position, byte) in text.bytes().enumerate() {
            let step = step(position, byte);
            events.extend(reader.push(&[u32::from(byte)], Some(Box::new(step))));
            steps.extend(reader.take_steps());
        }
        events.extend(reader.finish());
        steps.extend(reader.take_steps());
        assert!(reader.error().is_none(), "{text}");
        let is_text = |step: &&Step| matches!(step.phase, Phase::Text | Phase::Response);
        let bytes = steps.iter().filter(is_text).flat_map(|step| step.bytes.clone()).collect();
        let stop_string = reader.stop_string().map(str::to_owned);
        (louver_formats::Turn::collect(&events), String::from_utf8(bytes).unwrap(), stop_string)
    }

    /// Bytes that could begin a marker or a stop string are text if they do not.
    #[test]
    fn the_steps_of_text_have_its_bytes() {
        let tool = serde_json::json!({"type": "function", "function": {"name": "weather"}});
        let free = serde_json::json!({"tools": [tool], "stop": ["e r", "rain!"]});
        let texts = [
            ("rain<weat", "rain<weat", None),
            ("the e e r", "the e ", Some("e r")),
            ("it may rain?", "it may rain?", None),
            ("a <tool_cal", "a <tool_cal", None),
            ("<b>x</b>rain!", "<b>x</b>", Some("rain!")),
            ("rain!", "", Some("rain!")),
        ];
        for (text, expected, expected_stop) in texts {
            let (turn, steps, stop) = read_text(&free, text);
            assert_eq!((turn.text.as_str(), steps.as_str()), (expected, expected), "{text}");
            assert_eq!(stop.as_deref(), expected_stop, "{text}");
        }
        let format = serde_json::json!({"type": "regex", "pattern": "[a-e]+"});
        let format = serde_json::json!({"type": "structural_tag", "format": format});
        let response = serde_json::json!({"response_format": format, "stop": ["cd", "de", "cde"]});
        for (text, expected, expected_stop) in [
            ("abcbc", "abcbc", None),
            ("abccde", "abc", Some("cd")),
            ("ede", "e", Some("de")),
            ("cd", "", Some("cd")),
        ] {
            let (turn, steps, stop) = read_text(&response, text);
            assert_eq!((turn.text.as_str(), steps.as_str()), (expected, expected), "{text}");
            assert_eq!(stop.as_deref(), expected_stop, "{text}");
        }
    }

    /// At a length limit only stop tokens are allowed. A forced stop token does not complete a code
    /// call; one that the model chose does.
    #[test]
    fn code_at_a_length_limit_is_incomplete() {
        let mut builder = Vocabulary::builder(258);
        for byte in 0..=255u8 {
            builder.token(u32::from(byte), &[byte]);
        }
        builder.special(256, "<|python_tag|>").special(257, "<|eom_id|>").stop(257);
        let vocab = builder.build().unwrap();
        let engine = louver::engine::Engine::new(Arc::new(vocab), Default::default());
        let catalog = louver_formats::Catalog::shipped();
        let format = catalog.get("llama3").unwrap().bind(engine.vocab());
        let body = serde_json::json!({"tools": [{"type": "python"}], "tool_choice": "required"});
        let request = louver_formats::ToolRequest::parse(&(&body).into()).unwrap();
        let (plan, constraint) = request.clone().compile(&engine, &format).unwrap();
        let tokens: Vec<u32> = std::iter::once(256).chain("x = 1".bytes().map(u32::from)).collect();
        let end = |cut: bool| {
            let mut reader = Reader::constrained(
                engine.vocab().clone(),
                constraint.matcher(),
                plan.extractor(0),
            );
            let mut events = reader.push(&tokens, None);
            if cut {
                reader.cut_off();
            }
            events.extend(reader.stop(Some(257), None));
            events.extend(reader.finish());
            assert_eq!(events.pop(), Some(Event::End));
            events.pop().unwrap()
        };
        assert_eq!(end(false), Event::CallEnd { index: 0 });
        assert!(matches!(end(true), Event::Incomplete { call: Some(0), .. }));
        let plan = crate::plan::TurnPlan::compile(&engine, &format, request).unwrap();
        assert!(plan.read(&tokens).calls.is_empty());
        let whole = plan.read(&[&tokens[..], &[257]].concat());
        assert_eq!(whole.calls[0].arguments, r#"{"code": "x = 1"}"#);
    }
}
