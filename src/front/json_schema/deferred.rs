//! Deferred schemas: a schema is lowered when a parse first reaches it. Used for the argument
//! schemas of tools, most of which a model never calls.
//!
//! Errors must still be found when the request is made. So only schemas are deferred of which a
//! cheap check of the keywords shows that lowering cannot fail.

use std::sync::{Arc, LazyLock};

use super::keyword::is_annotation;
use super::lower::value_syntax::{ParameterStyle, ValueStyle, ValueSyntax};
use super::lower::value_types::ValueTypes;
use super::options::{Formats, Policy, SchemaOptions};
use super::read::SchemaSource;
use super::read::facets::JsonTypes;
use super::read::registry::Registry;
use super::{LoweredValue, finish, lower_into};
use crate::front::text_search::contains;
use crate::ir::{Deferred, Expr, Grammar, GrammarBuilder, Trigger};
use crate::limits::Limits;
use crate::spec::json::{Json, Object};

/// Deepest nesting of a deferred schema.
const MAX_DEPTH: usize = 12;
/// The largest number of schemas, keywords and constants of a deferred schema.
const MAX_NODES: usize = 1_000;
/// What a bound on numbers counts: it is an automaton, and so many take most of a mask's fuel.
const NODES_OF_BOUND: usize = 10;
/// The largest number of declared members of one object.
const MAX_MEMBERS: usize = 32;
/// Largest absolute value of a bound; so bounds compare as integers.
const MAX_BOUND: i64 = 1 << 50;
/// Largest bound on a length.
const MAX_LENGTH: i64 = 1 << 20;
/// Longest declared name, in bytes, where undeclared names need an automaton.
const MAX_NAME_BYTES: usize = 128;

/// The types of the values of a schema, once it is lowered.
pub type LazyTypes = Arc<LazyLock<ValueTypes, Box<dyn FnOnce() -> ValueTypes + Send>>>;

/// The grammar of a schema, lowered when a parse first reaches it, and the types that a reader
/// expects. `None` if only lowering can tell whether the schema can be enforced; a deferred schema
/// certainly can. The special tokens of the style are those of the builder.
///
/// Schemas can be deferred that use types, properties, items, lists of strings or integers, plain
/// bounds, and references to such definitions, as those of most tools do. Cost: linear in the
/// schema with its definitions written out.
///
/// ```
/// # use louver::front::json_schema::{Registry, SchemaSource, ValueStyle, ValueSyntax, defer};
/// # use louver::ir::GrammarBuilder;
/// # use louver::{Json, Limits, SchemaOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (limits, registry, builder) = (Limits::default(), Registry::new(), GrammarBuilder::new());
/// let json = ValueStyle::Syntax(ValueSyntax::Json);
/// let deferred = |schema: &Json| {
///     let (registry, options) = (&registry, SchemaOptions::default());
///     let source = SchemaSource { schema, registry, options, limits: &limits };
///     defer(&builder, source, &json).map(|(deferred, _)| deferred)
/// };
/// let text = r#"{"type": "object", "properties": {"city": {"type": "string"}}}"#;
/// let plain = deferred(&Json::parse(text, &limits)?).expect("a plain schema");
/// assert!(!plain.is_made());
/// assert!(plain.grammar().is_some());
/// assert!(deferred(&Json::parse(r#"{"type": "string", "pattern": "^("}"#, &limits)?).is_none());
/// # Ok(())
/// # }
/// ```
pub fn defer(
    builder: &GrammarBuilder,
    source: SchemaSource<'_>,
    style: &ValueStyle,
) -> Option<(Deferred, LazyTypes)> {
    let SchemaSource { schema, options, limits, .. } = source;
    let is_nullable = match style {
        ValueStyle::Parameters(style) => {
            let is_bare = derives_empty(&style.open)? && derives_empty(&style.close)?;
            members_may_be_none(schema, is_bare)?
        }
        ValueStyle::Syntax(ValueSyntax::Nested(_)) => members_may_be_none(schema, true)?,
        ValueStyle::Syntax(_) => false,
    };
    if !DeferralCheck::new(&source, style).accepts(limits) {
        return None;
    }
    let (empty, schema, limits, style) =
        (builder.with_same_specials(), schema.clone(), limits.clone(), style.clone());
    let lowered = Arc::new(LazyLock::new(move || -> Option<(Grammar, ValueTypes)> {
        // References lead to definitions of the schema.
        let (mut builder, registry) = (empty.clone(), &Registry::default());
        let source = SchemaSource { schema: &schema, registry, options, limits: &limits };
        let LoweredValue { rule, types, .. } = lower_into(&mut builder, source, &style).ok()?;
        Some((finish(builder, rule, &schema), types))
    }));
    let source = lowered.clone();
    let types = move || Some(LazyLock::force(&source).as_ref()?.1.clone());
    let types: LazyTypes = Arc::new(LazyLock::new(Box::new(move || types().unwrap_or_default())));
    let make = move || Some(LazyLock::force(&lowered).as_ref()?.0.clone());
    Some((Deferred::with_nullability(is_nullable, make), types))
}

