//! Compiled grammars by what they were made from: who asks again shares automata, configurations and masks.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::{Equivalent, IndexMap};
use parking_lot::Mutex;

use super::{Constraint, Engine};
use crate::cache::CacheStats;
use crate::hash::{Seeded, hasher};

/// Constraints whose memory is looked at anew each time one is added: they grow while they are used.
const MEASURED: usize = 8;
/// Memory of a node of a grammar, and of a rule.
const NODE: usize = 64;
const RULE: usize = 256;

/// Constraints by key, within a budget. Which one makes room is decided by a clock: a hand goes around, and what has been asked for since it last
/// came by stays, unless it alone takes more than half of the budget.
#[derive(Debug, Default)]
pub(super) struct Kept {
    max_bytes: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    slots: IndexMap<Key, Slot, Seeded>,
    bytes: usize,
    hand: usize,
    hits: u64,
    misses: u64,
    evicted: u64,
}

struct Key {
    hash: u64,
    content: Box<dyn Content>,
}

#[derive(Debug)]
struct Slot {
    constraint: Constraint,
    made: Arc<dyn Any + Send + Sync>,
    used: bool,
    /// Of the key and what was made.
    fixed: usize,
    /// With that; as it was last measured.
    bytes: usize,
}

/// A key whose type is not known.
trait Content: Send + Sync {
    fn is(&self, other: &dyn Any) -> bool;
}

impl<K: Eq + Send + Sync + 'static> Content for K {
    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<K>() == Some(self)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({:016x})", self.hash)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// Keys are compared when they are looked for; those that are held are never equal.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Key {}

/// What is looked for.
struct Asked<'a, K> {
    hash: u64,
    key: &'a K,
}

impl<K> Hash for Asked<'_, K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl<K: Any> Equivalent<Key> for Asked<'_, K> {
    fn equivalent(&self, held: &Key) -> bool {
        self.hash == held.hash && held.content.is(self.key)
    }
}

impl Engine {
    /// The constraint that was made for an equal key and is still held, with what was made beside it; else what `make` makes. Errors are
    /// not kept. `bytes` is the memory of the key and of what is made beside the constraint, roughly.
    ///
    /// The budget is [`EngineOptions::grammar_cache_bytes`](super::EngineOptions::grammar_cache_bytes). Cost: hashing the key; it is compared whole with that of
    /// what is found.
    pub fn kept<K, T, E>(
        &self,
        key: K,
        bytes: usize,
        make: impl FnOnce(&K) -> Result<(Constraint, T), E>,
    ) -> Result<(Constraint, Arc<T>), E>
    where
        K: Eq + Hash + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        if self.kept.max_bytes == 0 {
            return make(&key).map(|(constraint, made)| (constraint, Arc::new(made)));
        }
        let mut hasher = hasher();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(found) = self.kept.get(hash, &key) {
            return Ok(found);
        }
        let (constraint, made) = make(&key)?;
        let made = Arc::new(made);
        Ok(self.kept.insert((hash, key), constraint, made, bytes))
    }
}

impl Kept {
    pub(super) fn new(max_bytes: usize) -> Kept {
        Kept { max_bytes, inner: Mutex::default() }
    }

    pub(super) fn stats(&self) -> CacheStats {
        let inner = self.inner.lock();
        CacheStats {
            hits: inner.hits,
            misses: inner.misses,
            entries: inner.slots.len(),
            bytes: inner.bytes,
            evicted: inner.evicted,
        }
    }

