//! JSON pointers of calls and results: from the translated messages to the items of the request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use louver::spec::json::Json;

use crate::responses::call_order::{CallItem, string};

/// The pointers of an item and of its call's id.
type ItemPointers = (String, String);

/// Maps the pointers of calls and of the ids of results in `translated`. `earlier` are the items
/// of the previous response's conversation. Every call and result has an item, in the same order.
pub(super) fn call_pointers(
    translated: &Json,
    earlier: &[Arc<Json>],
    body: &Json,
) -> Vec<(String, String)> {
    let (mut calls, mut results) = item_pointers(earlier, body);
    let mut out = Vec::new();
    let messages = array(translated, "messages");
    for (i, message) in messages.iter().enumerate() {
        for (j, call) in array(message, "tool_calls").iter().enumerate() {
            if let Some((item, id)) = next(&mut calls, string(call, "id")) {
                let from = format!("/messages/{i}/tool_calls/{j}");
                out.push((format!("{from}/id"), id));
                out.push((from, item));
            }
        }
        if let Some((_, id)) = next(&mut results, string(message, "tool_call_id")) {
            out.push((format!("/messages/{i}/tool_call_id"), id));
        }
    }
    out
}

type PointersById<'b> = HashMap<&'b str, VecDeque<ItemPointers>>;

/// The items that are calls, and those that are results, by the call's id.
fn item_pointers<'b>(
    earlier: &'b [Arc<Json>],
    body: &'b Json,
) -> (PointersById<'b>, PointersById<'b>) {
    const EARLIER: &str = "/previous_response_id";
    let (mut calls, mut results) = (HashMap::new(), HashMap::new());
    let mut add = |item: &'b Json, pointer: Option<String>| {
        let Some(CallItem { id, id_member, is_result }) = CallItem::of(item) else { return };
        let pointers = match pointer {
            None => (EARLIER.to_owned(), EARLIER.to_owned()),
            Some(pointer) => (pointer.clone(), format!("{pointer}/{id_member}")),
        };
        let map = if is_result { &mut results } else { &mut calls };
        map.entry(id).or_insert_with(VecDeque::new).push_back(pointers);
    };
    earlier.iter().for_each(|item| add(item, None));
    let sent = array(body, "input").iter().enumerate();
    sent.for_each(|(k, item)| add(item, Some(format!("/input/{k}"))));
    (calls, results)
}

fn next(map: &mut PointersById<'_>, id: Option<&str>) -> Option<ItemPointers> {
    map.get_mut(id?)?.pop_front()
}

fn array<'b>(holder: &'b Json, name: &str) -> &'b [Json] {
    holder.get(name).and_then(Json::as_array).unwrap_or_default()
}
