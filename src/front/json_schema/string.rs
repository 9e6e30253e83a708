//! Strings. Free text may be spelt with any escape JSON has; texts that a pattern, a constant or a name constrains are
//! spelt with the escapes JSON requires and no others.

use std::sync::{Arc, OnceLock};

use super::facets::StringFacets;
use super::lower::Lowering;
use super::normalize::Normalizer;
use super::{NonAscii, SchemaErrorReason as Reason};
use crate::front::regex::{SCALARS, scalar_from, scalar_until};
use crate::fsm::{ByteSet, Dfa, Edge, Levels, TooLarge};
use crate::ir::{Counted, Expr, Graph, regular};
use crate::spec::json::write_string;

/// A string as a JSON string literal, its non-ASCII characters as asked for.
pub(super) fn literal(text: &str, other: NonAscii) -> Expr {
    if text.is_ascii() || other == NonAscii::Raw {
        let mut out = String::with_capacity(text.len() + 2);
        write_string(&mut out, text);
        return Expr::text(&out);
    }
    let quote = || Expr::text("\"");
    let chars = text.chars().map(|c| spell(&[(u32::from(c), u32::from(c))], other));
    Expr::seq([quote()].into_iter().chain(chars).chain([quote()]))
}

/// The same as texts, all characters raw or all of them escaped.
pub(super) fn literals(text: &str, other: NonAscii) -> Vec<Vec<u8>> {
    let mut raw = String::with_capacity(text.len() + 2);
    write_string(&mut raw, text);
    if text.is_ascii() || other == NonAscii::Raw {
        return vec![raw.into_bytes()];
    }
    let mut escaped = String::with_capacity(raw.len() * 2);
    for c in raw.chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    match other {
        NonAscii::Escaped => vec![escaped.into_bytes()],
        _ => vec![raw.into_bytes(), escaped.into_bytes()],
    }
}

/// Bytes that stand for themselves in a JSON string, ASCII only.
pub(super) fn plain_ascii() -> ByteSet {
    let mut set = ByteSet::range(0x20, 0x7F);
    set.remove(b'"');
    set.remove(b'\\');
    set
}

/// Whether a text is spelt as it is, and in no other way.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = plain_ascii();
    text.bytes().all(|byte| plain.contains(byte))
}

fn hex(lo: u8, hi: u8) -> Expr {
    let mut set = ByteSet::EMPTY;
    for digit in lo..=hi {
        match digit {
            0..=9 => set.insert(b'0' + digit),
            _ => {
                set.insert(b'a' + digit - 10);
                set.insert(b'A' + digit - 10);
            }
        }
    }
    Expr::Class(set)
}

/// Texts that every schema has, as automata that are built once.
fn built(of: fn(NonAscii) -> Expr, all: &'static [OnceLock<Expr>; 3], other: NonAscii) -> Expr {
    let index = match other {
        NonAscii::Either => 0,
        NonAscii::Raw => 1,
        NonAscii::Escaped => 2,
    };
    let build = || {
        let written = of(other);
        regular::automaton(&written, &[], MAX_STATES).map_or(written, |dfa| Expr::Automaton(dfa.minimize().into()))
    };
    all[index].get_or_init(build).clone()
}

/// More states than any of them has.
const MAX_STATES: usize = 1_000;

/// One code point of a JSON string, in any spelling.
pub(super) fn any_char(other: NonAscii) -> Expr {
    static BUILT: [OnceLock<Expr>; 3] = [const { OnceLock::new() }; 3];
    built(any_char_written, &BUILT, other)
}

fn any_char_written(other: NonAscii) -> Expr {
    let surrogate = |lo| {
        let kind = if lo { hex(0xC, 0xF) } else { hex(8, 0xB) };
        Expr::seq([Expr::Class(ByteSet::of(b"dD")), kind, hex(0, 15), hex(0, 15)])
    };
    let not_d = {
        let Expr::Class(mut set) = hex(0, 15) else { return Expr::Never };
        set.remove(b'd');
        set.remove(b'D');
        Expr::Class(set)
    };
    let unit = Expr::alt([
        Expr::seq([not_d, hex(0, 15), hex(0, 15), hex(0, 15)]),
        Expr::seq([Expr::Class(ByteSet::of(b"dD")), hex(0, 7), hex(0, 15), hex(0, 15)]),
        Expr::seq([surrogate(false), Expr::text("\\u"), surrogate(true)]),
    ]);
    let escape = Expr::alt([Expr::Class(ByteSet::of(b"\"\\/bfnrt")), Expr::seq([Expr::text("u"), unit])]);
    let raw = if other == NonAscii::Escaped { Expr::Never } else { Expr::code_points('\u{80}', char::MAX) };
    Expr::alt([Expr::Class(plain_ascii()), raw, Expr::seq([Expr::text("\\"), escape])])
}

