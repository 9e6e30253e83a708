//! The grammar cache: constraints keyed by what they were compiled from.
//!
//! A request for an equal key shares the automata, configurations and masks of the earlier one.
//! Constraints grow while they are used, so each request measures the memory of some anew.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::Equivalent;
use parking_lot::Mutex;

use super::{Constraint, Engine};
use crate::cache::{Cache, CacheStats};
use crate::hash::hasher;

/// Estimated memory of a grammar node, in bytes.
const BYTES_PER_NODE: usize = 64;
/// Estimated memory of a rule, in bytes.
const BYTES_PER_RULE: usize = 256;

/// Constraints by key, within a memory budget.
#[derive(Debug)]
pub(super) struct GrammarCache(Mutex<Cache<Key, CachedConstraint>>);

/// A key of any type, with its hash.
struct Key {
    hash: u64,
    erased: Box<dyn ErasedKey>,
}

/// An entry: a constraint, and the value that was made with it (such as a report).
#[derive(Clone, Debug)]
struct CachedConstraint {
    constraint: Constraint,
    made: Arc<dyn Any + Send + Sync>,
    /// Memory of the key, of the grammar and of `made`, in bytes.
    fixed_bytes: usize,
}

/// A key whose type was erased.
trait ErasedKey: Send + Sync {
    /// Whether `other` has the same type and an equal value.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<K: Eq + Send + Sync + 'static> ErasedKey for K {
    fn equals(&self, other: &dyn Any) -> bool {
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

/// Entries are found by [`KeyQuery`]; no two stored keys are equal, so identity suffices here.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Key {}

/// A key to look for.
struct KeyQuery<'a, K> {
    hash: u64,
    key: &'a K,
}

impl<K> Hash for KeyQuery<'_, K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl<K: Any> Equivalent<Key> for KeyQuery<'_, K> {
    fn equivalent(&self, held: &Key) -> bool {
        self.hash == held.hash && held.erased.equals(self.key)
    }
}

impl Engine {
    /// The constraint of an equal key, with the value that was made beside it, from the grammar
    /// cache; otherwise what `make` makes, which is then cached. Errors are not cached.
    ///
    /// `bytes` estimates the memory of the key and of the value, in bytes. The budget of the cache
    /// is [`EngineOptions::grammar_cache_bytes`](super::EngineOptions::grammar_cache_bytes); with 0
    /// every call runs `make`. Cost of a hit: hashing the key, one comparison, and measuring one
    /// entry in 64, as constraints grow.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, SchemaCompileError, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), SchemaCompileError> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// for _ in 0..2 {
    ///     let make = |key: &&str| {
    ///         let schema = format!(r#"{{"enum": ["{key}"]}}"#);
    ///         Ok::<_, SchemaCompileError>((
    ///             engine.compile_json_schema(&schema, &SchemaOptions::default())?,
    ///             key.len(),
    ///         ))
    ///     };
    ///     let (_constraint, length) = engine.get_or_compile("on", 64, make)?;
    ///     assert_eq!(*length, 2);
    /// }
    /// assert!(engine.stats().grammars.hits > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_or_compile<K, T, E>(
        &self,
        key: K,
        bytes: usize,
        make: impl FnOnce(&K) -> Result<(Constraint, T), E>,
    ) -> Result<(Constraint, Arc<T>), E>
    where
        K: Eq + Hash + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        if self.grammar_cache.0.lock().max_bytes() == 0 {
            return make(&key).map(|(constraint, made)| (constraint, Arc::new(made)));
        }
        let mut hasher = hasher();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(found) = self.grammar_cache.get(hash, &key) {
            return Ok(found);
        }
        let (constraint, made) = make(&key)?;
        let made = Arc::new(made);
        Ok(self.grammar_cache.insert(hash, key, constraint, made, bytes))
    }
}

impl GrammarCache {
    /// An empty cache with a budget of `max_bytes` bytes.
    pub(super) fn new(max_bytes: usize) -> GrammarCache {
        GrammarCache(Mutex::new(Cache::new(max_bytes)))
    }

    /// Counters and current size.
    pub(super) fn stats(&self) -> CacheStats {
        self.0.lock().stats()
    }

