//! The route `POST /v1/responses`: OpenAI's Responses API over the same turns. The newest responses
//! are stored in memory, so that `previous_response_id` continues them.
//!
//! ```text
//! body ──► translate ──► TurnRequest ──► turn::start ──► events ──► items ──► object
//!              └── pointers: of errors, back into the Responses body
//! ```

mod input;
mod items;
mod mcp;
mod object;
mod stream;
mod tools;
mod translate;

use std::time::Instant;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use louver::spec::json::Json;
use serde_json::{Value, json};

use crate::chat;
use crate::clock::unix_seconds;
use crate::error::{ApiError, ErrorKind};
use crate::http::body::read_json;
use crate::http::routes;
use crate::http::{ApiKey, fresh_id, json_response, json_text_response, spawn_owned};
use crate::request::members::{Faults, Members};
use crate::request::{object, replace_member, text, to_value};
use crate::response_store::ConversationSource;
use crate::state::App;
use crate::turn::{self, Progress, RunningTurn, TurnRequest};

use items::OutputItems;
use object::{ResponseStatus, ResponseTemplate};
use tools::ToolNames;
use translate::{TranslatedBody, translate};

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(routes::RESPONSES, post(create))
        .route("/v1/responses/{id}", get(get_stored).delete(delete_stored))
        .route("/v1/responses/{id}/cancel", post(reject_stored))
        .route("/v1/responses/{id}/input_items", get(reject_stored))
}

/// A parsed Responses body.
#[derive(Debug)]
pub(crate) struct ParsedResponses {
    /// The equivalent Chat Completions request.
    pub(crate) request: TurnRequest,
    /// What the names of its tools stand for.
    names: ToolNames,
    /// The output items that list tools of MCP servers.
    listed: Vec<Value>,
    /// What is stored with the response, if it is stored.
    stored: Option<ConversationSource>,
}

/// Parses a Responses body. JSON pointers of errors refer to that body.
pub(crate) fn parse(
    body: &Json,
    app: &App,
    owner: Option<ApiKey>,
) -> Result<ParsedResponses, ApiError> {
    let mut faults = Faults::new();
    let earlier = earlier_items(body, app, owner, &mut faults);
    let unknown = app.config().unknown_members;
    let resolved = resolve_references(body, app, owner);
    let body = resolved.as_ref().unwrap_or(body);
    let TranslatedBody { body: translated, pointers, names, listed } =
        translate(body, (&earlier, faults), app.mcp_servers(), unknown)?;
    let mut request = chat::parse_translated(&translated, pointers, app)?;
    request.server_tools = names.server_tools();
    let is_stored = app.responses().is_enabled() && body.get("store") != Some(&Json::Bool(false));
    let stored = is_stored.then(|| {
        let mut items = earlier;
        items.extend(input_items(body));
        ConversationSource { owner, items }
    });
    Ok(ParsedResponses { request, names, listed, stored })
}

/// The items of the conversation that the request continues.
fn earlier_items(body: &Json, app: &App, owner: Option<ApiKey>, faults: &mut Faults) -> Vec<Json> {
    const NAME: &str = "previous_response_id";
    let Some(members) = Members::from_json(body, "", &mut Faults::new()) else { return Vec::new() };
    let Some(id) = members.string(faults, NAME) else { return Vec::new() };
    if let Some(stored) = app.responses().get(id, owner) {
        return stored.items();
    }
    let why = match app.responses().is_enabled() {
        true => missing(id),
        false => "responses are not stored".to_owned(),
    };
    let message = format!("{why}; send the whole conversation in `input`");
    members.fail(faults, NAME, "previous_response_not_found", message);
    Vec::new()
}

/// The body with each reference to an item of a stored response replaced by the item. `None`: it
/// has none. References to other items are refused when the items are read.
fn resolve_references(body: &Json, app: &App, owner: Option<ApiKey>) -> Option<Json> {
    let (Json::Object(members), Some(input)) = (body, body.get("input")?.as_array()) else {
        return None;
    };
    let resolve = |item: &Json| {
        let member = |name: &str| item.get(name).and_then(Json::as_str);
        match (member("type"), member("id")) {
            (Some("item_reference"), Some(id)) => app.responses().item(id, owner),
            _ => None,
        }
    };
    let resolved: Vec<Option<Json>> = input.iter().map(resolve).collect();
    if resolved.iter().all(Option::is_none) {
        return None;
    }
    let items = resolved.into_iter().zip(input);
    let items = items.map(|(found, item)| found.unwrap_or_else(|| item.clone())).collect();
    Some(replace_member(members, "input", Json::Array(items)))
}

