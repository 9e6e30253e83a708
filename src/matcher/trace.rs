//! What each byte of the output was: spans of bytes by the label of the rule that derived them.

use crate::ids::Label;

/// Bytes that one labelled rule derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The innermost labelled rule; `None` for bytes of unlabelled rules and for triggers and stops of a dispatch (a
    /// trigger's bytes are never part of the text's label).
    pub label: Option<Label>,
    /// The bytes (a special token appears as its text).
    pub bytes: Vec<u8>,
    /// The labelled rule is over with the last of these bytes. (A rule that may end or go on, such as free text, closes only when
    /// something else follows.)
    pub closed: bool,
}

/// Collects spans while a matcher advances; holds bytes back while it is undecided what they are (a trigger that has only begun, a
/// header several tools share). Bounded by the longest trigger or shared header.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    spans: Vec<Span>,
    held: Vec<u8>,
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
    /// Bytes held back so far; at the end of a generation, text that only began like a trigger is in here.
    pub fn held(&self) -> &[u8] {
        &self.held
    }
    /// The end of the generation: held bytes of free text become a span of that text; others come back as an unlabelled span.
    pub fn finish(&mut self) -> Vec<Span> {
        todo!()
    }
}
