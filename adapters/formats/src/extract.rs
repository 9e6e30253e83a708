//! Labelled spans -> events, by the plan that made the grammar: what was constrained and what is read cannot disagree.

use louver::matcher::Span;
use serde::{Deserialize, Serialize};

use crate::arguments::Reader;
use crate::call_ids::{CallIds, WireCallId};
use crate::channel::{Channel, TextChannel};
use crate::format::WireId;
use crate::marker::{Marker, Part};
use crate::plan::{Plan, Role};
use crate::turn::CallKind;

/// One thing the model said. Calls are numbered from 0 in the order they were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// More text for the user.
    TextDelta {
        /// The text.
        delta: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// The text.
        delta: String,
    },
    /// A call has begun: its tool is decided.
    CallStart {
        /// The call's number.
        index: usize,
        /// Its id.
        id: String,
        /// The tool's name.
        name: String,
        /// What kind of tool it is.
        #[serde(default, skip_serializing_if = "CallKind::is_function")]
        kind: CallKind,
    },
    /// More of a call's arguments, as JSON text; of a custom tool, more of its input.
    ArgumentsDelta {
        /// The call's number.
        index: usize,
        /// The text.
        delta: String,
    },
    /// A call is whole. Only a call that gets here is a call.
    CallEnd {
        /// The call's number.
        index: usize,
    },
    /// The generation stopped before the turn was whole.
    Incomplete {
        /// Within what.
        why: Cut,
        /// The call that was cut off, if its tool was decided.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        call: Option<usize>,
        /// What was there of the piece that was cut off, if no delta said it.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        partial: String,
    },
    /// Nothing follows.
    End,
}

/// What a generation was cut off in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Before anything, in a marker, or where a further call or an answer had to follow.
    Turn,
    /// The reasoning block.
    Reasoning,
    /// The answer that `response_format` asks for.
    Response,
    /// The beginning of a call, before its arguments.
    CallHeader,
    /// A call's arguments.
    CallArguments,
    /// The end of a call, behind its arguments.
    CallTrailer,
}

/// Turns the spans of one generation into events. Chunking does not matter: however the spans are cut, the events say
/// the same once adjacent deltas are joined.
#[derive(Clone, Debug)]
pub struct Extractor {
    plan: Plan,
    calls: usize,
    state: State,
    text: TextChannel,
    reasoning: Channel,
    arguments: Reader,
    /// In which of the format's other spellings the call is written.
    spelling: Option<usize>,
    ids: CallIds,
    /// Whether reasoning has been read to its end.
    reasoned: bool,
    /// See [`Extractor::cut_off`].
    cut: bool,
    events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// In text, in a marker, or nowhere yet; unlabelled bytes since the last labelled one.
    Between { markers: Vec<u8> },
    /// In reasoning.
    Reasoning,
    /// In the answer.
    Response,
    /// In a call's header: its bytes.
    Header { tool: usize, seen: Vec<u8> },
    /// Between the header and the trailer's end; the call has started.
    Call { part: Cut, seen: Vec<u8> },
}

impl Extractor {
    pub(crate) fn new(plan: Plan, id_seed: u64) -> Self {
        let trims = &plan.inner.trims;
        let text = TextChannel::new(&trims.separator);
        let reasoning = Channel::framed(&trims.lead, &trims.trail);
        Extractor {
            ids: CallIds::new(id_seed),
            calls: 0,
            state: State::Between { markers: Vec::new() },
            text,
            reasoning,
            arguments: Reader::default(),
            spelling: None,
            reasoned: !plan.inner.budgeted,
            cut: false,
            events: Vec::new(),
            plan,
        }
    }

    /// Takes what the tracer has decided; gives the events that follow from it. Cost: linear in the bytes.
    pub fn push(&mut self, spans: impl IntoIterator<Item = Span>) -> Vec<Event> {
        for span in spans {
            // What may follow a call's end and did not.
            if !matches!(span.label.map(Role::of), Some(Role::Trailer(_))) {
                self.end_trailer();
            }
            match span.label.map(Role::of) {
                None | Some(Role::Marker) => self.marker(&span.bytes),
                Some(Role::Text) => self.text(&span.bytes),
                Some(Role::Resumed) => self.resumed(&span.bytes),
                Some(Role::Response) => self.response(&span.bytes, span.closed),
                Some(Role::Reasoning) => self.reasoning(&span.bytes, span.closed),
                Some(Role::Header(tool)) => self.header(tool, &span.bytes, span.closed),
                Some(Role::Arguments(tool)) => self.arguments(tool, &span.bytes, span.closed),
                Some(Role::Trailer(tool)) => self.trailer(tool, &span.bytes, span.closed),
            }
        }
        std::mem::take(&mut self.events)
    }

