//! Units of wire text: tags and special tokens, which are never taken apart, and single characters.

use louver_formats::{Marker, MarkerPart};

/// A unit of wire text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit<'a> {
    pub(crate) text: &'a str,
    /// Whether it is a tag or a special token.
    pub(crate) is_tag: bool,
}

/// The most bytes of a tag that no list of tokens names.
const MAX_TAG: usize = 64;

/// The units of a text. `tokens` are special tokens. Tags are `<...>`, with `<` at most once, and
/// `[...]` of capital letters.
pub(crate) fn units<'a>(text: &'a str, tokens: &[String]) -> Vec<Unit<'a>> {
    let mut out = Vec::new();
    let mut at = 0;
    let first_bytes = FirstBytes::of(tokens);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let tokens = tokens.iter().filter(|_| first_bytes.start(rest.as_bytes()));
        let token = tokens.filter(|token| rest.starts_with(token.as_str()));
        let token = token.map(String::len).max().unwrap_or(0);
        let len = token.max(tag_len(rest));
        let is_tag = len > 0;
        let len = if is_tag { len } else { c.len_utf8() };
        out.push(Unit { text: &rest[..len], is_tag });
        at += len;
    }
    out
}

/// The bytes that tokens begin with. There may be a thousand tokens, and few places that one begins
/// at.
pub(crate) struct FirstBytes([bool; 256]);

impl FirstBytes {
    pub(crate) fn of<'t>(tokens: impl IntoIterator<Item = &'t String>) -> FirstBytes {
        let mut first = [false; 256];
        for byte in tokens.into_iter().filter_map(|token| token.bytes().next()) {
            first[usize::from(byte)] = true;
        }
        FirstBytes(first)
    }

    /// Whether a token may stand at the start of the text.
    pub(crate) fn start(&self, text: &[u8]) -> bool {
        text.first().is_some_and(|byte| self.0[usize::from(*byte)])
    }
}

/// The length of the tag that a text begins with, or 0.
fn tag_len(text: &str) -> usize {
    // Special tokens between bars may have any character but white space.
    if let Some(inner) = text.strip_prefix("<|")
        && let Some(end) = inner.find("|>").filter(|&end| end < MAX_TAG)
        && !inner[..end].contains(|c: char| c.is_whitespace() || c == '<')
    {
        return end + "<||>".len();
    }
    let (close, is_inner): (char, fn(char) -> bool) = match text.chars().next() {
        Some('<') => ('>', |c| c != '<' && !c.is_whitespace() && c != '"' && c != '{'),
        Some('[') => (']', |c| c.is_ascii_uppercase() || c == '_' || c == '/'),
        _ => return 0,
    };
    let end = text[1..].find(|c: char| c == close || !is_inner(c)).map(|end| end + 1);
    let end = end.filter(|&end| end > 1 && end < MAX_TAG && text[end..].starts_with(close));
    end.map_or(0, |end| end + 1)
}

/// A text as a marker, in which each tag may be a special token.
pub(crate) fn marker_of(text: &str) -> Marker {
    let steps: Vec<MarkerPart> = units(text, &[])
        .into_iter()
        .map(|unit| match unit.is_tag {
            true => MarkerPart::Marker(Marker::Either(unit.text.to_owned())),
            false => MarkerPart::Text(unit.text.to_owned()),
        })
        .collect();
    match &steps[..] {
        [MarkerPart::Marker(marker)] => marker.clone(),
        [MarkerPart::Text(text)] => Marker::Text(text.clone()),
        _ if steps.iter().all(|step| matches!(step, MarkerPart::Text(_))) => {
            Marker::Text(text.to_owned())
        }
        _ => Marker::Seq(joined(steps)),
    }
}

/// Steps with adjacent texts joined.
fn joined(steps: Vec<MarkerPart>) -> Vec<MarkerPart> {
    let mut out: Vec<MarkerPart> = Vec::new();
    for step in steps {
        match (out.last_mut(), step) {
            (Some(MarkerPart::Text(text)), MarkerPart::Text(more)) => text.push_str(&more),
            (_, step) => out.push(step),
        }
    }
    out
}

/// Whether a text is one tag and white space.
pub(crate) fn only_tag(text: &str, tokens: &[String]) -> bool {
    matches!(units(text.trim(), tokens)[..], [unit] if unit.is_tag)
}

/// The length of the common prefix of two texts in whole units.
pub(crate) fn common_start(a: &str, b: &str, tokens: &[String]) -> usize {
    let (a, b) = (units(a, tokens), units(b, tokens));
    let equal = a.iter().zip(&b).take_while(|(a, b)| a.text == b.text);
    equal.map(|(unit, _)| unit.text.len()).sum()
}

/// The length of the common suffix of two texts in whole units.
pub(crate) fn common_end(a: &str, b: &str, tokens: &[String]) -> usize {
    let (a, b) = (units(a, tokens), units(b, tokens));
    let equal = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a.text == b.text);
    equal.map(|(unit, _)| unit.text.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_tokens_are_whole() {
        let tokens = ["<|a b|>".to_owned()];
        let texts = |text| -> Vec<&str> {
            units(text, &tokens).iter().filter(|unit| unit.is_tag).map(|unit| unit.text).collect()
        };
        assert_eq!(
            texts("x<tool_call>\n</tool_call>[ARGS][a]"),
            ["<tool_call>", "</tool_call>", "[ARGS]"]
        );
        assert_eq!(texts("a < b > c <|a b|><|\"|><p q=\"r\">"), ["<|a b|>", "<|\"|>"]);
        assert_eq!(common_start("<a>x<b>", "<a>x<c>", &[]), 4);
        assert_eq!(common_end("<a>\n</b>", "<b>\n</b>", &[]), 5);
    }

    #[test]
    fn a_marker_may_be_special_tokens() {
        assert_eq!(marker_of("<a>"), Marker::Either("<a>".to_owned()));
        assert_eq!(marker_of("Action: "), Marker::Text("Action: ".to_owned()));
        let steps = [
            MarkerPart::Marker(Marker::Either("<a>".to_owned())),
            MarkerPart::Text("json".to_owned()),
            MarkerPart::Marker(Marker::Either("<b>".to_owned())),
        ];
        assert_eq!(marker_of("<a>json<b>"), Marker::Seq(steps.to_vec()));
    }
}
