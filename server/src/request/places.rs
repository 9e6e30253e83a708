//! Where the members of a rewritten body stood in the request as it was sent.

/// Pointers into the rewritten body, and the pointers that they stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Vec<(String, String)>);

impl Places {
    /// The pointer in the request as it was sent. The longest known prefix decides.
    pub(crate) fn original(&self, pointer: &str) -> String {
        let below = |from: &str| {
            pointer.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self
            .0
            .iter()
            .filter_map(|(from, to)| Some((from.len(), to, below(from)?)))
            .max_by_key(|f| f.0);
        found.map_or_else(|| pointer.to_owned(), |(_, to, rest)| format!("{to}{rest}"))
    }

    /// What stands at `from` in the rewritten body stood at `to`.
    pub(crate) fn put(&mut self, from: impl Into<String>, to: impl Into<String>) {
        self.0.push((from.into(), to.into()));
    }

    /// The places of a body that was rewritten twice: these first, from the end.
    pub(crate) fn then(mut self, outer: Places) -> Places {
        for (_, to) in &mut self.0 {
            *to = outer.original(to);
        }
        for (from, to) in outer.0 {
            if !self.0.iter().any(|(known, _)| *known == from) {
                self.0.push((from, to));
            }
        }
        self
    }
}