/// Code points of a JSON string, ASCII escaped only where JSON requires it, the rest as asked for.
pub(super) fn spell(ranges: &[(u32, u32)], other: NonAscii) -> Expr {
    if let [(lo, hi)] = *ranges
        && lo == hi
        && let Ok(byte) = u8::try_from(lo)
        && plain_ascii().contains(byte)
    {
        return Expr::Class(ByteSet::range(byte, byte));
    }
    let (mut ascii, mut short, mut rest) = (ByteSet::EMPTY, ByteSet::EMPTY, Vec::new());
    let mut controls = [ByteSet::EMPTY; 2];
    for &(lo, hi) in ranges {
        for c in lo..=hi.min(0x7F) {
            let byte = c as u8;
            match byte {
                b'"' | b'\\' => short.insert(byte),
                0x20.. => ascii.insert(byte),
                _ => {
                    if let Some(i) = [8, 12, 10, 13, 9].iter().position(|&b| b == byte) {
                        short.insert(b"bfnrt"[i]);
                    }
                    let Expr::Class(digit) = hex(byte % 16, byte % 16) else { continue };
                    let row = &mut controls[usize::from(byte / 16)];
                    *row = row.union(&digit);
                }
            }
        }
        if let (true, Some(lo), Some(hi)) = (hi >= 0x80, scalar_from(lo.max(0x80)), scalar_until(hi)) {
            if other != NonAscii::Escaped {
                rest.push(Expr::code_points(lo, hi));
            }
            if other != NonAscii::Raw {
                escaped(u32::from(lo), u32::from(hi), &mut rest);
            }
        }
    }
    let rows =
        controls.iter().zip(["u000", "u001"]).map(|(set, text)| Expr::seq([Expr::text(text), Expr::class(*set)]));
    let escape = Expr::alt([Expr::class(short)].into_iter().chain(rows));
    Expr::alt([Expr::class(ascii)].into_iter().chain(rest).chain([Expr::seq([Expr::text("\\"), escape])]))
}

/// Spellings of `lo..=hi` as `\uXXXX`, surrogate pairs past the first plane.
fn escaped(lo: u32, hi: u32, out: &mut Vec<Expr>) {
    let units = |lo, hi| Expr::alt(hex_range(lo, hi, 4).into_iter().map(|digits| prefixed("\\u", digits)));
    if lo < 0xD800 {
        out.push(units(lo, hi.min(0xD7FF)));
    }
    if hi >= 0xE000 && lo <= 0xFFFF {
        out.push(units(lo.max(0xE000), hi.min(0xFFFF)));
    }
    if hi < 0x1_0000 {
        return;
    }
    let (lo, hi) = (lo.max(0x1_0000) - 0x1_0000, hi - 0x1_0000);
    let pair = |high: (u32, u32), low: (u32, u32)| {
        Expr::seq([units(0xD800 + high.0, 0xD800 + high.1), units(0xDC00 + low.0, 0xDC00 + low.1)])
    };
    let (first, last) = (lo >> 10, hi >> 10);
    if first == last {
        return out.push(pair((first, last), (lo & 0x3FF, hi & 0x3FF)));
    }
    out.push(pair((first, first), (lo & 0x3FF, 0x3FF)));
    if last - first > 1 {
        out.push(pair((first + 1, last - 1), (0, 0x3FF)));
    }
    out.push(pair((last, last), (0, hi & 0x3FF)));
}

fn prefixed(prefix: &str, digits: Vec<Expr>) -> Expr {
    Expr::seq([Expr::text(prefix)].into_iter().chain(digits))
}

/// Hexadecimal numbers of `width` digits from `lo` to `hi`, as sequences of digit classes.
fn hex_range(lo: u32, hi: u32, width: u32) -> Vec<Vec<Expr>> {
    if width == 0 {
        return vec![Vec::new()];
    }
    let unit = 1 << (4 * (width - 1));
    let (first, last) = (lo / unit, hi / unit);
    let digit = |from: u32, to: u32| hex(from as u8, to as u8);
    let part = |from: u32, to: u32, lo: u32, hi: u32| {
        hex_range(lo, hi, width - 1).into_iter().map(move |rest| [digit(from, to)].into_iter().chain(rest).collect())
    };
    if first == last {
        return part(first, first, lo % unit, hi % unit).collect();
    }
    let mut out: Vec<Vec<Expr>> = Vec::new();
    let (mut from, mut to) = (first, last);
    if !lo.is_multiple_of(unit) {
        out.extend(part(first, first, lo % unit, unit - 1));
        from += 1;
    }
    if hi % unit != unit - 1 {
        out.extend(part(last, last, 0, hi % unit));
        to -= 1;
    }
    if from <= to {
        out.extend(part(from, to, 0, unit - 1));
    }
    out
}

