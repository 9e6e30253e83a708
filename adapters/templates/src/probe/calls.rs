//! Calls in renderings: the section around them, what is around their names and arguments, and what
//! is between two.

use louver_formats::{
    ArgumentStyle, CallFormat, FixedParts, IdStyle, Marker, NameStyle, ParallelPolicy, Part,
    SectionFormat, TagPart, WireId,
};

use super::arguments::Arguments;
use super::error::{ProbeError, undetermined};
use super::samples::{ID, KEYS, NAMES, Samples};
use crate::turns::TEXT;
use crate::units::{common_end, common_start, marker_of, only_tag, units};

const PART: &str = "the markers of calls";

/// Stand-ins for the numbers of calls, with the numbers of a first and a second call.
const NUMBERS: [(char, [char; 2]); 2] = [(FROM_ZERO, ['0', '1']), (FROM_ONE, ['1', '2'])];
const FROM_ZERO: char = '\u{e001}';
const FROM_ONE: char = '\u{e002}';

/// The texts around the parts of a call.
#[derive(Debug)]
pub(super) struct Calls {
    arguments: Arguments,
    /// Before the call, if it is not part of each call.
    section_start: String,
    /// From the call's start to its name.
    before_name: String,
    /// From the name to the arguments.
    before_arguments: String,
    /// From the arguments to the call's end.
    after_arguments: String,
    section_end: String,
    /// Between two calls. `None` if the template writes no two.
    separator: Option<String>,
    /// Between text and the first call. `None` if the template writes no text beside calls.
    after_text: Option<String>,
    /// Whether the template writes text beside calls.
    has_text: bool,
}

/// The texts around the name and the arguments of a call in a wire text.
struct Around<'a> {
    before_name: &'a str,
    before_arguments: &'a str,
    after_arguments: &'a str,
}

impl<'a> Around<'a> {
    fn find(wire: &'a str, name: &str, arguments: &Arguments) -> Option<Around<'a>> {
        let at = wire.find(name)?;
        let span = arguments.span(wire, at + name.len())?;
        Some(Around {
            before_name: &wire[..at],
            before_arguments: &wire[at + name.len()..span.start],
            after_arguments: &wire[span.end..],
        })
    }
}

impl Calls {
    /// Takes the calls of the samples apart. `start` and `end` are what begins and ends every turn.
    pub(super) fn find(
        samples: &Samples,
        start: &str,
        end: &str,
        tokens: &[String],
    ) -> Result<Calls, ProbeError> {
        let arguments = Arguments::find(samples)?;
        let unclear = |problem: &str| undetermined(PART, problem);
        let inner = |wire: &'_ str| {
            let wire = wire.strip_prefix(start).unwrap_or(wire);
            wire.strip_suffix(end).unwrap_or(wire).to_owned()
        };
        let one = inner(&samples.one);
        if one.matches(NAMES[0]).count() != 1 {
            return Err(unclear("a call has the name of its tool several times"));
        }
        let mut one = one;
        let mut two = samples.two.as_deref().map(inner);
        if let Some(two) = &mut two {
            mark_numbers(&mut one, two, &arguments);
        }
        let around = Around::find(&one, NAMES[0], &arguments)
            .ok_or_else(|| unclear("the arguments do not follow the name"))?;
        let mut calls = match &two {
            Some(two) => Calls::of_two(&one, two, arguments, tokens)?,
            None => Calls {
                section_start: String::new(),
                before_name: around.before_name.to_owned(),
                before_arguments: around.before_arguments.to_owned(),
                after_arguments: around.after_arguments.to_owned(),
                section_end: String::new(),
                separator: None,
                after_text: None,
                has_text: false,
                arguments,
            },
        };
        let text_and_call = samples.text_and_call.as_deref().map(inner);
        let after_text = text_and_call.as_ref().and_then(|wire| wire.split_once(TEXT));
        calls.has_text = after_text.is_some();
        calls.after_text = after_text.and_then(|(_, rest)| {
            let gap = rest.strip_suffix(one.trim_start())?;
            gap.trim().is_empty().then(|| gap.to_owned())
        });
        Ok(calls)
    }

