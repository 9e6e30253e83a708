//! Lowers the formats of structural tags to grammar expressions.

use super::model::{Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Tag, TagCount};
use super::read::member_pointer;
use super::special_names::{SpecialTokenNames, TextPart};
use super::{
    LoweredTag, StructuralTagError, StructuralTagErrorReason as Reason, StructuralTagErrors,
    StructuralTagOptions,
};
use crate::front::DocumentWarning;
use crate::front::ebnf::{self, EbnfOptions};
use crate::front::json_schema::{self, MemberOrder, SchemaErrors, Whitespace};
use crate::front::lark::{self, LarkOptions};
use crate::front::regex::{self, Classes, Dot, RegexOptions};
use crate::front::text_search::TextSearch;
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Expr, GrammarBuilder, SpecialToken, Trigger};
use crate::limits::Limits;

/// Options of regular expressions in structural tags: match as a whole, `.` is any character,
/// classes are ASCII.
const REGEX: RegexOptions = RegexOptions {
    scope: regex::Scope::Match,
    look_around: regex::LookAround::Allowed,
    classes: Classes::Ascii,
    case: regex::Case::Sensitive,
    dot: Dot::Any,
    ambiguous: regex::Ambiguous::Refused,
};

impl StructuralTag {
    /// Lowers the document to a grammar. Reports all errors. Cost: linear, except for the schemas
    /// and regular expressions inside.
    pub fn lower(
        &self,
        options: &StructuralTagOptions,
        limits: &Limits,
    ) -> Result<LoweredTag, StructuralTagErrors> {
        let limit_error = |what: String| {
            let reason = Reason::Limit(what);
            StructuralTagErrors(vec![StructuralTagError { pointer: "/format".into(), reason }])
        };
        let mut lowering = TagLowering {
            builder: GrammarBuilder::new(),
            options,
            limits,
            errors: Vec::new(),
            warnings: Vec::new(),
            special_tokens: SpecialTokenNames::new(&options.special_tokens)
                .map_err(|error| limit_error(format!("the names of special tokens: {error}")))?,
            shared_rules: HashMap::default(),
            depth: 0,
        };
        let body = lowering.format(&self.format, "/format", &EnclosingEnd::default());
        if lowering.errors.is_empty()
            && let Err(out) = fuel::check()
        {
            let reason = Reason::Limit(out.to_string());
            lowering.errors.push(StructuralTagError { pointer: "/format".into(), reason });
        }
        let Some(body) = body.filter(|_| lowering.errors.is_empty()) else {
            return Err(StructuralTagErrors(lowering.errors));
        };
        let start = lowering.builder.rule("structural-tag", body);
        let finished = lowering.builder.finish(start);
        let grammar = finished.map_err(|error| limit_error(error.to_string()))?;
        Ok(LoweredTag { grammar, warnings: lowering.warnings })
    }
}

/// The end of the innermost tag that encloses a format.
#[derive(Clone, Default)]
pub(super) struct EnclosingEnd {
    /// The texts that end the tag. Free text inside contains none of them.
    pub(super) ends: Vec<String>,
    /// The token that ends the tag. Free tokens inside exclude it.
    pub(super) token: Option<SpecialToken>,
}

/// State of lowering one document.
pub(super) struct TagLowering<'a> {
    pub(super) builder: GrammarBuilder,
    pub(super) options: &'a StructuralTagOptions,
    pub(super) limits: &'a Limits,
    pub(super) errors: Vec<StructuralTagError>,
    /// The warnings of schemas and grammars in the document.
    warnings: Vec<DocumentWarning>,
    pub(super) special_tokens: SpecialTokenNames,
    /// Rules of schemas, regular expressions and grammars, by the JSON text of their format. Their
    /// meaning does not depend on the context.
    shared_rules: HashMap<String, RuleId>,
    /// Number of enclosing formats.
    depth: usize,
}

