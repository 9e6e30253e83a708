//! Locations of a schema document: identity, pointers, `$ref` resolution, dialects.

use std::rc::Rc;

use super::keywords::allows_all;
use super::resolve::Names;
use super::vocabulary::Vocabularies;
use super::{Dialect as Draft, Registry};
use crate::hash::HashMap;
use crate::spec::json::{Json, Object, push_token, unescape_token};

/// A subschema of the document, or its negation (lowest bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LocId(u32);

impl LocId {
    /// The root schema.
    pub(super) const ROOT: LocId = LocId(0);
    /// The schema `false`, which stands nowhere in particular.
    pub(super) const FALSE: LocId = LocId(2);
    /// Its negation.
    pub(super) const TRUE: LocId = LocId(3);

    pub(super) fn new(index: usize) -> LocId {
        LocId((index as u32) << 1)
    }

    /// Of locations and negations together.
    pub(super) fn number(self) -> usize {
        self.0 as usize
    }

    pub(super) fn index(self) -> usize {
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

/// What stands at a location.
#[derive(Clone)]
pub(super) enum Kind<'a> {
    Schema(&'a Json),
    /// Not a schema: the one value that is allowed.
    Value(&'a Json),
    /// Any of these.
    AnyOf(Rc<[LocId]>),
}

pub(super) struct Loc<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) parent: LocId,
    pub(super) path: Path<'a>,
    /// Its `$ref`.
    pub(super) reference: Option<&'a str>,
    /// The schema resource it belongs to: local references resolve against it.
    pub(super) base: LocId,
    pub(super) scope: Scope,
    pub(super) draft: Draft,
    /// How deep it is nested in its document, the root being 1.
    pub(super) depth: u32,
    pub(super) vocabularies: Vocabularies,
}

pub(super) enum Path<'a> {
    Root,
    /// It is no part of a document; errors point to its parent.
    Parent,
    Step(Step<'a>),
    /// From the parent, a JSON pointer as it stands in a reference, without its first slash.
    Below(&'a str),
    /// From the root, as a reference spelt it; in another document with its URI before it.
    Absolute(String),
}

impl Path<'_> {
    /// The depth of what it leads to from a parent of this depth.
    pub(super) fn depth(&self, parent: u32) -> u32 {
        let slashes = |pointer: &str| pointer.bytes().filter(|&byte| byte == b'/').count() as u32;
        match self {
            Path::Root => 1,
            Path::Parent => parent,
            Path::Step(Step::Keyword(_)) => parent + 1,
            Path::Step(Step::Member(..) | Step::Index(..)) => parent + 2,
            Path::Below(pointer) => parent + 1 + slashes(pointer),
            Path::Absolute(pointer) => 1 + slashes(pointer.rsplit('#').next().unwrap_or_default()),
        }
    }
}

/// The dynamic anchors that the resources entered on the way declare, as an index into [`Doc::scopes`].
pub(super) type Scope = u32;

/// For each dynamic anchor the outermost resource (its address) that declares it.
pub(super) type Bindings<'a> = Vec<(&'a str, usize)>;

/// A schema document and its interned locations.
pub(super) struct Doc<'a> {
    pub(super) locs: Vec<Loc<'a>>,
    pub(super) by_address: HashMap<(usize, Scope), LocId>,
    values: HashMap<usize, LocId>,
    unions: HashMap<Rc<[LocId]>, LocId>,
    pub(super) remotes: &'a Registry,
    pub(super) names: Names<'a>,
    /// Where references lead, by base, scope and text.
    pub(super) resolved: HashMap<(LocId, Scope, &'a str), LocId>,
    pub(super) scopes: Vec<Bindings<'a>>,
    /// Whether dynamic references occur, so that scopes are kept.
    pub(super) dynamic: bool,
}

/// Locations that there is room for from the beginning.
const FIRST: usize = 28;

static FALSE: Json = Json::Bool(false);
static TRUE: Json = Json::Bool(true);

pub(super) fn address(json: &Json) -> usize {
    std::ptr::from_ref(json) as usize
}

pub(super) fn draft_of(json: &Json) -> Option<Draft> {
    let uri = json.get("$schema")?.as_str()?;
    Some(match uri.strip_suffix('#').unwrap_or(uri) {
        // As they are mostly written.
        "http://json-schema.org/draft-04/schema" => Draft::Draft4,
        "http://json-schema.org/draft-06/schema" => Draft::Draft6,
        "http://json-schema.org/draft-07/schema" => Draft::Draft7,
        "https://json-schema.org/draft/2020-12/schema" => Draft::Draft202012,
        _ if uri.contains("draft-04") || uri.contains("draft-03") => Draft::Draft4,
        _ if uri.contains("draft-06") => Draft::Draft6,
        _ if uri.contains("draft-07") => Draft::Draft7,
        _ if uri.contains("2019-09") => Draft::Draft201909,
        _ => Draft::Draft202012,
    })
}

