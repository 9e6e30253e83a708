//! Vocabularies (`$vocabulary`): the keywords that a custom metaschema enables. All other keywords
//! are annotations. Read step of the pipeline, see the [module](super).
//!
//! The metaschema must be in the registry; without it, a schema has the standard vocabularies.

use super::Dialect;
use super::doc::{Doc, LocId};
use super::normalize::Normalizer;
use crate::spec::json::Json;

/// A set of vocabularies, of those whose keywords constrain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vocabularies(u8);

const APPLICATOR: u8 = 1;
const UNEVALUATED: u8 = 2;
const VALIDATION: u8 = 4;
const FORMAT: u8 = 8;
const ASSERTION: u8 = 16;

impl Vocabularies {
    /// The vocabularies of the standard dialects.
    pub(super) const STANDARD: Vocabularies =
        Vocabularies(APPLICATOR | UNEVALUATED | VALIDATION | FORMAT);

    /// Whether a vocabulary of the set defines the keyword. Keywords of no vocabulary count as
    /// defined.
    pub(super) fn include(self, keyword: &str) -> bool {
        let defined_by = match keyword {
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
        self.0 & defined_by != 0
    }

    /// Whether formats are asserted whatever the options say, and unknown formats are refused.
    pub(super) fn assert_formats(self) -> bool {
        self.0 & ASSERTION != 0
    }
}

/// The bits of a standard vocabulary; `None` for an unknown one.
fn standard_vocabulary(uri: &str) -> Option<u8> {
    let (dialect, name) =
        uri.strip_prefix("https://json-schema.org/draft/")?.split_once("/vocab/")?;
    Some(match (dialect, name) {
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
    /// The `$vocabulary` of the metaschema with this URI, if the registry has it.
    fn declared_vocabularies(&self, uri: &Json) -> Option<&'a Json> {
        let uri = uri.as_str()?;
        let (_, metaschema) = self.registry.get(uri.strip_suffix('#').unwrap_or(uri))?;
        metaschema.get("$vocabulary")
    }

    /// The vocabularies of a schema resource of this dialect; `inherited` if it has no `$schema`.
    pub(super) fn vocabularies_of(
        &self,
        json: &Json,
        dialect: Dialect,
        inherited: Vocabularies,
    ) -> Vocabularies {
        let Some(uri) = json.get("$schema") else { return inherited };
        match self.declared_vocabularies(uri).and_then(Json::as_object) {
            Some(declared) if dialect >= Dialect::Draft201909 => Vocabularies(
                declared
                    .iter()
                    .filter_map(|(uri, _)| standard_vocabulary(uri))
                    .fold(0, |all, one| all | one),
            ),
            _ => Vocabularies::STANDARD,
        }
    }
}

impl Normalizer<'_> {
    /// Refuses a metaschema that requires an unknown vocabulary.
    pub(super) fn check_required_vocabularies(&mut self, loc: LocId, uri: &Json) {
        let declared = self.doc.declared_vocabularies(uri).and_then(Json::as_object);
        let required = declared.into_iter().flat_map(|declared| declared.iter());
        let unknown: Vec<&str> = required
            .filter(|(uri, value)| {
                **value == Json::Bool(true) && standard_vocabulary(uri).is_none()
            })
            .map(|(uri, _)| uri)
            .collect();
        for vocabulary in unknown {
            let what =
                format!("the metaschema requires the vocabulary {vocabulary}, which is unknown");
            self.unsupported(loc, "$schema", what);
        }
    }
}
