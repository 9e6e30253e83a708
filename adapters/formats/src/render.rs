//! The way back: a turn as the family's model would write it, from the same description as the grammar.

use crate::format::{Part, WireFormat};
use crate::turn::{Call, Turn};

impl WireFormat {
    /// The turn on the wire, without a stop token. Arguments are written as they are: for JSON of any other spelling
    /// see [`python_json`](crate::python_json).
    pub fn render(&self, turn: &Turn) -> String {
        let mut out = String::new();
        if let Some(reasoning) = &self.reasoning
            && !turn.reasoning.is_empty()
        {
            for piece in [reasoning.begin.text(), &reasoning.lead, &turn.reasoning, &reasoning.trail] {
                out.push_str(piece);
            }
            out.push_str(reasoning.end.text());
            out.push_str(&reasoning.after);
        }
        out.push_str(&turn.text);
        if !turn.text.is_empty() && !turn.calls.is_empty() {
            out.push_str(&self.call.separator);
        }
        out.push_str(&self.render_calls(&turn.calls));
        out
    }

    /// Calls on the wire, with what encloses them; nothing for no calls.
    pub fn render_calls(&self, calls: &[Call]) -> String {
        if calls.is_empty() {
            return String::new();
        }
        let calls: Vec<String> = calls.iter().map(|call| self.render_call(call)).collect();
        let calls = calls.join(&self.call.separator);
        match &self.section {
            Some(section) => format!("{}{calls}{}", section.begin.text(), section.end.text()),
            None => calls,
        }
    }

    fn render_call(&self, call: &Call) -> String {
        let parts = |parts: &[Part]| -> String {
            let write = |part: &Part| match part {
                Part::Text(text) => text.clone(),
                Part::Name(part) => part.name.write(&call.name),
                Part::Marker(marker) => marker.text().to_owned(),
            };
            parts.iter().map(write).collect()
        };
        let format = &self.call;
        let end = format.end.as_ref().map_or("", |m| m.text());
        let (header, trailer) = (parts(&format.header), parts(&format.trailer));
        [format.begin.text(), &header, &call.arguments, &trailer, end].concat()
    }
}
