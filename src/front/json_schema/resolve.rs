//! Reference resolution: `$ref`, `$dynamicRef` and `$recursiveRef`, by identifiers, anchors and
//! JSON pointers, in this document and in the registry. Read step of the pipeline, see the
//! [module](super).
//!
//! A document is indexed when a reference first needs its identifiers or anchors. JSON pointers
//! within the current resource need no index.

use std::borrow::Cow;

use super::Dialect;
use super::doc::{
    Doc, DynamicScopeId, LocId, Location, LocationKind, LocationPath, address, dialect_of,
    identifier, reference_of, resource_id,
};
use super::vocabulary::vocabularies_of;
use crate::hash::HashMap;
use crate::spec::json::{Json, push_token, unescape_token};

/// Why a reference cannot be resolved.
pub(super) enum ResolveError {
    /// The document or resource has no such pointer or anchor.
    NotFound,
    /// Neither this document nor the registry has such a resource.
    NotInRegistry,
}

/// A schema that has an identifier or anchor, and its pointer.
#[derive(Clone)]
pub(super) struct NamedSchema<'a> {
    pub(super) json: &'a Json,
    pub(super) pointer: String,
}

/// Index of the identifiers and anchors of the documents that have been read.
#[derive(Default)]
pub(super) struct ResourceIndex<'a> {
    /// Resources by absolute URI.
    pub(super) by_uri: HashMap<String, NamedSchema<'a>>,
    /// URIs of resources, by address.
    pub(super) uris: HashMap<usize, String>,
    /// Anchors, by the address of their resource and by name.
    pub(super) anchors: HashMap<(usize, &'a str), NamedSchema<'a>>,
    /// Dynamic anchors of each resource, by its address.
    pub(super) dynamic: HashMap<usize, Vec<&'a str>>,
    /// Resources by address.
    pub(super) by_address: HashMap<usize, NamedSchema<'a>>,
    /// Whether the main document has been indexed.
    pub(super) complete: bool,
}

/// The pseudo-anchor that stands for `"$recursiveAnchor": true`.
const RECURSIVE_ANCHOR: &str = "$recursiveAnchor";

/// Keywords whose value is an object of schemas.
const SCHEMA_MAPS: &[&str] = &[
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];
/// Keywords whose value may be an array of schemas.
const SCHEMA_LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value may be a schema.
const SCHEMAS: &[&str] = &[
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];

impl<'a> Doc<'a> {
    /// Resolves a `$ref` of location `from`.
    pub(super) fn resolve(
        &mut self,
        from: LocId,
        reference: &'a str,
    ) -> Result<LocId, ResolveError> {
        let Location { base, scope, .. } = self.locs[from.index()];
        if let Some(&id) = self.resolved.get(&(base, scope, reference)) {
            return Ok(id);
        }
        let found = self.resolve_uncached((base, scope), reference)?;
        self.resolved.insert((base, scope, reference), found);
        Ok(found)
    }

