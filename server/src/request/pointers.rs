//! JSON pointer translation: from a rewritten request body to the request as sent.

use std::collections::HashSet;

use louver_formats::RequestFault;

/// Maps JSON pointers of a rewritten body to pointers of the request as sent, and has warnings of
/// what has no effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointerMap {
    prefixes: Vec<(String, String)>,
    warnings: Vec<RequestFault>,
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

    /// Adds a warning to reports. `pointer` is one into the original.
    pub(crate) fn warn(&mut self, pointer: String, message: String) {
        self.warnings.push(RequestFault::new(pointer, message));
    }

    /// The warnings, with pointers into the original.
    pub(crate) fn warnings(&self) -> &[RequestFault] {
        &self.warnings
    }

    /// Composes the maps of two rewrites: `self` is the later rewrite, `outer` the earlier one.
    pub(crate) fn compose(mut self, outer: PointerMap) -> PointerMap {
        for (_, to) in &mut self.prefixes {
            *to = outer.original(to);
        }
        for fault in &mut self.warnings {
            fault.pointer = outer.original(&fault.pointer);
        }
        let own: HashSet<String> = self.prefixes.iter().map(|(from, _)| from.clone()).collect();
        self.prefixes.extend(outer.prefixes.into_iter().filter(|(from, _)| !own.contains(from)));
        self.warnings.extend(outer.warnings);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_long_conversations_are_composed() {
        let mut outer = PointerMap::default();
        for k in 0..200_000 {
            outer.insert(format!("/messages/{k}"), format!("/input/{}", k + 1));
        }
        let mut inner = PointerMap::default();
        inner.insert("/messages/0", "/messages/7/x");
        let map = inner.compose(outer);
        assert_eq!(map.original("/messages/0/y"), "/input/8/x/y");
        assert_eq!(map.original("/messages/199999/y"), "/input/200000/y");
    }
}
