//! One location's keywords: what they say by themselves, and which other schemas they bring in.

use std::rc::Rc;

use super::SchemaErrorReason as Reason;
use super::decimal::Decimal;
use super::doc::{LocId, Step};
use super::facets::{
    ArrayPart, Bound, Contains, Covers, Facets, ObjectPart, PatternUse, Types, Unenforced, common,
    least,
};
use super::normalize::Normalizer;
use super::resolve::Unresolved;
use super::same::is_annotation;
use super::{Dialect as Draft, Formats, MemberOrder, format};
use crate::front::diagnostic::similar;
use crate::ir::Members;
use crate::spec::json::{Json, Object};

/// What a location says.
pub(super) struct Said<'a> {
    /// Its own assertions.
    pub(super) facets: Facets<'a>,
    /// Schemas that hold too.
    pub(super) all: Vec<LocId>,
    /// Of each list at least one holds.
    pub(super) any: Vec<(&'static str, Vec<LocId>)>,
    /// Of each list exactly one holds.
    pub(super) one: Vec<Vec<LocId>>,
    pub(super) cases: Vec<Case<'a>>,
    /// What properties and elements that nothing else evaluates satisfy.
    pub(super) unevaluated_properties: Option<LocId>,
    pub(super) unevaluated_items: Option<LocId>,
}

/// A condition with consequences.
pub(super) enum Case<'a> {
    /// `if`, `then`, `else`.
    If { condition: LocId, then: Option<LocId>, otherwise: Option<LocId> },
    /// If the member `trigger` is there, so are those named, and the schema holds.
    Dependent { trigger: &'a str, names: Vec<&'a str>, schema: Option<LocId> },
}

/// Whether a dialect has a keyword. Where it does not, the keyword is an annotation.
fn applies(keyword: &str, draft: Draft) -> bool {
    match keyword {
        "const" | "contains" | "propertyNames" => draft >= Draft::Draft6,
        "if" => draft >= Draft::Draft7,
        "dependentRequired" | "dependentSchemas" | "unevaluatedProperties" | "unevaluatedItems" => {
            draft >= Draft::Draft201909
        }
        "$recursiveRef" => draft == Draft::Draft201909,
        "$dynamicRef" => draft == Draft::Draft202012,
        "extends" | "disallow" | "divisibleBy" => draft == Draft::Draft4,
        _ => true,
    }
}

