//! Texts that begin calls in free text, and other texts that free text is searched for.

use std::sync::Arc;

use super::Lowering;
use super::markers::is_single_character;
use crate::format::{Marker, fixed_prefix};

impl Lowering<'_> {
    /// Begin markers that always start a call. Without tools, the spellings' begin markers are
    /// text.
    pub(crate) fn call_begin_texts(&self) -> Vec<String> {
        let mut begins = self.format.unambiguous_begin_texts();
        if self.request.tools.is_empty() {
            let spellings = self.format.unambiguous_spellings();
            let as_text: Vec<String> = spellings.flat_map(|s| s.begin.plain_texts()).collect();
            begins.retain(|begin| !as_text.contains(begin));
        }
        begins
    }

    /// Texts that start a call or another message wherever they occur. A begin marker of a single
    /// character does so only with the header of an offered tool after it.
    pub(crate) fn call_start_texts(&self) -> Vec<String> {
        let (single, mut out): (Vec<String>, Vec<String>) =
            self.call_begin_texts().into_iter().partition(|text| is_single_character(text));
        // What a section's begin marker has after it before the header.
        let inner = self.format.call.begin.as_ref().filter(|_| self.format.section.is_some());
        let inner = inner.map_or_else(|| vec![String::new()], Marker::plain_texts);
        let messages = self.format.messages.iter();
        out.extend(messages.flat_map(|format| format.separator.plain_texts()));
        for tool in self.request.tools.iter().filter(|tool| !tool.is_builtin()) {
            let header = fixed_prefix(&self.format.call.header, tool.name());
            for begin in &single {
                out.extend(inner.iter().map(|inner| format!("{begin}{inner}{header}")));
            }
        }
        out
    }

    /// Texts that free text must not skip: begin markers of calls, excluded texts, stop strings and
    /// bans.
    pub(crate) fn watched_texts(&self) -> Arc<[Vec<u8>]> {
        let begins = self.call_begin_texts().into_iter().chain(self.format.ambiguous_begin_texts());
        let excludes = &self.format.text.excludes;
        let others =
            excludes.iter().chain(self.request.text_stops()).chain(&self.request.bans).cloned();
        begins.chain(others).map(String::into_bytes).collect()
    }
}
