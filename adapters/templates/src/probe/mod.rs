//! Probing: a wire format from what a chat template writes, and nothing else.
//!
//! The template renders turns whose names, keys and values occur nowhere else: text, a call, a call
//! with other arguments, two calls, reasoning. Where they stand in the renderings, and what the
//! renderings have in common, gives the parts of the description. What cannot be told is an error
//! that names the part; nothing is guessed. The result is a proposal: [`confirm`](crate::confirm())
//! decides, with turns that were not used here.

mod arguments;
mod calls;
mod error;
mod reasoning;
mod samples;
mod type_words;

use louver_formats::{ReasoningFormat, TextFormat, TextPlace, WireFormat};

use self::arguments::Arguments;
use self::calls::Calls;
pub use self::error::ProbeError;
use self::error::undetermined;
use self::samples::{NAMES, Samples};
use crate::chat_template::ChatTemplate;
use crate::message_style::MessageStyle;
use crate::turns::TEXT;
use crate::units::{common_end, marker_of, only_tag, units};

/// What a template says of its wire format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probed {
    /// The description.
    pub format: WireFormat,
    /// How the template wants messages.
    pub style: MessageStyle,
}

/// Derives a wire format from a chat template. `tokens` are the texts of the checkpoint's special
/// tokens. Cost: some twenty renderings.
pub fn probe(name: &str, template: &ChatTemplate, tokens: &[String]) -> Result<Probed, ProbeError> {
    let samples = samples(template, tokens)?;
    let end = common_end(&samples.text, &samples.one, tokens);
    let end = &samples.text[samples.text.len() - end..];
    let [_, eos, _] = template.tokens();
    let (text_start, text_end) = samples.around_text()?;
    let mut text_end = &text_end[..text_end.len().saturating_sub(end.len())];
    // Turns of text and of calls may end with different tokens.
    let mut ends = vec![end];
    if text_start.trim().is_empty() && only_tag(text_end, tokens) {
        ends.push(std::mem::take(&mut text_end));
    }
    let reasoning = reasoning::find(&samples, tokens)?;
    // A template may write an empty block of reasoning before every turn.
    let empty_block = reasoning.as_ref().map_or(0, |found| reasoning::block_len(found, text_start));
    let calls = Calls::find(&samples, &text_start[..empty_block], end, tokens)?;
    ends.extend(calls.stop(tokens));
    let stop_tokens = stop_tokens(&ends, eos, tokens)?;
    let text = text_format(&text_start[empty_block..], text_end, &samples, &reasoning, &calls)?;
    let mut format = WireFormat::plain();
    format.name = name.to_owned();
    format.title = format!("{name}: from its chat template");
    format.sources = vec!["the checkpoint's chat template, by rendering".to_owned()];
    format.stop_tokens = stop_tokens;
    format.text = text;
    format.reasoning = reasoning;
    (format.section, format.call) = calls.describe(&samples, tokens)?;
    if serde_json::to_string(&format).is_ok_and(|text| text.contains(calls::is_stand_in)) {
        let problem = "an id or a number of a call stands outside of the call";
        return Err(undetermined("the ids of calls", problem));
    }
    format.check().map_err(|problem| undetermined("the wire format", problem.to_string()))?;
    Ok(Probed { format, style: samples.style })
}

/// Renders the samples in the first message style in which the template writes the arguments of a
/// call as given.
fn samples(template: &ChatTemplate, tokens: &[String]) -> Result<Samples, ProbeError> {
    let mut problem = None;
    for style in MessageStyle::all() {
        let found = Samples::render(template, tokens, style);
        match found.and_then(|samples| Arguments::find(&samples).map(|_| samples)) {
            Ok(samples) => return Ok(samples),
            Err(error) => problem.get_or_insert(error),
        };
    }
    Err(problem.unwrap_or(ProbeError::NoCalls("there is no message style".to_owned())))
}

/// The renderings that the fields of a probed description come from, by JSON pointer.
pub const FIELD_SOURCES: &[(&str, &str)] = &[
    ("/stop_tokens", "the common end of a turn of text and a turn of one call"),
    ("/text", "a turn of text, and a turn of text and one call"),
    ("/text/excludes", "the markers of reasoning and calls"),
    ("/reasoning", "turns with reasoning, and the end of the prompt"),
    ("/section", "what one call has and the second of two calls lacks"),
    ("/call", "turns of one call and of two calls"),
    (
        "/call/header",
        "the same, with ids of several lengths: `identifier` if all are written as given",
    ),
    ("/call/arguments", "calls with one, two and no arguments"),
    ("/call/separator", "between two calls, and between text and a call"),
    ("/call/parallel", "a turn of two calls"),
];

/// The tokens that end a turn: the first tag of each end, and the end of sequence.
fn stop_tokens(
    ends: &[&str],
    eos: Option<String>,
    tokens: &[String],
) -> Result<Vec<String>, ProbeError> {
    let mut out: Vec<String> = Vec::new();
    let tags =
        ends.iter().filter_map(|end| units(end, tokens).into_iter().find(|unit| unit.is_tag));
    for tag in tags.map(|unit| unit.text.to_owned()).chain(eos) {
        if !tag.is_empty() && !out.contains(&tag) {
            out.push(tag);
        }
    }
    match out.is_empty() {
        true => Err(undetermined("what ends a turn", "there is no token after it")),
        false => Ok(out),
    }
}

/// The place and the markers of text.
fn text_format(
    start: &str,
    end: &str,
    samples: &Samples,
    reasoning: &Option<ReasoningFormat>,
    calls: &Calls,
) -> Result<TextFormat, ProbeError> {
    let mut text = WireFormat::plain().text;
    let beside = samples.text_and_call.as_deref();
    let places = beside.and_then(|wire| Some((wire.find(TEXT)?, wire.find(NAMES[0])?)));
    text.place = match places {
        None => TextPlace::InsteadOfCalls,
        Some((text, call)) if call < text => TextPlace::Anywhere,
        Some(_) => TextPlace::BeforeCalls,
    };
    let marker = |text: &str| (!text.trim().is_empty()).then(|| marker_of(text.trim()));
    (text.begin, text.end) = (marker(start), marker(end));
    if text.begin.is_some() != text.end.is_some() {
        let problem = format!("it stands between {start:?} and {end:?}");
        return Err(undetermined("the markers of text", problem));
    }
    text.excludes.extend(reasoning.iter().flat_map(|r| [r.begin.write(), r.end.write()]));
    text.excludes.extend(calls.end_tags());
    text.excludes.retain(|text| !text.is_empty());
    Ok(text)
}

#[cfg(test)]
mod tests;
