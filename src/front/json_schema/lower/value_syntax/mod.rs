//! Value syntaxes other than JSON: Python literals, strings with custom delimiters, elements, tags.
//! And parameters, whose outermost members are not written as those of an object.
//!
//! A syntax changes strings, the words `null`, `true` and `false`, and member names. Except in
//! elements and tags, brackets, commas, colons and numbers are those of JSON.
//!
//! This file chooses the syntax. `python_strings`, `bare_names`, `elements` and `nested` write what
//! is special in one; `parameters` has the members of parameters, whose values may be strings
//! without quotes (`raw_strings`, `lookalikes`) and Python literals (`python_values`).

mod bare_names;
mod elements;
mod lookalikes;
mod nested;
mod parameters;
mod python_strings;
mod python_values;
mod raw_strings;
mod style;

pub(super) use bare_names::bare_complement;
pub use elements::ElementStyle;
pub use nested::NestedStyle;
use python_strings::python_spell;
pub(super) use python_values::PythonRules;
pub use python_values::PythonValues;
pub use raw_strings::{AmbiguousText, RawQuotes, RawStrings};
pub use style::{MemberPart, NameWriter, ParameterStyle, ValueStyle};

use std::fmt::Display;

use super::super::read::facets::StringFacets;
use super::SchemaLowering;
use super::spelling::Spelling;
use crate::front::regex::{CountedDfa, Lengths, SCALARS, spell_utf8};
use crate::front::text_search::contains;
use crate::fsm::Dfa;
use crate::ir::{Expr, Trigger};

/// The words of an automaton over code points that have a length within the bounds.
pub(super) type CountedNames = (Dfa, Lengths);

/// How the texts of an automaton over code points are spelled.
#[derive(Clone, Copy)]
pub(super) enum TextSpelling {
    /// In a JSON string.
    Json(Spelling),
    /// In UTF-8, without escapes.
    Utf8,
    /// In a Python string with this quote.
    Python(u8),
}

impl TextSpelling {
    /// One code point of the ranges, which are sorted and disjoint.
    pub(super) fn spell(self, ranges: &[(u32, u32)]) -> Expr {
        match self {
            TextSpelling::Json(spelling) => spelling.spell(ranges),
            TextSpelling::Utf8 => spell_utf8(ranges),
            TextSpelling::Python(quote) => python_spell(ranges, quote),
        }
    }
}

/// Syntax of the values of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ValueSyntax {
    /// JSON.
    #[default]
    Json,
    /// Python literals: `'it'` or `"it"`, `True`, `False`, `None`.
    Python(PythonDialect),
    /// Strings without escapes between two delimiters, each one of the given triggers; member names
    /// without quotes.
    Delimited(Vec<Trigger>),
    /// Each value in an element ([`ElementStyle`]).
    Elements(Box<ElementStyle>),
    /// Each value between tags that have its name ([`NestedStyle`]).
    Nested(Box<NestedStyle>),
}

/// What is allowed in Python literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PythonDialect {
    /// Literals.
    Literals,
    /// The same, but `true`, `false` and `null` may stand for `True`, `False` and `None`.
    JsonWords,
    /// Literals without undeclared names, unless names may repeat: these are compared in JSON only.
    Declared,
}

