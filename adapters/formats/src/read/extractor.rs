//! The streaming extractor: labelled spans of the output -> events.
//!
//! The spans' labels are those of the grammar of the lowered request, so that the extractor reads
//! exactly what the grammar allows.

use std::cmp::Reverse;
use std::ops::Range;

use louver::matcher::Span;
use memchr::memmem;

use super::call_ids::CallIds;
use super::events::{Cut, Event};
use super::header::{BeforeHeader, ParsedHeader, parse_header};
use super::stop_strings::StopStrings;
use crate::arguments::ArgumentReader;
use crate::channel::{Channel, TextChannel};
use crate::format::Marker;
use crate::lowered::{LoweredRequest, SpanPhase};
use crate::request::Reasoning;

/// Turns the spans of one generation into events. The result does not depend on how spans are cut
/// into chunks, once adjacent deltas are joined.
#[derive(Clone, Debug)]
pub struct Extractor {
    lowered: LoweredRequest,
    calls: usize,
    state: TurnState,
    text: TextChannel,
    stops: StopStrings,
    reasoning: Channel,
    arguments: ArgumentReader,
    /// The alternative spelling of the open call, or of the last: an index into the format's.
    spelling: Option<usize>,
    ids: CallIds,
    /// How far a reasoning block with a budget is read.
    block: BudgetedBlock,
    /// See [`Extractor::cut_off`].
    is_cut_off: bool,
    events: Vec<Event>,
}

/// A reasoning block with a budget. Its end marker may follow any beginning of itself, so that the
/// last text of the block may have no label, and the markers are found by their bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BudgetedBlock {
    /// The block may follow.
    Ahead,
    /// In the block. Its text is in the unlabelled bytes from this offset on.
    Open { from: usize },
    /// There is no such block, or it has ended.
    Over,
}

#[derive(Clone, Debug, PartialEq)]
enum TurnState {
    /// In text, in a marker, or at the beginning. Has the unlabelled bytes since the last labelled
    /// one.
    Between { markers: Vec<u8> },
    /// In reasoning.
    Reasoning,
    /// In the response.
    Response,
    /// In a call's header. Has its bytes, and the markers before it.
    Header { begin: Vec<u8>, bytes: Vec<u8> },
    /// In a call's arguments or trailer. Has the trailer's bytes.
    Call { part: Cut, bytes: Vec<u8> },
}

impl TurnState {
    const BETWEEN: TurnState = TurnState::Between { markers: Vec::new() };
}

impl LoweredRequest {
    /// An extractor for one generation. Ids that the extractor makes up depend on the seed and the
    /// call's index. Give each generation (each choice of a request with `n > 1`) its own seed, and
    /// pass the ids of earlier calls to [`Extractor::reserve_ids`].
    pub fn extractor(&self, id_seed: u64) -> Extractor {
        Extractor::new(self.clone(), id_seed)
    }
}

impl Extractor {
    pub(crate) fn new(lowered: LoweredRequest, id_seed: u64) -> Self {
        let format = &lowered.inner.format;
        let separator =
            if format.text.begin.is_some() { String::new() } else { format.text_separator() };
        let reasoning = match &format.reasoning {
            Some(format) => Channel::stripping(format.lead.as_bytes(), format.trail.as_bytes()),
            None => Channel::default(),
        };
        Extractor {
            ids: CallIds::new(id_seed, format.id_form()),
            calls: 0,
            state: TurnState::BETWEEN,
            text: TextChannel::new(separator.as_bytes()),
            stops: StopStrings::new(&lowered.inner.stops),
            reasoning,
            arguments: ArgumentReader::default(),
            spelling: None,
            block: match lowered.inner.reasoning {
                _ if !lowered.inner.is_budgeted => BudgetedBlock::Over,
                Reasoning::Off => BudgetedBlock::Over,
                Reasoning::Opened => BudgetedBlock::Open { from: 0 },
                Reasoning::Optional | Reasoning::Required => BudgetedBlock::Ahead,
            },
            is_cut_off: false,
            events: Vec::new(),
            lowered,
        }
    }

