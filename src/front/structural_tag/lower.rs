//! Formats to expressions.

use std::collections::BTreeSet;

use super::model::{
    Begin, End, Format, GrammarSyntax, JsonSchema, StructuralTag, Style, Tag, TagCount,
};
use super::read::below;
use super::{
    StructuralTagError, StructuralTagErrorReason as Reason, StructuralTagErrors,
    StructuralTagOptions, styles,
};
use crate::front::diagnostic::Diagnostics;
use crate::front::ebnf::{self, Dialect, EbnfOptions};
use crate::front::json_schema::{self, MemberOrder, SchemaErrors, Whitespace};
use crate::front::lark::{self, LarkOptions};
use crate::front::regex::{self, Classes, Dot, RegexOptions, SCALARS, spell_utf8};
use crate::front::within::Within;
use crate::front::{Lowered, structural_tag::tokens};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::ids::RuleId;
use crate::ir::{
    AfterTag, Budget, Dispatch, DispatchEnd, Expr, GrammarBuilder, SpecialToken, Spent, Trigger,
};
use crate::limits::Limits;

/// How the format reads regular expressions: as a whole, `.` is any character, classes are ASCII.
const REGEX: RegexOptions = RegexOptions {
    scope: regex::Scope::Match,
    look_around: regex::LookAround::Allowed,
    classes: Classes::Ascii,
    case: regex::Case::Sensitive,
    dot: Dot::Any,
};

impl StructuralTag {
    /// The grammar of the texts it allows. All errors are reported. Cost: linear, but for the schemas and regular expressions inside.
    pub fn lower(
        &self,
        options: &StructuralTagOptions,
        limits: &Limits,
    ) -> Result<Lowered, StructuralTagErrors> {
        let mut lowering = Lowering {
            builder: GrammarBuilder::new(),
            options,
            limits,
            errors: Vec::new(),
            literals: Literals::new(&options.special_tokens),
            known: HashMap::default(),
            depth: 0,
        };
        let body = lowering.format(&self.format, "/format", &Around::default());
        if let Err(out) = fuel::check() {
            let reason = Reason::Limit(out.to_string());
            lowering.errors.push(StructuralTagError { pointer: "/format".into(), reason });
        }
        let Some(body) = body.filter(|_| lowering.errors.is_empty()) else {
            return Err(StructuralTagErrors(lowering.errors));
        };
        let start = lowering.builder.rule("structural-tag", body);
        let grammar = lowering.builder.finish(start).map_err(|error| {
            let reason = Reason::Limit(error.to_string());
            StructuralTagErrors(vec![StructuralTagError { pointer: "/format".into(), reason }])
        })?;
        Ok(Lowered { grammar, warnings: Diagnostics::new("structural tag", "") })
    }
}

/// What ends the nearest tag around a format.
#[derive(Clone, Default)]
pub(super) struct Around {
    /// Texts; free text inside contains none of them.
    pub(super) ends: Vec<String>,
    /// A token; free tokens inside are not it.
    pub(super) token: Option<SpecialToken>,
}

pub(super) struct Lowering<'a> {
    pub(super) builder: GrammarBuilder,
    pub(super) options: &'a StructuralTagOptions,
    pub(super) limits: &'a Limits,
    errors: Vec<StructuralTagError>,
    literals: Literals,
    /// Rules of schemas, expressions and grammars by their text: nothing around them changes what they mean.
    known: HashMap<String, RuleId>,
    /// How many formats there are around.
    depth: usize,
}

