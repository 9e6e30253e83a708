//! Values as XML-like elements: each value is enclosed in tags that state its type, and the values
//! of objects and arrays are nested elements.

use super::super::super::error::SchemaErrorReason as Reason;
use super::super::super::read::doc::LocId;
use super::super::super::read::facets::{JsonTypes, StringFacets};
use super::super::SchemaLowering;
use super::super::punctuation::Delimiters;
use super::{CountedNames, ElementStyle, ValueSyntax};
use crate::ir::{Dispatch, Expr, Trigger};

impl<'a> SchemaLowering<'a, '_> {
    /// Lowers the outermost object, without an element around its members.
    pub(in super::super) fn outermost_elements(&mut self) -> Expr {
        let conj = self.normalizer.conjunction(vec![LocId::ROOT]);
        let alternatives = self.normalizer.alternatives(&conj);
        let gap = self.gap();
        let delimiters = Delimiters {
            open: gap.clone(),
            close: gap.clone(),
            comma: gap.clone(),
            empty: Expr::seq([gap.clone(), gap]),
        };
        let mut parts = Vec::new();
        for facets in alternatives.iter().filter(|facets| facets.types.meets(JsonTypes::OBJECT)) {
            if facets.values.is_some() {
                let what = "listed objects as elements";
                self.normalizer.reader.report(self.location, "", Reason::Unsupported(what.into()));
                continue;
            }
            let facets = self.with_undeclared_option(facets);
            self.normalizer.reader.report_unenforced(&facets, JsonTypes::OBJECT);
            parts.push(self.framed_object(&facets.object, Some(&delimiters)));
        }
        Expr::Ref(self.rule("elements".into(), Expr::alt(parts)))
    }

    /// A number, `true`, `false` or `null`, enclosed in an element if the syntax has elements.
    pub(in super::super) fn scalar(&mut self, value: Expr) -> Expr {
        if value == Expr::Never {
            return value;
        }
        let elements = match &self.syntax {
            ValueSyntax::Elements(elements) => elements,
            ValueSyntax::Nested(tags) => return Expr::seq([value, tags.mark()]),
            _ => return value,
        };
        let (open, close) = (Expr::text(&elements.scalar), Expr::text(&elements.close));
        let gap = self.gap();
        Expr::seq([open, gap.clone(), value, gap, close])
    }

    /// A string with the given facets as an element.
    pub(super) fn element_text(
        &mut self,
        elements: &ElementStyle,
        facets: &StringFacets<'a>,
    ) -> Expr {
        let close = elements.close.as_bytes();
        if facets.allows_all() {
            let free = Dispatch::until(vec![Trigger::new(close, None)]);
            let free = Expr::Ref(self.rule("text".into(), free.into()));
            return Expr::seq([Expr::text(&elements.text), free]);
        }
        let texts = self.raw_text(facets, &[close]);
        Expr::seq([Expr::text(&elements.text), texts, Expr::bytes(close)])
    }

    /// The beginnings of elements whose names the automaton accepts and that need no escapes.
    pub(super) fn element_names(&mut self, elements: &ElementStyle, names: &CountedNames) -> Expr {
        let names = self.bare_names(names);
        let [before, after] = &elements.name;
        Expr::seq([Expr::text(&elements.open), Expr::text(before), names, Expr::text(after)])
    }
}
