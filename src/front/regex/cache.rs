//! Process-wide cache of JSON Schema patterns and their automata. Schemas repeat patterns, their
//! own and each other's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::hir::node_count;
use super::lengths::{LengthForm, Lengths};
use super::{Pattern, RegexError, SCALARS};
use crate::cache::{CacheStats, ProcessCache};
use crate::fsm::{Dfa, TooLarge};
use crate::fuel;
use crate::limits::Limits;

/// Approximate maximum size of all cached patterns, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Approximate size of one node of a pattern, in bytes.
const NODE_BYTES: usize = 64;

/// A cached pattern, with its automata once they have been built.
#[derive(Debug)]
pub(crate) struct CachedPattern {
    source: Box<str>,
    /// Limits under which it was parsed: depth and nodes.
    limits: (usize, usize),
    pattern: Pattern,
    /// Automaton of the texts that contain a match.
    search: Mutex<LazyDfa>,
    /// Automaton of the texts that contain no match.
    complement: Mutex<LazyDfa>,
    /// The pattern without bounds on the length, and the automaton of each form; empty if it has
    /// none.
    forms: OnceLock<Vec<(LengthForm, Mutex<LazyDfa>)>>,
    /// Approximate size in bytes.
    bytes: AtomicUsize,
}

/// The words of an automaton that have a length within the bounds.
pub(crate) type CountedDfa = (Arc<Dfa>, Lengths);

/// An automaton that is built on demand, and the limits tried so far.
#[derive(Debug, Default)]
struct LazyDfa {
    /// The automaton, with a limit on states that sufficed.
    built: Option<(usize, Arc<Dfa>)>,
    /// The largest limit on states that did not suffice.
    failed: Option<usize>,
}

/// Cached patterns by source. For a pattern that is parsed under several limits, the last one.
static PATTERN_CACHE: ProcessCache<Box<str>, Arc<CachedPattern>> = ProcessCache::new(MAX_BYTES);

/// Statistics of the pattern cache.
pub(crate) fn pattern_stats() -> CacheStats {
    PATTERN_CACHE.lock().stats()
}

/// As [`Pattern::parse`], through the cache.
pub(crate) fn cached_pattern(
    source: &str,
    limits: &Limits,
) -> Result<Arc<CachedPattern>, RegexError> {
    let parse_limits = (limits.depth, limits.nodes);
    if source.len() <= limits.source_bytes
        && let Some(cached) =
            PATTERN_CACHE.lock().get(source).filter(|cached| cached.limits == parse_limits)
    {
        return Ok(cached);
    }
    let pattern = Pattern::parse(source, limits)?;
    let bytes =
        AtomicUsize::new(2 * source.len() + NODE_BYTES * node_count(&pattern.hir, limits.nodes));
    let (search, complement) = (Mutex::default(), Mutex::default());
    let cached = Arc::new(CachedPattern {
        source: source.into(),
        limits: parse_limits,
        pattern,
        search,
        complement,
        forms: OnceLock::new(),
        bytes,
    });
    cached.charge(0);
    Ok(cached)
}

impl CachedPattern {
    /// The pattern.
    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// As [`Pattern::search_dfa`].
    pub(crate) fn search_dfa(self: &Arc<Self>, limit: usize) -> Result<Arc<Dfa>, TooLarge> {
        self.get_or_build(&self.search, limit, || self.pattern.search_dfa(limit))
    }

    /// The texts that contain a match, as a union of automata with bounds on the length. One
    /// automaton without bounds, if the pattern has no [length forms](Pattern::length_forms).
    pub(crate) fn counted_dfas(
        self: &Arc<Self>,
        limit: usize,
    ) -> Result<Vec<CountedDfa>, TooLarge> {
        let forms = self.forms.get_or_init(|| {
            let forms = self.pattern.length_forms().unwrap_or_default();
            forms.into_iter().map(|form| (form, Mutex::default())).collect()
        });
        if forms.is_empty() {
            return Ok(vec![(self.search_dfa(limit)?, (0, None))]);
        }
        let counted = |(form, cell): &(LengthForm, Mutex<LazyDfa>)| {
            let dfa = self.get_or_build(cell, limit, || form.pattern.search_dfa(limit))?;
            Ok((dfa, (form.min, form.max)))
        };
        forms.iter().map(counted).collect()
    }

    /// The minimal automaton of the texts that contain no match.
    pub(crate) fn complement(self: &Arc<Self>, limit: usize) -> Result<Arc<Dfa>, TooLarge> {
        self.get_or_build(&self.complement, limit, || {
            self.search_dfa(limit)?.complement(&SCALARS, limit)
        })
    }

    /// Returns an automaton, which is built if it is missing. Errors: `limit` does not suffice.
    fn get_or_build(
        self: &Arc<Self>,
        cell: &Mutex<LazyDfa>,
        limit: usize,
        build: impl FnOnce() -> Result<Dfa, TooLarge>,
    ) -> Result<Arc<Dfa>, TooLarge> {
        let mut cell = cell.lock();
        match (&cell.built, cell.failed) {
            (Some((enough, dfa)), _) if *enough <= limit => return Ok(dfa.clone()),
            (_, Some(failed)) if limit <= failed => return Err(TooLarge::States { limit }),
            _ => {}
        }
        match build() {
            Ok(dfa) => {
                // Out of fuel, the automaton may not be minimal: do not cache it.
                fuel::check()?;
                let dfa = Arc::new(dfa);
                cell.built = Some((limit, dfa.clone()));
                drop(cell);
                self.charge(dfa.bytes());
                Ok(dfa)
            }
            Err(error) => {
                if matches!(error, TooLarge::States { .. }) {
                    cell.failed = Some(limit);
                }
                Err(error)
            }
        }
    }

    /// Inserts the pattern into the cache, `more` bytes larger than before.
    fn charge(self: &Arc<Self>, more: usize) {
        let bytes = self.bytes.fetch_add(more, Ordering::Relaxed) + more;
        PATTERN_CACHE.insert(self.source.clone(), self.clone(), bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_for_cached_patterns() {
        let limits = Limits::default();
        let pattern = cached_pattern("^a{30}$", &limits).unwrap();
        assert!(pattern.search_dfa(8).is_err());
        let dfa = pattern.search_dfa(1_000).unwrap();
        assert_eq!(*dfa, Pattern::parse("^a{30}$", &limits).unwrap().search_dfa(1_000).unwrap());
        assert!(pattern.search_dfa(8).is_err(), "a cached automaton must not bypass the limit");
        assert!(cached_pattern("^a{30}$", &Limits { source_bytes: 3, ..limits.clone() }).is_err());
        assert!(
            cached_pattern("^(((a{30})))$", &limits).is_ok()
                && cached_pattern("^(((a{30})))$", &Limits { depth: 2, ..limits }).is_err()
        );
    }
}
