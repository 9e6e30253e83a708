//! `POST /v1/louver/check`: a request compiled and priced, and not run.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use louver::spec::json::{Json, Object};
use louver_formats::{CallKind, RequestFault};
use louver_mistralrs::{Plan, PlanError};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::app::json_response;
use crate::chat::ChatRequest;
use crate::error::{ApiError, ErrorKind};
use crate::http::body::read_json;
use crate::http::owned;
use crate::request::places::Places;
use crate::responses;
use crate::state::{App, Served};
use crate::turn::{Demand, Work};

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new().route("/v1/louver/check", post(check))
}

/// A request of either route, as far as it was understood.
struct Checked {
    demand: Result<Demand, ApiError>,
    /// Whether there is a conversation to render.
    has_messages: bool,
}

/// 200 for every body that is JSON and names a model that is there: what is wrong is in the answer.
/// Checks have places and a deadline of their own, so that they take none from completions.
async fn check(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let body = read_json(&app, &parts.headers, body, |body, _| Ok(body)).await?;
    let served = app.model(body.get("model").and_then(Json::as_str))?.clone();
    let late = |_| ApiError::whole(ErrorKind::Timeout, "timeout", "the check took too long");
    let limit = app.config().limits.requests.check_timeout_s.0;
    let checked = owned(timeout(limit, compile(app, served, body))).await;
    Ok(json_response(&checked.map_err(late)??))
}

/// Waits for a place among the checks and does the work.
async fn compile(app: App, served: Arc<Served>, body: Json) -> Result<Value, ApiError> {
    let permit = app.checks().enter(1, app.metrics()).await?;
    let work = Work::default();
    work.run(permit, move || Ok(understand(body, &app).answer(&served))).await
}

fn understand(body: Json, app: &App) -> Checked {
    if body.get("input").is_some() && body.get("messages").is_none() {
        let demand = responses::read(&body, app).map(|request| request.demand);
        return Checked { demand, has_messages: true };
    }
    let has_messages = body.get("messages").is_some();
    let body = if has_messages { body } else { with_message(body) };
    let demand = ChatRequest::read(&body, app).map(|request| request.demand);
    Checked { demand, has_messages }
}

/// A request without a conversation is checked all the same.
fn with_message(body: Json) -> Json {
    let Json::Object(members) = &body else { return body };
    let message = Json::from(json!([{"role": "user", "content": ""}]));
    let kept = members
        .iter()
        .filter(|(name, _)| *name != "messages")
        .map(|(name, value)| (name.to_owned(), value.clone()));
    let members = kept.chain([("messages".to_owned(), message)]).collect();
    Object::new(members).map_or(body, Json::Object)
}

impl Checked {
    fn answer(self, served: &Served) -> Value {
        let format = served.louver.format().ok();
        let refused = |errors: Vec<Value>| json!({"ok": false, "format": format, "errors": errors});
        let demand = match self.demand {
            Ok(demand) => demand,
            // The pointers are those of the request as it was sent.
            Err(error) => return refused(of_api(&error, &Places::default())),
        };
        let places = &demand.places;
        let begun = Instant::now();
        let plan = match served.louver.plan(demand.tools.clone(), demand.template()) {
            Ok(plan) => plan,
            Err(PlanError::Lower(error)) => {
                return refused(
                    error.faults().iter().map(|fault| of_fault(fault, places)).collect(),
                );
            }
            Err(error) => return refused(of_api(&error.into(), places)),
        };
        let compile_us = (begun.elapsed().as_secs_f64() * 1e7).round() / 10.0;
        let prompt_tokens =
            match self.has_messages.then(|| plan.prompt(&demand.messages)).transpose() {
                Ok(prompt) => prompt.map(|prompt| prompt.len()),
                Err(error) => return refused(of_api(&error.into(), places)),
            };
        places.whole(
            &plan,
            json!({"ok": true, "format": format, "prompt_tokens": prompt_tokens, "compile_us": compile_us}),
        )
    }
}

impl Places {
    /// What there is to say of a plan.
    fn whole(&self, plan: &Plan, mut answer: Value) -> Value {
        let relaxed: Vec<Value> = (plan.relaxed().iter())
            .map(|r| json!({"pointer": self.original(&r.pointer), "keyword": r.keyword, "reason": r.reason}))
            .collect();
        answer["relaxed"] = relaxed.into();
        if let Some(lowered) = plan.lowered() {
            let tool = |tool: &louver_formats::ToolPlan| {
                let kind = if tool.kind == CallKind::Custom { "custom" } else { "function" };
                json!({"name": tool.name, "type": kind, "callable": tool.arguments.is_some()})
            };
            answer["tools"] = lowered.tools().iter().map(tool).collect();
            answer["grammar"] = json!({"rules": lowered.grammar().rules.len()});
            answer["warnings"] =
                lowered.warnings().iter().map(|fault| of_fault(fault, self)).collect();
        }
        answer["errors"] = json!([]);
        answer
    }
}

fn of_fault(fault: &RequestFault, places: &Places) -> Value {
    json!({"pointer": places.original(&fault.pointer), "keyword": fault.keyword, "message": fault.message})
}

fn of_api(error: &ApiError, places: &Places) -> Vec<Value> {
    let one = |fault: &crate::error::ApiFault| {
        let pointer = places.original(fault.param.as_deref().unwrap_or_default());
        json!({"pointer": pointer, "keyword": null, "message": fault.message})
    };
    error.faults().map(one).collect()
}
