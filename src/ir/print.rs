//! Grammars as text, for people: one line a rule.

use std::fmt;

use super::{AfterTag, Dispatch, DispatchEnd, Expr, Grammar, Graph, Rule, Trigger};
use crate::fsm::escape;
use crate::ids::RuleId;

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, rule) in self.rules.iter().enumerate() {
            if i == self.start.index() {
                write!(f, "start ")?;
            }
            write!(f, "{}", self.name(RuleId::new(i)))?;
            if let Some(label) = rule.attributes.label {
                write!(f, " @{label}")?;
            }
            write!(f, " ::= ")?;
            self.expr(f, &rule.body, Level::Alt)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

/// How tightly what surrounds an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Alt,
    Seq,
    Atom,
}

impl Grammar {
    /// A rule's name; with its number where names repeat.
    fn name(&self, id: RuleId) -> String {
        let name = |r: &Rule| if r.name.is_empty() { "rule".to_owned() } else { r.name.clone() };
        match self.rules.get(id.index()) {
            None => format!("?{id}"),
            Some(rule) => {
                let own = name(rule);
                let repeated = self.rules.iter().filter(|r| name(r) == own).count() > 1;
                if repeated { format!("{own}#{id}") } else { own }
            }
        }
    }

    fn expr(&self, f: &mut fmt::Formatter<'_>, expr: &Expr, level: Level) -> fmt::Result {
        match expr {
            Expr::Empty => write!(f, "\"\""),
            Expr::Never => write!(f, "[]"),
            Expr::Bytes(bytes) => write!(f, "{}", quoted(bytes)),
            Expr::Class(set) => write!(f, "{set}"),
            Expr::Special(s) => write!(f, "<{}>", self.special_text(*s)),
            Expr::Ref(r) => write!(f, "{}", self.name(*r)),
            Expr::Seq(parts) => self.list(f, parts, " ", Level::Seq, level > Level::Seq),
            Expr::Alt(parts) => self.list(f, parts, " | ", Level::Alt, level > Level::Alt),
            Expr::Repeat { body, min, max } => {
                self.expr(f, body, Level::Atom)?;
                match (min, max) {
                    (0, None) => write!(f, "*"),
                    (1, None) => write!(f, "+"),
                    (0, Some(1)) => write!(f, "?"),
                    (min, None) => write!(f, "{{{min},}}"),
                    (min, Some(max)) if min == max => write!(f, "{{{min}}}"),
                    (min, Some(max)) => write!(f, "{{{min},{max}}}"),
                }
            }
            Expr::Automaton(dfa) => write!(f, "automaton({} states, {} edges)", dfa.len(), dfa.edge_count()),
            Expr::Graph(graph) => self.graph(f, graph),
            Expr::Dispatch(dispatch) => self.dispatch(f, dispatch),
        }
    }

    fn list(
        &self,
        f: &mut fmt::Formatter<'_>,
        parts: &[Expr],
        separator: &str,
        inner: Level,
        parens: bool,
    ) -> fmt::Result {
        if parens {
            write!(f, "(")?;
        }
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                write!(f, "{separator}")?;
            }
            // A nested list of the same kind keeps its parentheses: the shape is part of the grammar.
            self.expr(f, part, if inner == Level::Alt { Level::Seq } else { Level::Atom })?;
        }
        if parens {
            write!(f, ")")?;
        }
        Ok(())
    }

    fn graph(&self, f: &mut fmt::Formatter<'_>, graph: &Graph) -> fmt::Result {
        write!(f, "graph({} -> {:?}", graph.start, graph.ends)?;
        for (from, expr, to) in &graph.edges {
            write!(f, "; {from} -")?;
            self.expr(f, expr, Level::Seq)?;
            write!(f, "-> {to}")?;
        }
        write!(f, ")")
    }

    fn dispatch(&self, f: &mut fmt::Formatter<'_>, dispatch: &Dispatch) -> fmt::Result {
        let trigger = |t: &Trigger| match t {
            Trigger::Text(text) => quoted(text),
            Trigger::Special(s) => format!("<{}>", self.special_text(*s)),
        };
        write!(f, "dispatch(")?;
        for (t, body) in &dispatch.tags {
            write!(f, "{} => {}; ", trigger(t), self.name(*body))?;
        }
        for stop in &dispatch.stops {
            write!(f, "stop {}; ", trigger(stop))?;
        }
        for exclude in &dispatch.excludes {
            write!(f, "exclude {}; ", quoted(exclude))?;
        }
        let after = match dispatch.after {
            AfterTag::Loop => "loop",
            AfterTag::End => "once",
        };
        let end = match dispatch.end {
            DispatchEnd::Anywhere => "ends anywhere",
            DispatchEnd::AfterOneTag => "ends after one tag",
            DispatchEnd::AtStop => "ends at a stop",
        };
        write!(f, "{after}; {end})")
    }
}

fn quoted(bytes: &[u8]) -> String {
    let inner: String = bytes
        .iter()
        .map(|&b| if matches!(b, b'[' | b']' | b'-') { char::from(b).to_string() } else { escape(b) })
        .collect();
    format!("\"{inner}\"")
}

#[cfg(test)]
mod tests {
    use crate::fsm::ByteSet;
    use crate::ir::{Expr, GrammarBuilder};

    #[test]
    fn prints_one_line_a_rule() {
        let mut b = GrammarBuilder::new();
        let list = b.declare("list");
        let item = b.rule("item", Expr::repeat(Expr::class(ByteSet::range(b'a', b'z')), 1, Some(3)));
        let tail = Expr::star(Expr::seq([Expr::text(", "), Expr::alt([Expr::Ref(item), Expr::Ref(list)])]));
        b.define(list, Expr::seq([Expr::text("[\""), Expr::Ref(item), tail, Expr::text("]")]));
        let grammar = b.finish(list).unwrap();
        assert_eq!(
            grammar.to_string(),
            "start list ::= \"[\\\"\" item (\", \" (item | list))* \"]\"\nitem ::= [a-z]{1,3}\n"
        );
    }
}
