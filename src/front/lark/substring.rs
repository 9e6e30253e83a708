//! Lowers `%regex { "substring_...": ... }`: the substrings of a text, as its minimal factor
//! automaton.

use crate::front::factors::substring;
use crate::ir::Expr;
use crate::limits::Limits;
use crate::spec::json::Json;

/// Lowers the runs of consecutive chunks, the empty run included. Linear in the number of chunks.
/// Errors: a message about a malformed object.
pub(super) fn lower(object: &Json, limits: &Limits) -> Result<Expr, String> {
    let members: Vec<(&str, &Json)> =
        object.as_object().map(|o| o.iter().collect()).unwrap_or_default();
    let [(key, value)] = members[..] else {
        return Err(
            "expected one member: substring_chunks, substring_chars or substring_words".to_owned()
        );
    };
    let chunks: Vec<&str> = match (key, value) {
        ("substring_chars", Json::String(text)) => {
            text.char_indices().map(|(i, c)| &text[i..i + c.len_utf8()]).collect()
        }
        ("substring_words", Json::String(text)) => words(text),
        ("substring_chunks", Json::Array(list)) => {
            let texts: Option<Vec<&str>> = list.iter().map(Json::as_str).collect();
            texts.ok_or("`substring_chunks` must be an array of strings")?
        }
        ("substring_chars" | "substring_words", _) => {
            return Err(format!("`{key}` must be a string"));
        }
        ("substring_chunks", _) => {
            return Err("`substring_chunks` must be an array of strings".to_owned());
        }
        _ => {
            return Err(format!(
                "there is no `{key}`; \
                 known are substring_chunks, substring_chars and substring_words"
            ));
        }
    };
    if chunks.len() > limits.nodes {
        return Err(format!("more than {} chunks", limits.nodes));
    }
    Ok(substring(&chunks))
}

/// Splits a text into runs of white space, runs of letters, digits and `_`, and runs of other
/// characters.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| (c.is_whitespace(), c.is_alphanumeric() || c == '_');
    let mut out = Vec::new();
    let mut begin = 0;
    let mut last = None;
    for (i, c) in text.char_indices() {
        if last.is_some_and(|last| last != kind(c)) {
            out.push(&text[begin..i]);
            begin = i;
        }
        last = Some(kind(c));
    }
    if begin < text.len() {
        out.push(&text[begin..]);
    }
    out
}
