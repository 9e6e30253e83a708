//! Options for lowering a schema.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::error::{SchemaError, SchemaErrorReason, SchemaErrors};
use crate::fsm::ByteSet;
use crate::ir::Expr;
use crate::limits::Limits;
use crate::setters::with_methods;

/// White space between JSON tokens.
///
/// In JSON, `"flexible"` and `"pretty"` alone stand for the default numbers: 40 bytes, two spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
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
        #[serde(default = "default_indent")]
        indent: u32,
    },
    /// Space, tab, line feed and carriage return, at most `max` of them between two tokens.
    Flexible {
        /// The largest number of white-space bytes between two tokens.
        #[serde(default = "default_max")]
        max: u32,
    },
}

fn default_indent() -> u32 {
    2
}

fn default_max() -> u32 {
    40
}

impl Default for Whitespace {
    fn default() -> Self {
        Whitespace::Flexible { max: default_max() }
    }
}

impl Serialize for Whitespace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Whitespace::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Whitespace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = match Value::deserialize(deserializer)? {
            Value::String(name) if matches!(&*name, "flexible" | "pretty") => {
                Value::from_iter([(name, Value::Object(Default::default()))])
            }
            form => form,
        };
        Whitespace::deserialize(form).map_err(D::Error::custom)
    }
}

/// Maximum number of indentation levels.
const MAX_INDENTS: u32 = 64;

impl Whitespace {
    /// The white space between two JSON tokens other than comma and colon.
    pub fn gap(self) -> Expr {
        match self {
            Whitespace::Flexible { max } => {
                Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(max))
            }
            Whitespace::Pretty { indent } => {
                let level = Expr::repeat(Expr::text(" "), indent, Some(indent));
                Expr::seq([Expr::text("\n"), Expr::repeat(level, 0, Some(MAX_INDENTS))])
            }
            Whitespace::Compact | Whitespace::PythonLike | Whitespace::Exact { .. } => Expr::Empty,
        }
    }

    /// A comma or colon with the white space around it. `gap`: [`Whitespace::gap`], perhaps as a
    /// rule.
    pub fn separator(self, mark: &str, gap: &Expr) -> Expr {
        let spaces = |count: u32| {
            Expr::seq([Expr::text(mark), Expr::repeat(Expr::text(" "), count, Some(count))])
        };
        match self {
            Whitespace::PythonLike => spaces(1),
            Whitespace::Exact { after_comma, .. } if mark == "," => spaces(after_comma),
            Whitespace::Exact { after_colon, .. } => spaces(after_colon),
            Whitespace::Pretty { .. } if mark == ":" => spaces(1),
            Whitespace::Pretty { .. } => Expr::seq([Expr::text(mark), gap.clone()]),
            Whitespace::Compact | Whitespace::Flexible { .. } => {
                Expr::seq([gap.clone(), Expr::text(mark), gap.clone()])
            }
        }
    }
}

/// What `format` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
pub enum Exponents {
    /// Exponents that double precision can represent: after one digit before the point, numbers are
    /// at most the greatest double; after several, exponents have at most two digits. Numbers in
    /// `enum` and `const` are written as listed, or without an exponent.
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
#[non_exhaustive]
pub enum MemberOrder {
    /// Any order. Objects with a member that is known only by its value (from a negation) and more
    /// than eight declared members have two orders: as the schema declares the members, or first
    /// the required ones in the order of `required` and then the others as declared. Additional
    /// members may stand anywhere between.
    #[default]
    Declared,
    /// Any order. An object with a member that is known only by its value and more than 12 declared
    /// members is refused.
    Any,
    /// First the declared members as the schema declares them, then required members that are not
    /// declared, then additional members.
    Fixed,
}

/// Whether members and elements that a schema does not mention are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Undeclared {
    /// Allowed, as JSON Schema specifies.
    #[default]
    Allowed,
    /// Forbidden, unless the schema constrains them, be it by `additionalProperties: true`, or
    /// needs them (`minProperties`, `minItems`). An object with `properties` or `patternProperties`
    /// has no other members, except required ones. An array with `prefixItems` has no further
    /// elements. The grammar accepts fewer texts than the schema, never more.
    Forbidden,
}

/// Whether two additional members of one object may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
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

impl Dialect {
    /// The dialect of this URI.
    pub(super) fn named(uri: &str) -> Option<Dialect> {
        Some(match uri.strip_suffix('#').unwrap_or(uri) {
            // The usual spellings.
            "http://json-schema.org/draft-04/schema" => Dialect::Draft4,
            "http://json-schema.org/draft-06/schema" => Dialect::Draft6,
            "http://json-schema.org/draft-07/schema" => Dialect::Draft7,
            "https://json-schema.org/draft/2020-12/schema" => Dialect::Draft202012,
            _ if uri.contains("draft-04") || uri.contains("draft-03") => Dialect::Draft4,
            _ if uri.contains("draft-06") => Dialect::Draft6,
            _ if uri.contains("draft-07") => Dialect::Draft7,
            _ if uri.contains("2019-09") => Dialect::Draft201909,
            // The second one is the newest dialect, whichever that is.
            _ if uri.contains("2020-12") || uri.ends_with("json-schema.org/schema#") => {
                Dialect::Draft202012
            }
            _ => return None,
        })
    }
}

/// How characters outside ASCII are spelled in constrained text (names, constants, patterns,
/// formats). Free text may use every JSON escape. With [`NonAscii::Escaped`], free text has no raw
/// characters outside ASCII either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
pub enum Policy {
    /// The schema is refused with an error.
    #[default]
    Strict,
    /// The keyword is dropped and reported, and so is what a limit refuses. The caller validates
    /// the finished text, which may violate only the reported keywords.
    Validate,
    /// As [`Policy::Validate`], but nothing is validated.
    BestEffort,
}

/// Options for lowering a schema.
// Many fields: options that users set one by one; no algorithm changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
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
    with_max_digits: max_digits = impl Into<Option<u32>>,
});

impl SchemaOptions {
    /// The options of turns of a model in the server and the SDK: the defaults, but what a schema
    /// does not declare is [forbidden](Undeclared::Forbidden). Models make up members where any may
    /// stand.
    ///
    /// ```
    /// use louver::front::json_schema::{SchemaOptions, Undeclared};
    ///
    /// assert_eq!(SchemaOptions::closed().undeclared, Undeclared::Forbidden);
    /// ```
    pub fn closed() -> SchemaOptions {
        SchemaOptions::default().with_undeclared(Undeclared::Forbidden)
    }

    /// Fuel for compiling a schema of this many bytes, in units. A policy that relaxes has twice
    /// the fuel of [`Limits::compile_budget`]: what a limit refuses is lowered again.
    pub fn compile_budget(&self, limits: &Limits, source_bytes: usize) -> u64 {
        let budget = limits.compile_budget(source_bytes);
        if self.policy == Policy::Strict { budget } else { budget.saturating_mul(2) }
    }

    /// Refuses a policy that relaxes keywords, for functions that cannot report them.
    pub(crate) fn require_strict(&self) -> Result<(), SchemaErrors> {
        match self.policy {
            Policy::Strict => Ok(()),
            Policy::Validate | Policy::BestEffort => {
                Err(SchemaErrors(vec![SchemaError::of_schema(SchemaErrorReason::Policy)]))
            }
        }
    }
}
