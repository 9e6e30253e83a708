//! A response template as a wire format.

use louver::spec::json::push_token;
use louver_formats::{
    ArgumentStyle, CallFormat, FixedParts, Marker, NameStyle, Opener, ParallelPolicy, Part,
    ReasoningFormat, SectionFormat, TagPart, TaggedStyle, TextFormat, TextPlace, WireFormat,
    WireId,
};
use serde_json::Value;

use super::delimiter::{Piece, header, marker, of_pattern, pieces, texts};
use super::{
    Field, ResponseTemplate, ResponseTemplateError, ResponseTemplateWarning, error, field_pointer,
};

/// The members that templates use for reasoning.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

type Lowered<T> = Result<T, ResponseTemplateError>;

impl ResponseTemplate {
    /// The wire format, and what of the template it does not enforce. White space between the parts
    /// of a call is free, as a template does not say what the model writes there.
    pub fn lower(&self, name: &str) -> Lowered<(WireFormat, Vec<ResponseTemplateWarning>)> {
        let mut warnings = self.unenforced();
        let field = self.fields.get("tool_calls");
        let field = field.ok_or_else(|| error("/fields", "there is no region `tool_calls`"))?;
        let calls = CallField { field, pointer: "/fields/tool_calls" }.lower(&mut warnings)?;
        let reasoning = REASONING.iter().find_map(|key| Some((key, self.fields.get(*key)?)));
        let reasoning = reasoning.map(|(key, field)| lower_reasoning(field, key)).transpose()?;
        let (text, stop_tokens) = self.lower_text(&calls, reasoning.as_ref(), &mut warnings)?;
        let mut format = WireFormat::plain();
        format.name = name.to_owned();
        format.title = format!("{name}: from its response_template");
        format.sources = vec!["the checkpoint's response_template".to_owned()];
        format.stop_tokens = stop_tokens;
        format.text = text;
        format.reasoning = reasoning;
        format.section = calls.section;
        format.call = calls.call;
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
            let is_read = |key: &str| match field.content.as_deref() {
                Some("json") if !field.transform_each => {
                    ["unquoted_keys", "string_delims"].contains(&key)
                }
                Some("xml-inline") => key == "tag_pattern",
                _ => false,
            };
            for key in field.content_args.keys().filter(|key| !is_read(key)) {
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
}

/// The delimiters of a region.
fn delimiters(field: &Field, pointer: &str) -> Lowered<(Option<Vec<Piece>>, Option<Vec<Piece>>)> {
    let at = |key: &str| format!("{pointer}/{key}");
    let open = pieces(field.open.as_ref(), field.open_pattern.as_deref())
        .map_err(|problem| error(at(field.open_key()), problem))?;
    let close = pieces(field.close.as_ref(), field.close_pattern.as_deref())
        .map_err(|problem| error(at(field.close_key()), problem))?;
    Ok((open, close))
}

fn lower_reasoning(field: &Field, key: &str) -> Lowered<ReasoningFormat> {
    let pointer = format!("/fields/{key}");
    let (open, close) = delimiters(field, &pointer)?;
    let fixed = |pieces: Option<Vec<Piece>>, side: &str| {
        let texts = pieces.and_then(|pieces| texts(&pieces));
        let marker = texts.and_then(|texts| marker(&texts));
        marker.ok_or_else(|| error(format!("{pointer}/{side}"), "is no fixed text"))
    };
    let is_opened = open.as_deref().is_some_and(may_be_empty);
    Ok(ReasoningFormat {
        opened_by: if is_opened { Opener::Template } else { Opener::Model },
        begin: fixed(open, field.open_key())?,
        lead: "\n".to_owned(),
        trail: "\n".to_owned(),
        end: fixed(close, field.close_key())?,
        after: String::new(),
        excludes: Vec::new(),
        skipped: None,
    })
}

/// Whether a delimiter may be at the output's start without any text.
fn may_be_empty(pieces: &[Piece]) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Text(_) | Piece::Group(_) => false,
        Piece::Space | Piece::Edge | Piece::Maybe(_) => true,
        Piece::Any(branches) => branches.iter().any(|branch| may_be_empty(branch)),
    })
}

/// The region of calls.
struct CallField<'a> {
    field: &'a Field,
    pointer: &'static str,
}

struct LoweredCalls {
    section: Option<SectionFormat>,
    call: CallFormat,
}