impl TagLowering<'_> {
    /// Reports an error.
    pub(super) fn fail<T>(&mut self, pointer: &str, reason: Reason) -> Option<T> {
        self.errors.push(StructuralTagError { pointer: pointer.to_owned(), reason });
        None
    }

    /// Lowers a format, within the limit on nesting.
    pub(super) fn format(
        &mut self,
        format: &Format,
        pointer: &str,
        enclosing: &EnclosingEnd,
    ) -> Option<Expr> {
        if self.depth >= self.limits.depth {
            let what = format!("nested deeper than {}", self.limits.depth);
            return self.fail(pointer, Reason::Limit(what));
        }
        self.depth += 1;
        let body = self.format_body(format, pointer, enclosing);
        self.depth -= 1;
        body
    }

    /// Lowers a format; nesting is checked.
    fn format_body(
        &mut self,
        format: &Format,
        pointer: &str,
        enclosing: &EnclosingEnd,
    ) -> Option<Expr> {
        match format {
            Format::ConstString { value } => Some(self.literal(value)),
            Format::JsonSchema(_) | Format::Regex { .. } | Format::Grammar { .. } => {
                self.shared_format(format, pointer)
            }
            Format::AnyText { excludes, max_tokens, max_chars } => {
                self.any_text(excludes, *max_tokens, *max_chars, pointer, enclosing)
            }
            Format::Sequence { elements } => {
                self.elements(elements, pointer, enclosing).map(Expr::seq)
            }
            Format::Or { elements } => self.elements(elements, pointer, enclosing).map(Expr::alt),
            Format::Optional { content } => {
                self.content(content, pointer, enclosing).map(Expr::optional)
            }
            Format::Plus { content } => {
                Some(Expr::repeat(self.content(content, pointer, enclosing)?, 1, None))
            }
            Format::Star { content } => self.content(content, pointer, enclosing).map(Expr::star),
            Format::Repeat { min, max, content } => {
                Some(Expr::repeat(self.content(content, pointer, enclosing)?, *min, *max))
            }
            Format::Tag(tag) => {
                let begin = self.begin(&tag.begin);
                self.tag(begin, tag, pointer)
            }
            Format::TriggeredTags { triggers, tags, excludes, count } => {
                self.triggered_tags(triggers, tags, excludes, *count, pointer, enclosing)
            }
            Format::TagsWithSeparator { tags, separator, count } => {
                self.separated_tags(tags, separator, *count, pointer)
            }
            Format::Dispatch { rules, repeats, excludes } => {
                self.dispatch(rules, *repeats, excludes, pointer, enclosing)
            }
            Format::Token(token) => Some(self.special(token.special())),
            Format::ExcludeToken { exclude_tokens } => {
                Some(self.free_token(exclude_tokens, &[], enclosing))
            }
            Format::AnyTokens { exclude_tokens, max_tokens } => {
                Some(Expr::repeat(self.free_token(exclude_tokens, &[], enclosing), 0, *max_tokens))
            }
            Format::TokenTriggeredTags { trigger_tokens, tags, exclude_tokens, count } => {
                let (triggers, excluded) = (trigger_tokens, exclude_tokens);
                self.token_triggered_tags(triggers, tags, excluded, *count, pointer, enclosing)
            }
            Format::TokenDispatch { rules, repeats, exclude_tokens } => {
                self.token_dispatch(rules, *repeats, exclude_tokens, pointer, enclosing)
            }
        }
    }

    /// Lowers the elements of a list.
    fn elements(
        &mut self,
        elements: &[Format],
        pointer: &str,
        enclosing: &EnclosingEnd,
    ) -> Option<Vec<Expr>> {
        let elements = elements.iter().enumerate();
        // Lower all elements, so that all errors are reported.
        let all: Vec<Option<Expr>> = elements
            .map(|(i, element)| self.format(element, &format!("{pointer}/elements/{i}"), enclosing))
            .collect();
        all.into_iter().collect()
    }

    /// Lowers the member `content`.
    fn content(
        &mut self,
        content: &Format,
        pointer: &str,
        enclosing: &EnclosingEnd,
    ) -> Option<Expr> {
        self.format(content, &member_pointer(pointer, "content"), enclosing)
    }

    /// Makes an expression a rule, unless it is a reference already.
    pub(super) fn as_rule(&mut self, name: &str, body: Expr) -> Expr {
        match body {
            Expr::Ref(_) => body,
            body => Expr::Ref(self.builder.rule(name, body)),
        }
    }

    /// Lowers a special token.
    pub(super) fn special(&mut self, token: SpecialToken) -> Expr {
        Expr::Special(self.builder.special(token))
    }

    /// Lowers a text. Where it contains the name of a special token, the token is accepted as well.
    pub(super) fn literal(&mut self, text: &str) -> Expr {
        let parts = self.special_tokens.parts(text);
        Expr::seq(parts.into_iter().map(|part| match part {
            TextPart::Text(text) => Expr::text(text),
            TextPart::Special(name) => {
                let token = self.special(SpecialToken::Name(name.to_owned()));
                Expr::alt([Expr::text(name), token])
            }
        }))
    }

    /// The triggers for a text in free text, each with the expression that must follow it. They are
    /// the text itself, and each special token in it, preceded by the text before the token.
    pub(super) fn triggers(&mut self, text: &str) -> Vec<(Trigger, Expr)> {
        let mut out = vec![(Trigger::new(text, None), Expr::Empty)];
        for (at, name) in self.special_tokens.find(text) {
            let special = self.builder.special(SpecialToken::Name(name.to_owned()));
            let trigger = Trigger::new(&text[..at], Some(special));
            out.push((trigger, self.literal(&text[at + name.len()..])));
        }
        out
    }

    /// Lowers a format whose meaning does not depend on the context.
    fn shared_format(&mut self, format: &Format, pointer: &str) -> Option<Expr> {
        let key = format.to_json().to_string();
        if let Some(rule) = self.shared_rules.get(&key) {
            return Some(Expr::Ref(*rule));
        }
        let rule = match format {
            Format::JsonSchema(format) => self.json_schema(format, pointer)?,
            Format::Regex { pattern } => match regex::lower(pattern, &REGEX, self.limits) {
                Ok(grammar) => self.builder.import(&grammar),
                Err(error) => {
                    return self.fail(&member_pointer(pointer, "pattern"), Reason::Regex(error));
                }
            },
            Format::Grammar { grammar, syntax } => {
                self.grammar(grammar, *syntax, &member_pointer(pointer, "grammar"))?
            }
            _ => return None,
        };
        self.shared_rules.insert(key, rule);
        Some(Expr::Ref(rule))
    }

    /// Lowers a grammar and simplifies it, as the engine does with grammars that stand alone.
    fn grammar(&mut self, text: &str, syntax: GrammarSyntax, pointer: &str) -> Option<RuleId> {
        let lowered = match syntax {
            GrammarSyntax::Ebnf(dialect) => {
                let options = EbnfOptions { dialect, ..EbnfOptions::default() };
                ebnf::lower(text, &options, self.limits)
            }
            GrammarSyntax::Lark => {
                let schema = self.options.schema;
                let options = LarkOptions { schema, ..LarkOptions::default() };
                lark::lower(text, &options, self.limits)
            }
        };
        match lowered {
            Ok(lowered) => {
                let lines = lowered.warnings.lines();
                self.warnings.extend(
                    lines.map(|message| DocumentWarning { pointer: pointer.to_owned(), message }),
                );
                let simplified = lowered.grammar.simplify();
                Some(self.builder.import(simplified.as_ref().unwrap_or(&lowered.grammar)))
            }
            Err(errors) => self.fail(pointer, Reason::Grammar(errors)),
        }
    }

    /// Lowers a schema in the style of the format.
    fn json_schema(&mut self, format: &JsonSchema, pointer: &str) -> Option<RuleId> {
        let pointer = format!("{pointer}/json_schema");
        let mut options = self.options.schema;
        if let Some(any_order) = format.any_order {
            options.order = if any_order { MemberOrder::Any } else { MemberOrder::Fixed };
        }
        if let Some(max) = format.max_whitespace {
            options.whitespace = Whitespace::Flexible { max };
        }
        let style = self.value_style(format.style, &options);
        let (builder, limits) = (&mut self.builder, self.limits);
        let lowered =
            json_schema::lower_strict_into(builder, &format.schema, &options, limits, &style);
        match lowered {
            Ok(rule) => {
                let warnings = json_schema::warnings(&format.schema).into_iter();
                self.warnings.extend(warnings.map(|warning| warning.below(&pointer)));
                Some(rule)
            }
            Err(SchemaErrors(errors)) => {
                for error in errors {
                    let pointer = format!("{pointer}{}", error.pointer);
                    self.fail::<()>(&pointer, Reason::Schema(error.reason));
                }
                None
            }
        }
    }

    /// Lowers the beginning of a tag.
    pub(super) fn begin(&mut self, begin: &Begin) -> Expr {
        match begin {
            Begin::Text(text) => self.literal(text),
            Begin::Token(token) => self.special(token.special()),
        }
    }

    /// Lowers a tag. `begin` is its beginning, or the rest of it after a trigger.
    pub(super) fn tag(&mut self, begin: Expr, tag: &Tag, pointer: &str) -> Option<Expr> {
        let mut enclosing = EnclosingEnd::default();
        let ends: &[String] = match &tag.end {
            End::Text(end) => std::slice::from_ref(end),
            End::Texts(ends) => ends,
            End::Token(token) => {
                enclosing.token = Some(token.special());
                &[]
            }
        };
        let pointer_to_end = member_pointer(pointer, "end");
        if let (2.., Some(i)) = (ends.len(), ends.iter().position(String::is_empty)) {
            let what = "must not be empty beside other texts: free text before it has no end";
            return self.fail(&format!("{pointer_to_end}/{i}"), Reason::Malformed(what.into()));
        }
        enclosing.ends = ends.iter().filter(|end| !end.is_empty()).cloned().collect();
        let whole = enclosing.ends.len() == ends.len();
        let contains_any = |ends: &[String], excludes: &[String]| {
            let search = TextSearch::new(excludes);
            ends.iter().any(|end| search.find(end.as_bytes()).is_some())
        };
        if let Format::AnyText { excludes, max_tokens: None, max_chars: None } = &tag.content
            && enclosing.token.is_none()
            && whole
            && !contains_any(&enclosing.ends, excludes)
        {
            self.check_dispatch_bytes(
                enclosing.ends.iter().chain(excludes).map(String::len),
                pointer,
            )?;
            let rest = self.text_until(&enclosing.ends, excludes);
            return Some(Expr::seq([begin, rest]));
        }
        let content = self.content(&tag.content, pointer, &enclosing)?;
        if !ends.is_empty() && enclosing.ends.is_empty() && is_open_ended(&tag.content) {
            let what = "the tag needs an end text, because its content has no end of its own";
            return self.fail(&pointer_to_end, Reason::Contradictory(what.into()));
        }
        let end = match &enclosing.token {
            Some(token) => self.special(token.clone()),
            None => Expr::alt(ends.iter().map(|end| self.literal(end)).collect::<Vec<_>>()),
        };
        Some(Expr::seq([begin, content, end]))
    }

    /// Lowers each tag with its pointer. Lowers all tags, so that all errors are reported; `None`
    /// if there are any.
    pub(super) fn each_tag<'t, T>(
        &mut self,
        tags: &'t [Tag],
        pointer: &str,
        mut lower: impl FnMut(&mut Self, &'t Tag, &str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let each = |(i, tag)| lower(self, tag, &format!("{pointer}/tags/{i}"));
        let all: Vec<Option<T>> = tags.iter().enumerate().map(each).collect();
        all.into_iter().collect()
    }

    /// Lowers tags between which a separator stands.
    fn separated_tags(
        &mut self,
        tags: &[Tag],
        separator: &str,
        count: TagCount,
        pointer: &str,
    ) -> Option<Expr> {
        let tags = self.tags(tags, pointer)?;
        let tag = self.as_rule("tag", Expr::alt(tags));
        let further_tags = Expr::star(Expr::seq([self.literal(separator), tag.clone()]));
        Some(match count {
            TagCount::Any => Expr::optional(Expr::seq([tag, further_tags])),
            TagCount::AtLeastOne => Expr::seq([tag, further_tags]),
            TagCount::AtMostOne => Expr::optional(tag),
            TagCount::One => tag,
        })
    }

    /// Lowers a list of tags.
    fn tags(&mut self, tags: &[Tag], pointer: &str) -> Option<Vec<Expr>> {
        self.each_tag(tags, pointer, |this, tag, pointer| {
            let begin = this.begin(&tag.begin);
            this.tag(begin, tag, pointer)
        })
    }
}

/// Whether a format has no end of its own, so that an enclosing tag needs a text to end it.
fn is_open_ended(format: &Format) -> bool {
    match format {
        Format::AnyText { excludes, max_tokens, max_chars } => {
            excludes.is_empty() && max_tokens.is_none() && max_chars.is_none()
        }
        Format::TriggeredTags { excludes, count, .. } => {
            excludes.is_empty() && *count != TagCount::One
        }
        Format::Dispatch { excludes, .. } => excludes.is_empty(),
        Format::AnyTokens { exclude_tokens, max_tokens } => {
            exclude_tokens.is_empty() && max_tokens.is_none()
        }
        Format::TokenTriggeredTags { count, .. } => *count != TagCount::One,
        Format::TokenDispatch { .. } => true,
        Format::Sequence { elements } => elements.last().is_some_and(is_open_ended),
        Format::Or { elements } => elements.iter().any(is_open_ended),
        Format::Optional { content }
        | Format::Plus { content }
        | Format::Star { content }
        | Format::Repeat { content, .. } => is_open_ended(content),
        _ => false,
    }
}
