//! A response template as a wire format.

use louver::spec::json::push_token;
use louver_formats::{Marker, Opener, ReasoningFormat, TextFormat, TextPlace, WireFormat};
use serde_json::Value;

use super::calls::{CallField, LoweredCalls};
use super::delimiter::{Piece, after_line_feeds, delimiters, marker, of_pattern, texts};
use super::{Field, Lowered, ResponseTemplate, ResponseTemplateWarning, error, field_pointer};
use crate::units::{marker_of, units};

/// The members that templates use for reasoning.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

impl ResponseTemplate {
    /// The wire format, and what of the template it does not enforce. White space between the parts
    /// of a call is free, as a template does not say what the model writes there.
    pub fn lower(&self, name: &str) -> Lowered<(WireFormat, Vec<ResponseTemplateWarning>)> {
        let mut warnings = self.unenforced();
        let field = self.fields.get("tool_calls");
        let field = field.ok_or_else(|| error("/fields", "there is no region `tool_calls`"))?;
        let content = self.fields.get("content");
        let ends = content.and_then(|field| delimiters(field, "/fields/content").ok()?.1);
        let turn_ends = ends.and_then(|ends| texts(&ends)).unwrap_or_default();
        let calls = CallField { field, pointer: "/fields/tool_calls", turn_ends };
        let mut calls = calls.lower(&mut warnings)?;
        let reasoning = REASONING.iter().find_map(|key| Some((key, self.fields.get(*key)?)));
        let reasoning = reasoning.map(|(key, field)| self.lower_reasoning(field, key));
        let reasoning = reasoning.transpose()?;
        let (mut text, stop_tokens) = self.lower_text(&calls, reasoning.as_ref(), &mut warnings)?;
        if let Some(begin) = &mut text.begin {
            *begin = after_line_feeds(begin);
            calls.accept_line_feeds();
        }
        let mut format = WireFormat::plain();
        format.name = name.to_owned();
        format.title = format!("{name}: from its response_template");
        format.sources = vec!["the checkpoint's response_template".to_owned()];
        format.stop_tokens = stop_tokens;
        format.text = text;
        format.reasoning = reasoning;
        format.section = calls.section;
        format.call = calls.call;
        // Other objects than those that any format knows as calls are JSON in a text.
        let begin = format.calls_begin_marker().map(Marker::write);
        let is_object = begin.as_ref().is_some_and(|begin| begin.starts_with('{'));
        if is_object && !begin.is_some_and(|begin| format.begins_ambiguously(&begin)) {
            let pointer = format!("/fields/tool_calls/{}", field.open_key());
            return Err(error(pointer, "begins like any JSON object"));
        }
        format.check().map_err(|problem| error("", problem.to_string()))?;
        Ok((format, warnings))
    }

    /// Where a format has other markers than the template names; and why the template cannot be
    /// compared, if it has no wire format.
    pub fn differences(&self, format: &WireFormat) -> Vec<ResponseTemplateWarning> {
        let lowered = match self.lower(&format.name) {
            Ok((lowered, _)) => lowered,
            Err(error) => {
                let what = error.problem;
                return vec![ResponseTemplateWarning { pointer: error.pointer, what }];
            }
        };
        let mut out = Vec::new();
        let mut compare = |pointer: &str, named: Option<String>, own: Option<String>| {
            // A template may name the start of a marker only, or more than the marker.
            let fits = match (&named, &own) {
                (Some(named), Some(own)) => {
                    let (named, own) = (named.trim(), own.trim());
                    named.starts_with(own) || own.starts_with(named)
                }
                (named, own) => named.is_none() || own.is_none(),
            };
            if let (false, Some(named), Some(own)) = (fits, named, own) {
                let what = format!("the template has {named:?}, the wire format {own:?}");
                out.push(ResponseTemplateWarning { pointer: pointer.to_owned(), what });
            }
        };
        let write = |marker: Option<&Marker>| marker.map(Marker::write);
        let of_calls = [
            (
                Field::open_key as fn(&Field) -> _,
                lowered.calls_begin_marker(),
                format.calls_begin_marker(),
            ),
            (Field::close_key, lowered.calls_end_marker(), format.calls_end_marker()),
        ];
        for (key, named, own) in of_calls {
            let key = self.fields.get("tool_calls").map_or("", key);
            compare(&format!("/fields/tool_calls/{key}"), write(named), write(own));
        }
        let named = REASONING.iter().find(|key| self.fields.contains_key(**key));
        let name = named.unwrap_or(&REASONING[0]);
        if let (Some(field), Some(named), Some(own)) =
            (self.fields.get(*name), &lowered.reasoning, &format.reasoning)
        {
            let at = |key: &str| format!("/fields/{name}/{key}");
            compare(&at(field.open_key()), Some(named.begin.write()), Some(own.begin.write()));
            compare(&at(field.close_key()), Some(named.end.write()), Some(own.end.write()));
        }
        out
    }

