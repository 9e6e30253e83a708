//! The token reader: turns generated tokens into events with its own matcher, off the host's
//! thread, from token ids rather than text.

use std::sync::Arc;
use std::time::{Duration, Instant};

use louver::engine::{Constraint, Matcher};
use louver::ids::TokenId;
use louver::matcher::{Span, Tracer};
use louver::vocab::Vocabulary;
use louver_formats::{Event, Extractor, LoweredRequest, Role};

use crate::error::Fault;
use crate::record::Phase;

/// Reads the tokens of one generation.
pub(crate) struct Reader {
    vocab: Arc<Vocabulary>,
    mode: Mode,
    tokens: Vec<u32>,
    /// The phase of the last token.
    phase: Phase,
    /// Number of reasoning tokens.
    reasoning_tokens: usize,
    fault: Option<Fault>,
    /// Whether the response was complete at the stop text that has ended it.
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
            phase: Phase::Free,
            reasoning_tokens: 0,
            fault: None,
            stopped: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Processes tokens and returns the events they complete. Stop tokens are not part of the
    /// output.
    pub(crate) fn push(&mut self, tokens: &[u32]) -> Vec<Event> {
        let started = Instant::now();
        let mut events = Vec::new();
        for &raw in tokens {
            let token = TokenId::from_raw(raw);
            if self.vocab.is_stop(token) || self.fault.is_some() || self.stopped.is_some() {
                continue;
            }
            self.tokens.push(raw);
            match &mut self.mode {
                Mode::Constrained { matcher, tracer, extractor, delivered } => {
                    match matcher.advance_traced(token, tracer) {
                        Ok(()) => {
                            let spans = tracer.drain();
                            // Held-back bytes may begin a marker.
                            self.phase = match spans.last() {
                                _ if !tracer.held().is_empty() => Phase::Marker,
                                Some(span) => span
                                    .label
                                    .map_or(Phase::Marker, |label| phase(Role::from_label(label))),
                                None => self.phase,
                            };
                            self.reasoning_tokens += usize::from(self.phase == Phase::Reasoning);
                            events.extend(extractor.push(delivered.retain_new(spans)));
                            self.stopped = stopped(extractor, matcher, &self.vocab);
                        }
                        Err(error) => self.fault = Some(Fault::rejected_token(raw, &error)),
                    }
                }
                Mode::Text { held } => {
                    held.extend_from_slice(token_text(&self.vocab, raw));
                    let complete = held.len() - incomplete_suffix_len(held);
                    let delta = String::from_utf8_lossy(&held[..complete]).into_owned();
                    held.drain(..complete);
                    if !delta.is_empty() {
                        events.push(Event::TextDelta { delta });
                    }
                }
            }
        }
        self.elapsed += started.elapsed();
        events
    }

    /// Continues under another plan: replays the tokens with its grammar, without repeating events.
    pub(crate) fn replan(
        &mut self,
        constraint: &Constraint,
        lowered: LoweredRequest,
    ) -> Vec<Event> {
        let started = Instant::now();
        let mut events = Vec::new();
        if let Mode::Constrained { matcher, tracer, extractor, delivered } = &mut self.mode {
            (**matcher, *tracer) = (constraint.matcher(), Tracer::new());
            for raw in &self.tokens {
                if let Err(error) = matcher.advance_traced(TokenId::from_raw(*raw), tracer) {
                    self.fault.get_or_insert(Fault::rejected_token(*raw, &error));
                }
            }
            delivered.replayed = delivered.bytes;
            extractor.replace_request(lowered);
            events = extractor.push(delivered.retain_new(tracer.drain()));
        }
        self.elapsed += started.elapsed();
        events
    }

