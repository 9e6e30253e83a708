//! Values as elements: each value stands in a tag of its own that says what it is; members and elements are tags inside.

use super::doc::LocId;
use super::facets::{StringFacets, Types};
use super::lower::Lowering;
use super::parameters::with_needs;
use super::punctuation::Frame;
use super::syntax::{Syntax, contains};
use super::{Registry, SchemaErrorReason as Reason, SchemaErrors, SchemaOptions};
use crate::front::regex::{spell_dfa, spell_utf8};
use crate::fsm::Dfa;
use crate::ids::RuleId;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, GrammarBuilder, Trigger};
use crate::limits::Limits;
use crate::spec::json::Json;

/// How elements are written: `<value name="n" type="raw">text</value>` has `open` `<value`, `name` ` name="` and `"`, `text`
/// ` type="raw">`, `close` `</value>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    /// How every element begins.
    pub open: String,
    /// What stands before and behind a member's name. Elements of arrays have none.
    pub name: [String; 2],
    /// Before a string, which stands as it is.
    pub text: String,
    /// Before a number, `true`, `false` or `null`.
    pub scalar: String,
    /// Before an object's members.
    pub object: String,
    /// Before an array's elements.
    pub array: String,
    /// How every element ends. No string contains it.
    pub close: String,
}

impl Elements {
    /// A member's name, escaped as in XML.
    pub(super) fn named(&self, name: &str) -> Expr {
        Expr::text(&format!("{}{}{}{}", self.open, self.name[0], xml(name), self.name[1]))
    }

    /// One string; none if it cannot be written.
    pub(super) fn constant(&self, text: &str) -> Expr {
        if contains(text, self.close.as_bytes()) {
            return Expr::Never;
        }
        Expr::text(&format!("{}{text}{}", self.text, self.close))
    }
}

/// A text in an attribute of XML.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As [`lower_into`](super::lower_into), for an object whose members stand as elements, without an element around them. Values of
/// other types than objects are left out.
pub fn lower_elements(
    builder: &mut GrammarBuilder,
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
    elements: &Elements,
) -> Result<RuleId, SchemaErrors> {
    let registry = Registry::default();
    with_needs(options, |options, needs| {
        let lowering = Lowering::new(builder, (schema, &registry), options, limits, needs);
        let lowering = lowering.with_syntax(Syntax::Elements(Box::new(elements.clone())));
        let (rule, _) = lowering.run_with(Lowering::outermost_elements)?;
        Ok(rule)
    })
}

impl<'a> Lowering<'a, '_> {
    fn outermost_elements(&mut self) -> Expr {
        let conj = self.norm.conj(vec![LocId::ROOT]);
        let alternatives = self.norm.alternatives(&conj);
        let gap = self.gap();
        let frame = Frame {
            open: gap.clone(),
            close: gap.clone(),
            comma: gap.clone(),
            empty: Expr::seq([gap.clone(), gap]),
        };
        let mut parts = Vec::new();
        for facets in alternatives.iter().filter(|facets| facets.types.meets(Types::OBJECT)) {
            if facets.values.is_some() {
                let what = "listed objects as elements";
                self.norm.report(self.at, "", Reason::Unsupported(what.into()));
                continue;
            }
            let facets = self.closed(facets);
            self.norm.report_unenforced(&facets, Types::OBJECT);
            parts.push(self.framed_object(&facets.object, Some(&frame)));
        }
        Expr::Ref(self.rule("elements".into(), Expr::alt(parts)))
    }

    /// A number or word, in its element where values are elements.
    pub(super) fn scalar(&mut self, value: Expr) -> Expr {
        let Syntax::Elements(elements) = &self.syntax else { return value };
        if value == Expr::Never {
            return value;
        }
        let (open, close) = (Expr::text(&elements.scalar), Expr::text(&elements.close));
        let gap = self.gap();
        Expr::seq([open, gap.clone(), value, gap, close])
    }

    /// A string with these facets as an element.
    pub(super) fn element_text(&mut self, elements: &Elements, facets: &StringFacets<'a>) -> Expr {
        let close = elements.close.as_bytes();
        if facets.is_free() {
            let free = Dispatch {
                tags: Vec::new(),
                stops: vec![Trigger::Text(close.to_vec())],
                excludes: Vec::new(),
                after: AfterTag::End,
                end: DispatchEnd::AtStop,
            };
            let free = Expr::Ref(self.rule("text".into(), Expr::Dispatch(Box::new(free))));
            return Expr::seq([Expr::text(&elements.text), free]);
        }
        match self.raw_text(facets, &[close]) {
            Some(dfa) => Expr::seq([
                Expr::text(&elements.text),
                spell_dfa(&dfa, &mut spell_utf8),
                Expr::bytes(close),
            ]),
            None => Expr::Never,
        }
    }

    /// Names of the automaton that can stand bare, each with the beginning of its element.
    pub(super) fn element_names(&mut self, elements: &Elements, dfa: &Dfa) -> Expr {
        let names = self.bare_names(dfa);
        let [before, behind] = &elements.name;
        Expr::seq([Expr::text(&elements.open), Expr::text(before), names, Expr::text(behind)])
    }
}
