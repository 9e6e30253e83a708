//! Compiling a request. The engine's grammar cache keeps the results for equal requests.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use louver::compile::CompileError;
use louver::engine::{Constraint, Engine};
use louver::front::json_schema::Policy;
use louver::fuel;
use louver::spec::json::Json;

use crate::format::WireFormat;
use crate::lowered::LoweredRequest;
use crate::request::{ConstraintError, PartErrors, ResponseFormat, Tool, ToolRequest};

/// Estimated bytes of lowered request and constraint per byte of the request's schemas.
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
        request.tools.iter().for_each(|tool| tool.name().hash(state));
        (&request.stop, &request.bans).hash(state);
    }
}

impl RequestKey {
    fn bytes(&self) -> usize {
        BYTES_PER_SCHEMA_BYTE * self.request.schemas().map(Json::bytes).sum::<usize>() + 4096
    }
}

impl ToolRequest {
    /// The schemas of tools and of the response.
    fn schemas(&self) -> impl Iterator<Item = &Json> {
        let response = match &self.response_format {
            Some(ResponseFormat::Schema(schema)) => Some(schema),
            _ => None,
        };
        self.tools.iter().filter_map(Tool::parameters).chain(response)
    }

    /// Takes over the engine's limits and special tokens, lowers the request for a format and
    /// compiles the grammar. An equal request gets the same results, with their masks,
    /// while they are in the grammar cache:
    /// [`EngineOptions::grammar_cache_bytes`](louver::engine::EngineOptions::grammar_cache_bytes).
    pub fn compile(
        mut self,
        engine: &Engine,
        format: &WireFormat,
    ) -> Result<(LoweredRequest, Constraint), ConstraintError> {
        self.apply_engine(engine);
        let key = RequestKey { format: format.clone(), request: self };
        let bytes = key.bytes();
        // One budget of work for all schemas of the request.
        let options = &key.request.schema_options;
        let text_len = key.request.schemas().map(Json::text_len).sum();
        let fuel = options.compile_budget(&key.request.limits, text_len);
        let (constraint, lowered) =
            engine.get_or_compile(key, bytes, |RequestKey { format, request }| {
                fuel::with_budget(fuel, || compile_within(engine, format, request))
            })?;
        Ok((LoweredRequest::clone(&lowered), constraint))
    }
}

/// Lowers and compiles a request within the fuel of the thread. Under a policy that relaxes, a
/// request whose grammar takes too much work is lowered again within tighter limits.
fn compile_within(
    engine: &Engine,
    format: &WireFormat,
    request: &ToolRequest,
) -> Result<(Constraint, LoweredRequest), ConstraintError> {
    let format = format.bind(engine.vocab());
    let mut request = Cow::Borrowed(request);
    loop {
        let lowered = format.lower(&request)?;
        let compile = || {
            let constraint = engine.compile(lowered.grammar().clone())?;
            constraint.make_first_mask().map(|()| constraint)
        };
        // The rules of the grammar are none of the request's.
        let error = |error: CompileError| match (&error, request.response_format.as_ref()) {
            (CompileError::Empty { .. }, Some(ResponseFormat::StructuralTag(tag))) => {
                ConstraintError::Lower(PartErrors::of_empty_tag(tag).into())
            }
            _ => error.into(),
        };
        let tighter = request.limits.tightened();
        if request.schema_options.policy == Policy::Strict {
            return Ok((compile().map_err(error)?, lowered));
        }
        match (fuel::with_half(compile), tighter) {
            (Ok(constraint), _) => return Ok((constraint, lowered)),
            (Err(found), Some(limits)) if found.is_limit() => request.to_mut().limits = limits,
            (Err(found), _) => return Err(error(found)),
        }
    }
}
