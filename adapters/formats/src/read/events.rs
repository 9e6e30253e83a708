//! Events: what the extractor reports of the output, step by step.

use serde::{Deserialize, Serialize};

use crate::request::CallKind;

/// A step of the output. Calls are numbered from 0 in the order of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// More text for the user.
    TextDelta {
        /// The text.
        delta: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// The text.
        delta: String,
    },
    /// A call has begun: its tool is decided.
    CallStart {
        /// The call's number.
        index: usize,
        /// Its id.
        id: String,
        /// The tool's name.
        name: String,
        /// The kind of the tool.
        #[serde(default, skip_serializing_if = "CallKind::is_function")]
        kind: CallKind,
    },
    /// More of a call's arguments, as JSON text; of a custom tool, more of its input.
    ArgumentsDelta {
        /// The call's number.
        index: usize,
        /// The text.
        delta: String,
    },
    /// A call is complete. A call without this event must not be executed.
    CallEnd {
        /// The call's number.
        index: usize,
    },
    /// The generation stopped before the turn was complete.
    Incomplete {
        /// The part of the turn that was cut off.
        why: Cut,
        /// The call that was cut off, if its tool was decided.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        call: Option<usize>,
        /// The bytes of that part that no delta has delivered.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        partial: String,
    },
    /// The last event.
    End,
}

/// The part of a turn in which a generation was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cut {
    /// At the beginning, in a marker, or where a call or a response had to follow.
    Turn,
    /// The reasoning block.
    Reasoning,
    /// The response that `response_format` asks for.
    Response,
    /// The beginning of a call, before its arguments.
    CallHeader,
    /// A call's arguments.
    CallArguments,
    /// The end of a call, after its arguments.
    CallTrailer,
}