impl<'a> Normalizer<'a> {
    /// Reads the keywords of a schema object.
    pub(super) fn keywords(&mut self, loc: LocId, object: &'a Object) -> Said<'a> {
        let mut said = Said {
            facets: Facets::any(),
            all: Vec::new(),
            any: Vec::new(),
            one: Vec::new(),
            cases: Vec::new(),
            unevaluated_properties: None,
            unevaluated_items: None,
        };
        let draft = self.doc.draft(loc);
        if let (Some(reference), true) = (object.get("$ref"), draft < Draft::Draft201909) {
            // These dialects ignore everything beside a reference.
            self.reference(loc, reference, &mut said);
            return said;
        }
        let vocabularies = self.doc.vocabularies(loc);
        for (name, value) in object.iter() {
            if applies(name, draft) && vocabularies.have(name) {
                self.keyword(loc, object, (name, value), &mut said);
            }
        }
        if vocabularies.have("properties") {
            self.members(loc, object, &mut said);
            self.elements(loc, object, &mut said);
        }
        said.facets.settle();
        said
    }

    fn keyword(
        &mut self,
        loc: LocId,
        object: &'a Object,
        (name, value): (&'a str, &'a Json),
        said: &mut Said<'a>,
    ) {
        let facets = &mut said.facets;
        match name {
            "type" => {
                let types = self.types(loc, value);
                facets.types = facets.types.and(types);
            }
            "enum" => match value.as_array() {
                Some([]) => {
                    self.conflict(loc, "enum", "the list is empty, so no value is one of it");
                    facets.types = Types::NONE;
                }
                Some(values) => self.values(loc, facets, values.iter().collect()),
                None => self.malformed(loc, "enum", "must be an array"),
            },
            "const" => self.values(loc, facets, vec![value]),
            "minLength" => {
                facets.string.min = facets.string.min.max(self.count(loc, "minLength", value))
            }
            "maxLength" => {
                facets.string.max =
                    least(facets.string.max, Some(self.count(loc, "maxLength", value)))
            }
            "minItems" => {
                facets.array.min = facets.array.min.max(self.count(loc, "minItems", value))
            }
            "maxItems" => {
                facets.array.max = least(facets.array.max, Some(self.count(loc, "maxItems", value)))
            }
            "minProperties" => {
                facets.object.min = facets.object.min.max(self.count(loc, "minProperties", value))
            }
            "maxProperties" => {
                facets.object.max =
                    least(facets.object.max, Some(self.count(loc, "maxProperties", value)));
            }
            "pattern" => match value.as_str() {
                Some(source) => {
                    let pattern = PatternUse { source, negated: false, loc, keyword: "pattern" };
                    if self.pattern(&pattern).is_some() {
                        facets.string.patterns.push(pattern);
                    } else {
                        unenforced(
                            facets,
                            Types::STRING,
                            loc,
                            "pattern",
                            "not a regular expression of automata",
                        );
                    }
                }
                None => self.malformed(loc, "pattern", "must be a string"),
            },
            "format" => self.format(loc, value, facets),
            "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" | "multipleOf" => {
                self.number_keyword(loc, object, (name, value), facets);
            }
            "required" => match self.names(value) {
                Some(names) => facets.object.required = names,
                None if matches!(value, Json::Bool(_)) => {
                    let what = "must be an array of strings: name the member in the `required` of its object";
                    self.malformed(loc, "required", what);
                }
                None => self.malformed(loc, "required", "must be an array of strings"),
            },
            "propertyNames" => {
                let child = self.doc.child(loc, Step::Keyword("propertyNames"), value);
                facets.object.names.push(child);
            }
            "contains" => self.contains(loc, object, value, facets),
            "uniqueItems" => match value {
                Json::Bool(true) => facets.array.unique = Some(loc),
                Json::Bool(false) => {}
                _ => self.malformed(loc, "uniqueItems", "must be a boolean"),
            },
            "$schema" => self.dialect(loc, value),
            "$ref" => self.reference(loc, value, said),
            "allOf" => said.all.extend(self.list(loc, "allOf", value)),
            "anyOf" => {
                let list = self.list(loc, "anyOf", value);
                said.any.push(("anyOf", list));
            }
            "oneOf" => {
                let list = self.list(loc, "oneOf", value);
                said.one.push(list);
            }
            "not" => {
                let child = self.doc.child(loc, Step::Keyword("not"), value);
                said.all.push(child.negated());
            }
            "if" => self.conditional(loc, object, value, said),
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                self.dependencies(loc, (name, value), said)
            }
            "unevaluatedProperties" => {
                self.needs.evaluation = true;
                let child = self.doc.child(loc, Step::Keyword("unevaluatedProperties"), value);
                said.unevaluated_properties = Some(child);
            }
            "unevaluatedItems" => {
                self.needs.evaluation = true;
                said.unevaluated_items =
                    Some(self.doc.child(loc, Step::Keyword("unevaluatedItems"), value));
            }
            "$dynamicRef" | "$recursiveRef" => self.dynamic_reference(loc, name, value, said),
            "extends" => {
                unenforced(facets, Types::ALL, loc, "extends", "draft 3 keyword");
            }
            "disallow" => {
                unenforced(facets, Types::ALL, loc, "disallow", "draft 3 keyword");
            }
            "divisibleBy" => {
                unenforced(facets, Types::NUMBER, loc, "divisibleBy", "draft 3 keyword");
            }
            // Read together with others, below; or annotations and names, which constrain nothing.
            _ => {}
        }
    }

    /// The types of a schema that says nothing else of its values.
    pub(super) fn types_alone(&self, loc: LocId) -> Option<Types> {
        let object = self
            .doc
            .object(loc)
            .filter(|_| !loc.is_negated() && self.doc.vocabularies(loc).have("type"))?;
        let types = object.iter().try_fold(Types::ALL, |types, (name, value)| match name {
            "type" => types_of(value),
            _ => is_annotation(name).then_some(types),
        });
        types.filter(|types| !types.is_none())
    }

    fn types(&mut self, loc: LocId, value: &Json) -> Types {
        types_of(value).unwrap_or_else(|| {
            let names = match value {
                Json::Array(names) => &names[..],
                name => std::slice::from_ref(name),
            };
            let unknown =
                names.iter().filter_map(Json::as_str).find(|name| Types::named(name).is_none());
            let help = unknown.map(|name| {
                let meant = similar(name, TYPES).map(|known| format!("; is `{known}` meant?"));
                format!(": {name:?} is none{}", meant.unwrap_or_default())
            });
            let what = format!(
                "must be a type name or an array of type names{}",
                help.unwrap_or_default()
            );
            self.malformed(loc, "type", &what);
            Types::ALL
        })
    }