/// Whether the members of an object of a schema that can be deferred may be no text, if no text
/// stands around them. `None` if that is unknown, or if they are always that.
fn members_may_be_none(schema: &Json, is_bare: bool) -> Option<bool> {
    let has = |keyword| match schema.get(keyword) {
        Some(Json::Array(names)) => !names.is_empty(),
        Some(Json::Object(members)) => !members.is_empty(),
        _ => false,
    };
    match (is_bare && !has("required"), has("properties")) {
        (true, false) => None,
        (is_nullable, _) => Some(is_nullable),
    }
}

/// Whether an expression derives the empty text; `None` if that takes a closer look.
fn derives_empty(expr: &Expr) -> Option<bool> {
    let derive = |parts: &[Expr]| parts.iter().map(derives_empty).collect::<Option<Vec<_>>>();
    match expr {
        Expr::Empty => Some(true),
        Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => Some(false),
        Expr::Seq(parts) => Some(derive(parts)?.into_iter().all(|empty| empty)),
        Expr::Alt(parts) => Some(derive(parts)?.into_iter().any(|empty| empty)),
        Expr::Repeat { body, min, .. } => Some(*min == 0 || derives_empty(body)?),
        _ => None,
    }
}

/// How a schema's value is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePosition {
    /// As parameters.
    Parameters,
    /// As a parameter's value.
    Parameter,
    /// In the syntax of values.
    Value,
}

/// The check whether a schema can be deferred.
struct DeferralCheck<'o> {
    /// The root schema.
    root: &'o Json,
    options: &'o SchemaOptions,
    syntax: &'o ValueSyntax,
    /// The style of the outermost object, if its members are parameters.
    style: Option<&'o ParameterStyle>,
    /// How many more schemas, keywords and constants it may have.
    remaining: usize,
}

impl<'o> DeferralCheck<'o> {
    fn new(source: &'o SchemaSource<'o>, style: &'o ValueStyle) -> Self {
        let SchemaSource { schema: root, options, .. } = source;
        let (syntax, style) = match style {
            ValueStyle::Parameters(style) => (&style.syntax, Some(&**style)),
            ValueStyle::Syntax(syntax) => (syntax, None),
        };
        DeferralCheck { root, options, syntax, style, remaining: MAX_NODES }
    }

    /// Whether the root schema can be deferred within the limits.
    fn accepts(mut self, limits: &Limits) -> bool {
        let default = Limits::default();
        // With lower limits than the default ones, even small schemas may fail: those are lowered
        // at once.
        let ample = limits.depth >= default.depth && limits.nodes >= default.nodes;
        let ample = ample && limits.automaton_states >= default.automaton_states;
        let ample = ample && limits.compile_fuel >= default.compile_fuel;
        let ample = ample && limits.compiled_states >= default.compiled_states;
        let root = match (self.style, self.syntax) {
            (None, ValueSyntax::Nested(_)) | (Some(_), _) => ValuePosition::Parameters,
            (None, _) => ValuePosition::Value,
        };
        // What a policy relaxes has to be reported at once.
        let is_strict = self.options.policy == Policy::Strict;
        ample
            && is_strict
            && self.options.max_digits.is_none()
            && self.can_be_deferred(self.root, root, 0)
    }

    /// Counts parts of the schema; `false` if there are too many.
    fn count(&mut self, parts: usize) -> bool {
        let enough = self.remaining >= parts;
        self.remaining = self.remaining.saturating_sub(parts);
        enough
    }

