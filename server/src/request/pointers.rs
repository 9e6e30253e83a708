//! JSON pointer translation: from a rewritten request body to the request as sent.

/// Maps JSON pointers of a rewritten body to pointers of the request as sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointerMap(Vec<(String, String)>);

impl PointerMap {
    /// Translates a pointer. The longest mapped prefix decides; unmapped pointers are unchanged.
    pub(crate) fn original(&self, pointer: &str) -> String {
        let remainder = |from: &str| {
            pointer.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let best = self
            .0
            .iter()
            .filter_map(|(from, to)| Some((from.len(), to, remainder(from)?)))
            .max_by_key(|f| f.0);
        best.map_or_else(|| pointer.to_owned(), |(_, to, rest)| format!("{to}{rest}"))
    }

    /// Maps the subtree at `from` in the rewritten body to `to` in the original.
    pub(crate) fn insert(&mut self, from: impl Into<String>, to: impl Into<String>) {
        self.0.push((from.into(), to.into()));
    }

    /// Composes the maps of two rewrites: `self` is the later rewrite, `outer` the earlier one.
    pub(crate) fn compose(mut self, outer: PointerMap) -> PointerMap {
        for (_, to) in &mut self.0 {
            *to = outer.original(to);
        }
        for (from, to) in outer.0 {
            if !self.0.iter().any(|(existing, _)| *existing == from) {
                self.0.push((from, to));
            }
        }
        self
    }
}