impl Lowering<'_> {
    pub(super) fn fail<T>(&mut self, pointer: &str, reason: Reason) -> Option<T> {
        self.errors.push(StructuralTagError { pointer: pointer.to_owned(), reason });
        None
    }

    pub(super) fn format(
        &mut self,
        format: &Format,
        pointer: &str,
        around: &Around,
    ) -> Option<Expr> {
        if self.depth >= self.limits.depth {
            let what = format!("nested deeper than {}", self.limits.depth);
            return self.fail(pointer, Reason::Limit(what));
        }
        self.depth += 1;
        let body = self.body(format, pointer, around);
        self.depth -= 1;
        body
    }

    fn body(&mut self, format: &Format, pointer: &str, around: &Around) -> Option<Expr> {
        match format {
            Format::ConstString { value } => Some(self.literal(value)),
            Format::JsonSchema(_) | Format::Regex { .. } | Format::Grammar { .. } => {
                self.closed(format, pointer)
            }
            Format::AnyText { excludes, max_tokens, max_chars } => {
                self.any_text(excludes, (*max_tokens, *max_chars), (pointer, around))
            }
            Format::Sequence { elements } => {
                self.elements(elements, pointer, around).map(Expr::seq)
            }
            Format::Or { elements } => self.elements(elements, pointer, around).map(Expr::alt),
            Format::Optional { content } => {
                self.content(content, pointer, around).map(Expr::optional)
            }
            Format::Plus { content } => {
                Some(Expr::repeat(self.content(content, pointer, around)?, 1, None))
            }
            Format::Star { content } => self.content(content, pointer, around).map(Expr::star),
            Format::Repeat { min, max, content } => {
                Some(Expr::repeat(self.content(content, pointer, around)?, *min, *max))
            }
            Format::Tag(tag) => {
                let begin = self.begin(&tag.begin);
                self.tag(begin, tag, pointer)
            }
            Format::TriggeredTags { triggers, tags, excludes, count } => {
                self.triggered_tags((triggers, tags), excludes, *count, (pointer, around))
            }
            Format::TagsWithSeparator { tags, separator, count } => {
                let tags = self.tags(tags, pointer)?;
                let tag = self.shared("tag", Expr::alt(tags));
                let more = Expr::star(Expr::seq([self.literal(separator), tag.clone()]));
                Some(match count {
                    TagCount::Any => Expr::optional(Expr::seq([tag, more])),
                    TagCount::AtLeastOne => Expr::seq([tag, more]),
                    TagCount::AtMostOne => Expr::optional(tag),
                    TagCount::One => tag,
                })
            }
            Format::Dispatch { rules, repeats, excludes } => {
                self.dispatch(rules, *repeats, excludes, (pointer, around))
            }
            Format::Token(token) => Some(self.special(tokens::special(token))),
            Format::ExcludeToken { exclude_tokens } => {
                Some(self.free_token(exclude_tokens, &[], around))
            }
            Format::AnyTokens { exclude_tokens, max_tokens } => {
                Some(Expr::repeat(self.free_token(exclude_tokens, &[], around), 0, *max_tokens))
            }
            Format::TokenTriggeredTags { trigger_tokens, tags, exclude_tokens, count } => self
                .token_triggered_tags(
                    (trigger_tokens, tags),
                    exclude_tokens,
                    *count,
                    (pointer, around),
                ),
            Format::TokenDispatch { rules, repeats, exclude_tokens } => {
                self.token_dispatch(rules, *repeats, exclude_tokens, (pointer, around))
            }
        }
    }

    fn elements(
        &mut self,
        elements: &[Format],
        pointer: &str,
        around: &Around,
    ) -> Option<Vec<Expr>> {
        let elements = elements.iter().enumerate();
        // All of them, so that all errors are found.
        let all: Vec<Option<Expr>> = elements
            .map(|(i, element)| self.format(element, &format!("{pointer}/elements/{i}"), around))
            .collect();
        all.into_iter().collect()
    }

    fn content(&mut self, content: &Format, pointer: &str, around: &Around) -> Option<Expr> {
        self.format(content, &below(pointer, "content"), around)
    }

    /// A rule of its own, if it is not one anyway.
    pub(super) fn shared(&mut self, name: &str, body: Expr) -> Expr {
        match body {
            Expr::Ref(_) => body,
            body => Expr::Ref(self.builder.rule(name, body)),
        }
    }

    pub(super) fn special(&mut self, token: SpecialToken) -> Expr {
        Expr::Special(self.builder.special(token))
    }

    /// A text; special tokens in it as themselves too.
    pub(super) fn literal(&mut self, text: &str) -> Expr {
        let pieces = self.literals.pieces(text);
        Expr::seq(pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => Expr::text(text),
            Piece::Special(name) => {
                let token = self.special(SpecialToken::Name(name.to_owned()));
                Expr::alt([Expr::text(name), token])
            }
        }))
    }

    /// What free text is watched for, and what must follow it then: the text; and each special token in it, behind what comes before
    /// it as text.
    pub(super) fn triggers(&mut self, text: &str) -> Vec<(Trigger, Expr)> {
        let mut out = vec![(Trigger::Text(text.as_bytes().to_vec()), Expr::Empty)];
        for (at, name) in self.literals.specials(text) {
            let special = self.builder.special(SpecialToken::Name(name.to_owned()));
            let trigger = match at {
                0 => Trigger::Special(special),
                _ => Trigger::Led(text.as_bytes()[..at].to_vec(), special),
            };
            out.push((trigger, self.literal(&text[at + name.len()..])));
        }
        out
    }

    /// Formats that mean the same everywhere.
    fn closed(&mut self, format: &Format, pointer: &str) -> Option<Expr> {
        let key = format.to_json().to_string();
        if let Some(known) = self.known.get(&key) {
            return Some(Expr::Ref(*known));
        }
        let rule = match format {
            Format::JsonSchema(format) => self.json_schema(format, pointer)?,
            Format::Regex { pattern } => match regex::lower(pattern, &REGEX, self.limits) {
                Ok(grammar) => self.builder.import(&grammar),
                Err(error) => return self.fail(&below(pointer, "pattern"), Reason::Regex(error)),
            },
            Format::Grammar { grammar, syntax } => {
                let lowered = match syntax {
                    GrammarSyntax::Ebnf => {
                        let options =
                            EbnfOptions { dialect: Dialect::Xgrammar, ..EbnfOptions::default() };
                        ebnf::lower(grammar, &options, self.limits)
                    }
                    GrammarSyntax::Lark => {
                        lark::lower(grammar, &LarkOptions::default(), self.limits)
                    }
                };
                match lowered {
                    Ok(lowered) => self.builder.import(&lowered.grammar),
                    Err(errors) => {
                        return self.fail(&below(pointer, "grammar"), Reason::Grammar(errors));
                    }
                }
            }
            _ => return None,
        };
        self.known.insert(key, rule);
        Some(Expr::Ref(rule))
    }

    fn json_schema(&mut self, format: &JsonSchema, pointer: &str) -> Option<RuleId> {
        let mut options = self.options.schema;
        if format.any_order {
            options.order = MemberOrder::Any;
        }
        if let Some(max) = format.max_whitespace {
            options.whitespace = Whitespace::Flexible { max };
        }
        let lowered = match format.style {
            Style::Json => {
                json_schema::lower_into(&mut self.builder, &format.schema, &options, self.limits)
            }
            style => styles::lower(self, style, &format.schema, &options),
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

    fn any_text(
        &mut self,
        excludes: &[String],
        (tokens, chars): (Option<u32>, Option<u32>),
        (pointer, around): (&str, &Around),
    ) -> Option<Expr> {
        if tokens == Some(0) || chars == Some(0) {
            return Some(Expr::Empty);
        }
        let excludes = excluded(excludes, around);
        self.bounded(excludes.iter().map(Vec::len), pointer)?;
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

    /// Complains of texts that are more to watch for than the limit allows.
    fn bounded(&mut self, lengths: impl IntoIterator<Item = usize>, pointer: &str) -> Option<()> {
        let most = self.limits.dispatch_bytes;
        if lengths.into_iter().sum::<usize>() <= most {
            return Some(());
        }
        self.fail(
            pointer,
            Reason::Limit(format!(
                "the texts that end or interrupt free text have more than {most} bytes"
            )),
        )
    }

    pub(super) fn begin(&mut self, begin: &Begin) -> Expr {
        match begin {
            Begin::Text(text) => self.literal(text),
            Begin::Token(token) => self.special(tokens::special(token)),
        }
    }

    /// A tag whose beginning, or what is left of it, is `begin`.
    pub(super) fn tag(&mut self, begin: Expr, tag: &Tag, pointer: &str) -> Option<Expr> {
        let mut around = Around::default();
        let ends: &[String] = match &tag.end {
            End::Text(end) => std::slice::from_ref(end),
            End::Texts(ends) => ends,
            End::Token(token) => {
                around.token = Some(tokens::special(token));
                &[]
            }
        };
        around.ends = ends.iter().filter(|end| !end.is_empty()).cloned().collect();
        let whole = around.ends.len() == ends.len();
        if let Format::AnyText { excludes, max_tokens: None, max_chars: None } = &tag.content
            && around.token.is_none()
            && whole
            && !excludes
                .iter()
                .any(|exclude| around.ends.iter().any(|end| end.contains(exclude.as_str())))
        {
            self.bounded(around.ends.iter().chain(excludes).map(String::len), pointer)?;
            let rest = self.text_until(&around.ends, excludes);
            return Some(Expr::seq([begin, rest]));
        }
        let content = self.content(&tag.content, pointer, &around)?;
        if !ends.is_empty() && around.ends.is_empty() && unbounded(&tag.content) {
            let what =
                "without a text the tag has no end: what is inside goes on as long as it likes";
            return self.fail(&below(pointer, "end"), Reason::Contradictory(what.into()));
        }
        let end = match &around.token {
            Some(token) => self.special(token.clone()),
            None => Expr::alt(ends.iter().map(|end| self.literal(end)).collect::<Vec<_>>()),
        };
        Some(Expr::seq([begin, content, end]))
    }

    /// Text up to the first of the ends, which is part of it.
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

    /// Lowers each tag at its pointer: all of them, so that all errors are found; `None` if any has one.
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

    fn tags(&mut self, tags: &[Tag], pointer: &str) -> Option<Vec<Expr>> {
        self.each_tag(tags, pointer, |this, tag, pointer| {
            let begin = this.begin(&tag.begin);
            this.tag(begin, tag, pointer)
        })
    }

    fn triggered_tags(
        &mut self,
        (triggers, tags): (&[String], &[Tag]),
        excludes: &[String],
        count: TagCount,
        (pointer, around): (&str, &Around),
    ) -> Option<Expr> {
        let known = Triggers::new(triggers);
        let bodies = self
            .each_tag(tags, pointer, |this, tag, pointer| this.triggered_tag(&known, tag, pointer));
        let mut excludes = excluded(excludes, around);
        self.bounded(
            excludes.iter().map(Vec::len).chain(triggers.iter().map(String::len)),
            pointer,
        )?;
        self.check_excludes(triggers, "triggers", &excludes, pointer)?;
        let bodies: Vec<Triggered<'_>> = bodies?;
        // Nothing follows a trigger that no tag begins with.
        let begun: HashSet<&str> = bodies.iter().map(|tag| tag.trigger).collect();
        let idle = triggers.iter().filter(|trigger| !begun.contains(trigger.as_str()));
        excludes.extend(idle.map(|trigger| trigger.clone().into_bytes()));
        let begins = bodies.iter().flat_map(|tag| [Some((tag.trigger, tag.body)), tag.across]);
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
        let across: Vec<(&str, RuleId)> = bodies.iter().filter_map(|tag| tag.across).collect();
        let mut watched = self.watched(&plain);
        // As text, they are watched for already.
        watched.extend(
            self.watched(&across)
                .into_iter()
                .filter(|(trigger, _)| !matches!(trigger, Trigger::Text(_))),
        );
        let text =
            Expr::Ref(self.builder.rule("text-and-tags", dispatch(watched, excludes, after)));
        Some(if count == TagCount::AtLeastOne { Expr::seq([whole, text]) } else { text })
    }

    /// The one trigger a tag begins with, and the rule of the rest.
    fn triggered_tag<'t>(
        &mut self,
        triggers: &Triggers<'t>,
        tag: &'t Tag,
        pointer: &str,
    ) -> Option<Triggered<'t>> {
        let at = below(pointer, "begin");
        let Begin::Text(begin) = &tag.begin else {
            let what = "must be a text: it begins with one of the triggers";
            return self.fail(&at, Reason::Malformed(what.into()));
        };
        let mut found = triggers.before(begin);
        let first = match (found.next(), found.next()) {
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
        let specials = self.literals.specials(begin);
        let across = match specials
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
        Some(Triggered { trigger: first, body, across })
    }

    /// Triggers with what follows them, as a dispatch has them.
    fn watched(&mut self, bodies: &[(&str, RuleId)]) -> Vec<(Trigger, RuleId)> {
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

    /// Complains of triggers that cannot be read to their end.
    fn check_excludes(
        &mut self,
        triggers: &[String],
        name: &str,
        excludes: &[Vec<u8>],
        at: &str,
    ) -> Option<()> {
        let before = self.errors.len();
        let (whole, within): (HashSet<&[u8]>, _) =
            (excludes.iter().map(|e| &e[..]).collect(), Within::new(excludes));
        for (i, trigger) in triggers.iter().enumerate() {
            let bytes = trigger.as_bytes();
            let inside = within.find(&bytes[..bytes.len() - 1]).map(|found| &excludes[found][..]);
            if let Some(text) = inside.or_else(|| whole.get(bytes).copied()) {
                let text = String::from_utf8_lossy(text);
                let what =
                    format!("{trigger:?} never comes: the text before it may not contain {text:?}");
                self.fail::<()>(&format!("{at}/{name}/{i}"), Reason::Contradictory(what));
            }
        }
        (self.errors.len() == before).then_some(())
    }

    fn dispatch(
        &mut self,
        rules: &[(String, Format)],
        repeats: bool,
        excludes: &[String],
        (pointer, around): (&str, &Around),
    ) -> Option<Expr> {
        let mut all = Vec::with_capacity(rules.len());
        for (i, (pattern, format)) in rules.iter().enumerate() {
            let body = self.format(format, &format!("{pointer}/rules/{i}/1"), around);
            all.push(body.map(|body| {
                (pattern.as_str(), self.builder.rule(format!("behind {pattern}"), body))
            }));
        }
        let excludes = excluded(excludes, &Around::default());
        let patterns: Vec<String> = rules.iter().map(|(pattern, _)| pattern.clone()).collect();
        self.bounded(
            excludes.iter().map(Vec::len).chain(patterns.iter().map(String::len)),
            pointer,
        )?;
        self.check_excludes(&patterns, "rules", &excludes, pointer)?;
        let bodies = all.into_iter().collect::<Option<Vec<_>>>()?;
        let after = if repeats { AfterTag::Loop } else { AfterTag::End };
        let watched = self.watched(&bodies);
        Some(Expr::Ref(self.builder.rule("dispatch", dispatch(watched, excludes, after))))
    }
}

/// Free text that may end anywhere.
fn dispatch(tags: Vec<(Trigger, RuleId)>, excludes: Vec<Vec<u8>>, after: AfterTag) -> Expr {
    let dispatch =
        Dispatch { tags, stops: Vec::new(), excludes, after, end: DispatchEnd::Anywhere };
    Expr::Dispatch(Box::new(dispatch))
}

/// What free text does not contain: its own excludes and what ends the tag around it.
fn excluded(excludes: &[String], around: &Around) -> Vec<Vec<u8>> {
    let mut seen: HashSet<&str> = HashSet::default();
    let texts = excludes.iter().chain(&around.ends).filter(|text| seen.insert(text));
    texts.map(|text| text.clone().into_bytes()).collect()
}

/// Whether nothing inside says where it ends.
fn unbounded(format: &Format) -> bool {
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
        Format::Sequence { elements } => elements.last().is_some_and(unbounded),
        Format::Or { elements } => elements.iter().any(unbounded),
        Format::Optional { content }
        | Format::Plus { content }
        | Format::Star { content }
        | Format::Repeat { content, .. } => unbounded(content),
        _ => false,
    }
}

/// Triggers, to be found by what begins with them.
struct Triggers<'t> {
    known: HashSet<&'t str>,
    /// Sorted.
    lengths: BTreeSet<usize>,
}

