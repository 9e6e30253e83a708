//! Where references lead: identifiers, anchors, dynamic anchors, other documents.

use std::borrow::Cow;

use super::Dialect as Draft;
use super::doc::{
    Doc, Kind, Loc, LocId, Path, Scope, address, draft_of, identifier, reference_of, resource_id,
};
use crate::hash::HashMap;
use crate::spec::json::{Json, push_token, unescape_token};

/// Why a reference leads nowhere.
pub(super) enum Unresolved {
    Missing,
    Remote,
}

/// A schema found by name.
#[derive(Clone)]
pub(super) struct Named<'a> {
    pub(super) json: &'a Json,
    pub(super) pointer: String,
}

/// Identifiers and anchors of the documents looked at so far.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// Resources by absolute URI.
    pub(super) resources: HashMap<String, Named<'a>>,
    /// URIs of resources, by address.
    pub(super) uris: HashMap<usize, String>,
    /// By the resource's address.
    pub(super) anchors: HashMap<(usize, &'a str), Named<'a>>,
    /// Dynamic anchors of each resource.
    pub(super) dynamic: HashMap<usize, Vec<&'a str>>,
    /// Resources by address.
    pub(super) by_address: HashMap<usize, Named<'a>>,
    /// Whether the document itself has been looked at.
    pub(super) complete: bool,
}

/// The anchor that `$recursiveAnchor` stands for.
const RECURSIVE: &str = "$recursiveAnchor";

