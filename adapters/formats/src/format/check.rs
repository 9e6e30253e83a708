//! Checks of a description that its types do not express.

use louver::front::json_schema::NestedStyle;

use super::call_syntax::CallSyntax;
use super::marker::MAX_VARIANTS;
use super::{
    ArgumentStyle, FixedParts, FormatError, Marker, NestedTags, Part, StringQuotes, TagPart,
    TaggedStyle, TextPlace, WireFormat, WireId,
};

/// An error is the JSON pointer of a field, and what is wrong with the field.
type Checked = Result<(), (String, &'static str)>;

const EMPTY: &str = "is or contains an empty text";

fn refuse(is_wrong: bool, pointer: &str, what: &'static str) -> Checked {
    if is_wrong { Err((pointer.to_owned(), what)) } else { Ok(()) }
}

impl WireFormat {
    /// Checks what the types do not express: markers have text, a header names its tool, the
    /// extractor can read the arguments. Returns the first fault.
    pub fn check(&self) -> Result<(), FormatError> {
        self.check_fields().map_err(|(pointer, what)| FormatError::Invalid {
            format: self.name.clone(),
            line: None,
            pointer,
            what,
        })
    }

    fn check_fields(&self) -> Checked {
        refuse(self.name.is_empty(), "/name", "is empty")?;
        for (pointer, marker) in self.clone().markers_mut() {
            check_marker(&pointer, marker)?;
        }
        let has_empty = |texts: &[String]| texts.iter().any(String::is_empty);
        if let Some(reasoning) = &self.reasoning {
            refuse(has_empty(&reasoning.excludes), "/reasoning/excludes", EMPTY)?;
            let is_skipped = reasoning.skipped.is_some() && self.messages.is_some();
            let what = "is not used where turns are sequences of messages";
            refuse(is_skipped, "/reasoning/skipped", what)?;
        }
        refuse(has_empty(&self.text.excludes), "/text/excludes", EMPTY)?;
        refuse(has_empty(&self.stop_tokens), "/stop_tokens", EMPTY)?;
        if let Some(section) = &self.section {
            check_fixed_parts("/section/lead", &section.lead)?;
            check_fixed_parts("/section/trail", &section.trail)?;
            let is_anywhere = self.text.place == TextPlace::Anywhere && self.call.begin.is_none();
            let what = "is needed where calls have no begin marker and text is `anywhere`: without \
                        it, set `text.place` to \"before-calls\"";
            refuse(section.end.is_none() && is_anywhere, "/section/end", what)?;
        }
        let is_message = self.messages.is_some();
        let may_lack_end = is_message && self.text.begin.is_some();
        let is_half = self.text.begin.is_some() != self.text.end.is_some() && !may_lack_end;
        refuse(is_half, "/text", "has `begin` without `end`, or `end` without `begin`")?;
        let is_anywhere = self.text.place == TextPlace::Anywhere;
        let what = "is for text without `begin`: use \"before-calls\" or \"instead-of-calls\"";
        refuse(self.text.begin.is_some() && is_anywhere && !is_message, "/text/place", what)?;
        let fits = self.text.begin.is_some() && self.section.is_none() && self.end.is_none();
        let what = "needs text with `begin`, and has no `section` and no `end`";
        refuse(is_message && !fits, "/messages", what)?;
        let continued = self.messages.as_ref().and_then(|format| format.continued_end.as_ref());
        let ends = self.call.end.as_ref().map(Marker::as_texts).unwrap_or_default();
        let is_other = continued.is_some_and(|end| !ends.contains(&end.write()));
        refuse(is_other, "/messages/continued_end", "is not one of the variants of `call.end`")?;
        self.check_suffix()?;
        self.check_builtin()?;
        self.check_frame()?;
        self.check_call()?;
        self.check_spellings()?;
        let empty = self.detect.iter().position(|rule| {
            rule.template.is_empty()
                && rule.tokens.is_empty()
                && rule.model_type.is_empty()
                && rule.architectures.is_empty()
        });
        let what = "a rule needs `template`, `tokens`, `model_type` or `architectures`";
        refuse(empty.is_some(), &format!("/detect/{}", empty.unwrap_or_default()), what)
    }

    fn check_suffix(&self) -> Checked {
        let Some(suffix) = &self.suffix else { return Ok(()) };
        refuse(suffix.is_empty(), "/suffix", EMPTY)?;
        let mut format = self.clone();
        let mut markers = format.markers_mut().into_iter();
        let is_used = markers.any(|(_, marker)| marker.write().contains(suffix));
        refuse(!is_used, "/suffix", "is in no marker")
    }

    fn check_builtin(&self) -> Checked {
        let Some(builtin) = &self.builtin else { return Ok(()) };
        let Some(syntax) = self.builtin_syntax(false) else { return Ok(()) };
        if self.messages.is_some() {
            let what = "is not used where turns are sequences of messages";
            refuse(builtin.begin.is_some() || builtin.bare_code, "/builtin/begin", what)?;
        } else {
            let what = "needs `begin`, and text without markers";
            refuse(builtin.begin.is_none() || self.text.end.is_some(), "/builtin", what)?;
        }
        let what = "is needed where other calls have no end";
        refuse(syntax.end.is_none(), "/builtin/end", what)?;
        check_syntax("/builtin", &syntax)?;
        let is_schema = |value: &serde_json::Value| value.is_object() || value.is_boolean();
        let what = "is not a JSON Schema";
        refuse(!builtin.known.values().all(is_schema), "/builtin/known", what)
    }

    fn check_frame(&self) -> Checked {
        let Some(frame) = &self.frame else { return Ok(()) };
        let is_long = frame.end.variants().iter().any(|atoms| atoms.len() > 1);
        refuse(is_long, "/frame/end", "is more than one text or token")?;
        let fits = self.messages.is_none()
            && self.text.end.is_none()
            && self.text.place != TextPlace::InsteadOfCalls;
        refuse(!fits, "/frame", "needs text without markers beside calls")
    }

    fn check_call(&self) -> Checked {
        let has_begin = self.calls_begin_marker().is_some() || self.messages.is_some();
        refuse(!has_begin, "/call/begin", "is needed where there is no section")?;
        let begins = self.calls_begin_marker().map(Marker::as_texts).unwrap_or_default();
        let is_white = begins.iter().any(|text| text.trim().is_empty());
        let pointer = if self.section.is_some() { "/section/begin" } else { "/call/begin" };
        refuse(is_white, pointer, "is white space alone, which text may have")?;
        let mut headers = std::iter::once(&self.call.header).chain(&self.call.also);
        let has_id = headers.any(|header| header.iter().any(has_id));
        let what = "needs an id part in the header";
        refuse(self.call.id != WireId::Made && !has_id, "/call/id", what)?;
        check_fixed_parts("/call/separator", &self.call.separator)?;
        let syntax = self.call_syntax();
        check_syntax("/call", &syntax)?;
        let is_open = syntax.end.is_none() && !syntax.is_self_delimiting();
        refuse(is_open, "/call/end", "with such arguments a call needs a trailer or an end marker")
    }

    fn check_spellings(&self) -> Checked {
        let what = "are not used where turns are sequences of messages";
        refuse(self.messages.is_some() && !self.spellings.is_empty(), "/spellings", what)?;
        // A marker that ends with the begin marker of a spelling would begin that spelling.
        let builtin_begins = self.builtin_begin().map(Marker::plain_texts).unwrap_or_default();
        let spelling_begins: Vec<String> =
            self.spellings.iter().flat_map(|spelling| spelling.begin.plain_texts()).collect();
        let is_taken = self.unambiguous_begin_texts().iter().any(|text| {
            spelling_begins.iter().any(|begin| begin != text && text.ends_with(begin))
                && !builtin_begins.iter().any(|begin| text.starts_with(begin))
        });
        refuse(is_taken, "/spellings/begin", "is the end of another begin marker of calls")?;
        for (k, spelling) in self.spellings.iter().enumerate() {
            let pointer = format!("/spellings/{k}");
            let syntax = self.spelling_syntax(spelling);
            check_syntax(&pointer, &syntax)?;
            if let Some(separator) = &spelling.separator {
                check_fixed_parts(&format!("{pointer}/separator"), separator)?;
            }
            let what = "is needed after such arguments";
            refuse(!syntax.is_self_delimiting(), &format!("{pointer}/trailer"), what)?;
            spelling
                .check_text_unless()
                .map_err(|what| (format!("{pointer}/text_unless"), what))?;
        }
        Ok(())
    }
}

impl CallSyntax<'_> {
    /// Whether a reader finds the end of the arguments without an end marker of the call.
    pub(crate) fn is_self_delimiting(&self) -> bool {
        let ends_itself =
            matches!(self.arguments, ArgumentStyle::Json | ArgumentStyle::Delimited(_));
        ends_itself || !self.trailer.is_empty()
    }
}