    /// The parts that a first and a second call share are a call's. What is left around them is the
    /// section's, and what is left between them is the separator.
    fn of_two(
        one: &str,
        two: &str,
        arguments: Arguments,
        tokens: &[String],
    ) -> Result<Calls, ProbeError> {
        let unclear = |problem: String| undetermined(PART, problem);
        let one = &Around::find(one, NAMES[0], &arguments)
            .ok_or_else(|| unclear("the arguments do not follow the name".to_owned()))?;
        let first = Around::find(two, NAMES[0], &arguments)
            .ok_or_else(|| unclear("two calls are written otherwise than one".to_owned()))?;
        let (middle, _) = (first.after_arguments.split_once(NAMES[1]))
            .ok_or_else(|| unclear("the second call stands before the first".to_owned()))?;
        let second = Around::find(first.after_arguments, NAMES[1], &arguments)
            .ok_or_else(|| unclear("the second call is written otherwise".to_owned()))?;
        if second.before_arguments != one.before_arguments {
            let (a, b) = (one.before_arguments, second.before_arguments);
            return Err(unclear(format!("the first has {a:?} after the name, the second {b:?}")));
        }
        let start = common_end(one.before_name, middle, tokens);
        let start = middle[middle.len() - start..].trim_start();
        let before_start = &middle[..middle.len() - start.len()];
        let end = common_start(one.after_arguments, before_start, tokens);
        let end = before_start[..end].trim_end();
        let separator = &before_start[end.len()..];
        let section_start = &one.before_name[..one.before_name.len() - start.len()];
        Ok(Calls {
            section_start: section_start.to_owned(),
            before_name: start.to_owned(),
            before_arguments: one.before_arguments.to_owned(),
            after_arguments: end.to_owned(),
            section_end: one.after_arguments[end.len()..].to_owned(),
            separator: Some(separator.to_owned()),
            after_text: None,
            has_text: false,
            arguments,
        })
    }

    /// The token that ends turns of calls, if it is another than that of text: a tag after calls
    /// that have no section.
    pub(super) fn stop(&self, tokens: &[String]) -> Option<&str> {
        let is_stop = self.section_start.trim().is_empty() && only_tag(&self.section_end, tokens);
        is_stop.then_some(self.section_end.as_str())
    }

    /// The tags that end calls and their section, which text never contains.
    pub(super) fn end_tags(&self) -> Vec<String> {
        let last_tag = |text: &str| {
            let all = units(text, &[]);
            all.iter().rev().find(|unit| unit.is_tag).map(|unit| unit.text.to_owned())
        };
        [&self.after_arguments, &self.section_end].into_iter().filter_map(|t| last_tag(t)).collect()
    }

    /// The section and the call as a description.
    pub(super) fn describe(
        &self,
        samples: &Samples,
        tokens: &[String],
    ) -> Result<(Option<SectionFormat>, CallFormat), ProbeError> {
        let (mut before, mut after) = (self.before_arguments.clone(), self.after_arguments.clone());
        let arguments = self.arguments.describe(samples, tokens, &mut before, &mut after)?;
        let has_section = !self.section_start.trim().is_empty()
            || (!self.section_end.trim().is_empty() && self.stop(tokens).is_none());
        let (begin, header) = self.split_begin(has_section, tokens)?;
        let (trailer, end) = split_last_tag(after.trim_end(), tokens);
        let end_marker = end.map(marker_of);
        let texts = [&begin, &end_marker].map(|marker| marker.as_ref().map(Marker::write));
        if let Some(end) = end.filter(|_| texts[0] == texts[1]) {
            return Err(undetermined(PART, format!("a call ends as it begins: {end:?}")));
        }
        let name = match self.before_name.ends_with('"') && before.starts_with('"') {
            true => NameStyle::Json,
            false => NameStyle::Raw,
        };
        let arguments_start = start_of(&arguments);
        let mut header = parts(&header, false, NAMES[0], samples)?;
        header.push(Part::Name { name });
        header.extend(parts(&before, true, &arguments_start, samples)?);
        let has_id = header.iter().any(|part| matches!(part, Part::Id { .. }));
        let call = CallFormat {
            begin,
            header,
            also: Vec::new(),
            arguments,
            trailer: parts(trailer, false, end.unwrap_or_default(), samples)?,
            end: end_marker,
            separator: self.separator_parts(has_section),
            parallel: match self.separator {
                Some(_) => ParallelPolicy::Many,
                None => ParallelPolicy::One,
            },
            id: match (has_id, samples.style.indexed_ids) {
                (false, _) => WireId::Made,
                (true, true) => WireId::Header,
                (true, false) => WireId::Id,
            },
        };
        Ok((has_section.then(|| self.section(tokens)).transpose()?, call))
    }