    /// The generation was cut off where more could follow, and what is pushed from here on only ends it. A call whose arguments are code
    /// is not whole then: any text is code, so that its end says nothing.
    pub fn cut_off(&mut self) {
        self.cut = true;
    }

    /// The generation is over. `complete`: the grammar may end here (the matcher's `is_complete`, or a stop token was
    /// taken). Push what `Tracer::finish` gives first. The last event is always [`Event::End`].
    pub fn finish(&mut self, complete: bool) -> Vec<Event> {
        if complete {
            self.end_trailer();
        }
        let state = std::mem::replace(&mut self.state, State::Between { markers: Vec::new() });
        let delta = self.text.finish(self.calls > 0);
        self.emit_text(delta);
        let delta = self.reasoning.flush();
        self.emit_reasoning(delta);
        let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let incomplete = match state {
            State::Between { markers } => {
                let why = Cut::Turn;
                (!complete).then(|| Event::Incomplete { why, call: None, partial: lossy(markers) })
            }
            State::Reasoning => {
                Some(Event::Incomplete { why: Cut::Reasoning, call: None, partial: String::new() })
            }
            State::Response => (!complete).then(|| Event::Incomplete {
                why: Cut::Response,
                call: None,
                partial: String::new(),
            }),
            State::Header { seen, .. } => {
                Some(Event::Incomplete { why: Cut::CallHeader, call: None, partial: lossy(seen) })
            }
            State::Call { part, seen } => {
                if part == Cut::CallArguments {
                    let delta = self.arguments.cut();
                    self.emit_arguments(delta);
                }
                let index = self.calls;
                self.calls += 1;
                Some(Event::Incomplete { why: part, call: Some(index), partial: lossy(seen) })
            }
        };
        self.events.extend(incomplete);
        self.events.push(Event::End);
        std::mem::take(&mut self.events)
    }

    /// What follows was lowered by another plan, whose tools begin with those of this one: labels keep their meaning.
    pub fn replan(&mut self, plan: Plan) {
        self.plan = plan;
    }

    /// Ids that calls of this turn cannot have: those of earlier calls in the conversation.
    pub fn reserve_ids(&mut self, ids: impl IntoIterator<Item = String>) {
        self.ids.reserve(ids);
    }

    /// Calls that are whole so far.
    pub fn calls(&self) -> usize {
        self.calls
    }

