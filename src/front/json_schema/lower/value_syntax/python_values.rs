//! Values that tagged parameters write as Python literals, beside JSON.
//!
//! Chat templates that print values write `True` for `true`, and `{'a': [None]}` for an object. The
//! rules of such objects and arrays are lowered after all others, with memos of their own, because
//! a memo holds rules of one syntax.

use super::super::super::options::Whitespace;
use super::super::super::read::doc::LocId;
use super::super::super::read::facets::Facets;
use super::super::SchemaLowering;
use super::{PythonDialect, ValueSyntax};
use crate::ids::RuleId;
use crate::ir::Expr;

/// Which values may be written as Python's `str` prints them, instead of as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PythonValues {
    /// None.
    #[default]
    None,
    /// `True`, `False` and `None` alone, where no string may stand.
    Words,
    /// The same, and arrays and objects: `{'a': [True, None]}`.
    All,
}

/// Declared rules and the values that they stand for.
pub(in super::super) type PythonRules<'a> = Vec<(RuleId, LocId, Facets<'a>)>;

/// Python's words for the JSON words among values.
pub(super) fn python_words(values: &[Expr]) -> Vec<Expr> {
    let words = ValueSyntax::Json.words().concat().into_iter();
    let words = words.zip(ValueSyntax::Python(PythonDialect::Declared).words().concat());
    let is_there = |(json, _): &(&[u8], &[u8])| values.contains(&Expr::bytes(json));
    words.filter(is_there).map(|(_, python)| Expr::bytes(python)).collect()
}

impl<'a> SchemaLowering<'a, '_> {
    /// The arrays and objects that satisfy facets, which allow nothing else, as Python literals.
    pub(super) fn python_containers(&mut self, containers: Facets<'a>) -> Expr {
        let rule = self.builder.declare("python value");
        self.containers.python.push((rule, self.location, containers));
        Expr::Ref(rule)
    }

    /// Lowers the values that may be Python literals. What cannot be enforced in that syntax cannot
    /// be written in it; as JSON, it can.
    pub(in super::super) fn lower_python_values(mut self) -> Self {
        let rules = std::mem::take(&mut self.containers.python);
        if rules.is_empty() {
            return self;
        }
        let all_rules = self.builder.len();
        let enabled = self.normalizer.reader.features;
        let relaxed = self.normalizer.reader.relaxed.len();
        let mut python = Self::new(self.builder, self.normalizer);
        python.syntax = ValueSyntax::Python(PythonDialect::Declared);
        python.normalizer.reader.options.whitespace = Whitespace::PythonLike;
        for (rule, loc, facets) in &rules {
            python.location = *loc;
            let mut values = Vec::new();
            python.syntax_values(facets, &mut values);
            python.builder.define(*rule, Expr::alt(values));
        }
        python.lower_containers(enabled);
        let reader = &mut python.normalizer.reader;
        let is_enforced = reader.errors.is_empty()
            && reader.relaxed.len() == relaxed
            && reader.features == enabled;
        if !is_enforced {
            reader.errors.clear();
            reader.relaxed.truncate(relaxed);
            reader.features = enabled;
            python.builder.truncate(all_rules);
            rules.iter().for_each(|(rule, ..)| python.builder.define(*rule, Expr::Never));
        }
        python
    }
}