    /// Whether a schema can certainly be lowered, wherever it stands, and is satisfiable.
    fn can_be_deferred(&mut self, schema: &Json, position: ValuePosition, depth: usize) -> bool {
        let object = match schema {
            Json::Bool(true) => return position != ValuePosition::Parameters,
            Json::Object(object) => object,
            _ => return false,
        };
        if depth > MAX_DEPTH || !self.count(1 + object.len()) {
            return false;
        }
        let Some(types) = types_of(object) else { return false };
        if position == ValuePosition::Parameters && types != JsonTypes::OBJECT {
            return false;
        }
        let member = match position {
            ValuePosition::Parameters => ValuePosition::Parameter,
            ValuePosition::Parameter | ValuePosition::Value => ValuePosition::Value,
        };
        object.iter().all(|(keyword, value)| match keyword {
            "type" | "example" => true,
            _ if is_annotation(keyword) => true,
            "$schema" => depth == 0 && value.as_str().is_some_and(is_dialect),
            "properties" if types != JsonTypes::OBJECT && self.declares_item(value) => false,
            "properties" => self.properties_can_be_deferred(value, position, member, depth),
            "required" => lists_declared_members(object, value),
            "items" => {
                value.as_array().is_none()
                    && self.can_be_deferred(value, ValuePosition::Value, depth + 1)
            }
            "additionalProperties" => {
                matches!(value, Json::Bool(_)) || self.can_be_deferred(value, member, depth + 1)
            }
            "enum" if object.get("const").is_none() => value
                .as_array()
                .is_some_and(|values| self.values_are_plain(object, types, values, position)),
            "const" => self.values_are_plain(object, types, std::slice::from_ref(value), position),
            "$defs" | "definitions" => depth == 0 && has_no_identifiers(value),
            "$ref" => {
                has_only_annotations_beside(object, "$ref")
                    && self
                        .definition(value)
                        .is_some_and(|schema| self.can_be_deferred(schema, position, depth + 1))
            }
            "format" => self.options.formats == Formats::Annotate,
            "minimum" | "maximum" => {
                (types == JsonTypes::INTEGER || types == JsonTypes::NUMBER)
                    && !lists_values(object)
                    && self.count(NODES_OF_BOUND)
            }
            "minLength" | "maxLength" => types == JsonTypes::STRING && !lists_values(object),
            "minItems" | "maxItems" => types == JsonTypes::ARRAY,
            // A reader may not be able to tell the branches apart.
            "anyOf" if matches!(self.syntax, ValueSyntax::Nested(_)) => false,
            "anyOf" => {
                has_only_annotations_beside(object, "anyOf")
                    && self.branches_can_be_deferred(value, position, depth)
            }
            _ => false,
        }) && bounds_are_ordered(object, "minimum", "maximum", -MAX_BOUND..=MAX_BOUND)
            && bounds_are_ordered(object, "minLength", "maxLength", 0..=MAX_LENGTH)
            && bounds_are_ordered(object, "minItems", "maxItems", 0..=MAX_LENGTH)
    }

    /// Whether all properties can be deferred, and their names written.
    fn properties_can_be_deferred(
        &mut self,
        value: &Json,
        position: ValuePosition,
        member: ValuePosition,
        depth: usize,
    ) -> bool {
        let Some(properties) = value.as_object().filter(|members| members.len() <= MAX_MEMBERS)
        else {
            return false;
        };
        properties.iter().all(|(name, schema)| {
            self.can_write_name(name, position) && self.can_be_deferred(schema, member, depth + 1)
        })
    }

    /// Whether a member has the name of array elements.
    fn declares_item(&self, properties: &Json) -> bool {
        matches!(self.syntax, ValueSyntax::Nested(tags) if properties.get(&tags.item).is_some())
    }

    /// Whether the name of a member can be written, and excluded from undeclared names.
    fn can_write_name(&self, name: &str, position: ValuePosition) -> bool {
        match self.style.filter(|_| position == ValuePosition::Parameters) {
            Some(style) => name.len() <= MAX_NAME_BYTES && (style.name)(name).is_some(),
            None if self.syntax.is_json() => true,
            None => name.len() <= MAX_NAME_BYTES && self.syntax.can_write_name(name),
        }
    }

