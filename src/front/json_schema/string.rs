//! Strings. Free text may be spelt with any escape JSON has; texts that a pattern constrains are spelt as the options say.

use std::sync::Arc;

use super::facets::StringFacets;
use super::lower::Lowering;
use super::normalize::Normalizer;
use super::spelling::plain_ascii;
use super::{Escapes, SchemaErrorReason as Reason};
use crate::front::regex::SCALARS;
use crate::fsm::{ByteSet, Dfa, Edge, Levels, TooLarge};
use crate::ir::{Counted, Expr, Graph};

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
        let out = if body == Expr::Never {
            Expr::Never
        } else {
            Expr::Ref(self.rule("text".into(), body))
        };
        self.strings.insert(key, out.clone());
        out
    }

    fn counted_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let quote = Expr::text("\"");
        match facets.max {
            Some(max) => Expr::seq([
                quote.clone(),
                Expr::repeat(self.spelling().any_char(), facets.min, Some(max)),
                quote,
            ]),
            None => {
                let tail = Expr::Ref(self.tail_rule());
                Expr::seq([
                    quote,
                    Expr::repeat(self.spelling().any_char(), facets.min, Some(facets.min)),
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
            let spelling = self.spelling();
            // Bounds that the pattern implies anyway.
            let (fewest, most) = pattern.search_length();
            if fewest >= facets.min {
                facets.min = 0;
            }
            if most.is_some_and(|most| facets.max.is_some_and(|max| most <= max)) {
                facets.max = None;
            }
            if let Some(body) =
                pattern.of_length(facets.min, facets.max, &mut |ranges| spelling.spell(ranges))
            {
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
            // An automaton is better where it is worth what it takes: instead of what looks for a pattern, and of counters of texts.
            let has_automaton = |states: usize| {
                known.search_dfa(self.norm.limits.automaton_states.min(states)).is_ok()
            };
            if facets.min == 0
                && facets.max.is_none()
                && let Some(anchored) = pattern.is_anchored()
                && !(!anchored && has_automaton(4_096)
                    || anchored && pattern.counts_texts() && has_automaton(1_024))
                && let Some(branches) = pattern.branches(&mut |ranges| spelling.spell(ranges))
            {
                let tail = if anchored { Expr::Never } else { Expr::Ref(self.tail_rule()) };
                let bodies = branches.into_iter().map(|b| {
                    let before = if b.at_start {
                        Expr::Empty
                    } else {
                        Expr::star(self.spelling().any_char())
                    };
                    let after = if b.at_end { Expr::text("\"") } else { tail.clone() };
                    Expr::seq([before, b.body, after])
                });
                return Expr::seq([Expr::text("\""), Expr::alt(bodies)]);
            }
        }
        if let ([only], true, true) = (
            &facets.patterns[..],
            facets.excluded.is_empty(),
            facets.min > 0 || facets.max.is_some(),
        ) && !only.negated
        {
            let Some(dfa) = self.norm.pattern_dfa(only) else { return Expr::Never };
            if let Some((first, looped)) = chain(&dfa)
                && facets.max.is_none_or(|max| max as usize >= first.len())
            {
                // One code point a step: the bounds are counters, not an automaton of as many states.
                let spelling = self.spelling();
                let (min, steps) =
                    (facets.min.saturating_sub(first.len() as u32), first.len() as u32);
                let rest =
                    Expr::repeat(spelling.spell(&looped), min, facets.max.map(|max| max - steps));
                let parts = first
                    .iter()
                    .map(|ranges| spelling.spell(ranges))
                    .chain([rest])
                    .collect::<Vec<_>>();
                return Expr::seq(
                    [Expr::text("\"")].into_iter().chain(parts).chain([Expr::text("\"")]),
                );
            }
        }
        let lengths = (facets.min, facets.max);
        let counted = facets.min > 0 || facets.max.is_some();
        (facets.min, facets.max) = (0, None);
        let Some(mut dfa) = self.norm.text_dfa(&facets) else { return Expr::Never };
        if counted {
            let edges = |lowering: &mut Self, graph: &mut Graph| {
                lowering.spelt_edges(&dfa, |_| false, graph)
            };
            if let Some(texts) = self.counted_texts(&dfa, lengths, edges) {
                return Expr::seq([Expr::text("\""), texts, Expr::text("\"")]);
            }
            (facets.min, facets.max) = lengths;
            let Some(exact) = self.norm.text_dfa(&facets) else { return Expr::Never };
            dfa = exact;
        }
        if dfa.is_empty() {
            if let Some(p) = facets.patterns.first() {
                self.norm.conflict(
                    p.loc,
                    p.keyword,
                    "no text matches all patterns and lengths that hold here",
                );
            }
            return Expr::Never;
        }
        Expr::seq([Expr::text("\""), self.text_graph(&dfa)])
    }

    /// The texts of an automaton over code points whose length is in these bounds, where they are worth counting as they are read:
    /// there would be many states for many lengths, and texts of every state can be ended in numbers of steps that repeat soon.
    /// `edges` spells the automaton's edges.
    pub(super) fn counted_texts(
        &mut self,
        dfa: &Dfa,
        (min, max): (u32, Option<u32>),
        edges: impl FnOnce(&mut Self, &mut Graph),
    ) -> Option<Expr> {
        /// As many states are made at once.
        const FEW: usize = 256;
        /// As many times the states that may be made at once may be made as they are met: most never are.
        const MANY: usize = 64;
        let states = dfa.len().saturating_mul(max.unwrap_or(min) as usize + 1);
        if states <= FEW || states > self.norm.limits.automaton_states.saturating_mul(MANY) {
            return None;
        }
        let ends: Vec<u32> = (0..dfa.len() as u32).filter(|&state| dfa.is_final(state)).collect();
        let mut graph = Graph { nodes: dfa.len() as u32, ends, ..Graph::default() };
        edges(self, &mut graph);
        let counted = Counted { graph, min, max };
        let levels = Levels::of(dfa.len(), &counted.steps(), &counted.graph.ends, max)?;
        levels.ends_within(0, min, max).then(|| Expr::Counted(Box::new(counted)))
    }

    /// As [`Spelling::spell`](super::spelling::Spelling::spell), in two parts (either may be [`Expr::Never`]): plain ASCII, and a rule
    /// for the rest, as automata spell the same few classes many times.
    pub(super) fn spell_shared(&mut self, ranges: &[(u32, u32)]) -> [Expr; 2] {
        if let Some(known) = self.spelt.get(ranges) {
            return known.clone();
        }
        let spelling = self.spelling();
        let special: Ranges = match spelling.escapes {
            Escapes::Any => ranges.to_vec(),
            // Plain characters have no other spelling.
            Escapes::Required => {
                let plain = plain_ascii();
                let ascii = ranges.iter().flat_map(|&(lo, hi)| lo..=hi.min(0x7F));
                let ascii =
                    ascii.filter(|&code| !plain.contains(code as u8)).map(|code| (code, code));
                let rest =
                    ranges.iter().filter(|(_, hi)| *hi >= 0x80).map(|&(lo, hi)| (lo.max(0x80), hi));
                ascii.chain(rest).collect()
            }
        };
        let mut ascii = ByteSet::EMPTY;
        for &(lo, hi) in ranges.iter().filter(|(lo, _)| *lo < 0x80) {
            ascii = ascii.union(&ByteSet::range(lo as u8, hi.min(0x7F) as u8));
        }
        let ascii = ascii.intersect(&plain_ascii());
        let rest = match self.classes.get(&special) {
            _ if special.is_empty() => Expr::Never,
            Some(&known) => Expr::Ref(known),
            None => match spelling.parts(&special).1 {
                Expr::Never => Expr::Never,
                body => {
                    let rule = self.rule("class".into(), body);
                    self.classes.insert(special, rule);
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
                for symbol in
                    self.spell_shared(&ranges).into_iter().filter(|symbol| *symbol != Expr::Never)
                {
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
                    let parts: Vec<(&Dfa, bool)> =
                        parts.iter().map(|(dfa, within)| (&**dfa, *within)).collect();
                    Arc::new(Dfa::all_of(&parts, &SCALARS, limit)?)
                }
            };
            if !facets.excluded.is_empty() {
                let words = facets
                    .excluded
                    .iter()
                    .map(|text| text.chars().map(u32::from).collect::<Vec<_>>());
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
                    let what =
                        format!("patterns and lengths together need more than {limit} states");
                    self.report(p.loc, p.keyword, Reason::Limit(what));
                }
                None
            }
        }
    }
}
