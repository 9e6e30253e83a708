//! Lowers free text, and the tags and formats that begin with a trigger in it.

use std::collections::BTreeSet;

use super::StructuralTagErrorReason as Reason;
use super::lower::{EnclosingEnd, TagLowering};
use super::model::{Begin, Format, Tag, TagCount};
use super::read::member_pointer;
use crate::front::regex::{SCALARS, spell_utf8};
use crate::front::text_search::TextSearch;
use crate::fsm::ByteSet;
use crate::hash::HashSet;
use crate::ids::RuleId;
use crate::ir::{AfterTag, Budget, BudgetPolicy, Dispatch, DispatchEnd, Expr, Trigger};

impl TagLowering<'_> {
    /// Lowers free text.
    pub(super) fn any_text(
        &mut self,
        excludes: &[String],
        tokens: Option<u32>,
        chars: Option<u32>,
        pointer: &str,
        enclosing: &EnclosingEnd,
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
                Some(Budget { tokens, chars, on_exhausted: BudgetPolicy::Cut });
        }
        Some(Expr::Ref(rule))
    }

    /// Reports triggers and excluded texts that exceed the limit on their total length.
    pub(super) fn check_dispatch_bytes(
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

    /// Lowers free text up to and including the first of the ends.
    pub(super) fn text_until(&mut self, ends: &[String], excludes: &[String]) -> Expr {
        let ends: Vec<_> = ends.iter().flat_map(|end| self.triggers(end)).collect();
        let excludes = excludes.iter().map(|text| text.clone().into_bytes()).collect();
        let text = Dispatch::until_ends(ends, excludes, |rest| self.builder.rule("end", rest));
        Expr::Ref(self.builder.rule("text", text.into()))
    }

    /// Lowers free text with tags that begin with a trigger.
    pub(super) fn triggered_tags(
        &mut self,
        triggers: &[String],
        tags: &[Tag],
        excludes: &[String],
        count: TagCount,
        pointer: &str,
        enclosing: &EnclosingEnd,
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
                .filter(|(trigger, _)| trigger.text().is_none()),
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

    /// Reports triggers that can never match, because they contain an excluded text.
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
                let what = format!(
                    "trigger {trigger:?} can never match, because it contains the excluded text \
                     {text:?}"
                );
                self.fail::<()>(&format!("{at}/{name}/{i}"), Reason::Contradictory(what));
            }
        }
        (self.errors.len() == before).then_some(())
    }

    /// Lowers the format `dispatch`.
    pub(super) fn dispatch(
        &mut self,
        rules: &[(String, Format)],
        repeats: bool,
        excludes: &[String],
        pointer: &str,
        enclosing: &EnclosingEnd,
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
    Dispatch { tags, stops: Vec::new(), excludes, after, end: DispatchEnd::Anywhere }.into()
}

/// The texts that free text excludes: its own, and the ends of the enclosing tag.
fn excluded(excludes: &[String], enclosing: &EnclosingEnd) -> Vec<Vec<u8>> {
    let mut seen: HashSet<&str> = HashSet::default();
    let texts = excludes.iter().chain(&enclosing.ends).filter(|text| seen.insert(text));
    texts.map(|text| text.clone().into_bytes()).collect()
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
