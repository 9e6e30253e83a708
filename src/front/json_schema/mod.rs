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
//!   |  read         One schema object -> ParsedKeywords: its own assertions as Facets,
//!   |               and the locations of the schemas that it applies to the same value.
//!   |                 doc         interned locations, JSON pointers, dialects
//!   |                 resolve     $ref, $dynamicRef, $id, $anchor
//!   |                 registry    documents that references may lead to
//!   |                 vocabulary  keywords that a metaschema enables
//!   |                 keywords    the keywords of one schema object
//!   v
//!   |  normalize    Conjunction of locations -> Alternatives: a disjunction of Facets (DNF).
//!   |                 facets         assertions by type: bounds, lengths, patterns, members
//!   |                 shared_facets  copy-on-write facets of one type
//!   |                 normalize      allOf, anyOf, oneOf, if, dependencies; memo tables, limits
//!   |                 negate         not: one alternative for each keyword that can fail
//!   |                 prune          contradictory and subsumed alternatives are removed
//!   |                 eval           does a value satisfy facets, does any value
//!   |                 closed         Undeclared::Forbidden
//!   v
//!   |  lower        Facets -> grammar rules.
//!   |                 lower         queue of rules, memo tables, constants, types
//!   |                 object        members: names, values, classes of additional names
//!   |                 member_graph  orders and counts of members
//!   |                 array         positions, contains, small uniqueItems
//!   |                 unique        uniqueItems by comparison
//!   |                 string, number and the files they use (spelling, exponent, decimal, ...)
//!   |                 syntax, elements, parameters, punctuation: values that are not JSON text
//!   v
//! Grammar
//! ```
//!
//! SchemaLowering drives the pipeline. It asks the normalizer for the alternatives of a
//! conjunction; the normalizer reads the keywords of each location when it first needs them.
//! Subschemas of members and elements stay locations until they are lowered. A rule belongs to a
//! *conjunction of locations*, and locations are finite, so recursive schemas end.
//!
//! Beside the pipeline: `schema_key` (equality of schemas, for caches), `deferred` (lowering on
//! demand), `profile` (the subset that OpenAI's strict mode accepts).

mod array;
mod closed;
mod decimal;
mod deferred;
mod doc;
mod elements;
mod eval;
mod exponent;
mod facets;
mod format;
mod keywords;
mod listed;
mod lower;
mod magnitude;
mod member_graph;
mod multiples;
mod negate;
mod normalize;
mod number;
mod object;
mod parameters;
mod profile;
mod prune;
mod punctuation;
mod registry;
mod resolve;
mod schema_key;
mod shared_facets;
mod spelling;
mod string;
mod syntax;
mod unique;
mod vocabulary;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fuel;
use crate::ids::RuleId;
use crate::ir::{Grammar, GrammarBuilder, Simplify};
use crate::limits::Limits;
use crate::setters::with_methods;
use crate::spec::json::Json;

pub use deferred::defer;
pub use elements::{ElementStyle, lower_elements};
pub use parameters::{
    AmbiguousText, JsonTypes, LoweredParameters, MemberPart, ParameterStyle, RawStrings,
    lower_parameters, lower_syntax,
};
pub use profile::{ProfileError, openai_strict};
pub use registry::Registry;
pub(crate) use schema_key::SchemaKey;
pub use syntax::ValueSyntax;

/// White space between JSON tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whitespace {
    /// None at all: `{"a":[1,2]}`.
    Compact,
    /// Exactly as Python's `json.dumps`: `{"a": [1, 2]}`.
    PythonLike,
    /// No line feeds, and exact numbers of spaces: `{"a":[1, 2]}` is `after_comma: 1, after_colon:
    /// 0`.
    Exact {
        /// Spaces after a comma.
        after_comma: u32,
        /// Spaces after a colon.
        after_colon: u32,
    },
    /// One line for each member and element, one space after a colon. A line begins with up to 64
    /// levels of `indent` spaces. The number of levels is not checked against the nesting depth.
    Pretty {
        /// Spaces of one indentation level.
        indent: u32,
    },
    /// Space, tab, line feed and carriage return, at most `max` of them between two tokens.
    Flexible {
        /// The largest number of white-space bytes between two tokens.
        max: u32,
    },
}

