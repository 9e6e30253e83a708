//! Locations: interned subschemas of a schema document, with JSON pointers, dialects and
//! vocabularies.
//!
//! Every other file names a subschema by its [`LocId`]. One value of the parsed document has one
//! id, so a conjunction of schemas is a sorted list of ids, and memo tables are arrays. A
//! location is made when it is first reached; subschemas that nothing refers to cost nothing.
//!
//! The lowest bit of an id means negation: `not S` has a location without having a place in the
//! document. Negation twice gives the same id back.

use std::rc::Rc;

use smallvec::SmallVec;

use super::super::options::Dialect;
use super::registry::Registry;
use super::resources::{JsonId, NamedSchema, ResourceIndex, dialect_of, resource_id};
use super::vocabulary::{Vocabularies, vocabularies_of};
use crate::fuel;
use crate::hash::{HashMap, IndexSet};
use crate::ids::id;
use crate::spec::json::{Json, Object, push_token, unescape_token};

/// A subschema of the document, or its negation (lowest bit set).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LocId(u32);

impl LocId {
    /// The root schema.
    pub(crate) const ROOT: LocId = LocId(0);
    /// The schema `false`. It is part of no document.
    pub(crate) const FALSE: LocId = LocId(2);
    /// The negation of [`LocId::FALSE`]: the schema `true`.
    pub(crate) const TRUE: LocId = LocId(3);

    /// The location with this index, not negated.
    pub(crate) fn new(index: usize) -> LocId {
        LocId((index as u32) << 1)
    }

