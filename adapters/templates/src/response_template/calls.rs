//! The calls of a response template as those of a wire format.

use louver_formats::{
    ArgumentStyle, CallFormat, FixedParts, IdStyle, Marker, NameStyle, ParallelPolicy, Part,
    PythonLiterals, SectionFormat, TagPart, TaggedStyle, WireId,
};
use serde_json::Value;

use super::captures;
use super::delimiter::{
    Piece, after_line_feeds, apart, delimiters, header, marker, of_pattern, texts,
};
use super::{Field, Lowered, ResponseTemplateError, ResponseTemplateWarning, error};

/// The region of calls.
pub(super) struct CallField<'a> {
    pub(super) field: &'a Field,
    pub(super) pointer: &'static str,
    /// The texts that end a turn of text.
    pub(super) turn_ends: Vec<String>,
}

/// The calls of a wire format.
pub(super) struct LoweredCalls {
    pub(super) section: Option<SectionFormat>,
    pub(super) call: CallFormat,
}

impl LoweredCalls {
    /// Accepts line feeds before each call, where no text may stand.
    pub(super) fn accept_line_feeds(&mut self) {
        self.call.begin = self.call.begin.as_ref().map(after_line_feeds);
    }
}

/// The keys of a call's JSON object.
struct Keys {
    name: String,
    arguments: String,
    /// That of the call's id, if it may have one, and whether the template reads it.
    id: Option<(String, WireId)>,
}

