//! Patterns of JSON Schemas, read and made automata once a process: schemas repeat their own and each other's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{Pattern, RegexError, SCALARS, size};
use crate::cache::{CacheStats, Shared};
use crate::fsm::{Dfa, TooLarge};
use crate::fuel;
use crate::limits::Limits;

/// Most bytes all of them may hold, roughly.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of one node of a pattern, roughly.
const NODE: usize = 64;

/// A pattern, and the automaton of the texts that contain a match, once it was asked for.
#[derive(Debug)]
pub(crate) struct Known {
    source: Box<str>,
    /// The limits that decide whether it is refused.
    limits: (usize, usize),
    pattern: Pattern,
    search: Mutex<Built>,
    complement: Mutex<Built>,
    bytes: AtomicUsize,
}

/// An automaton, once it was asked for.
#[derive(Debug, Default)]
struct Built {
    /// With the limit that was enough.
    built: Option<(usize, Arc<Dfa>)>,
    /// The largest limit that was not.
    failed: Option<usize>,
}

/// Patterns by source. Of one that is read under several limits, the last reading.
static HELD: Shared<Box<str>, Arc<Known>> = Shared::new(MAX_BYTES);

/// How the patterns that all schemas of the process share are used.
pub(crate) fn pattern_stats() -> CacheStats {
    HELD.lock().stats()
}

/// As [`Pattern::parse`].
pub(crate) fn known(source: &str, limits: &Limits) -> Result<Arc<Known>, RegexError> {
    let within = (limits.depth, limits.nodes);
    if source.len() <= limits.source_bytes
        && let Some(known) = HELD.lock().get(source).filter(|known| known.limits == within)
    {
        return Ok(known);
    }
    let pattern = Pattern::parse(source, limits)?;
    let bytes = AtomicUsize::new(2 * source.len() + NODE * size(&pattern.hir, limits.nodes));
    let (search, complement) = (Mutex::default(), Mutex::default());
    let known = Arc::new(Known {
        source: source.into(),
        limits: within,
        pattern,
        search,
        complement,
        bytes,
    });
    known.charge(0);
    Ok(known)
}

impl Known {
    /// The pattern.
    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// As [`Pattern::search_dfa`].
    pub(crate) fn search_dfa(self: &Arc<Self>, limit: usize) -> Result<Arc<Dfa>, TooLarge> {
        self.get(&self.search, limit, || self.pattern.search_dfa(limit))
    }

    /// Texts that contain no match. Minimal.
    pub(crate) fn complement(self: &Arc<Self>, limit: usize) -> Result<Arc<Dfa>, TooLarge> {
        self.get(&self.complement, limit, || self.search_dfa(limit)?.flipped(&SCALARS, limit))
    }

    fn get(
        self: &Arc<Self>,
        kept: &Mutex<Built>,
        limit: usize,
        build: impl FnOnce() -> Result<Dfa, TooLarge>,
    ) -> Result<Arc<Dfa>, TooLarge> {
        let mut kept = kept.lock();
        match (&kept.built, kept.failed) {
            (Some((enough, dfa)), _) if *enough <= limit => return Ok(dfa.clone()),
            (_, Some(failed)) if limit <= failed => return Err(TooLarge::States { limit }),
            _ => {}
        }
        match build() {
            Ok(dfa) => {
                // Out of fuel it may be larger than it should be: nothing to keep for others.
                fuel::check()?;
                let dfa = Arc::new(dfa);
                kept.built = Some((limit, dfa.clone()));
                drop(kept);
                self.charge(dfa.bytes());
                Ok(dfa)
            }
            Err(error) => {
                if matches!(error, TooLarge::States { .. }) {
                    kept.failed = Some(limit);
                }
                Err(error)
            }
        }
    }

    /// Keeps it for others, with so many bytes more.
    fn charge(self: &Arc<Self>, more: usize) {
        let bytes = self.bytes.fetch_add(more, Ordering::Relaxed) + more;
        HELD.lock().insert(self.source.clone(), self.clone(), bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_for_what_is_known() {
        let limits = Limits::default();
        let pattern = known("^a{30}$", &limits).unwrap();
        assert!(pattern.search_dfa(8).is_err());
        let dfa = pattern.search_dfa(1_000).unwrap();
        assert_eq!(*dfa, Pattern::parse("^a{30}$", &limits).unwrap().search_dfa(1_000).unwrap());
        assert!(pattern.search_dfa(8).is_err(), "what was built under another limit");
        assert!(known("^a{30}$", &Limits { source_bytes: 3, ..limits.clone() }).is_err());
        assert!(
            known("^(((a{30})))$", &limits).is_ok()
                && known("^(((a{30})))$", &Limits { depth: 2, ..limits }).is_err()
        );
    }
}
