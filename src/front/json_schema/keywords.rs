//! One location's keywords: what they say by themselves, and which other schemas they bring in.

use std::rc::Rc;

use super::SchemaErrorReason as Reason;
use super::decimal::Decimal;
use super::doc::{Draft, LocId, Step, Unresolved};
use super::facets::{ArrayPart, Bound, Facets, ObjectPart, PatternUse, Types, Unenforced, least};
use super::normalize::Normalizer;
use super::{Formats, format};
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
    /// Alternatives given as facets, each with schemas that hold with it.
    pub(super) cases: Vec<Vec<(Facets<'a>, Vec<LocId>)>>,
}

impl<'a> Normalizer<'a> {
    /// Reads the keywords of a schema object.
    pub(super) fn keywords(&mut self, loc: LocId, object: &'a Object) -> Said<'a> {
        let mut said =
            Said { facets: Facets::any(), all: Vec::new(), any: Vec::new(), one: Vec::new(), cases: Vec::new() };
        if let (Some(reference), true) = (object.get("$ref"), self.doc.draft() < Draft::Newer) {
            // These dialects ignore everything beside a reference.
            self.reference(loc, reference, &mut said);
            return said;
        }
        for (name, value) in object.iter() {
            self.keyword(loc, object, (name, value), &mut said);
        }
        self.members(loc, object, &mut said);
        self.elements(loc, object, &mut said);
        said.facets.settle();
        said
    }

    fn keyword(&mut self, loc: LocId, object: &'a Object, (name, value): (&'a str, &'a Json), said: &mut Said<'a>) {
        let facets = &mut said.facets;
        match name {
            "type" => {
                let types = self.types(loc, value);
                facets.types = facets.types.and(types);
            }
            "enum" => match value.as_array() {
                Some(values) => self.values(facets, values.iter().collect()),
                None => self.malformed(loc, "enum", "must be an array"),
            },
            "const" => self.values(facets, vec![value]),
            "minLength" => facets.string.min = facets.string.min.max(self.count(loc, "minLength", value)),
            "maxLength" => facets.string.max = least(facets.string.max, Some(self.count(loc, "maxLength", value))),
            "minItems" => facets.array.min = facets.array.min.max(self.count(loc, "minItems", value)),
            "maxItems" => facets.array.max = least(facets.array.max, Some(self.count(loc, "maxItems", value))),
            "minProperties" => facets.object.min = facets.object.min.max(self.count(loc, "minProperties", value)),
            "maxProperties" => {
                facets.object.max = least(facets.object.max, Some(self.count(loc, "maxProperties", value)));
            }
            "pattern" => match value.as_str() {
                Some(source) => {
                    let pattern = PatternUse { source, negated: false, loc, keyword: "pattern" };
                    self.pattern(&pattern);
                    facets.string.patterns.push(pattern);
                }
                None => self.malformed(loc, "pattern", "must be a string"),
            },
            "format" => self.format(loc, value, facets),
            "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" | "multipleOf" => {
                self.number_keyword(loc, object, (name, value), facets);
            }
            "required" => match self.names(value) {
                Some(names) => facets.object.required = names,
                None => self.malformed(loc, "required", "must be an array of strings"),
            },
            "propertyNames" => {
                let child = self.doc.child(loc, Step::Keyword("propertyNames"), value);
                facets.object.names.push(child);
            }
            "contains" => self.contains(loc, object, value, facets),
            "uniqueItems" => match value {
                Json::Bool(true) => unenforced(facets, Types::ARRAY, loc, "uniqueItems", "elements cannot be compared"),
                Json::Bool(false) => {}
                _ => self.malformed(loc, "uniqueItems", "must be a boolean"),
            },
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
            "dependentRequired" | "dependentSchemas" | "dependencies" => self.dependencies(loc, (name, value), said),
            "unevaluatedProperties" if !allows_all(value) => {
                unenforced(facets, Types::OBJECT, loc, "unevaluatedProperties", "annotations are not tracked");
            }
            "unevaluatedItems" if !allows_all(value) => {
                unenforced(facets, Types::ARRAY, loc, "unevaluatedItems", "annotations are not tracked");
            }
            "$dynamicRef" => unenforced(facets, Types::ALL, loc, "$dynamicRef", "dynamic references"),
            "$recursiveRef" => unenforced(facets, Types::ALL, loc, "$recursiveRef", "dynamic references"),
            "extends" if self.doc.draft() == Draft::Four => {
                unenforced(facets, Types::ALL, loc, "extends", "draft 3 keyword");
            }
            "disallow" if self.doc.draft() == Draft::Four => {
                unenforced(facets, Types::ALL, loc, "disallow", "draft 3 keyword");
            }
            "divisibleBy" if self.doc.draft() == Draft::Four => {
                unenforced(facets, Types::NUMBER, loc, "divisibleBy", "draft 3 keyword");
            }
            // Read together with others, below; or annotations and names, which constrain nothing.
            _ => {}
        }
    }

    fn types(&mut self, loc: LocId, value: &Json) -> Types {
        let named = match value {
            Json::String(name) => Types::named(name),
            Json::Array(names) => {
                names.iter().try_fold(Types::NONE, |types, name| Some(types.or(Types::named(name.as_str()?)?)))
            }
            _ => None,
        };
        named.unwrap_or_else(|| {
            self.malformed(loc, "type", "must be a type name or an array of type names");
            Types::ALL
        })
    }

    fn values(&mut self, facets: &mut Facets<'a>, values: Vec<&'a Json>) {
        let narrowed = Facets { values: Some(Rc::new(values)), ..Facets::any() };
        let whole = std::mem::replace(facets, Facets::any());
        *facets = whole.conjoin(&narrowed);
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
        let mut names: Vec<&str> = value.as_array()?.iter().map(Json::as_str).collect::<Option<_>>()?;
        if names.len() > 1 {
            let mut seen = rustc_hash::FxHashSet::default();
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
            "minimum" => facets.number.raise(Bound { value: number, exclusive: flag("exclusiveMinimum") }),
            "exclusiveMinimum" => facets.number.raise(Bound { value: number, exclusive: true }),
            "maximum" => facets.number.lower(Bound { value: number, exclusive: flag("exclusiveMaximum") }),
            "exclusiveMaximum" => facets.number.lower(Bound { value: number, exclusive: true }),
            _ if number.is_zero() || number.is_negative() => self.malformed(loc, "multipleOf", "must be positive"),
            _ => facets.number.multiples.push(number),
        }
    }

    fn format(&mut self, loc: LocId, value: &'a Json, facets: &mut Facets<'a>) {
        let Some(name) = value.as_str() else {
            return self.malformed(loc, "format", "must be a string");
        };
        if self.options.formats == Formats::Annotate {
            return;
        }
        match format::lookup(name) {
            format::Format::Pattern(source) => {
                facets.string.patterns.push(PatternUse { source, negated: false, loc, keyword: "format" });
            }
            format::Format::Unenforced => {
                unenforced(facets, Types::STRING, loc, "format", "this format cannot be asserted");
            }
            format::Format::Unknown => {}
        }
    }

    fn contains(&mut self, loc: LocId, object: &'a Object, value: &'a Json, facets: &mut Facets<'a>) {
        let bound = |name: &str| match object.get(name) {
            Some(Json::Number(n)) => Decimal::parse(n.as_str()).to_count(),
            _ => None,
        };
        let (min, max) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        if max.is_some() {
            unenforced(facets, Types::ARRAY, loc, "maxContains", "elements cannot be counted by schema");
        } else if min > 1 {
            unenforced(facets, Types::ARRAY, loc, "minContains", "elements cannot be counted by schema");
        }
        if min > 0 {
            let child = self.doc.child(loc, Step::Keyword("contains"), value);
            facets.array.contains.push(child);
        }
    }

    fn reference(&mut self, loc: LocId, value: &'a Json, said: &mut Said<'a>) {
        let Some(reference) = value.as_str() else {
            return self.malformed(loc, "$ref", "must be a string");
        };
        match self.doc.resolve(loc, reference) {
            Ok(target) => said.all.push(target),
            Err(Unresolved::Missing) => {
                self.report(
                    loc,
                    "$ref",
                    Reason::Malformed(format!("{reference:?} points to nothing in this document")),
                );
            }
            Err(Unresolved::Remote) => {
                self.report(loc, "$ref", Reason::Unsupported(format!("{reference:?} is not in this document")));
            }
        }
    }

    fn list(&mut self, loc: LocId, keyword: &'static str, value: &'a Json) -> Vec<LocId> {
        match value.as_array() {
            Some(items) if !items.is_empty() => {
                items.iter().enumerate().map(|(i, v)| self.doc.child(loc, Step::Index(keyword, i), v)).collect()
            }
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
        if properties.is_none() && patterns.is_none() && additional.is_none_or(allows_all) {
            return;
        }
        let mut named = Vec::new();
        match properties {
            Some(Json::Object(map)) => {
                named.reserve(map.len());
                for (name, schema) in map.iter() {
                    named.push((name, self.doc.child(loc, Step::Member("properties", name), schema)));
                }
            }
            Some(_) => self.malformed(loc, "properties", "must be an object"),
            None => {}
        }
        let mut part = ObjectPart::new(named);
        match patterns {
            Some(Json::Object(map)) => {
                for (source, schema) in map.iter() {
                    let pattern = PatternUse { source, negated: false, loc, keyword: "patternProperties" };
                    if self.pattern(&pattern).is_some() {
                        let child = self.doc.child(loc, Step::Member("patternProperties", source), schema);
                        part.patterns.push((pattern, child));
                    }
                }
            }
            Some(_) => self.malformed(loc, "patternProperties", "must be an object"),
            None => {}
        }
        part.additional = additional
            .filter(|schema| !allows_all(schema))
            .map(|schema| self.doc.child(loc, Step::Keyword("additionalProperties"), schema));
        said.facets.object.parts.push(Rc::new(part));
    }

    /// `prefixItems` and `items`, or the older `items` list and `additionalItems`.
    fn elements(&mut self, loc: LocId, object: &'a Object, said: &mut Said<'a>) {
        let (keyword, list, rest) = match (object.get("prefixItems"), object.get("items")) {
            (None, None) => return,
            (None, Some(items @ Json::Array(_))) => {
                ("items", Some(items), object.get("additionalItems").map(|r| ("additionalItems", r)))
            }
            (list, items) => ("prefixItems", list, items.map(|r| ("items", r))),
        };
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
        said.facets.array.parts.push(Rc::new(ArrayPart { prefix, rest }));
    }

    /// `if` with `then` and `else`: both hold together, or neither does.
    fn conditional(&mut self, loc: LocId, object: &'a Object, value: &'a Json, said: &mut Said<'a>) {
        let (then, otherwise) = (object.get("then"), object.get("else"));
        if then.is_none() && otherwise.is_none() {
            return;
        }
        let condition = self.doc.child(loc, Step::Keyword("if"), value);
        let then = then.map(|schema| self.doc.child(loc, Step::Keyword("then"), schema));
        let otherwise = otherwise.map(|schema| self.doc.child(loc, Step::Keyword("else"), schema));
        said.cases.push(vec![
            (Facets::any(), [condition].into_iter().chain(then).collect()),
            (Facets::any(), [condition.negated()].into_iter().chain(otherwise).collect()),
        ]);
    }

    /// `dependentRequired`, `dependentSchemas`, `dependencies`: the member is absent, or it brings more with it.
    fn dependencies(&mut self, loc: LocId, (name, value): (&'a str, &'a Json), said: &mut Said<'a>) {
        let keyword = match name {
            "dependentRequired" => "dependentRequired",
            "dependentSchemas" => "dependentSchemas",
            _ => "dependencies",
        };
        let Some(map) = value.as_object() else {
            return self.malformed(loc, keyword, "must be an object");
        };
        for (trigger, brings) in map.iter() {
            let mut absent = Facets::any();
            absent.object.forbidden.push(trigger);
            let mut present = Facets { types: Types::OBJECT, ..Facets::any() };
            present.object.required.push(trigger);
            let mut schemas = Vec::new();
            match brings {
                Json::Array(_) | Json::String(_) if keyword != "dependentSchemas" => {
                    let names = match brings.as_str() {
                        Some(name) => Some(vec![name]),
                        None => self.names(brings),
                    };
                    match names {
                        Some(names) => present.object.required.extend(names.into_iter().filter(|n| *n != trigger)),
                        None => self.malformed(loc, keyword, "must be arrays of strings"),
                    }
                }
                _ => schemas.push(self.doc.child(loc, Step::Member(keyword, trigger), brings)),
            }
            said.cases.push(vec![(absent, Vec::new()), (present, schemas)]);
        }
    }

    pub(super) fn malformed(&mut self, loc: LocId, keyword: &'static str, what: &str) {
        self.report(loc, keyword, Reason::Malformed(format!("`{keyword}` {what}")));
    }
}

fn unenforced(facets: &mut Facets<'_>, types: Types, loc: LocId, keyword: &'static str, why: &'static str) {
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
