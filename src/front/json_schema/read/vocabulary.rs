//! Vocabularies (`$vocabulary`): the keywords that a custom metaschema enables. All other keywords
//! are annotations.
//!
//! The metaschema must be in the registry; without it, a schema has the standard vocabularies.

use super::registry::Registry;

use super::super::keyword::{Keyword, KeywordVocabulary};
use super::super::options::Dialect;
use crate::spec::json::{Json, Object};

/// A set of vocabularies, of those whose keywords constrain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vocabularies(u8);

/// In-place and child applicators, except `unevaluated...`.
const APPLICATOR: u8 = 1;
/// `unevaluatedItems` and `unevaluatedProperties`.
const UNEVALUATED: u8 = 2;
/// Assertions.
const VALIDATION: u8 = 4;
/// `format`, enforced as the options say.
const FORMAT: u8 = 8;
/// `format`, always enforced.
const ASSERTION: u8 = 16;

impl Vocabularies {
    /// The vocabularies of the standard dialects.
    pub(super) const STANDARD: Vocabularies =
        Vocabularies(APPLICATOR | UNEVALUATED | VALIDATION | FORMAT);

    /// Whether a vocabulary of the set defines the keyword.
    pub(crate) fn include(self, keyword: &Keyword) -> bool {
        let defined_by = match keyword.vocabulary {
            KeywordVocabulary::Core | KeywordVocabulary::Annotation => return true,
            KeywordVocabulary::Applicator => APPLICATOR,
            KeywordVocabulary::Unevaluated => UNEVALUATED,
            KeywordVocabulary::Validation => VALIDATION,
            KeywordVocabulary::Format => FORMAT | ASSERTION,
        };
        self.0 & defined_by != 0
    }

    /// Whether applicators apply.
    pub(super) fn has_applicators(self) -> bool {
        self.0 & APPLICATOR != 0
    }

    /// Whether assertions hold.
    pub(super) fn has_assertions(self) -> bool {
        self.0 & VALIDATION != 0
    }

    /// Whether formats are asserted regardless of the options, and unknown formats are refused.
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

/// The `$vocabulary` of the metaschema with this URI, if the registry has it.
fn declared_vocabularies<'r>(registry: &'r Registry, uri: &Json) -> Option<&'r Object> {
    let uri = uri.as_str()?;
    let (_, metaschema) = registry.get(uri.strip_suffix('#').unwrap_or(uri))?;
    metaschema.get("$vocabulary")?.as_object()
}

/// The vocabularies of a schema resource of this dialect; `inherited` if it has no `$schema`.
pub(super) fn vocabularies_of(
    registry: &Registry,
    json: &Json,
    dialect: Dialect,
    inherited: Vocabularies,
) -> Vocabularies {
    let Some(uri) = json.get("$schema") else { return inherited };
    match declared_vocabularies(registry, uri) {
        Some(declared) if dialect >= Dialect::Draft201909 => Vocabularies(
            declared
                .iter()
                .filter_map(|(uri, _)| standard_vocabulary(uri))
                .fold(0, |all, one| all | one),
        ),
        _ => Vocabularies::STANDARD,
    }
}

/// The unknown vocabularies that the metaschema with this URI requires.
pub(super) fn unknown_required_vocabularies<'r>(
    registry: &'r Registry,
    uri: &Json,
) -> impl Iterator<Item = &'r str> {
    let declared = declared_vocabularies(registry, uri).into_iter().flat_map(Object::iter);
    declared
        .filter(|(uri, value)| **value == Json::Bool(true) && standard_vocabulary(uri).is_none())
        .map(|(uri, _)| uri)
}
