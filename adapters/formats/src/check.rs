//! What the shape of a description does not say.

use crate::format::{ArgumentStyle, FormatError, TagPart, TaggedStyle, TextPlace, WireFormat};
use crate::marker::{Glue, MAX_SPELLINGS, Marker, Part};

type Fault = (&'static str, &'static str);

const EMPTY: &str = "is or contains an empty text";

impl WireFormat {
    /// Checks what the shape does not say: markers have text, a header names its tool once, an argument style can be
    /// read back. The first fault is returned.
    pub fn check(&self) -> Result<(), FormatError> {
        match self.fault() {
            Some((pointer, what)) => {
                Err(FormatError::Invalid { format: self.name.clone(), pointer, what })
            }
            None => Ok(()),
        }
    }

    fn fault(&self) -> Option<Fault> {
        if self.name.is_empty() {
            return Some(("/name", "is empty"));
        }
        let call = &self.call;
        let markers = (self
            .reasoning
            .iter()
            .flat_map(|r| [("/reasoning/begin", &r.begin), ("/reasoning/end", &r.end)]))
        .chain(self.section.iter().map(|s| ("/section/begin", &s.begin)))
        .chain(self.section.iter().filter_map(|s| s.end.as_ref()).map(|m| ("/section/end", m)))
        .chain(self.text.begin.iter().map(|m| ("/text/begin", m)))
        .chain(self.text.end.iter().map(|m| ("/text/end", m)))
        .chain(self.end.iter().map(|m| ("/end", m)))
        .chain(call.begin.iter().map(|m| ("/call/begin", m)))
        .chain(call.end.iter().map(|m| ("/call/end", m)))
        .chain(self.messages.iter().flat_map(|m| m.markers()));
        for (pointer, m) in markers {
            if let Some(what) = marker_fault(m) {
                return Some((pointer, what));
            }
        }
        let texts =
            (self.reasoning.iter().flat_map(|r| &r.excludes).map(|t| ("/reasoning/excludes", t)))
                .chain(self.text.excludes.iter().map(|t| ("/text/excludes", t)))
                .chain(self.stop_tokens.iter().map(|t| ("/stop_tokens", t)));
        if let Some((pointer, _)) = texts.into_iter().find(|(_, text)| text.is_empty()) {
            return Some((pointer, EMPTY));
        }
        let glues = (self
            .section
            .iter()
            .flat_map(|s| [("/section/lead", &s.lead), ("/section/trail", &s.trail)]))
        .chain([("/call/separator", &call.separator)]);
        for (pointer, glue) in glues {
            if let Some(what) = glue_fault(glue) {
                return Some((pointer, what));
            }
        }
        if self.text.begin.is_some() != self.text.end.is_some() {
            return Some(("/text", "has `begin` without `end`, or `end` without `begin`"));
        }
        if self.messages.is_some()
            && (self.text.end.is_none() || self.section.is_some() || self.end.is_some())
        {
            return Some((
                "/messages",
                "needs text with `begin` and `end`, and has no `section` and no `end`",
            ));
        }
        if let Some(fault) = self.builtin_fault().or_else(|| self.frame_fault()) {
            return Some(fault);
        }
        self.call_fault().or_else(|| self.spelling_fault()).or_else(|| {
            let empty = |rule: &crate::format::DetectRule| {
                rule.template.is_empty()
                    && rule.tokens.is_empty()
                    && rule.model_type.is_empty()
                    && rule.architectures.is_empty()
            };
            let what = "a rule needs `template`, `tokens`, `model_type` or `architectures`";
            self.detect.iter().any(empty).then_some(("/detect", what))
        })
    }

    fn builtin_fault(&self) -> Option<Fault> {
        let own = self.builtin.as_ref()?;
        if let Some((pointer, what)) =
            own.markers().into_iter().find_map(|(p, m)| Some((p, marker_fault(m)?)))
        {
            return Some((pointer, what));
        }
        if self.messages.is_some() && (own.begin.is_some() || own.bare_code) {
            return Some((
                "/builtin/begin",
                "is a message's header where turns are rows of messages",
            ));
        }
        if self.messages.is_none() && (own.begin.is_none() || self.text.end.is_some()) {
            return Some(("/builtin", "needs `begin`, and text without markers"));
        }
        if self.builtin_end().is_none() {
            return Some(("/builtin/end", "is needed where other calls have no end"));
        }
        for (pointer, header) in [("/builtin/header", &own.header)]
            .into_iter()
            .chain(own.also.iter().map(|h| ("/builtin/also", h)))
        {
            if let Some(what) = header_fault(header) {
                return Some((pointer, what));
            }
        }
        if own.trailer.iter().any(|part| matches!(part, Part::Name(_))) {
            return Some(("/builtin/trailer", "must not have the tool's name"));
        }
        if let Some(what) = own.trailer.iter().find_map(part_fault) {
            return Some(("/builtin/trailer", what));
        }
        if own.known.values().any(|schema| !schema.is_object() && !schema.is_boolean()) {
            return Some(("/builtin/known", "is not a JSON Schema"));
        }
        style_fault(&own.arguments).map(|(_, what)| ("/builtin/arguments", what))
    }

