//! Lowers the formats of structural tags to grammar expressions.

use std::collections::BTreeSet;

use super::model::{
    Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Style, Tag, TagCount,
};
use super::read::member_pointer;
use super::{
    StructuralTagError, StructuralTagErrorReason as Reason, StructuralTagErrors,
    StructuralTagOptions,
};
use crate::front::LoweredGrammar;
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::front::ebnf::{self, EbnfDialect, EbnfOptions};
use crate::front::json_schema::{self, MemberOrder, SchemaErrors, Whitespace};
use crate::front::lark::{self, LarkOptions};
use crate::front::regex::{self, Classes, Dot, RegexOptions, SCALARS, spell_utf8};
use crate::front::text_search::TextSearch;
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::ids::RuleId;
use crate::ir::{
    AfterTag, Budget, Dispatch, DispatchEnd, Expr, GrammarBuilder, SpecialToken, Spent, Trigger,
};
use crate::limits::Limits;

/// Options of regular expressions in structural tags: match as a whole, `.` is any character,
/// classes are ASCII.
const REGEX: RegexOptions = RegexOptions {
    scope: regex::Scope::Match,
    look_around: regex::LookAround::Allowed,
    classes: Classes::Ascii,
    case: regex::Case::Sensitive,
    dot: Dot::Any,
};

impl StructuralTag {
    /// Lowers the document to a grammar. Reports all errors. Cost: linear, except for the schemas
    /// and regular expressions inside.
    pub fn lower(
        &self,
        options: &StructuralTagOptions,
        limits: &Limits,
    ) -> Result<LoweredGrammar, StructuralTagErrors> {
        let limit_error = |what: String| {
            let reason = Reason::Limit(what);
            StructuralTagErrors(vec![StructuralTagError { pointer: "/format".into(), reason }])
        };
        let mut lowering = TagLowering {
            builder: GrammarBuilder::new(),
            options,
            limits,
            errors: Vec::new(),
            warnings: Diagnostics::new("structural tag", ""),
            special_tokens: SpecialTokenNames::new(&options.special_tokens)
                .map_err(|error| limit_error(format!("the names of special tokens: {error}")))?,
            shared_rules: HashMap::default(),
            depth: 0,
        };
        let body = lowering.format(&self.format, "/format", &EnclosingEnd::default());
        if let Err(out) = fuel::check() {
            let reason = Reason::Limit(out.to_string());
            lowering.errors.push(StructuralTagError { pointer: "/format".into(), reason });
        }
        let Some(body) = body.filter(|_| lowering.errors.is_empty()) else {
            return Err(StructuralTagErrors(lowering.errors));
        };
        let start = lowering.builder.rule("structural-tag", body);
        let finished = lowering.builder.finish(start);
        let grammar = finished.map_err(|error| limit_error(error.to_string()))?;
        Ok(LoweredGrammar { grammar, warnings: lowering.warnings })
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
    errors: Vec<StructuralTagError>,
    /// The warnings of grammars in the document.
    warnings: Diagnostics,
    special_tokens: SpecialTokenNames,
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
                self.any_text(excludes, (*max_tokens, *max_chars), (pointer, enclosing))
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
                self.triggered_tags((triggers, tags), excludes, *count, (pointer, enclosing))
            }
            Format::TagsWithSeparator { tags, separator, count } => {
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
            Format::Dispatch { rules, repeats, excludes } => {
                self.dispatch(rules, *repeats, excludes, (pointer, enclosing))
            }
            Format::Token(token) => Some(self.special(token.special())),
            Format::ExcludeToken { exclude_tokens } => {
                Some(self.free_token(exclude_tokens, &[], enclosing))
            }
            Format::AnyTokens { exclude_tokens, max_tokens } => {
                Some(Expr::repeat(self.free_token(exclude_tokens, &[], enclosing), 0, *max_tokens))
            }
            Format::TokenTriggeredTags { trigger_tokens, tags, exclude_tokens, count } => self
                .token_triggered_tags(
                    (trigger_tokens, tags),
                    exclude_tokens,
                    *count,
                    (pointer, enclosing),
                ),
            Format::TokenDispatch { rules, repeats, exclude_tokens } => {
                self.token_dispatch(rules, *repeats, exclude_tokens, (pointer, enclosing))
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
        let mut out = vec![(Trigger::Text(text.as_bytes().to_vec()), Expr::Empty)];
        for (at, name) in self.special_tokens.find(text) {
            let special = self.builder.special(SpecialToken::Name(name.to_owned()));
            let trigger = match at {
                0 => Trigger::Special(special),
                _ => Trigger::Led(text.as_bytes()[..at].to_vec(), special),
            };
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
                let lowered = match syntax {
                    GrammarSyntax::Ebnf => {
                        let options = EbnfOptions {
                            dialect: EbnfDialect::Xgrammar,
                            ..EbnfOptions::default()
                        };
                        ebnf::lower(grammar, &options, self.limits)
                    }
                    GrammarSyntax::Lark => {
                        let schema = self.options.schema;
                        let options = LarkOptions { schema, ..LarkOptions::default() };
                        lark::lower(grammar, &options, self.limits)
                    }
                };
                let pointer = member_pointer(pointer, "grammar");
                match lowered {
                    Ok(lowered) => {
                        self.warn(&pointer, &lowered.warnings);
                        self.builder.import(&lowered.grammar)
                    }
                    Err(errors) => return self.fail(&pointer, Reason::Grammar(errors)),
                }
            }
            _ => return None,
        };
        self.shared_rules.insert(key, rule);
        Some(Expr::Ref(rule))
    }

