//! Specs: schemas, grammars, structural tags and tools that commands take. Parsing, lowering and
//! compilation.

mod args;
mod tools;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use louver::compile::{CompileError, Compiled};
use louver::engine::{EngineOptions, SchemaCompileError, lower_and_compile};
use louver::front::LoweredGrammar;
use louver::front::diagnostic::Diagnostics;
use louver::front::ebnf::{self, EbnfDialect, EbnfOptions};
use louver::front::json_schema::{
    self, LoweredSchema, Policy, Registry, SchemaError, SchemaErrors, SchemaOptions, SchemaSource,
};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::front::regex::{self, RegexError, RegexOptions};
use louver::front::structural_tag::{
    LoweredTag, StructuralTag, StructuralTagErrors, StructuralTagOptions,
};
use louver::ir::{Grammar, Simplify};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::{Json, JsonError};
use louver_formats::{FormatError, LowerError, LoweredRequest, RequestErrors, ToolChoiceError};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use args::{SpecArgs, SpecSource};

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
    /// Errors of the choice that the options have, after those of the request.
    #[error("{}", on_lines([request.to_string(), of_options("options", choice)]))]
    OptionsChoice { request: RequestErrors, choice: Vec<ToolChoiceError> },
    #[error("option `format`: {0}")]
    Format(#[from] FormatError),
    #[error(transparent)]
    Lower(#[from] LowerError),
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// The texts that are not empty, each on lines of its own.
fn on_lines(texts: impl IntoIterator<Item = String>) -> String {
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n")
}

/// The errors of a choice that stands in the options, which have this name.
fn of_options(name: &str, choice: &[ToolChoiceError]) -> String {
    on_lines(choice.iter().map(|error| format!("{name}: {error}")))
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
    let named = named.collect::<Result<_, _>>()?;
    Ok(LarkOptions::default().with_named(named).with_schema(options.schema))
}

/// A spec that can be used: its grammar, and what is not enforced.
#[derive(Debug)]
pub(crate) struct UsableSpec {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) warnings: SpecWarnings,
    /// Keywords that the policy relaxes.
    pub(crate) relaxed: Vec<SchemaError>,
    /// The validator of the relaxed schema, or why there is none; only with the policy `validate`.
    pub(crate) validator: Option<Result<jsonschema::Validator, String>>,
    /// The request that the spec is, if it is one of tools.
    pub(crate) request: Option<LoweredRequest>,
}

/// Deepest nesting of a line of cases, in arrays and objects.
const MAX_LINE_DEPTH: usize = 1_000;

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

    /// A spec, or why it cannot be used.
    pub(crate) fn spec(
        &mut self,
        kind: &str,
        spec: &Json,
        options: &Value,
    ) -> Result<&UsableSpec, String> {
        let key = (kind.to_owned(), spec.to_string(), options.to_string());
        let (limits, registry) = (&self.limits, &self.registry);
        let entry = self.compiled.entry(key).or_insert_with(|| {
            UsableSpec::new(kind, spec, options, limits, registry).map_err(|e| e.to_string())
        });
        entry.as_ref().map_err(Clone::clone)
    }

    /// All specs that can be used.
    pub(crate) fn usable(&self) -> impl Iterator<Item = &UsableSpec> {
        self.compiled.values().filter_map(|spec| spec.as_ref().ok())
    }
}

impl UsableSpec {
    /// Compiles a spec of any kind.
    pub(crate) fn new(
        kind: &str,
        spec: &Json,
        options: &Value,
        limits: &Limits,
        registry: &Registry,
    ) -> Result<UsableSpec, SpecError> {
        let lowered = lowered(kind, spec, options, limits, registry)?;
        let LoweredSpec { grammar, warnings, relaxed, request } = lowered;
        let compiled = Arc::new(Compiled::new(grammar, limits)?);
        let mut validator = None;
        if kind == "json_schema" {
            let options: SchemaOptions = parse_options("json_schema", options)?;
            let text = json(spec, limits)?.to_string();
            let is_relaxed = !relaxed.is_empty();
            validator = crate::validator::of_relaxed(&text, registry, &options, is_relaxed);
        }
        Ok(UsableSpec { compiled, warnings, relaxed, validator, request })
    }

    /// A new recognizer of the spec's texts.
    pub(crate) fn recognizer(&self) -> Recognizer {
        Recognizer::with_limits(self.compiled.clone(), &Limits::default())
    }
}

/// Whether the engine simplifies the grammars of specs of this kind.
pub(crate) fn simplify(kind: &str, options: &EngineOptions) -> Simplify {
    match kind {
        "ebnf" | "lark" => options.simplify_texts,
        _ => options.simplify,
    }
}

/// The warnings of a spec.
#[derive(Debug, Default)]
pub(crate) struct SpecWarnings {
    /// One line for each.
    pub(crate) lines: Vec<String>,
    /// Those of a grammar's text, which are shown with its source lines.
    of_text: Option<Diagnostics>,
}

impl From<Diagnostics> for SpecWarnings {
    fn from(warnings: Diagnostics) -> SpecWarnings {
        SpecWarnings { lines: warnings.lines().collect(), of_text: Some(warnings) }
    }
}

impl SpecWarnings {
    /// Warnings of a JSON document.
    fn of_document<W: ToString>(warnings: &[W]) -> SpecWarnings {
        SpecWarnings { lines: warnings.iter().map(ToString::to_string).collect(), of_text: None }
    }

    /// All of them as text; those of a grammar with its source lines. `name` is the spec's.
    pub(crate) fn text(&self, name: &str) -> String {
        match &self.of_text {
            Some(warnings) => warnings.clone().named(name).to_string(),
            None => on_lines(self.lines.iter().map(|line| format!("warning: {line}"))),
        }
    }
}

