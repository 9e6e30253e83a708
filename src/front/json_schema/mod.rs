//! JSON Schema to grammar.
//!
//! What is enforced, how texts may be spelled and what is refused is written down in `docs/JSON_SCHEMA.md`. The flow:
//!
//! ```text
//! Json -> doc       locations, dialects
//!      -> resolve   $ref, $dynamicRef, identifiers, other documents of the registry
//!      -> keywords  one location's own keywords as Facets (type set, bounds, lengths, members, ...)
//!      -> normalize $ref, allOf, anyOf, oneOf, ... conjoined: a list of alternatives, each one Facets
//!      -> lower     Facets to rules; object, array, string, number: one file each
//! ```
//!
//! Values that are not JSON (`syntax`: Python literals, delimited strings) and members that do not stand in braces
//! (`parameters`: one tag each, keyword arguments) come from the same facets.
//!
//! A rule belongs to a *set of locations* whose schemas hold together. Locations are finite, so recursion ends.

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
mod group;
mod keywords;
mod listed;
mod lower;
mod magnitude;
mod members;
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
mod same;
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
use crate::spec::json::Json;

pub use deferred::defer;
pub use elements::{Elements, lower_elements};
pub use parameters::{
    Kinds, LoweredParameters, Parameters, Piece, Raw, Reading, lower_parameters, lower_syntax,
};
pub use profile::{ProfileError, openai_strict};
pub use registry::Registry;
pub(crate) use same::SchemaKey;
pub use syntax::Syntax;

/// White space between JSON tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whitespace {
    /// None at all: `{"a":[1,2]}`.
    Compact,
    /// Exactly as Python's `json.dumps`: `{"a": [1, 2]}`.
    PythonLike,
    /// No line feeds, and exactly so many spaces: `{"a":[1, 2]}` is `after_comma: 1, after_colon: 0`.
    Exact {
        /// Spaces behind a comma.
        after_comma: u32,
        /// Spaces behind a colon.
        after_colon: u32,
    },
    /// A line for each member and element, a space behind a colon. Lines begin with some levels of `indent` spaces (up to 64):
    /// whether they are as many as the line is deep is not checked.
    Pretty {
        /// Spaces of one level.
        indent: u32,
    },
    /// Space, tab, line feed and carriage return, at most `max` of them in each gap.
    Flexible {
        /// Most bytes in one gap.
        max: u32,
    },
}

/// What `format` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formats {
    /// Formats of the specification are enforced (or refused where they cannot be); unknown ones are annotations.
    #[default]
    Assert,
    /// As [`Formats::Assert`], and unknown ones are refused.
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
    /// Digits, and where the dialect calls `1.0` an integer (draft 6 and later) also a fraction of
    /// zeros, and an exponent.
    ZeroFraction,
}

/// Which exponents numbers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exponents {
    /// Those that double precision reads: up to 307 behind one digit before the point, of two
    /// digits behind more. Numbers that `enum` and `const` list are written as they are listed, or
    /// plainly.
    #[default]
    Double,
    /// Any, and listed numbers in any spelling. Where a number has bounds, or is an integer or a
    /// multiple, one digit that is not zero stands before the point (with [`Exponents::Double`],
    /// too); in integers and multiples only zeros behind it.
    Allowed,
    /// None.
    Forbidden,
}

/// In which order the members of an object may come. A declared name appears at most once in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberOrder {
    /// Objects with up to 64 declared members take them in any order. Of larger ones (and of those with more than four in which a member
    /// is looked for that only what it satisfies tells) they come as the schema declares them; or the required ones first, as
    /// `required` lists them, and then the others as declared. Additional members anywhere between.
    #[default]
    Declared,
    /// In any order. An object with more than 64 declared members is refused (more than 12 where a member is looked for).
    Any,
    /// Exactly as the schema declares them, then required ones that are not declared, then additional ones.
    Fixed,
}

/// What becomes of members and elements that a schema neither declares nor speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undeclared {
    /// As JSON Schema has it: there may be any.
    #[default]
    Allowed,
    /// An object with `properties` or `patternProperties` has no other members (but required ones), an array with `prefixItems` no
    /// further elements, unless the schema says something of them. Texts that are accepted are fewer, never more.
    Forbidden,
}

/// Whether members of an object that its schema does not declare may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdditionalNames {
    /// They differ, in any spelling. Costs nothing where there are none, and little elsewhere.
    #[default]
    Differ,
    /// They may, unless `minProperties` counts them: each such member satisfies the schema.
    MayRepeat,
}

/// Which elements `uniqueItems` compares as they are written, where they do not come from a small set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UniqueItems {
    /// Strings, numbers, booleans and nulls. Where elements may be objects or arrays, the keyword is refused.
    Scalars,
    /// All. In a schema with such elements that may be objects, additional names differ as well: see [`AdditionalNames`].
    #[default]
    Any,
}

/// The dialect of JSON Schema, for schemas without `$schema`.
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

/// How characters outside ASCII are spelt where the text is constrained (names, constants, patterns, formats). Free text may
/// use every escape JSON has; with [`NonAscii::Escaped`] it has no raw characters outside ASCII either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonAscii {
    /// As themselves or as `\uXXXX`.
    #[default]
    Either,
    /// As themselves.
    Raw,
    /// As `\uXXXX`, like Python's `json.dumps`.
    Escaped,
}

/// Which escapes ASCII characters may have where the text is constrained (names, constants, patterns, formats). Free text may use
/// every escape JSON has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escapes {
    /// Those JSON requires: `\n` and `\u000a`, but neither `\/` nor `\u0061`. Texts are forced where only one is possible.
    #[default]
    Required,
    /// Every escape JSON has, of every character.
    Any,
}

