//! Specs of `louver check` and other commands: parsing, lowering and compilation, once per distinct
//! spec.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use louver::compile::{CompileError, Compiled};
use louver::engine::{EngineOptions, SchemaCompileError, lower_and_compile};
use louver::front::LoweredGrammar;
use louver::front::diagnostic::{Diagnostic, Diagnostics};
use louver::front::ebnf::{self, EbnfDialect, EbnfOptions};
use louver::front::json_schema::{
    self, LoweredSchema, Policy, Registry, SchemaError, SchemaErrors, SchemaOptions, SchemaSource,
};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::front::regex::{self, RegexError, RegexOptions};
use louver::front::structural_tag::{StructuralTag, StructuralTagErrors, StructuralTagOptions};
use louver::ir::{Grammar, Simplify};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::{Json, JsonError, Object};
use louver_formats::{
    Catalog, LowerError, Reasoning, RequestErrors, Strictness, ToolRequest, UnknownFormat,
};
use serde::Deserialize;
use serde_json::Value;

/// The default wire format of `tools` specs.
const DEFAULT_FORMAT: &str = "qwen3";

/// Members that make an object a request.
const REQUEST: [&str; 2] = ["tools", "response_format"];

/// Why options cannot be read, with the member that has the fault.
pub(crate) type OptionsError = serde_path_to_error::Error<serde_json::Error>;

