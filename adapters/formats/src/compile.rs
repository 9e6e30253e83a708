//! Compiling a request. The engine's grammar cache keeps plan and constraint for equal requests.

use std::hash::{Hash, Hasher};

use louver::engine::{Constraint, Engine};
use louver::fuel;

use crate::constraint::ConstraintError;
use crate::format::WireFormat;
use crate::plan::Plan;
use crate::request::ToolRequest;

/// Estimated bytes of plan and constraint per byte of the request's schemas.
const BYTES_PER_SCHEMA_BYTE: usize = 4;

/// The cache key: a request with the engine's limits, and a format.
#[derive(PartialEq)]
struct RequestKey {
    format: WireFormat,
    request: ToolRequest,
}

// No field holds a float, so that equality is reflexive.
impl Eq for RequestKey {}

impl Hash for RequestKey {
    /// Hashes names only: requests with the same tools seldom differ.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let RequestKey { format, request } = self;
        format.name.hash(state);
        request.kinds().for_each(|(name, _)| name.hash(state));
        (&request.stop, &request.bans, request.functions()).hash(state);
    }
}

impl RequestKey {
    fn bytes(&self) -> usize {
        let ToolRequest { tools, builtins, response_format, .. } = &self.request;
        let parameters = tools.iter().map(|tool| &tool.parameters);
        let schemas = parameters
            .chain(builtins.iter().filter_map(|b| b.parameters.as_ref()))
            .chain(response_format);
        BYTES_PER_SCHEMA_BYTE * schemas.map(|schema| schema.bytes()).sum::<usize>() + 4096
    }
}

impl ToolRequest {
    /// Takes over the engine's limits and special tokens, lowers the request for a format and
    /// compiles the grammar. An equal request gets the same plan and constraint, with its masks,
    /// while they are in the grammar cache:
    /// [`EngineOptions::grammar_cache_bytes`](louver::engine::EngineOptions::grammar_cache_bytes).
    pub fn compile(
        mut self,
        engine: &Engine,
        format: &WireFormat,
    ) -> Result<(Plan, Constraint), ConstraintError> {
        self.apply_engine(engine);
        let key = RequestKey { format: format.clone(), request: self };
        let bytes = key.bytes();
        // One budget of work for all schemas of the request.
        let fuel = key.request.limits.compile_budget(bytes / BYTES_PER_SCHEMA_BYTE);
        let (constraint, plan) =
            engine.get_or_compile(key, bytes, |RequestKey { format, request }| {
                fuel::limited(fuel, || {
                    let plan = format.bind(engine.vocab()).lower(request)?;
                    let constraint = engine.compile(plan.grammar().clone())?;
                    constraint.make_first_mask()?;
                    Ok::<_, ConstraintError>((constraint, plan))
                })
            })?;
        Ok((Plan::clone(&plan), constraint))
    }
}
