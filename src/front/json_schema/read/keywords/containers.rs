//! Keywords of members and elements.

use std::rc::Rc;

use super::super::super::error::SchemaErrorReason as Reason;
use super::super::super::keyword::KeywordVocabulary;
use super::super::super::options::{Dialect, MemberOrder};
use super::super::SchemaReader;
use super::super::doc::{LocId, PointerStep, is_trivially_true};
use super::super::facets::{
    ArrayPart, Contains, Evaluates, Facets, JsonTypes, ObjectPart, PatternUse,
};
use super::ParsedKeywords;
use crate::spec::json::{Json, Object};

/// The constraints of `patternProperties`.
#[derive(Default)]
struct PatternProperties<'a> {
    /// Patterns that match a single name are that name.
    named: Vec<(&'a str, LocId)>,
    patterns: Vec<(PatternUse<'a>, LocId)>,
    /// Some pattern cannot be matched by an automaton (reported).
    has_unknown: bool,
}

impl<'a> SchemaReader<'a> {
    /// Parses `properties`, `patternProperties` and `additionalProperties`: together one
    /// [`ObjectPart`].
    pub(super) fn parse_members(
        &mut self,
        loc: LocId,
        object: &'a Object,
        parsed: &mut ParsedKeywords<'a>,
    ) {
        let properties = self.enforced(loc, object, "properties");
        let patterns = self.enforced(loc, object, "patternProperties");
        let additional = self.enforced(loc, object, "additionalProperties");
        let trivial = |schema: &Json| !self.tracks_evaluation && is_trivially_true(schema);
        if properties.is_none() && patterns.is_none() && additional.is_none_or(trivial) {
            return;
        }
        let mut named = properties.map_or_else(Vec::new, |map| self.parse_properties(loc, map));
        let matched = match patterns {
            Some(patterns) => self.parse_pattern_properties(loc, patterns, properties),
            None => PatternProperties::default(),
        };
        named.extend(matched.named);
        let mut part = ObjectPart::new(named);
        part.patterns = matched.patterns;
        part.evaluates = if additional.is_some() { Evaluates::All } else { Evaluates::Named };
        if matched.has_unknown {
            let what = "`patternProperties`: a pattern that an automaton cannot match";
            let reason = Reason::Unsupported(what.into());
            let facets = &mut parsed.facets;
            self.push_unenforced(facets, JsonTypes::OBJECT, loc, "patternProperties", reason);
        }
        // Names that a relaxed (unsupported) pattern matches are unknown, so nothing is required of
        // the others.
        part.additional = additional
            .filter(|schema| !matched.has_unknown && !is_trivially_true(schema))
            .map(|schema| self.child(loc, "additionalProperties", schema));
        parsed.facets.object.parts.push(Rc::new(part));
    }

    /// Parses `properties`.
    fn parse_properties(&mut self, loc: LocId, value: &'a Json) -> Vec<(&'a str, LocId)> {
        let Json::Object(map) = value else {
            self.malformed(loc, "properties", "must be an object of schemas, by name");
            return Vec::new();
        };
        let step = |name| PointerStep::Member("properties", name);
        map.iter().map(|(name, schema)| (name, self.doc.child(loc, step(name), schema))).collect()
    }

    /// Parses `patternProperties`, next to these `properties`.
    fn parse_pattern_properties(
        &mut self,
        loc: LocId,
        value: &'a Json,
        properties: Option<&'a Json>,
    ) -> PatternProperties<'a> {
        let mut matched = PatternProperties::default();
        let Json::Object(map) = value else {
            self.malformed(loc, "patternProperties", "must be an object of schemas, by pattern");
            return matched;
        };
        let is_declared =
            |name: &str| properties.is_some_and(|properties| properties.get(name).is_some());
        for (source, schema) in map.iter() {
            let step = PointerStep::Member("patternProperties", source);
            if let Some(name) = literal_name(source).filter(|name| !is_declared(name))
                && self.options.order == MemberOrder::Declared
            {
                matched.named.push((name, self.doc.child(loc, step, schema)));
                continue;
            }
            let pattern = PatternUse::new(source, loc, "patternProperties");
            if self.pattern(&pattern).is_some() {
                matched.patterns.push((pattern, self.doc.child(loc, step, schema)));
            } else {
                matched.has_unknown = true;
            }
        }
        matched
    }

    /// Parses `prefixItems` and `items` (older dialects: the array form of `items`, and
    /// `additionalItems`): together one [`ArrayPart`].
    pub(super) fn parse_elements(
        &mut self,
        loc: LocId,
        object: &'a Object,
        parsed: &mut ParsedKeywords<'a>,
    ) {
        let prefix = self
            .enforced(loc, object, "prefixItems")
            .filter(|_| self.doc.dialect(loc) == Dialect::Draft202012);
        let (keyword, list, rest) = match (prefix, self.enforced(loc, object, "items")) {
            (None, None) => return,
            (None, Some(items @ Json::Array(_))) => (
                "items",
                Some(items),
                self.enforced(loc, object, "additionalItems").map(|r| ("additionalItems", r)),
            ),
            (list, items) => ("prefixItems", list, items.map(|r| ("items", r))),
        };
        let evaluates = if rest.is_some() { Evaluates::All } else { Evaluates::Named };
        let prefix = match list {
            Some(Json::Array(items)) => self.children(loc, keyword, items),
            Some(_) => {
                self.malformed(loc, keyword, "must be an array of schemas");
                Vec::new()
            }
            None => Vec::new(),
        };
        let rest = rest
            .filter(|(_, schema)| !is_trivially_true(schema))
            .map(|(keyword, schema)| self.child(loc, keyword, schema));
        parsed.facets.array.parts.push(Rc::new(ArrayPart { prefix, rest, evaluates }));
    }

    /// Parses `required`.
    pub(super) fn parse_required(&mut self, loc: LocId, value: &'a Json, facets: &mut Facets<'a>) {
        match self.parse_names(value) {
            Some(names) => facets.object.required = names,
            None if matches!(value, Json::Bool(_)) => {
                let what = "must be an array of strings: name the member in the `required` of its \
                            object";
                self.malformed(loc, "required", what);
            }
            None => self.malformed(loc, "required", "must be an array of strings"),
        }
    }

    /// Parses `contains`, `minContains` and `maxContains`.
    pub(super) fn parse_contains(
        &mut self,
        loc: LocId,
        object: &'a Object,
        value: &'a Json,
        facets: &mut Facets<'a>,
    ) {
        let dialect = self.doc.dialect(loc);
        let bounds_apply = dialect >= Dialect::Draft201909
            && self.doc.vocabularies(loc).include(KeywordVocabulary::Validation);
        let mut count = |name: &'static str| match object.get(name) {
            Some(value) if bounds_apply => Some(self.parse_count(loc, name, value)),
            _ => None,
        };
        let (min, max) = (count("minContains").unwrap_or(1), count("maxContains"));
        let schema = self.child(loc, "contains", value);
        let evaluates =
            if dialect == Dialect::Draft202012 { Evaluates::Named } else { Evaluates::Nothing };
        if min > 0 || max.is_some() || self.tracks_evaluation {
            let contains = Contains { schema, min, max, from: 0, evaluates };
            facets.array.add_contains(contains);
        }
        if max.is_some_and(|max| max < min) {
            facets.types = facets.types.minus(JsonTypes::ARRAY);
        }
    }
}

/// The only name that a pattern matches, if it is `^name$` without metacharacters.
fn literal_name(pattern: &str) -> Option<&str> {
    let name = pattern.strip_prefix('^')?.strip_suffix('$')?;
    (!name.contains(['\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}']))
        .then_some(name)
}
