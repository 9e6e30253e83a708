//! Conversions of the host's types.

use louver_host::{
    ChatTemplate, Finish, Sampling, TemplateError, TemplateSources, parse_call_arguments,
};
use mistralrs::SamplingParams;
use mistralrs_core::{ChatTemplate as HostTemplate, MessageContent, Response, ToolChoice};
use serde_json::json;
use tokio::sync::mpsc::Receiver;

/// Compiles the host's template, with the tokens of [`Checkpoint::template_tokens`].
///
/// [`Checkpoint::template_tokens`]: louver_host::Checkpoint::template_tokens
pub(crate) fn chat_template(
    host: &HostTemplate,
    tokens: [Option<String>; 3],
) -> Result<ChatTemplate, TemplateError> {
    let templates = &host.chat_template.as_ref().ok_or(TemplateError::Missing)?.0;
    let value = templates.as_ref().either(|source| json!(source), |list| json!(list));
    ChatTemplate::from_sources(TemplateSources::from_value(&value), tokens)
}

/// The sampling parameters that Louver applies when it draws.
pub(crate) fn sampling(params: &SamplingParams) -> Sampling {
    Sampling::default()
        .with_temperature(params.temperature)
        .with_top_k(params.top_k)
        .with_top_p(params.top_p)
        .with_min_p(params.min_p)
}

/// Converts a tool choice of the SDK to OpenAI's JSON format.
pub(crate) fn openai_choice(choice: ToolChoice) -> serde_json::Value {
    match choice {
        // The whole tool, of which OpenAI's format has the name.
        ToolChoice::Tool(tool) => {
            json!({"type": "function", "function": {"name": tool.function.name}})
        }
        // Texts and, in 0.9, objects of that format, so serialisation succeeds.
        choice => serde_json::to_value(choice).unwrap_or_default(),
    }
}

/// Converts a message of the SDK to OpenAI's JSON format. The `function` member of
/// `RequestBuilder::add_message_with_tool_call` becomes `tool_calls`, with arguments as an object.
pub(crate) fn sdk_message<'a>(
    members: impl IntoIterator<Item = (&'a String, &'a MessageContent)>,
) -> serde_json::Value {
    let mut out = serde_json::Map::new();
    for (key, content) in members {
        if let Some(text) = content.as_ref().left() {
            out.insert(key.clone(), text.as_str().into());
        } else if let Some(parts) = content.as_ref().right() {
            let objects = parts.iter().map(|part| {
                let mut object: serde_json::Map<_, _> =
                    part.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                if key == "function" || key == "tool_calls" {
                    parse_call_arguments(&mut object);
                }
                serde_json::Value::Object(object)
            });
            let key = if key == "function" { "tool_calls" } else { key };
            out.insert(key.to_owned(), objects.collect());
        }
    }
    serde_json::Value::Object(out)
}

/// Drains the host's responses up to its first finish reason, which it returns, or the host's
/// error; `None` if the host is gone.
pub(crate) async fn first_finish(
    mut responses: Receiver<Response>,
) -> Option<Result<Finish, String>> {
    while let Some(response) = responses.recv().await {
        if let Some(reason) = finish_reason(response) {
            return Some(reason.map(|reason| match &*reason {
                "length" => Finish::Length,
                "canceled" => Finish::Cancelled,
                _ => Finish::Stop,
            }));
        }
    }
    None
}

/// The finish reason in a response, or the host's error.
fn finish_reason(response: Response) -> Option<Result<String, String>> {
    match response {
        Response::CompletionChunk(chunk) => {
            chunk.choices.into_iter().find_map(|c| c.finish_reason).map(Ok)
        }
        Response::Chunk(chunk) => chunk.choices.into_iter().find_map(|c| c.finish_reason).map(Ok),
        Response::CompletionDone(done) => {
            Some(Ok(done.choices.into_iter().next().map_or_else(String::new, |c| c.finish_reason)))
        }
        Response::Done(done) => {
            Some(Ok(done.choices.into_iter().next().map_or_else(String::new, |c| c.finish_reason)))
        }
        Response::InternalError(error) | Response::ValidationError(error) => {
            Some(Err(error.to_string()))
        }
        Response::ModelError(message, _) | Response::CompletionModelError(message, _) => {
            Some(Err(message))
        }
        Response::ImageGeneration(_)
        | Response::Speech { .. }
        | Response::Raw { .. }
        | Response::Embeddings { .. } => Some(Err("an unexpected kind of response".to_owned())),
        // The progress of the host's own tools is no end.
        #[cfg(feature = "mistralrs-0-9")]
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_choices_are_converted_to_openai_format() {
        let tool = json!({"type": "function", "function": {"name": "f", "parameters": {}}});
        let tool = ToolChoice::Tool(serde_json::from_value(tool).unwrap());
        for (choice, want) in [
            (ToolChoice::None, json!("none")),
            (ToolChoice::Auto, json!("auto")),
            (tool, json!({"type": "function", "function": {"name": "f"}})),
        ] {
            assert_eq!(openai_choice(choice), want);
        }
    }
}
