//! Images of grammars: each byte of a sentence written as other bytes, such as text inside a JSON string.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Attributes, Expr, Grammar, GrammarBuilder, GrammarError};
use crate::fsm::{ByteSet, Dfa, Nfa, TooLarge};
use crate::ids::RuleId;
use crate::limits::Limits;

/// Deepest expression that is mapped by recursion.
const MAX_DEPTH: usize = 500;

/// How each byte is written. Sentences are written byte by byte: a homomorphism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homomorphism {
    /// By byte.
    images: Vec<Vec<u8>>,
}

/// Why a grammar has no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// A special token is not bytes.
    #[error("rule `{rule}` has a special token, which is no bytes")]
    Special {
        /// The rule.
        rule: String,
    },
    /// A tag dispatch is watched for bytes as they are.
    #[error("rule `{rule}` has a tag dispatch")]
    Dispatch {
        /// The rule.
        rule: String,
    },
    /// A budget counts what is written, which is longer than what is meant.
    #[error("rule `{rule}` has a budget")]
    Budget {
        /// The rule.
        rule: String,
    },
    /// What differs is what is meant, not how it is written.
    #[error("rule `{rule}` is a scope or an element, whose values differ")]
    Distinct {
        /// The rule.
        rule: String,
    },
    /// Expressions are nested too deeply.
    #[error("rule `{rule}` is nested deeper than {limit}")]
    TooDeep {
        /// The rule.
        rule: String,
        /// The limit.
        limit: usize,
    },
    /// An automaton inside grew past [`Limits::automaton_states`].
    #[error(transparent)]
    Automaton(#[from] TooLarge),
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}

impl Homomorphism {
    /// The one that writes each byte so.
    pub fn new(image: impl Fn(u8) -> Vec<u8>) -> Homomorphism {
        Homomorphism { images: (0..=255).map(image).collect() }
    }

    /// Text between two quotes, as `write` writes it with them; each ASCII character is written by itself, others stay as they are.
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

    /// How a byte is written.
    pub fn image(&self, byte: u8) -> &[u8] {
        &self.images[usize::from(byte)]
    }

    /// How a text is written. Cost: linear.
    pub fn apply(&self, text: &[u8]) -> Vec<u8> {
        text.iter().flat_map(|&byte| self.image(byte)).copied().collect()
    }

    /// The bytes written as one byte each, and the images of all others.
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
    /// The sentences as a homomorphism writes them. Rules keep their places and what is said of them; those that no sentence
    /// meets derive nothing. Cost: the grammar's size times the longest image; automata inside are made deterministic again.
    pub fn image(&self, map: &Homomorphism, limits: &Limits) -> Result<Grammar, MapError> {
        self.validate()?;
        if let Cow::Owned(whole) = self.loaded()? {
            return whole.image(map, limits);
        }
        let mut builder = GrammarBuilder::new();
        for rule in &self.rules {
            let id = builder.declare(&*rule.name);
            // What a name is written as is no name.
            *builder.attributes(id) = Attributes { name: false, ..rule.attributes.clone() };
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
            let Attributes { budget, scope, element, .. } = &source.attributes;
            if budget.is_some() {
                return Err(MapError::Budget { rule: mapping.name() });
            }
            if *scope || *element {
                return Err(MapError::Distinct { rule: mapping.name() });
            }
            let body = mapping.expr(&source.body, 0, &mut todo)?;
            builder.define(rule, body);
        }
        Ok(builder.into_grammar(self.start))
    }
}

struct ImageBuilder<'g> {
    grammar: &'g Grammar,
    map: &'g Homomorphism,
    limits: &'g Limits,
    /// The rule that errors are about.
    rule: RuleId,
    /// Rules that a sentence meets.
    reached: Vec<bool>,
}

impl ImageBuilder<'_> {
    fn name(&self) -> String {
        self.grammar.rules[self.rule.index()].name.clone()
    }

    fn expr(
        &mut self,
        expr: &Expr,
        depth: usize,
        todo: &mut Vec<RuleId>,
    ) -> Result<Expr, MapError> {
        if depth > MAX_DEPTH {
            return Err(MapError::TooDeep { rule: self.name(), limit: MAX_DEPTH });
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
            Expr::Special(_) => return Err(MapError::Special { rule: self.name() }),
            Expr::Dispatch(_) | Expr::Deferred(_) => {
                return Err(MapError::Dispatch { rule: self.name() });
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
            Expr::Counted(counted) => self.expr(&counted.written_out(), depth, todo)?,
            Expr::Except(except) => self.expr(&except.written_out(), depth, todo)?,
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

    fn all(
        &mut self,
        parts: &[Expr],
        depth: usize,
        todo: &mut Vec<RuleId>,
    ) -> Result<Vec<Expr>, MapError> {
        parts.iter().map(|part| self.expr(part, depth, todo)).collect()
    }

    fn automaton(&self, dfa: &Dfa) -> Result<Dfa, MapError> {
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

/// The bytes as a path between two states.
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