    /// Reads the final stop token, if the turn is incomplete without it (formats whose calls end
    /// with a stop token). `token` is the one that was sampled, if known.
    pub(crate) fn stop(&mut self, token: Option<u32>) -> Vec<Event> {
        let Mode::Constrained { matcher, tracer, extractor, delivered } = &mut self.mode else {
            return Vec::new();
        };
        if self.fault.is_some() || self.stopped.is_some() || matcher.is_complete() {
            return Vec::new();
        }
        let stops = self
            .vocab
            .stops()
            .iter()
            .copied()
            .filter(|stop| token.is_none_or(|token| token == stop.raw()));
        let allowed: Vec<TokenId> = stops.filter(|stop| matcher.allows(*stop)).collect();
        match allowed[..] {
            // Several stop tokens may denote the same marker.
            [stop, ..] if matcher.advance_traced(stop, tracer).is_ok() => {
                let events = extractor.push(delivered.retain_new(tracer.drain()));
                self.stopped = stopped(extractor, matcher, &self.vocab);
                events
            }
            _ => Vec::new(),
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
            Mode::Constrained { extractor, .. } if self.stopped.is_some() => extractor.finish(true),
            Mode::Constrained { matcher, tracer, extractor, delivered } => {
                let mut events = extractor.push(delivered.retain_new(tracer.finish()));
                self.stopped = stopped(extractor, matcher, &self.vocab);
                events.extend(extractor.finish(matcher.is_complete()));
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

    /// `Some` if a stop text has ended the response: whether it was complete there. Later tokens
    /// are not read.
    pub(crate) fn stopped(&self) -> Option<bool> {
        self.stopped
    }

    /// Whether a stop token may follow.
    pub(crate) fn may_end(&mut self) -> bool {
        match &mut self.mode {
            Mode::Constrained { .. } if self.stopped.is_some() => true,
            Mode::Constrained { matcher, .. } => matcher.is_complete(),
            Mode::Text { .. } => true,
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

    /// The phase of the last token.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the output is constrained.
    pub(crate) fn is_constrained(&self) -> bool {
        matches!(self.mode, Mode::Constrained { .. })
    }

    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
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

fn phase(role: Role) -> Phase {
    match role {
        Role::Text | Role::ResumedText => Phase::Text,
        Role::Reasoning => Phase::Reasoning,
        Role::Response => Phase::Response,
        Role::Marker => Phase::Marker,
        Role::Header(_) => Phase::Header,
        Role::Arguments(_) => Phase::Arguments,
        Role::Trailer(_) => Phase::Trailer,
    }
}

/// The bytes of a token, or the name of a special one.
fn token_text(vocab: &Vocabulary, raw: u32) -> &[u8] {
    let token = TokenId::from_raw(raw);
    vocab.bytes(token).or(vocab.special_name(token).map(str::as_bytes)).unwrap_or_default()
}

/// If a stop text has ended the response: whether it was complete there, to which the matcher goes
/// back.
fn stopped(extractor: &Extractor, matcher: &mut Matcher, vocab: &Vocabulary) -> Option<bool> {
    let (mut whole, mut rest) = (0, extractor.stopped_at()?);
    let tokens = matcher.tokens().to_vec();
    for token in &tokens {
        match rest.checked_sub(token_text(vocab, token.raw()).len()) {
            Some(left) => (whole, rest) = (whole + 1, left),
            None => break,
        }
    }
    matcher.rollback(tokens.len() - whole);
    let cut = tokens.get(whole).map_or(&[][..], |token| token_text(vocab, token.raw()));
    Some(extractor.request().may_end_response(matcher, &cut[..rest]))
}

/// Length of the incomplete UTF-8 character at the end.
fn incomplete_suffix_len(bytes: &[u8]) -> usize {
    let invalid = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_incomplete = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
    if is_incomplete { invalid.len() } else { 0 }
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
            add(reader.push(&[u32::from(byte)]));
        }
        assert!(!reader.host_holds_back());
        add(reader.push(&[0xf0, 0x9f, 256]));
        assert!(reader.host_holds_back());
        assert_eq!(reader.tokens().len(), 12);
        add(reader.finish());
        assert_eq!(text, "aß世🌍\u{fffd}");
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
            let mut events = reader.push(&tokens);
            if cut {
                reader.cut_off();
            }
            events.extend(reader.stop(Some(257)));
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
