//! Grammars of users as Louver's constraints.

use std::sync::Arc;

use anyhow::{Context, Result};
use louver::front::json_schema::{self, Registry, SchemaError, SchemaSource, lower_reported};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::{Constraint, Grammar, Json, Limits, SchemaOptions, fuel};
use serde::Deserialize;
use serde_json::Value;
use toktrie::TokEnv;

use crate::api::{GrammarInit, ParserLimits, TopLevelGrammar, ValidationResult, check_list};
use crate::json_options::{JsonCompileOptions, OPTIONS_KEY};
use crate::panic_utils::guard;
use crate::tokens::TokenSpace;

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
) -> Result<(Constraint, Arc<Findings>)> {
    let engine = space.engine(limits);
    let key = serde_json::to_string(&list.grammars)?;
    let bytes = 4 * key.len();
    engine.get_or_compile(key, bytes, |_| {
        Lowering::run(list, &engine.options().limits, |lowering, text, schema| {
            if let Some(grammar) = text {
                return Ok(engine.compile_with(grammar, engine.options().simplify_texts)?);
            }
            let (schema, options) = lowering.read_schema(schema)?;
            let (constraint, relaxed) =
                engine.compile_parsed_schema(&schema, &Registry::default(), &options)?;
            lowering.warn_of(&relaxed);
            Ok(constraint)
        })
    })
}

/// Lowers the first grammar of a list without a vocabulary; returns warnings.
fn check_without_tokens(list: &TopLevelGrammar, limits: &ParserLimits) -> Result<Vec<String>> {
    let (grammar, mut findings) =
        Lowering::run(list, &limits.scaled(), |lowering, text, schema| {
            text.map_or_else(|| lowering.schema(schema), Ok)
        })?;
    let missing = |token| format!("no tokenizer - can't validate {token}");
    findings.warnings.extend(grammar.specials.iter().map(missing));
    Ok(findings.warnings)
}

impl GrammarInit {
    /// Compiles the grammar and drops it. Without a tokenizer, special tokens are accepted with a
    /// warning.
    ///
    /// ```
    /// use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
    ///
    /// let check = |lark: &str| {
    ///     let grammar = TopLevelGrammar::from_lark(lark.to_owned());
    ///     GrammarInit::Serialized(grammar).validate(None, ParserLimits::default())
    /// };
    /// assert_eq!(check("start: \"a\"").into_tuple(), (false, vec![]));
    /// assert!(check("start: b").into_tuple().0);
    /// ```
    pub fn validate(self, tok_env: Option<TokEnv>, limits: ParserLimits) -> ValidationResult {
        let GrammarInit::Serialized(grammar) = self;
        let warnings = guard(|| {
            let Some(env) = tok_env else { return check_without_tokens(&grammar, &limits) };
            let (_, findings) = compile(&TokenSpace::new(&env)?, &grammar, &limits)?;
            Ok(findings.warnings.clone())
        });
        match warnings {
            Ok(warnings) => ValidationResult::from_warning(warnings),
            Err(error) => ValidationResult::Error(format!("{error:#}")),
        }
    }
}

/// The lowering of the grammars of a list.
struct Lowering<'l> {
    limits: &'l Limits,
    options: LarkOptions,
    findings: Findings,
}

impl Lowering<'_> {
    /// Lowers the Lark texts of a list, and leaves the first grammar to `work`: its lowered text,
    /// or its schema. All within the fuel for the list.
    fn run<T>(
        list: &TopLevelGrammar,
        limits: &Limits,
        work: impl FnOnce(&mut Lowering<'_>, Option<Grammar>, Option<&Value>) -> Result<T>,
    ) -> Result<(T, Findings)> {
        let first = check_list(list)?;
        let length = serde_json::to_string(&list.grammars)?.len();
        let (options, _) = JsonCompileOptions::default().schema_options(&Value::Null)?;
        let options = LarkOptions::default().with_schema(options);
        let mut lowering = Lowering { limits, options, findings: Findings::default() };
        let budget = || limits.compile_budget(length);
        let done = fuel::with_default_budget(budget, || {
            let text = lowering.text(list)?;
            work(&mut lowering, text, first.json_schema.as_ref())
        })?;
        Ok((done, lowering.findings))
    }

    /// Makes the grammars of a list known to each other, and lowers those beside the first, as an
    /// error in one counts even if nothing refers to it. Returns the first one if it is in Lark.
    fn text(&mut self, list: &TopLevelGrammar) -> Result<Option<Grammar>> {
        let mut named = Vec::new();
        for (at, grammar) in list.grammars.iter().enumerate() {
            let name = grammar.name.clone().unwrap_or_else(|| format!("grammar {at}"));
            let lowered = match &grammar.lark_grammar {
                Some(text) => self.with_options_of_schemas(text).map(NamedGrammar::Lark),
                None if list.grammars.len() == 1 => return Ok(None),
                None => self.schema(grammar.json_schema.as_ref()).map(NamedGrammar::Grammar),
            };
            let lowered = lowered.with_context(|| format!("in grammar @{name}"))?;
            named.push((name, lowered));
        }
        self.options.named.extend(named.iter().cloned());
        for (name, grammar) in &named[1..] {
            if let NamedGrammar::Lark(text) = grammar {
                let lowered = lark::lower(text, &self.options, self.limits);
                lowered.with_context(|| format!("in grammar @{name}"))?;
            }
        }
        match &named[0].1 {
            NamedGrammar::Lark(text) => self.lark(text).map(Some),
            NamedGrammar::Grammar(_) => Ok(None),
        }
    }

    /// Lowers a Lark text, which may refer to the grammars of the list.
    fn lark(&mut self, text: &str) -> Result<Grammar> {
        let lowered = lark::lower(text, &self.options, self.limits)?;
        for warning in lowered.warnings.list() {
            let (line, column) = lowered.warnings.place(warning.span.start);
            // Forcing is the adapter's, where the option has an effect.
            if warning.message.contains("the option `no_forcing`") {
                self.findings.no_forcing = true;
            } else {
                self.warn(format!("at {line}({column}): {}", warning.message));
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
        let mut schema = schema.cloned().unwrap_or_default();
        let options = schema.as_object_mut().and_then(|members| members.shift_remove(OPTIONS_KEY));
        let options = options.map(JsonCompileOptions::deserialize).transpose()?.unwrap_or_default();
        let (options, warnings) = options.schema_options(&schema)?;
        warnings.into_iter().for_each(|warning| self.warn(format!("{OPTIONS_KEY}: {warning}")));
        if schema.to_string().contains(&format!("\"{OPTIONS_KEY}\":")) {
            self.warn(format!("{OPTIONS_KEY}: without effect below the root of a schema"));
        }
        let schema = Json::from(schema);
        json_schema::warnings(&schema).iter().for_each(|warning| self.warn(warning.to_string()));
        Ok((schema, options))
    }

    /// Lowers a schema with its own options.
    fn schema(&mut self, schema: Option<&Value>) -> Result<Grammar> {
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
