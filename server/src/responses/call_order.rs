//! The order in which items are read. Chat templates show results next to their calls, so that a
//! result is read before the messages of the user or the system between its call and it.

use std::collections::HashMap;

use louver::spec::json::Json;

/// An item, and its JSON pointer in the request.
pub(super) type SentItem<'b> = (&'b Json, String);

/// An item that is a call or the result of one.
struct CallItem<'b> {
    id: &'b str,
    is_result: bool,
}

impl<'b> CallItem<'b> {
    /// `None`: another item, or one without an id.
    fn of(item: &'b Json) -> Option<CallItem<'b>> {
        let kind = string(item, "type").unwrap_or_default();
        let is_result = kind.ends_with("_output");
        if !is_result && !kind.ends_with("_call") {
            return None;
        }
        // Calls that a server ran, and some results, have only an id of their own.
        let id = ["call_id", "id"].into_iter().find_map(|name| string(item, name))?;
        Some(CallItem { id, is_result })
    }
}

/// Whether an item is a message that ends the assistant's turn.
fn ends_turn(item: &Json) -> bool {
    string(item, "type").is_none_or(|kind| kind == "message")
        && string(item, "role").is_some_and(|role| role != "assistant")
}

/// Moves results to the turns of their calls, before the message that ends the turn.
pub(super) fn with_results_in_turn<'b>(
    items: impl Iterator<Item = SentItem<'b>>,
) -> impl Iterator<Item = SentItem<'b>> {
    let (mut turn, mut turns_of_calls) = (0, HashMap::new());
    let numbered = items.map(|sent| {
        turn += usize::from(ends_turn(sent.0));
        let mut own_turn = turn;
        if let Some(CallItem { id, is_result, .. }) = CallItem::of(sent.0) {
            match is_result {
                true => own_turn = turns_of_calls.remove(id).unwrap_or(turn),
                false => drop(turns_of_calls.insert(id, turn)),
            }
        }
        (own_turn, sent)
    });
    let mut items: Vec<(usize, SentItem<'b>)> = numbered.collect();
    items.sort_by_key(|(turn, _)| *turn);
    items.into_iter().map(|(_, item)| item)
}

pub(super) fn string<'b>(holder: &'b Json, name: &str) -> Option<&'b str> {
    holder.get(name).and_then(Json::as_str)
}