impl ValueSyntax {
    /// The words for `null`, `true`, `false`.
    pub(super) fn words(&self) -> [&'static [&'static [u8]]; 3] {
        match self {
            ValueSyntax::Python(PythonDialect::JsonWords) => {
                [&[b"None", b"null"], &[b"True", b"true"], &[b"False", b"false"]]
            }
            ValueSyntax::Python(_) => [&[b"None"], &[b"True"], &[b"False"]],
            ValueSyntax::Json
            | ValueSyntax::Delimited(_)
            | ValueSyntax::Elements(_)
            | ValueSyntax::Nested(_) => [&[b"null"], &[b"true"], &[b"false"]],
        }
    }

    /// Whether the syntax is that of JSON.
    pub(crate) fn is_json(&self) -> bool {
        *self == ValueSyntax::Json
    }

    /// Whether values stand between tags.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self, ValueSyntax::Nested(_))
    }

    /// Whether the syntax is that of Python, and these texts have no character that it escapes.
    pub(super) fn is_plain_python(&self, texts: &[&str]) -> bool {
        matches!(self, ValueSyntax::Python(_))
            && texts.iter().all(|text| python_strings::is_plain(text))
    }

    /// Whether member names are written without quotes.
    pub(super) fn has_bare_names(&self) -> bool {
        !matches!(self, ValueSyntax::Json | ValueSyntax::Python(_))
    }

    /// One string; [`Expr::Never`] if it cannot be written.
    pub(super) fn constant(&self, text: &str, spelling: Spelling) -> Expr {
        match self {
            ValueSyntax::Json => spelling.literal(text),
            ValueSyntax::Python(_) => python_strings::constant(text),
            ValueSyntax::Delimited(marks)
                if marks.iter().filter_map(Trigger::text).any(|mark| contains(text, mark)) =>
            {
                Expr::Never
            }
            ValueSyntax::Delimited(marks) => {
                Expr::seq([any_trigger(marks), Expr::text(text), any_trigger(marks)])
            }
            ValueSyntax::Elements(elements) => elements.constant(text),
            // See `nested_constant`.
            ValueSyntax::Nested(_) => Expr::Never,
        }
    }

    /// Whether the name of a member can be written. White space may stand around a bare name, so it
    /// cannot begin or end the name.
    pub fn can_write_name(&self, name: &str) -> bool {
        let reserved = [':', ',', '{', '}', '[', ']', '<', '"'];
        let white_space = [' ', '\t', '\n', '\r'];
        match self {
            ValueSyntax::Delimited(_) => {
                !name.is_empty()
                    && !name.contains(reserved)
                    && !name.starts_with(white_space)
                    && !name.ends_with(white_space)
            }
            ValueSyntax::Nested(_) => NestedStyle::can_write_name(name),
            ValueSyntax::Json | ValueSyntax::Python(_) | ValueSyntax::Elements(_) => true,
        }
    }

    /// What follows the value of a member: of this name, or of one of the undeclared names. The
    /// latter need not be the name before the value.
    pub(super) fn after_member(&self, name: Option<&str>) -> Expr {
        match (self, name) {
            (ValueSyntax::Nested(_), Some(name)) => NestedStyle::close(name),
            (ValueSyntax::Nested(_), None) => {
                Expr::seq([Expr::text("</"), bare_complement(Vec::new()), Expr::text(">")])
            }
            _ => Expr::Empty,
        }
    }

    /// The name of one member; [`Expr::Never`] if it cannot be written.
    pub(super) fn name(&self, name: &str, spelling: Spelling) -> Expr {
        match self {
            _ if !self.can_write_name(name) => Expr::Never,
            ValueSyntax::Delimited(_) => Expr::text(name),
            ValueSyntax::Elements(elements) => elements.open_with_name(name),
            ValueSyntax::Nested(tags) => tags.open(name),
            ValueSyntax::Json | ValueSyntax::Python(_) => self.constant(name, spelling),
        }
    }
}

/// An expression for any of the triggers.
pub(super) fn any_trigger(marks: &[Trigger]) -> Expr {
    Expr::alt(marks.iter().map(Trigger::expr))
}

impl<'a> SchemaLowering<'a, '_> {
    /// Lowers a string with the given facets, in a syntax other than JSON.
    pub(super) fn non_json_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let counted = facets.patterns.is_empty() && facets.excluded.is_empty();
        match self.syntax.clone() {
            ValueSyntax::Python(_) if counted => python_strings::of_length(facets.min, facets.max),
            ValueSyntax::Json | ValueSyntax::Python(_) => {
                let parts = self.normalizer.text_parts(facets).unwrap_or_default();
                self.python_text(&parts)
            }
            ValueSyntax::Delimited(marks) => {
                let forbidden: Vec<&[u8]> = marks.iter().filter_map(Trigger::text).collect();
                let texts = self.raw_text(facets, &forbidden);
                Expr::seq([any_trigger(&marks), texts, any_trigger(&marks)])
            }
            ValueSyntax::Elements(elements) => self.element_text(&elements, facets),
            ValueSyntax::Nested(tags) => self.nested_text(&tags, facets),
        }
    }

    /// Lowers the member names of an automaton, in a syntax other than JSON.
    pub(super) fn non_json_names(&mut self, names: &CountedNames) -> Expr {
        match self.syntax.clone() {
            ValueSyntax::Json | ValueSyntax::Python(_) => {
                let (dfa, lengths) = names.clone();
                self.python_text(&[(dfa.into(), lengths)])
            }
            ValueSyntax::Delimited(_) => self.bare_names(names),
            ValueSyntax::Elements(elements) => self.element_names(&elements, names),
            ValueSyntax::Nested(tags) => self.nested_names(&tags, names),
        }
    }

    /// The automaton of all texts except the given ones.
    pub(super) fn all_but(&mut self, excluded: &[&str]) -> Option<Dfa> {
        match Dfa::texts(excluded).complement(&SCALARS, self.max_states()) {
            Ok(dfa) => Some(dfa),
            Err(error) => {
                self.too_large(&error);
                None
            }
        }
    }

    /// The texts of automata, each with bounds on the length.
    fn spell_parts(&mut self, parts: &[CountedDfa], spelling: TextSpelling) -> Expr {
        let mut spelled = |(dfa, lengths): &CountedDfa| {
            let texts = self.spell_of_length(dfa, *lengths, spelling);
            texts.unwrap_or_else(|error| self.too_large(&error))
        };
        Expr::alt(parts.iter().map(&mut spelled).collect::<Vec<_>>())
    }

    /// Reports that an automaton is too large.
    pub(super) fn too_large(&mut self, error: &dyn Display) -> Expr {
        let what = format!("text in another syntax than JSON, or constants: {error}");
        self.report_limit(&["pattern", "format", "enum", "const", "maxLength"], what);
        Expr::Never
    }
}
