//! Rounds of a request whose tools the server runs: after a turn that calls such tools, the calls
//! run, and another turn continues the conversation with their results.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use louver_formats::{Call, ToolChoice};
use louver_mistralrs::{Generation, RequestParams};
use serde_json::{Value, json};

use crate::state::App;
use crate::turn::{Prompt, TurnRequest};

/// The highest number of rounds of a request. In the last one no tool can be called.
const MAX_ROUNDS: u64 = 16;

/// Tools of MCP servers, by the names that the model sees: each with its server's label and its own
/// name.
pub(crate) type ServerTools = HashMap<String, (String, String)>;

/// The result of a call that the server ran.
#[derive(Clone, Debug)]
pub(crate) struct ToolResult {
    /// The call's id.
    pub(crate) id: String,
    /// The text of the tool's result, or why it failed.
    pub(crate) output: Result<String, String>,
}

/// The state of a request between two rounds.
pub(super) struct Rounds {
    tools: Arc<ServerTools>,
    /// The request of the next round.
    pub(super) request: TurnRequest,
    /// The parameters of the first round.
    first_params: RequestParams,
    /// Number of complete rounds.
    pub(super) complete: u64,
    /// Number of tokens that they have.
    tokens: usize,
}

impl Rounds {
    /// The rounds of a request that offers tools of the server; `None` for other requests.
    pub(super) fn new(request: &TurnRequest, params: &RequestParams) -> Option<Rounds> {
        let tools = request.server_tools.clone()?;
        let (request, first_params) = (request.clone(), params.clone());
        Some(Rounds { tools, request, first_params, complete: 0, tokens: 0 })
    }

    fn is_server_call(&self, call: &Call) -> bool {
        self.tools.contains_key(&call.name)
    }

    /// Whether a turn called a tool that the server runs.
    pub(super) fn calls_server_tools(&self, generation: &Generation) -> bool {
        generation.turn.calls.iter().any(|call| self.is_server_call(call))
    }

    /// Whether the turn only called tools that the server runs, so that it can be continued.
    pub(super) fn can_continue(&self, generation: &Generation) -> bool {
        generation.turn.calls.iter().all(|call| self.is_server_call(call))
    }

    /// The parameters of the next round: with the rest of the tokens, and other draws. `None` if no
    /// tokens are left.
    pub(super) fn next_params(&self) -> Option<RequestParams> {
        let mut params = self.first_params.clone();
        if let Some(max) = params.sampling.as_mut().and_then(|sampling| sampling.max_len.as_mut()) {
            *max = max.checked_sub(self.tokens).filter(|rest| *rest > 0)?;
        }
        params.earlier_ids = self.request.earlier_ids();
        params.options.seed = params.options.seed.map(|seed| seed.wrapping_add(self.complete));
        Some(params)
    }

    /// Runs the calls of a turn, concurrently. Adds the turn and the results to the conversation.
    pub(super) async fn run(&mut self, app: &App, generation: &Generation) -> Vec<ToolResult> {
        let calls = &generation.turn.calls;
        let own: Vec<&Call> = calls.iter().filter(|call| self.is_server_call(call)).collect();
        let results = join_all(own.iter().map(|call| self.run_call(app, call))).await;
        if let Prompt::Messages(messages) = &mut self.request.prompt {
            messages.push(json!({
                "role": "assistant",
                "content": generation.turn.text,
                "tool_calls": calls.iter().map(call_message).collect::<Vec<_>>(),
            }));
            let named = results.iter().zip(own);
            messages.extend(named.map(|(result, call)| result_message(result, &call.name)));
        }
        self.complete += 1;
        self.tokens += generation.tokens.len();
        let is_last = self.complete + 1 >= MAX_ROUNDS;
        self.request.tools.tool_choice = if is_last { ToolChoice::None } else { ToolChoice::Auto };
        results
    }

    async fn run_call(&self, app: &App, call: &Call) -> ToolResult {
        let tool = self.tools.get(&call.name);
        let tool = tool.and_then(|(label, name)| Some((app.mcp_servers().get(label)?, name)));
        let output = match tool {
            Some((tools, name)) => {
                let called = tools.call_tool(name, &call.arguments).await;
                called.map_err(|error| error.to_string())
            }
            None => Err(format!("there is no tool {:?}", call.name)),
        };
        ToolResult { id: call.id.clone(), output }
    }
}

/// A call as chat templates take it.
fn call_message(call: &Call) -> Value {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"id": call.id, "type": "function", "function": function})
}

fn result_message(result: &ToolResult, name: &str) -> Value {
    let content = match &result.output {
        Ok(text) => text.clone(),
        Err(error) => format!("error: {error}"),
    };
    json!({"role": "tool", "tool_call_id": result.id, "name": name, "content": content})
}
