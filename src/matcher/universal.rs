//! Universal-text queries: whether every text of certain bytes, up to a length, can be read from a
//! configuration.
//!
//! Searching for a word inside free text, or counting characters, changes the configuration at
//! every letter, so self-loops do not show that a word is accepted. A universal-text query does: it
//! explores all texts of the given byte kinds breadth first. A trie walk then accepts whole
//! subtrees without stepping. The result is shared by all configurations that the exploration
//! reached.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::query_caches::UniversalText;
use super::store::ConfigId;
use crate::fsm::{
    ASCII_LETTERS, ByteSet, CODE_POINTS, NON_SPACE_CODE_POINTS, NOT_ASCII, kind_bit, utf8,
};
use crate::hash::HashSet;

/// Cost control: a walk may explore once it has visited 1/`WALK_SHARE` of the trie's nodes, and
/// again after `NODES_PER_CONFIG` further nodes for each configuration that its explorations built.
const WALK_SHARE: usize = 128;
const NODES_PER_CONFIG: usize = 64;
/// Items (of configurations and frames) that cost as much as a configuration.
const ITEMS_PER_CONFIG: usize = 4;

/// Most configurations visited between code points.
const MAX_BOUNDARY_CONFIGS: usize = 96;
/// Most configurations visited inside of code points.
const MAX_INSIDE_CONFIGS: usize = 512;
/// Most configurations from which code points outside ASCII are followed.
const MAX_NON_ASCII_CONFIGS: usize = 12;
/// Most configurations that one exploration may build.
const MAX_NEW_CONFIGS: usize = 160;
/// Most explorations of one query; each leaves out the byte kinds that failed before.
const MAX_ATTEMPTS: usize = 6;
/// Shorter texts are not worth caching.
const MIN_USEFUL_CHARS: u16 = 4;
/// Texts of this length are long enough to stop trying.
const SUFFICIENT_CHARS: u16 = 16;
/// Length without a bound.
const UNBOUNDED: u16 = u16::MAX;

/// Cost control of one walk's queries: they take no longer than the walk itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueryAllowance {
    /// Nodes visited, and configurations built by explorations, when the walk began.
    visited_at_start: usize,
    built_at_start: usize,
}

impl QueryAllowance {
    /// The allowance of a walk that begins after `visited` nodes.
    pub(crate) fn new(parser: &Parser, visited: usize) -> QueryAllowance {
        QueryAllowance { visited_at_start: visited, built_at_start: parser.queries.universal_work }
    }

    /// Whether an exploration is worth its cost after `visited` nodes.
    #[inline]
    fn is_worth(&self, parser: &Parser, visited: usize) -> bool {
        visited
            >= self.visited_at_start
                + parser.vocab_nodes() / WALK_SHARE
                + NODES_PER_CONFIG * (parser.queries.universal_work - self.built_at_start)
    }
}

/// Configurations that texts lead to.
#[derive(Default)]
struct Exploration {
    /// Configurations between code points with the fewest characters that lead there, in ascending
    /// order.
    boundaries: Vec<(ConfigId, u16)>,
    /// The same configurations.
    reached: HashSet<ConfigId>,
    /// Configurations inside of code points, with the state of the UTF-8 automaton.
    inside: HashSet<(u8, ConfigId)>,
}

/// Result of an exploration.
enum ExplorationEnd {
    /// All texts of this many characters can be read: in ASCII, and with other code points.
    Read(u16, u16),
    /// Longer texts can be read if these kinds are left out.
    Without(u64),
}

impl Parser {
    /// Whether every text of at most `length` characters, all of these kinds (see [`kind_bit`] and
    /// [`CODE_POINTS`]), can be read from a configuration. Answers no if that is not known and an
    /// exploration is not worth its cost yet. Cost: a look-up, or an exploration.
    pub(crate) fn reads_all_texts(
        &mut self,
        config: ConfigId,
        kinds: u64,
        length: u16,
        allowance: &QueryAllowance,
        visited: usize,
    ) -> Result<bool, ParserLimit> {
        let universal = match self.cached_universal(config) {
            Some(universal) => universal,
            None if allowance.is_worth(self, visited) => self.find_universal(config)?,
            None => return Ok(false),
        };
        let max_length = if kinds & (CODE_POINTS | NON_SPACE_CODE_POINTS) == 0 {
            universal.length
        } else {
            universal.non_ascii_length
        };
        Ok(kinds & !universal.kinds == 0 && length <= max_length)
    }

