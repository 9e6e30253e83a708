//! Patterns of JSON Schemas, read and made automata once a process: schemas repeat their own and each other's.

use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{Pattern, RegexError, SCALARS, size};
use crate::fsm::{Dfa, Edge, TooLarge};
use crate::limits::Limits;

/// Most bytes all of them may hold, roughly, before they are dropped and made anew.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of one node of a pattern, roughly.
const NODE: usize = 64;

/// A pattern, and the automaton of the texts that contain a match, once it was asked for.
#[derive(Debug)]
pub(crate) struct Known {
    pattern: Pattern,
    search: Mutex<Built>,
    complement: Mutex<Built>,
}

/// An automaton, once it was asked for.
#[derive(Debug, Default)]
struct Built {
    /// With the limit that was enough.
    built: Option<(usize, Arc<Dfa>)>,
    /// The largest limit that was not.
    failed: Option<usize>,
}

#[derive(Default)]
struct Held {
    /// By source and by the limits that decide whether it is refused.
    by_source: FxHashMap<(usize, usize), FxHashMap<String, Arc<Known>>>,
    bytes: usize,
}

impl Held {
    fn charge(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            *self = Held::default();
        }
    }
}

fn held() -> &'static Mutex<Held> {
    static HELD: OnceLock<Mutex<Held>> = OnceLock::new();
    HELD.get_or_init(Mutex::default)
}

/// As [`Pattern::parse`].
pub(crate) fn known(source: &str, limits: &Limits) -> Result<Arc<Known>, RegexError> {
    let key = (limits.depth, limits.nodes);
    if source.len() <= limits.source_bytes
        && let Some(known) = held().lock().by_source.get(&key).and_then(|sources| sources.get(source))
    {
        return Ok(known.clone());
    }
    let pattern = Pattern::parse(source, limits)?;
    let bytes = source.len() + NODE * size(&pattern.hir, limits.nodes);
    let known = Arc::new(Known { pattern, search: Mutex::default(), complement: Mutex::default() });
    let mut held = held().lock();
    held.charge(bytes);
    Ok(match held.by_source.entry(key).or_default().entry(source.to_owned()) {
        Entry::Occupied(other) => other.get().clone(),
        Entry::Vacant(new) => new.insert(known).clone(),
    })
}

impl Known {
    /// The pattern.
    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// As [`Pattern::search_dfa`].
    pub(crate) fn search_dfa(&self, limit: usize) -> Result<Arc<Dfa>, TooLarge> {
        get(&self.search, limit, || self.pattern.search_dfa(limit))
    }

    /// Texts that contain no match. Minimal.
    pub(crate) fn complement(&self, limit: usize) -> Result<Arc<Dfa>, TooLarge> {
        get(&self.complement, limit, || Dfa::all_of(&[(&*self.search_dfa(limit)?, false)], &SCALARS, limit))
    }
}

fn get(kept: &Mutex<Built>, limit: usize, build: impl FnOnce() -> Result<Dfa, TooLarge>) -> Result<Arc<Dfa>, TooLarge> {
    let mut kept = kept.lock();
    match (&kept.built, kept.failed) {
        (Some((enough, dfa)), _) if *enough <= limit => return Ok(dfa.clone()),
        (_, Some(failed)) if limit <= failed => return Err(TooLarge { limit }),
        _ => {}
    }
    match build() {
        Ok(dfa) => {
            let dfa = Arc::new(dfa);
            kept.built = Some((limit, dfa.clone()));
            drop(kept);
            held().lock().charge(dfa.edge_count() * size_of::<Edge>() + dfa.len() * 8);
            Ok(dfa)
        }
        Err(error) => {
            kept.failed = Some(limit);
            Err(error)
        }
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
            known("^(((a{30})))$", &limits).is_ok() && known("^(((a{30})))$", &Limits { depth: 2, ..limits }).is_err()
        );
    }
}
