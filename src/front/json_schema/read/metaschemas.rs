//! The metaschemas of all drafts, which references may lead to without a registry.
//!
//! The documents are those of json-schema.org without annotations. Those of a later draft are a
//! list: the metaschema and its vocabularies.

use crate::cache::ProcessCell;
use crate::hash::HashMap;
use crate::limits::Limits;
use crate::spec::json::Json;

const DOCUMENTS: [&str; 5] = [
    include_str!("metaschemas/draft-04.json"),
    include_str!("metaschemas/draft-06.json"),
    include_str!("metaschemas/draft-07.json"),
    include_str!("metaschemas/draft-2019-09.json"),
    include_str!("metaschemas/draft-2020-12.json"),
];

/// The metaschema, or the vocabulary of one, with this URI (without fragment), and the URI as
/// stored.
pub(super) fn metaschema(uri: &str) -> Option<(&'static str, &'static Json)> {
    static ALL: ProcessCell<HashMap<String, Json>> = ProcessCell::new();
    if !uri.contains("//json-schema.org/draft") {
        return None;
    }
    let (uri, document) = ALL.get_or_make(parse_all).get_key_value(uri)?;
    Some((uri, document))
}

fn parse_all() -> HashMap<String, Json> {
    let parse = |text| Json::parse(text, &Limits::default()).expect("is JSON");
    let documents = DOCUMENTS.into_iter().flat_map(|text| match parse(text) {
        Json::Array(documents) => documents,
        document => vec![document],
    });
    let uri = |document: &Json| {
        let id = document.get("$id").or_else(|| document.get("id")).and_then(Json::as_str);
        id.unwrap_or_default().trim_end_matches('#').to_owned()
    };
    documents.map(|document| (uri(&document), document)).collect()
}
