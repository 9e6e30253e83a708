//! Reference resolution: `$ref`, `$dynamicRef` and `$recursiveRef`, by identifiers, anchors and
//! JSON pointers, in this document and in the registry.
//!
//! JSON pointers within the current resource need no index of `resources`.

use std::borrow::Cow;

use super::doc::{Doc, LocId, LocationPath, ReadContext, binding};
use super::metaschemas::metaschema;
use super::resources::{
    BYTES_A_UNIT, JsonId, NamedSchema, RECURSIVE_ANCHOR, dialect_of, resolve_uri, resource_id,
};
use crate::fuel;
use crate::spec::json::{Json, push_token, unescape_token};

/// Why a reference cannot be resolved.
pub(super) enum ResolveError {
    /// The document or resource has no such pointer or anchor.
    NotFound,
    /// Neither this document nor the registry has such a resource, and it is not a metaschema.
    NotInRegistry,
}

impl<'a> Doc<'a> {
    /// Resolves a `$ref` of location `from`.
    pub(super) fn resolve(
        &mut self,
        from: LocId,
        reference: &'a str,
    ) -> Result<LocId, ResolveError> {
        let context = self.context(from);
        let key = (context.base, context.scope, reference);
        if let Some(&id) = self.resolved.get(&key) {
            return Ok(id);
        }
        let found = self.resolve_uncached(context, reference)?;
        self.resolved.insert(key, found);
        Ok(found)
    }

    /// A reference to the definition that one without a target probably means: its last name, in
    /// the other place of definitions.
    pub(super) fn similar_reference(&self, reference: &str) -> Option<String> {
        let name = reference.rsplit(['/', '#']).next().filter(|name| !name.is_empty())?;
        let root = self.json(LocId::ROOT);
        let found = ["$defs", "definitions"]
            .into_iter()
            .find(|place| root.get(place).is_some_and(|all| all.get(name).is_some()));
        found.map(|place| format!("#/{place}/{name}"))
    }

    /// As [`Doc::resolve`], without the memo.
    fn resolve_uncached(
        &mut self,
        context: ReadContext,
        reference: &'a str,
    ) -> Result<LocId, ResolveError> {
        let base = context.base;
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let named = if uri.is_empty() { None } else { Some(self.find_resource(base, uri)?) };
        let fragment = percent_decode(fragment).ok_or(ResolveError::NotFound)?;
        let Some(path) = fragment.strip_prefix('/') else {
            let resource_loc = named.map_or(base, |named| self.enter_resource(context, &named));
            return if fragment.is_empty() {
                Ok(resource_loc)
            } else {
                self.resolve_anchor(resource_loc, &fragment)
            };
        };
        let start = named.as_ref().map_or(self.json(base), |named| named.json);
        let mut dialect = dialect_of(start).unwrap_or(context.dialect);
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
            self.enter_resource(context, &NamedSchema { json: found, pointer: below(count) });
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
        let target = self.context(from).base;
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
        let context = self.context(from);
        let bound = binding(&self.scopes[context.scope.index()], anchor);
        let Some(named) = bound.and_then(|at| self.resources.by_id.get(&at)).cloned() else {
            return Ok(target);
        };
        let resource_loc = self.enter_resource(context, &named);
        if anchor == RECURSIVE_ANCHOR {
            Ok(resource_loc)
        } else {
            self.resolve_anchor(resource_loc, anchor)
        }
    }

    /// The location of an anchor of a resource.
    fn resolve_anchor(&mut self, resource: LocId, anchor: &str) -> Result<LocId, ResolveError> {
        let key = JsonId::of(self.json(resource));
        self.complete_index();
        let found = self.resources.anchors.get(&(key, anchor));
        let NamedSchema { json, pointer } = found.cloned().ok_or(ResolveError::NotFound)?;
        Ok(self.intern(json, resource, LocationPath::Absolute(pointer), resource))
    }

    /// Indexes the main document, unless that is done.
    fn complete_index(&mut self) {
        if !self.resources.complete {
            self.index_document(self.json(LocId::ROOT), self.dialect(LocId::ROOT));
        }
    }

    /// The resource with this URI, resolved against the URI of `base`.
    fn find_resource(&mut self, base: LocId, uri: &str) -> Result<NamedSchema<'a>, ResolveError> {
        self.complete_index();
        let base_uri =
            self.resources.uris.get(&JsonId::of(self.json(base))).map_or("", |uri| &**uri);
        let bytes = base_uri.len() + uri.len();
        fuel::spend(bytes / BYTES_A_UNIT).map_err(|_| ResolveError::NotFound)?;
        let joined = resolve_uri(base_uri, uri);
        if let Some(schema) = self.resources.by_uri.get(&*joined) {
            return Ok(schema.clone());
        }
        let supplied = self.registry.get(&joined);
        let (uri, json) =
            supplied.or_else(|| metaschema(&joined)).ok_or(ResolveError::NotInRegistry)?;
        let dialect = dialect_of(json).unwrap_or(self.dialect(base));
        self.resources.add_document(json, uri.to_owned(), format!("{uri}#"), dialect);
        self.resources.by_uri.get(&*joined).cloned().ok_or(ResolveError::NotInRegistry)
    }
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
