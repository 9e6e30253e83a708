//! Rounds of a request whose tools the server runs. A round is one generation. If it calls such
//! tools, the calls run, and the next round continues the conversation with their results.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use louver_formats::{Call, ToolChoice, Turn};
use louver_mistralrs::{Generation, McpError, RequestParams};
use serde_json::{Value, json};

use crate::generation::{GenerationRequest, Prompt, SentBody};
use crate::http::body::BodyShare;
use crate::request::messages::template_call;
use crate::served_model::ServedModel;
use crate::state::App;

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
    /// The text of the tool's result, or why there is none.
    pub(crate) output: Result<String, McpError>,
}

impl ToolResult {
    /// Why the call failed, for the model and the client: what the server said, if it did.
    pub(crate) fn reason(error: &McpError) -> String {
        match error {
            McpError::Tool { message, .. } | McpError::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }
}

/// Copies of a result: in the conversation and in the response.
const RESULT_COPIES: usize = 2;

/// The memory of the results of a request's calls, which are kept until its response ends.
struct ResultBudget {
    /// The most bytes of all texts: those of a prompt (`prompt_bytes`).
    max_bytes: usize,
    /// Bytes of the texts so far.
    bytes: usize,
    /// Pays for them from the memory of bodies.
    share: BodyShare,
}

impl ResultBudget {
    /// The result of a call of this tool, if there is room for its text; otherwise why it has none.
    fn admit(
        &mut self,
        app: &App,
        tool: &str,
        output: Result<String, McpError>,
    ) -> Result<String, McpError> {
        let text_len = output.as_ref().map_or_else(|e| ToolResult::reason(e).len(), String::len);
        let refused = |message: String| Err(McpError::Call { tool: tool.to_owned(), message });
        let bytes = self.bytes + text_len;
        if bytes > self.max_bytes {
            return refused(format!(
                "it has {text_len} bytes, and all results together may have {}",
                self.max_bytes
            ));
        }
        if self.share.grow_to(RESULT_COPIES * bytes, app).is_err() {
            return refused("too much memory is in use".to_owned());
        }
        self.bytes = bytes;
        output
    }
}

/// The state of a request between two rounds.
pub(super) struct Rounds {
    tools: Arc<ServerTools>,
    /// The request of the next round.
    pub(super) request: GenerationRequest,
    /// The parameters of the first round.
    first_params: RequestParams,
    /// Number of complete rounds.
    pub(super) complete: u64,
    /// Number of tokens that they have.
    tokens: usize,
    results: ResultBudget,
    /// No calls are run any more.
    are_over: bool,
}

impl Rounds {
    /// The rounds of a request that offers tools of the server; `None` for other requests.
    pub(super) fn new(
        request: &GenerationRequest,
        params: &RequestParams,
        served: &ServedModel,
    ) -> Option<Rounds> {
        let tools = request.server_tools.clone()?;
        // The body's share of the memory ends with the planning of the first round, which the share
        // in `request` goes with. The traces of later rounds have a copy of the body.
        let (mut request, first_params) = (request.clone(), params.clone());
        request.body = SentBody::default();
        let max_bytes = served.settings.limits.requests.prompt_bytes;
        let results = ResultBudget { max_bytes, bytes: 0, share: BodyShare::default() };
        let (complete, tokens, are_over) = (0, 0, false);
        Some(Rounds { tools, request, first_params, complete, tokens, results, are_over })
    }

    fn is_server_call(&self, call: &Call) -> bool {
        self.tools.contains_key(&call.name)
    }

    /// Whether a generation called a tool that the server runs.
    pub(super) fn calls_server_tools(&self, generation: &Generation) -> bool {
        !self.are_over && generation.turn.calls.iter().any(|call| self.is_server_call(call))
    }

    /// Ends the rounds: no calls are run any more.
    pub(super) fn end(&mut self) {
        self.are_over = true;
    }

    /// Whether it called only such tools, so that another round can follow.
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