/// What `format` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formats {
    /// Formats of the specification are enforced, or refused if they cannot be. Unknown formats are
    /// annotations.
    #[default]
    Assert,
    /// As [`Formats::Assert`], but unknown formats are refused.
    RefuseUnknown,
    /// All formats are annotations.
    Annotate,
}

/// How an integer may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integers {
    /// Digits only.
    #[default]
    Digits,
    /// Digits. If the dialect counts `1.0` as an integer (draft 6 and later), also a fraction of
    /// zeros, and an exponent.
    ZeroFraction,
}

/// Which exponents numbers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exponents {
    /// Exponents that double precision can represent: at most 307 after one digit before the point,
    /// and at most two exponent digits after several. Numbers in `enum` and `const` are written as
    /// listed, or without an exponent.
    #[default]
    Double,
    /// Any exponent, and listed numbers in any spelling. A number with bounds, an integer or a
    /// multiple has one non-zero digit before the point (with [`Exponents::Double`], too). In
    /// integers and multiples only zeros may follow that digit.
    Allowed,
    /// No exponents.
    Forbidden,
}

/// The order of the members of an object. A declared name appears at most once in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberOrder {
    /// Objects of up to 64 declared members accept them in any order. With a member that is known
    /// only by its value (from a negation) that limit is 4.
    ///
    /// Larger objects have two orders: as the schema declares the members, or first the required
    /// ones in the order of `required` and then the others as declared. Additional members may
    /// stand anywhere between.
    #[default]
    Declared,
    /// Any order. An object of more than 64 declared members is refused (more than 12 if a member
    /// is known only by its value).
    Any,
    /// First the declared members as the schema declares them, then required members that are not
    /// declared, then additional members.
    Fixed,
}

/// Whether members and elements that a schema does not mention are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undeclared {
    /// Allowed, as JSON Schema specifies.
    #[default]
    Allowed,
    /// Forbidden, unless the schema constrains them. An object with `properties` or
    /// `patternProperties` has no other members, except required ones. An array with `prefixItems`
    /// has no further elements. The grammar accepts fewer texts than the schema, never more.
    Forbidden,
}

/// Whether two additional members of one object may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdditionalNames {
    /// Names differ by value, however they are spelled. Objects without additional members cost
    /// nothing extra.
    #[default]
    Differ,
    /// Names may repeat, unless `minProperties` counts them. Each of these members satisfies the
    /// schema.
    MayRepeat,
}

/// Which elements `uniqueItems` compares while they are read, if they do not come from a small set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UniqueItems {
    /// Strings, numbers, booleans and null. The keyword is refused if elements may be objects or
    /// arrays.
    Scalars,
    /// All elements. If they may be objects, additional names of objects differ as well: see
    /// [`AdditionalNames`].
    #[default]
    Any,
}

/// The dialect of JSON Schema: its draft or release.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum Dialect {
    /// Draft 4.
    #[serde(rename = "draft4")]
    Draft4,
    /// Draft 6.
    #[serde(rename = "draft6")]
    Draft6,
    /// Draft 7.
    #[serde(rename = "draft7")]
    Draft7,
    /// 2019-09.
    #[serde(rename = "2019-09")]
    Draft201909,
    /// 2020-12.
    #[default]
    #[serde(rename = "2020-12")]
    Draft202012,
}

/// How characters outside ASCII are spelled in constrained text (names, constants, patterns,
/// formats). Free text may use every JSON escape. With [`NonAscii::Escaped`], free text has no raw
/// characters outside ASCII either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonAscii {
    /// Raw, or as `\uXXXX`.
    #[default]
    Either,
    /// Raw.
    Raw,
    /// As `\uXXXX`, like Python's `json.dumps`.
    Escaped,
}

/// Which escapes ASCII characters may have in constrained text (names, constants, patterns,
/// formats). Free text may use every JSON escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escapes {
    /// Only the escapes that JSON requires: `\n` and `\u000a`, but not `\/` or `\u0061`. Text is
    /// then forced wherever only one text is possible.
    #[default]
    Required,
    /// Every JSON escape of every character.
    Any,
}

/// What happens to a keyword that cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The schema is refused with an error.
    #[default]
    Strict,
    /// The keyword is dropped and reported. The caller validates the finished text, which may
    /// violate only the reported keywords.
    Validate,
    /// The keyword is dropped and reported.
    BestEffort,
}

