//! Names of members: their spellings, and the rules of names that are compared within an object.

use super::super::options::Escapes;
use super::SchemaLowering;
use super::spelling::plain_ascii;
use super::syntax::{CountedNames, ValueSyntax, bare_complement};
use crate::front::regex::SCALARS;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Except, Expr, Graph};

/// Memo of rules of names.
#[derive(Default)]
pub(super) struct NameMemo<'a> {
    /// All names but these.
    complements: HashMap<Vec<&'a str>, RuleId>,
    /// A name rule, marked as an element that is compared within its object.
    distinct_elements: HashMap<RuleId, RuleId>,
}

/// A set of names that have the same value schema.
pub(super) enum NameSet<'a> {
    /// All names but these.
    AllBut(Vec<&'a str>),
    /// The names of an automaton over code points, within bounds on the length.
    Automaton(CountedNames),
}

impl<'a> SchemaLowering<'a, '_> {
    /// A name with its quotes. Up to the point where it differs from all excluded names, it is
    /// spelled with the escapes that JSON requires. So no spelling of an excluded name is accepted.
    pub(super) fn name_expr(&mut self, names: NameSet<'a>) -> Expr {
        match names {
            NameSet::AllBut(excluded) if excluded.is_empty() && !self.syntax.has_bare_names() => {
                Expr::Ref(self.string_rule())
            }
            NameSet::AllBut(excluded)
                if matches!(self.syntax, ValueSyntax::Delimited(_) | ValueSyntax::Nested(_)) =>
            {
                let names = match &self.syntax {
                    ValueSyntax::Nested(tags) => tags.open_all_but(excluded),
                    _ => bare_complement(excluded),
                };
                Expr::Ref(self.rule("name".into(), names))
            }
            NameSet::AllBut(excluded)
                if !self.syntax.is_json() && !self.syntax.is_plain_python(&excluded) =>
            {
                match self.all_but(&excluded) {
                    Some(dfa) => self.name_expr(NameSet::Automaton((dfa, (0, None)))),
                    None => Expr::Never,
                }
            }
            NameSet::AllBut(mut excluded) => {
                excluded.sort_unstable();
                excluded.dedup();
                if let Some(&rule) = self.names.complements.get(&excluded) {
                    return Expr::Ref(rule);
                }
                let names = match excluded.iter().all(|name| self.spelling().is_plain(name)) {
                    _ if !self.syntax.is_json() => self.python_complement(&excluded),
                    true => {
                        let graph = Expr::Except(Box::new(self.plain_name_complement(&excluded)));
                        Expr::seq([Expr::text("\""), graph])
                    }
                    false => Expr::seq([Expr::text("\""), self.name_complement_trie(&excluded)]),
                };
                let rule = self.rule("name".into(), names);
                self.names.complements.insert(excluded, rule);
                Expr::Ref(rule)
            }
            NameSet::Automaton(names) if !self.syntax.is_json() => {
                let names = self.foreign_names(&names);
                Expr::Ref(self.rule("name".into(), names))
            }
            NameSet::Automaton((dfa, lengths)) => {
                let (loc, spelt) = (self.location, self.quoted_text(&dfa, lengths));
                let name = self.or_report_limit(loc, spelt).unwrap_or(Expr::Never);
                Expr::Ref(self.rule("name".into(), name))
            }
        }
    }

    /// All strings but these (sorted), with the closing quote. These are spelled without escapes.
    fn plain_name_complement(&mut self, excluded: &[&str]) -> Except {
        Except {
            words: excluded.iter().map(|name| name.as_bytes().into()).collect(),
            leave: plain_ascii(),
            tail: self.tail_rule(),
            other: self.special_tail_rule(),
            close: b"\""[..].into(),
        }
    }

    /// As [`SchemaLowering::plain_name_complement`], for names with escapes: a trie of the names,
    /// which free text leaves at any node.
    fn name_complement_trie(&mut self, excluded: &[&str]) -> Expr {
        let tail = Expr::Ref(self.tail_rule());
        let mut graph = Graph::default();
        let (start, end, free) = (graph.node(), graph.node(), graph.node());
        graph.start = start;
        graph.ends.push(end);
        graph.edge(free, tail, end);
        // (node, names below it, bytes of them already read)
        let mut stack = vec![(start, excluded, 0usize)];
        while let Some((node, texts, read)) = stack.pop() {
            let (ended, longer) = match texts.split_first() {
                Some((first, rest)) if first.len() == read => (true, rest),
                _ => (false, texts),
            };
            if !ended {
                graph.edge(node, Expr::text("\""), end);
            }
            let mut children: Vec<u32> = Vec::new();
            let mut rest = longer;
            while let Some(first) = rest.first() {
                let Some(c) = first[read..].chars().next() else { break };
                let siblings = rest.partition_point(|text| text[read..].starts_with(c));
                let child = graph.node();
                for symbol in self
                    .spell_shared(&[(u32::from(c), u32::from(c))])
                    .into_iter()
                    .filter(is_possible)
                {
                    graph.edge(node, symbol, child);
                }
                stack.push((child, &rest[..siblings], read + c.len_utf8()));
                children.push(u32::from(c));
                rest = &rest[siblings..];
            }
            self.leave_trie(&mut graph, (node, free, end), &children);
        }
        Expr::Graph(Box::new(graph))
    }

    /// Adds the edges from a trie node to free text, for every code point that no child has.
    fn leave_trie(
        &mut self,
        graph: &mut Graph,
        (node, free, end): (u32, u32, u32),
        children: &[u32],
    ) {
        let plain = |c: u32| u8::try_from(c).is_ok_and(|c| plain_ascii().contains(c));
        if self.spelling().escapes == Escapes::Required && children.iter().all(|&c| plain(c)) {
            // The common case: code points that are not plain ASCII share one rule.
            let mut ascii = plain_ascii();
            for &c in children {
                ascii.remove(c as u8);
            }
            graph.edge(node, Expr::class(ascii), free);
            graph.edge(node, Expr::Ref(self.special_tail_rule()), end);
            return;
        }
        let mut ranges = Vec::new();
        for (lo, hi) in SCALARS {
            let mut from = lo;
            let mut inside: Vec<u32> =
                children.iter().copied().filter(|c| (lo..=hi).contains(c)).collect();
            inside.sort_unstable();
            for c in inside {
                if c > from {
                    ranges.push((from, c - 1));
                }
                from = c + 1;
            }
            if from <= hi {
                ranges.push((from, hi));
            }
        }
        for symbol in self.spell_shared(&ranges).into_iter().filter(is_possible) {
            graph.edge(node, symbol, free);
        }
    }

    /// A rule with these names that are distinct in each object.
    pub(super) fn distinct_name_rule(&mut self, name: RuleId) -> RuleId {
        if name != self.string_rule() {
            self.builder.attributes(name).name = true;
            return name;
        }
        match self.common_rules.name {
            Some(rule) => rule,
            None => {
                let rule = self.rule("name".into(), Expr::Ref(name));
                self.builder.attributes(rule).name = true;
                *self.common_rules.name.insert(rule)
            }
        }
    }

    /// As [`SchemaLowering::distinct_name_rule`], for finitely many names under some prefix: the
    /// object is a scope, so that it ends when no name is left.
    pub(super) fn distinct_element_rule(&mut self, name: RuleId) -> RuleId {
        if let Some(&rule) = self.names.distinct_elements.get(&name) {
            return rule;
        }
        let rule = self.rule("name".into(), Expr::Ref(name));
        self.builder.attributes(rule).element = true;
        self.names.distinct_elements.insert(name, rule);
        rule
    }
}

/// Whether a symbol has any spelling.
fn is_possible(symbol: &Expr) -> bool {
    *symbol != Expr::Never
}
