//! Stored responses: the newest ones in memory, so that a request can continue one by its id.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use louver::spec::json::Json;
use parking_lot::Mutex;
use serde_json::Value;

use crate::http::api_key::ApiKey;
use crate::limits::ResponseLimits;

/// A stored response.
#[derive(Clone, Debug)]
pub(crate) struct StoredResponse {
    id: String,
    /// The key of the request that made it. Other keys do not see it.
    owner: Option<ApiKey>,
    /// The response as JSON.
    pub(crate) response: Bytes,
    /// Its conversation: the items of earlier responses, its input, its output.
    conversation: Conversation,
    /// About the bytes of memory that it takes.
    bytes: usize,
}

/// The store of responses, within a count and a byte limit.
#[derive(Debug)]
pub(crate) struct ResponseStore {
    limits: ResponseLimits,
    stored: Mutex<StoredResponses>,
}

#[derive(Debug, Default)]
struct StoredResponses {
    /// Oldest first.
    responses: VecDeque<StoredResponse>,
    bytes: usize,
}

/// The items of a conversation, which requests and the responses after it share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) items: Arc<[Arc<Json>]>,
    /// About the bytes of memory that they take.
    pub(crate) bytes: usize,
    /// The length of their text.
    pub(crate) text_len: usize,
}

impl Conversation {
    /// Adds the sizes of an item that is not yet part of it.
    fn measure(&mut self, item: &Json) {
        self.bytes += item.bytes();
        self.text_len += item.text_len();
    }
}

/// What is stored of a response besides the response.
#[derive(Clone, Debug)]
pub(crate) struct ConversationSource {
    /// The key of the request.
    pub(crate) owner: Option<ApiKey>,
    /// The conversation that the request continues.
    pub(crate) earlier: Conversation,
    /// The items of its input.
    pub(crate) input: Vec<Arc<Json>>,
}

impl ResponseStore {
    /// An empty store.
    pub(crate) fn new(limits: ResponseLimits) -> ResponseStore {
        ResponseStore { limits, stored: Mutex::default() }
    }

    /// Whether responses are stored at all.
    pub(crate) fn is_enabled(&self) -> bool {
        self.limits.responses > 0
    }

    /// Stores a response and evicts the oldest ones as needed. One that exceeds the byte limit by
    /// itself is not stored.
    pub(crate) fn put(&self, response: &Value, source: &ConversationSource) {
        let Some(id) = response["id"].as_str() else { return };
        let mut conversation = source.earlier.clone();
        source.input.iter().for_each(|item| conversation.measure(item));
        if !self.is_enabled() || conversation.bytes > self.limits.bytes {
            return;
        }
        let output = response["output"].as_array().into_iter().flatten().map(Json::from);
        let output: Vec<Arc<Json>> = output.map(Arc::new).collect();
        output.iter().for_each(|item| conversation.measure(item));
        let new = source.input.iter().chain(&output);
        conversation.items = source.earlier.items.iter().chain(new).cloned().collect();
        let response = Bytes::from(response.to_string());
        let bytes = id.len() + response.len() + conversation.bytes;
        if bytes > self.limits.bytes {
            return;
        }
        let (id, owner) = (id.to_owned(), source.owner);
        let stored = StoredResponse { id, owner, response, conversation, bytes };
        let mut all = self.stored.lock();
        all.bytes += bytes;
        all.responses.push_back(stored);
        while all.bytes > self.limits.bytes || all.responses.len() > self.limits.responses {
            let Some(oldest) = all.responses.pop_front() else { break };
            all.bytes -= oldest.bytes;
        }
    }

    /// The response with this id, if this key may see it.
    pub(crate) fn get(&self, id: &str, owner: Option<ApiKey>) -> Option<StoredResponse> {
        let all = self.stored.lock();
        all.responses.iter().find(|stored| stored.is(id, owner)).cloned()
    }

    /// The output item with this id, if this key may see its response.
    pub(crate) fn item(&self, id: &str, owner: Option<ApiKey>) -> Option<Arc<Json>> {
        // An item's id ends with its response's id and two or more digits (`OutputItems`).
        let (_, suffix) = id.split_once('_')?;
        let is_of = |stored: &StoredResponse| {
            let response = stored.id.strip_prefix("resp_");
            stored.owner == owner && response.is_some_and(|id| suffix.starts_with(id))
        };
        let stored = self.stored.lock().responses.iter().find(|stored| is_of(stored)).cloned()?;
        let has_id = |item: &&Arc<Json>| item.get("id").and_then(Json::as_str) == Some(id);
        stored.conversation.items.iter().find(has_id).cloned()
    }

