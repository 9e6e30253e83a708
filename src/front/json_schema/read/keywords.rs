//! Keywords of one schema object, parsed to facets and to the locations that the object applies to
//! the same value.
//!
//! Assertions (`type`, bounds, lengths, patterns, ...) and the keywords of members and elements
//! become [`Facets`]. In-place applicators (`allOf`, `anyOf`, `$ref`, `if`, ...) become lists of
//! locations, which `normalize` conjoins and `negate` negates. Both share this parser, so a keyword
//! is read in one place. What is known of a keyword beforehand is its row in `keyword`.

mod applicators;
mod containers;

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::error::SchemaErrorReason as Reason;
use super::super::format;
use super::super::keyword::{Keyword, KeywordVocabulary, is_annotation};
use super::super::options::{Dialect, Formats};
use super::SchemaReader;
use super::doc::{LocId, PointerStep};
use super::facets::{Bound, Facets, JsonTypes, PatternUse, intersect_values, min_bound};
use super::relaxations::KeywordTreatment;
use super::vocabulary::unknown_required_vocabularies;
use crate::decimal::{Decimal, has_large_exponent};
use crate::front::diagnostic::{similar, suggestion};
use crate::fuel;
use crate::hash::IndexSet;
use crate::ir::MAX_COUNT;
use crate::spec::json::{Json, Object};

/// Fuel for reading a keyword.
const FUEL_PER_KEYWORD: usize = 4;
/// Fuel for an entry of a keyword's value: a schema, a name or a constant.
const FUEL_PER_ENTRY: usize = 4;

/// The entries of the value of a keyword.
fn entries(value: &Json) -> usize {
    match value {
        Json::Array(items) => items.len(),
        Json::Object(members) => members.len(),
        _ => 0,
    }
}

/// What is wrong with a number whose exponent is not represented.
const EXPONENT_LIMIT: &str = "an exponent is larger than 2^40";

/// Whether a value has a number with an exponent that is not represented.
fn contains_large_exponent(value: &Json) -> bool {
    value.values().any(|value| match value {
        Json::Number(number) => has_large_exponent(number.as_str()),
        _ => false,
    })
}

/// The parsed keywords of a schema object. A value satisfies the object if it satisfies all fields.
pub(crate) struct ParsedKeywords<'a> {
    /// The assertions of the object itself.
    pub(crate) facets: Facets<'a>,
    /// `allOf`, `$ref`, `not` (as a negated location): all hold.
    pub(crate) all_of: Vec<LocId>,
    /// `anyOf`, with the keyword: at least one location of each list holds.
    pub(crate) any_of: Vec<(&'static str, Vec<LocId>)>,
    /// `oneOf`: exactly one location of each list holds.
    pub(crate) one_of: Vec<Vec<LocId>>,
    /// `if` and the dependency keywords.
    pub(crate) conditionals: Vec<Conditional<'a>>,
    /// The schema of `unevaluatedProperties`.
    pub(crate) unevaluated_properties: Option<LocId>,
    /// The schema of `unevaluatedItems`.
    pub(crate) unevaluated_items: Option<LocId>,
}

/// A conditional applicator.
pub(crate) enum Conditional<'a> {
    /// `if`, `then`, `else`.
    IfThenElse { condition: LocId, then: Option<LocId>, otherwise: Option<LocId> },
    /// `dependentRequired`, `dependentSchemas` or `dependencies`: if the member `trigger` is
    /// present, so are the members `names`, and `schema` holds.
    Dependency {
        keyword: &'static str,
        trigger: &'a str,
        names: Vec<&'a str>,
        schema: Option<LocId>,
    },
}