    fn get<K: Any, T: Send + Sync + 'static>(
        &self,
        hash: u64,
        key: &K,
    ) -> Option<(Constraint, Arc<T>)> {
        let mut inner = self.inner.lock();
        let Some((at, _, slot)) = inner.slots.get_full_mut(&Asked { hash, key }) else {
            inner.misses += 1;
            return None;
        };
        slot.used = true;
        let found = slot.give()?;
        inner.measure(at);
        inner.hits += 1;
        let gone = inner.make_room(self.max_bytes);
        drop(inner);
        drop(gone);
        Some(found)
    }

    /// Keeps a constraint, unless another thread was faster: then that one's is given.
    fn insert<K, T>(
        &self,
        (hash, key): (u64, K),
        constraint: Constraint,
        made: Arc<T>,
        fixed: usize,
    ) -> (Constraint, Arc<T>)
    where
        K: Eq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let mut inner = self.inner.lock();
        let held = inner.slots.get(&Asked { hash, key: &key });
        if let Some(found) = held.and_then(Slot::give) {
            return found;
        }
        let rules = &constraint.compiled().rules;
        let nodes: usize = rules.iter().map(|rule| rule.nodes as usize).sum();
        let fixed = fixed + nodes * NODE + rules.len() * RULE;
        let slot = Slot {
            constraint: constraint.clone(),
            made: made.clone(),
            used: true,
            fixed,
            bytes: fixed,
        };
        inner.bytes += fixed;
        let (at, before) = inner.slots.insert_full(Key { hash, content: Box::new(key) }, slot);
        inner.bytes -= before.map_or(0, |slot| slot.bytes);
        inner.measure(at);
        let gone = inner.make_room(self.max_bytes);
        drop(inner);
        // Not while the lock is held.
        drop(gone);
        (constraint, made)
    }
}

impl Slot {
    /// None if the key had something else made, which keys of one type never have.
    fn give<T: Send + Sync + 'static>(&self) -> Option<(Constraint, Arc<T>)> {
        Some((self.constraint.clone(), self.made.clone().downcast().ok()?))
    }
}

impl Inner {
    /// Looks at how much memory a constraint holds by now, unless it is busy.
    fn measure(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        if let Some(bytes) = slot.constraint.bytes() {
            self.bytes -= slot.bytes;
            slot.bytes = slot.fixed + bytes;
            self.bytes += slot.bytes;
        }
    }

