//! `%regex { "substring_...": ... }`: the pieces of a text, as the smallest automaton of its factors.

use crate::hash::HashMap;
use crate::ir::{Expr, Graph};
use crate::limits::Limits;
use crate::spec::json::Json;

/// The runs of consecutive chunks, none of them included, of what the object says; or what is wrong with it. Linear in the
/// number of chunks.
pub(super) fn lower(object: &Json, limits: &Limits) -> Result<Expr, String> {
    let members: Vec<(&str, &Json)> = object.as_object().map(|o| o.iter().collect()).unwrap_or_default();
    let [(key, value)] = members[..] else {
        return Err("expected one member: substring_chunks, substring_chars or substring_words".to_owned());
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
        ("substring_chars" | "substring_words", _) => return Err(format!("`{key}` must be a string")),
        ("substring_chunks", _) => return Err("`substring_chunks` must be an array of strings".to_owned()),
        _ => {
            return Err(format!(
                "there is no `{key}`; known are substring_chunks, substring_chars and substring_words"
            ));
        }
    };
    if chunks.len() > limits.nodes {
        return Err(format!("more than {} chunks", limits.nodes));
    }
    Ok(factors(&chunks))
}

/// Runs of white space, of letters, digits and `_`, and of anything else.
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

/// The suffix automaton (Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985), every state an end.
fn factors(chunks: &[&str]) -> Expr {
    struct State<'c> {
        length: usize,
        link: Option<usize>,
        next: HashMap<&'c str, usize>,
    }
    let mut states = vec![State { length: 0, link: None, next: HashMap::default() }];
    let mut last = 0;
    for &chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        let new = states.len();
        states.push(State { length: states[last].length + 1, link: Some(0), next: HashMap::default() });
        let mut at = Some(last);
        while let Some(p) = at.filter(|&p| !states[p].next.contains_key(chunk)) {
            states[p].next.insert(chunk, new);
            at = states[p].link;
        }
        if let Some(p) = at {
            let q = states[p].next[chunk];
            if states[q].length == states[p].length + 1 {
                states[new].link = Some(q);
            } else {
                let clone = states.len();
                let (next, link) = (states[q].next.clone(), states[q].link);
                states.push(State { length: states[p].length + 1, link, next });
                let mut at = Some(p);
                while let Some(p) = at.filter(|&p| states[p].next.get(chunk) == Some(&q)) {
                    states[p].next.insert(chunk, clone);
                    at = states[p].link;
                }
                states[q].link = Some(clone);
                states[new].link = Some(clone);
            }
        }
        last = new;
    }
    let mut graph = Graph { nodes: states.len() as u32, ..Graph::default() };
    graph.ends = (0..graph.nodes).collect();
    for (from, state) in states.iter().enumerate() {
        let mut next: Vec<(&str, usize)> = state.next.iter().map(|(&chunk, &to)| (chunk, to)).collect();
        next.sort_unstable();
        next.into_iter().for_each(|(chunk, to)| graph.edge(from as u32, Expr::text(chunk), to as u32));
    }
    Expr::Graph(Box::new(graph))
}
