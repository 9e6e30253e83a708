//! The keywords of JSON Schema: one row for each, with all that is known of a keyword before its
//! value is read. A keyword without a row is an unknown one, which is not read.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::options::Dialect::{self, Draft4, Draft6, Draft7, Draft201909, Draft202012};
use crate::hash::HashMap;
use crate::spec::json::Json;

/// What a JSON value within a schema document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    /// A schema.
    Schema,
    /// An array of schemas.
    SchemaList,
    /// A schema, or an array of schemas.
    SchemaOrList,
    /// An object of schemas with arbitrary names.
    SchemaMap,
    /// Data: constants, and values of unknown keywords.
    Data,
}

/// The vocabulary of the specification that defines a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeywordVocabulary {
    /// Identifiers and references, which every metaschema has; `then` and `else`, which are read
    /// with `if`; keywords of older dialects.
    Core,
    /// Comments and default values: annotations in every dialect.
    Annotation,
    /// In-place and child applicators, except `unevaluated...`.
    Applicator,
    /// `unevaluatedItems` and `unevaluatedProperties`.
    Unevaluated,
    /// Assertions.
    Validation,
    /// `format`, asserted as the options say.
    Format,
    /// `format`, asserted regardless of the options; unknown formats are refused.
    AssertedFormat,
}

/// How much of a schema object is relaxed because a limit was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RelaxationLevel {
    /// Single keywords.
    #[default]
    Keywords,
    /// What multiplies alternatives, and what compares or counts elements. `oneOf` is read as
    /// `anyOf`.
    Branches,
    /// All but types, constants, members, elements and references.
    Structure,
    /// All but types.
    Types,
}

/// What is known of a keyword.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    /// The first and the last dialect that define it. In others it is an annotation.
    dialects: (Dialect, Dialect),
    /// The vocabulary that defines it.
    pub(super) vocabulary: KeywordVocabulary,
    /// What its value is.
    pub(super) value: SchemaPosition,
    /// The level at which it is dropped; `None` for `type` and for what asserts nothing itself.
    pub(super) dropped_at: Option<RelaxationLevel>,
    /// The keywords without which it would forbid more: it is dropped together with them.
    pub(super) relies_on: &'static [&'static str],
}

impl Keyword {
    /// A row of the table.
    const fn row(
        name: &'static str,
        dialects: (Dialect, Dialect),
        vocabulary: KeywordVocabulary,
        value: SchemaPosition,
        dropped_at: Option<RelaxationLevel>,
    ) -> Keyword {
        Keyword { name, dialects, vocabulary, value, dropped_at, relies_on: &[] }
    }

    /// A row of a keyword that relies on others.
    const fn relying_on(self, relies_on: &'static [&'static str]) -> Keyword {
        Keyword { relies_on, ..self }
    }

    /// Looks up a keyword.
    pub(super) fn lookup(name: &str) -> Option<&'static Keyword> {
        static BY_NAME: LazyLock<HashMap<&'static str, &'static Keyword>> =
            LazyLock::new(|| KEYWORDS.iter().map(|keyword| (keyword.name, keyword)).collect());
        BY_NAME.get(name).copied()
    }

    /// Whether a dialect defines it.
    pub(super) fn is_defined_in(&self, dialect: Dialect) -> bool {
        (self.dialects.0..=self.dialects.1).contains(&dialect)
    }
}

/// All keywords.
pub(super) fn keywords() -> impl Iterator<Item = &'static Keyword> {
    KEYWORDS.iter()
}

/// The subschemas in the value of a keyword, each with its token in a JSON pointer below the
/// keyword: a name or an index. A value that is itself a schema has none.
pub(super) fn subschemas<'s>(
    keyword: &str,
    value: &'s Json,
) -> Vec<(Option<Cow<'s, str>>, &'s Json)> {
    use SchemaPosition::{Data, Schema, SchemaList, SchemaMap, SchemaOrList};
    let position = Keyword::lookup(keyword).map_or(Data, |keyword| keyword.value);
    match (position, value) {
        (SchemaMap, Json::Object(members)) => {
            members.iter().map(|(name, schema)| (Some(name.into()), schema)).collect()
        }
        (SchemaList | SchemaOrList, Json::Array(items)) => {
            let items = items.iter().enumerate();
            items.map(|(index, schema)| (Some(index.to_string().into()), schema)).collect()
        }
        (Schema | SchemaOrList, schema) => vec![(None, schema)],
        _ => Vec::new(),
    }
}

/// Whether a keyword is an annotation in every dialect.
pub(super) fn is_annotation(keyword: &str) -> bool {
    Keyword::lookup(keyword).is_some_and(|known| known.vocabulary == KeywordVocabulary::Annotation)
}

/// All dialects.
const ALL: (Dialect, Dialect) = (Draft4, Draft202012);
/// Draft 4, and what earlier drafts defined and Draft 4 did not take up.
const OLDEST: (Dialect, Dialect) = (Draft4, Draft4);