    /// What had to go.
    fn make_room(&mut self, max_bytes: usize) -> Vec<Slot> {
        let mut gone = Vec::new();
        for step in 0..MEASURED.min(self.slots.len()) {
            self.measure((self.hand + step) % self.slots.len());
        }
        while self.bytes > max_bytes && !self.slots.is_empty() {
            self.hand %= self.slots.len();
            self.measure(self.hand);
            let slot = &mut self.slots[self.hand];
            if std::mem::take(&mut slot.used) && slot.bytes <= max_bytes / 2 {
                self.hand += 1;
            } else if let Some((_, slot)) = self.slots.swap_remove_index(self.hand) {
                self.bytes -= slot.bytes;
                self.evicted += 1;
                gone.push(slot);
            }
        }
        // The next look is at others.
        self.hand += MEASURED;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineOptions;
    use crate::front::json_schema::{Policy, Registry, SchemaOptions, Whitespace};
    use crate::ids::TokenId;
    use crate::limits::Limits;
    use crate::spec::json::Json;
    use crate::vocab::Vocabulary;

    fn engine(grammar_cache_bytes: usize) -> Engine {
        let options = EngineOptions { grammar_cache_bytes, ..EngineOptions::default() };
        Engine::new(Arc::new(Vocabulary::toy(&[b"\"a", b"a\""])), options)
    }

    fn compile(engine: &Engine, schema: &str) -> Constraint {
        engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap()
    }

    fn is_same(a: &Constraint, b: &Constraint) -> bool {
        Arc::ptr_eq(&a.index, &b.index)
    }

    #[test]
    fn schemas_that_say_the_same_are_compiled_once() {
        let engine = engine(1 << 20);
        let first = compile(&engine, r#"{"type": "string", "maxLength": 3}"#);
        let again = compile(
            &engine,
            r#"{"title": "t", "type": "string", "maxLength": 3, "examples": [{"$id": "x"}]}"#,
        );
        assert!(is_same(&first, &again));
        assert!(!is_same(&first, &compile(&engine, r#"{"type": "string", "maxLength": 4}"#)));
        let compact = SchemaOptions { whitespace: Whitespace::Compact, ..SchemaOptions::default() };
        let other =
            engine.compile_json_schema(r#"{"type": "string", "maxLength": 3}"#, &compact).unwrap();
        assert!(!is_same(&first, &other));
        let stats = engine.stats().grammars;
        assert_eq!((stats.hits, stats.misses, stats.entries, stats.evicted), (1, 3, 3, 0));
        // Errors are found anew.
        for _ in 0..2 {
            assert!(
                engine
                    .compile_json_schema(r#"{"type": "text"}"#, &SchemaOptions::default())
                    .is_err()
            );
        }
        assert_eq!((engine.stats().grammars.misses, engine.stats().grammars.entries), (5, 3));
        let off = super::tests::engine(0);
        assert!(!is_same(&compile(&off, "true"), &compile(&off, "true")));
        assert_eq!(off.stats().grammars, CacheStats::default());
    }

    #[test]
    fn reports_are_those_of_the_schema_asked_for() {
        let engine = engine(1 << 20);
        let options = |policy| SchemaOptions { policy, ..SchemaOptions::default() };
        let schema = |title: &str| {
            format!(r#"{{"title": "{title}", "properties": {{"a": {{"pattern": "(a)\\1"}}}}}}"#)
        };
        let registry = Registry::new();
        let compile = |title, policy| {
            engine
                .compile_json_schema_in(&schema(title), &registry, &options(policy))
                .map(|(_, r)| r)
        };
        let relaxed = compile("x", Policy::BestEffort).unwrap();
        assert_eq!(relaxed[0].pointer, "/properties/a/pattern");
        assert_eq!(compile("y", Policy::BestEffort).unwrap(), relaxed);
        assert_eq!(engine.stats().grammars.hits, 1);
        // What one policy relaxes, another refuses.
        assert!(compile("x", Policy::Strict).is_err());
        assert!(engine.compile_json_schema(&schema("x"), &options(Policy::BestEffort)).is_err());
        // With documents to refer to, nothing is kept.
        let mut documents = Registry::new();
        documents.insert("https://example.org/a", Json::parse("{}", &Limits::default()).unwrap());
        let before = engine.stats().grammars;
        engine.compile_json_schema_in("{}", &documents, &SchemaOptions::default()).unwrap();
        assert_eq!(engine.stats().grammars, before);
    }

    #[test]
    fn constraints_kept_stay_within_their_budget_as_they_grow() {
        let engine = engine(200_000);
        let favourite = compile(&engine, r#"{"const": "favourite"}"#);
        let mut mask = vec![0; engine.vocab().mask_words()];
        for i in 0..200 {
            let constraint = compile(
                &engine,
                &format!(r#"{{"properties": {{"a{i}": {{"type": "string", "maxLength": {i}}}}}}}"#),
            );
            let mut matcher = constraint.matcher();
            for byte in format!("{{\"a{i}\":\"").bytes() {
                matcher.fill_mask(&mut mask);
                matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
            }
            assert!(
                is_same(&favourite, &compile(&engine, r#"{"const": "favourite"}"#)),
                "what is used stays"
            );
            let stats = engine.stats().grammars;
            assert!(stats.bytes <= 200_000, "{stats:?}");
        }
        let stats = engine.stats().grammars;
        assert_eq!((stats.hits, stats.misses), (200, 201));
        assert!(stats.evicted > 20 && stats.entries > 2, "{stats:?}");
        assert_eq!(stats.entries as u64 + stats.evicted, 201);
        // One that takes more than half of the budget makes room for others before they do.
        let large: String = (0..800)
            .map(|i| format!(r#""name {i}": {{"type": "integer", "minimum": {i}}},"#))
            .collect();
        compile(&engine, &format!(r#"{{"properties": {{{large} "z": {{}}}}}}"#));
        assert!(is_same(&favourite, &compile(&engine, r#"{"const": "favourite"}"#)));
    }

    #[test]
    fn threads_that_ask_at_once_get_one_constraint() {
        let engine = engine(1 << 20);
        let work = || {
            (0..50)
                .map(|i| compile(&engine, &format!(r#"{{"maxLength": {i}}}"#)))
                .collect::<Vec<_>>()
        };
        let all: Vec<Vec<Constraint>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for other in &all[1..] {
            assert!(all[0].iter().zip(other).all(|(a, b)| is_same(a, b)));
        }
        assert_eq!(engine.stats().grammars.entries, 50);
    }
}
