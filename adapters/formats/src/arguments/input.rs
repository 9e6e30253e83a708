//! The input of a custom tool: on the wire, the one string in arguments `{"input": "..."}`.

use louver::front::json_schema::{JsonTypes, MemberPart, ParameterTypes, Whitespace};
use louver::fsm::ByteSet;
use louver::ids::RuleId;
use louver::ir::{Expr, Grammar, Homomorphism};
use louver::limits::Limits;
use louver::spec::json::{Json, write_string};

use super::tagged::{known_types, written_name};
use super::{ArgumentReader, LiteralReader, LoweredArguments, RenderError, TaggedReader};
use crate::custom::{CustomError, CustomErrorReason, CustomTool, INPUT};
use crate::fault::RequestFault;
use crate::format::{ArgumentStyle, TaggedStyle};
use crate::lower::Lowering;
use crate::marker::{Marker, unique};
use crate::raw::RawContext;

/// Reads the JSON text `{"input": "..."}` in chunks, and returns the string.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputReader {
    state: InputState,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum InputState {
    /// Before the colon.
    #[default]
    Name,
    /// Behind the colon.
    Value,
    /// In the string. `high`: a high surrogate whose low surrogate may follow.
    Text { high: Option<u16> },
    /// Behind a backslash. `escape`: the escape so far.
    Escape { high: Option<u16>, escape: String },
    /// Behind the string.
    Behind,
}

impl InputReader {
    /// Takes JSON text, and returns the text that is decided.
    pub(crate) fn push(&mut self, json: &str) -> String {
        let mut out = String::new();
        for c in json.chars() {
            self.state = match (std::mem::take(&mut self.state), c) {
                (InputState::Name, ':') => InputState::Value,
                (InputState::Name, _) => InputState::Name,
                (InputState::Value, '"') => InputState::Text { high: None },
                (InputState::Value, _) => InputState::Value,
                (InputState::Text { high }, '"') => {
                    write_lone(&mut out, high);
                    InputState::Behind
                }
                (InputState::Text { high }, '\\') => {
                    InputState::Escape { high, escape: String::new() }
                }
                (InputState::Text { high }, c) => {
                    write_lone(&mut out, high);
                    out.push(c);
                    InputState::Text { high: None }
                }
                (InputState::Escape { high, mut escape }, c) => {
                    escape.push(c);
                    if escape.starts_with('u') && escape.len() < 5 {
                        InputState::Escape { high, escape }
                    } else {
                        InputState::Text { high: unescape(&mut out, high, &escape) }
                    }
                }
                (InputState::Behind, _) => InputState::Behind,
            };
        }
        out
    }

    /// Ends the input, and returns what a high surrogate without a low one becomes.
    pub(crate) fn cut(&mut self) -> String {
        let mut out = String::new();
        if let InputState::Text { high } | InputState::Escape { high, .. } =
            std::mem::take(&mut self.state)
        {
            write_lone(&mut out, high);
        }
        out
    }
}

/// Writes U+FFFD for a surrogate without its other half.
fn write_lone(out: &mut String, high: Option<u16>) {
    out.extend(high.map(|_| char::REPLACEMENT_CHARACTER));
}

/// Writes the character of an escape, which is given without its backslash. Returns a high
/// surrogate, whose low surrogate may follow.
fn unescape(out: &mut String, high: Option<u16>, escape: &str) -> Option<u16> {
    let unit = escape.strip_prefix('u').and_then(|hex| u16::from_str_radix(hex, 16).ok());
    if let (Some(first), Some(second)) = (high, unit)
        && let Some(Ok(c)) = char::decode_utf16([first, second]).next()
    {
        out.push(c);
        return None;
    }
    write_lone(out, high);
    match (unit, escape) {
        (Some(unit), _) => match char::from_u32(unit.into()) {
            Some(c) => out.push(c),
            None if (0xD800..0xDC00).contains(&unit) => return Some(unit),
            None => out.push(char::REPLACEMENT_CHARACTER),
        },
        (None, "n") => out.push('\n'),
        (None, "t") => out.push('\t'),
        (None, "r") => out.push('\r'),
        (None, "b") => out.push('\u{8}'),
        (None, "f") => out.push('\u{c}'),
        (None, other) => out.push_str(other),
    }
    None
}

