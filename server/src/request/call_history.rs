//! Checks that the calls of a conversation and the results of tools belong together.

use std::collections::HashMap;

use crate::error::ApiFault;
use crate::request::members::{Faults, Members};

/// Where the results of calls may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultOrder {
    /// After the assistant message with the calls, with only other results between.
    AfterMessage,
    /// Anywhere before the next message of the user or the system. Items of the Responses API may
    /// alternate calls and results within a turn.
    WithinTurn,
}

/// A call whose result may follow.
#[derive(Debug)]
struct OpenCall {
    /// Its JSON pointer.
    pointer: String,
    /// The tool's name.
    tool: String,
    has_result: bool,
}

/// The calls of the current assistant message, or of the current turn of the assistant.
#[derive(Debug)]
pub(super) struct CallHistory {
    order: ResultOrder,
    calls: Vec<OpenCall>,
    /// Indices of the calls, by id.
    by_id: HashMap<String, usize>,
    /// Whether an id is invalid, which is a fault of its own: others that follow from it are not
    /// reported.
    has_invalid_id: bool,
}

impl CallHistory {
    pub(super) fn new(order: ResultOrder) -> CallHistory {
        CallHistory { order, calls: Vec::new(), by_id: HashMap::new(), has_invalid_id: false }
    }

    /// Begins a message of this role.
    pub(super) fn begin_message(&mut self, role: &str, faults: &mut Faults) {
        match (role, self.order) {
            ("tool", _) | ("assistant", ResultOrder::WithinTurn) => {}
            _ => self.end(faults),
        }
    }

    /// Reports the calls without a result, as none can follow.
    pub(super) fn end(&mut self, faults: &mut Faults) {
        self.by_id.clear();
        let has_invalid_id = std::mem::take(&mut self.has_invalid_id);
        for call in self.calls.drain(..).filter(|call| !call.has_result && !has_invalid_id) {
            let is_next = self.order == ResultOrder::AfterMessage;
            let place = if is_next { ", before any other message" } else { "" };
            let message =
                format!("the call of {:?} has no result: one must follow{place}", call.tool);
            faults.push(ApiFault::at(call.pointer, "missing_result", message));
        }
    }

    /// Adds a call. `id`: `None` if it is invalid.
    pub(super) fn call(
        &mut self,
        members: &Members<'_>,
        pointer: &str,
        id: Option<&str>,
        tool: &str,
        faults: &mut Faults,
    ) {
        let Some(id) = id else {
            self.has_invalid_id = true;
            return;
        };
        match self.by_id.get(id).and_then(|k| self.calls.get(*k)) {
            Some(other) if !other.has_result => {
                let message = match self.order {
                    ResultOrder::AfterMessage => "another call of the message has the same id",
                    ResultOrder::WithinTurn => "an earlier call without a result has the same id",
                };
                members.fail(faults, "id", "duplicate", message);
            }
            _ => {
                self.by_id.insert(id.to_owned(), self.calls.len());
                let (pointer, tool) = (pointer.to_owned(), tool.to_owned());
                self.calls.push(OpenCall { pointer, tool, has_result: false });
            }
        }
    }

    /// Adds a result, the id of whose call is the member `tool_call_id`. `id`: `None` if it is
    /// invalid. Returns the called tool's name.
    pub(super) fn result(
        &mut self,
        members: &Members<'_>,
        id: Option<&str>,
        faults: &mut Faults,
    ) -> Option<&str> {
        let Some(id) = id else {
            self.has_invalid_id = true;
            return None;
        };
        let call = self.by_id.get(id).and_then(|k| self.calls.get_mut(*k));
        let (code, message) = match (call, self.order) {
            (Some(call), _) if !call.has_result => {
                call.has_result = true;
                return Some(&call.tool);
            }
            (Some(_), _) => ("duplicate", "the call with this id already has a result"),
            (None, _) if self.has_invalid_id => return None,
            (None, ResultOrder::AfterMessage) => {
                ("unknown_call", "no call of the assistant message before it has this id")
            }
            (None, ResultOrder::WithinTurn) => {
                ("unknown_call", "no call before it in its turn has this id")
            }
        };
        members.fail(faults, "tool_call_id", code, message);
        None
    }
}