    /// Passes on the warnings of a grammar.
    fn warn(&mut self, pointer: &str, warnings: &Diagnostics) {
        for warning in warnings.list() {
            let (line, column) = warnings.place(warning.span.start);
            let message = format!("{pointer:?}: line {line}, column {column}: {}", warning.message);
            let help = warning.help.clone();
            self.warnings.push(Diagnostic { help, ..Diagnostic::warning(0..0, message) });
        }
    }

    /// Lowers a schema in the style of the format.
    fn json_schema(&mut self, format: &JsonSchema, pointer: &str) -> Option<RuleId> {
        let mut options = self.options.schema;
        if let Some(any_order) = format.any_order {
            options.order = if any_order { MemberOrder::Any } else { MemberOrder::Fixed };
        }
        if let Some(max) = format.max_whitespace {
            options.whitespace = Whitespace::Flexible { max };
        }
        let lowered = match format.style {
            Style::Json => {
                json_schema::lower_into(&mut self.builder, &format.schema, &options, self.limits)
            }
            style => self.styled(style, &format.schema, &options),
        };
        match lowered {
            Ok(rule) => Some(rule),
            Err(SchemaErrors(errors)) => {
                for error in errors {
                    let pointer = format!("{pointer}/json_schema{}", error.pointer);
                    self.fail::<()>(&pointer, Reason::Schema(error.reason));
                }
                None
            }
        }
    }

    /// Lowers free text.
    fn any_text(
        &mut self,
        excludes: &[String],
        (tokens, chars): (Option<u32>, Option<u32>),
        (pointer, enclosing): (&str, &EnclosingEnd),
    ) -> Option<Expr> {
        if tokens == Some(0) || chars == Some(0) {
            return Some(Expr::Empty);
        }
        let excludes = excluded(excludes, enclosing);
        self.check_dispatch_bytes(excludes.iter().map(Vec::len), pointer)?;
        if let (None, Some(chars), []) = (tokens, chars, &excludes[..]) {
            return Some(Expr::repeat(spell_utf8(&SCALARS), 0, Some(chars)));
        }
        let text = match &excludes[..] {
            [] => Expr::star(Expr::Class(ByteSet::ALL)),
            _ => dispatch(Vec::new(), excludes, AfterTag::Loop),
        };
        let rule = self.builder.rule("text", text);
        if tokens.is_some() || chars.is_some() {
            self.builder.attributes(rule).budget =
                Some(Budget { tokens, chars, spent: Spent::Cut });
        }
        Some(Expr::Ref(rule))
    }

