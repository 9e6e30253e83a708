//! Images of grammars under homomorphisms, such as text escaped inside of a JSON string.

use std::borrow::Cow;
use std::sync::Arc;

use super::algebra::AlgebraError;
use super::{Counted, Expr, Grammar, GrammarBuilder, GrammarError};
use crate::fsm::{ByteSet, Dfa, Nfa};
use crate::ids::RuleId;
use crate::limits::Limits;

/// Deepest expression that is mapped by recursion.
const MAX_DEPTH: usize = 500;

/// A homomorphism: a byte string for each byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homomorphism {
    /// By byte.
    images: Vec<Vec<u8>>,
}

impl Homomorphism {
    /// The homomorphism that maps each byte by `image`.
    pub fn new(image: impl Fn(u8) -> Vec<u8>) -> Homomorphism {
        Homomorphism { images: (0..=255).map(image).collect() }
    }

    /// The escaping of text between quotes, as `write` quotes it. ASCII characters are mapped one
    /// by one; other bytes stay as they are.
    pub fn quoted(write: impl Fn(&mut String, &str)) -> Homomorphism {
        Homomorphism::new(|byte| {
            if !byte.is_ascii() {
                return vec![byte];
            }
            let mut quoted = String::new();
            write(&mut quoted, char::from(byte).encode_utf8(&mut [0; 4]));
            let inside = quoted.len().saturating_sub(1).max(1);
            quoted.as_bytes().get(1..inside).unwrap_or_default().to_vec()
        })
    }

    /// The image of a byte.
    pub fn image(&self, byte: u8) -> &[u8] {
        &self.images[usize::from(byte)]
    }

    /// The image of a text. Cost: linear.
    pub fn apply(&self, text: &[u8]) -> Vec<u8> {
        text.iter().flat_map(|&byte| self.image(byte)).copied().collect()
    }

    /// The image of a byte class: single bytes as a class, all other images as strings.
    fn class(&self, set: ByteSet) -> (ByteSet, Vec<&[u8]>) {
        let (mut single, mut others) = (ByteSet::EMPTY, Vec::new());
        for byte in set.iter() {
            match self.image(byte) {
                [one] => single.insert(*one),
                other => others.push(other),
            }
        }
        (single, others)
    }
}

impl Grammar {
    /// The image of the grammar's language. Rule ids and attributes are kept; unreachable rules
    /// derive nothing. Undefined for unique keys. Cost: the grammar's size times the longest image;
    /// automata are determinised again.
    pub fn image(&self, map: &Homomorphism, limits: &Limits) -> Result<Grammar, AlgebraError> {
        self.validate()?;
        if let Cow::Owned(whole) = self.with_deferred_bodies()? {
            return whole.image(map, limits);
        }
        let mut builder = GrammarBuilder::new();
        for rule in &self.rules {
            let id = builder.declare(&*rule.name);
            *builder.attributes(id) = rule.attributes.clone();
        }
        let mut mapping = ImageBuilder {
            grammar: self,
            map,
            limits,
            rule: self.start,
            reached: vec![false; self.rules.len()],
        };
        let mut todo = vec![self.start];
        mapping.reached[self.start.index()] = true;
        while let Some(rule) = todo.pop() {
            mapping.rule = rule;
            let source = &self.rules[rule.index()];
            AlgebraError::check_attributes(source)?;
            if source.attributes.unique_key {
                let what = "unique keys, which cannot be compared inside of a string: an object \
                            with `\"additionalProperties\": false` has none";
                return Err(AlgebraError::Undefined { rule: source.name.clone(), what });
            }
            let body = mapping.expr(&source.body, 0, &mut todo)?;
            builder.define(rule, body);
        }
        Ok(builder.into_grammar(self.start))
    }
}

/// Maps the rules of a grammar.
struct ImageBuilder<'g> {
    grammar: &'g Grammar,
    map: &'g Homomorphism,
    limits: &'g Limits,
    /// The current rule, for errors.
    rule: RuleId,
    /// By rule: reachable from the start.
    reached: Vec<bool>,
}