/// Options for lowering a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SchemaOptions {
    /// White space between JSON tokens.
    pub whitespace: Whitespace,
    /// What `format` does.
    pub formats: Formats,
    /// How an integer may be written.
    pub integers: Integers,
    /// Which exponents numbers may have.
    pub exponents: Exponents,
    /// The order of the members of an object.
    pub order: MemberOrder,
    /// Whether members and elements that a schema does not mention are allowed.
    pub undeclared: Undeclared,
    /// Whether additional members of an object may have the same name.
    pub additional_names: AdditionalNames,
    /// Which elements `uniqueItems` compares.
    pub unique_items: UniqueItems,
    /// What happens to a keyword that cannot be enforced.
    pub policy: Policy,
    /// The dialect of schemas without `$schema`.
    pub dialect: Dialect,
    /// How characters outside ASCII are spelled.
    pub non_ascii: NonAscii,
    /// Which escapes ASCII characters may have.
    pub escapes: Escapes,
    /// The largest number of digits of a number before the decimal point, after it, and in its
    /// exponent.
    pub max_digits: Option<u32>,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        SchemaOptions {
            whitespace: Whitespace::Flexible { max: 40 },
            formats: Formats::default(),
            integers: Integers::default(),
            exponents: Exponents::default(),
            order: MemberOrder::default(),
            undeclared: Undeclared::default(),
            additional_names: AdditionalNames::default(),
            unique_items: UniqueItems::default(),
            policy: Policy::default(),
            dialect: Dialect::default(),
            non_ascii: NonAscii::default(),
            escapes: Escapes::default(),
            max_digits: None,
        }
    }
}

with_methods!(SchemaOptions {
    with_whitespace: whitespace = Whitespace,
    with_formats: formats = Formats,
    with_integers: integers = Integers,
    with_exponents: exponents = Exponents,
    with_order: order = MemberOrder,
    with_undeclared: undeclared = Undeclared,
    with_additional_names: additional_names = AdditionalNames,
    with_unique_items: unique_items = UniqueItems,
    with_policy: policy = Policy,
    with_dialect: dialect = Dialect,
    with_non_ascii: non_ascii = NonAscii,
    with_escapes: escapes = Escapes,
    with_max_digits: max_digits = Option<u32>,
});

impl SchemaOptions {
    /// Refuses a policy that relaxes keywords, for functions that cannot report them.
    pub(crate) fn require_strict(&self) -> Result<(), SchemaErrors> {
        match self.policy {
            Policy::Strict => Ok(()),
            Policy::Validate | Policy::BestEffort => Err(SchemaErrors(vec![SchemaError {
                pointer: String::new(),
                keyword: String::new(),
                reason: SchemaErrorReason::Policy,
            }])),
        }
    }
}

/// One reason why a schema cannot be enforced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: {reason}")]
pub struct SchemaError {
    /// JSON pointer to the offending keyword's value, or to the schema.
    pub pointer: String,
    /// The keyword; empty for an error of the schema as a whole.
    pub keyword: String,
    /// The reason.
    pub reason: SchemaErrorReason,
}

/// Why a schema is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaErrorReason {
    /// Not a schema: a keyword's value has the wrong form.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A keyword, or a use of it, that is not enforced yet.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// No value satisfies the schema.
    #[error("unsatisfiable: {0}")]
    Unsatisfiable(String),
    /// A limit was reached.
    #[error("limit reached: {0}")]
    Limit(String),
    /// The policy would relax keywords, but the called function does not report them.
    #[error("the policy must be `strict` here: what another one relaxes would not be reported")]
    Policy,
}

impl SchemaError {
    /// Advice for the author of the schema.
    pub fn hint(&self) -> &'static str {
        match self.reason {
            SchemaErrorReason::Malformed(_) => "correct the keyword's value",
            SchemaErrorReason::Unsupported(_) => {
                "remove the keyword or express it with supported ones (docs/JSON_SCHEMA.md)"
            }
            SchemaErrorReason::Unsatisfiable(_) => "loosen one of the contradicting keywords",
            SchemaErrorReason::Limit(_) => "simplify the schema or raise the limit",
            SchemaErrorReason::Policy => "set the policy to `strict`",
        }
    }
}

/// All errors of a schema; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SchemaErrors(pub Vec<SchemaError>);

