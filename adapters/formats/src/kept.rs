//! Requests that come again: their plans and constraints are kept with the engine.

use std::hash::{Hash, Hasher};

use louver::engine::{Constraint, Engine};
use louver::fuel;

use crate::constraint::ConstraintError;
use crate::format::WireFormat;
use crate::plan::Plan;
use crate::request::ToolRequest;

/// Bytes of what is kept, for each of a request's schemas as values.
const KEPT: usize = 4;

/// A settled request in a format, compared as a whole.
#[derive(PartialEq)]
struct Key {
    format: WireFormat,
    request: ToolRequest,
}

/// Nothing in it differs from itself.
impl Eq for Key {}

impl Hash for Key {
    /// Of the names alone: requests with the same tools seldom differ.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Key { format, request } = self;
        format.name.hash(state);
        request.kinds().for_each(|(name, _)| name.hash(state));
        (&request.stop, &request.bans, request.functions()).hash(state);
    }
}

impl Key {
    fn bytes(&self) -> usize {
        let ToolRequest { tools, builtins, response_format, .. } = &self.request;
        let parameters = tools.iter().map(|tool| &tool.parameters);
        let schemas = parameters
            .chain(builtins.iter().filter_map(|b| b.parameters.as_ref()))
            .chain(response_format);
        KEPT * schemas.map(|schema| schema.bytes()).sum::<usize>() + 4096
    }
}

impl ToolRequest {
    /// Settles the request for an engine's vocabulary and limits, lowers it in a format and compiles it. A request that was compiled before
    /// gets the same plan and constraint, with all its masks, while they are kept:
    /// [`EngineOptions::grammar_cache_bytes`](louver::engine::EngineOptions::grammar_cache_bytes).
    pub fn compile(
        mut self,
        engine: &Engine,
        format: &WireFormat,
    ) -> Result<(Plan, Constraint), ConstraintError> {
        self.settle(engine);
        let key = Key { format: format.clone(), request: self };
        let bytes = key.bytes();
        // All schemas of a request have one budget of work together.
        let fuel = key.request.limits.compile_budget(bytes / KEPT);
        let (constraint, plan) = engine.kept(key, bytes, |Key { format, request }| {
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
