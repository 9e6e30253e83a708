//! Conversion of regular expressions of the IR to DFAs, and splitting of regular languages at a
//! marker.

use std::borrow::Borrow;
use std::collections::hash_map::Entry;

use super::{Expr, Graph, Rule};
use crate::fsm::{Combine, Dfa, DfaBuilder, Nfa, StatePairs, Thompson, TooLarge};
use crate::hash::HashMap;
use crate::ids::RuleId;

/// All bytes: the alphabet of these automata.
pub const BYTES: [(u32, u32); 1] = [(0, 255)];

/// Deepest nesting of expressions and calls.
const MAX_DEPTH: usize = 500;

/// Why an expression has no automaton over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRegular {
    /// A rule is recursive.
    #[error("rule {rule} leads back to itself")]
    Recursive {
        /// The rule.
        rule: RuleId,
    },
    /// It contains a special token.
    #[error("it contains a special token")]
    Special,
    /// It contains a tag dispatch.
    #[error("it contains a tag dispatch")]
    Dispatch,
    /// It contains a deferred body; see
    /// [`Grammar::with_deferred_bodies`](super::Grammar::with_deferred_bodies).
    #[error("it contains a deferred body")]
    Deferred,
    /// It calls a rule with attributes, such as a capture or a budget, which an automaton would
    /// lose.
    #[error("rule {rule} has attributes of its own")]
    Attributes {
        /// The rule.
        rule: RuleId,
    },
    /// It is nested too deeply.
    #[error("nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// It exceeds the limit of states.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// The minimal DFA of an expression; calls refer to `rules`. Counted repeats are unrolled.
///
/// # Errors
///
/// [`NotRegular`], in particular if the automaton has more than `limit` states, before or after
/// determinisation.
pub fn automaton(expr: &Expr, rules: &[Rule], limit: usize) -> Result<Dfa, NotRegular> {
    let mut build = NfaBuilder {
        rules,
        limit,
        in_progress: vec![false; rules.len()],
        depth: 0,
        nfa: Nfa::new(),
    };
    let start = build.nfa.state();
    let end = build.append(start, expr)?;
    build.nfa.set_final(end);
    Ok(build.nfa.determinize(limit)?.minimize())
}

/// Thompson's construction with limits.
struct NfaBuilder<'r> {
    rules: &'r [Rule],
    limit: usize,
    /// By rule: it is being inlined.
    in_progress: Vec<bool>,
    depth: usize,
    nfa: Nfa,
}

impl Thompson<Expr> for NfaBuilder<'_> {
    type Error = NotRegular;

    fn states(&self) -> usize {
        self.nfa.len()
    }

    /// A new state, within the limit.
    fn state(&mut self) -> Result<u32, NotRegular> {
        // A DFA may be smaller than its NFA, but in practice not four times.
        if self.nfa.len() >= self.limit.saturating_mul(4) {
            return Err(TooLarge::States { limit: self.limit }.into());
        }
        Ok(self.nfa.state())
    }

    fn epsilon(&mut self, from: u32, to: u32) {
        self.nfa.epsilon(from, to);
    }

    fn append(&mut self, from: u32, expr: &Expr) -> Result<u32, NotRegular> {
        if self.depth >= MAX_DEPTH {
            return Err(NotRegular::TooDeep);
        }
        self.depth += 1;
        let to = self.expr(from, expr);
        self.depth -= 1;
        to
    }
}

