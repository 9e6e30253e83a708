//! The rules of unconstrained values: of all strings, all numbers, all arrays and so on.

use super::super::read::facets::{JsonTypes, NumberFacets, StringFacets};
use super::SchemaLowering;
use super::constants::word_set;
use super::memo::CommonRule;
use super::names::NameSet;
use super::punctuation::Delimiters;
use super::value_syntax::{PythonDialect, ValueSyntax};
use crate::ids::RuleId;
use crate::ir::{Expr, Literal};

impl SchemaLowering<'_, '_> {
    /// A common rule. It is made on first use; its body may refer to it.
    pub(super) fn common_rule(
        &mut self,
        kind: CommonRule,
        body: impl FnOnce(&mut Self) -> Expr,
    ) -> RuleId {
        if let Some(&rule) = self.common_rules.get(&kind) {
            return rule;
        }
        let rule = self.builder.declare(kind.name());
        self.common_rules.insert(kind, rule);
        let body = body(self);
        self.builder.define(rule, body);
        rule
    }

    /// The rule of all strings.
    pub(super) fn string_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::String, |this| match this.syntax.is_json() {
            true => Expr::seq([Expr::text("\""), Expr::Ref(this.tail_rule())]),
            false => this.non_json_string(&StringFacets::default()),
        })
    }

    /// The rule of the rest of an unconstrained string, closing quote included.
    pub(super) fn tail_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::Tail, |this| this.spelling().free_tail())
    }

    /// The rule of a character that is not plain ASCII (escaped only where JSON requires it), and
    /// the rest of an unconstrained string.
    pub(super) fn special_tail_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::SpecialTail, |this| this.spelling().special_tail())
    }

    /// The rule of all numbers.
    pub(super) fn number_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::Number, |this| {
            this.bounded(&NumberFacets::default(), JsonTypes::NUMBER)
        })
    }

    /// The rule of all integers.
    pub(super) fn integer_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::Integer, |this| {
            this.bounded(&NumberFacets::default(), JsonTypes::INTEGER)
        })
    }

    /// The rule of all JSON values.
    pub(super) fn json_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::Json, Self::json_body)
    }

    fn json_body(&mut self) -> Expr {
        let outer = std::mem::replace(&mut self.expected, JsonTypes::ALL);
        let words = self.syntax.words().concat();
        let words = word_set(words.into_iter().map(Literal::from).collect());
        let rules = [self.string_rule(), self.any_array_rule(), self.any_object_rule()];
        let number = Expr::Ref(self.number_rule());
        let scalars = self.scalar(Expr::alt([number, words]));
        self.expected = outer;
        Expr::alt(rules.into_iter().map(Expr::Ref).chain([scalars]))
    }

    /// The rule of all arrays.
    pub(super) fn any_array_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::Array, |this| {
            let item = Expr::Ref(this.json_rule());
            list_in(&this.punctuation().brackets, item)
        })
    }

    /// The rule of all objects.
    pub(super) fn any_object_rule(&mut self) -> RuleId {
        self.common_rule(CommonRule::Object, Self::object_body)
    }

    fn object_body(&mut self) -> Expr {
        let punctuation = self.punctuation();
        let name = match self.syntax {
            ValueSyntax::Json if self.names_are_distinct() => {
                let string = self.string_rule();
                Expr::Ref(self.distinct_name_rule(string))
            }
            ValueSyntax::Python(PythonDialect::Declared) if self.names_are_distinct() => {
                Expr::Never
            }
            ValueSyntax::Json | ValueSyntax::Python(_) => Expr::Ref(self.string_rule()),
            _ => self.name_expr(NameSet::AllBut(Vec::new())),
        };
        let value = Expr::Ref(self.json_rule());
        let after = self.syntax.after_member(None);
        let item = Expr::seq([name, punctuation.colon.clone(), value, after]);
        list_in(&punctuation.braces, item)
    }
}

/// A list of any number of items, with its delimiters.
fn list_in(Delimiters { open, close, comma, empty }: &Delimiters, item: Expr) -> Expr {
    let more = Expr::star(Expr::seq([comma.clone(), item.clone()]));
    Expr::alt([empty.clone(), Expr::seq([open.clone(), item, more, close.clone()])])
}
