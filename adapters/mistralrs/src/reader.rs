//! Generated tokens -> events, by a matcher of its own: off the host's thread, and from ids, not from text.

use std::sync::Arc;
use std::time::{Duration, Instant};

use louver::engine::{Constraint, Matcher};
use louver::ids::TokenId;
use louver::matcher::{Span, Tracer};
use louver::vocab::Vocabulary;
use louver_formats::{Event, Extractor, Role};

use crate::error::Fault;
use crate::record::Phase;

/// Reads one generation.
pub(crate) struct Reader {
    vocab: Arc<Vocabulary>,
    mode: Mode,
    tokens: Vec<u32>,
    /// What the last token belongs to.
    phase: Phase,
    /// Tokens of reasoning.
    reasoning: usize,
    fault: Option<Fault>,
    spent: Duration,
}

enum Mode {
    /// What was constrained is read by the same grammar.
    Constrained { matcher: Box<Matcher>, tracer: Tracer, extractor: Box<Extractor>, given: Given },
    /// Everything is text; bytes of a character that is not whole yet are held back.
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
                given: Given::default(),
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
            reasoning: 0,
            fault: None,
            spent: Duration::ZERO,
        }
    }

    /// Takes tokens; gives the events that are decided. Stop tokens are not part of the output.
    pub(crate) fn push(&mut self, tokens: &[u32]) -> Vec<Event> {
        let begun = Instant::now();
        let mut events = Vec::new();
        for &raw in tokens {
            let token = TokenId::from_raw(raw);
            if self.vocab.is_stop(token) || self.fault.is_some() {
                continue;
            }
            self.tokens.push(raw);
            match &mut self.mode {
                Mode::Constrained { matcher, tracer, extractor, given } => {
                    match matcher.advance_traced(token, tracer) {
                        Ok(()) => {
                            let spans = tracer.drain();
                            // Bytes that are held back may be the beginning of a marker.
                            self.phase = match spans.last() {
                                _ if !tracer.held().is_empty() => Phase::Marker,
                                Some(span) => {
                                    span.label.map_or(Phase::Marker, |label| phase(Role::of(label)))
                                }
                                None => self.phase,
                            };
                            self.reasoning += usize::from(self.phase == Phase::Reasoning);
                            events.extend(extractor.push(given.fresh(spans)));
                        }
                        Err(error) => self.fault = Some(Fault::of_token(raw, &error)),
                    }
                }
                Mode::Text { held } => {
                    let name = self.vocab.special_name(token).map(str::as_bytes);
                    held.extend_from_slice(self.vocab.bytes(token).or(name).unwrap_or_default());
                    let whole = held.len() - unfinished(held);
                    let delta = String::from_utf8_lossy(&held[..whole]).into_owned();
                    held.drain(..whole);
                    if !delta.is_empty() {
                        events.push(Event::TextDelta { delta });
                    }
                }
            }
        }
        self.spent += begun.elapsed();
        events
    }

    /// Goes on under another plan: what was read is read again by its grammar, and what was passed on is not repeated.
    pub(crate) fn replan(
        &mut self,
        constraint: &Constraint,
        plan: louver_formats::Plan,
    ) -> Vec<Event> {
        let begun = Instant::now();
        let mut events = Vec::new();
        if let Mode::Constrained { matcher, tracer, extractor, given } = &mut self.mode {
            (**matcher, *tracer) = (constraint.matcher(), Tracer::new());
            for raw in &self.tokens {
                if let Err(error) = matcher.advance_traced(TokenId::from_raw(*raw), tracer) {
                    self.fault.get_or_insert(Fault::of_token(*raw, &error));
                }
            }
            given.again = given.bytes;
            extractor.replan(plan);
            events = extractor.push(given.fresh(tracer.drain()));
        }
        self.spent += begun.elapsed();
        events
    }

    /// The stop token that ended the generation, where the turn is whole only with it: formats whose calls end with a stop
    /// token. Where the host drew it, it is the one that may stand there.
    pub(crate) fn stop(&mut self, token: Option<u32>) -> Vec<Event> {
        let Mode::Constrained { matcher, tracer, extractor, given } = &mut self.mode else {
            return Vec::new();
        };
        if self.fault.is_some() || matcher.is_complete() {
            return Vec::new();
        }
        let stops = self
            .vocab
            .stops()
            .iter()
            .copied()
            .filter(|stop| token.is_none_or(|token| token == stop.raw()));
        let fitting: Vec<TokenId> = stops.filter(|stop| matcher.allows(*stop)).collect();
        match fitting[..] {
            // Several are spellings of one marker.
            [stop, ..] if matcher.advance_traced(stop, tracer).is_ok() => {
                extractor.push(given.fresh(tracer.drain()))
            }
            _ => Vec::new(),
        }
    }

    /// The generation was cut off where more could follow; a stop token that comes is not the model's.
    pub(crate) fn cut_off(&mut self) {
        if let Mode::Constrained { extractor, .. } = &mut self.mode {
            extractor.cut_off();
        }
    }

    /// The end. The last event is [`Event::End`].
    pub(crate) fn finish(&mut self) -> Vec<Event> {
        let begun = Instant::now();
        let events = match &mut self.mode {
            Mode::Constrained { matcher, tracer, extractor, given } => {
                let mut events = extractor.push(given.fresh(tracer.finish()));
                events.extend(extractor.finish(matcher.is_complete()));
                events
            }
            Mode::Text { held } => {
                let delta = String::from_utf8_lossy(held).into_owned();
                let text = (!delta.is_empty()).then_some(Event::TextDelta { delta });
                text.into_iter().chain([Event::End]).collect()
            }
        };
        self.spent += begun.elapsed();
        events
    }

    /// Whether a stop token may follow what was read.
    pub(crate) fn may_end(&mut self) -> bool {
        match &mut self.mode {
            Mode::Constrained { matcher, .. } => matcher.is_complete(),
            Mode::Text { .. } => true,
        }
    }

    /// Whether the host's text ends in what looks like an unfinished character: it sends no chunk then, not even the last.
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

    /// What was generated, without the stop token.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// How many tokens were reasoning.
    pub(crate) fn reasoning(&self) -> usize {
        self.reasoning
    }

    /// What the last token belongs to.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether there is a grammar.
    pub(crate) fn is_constrained(&self) -> bool {
        matches!(self.mode, Mode::Constrained { .. })
    }

    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Time spent reading.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }
}