    /// The cached answer for a configuration.
    #[inline]
    fn cached_universal(&self, config: ConfigId) -> Option<UniversalText> {
        Some(self.queries.universal.get(config)).filter(|universal| universal.is_answered)
    }

    /// Explores the texts of a configuration and caches the answers.
    fn find_universal(&mut self, config: ConfigId) -> Result<UniversalText, ParserLimit> {
        let before = self.work_done();
        let mut answer = UniversalText { is_answered: true, ..UniversalText::default() };
        let mut exploration = Exploration::default();
        let mut kinds = self.readable_kinds(config);
        for _ in 0..MAX_ATTEMPTS {
            if kinds & ASCII_LETTERS == 0 {
                break;
            }
            exploration.boundaries.clear();
            exploration.reached.clear();
            exploration.inside.clear();
            match self.explore_texts(config, kinds, &mut exploration)? {
                ExplorationEnd::Without(excluded) => kinds &= !excluded,
                ExplorationEnd::Read(length, _) if length < MIN_USEFUL_CHARS => break,
                ExplorationEnd::Read(length, non_ascii_length) => {
                    answer = UniversalText { kinds, length, non_ascii_length, is_answered: true };
                    break;
                }
            }
        }
        self.queries.universal_work += self.work_done() - before;
        if answer.length >= MIN_USEFUL_CHARS {
            for &(boundary, chars) in &exploration.boundaries {
                let remaining = |length: u16| {
                    if length == UNBOUNDED { UNBOUNDED } else { length.saturating_sub(chars) }
                };
                let (length, non_ascii_length) =
                    (remaining(answer.length), remaining(answer.non_ascii_length));
                // Configurations near the end may get better answers from their own queries.
                let known = self.queries.universal.entry(boundary);
                if !known.is_answered
                    && length >= SUFFICIENT_CHARS.min(answer.length / 2)
                    && non_ascii_length >= answer.non_ascii_length / 2
                {
                    *known = UniversalText { length, non_ascii_length, ..answer };
                }
            }
        }
        *self.queries.universal.entry(config) = answer;
        Ok(answer)
    }

    /// Work done by the parser so far, in configurations; items count, too.
    fn work_done(&self) -> usize {
        self.store().configs() + self.store().all_items() / ITEMS_PER_CONFIG
    }

    /// Explores all texts of these kinds breadth first, as long as all can be read.
    fn explore_texts(
        &mut self,
        config: ConfigId,
        kinds: u64,
        exploration: &mut Exploration,
    ) -> Result<ExplorationEnd, ParserLimit> {
        exploration.boundaries.push((config, 0));
        exploration.reached.insert(config);
        // Upper bounds of the result; they shrink where a text cannot be read.
        let (mut length, mut non_ascii_length) = (UNBOUNDED, UNBOUNDED);
        let max_configs = self.store().configs() + MAX_NEW_CONFIGS;
        // Code points without white space are a subset of all code points.
        let code_points = [(CODE_POINTS, &utf8::ANY), (NON_SPACE_CODE_POINTS, &utf8::NON_SPACE)];
        let code_points = code_points.into_iter().find(|(kind_bit, _)| kinds & kind_bit != 0);
        let mut next_boundary = 0;
        while let Some(&(from, chars)) =
            exploration.boundaries.get(next_boundary).filter(|&&(_, chars)| chars < length)
        {
            next_boundary += 1;
            match self.explore_ascii(from, chars, kinds, exploration)? {
                ExplorationEnd::Read(ascii_length, _) => length = length.min(ascii_length),
                without => return Ok(without),
            }
            if chars < non_ascii_length
                && let Some((kind_bit, steps)) = code_points
            {
                if next_boundary > MAX_NON_ASCII_CONFIGS {
                    non_ascii_length = chars;
                } else if !self.explore_code_points(from, chars, kinds, steps, exploration)? {
                    if chars < MIN_USEFUL_CHARS {
                        return Ok(ExplorationEnd::Without(kind_bit));
                    }
                    non_ascii_length = chars;
                }
            }
            if exploration.boundaries.len() > MAX_BOUNDARY_CONFIGS
                || exploration.inside.len() > MAX_INSIDE_CONFIGS
                || self.store().configs() > max_configs
            {
                length = length.min(chars);
            }
        }
        Ok(ExplorationEnd::Read(length, non_ascii_length.min(length)))
    }