    fn frame_fault(&self) -> Option<Fault> {
        let frame = self.frame.as_ref()?;
        for (pointer, marker) in [("/frame/begin", &frame.begin), ("/frame/end", &frame.end)] {
            if let Some(what) = marker_fault(marker) {
                return Some((pointer, what));
            }
        }
        if frame.end.spellings().iter().any(|atoms| atoms.len() > 1) {
            return Some(("/frame/end", "is more than one text or token"));
        }
        let plain = self.messages.is_none()
            && self.text.end.is_none()
            && self.text.place != TextPlace::InsteadOfCalls;
        (!plain).then_some(("/frame", "needs text without markers beside calls"))
    }

    fn spelling_fault(&self) -> Option<Fault> {
        if self.messages.is_some() && !self.spellings.is_empty() {
            return Some(("/spellings", "are headers of calls where turns are rows of messages"));
        }
        // What ends with the beginning of another spelling would begin that one.
        let (begins, own) =
            (self.sure_begins(), self.builtin.as_ref().and_then(|own| own.begin.as_ref()));
        let own = own.map(Marker::text_heads).unwrap_or_default();
        let spelled: Vec<String> =
            self.spellings.iter().flat_map(|spelling| spelling.begin.text_heads()).collect();
        let ends =
            |text: &String| spelled.iter().any(|begin| begin != text && text.ends_with(begin));
        if begins.iter().any(|text| ends(text) && !own.iter().any(|own| text.starts_with(own))) {
            return Some(("/spellings/begin", "ends another beginning of calls"));
        }
        self.spellings.iter().find_map(|spelling| {
            let markers = [
                ("/spellings/begin", Some(&spelling.begin)),
                ("/spellings/end", spelling.end.as_ref()),
            ];
            let marker = |(at, marker): (_, Option<&Marker>)| Some((at, marker_fault(marker?)?));
            let trailer = (names(&spelling.trailer) > 0).then_some("must not have the tool's name");
            let trailer = trailer.or_else(|| spelling.trailer.iter().find_map(part_fault));
            let style = spelling.arguments.as_ref().unwrap_or(&self.call.arguments);
            let bare = spelling.trailer.is_empty() && !ends_itself(style);
            (markers.into_iter().find_map(marker))
                .or_else(|| Some(("/spellings/header", header_fault(&spelling.header)?)))
                .or_else(|| Some(("/spellings/trailer", trailer?)))
                .or_else(|| {
                    Some(("/spellings/separator", glue_fault(spelling.separator.as_ref()?)?))
                })
                .or_else(|| style_fault(style).map(|(_, what)| ("/spellings/arguments", what)))
                .or_else(|| {
                    bare.then_some(("/spellings/trailer", "is needed behind such arguments"))
                })
                .or_else(|| Some(("/spellings/text_unless", spelling.text_fault()?)))
        })
    }

    fn call_fault(&self) -> Option<Fault> {
        let call = &self.call;
        if call.begin.is_none() && self.section.is_none() && self.messages.is_none() {
            return Some(("/call/begin", "is needed where there is no section"));
        }
        for (pointer, header) in [("/call/header", &call.header)]
            .into_iter()
            .chain(call.also.iter().map(|h| ("/call/also", h)))
        {
            if let Some(what) = header_fault(header) {
                return Some((pointer, what));
            }
        }
        if names(&call.trailer) != 0 {
            return Some(("/call/trailer", "must not have the tool's name"));
        }
        if let Some(what) = call.trailer.iter().find_map(part_fault) {
            return Some(("/call/trailer", what));
        }
        if call.trailer.is_empty() && call.end.is_none() && !ends_itself(&call.arguments) {
            return Some((
                "/call/end",
                "with such arguments a call needs a trailer or an end marker",
            ));
        }
        style_fault(&call.arguments)
    }
}