    /// Index into a table of locations, whether negated or not.
    pub(crate) fn index(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// The negation of this schema.
    pub(crate) fn negated(self) -> LocId {
        LocId(self.0 ^ 1)
    }

    /// Whether this is the negation of a subschema.
    pub(crate) fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A short list of locations.
pub(crate) type Locs = SmallVec<[LocId; 4]>;

/// The last step from a parent to a location.
#[derive(Clone, Copy, Debug)]
pub(super) enum PointerStep<'a> {
    /// `/keyword`
    Keyword(&'static str),
    /// `/keyword/name`
    Member(&'static str, &'a str),
    /// `/keyword/index`
    Index(&'static str, usize),
}

/// What a location allows.
#[derive(Clone)]
pub(super) enum LocationKind<'a> {
    /// The values of a subschema.
    Schema(&'a Json),
    /// Exactly this value: an element or member of a negated `enum` or `const`.
    Constant(&'a Json),
    /// Every value that one of these locations allows.
    Union(Rc<[LocId]>),
}

/// A subschema, or a synthetic location: where it is and how it is read.
pub(super) struct Location<'a> {
    pub(crate) kind: LocationKind<'a>,
    pub(super) parent: LocId,
    pub(crate) path: LocationPath<'a>,
    /// Nesting depth in its document; the root has 1.
    pub(crate) depth: u32,
    pub(super) context: ReadContext,
}

/// How a schema is read. It is the same everywhere in a schema resource, apart from the scope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadContext {
    /// The schema resource. Local references resolve against it.
    pub(super) base: LocId,
    /// The dynamic scope in which references resolve.
    pub(super) scope: DynamicScopeId,
    pub(super) dialect: Dialect,
    pub(super) vocabularies: Vocabularies,
}

/// How the pointer of a location is composed.
pub(super) enum LocationPath<'a> {
    /// The root of the document.
    Root,
    /// A synthetic location. Errors point to its parent.
    Parent,
    /// One step from the parent.
    Step(PointerStep<'a>),
    /// From the parent: a JSON pointer as a reference spells it, without the first slash.
    Below(&'a str),
    /// From the root, as a reference spells it. In another document, the URI comes first.
    Absolute(String),
}

impl LocationPath<'_> {
    /// The nesting depth of the location, given that of its parent.
    pub(crate) fn depth(&self, parent: u32) -> u32 {
        let slashes = |pointer: &str| pointer.bytes().filter(|&byte| byte == b'/').count() as u32;
        match self {
            LocationPath::Root => 1,
            LocationPath::Parent => parent,
            LocationPath::Step(PointerStep::Keyword(_)) => parent + 1,
            LocationPath::Step(PointerStep::Member(..) | PointerStep::Index(..)) => parent + 2,
            LocationPath::Below(pointer) => parent + 1 + slashes(pointer),
            LocationPath::Absolute(pointer) => {
                1 + slashes(pointer.rsplit('#').next().unwrap_or_default())
            }
        }
    }
}

id! {
    /// Index into [`Doc::scopes`].
    pub(crate) DynamicScopeId
}

impl DynamicScopeId {
    /// The scope without dynamic anchors.
    const EMPTY: DynamicScopeId = DynamicScopeId::from_raw(0);
}

/// The dynamic scope of a location: for each dynamic anchor, the outermost entered resource that
/// declares it; sorted.
pub(super) type DynamicScope<'a> = Vec<(&'a str, JsonId)>;

/// A schema document and its interned locations.
pub(crate) struct Doc<'a> {
    /// By index.
    pub(super) locs: Vec<Location<'a>>,
    /// Locations of subschemas, by dynamic scope.
    by_schema: HashMap<(JsonId, DynamicScopeId), LocId>,
    /// Locations of constants.
    values: HashMap<JsonId, LocId>,
    /// Locations of disjunctions.
    unions: HashMap<Rc<[LocId]>, LocId>,
    /// Documents that references may lead to.
    pub(crate) registry: &'a Registry,
    /// Identifiers and anchors.
    pub(super) resources: ResourceIndex<'a>,
    /// Memo of reference resolution, by base, dynamic scope and text.
    pub(crate) resolved: HashMap<(LocId, DynamicScopeId, &'a str), LocId>,
    /// Interned dynamic scopes.
    pub(super) scopes: IndexSet<DynamicScope<'a>>,
    /// Whether dynamic scopes are tracked: [`Features::dynamic`](super::Features).
    pub(super) dynamic: bool,
}

/// Fuel of a binding in a new dynamic scope. Each scope has a list of its own.
const FUEL_PER_BINDING: usize = 16;

/// The resource to which a dynamic scope binds an anchor.
pub(super) fn binding(scope: &[(&str, JsonId)], anchor: &str) -> Option<JsonId> {
    let found = scope.binary_search_by_key(&anchor, |&(name, _)| name).ok()?;
    Some(scope[found].1)
}

/// Initial capacity, in locations.
const INITIAL_LOCATIONS: usize = 28;

static FALSE: Json = Json::Bool(false);
static TRUE: Json = Json::Bool(true);

/// Whether a schema is `true` or `{}`.
pub(crate) fn is_trivially_true(schema: &Json) -> bool {
    match schema {
        Json::Bool(allows) => *allows,
        Json::Object(object) => object.is_empty(),
        _ => false,
    }
}

impl<'a> Doc<'a> {
    /// Interns the root. `dialect` applies if the document declares none. `dynamic`: track dynamic
    /// scopes.
    pub(crate) fn new(
        root: &'a Json,
        registry: &'a Registry,
        dialect: Dialect,
        dynamic: bool,
    ) -> Doc<'a> {
        let mut doc = Doc {
            locs: Vec::with_capacity(INITIAL_LOCATIONS),
            by_schema: HashMap::with_capacity_and_hasher(INITIAL_LOCATIONS, Default::default()),
            values: HashMap::default(),
            unions: HashMap::default(),
            registry,
            resources: ResourceIndex::default(),
            resolved: HashMap::default(),
            scopes: IndexSet::from_iter([DynamicScope::new()]),
            dynamic,
        };
        let dialect = dialect_of(root).unwrap_or(dialect);
        let vocabularies = vocabularies_of(registry, root, dialect, Vocabularies::STANDARD);
        let mut scope = DynamicScopeId::EMPTY;
        if dynamic {
            doc.index_document(root, dialect);
            scope = doc.enter_dynamic_scope(DynamicScopeId::EMPTY, root);
        }
        let root_context = ReadContext { base: LocId::ROOT, scope, dialect, vocabularies };
        doc.add(LocationKind::Schema(root), None, LocationPath::Root, root_context);
        let context = ReadContext { scope: DynamicScopeId::EMPTY, ..root_context };
        doc.add(LocationKind::Schema(&FALSE), None, LocationPath::Root, context);
        doc
    }