/// The value of the identifier keyword.
pub(super) fn identifier(json: &Json, draft: Draft) -> Option<&str> {
    let object = json.as_object()?;
    let id = object.get(if draft == Draft::Draft4 { "id" } else { "$id" })?.as_str()?;
    // Beside a reference, older dialects ignore it.
    (draft > Draft::Draft7 || object.get("$ref").is_none()).then_some(id)
}

/// The value of `$ref`.
pub(super) fn reference_of(json: &Json) -> Option<&str> {
    json.as_object()?.iter().find(|(name, _)| *name == "$ref")?.1.as_str()
}

/// The identifier, if it names a resource (and is not just an anchor).
pub(super) fn resource_id(json: &Json, draft: Draft) -> Option<&str> {
    identifier(json, draft).filter(|id| !id.starts_with('#'))
}

impl<'a> Doc<'a> {
    /// `dialect` is that of a document that declares none; `dynamic`: whether dynamic references occur.
    pub(super) fn new(
        root: &'a Json,
        remotes: &'a Registry,
        dialect: Draft,
        dynamic: bool,
    ) -> Doc<'a> {
        let mut doc = Doc {
            locs: Vec::with_capacity(FIRST),
            by_address: HashMap::with_capacity_and_hasher(FIRST, Default::default()),
            values: HashMap::default(),
            unions: HashMap::default(),
            remotes,
            names: Names::default(),
            resolved: HashMap::default(),
            scopes: vec![Vec::new()],
            dynamic,
        };
        let draft = draft_of(root).unwrap_or(dialect);
        let vocabularies = doc.vocabularies_of(root, draft, Vocabularies::STANDARD);
        let mut scope = 0;
        if dynamic {
            doc.look_at(root, draft);
            scope = doc.enter(0, root);
        }
        for (json, scope) in [(root, scope), (&FALSE, 0)] {
            let id = LocId::new(doc.locs.len());
            let kind = Kind::Schema(json);
            let reference = reference_of(json);
            let (path, base) = (Path::Root, LocId::ROOT);
            doc.locs.push(Loc {
                kind,
                parent: id,
                path,
                reference,
                base,
                scope,
                draft,
                depth: 1,
                vocabularies,
            });
            doc.by_address.insert((address(json), scope), id);
        }
        doc
    }

    /// The dialect of a location.
    pub(super) fn draft(&self, loc: LocId) -> Draft {
        self.locs[loc.index()].draft
    }

    /// How deep a location is nested.
    pub(super) fn depth(&self, loc: LocId) -> usize {
        self.locs[loc.index()].depth as usize
    }

    /// The vocabularies of a location.
    pub(super) fn vocabularies(&self, loc: LocId) -> Vocabularies {
        self.locs[loc.index()].vocabularies
    }

    /// The schema at a location; `true` for one that is no part of a document.
    pub(super) fn json(&self, loc: LocId) -> &'a Json {
        match self.locs[loc.index()].kind {
            Kind::Schema(json) => json,
            _ => &TRUE,
        }
    }

    pub(super) fn object(&self, loc: LocId) -> Option<&'a Object> {
        self.json(loc).as_object()
    }

    pub(super) fn is_synthetic(&self, loc: LocId) -> bool {
        !matches!(self.locs[loc.index()].kind, Kind::Schema(_))
    }

    /// Whether a location is the schema `true` or `{}`.
    pub(super) fn allows_all(&self, loc: LocId) -> bool {
        matches!(self.locs[loc.index()].kind, Kind::Schema(json) if allows_all(json))
    }

    /// As [`Doc::allows_all`], of negated ones too.
    pub(super) fn is_any(&self, loc: LocId) -> bool {
        match self.locs[loc.index()].kind {
            Kind::Schema(json) if loc.is_negated() => *json == Json::Bool(false),
            _ => !loc.is_negated() && self.allows_all(loc),
        }
    }

    /// The value a location allows, if it is no schema.
    pub(super) fn constant(&self, loc: LocId) -> Option<&'a Json> {
        match self.locs[loc.index()].kind {
            Kind::Value(json) => Some(json),
            _ => None,
        }
    }

    /// The locations of which any may hold, if this is not a schema.
    pub(super) fn union(&self, loc: LocId) -> Option<Rc<[LocId]>> {
        match &self.locs[loc.index()].kind {
            Kind::AnyOf(parts) => Some(parts.clone()),
            _ => None,
        }
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

    /// The location that allows exactly this value. Errors about it point to `parent`.
    pub(super) fn value(&mut self, parent: LocId, json: &'a Json) -> LocId {
        if let Some(&known) = self.values.get(&address(json)) {
            return known;
        }
        let id = self.synthetic(parent, Kind::Value(json));
        self.values.insert(address(json), id);
        id
    }

    /// The location that allows what any of these does.
    pub(super) fn any_of(&mut self, parent: LocId, parts: Vec<LocId>) -> LocId {
        let parts: Rc<[LocId]> = parts.into();
        if let Some(&known) = self.unions.get(&parts) {
            return known;
        }
        let id = self.synthetic(parent, Kind::AnyOf(parts.clone()));
        self.unions.insert(parts, id);
        id
    }

    fn synthetic(&mut self, parent: LocId, kind: Kind<'a>) -> LocId {
        let id = LocId::new(self.locs.len());
        let Loc { base, scope, draft, depth, vocabularies, .. } = self.locs[parent.index()];
        let path = Path::Parent;
        self.locs.push(Loc {
            kind,
            parent,
            path,
            reference: None,
            base,
            scope,
            draft,
            depth,
            vocabularies,
        });
        id
    }

    pub(super) fn intern(
        &mut self,
        json: &'a Json,
        parent: LocId,
        path: Path<'a>,
        base: LocId,
    ) -> LocId {
        let Loc { mut scope, mut draft, mut vocabularies, .. } = self.locs[base.index()];
        if !self.dynamic
            && let Some(&known) = self.by_address.get(&(address(json), scope))
        {
            return known;
        }
        let mut own_resource = false;
        if let Json::Object(object) = json
            && object.iter().any(|(name, _)| matches!(name, "$id" | "id"))
            && resource_id(json, draft_of(json).unwrap_or(draft)).is_some()
        {
            own_resource = true;
            draft = draft_of(json).unwrap_or(draft);
            vocabularies = self.vocabularies_of(json, draft, vocabularies);
            if self.dynamic {
                scope = self.enter(scope, json);
            }
        }
        if self.dynamic
            && let Some(&known) = self.by_address.get(&(address(json), scope))
        {
            return known;
        }
        let id = LocId::new(self.locs.len());
        let base = if own_resource { id } else { base };
        let reference = reference_of(json);
        let depth = path.depth(self.locs[parent.index()].depth);
        let kind = Kind::Schema(json);
        self.locs.push(Loc {
            kind,
            parent,
            path,
            reference,
            base,
            scope,
            draft,
            depth,
            vocabularies,
        });
        self.by_address.insert((address(json), scope), id);
        id
    }

    /// The scope inside a resource.
    pub(super) fn enter(&mut self, scope: Scope, resource: &Json) -> Scope {
        let Some(anchors) = self.names.dynamic.get(&address(resource)) else { return scope };
        let mut bindings = self.scopes[scope as usize].clone();
        for &anchor in anchors {
            if !bindings.iter().any(|(name, _)| *name == anchor) {
                bindings.push((anchor, address(resource)));
            }
        }
        bindings.sort_unstable();
        let known = self.scopes.iter().position(|other| *other == bindings);
        known.unwrap_or_else(|| {
            self.scopes.push(bindings);
            self.scopes.len() - 1
        }) as Scope
    }

    /// The last step to a location, for the names of rules.
    pub(super) fn short(&self, loc: LocId) -> &str {
        match &self.locs[loc.index()].path {
            Path::Root | Path::Parent => "value",
            Path::Step(Step::Keyword(name) | Step::Member(_, name) | Step::Index(name, _)) => name,
            Path::Below(pointer) => pointer.rsplit('/').next().unwrap_or_default(),
            Path::Absolute(pointer) => pointer.rsplit('/').next().unwrap_or_default(),
        }
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
                Path::Parent => {}
                path => steps.push(path),
            }
            at = entry.parent;
        };
        for path in steps.into_iter().rev() {
            match path {
                Path::Step(Step::Keyword(keyword)) => push_token(&mut out, keyword),
                Path::Step(Step::Member(keyword, name)) => {
                    push_token(&mut out, keyword);
                    push_token(&mut out, name);
                }
                Path::Step(Step::Index(keyword, index)) => {
                    push_token(&mut out, keyword);
                    push_token(&mut out, &index.to_string());
                }
                Path::Below(path) => {
                    path.split('/').for_each(|token| push_token(&mut out, &unescape_token(token)))
                }
                Path::Root | Path::Parent | Path::Absolute(_) => {}
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
}
