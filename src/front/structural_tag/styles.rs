//! XML-like styles: lowers JSON Schemas whose outermost members are written in tags.

use std::sync::Arc;

use super::lower::TagLowering;
use super::model::Style;
use crate::front::json_schema::{
    AmbiguousText, ElementStyle, JsonTypes, MemberPart, ParameterStyle, PythonValues, RawStrings,
    SchemaOptions, ValueStyle, ValueSyntax, Whitespace,
};
use crate::fsm::ByteSet;
use crate::ir::Expr;

/// Names of types.
type TypeNameTable = &'static [(JsonTypes, &'static str)];

/// The texts with which a style writes a member.
struct MemberTexts {
    /// Text before the name.
    open: &'static str,
    /// Text that ends the name; a name does not contain it.
    name_end: &'static str,
    /// Whether names are escaped as in XML.
    escaped: bool,
    /// Text after the name.
    after_name: &'static str,
    /// Names of types, and the text after them.
    types: Option<(TypeNameTable, &'static str)>,
    /// Further names of types, for members that are not declared.
    other_type_names: TypeNameTable,
    /// Text before the value, preceded by optional white space.
    before_value: Option<&'static str>,
    /// Text after the value.
    close: &'static str,
}

/// A member without names of types.
const PLAIN: MemberTexts = MemberTexts {
    open: "<parameter=",
    name_end: ">",
    escaped: false,
    after_name: ">",
    types: None,
    other_type_names: &[],
    before_value: None,
    close: "</parameter>",
};

/// Names of types that only distinguish strings from other values.
const STRING_OR_NOT: TypeNameTable =
    &[(JsonTypes::STRING, "true"), (JsonTypes::ALL.minus(JsonTypes::STRING), "false")];

/// Names of all types.
const TYPES: TypeNameTable = &[
    (JsonTypes::STRING, "string"),
    (JsonTypes::NUMBER, "number"),
    (JsonTypes::BOOLEAN, "boolean"),
    (JsonTypes::OBJECT, "object"),
    (JsonTypes::ARRAY, "array"),
    (JsonTypes::NULL, "null"),
];

/// The texts of a style; `None` for styles without tagged members.
fn member(style: Style) -> Option<MemberTexts> {
    Some(match style {
        Style::Json | Style::CohereXml => return None,
        Style::QwenXml => PLAIN,
        Style::MinimaxXml => {
            MemberTexts { open: "<parameter name=\"", name_end: "\"", after_name: "\">", ..PLAIN }
        }
        Style::DeepseekXml => MemberTexts {
            open: "<｜DSML｜parameter name=\"",
            name_end: "\"",
            after_name: "\" string=\"",
            types: Some((STRING_OR_NOT, "\">")),
            close: "</｜DSML｜parameter>",
            ..PLAIN
        },
        Style::GlmXml => MemberTexts {
            open: "<arg_key>",
            name_end: "</arg_key>",
            after_name: "</arg_key>",
            before_value: Some("<arg_value>"),
            close: "</arg_value>",
            ..PLAIN
        },
        Style::KimiK3Xml => MemberTexts {
            open: "<|open|>argument key=\"",
            name_end: "\"",
            escaped: true,
            after_name: "\" type=\"",
            types: Some((TYPES, "\"<|sep|>")),
            other_type_names: &[(JsonTypes::INTEGER, "integer")],
            close: "<|close|>argument<|sep|>",
            ..PLAIN
        },
    })
}

/// Names of types, as parameters have them.
fn type_names(names: TypeNameTable) -> Vec<(JsonTypes, Vec<u8>)> {
    names.iter().map(|(types, name)| (*types, name.as_bytes().to_vec())).collect()
}

impl TagLowering<'_> {
    /// How the value of a schema is written in a style.
    pub(super) fn value_style(&mut self, style: Style, options: &SchemaOptions) -> ValueStyle {
        let Some(member) = member(style) else {
            return ValueStyle::Syntax(match style {
                Style::CohereXml => ValueSyntax::Elements(Box::new(cohere_elements())),
                _ => ValueSyntax::Json,
            });
        };
        let gap = self.gap(options);
        let (escaped, name_end) = (member.escaped, member.name_end);
        ValueStyle::Parameters(Box::new(ParameterStyle {
            open: gap.clone(),
            between: gap.clone(),
            close: gap.clone(),
            member: self.member_parts(&member, gap),
            raw: Some(RawStrings {
                end: self.triggers(member.close),
                lead: Vec::new(),
                trail: Vec::new(),
                excludes: Vec::new(),
                spaced: true,
                reading: AmbiguousText::Either,
                python: PythonValues::None,
                quotes: None,
            }),
            syntax: ValueSyntax::Json,
            other_type_names: type_names(member.other_type_names),
            name: Arc::new(move |name| {
                let written = if escaped {
                    name.replace('&', "&amp;").replace('"', "&quot;")
                } else {
                    name.into()
                };
                (!written.is_empty() && !written.contains(name_end)).then_some(written)
            }),
        }))
    }

    /// The parts of a member.
    fn member_parts(&mut self, member: &MemberTexts, gap: Expr) -> Vec<MemberPart> {
        let mut parts = vec![MemberPart::Fixed(self.literal(member.open)), MemberPart::Name];
        parts.push(MemberPart::Fixed(self.literal(member.after_name)));
        if let Some((types, after)) = member.types {
            parts.push(MemberPart::TypeName(type_names(types)));
            parts.push(MemberPart::Fixed(self.literal(after)));
        }
        if let Some(before) = member.before_value {
            parts.push(MemberPart::Fixed(Expr::seq([gap, self.literal(before)])));
        }
        parts.push(MemberPart::Value);
        parts
    }

    /// The white space around members. They are not JSON tokens: exact layouts of JSON have none
    /// here.
    fn gap(&mut self, options: &SchemaOptions) -> Expr {
        match options.whitespace {
            Whitespace::Flexible { max } if max > 0 => {
                let space = Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(max));
                Expr::Ref(self.builder.rule("ws", space))
            }
            _ => Expr::Empty,
        }
    }
}

/// The elements of [`Style::CohereXml`].
fn cohere_elements() -> ElementStyle {
    ElementStyle {
        open: "<cofl:value".into(),
        name: [" name=\"".into(), "\"".into()],
        text: " type=\"raw\">".into(),
        scalar: " type=\"json\">".into(),
        object: " type=\"dict\">".into(),
        array: " type=\"list\">".into(),
        close: "</cofl:value>".into(),
    }
}
