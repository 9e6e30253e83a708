//! The stages of a spec, as values.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use louver::compile::{Compiled, DispatchState, RuleAutomaton};
use louver::front::Lowered;
use louver::ir::{Expr, Grammar, Simplify, Trigger};
use louver::limits::Limits;
use serde::Serialize;
use serde_json::Value;

use super::Source;
use super::at::At;
use crate::check::spec;

/// Everything `louver explain` says.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) source: SourceSummary,
    pub(super) warnings: Vec<String>,
    /// The warnings in the source.
    #[serde(skip)]
    pub(super) warnings_shown: String,
    pub(super) grammar: GrammarSummary,
    pub(super) passes: Vec<PassSummary>,
    /// The grammar behind the passes, where they changed it.
    pub(super) simplified: Option<GrammarSummary>,
    pub(super) compiled: Sizes,
    pub(super) automata: Vec<Automaton>,
    pub(super) dispatches: Vec<Dispatching>,
    pub(super) microseconds: Costs,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<At>,
}

#[derive(Debug, Serialize)]
pub(super) struct SourceSummary {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) bytes: usize,
    pub(super) lines: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct GrammarSummary {
    pub(super) rules: usize,
    /// Rules, and nodes, bytes and edges of their expressions.
    pub(super) size: usize,
    pub(super) specials: Vec<String>,
    pub(super) text: String,
}

#[derive(Debug, Serialize)]
pub(super) struct PassSummary {
    pub(super) round: usize,
    pub(super) pass: String,
    pub(super) rules_before: usize,
    pub(super) rules: usize,
    pub(super) size_before: usize,
    pub(super) size: usize,
}

/// Of all automata together.
#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    pub(super) rules: usize,
    pub(super) states: usize,
    pub(super) edges: usize,
    pub(super) blocks: usize,
    pub(super) byte_classes: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Automaton {
    pub(super) rule: String,
    pub(super) states: usize,
    pub(super) edges: usize,
    /// Counted repeats, as `{min,max}`.
    pub(super) blocks: Vec<String>,
}

