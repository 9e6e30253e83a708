//! Strings: lowers the string facets of a schema (patterns, lengths, excluded texts).
//!
//! Strings without patterns may use any JSON escape. Strings with a pattern use the escapes that
//! the options allow. A pattern is lowered to the cheapest form that expresses it:
//! * an expression with the structure of the pattern;
//! * a repeat of one class, whose counter enforces the length;
//! * a counted graph;
//! * the product automaton of all facets.

use super::super::options::Escapes;
use super::super::read::facets::{JsonTypes, PatternUse, StringFacets};
use super::super::warnings::SLASHES;
use super::SchemaLowering;
use super::spelling::{Spelling, plain_ascii};
use super::value_syntax::TextSpelling;
use crate::front::regex::{
    Lengths, SCALARS, edges_by_target, is_javascript_literal, spell_not_ascii,
};
use crate::fsm::{ByteSet, Dfa, PathLengths, TooLarge};
use crate::fuel;
use crate::hash::HashMap;
use crate::ir::{Counted, Expr, Graph};

/// Fuel for the spelling of the edges from one state of an automaton to another.
const SPELLED_EDGE_FUEL: usize = 6;

/// Memo of strings, and of the spellings of their characters.
#[derive(Default)]
pub(super) struct StringMemo<'a> {
    /// Strings, by their facets and the types that a reader expects.
    by_facets: HashMap<(StringFacets<'a>, JsonTypes), Expr>,
    /// Rules of one code point of these ranges, by whether it may be escaped.
    classes: HashMap<(Ranges, bool), Expr>,
    /// Spellings of one code point of these ranges: plain ASCII, and a rule for the rest.
    ranges: HashMap<Box<[(u32, u32)]>, [Expr; 2]>,
}

