//! Schema resources: the identifiers and anchors by which references find a schema.
//!
//! A document is indexed when a reference first needs its identifiers or anchors. Each entry has a
//! copy of its pointer and its URI, which are long below a long name or base: copies cost fuel.

use std::sync::Arc;

use super::super::keyword::subschemas;
use super::super::options::Dialect;
use crate::fuel;
use crate::hash::HashMap;
use crate::spec::json::{Json, push_token};

/// A schema that has an identifier or anchor, and its pointer.
#[derive(Clone)]
pub(super) struct NamedSchema<'a> {
    pub(crate) json: &'a Json,
    pub(crate) pointer: String,
}

/// Index of the identifiers and anchors of the documents that have been read.
#[derive(Default)]
pub(super) struct ResourceIndex<'a> {
    /// Resources by absolute URI.
    pub(super) by_uri: HashMap<Arc<str>, NamedSchema<'a>>,
    /// URIs of resources.
    pub(super) uris: HashMap<JsonId, Arc<str>>,
    /// Anchors, by their resource and name.
    pub(super) anchors: HashMap<(JsonId, &'a str), NamedSchema<'a>>,
    /// Dynamic anchors of each resource.
    pub(super) dynamic: HashMap<JsonId, Vec<&'a str>>,
    /// The schema of each resource, with its pointer.
    pub(super) by_id: HashMap<JsonId, NamedSchema<'a>>,
    /// Whether the main document has been indexed.
    pub(crate) complete: bool,
}

/// The pseudo-anchor that stands for `"$recursiveAnchor": true`.
pub(super) const RECURSIVE_ANCHOR: &str = "$recursiveAnchor";

/// A schema on the way through a document.
struct Visit<'a> {
    json: &'a Json,
    pointer: String,
    /// The resource that it belongs to.
    resource: JsonId,
    /// The URI of that resource.
    uri: Arc<str>,
    dialect: Dialect,
}

/// Bytes that are copied for a unit of fuel.
pub(super) const BYTES_A_UNIT: usize = 8;

impl<'a> Visit<'a> {
    fn named(&self) -> NamedSchema<'a> {
        NamedSchema { json: self.json, pointer: self.pointer.clone() }
    }

    /// A subschema in the value of a keyword. `None`: out of fuel.
    fn child(&self, keyword: &str, token: Option<&str>, json: &'a Json) -> Option<Visit<'a>> {
        fuel::spend(self.pointer.len() / BYTES_A_UNIT).ok()?;
        let mut pointer = self.pointer.clone();
        [keyword].into_iter().chain(token).for_each(|token| push_token(&mut pointer, token));
        let (resource, uri, dialect) = (self.resource, self.uri.clone(), self.dialect);
        Some(Visit { json, pointer, resource, uri, dialect })
    }

    /// The subschemas. Constants and values of unknown keywords are data. `None`: out of fuel.
    fn children(&self, out: &mut Vec<Visit<'a>>) -> Option<()> {
        for (keyword, value) in self.json.as_object().into_iter().flat_map(|object| object.iter()) {
            for (token, schema) in subschemas(keyword, value) {
                out.push(self.child(keyword, token.as_deref(), schema)?);
            }
        }
        Some(())
    }
}

impl<'a> ResourceIndex<'a> {
    /// Adds all identifiers and anchors of a document with this URI.
    pub(super) fn add_document(
        &mut self,
        json: &'a Json,
        uri: String,
        pointer: String,
        dialect: Dialect,
    ) {
        let root = Visit { json, pointer, resource: JsonId::of(json), uri: uri.into(), dialect };
        self.add_resource(&root);
        let mut stack = vec![root];
        while let Some(mut visit) = stack.pop() {
            if self.add_identifier(&mut visit).is_none() {
                return;
            }
            self.add_anchors(&visit);
            if visit.children(&mut stack).is_none() {
                return;
            }
        }
    }

    /// Adds the resource that a schema is the root of.
    fn add_resource(&mut self, visit: &Visit<'a>) {
        self.uris.insert(visit.resource, visit.uri.clone());
        self.by_id.insert(visit.resource, visit.named());
        self.by_uri.entry(visit.uri.clone()).or_insert_with(|| visit.named());
    }