    fn values(&mut self, loc: LocId, facets: &mut Facets<'a>, values: Vec<&'a Json>) {
        // An array of them is one level, the value itself another.
        let left = self.limits.depth.saturating_sub(self.doc.depth(loc) + 1);
        let has_parts = |value: &&Json| matches!(value, Json::Array(_) | Json::Object(_));
        if values.iter().copied().filter(has_parts).any(|value| value.depth(left + 1) > left) {
            let what = format!("nested deeper than {}", self.limits.depth);
            return self.report(LocId::ROOT, "", Reason::Limit(what));
        }
        facets.values = Some(Rc::new(match &facets.values {
            Some(known) => common(known, &values),
            None => values,
        }));
    }

    fn count(&mut self, loc: LocId, keyword: &'static str, value: &Json) -> u32 {
        let count = match value {
            Json::Number(n) => Decimal::parse(n.as_str()).to_count(),
            _ => None,
        };
        count.unwrap_or_else(|| {
            self.malformed(loc, keyword, "must be a non-negative integer");
            0
        })
    }

    fn names(&self, value: &'a Json) -> Option<Vec<&'a str>> {
        let mut names: Vec<&str> =
            value.as_array()?.iter().map(Json::as_str).collect::<Option<_>>()?;
        if names.len() > 1 {
            let mut seen = crate::hash::HashSet::default();
            names.retain(|name| seen.insert(*name));
        }
        Some(names)
    }

    fn number_keyword(
        &mut self,
        loc: LocId,
        object: &'a Object,
        (name, value): (&'a str, &'a Json),
        facets: &mut Facets<'a>,
    ) {
        let keyword = match name {
            "minimum" => "minimum",
            "maximum" => "maximum",
            "exclusiveMinimum" => "exclusiveMinimum",
            "exclusiveMaximum" => "exclusiveMaximum",
            _ => "multipleOf",
        };
        let number = match value {
            Json::Number(n) => Decimal::parse(n.as_str()),
            // Draft 4: a flag that belongs to `minimum` or `maximum`.
            Json::Bool(_) if keyword.starts_with("exclusive") => return,
            _ => return self.malformed(loc, keyword, "must be a number"),
        };
        let flag = |name: &str| object.get(name) == Some(&Json::Bool(true));
        match keyword {
            "minimum" => {
                facets.number.raise(Bound { value: number, exclusive: flag("exclusiveMinimum") })
            }
            "exclusiveMinimum" => facets.number.raise(Bound { value: number, exclusive: true }),
            "maximum" => {
                facets.number.lower(Bound { value: number, exclusive: flag("exclusiveMaximum") })
            }
            "exclusiveMaximum" => facets.number.lower(Bound { value: number, exclusive: true }),
            _ if number.is_zero() || number.is_negative() => {
                self.malformed(loc, "multipleOf", "must be positive")
            }
            _ => facets.number.multiple_of(&number),
        }
    }

    fn format(&mut self, loc: LocId, value: &'a Json, facets: &mut Facets<'a>) {
        let Some(name) = value.as_str() else {
            return self.malformed(loc, "format", "must be a string");
        };
        let asserted = self.doc.vocabularies(loc).assert_formats();
        if self.options.formats == Formats::Annotate && !asserted {
            return;
        }
        match format::lookup(name) {
            format::Format::Pattern(source) => {
                facets.string.patterns.push(PatternUse {
                    source,
                    negated: false,
                    loc,
                    keyword: "format",
                });
            }
            format::Format::Unknown
                if asserted || self.options.formats == Formats::RefuseUnknown =>
            {
                unenforced(
                    facets,
                    Types::STRING,
                    loc,
                    "format",
                    "no specification defines this format",
                );
            }
            format::Format::Unknown => {}
        }
    }

    fn contains(
        &mut self,
        loc: LocId,
        object: &'a Object,
        value: &'a Json,
        facets: &mut Facets<'a>,
    ) {
        let draft = self.doc.draft(loc);
        let counts = draft >= Draft::Draft201909 && self.doc.vocabularies(loc).have("minContains");
        let mut bound = |name: &'static str| match object.get(name) {
            Some(value) if counts => Some(self.count(loc, name, value)),
            _ => None,
        };
        let (min, max) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        let schema = self.doc.child(loc, Step::Keyword("contains"), value);
        let covers = if draft == Draft::Draft202012 { Covers::Named } else { Covers::Nothing };
        if min > 0 || max.is_some() || self.evaluation {
            facets.array.contains.push(Contains { schema, min, max, from: 0, covers });
        }
        if max.is_some_and(|max| max < min) {
            facets.types = facets.types.minus(Types::ARRAY);
        }
    }