/// A lowered spec.
#[derive(Debug)]
pub(crate) struct LoweredSpec {
    pub(crate) grammar: Grammar,
    pub(crate) warnings: SpecWarnings,
    /// Keywords that the policy relaxes.
    pub(crate) relaxed: Vec<SchemaError>,
    /// The request, of a spec of tools.
    pub(crate) request: Option<LoweredRequest>,
}

impl LoweredSpec {
    /// A spec without tools.
    fn new(grammar: Grammar, warnings: SpecWarnings, relaxed: Vec<SchemaError>) -> LoweredSpec {
        LoweredSpec { grammar, warnings, relaxed, request: None }
    }
}

impl From<LoweredGrammar> for LoweredSpec {
    fn from(LoweredGrammar { grammar, warnings }: LoweredGrammar) -> Self {
        LoweredSpec::new(grammar, warnings.into(), Vec::new())
    }
}

impl From<LoweredTag> for LoweredSpec {
    fn from(LoweredTag { grammar, warnings }: LoweredTag) -> Self {
        let warnings = SpecWarnings::of_document(&warnings);
        LoweredSpec::new(grammar, warnings, Vec::new())
    }
}

/// Lowers a spec of any kind to a grammar with warnings.
pub(crate) fn lowered(
    kind: &str,
    spec: &Json,
    options: &Value,
    limits: &Limits,
    registry: &Registry,
) -> Result<LoweredSpec, SpecError> {
    Ok(match kind {
        "json_schema" => {
            let options = parse_options("json_schema", options)?;
            let spec = json(spec, limits)?;
            lowered_schema(SchemaSource { schema: &spec, registry, options, limits })?
        }
        "regex" => {
            let Json::String(pattern) = spec else {
                return Err(SpecError::SpecType { kind: "regex", expected: "a string" });
            };
            let options: RegexOptions = parse_options("regex", options)?;
            let grammar = regex::lower(pattern, &options, limits)?;
            LoweredSpec::new(grammar, SpecWarnings::default(), Vec::new())
        }
        "ebnf" => {
            let Json::String(text) = spec else {
                return Err(SpecError::SpecType { kind: "ebnf", expected: "a string" });
            };
            let options: GrammarOptions = parse_options("ebnf", options)?;
            let defaults = EbnfOptions::default();
            let root = options.root_rule_name.unwrap_or_else(|| defaults.root.clone());
            let options = defaults.with_root(root).with_dialect(options.dialect);
            ebnf::lower(text, &options, limits)?.into()
        }
        "tools" => tools::lowered(spec, options, limits)?,
        "lark" => {
            let Json::String(text) = spec else {
                return Err(SpecError::SpecType { kind: "lark", expected: "a string" });
            };
            let options = lark_options(parse_options("lark", options)?, limits)?;
            lark::lower(text, &options, limits)?.into()
        }
        "structural_tag" => {
            let options: StructuralTagSpecOptions = parse_options("structural_tag", options)?;
            let mut read = StructuralTagOptions::default();
            read.schema = options.schema.unwrap_or(read.schema);
            let spec = json(spec, limits)?;
            // The older form, which requests may have.
            let is_older = spec.get("structures").is_some();
            let read_tag =
                if is_older { StructuralTag::from_response_format } else { StructuralTag::read };
            let tag = read_tag(&spec, limits)?;
            tag.lower(&read, limits)?.into()
        }
        other => return Err(SpecError::UnknownKind(other.to_owned())),
    })
}

/// Lowers a JSON Schema. Policies other than strict also relax what its grammar's size refuses.
fn lowered_schema(source: SchemaSource<'_>) -> Result<LoweredSpec, SpecError> {
    let missing = json_schema::missing_type(source.schema).into_iter();
    let warnings: Vec<_> = missing.chain(json_schema::warnings(source.schema)).collect();
    let warnings = SpecWarnings::of_document(&warnings);
    if source.options.policy == Policy::Strict {
        let LoweredSchema { grammar, relaxed } = json_schema::lower_reported(source)?;
        return Ok(LoweredSpec::new(grammar, warnings, relaxed));
    }
    let compile = |grammar: Grammar| Compiled::new(grammar, source.limits);
    let (compiled, relaxed) = lower_and_compile(source, compile)?;
    Ok(LoweredSpec::new(Grammar::clone(compiled.grammar()), warnings, relaxed))
}

/// Parses schema options of the command line.
pub(crate) fn schema_options(text: &str) -> Result<SchemaOptions, String> {
    let options: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    serde_path_to_error::deserialize(options).map_err(|error| error.to_string())
}

/// Parses a spec that is JSON, or JSON text.
fn json(spec: &Json, limits: &Limits) -> Result<Json, JsonError> {
    match spec {
        Json::String(text) => Json::parse(text, limits),
        json => Ok(json.clone()),
    }
}

/// The member `spec` of a line of cases, if it has one. Its numbers and keys are kept as written,
/// which `serde_json` would round and merge.
pub(crate) fn of_line(line: &str) -> Result<Option<Json>, JsonError> {
    let limits = Limits::default().with_source_bytes(line.len()).with_depth(MAX_LINE_DEPTH);
    Ok(Json::parse(line, &limits)?.get("spec").cloned())
}

fn parse_options<T: for<'d> Deserialize<'d>>(
    kind: &'static str,
    options: &Value,
) -> Result<T, SpecError> {
    let options =
        if options.is_null() { Value::Object(Default::default()) } else { options.clone() };
    serde_path_to_error::deserialize(options).map_err(|error| SpecError::Options { kind, error })
}
