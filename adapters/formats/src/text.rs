//! Free text: where it ends, what it excludes, and what tells it from calls.

use std::collections::VecDeque;

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::ByteSet;
use louver::ids::RuleId;
use louver::ir::{AfterTag, Dispatch, DispatchEnd, Expr, Graph, Trigger};

use crate::lower::Lowering;
use crate::marker::Marker;
use crate::plan::Role;

impl Lowering<'_> {
    /// Text up to one of the ends, which is part of it.
    pub(crate) fn dispatch(&mut self, ends: Vec<(Trigger, Expr)>, excludes: Vec<Vec<u8>>) -> Expr {
        let mut dispatch =
            Dispatch { tags: Vec::new(), stops: Vec::new(), excludes, after: AfterTag::End, end: DispatchEnd::AtStop };
        for (trigger, rest) in ends {
            if rest == Expr::Empty {
                dispatch.stops.push(trigger);
            } else {
                let rest = self.builder.labelled("end", Role::Marker.label(), rest);
                dispatch.tags.push((trigger, rest));
            }
        }
        Expr::Dispatch(Box::new(dispatch))
    }

    /// Framed text behind its begin marker, with its end. A stop string ends it too.
    pub(crate) fn text_until(&mut self, end: &Marker, role: Role) -> Expr {
        let mut ends = self.heads(end);
        for stop in &self.request.stop {
            let end = self.marker(end);
            ends.push((Trigger::Text(stop.as_bytes().to_vec()), end));
        }
        let excludes = self.text_excludes();
        let body = self.dispatch(ends, excludes);
        Expr::Ref(self.builder.labelled("text", role.label(), body))
    }

    fn text_excludes(&self) -> Vec<Vec<u8>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        for text in self.format.text.excludes.iter().chain(&self.request.bans) {
            if !out.iter().any(|e| e == text.as_bytes()) {
                out.push(text.as_bytes().to_vec());
            }
        }
        out
    }

    /// Free text that cannot be taken for calls. Where calls begin with a single character, text begins with another
    /// (and with none that begins something it excludes); otherwise it contains no beginning of calls at all.
    pub(crate) fn text_instead_of_calls(&mut self) -> Expr {
        let own = self.format.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref());
        let begin = self.format.section.as_ref().map(|s| &s.begin).or(self.format.call.begin.as_ref());
        let heads: Vec<String> = begin.into_iter().chain(own).flat_map(Marker::text_heads).collect();
        let single: Vec<char> = heads.iter().filter(|head| head.chars().count() == 1).flat_map(|h| h.chars()).collect();
        if single.is_empty() {
            return self.text(Vec::new(), AfterTag::End);
        }
        let mut excludes = self.text_excludes();
        excludes.extend(heads.iter().filter(|head| head.chars().count() > 1).map(|head| head.as_bytes().to_vec()));
        let begun = excludes.iter().filter_map(|e| String::from_utf8_lossy(e).chars().next());
        let not: Vec<char> = single.into_iter().chain(begun).collect();
        if self.request.stop.is_empty() && self.request.bans.is_empty() {
            // One rule, so that its mask entry serves all requests. All its transitions are written out: the texts are the format's.
            let text = self.builder.labelled("text", Role::Text.label(), without(&not, &excludes));
            return Expr::optional(Expr::Ref(text));
        }
        let stops = self.request.stop.iter().map(|stop| Trigger::Text(stop.as_bytes().to_vec())).collect();
        let (tags, after, end) = (Vec::new(), AfterTag::End, DispatchEnd::Anywhere);
        let rest = Expr::Dispatch(Box::new(Dispatch { tags, stops, excludes, after, end }));
        let label = Role::Text.label();
        let rest = Expr::Ref(self.builder.labelled("text", label, rest));
        let first = self.builder.labelled("first of text", label, all_but(&not));
        Expr::optional(Expr::seq([Expr::Ref(first), rest]))
    }

    /// Free text. Without tags, no call can begin in it. In a frame it ends with that.
    pub(crate) fn text(&mut self, tags: Vec<(Trigger, RuleId)>, after: AfterTag) -> Expr {
        let body = self.text_body(tags, after);
        Expr::Ref(self.builder.labelled("text", Role::Text.label(), body))
    }

    pub(crate) fn text_body(&mut self, mut tags: Vec<(Trigger, RuleId)>, after: AfterTag) -> Expr {
        let mut excludes = self.text_excludes();
        let own = self.format.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref());
        let begin = self.format.section.as_ref().map(|s| &s.begin).or(self.format.call.begin.as_ref());
        for text in begin.into_iter().chain(own).flat_map(Marker::text_heads) {
            let text = text.as_bytes();
            let begins = |trigger: &Trigger| match trigger {
                Trigger::Text(trigger) => trigger.starts_with(text) || text.starts_with(trigger),
                Trigger::Special(_) | Trigger::Led(..) => false,
            };
            if !tags.iter().any(|(trigger, _)| begins(trigger)) && !excludes.iter().any(|e| e == text) {
                excludes.push(text.to_vec());
            }
        }
        let mut stops: Vec<Trigger> =
            self.request.stop.iter().map(|stop| Trigger::Text(stop.as_bytes().to_vec())).collect();
        let mut end = DispatchEnd::Anywhere;
        if let Some(frame_end) = self.frame_end.clone() {
            for stop in std::mem::take(&mut stops) {
                let closing = self.closing();
                tags.push((stop, self.builder.labelled("end", Role::Marker.label(), closing)));
            }
            (stops, end) = (self.triggers(&frame_end), DispatchEnd::AtStop);
        }
        Expr::Dispatch(Box::new(Dispatch { tags, stops, excludes, after, end }))
    }
}