    /// The begin marker of a call, and what stands between it and the name.
    fn split_begin(
        &self,
        has_section: bool,
        tokens: &[String],
    ) -> Result<(Option<Marker>, String), ProbeError> {
        let text = self.before_name.trim_start();
        let as_text = |text: &str| Marker::Text(text.to_owned());
        let (begin, marker): (&str, &dyn Fn(&str) -> Marker) = match units(text, tokens).first() {
            Some(unit) if unit.is_tag => (unit.text, &marker_of),
            _ if has_section => return Ok((None, text.to_owned())),
            _ => (begin_of(text, "a call begins")?, &as_text),
        };
        let marker = match self.lead() {
            lead if has_section || lead.is_empty() => marker(begin),
            lead => Marker::Any(vec![marker(begin), marker(&format!("{lead}{begin}"))]),
        };
        Ok((Some(marker), text[begin.len()..].to_owned()))
    }

    /// The white space at the start of a turn of calls, where no text may stand.
    fn lead(&self) -> &str {
        let start = match self.section_start.is_empty() {
            true => &self.before_name,
            false => &self.section_start,
        };
        let len = start.len() - start.trim_start().len();
        if self.has_text { "" } else { &start[..len] }
    }

    fn section(&self, tokens: &[String]) -> Result<SectionFormat, ProbeError> {
        let start = self.section_start.trim_start();
        let all = units(start, tokens);
        let begin = match all.first() {
            Some(unit) if unit.is_tag => unit.text,
            _ => begin_of(start, "calls begin")?,
        };
        let (trail, end) = split_last_tag(self.section_end.trim_end(), tokens);
        Ok(SectionFormat {
            before: self.after_text.clone().unwrap_or_else(|| self.lead().to_owned()),
            begin: marker_of(begin),
            lead: FixedParts::Text(start[begin.len()..].to_owned()),
            trail: FixedParts::Text(trail.to_owned()),
            end: end.map(marker_of),
        })
    }

    /// The separator. In formats without a section, it also stands between text and a call.
    fn separator_parts(&self, has_section: bool) -> FixedParts {
        let separator = self.separator.as_deref().or(self.after_text.as_deref()).unwrap_or("");
        let is_gap = separator.trim().is_empty();
        let is_other = self.after_text.as_deref().is_some_and(|text| text != separator);
        match !has_section && is_gap && is_other {
            true => FixedParts::Parts(vec![Part::Gap { gap: separator.to_owned() }]),
            false => FixedParts::Text(separator.to_owned()),
        }
    }
}

/// Replaces the number of a call by a stand-in, if calls are numbered: where the second of two
/// calls differs from the first in a digit only, before or after its name.
fn mark_numbers(one: &mut String, two: &mut String, arguments: &Arguments) {
    let positions = |wire: &str, name: &str| {
        let at = wire.find(name)?;
        let after_name = at + name.len();
        let span = arguments.span(wire, after_name)?;
        Some((at, after_name, span.start))
    };
    let places = positions(one, NAMES[0]).zip(positions(two, NAMES[1]));
    let Some(((name1, after1, args1), (name2, after2, args2))) = places else { return };
    let digits = |a: &str, b: &str| -> Option<[char; 2]> {
        let pair = [a.chars().next()?, b.chars().next()?];
        NUMBERS.iter().any(|(_, numbers)| *numbers == pair).then_some(pair)
    };
    // After the name: the texts are equal but for the digits.
    let (a, b) = (&one[after1..args1], &two[after2..args2]);
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let rests = a.get(same..).zip(b.get(same..));
    let found = rests.and_then(|(a, b)| digits(a, b).filter(|_| a[1..] == b[1..]));
    let found = found.map(|pair| (pair, after1 + same, after2 + same)).or_else(|| {
        // Before the name: the texts have a common end.
        let (a, b) = (&one.as_bytes()[..name1], &two.as_bytes()[..name2]);
        let same = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
        let (at1, at2) = (name1.checked_sub(same + 1)?, name2.checked_sub(same + 1)?);
        let pair = digits(one.get(at1..)?, two.get(at2..)?)?;
        Some((pair, at1, at2))
    });
    let Some((pair, at1, at2)) = found else { return };
    let stand_in = NUMBERS.iter().find(|(_, numbers)| *numbers == pair).map(|(c, _)| *c);
    let stand_in = stand_in.unwrap_or_default().to_string();
    // In the text of two calls, the second number first: it stands after the first.
    two.replace_range(at2..at2 + 1, &stand_in);
    let first = two.find(NAMES[0]).and_then(|name| (name + at1).checked_sub(name1));
    let is_first = |at: &usize| two.get(*at..).is_some_and(|rest| rest.starts_with(pair[0]));
    if let Some(at) = first.filter(is_first) {
        two.replace_range(at..at + 1, &stand_in);
    }
    one.replace_range(at1..at1 + 1, &stand_in);
}