    /// Takes the spans that the tracer has decided, and returns the events that follow from them.
    /// Cost: linear in the bytes.
    pub fn push(&mut self, spans: impl IntoIterator<Item = Span>) -> Vec<Event> {
        for span in spans {
            if self.stops.found_stop().is_some() {
                break;
            }
            self.stops.count(span.bytes.len());
            let phase = span.label.map(SpanPhase::from_label);
            // A trailer may be cut short where the rest of it is optional.
            if !matches!(phase, Some(SpanPhase::Trailer(_))) {
                self.end_trailer();
            }
            match phase {
                None | Some(SpanPhase::Marker) => self.marker(&span.bytes),
                Some(SpanPhase::Text) => self.text(&span.bytes),
                Some(SpanPhase::ResumedText) => self.resumed_text(&span.bytes),
                Some(SpanPhase::Response) => self.response(&span.bytes, span.closed),
                Some(SpanPhase::Reasoning) => self.reasoning(&span.bytes, span.closed),
                Some(SpanPhase::Header(tool)) => self.header(tool, &span.bytes, span.closed),
                Some(SpanPhase::Arguments(tool)) => self.arguments(tool, &span.bytes, span.closed),
                Some(SpanPhase::Trailer(tool)) => self.trailer(tool, &span.bytes, span.closed),
            }
        }
        std::mem::take(&mut self.events)
    }

    /// Announces that the generation was cut off where more could follow, and that further spans
    /// only end it. A call whose arguments are code is then incomplete: as any text is code, its
    /// end marker may be a part of longer code.
    pub fn cut_off(&mut self) {
        self.is_cut_off = true;
    }

    /// The number of the turn's bytes before the stop string that has ended a constrained response.
    /// There are no further events but [`Event::End`]. Whether the response is complete without
    /// the rest is for [`LoweredRequest::may_end_response`] to say.
    pub fn stopped_at(&self) -> Option<usize> {
        self.stops.found_stop().map(|found| found.at)
    }

    /// After [`Extractor::finish`]: the stop string that has ended the text or the response. It is
    /// not part of the turn's text. Nothing if the turn was not complete at a stop string of free
    /// text.
    pub fn stop_string(&self) -> Option<&str> {
        self.stops.ended_by.as_deref()
    }

    /// The number of the last bytes of a constrained response that may begin a stop string. No
    /// event has them.
    pub fn undecided_bytes(&self) -> usize {
        self.stops.held()
    }

    /// Ends the generation. `complete`: the grammar may end here (the matcher's `is_complete`, or a
    /// stop token was taken). Push what `Tracer::finish` returns before. The last event is always
    /// [`Event::End`].
    pub fn finish(&mut self, complete: bool) -> Vec<Event> {
        if complete {
            self.end_trailer();
        }
        let state = std::mem::replace(&mut self.state, TurnState::BETWEEN);
        self.stops.ended_by = match (self.stops.found_stop(), &state) {
            (Some(_), _) => self.stops.found_text(),
            (None, TurnState::Between { markers }) if complete => {
                self.lowered.stop_string_in(markers).map(str::to_owned)
            }
            _ => None,
        };
        let has_calls = self.calls > 0;
        self.end_text(|text| text.finish(has_calls));
        self.emit_reasoning(Channel::flush);
        let incomplete = match state {
            _ if self.stopped_at().is_some() => None,
            TurnState::Between { markers } => (!complete).then_some((Cut::Turn, None, markers)),
            TurnState::Reasoning => Some((Cut::Reasoning, None, Vec::new())),
            TurnState::Response => (!complete).then_some((Cut::Response, None, Vec::new())),
            TurnState::Header { bytes, .. } => Some((Cut::CallHeader, None, bytes)),
            TurnState::Call { part, bytes } => {
                if part == Cut::CallArguments {
                    self.emit_arguments(ArgumentReader::cut);
                }
                self.calls += 1;
                Some((part, Some(self.calls - 1), bytes))
            }
        };
        self.events.extend(incomplete.map(|(why, call, bytes)| {
            let partial = String::from_utf8_lossy(&bytes).into_owned();
            Event::Incomplete { why, call, partial }
        }));
        self.events.push(Event::End);
        std::mem::take(&mut self.events)
    }

