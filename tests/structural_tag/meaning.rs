//! Reference semantics of structural tags: a naive interpreter of formats. On all short texts, the
//! lowered grammar must accept exactly what the interpreter accepts.

use std::collections::BTreeSet;
use std::sync::Arc;

use louver::compile::{CompileError, Compiled};
use louver::front::structural_tag::{
    Begin, End, Format, StructuralTag, StructuralTagOptions, Tag, TagCount,
};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::property::config;

/// Maximum length of the texts compared.
const MAX_LENGTH: usize = 6;
/// The alphabet of the texts.
const LETTERS: &[u8] = b"abc";

/// Words of `least` to two letters.
fn word(least: usize) -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('a'), Just('b'), Just('c')], least..3)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Random tag counts.
fn count() -> impl Strategy<Value = TagCount> {
    prop_oneof![
        2 => Just(TagCount::Any),
        1 => Just(TagCount::AtLeastOne),
        1 => Just(TagCount::AtMostOne),
        1 => Just(TagCount::One)
    ]
}

/// Removes words that contain, or are contained in, an earlier word.
fn substring_free(words: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words {
        if !out.iter().any(|earlier| earlier.contains(&word) || word.contains(earlier.as_str())) {
            out.push(word);
        }
    }
    out
}

/// Random free text.
fn any_text() -> impl Strategy<Value = Format> {
    (vec(word(1), 0..3), proptest::option::weighted(0.2, 0u32..3)).prop_map(|(excludes, chars)| {
        // With excludes, the matcher enforces the budget rather than the grammar.
        let max_chars = chars.filter(|&chars| chars == 0 || excludes.is_empty());
        Format::AnyText { excludes, max_tokens: None, max_chars }
    })
}

/// Random formats.
pub(crate) fn format() -> impl Strategy<Value = Format> {
    let leaf =
        prop_oneof![3 => word(0).prop_map(|value| Format::ConstString { value }), 2 => any_text()];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let content = || inner.clone().prop_map(Box::new);
        let tag =
            (word(0), inner.clone(), vec(word(1), 1..3)).prop_map(|(begin, content, ends)| {
                let end = End::Texts(substring_free(ends));
                Tag { begin: Begin::Text(begin), content, end }
            });
        let tag = tag.boxed();
        let rules = vec((word(1), inner.clone()), 1..3).prop_map(|rules| {
            let patterns =
                substring_free(rules.iter().map(|(pattern, _)| pattern.clone()).collect());
            rules.into_iter().filter(|(pattern, _)| patterns.contains(pattern)).collect::<Vec<_>>()
        });
        prop_oneof![
            2 => vec(inner.clone(), 1..3).prop_map(|elements| Format::Sequence { elements }),
            1 => vec(inner.clone(), 1..3).prop_map(|elements| Format::Or { elements }),
            1 => content().prop_map(|content| Format::Optional { content }),
            1 => content().prop_map(|content| Format::Plus { content }),
            1 => content().prop_map(|content| Format::Star { content }),
            1 => (0u32..3, proptest::option::of(0u32..2), content()).prop_map(
                |(min, more, content)| {
                    Format::Repeat { min, max: more.map(|more| min + more), content }
                },
            ),
            3 => tag.clone().prop_map(|tag| Format::Tag(Box::new(tag))),
            3 => (
                vec(word(1), 1..3),
                vec((tag.clone(), word(0)), 1..3),
                vec(word(1), 0..2),
                count(),
            ).prop_map(triggered),
            1 => (vec(tag, 1..3), word(0), count())
                .prop_map(|(tags, separator, count)| {
                    Format::TagsWithSeparator { tags, separator, count }
                }),
            1 => (rules, any::<bool>(), vec(word(1), 0..2))
                .prop_map(|(rules, repeats, excludes)| {
                    Format::Dispatch { rules, repeats, excludes }
                }),
        ]
    })
}

/// Makes triggered tags whose beginnings start with a trigger.
fn triggered(
    (triggers, tags, excludes, count): (Vec<String>, Vec<(Tag, String)>, Vec<String>, TagCount),
) -> Format {
    let triggers = substring_free(triggers);
    let tags = tags.into_iter().enumerate().map(|(i, (tag, rest))| {
        let begin = format!("{}{rest}", triggers[i % triggers.len()]);
        Tag { begin: Begin::Text(begin), ..tag }
    });
    Format::TriggeredTags { tags: tags.collect(), triggers, excludes, count }
}