impl<'a> SchemaLowering<'a, '_> {
    /// Lowers a string with the given facets, quotes included. Equal facets share one rule.
    pub(super) fn string(&mut self, facets: &StringFacets<'a>) -> Expr {
        if facets.allows_all() && !self.syntax.is_nested() {
            return Expr::Ref(self.string_rule());
        }
        let key = (facets.clone(), self.expected);
        if let Some(string) = self.strings.by_facets.get(&key) {
            return string.clone();
        }
        let body = if !self.syntax.is_json() {
            self.non_json_string(facets)
        } else if facets.patterns.is_empty() && facets.excluded.is_empty() {
            self.length_bounded_string(facets)
        } else {
            self.pattern_string(facets)
        };
        let out = self.as_rule("text", body);
        self.strings.by_facets.insert(key, out.clone());
        out
    }

    /// A string with bounds on its length only.
    fn length_bounded_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let quote = Expr::text("\"");
        let (max, end) = match facets.max {
            Some(max) => (max, quote.clone()),
            None => (facets.min, Expr::Ref(self.tail_rule())),
        };
        let counted = Expr::repeat(self.spelling().any_char(), facets.min, Some(max));
        Expr::seq([quote, counted, end])
    }

    /// A string with patterns or excluded texts.
    fn pattern_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let mut facets = facets.clone();
        if let ([single], true) = (&facets.patterns[..], facets.excluded.is_empty())
            && !single.negated
        {
            let single = single.clone();
            if let Some(string) = self.structured_pattern(&single, &mut facets) {
                return string;
            }
        }
        let Some(parts) = self.normalizer.text_parts(&facets) else { return Expr::Never };
        let mut texts = Vec::with_capacity(parts.len());
        for (dfa, lengths) in parts {
            let spelled = self.quoted_text(&dfa, lengths);
            let Some(spelled) = self.normalizer.or_report_states(&facets, spelled) else {
                return Expr::Never;
            };
            texts.push(spelled);
        }
        let texts = Expr::alt(texts);
        if let (Expr::Never, Some(pattern)) = (&texts, facets.patterns.first()) {
            self.note_no_text(pattern);
        }
        texts
    }

    /// Notes that the constraints on a string contradict each other.
    fn note_no_text(&mut self, PatternUse { loc, keyword, source, .. }: &PatternUse<'a>) {
        let mut what = "no text matches all patterns and lengths that hold here".to_owned();
        if *keyword == "pattern" && is_javascript_literal(source) {
            what = format!("{what}: {SLASHES}");
        }
        self.normalizer.reader.note_contradiction(*loc, keyword, &what);
    }

    /// The texts of an automaton with a length within the bounds, as JSON strings.
    pub(super) fn quoted_text(&mut self, dfa: &Dfa, lengths: Lengths) -> Result<Expr, TooLarge> {
        let spelling = TextSpelling::Json(self.spelling());
        let text = self.spell_of_length(dfa, lengths, spelling)?;
        Ok(Expr::seq([Expr::text("\""), text]))
    }

    /// Lowers a string with one pattern to an expression with the structure of the pattern. Drops
    /// the bounds on the length that the pattern implies. `None` if an automaton is needed or
    /// preferable.
    fn structured_pattern(
        &mut self,
        single: &PatternUse<'a>,
        facets: &mut StringFacets<'a>,
    ) -> Option<Expr> {
        /// Maximum number of states of an automaton that replaces an unanchored search.
        const MAX_SEARCH_STATES: usize = 4_096;
        /// Maximum number of states of an automaton that replaces counters over texts.
        const MAX_COUNTER_STATES: usize = 1_024;
        let Some(compiled) = self.normalizer.reader.pattern(single) else {
            return Some(Expr::Never);
        };
        let pattern = compiled.pattern();
        let spelling = self.spelling();
        // Drop the bounds that the pattern implies.
        let (fewest, most) = pattern.search_length();
        if fewest >= facets.min {
            facets.min = 0;
        }
        if most.is_some_and(|most| facets.max.is_some_and(|max| most <= max)) {
            facets.max = None;
        }
        if let Some(body) =
            pattern.expr_of_length(facets.min, facets.max, &mut |ranges| spelling.spell(ranges))
        {
            let quote = || Expr::text("\"");
            if body == Expr::Never {
                self.note_no_text(single);
            }
            return Some(Expr::seq([quote(), body, quote()]));
        }
        // Prefer an automaton, if it is small enough, to an unanchored search and to counters
        // over texts of several code points.
        let has_automaton =
            |states: usize| compiled.search_dfa(self.max_states().min(states)).is_ok();
        if facets.min == 0
            && facets.max.is_none()
            && let Some(anchored) = pattern.is_anchored()
            && !(!anchored && has_automaton(MAX_SEARCH_STATES)
                || anchored
                    && pattern.repeats_unbounded_texts()
                    && has_automaton(MAX_COUNTER_STATES))
            && let Some(branches) = pattern.branches(&mut |ranges| spelling.spell(ranges))
        {
            let tail = if anchored { Expr::Never } else { Expr::Ref(self.tail_rule()) };
            let bodies = branches.into_iter().map(|b| {
                let before =
                    if b.at_start { Expr::Empty } else { Expr::star(self.spelling().any_char()) };
                let after = if b.at_end { Expr::text("\"") } else { tail.clone() };
                Expr::seq([before, b.body, after])
            });
            return Some(Expr::seq([Expr::text("\""), Expr::alt(bodies)]));
        }
        None
    }

    /// The texts of an automaton over code points with a length within the bounds; JSON strings
    /// with the closing quote.
    pub(super) fn spell_of_length(
        &mut self,
        dfa: &Dfa,
        lengths: Lengths,
        spelling: TextSpelling,
    ) -> Result<Expr, TooLarge> {
        if dfa.is_empty() {
            return Ok(Expr::Never);
        }
        let (min, max) = effective_lengths(dfa, lengths);
        if (min, max) == (0, None) {
            return Ok(self.text_graph(dfa, spelling));
        }
        let class = counted_class(dfa, (min, max), spelling);
        if let Some(texts) = class.or_else(|| self.counted_texts(dfa, (min, max), spelling)) {
            return Ok(match spelling {
                TextSpelling::Json(_) => Expr::seq([texts, Expr::text("\"")]),
                _ => texts,
            });
        }
        let exact = dfa.of_length(min, max, self.max_states())?;
        Ok(if exact.is_empty() { Expr::Never } else { self.text_graph(&exact, spelling) })
    }

    /// The texts of an automaton over code points as a graph; JSON strings with the closing quote.
    fn text_graph(&mut self, dfa: &Dfa, spelling: TextSpelling) -> Expr {
        let TextSpelling::Json(_) = spelling else {
            return Expr::Graph(Box::new(self.spelled_graph(dfa, |_| false, spelling)));
        };
        let mut graph = self.spelled_graph(dfa, |state| is_universal(dfa, state), spelling);
        let end = graph.node();
        for state in std::mem::replace(&mut graph.ends, vec![end]) {
            let close = match is_universal(dfa, state) {
                true => Expr::Ref(self.tail_rule()),
                false => Expr::text("\""),
            };
            graph.edge(state, close, end);
        }
        Expr::Graph(Box::new(graph))
    }

    /// An automaton over code points as a graph over bytes, without the edges of the states that
    /// `skip` selects.
    fn spelled_graph(
        &mut self,
        dfa: &Dfa,
        skip: impl Fn(u32) -> bool,
        spelling: TextSpelling,
    ) -> Graph {
        let ends = (0..dfa.len() as u32).filter(|&state| dfa.is_final(state)).collect();
        let mut graph = Graph { nodes: dfa.len() as u32, ends, ..Graph::default() };
        for state in (0..dfa.len() as u32).filter(|&state| !skip(state)) {
            for (to, ranges) in edges_by_target(dfa, state) {
                fuel::charge(SPELLED_EDGE_FUEL + ranges.len());
                let symbols = match spelling {
                    TextSpelling::Json(spelling) => self.spell_shared(&ranges, spelling),
                    _ => self.spell_unescaped(&ranges, spelling),
                };
                for symbol in symbols.into_iter().filter(|symbol| *symbol != Expr::Never) {
                    graph.edge(state, symbol, to);
                }
            }
        }
        graph
    }

    /// As [`TextSpelling::spell`], in two parts, either of which may be [`Expr::Never`]: ASCII, and
    /// a shared rule for the rest, which is never escaped.
    fn spell_unescaped(&mut self, ranges: &[(u32, u32)], spelling: TextSpelling) -> [Expr; 2] {
        let [ascii, others] = split_ascii(ranges);
        [spelling.spell(&ascii), self.class_rule((others, false), spell_not_ascii)]
    }

    /// The rule of one code point of these ranges, which may be escaped or not.
    fn class_rule(
        &mut self,
        key: (Ranges, bool),
        spell: impl FnOnce(&[(u32, u32)]) -> Expr,
    ) -> Expr {
        if let Some(rule) = self.strings.classes.get(&key) {
            return rule.clone();
        }
        let rule = self.as_rule("class", spell(&key.0));
        self.strings.classes.insert(key, rule.clone());
        rule
    }

    /// The texts of an automaton over code points with a length within the bounds, as a counted
    /// graph.
    ///
    /// `None` if the product of automaton and lengths has so few states that it is built instead.
    /// Also `None` if the lengths at which a state can end are not eventually periodic with a short
    /// period.
    fn counted_texts(
        &mut self,
        dfa: &Dfa,
        (min, max): Lengths,
        spelling: TextSpelling,
    ) -> Option<Expr> {
        /// Up to this many states, the product automaton is built instead.
        const MAX_PRODUCT_STATES: usize = 256;
        if dfa.len().saturating_mul(max.unwrap_or(min) as usize + 1) <= MAX_PRODUCT_STATES {
            return None;
        }
        let graph = self.spelled_graph(dfa, |_| false, spelling);
        let counted = Counted { graph, min, max };
        let ends = &counted.graph.ends;
        let levels = PathLengths::new(dfa.len(), &counted.steps(), ends, min, max).ok()?;
        levels.has_path_within(0, min, max).then(|| Expr::Counted(Box::new(counted)))
    }

    /// As [`Spelling::spell`](super::spelling::Spelling::spell), in two parts, either of which may
    /// be [`Expr::Never`]: plain ASCII, and a shared rule for the rest. The edges of automata
    /// repeat the same few classes many times.
    fn spell_shared(&mut self, ranges: &[(u32, u32)], spelling: Spelling) -> [Expr; 2] {
        if let Some(spelled) = self.strings.ranges.get(ranges) {
            return spelled.clone();
        }
        let [ascii, others] = split_ascii(ranges);
        let mut plain = ByteSet::EMPTY;
        ascii.iter().for_each(|&(lo, hi)| plain.insert_range(lo as u8, hi as u8));
        let plain = plain.intersect(&plain_ascii());
        let special: Ranges = match spelling.escapes {
            Escapes::Any => ranges.to_vec(),
            // Plain characters are never escaped.
            Escapes::Required => {
                let codes = ascii.into_iter().flat_map(|(lo, hi)| lo..=hi);
                let escaped = codes.filter(|&code| !plain.contains(code as u8));
                escaped.map(|code| (code, code)).chain(others).collect()
            }
        };
        let rest = self.class_rule((special, true), |special| spelling.parts(special).1);
        let spelled = [Expr::class(plain), rest];
        self.strings.ranges.insert(ranges.into(), spelled.clone());
        spelled
    }
}

