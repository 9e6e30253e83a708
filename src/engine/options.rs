//! The options of an engine.

use crate::front::json_schema::Registry;
use crate::ir::Simplify;
use crate::limits::Limits;
use crate::mask::PoolScope;
use crate::setters::with_methods;
use crate::switches::Switches;

/// How an [`Engine`](super::Engine) works.
///
/// ```
/// use louver::{EngineOptions, Limits};
///
/// // Small caches, no threads besides the caller's, grammar texts of at most 1 MiB.
/// let options = EngineOptions::default()
///     .with_limits(Limits::default().with_source_bytes(1 << 20))
///     .with_pool_bytes(16 << 20)
///     .with_grammar_cache_bytes(8 << 20)
///     .with_batch_threads(1)
///     .with_background_threads(0);
/// assert_eq!(options.limits.source_bytes, 1 << 20);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Bounds on every request.
    pub limits: Limits,
    /// Memory of the mask pool, in bytes: mask entries and finished masks that all grammars share.
    /// The least recently used are evicted. The default is 256 MiB; with 0 nothing is pooled.
    pub pool_bytes: usize,
    /// Which engines and constraints share the mask pool. Where engines of one pool ask for
    /// different budgets, the largest holds.
    pub pool_scope: PoolScope,
    /// Memory of the grammar cache, in bytes: constraints with their configurations and masks, as
    /// measured when a constraint is asked for. Used by
    /// [`Engine::compile_json_schema`](super::Engine::compile_json_schema),
    /// [`Engine::compile_json_schema_in`](super::Engine::compile_json_schema_in) without a
    /// registry, and [`Engine::get_or_compile`](super::Engine::get_or_compile). The least recently
    /// used are evicted. The default is 64 MiB; with 0 nothing is cached.
    pub grammar_cache_bytes: usize,
    /// Thresholds between equivalent ways of making masks. Not part of the public interface.
    #[doc(hidden)]
    pub tuning: MaskTuning,
    /// Whether grammars are simplified before they are compiled. Changes no mask. The default is
    /// `Off`: lowered schemas, expressions and tool sets gain nothing from it.
    pub simplify: Simplify,
    /// The same for grammars written as text, EBNF and Lark, unless they are parts of structural
    /// tags, which are always simplified. The default is `On`: people write one chain of rules per
    /// precedence level, which makes masks costly until it is inlined.
    pub simplify_texts: Simplify,
    /// Schema documents that references may lead to, where no other registry is given.
    pub registry: Registry,
    /// Parts of the engine to switch off, to measure their worth.
    pub switches: Switches,
    /// Threads of [`Engine::fill_masks`](super::Engine::fill_masks), started by the first batch
    /// that needs them. 1 runs everything on the calling thread. The default is the machine's
    /// parallelism, at most 8.
    pub batch_threads: usize,
    /// Threads of [`Constraint::prepare`](super::Constraint::prepare) and
    /// [`Matcher::prefetch`](super::Matcher::prefetch), started when first needed. With 0 those do
    /// nothing. The default is 1.
    pub background_threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
        EngineOptions {
            limits: Limits::default(),
            pool_bytes: 256 << 20,
            pool_scope: PoolScope::default(),
            grammar_cache_bytes: 64 << 20,
            tuning: MaskTuning::default(),
            simplify: Simplify::default(),
            simplify_texts: Simplify::On,
            registry: Registry::default(),
            switches: Switches::default(),
            batch_threads: parallelism.min(8),
            background_threads: 1,
        }
    }
}

with_methods!(EngineOptions {
    with_limits: limits = Limits,
    with_pool_bytes: pool_bytes = usize,
    with_pool_scope: pool_scope = PoolScope,
    with_grammar_cache_bytes: grammar_cache_bytes = usize,
    #[doc(hidden)]
    with_tuning: tuning = MaskTuning,
    with_simplify: simplify = Simplify,
    with_simplify_texts: simplify_texts = Simplify,
    with_registry: registry = Registry,
    with_switches: switches = Switches,
    with_batch_threads: batch_threads = usize,
    with_background_threads: background_threads = usize,
});

/// Thresholds between the ways of making a mask. They change times and never a mask; benchmarks
/// and tests set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskTuning {
    /// Trie nodes that a new mask may visit in one direct walk before it is assembled from pooled
    /// mask entries of single states instead. Large values are capped at a quarter of the trie's
    /// nodes, but not below 1,024. 0 always uses entries.
    pub direct_walk: usize,
    /// Grammars with at least this many mutually recursive rules, as those of programming languages
    /// have, read rule by rule from the first mask on, so that rules reuse each other's results.
    /// Smaller grammars switch to that where it proves cheaper. 0 applies it to all.
    pub mutual_rules: usize,
}

impl MaskTuning {
    /// The default with another bound on direct walks.
    pub fn with_direct_walk(direct_walk: usize) -> MaskTuning {
        MaskTuning { direct_walk, ..MaskTuning::default() }
    }
}

impl Default for MaskTuning {
    fn default() -> Self {
        MaskTuning { direct_walk: 16_384, mutual_rules: 24 }
    }
}