/// Why a spec cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpecError {
    #[error("kind `{0}` is unknown; known: json_schema, regex, tools, ebnf, lark, structural_tag")]
    UnknownKind(String),
    #[error("the spec of kind `{kind}` must be {expected}")]
    SpecType { kind: &'static str, expected: &'static str },
    #[error("options of kind `{kind}`: {error}")]
    Options { kind: &'static str, error: OptionsError },
    #[error("{0}")]
    Other(String),
    #[error("the spec is not JSON: {0}")]
    Json(#[from] JsonError),
    #[error(transparent)]
    Schema(#[from] SchemaErrors),
    #[error(transparent)]
    Regex(#[from] RegexError),
    #[error(transparent)]
    Text(#[from] Diagnostics),
    #[error(transparent)]
    StructuralTag(#[from] StructuralTagErrors),
    #[error(transparent)]
    Request(#[from] RequestErrors),
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    #[error(transparent)]
    Lower(#[from] LowerError),
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl From<SchemaCompileError> for SpecError {
    fn from(error: SchemaCompileError) -> Self {
        match error {
            SchemaCompileError::Json(error) => SpecError::Json(error),
            SchemaCompileError::Schema(errors) => SpecError::Schema(errors),
            SchemaCompileError::Compile(error) => SpecError::Compile(error),
            other => SpecError::Other(other.to_string()),
        }
    }
}

/// Options of `tools` specs. The choice and the following options may also be given next to `tools`
/// in the spec, as in a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolsOptions {
    /// A wire format's name.
    format: Option<String>,
    tool_choice: Value,
    parallel_tool_calls: Option<bool>,
    /// `optional`, `off`, `required` or `opened`.
    reasoning: Reasoning,
    schema: SchemaOptions,
    /// Whether only the arguments of tools marked `strict` must match their schema; others accept
    /// any object.
    strict_as_flagged: bool,
}

/// Options of `structural_tag` specs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StructuralTagSpecOptions {
    /// Schema options; by default those of the format.
    schema: Option<SchemaOptions>,
    /// Ignored: validation works on bytes.
    #[serde(rename = "tokenizer")]
    _tokenizer: Option<Value>,
}

/// Options of `ebnf` specs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GrammarOptions {
    /// The start rule; `root` by default.
    root_rule_name: Option<String>,
    dialect: EbnfDialect,
    /// Ignored: how recorded cases obtained their text, such as `printed`.
    #[serde(rename = "derived")]
    _derived: Option<String>,
}

/// Options of `lark` specs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LarkSpecOptions {
    /// The grammars for `@name`: Lark text, or `{"ebnf": text}`.
    named_grammars: BTreeMap<String, NamedSpec>,
    /// Ignored: validation works on bytes.
    #[serde(rename = "tokenizer")]
    _tokenizer: Option<Value>,
    schema: SchemaOptions,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NamedSpec {
    Lark(String),
    Ebnf { ebnf: String },
}

fn lark_options(options: LarkSpecOptions, limits: &Limits) -> Result<LarkOptions, SpecError> {
    let named = options.named_grammars.into_iter().map(|(name, grammar)| match grammar {
        NamedSpec::Lark(text) => Ok::<_, SpecError>((name, NamedGrammar::Lark(text))),
        NamedSpec::Ebnf { ebnf } => {
            let lowered = ebnf::lower(&ebnf, &EbnfOptions::default(), limits)?;
            Ok((name, NamedGrammar::Grammar(lowered.grammar)))
        }
    });
    Ok(LarkOptions { named: named.collect::<Result<_, _>>()?, schema: options.schema })
}

/// A spec that can be used: the recognizer for its inputs, and what is not enforced.
#[derive(Debug)]
pub(crate) struct UsableSpec {
    pub(crate) recognizer: Recognizer,
    /// Keywords that the policy relaxes.
    pub(crate) relaxed: Vec<SchemaError>,
    /// The validator of the relaxed schema, or why there is none; only with the policy `validate`.
    pub(crate) validator: Option<Result<jsonschema::Validator, String>>,
}

/// Cache of compiled specs.
#[derive(Debug, Default)]
pub(crate) struct SpecCache {
    limits: Limits,
    registry: Registry,
    compiled: HashMap<(String, String, String), Result<UsableSpec, String>>,
}

impl SpecCache {
    /// An empty cache. References of schemas may lead to the documents of the registry.
    pub(crate) fn new(registry: Registry) -> SpecCache {
        SpecCache { registry, ..SpecCache::default() }
    }

    /// A spec with its recognizer reset, or why it cannot be used.
    pub(crate) fn spec(
        &mut self,
        kind: &str,
        spec: &Value,
        options: &Value,
    ) -> Result<&mut UsableSpec, String> {
        let key = (kind.to_owned(), spec.to_string(), options.to_string());
        let (limits, registry) = (&self.limits, &self.registry);
        let entry = self.compiled.entry(key).or_insert_with(|| {
            UsableSpec::new(kind, spec, options, (limits, registry)).map_err(|e| e.to_string())
        });
        match entry {
            Ok(spec) => {
                spec.recognizer.reset();
                Ok(spec)
            }
            Err(error) => Err(error.clone()),
        }
    }

    /// All specs that can be used.
    pub(crate) fn usable(&self) -> impl Iterator<Item = &UsableSpec> {
        self.compiled.values().filter_map(|spec| spec.as_ref().ok())
    }
}

impl UsableSpec {
    /// Compiles a spec of any kind.
    fn new(
        kind: &str,
        spec: &Value,
        options: &Value,
        (limits, registry): (&Limits, &Registry),
    ) -> Result<UsableSpec, SpecError> {
        let lowered = lowered(kind, spec, options, (limits, registry))?;
        let compiled = Compiled::new(lowered.grammar, limits)?;
        let recognizer = Recognizer::with_limits(Arc::new(compiled), limits);
        let (mut validator, relaxed) = (None, lowered.relaxed);
        if kind == "json_schema" {
            let options: SchemaOptions = parse_options("json_schema", options)?;
            let schema = serde_json::from_str(&json(spec, limits)?.to_string());
            let schema = schema.unwrap_or(Value::Bool(true));
            let is_relaxed = !relaxed.is_empty();
            validator = crate::validator::of_relaxed(&schema, registry, &options, is_relaxed);
        }
        Ok(UsableSpec { recognizer, relaxed, validator })
    }
}

/// Whether the engine simplifies the grammars of specs of this kind.
pub(crate) fn simplify(kind: &str, options: &EngineOptions) -> Simplify {
    match kind {
        "ebnf" | "lark" => options.simplify_texts,
        _ => options.simplify,
    }
}

/// A lowered spec.
#[derive(Debug)]
pub(crate) struct LoweredSpec {
    pub(crate) grammar: Grammar,
    pub(crate) warnings: Diagnostics,
    /// Keywords that the policy relaxes.
    pub(crate) relaxed: Vec<SchemaError>,
}

impl From<LoweredGrammar> for LoweredSpec {
    fn from(LoweredGrammar { grammar, warnings }: LoweredGrammar) -> Self {
        LoweredSpec { grammar, warnings, relaxed: Vec::new() }
    }
}

/// Lowers a spec of any kind to a grammar with warnings.
pub(crate) fn lowered(
    kind: &str,
    spec: &Value,
    options: &Value,
    (limits, registry): (&Limits, &Registry),
) -> Result<LoweredSpec, SpecError> {
    let without_warnings =
        |grammar, relaxed| LoweredSpec { grammar, warnings: Diagnostics::new(kind, ""), relaxed };
    Ok(match kind {
        "json_schema" => {
            let options = parse_options("json_schema", options)?;
            let spec = json(spec, limits)?;
            lowered_schema(SchemaSource { schema: &spec, registry, options, limits })?
        }
        "regex" => {
            let Value::String(pattern) = spec else {
                return Err(SpecError::SpecType { kind: "regex", expected: "a string" });
            };
            let options: RegexOptions = parse_options("regex", options)?;
            without_warnings(regex::lower(pattern, &options, limits)?, Vec::new())
        }
        "ebnf" => {
            let Value::String(text) = spec else {
                return Err(SpecError::SpecType { kind: "ebnf", expected: "a string" });
            };
            let options: GrammarOptions = parse_options("ebnf", options)?;
            let defaults = EbnfOptions::default();
            let root = options.root_rule_name.unwrap_or_else(|| defaults.root.clone());
            let options = EbnfOptions { root, dialect: options.dialect, ..defaults };
            ebnf::lower(text, &options, limits)?.into()
        }
        "tools" => {
            let (grammar, relaxed) = tools(spec, options, limits)?;
            without_warnings(grammar, relaxed)
        }
        "lark" => {
            let Value::String(text) = spec else {
                return Err(SpecError::SpecType { kind: "lark", expected: "a string" });
            };
            let options = lark_options(parse_options("lark", options)?, limits)?;
            lark::lower(text, &options, limits)?.into()
        }
        "structural_tag" => {
            let options: StructuralTagSpecOptions = parse_options("structural_tag", options)?;
            let mut read = StructuralTagOptions::default();
            read.schema = options.schema.unwrap_or(read.schema);
            let tag = StructuralTag::read(&json(spec, limits)?, limits)?;
            tag.lower(&read, limits)?.into()
        }
        other => return Err(SpecError::UnknownKind(other.to_owned())),
    })
}

/// Lowers a JSON Schema, with warnings of names that are probably misspelled keywords.
fn lowered_schema(source: SchemaSource<'_>) -> Result<LoweredSpec, SpecError> {
    let mut warnings = Diagnostics::new("json_schema", "");
    for misspelled in json_schema::misspelled_keywords(source.schema) {
        warnings.push(Diagnostic::warning(0..0, misspelled.to_string()));
    }
    if source.options.policy == Policy::Strict {
        let LoweredSchema { grammar, relaxed } = json_schema::lower_reported(source)?;
        return Ok(LoweredSpec { grammar, warnings, relaxed });
    }
    let (compiled, relaxed) = schema(source)?;
    Ok(LoweredSpec { grammar: Grammar::clone(compiled.grammar()), warnings, relaxed })
}

/// Compiles a JSON Schema from its text. Also returns the keywords that the policy relaxes.
pub(crate) fn schema_text(
    text: &str,
    registry: &Registry,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<(Compiled, Vec<SchemaError>), SpecError> {
    let (schema, options) = (&Json::parse(text, limits)?, *options);
    self::schema(SchemaSource { schema, registry, options, limits })
}

/// Compiles a JSON Schema. Also returns the keywords that the policy relaxes.
fn schema(source: SchemaSource<'_>) -> Result<(Compiled, Vec<SchemaError>), SpecError> {
    let compile = |grammar: Grammar| Compiled::new(grammar, source.limits);
    Ok(lower_and_compile(source, compile)?)
}

/// Parses schema options of the command line.
pub(crate) fn schema_options(text: &str) -> Result<SchemaOptions, String> {
    let options: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    serde_path_to_error::deserialize(options).map_err(|error| error.to_string())
}

/// Parses a spec that is JSON, or JSON text.
fn json(spec: &Value, limits: &Limits) -> Result<Json, JsonError> {
    match spec {
        Value::String(text) => Json::parse(text, limits),
        value => Ok(Json::from(value)),
    }
}

fn parse_options<T: for<'d> Deserialize<'d>>(
    kind: &'static str,
    options: &Value,
) -> Result<T, SpecError> {
    let options =
        if options.is_null() { Value::Object(Default::default()) } else { options.clone() };
    serde_path_to_error::deserialize(options).map_err(|error| SpecError::Options { kind, error })
}

/// Lowers tools, given as a list, or as a request with `tools`, `tool_choice`,
/// `parallel_tool_calls` and `response_format`, or as text of either. Markers are compared by their
/// spelling.
fn tools(
    spec: &Value,
    options: &Value,
    limits: &Limits,
) -> Result<(Grammar, Vec<SchemaError>), SpecError> {
    let options: ToolsOptions = parse_options("tools", options)?;
    let spec = json(spec, limits)?;
    let mut body: Vec<(String, Json)> = match &spec {
        Json::Array(_) => vec![("tools".to_owned(), spec.clone())],
        Json::Object(members) if REQUEST.iter().any(|name| members.get(name).is_some()) => {
            members.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
        }
        _ => {
            return Err(SpecError::SpecType {
                kind: "tools",
                expected: "an array of tools, or a request with `tools` or `response_format`",
            });
        }
    };
    let mut set_member = |name: &str, value: Json| {
        body.retain(|(member, _)| member != name);
        body.push((name.to_owned(), value));
    };
    if !options.tool_choice.is_null() {
        set_member("tool_choice", Json::from(&options.tool_choice));
    }
    if let Some(parallel) = options.parallel_tool_calls {
        set_member("parallel_tool_calls", Json::Bool(parallel));
    }
    let Ok(body) = Object::new(body) else {
        return Err(SpecError::SpecType {
            kind: "tools",
            expected: "a request without repeated members",
        });
    };
    let request = ToolRequest {
        reasoning: options.reasoning,
        strictness: if options.strict_as_flagged { Strictness::AsFlagged } else { Strictness::All },
        schema_options: options.schema,
        limits: limits.clone(),
        ..ToolRequest::parse(&Json::Object(body))?
    };
    let catalog = Catalog::shipped();
    let format = catalog.get(options.format.as_deref().unwrap_or(DEFAULT_FORMAT))?;
    let lowered = format.with_text_markers().lower(&request)?;
    Ok((Grammar::clone(lowered.grammar()), lowered.relaxed().to_vec()))
}