/// Bytes of spans that the extractor has got.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    bytes: usize,
    /// Of the bytes that come, how many it has got already: those that were read again under another plan.
    again: usize,
}

impl Given {
    /// The spans without what the extractor has got.
    fn fresh(&mut self, mut spans: Vec<Span>) -> Vec<Span> {
        spans.retain_mut(|span| {
            let known = self.again.min(span.bytes.len());
            self.again -= known;
            span.bytes.drain(..known);
            self.bytes += span.bytes.len();
            known == 0 || !span.bytes.is_empty()
        });
        spans
    }
}

fn phase(role: Role) -> Phase {
    match role {
        Role::Text | Role::Resumed => Phase::Text,
        Role::Reasoning => Phase::Reasoning,
        Role::Response => Phase::Response,
        Role::Marker => Phase::Marker,
        Role::Header(_) => Phase::Header,
        Role::Arguments(_) => Phase::Arguments,
        Role::Trailer(_) => Phase::Trailer,
    }
}

/// Bytes at the end that may be the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if length > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_torn() {
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

    /// At a length limit only stop tokens are left. One that then ends code does not make it whole; one that the model chose does.
    #[test]
    fn code_at_a_length_limit_is_not_whole() {
        let mut builder = Vocabulary::builder(258);
        for byte in 0..=255u8 {
            builder.token(u32::from(byte), &[byte]);
        }
        builder.special(256, "<|python_tag|>").special(257, "<|eom_id|>").stop(257);
        let vocab = builder.build().unwrap();
        let engine = louver::engine::Engine::new(Arc::new(vocab), Default::default());
        let catalog = louver_formats::Catalog::builtin();
        let format = catalog.get("llama3").unwrap().bind(engine.vocab());
        let body = serde_json::json!({"tools": [{"type": "python"}], "tool_choice": "required"});
        let request = louver_formats::ToolRequest::parse(&(&body).into()).unwrap();
        let (plan, constraint) = request.compile(&engine, &format).unwrap();
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
    }
}
