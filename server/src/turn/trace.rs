//! Requests that asked to be recorded, from their generations to the store of traces.

use std::sync::Arc;

use louver::ids::TokenId;
use louver_formats::Event;
use louver_mistralrs::{Finish, Generation, GenerationError, Step};
use serde_json::{Value, json};

use crate::inspect::{Outcome, Recorder, RequestSummary, TimingSummary, TraceStore};
use crate::state::{App, Served};

/// What a trace says of its request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Traced {
    /// The answer's id.
    pub(crate) id: String,
    /// The route.
    pub(crate) route: &'static str,
    /// The request's body.
    pub(crate) body: Value,
}

impl Traced {
    /// The id of a choice's trace.
    pub(crate) fn id_of(id: &str, choice: usize) -> String {
        if choice == 0 { id.to_owned() } else { format!("{id}-{choice}") }
    }
}

/// Says in an answer's member `louver` where these choices' traces are: an id, or a list of them.
pub(crate) fn name_traces(louver: &mut Value, id: &str, choices: &[usize]) {
    louver["trace"] = match choices {
        [choice] => Traced::id_of(id, *choice).into(),
        several => several.iter().map(|choice| Traced::id_of(id, *choice)).collect(),
    };
}

/// One choice that is recorded.
pub(super) struct Recording {
    id: String,
    recorder: Recorder,
    store: Arc<TraceStore>,
    vocabulary: usize,
}

impl Recording {
    pub(super) fn new(app: &App, served: &Served, traced: &Traced, choice: usize) -> Recording {
        let vocab = served.louver.engine().vocab();
        let summary = RequestSummary {
            route: traced.route.to_owned(),
            model: served.name.clone(),
            format: served.louver.format().ok().map(str::to_owned),
            choice,
            body: traced.body.clone(),
        };
        Recording {
            id: Traced::id_of(&traced.id, choice),
            recorder: Recorder::new(summary),
            store: app.traces().clone(),
            vocabulary: (0..vocab.width()).filter(|&id| vocab.is_used(TokenId::new(id))).count(),
        }
    }

    pub(super) fn event(&mut self, tokens: usize, event: &Event) {
        self.recorder.event(tokens, event);
    }

    /// A generation that is over, with all its steps.
    pub(super) fn end(self, generation: &Generation) {
        let finish = match generation.finish {
            Finish::Length => "length",
            Finish::Cancelled => "cancelled",
            Finish::Stop if generation.turn.calls.is_empty() => "stop",
            Finish::Stop => "tool_calls",
        };
        let report = serde_json::to_value(&generation.report).unwrap_or_default();
        let timing = TimingSummary::from(&generation.timing);
        self.put(generation.prompt_tokens, finish, &generation.steps, &report, timing);
    }

    /// A generation that failed after these steps.
    pub(super) fn fail(self, prompt_tokens: usize, steps: &[Step], error: &GenerationError) {
        let finish = format!("error: {error}");
        self.put(prompt_tokens, &finish, steps, &json!({}), TimingSummary::default());
    }

    fn put(self, prompt_tokens: usize, finish: &str, steps: &[Step], report: &Value, timing: TimingSummary) {
        let Recording { id, recorder, store, vocabulary } = self;
        let outcome = Outcome { prompt_tokens, vocabulary, finish, steps, report, timing };
        if let Err(error) = recorder.finish(&store, &id, &outcome) {
            tracing::warn!(trace = id, "{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_name_their_traces() {
        let mut louver = json!({"report": 1});
        name_traces(&mut louver, "chatcmpl-a", &[0]);
        assert_eq!(louver, json!({"report": 1, "trace": "chatcmpl-a"}));
        let mut louver = Value::Null;
        name_traces(&mut louver, "chatcmpl-a", &[2]);
        assert_eq!(louver, json!({"trace": "chatcmpl-a-2"}));
        name_traces(&mut louver, "chatcmpl-a", &[0, 1]);
        assert_eq!(louver, json!({"trace": ["chatcmpl-a", "chatcmpl-a-1"]}));
    }
}