    /// Explores one more character in ASCII.
    fn explore_ascii(
        &mut self,
        from: ConfigId,
        chars: u16,
        kinds: u64,
        exploration: &mut Exploration,
    ) -> Result<ExplorationEnd, ParserLimit> {
        let ascii = ByteSet::range(0, 0x7F);
        let mut length = UNBOUNDED;
        for bytes in self.bytes_by_edges(from) {
            let mut group =
                bytes.intersect(&ascii).iter().filter(|&byte| kind_bit(byte) & kinds != 0);
            let Some(byte) = group.next() else { continue };
            let next = self.step(from, byte)?;
            if exploration.reached.contains(&next) {
                continue;
            }
            let readable_kinds = self.readable_kinds(next);
            if kinds & !readable_kinds == 0 {
                exploration.reached.insert(next);
                exploration.boundaries.push((next, chars + 1));
                continue;
            }
            let group_kinds = group.fold(kind_bit(byte), |all, byte| all | kind_bit(byte));
            if chars + 1 < SUFFICIENT_CHARS && kinds & ASCII_LETTERS & !readable_kinds == 0 {
                return Ok(ExplorationEnd::Without(kinds & !readable_kinds));
            }
            if chars + 1 < SUFFICIENT_CHARS && group_kinds & ASCII_LETTERS == 0 {
                // Leave out the kind that leads there, such as the backslash that begins an
                // escape.
                return Ok(ExplorationEnd::Without(group_kinds));
            }
            length = chars + 1;
        }
        Ok(ExplorationEnd::Read(length, length))
    }

