//! Grammars of users as Louver's constraints.

use std::sync::Arc;

use anyhow::{Context, Result};
use louver::front::json_schema::{Registry, SchemaError, SchemaSource, lower_reported};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::{Constraint, Engine, Limits, fuel};
use serde_json::Value;

use crate::api::{ParserLimits, TopLevelGrammar, check_list};
use crate::json_options::{JsonCompileOptions, OPTIONS_KEY, take_options};
use crate::tokens::TokenSpace;

/// A compiled grammar.
#[derive(Clone)]
pub(crate) struct CompiledGrammar {
    pub(crate) constraint: Constraint,
    pub(crate) findings: Arc<Findings>,
}

/// What is found out about a grammar beside its constraint.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) warnings: Vec<String>,
    /// Masks have all allowed tokens where text is forced.
    pub(crate) no_forcing: bool,
}

/// Compiles the first grammar of a list. Equal lists are compiled once.
pub(crate) fn compile(
    space: &TokenSpace,
    list: &TopLevelGrammar,
    limits: &ParserLimits,
) -> Result<CompiledGrammar> {
    let engine = space.engine(limits);
    let key = serde_json::to_string(&list.grammars)?;
    let length = key.len();
    let (constraint, findings) = engine.get_or_compile(key, 4 * length, |_| {
        let limits = &engine.options().limits;
        let mut lowering = Lowering::new(limits);
        let budget = || limits.compile_budget(length);
        let constraint = fuel::with_default_budget(budget, || lowering.compile(&engine, list))?;
        Ok::<_, anyhow::Error>((constraint, lowering.findings))
    })?;
    Ok(CompiledGrammar { constraint, findings })
}

/// Reads the first grammar of a list without a vocabulary; returns warnings.
pub(crate) fn check_without_tokens(
    list: &TopLevelGrammar,
    limits: &ParserLimits,
) -> Result<Vec<String>> {
    let (first, limits) = (check_list(list)?, limits.scaled());
    let mut lowering = Lowering::new(&limits);
    let length = serde_json::to_string(&list.grammars)?.len();
    let budget = || limits.compile_budget(length);
    let grammar = fuel::with_default_budget(budget, || match &first.lark_grammar {
        Some(text) => lowering.lark(text, list),
        None => lowering.schema(first.json_schema.as_ref()),
    })?;
    let missing = |token| format!("no tokenizer - can't validate {token}");
    lowering.findings.warnings.extend(grammar.specials.iter().map(missing));
    Ok(lowering.findings.warnings)
}

/// The work of reading the grammars of a list.
struct Lowering<'l> {
    limits: &'l Limits,
    options: LarkOptions,
    findings: Findings,
}

impl Lowering<'_> {
    fn new(limits: &Limits) -> Lowering<'_> {
        Lowering { limits, options: LarkOptions::default(), findings: Findings::default() }
    }

    /// Compiles the first grammar of a list.
    fn compile(&mut self, engine: &Engine, list: &TopLevelGrammar) -> Result<Constraint> {
        let first = check_list(list)?;
        if let Some(text) = &first.lark_grammar {
            let grammar = self.lark(text, list)?;
            return Ok(engine.compile_with(grammar, engine.options().simplify_texts)?);
        }
        let (schema, options) = take_options(first.json_schema.as_ref())?;
        let (constraint, relaxed) =
            engine.compile_parsed_schema(&schema, &Registry::default(), &options)?;
        self.warn_of(&relaxed);
        Ok(constraint)
    }

    /// Lowers a Lark text, which may refer to the other grammars of the list.
    fn lark(&mut self, text: &str, list: &TopLevelGrammar) -> Result<louver::Grammar> {
        self.options.schema = JsonCompileOptions::default().schema_options()?;
        let text = self.with_options_of_schemas(text)?;
        for named in &list.grammars[1..] {
            let Some(name) = &named.name else { continue };
            let lowered = match &named.lark_grammar {
                Some(text) => self.with_options_of_schemas(text).map(NamedGrammar::Lark),
                None => self.schema(named.json_schema.as_ref()).map(NamedGrammar::Grammar),
            };
            let grammar = lowered.with_context(|| format!("in grammar @{name}"))?;
            self.options.named.insert(name.clone(), grammar);
        }
        let lowered = lark::lower(&text, &self.options, self.limits)?;
        for warning in lowered.warnings.list() {
            let (line, column) = lowered.warnings.place(warning.span.start);
            // Forcing is the adapter's, where the option has an effect.
            match warning.message.contains("the option `no_forcing`") {
                true => self.findings.no_forcing = true,
                false => {
                    let warning = format!("at {line}({column}): {}", warning.message);
                    self.findings.warnings.push(warning);
                }
            }
        }
        Ok(lowered.grammar)
    }

    /// Replaces each `%json {..}` with options of its own by a reference to a lowered grammar: the
    /// Lark front end has the same options for all schemas of a text.
    fn with_options_of_schemas(&mut self, text: &str) -> Result<String> {
        let mut parts = text.split("%json");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let mut values = serde_json::Deserializer::from_str(part).into_iter::<Value>();
            match values.next() {
                Some(Ok(schema)) if schema.get(OPTIONS_KEY).is_some() => {
                    let name = format!("schema-with-options-{}", self.options.named.len());
                    let grammar = self.schema(Some(&schema))?;
                    out = out + "@" + &name + &part[values.byte_offset()..];
                    self.options.named.insert(name, NamedGrammar::Grammar(grammar));
                }
                _ => out = out + "%json" + part,
            }
        }
        Ok(out)
    }

    /// Lowers a schema with its own options.
    fn schema(&mut self, schema: Option<&Value>) -> Result<louver::Grammar> {
        let (schema, options) = take_options(schema)?;
        let (schema, registry, limits) = (&schema, &Registry::default(), self.limits);
        let lowered = lower_reported(SchemaSource { schema, registry, options, limits })?;
        self.warn_of(&lowered.relaxed);
        Ok(lowered.grammar)
    }

    /// Warns of keywords that are not enforced.
    fn warn_of(&mut self, relaxed: &[SchemaError]) {
        let warnings = relaxed.iter().map(|error| format!("not enforced: {error}"));
        self.findings.warnings.extend(warnings);
    }
}