    /// Adds a location below `parent`, or the root of a document.
    fn add(
        &mut self,
        kind: LocationKind<'a>,
        parent: Option<LocId>,
        path: LocationPath<'a>,
        context: ReadContext,
    ) -> LocId {
        let id = self.next_id();
        if let LocationKind::Schema(json) = kind {
            self.by_schema.insert((JsonId::of(json), context.scope), id);
        }
        let depth = path.depth(parent.map_or(1, |parent| self.locs[parent.index()].depth));
        let parent = parent.unwrap_or(id);
        self.locs.push(Location { kind, parent, path, depth, context });
        id
    }

    /// The id of the location that is added next.
    fn next_id(&self) -> LocId {
        LocId::new(self.locs.len())
    }

    /// How a location is read.
    pub(super) fn context(&self, loc: LocId) -> ReadContext {
        self.locs[loc.index()].context
    }

    /// The dialect of a location.
    pub(crate) fn dialect(&self, loc: LocId) -> Dialect {
        self.context(loc).dialect
    }

    /// The nesting depth of a location.
    pub(crate) fn depth(&self, loc: LocId) -> usize {
        self.locs[loc.index()].depth as usize
    }

    /// The vocabularies of a location.
    pub(super) fn vocabularies(&self, loc: LocId) -> Vocabularies {
        self.context(loc).vocabularies
    }

