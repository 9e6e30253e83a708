//! Registry of schema documents that references may lead to. The caller supplies them; the engine
//! fetches nothing.

use std::sync::Arc;

use crate::hash::HashMap;
use crate::spec::json::Json;

/// Schema documents by absolute URI, supplied by the caller. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    documents: Arc<HashMap<String, Json>>,
}

impl PartialEq for Registry {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.documents, &other.documents) || *self.documents == *other.documents
    }
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
        Arc::make_mut(&mut self.documents).insert(uri, document)
    }

    /// The document with this URI (without fragment), and the URI as stored.
    pub fn get(&self, uri: &str) -> Option<(&str, &Json)> {
        self.documents.get_key_value(uri).map(|(uri, document)| (uri.as_str(), document))
    }

    /// The documents with their URIs, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.documents.iter().map(|(uri, document)| (uri.as_str(), document))
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
