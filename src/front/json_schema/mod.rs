//! JSON Schema front end: lowers a schema to a grammar of the JSON texts that it allows.
//!
//! `docs/JSON_SCHEMA.md` says which keywords are enforced, how texts may be spelled, and what is
//! refused.
//!
//! # The pipeline
//!
//! ```text
//! schema (Json)
//!   |
//!   |  read/        One schema object -> ParsedKeywords: its own assertions as Facets,
//!   |               and the locations of the schemas that it applies to the same value.
//!   |                 mod            SchemaReader: options, limits, errors, patterns
//!   |                 doc            interned locations, JSON pointers
//!   |                 resources      identifiers and anchors, URIs
//!   |                 resolve        $ref, $dynamicRef, $recursiveRef
//!   |                 registry       documents that references may lead to
//!   |                 metaschemas    those of the drafts, which need no registry
//!   |                 relaxations    what a policy relaxes because of limits
//!   |                 vocabulary     keywords that a metaschema enables
//!   |                 facets         assertions by type: bounds, lengths, patterns, members
//!   |                 shared_facets  copy-on-write facets of one type
//!   |                 keywords       the keywords of one schema object
//!   v
//!   |  normalize/   Conjunction of locations -> Alternatives: a disjunction of Facets (DNF).
//!   |                 mod            expansion of locations, products; memo tables, limits
//!   |                 conjoin        allOf, anyOf, if, dependencies
//!   |                 one_of         oneOf
//!   |                 distribute     choices multiplied out; classes: by a discriminator
//!   |                 unevaluated    unevaluatedProperties, unevaluatedItems;
//!   |                                Undeclared::Forbidden
//!   |                 negate         not: one alternative for each keyword that can fail
//!   |                 prune          contradictory and subsumed alternatives are removed
//!   |                 eval           evaluates facets on a value; tests for emptiness
//!   v
//!   |  lower/       Facets -> grammar rules.
//!   |                 mod            values by type; memo: lowered values, common rules
//!   |                 attempts       repeated attempts: more features, more relaxed
//!   |                 containers     rules of objects and arrays, from a queue
//!   |                 constants      listed values
//!   |                 object         members: values, witnesses
//!   |                 names          spelling of names; name_classes: additional names
//!   |                 member_graph   orders and counts of members
//!   |                 unconstrained  rules of all strings, all arrays and so on
//!   |                 array          positions, contains, small uniqueItems
//!   |                 unique         uniqueItems by comparison
//!   |                 string         patterns, lengths; spelling: escapes
//!   |                 number         bounds; number_text, comparison, exponent, listed,
//!   |                                multiples: its automata
//!   |                 punctuation    brackets, commas, white space
//!   |                 syntax, elements, nested, parameters, raw_strings, lookalikes: values
//!   |                                that are not JSON text
//!   v
//! Grammar
//! ```
//!
//! A step imports only earlier steps and the leaves: `options`, `error`, `keyword` (the table of
//! keywords), `decimal`, `format` and `schema_key` (equality of schemas, for caches). `deferred`
//! (lowering on demand) and `profile` (the subset that OpenAI's strict mode accepts) stand above
//! the steps.
//!
//! SchemaLowering drives the pipeline. It asks the Normalizer for the alternatives of a
//! conjunction; the Normalizer asks the SchemaReader for the keywords of each location when it
//! first needs them. Subschemas of members and elements stay locations until they are lowered. A
//! rule belongs to a *conjunction of locations*, and locations are finite, so recursive schemas
//! end.

mod deferred;
mod error;
mod format;
mod keyword;
mod lower;
mod normalize;
mod options;
mod profile;
mod read;
mod schema_key;
mod warnings;

use crate::fuel;
use crate::ids::RuleId;
use crate::ir::{Grammar, GrammarBuilder};
use crate::limits::Limits;
use crate::spec::json::Json;

