//! JSON Schemas whose outermost members stand in tags.

use super::lower::Lowering;
use super::model::Style;
use crate::front::json_schema::{
    self, Elements, Kinds, Parameters, Piece, Raw, Reading, SchemaErrors, SchemaOptions, Syntax,
    Whitespace,
};
use crate::fsm::ByteSet;
use crate::ids::RuleId;
use crate::ir::Expr;
use crate::spec::json::Json;

/// A word for each type.
type Words = &'static [(Kinds, &'static str)];

/// How a style writes a member.
struct Member {
    /// Before the name.
    open: &'static str,
    /// What the name is not: it would end there.
    no_name: &'static str,
    /// Whether characters of the name that XML escapes are.
    escaped: bool,
    /// Behind the name.
    behind_name: &'static str,
    /// Words for types, and what stands behind them.
    kinds: Option<(Words, &'static str)>,
    /// Further words, for names that are not declared.
    other_kinds: Words,
    /// White space, and what stands before the value.
    before_value: Option<&'static str>,
    close: &'static str,
}

/// A member without words for types.
const PLAIN: Member = Member {
    open: "<parameter=",
    no_name: ">",
    escaped: false,
    behind_name: ">",
    kinds: None,
    other_kinds: &[],
    before_value: None,
    close: "</parameter>",
};

const STRING_OR_NOT: Words =
    &[(Kinds::STRING, "true"), (Kinds::from_bits(!Kinds::STRING.bits()), "false")];

const TYPES: Words = &[
    (Kinds::STRING, "string"),
    (Kinds::NUMBER, "number"),
    (Kinds::BOOLEAN, "boolean"),
    (Kinds::OBJECT, "object"),
    (Kinds::ARRAY, "array"),
    (Kinds::NULL, "null"),
];

fn member(style: Style) -> Option<Member> {
    Some(match style {
        Style::Json | Style::CohereXml => return None,
        Style::QwenXml => PLAIN,
        Style::MinimaxXml => {
            Member { open: "<parameter name=\"", no_name: "\"", behind_name: "\">", ..PLAIN }
        }
        Style::DeepseekXml => Member {
            open: "<｜DSML｜parameter name=\"",
            no_name: "\"",
            behind_name: "\" string=\"",
            kinds: Some((STRING_OR_NOT, "\">")),
            close: "</｜DSML｜parameter>",
            ..PLAIN
        },
        Style::GlmXml => Member {
            open: "<arg_key>",
            no_name: "</arg_key>",
            behind_name: "</arg_key>",
            before_value: Some("<arg_value>"),
            close: "</arg_value>",
            ..PLAIN
        },
        Style::KimiK3Xml => Member {
            open: "<|open|>argument key=\"",
            no_name: "\"",
            escaped: true,
            behind_name: "\" type=\"",
            kinds: Some((TYPES, "\"<|sep|>")),
            other_kinds: &[(Kinds::INTEGER, "integer")],
            close: "<|close|>argument<|sep|>",
            ..PLAIN
        },
    })
}

/// The rule of an object with the schema, in a style other than JSON.
pub(super) fn lower(
    lowering: &mut Lowering<'_>,
    style: Style,
    schema: &Json,
    options: &SchemaOptions,
) -> Result<RuleId, SchemaErrors> {
    let limits = lowering.limits;
    let Some(member) = member(style) else {
        return json_schema::lower_elements(
            &mut lowering.builder,
            schema,
            options,
            limits,
            &cohere(),
        );
    };
    let gap = gap(lowering, options);
    let words = |words: Words| {
        words.iter().map(|(kinds, word)| (*kinds, word.as_bytes().to_vec())).collect::<Vec<_>>()
    };
    let mut pieces = vec![Piece::Fixed(lowering.literal(member.open)), Piece::Name];
    pieces.push(Piece::Fixed(lowering.literal(member.behind_name)));
    if let Some((kinds, behind)) = member.kinds {
        pieces.push(Piece::Kind(words(kinds)));
        pieces.push(Piece::Fixed(lowering.literal(behind)));
    }
    if let Some(before) = member.before_value {
        pieces.push(Piece::Fixed(Expr::seq([gap.clone(), lowering.literal(before)])));
    }
    pieces.push(Piece::Value);
    let parameters = Parameters {
        open: gap.clone(),
        between: gap.clone(),
        close: gap,
        member: pieces,
        raw: Some(Raw {
            end: lowering.triggers(member.close),
            lead: Vec::new(),
            trail: Vec::new(),
            excludes: Vec::new(),
            spaced: true,
            reading: Reading::Either,
        }),
        syntax: Syntax::Json,
        other_kinds: words(member.other_kinds),
        name: &|name| {
            let written = if member.escaped {
                name.replace('&', "&amp;").replace('"', "&quot;")
            } else {
                name.into()
            };
            (!written.is_empty() && !written.contains(member.no_name)).then_some(written)
        },
    };
    json_schema::lower_parameters(&mut lowering.builder, schema, options, limits, &parameters)
        .map(|lowered| lowered.rule)
}

/// White space as between JSON tokens.
fn gap(lowering: &mut Lowering<'_>, options: &SchemaOptions) -> Expr {
    match options.whitespace {
        Whitespace::Flexible { max } if max > 0 => {
            let space = Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(max));
            Expr::Ref(lowering.builder.rule("ws", space))
        }
        _ => Expr::Empty,
    }
}

fn cohere() -> Elements {
    Elements {
        open: "<cofl:value".into(),
        name: [" name=\"".into(), "\"".into()],
        text: " type=\"raw\">".into(),
        scalar: " type=\"json\">".into(),
        object: " type=\"dict\">".into(),
        array: " type=\"list\">".into(),
        close: "</cofl:value>".into(),
    }
}
