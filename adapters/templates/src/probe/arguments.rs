//! The style of arguments, and where they stand in a call.

use std::ops::Range;

use louver_formats::{ArgumentStyle, FixedParts, Marker, NameStyle, Part, TagPart, TaggedStyle};
use serde_json::Value;

use super::error::{ProbeError, undetermined};
use super::samples::{KEYS, NAMES, Samples, TYPED, VALUES, one_argument};
use super::type_words::TypedValues;
use crate::units::{common_end, common_start, marker_of, units};

const PART: &str = "how arguments are written";

/// The style of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    Json,
    /// The quotation mark of strings.
    Keywords(char),
    /// The text around strings.
    Delimited(String),
    /// Tags of their own.
    Tagged,
}

impl Arguments {
    /// The style in the samples.
    pub(super) fn find(samples: &Samples) -> Result<Arguments, ProbeError> {
        let wire = &samples.one;
        let after_name = wire.find(NAMES[0]).map_or(0, |at| at + NAMES[0].len());
        if json_object(wire, after_name, &one_argument()).is_some() {
            return Ok(Arguments::Json);
        }
        if json_object(wire, 0, &one_argument()).is_some() {
            return Err(undetermined(PART, "they stand before the name of the tool"));
        }
        let rest = &wire[after_name..];
        let (Some(key), Some(value)) = (rest.find(KEYS[0]), rest.find(VALUES[0])) else {
            return Err(undetermined(PART, "a call does not have them as they were given"));
        };
        let between = rest.get(key + KEYS[0].len()..value);
        let before_key = rest[..key].chars().next_back();
        let quoted = |quote: &str, style| match rest[value + VALUES[0].len()..].starts_with(quote) {
            true => Ok(style),
            false => Err(undetermined(PART, "strings end otherwise than they begin")),
        };
        match (before_key, between) {
            (Some('('), Some("='")) => quoted("'", Arguments::Keywords('\'')),
            (Some('('), Some("=\"")) => quoted("\"", Arguments::Keywords('"')),
            (Some('{'), Some(between)) if between.starts_with(':') && between.len() > 2 => {
                quoted(&between[1..], Arguments::Delimited(between[1..].to_owned()))
            }
            (_, Some(between)) if between.ends_with(['"', '\'']) || between.is_empty() => {
                let problem = "and a description has quotes around strings in JSON and in keyword \
                               arguments alone";
                Err(undetermined(
                    PART,
                    format!("between a key and a string stands {between:?}, {problem}"),
                ))
            }
            (_, Some(_)) => Ok(Arguments::Tagged),
            (_, None) => Err(undetermined(PART, "a value stands before its key")),
        }
    }

    /// Where the arguments of a call stand, after the name of the tool. Tags are looked for from
    /// the first key to the last value: what is around them is told by [`tagged`].
    pub(super) fn span(&self, wire: &str, after_name: usize) -> Option<Range<usize>> {
        let object = one_argument();
        let text = |text: String| {
            let at = after_name + wire.get(after_name..)?.find(&text)?;
            Some(at..at + text.len())
        };
        match self {
            Arguments::Json => json_object(wire, after_name, &object),
            Arguments::Delimited(quote) => {
                text(format!("{{{}:{quote}{}{quote}}}", KEYS[0], VALUES[0]))
            }
            Arguments::Keywords(quote) => text(format!("{}={quote}{}{quote}", KEYS[0], VALUES[0])),
            Arguments::Tagged => {
                let from = after_name + wire.get(after_name..)?.find(KEYS[0])?;
                let to = from + wire[from..].find(VALUES[0])? + VALUES[0].len();
                Some(from..to)
            }
        }
    }

    /// The style as a description. For tags, `before` and `after` are the texts around the
    /// arguments of a call, and are shortened by what belongs to the arguments.
    pub(super) fn describe(
        &self,
        samples: &Samples,
        tokens: &[String],
        before: &mut String,
        after: &mut String,
    ) -> Result<ArgumentStyle, ProbeError> {
        match self {
            Arguments::Json => Ok(ArgumentStyle::Json),
            Arguments::Keywords(_) => {
                let has_true = |wire: &String| wire.contains("=true");
                let wires = TYPED.iter().zip(&samples.typed);
                let mut truths = wires.filter(|(sample, _)| sample.kind == "boolean");
                Ok(match truths.any(|(_, wire)| wire.as_ref().is_some_and(has_true)) {
                    true => ArgumentStyle::JsonKeywords,
                    false => ArgumentStyle::Keywords,
                })
            }
            Arguments::Delimited(quote) => Ok(ArgumentStyle::Delimited(marker_of(quote))),
            Arguments::Tagged => {
                let style = tagged(samples, tokens, before, after)?;
                Ok(ArgumentStyle::Tagged(Box::new(style)))
            }
        }
    }
}

