//! Vocabularies: which keywords a metaschema that is at hand gives a meaning. The keywords of others are annotations.

use super::Dialect as Draft;
use super::doc::{Doc, LocId};
use super::normalize::Normalizer;
use crate::spec::json::Json;

/// A set of vocabularies, as far as they have keywords that assert something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vocabularies(u8);

const APPLICATOR: u8 = 1;
const UNEVALUATED: u8 = 2;
const VALIDATION: u8 = 4;
const FORMAT: u8 = 8;
const ASSERTION: u8 = 16;

impl Vocabularies {
    /// Those of a dialect of JSON Schema itself.
    pub(super) const STANDARD: Vocabularies =
        Vocabularies(APPLICATOR | UNEVALUATED | VALIDATION | FORMAT);

    /// Whether a keyword has its meaning.
    pub(super) fn have(self, keyword: &str) -> bool {
        let of = match keyword {
            "prefixItems"
            | "items"
            | "additionalItems"
            | "contains"
            | "properties"
            | "patternProperties"
            | "additionalProperties"
            | "dependentSchemas"
            | "propertyNames"
            | "if"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not" => APPLICATOR,
            "unevaluatedItems" | "unevaluatedProperties" => UNEVALUATED,
            "type" | "enum" | "const" | "multipleOf" | "maximum" | "exclusiveMaximum"
            | "minimum" | "exclusiveMinimum" | "maxLength" | "minLength" | "pattern"
            | "maxItems" | "minItems" | "uniqueItems" | "maxContains" | "minContains"
            | "maxProperties" | "minProperties" | "required" | "dependentRequired" => VALIDATION,
            "format" => FORMAT | ASSERTION,
            _ => return true,
        };
        self.0 & of != 0
    }

    /// Whether formats are asserted whatever the options say, and unknown ones refused.
    pub(super) fn assert_formats(self) -> bool {
        self.0 & ASSERTION != 0
    }
}

/// What a vocabulary of JSON Schema's has; `None` for one that is not known.
fn known(uri: &str) -> Option<u8> {
    let (draft, name) =
        uri.strip_prefix("https://json-schema.org/draft/")?.split_once("/vocab/")?;
    Some(match (draft, name) {
        ("2019-09" | "2020-12", "core" | "meta-data" | "content") => 0,
        ("2019-09", "applicator") => APPLICATOR | UNEVALUATED,
        ("2020-12", "applicator") => APPLICATOR,
        ("2020-12", "unevaluated") => UNEVALUATED,
        ("2019-09" | "2020-12", "validation") => VALIDATION,
        ("2019-09", "format") | ("2020-12", "format-annotation") => FORMAT,
        ("2020-12", "format-assertion") => ASSERTION,
        _ => return None,
    })
}

impl<'a> Doc<'a> {
    /// What the metaschema that a schema names says, if it is at hand and says something.
    fn declared(&self, uri: &Json) -> Option<&'a Json> {
        let uri = uri.as_str()?;
        let (_, metaschema) = self.remotes.get(uri.strip_suffix('#').unwrap_or(uri))?;
        metaschema.get("$vocabulary")
    }

    /// The vocabularies of a resource of this dialect.
    pub(super) fn vocabularies_of(
        &self,
        json: &Json,
        draft: Draft,
        inherited: Vocabularies,
    ) -> Vocabularies {
        let Some(uri) = json.get("$schema") else { return inherited };
        match self.declared(uri).and_then(Json::as_object) {
            Some(declared) if draft >= Draft::Draft201909 => Vocabularies(
                declared.iter().filter_map(|(uri, _)| known(uri)).fold(0, |all, one| all | one),
            ),
            _ => Vocabularies::STANDARD,
        }
    }
}

impl Normalizer<'_> {
    /// Refuses what a metaschema requires and nobody here knows.
    pub(super) fn dialect(&mut self, loc: LocId, uri: &Json) {
        let declared = self.doc.declared(uri).and_then(Json::as_object);
        let required = declared.into_iter().flat_map(|declared| declared.iter());
        let unknown: Vec<&str> = required
            .filter(|(uri, value)| **value == Json::Bool(true) && known(uri).is_none())
            .map(|(u, _)| u)
            .collect();
        for vocabulary in unknown {
            let what =
                format!("the metaschema requires the vocabulary {vocabulary}, which is not known");
            self.unsupported(loc, "$schema", what);
        }
    }
}