/// What happens to a keyword that cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The schema is refused.
    #[default]
    Strict,
    /// It is relaxed and reported; the caller validates the finished text, which may violate exactly the reported keywords.
    Validate,
    /// It is relaxed and reported.
    BestEffort,
}

/// How a schema is read.
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
    /// In which order members may come.
    pub order: MemberOrder,
    /// What becomes of members and elements that a schema does not speak of.
    pub undeclared: Undeclared,
    /// Whether members that are not declared may have the same name.
    pub additional_names: AdditionalNames,
    /// Which elements `uniqueItems` compares.
    pub unique_items: UniqueItems,
    /// What happens to a keyword that cannot be enforced.
    pub policy: Policy,
    /// The dialect of schemas without `$schema`.
    pub dialect: Dialect,
    /// How characters outside ASCII are spelt.
    pub non_ascii: NonAscii,
    /// Which escapes ASCII characters may have.
    pub escapes: Escapes,
    /// Most digits of a number before the decimal point, behind it, and in an exponent.
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

/// One thing about a schema that keeps it from being enforced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?}: {reason}")]
pub struct SchemaError {
    /// JSON pointer to the offending keyword's value, or to the schema.
    pub pointer: String,
    /// The keyword; empty if it is the schema as a whole.
    pub keyword: String,
    /// Why.
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
}

impl SchemaError {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self.reason {
            SchemaErrorReason::Malformed(_) => "correct the keyword's value",
            SchemaErrorReason::Unsupported(_) => {
                "remove the keyword or express it with supported ones (docs/JSON_SCHEMA.md)"
            }
            SchemaErrorReason::Unsatisfiable(_) => "loosen one of the contradicting keywords",
            SchemaErrorReason::Limit(_) => "simplify the schema or raise the limit",
        }
    }
}

/// Everything that keeps a schema from being enforced; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SchemaErrors(pub Vec<SchemaError>);

impl SchemaErrors {
    /// The errors.
    pub fn iter(&self) -> std::slice::Iter<'_, SchemaError> {
        self.0.iter()
    }

    /// Whether the schema is understood, and no value satisfies it.
    pub fn is_unsatisfiable(&self) -> bool {
        self.iter().all(|error| matches!(error.reason, SchemaErrorReason::Unsatisfiable(_)))
    }
}

impl fmt::Display for SchemaErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::front::write_list(f, &self.0)
    }
}

/// A grammar, and what of the schema it does not enforce.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The grammar.
    pub grammar: Grammar,
    /// Keywords that are not enforced, by pointer; empty with [`Policy::Strict`].
    pub relaxed: Vec<SchemaError>,
}

/// Lowers a schema to a grammar of the JSON texts it allows, without white space around the value. All errors of the
/// schema are reported, not only the first. Nothing is relaxed, whatever the policy. Cost: close to linear in the schema,
/// except for patterns.
pub fn lower(
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<Grammar, SchemaErrors> {
    let options = SchemaOptions { policy: Policy::Strict, ..*options };
    lower_reported(schema, &Registry::default(), &options, limits).map(|lowered| lowered.grammar)
}

/// As [`lower`], with documents that references may lead to, and obeying the policy.
pub fn lower_reported(
    schema: &Json,
    registry: &Registry,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<Lowered, SchemaErrors> {
    fuel::with_default_budget(
        || limits.compile_budget(schema.bytes()),
        || lower_within(schema, registry, options, limits),
    )
}

fn lower_within(
    schema: &Json,
    registry: &Registry,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<Lowered, SchemaErrors> {
    let mut builder = GrammarBuilder::new();
    let (start, relaxed) = lower_into_reported(&mut builder, schema, registry, options, limits)?;
    // References are to rules that were made here.
    let mut grammar = builder.into_grammar(start);
    let rules = grammar.rules.len();
    if rules > MANY_RULES
        && rules > parts(schema) * MULTIPLIED
        && let Ok(Cow::Owned(merged)) = grammar.simplify(Simplify::Cheap)
    {
        grammar = merged;
    }
    Ok(Lowered { grammar, relaxed })
}

/// Rules that are more than so many, and so many to each part of a schema, are mostly alike: alternatives have been multiplied.
const MANY_RULES: usize = 100;
const MULTIPLIED: usize = 3;

/// Arrays and objects in a document.
fn parts(json: &Json) -> usize {
    let (mut parts, mut stack) = (0, vec![json]);
    while let Some(json) = stack.pop() {
        match json {
            Json::Array(elements) => stack.extend(elements),
            Json::Object(members) => stack.extend(members.iter().map(|(_, value)| value)),
            _ => continue,
        }
        parts += 1;
    }
    parts
}

/// As [`lower`], adding the rules to a grammar under construction; returns the rule of the value. On an error the builder
/// may hold unused rules.
pub fn lower_into(
    builder: &mut GrammarBuilder,
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<RuleId, SchemaErrors> {
    let options = SchemaOptions { policy: Policy::Strict, ..*options };
    lower_into_reported(builder, schema, &Registry::default(), &options, limits)
        .map(|(rule, _)| rule)
}

/// As [`lower_reported`], adding the rules to a grammar under construction; returns the rule of the value and what was relaxed.
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
            let mut needs = normalize::Needs::default();
            loop {
                match lower::Lowering::new(builder, (schema, registry), *options, limits, needs)
                    .run()
                {
                    Ok(lowered) => return Ok(lowered),
                    Err(Ok(more)) => needs = more,
                    Err(Err(errors)) => return Err(errors),
                }
            }
        },
    )
}

#[cfg(test)]
mod tests;