/// The arguments that stand for an input, in a style.
pub(crate) fn write_input(
    style: &ArgumentStyle,
    excludes: &[String],
    (call, input): (usize, &str),
) -> Result<String, RenderError> {
    let mut json = format!("{{\"{INPUT}\": ");
    write_string(&mut json, input);
    json.push('}');
    super::write(style, excludes, (call, &json))
}

/// The input in the JSON text of arguments that stand for it. `None` if they do not.
pub(crate) fn read_input(arguments: &str) -> Option<String> {
    let value = Json::parse(arguments, &Limits::default()).ok()?;
    value.get(INPUT).and_then(|input| input.as_str()).map(str::to_owned)
}

impl Lowering<'_> {
    /// The arguments that stand for the input of custom tool `k`. `None` if the turn cannot call
    /// it.
    pub(crate) fn custom_arguments(
        &mut self,
        k: usize,
        custom: &CustomTool,
    ) -> Option<LoweredArguments> {
        if !self.request.may_call(&custom.name) {
            return None;
        }
        let lowered = match custom.grammar(&self.request.limits) {
            Ok(None) => Ok(self.lower_arguments(&CustomTool::schema(), &custom.definition())?),
            Ok(Some((grammar, warnings))) => {
                let warnings = RequestFault::of_text(&custom.definition(), &warnings);
                self.findings.warnings.extend(warnings);
                self.input_arguments(&grammar)
            }
            Err(reason) => Err(reason),
        };
        match lowered {
            Ok(LoweredArguments { rule, reader }) => {
                let reader = ArgumentReader::Input(Box::new(reader), InputReader::default());
                let lowered = LoweredArguments { rule, reader };
                Some(self.label_arguments(self.request.tools.len() + k, &custom.name, lowered))
            }
            Err(reason) => {
                let error = CustomError { pointer: custom.definition(), reason };
                self.findings.errors.customs.push(error);
                None
            }
        }
    }

    /// Arguments whose one string is a sentence of a grammar.
    fn input_arguments(
        &mut self,
        grammar: &Grammar,
    ) -> Result<LoweredArguments, CustomErrorReason> {
        let (format, limits) = (self.format, &self.request.limits);
        let quoted = |write_string: fn(&mut String, &str)| -> Result<Grammar, CustomErrorReason> {
            let text = CustomTool::framed(grammar, &RawContext::default(), &format.name, limits)?;
            Ok(text.image(&Homomorphism::quoted(write_string), limits)?)
        };
        let (body, reader) = match self.style {
            ArgumentStyle::Json => {
                let text = self.builder.import(&quoted(write_string)?);
                (self.json_object(text), ArgumentReader::default())
            }
            ArgumentStyle::Keywords => {
                let text = self.builder.import(&quoted(super::write::python_string)?);
                let open = Expr::text(&format!("{INPUT}=\""));
                let body = Expr::seq([open, Expr::Ref(text), Expr::text("\"")]);
                (body, ArgumentReader::Literal(LiteralReader::keywords()))
            }
            ArgumentStyle::Delimited(mark) => {
                let context = RawContext { ends: spelled_bytes(mark), ..RawContext::default() };
                let text = CustomTool::framed(grammar, &context, &format.name, limits)?;
                let text = Expr::Ref(self.builder.import(&text));
                let quote = self.marker(mark);
                let open = Expr::text(&format!("{{{INPUT}:"));
                let body = Expr::seq([open, quote.clone(), text, quote, Expr::text("}")]);
                (body, ArgumentReader::Literal(LiteralReader::delimited(&mark.write())))
            }
            ArgumentStyle::Tagged(style) => {
                let types = ParameterTypes { others: JsonTypes::STRING, ..Default::default() };
                let reader = TaggedReader::new(style, known_types(types));
                let body = self.tagged_input(style, grammar)?;
                (body, ArgumentReader::Tagged(Box::new(reader)))
            }
        };
        Ok(LoweredArguments { rule: self.builder.rule("input", body), reader })
    }

    /// `{"input": "TEXT"}`, with the white space that the request's schema options allow.
    fn json_object(&mut self, text: RuleId) -> Expr {
        let space = |len: u32| Expr::text(&" ".repeat(len as usize));
        let (inner, before_colon, behind_colon) = match self.request.schema_options.whitespace {
            Whitespace::Compact => (Expr::Empty, Expr::Empty, Expr::Empty),
            Whitespace::PythonLike => (Expr::Empty, Expr::Empty, space(1)),
            Whitespace::Exact { after_colon, .. } => (Expr::Empty, Expr::Empty, space(after_colon)),
            Whitespace::Pretty { indent } => {
                let indents = Expr::repeat(space(1), 0, indent.checked_mul(64));
                let body = Expr::seq([Expr::text("\n"), indents]);
                (Expr::Ref(self.builder.rule("ws", body)), Expr::Empty, space(1))
            }
            Whitespace::Flexible { max } => {
                let gap = match Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(max)) {
                    Expr::Empty => Expr::Empty,
                    body => Expr::Ref(self.builder.rule("ws", body)),
                };
                (gap.clone(), gap.clone(), gap)
            }
        };
        let name = Expr::text(&format!("\"{INPUT}\""));
        let (open, colon, quote, close) =
            (Expr::text("{"), Expr::text(":"), Expr::text("\""), Expr::text("}"));
        let value = [quote.clone(), Expr::Ref(text), quote];
        let before = [open, inner.clone(), name, before_colon, colon, behind_colon];
        Expr::seq(before.into_iter().chain(value).chain([inner, close]))
    }

    fn tagged_input(
        &mut self,
        style: &TaggedStyle,
        grammar: &Grammar,
    ) -> Result<Expr, CustomErrorReason> {
        let (format, limits) = (self.format, &self.request.limits);
        let excludes = format.excluded_values(style).into_iter().map(String::into_bytes);
        let context = RawContext {
            trail: style.trail.clone().into_bytes(),
            ends: spelled_bytes(&style.close),
            excludes: excludes.collect(),
        };
        let text = CustomTool::framed(grammar, &context, &format.name, limits)?;
        let text = self.builder.import(&text);
        let mut parts = vec![self.glue(&style.before)];
        let name = written_name(style, INPUT)
            .ok_or_else(|| CustomErrorReason::Empty { format: format.name.clone() })?;
        for piece in self.tag_pieces(style) {
            parts.push(match piece {
                MemberPart::Fixed(expr) => expr,
                MemberPart::Name | MemberPart::Value => Expr::text(&name),
                MemberPart::Kind(words) => {
                    let word = words.iter().find(|(kinds, _)| kinds.meets(JsonTypes::STRING));
                    word.map_or(Expr::Never, |(_, word)| Expr::bytes(word))
                }
            });
        }
        // Lead and trail are mandatory here: without them, a text that begins with the lead or ends
        // with the trail would be read as a shorter text.
        let close = self.marker(&style.close);
        parts.extend([Expr::text(&style.lead), Expr::Ref(text), Expr::text(&style.trail), close]);
        parts.push(self.glue(&style.behind));
        Ok(Expr::seq(parts))
    }
}