/// A tag dispatch.
#[derive(Debug, Serialize)]
pub(super) struct Dispatching {
    /// The rule of the grammar it stands in.
    pub(super) rule: String,
    /// Each trigger with the rule of its tag's body.
    pub(super) tags: Vec<(String, String)>,
    pub(super) stops: Vec<String>,
    pub(super) excludes: Vec<String>,
    /// States of free text.
    pub(super) text_states: usize,
    /// States in which a trigger or stop has just been read.
    pub(super) fired_states: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Costs {
    /// Reading and lowering.
    pub(super) lower: f64,
    pub(super) simplify: f64,
    pub(super) compile: f64,
    /// All automata at once. A parse builds only those it gets to.
    pub(super) automata: f64,
}

/// Runs all stages.
pub(super) fn stages(
    source: &Source,
    options: &Value,
    level: Simplify,
    limits: &Limits,
) -> Result<(Report, Arc<Compiled>)> {
    let begin = Instant::now();
    let lowered = spec::lowered(source.kind, &Value::String(source.text.clone()), options, limits);
    let Lowered { grammar, warnings } = lowered.map_err(|error| spec_error(error, source))?;
    let lower = micros(begin);
    let begin = Instant::now();
    let mut passes: Vec<PassSummary> = Vec::new();
    let (mut rules, mut size) = (grammar.rules.len(), grammar.size());
    let simplified = grammar.simplify_observed(level, &mut |round, pass, after| {
        let (rules_before, size_before) = (rules, size);
        (rules, size) = (after.rules.len(), after.size());
        passes.push(PassSummary {
            round,
            pass: format!("{pass:?}"),
            rules_before,
            rules,
            size_before,
            size,
        });
    })?;
    let simplify = micros(begin);
    let changed = *simplified != grammar;
    let simplified = simplified.into_owned();
    let begin = Instant::now();
    let compiled = Arc::new(Compiled::new(simplified.clone(), limits)?);
    let compile = micros(begin);
    let begin = Instant::now();
    let automata = compiled.automata();
    let costs = Costs { lower, simplify, compile, automata: micros(begin) };
    let total = compiled.size();
    let report = Report {
        source: SourceSummary {
            kind: source.kind,
            name: source.name.clone(),
            bytes: source.text.len(),
            lines: source.text.lines().count(),
        },
        warnings: warnings.list().iter().map(|w| w.message.clone()).collect(),
        warnings_shown: warnings.to_string(),
        grammar: summary(&grammar),
        passes,
        simplified: changed.then(|| summary(&simplified)),
        compiled: Sizes {
            rules: total.rules,
            states: total.states,
            edges: total.edges,
            blocks: total.blocks,
            byte_classes: total.classes,
        },
        automata: automata.iter().map(automaton).collect(),
        dispatches: dispatches(&simplified, &automata),
        microseconds: costs,
        at: None,
    };
    Ok((report, compiled))
}

/// A regular expression's error is shown in the pattern.
fn spec_error(error: spec::SpecError, source: &Source) -> anyhow::Error {
    match error {
        spec::SpecError::Regex(error) => {
            anyhow::anyhow!("\n{}", error.diagnostics(&source.name, &source.text))
        }
        other => anyhow::Error::from(other).context(source.name.clone()),
    }
}

fn micros(begin: Instant) -> f64 {
    (begin.elapsed().as_nanos() as f64 / 100.0).round() / 10.0
}

fn summary(grammar: &Grammar) -> GrammarSummary {
    GrammarSummary {
        rules: grammar.rules.len(),
        size: grammar.size(),
        specials: grammar.specials.iter().map(ToString::to_string).collect(),
        text: grammar.to_string(),
    }
}

fn automaton(automaton: &RuleAutomaton) -> Automaton {
    let bounds = |max: Option<u32>| max.map_or(String::new(), |max| max.to_string());
    Automaton {
        rule: automaton.name.clone(),
        states: automaton.states.len(),
        edges: automaton.edge_count(),
        blocks: automaton
            .blocks
            .iter()
            .map(|b| format!("{{{},{}}}", b.min, bounds(b.max)))
            .collect(),
    }
}

/// The dispatches of a grammar, with the automata that belong to them: both come in the order of the rules.
fn dispatches(grammar: &Grammar, automata: &[RuleAutomaton]) -> Vec<Dispatching> {
    let mut out = Vec::new();
    for rule in &grammar.rules {
        let mut stack = vec![&rule.body];
        while let Some(expr) = stack.pop() {
            match expr {
                Expr::Seq(parts) | Expr::Alt(parts) => stack.extend(parts.iter().rev()),
                Expr::Repeat { body, .. } => stack.push(body),
                Expr::Graph(graph) => stack.extend(graph.edges.iter().rev().map(|(_, e, _)| e)),
                Expr::Members(members) => {
                    let parts: Vec<_> = members.parts().collect();
                    stack.extend(parts.into_iter().rev());
                }
                Expr::Dispatch(dispatch) => {
                    let trigger = |t: &Trigger| match t {
                        Trigger::Text(text) => String::from_utf8_lossy(text).into_owned(),
                        Trigger::Special(special) => grammar.special_text(*special),
                        Trigger::Led(text, special) => {
                            String::from_utf8_lossy(text).into_owned()
                                + &grammar.special_text(*special)
                        }
                    };
                    let name = |rule: louver::ids::RuleId| grammar.rules[rule.index()].name.clone();
                    let tags: Vec<_> =
                        dispatch.tags.iter().map(|(t, body)| (trigger(t), name(*body))).collect();
                    let (text_states, fired_states) = dispatch_states(&tags, automata);
                    out.push(Dispatching {
                        rule: rule.name.clone(),
                        tags,
                        stops: dispatch.stops.iter().map(trigger).collect(),
                        excludes: dispatch
                            .excludes
                            .iter()
                            .map(|e| String::from_utf8_lossy(e).into_owned())
                            .collect(),
                        text_states,
                        fired_states,
                    });
                }
                _ => {}
            }
        }
    }
    out
}

/// States of the automaton whose calls are just the bodies of these tags.
fn dispatch_states(tags: &[(String, String)], automata: &[RuleAutomaton]) -> (usize, usize) {
    let mut bodies: Vec<&str> = tags.iter().map(|(_, body)| body.as_str()).collect();
    bodies.sort_unstable();
    bodies.dedup();
    for automaton in automata.iter().filter(|a| a.is_dispatch()) {
        let edges = automaton.states.iter().flat_map(|s| &s.edges);
        let mut calls: Vec<&str> = edges
            .filter_map(|e| match e.on {
                louver::compile::EdgeKind::Call(callee) => Some(automata[callee].name.as_str()),
                _ => None,
            })
            .collect();
        calls.sort_unstable();
        calls.dedup();
        if calls == bodies {
            let count = |f: fn(&DispatchState) -> bool| {
                automaton.states.iter().filter(|s| s.dispatch.as_ref().is_some_and(f)).count()
            };
            let text = count(|d| matches!(d, DispatchState::Text { .. }));
            return (text, count(|d| matches!(d, DispatchState::Fired { .. })));
        }
    }
    (0, 0)
}
