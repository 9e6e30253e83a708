//! Grammars of users as Louver's constraints.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use louver::front::diagnostic::Diagnostics;
use louver::front::json_schema::{LoweredSchema, Registry, SchemaError, lower_reported};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::{Constraint, Engine, Json, Limits};
use serde_json::Value;

use crate::api::{GrammarWithLexer, ParserLimits, TopLevelGrammar, check_list};
use crate::json_options::JsonCompileOptions;
use crate::tokens::TokenSpace;

/// A compiled grammar.
pub(crate) struct CompiledGrammar {
    pub(crate) constraint: Constraint,
    pub(crate) warnings: Vec<String>,
    /// Masks have all allowed tokens where text is forced.
    pub(crate) no_forcing: bool,
}

/// What is found out about a grammar beside its constraint.
#[derive(Default)]
struct Findings {
    warnings: Vec<String>,
    no_forcing: bool,
}

/// Compiles the first grammar of a list. Equal lists are compiled once.
pub(crate) fn compile(
    space: &TokenSpace,
    list: &TopLevelGrammar,
    limits: &ParserLimits,
) -> Result<CompiledGrammar> {
    let engine = space.engine(limits);
    let key = serde_json::to_string(&list.grammars)?;
    let bytes = 4 * key.len();
    let (constraint, findings) = engine.get_or_compile(key, bytes, |_| {
        let mut findings = Findings::default();
        let constraint = compile_first(&engine, list, &mut findings)?;
        Ok::<_, anyhow::Error>((constraint, findings))
    })?;
    let Findings { warnings, no_forcing } = &*findings;
    Ok(CompiledGrammar { constraint, warnings: warnings.clone(), no_forcing: *no_forcing })
}

/// Compiles the first grammar of a list.
fn compile_first(
    engine: &Engine,
    list: &TopLevelGrammar,
    findings: &mut Findings,
) -> Result<Constraint> {
    let first = check_list(list)?;
    let limits = &engine.options().limits;
    match (&first.lark_grammar, &first.json_schema) {
        (Some(text), _) => {
            let lowered = lower_lark(text, list, limits, findings)?;
            Ok(engine.compile_at(lowered, engine.options().simplify_texts)?)
        }
        (None, schema) => {
            let (text, options) = schema_and_options(schema.as_ref())?;
            let options = options.schema_options()?;
            let (constraint, relaxed) =
                engine.compile_json_schema_in(&text, &Registry::default(), &options)?;
            findings.warnings.extend(relaxed.iter().map(relaxed_warning));
            Ok(constraint)
        }
    }
}

/// Reads the first grammar of a list without a vocabulary; returns warnings.
pub(crate) fn check_without_tokens(list: &TopLevelGrammar) -> Result<Vec<String>> {
    let first = check_list(list)?;
    let (limits, mut findings) = (Limits::default(), Findings::default());
    match &first.lark_grammar {
        Some(text) => {
            lower_lark(text, list, &limits, &mut findings)?;
            let specials = special_tokens(text);
            let missing = |name| format!("no tokenizer - can't validate {name}");
            findings.warnings.extend(specials.into_iter().map(missing));
        }
        None => {
            lower_schema(first.json_schema.as_ref(), &limits, &mut findings)?;
        }
    }
    Ok(findings.warnings)
}

/// The special tokens that a Lark text seems to name.
fn special_tokens(text: &str) -> Vec<&str> {
    let words = text.split([' ', '\n', '(', ')', '|', '*', '+', '?', ':']);
    words.filter(|word| word.len() > 2 && word.starts_with('<') && word.ends_with('>')).collect()
}