/// The spellings of a marker as bytes, with special tokens as their text.
fn spelled_bytes(marker: &Marker) -> Vec<Vec<u8>> {
    let texts = marker.as_texts().into_iter().filter(|text| !text.is_empty());
    unique(texts.map(String::into_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_round_trip_in_chunks_of_any_size() {
        let texts = ["", "plain", "\"\\/\u{8}\u{c}\n\r\t", "é😀\u{0}\u{1f}\u{7f}", ":{}\"input\":"];
        let escaped = [
            ("{\"input\" :\n\"\\ud83d\\ude00\\/\\u00e9\"}", "😀/é"),
            ("{\"input\":\"\\ud83dx\\ude00\"}", "\u{fffd}x\u{fffd}"),
        ];
        let written = texts.iter().map(|text| {
            let json = write_input(&ArgumentStyle::Json, &[], (0, text)).expect("JSON");
            assert_eq!(read_input(&json).as_deref(), Some(*text));
            (json, (*text).to_owned())
        });
        let all = written.chain(escaped.map(|(json, text)| (json.to_owned(), text.to_owned())));
        for (json, text) in all {
            let chars: Vec<String> = json.chars().map(String::from).collect();
            for size in 1..=chars.len() {
                let mut reader = InputReader::default();
                let read: String =
                    chars.chunks(size).map(|chunk| reader.push(&chunk.concat())).collect();
                assert_eq!(read + &reader.cut(), text, "{json} by {size}");
            }
        }
        let mut reader = InputReader::default();
        assert_eq!(reader.push("{\"input\": \"a\\ud83d\\u"), "a");
        assert_eq!(reader.cut(), "\u{fffd}");
    }
}