/// What may follow an opening quote or any part of a text that is free from there on: characters, then the quote.
pub(super) fn free_tail(other: NonAscii) -> Expr {
    static BUILT: [OnceLock<Expr>; 3] = [const { OnceLock::new() }; 3];
    built(|other| Expr::seq([Expr::star(any_char_written(other)), Expr::text("\"")]), &BUILT, other)
}

/// A character that is not plain ASCII, escaped only where required.
pub(super) fn special_char(other: NonAscii) -> Expr {
    static BUILT: [OnceLock<Expr>; 3] = [const { OnceLock::new() }; 3];
    const RANGES: [(u32, u32); 5] = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x80, 0xD7FF), (0xE000, 0x10FFFF)];
    built(|other| spell(&RANGES, other), &BUILT, other)
}

impl<'a> Lowering<'a, '_> {
    /// A string with these facets, quotes included.
    pub(super) fn string(&mut self, facets: &StringFacets<'a>) -> Expr {
        if facets.is_free() {
            return Expr::Ref(self.string_rule());
        }
        let mut key = format!("{} {:?}", facets.min, facets.max);
        for p in &facets.patterns {
            key.push_str(if p.negated { "\0!" } else { "\0" });
            key.push_str(p.source);
        }
        for text in &facets.excluded {
            key.push_str("\0-");
            key.push_str(text);
        }
        if let Some(known) = self.strings.get(&key) {
            return known.clone();
        }
        let body = if !self.syntax.is_json() {
            self.foreign_string(facets)
        } else if facets.patterns.is_empty() && facets.excluded.is_empty() {
            self.counted_string(facets)
        } else {
            self.matched_string(facets)
        };
        let out = if body == Expr::Never { Expr::Never } else { Expr::Ref(self.rule("text".into(), body)) };
        self.strings.insert(key, out.clone());
        out
    }

    fn counted_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let quote = Expr::text("\"");
        match facets.max {
            Some(max) => Expr::seq([
                quote.clone(),
                Expr::repeat(any_char(self.norm.options.non_ascii), facets.min, Some(max)),
                quote,
            ]),
            None => {
                let tail = Expr::Ref(self.tail_rule());
                Expr::seq([
                    quote,
                    Expr::repeat(any_char(self.norm.options.non_ascii), facets.min, Some(facets.min)),
                    tail,
                ])
            }
        }
    }

    fn matched_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let mut facets = facets.clone();
        if let ([only], true) = (&facets.patterns[..], facets.excluded.is_empty())
            && !only.negated
        {
            let Some(known) = self.norm.pattern(only) else { return Expr::Never };
            let pattern = known.pattern();
            let other = self.norm.options.non_ascii;
            // Bounds that the pattern implies anyway.
            let (fewest, most) = pattern.search_length();
            if fewest >= facets.min {
                facets.min = 0;
            }
            if most.is_some_and(|most| facets.max.is_some_and(|max| most <= max)) {
                facets.max = None;
            }
            if let Some(body) = pattern.of_length(facets.min, facets.max, &mut |ranges| spell(ranges, other)) {
                let quote = || Expr::text("\"");
                if body == Expr::Never {
                    self.norm.conflict(
                        only.loc,
                        only.keyword,
                        "no text matches all patterns and lengths that hold here",
                    );
                }
                return Expr::seq([quote(), body, quote()]);
            }
            if facets.min == 0
                && facets.max.is_none()
                && let Some(branches) = pattern.branches(&mut |ranges| spell(ranges, other))
            {
                let anchored = branches.iter().all(|b| b.at_start && b.at_end);
                if anchored || known.search_dfa(self.norm.limits.automaton_states.min(4_096)).is_err() {
                    let tail = Expr::Ref(self.tail_rule());
                    let bodies = branches.into_iter().map(|b| {
                        let before =
                            if b.at_start { Expr::Empty } else { Expr::star(any_char(self.norm.options.non_ascii)) };
                        let after = if b.at_end { Expr::text("\"") } else { tail.clone() };
                        Expr::seq([before, b.body, after])
                    });
                    return Expr::seq([Expr::text("\""), Expr::alt(bodies)]);
                }
            }
        }
        if let ([only], true, true) =
            (&facets.patterns[..], facets.excluded.is_empty(), facets.min > 0 || facets.max.is_some())
            && !only.negated
        {
            let Some(dfa) = self.norm.pattern_dfa(only) else { return Expr::Never };
            if let Some((first, looped)) = chain(&dfa)
                && facets.max.is_none_or(|max| max as usize >= first.len())
            {
                // One code point a step: the bounds are counters, not an automaton of as many states.
                let other = self.norm.options.non_ascii;
                let (min, steps) = (facets.min.saturating_sub(first.len() as u32), first.len() as u32);
                let rest = Expr::repeat(spell(&looped, other), min, facets.max.map(|max| max - steps));
                let parts = first.iter().map(|ranges| spell(ranges, other)).chain([rest]).collect::<Vec<_>>();
                return Expr::seq([Expr::text("\"")].into_iter().chain(parts).chain([Expr::text("\"")]));
            }
        }
        let lengths = (facets.min, facets.max);
        let counted = facets.min > 0 || facets.max.is_some();
        (facets.min, facets.max) = (0, None);
        let Some(mut dfa) = self.norm.text_dfa(&facets) else { return Expr::Never };
        if counted {
            if let Some(texts) = self.counted_texts(&dfa, lengths) {
                return Expr::seq([Expr::text("\""), texts, Expr::text("\"")]);
            }
            (facets.min, facets.max) = lengths;
            let Some(exact) = self.norm.text_dfa(&facets) else { return Expr::Never };
            dfa = exact;
        }
        if dfa.is_empty() {
            if let Some(p) = facets.patterns.first() {
                self.norm.conflict(p.loc, p.keyword, "no text matches all patterns and lengths that hold here");
            }
            return Expr::Never;
        }
        Expr::seq([Expr::text("\""), self.text_graph(&dfa)])
    }

    /// The texts of an automaton over code points whose length is in these bounds, where they are worth counting as they are read:
    /// there would be many states for many lengths, and texts of every state can be ended in numbers of steps that repeat soon.
    fn counted_texts(&mut self, dfa: &Dfa, (min, max): (u32, Option<u32>)) -> Option<Expr> {
        /// As many states are made at once.
        const FEW: usize = 256;
        /// As many times the states that may be made at once may be made as they are met: most never are.
        const MANY: usize = 8;
        let states = dfa.len().saturating_mul(max.unwrap_or(min) as usize + 1);
        if states <= FEW || states > self.norm.limits.automaton_states.saturating_mul(MANY) {
            return None;
        }
        let ends: Vec<u32> = (0..dfa.len() as u32).filter(|&state| dfa.is_final(state)).collect();
        let mut graph = Graph { nodes: dfa.len() as u32, ends, ..Graph::default() };
        self.spelt_edges(dfa, |_| false, &mut graph);
        let counted = Counted { graph, min, max };
        let levels = Levels::of(dfa.len(), &counted.steps(), &counted.graph.ends, max)?;
        levels.ends_within(0, min, max).then(|| Expr::Counted(Box::new(counted)))
    }

    /// As [`spell`], in two parts (either may be [`Expr::Never`]): plain ASCII, and a rule for the rest, as automata spell the same
    /// few classes many times.
    fn spell_shared(&mut self, ranges: &[(u32, u32)]) -> [Expr; 2] {
        if let Some(known) = self.spelt.get(ranges) {
            return known.clone();
        }
        let plain = plain_ascii();
        let (mut ascii, mut rest) = (ByteSet::EMPTY, Vec::new());
        for &(lo, hi) in ranges {
            for code in lo..=hi.min(0x7F) {
                match code as u8 {
                    byte if plain.contains(byte) => ascii.insert(byte),
                    _ => rest.push((code, code)),
                }
            }
            if hi >= 0x80 {
                rest.push((lo.max(0x80), hi));
            }
        }
        let rest = match self.classes.get(&rest) {
            _ if rest.is_empty() => Expr::Never,
            Some(&known) => Expr::Ref(known),
            None => match spell(&rest, self.norm.options.non_ascii) {
                Expr::Never => Expr::Never,
                body => {
                    let rule = self.rule("class".into(), body);
                    self.classes.insert(rest, rule);
                    Expr::Ref(rule)
                }
            },
        };
        let spelt = [Expr::class(ascii), rest];
        self.spelt.insert(ranges.into(), spelt.clone());
        spelt
    }

    /// The texts of an automaton over code points, with the closing quote.
    pub(super) fn text_graph(&mut self, dfa: &Dfa) -> Expr {
        let mut graph = Graph { nodes: dfa.len() as u32 + 1, ..Graph::default() };
        let end = dfa.len() as u32;
        graph.ends.push(end);
        self.spelt_edges(dfa, |state| is_free(dfa, state), &mut graph);
        for state in 0..dfa.len() as u32 {
            if is_free(dfa, state) {
                graph.edge(state, Expr::Ref(self.tail_rule()), end);
            } else if dfa.is_final(state) {
                graph.edge(state, Expr::text("\""), end);
            }
        }
        Expr::Graph(Box::new(graph))
    }

    /// The edges of an automaton over code points, spelt, but for those of some states.
    fn spelt_edges(&mut self, dfa: &Dfa, skip: impl Fn(u32) -> bool, graph: &mut Graph) {
        let (mut edges, mut ranges): (Vec<Edge>, Ranges) = (Vec::new(), Vec::new());
        for state in (0..dfa.len() as u32).filter(|&state| !skip(state)) {
            edges.clear();
            edges.extend_from_slice(dfa.edges(state));
            edges.sort_by_key(|e| e.to);
            for same in edges.chunk_by(|a, b| a.to == b.to) {
                ranges.clear();
                ranges.extend(same.iter().map(|e| (e.lo, e.hi)));
                for symbol in self.spell_shared(&ranges).into_iter().filter(|symbol| *symbol != Expr::Never) {
                    graph.edge(state, symbol, same[0].to);
                }
            }
        }
    }
}