impl CallField<'_> {
    fn error(&self, key: &str, problem: impl Into<String>) -> ResponseTemplateError {
        error(format!("{}/{key}", self.pointer), problem)
    }

    fn lower(&self, warnings: &mut Vec<ResponseTemplateWarning>) -> Lowered<LoweredCalls> {
        let (open, close) = delimiters(self.field, self.pointer)?;
        let open = open.ok_or_else(|| self.error("open", "calls need a begin"))?;
        let close = close.ok_or_else(|| self.error("close", "calls need an end"))?;
        let end = texts(&close).and_then(|texts| marker(&texts));
        let end = end.ok_or_else(|| self.error(self.field.close_key(), "is no fixed text"))?;
        let content = self.field.content.as_deref().unwrap_or("text");
        match content {
            "json" if self.field.transform_each => self.lower_list(&open, end),
            "json" => self.lower_json(&open, end),
            "xml-inline" => self.lower_tags(&open, end, warnings),
            other => {
                let problem = format!("calls of content `{other}` have no wire format");
                Err(self.error("content", problem))
            }
        }
    }

    fn call(&self, begin: Marker, end: Marker, header: Vec<Part>) -> CallFormat {
        CallFormat {
            begin: Some(begin),
            header,
            also: Vec::new(),
            arguments: ArgumentStyle::Json,
            trailer: vec![Part::Gap { gap: String::new() }],
            end: Some(end),
            separator: FixedParts::Parts(vec![Part::Gap { gap: "\n".to_owned() }]),
            parallel: match self.field.repeats {
                true => ParallelPolicy::Many,
                false => ParallelPolicy::One,
            },
            id: WireId::Made,
        }
    }

    /// A list of objects between the delimiters.
    fn lower_list(&self, open: &[Piece], end: Marker) -> Lowered<LoweredCalls> {
        let begin = texts(open).and_then(|texts| marker(&texts));
        let begin = begin.ok_or_else(|| self.error(self.field.open_key(), "is no fixed text"))?;
        let (name, arguments) = self.keys()?;
        let mut call = self.call(begin.clone(), end.clone(), object_header(&name, &arguments));
        (call.begin, call.end) = (None, None);
        call.trailer.push(Part::Text("}".to_owned()));
        call.parallel = ParallelPolicy::Many;
        call.separator = FixedParts::Parts(vec![
            Part::Gap { gap: String::new() },
            Part::Text(",".to_owned()),
            Part::Gap { gap: " ".to_owned() },
        ]);
        let gap = || Part::Gap { gap: String::new() };
        let section = SectionFormat {
            before: String::new(),
            begin,
            lead: FixedParts::Parts(vec![gap(), Part::Text("[".to_owned()), gap()]),
            trail: FixedParts::Parts(vec![gap(), Part::Text("]".to_owned()), gap()]),
            end: Some(end),
        };
        Ok(LoweredCalls { section: Some(section), call })
    }

    /// One object, or the name in the begin and the arguments as JSON.
    fn lower_json(&self, open: &[Piece], end: Marker) -> Lowered<LoweredCalls> {
        let captures_name = open.contains(&Piece::Group("name".to_owned()));
        let (begin, mut rest) = self.split_begin(open)?;
        let mut call = match captures_name {
            true => self.call(begin, end, rest),
            false => {
                let (name, arguments) = self.keys()?;
                rest.push(Part::Gap { gap: "\n".to_owned() });
                rest.extend(object_header(&name, &arguments));
                let mut call = self.call(begin, end, rest);
                call.trailer = vec![
                    Part::Gap { gap: String::new() },
                    Part::Text("}".to_owned()),
                    Part::Gap { gap: "\n".to_owned() },
                ];
                call
            }
        };
        call.arguments = self.json_style()?;
        Ok(LoweredCalls { section: None, call })
    }

    /// JSON, or objects with bare names and marked strings.
    fn json_style(&self) -> Lowered<ArgumentStyle> {
        let args = &self.field.content_args;
        let is_bare = args.get("unquoted_keys") == Some(&Value::Bool(true));
        let delimiters = args.get("string_delims").and_then(Value::as_array);
        match (is_bare, delimiters.map(Vec::as_slice)) {
            (false, None) => Ok(ArgumentStyle::Json),
            (true, Some([pair])) if pair[0].is_string() && pair[0] == pair[1] => {
                let quote = pair[0].as_str().unwrap_or_default();
                Ok(ArgumentStyle::Delimited(crate::units::marker_of(quote)))
            }
            _ => Err(self.error("content_args", "such JSON has no argument style")),
        }
    }

    /// One tag for each argument.
    fn lower_tags(
        &self,
        open: &[Piece],
        end: Marker,
        warnings: &mut Vec<ResponseTemplateWarning>,
    ) -> Lowered<LoweredCalls> {
        let (begin, header) = self.split_begin(open)?;
        let pattern = self.field.content_args.get("tag_pattern").and_then(Value::as_str);
        let pattern = pattern.ok_or_else(|| self.error("content_args", "needs `tag_pattern`"))?;
        let at = "content_args/tag_pattern";
        let pieces = of_pattern(pattern).map_err(|problem| self.error(at, problem))?;
        let is_group = |piece: &Piece, name: &str| *piece == Piece::Group(name.to_owned());
        let value = pieces.iter().position(|piece| is_group(piece, "value"));
        let value = value.ok_or_else(|| self.error(at, "has no group `value`"))?;
        let mut parts = Vec::new();
        for piece in &pieces[..value] {
            match piece {
                Piece::Text(text) => parts.push(TagPart::Text(text.clone())),
                Piece::Group(name) if name == "key" => {
                    parts.push(TagPart::Key { key: NameStyle::Raw });
                }
                Piece::Space => parts.push(TagPart::Gap { gap: "\n".to_owned() }),
                _ => return Err(self.error(at, "is not a text, a key and a text")),
            }
        }
        // White space before the value is stripped from it.
        if matches!(parts.last(), Some(TagPart::Gap { .. })) {
            parts.pop();
        }
        let close = texts(&pieces[value + 1..]).unwrap_or_default();
        let [close] = &close[..] else { return Err(self.error(at, "ends with no fixed text")) };
        let gap = || FixedParts::Parts(vec![Part::Gap { gap: "\n".to_owned() }]);
        let style = TaggedStyle {
            open: parts,
            lead: "\n".to_owned(),
            trail: "\n".to_owned(),
            close: Marker::Text(close.clone()),
            before: gap(),
            between: gap(),
            after: gap(),
            excludes: Vec::new(),
            python: None,
            quotes: None,
        };
        warnings.push(ResponseTemplateWarning {
            pointer: format!("{}/{at}", self.pointer),
            what: "what stands after the last argument is not described: only white space is \
                   accepted"
                .to_owned(),
        });
        let mut call = self.call(begin, end, header);
        call.trailer = Vec::new();
        call.arguments = ArgumentStyle::Tagged(Box::new(style));
        Ok(LoweredCalls { section: None, call })
    }

    /// The begin marker, which is the first text, and the header after it.
    fn split_begin(&self, open: &[Piece]) -> Lowered<(Marker, Vec<Part>)> {
        let key = self.field.open_key();
        let begin = open.iter().position(|piece| !matches!(piece, Piece::Space | Piece::Edge));
        let first = begin.and_then(|at| open.get(at)).map(std::slice::from_ref);
        let begins = first.and_then(texts).and_then(|texts| marker(&texts));
        let (Some(at), Some(begin)) = (begin, begins) else {
            return Err(self.error(key, "begins with no fixed text"));
        };
        let header = header(&open[at + 1..], "\n").map_err(|problem| self.error(key, problem))?;
        Ok((begin, header))
    }

    /// The keys of a call's name and arguments in the parsed content.
    fn keys(&self) -> Lowered<(String, String)> {
        let function = &self.field.transform["function"];
        if function == "{content}" {
            return Ok(("name".to_owned(), "arguments".to_owned()));
        }
        let key = |member: &str| {
            let path = function[member].as_str();
            let path = path.and_then(|path| path.strip_prefix('{')?.strip_suffix('}'));
            let path = path.map(|path| path.strip_prefix("content.").unwrap_or(path));
            path.filter(|path| !path.contains('.')).map(str::to_owned).ok_or_else(|| {
                self.error(
                    &format!("transform/function/{member}"),
                    "is not a member of the content",
                )
            })
        };
        Ok((key("name")?, key("arguments")?))
    }
}

/// `{"name": "NAME", "arguments": ` with free white space.
fn object_header(name: &str, arguments: &str) -> Vec<Part> {
    let text = |text: String| Part::Text(text);
    let gap = |gap: &str| Part::Gap { gap: gap.to_owned() };
    vec![
        text("{".to_owned()),
        gap(""),
        text(format!("\"{name}\"")),
        gap(""),
        text(":".to_owned()),
        gap(" "),
        text("\"".to_owned()),
        Part::Name { name: NameStyle::Json },
        text("\"".to_owned()),
        gap(""),
        text(",".to_owned()),
        gap(" "),
        text(format!("\"{arguments}\"")),
        gap(""),
        text(":".to_owned()),
        gap(" "),
    ]
}