pub use deferred::{LazyTypes, defer};
pub use error::{SchemaError, SchemaErrorReason, SchemaErrors};
pub use lower::value_syntax::{
    AmbiguousText, ElementStyle, MemberPart, NameWriter, NestedStyle, ParameterStyle,
    PythonDialect, PythonValues, RawQuotes, RawStrings, ValueStyle, ValueSyntax,
};
pub use lower::value_types::ValueTypes;
pub use options::{
    AdditionalNames, Dialect, Escapes, Exponents, Formats, Integers, MemberOrder, NonAscii, Policy,
    SchemaOptions, Undeclared, UniqueItems, Whitespace,
};
pub use profile::{ProfileError, openai_strict};
pub use read::SchemaSource;
pub use read::facets::JsonTypes;
pub use read::registry::Registry;
pub(crate) use schema_key::SchemaKey;
pub use warnings::{missing_type, warnings};

/// The member of a schema with options of llguidance, which change the texts of a value.
const FOREIGN_OPTIONS: &str = "x-guidance";

/// A lowered schema: its grammar, and the keywords that the grammar does not enforce.
#[derive(Clone, Debug)]
pub struct LoweredSchema {
    /// The grammar.
    pub grammar: Grammar,
    /// Keywords that are not enforced, with their pointers; empty with [`Policy::Strict`].
    pub relaxed: Vec<SchemaError>,
}

/// Lowers a schema to a grammar of the JSON texts that it allows, without white space around the
/// value. Reports all errors of the schema, not only the first. Relaxes nothing, and refuses a
/// policy other than [`Policy::Strict`]. Cost: close to linear in the size of the schema, except
/// for patterns.
///
/// ```
/// use louver::front::json_schema;
/// use louver::{Json, Limits, SchemaOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits::default();
/// let lower = |schema: &str| {
///     json_schema::lower(&Json::parse(schema, &limits)?, &SchemaOptions::default(), &limits)
///         .map_err(Box::<dyn std::error::Error>::from)
/// };
/// let grammar = lower(r#"{"type": "array", "items": {"type": "integer"}}"#)?;
/// assert!(!grammar.rules.is_empty());
/// let error = lower(r#"{"items": {"type": "text"}}"#).unwrap_err();
/// assert!(error.to_string().contains("/items/type"));
/// # Ok(())
/// # }
/// ```
pub fn lower(
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<Grammar, SchemaErrors> {
    options.require_strict()?;
    let registry = Registry::default();
    let source = SchemaSource { schema, registry: &registry, options: *options, limits };
    lower_reported(source).map(|lowered| lowered.grammar)
}

/// As [`lower()`], with a registry of other documents, under any policy, and with a report of what
/// the policy relaxed.
///
/// ```
/// use louver::front::json_schema::{self, Policy, Registry, SchemaSource};
/// use louver::{Json, Limits, SchemaOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits::default();
/// // A back reference is not regular.
/// let schema = Json::parse(r#"{"pattern": "(a)\\1"}"#, &limits)?;
/// let options = SchemaOptions::default().with_policy(Policy::BestEffort);
/// let (schema, registry) = (&schema, &Registry::new());
/// let source = SchemaSource { schema, registry, options, limits: &limits };
/// let lowered = json_schema::lower_reported(source)?;
/// assert_eq!(lowered.relaxed[0].pointer, "/pattern");
/// # Ok(())
/// # }
/// ```
pub fn lower_reported(source: SchemaSource<'_>) -> Result<LoweredSchema, SchemaErrors> {
    within_budget(&source, || {
        let mut builder = GrammarBuilder::new();
        let style = ValueStyle::Syntax(ValueSyntax::Json);
        let LoweredValue { rule, relaxed, .. } = lower_into(&mut builder, source, &style)?;
        Ok(LoweredSchema { grammar: finish(builder, rule, source.schema), relaxed })
    })
}

/// Runs `work` within the fuel budget of the calling thread, or within that of a schema.
fn within_budget<T>(source: &SchemaSource<'_>, work: impl FnOnce() -> T) -> T {
    let budget = || source.options.compile_budget(source.limits, source.schema.text_len());
    fuel::with_default_budget(budget, work)
}

/// The grammar of a lowered schema, without equal rules if there are many.
fn finish(builder: GrammarBuilder, start: RuleId, schema: &Json) -> Grammar {
    // All rule references are to rules of this builder.
    let mut grammar = builder.into_grammar(start);
    let rules = grammar.rules.len();
    if rules > SIMPLIFY_ABOVE_RULES
        && rules > count_containers(schema) * SIMPLIFY_RULES_PER_CONTAINER
        && grammar.validate().is_ok()
    {
        grammar.merge_rules();
    }
    grammar
}

/// A grammar is simplified if it has more rules than this, and more than
/// [`SIMPLIFY_RULES_PER_CONTAINER`] for each object and array of the schema. Then most rules are
/// duplicates: normalization has multiplied alternatives.
const SIMPLIFY_ABOVE_RULES: usize = 100;
/// See [`SIMPLIFY_ABOVE_RULES`].
const SIMPLIFY_RULES_PER_CONTAINER: usize = 3;

/// The number of arrays and objects in a document.
fn count_containers(json: &Json) -> usize {
    json.values().filter(|value| matches!(value, Json::Array(_) | Json::Object(_))).count()
}

/// A schema's value as a rule of a grammar under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredValue {
    /// The rule.
    pub rule: RuleId,
    /// The types that a reader expects of the values in parameters and between tags. All types, in
    /// other styles.
    pub types: ValueTypes,
    /// Keywords that are not enforced, with their pointers; empty with [`Policy::Strict`].
    pub relaxed: Vec<SchemaError>,
}

