//! Streamed messages: typed server-sent events.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::response::Response;
use serde_json::json;

use crate::error::ApiError;
use crate::generation::{EventWriter, Progress, RunningRequest, stream_events, typed_event};
use crate::http::error_format::messages_error;
use crate::messages::blocks::ContentBlocks;
use crate::messages::message::MessageBuilder;
use crate::state::App;

/// Serialises the events of a request in the Messages format.
struct MessageEventWriter {
    request_id: Option<String>,
    builder: MessageBuilder,
    blocks: ContentBlocks,
}

/// The streamed response.
pub(super) fn response(
    app: App,
    running: RunningRequest,
    builder: MessageBuilder,
    request_id: Option<String>,
) -> Response {
    let mut blocks = ContentBlocks::new(builder.options.omits_thinking);
    blocks.event(builder.start_event());
    blocks.event(json!({"type": "ping"}));
    let mut writer = MessageEventWriter { request_id, builder, blocks };
    let mut ready = VecDeque::new();
    writer.flush(&mut ready);
    stream_events(app, running, writer, ready)
}

impl MessageEventWriter {
    fn flush(&mut self, out: &mut VecDeque<Bytes>) {
        out.extend(self.blocks.take_events().iter().map(typed_event));
    }
}

impl EventWriter for MessageEventWriter {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        if let Some(finished) = self.blocks.process(progress) {
            self.blocks.event(self.builder.delta_event(&finished));
            self.blocks.event(json!({"type": "message_stop"}));
        }
        self.flush(out);
    }

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        out.push_back(typed_event(&messages_error(error, self.request_id.as_deref())));
    }
}
