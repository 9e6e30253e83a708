//! Shared leaf: what input may cost. Every limit is an option with a safe default and ends in a typed error.

/// Bounds on what one request may make the engine do. Counted, never timed, so that results do not depend on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest JSON Schema or grammar text, in bytes.
    pub source_bytes: usize,
    /// Deepest nesting of a schema, regex or grammar expression.
    pub depth: usize,
    /// Most schema nodes or grammar expressions after normalisation.
    pub nodes: usize,
    /// Most states of one automaton while it is built (patterns, intersections).
    pub automaton_states: usize,
    /// Most states of all rules of one compiled grammar together.
    pub compiled_states: usize,
    /// Most items of one parser configuration.
    pub config_items: usize,
    /// Most bytes that free text is watched for by one dispatch: its triggers, stops and excludes together.
    pub dispatch_bytes: usize,
    /// Memory of one grammar's configurations and transitions, in bytes, before the cache is emptied and rebuilt.
    pub parser_bytes: usize,
    /// Memory of one grammar's finished masks, in bytes, before the oldest are dropped.
    pub mask_bytes: usize,
    /// Work of one compilation, in units of [`fuel`](crate::fuel) (about 10 ns each); see
    /// [`Limits::compile_budget`].
    pub compile_fuel: u64,
    /// Work of one mask or one token, in units of fuel.
    pub mask_fuel: u64,
    /// Work of one preparation in the background, in units of fuel.
    pub prepare_fuel: u64,
}

/// Bytes of source text that [`Limits::compile_fuel`] is meant for; longer texts get more in
/// proportion.
const COMPILE_BYTES: usize = 200 << 10;

impl Limits {
    /// Fuel for compiling so many bytes of source text: `compile_fuel` up to 200 KiB, and in
    /// proportion beyond.
    pub fn compile_budget(&self, source_bytes: usize) -> u64 {
        let times = source_bytes.div_ceil(COMPILE_BYTES).max(1) as u64;
        self.compile_fuel.saturating_mul(times)
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
            prepare_fuel: 20_000_000,
        }
    }
}
