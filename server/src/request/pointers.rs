//! JSON pointer translation: from a rewritten request body to the request as sent.

use louver_formats::RequestFault;

/// Maps JSON pointers of a rewritten body to pointers of the request as sent, and knows what the
/// rewritten body lacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointerMap {
    prefixes: Vec<(String, String)>,
    left_out: Vec<RequestFault>,
}

impl PointerMap {
    /// Translates a pointer. The longest mapped prefix decides; unmapped pointers are unchanged.
    pub(crate) fn original(&self, pointer: &str) -> String {
        let remainder = |from: &str| {
            pointer.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let best = self
            .prefixes
            .iter()
            .filter_map(|(from, to)| Some((from.len(), to, remainder(from)?)))
            .max_by_key(|f| f.0);
        best.map_or_else(|| pointer.to_owned(), |(_, to, rest)| format!("{to}{rest}"))
    }

    /// Maps the subtree at `from` in the rewritten body to `to` in the original.
    pub(crate) fn insert(&mut self, from: impl Into<String>, to: impl Into<String>) {
        self.prefixes.push((from.into(), to.into()));
    }

    /// Notes what the rewritten body lacks, which reports warn of. `pointer` is one into the
    /// original.
    pub(crate) fn leave_out(&mut self, pointer: String, message: String) {
        self.left_out.push(RequestFault { pointer, keyword: None, message });
    }

    /// What the rewritten body lacks, with pointers into the original.
    pub(crate) fn left_out(&self) -> &[RequestFault] {
        &self.left_out
    }

    /// Composes the maps of two rewrites: `self` is the later rewrite, `outer` the earlier one.
    pub(crate) fn compose(mut self, outer: PointerMap) -> PointerMap {
        for (_, to) in &mut self.prefixes {
            *to = outer.original(to);
        }
        for fault in &mut self.left_out {
            fault.pointer = outer.original(&fault.pointer);
        }
        for (from, to) in outer.prefixes {
            if !self.prefixes.iter().any(|(existing, _)| *existing == from) {
                self.prefixes.push((from, to));
            }
        }
        self.left_out.extend(outer.left_out);
        self
    }
}
