//! Trace store: keeps the newest traces within a count and a byte limit.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Limits of the trace store, read from a limits file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceLimits {
    /// Maximum number of traces; 0 disables recording.
    pub traces: usize,
    /// Maximum total bytes of all traces as JSON. A single larger trace is not stored.
    pub bytes: usize,
    /// Maximum bytes of one trace's steps while it is recorded, and likewise of its events.
    /// Recording is cut off there.
    pub trace_bytes: usize,
}

impl Default for TraceLimits {
    fn default() -> Self {
        TraceLimits { traces: 64, bytes: 32 << 20, trace_bytes: 4 << 20 }
    }
}

/// The listing entry of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceEntry {
    /// The trace's id: the response id, followed by the choice index for further choices.
    pub id: String,
    /// Unix time of the recording in seconds.
    pub created: u64,
    /// The request's route.
    pub route: String,
    /// The model's name.
    pub model: String,
    /// Index of the choice.
    pub choice: usize,
    /// The prompt's length in tokens.
    pub prompt_tokens: usize,
    /// Number of recorded steps.
    pub steps: usize,
    /// Names of the called tools.
    pub calls: Vec<String>,
    /// The finish reason.
    pub finish: String,
    /// Whether the trace was cut off at [`TraceLimits::trace_bytes`].
    pub cut: bool,
}

/// Why a trace was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceStoreError {
    /// The trace exceeds the byte limit of the whole store.
    #[error("the trace is larger than the limit of {limit} bytes for all traces")]
    TooLarge {
        /// [`TraceLimits::bytes`].
        limit: usize,
    },
    /// The store is disabled.
    #[error("traces are disabled: the limit is 0")]
    Off,
    /// The trace cannot be serialised as JSON.
    #[error("the trace cannot be serialised: {0}")]
    NotSerialisable(String),
}

/// The store of recorded traces. Share it as an `Arc`.
#[derive(Debug)]
pub struct TraceStore {
    limits: TraceLimits,
    stored: Mutex<StoredTraces>,
}

#[derive(Debug, Default)]
struct StoredTraces {
    /// Oldest first.
    traces: VecDeque<(TraceEntry, Bytes)>,
    bytes: usize,
    dropped: u64,
}

/// The JSON listing of the store.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Listing {
    object: &'static str,
    /// Newest first.
    data: Vec<TraceEntry>,
    bytes: usize,
    dropped: u64,
    limits: TraceLimits,
}

impl TraceStore {
    /// An empty store.
    pub fn new(limits: TraceLimits) -> Arc<TraceStore> {
        Arc::new(TraceStore { limits, stored: Mutex::default() })
    }

    /// Stores a trace and evicts the oldest ones as needed. Replaces a trace with the same id. The
    /// trace is serialised before anything is evicted, and never beyond the byte limit.
    pub(super) fn put(
        &self,
        entry: TraceEntry,
        trace: &impl Serialize,
    ) -> Result<(), TraceStoreError> {
        if self.limits.traces == 0 {
            return Err(TraceStoreError::Off);
        }
        let mut json =
            BoundedWriter { bytes: Vec::new(), limit: self.limits.bytes, is_full: false };
        if let Err(error) = serde_json::to_writer(&mut json, trace) {
            let limit = self.limits.bytes;
            return Err(if json.is_full {
                TraceStoreError::TooLarge { limit }
            } else {
                TraceStoreError::NotSerialisable(error.to_string())
            });
        }
        let json = Bytes::from(json.bytes.into_boxed_slice());
        let mut stored = self.stored.lock();
        if let Some(index) = stored.traces.iter().position(|(other, _)| other.id == entry.id) {
            stored.remove(index);
        }
        stored.bytes += json.len();
        stored.traces.push_back((entry, json));
        while stored.traces.len() > self.limits.traces || stored.bytes > self.limits.bytes {
            stored.remove(0);
            stored.dropped += 1;
        }
        Ok(())
    }

    /// One trace, as JSON.
    pub fn get(&self, id: &str) -> Option<Bytes> {
        let stored = self.stored.lock();
        stored.traces.iter().find(|(entry, _)| entry.id == id).map(|(_, json)| json.clone())
    }

    /// The stored traces, newest first.
    pub fn entries(&self) -> Vec<TraceEntry> {
        self.stored.lock().traces.iter().rev().map(|(entry, _)| entry.clone()).collect()
    }

    /// Total bytes of the stored traces.
    pub fn bytes(&self) -> usize {
        self.stored.lock().bytes
    }

    pub(super) fn listing(&self) -> Listing {
        let stored = self.stored.lock();
        let data = stored.traces.iter().rev().map(|(entry, _)| entry.clone()).collect();
        Listing {
            object: "list",
            data,
            bytes: stored.bytes,
            dropped: stored.dropped,
            limits: self.limits,
        }
    }
}

impl StoredTraces {
    fn remove(&mut self, index: usize) {
        if let Some((_, json)) = self.traces.remove(index) {
            self.bytes -= json.len();
        }
    }
}

/// A writer that fails beyond `limit` bytes.
struct BoundedWriter {
    bytes: Vec<u8>,
    limit: usize,
    is_full: bool,
}

impl Write for BoundedWriter {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len().saturating_add(more.len()) > self.limit {
            self.is_full = true;
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

    fn entry(id: &str) -> TraceEntry {
        TraceEntry {
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
    fn oldest_traces_are_evicted() {
        let store =
            TraceStore::new(TraceLimits { traces: 3, bytes: 100, ..TraceLimits::default() });
        for id in ["a", "b", "c", "d"] {
            store.put(entry(id), &id).expect("fits");
        }
        assert_eq!(ids(&store), ["d", "c", "b"]);
        assert_eq!((store.bytes(), store.get("a")), (9, None));
        // 92 bytes and two quotes leave space for two small traces.
        store.put(entry("e"), &"x".repeat(92)).expect("fits");
        assert_eq!(ids(&store), ["e", "d", "c"]);
        assert_eq!(store.bytes(), 100);
        store.put(entry("f"), &"y".repeat(92)).expect("fits");
        assert_eq!((ids(&store), store.bytes()), (vec!["f".to_owned()], 94));
        let listing = serde_json::to_value(store.listing()).expect("JSON");
        assert_eq!((&listing["dropped"], &listing["data"][0]["id"]), (&5.into(), &"f".into()));
    }

    #[test]
    fn oversized_traces_evict_nothing() {
        let store =
            TraceStore::new(TraceLimits { traces: 3, bytes: 100, ..TraceLimits::default() });
        store.put(entry("a"), &"small").expect("fits");
        assert_eq!(
            store.put(entry("b"), &"x".repeat(99)),
            Err(TraceStoreError::TooLarge { limit: 100 })
        );
        assert_eq!(ids(&store), ["a"]);
        store.put(entry("a"), &"again").expect("replaces");
        assert_eq!((ids(&store).len(), store.get("a").as_deref()), (1, Some(&b"\"again\""[..])));
        let off = TraceStore::new(TraceLimits { traces: 0, bytes: 100, ..TraceLimits::default() });
        assert_eq!(off.put(entry("a"), &1), Err(TraceStoreError::Off));
    }
}
