//! All markers of a description, and their binding to a vocabulary or to text.

use louver::vocab::Vocabulary;

use super::marker::Binding;
use super::part::markers_in;
use super::{ArgumentStyle, Marker, Part, TagPart, WireFormat};

impl WireFormat {
    /// Replaces each [`Marker::Either`] by what the vocabulary has: the special token, else text.
    /// A suffix of the markers becomes the vocabulary's.
    /// Bind a format before you lower it for an engine: a grammar with a special token that the
    /// vocabulary lacks does not compile.
    pub fn bind(&self, vocab: &Vocabulary) -> WireFormat {
        self.with_suffix_of(vocab).bound(Binding::Vocabulary(vocab))
    }

    /// Replaces every marker by text, special tokens included, to check texts without a vocabulary.
    /// Text that equals a marker is then taken for the marker.
    pub fn with_text_markers(&self) -> WireFormat {
        self.bound(Binding::Text)
    }

    /// The texts of special tokens in markers: those that the format needs, and those that it takes
    /// where a vocabulary has them.
    pub fn tokens(&self) -> (Vec<String>, Vec<String>) {
        let (mut needed, mut possible) = (Vec::new(), Vec::new());
        for (_, marker) in self.clone().markers_mut() {
            marker.add_tokens(&mut needed, &mut possible);
        }
        (needed, possible)
    }

    fn bound(&self, to: Binding<'_>) -> WireFormat {
        let mut format = self.clone();
        format.markers_mut().into_iter().for_each(|(_, marker)| marker.bind(to));
        format
    }

    /// Every marker of the description, with the JSON pointer of its field.
    pub(crate) fn markers_mut(&mut self) -> Vec<(String, &mut Marker)> {
        let mut out = MarkerList::default();
        if let Some(reasoning) = &mut self.reasoning {
            out.add("/reasoning/begin", [&mut reasoning.begin]);
            out.add("/reasoning/end", [&mut reasoning.end]);
            out.add("/reasoning/skipped", &mut reasoning.skipped);
        }
        out.add("/text/begin", &mut self.text.begin);
        out.add("/text/end", &mut self.text.end);
        if let Some(frame) = &mut self.frame {
            out.add("/frame/begin", [&mut frame.begin]);
            out.add("/frame/end", [&mut frame.end]);
        }
        out.add("/end", &mut self.end);
        if let Some(section) = &mut self.section {
            out.add("/section/begin", [&mut section.begin]);
            out.add("/section/lead", section.lead.markers_mut());
            out.add("/section/trail", section.trail.markers_mut());
            out.add("/section/end", &mut section.end);
        }
        if let Some(messages) = &mut self.messages {
            out.add("/messages/separator", [&mut messages.separator]);
            out.add("/messages/continued_end", &mut messages.continued_end);
            if let Some(block) = &mut messages.preamble {
                out.add("/messages/preamble/begin", [&mut block.begin]);
                out.add("/messages/preamble/end", &mut block.end);
            }
        }
        let call = &mut self.call;
        out.add("/call/begin", &mut call.begin);
        out.add("/call/end", &mut call.end);
        out.add("/call/separator", call.separator.markers_mut());
        out.add_call("/call", &mut call.header, &mut call.also, &mut call.trailer);
        out.add_arguments("/call", &mut call.arguments);
        if let Some(builtin) = &mut self.builtin {
            out.add("/builtin/begin", &mut builtin.begin);
            out.add("/builtin/end", &mut builtin.end);
            out.add_call("/builtin", &mut builtin.header, &mut builtin.also, &mut builtin.trailer);
            out.add_arguments("/builtin", &mut builtin.arguments);
        }
        for (k, spelling) in self.spellings.iter_mut().enumerate() {
            let pointer = format!("/spellings/{k}");
            out.add(&format!("{pointer}/begin"), [&mut spelling.begin]);
            out.add(&format!("{pointer}/end"), &mut spelling.end);
            if let Some(separator) = &mut spelling.separator {
                out.add(&format!("{pointer}/separator"), separator.markers_mut());
            }
            out.add_call(&pointer, &mut spelling.header, &mut [], &mut spelling.trailer);
            if let Some(style) = &mut spelling.arguments {
                out.add_arguments(&pointer, style);
            }
        }
        out.0
    }
}

/// Markers with the JSON pointers of their fields.
#[derive(Default)]
struct MarkerList<'a>(Vec<(String, &'a mut Marker)>);

impl<'a> MarkerList<'a> {
    fn add(&mut self, pointer: &str, markers: impl IntoIterator<Item = &'a mut Marker>) {
        self.0.extend(markers.into_iter().map(|marker| (pointer.to_owned(), marker)));
    }

    fn add_call(
        &mut self,
        pointer: &str,
        header: &'a mut [Part],
        also: &'a mut [Vec<Part>],
        trailer: &'a mut [Part],
    ) {
        self.add(&format!("{pointer}/header"), markers_in(header));
        for header in also {
            self.add(&format!("{pointer}/also"), markers_in(header));
        }
        self.add(&format!("{pointer}/trailer"), markers_in(trailer));
    }

    fn add_arguments(&mut self, pointer: &str, style: &'a mut ArgumentStyle) {
        match style {
            ArgumentStyle::Json | ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {}
            ArgumentStyle::Delimited(marker) => {
                self.add(&format!("{pointer}/arguments/delimited"), [marker]);
            }
            ArgumentStyle::Nested(tags) => {
                self.add(&format!("{pointer}/arguments/nested/mark"), [&mut tags.mark]);
            }
            ArgumentStyle::Tagged(style) => {
                let pointer = format!("{pointer}/arguments/tagged");
                self.add(&format!("{pointer}/close"), [&mut style.close]);
                self.add(&format!("{pointer}/before"), style.before.markers_mut());
                self.add(&format!("{pointer}/between"), style.between.markers_mut());
                self.add(&format!("{pointer}/after"), style.after.markers_mut());
                let open = style.open.iter_mut().filter_map(|part| match part {
                    TagPart::Marker(marker) => Some(marker),
                    _ => None,
                });
                self.add(&format!("{pointer}/open"), open);
            }
        }
    }
}