/// Inclusive ranges of code points.
type Ranges = Vec<(u32, u32)>;

/// The words of an automaton of a sequence of classes of which the last one repeats, with a length
/// within the bounds. Every step reads one code point, so that a repeat counts the length. `None`
/// for other automata.
fn counted_class(dfa: &Dfa, (min, max): Lengths, spelling: TextSpelling) -> Option<Expr> {
    let (first, looped) = class_sequence(dfa)?;
    let steps = first.len() as u32;
    if max.is_some_and(|max| max < steps) {
        return None;
    }
    let rest = (min.saturating_sub(steps), max.map(|max| max - steps));
    let rest = Expr::repeat(spelling.spell(&looped), rest.0, rest.1);
    Some(Expr::seq(first.iter().map(|ranges| spelling.spell(ranges)).chain([rest])))
}

/// Divides ranges of code points into those of ASCII and all others.
fn split_ascii(ranges: &[(u32, u32)]) -> [Ranges; 2] {
    let ascii = ranges.iter().filter(|(lo, _)| *lo < 0x80);
    let others = ranges.iter().filter(|(_, hi)| *hi >= 0x80);
    [
        ascii.map(|&(lo, hi)| (lo, hi.min(0x7F))).collect(),
        others.map(|&(lo, hi)| (lo.max(0x80), hi)).collect(),
    ]
}

/// Recognises an automaton of a fixed sequence of classes followed by any number of one class.
/// Returns the sequence and the repeated class.
fn class_sequence(dfa: &Dfa) -> Option<(Vec<Ranges>, Ranges)> {
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

/// Drops the bounds on the length that the automaton implies. It must be trim.
fn effective_lengths(dfa: &Dfa, (min, max): Lengths) -> Lengths {
    let implies_min = dfa.shortest_word().is_some_and(|word| word.len() >= min as usize);
    // A finite language has no word of as many symbols as there are states.
    let may_exceed = |max: &u32| dfa.is_infinite() || dfa.len() > *max as usize + 1;
    (if implies_min { 0 } else { min }, max.filter(may_exceed))
}

/// Whether any text may follow: the state is final and every symbol leads back to it.
fn is_universal(dfa: &Dfa, state: u32) -> bool {
    dfa.is_final(state)
        && dfa.edges(state).iter().all(|e| e.to == state)
        && dfa.edges(state).iter().map(|e| (e.lo, e.hi)).eq(SCALARS)
}