/// The items of the member `input`.
fn input_items(body: &Json) -> Vec<Json> {
    match body.get("input") {
        Some(Json::Array(items)) => items.clone(),
        Some(input) => {
            let role = ("role", text("user"));
            vec![object([("type", text("message")), role, ("content", input.clone())])]
        }
        None => Vec::new(),
    }
}

async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    let owner = parts.extensions.get::<ApiKey>().copied();
    let (body, parsed) = read_json(&app, &parts.headers, body, move |body, app| {
        let parsed = parse(&body, app, owner)?;
        Ok((body, parsed))
    })
    .await?;
    let ParsedResponses { mut request, names, listed, stored } = parsed;
    let stream = request.stream;
    let id = fresh_id("resp_");
    request.id.clone_from(&id);
    request.trace_source = request.extension.trace.then(|| (routes::RESPONSES, to_value(&body)));
    let has_report = request.extension.report;
    spawn_owned(async move {
        let running = turn::start(&app, request, arrived).await?;
        let template = ResponseTemplate::new(&id, unix_seconds(), &body, &running, has_report)
            .with_store(app.clone(), stored);
        drop(body);
        let output = OutputItems::new(&*template.suffix, names).with_lists(listed);
        match stream {
            None => Ok(json_response(&collect(running, output, template).await?)),
            Some(_) => Ok(stream::response(app, running, output, template)),
        }
    })
    .await
}

fn missing(id: &str) -> String {
    format!("there is no response {id:?}: it was not stored, or newer ones replaced it")
}

fn not_found(id: &str) -> ApiError {
    ApiError::general(ErrorKind::NotFound, "response_not_found", missing(id))
}

async fn get_stored(
    State(app): State<App>,
    Path(id): Path<String>,
    key: Option<Extension<ApiKey>>,
) -> Result<Response, ApiError> {
    let stored = app.responses().get(&id, key.map(|key| key.0)).ok_or_else(|| not_found(&id))?;
    Ok(json_text_response(stored.response))
}

async fn delete_stored(
    State(app): State<App>,
    Path(id): Path<String>,
    key: Option<Extension<ApiKey>>,
) -> Result<Response, ApiError> {
    match app.responses().remove(&id, key.map(|key| key.0)) {
        true => Ok(json_response(&json!({"id": id, "object": "response", "deleted": true}))),
        false => Err(not_found(&id)),
    }
}

/// Responses are complete when they are stored, and their items have no ids of their own.
async fn reject_stored(Path(id): Path<String>) -> ApiError {
    let message = format!("not supported for response {id:?}: see `GET /v1/responses/{id}`");
    ApiError::general(ErrorKind::NotFound, "unsupported", message)
}

/// Waits for the end of the generation and builds the response.
async fn collect(
    mut running: RunningTurn,
    mut output: OutputItems,
    mut template: ResponseTemplate,
) -> Result<Value, ApiError> {
    output.begin_lists();
    let mut finished = None;
    while let Some(progress) = running.next().await {
        match progress? {
            Progress::Event { event, .. } => {
                output.push(&event);
                output.take_events();
            }
            Progress::ToolResults { results, usage } => {
                output.tool_results(&results);
                template.add_usage(usage);
            }
            Progress::End { generation, trace, .. } => {
                output.finish(template.status_name(&generation) != "completed");
                finished = Some((generation, trace));
            }
        }
    }
    let no_result = || {
        ApiError::general(ErrorKind::Internal, "internal", "the generation ended without a result")
    };
    let (generation, trace) = finished.ok_or_else(no_result)?;
    let status = ResponseStatus::Ended { generation: &generation, trace };
    let response = template.response(status, output.items());
    template.store(&response);
    Ok(response)
}
