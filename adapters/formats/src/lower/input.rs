//! The input of a custom tool, as grammar: the one string in arguments `{"input": "..."}`.

use louver::compile::{CompileError, Compiled};
use louver::front::json_schema::{JsonTypes, MemberPart, ValueTypes};
use louver::ir::{AlgebraError, Expr, Grammar, Homomorphism};
use louver::spec::json::write_string;

use super::Lowering;
use super::raw::{RawContext, text_dfa};
use crate::arguments::{ArgumentReader, InputReader, known_types, python_string, written_name};
use crate::format::{ArgumentStyle, Marker, StringQuotes, TaggedStyle, unique};
use crate::lowered::LoweredArguments;
use crate::request::{CUSTOM_INPUT, CustomError, CustomTool, RequestFault};

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
            Err(error) => Err(error),
        };
        match lowered {
            Ok(LoweredArguments { rule, reader }) => {
                let reader = ArgumentReader::Input(Box::new(reader), InputReader::default());
                Some(LoweredArguments { rule, reader })
            }
            Err(error) => {
                self.findings.errors.customs.extend(RequestFault::of_custom(pointer, &error));
                None
            }
        }
    }

    /// Arguments whose one string is a sentence of a grammar.
    fn input_arguments(
        &mut self,
        grammar: &Grammar,
        style: &ArgumentStyle,
    ) -> Result<LoweredArguments, CustomError> {
        let body = match style {
            ArgumentStyle::Json => {
                let text = self.escaped_text(grammar, write_string)?;
                self.json_object(text)
            }
            ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {
                let text = self.escaped_text(grammar, python_string)?;
                let open = Expr::text(&format!("{CUSTOM_INPUT}=\""));
                Expr::seq([open, text, Expr::text("\"")])
            }
            ArgumentStyle::Delimited(mark) => {
                let text = self.raw_text(grammar, &RawContext::until(texts(mark)))?;
                let quote = self.marker(mark);
                let open = Expr::text(&format!("{{{CUSTOM_INPUT}:"));
                Expr::seq([open, quote.clone(), text, quote, Expr::text("}")])
            }
            ArgumentStyle::Nested(tags) => {
                let text = self.raw_text(grammar, &RawContext::until(texts(&tags.mark)))?;
                let mark = self.marker(&tags.mark);
                let (open, close) = (format!("<{CUSTOM_INPUT}>"), format!("</{CUSTOM_INPUT}>"));
                let (open, close) = (Expr::text(&open), Expr::text(&close));
                Expr::seq([mark.clone(), open, text, mark, close])
            }
            ArgumentStyle::Tagged(style) => self.tagged_input(style, grammar)?,
        };
        let types = known_types(ValueTypes::uniform(JsonTypes::STRING));
        let reader = ArgumentReader::new(style, types);
        Ok(LoweredArguments { rule: self.builder.rule("input", body), reader })
    }

    /// A sentence of the grammar, escaped as in a string that the function writes.
    fn escaped_text(
        &mut self,
        grammar: &Grammar,
        write_string: fn(&mut String, &str),
    ) -> Result<Expr, CustomError> {
        let text = self.writable(grammar, &RawContext::default())?;
        let text = text.image(&Homomorphism::quoted(write_string), &self.request.limits)?;
        Ok(Expr::Ref(self.builder.import(&text)))
    }

    /// A sentence of the grammar as it is, in a context.
    fn raw_text(&mut self, grammar: &Grammar, context: &RawContext) -> Result<Expr, CustomError> {
        let text = self.writable(grammar, context)?;
        Ok(Expr::Ref(self.builder.import(&text)))
    }

    /// The grammar of the sentences that can stand in a context.
    fn writable(&self, grammar: &Grammar, context: &RawContext) -> Result<Grammar, CustomError> {
        let limits = &self.request.limits;
        let text = text_dfa(context, limits.automaton_states).map_err(AlgebraError::from)?;
        let both = grammar.intersect(&text, limits)?;
        let both = both.simplify().map_err(CompileError::from)?;
        match Compiled::new(&both, limits) {
            Ok(_) => Ok(both),
            Err(CompileError::Empty { .. }) => {
                Err(CustomError::Empty { format: self.format.name.clone() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// `{"input": "TEXT"}`, with the white space that the request's schema options allow.
    fn json_object(&mut self, text: Expr) -> Expr {
        let whitespace = self.request.schema_options.whitespace;
        let gap = match whitespace.gap() {
            Expr::Empty => Expr::Empty,
            gap => Expr::Ref(self.builder.rule("ws", gap)),
        };
        let colon = whitespace.separator(":", &gap);
        let name = Expr::text(&format!("\"{CUSTOM_INPUT}\""));
        let quote = Expr::text("\"");
        let value = Expr::seq([quote.clone(), text, quote]);
        let (open, close) = (Expr::text("{"), Expr::text("}"));
        Expr::seq([open, gap.clone(), name, colon, value, gap, close])
    }

    /// A sentence of the grammar between tags, as it is or in quotes.
    fn tagged_text(&mut self, style: &TaggedStyle, grammar: &Grammar) -> Result<Expr, CustomError> {
        let begin = style.quotes.iter().map(|quotes| quotes.begin.clone());
        let excludes = self.format.excluded_values(style).into_iter().chain(begin);
        let context = RawContext {
            trail: style.trail.clone().into_bytes(),
            excludes: excludes.map(String::into_bytes).collect(),
            ..RawContext::until(texts(&style.close))
        };
        let bare = self.raw_text(grammar, &context);
        let Some(StringQuotes { begin, end, .. }) = &style.quotes else { return bare };
        let bare = match bare {
            Err(CustomError::Empty { .. }) => Expr::Never,
            bare => bare?,
        };
        let text = self.raw_text(grammar, &RawContext::until([end.clone()]))?;
        Ok(Expr::alt([bare, Expr::seq([Expr::text(begin), text, Expr::text(end)])]))
    }

    fn tagged_input(
        &mut self,
        style: &TaggedStyle,
        grammar: &Grammar,
    ) -> Result<Expr, CustomError> {
        let format = self.format;
        let text = self.tagged_text(style, grammar)?;
        let mut parts = vec![self.fixed_parts(&style.before)];
        let name = written_name(style, CUSTOM_INPUT)
            .ok_or_else(|| CustomError::Empty { format: format.name.clone() })?;
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

/// The texts of a marker, those of special tokens included.
fn texts(marker: &Marker) -> Vec<String> {
    unique(marker.as_texts().into_iter().filter(|text| !text.is_empty()))
}