fn check_syntax(pointer: &str, syntax: &CallSyntax<'_>) -> Checked {
    for (k, header) in syntax.headers.iter().enumerate() {
        let pointer = format!("{pointer}/{}", if k == 0 { "header" } else { "also" });
        refuse(count_names(header) == 0, &pointer, "must have the tool's name")?;
        header.iter().try_for_each(|part| check_part(&pointer, part))?;
    }
    let trailer = format!("{pointer}/trailer");
    refuse(count_names(syntax.trailer) > 0, &trailer, "must not have the tool's name")?;
    syntax.trailer.iter().try_for_each(|part| check_part(&trailer, part))?;
    match syntax.arguments {
        ArgumentStyle::Tagged(style) => check_tagged(&format!("{pointer}/arguments/tagged"), style),
        ArgumentStyle::Nested(tags) => check_nested(&format!("{pointer}/arguments/nested"), tags),
        ArgumentStyle::Delimited(mark) => {
            check_string_mark(&format!("{pointer}/arguments/delimited"), mark)
        }
        ArgumentStyle::Json | ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => Ok(()),
    }
}

/// Whether all variants of a marker are the same text.
fn has_one_text(marker: &Marker) -> bool {
    marker.as_texts().iter().all(|text| *text == marker.write())
}

/// A marker that ends an unescaped string. Readers search for its one text, so that the grammar
/// must exclude the text from strings.
fn check_string_end(pointer: &str, end: &Marker) -> Checked {
    refuse(!has_one_text(end), pointer, "has several texts")?;
    let what = "is never text, so that a string could contain its text: use `either` for `token`";
    refuse(end.plain_texts().is_empty(), pointer, what)
}