impl ImageBuilder<'_> {
    /// The name of the current rule.
    fn name(&self) -> String {
        self.grammar.rules[self.rule.index()].name.clone()
    }

    /// The image of an expression; new callees go to `todo`.
    fn expr(
        &mut self,
        expr: &Expr,
        depth: usize,
        todo: &mut Vec<RuleId>,
    ) -> Result<Expr, AlgebraError> {
        if depth > MAX_DEPTH {
            return Err(GrammarError::TooDeep { rule: self.name(), limit: MAX_DEPTH }.into());
        }
        let depth = depth + 1;
        Ok(match expr {
            Expr::Empty | Expr::Never => expr.clone(),
            Expr::Bytes(bytes) => Expr::bytes(&self.map.apply(bytes)),
            Expr::Class(set) => {
                let (single, others) = self.map.class(*set);
                Expr::alt(
                    [Expr::class(single)].into_iter().chain(others.into_iter().map(Expr::bytes)),
                )
            }
            Expr::Special(_) | Expr::Dispatch(_) | Expr::Deferred(_) => {
                let rule = &self.grammar.rules[self.rule.index()];
                return Err(AlgebraError::undefined_expr(rule, expr));
            }
            Expr::Ref(rule) => {
                if !std::mem::replace(&mut self.reached[rule.index()], true) {
                    todo.push(*rule);
                }
                expr.clone()
            }
            Expr::Seq(parts) => Expr::seq(self.all(parts, depth, todo)?),
            Expr::Alt(parts) => Expr::alt(self.all(parts, depth, todo)?),
            Expr::Repeat { body, min, max } => {
                Expr::repeat(self.expr(body, depth, todo)?, *min, *max)
            }
            Expr::Counted(counted) => self.expr(&self.unrolled(counted)?, depth, todo)?,
            Expr::Except(except) => self.expr(&except.to_graph(), depth, todo)?,
            Expr::Automaton(dfa) => {
                let dfa = self.automaton(dfa)?;
                if dfa.is_empty() { Expr::Never } else { Expr::Automaton(Arc::new(dfa)) }
            }
            Expr::Members(members) => {
                let mut members = members.clone();
                for part in members.parts_mut() {
                    *part = self.expr(part, depth, todo)?;
                }
                Expr::Members(members)
            }
            Expr::Graph(graph) => {
                let mut graph = graph.clone();
                for (_, edge, _) in &mut graph.edges {
                    *edge = self.expr(edge, depth, todo)?;
                }
                graph.edges.retain(|(_, edge, _)| *edge != Expr::Never);
                Expr::Graph(graph)
            }
        })
    }

    /// A counted graph as a graph, if that is within the limits.
    fn unrolled(&self, counted: &Counted) -> Result<Expr, AlgebraError> {
        let limit = self.limits.nodes;
        counted.to_graph_within(limit).ok_or(AlgebraError::TooLarge { limit })
    }

    /// The images of several expressions.
    fn all(
        &mut self,
        parts: &[Expr],
        depth: usize,
        todo: &mut Vec<RuleId>,
    ) -> Result<Vec<Expr>, AlgebraError> {
        parts.iter().map(|part| self.expr(part, depth, todo)).collect()
    }

    /// The image of a DFA, minimal again.
    fn automaton(&self, dfa: &Dfa) -> Result<Dfa, AlgebraError> {
        let mut nfa = Nfa::new();
        let states: Vec<u32> = (0..dfa.len()).map(|_| nfa.state()).collect();
        for (state, &from) in (0u32..).zip(&states) {
            if dfa.is_final(state) {
                nfa.set_final(from);
            }
            for edge in dfa.edges(state) {
                let to = states[edge.to as usize];
                let mut set = ByteSet::EMPTY;
                set.insert_range(edge.lo as u8, edge.hi as u8);
                let (single, others) = self.map.class(set);
                for (lo, hi) in single.ranges() {
                    nfa.edge(from, lo.into(), hi.into(), to);
                }
                others.into_iter().for_each(|image| add_path(&mut nfa, from, image, to));
            }
        }
        if let Some(&start) = states.first() {
            nfa.set_start(start);
        }
        Ok(nfa.determinize(self.limits.automaton_states)?.minimize())
    }
}

/// Adds a path over `bytes` between two states.
fn add_path(nfa: &mut Nfa, from: u32, bytes: &[u8], to: u32) {
    let Some((&last, before)) = bytes.split_last() else { return nfa.epsilon(from, to) };
    let mut at = from;
    for &byte in before {
        let next = nfa.state();
        nfa.edge(at, byte.into(), byte.into(), next);
        at = next;
    }
    nfa.edge(at, last.into(), last.into(), to);
}