    /// What a description does not say: members of its own, and regions that must occur.
    fn unenforced(&self) -> Vec<ResponseTemplateWarning> {
        let mut out = Vec::new();
        let mut warn = |pointer: String, what: &str| {
            out.push(ResponseTemplateWarning { pointer, what: what.to_owned() });
        };
        for key in self.defaults.keys().filter(|key| *key != "role") {
            let mut pointer = "/defaults".to_owned();
            push_token(&mut pointer, key);
            warn(pointer, "is no part of a turn");
        }
        for (name, field) in &self.fields {
            let pointer = field_pointer(name);
            let is_known = ["tool_calls", "content"].contains(&name.as_str())
                || REASONING.contains(&name.as_str());
            if !is_known {
                warn(pointer.clone(), "the region is no part of a turn: it stays text");
            }
            if field.optional == Some(false) {
                let what = "that the region must occur is for the request to say";
                warn(format!("{pointer}/optional"), what);
            }
            if name != "tool_calls" && field.repeats {
                let what = "one region is accepted, as several would be one text";
                warn(format!("{pointer}/repeats"), what);
            }
            if name != "tool_calls" && field.content.as_deref().is_some_and(|c| c != "text") {
                warn(format!("{pointer}/content"), "the content is read as text");
            }
            if field.join.is_some() {
                warn(format!("{pointer}/join"), "regions are not joined");
            }
            let is_read = |key: &str, value: &Value| match field.content.as_deref() {
                Some("json") if !field.transform_each => {
                    ["unquoted_keys", "string_delims"].contains(&key)
                }
                Some("xml-inline") => {
                    key == "tag_pattern" || (key == "value_parser" && is_json_or_text(value))
                }
                _ => false,
            };
            let unread = field.content_args.iter().filter(|(key, value)| !is_read(key, value));
            for (key, _) in unread {
                let mut pointer = format!("{pointer}/content_args");
                push_token(&mut pointer, key);
                warn(pointer, "is not read for this content");
            }
        }
        out
    }

    fn lower_text(
        &self,
        calls: &LoweredCalls,
        reasoning: Option<&ReasoningFormat>,
        warnings: &mut Vec<ResponseTemplateWarning>,
    ) -> Lowered<(TextFormat, Vec<String>)> {
        let mut text = WireFormat::plain().text;
        text.place = TextPlace::Anywhere;
        text.excludes.extend(reasoning.iter().flat_map(|r| [r.begin.write(), r.end.write()]));
        let ends = calls.section.as_ref().and_then(|section| section.end.as_ref());
        text.excludes.extend(ends.or(calls.call.end.as_ref()).map(Marker::write));
        let Some(field) = self.fields.get("content") else { return Ok((text, Vec::new())) };
        let (open, close) = delimiters(field, "/fields/content")?;
        let mut fixed = |pieces: Option<Vec<Piece>>, key: &str| {
            let found = texts(&pieces?);
            if found.is_none() {
                let pointer = format!("/fields/content/{key}");
                let what = "is no fixed text: not enforced".to_owned();
                warnings.push(ResponseTemplateWarning { pointer, what });
            }
            found
        };
        let ends = fixed(close, field.close_key()).unwrap_or_default();
        match fixed(open, field.open_key()).filter(|texts| !texts.is_empty()) {
            // A marked text ends with its marker, and the turn after it.
            Some(begins) if !ends.is_empty() => {
                (text.begin, text.end) = (marker(&begins), marker(&ends));
                text.place = TextPlace::InsteadOfCalls;
                Ok((text, Vec::new()))
            }
            _ => Ok((text, ends)),
        }
    }

    /// A region without a begin of its own begins with the tag at the end of the prompt.
    fn lower_reasoning(&self, field: &Field, key: &str) -> Lowered<ReasoningFormat> {
        let pointer = format!("/fields/{key}");
        let (open, close) = delimiters(field, &pointer)?;
        let fixed = |pieces: Option<&Vec<Piece>>| {
            pieces.and_then(|pieces| texts(pieces)).and_then(|texts| marker(&texts))
        };
        let refuse = |side: &str| error(format!("{pointer}/{side}"), "is no fixed text");
        let is_opened = open.as_deref().is_some_and(may_be_empty);
        let at_prompt = || self.anchor_tag().filter(|_| is_opened);
        let begin = fixed(open.as_ref()).or_else(at_prompt);
        let begin = begin.ok_or_else(|| refuse(field.open_key()))?;
        Ok(ReasoningFormat {
            opened_by: if is_opened { Opener::Template } else { Opener::Model },
            begin: after_line_feeds(&begin),
            lead: "\n".to_owned(),
            trail: "\n".to_owned(),
            end: fixed(close.as_ref()).ok_or_else(|| refuse(field.close_key()))?,
            after: String::new(),
            excludes: Vec::new(),
            skipped: None,
        })
    }

    /// The tag with which what stands before every turn ends.
    fn anchor_tag(&self) -> Option<Marker> {
        let pieces = match &self.start_anchor_pattern {
            Some(pattern) => of_pattern(pattern).ok()?,
            None => vec![Piece::Text(self.start_anchor.as_str()?.to_owned())],
        };
        // What may be missing stands after the tag in some prompts.
        let is_fixed = |piece: &&Piece| !matches!(piece, Piece::Maybe(_) | Piece::Space);
        let Some(Piece::Text(text)) = pieces.iter().rfind(is_fixed) else { return None };
        let last = *units(text.trim_end(), &[]).last()?;
        last.is_tag.then(|| marker_of(last.text))
    }
}

/// Whether values are JSON or, perhaps, text.
fn is_json_or_text(parser: &Value) -> bool {
    let mut options = parser["args"].as_object().into_iter().flat_map(|args| args.keys());
    parser["name"] == "json" && options.all(|key| key == "allow_non_json")
}

/// Whether a delimiter may be at the output's start without any text.
fn may_be_empty(pieces: &[Piece]) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Text(_) | Piece::Group(_) => false,
        Piece::Space | Piece::Edge | Piece::Maybe(_) => true,
        Piece::Any(branches) => branches.iter().any(|branch| may_be_empty(branch)),
    })
}