/// A marker that ends an unescaped string and begins something.
fn check_string_mark(pointer: &str, mark: &Marker) -> Checked {
    let has_one_atom = mark.variants().iter().all(|atoms| atoms.len() == 1);
    refuse(!has_one_atom, pointer, "is not one text or token")?;
    check_string_end(pointer, mark)
}

fn check_nested(pointer: &str, NestedTags { mark, item }: &NestedTags) -> Checked {
    check_string_mark(&format!("{pointer}/mark"), mark)?;
    let is_name = NestedStyle::can_write_name(item);
    refuse(!is_name, &format!("{pointer}/item"), "is not the name of a tag")
}

fn count_names(parts: &[Part]) -> usize {
    parts.iter().filter(|part| matches!(part, Part::Name { .. })).count()
}

/// Whether a part is an id, or has one that may be missing.
fn has_id(part: &Part) -> bool {
    match part {
        Part::Id { .. } => true,
        Part::Maybe { maybe } => maybe.iter().any(has_id),
        Part::Text(_) | Part::Name { .. } | Part::Gap { .. } | Part::Marker(_) => false,
    }
}

fn check_tagged(pointer: &str, style: &TaggedStyle) -> Checked {
    let TaggedStyle { open: parts, close, excludes, quotes, before, between, after, .. } = style;
    let open = &format!("{pointer}/open");
    let is_fixed = |part: &TagPart| matches!(part, TagPart::Text(_) | TagPart::Marker(_));
    let is_key = |part: &TagPart| matches!(part, TagPart::Key { .. });
    let is_kind = |part: &TagPart| matches!(part, TagPart::Kind { .. });
    check_string_end(&format!("{pointer}/close"), close)?;
    refuse(!parts.last().is_some_and(is_fixed), open, "must end with a text")?;
    refuse(
        parts.len() < 3 || !is_fixed(&parts[0]) || !is_key(&parts[1]) || !is_fixed(&parts[2]),
        open,
        "must begin with a text, the argument's name and another text",
    )?;
    refuse(parts[2..].iter().any(is_key), open, "names the argument twice")?;
    for (field, fixed) in [("before", before), ("between", between), ("after", after)] {
        check_fixed_parts(&format!("{pointer}/{field}"), fixed)?;
        let is_gap = fixed.parts().last().is_some_and(|part| matches!(part, Part::Gap { .. }));
        let is_white = matches!(&parts[0], TagPart::Text(text) if text.trim_start().is_empty());
        let what = "begins with white space alone, which the gap before it may have, too";
        refuse(field != "after" && is_gap && is_white, open, what)?;
    }
    refuse(
        parts.iter().filter(|part| is_kind(part)).count() > 1
            || parts.windows(2).any(|pair| is_kind(&pair[0]) && !is_fixed(&pair[1])),
        open,
        "a word for the type may stand once, with a text after it",
    )?;
    for part in parts {
        match part {
            TagPart::Kind { kind: words } => {
                let others =
                    [&words.number, &words.boolean, &words.null, &words.array, &words.object];
                refuse(
                    words.string.is_empty()
                        || others.iter().any(|word| word.is_empty() || **word == words.string),
                    open,
                    "strings need a word for their type that no other type has, and words are not \
                     empty",
                )?;
            }
            TagPart::Text(text) => refuse(text.is_empty(), open, EMPTY)?,
            TagPart::Marker(marker) => refuse(!has_one_text(marker), open, "has several texts")?,
            TagPart::Key { .. } | TagPart::Gap { .. } => {}
        }
    }
    if let Some(StringQuotes { begin, end, around }) = quotes {
        let quotes = &format!("{pointer}/quotes");
        let has_empty = begin.is_empty() || end.is_empty() || around.iter().any(String::is_empty);
        refuse(has_empty, quotes, EMPTY)?;
        // No value in JSON or Python begins so.
        let is_value = begin.starts_with(|c: char| !c.is_ascii_punctuation())
            || begin.starts_with(['"', '\'', '[', '{', '-']);
        refuse(is_value, quotes, "begin like a value")?;
        let is_taken = begin.starts_with(&style.lead) && !style.lead.is_empty();
        refuse(is_taken, quotes, "begin like the lead")?;
    }
    let has_empty = excludes.iter().any(String::is_empty);
    refuse(has_empty, &format!("{pointer}/excludes"), EMPTY)
}