    /// The texts that a string at this position cannot contain; `None` if it can contain any.
    fn delimiters(&self, position: ValuePosition) -> Option<Vec<&'o [u8]>> {
        let style = self.style.filter(|_| position == ValuePosition::Parameter);
        let marks = match (style.and_then(|style| style.raw.as_ref()), self.syntax) {
            (Some(raw), _) => return Some(raw.forbidden()),
            (None, ValueSyntax::Delimited(marks)) => marks,
            (None, ValueSyntax::Nested(tags)) => &tags.mark,
            (None, _) => return None,
        };
        Some(marks.iter().filter_map(Trigger::text).collect())
    }

    /// The definition of the root schema that a reference leads to.
    fn definition(&self, reference: &Json) -> Option<&'o Json> {
        let (keyword, name) = reference.as_str()?.strip_prefix("#/")?.split_once('/')?;
        let is_definition = matches!(keyword, "$defs" | "definitions");
        let definitions = self.root.get(keyword).filter(|_| is_definition)?;
        definitions.get(name).filter(|_| !name.contains(['/', '~', '%']))
    }

    /// Whether a schema lists distinct strings that can be written, or distinct integers, of a type
    /// that it allows.
    fn values_are_plain(
        &mut self,
        object: &Object,
        types: JsonTypes,
        values: &[Json],
        position: ValuePosition,
    ) -> bool {
        if values.is_empty() || !self.count(values.len()) {
            return false;
        }
        if values[0].as_str().is_none() {
            return types.meets(JsonTypes::NUMBER)
                && all_distinct(
                    values.iter().map(|value| {
                        as_i64(value).filter(|n| (-MAX_BOUND..=MAX_BOUND).contains(n))
                    }),
                );
        }
        let bounded =
            object.iter().any(|(keyword, _)| matches!(keyword, "minLength" | "maxLength"));
        let delimiters = self.delimiters(position).unwrap_or_default();
        let is_plain = |text: &&str| !delimiters.iter().any(|mark| contains(text, mark));
        let texts = values.iter().map(|value| value.as_str().filter(is_plain));
        types.meets(JsonTypes::STRING) && !bounded && all_distinct(texts)
    }

    /// Whether all branches of `anyOf` can be deferred.
    fn branches_can_be_deferred(
        &mut self,
        value: &Json,
        position: ValuePosition,
        depth: usize,
    ) -> bool {
        let Some(schemas) = value.as_array() else { return false };
        !schemas.is_empty()
            && schemas.iter().all(|schema| self.can_be_deferred(schema, position, depth + 1))
    }
}

/// Whether all values are present and distinct.
fn all_distinct<T: Ord>(values: impl Iterator<Item = Option<T>>) -> bool {
    let Some(mut values) = values.collect::<Option<Vec<T>>>() else { return false };
    values.sort_unstable();
    values.windows(2).all(|pair| pair[0] != pair[1])
}

/// The types that a schema allows; `None` if `type` is not a type name.
fn types_of(object: &Object) -> Option<JsonTypes> {
    object.get("type").map_or(Some(JsonTypes::ALL), |name| JsonTypes::named(name.as_str()?))
}

/// Whether the URI is that of draft 7 or 2020-12.
fn is_dialect(uri: &str) -> bool {
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    matches!(
        uri,
        "http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft/2020-12/schema"
    )
}

/// Whether `required` lists declared members, each once.
fn lists_declared_members(object: &Object, value: &Json) -> bool {
    let Some(names) = value.as_array() else { return false };
    let properties = object.get("properties").and_then(Json::as_object);
    let declared = |name: &&str| properties.is_some_and(|members| members.get(name).is_some());
    all_distinct(names.iter().map(|name| name.as_str().filter(declared)))
}

/// Whether a keyword has no sibling but annotations.
fn has_only_annotations_beside(object: &Object, only: &str) -> bool {
    object.iter().all(|(keyword, _)| keyword == only || is_annotation(keyword))
}

/// Whether a schema lists its values.
fn lists_values(object: &Object) -> bool {
    ["enum", "const"].iter().any(|keyword| object.get(keyword).is_some())
}

/// Whether no schema within the definitions has an identifier, which could change references.
fn has_no_identifiers(definitions: &Json) -> bool {
    let names_schema = |(name, value): (&str, &Json)| {
        value.as_str().is_some() && name != "$ref" && (name == "id" || name.starts_with('$'))
    };
    let mut objects = definitions.values().filter_map(Json::as_object);
    definitions.as_object().is_some() && !objects.any(|object| object.iter().any(names_schema))
}

/// Whether the bounds are integers in this range, and the lower one is not above the upper one.
fn bounds_are_ordered(
    object: &Object,
    low: &str,
    high: &str,
    range: std::ops::RangeInclusive<i64>,
) -> bool {
    let bound = |name: &str, otherwise: i64| match object.get(name) {
        None => Some(otherwise),
        Some(value) => as_i64(value).filter(|bound| range.contains(bound)),
    };
    let (low, high) = (bound(low, *range.start()), bound(high, *range.end()));
    low.zip(high).is_some_and(|(low, high)| low <= high)
}

/// The value of an integer.
fn as_i64(value: &Json) -> Option<i64> {
    match value {
        Json::Number(number) => number.as_str().parse().ok(),
        _ => None,
    }
}
