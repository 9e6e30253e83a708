//! Vocabularies (`$vocabulary`): the keywords that a custom metaschema enables. All other keywords
//! are annotations.
//!
//! The metaschema must be in the registry; without it, a schema has the standard vocabularies.

use super::registry::Registry;

use super::super::keyword::KeywordVocabulary;
use super::super::options::Dialect;
use crate::spec::json::{Json, Object};

/// A set of vocabularies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vocabularies(u8);

impl Vocabularies {
    /// The vocabularies of every metaschema.
    const ALWAYS: Vocabularies =
        Vocabularies(0).with(KeywordVocabulary::Core).with(KeywordVocabulary::Annotation);
    /// The vocabularies of the standard dialects.
    pub(super) const STANDARD: Vocabularies = Vocabularies::ALWAYS
        .with(KeywordVocabulary::Applicator)
        .with(KeywordVocabulary::Unevaluated)
        .with(KeywordVocabulary::Validation)
        .with(KeywordVocabulary::Format);

    /// The set with one more vocabulary.
    const fn with(self, vocabulary: KeywordVocabulary) -> Vocabularies {
        Vocabularies(self.0 | 1 << vocabulary as u8)
    }

    /// Whether a vocabulary is in the set.
    pub(super) fn include(self, vocabulary: KeywordVocabulary) -> bool {
        self.with(vocabulary) == self
    }
}

/// The vocabularies of keywords that a standard vocabulary has; `None` for an unknown one.
fn standard_vocabulary(uri: &str) -> Option<&'static [KeywordVocabulary]> {
    use KeywordVocabulary::{Applicator, AssertedFormat, Format, Unevaluated, Validation};
    let (dialect, name) =
        uri.strip_prefix("https://json-schema.org/draft/")?.split_once("/vocab/")?;
    Some(match (dialect, name) {
        ("2019-09" | "2020-12", "core" | "meta-data" | "content") => &[],
        ("2019-09", "applicator") => &[Applicator, Unevaluated],
        ("2020-12", "applicator") => &[Applicator],
        ("2020-12", "unevaluated") => &[Unevaluated],
        ("2019-09" | "2020-12", "validation") => &[Validation],
        ("2019-09", "format") | ("2020-12", "format-annotation") => &[Format],
        ("2020-12", "format-assertion") => &[Format, AssertedFormat],
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
        Some(declared) if dialect >= Dialect::Draft201909 => {
            let known = declared.iter().filter_map(|(uri, _)| standard_vocabulary(uri)).flatten();
            known.fold(Vocabularies::ALWAYS, |all, &one| all.with(one))
        }
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