fn check_marker(pointer: &str, marker: &Marker) -> Checked {
    refuse(marker.has_empty_text(), pointer, EMPTY)?;
    let variants = marker.variants();
    let is_nothing = variants.is_empty() || variants.iter().any(Vec::is_empty);
    refuse(is_nothing, pointer, "is empty")?;
    refuse(variants.len() > MAX_VARIANTS, pointer, "has too many variants")
}

fn check_part(pointer: &str, part: &Part) -> Checked {
    match part {
        Part::Text(text) => refuse(text.is_empty(), pointer, EMPTY),
        Part::Maybe { maybe } => {
            refuse(count_names(maybe) > 0, pointer, "has a name that may be missing")?;
            maybe.iter().try_for_each(|part| check_part(pointer, part))
        }
        Part::Gap { gap } => {
            let is_space = gap.bytes().all(|byte| byte.is_ascii_whitespace());
            refuse(!is_space, pointer, "a gap is white space")
        }
        Part::Name { .. } | Part::Id { .. } | Part::Marker(_) => Ok(()),
    }
}

fn check_fixed_parts(pointer: &str, fixed_parts: &FixedParts) -> Checked {
    let FixedParts::Parts(parts) = fixed_parts else { return Ok(()) };
    let has_name = parts.iter().any(|part| matches!(part, Part::Name { .. } | Part::Id { .. }));
    refuse(has_name, pointer, "must not have a name or an id")?;
    parts.iter().try_for_each(|part| check_part(pointer, part))
}
