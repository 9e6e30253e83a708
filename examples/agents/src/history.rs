//! Execution of a turn's calls, and the conversation history.

use louver_mistralrs::{Call, Turn};
use mistralrs::{CalledFunction, RequestBuilder, TextMessageRole, ToolCallResponse, ToolCallType};
use serde_json::Value;

use crate::Toolbox;

/// Runs calls concurrently. The results are in the order of the calls.
pub async fn run_calls(calls: &[Call], tools: &Toolbox) -> Vec<Value> {
    let run = |call: &Call| {
        let (tools, call) = (tools.clone(), call.clone());
        tokio::spawn(async move { tools.call(&call.name, &call.arguments).await })
    };
    let running: Vec<_> = calls.iter().map(run).collect();
    let mut results = Vec::with_capacity(running.len());
    for task in running {
        let failed =
            |error: tokio::task::JoinError| serde_json::json!({"error": error.to_string()});
        results.push(task.await.unwrap_or_else(failed));
    }
    results
}

/// Adds a turn's calls and their results to the conversation.
pub fn append_turn(history: RequestBuilder, turn: Turn, results: Vec<Value>) -> RequestBuilder {
    let response = |(index, call): (usize, &Call)| ToolCallResponse {
        index,
        id: call.id.clone(),
        tp: ToolCallType::Function,
        function: CalledFunction { name: call.name.clone(), arguments: call.arguments.clone() },
    };
    let calls = turn.calls.iter().enumerate().map(response).collect();
    let history = history.add_message_with_tool_call(TextMessageRole::Assistant, turn.text, calls);
    let results = turn.calls.iter().zip(results);
    results.fold(history, |history, (call, result)| history.add_tool_message(result, &call.id))
}