    fn dynamic_reference(
        &mut self,
        loc: LocId,
        keyword: &str,
        value: &'a Json,
        said: &mut Said<'a>,
    ) {
        self.needs.dynamic = true;
        let (keyword, target) = match (keyword, value.as_str()) {
            (_, None) => return self.malformed(loc, "$dynamicRef", "must be a string"),
            ("$dynamicRef", Some(reference)) => {
                ("$dynamicRef", self.doc.resolve_dynamic(loc, reference))
            }
            (_, Some(_)) => ("$recursiveRef", self.doc.resolve_recursive(loc)),
        };
        self.referred(loc, keyword, value.as_str().unwrap_or_default(), target, said);
    }

    fn reference(&mut self, loc: LocId, value: &'a Json, said: &mut Said<'a>) {
        let Some(reference) = value.as_str() else {
            return self.malformed(loc, "$ref", "must be a string");
        };
        let target = self.doc.resolve(loc, reference);
        self.referred(loc, "$ref", reference, target, said);
    }

    fn referred(
        &mut self,
        loc: LocId,
        keyword: &'static str,
        reference: &str,
        target: Result<LocId, Unresolved>,
        said: &mut Said<'a>,
    ) {
        match target {
            Ok(target) => said.all.push(target),
            Err(Unresolved::Missing) => {
                let what = format!("{reference:?} points to nothing in this document");
                self.report(loc, keyword, Reason::Malformed(what));
            }
            Err(Unresolved::Remote) => {
                let what = format!("{reference:?} is neither in this document nor in the registry");
                self.unsupported(loc, keyword, what);
            }
        }
    }

    fn list(&mut self, loc: LocId, keyword: &'static str, value: &'a Json) -> Vec<LocId> {
        match value.as_array() {
            Some(items) if !items.is_empty() => items
                .iter()
                .enumerate()
                .map(|(i, v)| self.doc.child(loc, Step::Index(keyword, i), v))
                .collect(),
            _ => {
                self.malformed(loc, keyword, "must be a non-empty array of schemas");
                Vec::new()
            }
        }
    }

    /// `properties`, `patternProperties` and `additionalProperties` make one part.
    fn members(&mut self, loc: LocId, object: &'a Object, said: &mut Said<'a>) {
        let (properties, patterns) = (object.get("properties"), object.get("patternProperties"));
        let additional = object.get("additionalProperties");
        let trivial = |schema: &Json| !self.evaluation && allows_all(schema);
        if properties.is_none() && patterns.is_none() && additional.is_none_or(trivial) {
            return;
        }
        let mut named = Vec::new();
        match properties {
            Some(Json::Object(map)) => {
                named.reserve(map.len());
                for (name, schema) in map.iter() {
                    named.push((
                        name,
                        self.doc.child(loc, Step::Member("properties", name), schema),
                    ));
                }
            }
            Some(_) => self.malformed(loc, "properties", "must be an object"),
            None => {}
        }
        let (mut matched, mut known) = (Vec::new(), true);
        match patterns {
            Some(Json::Object(map)) => {
                for (source, schema) in map.iter() {
                    let step = Step::Member("patternProperties", source);
                    let declared = |name: &&str| {
                        properties.is_some_and(|properties| properties.get(name).is_some())
                    };
                    if let Some(name) = only_name(source).filter(|name| !declared(name))
                        && self.options.order == MemberOrder::Declared
                        && named.len() < Members::MOST
                    {
                        named.push((name, self.doc.child(loc, step, schema)));
                        continue;
                    }
                    let pattern =
                        PatternUse { source, negated: false, loc, keyword: "patternProperties" };
                    if self.pattern(&pattern).is_some() {
                        matched.push((pattern, self.doc.child(loc, step, schema)));
                    } else {
                        known = false;
                    }
                }
            }
            Some(_) => self.malformed(loc, "patternProperties", "must be an object"),
            None => {}
        }
        let mut part = ObjectPart::new(named);
        part.patterns = matched;
        part.covers = if additional.is_some() { Covers::All } else { Covers::Named };
        // Which names a relaxed pattern takes is not known.
        part.additional = additional
            .filter(|schema| known && !allows_all(schema))
            .map(|schema| self.doc.child(loc, Step::Keyword("additionalProperties"), schema));
        said.facets.object.parts.push(Rc::new(part));
    }