    /// Replaces the request for the spans that follow, with its stop strings. The tools of the new
    /// request must begin with those of this one, so that labels keep their meaning. The format
    /// must be the same, and reasoning has a budget in both requests or in neither
    /// ([`LoweredRequest::has_reasoning_budget`]).
    pub fn replace_request(&mut self, lowered: LoweredRequest) {
        let text = self.stops.replace(&lowered.inner.stops);
        self.lowered = lowered;
        self.emit_text(|channel| channel.push(&text));
    }

    /// The request that is read.
    pub fn request(&self) -> &LoweredRequest {
        &self.lowered
    }

    /// Reserves ids that calls of this turn cannot have: those of earlier calls in the
    /// conversation.
    pub fn reserve_ids(&mut self, ids: impl IntoIterator<Item = String>) {
        self.ids.reserve(ids);
    }

    /// Replaces words that the model writes as ids by made-up ones of the same form. The model's
    /// own are a function of what it is asked and of the seed it draws with. Ids that number calls
    /// stay: they are the position in the conversation.
    pub fn renew_ids(&mut self) {
        self.ids.renew();
    }

    fn marker(&mut self, bytes: &[u8]) {
        match &mut self.state {
            TurnState::Between { markers } => {
                markers.extend_from_slice(bytes);
                self.budgeted_block(bytes.len());
            }
            // The end markers of tagged arguments are read with the arguments.
            TurnState::Call { part: Cut::CallArguments, .. } => {
                self.emit_arguments(|arguments| arguments.push(bytes))
            }
            TurnState::Header { bytes: all, .. } | TurnState::Call { bytes: all, .. } => {
                all.extend_from_slice(bytes);
            }
            TurnState::Reasoning if bytes.is_empty() => {}
            TurnState::Reasoning if self.block != BudgetedBlock::Over => {
                self.state = TurnState::Between { markers: bytes.to_vec() };
                self.budgeted_block(bytes.len());
            }
            TurnState::Reasoning | TurnState::Response => {
                self.leave();
                self.state = TurnState::Between { markers: bytes.to_vec() };
            }
        }
    }

    /// Finds the markers of a reasoning block with a budget in the unlabelled bytes, of which the
    /// last `added` are new.
    fn budgeted_block(&mut self, added: usize) {
        let (TurnState::Between { markers }, Some(format)) =
            (&mut self.state, &self.lowered.inner.format.reasoning)
        else {
            return;
        };
        if self.block == BudgetedBlock::Ahead
            && let Some(begin) = find_in_new(markers, added, 0, &format.begin)
        {
            self.block = BudgetedBlock::Open { from: begin.end };
        }
        if let BudgetedBlock::Open { from } = self.block
            && let Some(end) = find_in_new(markers, added, from, &format.end)
        {
            let text: Vec<u8> = markers.drain(..end.start).skip(from).collect();
            self.block = BudgetedBlock::Over;
            self.emit_reasoning(|reasoning| reasoning.push(&text) + &reasoning.close());
        }
    }