    /// Reports triggers and excluded texts that exceed the limit on their total length.
    fn check_dispatch_bytes(
        &mut self,
        lengths: impl IntoIterator<Item = usize>,
        pointer: &str,
    ) -> Option<()> {
        let limit = self.limits.dispatch_bytes;
        if lengths.into_iter().sum::<usize>() <= limit {
            return Some(());
        }
        self.fail(
            pointer,
            Reason::Limit(format!(
                "the texts that end or interrupt free text have more than {limit} bytes"
            )),
        )
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
        if let Format::AnyText { excludes, max_tokens: None, max_chars: None } = &tag.content
            && enclosing.token.is_none()
            && whole
            && !excludes
                .iter()
                .any(|exclude| enclosing.ends.iter().any(|end| end.contains(exclude.as_str())))
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
            let what =
                "without a text the tag has no end: what is inside goes on as long as it likes";
            return self.fail(&pointer_to_end, Reason::Contradictory(what.into()));
        }
        let end = match &enclosing.token {
            Some(token) => self.special(token.clone()),
            None => Expr::alt(ends.iter().map(|end| self.literal(end)).collect::<Vec<_>>()),
        };
        Some(Expr::seq([begin, content, end]))
    }

    /// Lowers free text up to and including the first of the ends.
    fn text_until(&mut self, ends: &[String], excludes: &[String]) -> Expr {
        let (mut tags, mut stops) = (Vec::new(), Vec::new());
        for (trigger, rest) in ends.iter().flat_map(|end| self.triggers(end)).collect::<Vec<_>>() {
            match rest {
                Expr::Empty => stops.push(trigger),
                rest => tags.push((trigger, self.builder.rule("end", rest))),
            }
        }
        let excludes = excludes.iter().map(|text| text.clone().into_bytes()).collect();
        let body =
            Dispatch { tags, stops, excludes, after: AfterTag::End, end: DispatchEnd::AtStop };
        Expr::Ref(self.builder.rule("text", Expr::Dispatch(Box::new(body))))
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

    /// Lowers a list of tags.
    fn tags(&mut self, tags: &[Tag], pointer: &str) -> Option<Vec<Expr>> {
        self.each_tag(tags, pointer, |this, tag, pointer| {
            let begin = this.begin(&tag.begin);
            this.tag(begin, tag, pointer)
        })
    }

    /// Lowers free text with tags that begin with a trigger.
    fn triggered_tags(
        &mut self,
        (triggers, tags): (&[String], &[Tag]),
        excludes: &[String],
        count: TagCount,
        (pointer, enclosing): (&str, &EnclosingEnd),
    ) -> Option<Expr> {
        let trigger_index = TriggerIndex::new(triggers);
        let bodies = self.each_tag(tags, pointer, |this, tag, pointer| {
            this.triggered_tag(&trigger_index, tag, pointer)
        });
        let mut excludes = excluded(excludes, enclosing);
        self.check_dispatch_bytes(
            excludes.iter().map(Vec::len).chain(triggers.iter().map(String::len)),
            pointer,
        )?;
        self.check_excludes(triggers, "triggers", &excludes, pointer)?;
        let bodies: Vec<TriggeredTag<'_>> = bodies?;
        // A trigger with which no tag begins is an excluded text.
        let used: HashSet<&str> = bodies.iter().map(|tag| tag.trigger).collect();
        let unused = triggers.iter().filter(|trigger| !used.contains(trigger.as_str()));
        excludes.extend(unused.map(|trigger| trigger.clone().into_bytes()));
        let begins =
            bodies.iter().flat_map(|tag| [Some((tag.trigger, tag.body)), tag.across_token]);
        let whole: Vec<Expr> = begins
            .flatten()
            .map(|(begin, body)| Expr::seq([self.literal(begin), Expr::Ref(body)]))
            .collect();
        let whole = Expr::alt(whole);
        if count == TagCount::One {
            return Some(whole);
        }
        let after = if count == TagCount::AtMostOne { AfterTag::End } else { AfterTag::Loop };
        let plain: Vec<(&str, RuleId)> = bodies.iter().map(|tag| (tag.trigger, tag.body)).collect();
        let across_token: Vec<(&str, RuleId)> =
            bodies.iter().filter_map(|tag| tag.across_token).collect();
        let mut dispatch_tags = self.dispatch_tags(&plain);
        // Their texts are among the triggers already.
        dispatch_tags.extend(
            self.dispatch_tags(&across_token)
                .into_iter()
                .filter(|(trigger, _)| !matches!(trigger, Trigger::Text(_))),
        );
        let text =
            Expr::Ref(self.builder.rule("text-and-tags", dispatch(dispatch_tags, excludes, after)));
        Some(if count == TagCount::AtLeastOne { Expr::seq([whole, text]) } else { text })
    }

    /// Finds the one trigger with which a tag begins, and lowers the rest of the tag.
    fn triggered_tag<'t>(
        &mut self,
        triggers: &TriggerIndex<'t>,
        tag: &'t Tag,
        pointer: &str,
    ) -> Option<TriggeredTag<'t>> {
        let at = member_pointer(pointer, "begin");
        let Begin::Text(begin) = &tag.begin else {
            let what = "must be a text: it begins with one of the triggers";
            return self.fail(&at, Reason::Malformed(what.into()));
        };
        let mut matching = triggers.prefixes_of(begin);
        let first = match (matching.next(), matching.next()) {
            (Some(first), None) => first,
            (None, _) => {
                return self
                    .fail(&at, Reason::Contradictory("begins with none of the triggers".into()));
            }
            (Some(first), Some(second)) => {
                let what = format!("begins with more than one trigger: {first:?} and {second:?}");
                return self.fail(&at, Reason::Contradictory(what));
            }
        };
        let rest = self.literal(&begin[first.len()..]);
        let body = self.tag(rest, tag, pointer)?;
        let body = self.builder.rule(format!("tag {begin}"), body);
        let specials = self.special_tokens.find(begin);
        let across_token = match specials
            .iter()
            .find(|(at, name)| (at + 1..at + name.len()).contains(&first.len()))
        {
            Some((at, name)) => {
                let end = at + name.len();
                let rest = self.literal(&begin[end..]);
                let body = self.tag(rest, tag, pointer)?;
                Some((&begin[..end], self.builder.rule(format!("tag {begin}"), body)))
            }
            None => None,
        };
        Some(TriggeredTag { trigger: first, body, across_token })
    }

    /// The tags of a dispatch: each trigger with the rule of what follows it.
    fn dispatch_tags(&mut self, bodies: &[(&str, RuleId)]) -> Vec<(Trigger, RuleId)> {
        let mut out = Vec::new();
        for (trigger, body) in bodies {
            for (trigger, rest) in self.triggers(trigger) {
                out.push(match rest {
                    Expr::Empty => (trigger, *body),
                    rest => {
                        (trigger, self.builder.rule("rest", Expr::seq([rest, Expr::Ref(*body)])))
                    }
                });
            }
        }
        out
    }

    /// Reports triggers that contain an excluded text, and therefore never fire.
    fn check_excludes(
        &mut self,
        triggers: &[String],
        name: &str,
        excludes: &[Vec<u8>],
        at: &str,
    ) -> Option<()> {
        let before = self.errors.len();
        let (whole, within): (HashSet<&[u8]>, _) =
            (excludes.iter().map(|e| &e[..]).collect(), TextSearch::new(excludes));
        for (i, trigger) in triggers.iter().enumerate() {
            let bytes = trigger.as_bytes();
            let contained =
                within.find(&bytes[..bytes.len() - 1]).map(|index| &excludes[index][..]);
            if let Some(text) = contained.or_else(|| whole.get(bytes).copied()) {
                let text = String::from_utf8_lossy(text);
                let what =
                    format!("{trigger:?} never comes: the text before it may not contain {text:?}");
                self.fail::<()>(&format!("{at}/{name}/{i}"), Reason::Contradictory(what));
            }
        }
        (self.errors.len() == before).then_some(())
    }

    /// Lowers the format `dispatch`.
    fn dispatch(
        &mut self,
        rules: &[(String, Format)],
        repeats: bool,
        excludes: &[String],
        (pointer, enclosing): (&str, &EnclosingEnd),
    ) -> Option<Expr> {
        let mut all = Vec::with_capacity(rules.len());
        for (i, (pattern, format)) in rules.iter().enumerate() {
            let body = self.format(format, &format!("{pointer}/rules/{i}/1"), enclosing);
            all.push(body.map(|body| {
                (pattern.as_str(), self.builder.rule(format!("after {pattern}"), body))
            }));
        }
        let excludes = excluded(excludes, &EnclosingEnd::default());
        let patterns: Vec<String> = rules.iter().map(|(pattern, _)| pattern.clone()).collect();
        self.check_dispatch_bytes(
            excludes.iter().map(Vec::len).chain(patterns.iter().map(String::len)),
            pointer,
        )?;
        self.check_excludes(&patterns, "rules", &excludes, pointer)?;
        let bodies = all.into_iter().collect::<Option<Vec<_>>>()?;
        let after = if repeats { AfterTag::Loop } else { AfterTag::End };
        let dispatch_tags = self.dispatch_tags(&bodies);
        Some(Expr::Ref(self.builder.rule("dispatch", dispatch(dispatch_tags, excludes, after))))
    }
}