    /// The schema at a location; `true` for a synthetic location.
    pub(crate) fn json(&self, loc: LocId) -> &'a Json {
        match self.locs[loc.index()].kind {
            LocationKind::Schema(json) => json,
            _ => &TRUE,
        }
    }

    /// The keywords at a location, if it is a schema object.
    pub(crate) fn object(&self, loc: LocId) -> Option<&'a Object> {
        self.json(loc).as_object()
    }

    /// Whether equal schemas at both locations mean the same.
    pub(crate) fn read_alike(&self, a: LocId, b: LocId) -> bool {
        self.context(a) == self.context(b)
    }

    /// Whether a location has no schema in a document (a constant or a disjunction).
    pub(crate) fn is_synthetic(&self, loc: LocId) -> bool {
        !matches!(self.locs[loc.index()].kind, LocationKind::Schema(_))
    }

    /// Whether a location is the schema `true` or `{}`, or the negation of `false`.
    pub(crate) fn is_always_true(&self, loc: LocId) -> bool {
        match self.locs[loc.index()].kind {
            LocationKind::Schema(json) if loc.is_negated() => *json == Json::Bool(false),
            LocationKind::Schema(json) => is_trivially_true(json),
            _ => false,
        }
    }

    /// The only value that a synthetic location allows, if it allows one.
    pub(crate) fn constant(&self, loc: LocId) -> Option<&'a Json> {
        match self.locs[loc.index()].kind {
            LocationKind::Constant(json) => Some(json),
            _ => None,
        }
    }

    /// The operands of a synthetic disjunction.
    pub(crate) fn union_operands(&self, loc: LocId) -> Option<Rc<[LocId]>> {
        match &self.locs[loc.index()].kind {
            LocationKind::Union(parts) => Some(parts.clone()),
            _ => None,
        }
    }

    /// The number of interned locations.
    pub(crate) fn len(&self) -> usize {
        self.locs.len()
    }

    /// The location of a subschema of `parent`.
    pub(super) fn child(&mut self, parent: LocId, step: PointerStep<'a>, json: &'a Json) -> LocId {
        self.intern(json, parent, LocationPath::Step(step), self.context(parent).base)
    }

    /// Interns the location that allows exactly this value. Errors about it point to `parent`.
    pub(crate) fn constant_location(&mut self, parent: LocId, json: &'a Json) -> LocId {
        if let Some(&id) = self.values.get(&JsonId::of(json)) {
            return id;
        }
        let id = self.synthetic(parent, LocationKind::Constant(json));
        self.values.insert(JsonId::of(json), id);
        id
    }

    /// Interns the disjunction of these locations.
    pub(crate) fn union_of(&mut self, parent: LocId, parts: Vec<LocId>) -> LocId {
        let parts: Rc<[LocId]> = parts.into();
        if let Some(&id) = self.unions.get(&parts) {
            return id;
        }
        let id = self.synthetic(parent, LocationKind::Union(parts.clone()));
        self.unions.insert(parts, id);
        id
    }

    /// The location of a subschema of `parent`, if it has been reached.
    pub(super) fn reached(&self, parent: LocId, json: &Json) -> Option<LocId> {
        self.reached_in(json, self.context(parent).scope)
    }

    /// The location of a subschema in a dynamic scope, if it has been reached.
    fn reached_in(&self, json: &Json, scope: DynamicScopeId) -> Option<LocId> {
        self.by_schema.get(&(JsonId::of(json), scope)).copied()
    }

    /// The location around a location; the root of a document is its own.
    pub(super) fn parent(&self, loc: LocId) -> LocId {
        self.locs[loc.index()].parent
    }

    /// The location and the keyword that hold a location; the keyword is empty if that is unknown.
    pub(super) fn holder(&self, loc: LocId) -> (LocId, &'static str) {
        let location = &self.locs[loc.index()];
        match location.path {
            LocationPath::Step(PointerStep::Keyword(keyword)) => (location.parent, keyword),
            _ => (loc, ""),
        }
    }

    /// The innermost schema object at or around a location; the root if there is none.
    pub(super) fn enclosing_object(&self, mut loc: LocId) -> LocId {
        if loc.is_negated() {
            loc = loc.negated();
        }
        while self.object(loc).is_none() && self.parent(loc) != loc {
            loc = self.parent(loc);
        }
        if self.object(loc).is_some() { loc } else { LocId::ROOT }
    }

    /// Adds a location without a place in a document.
    fn synthetic(&mut self, parent: LocId, kind: LocationKind<'a>) -> LocId {
        self.add(kind, Some(parent), LocationPath::Parent, self.context(parent))
    }

    /// The location of a subschema: the known one (in its dynamic scope), or a new one. `base` is
    /// the resource that contains it.
    pub(super) fn intern(
        &mut self,
        json: &'a Json,
        parent: LocId,
        path: LocationPath<'a>,
        base: LocId,
    ) -> LocId {
        let mut context = ReadContext { base, ..self.context(base) };
        if !self.dynamic
            && let Some(id) = self.reached_in(json, context.scope)
        {
            return id;
        }
        if let Json::Object(object) = json
            && object.iter().any(|(name, _)| matches!(name, "$id" | "id"))
            && resource_id(json, dialect_of(json).unwrap_or(context.dialect)).is_some()
        {
            context = self.resource_context(context, json);
        }
        if self.dynamic
            && let Some(id) = self.reached_in(json, context.scope)
        {
            return id;
        }
        self.add(LocationKind::Schema(json), Some(parent), path, context)
    }

    /// The location of a resource that is entered from another context.
    pub(super) fn enter_resource(
        &mut self,
        from: ReadContext,
        resource: &NamedSchema<'a>,
    ) -> LocId {
        let json = resource.json;
        if JsonId::of(json) == JsonId::of(self.json(from.base)) {
            return from.base;
        }
        let context = self.resource_context(from, json);
        if let Some(id) = self.reached_in(json, context.scope) {
            return id;
        }
        let path = LocationPath::Absolute(resource.pointer.clone());
        self.add(LocationKind::Schema(json), None, path, context)
    }

    /// The context of a resource that is entered from another one, and that is added next.
    fn resource_context(&mut self, from: ReadContext, json: &'a Json) -> ReadContext {
        let dialect = dialect_of(json).unwrap_or(from.dialect);
        let vocabularies = vocabularies_of(self.registry, json, dialect, from.vocabularies);
        let scope =
            if self.dynamic { self.enter_dynamic_scope(from.scope, json) } else { from.scope };
        ReadContext { base: self.next_id(), scope, dialect, vocabularies }
    }

    /// Indexes the identifiers and anchors of the main document.
    pub(super) fn index_document(&mut self, root: &'a Json, dialect: Dialect) {
        self.resources.complete = true;
        self.resources.add_document(root, String::new(), String::new(), dialect);
    }

    /// The dynamic scope inside a resource that is entered from `scope`; without fuel, `scope`.
    pub(super) fn enter_dynamic_scope(
        &mut self,
        scope: DynamicScopeId,
        resource: &Json,
    ) -> DynamicScopeId {
        let Some(anchors) = self.resources.dynamic.get(&JsonId::of(resource)) else { return scope };
        let outer = &self.scopes[scope.index()];
        let more = anchors.iter().filter(|&anchor| binding(outer, anchor).is_none());
        let more: Vec<_> = more.map(|&anchor| (anchor, JsonId::of(resource))).collect();
        let size = outer.len() + more.len();
        if more.is_empty() || fuel::spend(FUEL_PER_BINDING * size).is_err() {
            return scope;
        }
        let mut bindings = [&outer[..], &more].concat();
        // Both parts are sorted, or nearly: a stable sort merges them.
        bindings.sort();
        bindings.dedup();
        DynamicScopeId::new(self.scopes.insert_full(bindings).0)
    }

    /// The last step of a location's pointer, as the name of its rule.
    pub(crate) fn rule_name(&self, loc: LocId) -> &str {
        match &self.locs[loc.index()].path {
            LocationPath::Root | LocationPath::Parent => "value",
            LocationPath::Step(
                PointerStep::Keyword(name)
                | PointerStep::Member(_, name)
                | PointerStep::Index(name, _),
            ) => name,
            LocationPath::Below(pointer) => pointer.rsplit('/').next().unwrap_or_default(),
            LocationPath::Absolute(pointer) => pointer.rsplit('/').next().unwrap_or_default(),
        }
    }

    /// The JSON pointer of a location, for error messages.
    pub(crate) fn pointer(&self, loc: LocId) -> String {
        let mut steps = Vec::new();
        let mut current = loc;
        let mut out = loop {
            let entry = &self.locs[current.index()];
            match &entry.path {
                LocationPath::Root => break String::new(),
                LocationPath::Absolute(pointer) => break pointer.clone(),
                LocationPath::Parent => {}
                path => steps.push(path),
            }
            current = entry.parent;
        };
        for path in steps.into_iter().rev() {
            match path {
                LocationPath::Step(PointerStep::Keyword(keyword)) => push_token(&mut out, keyword),
                LocationPath::Step(PointerStep::Member(keyword, name)) => {
                    push_token(&mut out, keyword);
                    push_token(&mut out, name);
                }
                LocationPath::Step(PointerStep::Index(keyword, index)) => {
                    push_token(&mut out, keyword);
                    push_token(&mut out, &index.to_string());
                }
                LocationPath::Below(path) => {
                    path.split('/').for_each(|token| push_token(&mut out, &unescape_token(token)))
                }
                LocationPath::Root | LocationPath::Parent | LocationPath::Absolute(_) => {}
            }
        }
        out
    }

    /// The JSON pointer of a keyword of a location. An empty keyword stands for the location.
    pub(crate) fn keyword_pointer(&self, loc: LocId, keyword: &str) -> String {
        let mut out = self.pointer(loc);
        if !keyword.is_empty() {
            push_token(&mut out, keyword);
        }
        out
    }
}