    /// Adds the resource or the anchor that the identifier of a schema declares, if it has one.
    /// `None`: out of fuel.
    fn add_identifier(&mut self, visit: &mut Visit<'a>) -> Option<()> {
        let dialect = dialect_of(visit.json).unwrap_or(visit.dialect);
        let Some(id) = identifier(visit.json, dialect) else { return Some(()) };
        visit.dialect = dialect;
        let (reference, anchor) = id.split_once('#').unwrap_or((id, ""));
        if !reference.is_empty() {
            fuel::spend((visit.uri.len() + reference.len()) / BYTES_A_UNIT).ok()?;
            visit.uri = resolve_uri(&visit.uri, reference).into();
            visit.resource = JsonId::of(visit.json);
            self.add_resource(visit);
        }
        if !anchor.is_empty() && dialect < Dialect::Draft201909 {
            self.add_anchor(visit, anchor);
        }
        Some(())
    }

    /// Adds the anchors of a schema.
    fn add_anchors(&mut self, visit: &Visit<'a>) {
        let Some(object) = visit.json.as_object() else { return };
        if visit.dialect < Dialect::Draft201909 {
            return;
        }
        let dynamic = object.get("$dynamicAnchor").and_then(Json::as_str);
        let plain = object.get("$anchor").and_then(Json::as_str);
        for anchor in plain.into_iter().chain(dynamic) {
            self.add_anchor(visit, anchor);
        }
        let recursive = object.get(RECURSIVE_ANCHOR) == Some(&Json::Bool(true));
        let recursive = recursive.then_some(RECURSIVE_ANCHOR);
        self.dynamic
            .entry(visit.resource)
            .or_default()
            .extend(dynamic.into_iter().chain(recursive));
    }

    /// Adds an anchor of a schema, unless its resource has it already.
    fn add_anchor(&mut self, visit: &Visit<'a>, anchor: &'a str) {
        self.anchors.entry((visit.resource, anchor)).or_insert_with(|| visit.named());
    }
}

/// The identity of a value in a parsed document: its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct JsonId(usize);

impl JsonId {
    /// The id of a value.
    pub(crate) fn of(json: &Json) -> JsonId {
        JsonId(std::ptr::from_ref(json).addr())
    }
}

/// The dialect that `$schema` names; unknown URIs count as 2020-12.
pub(super) fn dialect_of(json: &Json) -> Option<Dialect> {
    let uri = json.get("$schema")?.as_str()?;
    Some(Dialect::named(uri).unwrap_or(Dialect::Draft202012))
}

/// The value of `$id` (draft 4: `id`).
pub(super) fn identifier(json: &Json, dialect: Dialect) -> Option<&str> {
    let object = json.as_object()?;
    let id = object.get(if dialect == Dialect::Draft4 { "id" } else { "$id" })?.as_str()?;
    // Older dialects ignore it next to a `$ref`.
    (dialect > Dialect::Draft7 || object.get("$ref").is_none()).then_some(id)
}

/// The identifier, if it names a resource. An identifier of older dialects that starts with `#` is
/// only an anchor.
pub(super) fn resource_id(json: &Json, dialect: Dialect) -> Option<&str> {
    identifier(json, dialect).filter(|id| !id.starts_with('#'))
}

/// Resolves a URI reference against a base (RFC 3986, section 5.2).
pub(super) fn resolve_uri(base: &str, reference: &str) -> String {
    let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    });
    if has_scheme || base.is_empty() {
        return reference.to_owned();
    }
    let scheme = base.find(':').map_or(0, |i| i + 1);
    if reference.starts_with("//") {
        return format!("{}{reference}", &base[..scheme]);
    }
    let authority = match base[scheme..].strip_prefix("//") {
        Some(rest) => scheme + 2 + rest.find(['/', '?']).unwrap_or(rest.len()),
        None => scheme,
    };
    let path_end = base[authority..].find('?').map_or(base.len(), |i| authority + i);
    if reference.starts_with('?') {
        return format!("{}{reference}", &base[..path_end]);
    }
    let (path, query) = match reference.find('?') {
        Some(i) => reference.split_at(i),
        None => (reference, ""),
    };
    let merged = match base[authority..path_end].rfind('/') {
        _ if path.starts_with('/') => path.to_owned(),
        Some(slash) => format!("{}{path}", &base[authority..=authority + slash]),
        None if authority > scheme => format!("/{path}"),
        None => path.to_owned(),
    };
    format!("{}{}{query}", &base[..authority], remove_dot_segments(&merged))
}

/// Removes `.` and `..` segments (RFC 3986, section 5.2.4).
fn remove_dot_segments(path: &str) -> String {
    if !path.contains("./") && !path.ends_with('.') {
        return path.to_owned();
    }
    let mut out: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').collect();
    for (i, &segment) in segments.iter().enumerate() {
        let last = i + 1 == segments.len();
        match segment {
            "." if last => out.push(""),
            "." => {}
            ".." => {
                if out.len() > 1 || out.first().is_some_and(|first| !first.is_empty()) {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            segment => out.push(segment),
        }
    }
    out.join("/")
}
