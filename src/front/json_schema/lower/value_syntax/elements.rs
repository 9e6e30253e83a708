//! Values as XML-like elements: each value is enclosed in tags that state its type, and the values
//! of objects and arrays are nested elements.

use super::super::super::error::SchemaErrorReason as Reason;
use super::super::super::read::doc::LocId;
use super::super::super::read::facets::{JsonTypes, StringFacets};
use super::super::SchemaLowering;
use super::super::punctuation::Delimiters;
use super::{CountedNames, ValueSyntax};
use crate::front::text_search::contains;
use crate::ir::{Dispatch, Expr, Trigger};

/// The texts that elements consist of. For `<value name="n" type="raw">text</value>`, `open` is
/// `<value`, `name` is ` name="` and `"`, `text` is ` type="raw">`, and `close` is `</value>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementStyle {
    /// Beginning of every element.
    pub open: String,
    /// Texts before and after the name of an object member. Array elements have no name.
    pub name: [String; 2],
    /// Before a string, which is written without quotes and escapes.
    pub text: String,
    /// Before a number, `true`, `false` or `null`.
    pub scalar: String,
    /// Before an object's members.
    pub object: String,
    /// Before an array's elements.
    pub array: String,
    /// End of every element. No string contains it.
    pub close: String,
}

impl ElementStyle {
    /// The beginning of an element with the name of a member, escaped as in XML.
    pub(super) fn open_with_name(&self, name: &str) -> Expr {
        Expr::text(&format!("{}{}{}{}", self.open, self.name[0], escape_xml(name), self.name[1]))
    }

    /// One string as an element; [`Expr::Never`] if it contains the closing tag.
    pub(super) fn constant(&self, text: &str) -> Expr {
        if contains(text, self.close.as_bytes()) {
            return Expr::Never;
        }
        Expr::text(&format!("{}{text}{}", self.text, self.close))
    }
}

/// Escapes a text for an XML attribute.
fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

impl<'a> SchemaLowering<'a, '_> {
    /// Lowers the outermost object, without an element around its members.
    pub(in super::super) fn outermost_elements(&mut self) -> Expr {
        let alternatives = self.normalizer.alternatives_of([LocId::ROOT]);
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