/// Positions at which a format may end.
type Ends = BTreeSet<usize>;

/// The positions at which a format that begins at `from` may end. `enclosing`: the ends of the
/// innermost enclosing tag.
fn ends(format: &Format, text: &str, from: usize, enclosing: &[String]) -> Ends {
    match format {
        Format::ConstString { value } => constant(value, text, from),
        Format::AnyText { excludes, max_chars, .. } => {
            let most = max_chars.map_or(text.len(), |most| most as usize);
            let excludes: Vec<&str> =
                excludes.iter().chain(enclosing).map(String::as_str).collect();
            let free = |to: &usize| {
                to - from <= most && !excludes.iter().any(|e| text[from..*to].contains(e))
            };
            (from..=text.len()).filter(free).collect()
        }
        Format::Sequence { elements } => elements.iter().fold(Ends::from([from]), |at, element| {
            each(&at, |from| ends(element, text, from, enclosing))
        }),
        Format::Or { elements } => {
            elements.iter().flat_map(|element| ends(element, text, from, enclosing)).collect()
        }
        Format::Optional { content } => repeated(content, text, from, enclosing, (0, Some(1))),
        Format::Plus { content } => repeated(content, text, from, enclosing, (1, None)),
        Format::Star { content } => repeated(content, text, from, enclosing, (0, None)),
        Format::Repeat { min, max, content } => {
            repeated(content, text, from, enclosing, (*min, *max))
        }
        Format::Tag(tag) => whole_tag(tag, text, from),
        Format::TagsWithSeparator { tags, separator, count } => {
            let tag = |from: usize| {
                tags.iter().flat_map(|tag| whole_tag(tag, text, from)).collect::<Ends>()
            };
            let mut out = if count.at_least_one() { Ends::new() } else { Ends::from([from]) };
            let mut at = tag(from);
            while !at.is_subset(&out) {
                out.extend(&at);
                let after = each(&at, |from| constant(separator, text, from));
                at = if count.stop_after_first() { Ends::new() } else { each(&after, tag) };
            }
            // The first tag counts even if it is empty.
            out.extend(tag(from));
            out
        }
        Format::TriggeredTags { triggers, tags, excludes, count } => {
            let body = |trigger: &str, from: usize| {
                let tags = tags.iter().filter(|tag| begin(tag).starts_with(trigger));
                tags.flat_map(|tag| tag_rest(tag, &begin(tag)[trigger.len()..], text, from))
                    .collect::<Ends>()
            };
            let excludes: Vec<String> = excludes.iter().chain(enclosing).cloned().collect();
            let first: Ends = tags.iter().flat_map(|tag| whole_tag(tag, text, from)).collect();
            match count {
                TagCount::One => first,
                TagCount::AtLeastOne => {
                    each(&first, |at| free_text_ends(text, at, triggers, &excludes, true, &body))
                }
                TagCount::Any => free_text_ends(text, from, triggers, &excludes, true, &body),
                TagCount::AtMostOne => {
                    free_text_ends(text, from, triggers, &excludes, false, &body)
                }
            }
        }
        Format::Dispatch { rules, repeats, excludes } => {
            let patterns: Vec<String> = rules.iter().map(|(pattern, _)| pattern.clone()).collect();
            let body = |pattern: &str, from: usize| {
                let rules = rules.iter().filter(|(p, _)| p == pattern);
                rules.flat_map(|(_, format)| ends(format, text, from, enclosing)).collect::<Ends>()
            };
            free_text_ends(text, from, &patterns, excludes, *repeats, &body)
        }
        other => panic!("{} is not supported by the reference", other.kind()),
    }
}

/// The positions at which free text with triggers may end.
fn free_text_ends(
    text: &str,
    from: usize,
    triggers: &[String],
    excludes: &[String],
    repeats: bool,
    body: &dyn Fn(&str, usize) -> Ends,
) -> Ends {
    let (mut out, mut starts, mut done) = (Ends::new(), vec![from], Ends::new());
    while let Some(start) = starts.pop() {
        if !done.insert(start) {
            continue;
        }
        for to in start..=text.len() {
            let free = &text[start..to];
            let fired = triggers.iter().find(|trigger| free.ends_with(trigger.as_str()));
            let excluded = excludes.iter().any(|e| {
                free.ends_with(e.as_str()) && fired.is_none_or(|trigger| trigger.len() < e.len())
            });
            if excluded {
                break;
            }
            let Some(trigger) = fired else {
                out.insert(to);
                continue;
            };
            let after = body(trigger, to);
            match repeats {
                true => starts.extend(after),
                false => out.extend(after),
            }
            break;
        }
    }
    out
}