/// A dispatch that may end anywhere in free text.
fn dispatch(tags: Vec<(Trigger, RuleId)>, excludes: Vec<Vec<u8>>, after: AfterTag) -> Expr {
    let dispatch =
        Dispatch { tags, stops: Vec::new(), excludes, after, end: DispatchEnd::Anywhere };
    Expr::Dispatch(Box::new(dispatch))
}

/// The texts that free text excludes: its own, and the ends of the enclosing tag.
fn excluded(excludes: &[String], enclosing: &EnclosingEnd) -> Vec<Vec<u8>> {
    let mut seen: HashSet<&str> = HashSet::default();
    let texts = excludes.iter().chain(&enclosing.ends).filter(|text| seen.insert(text));
    texts.map(|text| text.clone().into_bytes()).collect()
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

/// Index of triggers, to find those with which a text begins.
struct TriggerIndex<'t> {
    triggers: HashSet<&'t str>,
    /// The distinct lengths of triggers.
    lengths: BTreeSet<usize>,
}

impl<'t> TriggerIndex<'t> {
    /// Indexes triggers.
    fn new(triggers: &'t [String]) -> TriggerIndex<'t> {
        let lengths = triggers.iter().map(String::len).collect();
        TriggerIndex { triggers: triggers.iter().map(String::as_str).collect(), lengths }
    }

    /// The triggers with which a text begins, shortest first.
    fn prefixes_of(&self, text: &str) -> impl Iterator<Item = &'t str> {
        self.lengths.iter().filter_map(|&len| self.triggers.get(text.get(..len)?).copied())
    }
}

