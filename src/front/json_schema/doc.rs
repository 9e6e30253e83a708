//! Locations of a schema document: identity, pointers, `$ref` resolution, dialects.

use rustc_hash::FxHashMap;

use crate::spec::json::{Json, Object, push_token, unescape_token};

/// A subschema of the document, or its negation (lowest bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LocId(u32);

impl LocId {
    /// The root schema.
    pub(super) const ROOT: LocId = LocId(0);
    /// The schema `false`, which stands nowhere in particular.
    pub(super) const FALSE: LocId = LocId(2);

    fn new(index: usize) -> LocId {
        LocId((index as u32) << 1)
    }

    fn index(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// The schema that allows exactly what this one does not.
    pub(super) fn negated(self) -> LocId {
        LocId(self.0 ^ 1)
    }

    pub(super) fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Which dialect a schema declares. Without a `$schema` it is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Four,
    Six,
    Seven,
    Newer,
}

/// How a location is reached from its parent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// `/keyword`
    Keyword(&'static str),
    /// `/keyword/name`
    Member(&'static str, &'a str),
    /// `/keyword/index`
    Index(&'static str, usize),
}

struct Loc<'a> {
    json: &'a Json,
    parent: LocId,
    path: Path<'a>,
    /// The schema resource it belongs to: local references resolve against it.
    base: LocId,
}

enum Path<'a> {
    Root,
    Step(Step<'a>),
    /// From the root, as a reference spelt it.
    Absolute(String),
}

/// Why a reference leads nowhere.
pub(super) enum Unresolved {
    Missing,
    Remote,
}

/// A schema document and its interned locations.
pub(super) struct Doc<'a> {
    locs: Vec<Loc<'a>>,
    by_address: FxHashMap<usize, LocId>,
    draft: Draft,
    /// Built on first need: anchors and `$id`s of the document.
    names: Option<FxHashMap<String, (&'a Json, String)>>,
}

/// Keywords whose value is a map of schemas, a list of schemas, a schema.
const MAPS: &[&str] = &["$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"];
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

static FALSE: Json = Json::Bool(false);

fn address(json: &Json) -> usize {
    std::ptr::from_ref(json) as usize
}

impl<'a> Doc<'a> {
    pub(super) fn new(root: &'a Json) -> Doc<'a> {
        let draft = match root.get("$schema").and_then(Json::as_str) {
            Some(uri) if uri.contains("draft-04") || uri.contains("draft-03") => Draft::Four,
            Some(uri) if uri.contains("draft-06") => Draft::Six,
            Some(uri) if uri.contains("draft-07") => Draft::Seven,
            _ => Draft::Newer,
        };
        let mut doc = Doc { locs: Vec::new(), by_address: FxHashMap::default(), draft, names: None };
        for json in [root, &FALSE] {
            let id = LocId::new(doc.locs.len());
            doc.locs.push(Loc { json, parent: id, path: Path::Root, base: LocId::ROOT });
            doc.by_address.insert(address(json), id);
        }
        doc
    }

    pub(super) fn draft(&self) -> Draft {
        self.draft
    }

    pub(super) fn json(&self, loc: LocId) -> &'a Json {
        self.locs[loc.index()].json
    }

    pub(super) fn object(&self, loc: LocId) -> Option<&'a Object> {
        self.json(loc).as_object()
    }

    /// Number of locations met so far.
    pub(super) fn len(&self) -> usize {
        self.locs.len()
    }

    /// The location of a subschema of `parent`.
    pub(super) fn child(&mut self, parent: LocId, step: Step<'a>, json: &'a Json) -> LocId {
        let base = self.locs[parent.index()].base;
        self.intern(json, parent, Path::Step(step), base)
    }

    fn intern(&mut self, json: &'a Json, parent: LocId, path: Path<'a>, base: LocId) -> LocId {
        if let Some(&known) = self.by_address.get(&address(json)) {
            return known;
        }
        let id = LocId::new(self.locs.len());
        let base = if self.names_resource(json) { id } else { base };
        self.locs.push(Loc { json, parent, path, base });
        self.by_address.insert(address(json), id);
        id
    }