impl SchemaErrors {
    /// The errors.
    pub fn iter(&self) -> std::slice::Iter<'_, SchemaError> {
        self.0.iter()
    }

    /// Whether the schema is valid and enforceable, but no value satisfies it.
    pub fn is_unsatisfiable(&self) -> bool {
        self.iter().all(|error| matches!(error.reason, SchemaErrorReason::Unsatisfiable(_)))
    }
}

impl fmt::Display for SchemaErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::front::write_list(f, &self.0)
    }
}

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
    lower_reported(schema, &Registry::default(), options, limits).map(|lowered| lowered.grammar)
}

/// As [`lower()`], with a registry of other documents, under any policy, and with a report of what
/// the policy relaxed.
///
/// ```
/// use louver::front::json_schema::{self, Policy, Registry};
/// use louver::{Json, Limits, SchemaOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = Limits::default();
/// // A back reference is not regular.
/// let schema = Json::parse(r#"{"pattern": "(a)\\1"}"#, &limits)?;
/// let options = SchemaOptions::default().with_policy(Policy::BestEffort);
/// let lowered = json_schema::lower_reported(&schema, &Registry::new(), &options, &limits)?;
/// assert_eq!(lowered.relaxed[0].pointer, "/pattern");
/// # Ok(())
/// # }
/// ```
pub fn lower_reported(
    schema: &Json,
    registry: &Registry,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<LoweredSchema, SchemaErrors> {
    fuel::with_default_budget(
        || limits.compile_budget(schema.bytes()),
        || lower_within(schema, registry, options, limits),
    )
}

/// Lowers within the fuel budget of the calling thread, and merges equal rules if there are many.
fn lower_within(
    schema: &Json,
    registry: &Registry,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<LoweredSchema, SchemaErrors> {
    let mut builder = GrammarBuilder::new();
    let (start, relaxed) = lower_into_reported(&mut builder, schema, registry, options, limits)?;
    // All rule references are to rules of this builder.
    let mut grammar = builder.into_grammar(start);
    let rules = grammar.rules.len();
    if rules > SIMPLIFY_ABOVE_RULES
        && rules > count_containers(schema) * SIMPLIFY_RULES_PER_CONTAINER
        && let Ok(Cow::Owned(merged)) = grammar.simplify(Simplify::Cheap)
    {
        grammar = merged;
    }
    Ok(LoweredSchema { grammar, relaxed })
}

/// A grammar is simplified if it has more rules than this, and more than
/// [`SIMPLIFY_RULES_PER_CONTAINER`] for each object and array of the schema. Then most rules are
/// duplicates: normalization has multiplied alternatives.
const SIMPLIFY_ABOVE_RULES: usize = 100;
/// See [`SIMPLIFY_ABOVE_RULES`].
const SIMPLIFY_RULES_PER_CONTAINER: usize = 3;

/// The number of arrays and objects in a document.
fn count_containers(json: &Json) -> usize {
    let (mut containers, mut stack) = (0, vec![json]);
    while let Some(json) = stack.pop() {
        match json {
            Json::Array(elements) => stack.extend(elements),
            Json::Object(members) => stack.extend(members.iter().map(|(_, value)| value)),
            _ => continue,
        }
        containers += 1;
    }
    containers
}

/// As [`lower()`], but adds the rules to a grammar under construction and returns the rule of the
/// value. After an error the builder may hold unused rules.
pub fn lower_into(
    builder: &mut GrammarBuilder,
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<RuleId, SchemaErrors> {
    options.require_strict()?;
    lower_into_reported(builder, schema, &Registry::default(), options, limits)
        .map(|(rule, _)| rule)
}

/// As [`lower_reported`], but adds the rules to a grammar under construction. Returns the rule of
/// the value, and what was relaxed.
pub fn lower_into_reported(
    builder: &mut GrammarBuilder,
    schema: &Json,
    registry: &Registry,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<(RuleId, Vec<SchemaError>), SchemaErrors> {
    fuel::with_default_budget(
        || limits.compile_budget(schema.bytes()),
        || {
            lower::retry_with_features(|features| {
                let source = (schema, registry);
                lower::SchemaLowering::new(builder, source, *options, limits, features).lower_root()
            })
        },
    )
}

#[cfg(test)]
mod tests;
