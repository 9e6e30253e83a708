//! The input of a custom tool, as grammar: the one string in arguments `{"input": "..."}`.

use louver::compile::{CompileError, Compiled};
use louver::front::json_schema::{JsonTypes, MemberPart, ValueTypes};
use louver::ids::RuleId;
use louver::ir::{AlgebraError, Expr, Grammar, Homomorphism};
use louver::limits::Limits;
use louver::spec::json::write_string;

use super::Lowering;
use super::raw::{RawContext, text_dfa};
use crate::arguments::{ArgumentReader, InputReader, known_types, python_string, written_name};
use crate::format::{ArgumentStyle, Marker, TaggedStyle, unique};
use crate::lowered::LoweredArguments;
use crate::request::{CustomError, CustomErrorReason, CustomTool, INPUT, RequestFault};

impl Lowering<'_> {
    /// The arguments that stand for the input of a custom tool, whose grammar is at the pointer.
    pub(crate) fn custom_arguments(
        &mut self,
        custom: &CustomTool,
        style: &ArgumentStyle,
        pointer: &str,
    ) -> Option<LoweredArguments> {
        let lowered = match custom.grammar(&self.request.limits) {
            Ok(None) => Ok(self.lower_arguments(style, &CustomTool::schema(), pointer)?),
            Ok(Some((grammar, warnings))) => {
                let warnings = RequestFault::of_text(pointer, &warnings);
                self.findings.warnings.extend(warnings);
                self.input_arguments(&grammar, style)
            }
            Err(reason) => Err(reason),
        };
        match lowered {
            Ok(LoweredArguments { rule, reader }) => {
                let reader = ArgumentReader::Input(Box::new(reader), InputReader::default());
                Some(LoweredArguments { rule, reader })
            }
            Err(reason) => {
                let error = CustomError { pointer: pointer.to_owned(), reason };
                self.findings.errors.customs.push(error);
                None
            }
        }
    }

    /// Arguments whose one string is a sentence of a grammar.
    fn input_arguments(
        &mut self,
        grammar: &Grammar,
        style: &ArgumentStyle,
    ) -> Result<LoweredArguments, CustomErrorReason> {
        let (format, limits) = (self.format, &self.request.limits);
        let quoted = |write_string: fn(&mut String, &str)| -> Result<Grammar, CustomErrorReason> {
            let text = framed(grammar, &RawContext::default(), &format.name, limits)?;
            Ok(text.image(&Homomorphism::quoted(write_string), limits)?)
        };
        let body = match style {
            ArgumentStyle::Json => {
                let text = self.builder.import(&quoted(write_string)?);
                self.json_object(text)
            }
            ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {
                let text = self.builder.import(&quoted(python_string)?);
                let open = Expr::text(&format!("{INPUT}=\""));
                Expr::seq([open, Expr::Ref(text), Expr::text("\"")])
            }
            ArgumentStyle::Delimited(mark) => {
                let context = RawContext { ends: variant_bytes(mark), ..RawContext::default() };
                let text = framed(grammar, &context, &format.name, limits)?;
                let text = Expr::Ref(self.builder.import(&text));
                let quote = self.marker(mark);
                let open = Expr::text(&format!("{{{INPUT}:"));
                Expr::seq([open, quote.clone(), text, quote, Expr::text("}")])
            }
            ArgumentStyle::Nested(tags) => {
                let context =
                    RawContext { ends: variant_bytes(&tags.mark), ..RawContext::default() };
                let text = framed(grammar, &context, &format.name, limits)?;
                let text = Expr::Ref(self.builder.import(&text));
                let mark = self.marker(&tags.mark);
                let (open, close) = (format!("<{INPUT}>"), format!("</{INPUT}>"));
                let (open, close) = (Expr::text(&open), Expr::text(&close));
                Expr::seq([mark.clone(), open, text, mark, close])
            }
            ArgumentStyle::Tagged(style) => self.tagged_input(style, grammar)?,
        };
        let types = known_types(ValueTypes::uniform(JsonTypes::STRING));
        let reader = ArgumentReader::new(style, types);
        Ok(LoweredArguments { rule: self.builder.rule("input", body), reader })
    }

    /// `{"input": "TEXT"}`, with the white space that the request's schema options allow.
    fn json_object(&mut self, text: RuleId) -> Expr {
        let whitespace = self.request.schema_options.whitespace;
        let gap = match whitespace.gap() {
            Expr::Empty => Expr::Empty,
            gap => Expr::Ref(self.builder.rule("ws", gap)),
        };
        let colon = whitespace.separator(":", &gap);
        let name = Expr::text(&format!("\"{INPUT}\""));
        let quote = Expr::text("\"");
        let value = Expr::seq([quote.clone(), Expr::Ref(text), quote]);
        let (open, close) = (Expr::text("{"), Expr::text("}"));
        Expr::seq([open, gap.clone(), name, colon, value, gap, close])
    }

    /// A sentence of the grammar between tags, as it is or in quotes.
    fn tagged_text(
        &mut self,
        style: &TaggedStyle,
        grammar: &Grammar,
    ) -> Result<Expr, CustomErrorReason> {
        let (format, limits) = (self.format, &self.request.limits);
        let quoted = match &style.quotes {
            None => None,
            Some(quotes) => {
                let ends = vec![quotes.end.clone().into_bytes()];
                let context = RawContext { ends, ..RawContext::default() };
                Some((quotes, framed(grammar, &context, &format.name, limits)?))
            }
        };
        let begin = style.quotes.iter().map(|quotes| quotes.begin.clone());
        let excludes = format.excluded_values(style).into_iter().chain(begin);
        let context = RawContext {
            trail: style.trail.clone().into_bytes(),
            ends: variant_bytes(&style.close),
            excludes: excludes.map(String::into_bytes).collect(),
        };
        let bare = match framed(grammar, &context, &format.name, limits) {
            Err(CustomErrorReason::Empty { .. }) if quoted.is_some() => Expr::Never,
            bare => Expr::Ref(self.builder.import(&bare?)),
        };
        let Some((quotes, text)) = quoted else { return Ok(bare) };
        let text = Expr::Ref(self.builder.import(&text));
        let text = Expr::seq([Expr::text(&quotes.begin), text, Expr::text(&quotes.end)]);
        Ok(Expr::alt([bare, text]))
    }

    fn tagged_input(
        &mut self,
        style: &TaggedStyle,
        grammar: &Grammar,
    ) -> Result<Expr, CustomErrorReason> {
        let format = self.format;
        let text = self.tagged_text(style, grammar)?;
        let mut parts = vec![self.fixed_parts(&style.before)];
        let name = written_name(style, INPUT)
            .ok_or_else(|| CustomErrorReason::Empty { format: format.name.clone() })?;
        for piece in self.tag_pieces(style) {
            parts.push(match piece {
                MemberPart::Fixed(expr) => expr,
                MemberPart::Name | MemberPart::Value => Expr::text(&name),
                MemberPart::TypeName(words) => {
                    let word = words.iter().find(|(types, _)| types.meets(JsonTypes::STRING));
                    word.map_or(Expr::Never, |(_, word)| Expr::bytes(word))
                }
            });
        }
        // Lead and trail are mandatory here: without them, a text that begins with the lead or ends
        // with the trail would be read as a shorter text.
        let close = self.marker(&style.close);
        parts.extend([Expr::text(&style.lead), text, Expr::text(&style.trail), close]);
        parts.push(self.fixed_parts(&style.after));
        Ok(Expr::seq(parts))
    }
}

/// The grammar of the inputs that can stand unescaped in a context. `format` is the format's
/// name, for the error.
fn framed(
    grammar: &Grammar,
    context: &RawContext,
    format: &str,
    limits: &Limits,
) -> Result<Grammar, CustomErrorReason> {
    let text = text_dfa(context, limits.automaton_states).map_err(AlgebraError::from)?;
    let both = grammar.intersect(&text, limits)?;
    let both = both.simplify().map_err(CompileError::from)?;
    match Compiled::new(&both, limits) {
        Ok(_) => Ok(both),
        Err(CompileError::Empty { .. }) => {
            Err(CustomErrorReason::Empty { format: format.to_owned() })
        }
        Err(error) => Err(error.into()),
    }
}

/// The variants of a marker as bytes, with special tokens as their text.
fn variant_bytes(marker: &Marker) -> Vec<Vec<u8>> {
    let texts = marker.as_texts().into_iter().filter(|text| !text.is_empty());
    unique(texts.map(String::into_bytes))
}
