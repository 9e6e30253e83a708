//! Traces: spans of output bytes by the labelled rule that derived them.
//!
//! Spans are read from the parser's items, so they cannot disagree with the grammar.

use super::parser::Parser;
use super::store::{ByteLabel, ConfigId};
use super::symbol::Symbol;
use crate::compile::DispatchMark;
use crate::ids::Label;

/// Bytes that one labelled rule derived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The innermost labelled rule. `None` for bytes of unlabelled rules, and for the triggers and
    /// stop strings of a dispatch. The bytes of a trigger never belong to the free text before it.
    pub label: Option<Label>,
    /// The bytes; a special token appears as its text.
    pub bytes: Vec<u8>,
    /// Whether the labelled rule ends with the last of these bytes. Free text of a dispatch is
    /// never marked so: it ends where a span with another label follows.
    pub closed: bool,
}

/// Trace of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepTrace {
    /// The labelled rule that read the input.
    pub(crate) byte_label: ByteLabel,
    /// What the input means to a dispatch.
    pub(crate) mark: DispatchMark,
    /// No item after the step has the label of the byte.
    pub(crate) closed: bool,
    /// The label of the free text that the input may belong to, if items disagree.
    pub(crate) text: Option<Label>,
}

impl Parser {
    /// The trace of a step over a symbol from `config` to `next`.
    pub(crate) fn trace(&self, config: ConfigId, symbol: Symbol, next: ConfigId) -> StepTrace {
        let (mut byte_label, mut mark, mut text) = (None, None, None);
        for item in self.store().items(config) {
            for to in symbol.targets(self.program(), item.state) {
                let item_label = self.store().byte_label(self.program(), item);
                byte_label = Some(ByteLabel::merge(byte_label, item_label));
                let target_mark = self.program().dispatch_mark(to);
                if let (DispatchMark::Text { .. }, ByteLabel::Label(label)) =
                    (target_mark, item_label)
                {
                    text = Some(label);
                }
                mark = Some(if mark.is_none_or(|old| old == target_mark) {
                    target_mark
                } else {
                    DispatchMark::Plain
                });
            }
        }
        let byte_label = byte_label.unwrap_or(ByteLabel::None);
        let closed = self.store().items(next).iter().all(|i| {
            match self.store().byte_label(self.program(), i) {
                ByteLabel::Ambiguous => false,
                other => other != byte_label,
            }
        });
        StepTrace { byte_label, mark: mark.unwrap_or(DispatchMark::Plain), closed, text }
    }
}

/// Collects spans while a matcher advances. It holds bytes back while their label is undecided: the
/// beginning of a trigger, or a header that several tools share. Memory is bounded by the longest
/// trigger or shared header. Spans do not depend on tokenization.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    /// Decided spans.
    spans: Vec<Span>,
    /// Bytes whose label is undecided.
    held: Vec<u8>,
    /// How many of the held bytes are free text, unless a trigger takes them.
    text_len: usize,
    /// The label of that free text.
    text_label: Option<Label>,
    /// The label of the held bytes after `text_len`, if they turn out to be free text.
    tentative_label: Option<Label>,
}

impl Tracer {
    /// A tracer without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes and returns the decided spans.
    pub fn drain(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// The bytes held back.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Ends the trace. Held bytes that may be free text become a span of that text, others an
    /// unlabelled span.
    pub fn finish(&mut self) -> Vec<Span> {
        let rest = self.held.split_off(self.text_len.min(self.held.len()));
        let text = std::mem::take(&mut self.held);
        let (text_label, tentative_label) = (self.text_label, self.tentative_label);
        self.emit(text_label, &text, false);
        self.emit(tentative_label, &rest, false);
        self.text_len = 0;
        self.tentative_label = None;
        self.drain()
    }

    /// Adds a step over a byte, or over the text of a special token.
    pub(crate) fn push(&mut self, input: &[u8], step: StepTrace) {
        self.held.extend_from_slice(input);
        let label = match step.byte_label {
            ByteLabel::Ambiguous => {
                self.tentative_label = step.text;
                return;
            }
            ByteLabel::None => None,
            ByteLabel::Label(label) => Some(label),
        };
        self.tentative_label = None;
        let mut held = std::mem::take(&mut self.held);
        match step.mark {
            DispatchMark::Text { pending } => {
                let release = held.len().saturating_sub(pending as usize);
                self.emit(label, &held[..release], false);
                held.drain(..release);
                self.text_len = held.len();
                self.text_label = label;
                self.held = held;
                return;
            }
            DispatchMark::Fired { matched, special } => {
                // A special token is all of `input`; it matches no text itself.
                let marker = matched as usize + if special { input.len() } else { 0 };
                let release = held.len().saturating_sub(marker);
                self.emit(label, &held[..release], false);
                self.emit(None, &held[release..], true);
            }
            DispatchMark::Plain => {
                let text = self.text_len.min(held.len());
                let text_label = self.text_label;
                self.emit(text_label, &held[..text], false);
                self.emit(label, &held[text..], step.closed);
            }
        }
        self.text_len = 0;
    }

    /// Adds bytes to the last span, or begins a new one.
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