/// Lowers a Lark text, which may refer to the other grammars of the list.
fn lower_lark(
    text: &str,
    list: &TopLevelGrammar,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<louver::Grammar> {
    let mut options = LarkOptions {
        schema: JsonCompileOptions::default().schema_options()?,
        ..LarkOptions::default()
    };
    let text = take_options_of_schemas(text, &mut options, limits, findings)?;
    for named in &list.grammars[1..] {
        let Some(name) = &named.name else { continue };
        let grammar = named_grammar(named, &mut options, limits, findings)
            .with_context(|| format!("in grammar @{name}"))?;
        options.named.insert(name.clone(), grammar);
    }
    let lowered = lark::lower(&text, &options, limits).map_err(|errors| anyhow!("{errors}"))?;
    let compact: String = text.split_whitespace().collect();
    findings.no_forcing |= compact.contains(r#""no_forcing":true"#);
    findings.warnings.extend(warnings(&lowered.warnings));
    Ok(lowered.grammar)
}

/// A grammar that others refer to by name.
fn named_grammar(
    named: &GrammarWithLexer,
    options: &mut LarkOptions,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<NamedGrammar> {
    Ok(match &named.lark_grammar {
        Some(text) => NamedGrammar::Lark(take_options_of_schemas(text, options, limits, findings)?),
        None => NamedGrammar::Grammar(lower_schema(named.json_schema.as_ref(), limits, findings)?),
    })
}

/// Replaces each `%json {..}` with options of its own by a reference to a lowered grammar: the Lark
/// front end has the same options for all schemas of a text.
fn take_options_of_schemas(
    text: &str,
    options: &mut LarkOptions,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<String> {
    const DIRECTIVE: &str = "%json";
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(DIRECTIVE) {
        let behind = &rest[at + DIRECTIVE.len()..];
        let mut values = serde_json::Deserializer::from_str(behind).into_iter::<Value>();
        let schema = values.next().and_then(Result::ok);
        let end = at + DIRECTIVE.len() + values.byte_offset();
        let is_own = |schema: &Value| schema.get("x-guidance").is_some();
        let Some(schema) = schema.filter(is_own) else {
            out.push_str(&rest[..at + DIRECTIVE.len()]);
            rest = behind;
            continue;
        };
        let name = format!("schema-with-options-{}", options.named.len());
        let grammar = lower_schema(Some(&schema), limits, findings)?;
        options.named.insert(name.clone(), NamedGrammar::Grammar(grammar));
        out.push_str(&rest[..at]);
        out.push_str(&format!("@{name}"));
        rest = &rest[end..];
    }
    Ok(out + rest)
}

/// A schema without its `x-guidance`, as text, and those options.
fn schema_and_options(schema: Option<&Value>) -> Result<(String, JsonCompileOptions)> {
    let mut schema = schema.cloned().unwrap_or_default();
    let options = JsonCompileOptions::take_from(&mut schema)?;
    Ok((schema.to_string(), options))
}

/// Lowers a schema with its own options.
fn lower_schema(
    schema: Option<&Value>,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<louver::Grammar> {
    let (text, options) = schema_and_options(schema)?;
    let schema = Json::parse(&text, limits)?;
    let LoweredSchema { grammar, relaxed } =
        lower_reported(&schema, &Registry::default(), &options.schema_options()?, limits)?;
    findings.warnings.extend(relaxed.iter().map(relaxed_warning));
    Ok(grammar)
}

/// The warning about a keyword that is not enforced.
fn relaxed_warning(error: &SchemaError) -> String {
    format!("not enforced: {error}")
}

/// Warnings of a Lark text, each in a line. Forcing is the adapter's, so that its option has an
/// effect is known here.
fn warnings(diagnostics: &Diagnostics) -> Vec<String> {
    let list = diagnostics.list().iter();
    let shown = list.filter(|d| !d.message.contains("`no_forcing`"));
    let line = |offset: usize| diagnostics.place(offset);
    shown
        .map(|d| {
            let (line, column) = line(d.span.start);
            format!("at {line}({column}): {}", d.message)
        })
        .collect()
}

/// A compiled grammar that parsers share.
pub(crate) type SharedGrammar = Arc<CompiledGrammar>;