    /// The value of the identifier keyword, if it names a resource (and is not just an anchor).
    fn identifier<'j>(&self, json: &'j Json) -> Option<&'j str> {
        let object = json.as_object()?;
        let keyword = if self.draft == Draft::Four { "id" } else { "$id" };
        // Beside a reference, older dialects ignore it.
        if self.draft < Draft::Newer && object.get("$ref").is_some() {
            return None;
        }
        object.get(keyword)?.as_str()
    }

    fn names_resource(&self, json: &Json) -> bool {
        self.identifier(json).is_some_and(|id| !id.starts_with('#'))
    }

    /// JSON pointer of a location.
    pub(super) fn pointer(&self, loc: LocId) -> String {
        let mut steps = Vec::new();
        let mut at = loc;
        let mut out = loop {
            let entry = &self.locs[at.index()];
            match &entry.path {
                Path::Root => break String::new(),
                Path::Absolute(pointer) => break pointer.clone(),
                Path::Step(step) => steps.push(step),
            }
            at = entry.parent;
        };
        for step in steps.into_iter().rev() {
            match step {
                Step::Keyword(keyword) => push_token(&mut out, keyword),
                Step::Member(keyword, name) => {
                    push_token(&mut out, keyword);
                    push_token(&mut out, name);
                }
                Step::Index(keyword, index) => {
                    push_token(&mut out, keyword);
                    push_token(&mut out, &index.to_string());
                }
            }
        }
        out
    }

    /// JSON pointer of a keyword of a location.
    pub(super) fn keyword_pointer(&self, loc: LocId, keyword: &str) -> String {
        let mut out = self.pointer(loc);
        if !keyword.is_empty() {
            push_token(&mut out, keyword);
        }
        out
    }

    /// The location a `$ref` leads to.
    pub(super) fn resolve(&mut self, from: LocId, reference: &str) -> Result<LocId, Unresolved> {
        let base = self.locs[from.index()].base;
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if uri.is_empty() { base } else { self.resource(base, uri)? };
        let fragment = percent_decode(fragment).ok_or(Unresolved::Missing)?;
        if fragment.is_empty() {
            return Ok(base);
        }
        let Some(path) = fragment.strip_prefix('/') else {
            let (json, pointer) = self.named(&format!("{}#{fragment}", base.0))?;
            return Ok(self.intern(json, base, Path::Absolute(pointer), base));
        };
        let (mut json, mut at, mut pointer) = (self.json(base), base, self.pointer(base));
        for token in path.split('/') {
            let token = unescape_token(token);
            json = json.step(&token).ok_or(Unresolved::Missing)?;
            push_token(&mut pointer, &token);
            if self.names_resource(json) {
                at = self.intern(json, at, Path::Absolute(pointer.clone()), at);
            }
        }
        Ok(self.intern(json, at, Path::Absolute(pointer), at))
    }

    /// The location of the resource a reference names: one whose identifier is exactly that, or that joined to the base's.
    fn resource(&mut self, base: LocId, uri: &str) -> Result<LocId, Unresolved> {
        let own = self.identifier(self.json(base)).map(|id| id.split('#').next().unwrap_or_default().to_owned());
        if own.as_deref() == Some(uri) {
            return Ok(base);
        }
        let joined = own.map_or_else(|| uri.to_owned(), |own| join(&own, uri));
        let (json, pointer) = self.named(&joined).map_err(|_| Unresolved::Remote)?;
        Ok(self.intern(json, base, Path::Absolute(pointer), base))
    }

    fn named(&mut self, name: &str) -> Result<(&'a Json, String), Unresolved> {
        if self.names.is_none() {
            let names = self.collect_names();
            self.names = Some(names);
        }
        self.names.as_ref().and_then(|names| names.get(name)).cloned().ok_or(Unresolved::Missing)
    }

    /// All identifiers (absolute) and anchors (`N#anchor`, N being the resource's location) of the document.
    fn collect_names(&mut self) -> FxHashMap<String, (&'a Json, String)> {
        let mut names = FxHashMap::default();
        let root = self.json(LocId::ROOT);
        let mut stack = vec![(root, String::new(), LocId::ROOT, String::new())];
        while let Some((json, pointer, mut base, mut base_uri)) = stack.pop() {
            if let Some(object) = json.as_object() {
                if let Some(id) = self.identifier(json) {
                    let (uri, anchor) = id.split_once('#').unwrap_or((id, ""));
                    if !uri.is_empty() {
                        base_uri = join(&base_uri, uri);
                        base = self.intern(json, base, Path::Absolute(pointer.clone()), base);
                        names.entry(base_uri.clone()).or_insert((json, pointer.clone()));
                    }
                    if !anchor.is_empty() && self.draft < Draft::Newer {
                        names.entry(format!("{}#{anchor}", base.0)).or_insert((json, pointer.clone()));
                    }
                }
                let anchor = object.get("$anchor").or_else(|| object.get("$dynamicAnchor")).and_then(Json::as_str);
                if let Some(anchor) = anchor.filter(|_| self.draft == Draft::Newer) {
                    names.entry(format!("{}#{anchor}", base.0)).or_insert((json, pointer.clone()));
                }
            }
            let mut push = |path: &[&str], value: &'a Json| {
                let mut pointer = pointer.clone();
                path.iter().for_each(|token| push_token(&mut pointer, token));
                stack.push((value, pointer, base, base_uri.clone()));
            };
            // Only where schemas stand: constants and unknown keywords are data.
            for (keyword, value) in json.as_object().into_iter().flat_map(Object::iter) {
                match value {
                    Json::Object(members) if MAPS.contains(&keyword) => {
                        members.iter().for_each(|(name, schema)| push(&[keyword, name], schema));
                    }
                    Json::Array(items) if LISTS.contains(&keyword) => {
                        items.iter().enumerate().for_each(|(i, schema)| push(&[keyword, &i.to_string()], schema));
                    }
                    schema if SCHEMAS.contains(&keyword) => push(&[keyword], schema),
                    _ => {}
                }
            }
        }
        names
    }
}

/// RFC 3986 reference resolution, as far as identifiers inside one document need it (no dot segments).
fn join(base: &str, reference: &str) -> String {
    let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| !scheme.contains('/'));
    if has_scheme || base.is_empty() {
        return reference.to_owned();
    }
    let authority = base.find("://").map_or(0, |i| base[i + 3..].find('/').map_or(base.len(), |j| i + 3 + j));
    if reference.starts_with('/') {
        return format!("{}{reference}", &base[..authority]);
    }
    match base[authority..].rfind('/') {
        Some(slash) => format!("{}{reference}", &base[..=authority + slash]),
        None if authority > 0 => format!("{base}/{reference}"),
        None => reference.to_owned(),
    }
}

fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
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
    String::from_utf8(out).ok()
}
