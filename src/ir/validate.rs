//! Validation of grammars, and renumbering of references.

use std::fmt;

use super::{Counted, Expr, Grammar, Graph, SpecialToken, Trigger};
use crate::ids::{RuleId, SpecialId};

/// A grammar that is not well formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// A reference to a rule that does not exist.
    #[error("rule `{rule}` refers to rule {target}, which does not exist")]
    UnknownRule {
        /// The rule with the reference.
        rule: String,
        /// The id it refers to.
        target: RuleId,
    },
    /// A reference to a special token that the grammar does not list.
    #[error("rule `{rule}` refers to special token {target}, which the grammar does not list")]
    UnknownSpecial {
        /// The rule with the reference.
        rule: String,
        /// The id it refers to.
        target: SpecialId,
    },
    /// The start rule does not exist.
    #[error("start rule {start} does not exist")]
    UnknownStart {
        /// The id.
        start: RuleId,
    },
    /// A graph edge, start or end names a node that does not exist.
    #[error("rule `{rule}` has a graph with {nodes} nodes that names node {node}")]
    UnknownNode {
        /// The rule with the graph.
        rule: String,
        /// The node.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// Another violated requirement of an expression.
    #[error("rule `{rule}`: {what}")]
    Malformed {
        /// The rule.
        rule: String,
        /// The violation.
        what: &'static str,
    },
    /// Expressions are nested too deeply.
    #[error("rule `{rule}` is nested deeper than {limit}")]
    TooDeep {
        /// The rule.
        rule: String,
        /// The limit.
        limit: usize,
    },
}

/// Deepest expression that the compiler visits by recursion.
const MAX_DEPTH: usize = 1_000;

impl Grammar {
    /// Checks all ids, nodes and requirements. Cost: linear.
    pub fn validate(&self) -> Result<(), GrammarError> {
        if self.start.index() >= self.rules.len() {
            return Err(GrammarError::UnknownStart { start: self.start });
        }
        for rule in &self.rules {
            self.check(&rule.name, &rule.body, 0)?;
        }
        Ok(())
    }

    /// The text of a special token, for messages.
    pub fn special_text(&self, special: SpecialId) -> String {
        self.specials
            .get(special.index())
            .map_or_else(|| format!("(unknown {special})"), SpecialToken::to_string)
    }

    /// Checks an expression of `rule`.
    fn check(&self, rule: &str, expr: &Expr, depth: usize) -> Result<(), GrammarError> {
        if depth > MAX_DEPTH {
            return Err(GrammarError::TooDeep { rule: rule.to_owned(), limit: MAX_DEPTH });
        }
        let malformed = |what| Err(GrammarError::Malformed { rule: rule.to_owned(), what });
        match expr {
            Expr::Special(s) => self.check_special(rule, *s),
            Expr::Ref(r) => self.check_rule(rule, *r),
            Expr::Automaton(dfa) => {
                if (0..dfa.len() as u32).any(|s| dfa.edges(s).iter().any(|e| e.hi > 255)) {
                    return malformed("an automaton has an edge that is not over bytes");
                }
                Ok(())
            }
            Expr::Counted(counted) => {
                let Counted { graph, min, max } = &**counted;
                let layers = max.unwrap_or(*min).max(*min).checked_add(1);
                if layers.and_then(|layers| layers.checked_mul(graph.nodes)).is_none() {
                    return malformed("too many steps are counted");
                }
                self.check_graph(rule, graph, depth)
            }
            Expr::Graph(graph) => self.check_graph(rule, graph, depth),
            Expr::Except(except) => {
                if except.close.is_empty() || !except.words.is_sorted_by(|a, b| a < b) {
                    return malformed(
                        "excluded words are not sorted, or their closing text is empty",
                    );
                }
                [except.tail, except.other].into_iter().try_for_each(|r| self.check_rule(rule, r))
            }
            Expr::Dispatch(dispatch) => {
                for trigger in dispatch.triggers_and_stops() {
                    match trigger {
                        Trigger::Text(text) | Trigger::TextThenSpecial(text, _)
                            if text.is_empty() =>
                        {
                            return malformed("a trigger or stop has no text");
                        }
                        Trigger::Text(_) => {}
                        Trigger::Special(s) | Trigger::TextThenSpecial(_, s) => {
                            self.check_special(rule, *s)?
                        }
                    }
                }
                if dispatch.excludes.iter().any(Vec::is_empty) {
                    return malformed("an excluded string has no text");
                }
                dispatch.tags.iter().try_for_each(|(_, r)| self.check_rule(rule, *r))
            }
            Expr::Deferred(_) if depth > 0 => {
                malformed("only the whole body of a rule can be deferred")
            }
            Expr::Members(members) if !members.has_valid_clauses() => {
                malformed("a member set has clauses that name no member or that it cannot decide")
            }
            expr => expr.children().try_for_each(|part| self.check(rule, part, depth + 1)),
        }
    }

