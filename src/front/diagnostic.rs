//! Diagnostics of a grammar's text: errors and warnings, each with its line, column and source
//! excerpt.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::hash::HashMap;

/// Maximum number of diagnostics of one text.
const MAX_MESSAGES: usize = 100;
/// Maximum number of messages about one text for which a similar name is looked for.
const MAX_SUGGESTIONS: usize = 20;
/// Number of bytes of a name that are compared with other names.
const MAX_COMPARED_BYTES: usize = 64;
/// Maximum number of errors of a JSON document.
pub(crate) const MAX_ERRORS: usize = 1_000;
/// Bytes of the pointers of the errors of a JSON document from which on no more are added: a name
/// may have megabytes.
pub(crate) const MAX_POINTER_BYTES: usize = 1 << 20;
/// Maximum number of bytes shown of a line; of longer lines, an excerpt around the position is
/// shown.
const MAX_SHOWN: usize = 160;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The text has no grammar.
    Error,
    /// The text has a grammar, but perhaps not the intended one.
    Warning,
}

/// A message about a range of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The message, in one line.
    pub message: String,
    /// The byte range in the text. An empty range is a position before a byte.
    pub span: Range<usize>,
    /// A label for the range, such as what was expected.
    pub label: Option<String>,
    /// A related range with a label, such as the first of two definitions.
    pub related: Option<(Range<usize>, String)>,
    /// Advice, such as a similar name.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error about a range of the text.
    pub fn error(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        let message = message.into();
        Diagnostic {
            severity: Severity::Error,
            message,
            span,
            label: None,
            related: None,
            help: None,
        }
    }

    /// A warning about a range of the text.
    pub fn warning(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// Sets the label.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Sets the related range.
    #[must_use]
    pub fn related(mut self, span: Range<usize>, what: impl Into<String>) -> Diagnostic {
        self.related = Some((span, what.into()));
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// The diagnostics of one text, in the order of the text. At most 100 are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    name: Arc<str>,
    text: Arc<str>,
    list: Vec<Diagnostic>,
    left_out: usize,
}

impl Diagnostics {
    /// An empty list. `name` is the name of the text in messages: a file name, or `grammar`.
    pub fn new(name: &str, text: &str) -> Diagnostics {
        Diagnostics { name: name.into(), text: text.into(), list: Vec::new(), left_out: 0 }
    }

    /// The same with another name of the text.
    pub fn named(self, name: &str) -> Diagnostics {
        Diagnostics { name: name.into(), ..self }
    }

    /// Adds a diagnostic. If the list is full, an error replaces a warning.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        if self.list.len() >= MAX_MESSAGES {
            self.left_out += 1;
            let warning = self.list.iter().rposition(|d| d.severity == Severity::Warning);
            match warning.filter(|_| diagnostic.severity == Severity::Error) {
                Some(warning) => drop(self.list.remove(warning)),
                None => return,
            }
        }
        diagnostic.span = self.clamp(diagnostic.span);
        if let Some((span, _)) = &mut diagnostic.related {
            *span = self.clamp(span.clone());
        }
        let at = self.list.partition_point(|d| d.span.start <= diagnostic.span.start);
        self.list.insert(at, diagnostic);
    }

    /// As [`similar`], for a diagnostic that will be added.
    pub(crate) fn similar<'a>(
        &self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        similar(name, candidates, self.list.len())
    }

    /// Advice to write the candidate that is most similar to a name.
    pub(super) fn suggest<'a>(
        &self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        self.similar(name, candidates).map(|name| format!("is `{name}` meant?"))
    }

    /// The error that none of the named grammars is called so.
    pub(super) fn unknown_grammar<'a>(
        &self,
        name: &str,
        span: &Range<usize>,
        known: impl IntoIterator<Item = &'a String>,
    ) -> Diagnostic {
        let similar = self.similar(name, known.into_iter().map(String::as_str));
        let help = similar.map(|name| format!("is `@{name}` meant?"));
        let message = format!("there is no grammar `{name}`");
        Diagnostic { help, ..Diagnostic::error(span.clone(), message) }
    }

    /// The diagnostics.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte of the text, both counted from 1; the column counts code points.
    pub fn place(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..floor_boundary(&self.text, offset)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    /// The diagnostics, each in one line: `line 2, column 5: what is wrong (what was expected);
    /// what to do`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.list.iter().map(|diagnostic| {
            let (line, column) = self.place(diagnostic.span.start);
            let label = diagnostic.label.as_ref().map(|label| format!(" ({label})"));
            let help = diagnostic.help.as_ref().map(|help| format!("; {help}"));
            let (label, help) = (label.unwrap_or_default(), help.unwrap_or_default());
            format!("line {line}, column {column}: {}{label}{help}", diagnostic.message)
        })
    }

    /// Clamps a range to the text and widens it to whole code points.
    fn clamp(&self, span: Range<usize>) -> Range<usize> {
        let start = floor_boundary(&self.text, span.start);
        let mut end = span.end.clamp(start, self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        start..end
    }

    /// Renders one diagnostic with its source excerpt.
    fn render(&self, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        // Of very long lines, such as a grammar generated as one line, only an excerpt is shown.
        let line = self.text[..diagnostic.span.start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[diagnostic.span.start..]
            .find('\n')
            .map_or(self.text.len(), |n| diagnostic.span.start + n);
        let (text, from) = if line_end - line <= MAX_SHOWN {
            (&*self.text, 0)
        } else {
            let from = floor_boundary(
                &self.text,
                diagnostic.span.start.saturating_sub(MAX_SHOWN / 2).max(line),
            );
            (&self.text[from..floor_boundary(&self.text, (from + MAX_SHOWN).min(line_end))], from)
        };
        let within = |span: &Range<usize>| {
            let start = span.start.checked_sub(from).filter(|&start| start <= text.len())?;
            // A range of several lines is marked in the first one.
            let end = (span.end - from).min(text.len());
            let end = text[start..end].find('\n').map_or(end, |n| start + n);
            Some(start..end)
        };
        let mut snippet = Snippet::source(text).path(&*self.name).line_start(self.place(from).0);
        if let Some(span) = within(&diagnostic.span) {
            snippet = snippet
                .annotation(AnnotationKind::Primary.span(span).label(diagnostic.label.as_deref()));
        }
        if let Some((span, what)) = &diagnostic.related
            && let Some(span) = within(span)
        {
            snippet = snippet.annotation(AnnotationKind::Context.span(span).label(Some(&**what)));
        }
        let mut group =
            Group::with_title(level.primary_title(&*diagnostic.message)).element(snippet);
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(&**help));
        }
        Renderer::plain().render(&[group])
    }
}