    /// The entry of an equal key.
    fn get<K: Any, T: Send + Sync + 'static>(
        &self,
        hash: u64,
        key: &K,
    ) -> Option<(Constraint, Arc<T>)> {
        let mut cache = self.0.lock();
        let found = cache.get(&KeyQuery { hash, key })?;
        let evicted = cache.remeasure(CachedConstraint::bytes);
        drop(cache);
        // Dropping a constraint takes long, so it happens after the lock is released.
        drop(evicted);
        found.into_handles()
    }

    /// Inserts a constraint and returns it, or that of another thread that was faster.
    fn insert<K, T>(
        &self,
        hash: u64,
        key: K,
        constraint: Constraint,
        made: Arc<T>,
        fixed_bytes: usize,
    ) -> (Constraint, Arc<T>)
    where
        K: Eq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let rules = &constraint.compiled().rules;
        let nodes: usize = rules.iter().map(|rule| rule.nodes as usize).sum();
        let fixed_bytes = fixed_bytes + nodes * BYTES_PER_NODE + rules.len() * BYTES_PER_RULE;
        let entry =
            CachedConstraint { constraint: constraint.clone(), made: made.clone(), fixed_bytes };
        let bytes = entry.bytes().unwrap_or(fixed_bytes);
        let mut cache = self.0.lock();
        let held = cache.peek(&KeyQuery { hash, key: &key }).cloned();
        if let Some(found) = held.and_then(CachedConstraint::into_handles) {
            return found;
        }
        let mut evicted = cache.insert(Key { hash, erased: Box::new(key) }, entry, bytes);
        evicted.extend(cache.remeasure(CachedConstraint::bytes));
        drop(cache);
        drop(evicted);
        (constraint, made)
    }
}

impl CachedConstraint {
    /// The constraint and its value. `None` if the value has another type, which two uses of one
    /// key type never have.
    fn into_handles<T: Send + Sync + 'static>(self) -> Option<(Constraint, Arc<T>)> {
        Some((self.constraint, self.made.downcast().ok()?))
    }

    /// All of its memory in bytes, the caches of the constraint included; `None` while another
    /// thread has the constraint's lock.
    fn bytes(&self) -> Option<usize> {
        Some(self.fixed_bytes + self.constraint.bytes()?)
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
        Arc::ptr_eq(&a.masks, &b.masks)
    }

    #[test]
    fn equivalent_schemas_are_compiled_once() {
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
        // Errors are not cached.
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
    fn cached_reports_belong_to_the_requested_schema() {
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
        // A schema that one policy relaxes is refused by another.
        assert!(compile("x", Policy::Strict).is_err());
        // Without a report nothing is relaxed.
        let refused = engine.compile_json_schema("true", &options(Policy::BestEffort)).unwrap_err();
        assert!(refused.to_string().contains("the policy must be `strict`"), "{refused}");
        // With documents in the registry, nothing is cached.
        let mut documents = Registry::new();
        documents.insert("https://example.org/a", Json::parse("{}", &Limits::default()).unwrap());
        let before = engine.stats().grammars;
        engine.compile_json_schema_in("{}", &documents, &SchemaOptions::default()).unwrap();
        assert_eq!(engine.stats().grammars, before);
    }

    #[test]
    fn cached_constraints_stay_within_the_budget_as_they_grow() {
        let engine = engine(200_000);
        let reused = compile(&engine, r#"{"const": "favourite"}"#);
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
                is_same(&reused, &compile(&engine, r#"{"const": "favourite"}"#)),
                "a recently used constraint stays: {i}, {:?}",
                engine.stats().grammars
            );
            let stats = engine.stats().grammars;
            assert!(stats.bytes <= 200_000, "{stats:?}");
        }
        let stats = engine.stats().grammars;
        assert_eq!((stats.hits, stats.misses), (200, 201));
        assert!(stats.evicted > 20 && stats.entries > 2, "{stats:?}");
        assert_eq!(stats.entries as u64 + stats.evicted, 201);
        // An entry that takes more than half of the budget is evicted before the others.
        let large: String = (0..800)
            .map(|i| format!(r#""name {i}": {{"type": "integer", "minimum": {i}}},"#))
            .collect();
        compile(&engine, &format!(r#"{{"properties": {{{large} "z": {{}}}}}}"#));
        assert!(is_same(&reused, &compile(&engine, r#"{"const": "favourite"}"#)));
    }

    #[test]
    fn concurrent_requests_for_one_schema_share_a_constraint() {
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