    /// `prefixItems` and `items`, or the older `items` list and `additionalItems`.
    fn elements(&mut self, loc: LocId, object: &'a Object, said: &mut Said<'a>) {
        let prefix =
            object.get("prefixItems").filter(|_| self.doc.draft(loc) == Draft::Draft202012);
        let (keyword, list, rest) = match (prefix, object.get("items")) {
            (None, None) => return,
            (None, Some(items @ Json::Array(_))) => (
                "items",
                Some(items),
                object.get("additionalItems").map(|r| ("additionalItems", r)),
            ),
            (list, items) => ("prefixItems", list, items.map(|r| ("items", r))),
        };
        let covers = if rest.is_some() { Covers::All } else { Covers::Named };
        let mut prefix = Vec::new();
        match list {
            Some(Json::Array(items)) => {
                for (i, schema) in items.iter().enumerate() {
                    prefix.push(self.doc.child(loc, Step::Index(keyword, i), schema));
                }
            }
            Some(_) => self.malformed(loc, keyword, "must be an array of schemas"),
            None => {}
        }
        let rest = rest
            .filter(|(_, schema)| !allows_all(schema))
            .map(|(keyword, schema)| self.doc.child(loc, Step::Keyword(keyword), schema));
        said.facets.array.parts.push(Rc::new(ArrayPart { prefix, rest, covers }));
    }

    /// `if` with `then` and `else`: both hold together, or neither does.
    fn conditional(
        &mut self,
        loc: LocId,
        object: &'a Object,
        value: &'a Json,
        said: &mut Said<'a>,
    ) {
        let (then, otherwise) = (object.get("then"), object.get("else"));
        if then.is_none() && otherwise.is_none() && !self.evaluation {
            return;
        }
        let condition = self.doc.child(loc, Step::Keyword("if"), value);
        let then = then.map(|schema| self.doc.child(loc, Step::Keyword("then"), schema));
        let otherwise = otherwise.map(|schema| self.doc.child(loc, Step::Keyword("else"), schema));
        said.cases.push(Case::If { condition, then, otherwise });
    }

    /// `dependentRequired`, `dependentSchemas`, `dependencies`: the member is absent, or it brings more with it.
    fn dependencies(
        &mut self,
        loc: LocId,
        (name, value): (&'a str, &'a Json),
        said: &mut Said<'a>,
    ) {
        let keyword = match name {
            "dependentRequired" => "dependentRequired",
            "dependentSchemas" => "dependentSchemas",
            _ => "dependencies",
        };
        let Some(map) = value.as_object() else {
            return self.malformed(loc, keyword, "must be an object");
        };
        for (trigger, brings) in map.iter() {
            let mut names = Vec::new();
            let mut schema = None;
            match brings {
                Json::Array(_) | Json::String(_) if keyword != "dependentSchemas" => {
                    let listed = match brings.as_str() {
                        Some(name) => Some(vec![name]),
                        None => self.names(brings),
                    };
                    match listed {
                        Some(listed) => names.extend(listed.into_iter().filter(|n| *n != trigger)),
                        None => self.malformed(loc, keyword, "must be arrays of strings"),
                    }
                }
                _ => schema = Some(self.doc.child(loc, Step::Member(keyword, trigger), brings)),
            }
            said.cases.push(Case::Dependent { trigger, names, schema });
        }
    }

    pub(super) fn malformed(&mut self, loc: LocId, keyword: &'static str, what: &str) {
        self.report(loc, keyword, Reason::Malformed(format!("`{keyword}` {what}")));
    }
}

/// The name a pattern matches, if it is one and nothing in the pattern stands for anything else.
fn only_name(pattern: &str) -> Option<&str> {
    let name = pattern.strip_prefix('^')?.strip_suffix('$')?;
    (!name.contains(['\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}']))
        .then_some(name)
}

/// The types that `type` lists.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

fn types_of(value: &Json) -> Option<Types> {
    match value {
        Json::String(name) => Types::named(name),
        Json::Array(names) => names
            .iter()
            .try_fold(Types::NONE, |types, name| Some(types.or(Types::named(name.as_str()?)?))),
        _ => None,
    }
}

fn unenforced(
    facets: &mut Facets<'_>,
    types: Types,
    loc: LocId,
    keyword: &'static str,
    why: &'static str,
) {
    facets.unenforced.push(Unenforced { types, loc, keyword, why });
}

/// Whether a schema is `true` or `{}`.
pub(super) fn allows_all(schema: &Json) -> bool {
    match schema {
        Json::Bool(allows) => *allows,
        Json::Object(object) => object.is_empty(),
        _ => false,
    }
}
