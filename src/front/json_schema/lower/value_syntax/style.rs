//! How the value of a schema is written: in a syntax, or as parameters.

use super::super::super::read::facets::JsonTypes;
use std::sync::Arc;

use super::ValueSyntax;
use super::raw_strings::RawStrings;
use crate::ir::Expr;

/// How the value of a schema is written.
#[derive(Clone)]
pub enum ValueStyle {
    /// In a syntax. The members of an object in elements or between tags are not themselves
    /// enclosed in an element or in tags, and values of other types are left out.
    Syntax(ValueSyntax),
    /// As parameters: the members of the outermost object. Values of other types are left out.
    ///
    /// With [`AmbiguousText::Json`](super::raw_strings::AmbiguousText::Json), strings are left out
    /// that read as a value of another type that the schema allows there: `5`, where the schema
    /// allows numbers and strings.
    Parameters(Box<ParameterStyle>),
}

impl ValueStyle {
    /// The syntax of values; of parameters, that of their values.
    pub(crate) fn syntax(&self) -> &ValueSyntax {
        match self {
            ValueStyle::Syntax(syntax) => syntax,
            ValueStyle::Parameters(style) => &style.syntax,
        }
    }
}

/// The text of a declared name; `None` if it cannot be written.
pub type NameWriter = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The texts around and between the members of the outermost object. No expression refers to a
/// rule, if the parameters are [deferred](super::super::super::defer).
#[derive(Clone)]
pub struct ParameterStyle {
    /// Before the first member; also written if there are no members.
    pub open: Expr,
    /// Between consecutive members.
    pub between: Expr,
    /// After the last member; also written if there are no members.
    pub close: Expr,
    /// The parts of one member, in order. They include a name and a value.
    pub member: Vec<MemberPart>,
    /// If set, a member's value that is a string is written without quotes and escapes.
    pub raw: Option<RawStrings>,
    /// Syntax of all other values.
    pub syntax: ValueSyntax,
    /// Further names of types ([`MemberPart::TypeName`]), for members that are not declared.
    pub other_type_names: Vec<(JsonTypes, Vec<u8>)>,
    /// How declared names are written.
    pub name: NameWriter,
}

impl ParameterStyle {
    /// The fixed bytes directly after a name, if any.
    pub(super) fn name_terminator(&self) -> Option<&Expr> {
        let mut after = self.member.iter().skip_while(|part| **part != MemberPart::Name).skip(1);
        match after.next() {
            Some(MemberPart::Fixed(expr @ Expr::Bytes(_))) => Some(expr),
            _ => None,
        }
    }
}

/// A part of a member.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberPart {
    /// A fixed text.
    Fixed(Expr),
    /// The member's name.
    Name,
    /// The name of the value's type. Values of a type in none of the sets cannot be written.
    TypeName(Vec<(JsonTypes, Vec<u8>)>),
    /// The value; with [`RawStrings`], also the text that ends it.
    Value,
}
