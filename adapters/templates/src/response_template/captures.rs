//! What a transform refers to: captures of the delimiters, and the content.

use louver::spec::json::push_token;
use serde_json::Value;

use super::ResponseTemplateWarning;
use super::delimiter::Piece;

/// The content of a region, which every transform may name.
const CONTENT: &str = "content";

/// Warnings for names in a transform that are neither captures of the delimiters nor the content.
/// `pointer` is that of the region.
pub(super) fn unknown(
    transform: &Value,
    pieces: &[&[Piece]],
    pointer: &str,
) -> Vec<ResponseTemplateWarning> {
    let mut known = vec![CONTENT];
    pieces.iter().for_each(|pieces| collect(pieces, &mut known));
    let mut out = Vec::new();
    visit(transform, &mut format!("{pointer}/transform"), &mut |text, pointer| {
        for name in names(text).filter(|name| !known.contains(name)) {
            let known = known.join("`, `");
            let what = format!("`{name}` is no capture: there are `{known}`");
            out.push(ResponseTemplateWarning { pointer: pointer.to_owned(), what });
        }
    });
    out
}

/// The names of the groups.
fn collect<'a>(pieces: &'a [Piece], out: &mut Vec<&'a str>) {
    for piece in pieces {
        match piece {
            Piece::Group(name) => out.push(name),
            Piece::Maybe(pieces) => collect(pieces, out),
            Piece::Any(branches) => branches.iter().for_each(|branch| collect(branch, out)),
            Piece::Text(_) | Piece::Space | Piece::Edge => {}
        }
    }
}

/// The first names of the paths in braces: `a` of `{a.b}`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let name = rest.split_once('}')?.0.split('.').next()?;
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(is_name)).then_some(name)
    })
}

/// Visits all strings with their JSON pointers.
fn visit(value: &Value, pointer: &mut String, visitor: &mut impl FnMut(&str, &str)) {
    let mut visit_child = |token: &str, child: &Value| {
        let len = pointer.len();
        push_token(pointer, token);
        visit(child, pointer, visitor);
        pointer.truncate(len);
    };
    match value {
        Value::String(text) => visitor(text, pointer),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(k, item)| visit_child(&k.to_string(), item));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| visit_child(key, member));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