    /// Checks a graph of `rule`.
    fn check_graph(&self, rule: &str, graph: &Graph, depth: usize) -> Result<(), GrammarError> {
        let nodes = graph.edges.iter().flat_map(|(from, _, to)| [*from, *to]);
        for node in nodes.chain(graph.ends.iter().copied()).chain([graph.start]) {
            if node >= graph.nodes {
                return Err(GrammarError::UnknownNode {
                    rule: rule.to_owned(),
                    node,
                    nodes: graph.nodes,
                });
            }
        }
        graph.edges.iter().try_for_each(|(_, e, _)| self.check(rule, e, depth + 1))
    }

    /// Checks a call.
    fn check_rule(&self, rule: &str, target: RuleId) -> Result<(), GrammarError> {
        if target.index() < self.rules.len() {
            return Ok(());
        }
        Err(GrammarError::UnknownRule { rule: rule.to_owned(), target })
    }

    /// Checks a special token.
    fn check_special(&self, rule: &str, target: SpecialId) -> Result<(), GrammarError> {
        if target.index() < self.specials.len() {
            return Ok(());
        }
        Err(GrammarError::UnknownSpecial { rule: rule.to_owned(), target })
    }
}

/// A name, `[id]`, or a list in parentheses; an excluded list begins with `!`.
impl fmt::Display for SpecialToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tokens, sign) = match self {
            SpecialToken::Name(name) => return f.write_str(name),
            SpecialToken::Id(id) => return write!(f, "[{id}]"),
            SpecialToken::AnyOf(tokens) => (tokens, ""),
            SpecialToken::AnyBut(tokens) => (tokens, "!"),
        };
        let list: Vec<String> = tokens.iter().map(SpecialToken::to_string).collect();
        write!(f, "{sign}({})", list.join(", "))
    }
}

impl Expr {
    /// Renumbers every reference.
    pub(crate) fn remap(
        &mut self,
        rule: &impl Fn(RuleId) -> RuleId,
        special: &impl Fn(SpecialId) -> SpecialId,
    ) {
        match self {
            Expr::Special(s) => *s = special(*s),
            Expr::Ref(r) => *r = rule(*r),
            Expr::Except(except) => {
                [&mut except.tail, &mut except.other].into_iter().for_each(|r| *r = rule(*r))
            }
            Expr::Dispatch(dispatch) => {
                let remap = |t: &mut Trigger| {
                    if let Trigger::Special(s) | Trigger::TextThenSpecial(_, s) = t {
                        *s = special(*s);
                    }
                };
                for (trigger, body) in &mut dispatch.tags {
                    remap(trigger);
                    *body = rule(*body);
                }
                dispatch.stops.iter_mut().for_each(remap);
            }
            _ => self.children_mut().for_each(|part| part.remap(rule, special)),
        }
    }
}