/// A lowered tag that begins with a trigger.
struct TriggeredTag<'t> {
    trigger: &'t str,
    /// The rule after the trigger.
    body: RuleId,
    /// Set if the trigger ends inside the name of a special token. The text is the beginning of the
    /// tag up to the end of that name; the rule follows it.
    across_token: Option<(&'t str, RuleId)>,
}

/// A part of a text that may contain special tokens.
enum TextPart<'t> {
    /// Text without special tokens.
    Text(&'t str),
    /// The name of a special token.
    Special(&'t str),
}

/// Finds the names of special tokens in texts.
struct SpecialTokenNames(Option<aho_corasick::AhoCorasick>);

impl SpecialTokenNames {
    /// Builds the search for names. Errors: there are too many names for an automaton.
    fn new(names: &[String]) -> Result<SpecialTokenNames, aho_corasick::BuildError> {
        let names: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
        // The longest name wins.
        let kind = aho_corasick::MatchKind::LeftmostLongest;
        let search = || aho_corasick::AhoCorasick::builder().match_kind(kind).build(&names);
        Ok(SpecialTokenNames((!names.is_empty()).then(search).transpose()?))
    }

    /// The special tokens of a text, with their offsets.
    fn find<'t>(&self, text: &'t str) -> Vec<(usize, &'t str)> {
        let matches = self.0.iter().flat_map(|names| names.find_iter(text));
        matches.map(|found| (found.start(), &text[found.range()])).collect()
    }

    /// Splits a text at its special tokens.
    fn parts<'t>(&self, text: &'t str) -> Vec<TextPart<'t>> {
        let mut out = Vec::new();
        let mut at = 0;
        for (from, name) in self.find(text) {
            if from > at {
                out.push(TextPart::Text(&text[at..from]));
            }
            out.push(TextPart::Special(name));
            at = from + name.len();
        }
        if at < text.len() {
            out.push(TextPart::Text(&text[at..]));
        }
        out
    }
}