impl<'t> Triggers<'t> {
    fn new(triggers: &'t [String]) -> Triggers<'t> {
        let known = triggers.iter().map(String::as_str).collect();
        Triggers { known, lengths: triggers.iter().map(String::len).collect() }
    }

    /// Those that a text begins with, shortest first.
    fn before(&self, text: &str) -> impl Iterator<Item = &'t str> {
        self.lengths.iter().filter_map(|&len| self.known.get(text.get(..len)?).copied())
    }
}

/// A tag that is triggered.
struct Triggered<'t> {
    trigger: &'t str,
    /// What follows the trigger.
    body: RuleId,
    /// Where the trigger ends inside of a special token's name: the tag's beginning up to behind the token, and what follows that.
    across: Option<(&'t str, RuleId)>,
}

/// A piece of a marker.
enum Piece<'t> {
    Text(&'t str),
    Special(&'t str),
}

/// Finds special tokens in markers.
struct Literals(Option<aho_corasick::AhoCorasick>);

impl Literals {
    fn new(names: &[String]) -> Literals {
        let names: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
        let kind = aho_corasick::MatchKind::LeftmostLongest;
        // The longest names win. Too many to build an automaton of are not looked for.
        Literals(
            (!names.is_empty())
                .then(|| aho_corasick::AhoCorasick::builder().match_kind(kind).build(names).ok())
                .flatten(),
        )
    }

    /// Special tokens and where they are.
    fn specials<'t>(&self, text: &'t str) -> Vec<(usize, &'t str)> {
        let found = self.0.iter().flat_map(|names| names.find_iter(text));
        found.map(|found| (found.start(), &text[found.range()])).collect()
    }

    fn pieces<'t>(&self, text: &'t str) -> Vec<Piece<'t>> {
        let mut out = Vec::new();
        let mut at = 0;
        for (from, name) in self.specials(text) {
            if from > at {
                out.push(Piece::Text(&text[at..from]));
            }
            out.push(Piece::Special(name));
            at = from + name.len();
        }
        if at < text.len() {
            out.push(Piece::Text(&text[at..]));
        }
        out
    }
}