impl CallField<'_> {
    fn error(&self, key: &str, problem: impl Into<String>) -> ResponseTemplateError {
        error(format!("{}/{key}", self.pointer), problem)
    }

    pub(super) fn lower(
        &self,
        warnings: &mut Vec<ResponseTemplateWarning>,
    ) -> Lowered<LoweredCalls> {
        let (open, close) = delimiters(self.field, self.pointer)?;
        let open = open.ok_or_else(|| self.error("open", "calls need a begin"))?;
        let close = close.ok_or_else(|| self.error("close", "calls need an end"))?;
        // Without a captured name, a transform names members of the content.
        if open.iter().any(|piece| piece.is_group("name")) {
            let unknown = captures::unknown(&self.field.transform, &[&open, &close], self.pointer);
            warnings.extend(unknown);
        }
        let content = self.field.content.as_deref().unwrap_or("text");
        if content == "xml-inline" && self.has_keywords() {
            return self.lower_keywords(&open, &close);
        }
        if let ("json", Some((begin, rest))) = (content, object_begin(&open)) {
            return self.lower_object(begin, rest, &close);
        }
        let end = texts(&close).and_then(|texts| marker(&texts));
        let end = end.ok_or_else(|| self.error(self.field.close_key(), "is no fixed text"))?;
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

    fn call(&self, begin: Option<Marker>, end: Option<Marker>, header: Vec<Part>) -> CallFormat {
        CallFormat {
            begin,
            header,
            also: Vec::new(),
            arguments: ArgumentStyle::Json,
            trailer: vec![Part::Gap { gap: String::new() }],
            end,
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
        let keys = self.keys()?;
        let mut call = self.call(None, None, object_header(&keys));
        call.id = keys.id.map(|(_, id)| id).unwrap_or_default();
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
        let captures_name = open.iter().any(|piece| piece.is_group("name"));
        let (begin, mut rest) = self.split_begin(open)?;
        let mut call = match captures_name {
            true => self.call(Some(begin), Some(end), rest),
            false => {
                let keys = self.keys()?;
                rest.push(Part::Gap { gap: "\n".to_owned() });
                rest.extend(object_header(&keys));
                let mut call = self.call(Some(begin), Some(end), rest);
                call.id = keys.id.map(|(_, id)| id).unwrap_or_default();
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
        let at = TAG_PATTERN;
        let pieces = self.tag_pieces()?;
        let value = pieces.iter().position(|piece| piece.is_group("value"));
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
            python: self.allows_non_json().then_some(PythonLiterals::Values),
            quotes: None,
        };
        warnings.push(ResponseTemplateWarning {
            pointer: format!("{}/{at}", self.pointer),
            what: "what stands after the last argument is not described: the tags that are open \
                   there are closed, with white space only"
                .to_owned(),
        });
        let closed = unclosed_tags(open, &end).into_iter();
        let trailer = closed.flat_map(|tag| [Part::Text(tag), Part::Gap { gap: "\n".to_owned() }]);
        let mut call = self.call(Some(begin), Some(end), header);
        call.trailer = trailer.collect();
        call.arguments = ArgumentStyle::Tagged(Box::new(style));
        Ok(LoweredCalls { section: None, call })
    }

    /// The pieces of the pattern of one argument.
    fn tag_pieces(&self) -> Lowered<Vec<Piece>> {
        let pattern = self.field.content_args.get("tag_pattern").and_then(Value::as_str);
        let pattern = pattern.ok_or_else(|| self.error("content_args", "needs `tag_pattern`"))?;
        let pieces = of_pattern(pattern).map_err(|problem| self.error(TAG_PATTERN, problem))?;
        Ok(apart(&pieces))
    }

    /// Whether values need not be JSON. Those that no string can be are then also read as Python
    /// prints them.
    fn allows_non_json(&self) -> bool {
        let parser = self.field.content_args.get("value_parser");
        parser.is_some_and(|parser| parser["args"]["allow_non_json"] == true)
    }

    /// Whether an argument is written as `KEY=VALUE`, with nothing after the value.
    fn has_keywords(&self) -> bool {
        let pieces = self.tag_pieces().unwrap_or_default();
        matches!(&pieces[..], [key, Piece::Text(text), value]
            if key.is_group("key") && text == "=" && value.is_group("value"))
    }

    /// A list of calls with keyword arguments. A call begins with the begin of the list or with a
    /// separator, and ends with a parenthesis, after which the list may end.
    fn lower_keywords(&self, open: &[Piece], close: &[Piece]) -> Lowered<LoweredCalls> {
        let key = self.field.open_key();
        let [Piece::Any(begins), name @ ..] = open else {
            return Err(self.error(key, "such calls need the begin of a list or a separator"));
        };
        let fixed = |pieces: &[Piece]| texts(pieces).and_then(|texts| marker(&texts));
        let (Some(begin), [_, separator]) = (begins.first().and_then(|b| fixed(b)), &begins[..])
        else {
            return Err(self.error(key, "is not the begin of a list or a separator"));
        };
        let close: Vec<&Piece> = close.iter().filter(|piece| **piece != Piece::Space).collect();
        let end = match close[..] {
            [Piece::Text(text), Piece::Maybe(end)] if text == ")" => fixed(end),
            _ => None,
        };
        let problem = "is not a parenthesis, after which the list may end";
        let end = end.ok_or_else(|| self.error(self.field.close_key(), problem))?;
        let parts = |pieces: &[Piece], gap: &str| {
            header(pieces, gap).map_err(|problem| self.error(key, problem))
        };
        let mut call = self.call(None, None, parts(name, "")?);
        call.arguments = ArgumentStyle::JsonKeywords;
        call.trailer = vec![Part::Text(")".to_owned())];
        call.separator = FixedParts::Parts(parts(separator, " ")?);
        let nothing = FixedParts::default;
        let (before, lead, trail) = (String::new(), nothing(), nothing());
        let section = Some(SectionFormat { before, begin, lead, trail, end: Some(end) });
        Ok(LoweredCalls { section, call })
    }

    /// An object without a marker, with the begin of any object that has a name, and what follows
    /// from the name on.
    fn lower_object(
        &self,
        begin: String,
        rest: &[Piece],
        close: &[Piece],
    ) -> Lowered<LoweredCalls> {
        let rest = header(rest, " ").map_err(|what| self.error(self.field.open_key(), what))?;
        // Nothing but the end of the turn marks the end of such a call.
        let ends = texts(close).unwrap_or_default();
        let is_end = |end: &&String| self.turn_ends.iter().any(|turn| format!("}}{turn}") == **end);
        if ends.is_empty() || ends.iter().any(|end| !is_end(&end)) {
            let problem = "is not `}` and what ends a turn of text";
            return Err(self.error(self.field.close_key(), problem));
        }
        let mut call = self.call(Some(Marker::Text(begin)), None, rest);
        call.parallel = ParallelPolicy::One;
        call.trailer.push(Part::Text("}".to_owned()));
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

    /// The keys of a call in the parsed content.
    fn keys(&self) -> Lowered<Keys> {
        let function = &self.field.transform["function"];
        if function == "{content}" {
            let [name, arguments] = ["name", "arguments"].map(str::to_owned);
            return Ok(Keys { name, arguments, id: None });
        }
        let key = |value: &Value, pointer: &str| {
            let path = value.as_str().and_then(|path| path.strip_prefix('{')?.strip_suffix('}'));
            let path = path.map(|path| path.strip_prefix("content.").unwrap_or(path));
            path.filter(|path| !path.contains('.')).map(str::to_owned).ok_or_else(|| {
                self.error(&format!("transform/{pointer}"), "is not a member of the content")
            })
        };
        let id = match &self.field.transform["id"] {
            // Models write ids that their template does not read.
            Value::Null => self.field.transform_each.then(|| (UNREAD_ID.to_owned(), WireId::Made)),
            id => Some((key(id, "id")?, WireId::Id)),
        };
        let name = key(&function["name"], "function/name")?;
        Ok(Keys { name, arguments: key(&function["arguments"], "function/arguments")?, id })
    }
}

const TAG_PATTERN: &str = "content_args/tag_pattern";

/// The text before the name, with the white space that encoders write, if it begins a JSON object;
/// and the pieces from the name on.
fn object_begin(open: &[Piece]) -> Option<(String, &[Piece])> {
    let (before, rest) = open.split_at(open.iter().position(|piece| piece.is_group("name"))?);
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Space => Some(" ".to_owned()),
        _ => None,
    };
    let begin: String = before.iter().map(text).collect::<Option<_>>()?;
    begin.starts_with('{').then_some((begin, rest))
}

/// The end tags of the tags that `open` has and `end` does not close, the inner first.
fn unclosed_tags(open: &[Piece], end: &Marker) -> Vec<String> {
    let text: String = open
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            _ => " ",
        })
        .collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-:.".contains(c);
    let tags = text.split('<').skip(1).filter_map(|rest| {
        let len = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        (len > 0).then(|| format!("</{}>", &rest[..len]))
    });
    let end = end.write();
    let mut out: Vec<String> = tags.filter(|tag| !end.contains(tag.as_str())).collect();
    out.reverse();
    out
}

/// The key of ids in lists of calls.
const UNREAD_ID: &str = "tool_call_id";

/// `{"id": "ID", "name": "NAME", "arguments": ` with free white space.
fn object_header(keys: &Keys) -> Vec<Part> {
    let text = |text: &str| Part::Text(text.to_owned());
    let gap = |gap: &str| Part::Gap { gap: gap.to_owned() };
    let member = |key: &str| vec![text(&format!("\"{key}\"")), gap(""), text(":"), gap(" ")];
    let string = |key: &str, value: Part| {
        let rest = vec![text("\""), value, text("\""), gap(""), text(","), gap(" ")];
        [member(key), rest].concat()
    };
    let mut out = vec![text("{"), gap("")];
    if let Some((key, source)) = &keys.id {
        let id = string(key, Part::Id { id: IdStyle::Identifier });
        match source {
            WireId::Made => out.push(Part::Maybe { maybe: id }),
            _ => out.extend(id),
        }
    }
    out.extend(string(&keys.name, Part::Name { name: NameStyle::Json }));
    out.extend(member(&keys.arguments));
    out
}
