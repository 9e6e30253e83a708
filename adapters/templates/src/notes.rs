//! Notes for people about formats that were derived: what they forbid or lack.

use louver_formats::{Marker, WireFormat};
use serde_json::json;

use crate::chat_template::{ChatTemplate, TemplateInput};
use crate::turns::TEXT;

/// Reasoning that no template contains.
const HIDDEN: &str = "Zqhidden tolup.";

/// A begin marker of calls that is ordinary text.
pub(crate) fn of_format(format: &WireFormat) -> Option<String> {
    let is_ordinary = |c: char| c.is_alphanumeric() || c.is_whitespace() || ".,:;-!?".contains(c);
    let begin = format.calls_begin_marker().map(Marker::write)?;
    let begin = Some(begin.trim_start()).filter(|begin| begin.chars().all(is_ordinary))?;
    Some(format!(
        "calls begin with {begin:?}, which is ordinary text: in free text, it always begins a call"
    ))
}

/// Text that the template leaves out as if it were reasoning, where the format has none: from one
/// special token to another. Cost: one rendering for each pair of tokens that the template names.
pub(crate) fn of_hidden_text(
    format: &WireFormat,
    template: &ChatTemplate,
    tokens: &[String],
) -> Option<String> {
    if format.reasoning.is_some() {
        return None;
    }
    let pairs = tokens.iter().filter_map(|begin| {
        let close = ["<|", "<", "["]
            .iter()
            .find_map(|open| Some(format!("{open}/{}", begin.strip_prefix(*open)?)))?;
        Some((begin, tokens.iter().find(|token| **token == close)?))
    });
    let is_hidden = |(begin, end): &(&String, &String)| {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let turn = format!("{begin}{HIDDEN}{end}{TEXT}");
        let messages = [message("user", "A"), message("assistant", &turn), message("user", "B")];
        let written = template.render_conversation(&messages, &TemplateInput::default(), false);
        written.is_ok_and(|written| written.contains(TEXT) && !written.contains(HIDDEN))
    };
    let mut named = pairs.filter(|(_, end)| template.source().contains(end.as_str()));
    let (begin, end) = named.find(is_hidden)?;
    Some(format!(
        "the template leaves out of text what stands from {begin:?} to {end:?}: if the model \
         reasons there, add a table `reasoning` with this `begin` and `end`"
    ))
}
