//! The rules of unconstrained values: of all strings, all numbers, all arrays and so on.

use super::super::read::facets::{JsonTypes, NumberFacets, StringFacets};
use super::SchemaLowering;
use super::constants::word_set;
use super::names::NameSet;
use super::punctuation::Delimiters;
use super::syntax::{PythonDialect, ValueSyntax};
use crate::ids::RuleId;
use crate::ir::{Expr, Literal};

/// Rules of unconstrained values, made on first use.
#[derive(Default)]
pub(super) struct CommonRules {
    /// White space between tokens.
    pub(super) space: Option<RuleId>,
    pub(super) string: Option<RuleId>,
    /// The rest of a string.
    pub(super) tail: Option<RuleId>,
    /// A non-ASCII character and the rest of a string.
    pub(super) special_tail: Option<RuleId>,
    /// For each quote of Python, the same two rules.
    pub(super) python_tails: Option<[(RuleId, RuleId); 2]>,
    pub(super) number: Option<RuleId>,
    pub(super) integer: Option<RuleId>,
    pub(super) json: Option<RuleId>,
    pub(super) object: Option<RuleId>,
    /// Names of members that are distinct in each object.
    pub(super) name: Option<RuleId>,
    pub(super) array: Option<RuleId>,
}

impl SchemaLowering<'_, '_> {
    /// The rule of all strings.
    pub(super) fn string_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.string {
            return rule;
        }
        let body = if self.syntax.is_json() {
            Expr::seq([Expr::text("\""), Expr::Ref(self.tail_rule())])
        } else {
            self.non_json_string(&StringFacets::default())
        };
        let rule = self.rule("string".into(), body);
        *self.common_rules.string.insert(rule)
    }

    /// The rule of the rest of an unconstrained string, closing quote included.
    pub(super) fn tail_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.tail {
            return rule;
        }
        let rule = self.rule("string-tail".into(), self.spelling().free_tail());
        *self.common_rules.tail.insert(rule)
    }

    /// The rule of a character that is not plain ASCII (escaped only where JSON requires it), and
    /// the rest of an unconstrained string.
    pub(super) fn special_tail_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.special_tail {
            return rule;
        }
        let rule = self.rule("special-tail".into(), self.spelling().special_tail());
        *self.common_rules.special_tail.insert(rule)
    }

    /// The rule of all numbers.
    pub(super) fn number_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.number {
            return rule;
        }
        let body = self.bounded(&NumberFacets::default(), JsonTypes::NUMBER, self.location);
        let rule = self.rule("number".into(), body);
        *self.common_rules.number.insert(rule)
    }

    /// The rule of all integers.
    pub(super) fn integer_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.integer {
            return rule;
        }
        let body = self.any_integer();
        let rule = self.rule("integer".into(), body);
        *self.common_rules.integer.insert(rule)
    }

    /// The rule of all JSON values.
    pub(super) fn json_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.json {
            return rule;
        }
        let rule = self.builder.declare("json");
        self.common_rules.json = Some(rule);
        let outer = std::mem::replace(&mut self.expected, JsonTypes::ALL);
        let words = self.syntax.words().concat();
        let words = word_set(words.into_iter().map(Literal::from).collect());
        let rules = [self.string_rule(), self.any_array_rule(), self.any_object_rule()];
        let number = Expr::Ref(self.number_rule());
        let scalars = self.scalar(Expr::alt([number, words]));
        self.expected = outer;
        self.builder.define(rule, Expr::alt(rules.into_iter().map(Expr::Ref).chain([scalars])));
        rule
    }

    /// The rule of all arrays.
    pub(super) fn any_array_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.array {
            return rule;
        }
        let rule = self.builder.declare("json-array");
        self.common_rules.array = Some(rule);
        let item = Expr::Ref(self.json_rule());
        let body = list_in(&self.punctuation().brackets, item);
        self.builder.define(rule, body);
        rule
    }

    /// The rule of all objects.
    pub(super) fn any_object_rule(&mut self) -> RuleId {
        if let Some(rule) = self.common_rules.object {
            return rule;
        }
        let rule = self.builder.declare("json-object");
        self.common_rules.object = Some(rule);
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
        let body = list_in(&punctuation.braces, item);
        self.builder.define(rule, body);
        rule
    }
}

/// A list of any number of items, with its delimiters.
fn list_in(Delimiters { open, close, comma, empty }: &Delimiters, item: Expr) -> Expr {
    let more = Expr::star(Expr::seq([comma.clone(), item.clone()]));
    Expr::alt([empty.clone(), Expr::seq([open.clone(), item, more, close.clone()])])
}
