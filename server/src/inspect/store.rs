//! Traces that are kept: so many, of so many bytes.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// What a store may hold. Read from a limits file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceLimits {
    /// Most traces. 0 keeps none.
    pub traces: usize,
    /// Most bytes of all traces together, as JSON. A trace that is larger than this alone is not kept.
    pub bytes: usize,
    /// Most bytes of the steps of one trace, and as many of its events, while it is recorded. It is cut off there.
    pub trace_bytes: usize,
}

impl Default for TraceLimits {
    fn default() -> Self {
        TraceLimits { traces: 64, bytes: 32 << 20, trace_bytes: 4 << 20 }
    }
}

/// A trace as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its id: that of the answer, with the choice's number behind it for further choices.
    pub id: String,
    /// When it was recorded, in seconds since 1970.
    pub created: u64,
    /// The route that was asked.
    pub route: String,
    /// The model's name.
    pub model: String,
    /// Which choice of the answer.
    pub choice: usize,
    /// The prompt's length in tokens.
    pub prompt_tokens: usize,
    /// Recorded steps.
    pub steps: usize,
    /// Names of the tools that were called.
    pub calls: Vec<String>,
    /// The finish reason.
    pub finish: String,
    /// Whether the trace was cut off at [`TraceLimits::trace_bytes`].
    pub cut: bool,
}

/// A trace that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is larger than all that may be kept.
    #[error("the trace is larger than the {limit} bytes that are kept of all traces")]
    TooLarge {
        /// [`TraceLimits::bytes`].
        limit: usize,
    },
    /// The store keeps none.
    #[error("no traces are kept: the limit is 0")]
    Off,
    /// It cannot be written as JSON.
    #[error("the trace cannot be written: {0}")]
    Unwritable(String),
}

/// The newest traces. Cheap to share: give it out as an `Arc`.
#[derive(Debug)]
pub struct TraceStore {
    limits: TraceLimits,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    traces: VecDeque<(Entry, Bytes)>,
    bytes: usize,
    dropped: u64,
}

/// What a store holds, for lists.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Listing {
    object: &'static str,
    /// Newest first.
    data: Vec<Entry>,
    bytes: usize,
    dropped: u64,
    limits: TraceLimits,
}

impl TraceStore {
    /// An empty store.
    pub fn new(limits: TraceLimits) -> Arc<TraceStore> {
        Arc::new(TraceStore { limits, kept: Mutex::default() })
    }

    /// What it may hold.
    pub fn limits(&self) -> TraceLimits {
        self.limits
    }

    /// Keeps a trace; the oldest ones make room. A trace with the same id is replaced. Writes it as JSON before anything is
    /// dropped, and never more of it than may be kept.
    pub(super) fn put(&self, entry: Entry, trace: &impl Serialize) -> Result<(), StoreError> {
        if self.limits.traces == 0 {
            return Err(StoreError::Off);
        }
        let mut json = Bounded { bytes: Vec::new(), limit: self.limits.bytes, full: false };
        if let Err(error) = serde_json::to_writer(&mut json, trace) {
            let limit = self.limits.bytes;
            return Err(if json.full {
                StoreError::TooLarge { limit }
            } else {
                StoreError::Unwritable(error.to_string())
            });
        }
        let json = Bytes::from(json.bytes.into_boxed_slice());
        let mut kept = self.kept.lock();
        if let Some(old) = kept.traces.iter().position(|(other, _)| other.id == entry.id) {
            kept.remove(old);
        }
        kept.bytes += json.len();
        kept.traces.push_back((entry, json));
        while kept.traces.len() > self.limits.traces || kept.bytes > self.limits.bytes {
            kept.remove(0);
            kept.dropped += 1;
        }
        Ok(())
    }

    /// One trace, as JSON.
    pub fn get(&self, id: &str) -> Option<Bytes> {
        let kept = self.kept.lock();
        kept.traces.iter().find(|(entry, _)| entry.id == id).map(|(_, json)| json.clone())
    }

    /// What is kept, newest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.kept.lock().traces.iter().rev().map(|(entry, _)| entry.clone()).collect()
    }

    /// Bytes of what is kept.
    pub fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }

    pub(super) fn listing(&self) -> Listing {
        let kept = self.kept.lock();
        let data = kept.traces.iter().rev().map(|(entry, _)| entry.clone()).collect();
        Listing {
            object: "list",
            data,
            bytes: kept.bytes,
            dropped: kept.dropped,
            limits: self.limits,
        }
    }
}

impl Kept {
    fn remove(&mut self, at: usize) {
        if let Some((_, json)) = self.traces.remove(at) {
            self.bytes -= json.len();
        }
    }
}

/// Takes so many bytes and no more.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len().saturating_add(more.len()) > self.limit {
            self.full = true;
            return Err(io::Error::other("full"));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> Entry {
        Entry {
            id: id.to_owned(),
            created: 0,
            route: "/v1/chat/completions".to_owned(),
            model: "tiny".to_owned(),
            choice: 0,
            prompt_tokens: 1,
            steps: 0,
            calls: Vec::new(),
            finish: "stop".to_owned(),
            cut: false,
        }
    }

    fn ids(store: &TraceStore) -> Vec<String> {
        store.entries().into_iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn the_oldest_make_room() {
        let store =
            TraceStore::new(TraceLimits { traces: 3, bytes: 100, ..TraceLimits::default() });
        for id in ["a", "b", "c", "d"] {
            store.put(entry(id), &id).expect("fits");
        }
        assert_eq!(ids(&store), ["d", "c", "b"]);
        assert_eq!((store.bytes(), store.get("a")), (9, None));
        // 92 bytes and two quotes leave room for two small ones.
        store.put(entry("e"), &"x".repeat(92)).expect("fits");
        assert_eq!(ids(&store), ["e", "d", "c"]);
        assert_eq!(store.bytes(), 100);
        store.put(entry("f"), &"y".repeat(92)).expect("fits");
        assert_eq!((ids(&store), store.bytes()), (vec!["f".to_owned()], 94));
        let listing = serde_json::to_value(store.listing()).expect("JSON");
        assert_eq!((&listing["dropped"], &listing["data"][0]["id"]), (&5.into(), &"f".into()));
    }

    #[test]
    fn too_large_ones_drop_nothing_else() {
        let store =
            TraceStore::new(TraceLimits { traces: 3, bytes: 100, ..TraceLimits::default() });
        store.put(entry("a"), &"small").expect("fits");
        assert_eq!(
            store.put(entry("b"), &"x".repeat(99)),
            Err(StoreError::TooLarge { limit: 100 })
        );
        assert_eq!(ids(&store), ["a"]);
        store.put(entry("a"), &"again").expect("replaces");
        assert_eq!((ids(&store).len(), store.get("a").as_deref()), (1, Some(&b"\"again\""[..])));
        let off = TraceStore::new(TraceLimits { traces: 0, bytes: 100, ..TraceLimits::default() });
        assert_eq!(off.put(entry("a"), &1), Err(StoreError::Off));
    }
}
