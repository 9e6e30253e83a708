//! Arguments in each style, as grammar.

use std::sync::Arc;

use louver::front::json_schema::{
    self, AmbiguousText, LazyTypes, MemberPart, NestedStyle, ParameterStyle, PythonDialect,
    PythonValues, RawQuotes, RawStrings, SchemaError, SchemaErrors, SchemaOptions, SchemaSource,
    ValueStyle, ValueSyntax, Whitespace,
};
use louver::ids::RuleId;
use louver::ir::Expr;
use louver::spec::json::Json;

use super::markers::gap;
use super::{Lowering, object};
use crate::arguments::{ArgumentReader, is_keyword, known_types, types_by_word, written_name};
use crate::format::{ArgumentStyle, PythonLiterals, TagPart, TaggedStyle};
use crate::lowered::{LoweredArguments, SpanPhase};
use crate::request::{FunctionTool, LazyTools, Tool, ToolRequest, declared_types};

/// Values as JSON text.
const JSON: ValueStyle = ValueStyle::Syntax(ValueSyntax::Json);

impl Lowering<'_> {
    /// The arguments of tool `k` in a style, with their label. `None` if the turn cannot call it.
    pub(crate) fn arguments(
        &mut self,
        k: usize,
        tool: &Tool,
        style: &ArgumentStyle,
    ) -> Option<LoweredArguments> {
        if !self.request.may_call(tool.name()) {
            return None;
        }
        let lowered = match tool {
            Tool::Function(function) => {
                let pointer = function.parameters_pointer(k);
                let typed = self.typed_arguments(style, function, &pointer);
                let schema = self.request.arguments_schema(function);
                typed.or_else(|| self.lower_arguments(style, &schema, &pointer))?
            }
            Tool::Custom(custom) => {
                self.custom_arguments(custom, style, &custom.grammar_pointer(k))?
            }
            Tool::Builtin(builtin) => self.builtin_arguments(k, builtin)?,
        };
        let (name, label) =
            (format!("arguments of {}", tool.name()), SpanPhase::Arguments(k).label());
        let rule = self.builder.labelled(name, label, Expr::Ref(lowered.rule));
        Some(LoweredArguments { rule, ..lowered })
    }

    /// The rule of JSON text that a schema allows. Errors and relaxed keywords are collected, with
    /// pointers into the request.
    pub(crate) fn json(&mut self, schema: &Json, pointer: &str) -> Option<RuleId> {
        let options = self.request.schema_options;
        self.value(schema, pointer, options, &JSON).map(|(rule, _)| rule)
    }

    /// The rule of the value of a schema, and the types that its reader expects.
    fn value(
        &mut self,
        schema: &Json,
        pointer: &str,
        options: SchemaOptions,
        style: &ValueStyle,
    ) -> Option<(RuleId, LazyTypes)> {
        let source = self.source(schema, options);
        let lowered = json_schema::lower_into(&mut self.builder, source, style);
        let lowered = self.collect_errors(lowered, pointer)?;
        let relaxed = lowered.relaxed.into_iter().map(|error| rebased(error, pointer));
        self.findings.relaxed.extend(relaxed);
        Some((lowered.rule, known_types(lowered.types)))
    }

    /// As [`Lowering::value`]; the rule is deferred if the request wants that and the schema
    /// certainly has no errors.
    fn deferred_value(
        &mut self,
        schema: &Json,
        pointer: &str,
        options: SchemaOptions,
        style: &ValueStyle,
    ) -> Option<(RuleId, LazyTypes)> {
        let request = self.request;
        if matches!(request.lazy, LazyTools::From(tools) if request.tools.len() >= tools) {
            let source = self.source(schema, options);
            if let Some((body, types)) = json_schema::defer(&self.builder, source, style) {
                return Some((self.builder.rule("value", Expr::Deferred(body)), types));
            }
        }
        self.value(schema, pointer, options, style)
    }

    /// A schema of the request.
    fn source<'s>(&self, schema: &'s Json, options: SchemaOptions) -> SchemaSource<'s>
    where
        Self: 's,
    {
        let ToolRequest { registry, limits, .. } = self.request;
        SchemaSource { schema, registry, options, limits }
    }

    /// The value, or `None` with the errors collected.
    fn collect_errors<T>(&mut self, lowered: Result<T, SchemaErrors>, pointer: &str) -> Option<T> {
        let errors = match lowered {
            Ok(lowered) => return Some(lowered),
            Err(SchemaErrors(errors)) => errors,
        };
        let errors = errors.into_iter().map(|error| rebased(error, pointer));
        self.findings.errors.schemas.extend(errors);
        None
    }

    /// Arguments that the schema allows, in a style. They are an object, whether or not the schema
    /// says so.
    pub(crate) fn lower_arguments(
        &mut self,
        style: &ArgumentStyle,
        schema: &Json,
        pointer: &str,
    ) -> Option<LoweredArguments> {
        let mut options = self.request.schema_options;
        let schema = &*self.collect_errors(object::and_object(schema, options.dialect), pointer)?;
        let style_of_values = self.value_style(style);
        if matches!(style, ArgumentStyle::Delimited(_)) {
            options.whitespace = Whitespace::Compact;
        }
        let (rule, types) = self.deferred_value(schema, pointer, options, &style_of_values)?;
        let reader = ArgumentReader::new(style, types);
        Some(LoweredArguments { rule, reader })
    }

    /// Arguments of a function whose schema is not enforced, in a style other than JSON: a reader
    /// needs the types that the schema declares, and the grammar its names. `None` in all other
    /// cases, and if the types cannot be lowered.
    fn typed_arguments(
        &mut self,
        style: &ArgumentStyle,
        function: &FunctionTool,
        pointer: &str,
    ) -> Option<LoweredArguments> {
        if self.request.schema_rule(function).is_enforced() || *style == ArgumentStyle::Json {
            return None;
        }
        let value_style = self.value_style(style);
        let can_write = |name: &str| match &value_style {
            ValueStyle::Parameters(parameters) => (parameters.name)(name).is_some(),
            ValueStyle::Syntax(syntax) => syntax.can_write_name(name),
        };
        // Between tags, only the arguments themselves are not JSON.
        let is_deep = !matches!(style, ArgumentStyle::Tagged(_));
        let schema = declared_types(&function.parameters, is_deep, &can_write);
        let findings = std::mem::take(&mut self.findings);
        let lowered = self.lower_arguments(style, &schema, pointer);
        self.findings = findings;
        lowered
    }

    /// How the arguments of a style are written.
    fn value_style(&mut self, style: &ArgumentStyle) -> ValueStyle {
        match style {
            ArgumentStyle::Json => JSON,
            ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {
                ValueStyle::Parameters(Box::new(keywords(style)))
            }
            ArgumentStyle::Tagged(tagged) => {
                ValueStyle::Parameters(Box::new(self.tagged_parameters(tagged)))
            }
            ArgumentStyle::Delimited(marker) => {
                ValueStyle::Syntax(ValueSyntax::Delimited(self.triggers(marker)))
            }
            ArgumentStyle::Nested(tags) => {
                let (mark, item) = (self.triggers(&tags.mark), tags.item.clone());
                ValueStyle::Syntax(ValueSyntax::Nested(Box::new(NestedStyle { mark, item })))
            }
        }
    }

    /// The parts of an argument's opening tag.
    pub(crate) fn tag_pieces(&mut self, style: &TaggedStyle) -> Vec<MemberPart> {
        let pieces = style.open.iter().map(|part| match part {
            TagPart::Text(text) => MemberPart::Fixed(Expr::text(text)),
            TagPart::Marker(marker) => MemberPart::Fixed(self.marker(marker)),
            TagPart::Gap { .. } => MemberPart::Fixed(gap()),
            TagPart::Key { .. } => MemberPart::Name,
            TagPart::Kind { kind } => MemberPart::TypeName(types_by_word(kind)),
        });
        pieces.collect()
    }

    /// How arguments in tags are written.
    fn tagged_parameters(&mut self, style: &TaggedStyle) -> ParameterStyle {
        let mut member = self.tag_pieces(style);
        member.push(MemberPart::Value);
        let end = self.triggers_and_rests(&style.close);
        let excludes =
            self.format.excluded_values(style).into_iter().map(String::into_bytes).collect();
        let tagged = style.clone();
        ParameterStyle {
            open: self.fixed_parts(&style.before),
            between: self.fixed_parts(&style.between),
            close: self.fixed_parts(&style.after),
            member,
            raw: Some(RawStrings {
                end,
                lead: style.lead.clone().into_bytes(),
                trail: style.trail.clone().into_bytes(),
                excludes,
                spaced: false,
                reading: AmbiguousText::Json,
                python: match style.python {
                    None => PythonValues::None,
                    Some(PythonLiterals::Words) => PythonValues::Words,
                    Some(PythonLiterals::Values) => PythonValues::All,
                },
                quotes: style.quotes.as_ref().map(|quotes| RawQuotes {
                    begin: quotes.begin.clone().into_bytes(),
                    end: quotes.end.clone().into_bytes(),
                }),
            }),
            syntax: ValueSyntax::Json,
            other_type_names: Vec::new(),
            name: Arc::new(move |name| written_name(&tagged, name)),
        }
    }
}

/// How keyword arguments are written.
fn keywords(style: &ArgumentStyle) -> ParameterStyle {
    ParameterStyle {
        open: Expr::Empty,
        between: Expr::seq([Expr::text(","), Expr::optional(Expr::text(" "))]),
        close: Expr::Empty,
        member: vec![MemberPart::Name, MemberPart::Fixed(Expr::text("=")), MemberPart::Value],
        raw: None,
        syntax: ValueSyntax::Python(match style {
            ArgumentStyle::JsonKeywords => PythonDialect::JsonWords,
            _ => PythonDialect::Literals,
        }),
        other_type_names: Vec::new(),
        name: Arc::new(|name| is_keyword(name).then(|| name.to_owned())),
    }
}

/// The error of a schema that stands at `pointer` in the request.
fn rebased(error: SchemaError, pointer: &str) -> SchemaError {
    SchemaError { pointer: format!("{pointer}{}", error.pointer), ..error }
}
