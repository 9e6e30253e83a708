//! The parser of a call's header: its syntax and the id that the model has written.

use memchr::memmem;

use super::call_ids::WireCallId;
use crate::format::{Part, WireFormat, WireId};
use crate::lowered::LoweredRequest;

/// A header that was parsed.
pub(super) struct ParsedHeader {
    pub(super) len: usize,
    pub(super) id: Option<WireCallId>,
    /// An index into the format's alternative spellings.
    pub(super) spelling: Option<usize>,
}

/// What stands before a header.
#[derive(Clone, Copy)]
pub(super) struct BeforeHeader<'a> {
    /// The markers since the last text or call.
    pub(super) markers: &'a [u8],
    /// The spelling of the call before.
    pub(super) spelling: Option<usize>,
}

impl BeforeHeader<'_> {
    /// The number of bytes of a begin marker of the template's calls, or of a spelling, before the
    /// header. 0: there is none, as before a call after a separator.
    fn begin_len(&self, format: &WireFormat, spelling: Option<usize>) -> usize {
        let section = format.section.as_ref().map(|section| &section.begin);
        let (markers, is_last) = match spelling.and_then(|k| format.all_spellings().nth(k)) {
            Some(spelling) => ([Some(&spelling.begin), None], true),
            // Parts of a section may stand between its begin marker and the header.
            None => ([format.call.begin.as_ref(), section], false),
        };
        let texts = markers.into_iter().flatten().flat_map(|marker| marker.as_texts());
        let found = texts.filter(|text| match is_last {
            true => self.markers.ends_with(text.as_bytes()),
            false => memmem::find(self.markers, text.as_bytes()).is_some(),
        });
        found.map(|text| text.len()).max().unwrap_or(0)
    }
}

/// Parses the header at the beginning of a text. Headers of several syntaxes may be the same: the
/// begin marker before the header decides, and without one, the call before.
pub(super) fn parse_header(
    lowered: &LoweredRequest,
    tool: usize,
    before: BeforeHeader<'_>,
    text: &str,
) -> Option<ParsedHeader> {
    let format = &lowered.inner.format;
    let tool = lowered.tools().get(tool)?;
    let spellings = format.all_spellings().enumerate().filter(|_| !tool.is_builtin);
    let headers = (tool.syntax(format, None).headers.into_iter())
        .map(|header| (None, header))
        .chain(spellings.map(|(k, spelling)| (Some(k), &spelling.header[..])));
    let parsed = headers.filter_map(|(spelling, header)| {
        let mut parser =
            HeaderParser { name: &tool.name, whole: text, source: format.call.id, id: None };
        let len = text.len() - parser.parse(header, text)?.len();
        let continues = spelling.is_some() && spelling == before.spelling;
        let rank = (before.begin_len(format, spelling), continues, len);
        Some((rank, ParsedHeader { len, id: parser.id, spelling }))
    });
    // The longest, as one may be a prefix of another. Of several, the first.
    let best = parsed.reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.map(|(_, header)| header)
}

struct HeaderParser<'t> {
    /// The tool's name.
    name: &'t str,
    /// The text from the beginning of the header.
    whole: &'t str,
    /// Which part of the header is the call's id.
    source: WireId,
    id: Option<WireCallId>,
}

impl<'t> HeaderParser<'t> {
    /// Parses the parts at the beginning of `rest`, and returns what follows them.
    fn parse(&mut self, parts: &[Part], mut rest: &'t str) -> Option<&'t str> {
        for part in parts {
            rest = match part {
                Part::Text(text) => rest.strip_prefix(text.as_str())?,
                Part::Name { name } => rest.strip_prefix(name.write(self.name).as_str())?,
                Part::Gap { .. } => rest.trim_start_matches([' ', '\t', '\n', '\r']),
                Part::Maybe { maybe } => self.parse(maybe, rest).unwrap_or(rest),
                Part::Marker(marker) => {
                    marker.as_texts().iter().find_map(|text| rest.strip_prefix(text.as_str()))?
                }
                Part::Id { id: style } => {
                    let end = rest.find(|c| !style.has(c));
                    let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
                    let prefix = match self.source {
                        WireId::Header => &self.whole[..self.whole.len() - rest.len()],
                        WireId::Made | WireId::Id => "",
                    };
                    self.id = (self.source != WireId::Made).then(|| WireCallId {
                        prefix: prefix.to_owned(),
                        number: number.to_owned(),
                        style: *style,
                    });
                    after
                }
            };
        }
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::IdStyle;

    #[test]
    fn ids_end_where_their_style_does() {
        for (style, text, id) in [
            (IdStyle::Identifier, "call_7-a:x", "call_7-a"),
            (IdStyle::Word, "abcdefgh-:x", "abcdefgh"),
            (IdStyle::FromZero, "12a:x", "12"),
        ] {
            let source = WireId::Id;
            let mut parser = HeaderParser { name: "f", whole: text, source, id: None };
            let rest = parser.parse(&[Part::Id { id: style }], text);
            assert_eq!(parser.id.map(|id| id.number).as_deref(), Some(id));
            assert_eq!(rest, text.strip_prefix(id));
        }
    }
}
