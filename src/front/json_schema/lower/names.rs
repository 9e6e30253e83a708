//! Names of members: their spellings, and the rules of names that are compared within an object.

use super::SchemaLowering;
use super::memo::CommonRule;
use super::spelling::plain_ascii;
use super::value_syntax::{CountedNames, ValueSyntax, bare_complement};
use crate::front::regex::Lengths;
use crate::fsm::Dfa;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Except, Expr};

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
                    false => match self.all_but(&excluded) {
                        Some(names) => self.quoted_names(&names, (0, None)),
                        None => Expr::Never,
                    },
                };
                let rule = self.rule("name".into(), names);
                self.names.complements.insert(excluded, rule);
                Expr::Ref(rule)
            }
            NameSet::Automaton(names) if !self.syntax.is_json() => {
                let names = self.non_json_names(&names);
                Expr::Ref(self.rule("name".into(), names))
            }
            NameSet::Automaton((dfa, lengths)) => {
                let name = self.quoted_names(&dfa, lengths);
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

    /// The names of an automaton over code points, with both quotes.
    fn quoted_names(&mut self, names: &Dfa, lengths: Lengths) -> Expr {
        let spelled = self.quoted_text(names, lengths);
        self.or_report_limit(spelled).unwrap_or(Expr::Never)
    }

    /// A rule with these names that are distinct in each object.
    pub(super) fn distinct_name_rule(&mut self, name: RuleId) -> RuleId {
        let rule = match name == self.string_rule() {
            true => self.common_rule(CommonRule::DistinctName, |_| Expr::Ref(name)),
            false => name,
        };
        self.builder.attributes(rule).unique_key = true;
        rule
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