/// Where an object equal to `object` stands as JSON text.
pub(super) fn json_object(wire: &str, from: usize, object: &Value) -> Option<Range<usize>> {
    wire.get(from..)?.match_indices('{').map(|(at, _)| from + at).find_map(|at| {
        let mut values = serde_json::Deserializer::from_str(&wire[at..]).into_iter::<Value>();
        let found = values.next()?.ok()?;
        (found == *object).then(|| at..at + values.byte_offset())
    })
}

/// Tags of their own for each argument: `OPEN key MIDDLE value CLOSE`.
fn tagged(
    samples: &Samples,
    tokens: &[String],
    before: &mut String,
    after: &mut String,
) -> Result<TaggedStyle, ProbeError> {
    let unclear = |problem: String| undetermined(PART, problem);
    let (middle, next) = around_first_value(&samples.two_arguments)
        .ok_or_else(|| unclear("two arguments are written otherwise than one".to_owned()))?;
    // `next` is what ends a value, what is between arguments, and what opens the next.
    let open = common_end(before, next, tokens);
    let open = from_last_tag_start(&next[next.len() - open..]);
    let next = &next[..next.len() - open.len()];
    let close = &next[..common_start(next, after, tokens)];
    let between = &next[close.len()..];
    let (trail, close_tag) = close.split_at(close.len() - close.trim_start().len());
    let close_tag = close_tag.trim_end();
    let rest = &close[trail.len() + close_tag.len()..];
    if open.is_empty() || close_tag.is_empty() {
        let problem = format!("between two arguments there is {next:?}");
        return Err(unclear(problem));
    }
    let between = format!("{rest}{between}");
    let (middle_tag, lead) = middle.split_at(middle.trim_end().len());
    let typed = TypedValues::find(samples, middle_tag, &format!("{trail}{close_tag}"));
    let before_open = before.len() - open.len();
    before.truncate(before_open);
    let after_close = after.split_off(trail.len() + close_tag.len());
    // Without arguments, what is left of both is a call's header and trailer.
    let none = samples.no_arguments.as_deref();
    let none = none.and_then(|wire| wire.split_once(NAMES[0])).map(|(_, rest)| rest);
    let split = none.and_then(|none| split_around(none, before, &after_close));
    let (header, trailer) = split.unwrap_or((before.len(), 0));
    let before_first = before.split_off(header);
    let after_last = after_close[..trailer].to_owned();
    *after = after_close[trailer..].to_owned();
    let mut parts = vec![TagPart::Text(open.to_owned()), TagPart::Key { key: NameStyle::Raw }];
    match typed.words(middle_tag).map_err(unclear)? {
        None => parts.push(TagPart::Text(middle_tag.to_owned())),
        Some((before, kind, after)) => {
            parts.push(TagPart::Text(before));
            parts.push(TagPart::Kind { kind });
            parts.push(TagPart::Text(after));
        }
    }
    Ok(TaggedStyle {
        open: parts,
        lead: lead.to_owned(),
        trail: trail.to_owned(),
        close: Marker::Text(close_tag.to_owned()),
        before: fixed_parts(&before_first),
        between: fixed_parts(&between),
        after: fixed_parts(&after_last),
        excludes: Vec::new(),
        python: typed.python,
        quotes: None,
    })
}

/// In a text of two arguments: what is between a key and its value, and between the first value and
/// the second key.
fn around_first_value(wire: &str) -> Option<(&str, &str)> {
    let (_, rest) = wire.split_once(KEYS[0])?;
    let (middle, rest) = rest.split_once(VALUES[0])?;
    let (next, rest) = rest.split_once(KEYS[1])?;
    let (second_middle, _) = rest.split_once(VALUES[1])?;
    (middle == second_middle).then_some((middle, next))
}

/// The bytes of `before` and the start of the rest of `after` in a call without arguments, which is
/// `before[..n] after[m..] ...`. Prefers the longest of both.
fn split_around(none: &str, before: &str, after: &str) -> Option<(usize, usize)> {
    let starts = (0..=before.len()).rev().filter(|&n| before.is_char_boundary(n));
    let mut fits = starts.filter(|&n| none.starts_with(&before[..n])).flat_map(|n| {
        let ends = (0..=after.len()).filter(|&m| after.is_char_boundary(m));
        ends.filter(move |&m| none[n..].starts_with(&after[m..])).map(move |m| (n, m))
    });
    fits.find(|(_, m)| *m < after.len() || after.is_empty())
}

/// White space is a gap, as a call without arguments need not have it.
fn fixed_parts(text: &str) -> FixedParts {
    match !text.is_empty() && text.trim().is_empty() {
        true => FixedParts::Parts(vec![Part::Gap { gap: text.to_owned() }]),
        false => FixedParts::Text(text.to_owned()),
    }
}

/// The end of a text from its last `<` on, or from its last tag on.
fn from_last_tag_start(text: &str) -> &str {
    let tag = units(text, &[]).iter().rev().find(|unit| unit.is_tag).map(|unit| unit.text);
    let tag = tag.and_then(|tag| text.rfind(tag));
    match text.rfind('<').max(tag) {
        Some(at) => &text[at..],
        None => "",
    }
}
