//! Leaf: limits on what an input may cost. Each is an option with a safe default and ends in a
//! typed error.

use serde::{Deserialize, Serialize};

use crate::setters::with_methods;

/// Bounds on the work and memory of one request. All are counted, none is timed, so results do not
/// depend on the machine. Configuration files and Python name them as here.
///
/// ```
/// use std::sync::Arc;
/// use louver::{Engine, EngineOptions, Limits, SchemaOptions, Vocabulary};
///
/// let options = EngineOptions::default().with_limits(Limits::default().with_depth(4));
/// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), options);
/// let deep = r#"{"items": {"items": {"items": {"items": {"items": {}}}}}}"#;
/// assert!(engine.compile_json_schema(deep, &SchemaOptions::default()).is_err());
/// ```
// Many fields: limits that users set one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Longest JSON Schema or grammar text, in bytes. The default is 4 MiB.
    pub source_bytes: usize,
    /// Deepest nesting of a schema, a regular expression or a grammar expression. The default is
    /// 128.
    pub depth: usize,
    /// Most schema nodes or grammar expressions after normalisation. The default is 200,000.
    pub nodes: usize,
    /// Most states of one automaton while it is built (patterns, intersections). The default is
    /// 100,000.
    pub automaton_states: usize,
    /// Most states of all rules of one compiled grammar together. The default is 1,000,000.
    pub compiled_states: usize,
    /// Most items of one configuration. The default is 20,000.
    pub config_items: usize,
    /// Most bytes of the triggers, stops and excludes of one dispatch together. The default is 128
    /// KiB.
    pub dispatch_bytes: usize,
    /// Memory of one grammar's configurations and transitions, in bytes, before they are dropped
    /// and rebuilt; at most 2 GiB. The default is 64 MiB.
    pub parser_bytes: usize,
    /// Memory of one grammar's finished masks, in bytes, before all are dropped and rebuilt. The
    /// default is 64 MiB.
    pub mask_bytes: usize,
    /// Fuel of one compilation, in units of about 10 ns (see [`fuel`](crate::fuel)), for a source
    /// text of up to 200 KiB; see [`Limits::compile_budget`]. Also that of one
    /// [`Matcher::captures`](crate::Matcher::captures). The default is 10,000,000: about 0.1 s.
    pub compile_fuel: u64,
    /// Fuel of one mask or one token, in units. The default is 2,000,000: about 20 ms.
    pub mask_fuel: u64,
    /// Fuel of all masks and tokens of one sequence, for each started 256 tokens, in units; see
    /// [`Limits::sequence_budget`]. The default is 10,000,000: about 0.1 s.
    pub sequence_fuel: u64,
    /// Fuel of one preparation in the background, in units. The default is 20,000,000: about 0.2 s.
    pub prepare_fuel: u64,
}

with_methods!(Limits {
    with_source_bytes: source_bytes = usize,
    with_depth: depth = usize,
    with_nodes: nodes = usize,
    with_automaton_states: automaton_states = usize,
    with_compiled_states: compiled_states = usize,
    with_config_items: config_items = usize,
    with_dispatch_bytes: dispatch_bytes = usize,
    with_parser_bytes: parser_bytes = usize,
    with_mask_bytes: mask_bytes = usize,
    with_compile_fuel: compile_fuel = u64,
    with_mask_fuel: mask_fuel = u64,
    with_sequence_fuel: sequence_fuel = u64,
    with_prepare_fuel: prepare_fuel = u64,
});

/// Bytes of source text that [`Limits::compile_fuel`] is meant for. Longer texts get a multiple.
const BYTES_PER_COMPILE_BUDGET: usize = 200 << 10;
/// Tokens of a sequence that [`Limits::sequence_fuel`] is meant for. Longer ones get a multiple.
const TOKENS_PER_SEQUENCE_BUDGET: u64 = 256;

impl Limits {
    /// An eighth of the limits on schema nodes and on automata. If a grammar cannot be compiled and
    /// the policy relaxes schemas, the schema is lowered again within these: then more is relaxed,
    /// where the grammar is largest. `None` if the limits are small already.
    pub fn tightened(&self) -> Option<Limits> {
        (self.automaton_states > 64).then(|| Limits {
            nodes: self.nodes / 8,
            automaton_states: self.automaton_states / 8,
            compiled_states: self.compiled_states / 8,
            ..self.clone()
        })
    }

    /// Fuel for compiling `source_bytes` bytes of text, in units: `compile_fuel` for each started
    /// 200 KiB.
    ///
    /// ```
    /// use louver::Limits;
    ///
    /// let limits = Limits::default().with_compile_fuel(1_000);
    /// assert_eq!(limits.compile_budget(5), 1_000);
    /// assert_eq!(limits.compile_budget(201 << 10), 2_000);
    /// ```
    pub fn compile_budget(&self, source_bytes: usize) -> u64 {
        let times = source_bytes.div_ceil(BYTES_PER_COMPILE_BUDGET).max(1) as u64;
        self.compile_fuel.saturating_mul(times)
    }

    /// Fuel of a sequence that has taken `tokens` tokens, in units: `sequence_fuel` for each
    /// started 256 tokens, the next one included.
    ///
    /// ```
    /// use louver::Limits;
    ///
    /// let limits = Limits::default().with_sequence_fuel(1_000);
    /// assert_eq!(limits.sequence_budget(0), 1_000);
    /// assert_eq!(limits.sequence_budget(256), 2_000);
    /// ```
    pub fn sequence_budget(&self, tokens: u64) -> u64 {
        self.sequence_fuel.saturating_mul(1 + tokens / TOKENS_PER_SEQUENCE_BUDGET)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            source_bytes: 4 << 20,
            depth: 128,
            nodes: 200_000,
            automaton_states: 100_000,
            compiled_states: 1_000_000,
            config_items: 20_000,
            dispatch_bytes: 128 << 10,
            parser_bytes: 64 << 20,
            mask_bytes: 64 << 20,
            compile_fuel: 10_000_000,
            mask_fuel: 2_000_000,
            sequence_fuel: 10_000_000,
            prepare_fuel: 20_000_000,
        }
    }
}