/// Keywords whose value is a map of schemas, a list of schemas, a schema.
const MAPS: &[&str] = &[
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems", "items"];
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
    /// The location a `$ref` leads to.
    pub(super) fn resolve(&mut self, from: LocId, reference: &'a str) -> Result<LocId, Unresolved> {
        let Loc { base, scope, .. } = self.locs[from.index()];
        if let Some(&known) = self.resolved.get(&(base, scope, reference)) {
            return Ok(known);
        }
        let found = self.look_up((base, scope), reference)?;
        self.resolved.insert((base, scope, reference), found);
        Ok(found)
    }

    fn look_up(
        &mut self,
        (base, scope): (LocId, Scope),
        reference: &'a str,
    ) -> Result<LocId, Unresolved> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let named = if uri.is_empty() { None } else { Some(self.resource(base, uri)?) };
        let fragment = percent_decode(fragment).ok_or(Unresolved::Missing)?;
        let Some(path) = fragment.strip_prefix('/') else {
            let at = named.map_or(base, |named| self.enter_resource(base, scope, &named));
            return if fragment.is_empty() { Ok(at) } else { self.anchor(at, &fragment) };
        };
        let start = named.as_ref().map_or(self.json(base), |named| named.json);
        let mut draft = draft_of(start).unwrap_or(self.draft(base));
        // The last resource on the way, and how many tokens lead there.
        let (mut json, mut resource) = (start, None);
        for (count, token) in path.split('/').enumerate() {
            json = json.step(&unescape_token(token)).ok_or(Unresolved::Missing)?;
            if resource_id(json, draft_of(json).unwrap_or(draft)).is_some() {
                draft = draft_of(json).unwrap_or(draft);
                resource = Some((json, count + 1));
            }
        }
        if let (None, None, Cow::Borrowed(_)) = (&named, resource, &fragment) {
            // The usual case: a path is written where it is asked for.
            let pointer = &reference[reference.len() - path.len()..];
            return Ok(self.intern(json, base, Path::Below(pointer), base));
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
        // Resources that the pointer passes through are not entered.
        let at = self.enter_resource(base, scope, &Named { json: found, pointer: below(count) });
        Ok(self.intern(json, at, Path::Absolute(below(usize::MAX)), at))
    }

    /// The location a `$dynamicRef` leads to (2020-12 core, 8.2.3.2).
    pub(super) fn resolve_dynamic(
        &mut self,
        from: LocId,
        reference: &'a str,
    ) -> Result<LocId, Unresolved> {
        let target = self.resolve(from, reference)?;
        let anchor = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        if self.json(target).get("$dynamicAnchor").and_then(Json::as_str) != Some(anchor) {
            return Ok(target);
        }
        self.outermost(from, target, anchor)
    }

    /// The location a `$recursiveRef` leads to (2019-09 core, 8.2.4.2.1).
    pub(super) fn resolve_recursive(&mut self, from: LocId) -> Result<LocId, Unresolved> {
        let target = self.locs[from.index()].base;
        if self.json(target).get(RECURSIVE) != Some(&Json::Bool(true)) {
            return Ok(target);
        }
        self.outermost(from, target, RECURSIVE)
    }

    /// The anchor in the outermost resource that declares it.
    fn outermost(&mut self, from: LocId, target: LocId, anchor: &str) -> Result<LocId, Unresolved> {
        let Loc { base, scope, .. } = self.locs[from.index()];
        let bound =
            self.scopes[scope as usize].iter().find(|(name, _)| *name == anchor).map(|(_, at)| *at);
        let Some(named) = bound.and_then(|at| self.names.by_address.get(&at)).cloned() else {
            return Ok(target);
        };
        let at = self.enter_resource(base, scope, &named);
        if anchor == RECURSIVE { Ok(at) } else { self.anchor(at, anchor) }
    }

    fn anchor(&mut self, resource: LocId, anchor: &str) -> Result<LocId, Unresolved> {
        let key = address(self.json(resource));
        if !self.names.complete {
            let root = self.json(LocId::ROOT);
            self.look_at(root, self.draft(LocId::ROOT));
        }
        let found = self.names.anchors.get(&(key, anchor));
        let Named { json, pointer } = found.cloned().ok_or(Unresolved::Missing)?;
        Ok(self.intern(json, resource, Path::Absolute(pointer), resource))
    }

    /// The location of a resource, entered from a location of this base and scope.
    fn enter_resource(&mut self, base: LocId, mut scope: Scope, named: &Named<'a>) -> LocId {
        let json = named.json;
        if address(json) == address(self.json(base)) {
            return base;
        }
        if self.dynamic {
            scope = self.enter(scope, json);
        }
        if let Some(&known) = self.by_address.get(&(address(json), scope)) {
            return known;
        }
        let draft = draft_of(json).unwrap_or(self.draft(base));
        let vocabularies = self.vocabularies_of(json, draft, self.vocabularies(base));
        let id = LocId::new(self.locs.len());
        let path = Path::Absolute(named.pointer.clone());
        let reference = reference_of(json);
        let depth = path.depth(1);
        let kind = Kind::Schema(json);
        self.locs.push(Loc {
            kind,
            parent: id,
            path,
            reference,
            base: id,
            scope,
            draft,
            depth,
            vocabularies,
        });
        self.by_address.insert((address(json), scope), id);
        id
    }

    /// The resource a reference names, against a base.
    fn resource(&mut self, base: LocId, uri: &str) -> Result<Named<'a>, Unresolved> {
        if !self.names.complete {
            let root = self.json(LocId::ROOT);
            self.look_at(root, self.draft(LocId::ROOT));
        }
        let base_uri = self.names.uris.get(&address(self.json(base))).map_or("", String::as_str);
        let joined = join(base_uri, uri);
        if let Some(known) = self.names.resources.get(&joined) {
            return Ok(known.clone());
        }
        let (uri, json) = self.remotes.get(&joined).ok_or(Unresolved::Remote)?;
        let draft = draft_of(json).unwrap_or(self.draft(base));
        self.collect_names(json, uri.to_owned(), format!("{uri}#"), draft);
        self.names.resources.get(&joined).cloned().ok_or(Unresolved::Remote)
    }

    pub(super) fn look_at(&mut self, root: &'a Json, draft: Draft) {
        self.names.complete = true;
        self.collect_names(root, String::new(), String::new(), draft);
    }

    /// Notes all identifiers and anchors of a document found at this URI.
    fn collect_names(&mut self, root: &'a Json, uri: String, pointer: String, draft: Draft) {
        let names = &mut self.names;
        let named = Named { json: root, pointer: pointer.clone() };
        names.uris.insert(address(root), uri.clone());
        names.by_address.insert(address(root), named.clone());
        names.resources.entry(uri.clone()).or_insert(named);
        // (schema, its pointer, its resource, the resource's URI, dialect)
        let mut stack = vec![(root, pointer, address(root), uri, draft)];
        while let Some((json, pointer, mut resource, mut uri, mut draft)) = stack.pop() {
            let Some(object) = json.as_object() else { continue };
            let own_draft = draft_of(json).unwrap_or(draft);
            if let Some(id) = identifier(json, own_draft) {
                draft = own_draft;
                let (reference, anchor) = id.split_once('#').unwrap_or((id, ""));
                if !reference.is_empty() {
                    uri = join(&uri, reference);
                    resource = address(json);
                    let named = Named { json, pointer: pointer.clone() };
                    names.uris.insert(resource, uri.clone());
                    names.by_address.insert(resource, named.clone());
                    names.resources.entry(uri.clone()).or_insert(named);
                }
                if !anchor.is_empty() && draft < Draft::Draft201909 {
                    let named = Named { json, pointer: pointer.clone() };
                    names.anchors.entry((resource, anchor)).or_insert(named);
                }
            }
            if draft >= Draft::Draft201909 {
                let dynamic = object.get("$dynamicAnchor").and_then(Json::as_str);
                for anchor in
                    object.get("$anchor").and_then(Json::as_str).into_iter().chain(dynamic)
                {
                    let named = Named { json, pointer: pointer.clone() };
                    names.anchors.entry((resource, anchor)).or_insert(named);
                }
                let recursive =
                    (object.get(RECURSIVE) == Some(&Json::Bool(true))).then_some(RECURSIVE);
                names
                    .dynamic
                    .entry(resource)
                    .or_default()
                    .extend(dynamic.into_iter().chain(recursive));
            }
            let mut push = |path: &[&str], value: &'a Json| {
                let mut pointer = pointer.clone();
                path.iter().for_each(|token| push_token(&mut pointer, token));
                stack.push((value, pointer, resource, uri.clone(), draft));
            };
            // Only where schemas stand: constants and unknown keywords are data.
            for (keyword, value) in object.iter() {
                match value {
                    Json::Object(members) if MAPS.contains(&keyword) => {
                        members.iter().for_each(|(name, schema)| push(&[keyword, name], schema));
                    }
                    Json::Array(items) if LISTS.contains(&keyword) => {
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

/// RFC 3986 reference resolution (section 5.2).
fn join(base: &str, reference: &str) -> String {
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
    format!("{}{}{query}", &base[..authority], without_dots(&merged))
}

/// A path without `.` and `..` segments.
fn without_dots(path: &str) -> String {
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