/// Symbol ranges.
type Ranges = Vec<(u32, u32)>;

/// A language of texts that begin with one symbol each of some classes, and go on with any number of one class.
fn chain(dfa: &Dfa) -> Option<(Vec<Ranges>, Ranges)> {
    let mut first = Vec::new();
    let mut at = 0;
    loop {
        let edges = dfa.edges(at);
        let to = edges.first()?.to;
        if edges.iter().any(|e| e.to != to) || first.len() > dfa.len() {
            return None;
        }
        let ranges: Ranges = edges.iter().map(|e| (e.lo, e.hi)).collect();
        match (dfa.is_final(at), to == at) {
            (true, true) => return Some((first, ranges)),
            (false, false) => first.push(ranges),
            _ => return None,
        }
        at = to;
    }
}

/// Whether anything may follow: the state is final and every symbol leads back to it.
fn is_free(dfa: &Dfa, state: u32) -> bool {
    dfa.is_final(state)
        && dfa.edges(state).iter().all(|e| e.to == state)
        && dfa.edges(state).iter().map(|e| (e.lo, e.hi)).eq(SCALARS)
}

impl<'a> Normalizer<'a> {
    /// The texts that satisfy the facets, as an automaton over code points; `None` (reported) past a limit.
    pub(super) fn text_dfa(&mut self, facets: &StringFacets<'a>) -> Option<Arc<Dfa>> {
        let limit = self.limits.automaton_states;
        let mut parts: Vec<(Arc<Dfa>, bool)> = Vec::with_capacity(facets.patterns.len());
        for pattern in &facets.patterns {
            parts.push((self.pattern_dfa(pattern)?, !pattern.negated));
        }
        let joined = || -> Result<Arc<Dfa>, TooLarge> {
            let counted = facets.min > 0 || facets.max.is_some();
            let mut out = match &parts[..] {
                [] if facets.excluded.is_empty() => {
                    return Dfa::counted(&SCALARS, facets.min, facets.max, limit).map(Arc::new);
                }
                [(only, true)] => only.clone(),
                parts => {
                    let parts: Vec<(&Dfa, bool)> = parts.iter().map(|(dfa, within)| (&**dfa, *within)).collect();
                    Arc::new(Dfa::all_of(&parts, &SCALARS, limit)?)
                }
            };
            if !facets.excluded.is_empty() {
                let words = facets.excluded.iter().map(|text| text.chars().map(u32::from).collect::<Vec<_>>());
                out = Arc::new(out.without(&Dfa::words(words), limit)?);
            }
            if counted {
                // Last, as it multiplies states.
                out = Arc::new(out.of_length(facets.min, facets.max, limit)?);
            }
            Ok(out)
        };
        match joined() {
            Ok(dfa) => Some(dfa),
            Err(_) => {
                if let Some(p) = facets.patterns.first() {
                    let what = format!("patterns and lengths together need more than {limit} states");
                    self.report(p.loc, p.keyword, Reason::Limit(what));
                }
                None
            }
        }
    }
}
