//! Grammars of users as Louver's constraints.

use std::sync::Arc;

use anyhow::{Context, Result};
use louver::front::json_schema::{self, Registry, SchemaError, SchemaSource, lower_reported};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::{Constraint, Engine, Json, Limits, SchemaOptions, fuel};
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
    let grammar = fuel::with_default_budget(budget, || match lowering.name_grammars(list)? {
        Some(text) => lowering.lark(&text),
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
        if let Some(text) = self.name_grammars(list)? {
            let grammar = self.lark(&text)?;
            return Ok(engine.compile_with(grammar, engine.options().simplify_texts)?);
        }
        let (schema, options) = self.read_schema(first.json_schema.as_ref())?;
        let (constraint, relaxed) =
            engine.compile_parsed_schema(&schema, &Registry::default(), &options)?;
        self.warn_of(&relaxed);
        Ok(constraint)
    }

    /// Makes the grammars of a list known to each other, and lowers those beside the first, as an
    /// error in one counts even if nothing refers to it. Returns the first one's Lark text.
    fn name_grammars(&mut self, list: &TopLevelGrammar) -> Result<Option<String>> {
        self.options.schema = JsonCompileOptions::default().schema_options()?;
        let mut texts = Vec::new();
        for (at, grammar) in list.grammars.iter().enumerate() {
            let name = grammar.name.clone().unwrap_or_else(|| format!("grammar {at}"));
            let lowered = match &grammar.lark_grammar {
                Some(text) => self.with_options_of_schemas(text).map(NamedGrammar::Lark),
                None if list.grammars.len() == 1 => return Ok(None),
                None => self.schema(grammar.json_schema.as_ref()).map(NamedGrammar::Grammar),
            };
            let lowered = lowered.with_context(|| format!("in grammar @{name}"))?;
            if let NamedGrammar::Lark(text) = &lowered {
                texts.push((at, name.clone(), text.clone()));
            }
            self.options.named.insert(name, lowered);
        }
        for (_, name, text) in texts.iter().filter(|(at, ..)| *at > 0) {
            let lowered = lark::lower(text, &self.options, self.limits);
            lowered.with_context(|| format!("in grammar @{name}"))?;
        }
        Ok(texts.into_iter().find(|(at, ..)| *at == 0).map(|(.., text)| text))
    }

    /// Lowers a Lark text, which may refer to the grammars of the list.
    fn lark(&mut self, text: &str) -> Result<louver::Grammar> {
        let lowered = lark::lower(text, &self.options, self.limits)?;
        for warning in lowered.warnings.list() {
            let (line, column) = lowered.warnings.place(warning.span.start);
            // Forcing is the adapter's, where the option has an effect.
            match warning.message.contains("the option `no_forcing`") {
                true => self.findings.no_forcing = true,
                false => {
                    self.warn(format!("at {line}({column}): {}", warning.message));
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

    /// Takes a schema and its own options, and warns of what constrains nothing.
    fn read_schema(&mut self, schema: Option<&Value>) -> Result<(Json, SchemaOptions)> {
        let (schema, options) = take_options(schema)?;
        json_schema::warnings(&schema).iter().for_each(|warning| self.warn(warning.to_string()));
        Ok((schema, options))
    }

    /// Lowers a schema with its own options.
    fn schema(&mut self, schema: Option<&Value>) -> Result<louver::Grammar> {
        let (schema, options) = self.read_schema(schema)?;
        let (schema, registry, limits) = (&schema, &Registry::default(), self.limits);
        let lowered = lower_reported(SchemaSource { schema, registry, options, limits })?;
        self.warn_of(&lowered.relaxed);
        Ok(lowered.grammar)
    }

    /// Warns of keywords that are not enforced.
    fn warn_of(&mut self, relaxed: &[SchemaError]) {
        relaxed.iter().for_each(|error| self.warn(format!("not enforced: {error}")));
    }

    /// Warns, once: the schema that begins a list of several is read twice.
    fn warn(&mut self, warning: String) {
        if !self.findings.warnings.contains(&warning) {
            self.findings.warnings.push(warning);
        }
    }
}
