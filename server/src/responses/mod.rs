//! The route `POST /v1/responses`: OpenAI's Responses API over the generation of Chat Completions.
//! The newest responses are stored in memory, so that `previous_response_id` continues them.
//!
//! ```text
//! body ──► translate ──► GenerationRequest ──► generation::start ──► events ──► items ──► object
//!              └── pointers: of errors, back into the Responses body
//! ```

mod call_order;
mod input;
mod items;
mod mcp;
mod object;
mod query;
mod stream;
mod tools;
pub(crate) mod translate;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::{get, post};
use louver::spec::json::Json;
use serde_json::{Value, json};

use crate::chat;
use crate::error::{ApiError, ErrorKind};
use crate::generation::{self, GenerationRequest, read_request};
use crate::http::body::BodyShare;
use crate::http::routes;
use crate::http::{ApiKey, PathId, json_response, json_text, json_text_response, spawn_owned};
use crate::request::call_history::ResultOrder;
use crate::request::members::{Faults, Members};
use crate::request::{object, replace_member, text};
use crate::response_store::{Conversation, ConversationSource};
use crate::state::App;

use input::is_reference;
use items::OutputItems;
use object::ResponseBuilder;
use query::check_query;
use stream::ResponseWriter;
use tools::ToolNames;
pub(crate) use tools::offered_name;
use translate::{TranslatedBody, translate};

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(routes::RESPONSES, post(create))
        .route("/v1/responses/{id}", get(get_stored).delete(delete_stored))
        .route("/v1/responses/{id}/cancel", post(reject_stored))
        .route("/v1/responses/{id}/input_items", get(reject_stored))
}

/// The prefix of the ids of responses.
const ID_PREFIX: &str = "resp_";

/// A parsed Responses body.
#[derive(Debug)]
pub(crate) struct ParsedResponses {
    /// The equivalent Chat Completions request.
    pub(crate) request: GenerationRequest,
    /// What the names of its tools stand for.
    names: ToolNames,
    /// The output items that list tools of MCP servers.
    lists: Vec<Value>,
    builder: ResponseBuilder,
}

/// Parses a Responses body. JSON pointers of errors refer to that body.
pub(crate) fn parse(
    body: &Json,
    app: &App,
    owner: Option<ApiKey>,
    share: &mut BodyShare,
) -> Result<ParsedResponses, ApiError> {
    let mut faults = Faults::new();
    let earlier = earlier_conversation(body, app, owner, &mut faults);
    let references = find_references(body, app, owner)?;
    // Charged before anything is copied.
    share.charge(earlier.bytes + references.bytes, app)?;
    let unknown = app.config().unknown_members;
    let max_tools = app.config().limits.requests.tools;
    let resolved = references.resolve(body);
    let body = resolved.as_ref().unwrap_or(body);
    let TranslatedBody { body: translated, pointers, call_pointers, names, lists } =
        translate(body, &earlier.items, faults, app.mcp_servers(), max_tools, unknown)?;
    let order = ResultOrder::WithinTurn;
    let translated = chat::ChatBody { body: &translated, pointers, call_pointers, order };
    let mut request = chat::parse_translated(translated, app)?;
    request.server_tools = names.server_tools();
    let is_stored = app.responses().is_enabled() && body.get("store") != Some(&Json::Bool(false));
    let stored = is_stored.then(|| {
        let input = input_items(body);
        (app.clone(), ConversationSource { owner, earlier, input })
    });
    let builder = ResponseBuilder::new(body, stored);
    Ok(ParsedResponses { request, names, lists, builder })
}

/// The conversation that the request continues, if it is not longer than a body may be.
fn earlier_conversation(
    body: &Json,
    app: &App,
    owner: Option<ApiKey>,
    faults: &mut Faults,
) -> Conversation {
    const NAME: &str = "previous_response_id";
    let Some(members) = Members::from_json(body, "", &mut Faults::new()) else {
        return Conversation::default();
    };
    let Some(id) = members.string(faults, NAME) else { return Conversation::default() };
    if let Some(stored) = app.responses().get(id, owner) {
        let conversation = stored.into_conversation();
        let limit = app.config().limits.http.body_bytes;
        if conversation.text_len <= limit {
            return conversation;
        }
        let message = format!(
            "the stored conversation is longer than {limit} bytes; send what matters of it in \
             `input`"
        );
        members.fail(faults, NAME, "too_long", message);
        return Conversation::default();
    }
    let why = match app.responses().is_enabled() {
        true => missing(id),
        false => "responses are not stored".to_owned(),
    };
    let message = format!("{why}; send the whole conversation in `input`");
    members.fail(faults, NAME, "previous_response_not_found", message);
    Conversation::default()
}