    /// Explores code points outside ASCII. False if some cannot be read, or if texts of these kinds
    /// cannot follow one.
    fn explore_code_points(
        &mut self,
        from: ConfigId,
        chars: u16,
        kinds: u64,
        steps: &utf8::Utf8Automaton,
        exploration: &mut Exploration,
    ) -> Result<bool, ParserLimit> {
        let mut pending = vec![(utf8::BOUNDARY, from)];
        while let Some((state, before)) = pending.pop() {
            let all_read =
                self.step_in_code_points(steps, state, before, |parser, state, next| {
                    if state != utf8::BOUNDARY {
                        if exploration.inside.insert((state, next)) {
                            pending.push((state, next));
                        }
                    } else if !exploration.reached.contains(&next) {
                        if kinds & !parser.readable_kinds(next) != 0 {
                            return false;
                        }
                        exploration.reached.insert(next);
                        exploration.boundaries.push((next, chars + 1));
                    }
                    true
                })?;
            if !all_read {
                return Ok(false);
            }
            if exploration.inside.len() > MAX_INSIDE_CONFIGS {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// The kinds of which a configuration reads all bytes, assuming that code points can be read.
    /// None if values are compared or budgets counted.
    fn readable_kinds(&mut self, config: ConfigId) -> u64 {
        if !self.compiled().budgets.is_empty()
            || self.compares_values(config)
            || self.has_scope(config)
        {
            return 0;
        }
        let refused =
            self.allowed(config).complement().iter().fold(0, |all, byte| all | kind_bit(byte));
        !refused & !NOT_ASCII
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::compile::Compiled;
    use crate::limits::Limits;

    /// Grammars, and whether letters of any length can be read after a quote.
    const GRAMMARS: &[(&str, bool)] = &[
        (r#"root ::= "\"" [^"\\]* "\"""#, true),
        (r#"root ::= "\"" ([^"\\] | "\\" ["\\n])* "\"""#, true),
        (r#"root ::= "\"" [^"]* "ab" [^"]* "\"" [0-9]"#, true),
        (r#"root ::= "\"" [^"]* "ab" [^"]{0,6} "\"""#, false),
        (r#"root ::= "\"" [^"]{3,9} "\"""#, false),
        (r#"root ::= "\"" ([a-zA-Z]+ " ")* "\"""#, true),
        (r#"root ::= "\"" ([a-zA-Z0-9] | "é" | "語")* "\"""#, true),
        (r#"root ::= "\"" ([^" é] [^"])* "\"""#, true),
        (r#"root ::= ("\"" [^"]* "\"" | "\"" [^"x]* "x\"")+"#, true),
    ];

    /// Parts of the text before the queries.
    const PREFIX_PARTS: &[&str] = &["a", "b", "x", "Z", " ", "7", "é", "語"];
    /// Parts of the queried texts.
    const TEXT_PARTS: &[&str] =
        &["a", "b", "x", "Q", " ", "7", "-", "\\", "\n", "é", "ß", "語", "🙂"];

    fn parser(text: &str) -> Parser {
        let grammar = crate::front::ebnf::lower(text, &Default::default(), &Limits::default())
            .expect("a grammar")
            .grammar;
        let compiled = Arc::new(Compiled::new(grammar, &Limits::default()).expect("compiles"));
        Parser::new(compiled, None, &Limits::default())
    }

    fn step(parser: &mut Parser, at: ConfigId, byte: u8) -> ConfigId {
        parser.step(at, byte).expect("within limits")
    }

    /// The kinds of a text; a code point outside ASCII counts as [`CODE_POINTS`].
    fn kinds(text: &str) -> u64 {
        text.chars().fold(0, |all, c| {
            all | u8::try_from(c).ok().filter(u8::is_ascii).map_or(CODE_POINTS, kind_bit)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        /// Soundness: claimed texts can be read, in any order of queries.
        #[test]
        fn claimed_universal_texts_are_accepted(
            (grammar, _) in select(GRAMMARS),
            before in prop::collection::vec(select(PREFIX_PARTS), 0..7),
            texts in prop::collection::vec(prop::collection::vec(select(TEXT_PARTS), 1..30), 12),
        ) {
            let mut parser = parser(grammar);
            let allowance = QueryAllowance::new(&parser, 0);
            let start = parser.start();
            let mut at = step(&mut parser, start, b'"');
            for part in std::iter::once("").chain(before) {
                for &byte in part.as_bytes() {
                    at = step(&mut parser, at, byte);
                }
                if at == ConfigId::DEAD {
                    break;
                }
                for text in &texts {
                    let text = text.concat();
                    let length = text.chars().count() as u16;
                    let claimed = parser
                        .reads_all_texts(at, kinds(&text), length, &allowance, usize::MAX)
                        .expect("within limits");
                    let read = text.bytes().try_fold(at, |at, byte| {
                        Some(step(&mut parser, at, byte)).filter(|&next| next != ConfigId::DEAD)
                    });
                    prop_assert!(!claimed || read.is_some(), "{text:?} in {grammar}");
                }
            }
        }
    }

    #[test]
    fn unbounded_universal_texts_are_found() {
        for &(grammar, endless) in GRAMMARS {
            let mut parser = parser(grammar);
            let start = parser.start();
            let at = parser.step(start, b'"').expect("within limits");
            let allowance = QueryAllowance::new(&parser, 0);
            let letters =
                ByteSet::from_bytes(b"abxQ").iter().fold(0, |all, byte| all | kind_bit(byte));
            let mut claimed = |length| {
                parser
                    .reads_all_texts(at, letters, length, &allowance, usize::MAX)
                    .expect("within limits")
            };
            assert_eq!((claimed(UNBOUNDED), claimed(4)), (endless, true), "{grammar}");
        }
    }
}