impl NfaBuilder<'_> {
    /// Appends an expression; the nesting has been checked.
    fn expr(&mut self, from: u32, expr: &Expr) -> Result<u32, NotRegular> {
        Ok(match expr {
            Expr::Empty => from,
            Expr::Never => self.state()?,
            Expr::Bytes(bytes) => {
                let mut at = from;
                for &byte in bytes.iter() {
                    let to = self.state()?;
                    self.nfa.edge(at, u32::from(byte), u32::from(byte), to);
                    at = to;
                }
                at
            }
            Expr::Class(set) => {
                let to = self.state()?;
                for (lo, hi) in set.ranges() {
                    self.nfa.edge(from, u32::from(lo), u32::from(hi), to);
                }
                to
            }
            Expr::Special(_) => return Err(NotRegular::Special),
            Expr::Dispatch(_) => return Err(NotRegular::Dispatch),
            Expr::Deferred(_) => return Err(NotRegular::Deferred),
            Expr::Ref(rule) => self.rule(from, *rule)?,
            Expr::Seq(parts) => self.append_sequence(from, parts)?,
            Expr::Alt(parts) => self.append_alternatives(from, parts)?,
            Expr::Automaton(dfa) => {
                if self.nfa.len() + dfa.len() > self.limit.saturating_mul(4) {
                    return Err(TooLarge::States { limit: self.limit }.into());
                }
                let (begin, end) = self.nfa.embed(dfa);
                self.nfa.epsilon(from, begin);
                end
            }
            Expr::Graph(graph) => self.graph(from, graph)?,
            Expr::Members(members) => self.graph(from, &members.to_graph(self.limit)?)?,
            Expr::Counted(counted) => {
                if counted.fewest_states() > self.limit.saturating_mul(4) {
                    return Err(TooLarge::States { limit: self.limit }.into());
                }
                self.append(from, &counted.to_graph())?
            }
            Expr::Except(except) => self.append(from, &except.to_graph())?,
            Expr::Repeat { body, min, max } => self.append_repeat(from, body, *min, *max)?,
        })
    }

    /// Appends a graph.
    fn graph<E: Borrow<Expr>>(&mut self, from: u32, graph: &Graph<E>) -> Result<u32, NotRegular> {
        let mut nodes = Vec::new();
        for _ in 0..graph.nodes {
            nodes.push(self.state()?);
        }
        self.nfa.epsilon(from, nodes[graph.start as usize]);
        for (a, expr, b) in &graph.edges {
            let begin = self.state()?;
            self.nfa.epsilon(nodes[*a as usize], begin);
            let to = self.append(begin, expr.borrow())?;
            self.nfa.epsilon(to, nodes[*b as usize]);
        }
        let end = self.state()?;
        graph.ends.iter().for_each(|&node| self.nfa.epsilon(nodes[node as usize], end));
        Ok(end)
    }

    /// Inlines a rule.
    fn rule(&mut self, from: u32, rule: RuleId) -> Result<u32, NotRegular> {
        let rules = self.rules;
        let callee = &rules[rule.index()];
        if !callee.attributes.is_empty() {
            return Err(NotRegular::Attributes { rule });
        }
        if std::mem::replace(&mut self.in_progress[rule.index()], true) {
            return Err(NotRegular::Recursive { rule });
        }
        let to = self.append(from, &callee.body)?;
        self.in_progress[rule.index()] = false;
        Ok(to)
    }
}

/// Splits each word of `whole` into a word of `body` followed by a word of `marker`, in every
/// possible way. The union over the returned pairs (body, marker) is the set of words that can be
/// split. A marker with a single word yields one pair.
///
/// Cost: the product of `whole` and `body`, and a product of `whole` and `marker` for each state of
/// `whole` in which a body may end. Fails if one automaton exceeds `limit` states.
pub fn split(
    whole: &Dfa,
    body: &Dfa,
    marker: &Dfa,
    limit: usize,
) -> Result<Vec<(Dfa, Dfa)>, TooLarge> {
    let (pairs, prefixes) = common_prefixes(whole, body, limit)?;
    // Groups of pairs with the same remainder: the marker words that may follow.
    let mut groups: Vec<(Dfa, Vec<u32>)> = Vec::new();
    let mut group_of: HashMap<u32, Option<usize>> = HashMap::default();
    for (id, &(w, b)) in (0..).zip(pairs.all()) {
        if !body.is_final(b) {
            continue;
        }
        let group = match group_of.entry(w) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let rest = whole.restarted(w, |state| whole.is_final(state)).minimize().combine(
                    marker,
                    Combine::And,
                    limit,
                )?;
                *new.insert(if rest.is_empty() {
                    None
                } else if let Some(known) = groups.iter().position(|(dfa, _)| *dfa == rest) {
                    Some(known)
                } else {
                    groups.push((rest, Vec::new()));
                    Some(groups.len() - 1)
                })
            }
        };
        if let Some(group) = group {
            groups[group].1.push(id);
        }
    }
    let body_of = |ends: &[u32]| {
        let mut builder = DfaBuilder::new();
        for state in 0..prefixes.len() as u32 {
            builder.state(false);
            prefixes.edges(state).iter().for_each(|e| builder.edge(state, e.lo, e.hi, e.to));
        }
        ends.iter().for_each(|&end| builder.set_final(end, true));
        builder.finish().minimize()
    };
    Ok(groups.into_iter().map(|(rest, ends)| (body_of(&ends), rest)).collect())
}

/// The pairs of states of both automata that a common prefix leads to, and the automaton of these
/// prefixes, by pair and without final states.
fn common_prefixes(whole: &Dfa, body: &Dfa, limit: usize) -> Result<(StatePairs, Dfa), TooLarge> {
    let mut pairs = StatePairs::new((0, 0), limit);
    let mut prefixes = DfaBuilder::new();
    let mut at = 0;
    while let Some((w, b)) = pairs.get(at) {
        prefixes.state(false);
        for e in whole.edges(w) {
            for f in body.edges(b) {
                let (lo, hi) = (e.lo.max(f.lo), e.hi.min(f.hi));
                if lo <= hi {
                    prefixes.edge(at as u32, lo, hi, pairs.number((e.to, f.to))?);
                }
            }
        }
        at += 1;
    }
    Ok((pairs, prefixes.finish()))
}

#[cfg(test)]
mod tests;