    /// Removes a response. Returns whether there was one that this key may see.
    pub(crate) fn remove(&self, id: &str, owner: Option<ApiKey>) -> bool {
        let mut all = self.stored.lock();
        let Some(k) = all.responses.iter().position(|stored| stored.is(id, owner)) else {
            return false;
        };
        let removed = all.responses.remove(k);
        all.bytes -= removed.map_or(0, |removed| removed.bytes);
        true
    }
}

impl StoredResponse {
    fn is(&self, id: &str, owner: Option<ApiKey>) -> bool {
        self.id == id && self.owner == owner
    }

    /// The conversation, which requests share.
    pub(crate) fn into_conversation(self) -> Conversation {
        self.conversation
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(owner: Option<ApiKey>) -> ConversationSource {
        let input = vec![Arc::new(Json::from(json!({"role": "user"})))];
        ConversationSource { owner, earlier: Conversation::default(), input }
    }

    #[test]
    fn the_store_is_bounded_in_count_and_bytes() {
        let response = |k: usize, text: &str| json!({"id": format!("resp_{k}"), "output": [text]});
        let bytes = |text: &str| {
            let store = ResponseStore::new(ResponseLimits::default());
            store.put(&response(0, text), &source(None));
            store.stored.lock().bytes
        };
        let long = "y".repeat(90);
        let limit = bytes("x") + bytes(&long) - 1;
        let store = ResponseStore::new(ResponseLimits { responses: 2, bytes: limit });
        for k in 0..3 {
            store.put(&response(k, "x"), &source(None));
        }
        assert!(store.get("resp_0", None).is_none());
        let stored = store.get("resp_2", None).unwrap().into_conversation();
        let texts: Vec<String> = stored.items.iter().map(|item| item.to_string()).collect();
        assert_eq!(texts, [r#"{"role":"user"}"#, r#""x""#]);
        assert_eq!(stored.text_len, texts.concat().len());
        assert_eq!(stored.bytes, stored.items.iter().map(|item| item.bytes()).sum::<usize>());
        let again = store.get("resp_2", None).unwrap().into_conversation();
        assert!(Arc::ptr_eq(&stored.items, &again.items), "a conversation is not copied");
        // Nor are the items of one that goes on.
        let next = ConversationSource { earlier: again, ..source(None) };
        store.put(&response(2, "z"), &next);
        let all = store.stored.lock().responses.back().cloned().unwrap().into_conversation();
        assert_eq!(all.items.len(), 4);
        assert!(Arc::ptr_eq(&all.items[0], &stored.items[0]), "an item is not copied");
        assert_eq!(all.bytes, all.items.iter().map(|item| item.bytes()).sum::<usize>());
        store.put(&response(3, &long), &source(None));
        assert!(store.get("resp_2", None).is_none(), "the bytes are bounded");
        assert!(store.get("resp_3", None).is_some());
        store.put(&response(4, &"y".repeat(limit)), &source(None));
        assert!(store.get("resp_4", None).is_none() && store.get("resp_3", None).is_some());
        assert!(store.remove("resp_3", None) && !store.remove("resp_3", None));
        assert_eq!(store.stored.lock().bytes, 0);
        let off = ResponseStore::new(ResponseLimits { responses: 0, bytes: 300 });
        off.put(&response(0, "x"), &source(None));
        assert!(off.get("resp_0", None).is_none() && !off.is_enabled());
    }

    /// A server may allow deeper bodies than the default.
    #[test]
    fn deep_conversations_are_kept() {
        let deep = (0..400).fold(Json::Null, |json, _| Json::Array(vec![json]));
        let store = ResponseStore::new(ResponseLimits::default());
        let (earlier, input) = (Conversation::default(), vec![Arc::new(deep.clone())]);
        let source = ConversationSource { owner: None, earlier, input };
        store.put(&json!({"id": "resp_1", "output": []}), &source);
        let stored = store.get("resp_1", None).unwrap().into_conversation();
        assert_eq!(stored.items[..], [Arc::new(deep)]);
    }

    #[test]
    fn keys_see_their_own_responses_only() {
        let store = ResponseStore::new(ResponseLimits::default());
        let (one, two) = (Some(ApiKey(0)), Some(ApiKey(1)));
        store.put(&json!({"id": "resp_1", "output": []}), &source(one));
        assert!(store.get("resp_1", one).is_some());
        let output = json!([{"id": "msg_ab00"}, {"id": "fc_ab01"}]);
        store.put(&json!({"id": "resp_ab", "output": output}), &source(one));
        assert_eq!(store.item("fc_ab01", one).unwrap().to_string(), r#"{"id":"fc_ab01"}"#);
        assert!(store.item("fc_ab01", two).is_none() && store.item("fc_ab02", one).is_none());
        assert!(store.get("resp_1", two).is_none() && store.get("resp_1", None).is_none());
        assert!(!store.remove("resp_1", two) && store.remove("resp_1", one));
    }
}
