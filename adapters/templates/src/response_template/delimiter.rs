//! Delimiters of a response template, literal or as a regular expression, as parts of a wire
//! format.

use louver_formats::{Marker, MarkerPart, NameStyle, Part};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassPerlKind, GroupKind, LiteralKind, RepetitionKind, RepetitionRange,
};

use super::{Field, Lowered, OneOrMany, error};
use crate::units::marker_of;

/// A piece of a delimiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text.
    Text(String),
    /// Any white space, or none.
    Space,
    /// What a named group captures.
    Group(String),
    /// Pieces that may be missing.
    Maybe(Vec<Piece>),
    /// Alternatives.
    Any(Vec<Vec<Piece>>),
    /// The start or the end of the output.
    Edge,
}

impl Piece {
    pub(super) fn is_group(&self, name: &str) -> bool {
        matches!(self, Piece::Group(group) if group == name)
    }
}

/// The delimiters of a region.
pub(super) fn delimiters(
    field: &Field,
    pointer: &str,
) -> Lowered<(Option<Vec<Piece>>, Option<Vec<Piece>>)> {
    let at = |key: &str| format!("{pointer}/{key}");
    let open = pieces(field.open.as_ref(), field.open_pattern.as_deref())
        .map_err(|problem| error(at(field.open_key()), problem))?;
    let close = pieces(field.close.as_ref(), field.close_pattern.as_deref())
        .map_err(|problem| error(at(field.close_key()), problem))?;
    Ok((open, close))
}

/// The pieces of a delimiter, or why a pattern cannot be described.
fn pieces(
    literal: Option<&OneOrMany>,
    pattern: Option<&str>,
) -> Result<Option<Vec<Piece>>, String> {
    match (literal, pattern) {
        (Some(OneOrMany::One(text)), _) => Ok(Some(vec![Piece::Text(text.clone())])),
        (Some(OneOrMany::Many(texts)), _) => {
            let texts = texts.iter().map(|text| vec![Piece::Text(text.clone())]);
            Ok(Some(vec![Piece::Any(texts.collect())]))
        }
        (None, Some(pattern)) => Ok(Some(of_pattern(pattern)?)),
        (None, None) => Ok(None),
    }
}

/// The pieces of a regular expression. One that is a look-ahead and nothing else matches no text.
pub(super) fn of_pattern(pattern: &str) -> Result<Vec<Piece>, String> {
    let ahead = pattern.strip_prefix("(?=").map(|rest| format!("(?:{rest}"));
    if let Some(Ast::Group(_)) = ahead.and_then(|group| Parser::new().parse(&group).ok()) {
        return Ok(vec![Piece::Edge]);
    }
    let ast = Parser::new().parse(pattern).map_err(|error| error.kind().to_string())?;
    let mut out = Vec::new();
    add(&ast, &mut out)?;
    Ok(out)
}

fn of(ast: &Ast) -> Result<Vec<Piece>, String> {
    let mut out = Vec::new();
    add(ast, &mut out)?;
    Ok(out)
}

fn add(ast: &Ast, out: &mut Vec<Piece>) -> Result<(), String> {
    match ast {
        Ast::Empty(_) => {}
        Ast::Literal(literal) => match (&literal.kind, out.last_mut()) {
            (LiteralKind::HexFixed(_) | LiteralKind::HexBrace(_), _) => {
                return Err(format!("`{ast}` is a character by number"));
            }
            (_, Some(Piece::Text(text))) => text.push(literal.c),
            _ => out.push(Piece::Text(literal.c.to_string())),
        },
        Ast::ClassPerl(class) if class.kind == ClassPerlKind::Space && !class.negated => {
            out.push(Piece::Space);
        }
        Ast::Assertion(_) => out.push(Piece::Edge),
        Ast::Concat(concat) => concat.asts.iter().try_for_each(|ast| add(ast, out))?,
        Ast::Alternation(choice) => {
            let branches: Result<Vec<_>, _> = choice.asts.iter().map(of).collect();
            out.push(Piece::Any(branches?));
        }
        Ast::Group(group) => match &group.kind {
            GroupKind::CaptureName { name, .. } => out.push(Piece::Group(name.name.clone())),
            GroupKind::NonCapturing(flags) if !flags.items.is_empty() => {
                return Err(format!("`{ast}` has flags"));
            }
            _ => add(&group.ast, out)?,
        },
        Ast::Repetition(repetition) => {
            let is_literal_space =
                matches!(&*repetition.ast, Ast::Literal(l) if l.c.is_whitespace());
            let is_space = is_literal_space
                || matches!(&*repetition.ast, Ast::ClassPerl(class)
                    if class.kind == ClassPerlKind::Space && !class.negated);
            match &repetition.op.kind {
                _ if is_space => out.push(Piece::Space),
                RepetitionKind::ZeroOrOne
                | RepetitionKind::Range(RepetitionRange::Bounded(0, 1)) => {
                    out.push(Piece::Maybe(of(&repetition.ast)?));
                }
                _ => return Err(format!("`{ast}` is no fixed text")),
            }
        }
        _ => return Err(format!("`{ast}` is no fixed text")),
    }
    Ok(())
}