/// As [`lower_reported`], but adds the rules to a grammar under construction, in any style. After
/// an error the builder may hold unused rules.
///
/// Between tags there is no white space, regardless of the options.
///
/// ```
/// use std::sync::Arc;
/// use louver::front::json_schema::{
///     self, PythonDialect, Registry, SchemaSource, ValueStyle, ValueSyntax,
/// };
/// use louver::ir::GrammarBuilder;
/// use louver::{Compiled, Json, Limits, Recognizer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (limits, registry, options) = (Limits::default(), Registry::new(), Default::default());
/// let schema = &Json::parse(r#"{"type": "boolean"}"#, &limits)?;
/// let source = SchemaSource { schema, registry: &registry, options, limits: &limits };
/// let mut builder = GrammarBuilder::new();
/// let python = ValueStyle::Syntax(ValueSyntax::Python(PythonDialect::Literals));
/// let lowered = json_schema::lower_into(&mut builder, source, &python)?;
/// let grammar = builder.finish(lowered.rule)?;
/// let mut recognizer = Recognizer::new(Arc::new(Compiled::new(grammar, &limits)?));
/// assert!(recognizer.push(b"True").is_ok() && recognizer.is_complete());
/// # Ok(())
/// # }
/// ```
pub fn lower_into(
    builder: &mut GrammarBuilder,
    mut source: SchemaSource<'_>,
    style: &ValueStyle,
) -> Result<LoweredValue, SchemaErrors> {
    if source.schema.get_non_null(FOREIGN_OPTIONS).is_some() {
        let what = "options of another engine: leave them out, and use the option `whitespace`";
        return Err(SchemaErrors(vec![SchemaError {
            pointer: format!("/{FOREIGN_OPTIONS}"),
            keyword: FOREIGN_OPTIONS.to_owned(),
            reason: SchemaErrorReason::Unsupported(what.to_owned()),
        }]));
    }
    if matches!(style, ValueStyle::Syntax(ValueSyntax::Nested(_))) {
        source.options.whitespace = Whitespace::Compact;
    }
    within_budget(&source, || {
        let ((rule, types), relaxed) = lower::attempts::retry(&source.options, |attempt| {
            let normalizer = normalize::Normalizer::new(source, attempt);
            lower::SchemaLowering::new(builder, normalizer).lower_root(style)
        })?;
        Ok(LoweredValue { rule, types, relaxed })
    })
}

/// As [`lower_into`], without other documents. Relaxes nothing, and refuses a policy other than
/// [`Policy::Strict`]: for callers that cannot report what is relaxed.
pub(crate) fn lower_strict_into(
    builder: &mut GrammarBuilder,
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
    style: &ValueStyle,
) -> Result<RuleId, SchemaErrors> {
    options.require_strict()?;
    let registry = &Registry::default();
    let source = SchemaSource { schema, registry, options: *options, limits };
    lower_into(builder, source, style).map(|lowered| lowered.rule)
}

#[cfg(test)]
mod tests;
