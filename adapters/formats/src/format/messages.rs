//! Turns that are sequences of messages, each with its own header: reasoning, text beside calls,
//! calls, the response.

use serde::{Deserialize, Serialize};

use super::Marker;

/// The messages of a turn. Reasoning, text and each call are messages: their `begin` is the
/// message's header and their `end` ends it. Text with `text.begin` is the last message of a turn
/// without calls; without `text.end` it goes on to the end of the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MessagesFormat {
    /// Between two messages.
    pub separator: Marker,
    /// Ends a call that another message follows, if that is not the end of the last call. One of
    /// the variants of the call's end; the renderer writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_end: Option<Marker>,
    /// A message of text beside calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<PreambleFormat>,
}

/// The markers of a message of text beside calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PreambleFormat {
    /// The header.
    pub begin: Marker,
    /// Ends the message. If there is none, the separator ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
}