/// Every code point but these.
fn all_but(chars: &[char]) -> Expr {
    let mut codes: Vec<u32> = chars.iter().map(|&c| u32::from(c)).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut ranges = Vec::new();
    for (lo, hi) in SCALARS {
        let mut from = lo;
        for &code in codes.iter().filter(|code| (lo..=hi).contains(*code)) {
            if code > from {
                ranges.push((from, code - 1));
            }
            from = code + 1;
        }
        if from <= hi {
            ranges.push((from, hi));
        }
    }
    spell_utf8(&ranges)
}

/// Text whose first code point is none of these, and which contains none of the texts; those begin with one of these.
/// The automaton of Aho and Corasick.
fn without(not: &[char], texts: &[Vec<u8>]) -> Expr {
    let known = ByteSet::of(&texts.concat());
    // By node and known byte: the trie, then where a byte leads that is no child.
    let bytes: Vec<u8> = known.iter().collect();
    let column = |byte: u8| bytes.binary_search(&byte).unwrap_or(0);
    let mut next: Vec<Vec<Option<usize>>> = vec![vec![None; bytes.len()]];
    let mut whole = vec![false];
    for text in texts {
        let mut at = 0;
        for &byte in text {
            at = next[at][column(byte)].unwrap_or_else(|| {
                next.push(vec![None; bytes.len()]);
                whole.push(false);
                let new = next.len() - 1;
                next[at][column(byte)] = Some(new);
                new
            });
        }
        whole[at] = true;
    }
    let mut fail = vec![0; next.len()];
    let mut todo = VecDeque::from([0]);
    while let Some(at) = todo.pop_front() {
        let row = next[at].clone();
        for (column, child) in row.into_iter().enumerate() {
            let other = if at == 0 { 0 } else { next[fail[at]][column].unwrap_or(0) };
            match child {
                Some(child) => {
                    fail[child] = other;
                    whole[child] |= whole[other];
                    todo.push_back(child);
                }
                None => next[at][column] = Some(other),
            }
        }
    }
    let mut graph = Graph::default();
    graph.start = graph.node();
    let nodes: Vec<u32> = next.iter().map(|_| graph.node()).collect();
    graph.edge(graph.start, all_but(not), nodes[0]);
    for (at, row) in next.iter().enumerate().filter(|(at, _)| !whole[*at]) {
        graph.ends.push(nodes[at]);
        graph.edge(nodes[at], Expr::Class(known.complement()), nodes[0]);
        for (&to, &byte) in row.iter().flatten().zip(&bytes).filter(|(to, _)| !whole[**to]) {
            graph.edge(nodes[at], Expr::Class(ByteSet::of(&[byte])), nodes[to]);
        }
    }
    Expr::Graph(Box::new(graph))
}
