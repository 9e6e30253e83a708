//! What each byte of the output was: spans of bytes by the label of the rule that derived them. Read off the parser's own
//! items, so it cannot disagree with the grammar.

use super::parser::Parser;
use super::store::{ConfigId, Item, Owner};
use crate::compile::Mark;
use crate::ids::Label;

/// Bytes that one labelled rule derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The innermost labelled rule; `None` for bytes of unlabelled rules and for triggers and stops of a dispatch (a
    /// trigger's bytes are never part of the text's label).
    pub label: Option<Label>,
    /// The bytes (a special token appears as its text).
    pub bytes: Vec<u8>,
    /// The labelled rule is over with the last of these bytes. Free text of a
    /// dispatch never says so: it is over when a span with another label follows.
    pub closed: bool,
}

/// What one step was, for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepTrace {
    pub(crate) owner: Owner,
    pub(crate) mark: Mark,
    /// No item of the owner's label is left.
    pub(crate) closed: bool,
    /// The label of free text this may have been, where items disagree.
    pub(crate) text: Option<Label>,
}

impl Parser {
    /// What the step over `byte` from `config` to `next` was.
    pub(crate) fn trace(&self, config: ConfigId, byte: u8, next: ConfigId) -> StepTrace {
        let targets = |item: &Item| {
            let edges = self.program().byte_edges(item.state).iter();
            edges.filter(|e| e.lo <= byte && byte <= e.hi).map(|e| e.to).collect::<Vec<_>>()
        };
        self.trace_step(config, next, targets)
    }

    /// What the step over a special token from `config` to `next` was.
    pub(crate) fn trace_special(
        &self,
        config: ConfigId,
        special: u32,
        next: ConfigId,
    ) -> StepTrace {
        let targets = |item: &Item| {
            let edges = self.program().special_edges(item.state).iter();
            edges.filter(|(s, _)| *s == special).map(|&(_, to)| to).collect::<Vec<_>>()
        };
        self.trace_step(config, next, targets)
    }

    fn trace_step(
        &self,
        config: ConfigId,
        next: ConfigId,
        targets: impl Fn(&Item) -> Vec<u32>,
    ) -> StepTrace {
        let (mut owner, mut mark, mut text) = (None, None, None);
        for item in self.store().items(config) {
            for to in targets(item) {
                let own = self.store().owner(self.program(), item);
                owner = Some(Owner::merge(owner, own));
                let m = self.program().mark(to);
                if let (Mark::Text { .. }, Owner::Label(label)) = (m, own) {
                    text = Some(label);
                }
                mark = Some(if mark.is_none_or(|old| old == m) { m } else { Mark::Plain });
            }
        }
        let owner = owner.unwrap_or(Owner::None);
        let closed =
            self.store().items(next).iter().all(|i| match self.store().owner(self.program(), i) {
                Owner::Ambiguous => false,
                other => other != owner,
            });
        StepTrace { owner, mark: mark.unwrap_or(Mark::Plain), closed, text }
    }
}

/// Collects spans while a matcher advances; holds bytes back while it is undecided what they are (a trigger that has only
/// begun, a header several tools share). Bounded by the longest trigger or shared header. The spans do not depend on how
/// the bytes were cut into tokens.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    spans: Vec<Span>,
    held: Vec<u8>,
    /// How many of the held bytes are free text unless a trigger takes them.
    text: usize,
    /// The label of those.
    text_label: Option<Label>,
    /// The label of held bytes beyond `text` if they turn out to be free text.
    maybe: Option<Label>,
}

impl Tracer {
    /// Nothing seen.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the spans that are decided.
    pub fn drain(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// Bytes held back so far.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// The end of the generation: held bytes that could be free text become a span of that text, others an unlabelled one.
    pub fn finish(&mut self) -> Vec<Span> {
        let rest = self.held.split_off(self.text.min(self.held.len()));
        let text = std::mem::take(&mut self.held);
        let (text_label, maybe) = (self.text_label, self.maybe);
        self.emit(text_label, &text, false);
        self.emit(maybe, &rest, false);
        self.text = 0;
        self.maybe = None;
        self.drain()
    }

    /// One step over a byte, or over the text of a special token.
    pub(crate) fn push(&mut self, input: &[u8], step: StepTrace) {
        self.held.extend_from_slice(input);
        let label = match step.owner {
            Owner::Ambiguous => {
                self.maybe = step.text;
                return;
            }
            Owner::None => None,
            Owner::Label(label) => Some(label),
        };
        self.maybe = None;
        let mut held = std::mem::take(&mut self.held);
        match step.mark {
            Mark::Text { pending } => {
                let release = held.len().saturating_sub(pending as usize);
                self.emit(label, &held[..release], false);
                held.drain(..release);
                self.text = held.len();
                self.text_label = label;
                self.held = held;
                return;
            }
            Mark::Fired { matched, special } => {
                // A special token is all of `input`, and matches no bytes of text itself.
                let marker = matched as usize + if special { input.len() } else { 0 };
                let release = held.len().saturating_sub(marker);
                self.emit(label, &held[..release], false);
                self.emit(None, &held[release..], true);
            }
            Mark::Plain => {
                let text = self.text.min(held.len());
                let text_label = self.text_label;
                self.emit(text_label, &held[..text], false);
                self.emit(label, &held[text..], step.closed);
            }
        }
        self.text = 0;
    }

    fn emit(&mut self, label: Option<Label>, bytes: &[u8], closed: bool) {
        if bytes.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.label == label && !last.closed => {
                last.bytes.extend_from_slice(bytes);
                last.closed = closed;
            }
            _ => self.spans.push(Span { label, bytes: bytes.to_vec(), closed }),
        }
    }
}
