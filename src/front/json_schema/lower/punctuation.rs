//! Punctuation of objects and arrays: brackets, commas and colons with the white space around them.
//! Built once per schema.

use std::rc::Rc;

use super::super::options::Whitespace;
use super::SchemaLowering;
use super::memo::CommonRule;
use super::value_syntax::{NestedStyle, ValueSyntax};
use crate::ir::Expr;

/// The punctuation of a schema's objects and arrays.
pub(super) struct Punctuation {
    /// Between a member's name and its value.
    pub(super) colon: Expr,
    /// Of objects.
    pub(super) braces: Delimiters,
    /// Of arrays.
    pub(super) brackets: Delimiters,
}

/// Expressions around and between the members of an object or the elements of an array.
pub(super) struct Delimiters {
    /// The opening bracket, with the white space after it.
    pub(super) open: Expr,
    /// The closing bracket, with the white space before it.
    pub(super) close: Expr,
    /// The separator, with the white space around it.
    pub(super) comma: Expr,
    /// Both brackets of an empty object or array.
    pub(super) empty: Expr,
}

impl SchemaLowering<'_, '_> {
    /// The punctuation of the schema, built on first use.
    pub(super) fn punctuation(&mut self) -> Rc<Punctuation> {
        if let Some(punctuation) = &self.punctuation {
            return punctuation.clone();
        }
        let colon = if let ValueSyntax::Elements(_) | ValueSyntax::Nested(_) = self.syntax {
            Expr::Empty
        } else {
            self.separator(":")
        };
        let (braces, brackets) = (self.delimiters("{", "}"), self.delimiters("[", "]"));
        self.punctuation.insert(Rc::new(Punctuation { colon, braces, brackets })).clone()
    }

    /// The white space between JSON tokens.
    pub(super) fn gap(&mut self) -> Expr {
        match self.normalizer.reader.options.whitespace.gap() {
            Expr::Empty => Expr::Empty,
            gap => Expr::Ref(self.common_rule(CommonRule::Space, |_| gap)),
        }
    }

    /// A comma or colon with the white space around it.
    fn separator(&mut self, mark: &str) -> Expr {
        let gap = self.gap();
        self.normalizer.reader.options.whitespace.separator(mark, &gap)
    }

    /// The delimiters of an object or an array.
    fn delimiters(&mut self, open: &str, close: &str) -> Delimiters {
        let gap = self.gap();
        let inside = match self.normalizer.reader.options.whitespace {
            Whitespace::Pretty { .. } => Expr::Empty,
            _ => gap.clone(),
        };
        if let ValueSyntax::Nested(tags) = &self.syntax {
            // The mark after a value belongs to the value. Nothing between tags is neither an array
            // nor an object here: see `nested_empty`.
            let (item, close) = (tags.open(&tags.item), NestedStyle::close(&tags.item));
            let (open, between, close) = match open {
                "{" => (Expr::Empty, Expr::Empty, tags.mark()),
                _ => {
                    let between = Expr::seq([close.clone(), item.clone()]);
                    (item, between, Expr::seq([close, tags.mark()]))
                }
            };
            return Delimiters { open, close, comma: between, empty: Expr::Never };
        }
        if let ValueSyntax::Elements(elements) = &self.syntax {
            // The expression of a member begins with its opening tag; that of an array element does
            // not.
            let (open, first) = if open == "{" {
                (&elements.object, "")
            } else {
                (&elements.array, &elements.open[..])
            };
            let comma = Expr::seq([gap.clone(), Expr::text(first)]);
            return Delimiters {
                empty: Expr::seq([Expr::text(open), inside, Expr::text(&elements.close)]),
                open: Expr::seq([Expr::text(open), comma.clone()]),
                close: Expr::seq([gap, Expr::text(&elements.close)]),
                comma,
            };
        }
        Delimiters {
            empty: Expr::seq([Expr::text(open), inside, Expr::text(close)]),
            open: Expr::seq([Expr::text(open), gap.clone()]),
            close: Expr::seq([gap, Expr::text(close)]),
            comma: self.separator(","),
        }
    }
}