/// In the style of compilers: the message, the position, the source line with the range underlined,
/// and advice.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            f.write_str(&self.render(diagnostic))?;
        }
        if self.left_out > 0 {
            write!(f, "\n\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The keys of a list of options, with their ranges.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UniqueKeys(HashMap<String, Range<usize>>);

impl UniqueKeys {
    /// Adds a key; returns an error if it is in the list already.
    pub(super) fn add(&mut self, key: &str, span: &Range<usize>) -> Option<Diagnostic> {
        let first = self.0.insert(key.to_owned(), span.clone())?;
        let repeated = Diagnostic::error(span.clone(), format!("`{key}` is given twice"));
        Some(repeated.related(first, "first given here"))
    }
}

/// The last code point boundary at or before `offset`.
fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Whether names differ in capitals, underscores and hyphens only. Long names never do.
pub fn is_same_name(a: &str, b: &str) -> bool {
    fn folded(name: &str) -> impl Iterator<Item = u8> {
        let letters = name.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
        letters.map(|byte| byte.to_ascii_lowercase())
    }
    a.len().max(b.len()) <= MAX_COMPARED_BYTES && folded(a).eq(folded(b))
}

/// The candidate most similar to a name; `None` if none is similar, or if `earlier`, the number of
/// messages before this one, is 20 or more: for very many names, comparing takes too long.
pub fn similar<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    earlier: usize,
) -> Option<&'a str> {
    if earlier >= MAX_SUGGESTIONS {
        return None;
    }
    let name = &name[..floor_boundary(name, MAX_COMPARED_BYTES)];
    let scored = candidates
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate));
    let best = scored.filter(|(score, _)| *score >= 0.6).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, candidate)| candidate)
}

/// The end of a message that suggests a name; empty without a name.
pub(super) fn suggestion(name: Option<&str>) -> String {
    name.map(|name| format!("; is `{name}` meant?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_position_label_and_advice() {
        let text = "root ::= item\nitme ::= \"é\" [a-\n";
        let mut all = Diagnostics::new("list.ebnf", text);
        let at = text.find("[a-").unwrap();
        all.push(Diagnostic::error(at..at + 3, "a class without end").label("expected `]`"));
        let at = text.find("item").unwrap();
        let help = similar("item", ["root", "itme"], 0).map(|name| format!("is `{name}` meant?"));
        all.push(Diagnostic { help, ..Diagnostic::error(at..at + 4, "there is no rule `item`") });
        let shown = all.to_string();
        assert!(shown.starts_with("error: there is no rule `item`\n"), "{shown}");
        assert!(shown.contains("list.ebnf:1:10") && shown.contains("is `itme` meant?"), "{shown}");
        assert!(shown.contains("list.ebnf:2:14") && shown.contains("expected `]`"), "{shown}");
        assert_eq!(all.place(text.find('[').unwrap()), (2, 14));
    }

    #[test]
    fn comparing_names_is_bounded() {
        assert_eq!(similar("stat", ["start", "item"], MAX_SUGGESTIONS - 1), Some("start"));
        assert_eq!(similar("stat", ["start", "item"], MAX_SUGGESTIONS), None);
        let long = format!("{}é{}", "x".repeat(MAX_COMPARED_BYTES - 1), "y".repeat(1_000_000));
        let start = "x".repeat(MAX_COMPARED_BYTES - 1);
        assert_eq!(similar(&long, [start.as_str()], 0), Some(start.as_str()));
    }

    #[test]
    fn an_error_after_many_warnings_is_kept() {
        let mut all = Diagnostics::new("text", "a");
        (0..2 * MAX_MESSAGES).for_each(|_| all.push(Diagnostic::warning(0..1, "odd")));
        assert!(!all.has_errors());
        all.push(Diagnostic::error(0..1, "wrong"));
        assert!(all.has_errors() && all.list().len() == MAX_MESSAGES, "{all}");
    }

    #[test]
    fn out_of_range_spans_render_without_panic() {
        for text in ["", "\n", "é", "a\r\nb", &"x".repeat(5_000), &"é\n".repeat(200)] {
            for (start, end) in [(0, 0), (0, 1), (1, 0), (1, 9_999), (4_000, 4_001), (9_999, 9_999)]
            {
                let mut all = Diagnostics::new("text", text);
                all.push(Diagnostic::error(start..end, "wrong").related(0..1, "here"));
                assert!(all.to_string().len() < 2_000);
            }
        }
    }
}