/// The most texts that one delimiter may be.
const MAX_TEXTS: usize = 64;

/// The fixed texts that a delimiter may be, without white space around them. `None` if a part of it
/// is not fixed, or if there are too many.
pub(super) fn texts(pieces: &[Piece]) -> Option<Vec<String>> {
    let all = all_texts(pieces)?;
    let trimmed = all.iter().map(|text| text.trim().to_owned());
    Some(trimmed.filter(|text| !text.is_empty()).collect())
}

/// The fixed texts that the pieces may be.
fn all_texts(pieces: &[Piece]) -> Option<Vec<String>> {
    let mut out = vec![String::new()];
    for piece in pieces {
        let next: Vec<String> = match piece {
            Piece::Text(text) => vec![text.clone()],
            Piece::Space | Piece::Edge => continue,
            Piece::Group(_) => return None,
            Piece::Maybe(pieces) => {
                let mut texts = all_texts(pieces)?;
                texts.push(String::new());
                texts
            }
            Piece::Any(branches) => {
                let branches: Option<Vec<Vec<String>>> =
                    branches.iter().map(|branch| all_texts(branch)).collect();
                branches?.concat()
            }
        };
        if out.len() * next.len() > MAX_TEXTS {
            return None;
        }
        out =
            out.iter().flat_map(|head| next.iter().map(move |tail| head.clone() + tail)).collect();
    }
    Some(out)
}

/// The marker of fixed texts, the first as it is written.
pub(super) fn marker(texts: &[String]) -> Option<Marker> {
    match texts {
        [] => None,
        [text] => Some(marker_of(text)),
        texts => Some(Marker::Any(texts.iter().map(|text| marker_of(text)).collect())),
    }
}

/// The most line feeds that are accepted before a marker where no text may stand.
const MAX_LINE_FEEDS: usize = 3;

/// The marker, which may stand after line feeds.
pub(super) fn after_line_feeds(marker: &Marker) -> Marker {
    let after = |line_feeds: usize| {
        let line_feeds = MarkerPart::Text("\n".repeat(line_feeds));
        Marker::Seq(vec![line_feeds, MarkerPart::Marker(marker.clone())])
    };
    Marker::Any([marker.clone()].into_iter().chain((1..=MAX_LINE_FEEDS).map(after)).collect())
}

/// The pieces with all white space between two of them in one piece, as texts beside it may have
/// some, too.
pub(super) fn apart(pieces: &[Piece]) -> Vec<Piece> {
    let is_space = |k: Option<usize>| k.and_then(|k| pieces.get(k)) == Some(&Piece::Space);
    let pieces = pieces.iter().enumerate().map(|(k, piece)| match piece {
        Piece::Text(text) => {
            let text = if is_space(k.checked_sub(1)) { text.trim_start() } else { text };
            let text = if is_space(k.checked_add(1)) { text.trim_end() } else { text };
            Piece::Text(text.to_owned())
        }
        other => other.clone(),
    });
    pieces.filter(|piece| *piece != Piece::Text(String::new())).collect()
}

/// Pieces as the header of a call. White space is a gap, and the group `name` is the tool's name.
pub(super) fn header(pieces: &[Piece], written_gap: &str) -> Result<Vec<Part>, String> {
    let pieces = apart(pieces);
    let mut out = Vec::new();
    for (k, piece) in pieces.iter().enumerate() {
        let is_quoted =
            matches!(pieces.get(k + 1), Some(Piece::Text(text)) if text.starts_with('"'));
        out.push(match piece {
            Piece::Text(text) => Part::Text(text.clone()),
            Piece::Space => Part::Gap { gap: written_gap.to_owned() },
            Piece::Group(name) if name == "name" && is_quoted => {
                Part::Name { name: NameStyle::Json }
            }
            Piece::Group(name) if name == "name" => Part::Name { name: NameStyle::Raw },
            Piece::Group(name) => return Err(format!("the group `{name}` has no meaning here")),
            Piece::Maybe(pieces) => Part::Maybe { maybe: header(pieces, written_gap)? },
            Piece::Edge => continue,
            Piece::Any(_) => return Err("alternatives around the name".to_owned()),
        });
    }
    Ok(out)
}