fn ends_itself(style: &ArgumentStyle) -> bool {
    matches!(style, ArgumentStyle::Json | ArgumentStyle::Delimited(_))
}

fn style_fault(style: &ArgumentStyle) -> Option<Fault> {
    match style {
        ArgumentStyle::Json | ArgumentStyle::Keywords => None,
        ArgumentStyle::Delimited(marker) => {
            marker_fault(marker).map(|what| ("/call/arguments/delimited", what))
        }
        ArgumentStyle::Tagged(style) => tagged_fault(style),
    }
}

fn names(parts: &[Part]) -> usize {
    parts.iter().filter(|p| matches!(p, Part::Name(_))).count()
}

fn header_fault(header: &[Part]) -> Option<&'static str> {
    if names(header) != 1 {
        return Some("must have the tool's name exactly once");
    }
    header.iter().find_map(part_fault)
}

fn tagged_fault(style: &TaggedStyle) -> Option<Fault> {
    let open = "/call/arguments/tagged/open";
    if let Some(what) = marker_fault(&style.close) {
        return Some(("/call/arguments/tagged/close", what));
    }
    let one_text =
        |marker: &Marker| marker.texts_of_spellings().iter().all(|text| *text == marker.write());
    if !one_text(&style.close) {
        return Some(("/call/arguments/tagged/close", "has several texts"));
    }
    let fixed = |part: &TagPart| matches!(part, TagPart::Text(_) | TagPart::Marker(_));
    if !style.open.last().is_some_and(fixed) {
        return Some((open, "must end with a text"));
    }
    if !matches!(&style.open[..], [first, TagPart::Key(_), third, ..] if fixed(first) && fixed(third))
    {
        return Some((open, "must begin with a text, the argument's name and another text"));
    }
    if style.open[2..].iter().any(|part| matches!(part, TagPart::Key(_))) {
        return Some((open, "names the argument twice"));
    }
    let kinds = style.open.iter().filter(|part| matches!(part, TagPart::Kind(_))).count();
    let bare =
        style.open.windows(2).any(|two| matches!(two[0], TagPart::Kind(_)) && !fixed(&two[1]));
    if kinds > 1 || bare {
        return Some((open, "a word for the type may stand once, with a text behind it"));
    }
    if let Some(TagPart::Kind(kind)) =
        style.open.iter().find(|part| matches!(part, TagPart::Kind(_)))
    {
        let w = &kind.kind;
        let others = [&w.number, &w.boolean, &w.null, &w.array, &w.object];
        if w.string.is_empty() || others.iter().any(|word| word.is_empty() || **word == w.string) {
            return Some((
                open,
                "strings need a word for their type that no other type has, and words are not empty",
            ));
        }
    }
    if style.excludes.iter().any(String::is_empty) {
        return Some(("/call/arguments/tagged/excludes", EMPTY));
    }
    style.open.iter().find_map(|part| match part {
        TagPart::Text(text) if text.is_empty() => Some((open, EMPTY)),
        TagPart::Marker(marker) if !one_text(marker) => Some((open, "has several texts")),
        TagPart::Marker(marker) => marker_fault(marker).map(|what| (open, what)),
        _ => None,
    })
}

fn marker_fault(marker: &Marker) -> Option<&'static str> {
    if marker.texts().iter().any(|text| text.is_empty()) {
        return Some(EMPTY);
    }
    let spellings = marker.spellings();
    if spellings.is_empty() || spellings.iter().any(|atoms| atoms.is_empty()) {
        return Some("is nothing");
    }
    (spellings.len() > MAX_SPELLINGS).then_some("has too many spellings")
}

fn part_fault(part: &Part) -> Option<&'static str> {
    match part {
        Part::Text(text) if text.is_empty() => Some(EMPTY),
        Part::Maybe(part) if part.maybe.iter().any(|p| matches!(p, Part::Name(_))) => {
            Some("has a name that may be missing")
        }
        Part::Maybe(part) => part.maybe.iter().find_map(part_fault),
        Part::Gap(gap) if !gap.gap.bytes().all(|b| b.is_ascii_whitespace()) => {
            Some("a gap is white space")
        }
        Part::Marker(marker) => marker_fault(marker),
        _ => None,
    }
}

fn glue_fault(glue: &Glue) -> Option<&'static str> {
    match glue {
        Glue::Text(_) => None,
        Glue::Parts(parts) if parts.iter().any(|p| matches!(p, Part::Name(_) | Part::Id(_))) => {
            Some("must not have a name or an id")
        }
        Glue::Parts(parts) => parts.iter().find_map(part_fault),
    }
}
