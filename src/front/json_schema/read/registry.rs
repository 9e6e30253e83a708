//! Registry of schema documents that references may lead to. The caller supplies them; the engine
//! fetches nothing.

use crate::hash::HashMap;
use crate::spec::json::Json;

/// Schema documents by absolute URI, supplied by the caller.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    documents: HashMap<String, Json>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a document under the URI that references use, without an empty fragment. Returns the
    /// document that it replaces.
    pub fn insert(&mut self, uri: impl Into<String>, document: Json) -> Option<Json> {
        let mut uri = uri.into();
        uri.truncate(uri.trim_end_matches('#').len());
        self.documents.insert(uri, document)
    }

    /// The document with this URI (without fragment), and the URI as stored.
    pub fn get(&self, uri: &str) -> Option<(&str, &Json)> {
        self.documents.get_key_value(uri).map(|(uri, document)| (uri.as_str(), document))
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether the registry is empty.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }
}