/// The end of a fixed text, if it occurs at `from`.
fn constant(value: &str, text: &str, from: usize) -> Ends {
    text[from..].starts_with(value).then_some(from + value.len()).into_iter().collect()
}

/// The union of the ends from several positions.
fn each(at: &Ends, mut next: impl FnMut(usize) -> Ends) -> Ends {
    at.iter().flat_map(|&from| next(from)).collect()
}

/// The ends of a repeat.
fn repeated(
    content: &Format,
    text: &str,
    from: usize,
    enclosing: &[String],
    (min, max): (u32, Option<u32>),
) -> Ends {
    let mut at = Ends::from([from]);
    let mut out = if min == 0 { at.clone() } else { Ends::new() };
    for times in 1..=max.unwrap_or(MAX_LENGTH as u32 + 3) {
        at = each(&at, |from| ends(content, text, from, enclosing));
        if times >= min {
            out.extend(&at);
        }
    }
    out
}

/// The beginning of a tag, which is a text.
fn begin(tag: &Tag) -> &str {
    match &tag.begin {
        Begin::Text(text) => text,
        Begin::Token(_) => panic!("no tokens here"),
    }
}

/// The ends of a tag.
fn whole_tag(tag: &Tag, text: &str, from: usize) -> Ends {
    tag_rest(tag, begin(tag), text, from)
}

/// The ends of a tag of whose beginning only `begin` remains.
fn tag_rest(tag: &Tag, begin: &str, text: &str, from: usize) -> Ends {
    let End::Texts(marks) = &tag.end else { panic!("lists here") };
    let inside = constant(begin, text, from);
    if let Format::AnyText { excludes, max_chars: None, .. } = &tag.content
        && !excludes.iter().any(|e| marks.iter().any(|mark| mark.contains(e.as_str())))
    {
        // Free text ends at the first occurrence of an end.
        return each(&inside, |from| {
            let at = |to: &usize| marks.iter().any(|mark| text[from..*to].ends_with(mark.as_str()));
            let first = (from..=text.len()).find(at);
            let fits = |to: &usize| {
                let body = &text[from..*to];
                excludes.iter().all(|e| {
                    let last = marks
                        .iter()
                        .filter(|mark| body.ends_with(mark.as_str()))
                        .map(String::len)
                        .max();
                    !body[..body.len() - 1].contains(e.as_str())
                        && (!body.ends_with(e.as_str()) || last.is_some_and(|last| last >= e.len()))
                })
            };
            first.filter(fits).into_iter().collect()
        });
    }
    let after = each(&inside, |from| ends(&tag.content, text, from, marks));
    each(&after, |from| marks.iter().flat_map(|mark| constant(mark, text, from)).collect())
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn lowered_formats_agree_with_the_reference_interpreter(format in format()) {
        let tag = StructuralTag { format };
        let lowered = tag.lower(&StructuralTagOptions::default(), &Limits::default());
        let Ok(lowered) = lowered else { return Ok(()) };
        let compiled = match Compiled::new(&lowered.grammar, &Limits::default()) {
            Ok(compiled) => Some(compiled),
            Err(CompileError::Empty { .. }) => None,
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let mut recognizer = compiled.map(|compiled| Recognizer::new(Arc::new(compiled)));
        let mut texts = vec![String::new()];
        let mut at = 0;
        while at < texts.len() {
            let text = texts[at].clone();
            at += 1;
            let want = ends(&tag.format, &text, 0, &[]).contains(&text.len());
            let got = recognizer.as_mut().is_some_and(|recognizer| {
                recognizer.reset();
                recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete()
            });
            prop_assert_eq!(got, want, "{:?} in {}", text, tag);
            if text.len() < MAX_LENGTH {
                texts.extend(LETTERS.iter().map(|&letter| format!("{text}{}", char::from(letter))));
            }
        }
    }
}