/// The fewest bytes of a begin that is no tag: a shorter text is likely in prose.
const MIN_BEGIN: usize = 6;

/// The begin marker in a text that begins with no tag: the text up to an id or a number.
fn begin_of<'a>(text: &'a str, what: &str) -> Result<&'a str, ProbeError> {
    let begin = &text[..text.find(is_stand_in).unwrap_or(text.len())];
    if begin.trim().len() >= MIN_BEGIN {
        return Ok(begin);
    }
    Err(undetermined(
        PART,
        format!(
            "{what} with {begin:?}, which is neither a tag nor {MIN_BEGIN} characters, so that \
             text may have it; if it begins a call wherever it stands, write it as the `begin` of \
             a description of your own"
        ),
    ))
}

/// A text up to its last unit, and this unit if it is a tag.
fn split_last_tag<'a>(text: &'a str, tokens: &[String]) -> (&'a str, Option<&'a str>) {
    match units(text, tokens).last() {
        Some(unit) if unit.is_tag => {
            (&text[..text.len() - unit.text.len()], Some(&text[text.len() - unit.text.len()..]))
        }
        _ => (text, None),
    }
}

/// A text as parts, with ids where there are stand-ins, and with tags as markers. `follows_name`:
/// whether a name stands before it. `next` is what stands after it.
fn parts(
    text: &str,
    follows_name: bool,
    next: &str,
    samples: &Samples,
) -> Result<Vec<Part>, ProbeError> {
    let stand_ins =
        [(ID, samples.id), (FROM_ZERO, IdStyle::FromZero), (FROM_ONE, IdStyle::FromOne)];
    let of_id = |c: char| c.is_alphanumeric() || "_-".contains(c) || is_stand_in(c);
    let mut out = Vec::new();
    let (mut rest, mut follows_word) = (text, follows_name);
    loop {
        let found = stand_ins
            .iter()
            .filter_map(|(c, id)| Some((rest.find(*c)?, *c, *id)))
            .min_by_key(|f| f.0);
        let (piece, id) = match found {
            Some((at, c, id)) => {
                let piece = &rest[..at];
                rest = &rest[at + c.len_utf8()..];
                (piece, Some(id))
            }
            None => (std::mem::take(&mut rest), None),
        };
        match marker_of(piece) {
            Marker::Text(text) if text.is_empty() => {}
            Marker::Text(text) => out.push(Part::Text(text)),
            marker => out.push(Part::Marker(marker)),
        }
        let Some(id) = id else { return Ok(out) };
        // An id of any length must stand apart from a name or an id before it, and from what
        // follows it.
        let is_apart = !follows_word || piece.contains(|c| !of_id(c));
        let ends = rest.chars().chain(next.chars()).next().is_some_and(|c| !of_id(c));
        let is_open = matches!(id, IdStyle::Identifier | IdStyle::Word);
        if is_open && !(is_apart && ends) {
            let problem = "nothing shows where an id begins or ends, and ids have any length";
            return Err(undetermined("the ids of calls", problem));
        }
        out.push(Part::Id { id });
        follows_word = true;
    }
}

/// The text that arguments begin with.
fn start_of(arguments: &ArgumentStyle) -> String {
    match arguments {
        ArgumentStyle::Tagged(style) => match style.open.first() {
            Some(TagPart::Text(open)) => style.before.write() + open,
            _ => style.before.write(),
        },
        ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => KEYS[0].to_owned(),
        _ => "{".to_owned(),
    }
}

/// Whether a character stands for an id or a number.
pub(super) fn is_stand_in(c: char) -> bool {
    [ID, FROM_ZERO, FROM_ONE].contains(&c)
}
