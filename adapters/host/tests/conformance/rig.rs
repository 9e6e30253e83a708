//! A plan, a fixed model and a host that runs them.

use std::sync::Arc;

use louver::{Engine, EngineOptions, Json, Vocabulary};
use louver_formats::{Catalog, Reasoning, ToolRequest};
use louver_host::{
    DrawnBy, EventStream, Finish, Generation, GenerationError, GenerationInput, GenerationTask,
    LogitsHook, PlanError, PreparedGeneration, TurnPlan,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Calls a hook with a row and a context, through the types of a host.
pub(crate) type Call = Box<dyn Fn(&mut Vec<f32>, &[u32])>;
/// Calls a hook directly.
#[allow(dead_code, reason = "shims call through their own types")]
pub(crate) fn direct(hook: Arc<LogitsHook>) -> Call {
    Box::new(move |row: &mut Vec<f32>, context: &[u32]| hook.apply(row, context))
}

/// The stop token.
pub(crate) const STOP: u32 = 260;
/// The width of rows: more than the vocabulary has tokens.
pub(crate) const WIDTH: usize = 272;
pub(crate) const PROMPT: [u32; 5] = [3, 1, 4, 1, 5];
/// More tokens than the longest turn of [`plan`] has.
pub(crate) const AMPLE: usize = 200;
pub(crate) const LOUVER: DrawnBy = DrawnBy::Louver { seed: 7 };

/// A vocabulary of bytes, the markers of calls and a stop token.
pub(crate) fn vocabulary() -> Vocabulary {
    let mut builder = Vocabulary::builder(261);
    for byte in 0..=255u8 {
        builder.token(u32::from(byte), &[byte]);
    }
    builder.special(256, "<tool_call>").special(257, "</tool_call>");
    builder.special(258, "<think>").special(259, "</think>");
    builder.special(STOP, "<|im_end|>").stop(STOP);
    builder.build().unwrap()
}

/// A plan with one required call of a bounded length.
pub(crate) fn plan() -> TurnPlan {
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Lima"]}, "days": {"enum": [1, 2, 3]}},
        "required": ["city", "days"],
        "additionalProperties": false,
    });
    plan_of(parameters, EngineOptions::default()).unwrap()
}

/// A plan with a response of a form of structural tags.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn plan_of_tag(engine: &Engine, form: &Value, stop: &[&str]) -> TurnPlan {
    let format = Catalog::shipped().get("hermes").unwrap().bind(engine.vocab());
    let tag = json!({"type": "structural_tag", "format": form});
    let body = json!({"response_format": tag, "stop": stop});
    let request = ToolRequest::parse(&Json::from(&body)).unwrap();
    TurnPlan::compile(engine, &format, request.with_reasoning(Reasoning::Off)).unwrap()
}

/// A plan with one required call of a tool with these parameters.
pub(crate) fn plan_of(parameters: Value, options: EngineOptions) -> Result<TurnPlan, PlanError> {
    let engine = Engine::new(Arc::new(vocabulary()), options);
    let format = Catalog::shipped().get("hermes").unwrap().bind(engine.vocab());
    let function = json!({"name": "weather", "parameters": parameters, "strict": true});
    let tools = json!([{"type": "function", "function": function}]);
    let body = json!({"tools": tools, "tool_choice": "required", "parallel_tool_calls": false});
    let mut request = ToolRequest::parse(&Json::from(&body)).unwrap();
    request.reasoning = Reasoning::Off;
    request.schema_options.whitespace = louver::front::json_schema::Whitespace::Compact;
    TurnPlan::compile(&engine, &format, request)
}

pub(crate) fn prepare(plan: &TurnPlan, drawn_by: DrawnBy, limit: usize) -> PreparedGeneration {
    plan.generation(&GenerationInput::new(&PROMPT, limit, drawn_by))
}

/// The row of a fixed model for a number of generated tokens.
pub(crate) fn model_row(generated: usize) -> Vec<f32> {
    let logit = |id: usize| {
        let hash = (id as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * generated as u64);
        (hash >> 44) as f32 / 200_000.0
    };
    (0..WIDTH).map(logit).collect()
}

/// The id of the largest logit, which a host takes if Louver draws.
pub(crate) fn largest(row: &[f32]) -> u32 {
    let ids = (0..row.len()).filter(|id| row[*id].is_finite());
    ids.max_by(|a, b| row[*a].total_cmp(&row[*b])).expect("a finite logit") as u32
}

/// Generates as a host does, to the stop token or the host's limit. Returns the tokens without the
/// stop token.
pub(crate) fn generate(call: &Call, limit: usize) -> Vec<u32> {
    let mut context = PROMPT.to_vec();
    while context.len() <= PROMPT.len() + limit {
        let mut row = model_row(context.len() - PROMPT.len());
        call(&mut row, &context);
        match largest(&row) {
            STOP => break,
            token => context.push(token),
        }
    }
    context.split_off(PROMPT.len())
}

/// Runs the task of a generation whose host has ended, and returns the result.
pub(crate) fn finish(
    (events, task): (EventStream, GenerationTask),
    end: Option<Result<Finish, String>>,
) -> Result<Generation, GenerationError> {
    Runtime::new().unwrap().block_on(async {
        task.run(async { end }).await;
        events.finish().await
    })
}

pub(crate) const STOPPED: Option<Result<Finish, String>> = Some(Ok(Finish::Stop));