    fn marker(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Between { markers } => {
                markers.extend_from_slice(bytes);
                self.unread_reasoning();
            }
            // What ends an argument is read with the arguments.
            State::Call { part: Cut::CallArguments, .. } => self.argument_bytes(bytes),
            State::Header { seen, .. } | State::Call { seen, .. } => seen.extend_from_slice(bytes),
            State::Reasoning if bytes.is_empty() => {}
            State::Reasoning if !self.reasoned => {
                self.state = State::Between { markers: bytes.to_vec() };
                self.unread_reasoning();
            }
            State::Reasoning | State::Response => {
                self.leave();
                self.state = State::Between { markers: bytes.to_vec() };
            }
        }
    }

    /// Where reasoning has a budget, what it says of a begun end marker is only known from the end.
    fn unread_reasoning(&mut self) {
        let (State::Between { markers }, false, Some(format)) =
            (&mut self.state, self.reasoned, &self.plan.inner.format.reasoning)
        else {
            return;
        };
        let (begin, end) = (format.begin.write(), format.end.write());
        let from = if markers.starts_with(begin.as_bytes()) { begin.len() } else { 0 };
        let at = markers[from..].windows(end.len()).position(|window| window == end.as_bytes());
        if let Some(at) = at {
            let text = markers[from..from + at].to_vec();
            markers.drain(..from + at);
            self.reasoned = true;
            let delta = self.reasoning.push(&text) + &self.reasoning.close();
            self.emit_reasoning(delta);
        }
    }

    /// Ends whatever region was open, other than a call.
    fn leave(&mut self) {
        match self.state {
            State::Reasoning => {
                let delta = self.reasoning.close();
                self.emit_reasoning(delta);
            }
            State::Response => {
                let delta = self.text.finish(false);
                self.emit_text(delta);
            }
            State::Between { .. } | State::Header { .. } | State::Call { .. } => {}
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.leave();
        self.state = State::Between { markers: Vec::new() };
        let delta = self.text.push(bytes);
        self.emit_text(delta);
    }

    /// Text behind a marker that begins calls: the marker is text.
    fn resumed(&mut self, bytes: &[u8]) {
        if let State::Between { markers } = &self.state {
            let begins = self.plan.inner.format.unsure_begins();
            let begin = begins
                .iter()
                .filter(|begin| markers.ends_with(begin.as_bytes()))
                .max_by_key(|begin| begin.len());
            let begin = begin.cloned().unwrap_or_default();
            self.text(begin.as_bytes());
        }
        self.text(bytes);
    }

    fn response(&mut self, bytes: &[u8], closed: bool) {
        self.state = State::Response;
        let delta = self.text.push(bytes);
        self.emit_text(delta);
        if closed {
            self.leave();
            self.state = State::Between { markers: Vec::new() };
        }
    }

    fn reasoning(&mut self, bytes: &[u8], closed: bool) {
        self.state = State::Reasoning;
        let delta = self.reasoning.push(bytes);
        self.emit_reasoning(delta);
        // A text that is over because its budget is lacks its end marker still.
        if closed && self.reasoned {
            self.leave();
            self.state = State::Between { markers: Vec::new() };
        }
    }

    fn header(&mut self, tool: usize, bytes: &[u8], closed: bool) {
        match &mut self.state {
            State::Header { seen, .. } => seen.extend_from_slice(bytes),
            State::Call { .. } => return,
            State::Between { .. } | State::Reasoning | State::Response => {
                self.leave();
                let delta = self.text.close();
                self.emit_text(delta);
                self.state = State::Header { tool, seen: bytes.to_vec() };
            }
        }
        if closed {
            self.start(tool);
        }
    }

    /// The call's tool is decided and its arguments begin.
    fn start(&mut self, tool: usize) {
        if matches!(self.state, State::Call { .. }) {
            return;
        }
        let header = match std::mem::replace(
            &mut self.state,
            State::Call { part: Cut::CallArguments, seen: Vec::new() },
        ) {
            State::Header { seen, .. } => seen,
            _ => Vec::new(),
        };
        let called = self.plan.tools().get(tool);
        let name = called.map(|t| t.name.clone()).unwrap_or_default();
        let kind = called.map(|t| t.kind).unwrap_or_default();
        let read = read_header(&self.plan, tool, &String::from_utf8_lossy(&header));
        self.spelling = read.as_ref().and_then(|header| header.spelling);
        let id = self.ids.next(self.calls, read.and_then(|header| header.id));
        self.arguments = self.plan.inner.reader(tool, self.spelling).cloned().unwrap_or_default();
        self.events.push(Event::CallStart { index: self.calls, id, name, kind });
    }

    fn arguments(&mut self, tool: usize, mut bytes: &[u8], closed: bool) {
        if !matches!(self.state, State::Header { .. } | State::Call { .. }) {
            // Where one tool's header is the beginning of another's, only the arguments decide between them, and the
            // header was held back until then.
            let text = String::from_utf8_lossy(bytes);
            let len = read_header(&self.plan, tool, &text)
                .map_or(0, |header| header.len.min(bytes.len()));
            let (header, rest) = bytes.split_at(len);
            self.header(tool, header, true);
            bytes = rest;
        }
        self.start(tool);
        self.argument_bytes(bytes);
        let format = &self.plan.inner.format;
        let own = tool >= self.plan.inner.functions;
        let ends_itself = match self.spelling.and_then(|at| format.spellings.get(at)) {
            Some(spelling) => spelling.trailer.is_empty(),
            None => format.call.trailer.is_empty() && format.call.end.is_none(),
        };
        if closed && !own && ends_itself {
            self.trailer(tool, b"", true);
        }
    }

    fn argument_bytes(&mut self, bytes: &[u8]) {
        let delta = self.arguments.push(bytes);
        self.emit_arguments(delta);
    }

    fn trailer(&mut self, tool: usize, bytes: &[u8], closed: bool) {
        self.start(tool);
        if closed && self.arguments.is_code() {
            // Code that could have been another call's header, or the end, is only known from the end.
            let ends = self
                .plan
                .inner
                .format
                .builtin_end()
                .map(Marker::texts_of_spellings)
                .unwrap_or_default();
            let len = ends
                .iter()
                .filter(|end| bytes.ends_with(end.as_bytes()))
                .map(String::len)
                .max()
                .unwrap_or(0);
            self.argument_bytes(&bytes[..bytes.len() - len]);
            if self.cut {
                return;
            }
        }
        if matches!(self.state, State::Call { part: Cut::CallArguments, .. }) {
            let delta = self.arguments.close();
            self.emit_arguments(delta);
        }
        if closed {
            self.end_call();
        } else if let State::Call { part, seen } = &mut self.state {
            *part = Cut::CallTrailer;
            seen.extend_from_slice(bytes);
        }
    }

    fn end_call(&mut self) {
        self.events.push(Event::CallEnd { index: self.calls });
        self.calls += 1;
        self.state = State::Between { markers: Vec::new() };
    }

    /// Ends a call of which there is everything that must be there.
    fn end_trailer(&mut self) {
        if matches!(self.state, State::Call { part: Cut::CallTrailer, .. }) {
            self.end_call();
        }
    }

    fn emit_text(&mut self, delta: String) {
        if !delta.is_empty() {
            self.events.push(Event::TextDelta { delta });
        }
    }

    fn emit_reasoning(&mut self, delta: String) {
        if !delta.is_empty() {
            self.events.push(Event::ReasoningDelta { delta });
        }
    }

    fn emit_arguments(&mut self, delta: String) {
        if !delta.is_empty() {
            self.events.push(Event::ArgumentsDelta { index: self.calls, delta });
        }
    }
}

