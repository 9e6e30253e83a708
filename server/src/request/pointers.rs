//! JSON pointer translation: from a rewritten request body to the request as sent.

use std::collections::HashMap;

use louver_formats::RequestFault;

/// Maps JSON pointers of a rewritten body to pointers of the request as sent, and has warnings of
/// what has no effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointerMap {
    /// The original of each mapped pointer.
    prefixes: HashMap<String, String>,
    warnings: Vec<RequestFault>,
}

impl PointerMap {
    /// Translates a pointer. The longest mapped prefix decides; unmapped pointers are unchanged.
    /// Cost: a look-up for each token of the pointer.
    pub(crate) fn original(&self, pointer: &str) -> String {
        let ends = pointer.rmatch_indices('/').map(|(end, _)| end);
        let best = std::iter::once(pointer.len()).chain(ends).find_map(|end| {
            let (from, rest) = pointer.split_at(end);
            self.prefixes.get(from).map(|to| format!("{to}{rest}"))
        });
        best.unwrap_or_else(|| pointer.to_owned())
    }

    /// Maps the subtree at `from` in the rewritten body to `to` in the original.
    pub(crate) fn insert(&mut self, from: impl Into<String>, to: impl Into<String>) {
        self.prefixes.insert(from.into(), to.into());
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
        for to in self.prefixes.values_mut() {
            *to = outer.original(to);
        }
        for fault in &mut self.warnings {
            fault.pointer = outer.original(&fault.pointer);
        }
        for (from, to) in outer.prefixes {
            self.prefixes.entry(from).or_insert(to);
        }
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
        // Each look-up is independent of the number of messages.
        for k in 1..200_000 {
            let (of_message, of_item) = (format!("/messages/{k}/y"), format!("/input/{}/y", k + 1));
            assert_eq!(map.original(&of_message), of_item);
        }
    }

    #[test]
    fn the_longest_mapped_prefix_decides() {
        let mut map = PointerMap::default();
        for (from, to) in [("/a", "/x"), ("/a/b", "/y"), ("/a", "/z"), ("/c/d", "/w")] {
            map.insert(from, to);
        }
        for (pointer, original) in [
            ("/a", "/z"),
            ("/a/b", "/y"),
            ("/a/b/c", "/y/c"),
            ("/a/bc", "/z/bc"),
            ("/ab", "/ab"),
            ("/c", "/c"),
            ("", ""),
        ] {
            assert_eq!(map.original(pointer), original, "{pointer}");
        }
    }
}
