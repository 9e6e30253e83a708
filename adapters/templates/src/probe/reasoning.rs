//! The block of reasoning in renderings.

use louver_formats::{Marker, MarkerPart, Opener, ReasoningFormat};

use super::error::{ProbeError, undetermined};
use super::samples::{REASONING, Samples};
use crate::turns::TEXT;
use crate::units::{marker_of, units};

/// The block, if the template writes reasoning.
pub(super) fn find(
    samples: &Samples,
    tokens: &[String],
) -> Result<Option<ReasoningFormat>, ProbeError> {
    let Some(turn) = &samples.reasoning_and_text else { return Ok(empty_block(samples, tokens)) };
    let unclear = |problem: String| undetermined("the block of reasoning", problem);
    let Some((before, rest)) = turn.wire.split_once(REASONING) else { return Ok(None) };
    let Some((between, _)) = rest.split_once(TEXT) else {
        return Err(unclear("there is no text after it".to_owned()));
    };
    // The begin is in the turn, or at the end of the prompt.
    let opens_in_turn = units(before, tokens).iter().any(|unit| unit.is_tag);
    let (begin, lead) = match opens_in_turn {
        true => split_white_space_after(before),
        false => {
            let all = units(&turn.prompt, tokens);
            let tag = all.iter().rev().find(|unit| !unit.text.trim().is_empty());
            let tag = tag.filter(|unit| unit.is_tag);
            let tag = tag.ok_or_else(|| unclear("it has no begin".to_owned()))?;
            (tag.text, before)
        }
    };
    let gap = &begin[..begin.len() - begin.trim_start().len()];
    let begin = begin.trim_start();
    if !lead.trim().is_empty() {
        return Err(unclear(format!("it begins with {before:?}")));
    }
    // The first tag ends the block. What marks the text that follows is not a part of it.
    let trail = &between[..between.len() - between.trim_start().len()];
    let rest = between.trim_start();
    let tag = units(rest, tokens).into_iter().find(|unit| unit.is_tag);
    let tag = tag.and_then(|tag| Some(rest.find(tag.text)? + tag.text.len()));
    let (end, rest) = rest.split_at(tag.unwrap_or(rest.trim_end().len()));
    let after = &rest[..rest.len() - rest.trim_start().len()];
    if end.is_empty() {
        return Err(unclear("it has no end".to_owned()));
    }
    let is_opened = samples.prompt.trim_end().ends_with(begin.trim_end());
    Ok(Some(ReasoningFormat {
        opened_by: if is_opened { Opener::Template } else { Opener::Model },
        begin: match gap {
            "" => marker_of(begin),
            gap => {
                let steps =
                    vec![MarkerPart::Text(gap.to_owned()), MarkerPart::Marker(marker_of(begin))];
                Marker::Any(vec![marker_of(begin), Marker::Seq(steps)])
            }
        },
        lead: lead.to_owned(),
        trail: trail.to_owned(),
        end: marker_of(end),
        after: after.to_owned(),
        excludes: Vec::new(),
        skipped: None,
    }))
}

/// The block of a template that writes an empty one, but no reasoning.
fn empty_block(samples: &Samples, tokens: &[String]) -> Option<ReasoningFormat> {
    let (start, _) = samples.around_text().ok()?;
    let last_tag = |text| -> Option<String> {
        let last = units(text, tokens).into_iter().rfind(|unit| !unit.text.trim().is_empty())?;
        last.is_tag.then(|| last.text.to_owned())
    };
    let end = last_tag(start)?;
    let before = &start[..start.rfind(&end)?];
    let opens_in_prompt = before.trim().is_empty();
    let begin = last_tag(if opens_in_prompt { &samples.prompt } else { before })?;
    if end != format!("</{}", begin.strip_prefix('<')?) {
        return None;
    }
    Some(ReasoningFormat {
        opened_by: if opens_in_prompt { Opener::Template } else { Opener::Model },
        begin: marker_of(&begin),
        lead: String::new(),
        trail: String::new(),
        end: marker_of(&end),
        after: String::new(),
        excludes: Vec::new(),
        skipped: None,
    })
}

/// A text and the white space at its end.
fn split_white_space_after(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end().len())
}

/// The length of an empty block at the start of a turn, and of the white space after it.
pub(super) fn block_len(reasoning: &ReasoningFormat, start: &str) -> usize {
    let end = reasoning.end.write();
    let Some(at) = start.find(&end) else { return 0 };
    let rest = &start[at + end.len()..];
    at + end.len() + (rest.len() - rest.trim_start().len())
}
