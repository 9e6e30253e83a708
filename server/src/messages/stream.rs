//! Streamed messages: typed server-sent events.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::response::Response;
use serde_json::json;

use crate::error::ApiError;
use crate::http::error_format::messages_error;
use crate::messages::blocks::ContentBlocks;
use crate::messages::message::MessageTemplate;
use crate::state::App;
use crate::turn::{EventWriter, Progress, RunningTurn, stream_events, typed_event};

/// Serialises a turn's events in the Messages format.
struct MessageEventWriter {
    template: MessageTemplate,
    blocks: ContentBlocks,
}

/// The streamed response.
pub(super) fn response(app: App, running: RunningTurn, template: MessageTemplate) -> Response {
    let mut blocks = ContentBlocks::new(template.options.omits_thinking);
    blocks.event(template.start_event());
    blocks.event(json!({"type": "ping"}));
    let (mut writer, mut ready) = (MessageEventWriter { template, blocks }, VecDeque::new());
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
        match progress {
            Progress::Event { event, .. } => self.blocks.push(&event),
            // Only Responses requests have tools that the server runs.
            Progress::ToolResults { .. } => {}
            Progress::End { generation, trace, .. } => {
                self.blocks.finish();
                self.blocks.event(self.template.delta_event(&generation, trace));
                self.blocks.event(json!({"type": "message_stop"}));
            }
        }
        self.flush(out);
    }

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        out.push_back(typed_event(&messages_error(error, None)));
    }
}