    /// As [`Doc::resolve`], without the memo.
    fn resolve_uncached(
        &mut self,
        (base, scope): (LocId, DynamicScopeId),
        reference: &'a str,
    ) -> Result<LocId, ResolveError> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let named = if uri.is_empty() { None } else { Some(self.find_resource(base, uri)?) };
        let fragment = percent_decode(fragment).ok_or(ResolveError::NotFound)?;
        let Some(path) = fragment.strip_prefix('/') else {
            let resource_loc = named.map_or(base, |named| self.enter_resource(base, scope, &named));
            return if fragment.is_empty() {
                Ok(resource_loc)
            } else {
                self.resolve_anchor(resource_loc, &fragment)
            };
        };
        let start = named.as_ref().map_or(self.json(base), |named| named.json);
        let mut dialect = dialect_of(start).unwrap_or(self.dialect(base));
        // The innermost resource on the path, and how many tokens lead to it.
        let (mut json, mut resource) = (start, None);
        for (count, token) in path.split('/').enumerate() {
            json = json.step(&unescape_token(token)).ok_or(ResolveError::NotFound)?;
            if resource_id(json, dialect_of(json).unwrap_or(dialect)).is_some() {
                dialect = dialect_of(json).unwrap_or(dialect);
                resource = Some((json, count + 1));
            }
        }
        if let (None, None, Cow::Borrowed(_)) = (&named, resource, &fragment) {
            // The usual case: a path within the resource, without escapes.
            let pointer = &reference[reference.len() - path.len()..];
            return Ok(self.intern(json, base, LocationPath::Below(pointer), base));
        }
        let first = named.map_or_else(|| self.pointer(base), |named| named.pointer);
        let below = |count: usize| {
            let mut pointer = first.clone();
            path.split('/')
                .take(count)
                .for_each(|token| push_token(&mut pointer, &unescape_token(token)));
            pointer
        };
        let (found, count) = resource.unwrap_or((start, 0));
        // Resources that the pointer only passes through are not entered (they add no dynamic
        // scope).
        let resource_loc =
            self.enter_resource(base, scope, &NamedSchema { json: found, pointer: below(count) });
        Ok(self.intern(json, resource_loc, LocationPath::Absolute(below(usize::MAX)), resource_loc))
    }

    /// Resolves a `$dynamicRef` (2020-12 core, 8.2.3.2).
    pub(super) fn resolve_dynamic(
        &mut self,
        from: LocId,
        reference: &'a str,
    ) -> Result<LocId, ResolveError> {
        let target = self.resolve(from, reference)?;
        let anchor = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        if self.json(target).get("$dynamicAnchor").and_then(Json::as_str) != Some(anchor) {
            return Ok(target);
        }
        self.resolve_in_outermost(from, target, anchor)
    }

    /// Resolves a `$recursiveRef` (2019-09 core, 8.2.4.2.1).
    pub(super) fn resolve_recursive(&mut self, from: LocId) -> Result<LocId, ResolveError> {
        let target = self.locs[from.index()].base;
        if self.json(target).get(RECURSIVE_ANCHOR) != Some(&Json::Bool(true)) {
            return Ok(target);
        }
        self.resolve_in_outermost(from, target, RECURSIVE_ANCHOR)
    }

    /// The dynamic anchor in the outermost resource of the dynamic scope that declares it; `target`
    /// if none does.
    fn resolve_in_outermost(
        &mut self,
        from: LocId,
        target: LocId,
        anchor: &str,
    ) -> Result<LocId, ResolveError> {
        let Location { base, scope, .. } = self.locs[from.index()];
        let bound =
            self.scopes[scope as usize].iter().find(|(name, _)| *name == anchor).map(|(_, at)| *at);
        let Some(named) = bound.and_then(|at| self.resources.by_address.get(&at)).cloned() else {
            return Ok(target);
        };
        let resource_loc = self.enter_resource(base, scope, &named);
        if anchor == RECURSIVE_ANCHOR {
            Ok(resource_loc)
        } else {
            self.resolve_anchor(resource_loc, anchor)
        }
    }

    /// The location of an anchor of a resource.
    fn resolve_anchor(&mut self, resource: LocId, anchor: &str) -> Result<LocId, ResolveError> {
        let key = address(self.json(resource));
        if !self.resources.complete {
            let root = self.json(LocId::ROOT);
            self.index_document(root, self.dialect(LocId::ROOT));
        }
        let found = self.resources.anchors.get(&(key, anchor));
        let NamedSchema { json, pointer } = found.cloned().ok_or(ResolveError::NotFound)?;
        Ok(self.intern(json, resource, LocationPath::Absolute(pointer), resource))
    }

    /// The location of a resource that is entered from a location of this base and dynamic scope.
    fn enter_resource(
        &mut self,
        base: LocId,
        mut scope: DynamicScopeId,
        named: &NamedSchema<'a>,
    ) -> LocId {
        let json = named.json;
        if address(json) == address(self.json(base)) {
            return base;
        }
        if self.dynamic {
            scope = self.enter_dynamic_scope(scope, json);
        }
        if let Some(&id) = self.by_address.get(&(address(json), scope)) {
            return id;
        }
        let dialect = dialect_of(json).unwrap_or(self.dialect(base));
        let vocabularies = vocabularies_of(self.registry, json, dialect, self.vocabularies(base));
        let id = LocId::new(self.locs.len());
        let path = LocationPath::Absolute(named.pointer.clone());
        let reference = reference_of(json);
        let depth = path.depth(1);
        let kind = LocationKind::Schema(json);
        self.locs.push(Location {
            kind,
            parent: id,
            path,
            reference,
            base: id,
            scope,
            dialect,
            depth,
            vocabularies,
        });
        self.by_address.insert((address(json), scope), id);
        id
    }

    /// The resource with this URI, resolved against the URI of `base`.
    fn find_resource(&mut self, base: LocId, uri: &str) -> Result<NamedSchema<'a>, ResolveError> {
        if !self.resources.complete {
            let root = self.json(LocId::ROOT);
            self.index_document(root, self.dialect(LocId::ROOT));
        }
        let base_uri =
            self.resources.uris.get(&address(self.json(base))).map_or("", String::as_str);
        let joined = resolve_uri(base_uri, uri);
        if let Some(schema) = self.resources.by_uri.get(&joined) {
            return Ok(schema.clone());
        }
        let (uri, json) = self.registry.get(&joined).ok_or(ResolveError::NotInRegistry)?;
        let dialect = dialect_of(json).unwrap_or(self.dialect(base));
        self.index_identifiers(json, uri.to_owned(), format!("{uri}#"), dialect);
        self.resources.by_uri.get(&joined).cloned().ok_or(ResolveError::NotInRegistry)
    }

    /// Indexes the identifiers and anchors of the main document.
    pub(super) fn index_document(&mut self, root: &'a Json, dialect: Dialect) {
        self.resources.complete = true;
        self.index_identifiers(root, String::new(), String::new(), dialect);
    }

    /// Indexes all identifiers and anchors of a document with this URI.
    fn index_identifiers(
        &mut self,
        root: &'a Json,
        uri: String,
        pointer: String,
        dialect: Dialect,
    ) {
        let index = &mut self.resources;
        let named = NamedSchema { json: root, pointer: pointer.clone() };
        index.uris.insert(address(root), uri.clone());
        index.by_address.insert(address(root), named.clone());
        index.by_uri.entry(uri.clone()).or_insert(named);
        // (schema, its pointer, its resource, the URI of the resource, dialect)
        let mut stack = vec![(root, pointer, address(root), uri, dialect)];
        while let Some((json, pointer, mut resource, mut uri, mut dialect)) = stack.pop() {
            let Some(object) = json.as_object() else { continue };
            let own_dialect = dialect_of(json).unwrap_or(dialect);
            if let Some(id) = identifier(json, own_dialect) {
                dialect = own_dialect;
                let (reference, anchor) = id.split_once('#').unwrap_or((id, ""));
                if !reference.is_empty() {
                    uri = resolve_uri(&uri, reference);
                    resource = address(json);
                    let named = NamedSchema { json, pointer: pointer.clone() };
                    index.uris.insert(resource, uri.clone());
                    index.by_address.insert(resource, named.clone());
                    index.by_uri.entry(uri.clone()).or_insert(named);
                }
                if !anchor.is_empty() && dialect < Dialect::Draft201909 {
                    let named = NamedSchema { json, pointer: pointer.clone() };
                    index.anchors.entry((resource, anchor)).or_insert(named);
                }
            }
            if dialect >= Dialect::Draft201909 {
                let dynamic = object.get("$dynamicAnchor").and_then(Json::as_str);
                for anchor in
                    object.get("$anchor").and_then(Json::as_str).into_iter().chain(dynamic)
                {
                    let named = NamedSchema { json, pointer: pointer.clone() };
                    index.anchors.entry((resource, anchor)).or_insert(named);
                }
                let recursive = (object.get(RECURSIVE_ANCHOR) == Some(&Json::Bool(true)))
                    .then_some(RECURSIVE_ANCHOR);
                index
                    .dynamic
                    .entry(resource)
                    .or_default()
                    .extend(dynamic.into_iter().chain(recursive));
            }
            let mut push = |path: &[&str], value: &'a Json| {
                let mut pointer = pointer.clone();
                path.iter().for_each(|token| push_token(&mut pointer, token));
                stack.push((value, pointer, resource, uri.clone(), dialect));
            };
            // Only positions of schemas: constants and unknown keywords are data.
            for (keyword, value) in object.iter() {
                match value {
                    Json::Object(members) if SCHEMA_MAPS.contains(&keyword) => {
                        members.iter().for_each(|(name, schema)| push(&[keyword, name], schema));
                    }
                    Json::Array(items) if SCHEMA_LISTS.contains(&keyword) => {
                        items
                            .iter()
                            .enumerate()
                            .for_each(|(i, schema)| push(&[keyword, &i.to_string()], schema));
                    }
                    schema if SCHEMAS.contains(&keyword) => push(&[keyword], schema),
                    _ => {}
                }
            }
        }
    }
}

/// Resolves a URI reference against a base (RFC 3986, section 5.2).
fn resolve_uri(base: &str, reference: &str) -> String {
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

/// Decodes percent-encoding; `None` if it is malformed or not UTF-8.
fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |b: &u8| char::from(*b).to_digit(16);
        out.push((digit(high)? * 16 + digit(low)?) as u8);
        rest = tail;
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}