/// All keywords, sorted by name. `then`, `else`, `minContains` and `maxContains` are read with the
/// keyword that they belong to.
#[rustfmt::skip]
const KEYWORDS: &[Keyword] = &{
    use Keyword as K;
    use RelaxationLevel::{Branches, Structure, Types};
    use SchemaPosition::{Data, Schema, SchemaList, SchemaMap, SchemaOrList};
    use KeywordVocabulary::{Annotation, Applicator, Core, Format, Unevaluated, Validation};
    const SINCE_6: (Dialect, Dialect) = (Draft6, Draft202012);
    const SINCE_7: (Dialect, Dialect) = (Draft7, Draft202012);
    const SINCE_2019: (Dialect, Dialect) = (Draft201909, Draft202012);
    [
        K::row("$comment", ALL, Annotation, Data, None),
        K::row("$defs", ALL, Core, SchemaMap, None),
        K::row("$dynamicRef", (Draft202012, Draft202012), Core, Data, Some(Types)),
        K::row("$recursiveRef", (Draft201909, Draft201909), Core, Data, Some(Types)),
        K::row("$ref", ALL, Core, Data, Some(Types)),
        K::row("$schema", ALL, Core, Data, None),
        K::row("additionalItems", ALL, Applicator, Schema, Some(Types))
            .relying_on(&["prefixItems", "items"]),
        K::row("additionalProperties", ALL, Applicator, Schema, Some(Types))
            .relying_on(&["properties", "patternProperties"]),
        K::row("allOf", ALL, Applicator, SchemaList, Some(Types)),
        K::row("anyOf", ALL, Applicator, SchemaList, Some(Structure)),
        K::row("const", SINCE_6, Validation, Data, Some(Types)),
        K::row("contains", SINCE_6, Applicator, Schema, Some(Branches))
            .relying_on(&["minContains", "maxContains"]),
        K::row("default", ALL, Annotation, Data, None),
        K::row("definitions", ALL, Core, SchemaMap, None),
        K::row("dependencies", ALL, Core, SchemaMap, Some(Branches)),
        K::row("dependentRequired", SINCE_2019, Validation, Data, Some(Structure)),
        K::row("dependentSchemas", SINCE_2019, Applicator, SchemaMap, Some(Branches)),
        K::row("deprecated", ALL, Annotation, Data, None),
        K::row("description", ALL, Annotation, Data, None),
        K::row("disallow", OLDEST, Core, Data, None),
        K::row("divisibleBy", OLDEST, Core, Data, None),
        K::row("else", ALL, Core, Schema, None),
        K::row("enum", ALL, Validation, Data, Some(Types)),
        K::row("examples", ALL, Annotation, Data, None),
        K::row("exclusiveMaximum", ALL, Validation, Data, Some(Structure)),
        K::row("exclusiveMinimum", ALL, Validation, Data, Some(Structure)),
        K::row("extends", OLDEST, Core, Data, None),
        K::row("format", ALL, Format, Data, Some(Structure)),
        K::row("if", SINCE_7, Applicator, Schema, Some(Branches)).relying_on(&["then", "else"]),
        K::row("items", ALL, Applicator, SchemaOrList, Some(Types))
            .relying_on(&["prefixItems", "items"]),
        K::row("maxContains", ALL, Validation, Data, None),
        K::row("maxItems", ALL, Validation, Data, Some(Structure)),
        K::row("maxLength", ALL, Validation, Data, Some(Structure)),
        K::row("maxProperties", ALL, Validation, Data, Some(Structure)),
        K::row("maximum", ALL, Validation, Data, Some(Structure)),
        K::row("minContains", ALL, Validation, Data, None),
        K::row("minItems", ALL, Validation, Data, Some(Structure)),
        K::row("minLength", ALL, Validation, Data, Some(Structure)),
        K::row("minProperties", ALL, Validation, Data, Some(Structure)),
        K::row("minimum", ALL, Validation, Data, Some(Structure)),
        K::row("multipleOf", ALL, Validation, Data, Some(Structure)),
        K::row("not", ALL, Applicator, Schema, Some(Branches)),
        K::row("oneOf", ALL, Applicator, SchemaList, Some(Branches)),
        K::row("pattern", ALL, Validation, Data, Some(Structure)),
        K::row("patternProperties", ALL, Applicator, SchemaMap, Some(Structure)),
        K::row("prefixItems", ALL, Applicator, SchemaList, Some(Types)),
        K::row("properties", ALL, Applicator, SchemaMap, Some(Types)),
        K::row("propertyNames", SINCE_6, Applicator, Schema, Some(Structure)),
        K::row("readOnly", ALL, Annotation, Data, None),
        K::row("required", ALL, Validation, Data, Some(Types)),
        K::row("then", ALL, Core, Schema, None),
        K::row("title", ALL, Annotation, Data, None),
        K::row("type", ALL, Validation, Data, None),
        K::row("unevaluatedItems", SINCE_2019, Unevaluated, Schema, Some(Branches)),
        K::row("unevaluatedProperties", SINCE_2019, Unevaluated, Schema, Some(Branches)),
        K::row("uniqueItems", ALL, Validation, Data, Some(Branches)),
        K::row("writeOnly", ALL, Annotation, Data, None),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_rely_on_rows() {
        assert!(KEYWORDS.is_sorted_by(|a, b| a.name < b.name));
        let mut relied_on = KEYWORDS.iter().flat_map(|keyword| keyword.relies_on);
        assert!(relied_on.all(|name| Keyword::lookup(name).is_some()));
    }
}