/// The items of stored responses that the input of a body refers to.
#[derive(Default)]
struct References {
    /// With their indices in the input.
    items: Vec<(usize, Arc<Json>)>,
    /// About the bytes of memory that they take.
    bytes: usize,
}

/// Finds the items that a body refers to. References to other items are refused when the items are
/// read. Error: the items are larger than a body may be.
fn find_references(body: &Json, app: &App, owner: Option<ApiKey>) -> Result<References, ApiError> {
    let mut found = References::default();
    let input = body.get("input").and_then(Json::as_array).unwrap_or_default();
    let reference = |item: &Json| {
        let id = item.get("id").and_then(Json::as_str).filter(|_| is_reference(item))?;
        app.responses().item(id, owner)
    };
    let limit = app.config().limits.http.body_bytes;
    for (k, item) in input.iter().enumerate() {
        let Some(item) = reference(item) else { continue };
        found.bytes += item.bytes();
        if found.bytes > limit {
            let message = format!("the items referred to take more than {limit} bytes of memory");
            return Err(ApiError::invalid(format!("/input/{k}"), "too_long", message));
        }
        found.items.push((k, item));
    }
    Ok(found)
}

impl References {
    /// The body with the items in place of the references. `None`: it has none.
    fn resolve(self, body: &Json) -> Option<Json> {
        let Json::Object(members) = body else { return None };
        if self.items.is_empty() {
            return None;
        }
        let mut input = body.get("input").and_then(Json::as_array).unwrap_or_default().to_vec();
        self.items.into_iter().for_each(|(k, item)| input[k] = Json::clone(&item));
        Some(replace_member(members, "input", Json::Array(input)))
    }
}

/// The items of the member `input`.
fn input_items(body: &Json) -> Vec<Arc<Json>> {
    match body.get("input") {
        Some(Json::Array(items)) => items.iter().cloned().map(Arc::new).collect(),
        Some(input) => {
            let role = ("role", text("user"));
            let message = [("type", text("message")), role, ("content", input.clone())];
            vec![Arc::new(object(message))]
        }
        None => Vec::new(),
    }
}

async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let owner = request.extensions().get::<ApiKey>().copied();
    let parse = move |body: &_, app: &_, share: &mut _| {
        let ParsedResponses { request, builder, names, lists } = parse(body, app, owner, share)?;
        Ok((request, (builder, names, lists)))
    };
    let (mut request, (mut builder, names, lists)) =
        read_request(&app, request, routes::RESPONSES, ID_PREFIX, parse).await?;
    builder.take_share(&mut request.body.share);
    let (stream, id) = (request.stream, request.id.clone());
    spawn_owned(async move {
        let running = generation::start(&app, request, arrived).await?;
        builder.begin(&id, &running);
        let output = OutputItems::new(id.trim_start_matches(ID_PREFIX), names);
        let mut writer = ResponseWriter { builder, output };
        if stream.is_some() {
            return Ok(stream::response(app, running, writer, lists));
        }
        writer.output.add_lists(lists);
        let response = running.collect(move |progress| {
            let response = writer.process(progress);
            writer.output.take_events();
            response.as_ref().map(json_text)
        });
        Ok(json_text_response(response.await?))
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
    PathId(id): PathId,
    uri: Uri,
    key: Option<Extension<ApiKey>>,
) -> Result<Response, ApiError> {
    check_query(uri.query())?;
    let stored = app.responses().get(&id, key.map(|key| key.0)).ok_or_else(|| not_found(&id))?;
    Ok(json_text_response(stored.response))
}

async fn delete_stored(
    State(app): State<App>,
    PathId(id): PathId,
    key: Option<Extension<ApiKey>>,
) -> Result<Response, ApiError> {
    match app.responses().remove(&id, key.map(|key| key.0)) {
        true => Ok(json_response(&json!({"id": id, "object": "response", "deleted": true}))),
        false => Err(not_found(&id)),
    }
}

/// Responses are complete when they are stored, so there is nothing to cancel. Input items are
/// stored as they were sent, mostly without ids, so they are not listed.
async fn reject_stored(PathId(id): PathId) -> ApiError {
    let message = format!("not supported for response {id:?}: see `GET /v1/responses/{id}`");
    ApiError::general(ErrorKind::NotFound, "unsupported_route", message)
}