    /// Ends reasoning or the response.
    fn leave(&mut self) {
        match self.state {
            TurnState::Reasoning => self.emit_reasoning(Channel::close),
            TurnState::Response => self.end_text(|text| text.finish(false)),
            TurnState::Between { .. } | TurnState::Header { .. } | TurnState::Call { .. } => {}
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.leave();
        self.state = TurnState::BETWEEN;
        self.push_text(bytes);
    }

    /// Text after a begin marker that turned out to be text: the marker is text, too.
    fn resumed_text(&mut self, bytes: &[u8]) {
        if let TurnState::Between { markers } = &self.state {
            let begins = self.lowered.inner.format.ambiguous_begin_texts();
            let begins = begins.into_iter().filter(|begin| markers.ends_with(begin.as_bytes()));
            let begin = begins.max_by_key(String::len).unwrap_or_default();
            self.text(begin.as_bytes());
        }
        self.text(bytes);
    }

    fn response(&mut self, bytes: &[u8], closed: bool) {
        self.state = TurnState::Response;
        self.push_text(bytes);
        if closed {
            self.leave();
            self.state = TurnState::BETWEEN;
        }
    }

    fn reasoning(&mut self, bytes: &[u8], closed: bool) {
        self.state = TurnState::Reasoning;
        self.emit_reasoning(|reasoning| reasoning.push(bytes));
        // Text that ends with its budget still lacks the end marker.
        match self.block {
            BudgetedBlock::Over if closed => {
                self.leave();
                self.state = TurnState::BETWEEN;
            }
            BudgetedBlock::Over => {}
            _ => self.block = BudgetedBlock::Open { from: 0 },
        }
    }

    fn header(&mut self, tool: usize, bytes: &[u8], closed: bool) {
        match &mut self.state {
            TurnState::Header { bytes: all, .. } => all.extend_from_slice(bytes),
            TurnState::Call { .. } => return,
            TurnState::Between { .. } | TurnState::Reasoning | TurnState::Response => {
                self.leave();
                self.end_text(TextChannel::close);
                let begin = match std::mem::replace(&mut self.state, TurnState::BETWEEN) {
                    TurnState::Between { markers } => markers,
                    _ => Vec::new(),
                };
                self.state = TurnState::Header { begin, bytes: bytes.to_vec() };
            }
        }
        if closed {
            self.start_call(tool);
        }
    }

    /// Parses the header of a call at the beginning of a text, after these markers.
    fn parse_header(&self, tool: usize, begin: &[u8], text: &[u8]) -> Option<ParsedHeader> {
        let before = BeforeHeader { markers: begin, spelling: self.spelling };
        parse_header(&self.lowered, tool, before, &String::from_utf8_lossy(text))
    }

    /// Starts the call, unless it has started: its tool is decided and its arguments begin.
    fn start_call(&mut self, tool: usize) {
        if matches!(self.state, TurnState::Call { .. }) {
            return;
        }
        let arguments = TurnState::Call { part: Cut::CallArguments, bytes: Vec::new() };
        let (begin, header) = match std::mem::replace(&mut self.state, arguments) {
            TurnState::Header { begin, bytes } => (begin, bytes),
            _ => (Vec::new(), Vec::new()),
        };
        let called = self.lowered.tools().get(tool);
        let name = called.map(|t| t.name.clone()).unwrap_or_default();
        let kind = called.map(|t| t.kind).unwrap_or_default();
        let header = self.parse_header(tool, &begin, &header);
        self.spelling = header.as_ref().and_then(|header| header.spelling);
        let id = self.ids.next(self.calls, header.and_then(|header| header.id));
        let format = &self.lowered.inner.format;
        let arguments =
            called.and_then(|tool| tool.arguments(tool.syntax(format, self.spelling).arguments));
        self.arguments = arguments.map(|arguments| arguments.reader.clone()).unwrap_or_default();
        self.events.push(Event::CallStart { index: self.calls, id, name, kind });
    }

    fn arguments(&mut self, tool: usize, mut bytes: &[u8], closed: bool) {
        if !matches!(self.state, TurnState::Header { .. } | TurnState::Call { .. }) {
            // If one tool's header is a prefix of another's, only the arguments decide between the
            // tools, and the tracer holds the header back until then.
            let begin = match &self.state {
                TurnState::Between { markers } => &markers[..],
                _ => &[],
            };
            let header = self.parse_header(tool, begin, bytes);
            let len = header.map_or(0, |header| header.len.min(bytes.len()));
            let (header, rest) = bytes.split_at(len);
            self.header(tool, header, true);
            bytes = rest;
        }
        self.start_call(tool);
        self.emit_arguments(|arguments| arguments.push(bytes));
        let has_trailer = self.lowered.tools().get(tool).is_some_and(|tool| {
            let syntax = tool.syntax(&self.lowered.inner.format, self.spelling);
            !syntax.trailer.is_empty() || syntax.end.is_some()
        });
        if closed && !has_trailer {
            self.trailer(tool, b"", true);
        }
    }

    fn trailer(&mut self, tool: usize, bytes: &[u8], closed: bool) {
        self.start_call(tool);
        if closed && self.arguments.is_code() {
            // Text that may be code or the header of another call, or code or the end marker, is
            // decided here only.
            let ends = self.lowered.inner.format.builtin_end().map(Marker::as_texts);
            let ends = ends.unwrap_or_default().into_iter();
            let end = ends.filter(|end| bytes.ends_with(end.as_bytes())).map(|end| end.len()).max();
            let code = &bytes[..bytes.len() - end.unwrap_or(0)];
            self.emit_arguments(|arguments| arguments.push(code));
            if self.is_cut_off {
                return;
            }
        }
        if matches!(self.state, TurnState::Call { part: Cut::CallArguments, .. }) {
            self.emit_arguments(ArgumentReader::close);
        }
        if closed {
            self.end_call();
        } else if let TurnState::Call { part, bytes: all } = &mut self.state {
            *part = Cut::CallTrailer;
            all.extend_from_slice(bytes);
        }
    }

    fn end_call(&mut self) {
        self.events.push(Event::CallEnd { index: self.calls });
        self.calls += 1;
        self.state = TurnState::BETWEEN;
    }

    /// Ends a call whose trailer lacks nothing but optional parts.
    fn end_trailer(&mut self) {
        if matches!(self.state, TurnState::Call { part: Cut::CallTrailer, .. }) {
            self.end_call();
        }
    }

    fn push_text(&mut self, bytes: &[u8]) {
        let bytes = self.stops.push(bytes);
        self.emit_text(|text| text.push(&bytes));
    }

    fn end_text(&mut self, end: impl FnOnce(&mut TextChannel) -> String) {
        let held = self.stops.flush();
        self.emit_text(|text| text.push(&held) + &end(text));
    }

    fn emit_text(&mut self, read: impl FnOnce(&mut TextChannel) -> String) {
        let delta = read(&mut self.text);
        self.events.extend((!delta.is_empty()).then_some(Event::TextDelta { delta }));
    }

    fn emit_reasoning(&mut self, read: impl FnOnce(&mut Channel) -> String) {
        let delta = read(&mut self.reasoning);
        self.events.extend((!delta.is_empty()).then_some(Event::ReasoningDelta { delta }));
    }

    fn emit_arguments(&mut self, read: impl FnOnce(&mut ArgumentReader) -> String) {
        let delta = read(&mut self.arguments);
        self.events.extend(
            (!delta.is_empty()).then_some(Event::ArgumentsDelta { index: self.calls, delta }),
        );
    }
}

/// The first occurrence of a marker at or after an offset that ends in the last `added` bytes. Of
/// several variants at one place, the longest.
fn find_in_new(bytes: &[u8], added: usize, from: usize, marker: &Marker) -> Option<Range<usize>> {
    let old = bytes.len() - added;
    let found = marker.as_texts().into_iter().filter_map(|text| {
        let from = from.max((old + 1).saturating_sub(text.len()));
        let at = from + memmem::find(bytes.get(from..)?, text.as_bytes())?;
        Some(at..at + text.len())
    });
    found.min_by_key(|range| (range.start, Reverse(range.end)))
}
