//! The report of `louver explain`: results of all compilation stages.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use louver::compile::{Compiled, DispatchState, RuleAutomaton};
use louver::front::json_schema::Registry;
use louver::ir::{Expr, Grammar, Simplify, Trigger};
use louver::limits::Limits;
use louver::spec::json::Json;
use serde::Serialize;

use super::prefix::PrefixReport;
use crate::spec::{self, LoweredSpec, SpecSource};

/// The report of `louver explain`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) source: SourceSummary,
    pub(super) warnings: Vec<String>,
    /// The warnings with their source lines.
    #[serde(skip)]
    pub(super) warnings_shown: String,
    /// Keywords that the policy relaxes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) relaxed: Vec<String>,
    pub(super) grammar: GrammarSummary,
    pub(super) passes: Vec<PassSummary>,
    /// The grammar after simplification, if it changed.
    pub(super) simplified: Option<GrammarSummary>,
    pub(super) compiled: CompiledSizes,
    pub(super) automata: Vec<AutomatonReport>,
    pub(super) dispatches: Vec<DispatchReport>,
    pub(super) microseconds: StageTimes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<PrefixReport>,
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

/// Totals over all automata.
#[derive(Debug, Serialize)]
pub(super) struct CompiledSizes {
    pub(super) rules: usize,
    pub(super) states: usize,
    pub(super) edges: usize,
    pub(super) blocks: usize,
    pub(super) byte_classes: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct AutomatonReport {
    pub(super) rule: String,
    pub(super) states: usize,
    pub(super) edges: usize,
    /// Counted repeats, as `{min,max}`.
    pub(super) blocks: Vec<String>,
}

/// A tag dispatch.
#[derive(Debug, Serialize)]
pub(super) struct DispatchReport {
    /// The rule that contains it.
    pub(super) rule: String,
    /// Each trigger with the rule of its tag's body.
    pub(super) tags: Vec<(String, String)>,
    pub(super) stops: Vec<String>,
    pub(super) excludes: Vec<String>,
    /// States of free text.
    pub(super) text_states: usize,
    /// States directly after a trigger or stop string.
    pub(super) fired_states: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct StageTimes {
    /// Parsing and lowering.
    pub(super) lower: f64,
    pub(super) simplify: f64,
    pub(super) compile: f64,
    /// All automata at once; a parse builds only those it reaches.
    pub(super) automata: f64,
}

/// Runs all stages.
pub(super) fn run_stages(
    source: &SpecSource,
    simplify: Simplify,
    limits: &Limits,
    registry: &Registry,
) -> Result<(Report, Arc<Compiled>)> {
    let begin = Instant::now();
    let text = Json::String(source.text.clone());
    let lowered = spec::lowered(source.kind, &text, &source.options, limits, registry);
    let LoweredSpec { grammar, warnings, relaxed, .. } =
        lowered.map_err(|error| source.error(error))?;
    let lower = elapsed_micros(begin);
    let begin = Instant::now();
    let (simplified, passes) = match simplify {
        Simplify::Off => (grammar.clone(), Vec::new()),
        Simplify::On => simplified(&grammar)?,
    };
    let simplify = elapsed_micros(begin);
    let changed = simplified != grammar;
    let begin = Instant::now();
    let compiled = Arc::new(Compiled::new(simplified.clone(), limits)?);
    let compile = elapsed_micros(begin);
    let begin = Instant::now();
    let automata = compiled.automata();
    let costs = StageTimes { lower, simplify, compile, automata: elapsed_micros(begin) };
    let total = compiled.size();
    let report = Report {
        source: SourceSummary {
            kind: source.kind,
            name: source.name.clone(),
            bytes: source.text.len(),
            lines: source.text.lines().count(),
        },
        warnings_shown: warnings.text(&source.name),
        warnings: warnings.lines,
        relaxed: relaxed.iter().map(ToString::to_string).collect(),
        grammar: summary(&grammar),
        passes,
        simplified: changed.then(|| summary(&simplified)),
        compiled: CompiledSizes {
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

/// Simplifies a grammar, and records the passes.
fn simplified(grammar: &Grammar) -> Result<(Grammar, Vec<PassSummary>)> {
    let mut passes: Vec<PassSummary> = Vec::new();
    let (mut rules, mut size) = (grammar.rules.len(), grammar.size());
    let simplified = grammar.simplify_observed(&mut |round, pass, after| {
        let (rules_before, size_before) = (rules, size);
        (rules, size) = (after.rules.len(), after.size());
        let pass = format!("{pass:?}");
        passes.push(PassSummary { round, pass, rules_before, rules, size_before, size });
    })?;
    Ok((simplified, passes))
}

fn elapsed_micros(begin: Instant) -> f64 {
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

fn automaton(automaton: &RuleAutomaton) -> AutomatonReport {
    let bounds = |max: Option<u32>| max.map_or(String::new(), |max| max.to_string());
    AutomatonReport {
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

/// The dispatches of a grammar with their automata; both are in the order of the rules.
fn dispatches(grammar: &Grammar, automata: &[RuleAutomaton]) -> Vec<DispatchReport> {
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
                        Trigger::TextThenSpecial(text, special) => {
                            String::from_utf8_lossy(text).into_owned()
                                + &grammar.special_text(*special)
                        }
                    };
                    let name = |rule: louver::ids::RuleId| grammar.rules[rule.index()].name.clone();
                    let tags: Vec<_> =
                        dispatch.tags.iter().map(|(t, body)| (trigger(t), name(*body))).collect();
                    let (text_states, fired_states) = dispatch_states(&tags, automata);
                    out.push(DispatchReport {
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

/// Text and fired states of the automaton whose calls are exactly the bodies of these tags.
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
