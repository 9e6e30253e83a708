//! Plans of turns: the constraints of a request, compiled for a model's vocabulary.

use std::sync::Arc;

use louver::engine::{Constraint, Engine};
use louver::front::json_schema::Policy;
use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_formats::{
    ConstraintError, Event, Extractor, LoweredRequest, ToolChoice, ToolRequest, Turn, WireFormat,
};

use crate::error::PlanError;
use crate::options::fresh_id_seed;
use crate::reader::Reader;
use crate::report::Relaxed;
use crate::validate::SchemaValidators;

/// The constraints of one turn, compiled for a vocabulary, or none. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TurnPlan {
    pub(crate) vocab: Arc<Vocabulary>,
    compiled: Option<CompiledTurn>,
}

#[derive(Clone, Debug)]
struct CompiledTurn {
    constraint: Constraint,
    lowered: LoweredRequest,
    /// Whether the turn must be structured: a required call or a response format.
    is_structured: bool,
    /// Validators of relaxed schemas, under the policy `validate`.
    validators: Option<Arc<SchemaValidators>>,
}

impl TurnPlan {
    /// Compiles the constraints of a request. Cost: that of compiling the grammar; masks are
    /// computed later.
    pub fn compile(
        engine: &Engine,
        format: &WireFormat,
        request: ToolRequest,
    ) -> Result<TurnPlan, PlanError> {
        let tools = request.tools.len();
        let _span = tracing::debug_span!("plan", format = format.name, tools).entered();
        let (lowered, constraint) =
            request.clone().compile(engine, format).map_err(|error| match error {
                ConstraintError::Lower(error) => PlanError::from(error),
                ConstraintError::Compile(error) => PlanError::from(error),
            })?;
        let is_call_required =
            matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        let is_structured = is_call_required || request.response_format.is_some();
        let validators = SchemaValidators::new(lowered.clone(), request.schema_options);
        let is_validated =
            request.schema_options.policy == Policy::Validate && !validators.is_empty();
        let validators = is_validated.then(|| Arc::new(validators));
        let compiled = CompiledTurn { constraint, lowered, is_structured, validators };
        Ok(TurnPlan { vocab: engine.vocab().clone(), compiled: Some(compiled) })
    }

    /// A plan without a constraint: all output is text.
    pub fn unconstrained(vocab: Arc<Vocabulary>) -> TurnPlan {
        TurnPlan { vocab, compiled: None }
    }

    /// The request lowered to the model's wire format; `None` for a plan without a constraint.
    pub fn lowered(&self) -> Option<&LoweredRequest> {
        self.compiled.as_ref().map(|compiled| &compiled.lowered)
    }

    /// The compiled grammar and its caches; `None` for a plan without a constraint.
    pub fn constraint(&self) -> Option<&Constraint> {
        self.compiled.as_ref().map(|compiled| &compiled.constraint)
    }

    /// The parts of the request that the grammar does not enforce. With the policy `validate`, the
    /// report of a generation lists violations of them.
    pub fn relaxed(&self) -> Vec<Relaxed> {
        let relaxed = self.lowered().map(LoweredRequest::relaxed);
        relaxed.unwrap_or_default().iter().map(Relaxed::from).collect()
    }

    /// Whether the turn must be structured: a required call or a response format.
    pub(crate) fn is_structured(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.is_structured)
    }

    /// What probably constrains less than it was written to.
    pub fn warnings(&self) -> &[louver_formats::RequestFault] {
        self.lowered().map(LoweredRequest::warnings).unwrap_or_default()
    }

    /// Validators of relaxed schemas, under the policy `validate`.
    pub(crate) fn validators(&self) -> Option<Arc<SchemaValidators>> {
        self.compiled.as_ref()?.validators.clone()
    }

    /// Parses complete generated tokens. The stop token may be left out, except where it is also
    /// the end of a call.
    pub fn read(&self, tokens: &[u32]) -> Turn {
        let mut reader = self.reader(|lowered| lowered.extractor(0));
        let mut events: Vec<Event> = reader.push(tokens, None);
        let is_stop = |token: &u32| self.vocab.is_stop(TokenId::from_raw(*token));
        if let Some(stop) = tokens.last().copied().filter(is_stop) {
            // In some formats the stop token is the marker that ends a call.
            events.extend(reader.stop(Some(stop), None));
        }
        events.extend(reader.finish());
        Turn::collect(&events)
    }

    /// The reader of a generation. Its calls have ids that no other generation has, whatever the
    /// tokens and the seed they are drawn with; numbers in the conversation stay.
    pub(crate) fn generation_reader(&self, earlier_ids: &[String]) -> Reader {
        self.reader(|lowered| {
            let mut extractor = lowered.extractor(fresh_id_seed());
            extractor.reserve_ids(earlier_ids.iter().cloned());
            extractor.renew_ids();
            extractor
        })
    }

    fn reader(&self, extractor: impl FnOnce(&LoweredRequest) -> Extractor) -> Reader {
        let vocab = self.vocab.clone();
        match &self.compiled {
            Some(CompiledTurn { constraint, lowered, .. }) => {
                Reader::constrained(vocab, constraint.matcher(), extractor(lowered))
            }
            None => Reader::text(vocab),
        }
    }
}

/// The ids of the calls in messages in OpenAI's JSON format.
pub fn call_ids(messages: &[serde_json::Value]) -> Vec<String> {
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    calls.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
}