/// A header that was read.
struct Header {
    len: usize,
    id: Option<WireCallId>,
    /// An index into the format's other spellings.
    spelling: Option<usize>,
}

/// A header at the beginning of a text.
fn read_header(plan: &Plan, tool: usize, text: &str) -> Option<Header> {
    let format = &plan.inner.format;
    let name = &plan.tools().get(tool)?.name;
    let own = tool >= plan.inner.functions;
    let code = plan.inner.readers.get(tool).and_then(Option::as_ref).is_some_and(Reader::is_code);
    let others = format
        .spellings
        .iter()
        .enumerate()
        .filter(|_| !own)
        .map(|(at, s)| (Some(at), &s.header[..]));
    let headers = format.headers(own, code).into_iter().map(|parts| (None, parts)).chain(others);
    let read = headers.filter_map(|(spelling, parts)| {
        let mut id = None;
        let rest = read_parts(parts, name, text, &mut id, format.call.id, text)?;
        Some(Header { len: text.len() - rest.len(), id, spelling })
    });
    // The longest: one may be the beginning of another. Of those, the first.
    read.reduce(|best, header| if header.len > best.len { header } else { best })
}

/// What is behind the parts, at the beginning of `rest`; `whole` is the header's text from its beginning.
fn read_parts<'t>(
    parts: &[Part],
    name: &str,
    mut rest: &'t str,
    id: &mut Option<WireCallId>,
    from: WireId,
    whole: &str,
) -> Option<&'t str> {
    for part in parts {
        rest = match part {
            Part::Text(text) => rest.strip_prefix(text.as_str())?,
            Part::Name(part) => rest.strip_prefix(part.name.write(name).as_str())?,
            Part::Gap(_) => rest.trim_start_matches([' ', '\t', '\n', '\r']),
            Part::Maybe(part) => {
                read_parts(&part.maybe, name, rest, id, from, whole).unwrap_or(rest)
            }
            Part::Marker(marker) => marker
                .texts_of_spellings()
                .iter()
                .find_map(|text| rest.strip_prefix(text.as_str()))?,
            Part::Id(part) => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let (own, behind) = rest.split_at(end);
                let before = match from {
                    WireId::Header => &whole[..whole.len() - rest.len()],
                    WireId::Made | WireId::Id => "",
                };
                if from != WireId::Made {
                    *id = Some(WireCallId {
                        before: before.to_owned(),
                        own: own.to_owned(),
                        style: part.id,
                    });
                }
                behind
            }
        };
    }
    Some(rest)
}