impl<'a> SchemaReader<'a> {
    /// Parses the keywords of a schema object.
    pub(crate) fn parse_keywords(&mut self, loc: LocId, object: &'a Object) -> ParsedKeywords<'a> {
        let mut parsed = ParsedKeywords {
            facets: Facets::any(),
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
            conditionals: Vec::new(),
            unevaluated_properties: None,
            unevaluated_items: None,
        };
        let dialect = self.doc.dialect(loc);
        if let (Some(reference), true) = (object.get("$ref"), dialect < Dialect::Draft201909) {
            // These dialects ignore all keywords next to a `$ref`.
            match self.treatment(loc, object, "$ref") {
                KeywordTreatment::Enforced => {
                    self.parse_reference(loc, "$ref", reference, &mut parsed)
                }
                _ => self.drop_keyword(loc, "$ref", reference, &mut parsed.facets),
            }
            return parsed;
        }
        let vocabularies = self.doc.vocabularies(loc);
        for (name, value) in object.iter() {
            let Some(keyword) = Keyword::lookup(name) else { continue };
            let entries = if keyword.dropped_at.is_some() { entries(value) } else { 0 };
            fuel::charge(FUEL_PER_KEYWORD + FUEL_PER_ENTRY * entries);
            if !keyword.is_defined_in(dialect) || !vocabularies.include(keyword.vocabulary) {
                continue;
            }
            match self.treatment(loc, object, name) {
                KeywordTreatment::Dropped => {
                    self.drop_keyword(loc, name, value, &mut parsed.facets)
                }
                _ => self.parse_keyword(loc, object, keyword.name, value, &mut parsed),
            }
        }
        if vocabularies.include(KeywordVocabulary::Applicator) {
            self.parse_members(loc, object, &mut parsed);
            self.parse_elements(loc, object, &mut parsed);
        }
        parsed.facets.drop_contradictory_types();
        parsed
    }

    /// Parses one keyword into `parsed`.
    fn parse_keyword(
        &mut self,
        loc: LocId,
        object: &'a Object,
        name: &'static str,
        value: &'a Json,
        parsed: &mut ParsedKeywords<'a>,
    ) {
        let facets = &mut parsed.facets;
        match name {
            "$schema" => self.check_required_vocabularies(loc, value),
            "type" => {
                let types = self.parse_types(loc, value);
                facets.types = facets.types.intersect(types);
            }
            "enum" => self.parse_enum(loc, value, facets),
            "const" => self.parse_values(loc, facets, vec![value]),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => self.parse_size(loc, name, value, facets),
            "pattern" => self.parse_pattern(loc, value, parsed),
            "format" => self.parse_format(loc, value, parsed),
            "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" | "multipleOf" => {
                self.parse_number_keyword(loc, object, name, value, facets);
            }
            "required" => self.parse_required(loc, value, facets),
            "propertyNames" => facets.object.names.push(self.child(loc, name, value)),
            "contains" => self.parse_contains(loc, object, value, facets),
            "uniqueItems" => match value {
                Json::Bool(true) => facets.array.unique = Some(loc),
                Json::Bool(false) => {}
                _ => self.malformed(loc, "uniqueItems", "must be a boolean"),
            },
            "extends" | "disallow" => self.push_draft_3(parsed, JsonTypes::ALL, loc, name),
            "divisibleBy" => self.push_draft_3(parsed, JsonTypes::NUMBER, loc, name),
            _ => self.parse_applicator(loc, object, name, value, parsed),
        }
    }

    /// The location of a keyword's value.
    fn child(&mut self, loc: LocId, keyword: &'static str, value: &'a Json) -> LocId {
        self.doc.child(loc, PointerStep::Keyword(keyword), value)
    }

    /// The locations of the elements of a keyword's value.
    fn children(&mut self, loc: LocId, keyword: &'static str, items: &'a [Json]) -> Vec<LocId> {
        let items = items.iter().enumerate();
        items.map(|(i, item)| self.doc.child(loc, PointerStep::Index(keyword, i), item)).collect()
    }

    /// The types that a schema allows, if it has no assertion but `type`. Not for negated
    /// locations.
    pub(crate) fn type_only(&self, loc: LocId) -> Option<JsonTypes> {
        let has_assertions = self.doc.vocabularies(loc).include(KeywordVocabulary::Validation);
        let object = self.doc.object(loc).filter(|_| !loc.is_negated() && has_assertions)?;
        let types = object.iter().try_fold(JsonTypes::ALL, |types, (name, value)| match name {
            "type" => types_of(value),
            _ => is_annotation(name).then_some(types),
        });
        types.filter(|types| !types.is_empty())
    }

    /// Parses `type`; a malformed value is reported and allows all types.
    fn parse_types(&mut self, loc: LocId, value: &Json) -> JsonTypes {
        types_of(value).unwrap_or_else(|| {
            let names = match value {
                Json::Array(names) => &names[..],
                name => std::slice::from_ref(name),
            };
            let unknown =
                names.iter().filter_map(Json::as_str).find(|name| JsonTypes::named(name).is_none());
            let help = unknown.map(|name| {
                let synonym =
                    TYPE_SYNONYMS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
                let names = JsonTypes::NAMES.map(|(name, _)| name);
                let meant = synonym
                    .map(|(_, meant)| *meant)
                    .or_else(|| similar(&name.to_lowercase(), names, self.errors.len()));
                let help = match &*name.to_lowercase() {
                    "any" => "; leave `type` out where any value may stand".to_owned(),
                    format if format::lookup(format).is_some() => {
                        format!(r#"; write `"type": "string", "format": "{format}"`"#)
                    }
                    "datetime" => r#"; write `"type": "string", "format": "date-time"`"#.to_owned(),
                    _ => suggestion(meant),
                };
                format!(": {name:?} is not a type{help}")
            });
            let what = format!(
                "must be a type name or an array of type names{}",
                help.unwrap_or_default()
            );
            self.malformed(loc, "type", &what);
            JsonTypes::ALL
        })
    }

    /// Parses `enum`.
    fn parse_enum(&mut self, loc: LocId, value: &'a Json, facets: &mut Facets<'a>) {
        match value.as_array() {
            Some([]) => {
                self.note_contradiction(loc, "enum", "an empty list allows no value");
                facets.types = JsonTypes::default();
            }
            Some(values) => self.parse_values(loc, facets, values.iter().collect()),
            None => self.malformed(loc, "enum", "must be an array"),
        }
    }

    /// Parses the values of `enum` or `const`.
    fn parse_values(&mut self, loc: LocId, facets: &mut Facets<'a>, values: Vec<&'a Json>) {
        // The array of values is one level; a value in it is another.
        let levels = self.limits.depth.saturating_sub(self.doc.depth(loc) + 1);
        let has_parts = |value: &&Json| matches!(value, Json::Array(_) | Json::Object(_));
        if values.iter().copied().filter(has_parts).any(|value| value.depth(levels + 1) > levels) {
            let what = format!("nested deeper than {} (`Limits::depth`)", self.limits.depth);
            return self.report(loc, "", Reason::Limit(what));
        }
        if values.iter().any(|value| contains_large_exponent(value)) {
            return self.report(loc, "", Reason::Limit(EXPONENT_LIMIT.into()));
        }
        facets.values = Some(Rc::new(match &facets.values {
            Some(listed) => intersect_values(listed, &values),
            None => values,
        }));
    }

    /// Parses a bound on a length, or on the number of elements or members.
    fn parse_size(&mut self, loc: LocId, name: &str, value: &Json, facets: &mut Facets<'a>) {
        let count = self.parse_count(loc, name, value);
        if name.starts_with("min") && count > MAX_COUNT {
            return self.report(loc, name, Reason::Limit(format!("over {MAX_COUNT}")));
        }
        let (string, array, object) = (&mut facets.string, &mut facets.array, &mut facets.object);
        match name {
            "minLength" => string.min = string.min.max(count),
            "maxLength" => string.max = min_bound(string.max, Some(count)),
            "minItems" => array.min = array.min.max(count),
            "maxItems" => array.max = min_bound(array.max, Some(count)),
            "minProperties" => object.min = object.min.max(count),
            _ => object.max = min_bound(object.max, Some(count)),
        }
    }

    /// Parses `pattern`.
    fn parse_pattern(&mut self, loc: LocId, value: &'a Json, parsed: &mut ParsedKeywords<'a>) {
        let Some(source) = value.as_str() else {
            return self.malformed(loc, "pattern", "must be a string");
        };
        let pattern = PatternUse::new(source, loc, "pattern");
        if self.pattern(&pattern).is_some() {
            return parsed.facets.string.patterns.push(pattern);
        }
        let what = "`pattern`: not a regular expression that an automaton can match";
        let reason = Reason::Unsupported(what.into());
        self.push_unenforced(&mut parsed.facets, JsonTypes::STRING, loc, "pattern", reason);
    }

    /// Parses the value of a length or count keyword; a malformed value is reported and counts as
    /// 0.
    fn parse_count(&mut self, loc: LocId, keyword: &str, value: &Json) -> u32 {
        let count = match value {
            Json::Number(n) => Decimal::parse(n.as_str()).to_count(),
            _ => None,
        };
        count.unwrap_or_else(|| {
            self.malformed(loc, keyword, "must be a non-negative integer");
            0
        })
    }

    /// Parses an array of names, without duplicates; `None` if it is malformed.
    fn parse_names(&self, value: &'a Json) -> Option<Vec<&'a str>> {
        let names: Option<IndexSet<&str>> = value.as_array()?.iter().map(Json::as_str).collect();
        Some(names?.into_iter().collect())
    }

    /// Parses a bound of a number, or `multipleOf`.
    fn parse_number_keyword(
        &mut self,
        loc: LocId,
        object: &'a Object,
        keyword: &str,
        value: &Json,
        facets: &mut Facets<'a>,
    ) {
        let number = match value {
            Json::Number(n) if has_large_exponent(n.as_str()) => {
                return self.report(loc, keyword, Reason::Limit(EXPONENT_LIMIT.into()));
            }
            Json::Number(n) => Decimal::parse(n.as_str()),
            // Draft 4: a flag of `minimum` or `maximum`, read there.
            Json::Bool(_) if keyword.starts_with("exclusive") => return,
            _ => return self.malformed(loc, keyword, "must be a number"),
        };
        let flag = |name: &str| object.get(name) == Some(&Json::Bool(true));
        let (order, exclusive) = match keyword {
            "minimum" => (Ordering::Greater, flag("exclusiveMinimum")),
            "exclusiveMinimum" => (Ordering::Greater, true),
            "maximum" => (Ordering::Less, flag("exclusiveMaximum")),
            "exclusiveMaximum" => (Ordering::Less, true),
            _ if number.is_zero() || number.is_negative() => {
                return self.malformed(loc, "multipleOf", "must be positive");
            }
            _ => return facets.number.add_multiple(&number),
        };
        facets.number.add_bound(Bound { value: number, exclusive }, order);
    }

    /// Parses `format`, as [`Formats`] and the vocabularies say.
    fn parse_format(&mut self, loc: LocId, value: &'a Json, parsed: &mut ParsedKeywords<'a>) {
        let Some(name) = value.as_str() else {
            return self.malformed(loc, "format", "must be a string");
        };
        let asserted = self.doc.vocabularies(loc).include(KeywordVocabulary::AssertedFormat);
        if self.options.formats == Formats::Annotate && !asserted {
            return;
        }
        let refuse_unknown = asserted || self.options.formats == Formats::RefuseUnknown;
        match format::lookup(name) {
            Some(format) => {
                let (source, opposite) = (&*format.pattern, format.wider());
                let use_of_pattern =
                    PatternUse { source, opposite, negated: false, loc, keyword: "format" };
                let string = &mut parsed.facets.string;
                string.patterns.push(use_of_pattern);
                string.max = min_bound(string.max, format.max);
            }
            None if refuse_unknown => {
                let what = "`format`: no draft defines the format";
                let reason = Reason::Unsupported(what.into());
                self.push_unenforced(&mut parsed.facets, JsonTypes::STRING, loc, "format", reason);
            }
            None => {}
        }
    }

    /// Refuses a metaschema that requires an unknown vocabulary.
    fn check_required_vocabularies(&mut self, loc: LocId, uri: &Json) {
        for vocabulary in unknown_required_vocabularies(self.doc.registry, uri) {
            let what =
                format!("the metaschema requires the vocabulary {vocabulary}, which is unknown");
            self.unsupported(loc, "$schema", what);
        }
    }

    /// Notes that a keyword of draft 3 is not enforced.
    fn push_draft_3(
        &self,
        parsed: &mut ParsedKeywords<'a>,
        types: JsonTypes,
        loc: LocId,
        keyword: &'a str,
    ) {
        let what = format!("`{keyword}`: draft 3 keyword");
        self.push_unenforced(&mut parsed.facets, types, loc, keyword, Reason::Unsupported(what));
    }

    /// Reports a keyword whose value has the wrong form.
    pub(crate) fn malformed(&mut self, loc: LocId, keyword: &str, what: &str) {
        let value = self.doc.object(loc).and_then(|object| object.get(keyword));
        let help = if value == Some(&Json::Null) { INSTEAD_OF_NULL } else { "" };
        self.report(loc, keyword, Reason::Malformed(format!("`{keyword}` {what}{help}")));
    }
}

/// What to write instead of the value `null` of a keyword.
pub(crate) const INSTEAD_OF_NULL: &str = ", not null; leave the keyword out if it has no value";

/// Names of types in programming languages and databases, for suggestions.
const TYPE_SYNONYMS: [(&str, &str); 11] = [
    ("int", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("str", "string"),
    ("text", "string"),
    ("bool", "boolean"),
    ("list", "array"),
    ("dict", "object"),
    ("none", "null"),
];

/// The types that the value of `type` lists; `None` if it is malformed.
fn types_of(value: &Json) -> Option<JsonTypes> {
    match value {
        Json::String(name) => JsonTypes::named(name),
        Json::Array(names) => names.iter().try_fold(JsonTypes::default(), |types, name| {
            Some(types.union(JsonTypes::named(name.as_str()?)?))
        }),
        _ => None,
    }
}
