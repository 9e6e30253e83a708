//! `POST /v1/louver/check`: compiles a request and reports its cost without running it.

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use louver::spec::json::Json;
use louver_formats::{CallKind, RequestFault};
use louver_mistralrs::{Plan, PlanError};
use serde_json::{Value, json};

use crate::chat;
use crate::error::{ApiError, ErrorKind, MAX_FAULTS, without_middle};
use crate::generation::{GenerationRequest, run_check};
use crate::http::body::{BodyShare, read_json};
use crate::http::error_format::ANTHROPIC_VERSION;
use crate::http::routes;
use crate::http::{ApiKey, json_response};
use crate::messages::{self, BodyRules};
use crate::request::pointers::PointerMap;
use crate::request::replace_member;
use crate::served_model::ServedModel;
use crate::state::App;
use crate::{completions, responses};

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new().route(routes::CHECK, post(check))
}

/// Who sent a request.
#[derive(Clone, Copy)]
struct Sender {
    /// The API key.
    owner: Option<ApiKey>,
    /// The rules of a body, if the client is one of Anthropic's API.
    rules: Option<BodyRules>,
}

/// A parsed request of any generating route, or the errors that parsing found.
struct CheckRequest {
    request: Result<GenerationRequest, ApiError>,
    /// Whether the request has a conversation or a prompt.
    has_prompt: bool,
}

/// Answers 200 for every JSON body that names an existing model; errors in the request are part of
/// the response. Checks have their own slots and deadline, so that they do not compete with
/// completions.
async fn check(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let owner = parts.extensions.get::<ApiKey>().copied();
    let (body, mut share) = read_json(&app, &parts.headers, body, |body, _, _| Ok(body)).await?;
    let served = app.model(body.get("model").and_then(Json::as_str))?.clone();
    let is_messages = parts.headers.contains_key(ANTHROPIC_VERSION);
    let rules = is_messages.then(|| BodyRules::new(false, &parts.headers));
    let sender = Sender { owner, rules };
    let work_app = app.clone();
    let work = move || {
        let request = parse_request(body, sender, &work_app, &mut share)?;
        Ok(request.answer(&served))
    };
    Ok(json_response(&run_check(app, work).await?))
}

/// Error: what the body refers to is more than the budget of bodies has left.
fn parse_request(
    body: Json,
    sender: Sender,
    app: &App,
    share: &mut BodyShare,
) -> Result<CheckRequest, ApiError> {
    let has = |name: &str| body.get_non_null(name).is_some();
    let has_messages = has("messages");
    let is_messages = sender.rules.is_some();
    let is_responses = has("input") || has("previous_response_id");
    if !is_messages && is_responses && !has_messages {
        let request = responses::parse(&body, app, sender.owner, share);
        if let Err(error) = &request
            && error.kind == ErrorKind::Unavailable
        {
            return Err(error.clone());
        }
        let request = request.map(|parsed| parsed.request);
        return Ok(CheckRequest { request, has_prompt: true });
    }
    if !is_messages && has("prompt") && !has_messages {
        return Ok(CheckRequest { request: completions::parse(&body, app), has_prompt: true });
    }
    let body = if has_messages { body } else { add_empty_message(body) };
    let request = match sender.rules {
        Some(rules) => messages::parse(&body, app, rules).map(|(request, _)| request),
        None => chat::parse(&body, app),
    };
    Ok(CheckRequest { request, has_prompt: has_messages })
}

/// Adds an empty user message, so that a request without a conversation can be checked.
fn add_empty_message(body: Json) -> Json {
    let Json::Object(members) = &body else { return body };
    let message = Json::from(json!([{"role": "user", "content": ""}]));
    replace_member(members, "messages", message)
}

impl CheckRequest {
    fn answer(self, served: &ServedModel) -> Value {
        let format = served.louver.format().ok();
        let refused = |errors: Vec<Value>| json!({"ok": false, "format": format, "errors": errors});
        let request = match self.request {
            Ok(request) => request,
            // These pointers already refer to the request as sent.
            Err(error) => return refused(api_fault_json(&error, &PointerMap::default())),
        };
        let pointers = &request.pointers;
        if let Err(error) = served.check_choices(request.choices(), request.choices_pointer()) {
            return refused(api_fault_json(&error, pointers));
        }
        let started = Instant::now();
        let plan = match request.plan(served) {
            Ok(plan) => plan,
            Err(PlanError::Lower(error)) => {
                let faults = error.faults();
                let faults = faults.iter().take(MAX_FAULTS);
                return refused(faults.map(|fault| request_fault_json(fault, pointers)).collect());
            }
            Err(error) => {
                return refused(api_fault_json(&request.plan_error(error), pointers));
            }
        };
        let compile_us = (started.elapsed().as_secs_f64() * 1e7).round() / 10.0;
        let (plan, prompt_tokens) = match self.has_prompt.then(|| request.render(plan.clone())) {
            None => (plan, None),
            Some(Ok((plan, prompts))) => (plan, Some(prompts.iter().map(Vec::len).sum::<usize>())),
            Some(Err(error)) => return refused(api_fault_json(&error, pointers)),
        };
        pointers.add_plan(
            &plan,
            json!({"ok": true, "format": format, "prompt_tokens": prompt_tokens, "compile_us": compile_us}),
        )
    }
}

impl PointerMap {
    /// Adds the relaxed keywords, tools, grammar size and warnings of a plan to `answer`.
    fn add_plan(&self, plan: &Plan, mut answer: Value) -> Value {
        let relaxed: Vec<Value> = (plan.turn_plan().relaxed().iter())
            .map(|r| json!({"pointer": self.original(&r.pointer), "keyword": r.keyword, "reason": r.reason}))
            .collect();
        answer["relaxed"] = relaxed.into();
        if let Some(lowered) = plan.turn_plan().lowered() {
            let tool = |tool: &louver_formats::LoweredTool| {
                let kind = if tool.kind == CallKind::Custom { "custom" } else { "function" };
                json!({"name": tool.name, "type": kind, "callable": tool.is_callable()})
            };
            answer["tools"] = lowered.tools().iter().map(tool).collect();
            answer["grammar"] = json!({"rules": lowered.grammar().rules.len()});
            let warnings = lowered.warnings().iter().map(|fault| request_fault_json(fault, self));
            let sent = PointerMap::default();
            let of_members = self.warnings().iter().map(|fault| request_fault_json(fault, &sent));
            answer["warnings"] = warnings.chain(of_members).collect();
        }
        answer["errors"] = json!([]);
        answer
    }
}

fn request_fault_json(fault: &RequestFault, pointers: &PointerMap) -> Value {
    let pointer = without_middle(pointers.original(&fault.pointer));
    let message = without_middle(fault.message.clone());
    let keyword = fault.keyword.clone().map(without_middle);
    json!({"pointer": pointer, "keyword": keyword, "message": message})
}

fn api_fault_json(error: &ApiError, pointers: &PointerMap) -> Vec<Value> {
    let fault_json = |fault: &crate::error::ApiFault| {
        let pointer = pointers.original(fault.param.as_deref().unwrap_or_default());
        json!({"pointer": pointer, "keyword": null, "message": fault.message})
    };
    error.faults().map(fault_json).collect()
}
