//! Documents that a schema may refer to. Nothing is ever fetched.

use crate::hash::HashMap;
use crate::spec::json::Json;

/// Schema documents by absolute URI, supplied by the caller.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    documents: HashMap<String, Json>,
}

impl Registry {
    /// No documents.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a document under the URI that references use; an empty fragment is dropped. Returns what was there before.
    pub fn insert(&mut self, uri: impl Into<String>, document: Json) -> Option<Json> {
        let mut uri = uri.into();
        uri.truncate(uri.trim_end_matches('#').len());
        self.documents.insert(uri, document)
    }

    /// The document of a URI (without fragment), and the URI as stored.
    pub fn get(&self, uri: &str) -> Option<(&str, &Json)> {
        self.documents.get_key_value(uri).map(|(uri, document)| (uri.as_str(), document))
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }
}
