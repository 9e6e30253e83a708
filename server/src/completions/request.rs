//! Parsing of completion bodies.

use louver::spec::json::{Json, Number};

use crate::chat::parse_body;
use crate::error::{ApiError, ApiFault};
use crate::generation::{GenerationRequest, Prompt};
use crate::request::member_table::{MemberTable, RouteAdvice};
use crate::request::members::{Faults, Members};
use crate::state::App;

/// The length limit of requests without one, as in OpenAI's API.
const DEFAULT_MAX_TOKENS: usize = 16;

/// Maximum of `logprobs`, as in OpenAI's API.
const MAX_LOGPROBS: i64 = 5;

const CHAT_ONLY: &str = "only of /v1/chat/completions: a prompt is not rendered";

pub(crate) const MEMBER_TABLE: MemberTable = MemberTable {
    accepted: &["prompt", "response_format", "n", "max_tokens", "logprobs", "stream_options"],
    ignored: &[],
    unsupported: &[
        ("echo", "the prompt is not repeated"),
        ("suffix", "text is not inserted"),
        ("best_of", "use `n`"),
        ("prompt_logprobs", "the prompt's log probabilities are not known"),
        ("prompt_embeds", "use `prompt`"),
        ("add_special_tokens", "the tokenizer adds its special tokens: use a prompt of tokens"),
        ("max_completion_tokens", "use `max_tokens`"),
        ("max_output_tokens", "use `max_tokens`"),
        ("messages", CHAT_ONLY),
        ("system", CHAT_ONLY),
        ("instructions", CHAT_ONLY),
        ("input", "use `prompt`"),
        ("text", "use `response_format`"),
        ("reasoning_effort", CHAT_ONLY),
        ("enable_thinking", CHAT_ONLY),
        ("chat_template_kwargs", CHAT_ONLY),
        ("tools", CHAT_ONLY),
        ("tool_choice", CHAT_ONLY),
        ("parallel_tool_calls", CHAT_ONLY),
        ("max_calls", CHAT_ONLY),
        ("thinking_budget", CHAT_ONLY),
        ("thinking_token_budget", CHAT_ONLY),
        ("reasoning_budget", CHAT_ONLY),
        ("top_logprobs", "use `logprobs`"),
    ],
    advice: RouteAdvice {
        structure: "use `response_format`",
        max_tokens: "use `max_tokens`",
        reasoning: CHAT_ONLY,
        stop: "use `stop`",
        tools: CHAT_ONLY,
    },
};

/// Parses a body. Reports all faults together.
pub(crate) fn parse(body: &Json, app: &App) -> Result<GenerationRequest, ApiError> {
    let limits = &app.config().limits.requests;
    parse_body(body, app, &MEMBER_TABLE, |members, request, faults| {
        // Faults of the rendered conversation are the prompt's here.
        request.pointers.insert("/messages", "/prompt");
        let sampling = &mut request.sampling;
        sampling.read_max_tokens(members, &["max_tokens"], faults);
        sampling.max_tokens.get_or_insert(("max_tokens", DEFAULT_MAX_TOKENS));
        sampling.read_n(members, limits, faults);
        let logprobs = members.integer(faults, "logprobs", 0..=MAX_LOGPROBS);
        sampling.logprobs = logprobs.and_then(|top| usize::try_from(top).ok());
        // The choices of all prompts are as many as those of one may be.
        let max_prompts = limits.n / sampling.params.n_choices.max(1);
        request.prompt = read_prompt(members, max_prompts, faults);
    })
}

/// Parses `prompt`: text or tokens, or a list of these, at most so many.
fn read_prompt(members: &Members<'_>, max: usize, faults: &mut Faults) -> Prompt {
    let Some(prompt) = members.require(faults, "prompt") else { return Prompt::default() };
    let pointer = members.pointer("prompt");
    let mut read = |prompt: &Json, pointer: String| {
        one_prompt(prompt).unwrap_or_else(|| {
            let message = "must be a string or an array of token ids";
            faults.push(ApiFault::at(pointer, "invalid_type", message));
            Prompt::default()
        })
    };
    match prompt {
        Json::Array(prompts) if is_list_of_prompts(prompts) => match &prompts[..] {
            [prompt] => read(prompt, pointer),
            prompts if prompts.len() > max => {
                faults.push(ApiFault::too_many(pointer, max, "prompts"));
                Prompt::default()
            }
            prompts => {
                let prompts = prompts.iter().enumerate();
                let read = prompts.map(|(k, prompt)| read(prompt, format!("{pointer}/{k}")));
                Prompt::Several(read.collect())
            }
        },
        prompt => read(prompt, pointer),
    }
}

fn one_prompt(prompt: &Json) -> Option<Prompt> {
    match prompt {
        Json::String(text) => Some(Prompt::Text(text.clone())),
        Json::Array(tokens) => {
            tokens.iter().map(token).collect::<Option<Vec<u32>>>().map(Prompt::Tokens)
        }
        _ => None,
    }
}

fn is_list_of_prompts(items: &[Json]) -> bool {
    matches!(items.first(), Some(Json::String(_) | Json::Array(_)))
}

fn token(value: &Json) -> Option<u32> {
    match value {
        Json::Number(number) => Number::as_str(number).parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    #[test]
    fn prompts_are_text_or_tokens() {
        for (body, expected) in [
            (r#"{"prompt": "a"}"#, Ok(Prompt::Text("a".to_owned()))),
            (r#"{"prompt": ["a"]}"#, Ok(Prompt::Text("a".to_owned()))),
            (r#"{"prompt": [1, 2]}"#, Ok(Prompt::Tokens(vec![1, 2]))),
            (r#"{"prompt": [[1, 2]]}"#, Ok(Prompt::Tokens(vec![1, 2]))),
            (
                r#"{"prompt": ["a", [2]]}"#,
                Ok(Prompt::Several(vec![Prompt::Text("a".to_owned()), Prompt::Tokens(vec![2])])),
            ),
            (r#"{"prompt": ["a", "b", "c", "d"]}"#, Err("too_many")),
            (r#"{"prompt": [[1], [[2]]]}"#, Err("invalid_type")),
            (r#"{"prompt": ["a", 1]}"#, Err("invalid_type")),
            (r#"{"prompt": [1, -2]}"#, Err("invalid_type")),
            (r#"{"prompt": [1, "a"]}"#, Err("invalid_type")),
            (r#"{"prompt": 5}"#, Err("invalid_type")),
            (r#"{"prompt": null}"#, Err("missing")),
        ] {
            let json = Json::parse(body, &Limits::default()).unwrap();
            let mut faults = Faults::new();
            let members = Members::from_json(&json, "", &mut faults).unwrap();
            let prompt = read_prompt(&members, 3, &mut faults);
            match expected {
                Ok(expected) => assert_eq!((prompt, faults.len()), (expected, 0), "{body}"),
                Err(code) => assert_eq!(faults[0].code, code, "{body}"),
            }
        }
    }
}