    /// Runs the calls of a round, concurrently. Adds its message and the results to the
    /// conversation.
    pub(super) async fn run(&mut self, app: &App, generation: &Generation) -> Vec<ToolResult> {
        let calls = &generation.turn.calls;
        let own: Vec<&Call> = calls.iter().filter(|call| self.is_server_call(call)).collect();
        let results = self.run_calls(app, &own).await;
        if let Prompt::Messages(messages) = &mut self.request.prompt {
            messages.push(assistant_message(&generation.turn));
            let named = results.iter().zip(own);
            messages.extend(named.map(|(result, call)| result_message(result, &call.name)));
        }
        self.complete += 1;
        self.tokens += generation.tokens.len();
        let is_last = self.complete + 1 >= MAX_ROUNDS;
        self.request.tools.tool_choice = if is_last { ToolChoice::None } else { ToolChoice::Auto };
        results
    }

    /// The results in the order of the calls. Each is charged when it arrives.
    async fn run_calls(&mut self, app: &App, calls: &[&Call]) -> Vec<ToolResult> {
        let Rounds { tools, results: budget, .. } = self;
        let run = async |k: usize| (k, run_call(tools, app, calls[k]).await);
        let mut running: FuturesUnordered<_> = (0..calls.len()).map(run).collect();
        let mut results = Vec::new();
        while let Some((k, output)) = running.next().await {
            let output = budget.admit(app, &calls[k].name, output);
            results.push((k, ToolResult { id: calls[k].id.clone(), output }));
        }
        results.sort_unstable_by_key(|(k, _)| *k);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

async fn run_call(tools: &ServerTools, app: &App, call: &Call) -> Result<String, McpError> {
    let tool = tools.get(&call.name);
    let tool = tool.and_then(|(label, name)| Some((app.mcp_servers().get(label)?, name)));
    match tool {
        Some((tools, name)) => tools.call_tool(name, &call.arguments).await,
        None => Err(McpError::UnknownTool(call.name.clone())),
    }
}

/// The message of a round's output: the one that a client that sends it back would send.
fn assistant_message(turn: &Turn) -> Value {
    let call = |call: &Call| template_call(&call.id, call.kind, &call.name, &call.arguments);
    let calls: Vec<Value> = turn.calls.iter().map(call).collect();
    let mut message = json!({"role": "assistant", "content": turn.text, "tool_calls": calls});
    if !turn.reasoning.is_empty() {
        message["reasoning_content"] = turn.reasoning.as_str().into();
    }
    message
}

fn result_message(result: &ToolResult, name: &str) -> Value {
    let content = match &result.output {
        Ok(text) => text.clone(),
        Err(error) => format!("error: {}", ToolResult::reason(error)),
    };
    json!({"role": "tool", "tool_call_id": result.id, "name": name, "content": content})
}

#[cfg(test)]
mod tests {
    use louver::spec::json::Json;
    use louver_formats::CallKind;

    use super::*;
    use crate::limits::RequestLimits;
    use crate::request::call_history::ResultOrder;
    use crate::request::members::{Faults, Members};
    use crate::request::messages;

    /// The next round has the history that a client would send back.
    #[test]
    fn the_message_of_a_round_is_what_a_client_would_send() {
        let call = |id: &str, kind, arguments: &str| {
            let mut call = Call::new("f", arguments);
            (call.id, call.kind) = (id.to_owned(), kind);
            call
        };
        let calls = vec![
            call("1", CallKind::Function, r#"{"n": 1}"#),
            call("2", CallKind::Function, "[1"),
            call("3", CallKind::Function, ""),
            call("4", CallKind::Custom, "text"),
        ];
        for reasoning in ["", "hm"] {
            let turn = Turn::default().with_text("a").with_reasoning(reasoning);
            let turn = turn.with_calls(calls.clone());
            let function = |text: &str| json!({"name": "f", "arguments": text});
            let mut sent = json!([{"role": "assistant", "content": "a", "tool_calls": [
                {"id": "1", "type": "function", "function": function(r#"{"n": 1}"#)},
                {"id": "2", "type": "function", "function": function("[1")},
                {"id": "3", "type": "function", "function": function("")},
                {"id": "4", "type": "custom", "custom": {"name": "f", "input": "text"}},
            ]}]);
            if !reasoning.is_empty() {
                sent[0]["reasoning_content"] = reasoning.into();
            }
            let body = Json::from(json!({"messages": sent}));
            let mut faults = Faults::new();
            let members = Members::from_json(&body, "", &mut faults).unwrap();
            let (limits, order) = (RequestLimits::default(), ResultOrder::AfterMessage);
            let read = messages::read(&members, &limits, order, &mut Faults::new());
            assert_eq!(assistant_message(&turn), read[0]);
        }
    }
}
