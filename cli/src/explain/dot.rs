//! Automata in Graphviz format.

use std::fmt::Write;

use louver::compile::{AutomatonEdge, DispatchState, EdgeKind, RuleAutomaton};
use louver::ir::Grammar;

/// Writes one cluster per rule. Double circles are accepting states; dashed edges are calls, with
/// the called rule in brackets; dotted edges repeat and leave counted blocks.
pub(super) fn write_dot(automata: &[RuleAutomaton], grammar: &Grammar) -> String {
    let mut out = String::from(
        "digraph louver {\n  rankdir=LR;\n  node [shape=circle, fontsize=10];\n  \
         edge [fontsize=10];\n",
    );
    for (i, automaton) in automata.iter().enumerate() {
        cluster(&mut out, i, automaton, automata, grammar);
    }
    out.push_str("}\n");
    out
}

fn cluster(
    out: &mut String,
    i: usize,
    automaton: &RuleAutomaton,
    automata: &[RuleAutomaton],
    grammar: &Grammar,
) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  subgraph cluster_{i} {{\n    label={};", quoted(&automaton.name));
    for (s, state) in automaton.states.iter().enumerate() {
        let shape = if state.is_final && state.block.is_none() { "doublecircle" } else { "circle" };
        let fill = match state.dispatch {
            Some(DispatchState::Fired { .. }) => ", style=filled, fillcolor=gold",
            Some(DispatchState::Text { .. }) => ", style=filled, fillcolor=lightblue",
            None if state.block.is_some() => ", style=filled, fillcolor=gray90",
            None => "",
        };
        let _ = writeln!(out, "    r{i}s{s} [label=\"{s}\", shape={shape}{fill}];");
        for AutomatonEdge { on, to } in &state.edges {
            let (label, style) = match on {
                EdgeKind::Bytes(set) => (set.to_string(), ""),
                EdgeKind::Special(special) => (grammar.special_text(*special), ", style=bold"),
                EdgeKind::Call(callee) => {
                    (format!("[{}]", automata[*callee].name), ", style=dashed")
                }
                EdgeKind::Enter(block) => {
                    let block = &automaton.blocks[*block];
                    let max = block.max.map_or(String::new(), |max| max.to_string());
                    (format!("{{{},{max}}}", block.min), ", style=dotted")
                }
            };
            let _ = writeln!(out, "    r{i}s{s} -> r{i}s{to} [label={}{style}];", quoted(&label));
        }
        if let Some(block) =
            state.block.filter(|_| state.is_final).and_then(|b| automaton.blocks.get(b))
        {
            for (to, label) in [(block.start, "again"), (block.exit, "out")] {
                let _ =
                    writeln!(out, "    r{i}s{s} -> r{i}s{to} [label=\"{label}\", style=dotted];");
            }
        }
    }
    out.push_str("  }\n");
}

/// A string of the DOT language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
