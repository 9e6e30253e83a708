//! Shortest completions of grammars in which values must differ.
//!
//! The search ignores that values must differ. Its result is followed until an element would equal
//! an earlier one; there the cheapest other symbol is taken, and the search starts again.
//! Configurations without a way on are dead ends and are left by backtracking.

use super::{Completion, CompletionOptions, Matcher, ShortestPaths, to_pieces};
use crate::hash::HashSet;
use crate::mask::{Index, IndexState};
use crate::matcher::{CompletionStep, ConfigId, DEAD, Parser, ParserLimit};

/// Most positions at which a detour is searched.
const MAX_DETOURS: usize = 4096;

impl Matcher {
    /// A short completion in which no value is repeated.
    pub(super) fn complete_with_distinct_values(
        &self,
        index: &Index,
        state: &mut IndexState,
        options: &CompletionOptions,
    ) -> Result<Completion, ParserLimit> {
        let IndexState { parser, lengths: Some(lengths), .. } = state else {
            return Err(ParserLimit::Search);
        };
        let special = lengths.special();
        let longest = special.saturating_mul(options.longest as u64);
        let cost = |step: &CompletionStep| {
            if matches!(step, CompletionStep::Special(_)) { special } else { 1 }
        };
        // The configurations passed, and the symbol read from each.
        let mut path: Vec<(ConfigId, CompletionStep)> = Vec::new();
        let mut dead_ends: HashSet<ConfigId> = HashSet::default();
        let mut config = self.config();
        for _ in 0..MAX_DETOURS {
            let read: u64 = path.iter().map(|(_, step)| cost(step)).sum();
            let (length, steps) = shortest_unconstrained(parser, lengths, config)?;
            let length = read.saturating_add(length);
            if length > longest {
                return Ok(Completion { length, pieces: None });
            }
            for step in lengths.text(&steps, options.longest) {
                let next = take_step(parser, config, step)?;
                if next == DEAD || dead_ends.contains(&next) {
                    break;
                }
                path.push((config, step));
                config = next;
            }
            if parser.store().done(config).root {
                let text: Vec<CompletionStep> = path.iter().map(|(_, step)| *step).collect();
                return Ok(Completion {
                    length: text.iter().map(cost).sum(),
                    pieces: Some(to_pieces(index, &text)),
                });
            }
            let mut detour: Option<(u64, CompletionStep, ConfigId)> = None;
            let specials: Vec<u32> = parser.specials(config).collect();
            let bytes = parser.allowed(config).iter().map(CompletionStep::Byte);
            for step in bytes.chain(specials.into_iter().map(CompletionStep::Special)) {
                let next = take_step(parser, config, step)?;
                if next == DEAD || dead_ends.contains(&next) {
                    continue;
                }
                let length =
                    shortest_unconstrained(parser, lengths, next)?.0.saturating_add(cost(&step));
                if detour.is_none_or(|(least, ..)| length < least) {
                    detour = Some((length, step, next));
                }
            }
            match detour {
                Some((_, step, next)) => {
                    path.push((config, step));
                    config = next;
                }
                None => {
                    dead_ends.insert(config);
                    let Some((before, _)) = path.pop() else { return Err(ParserLimit::Search) };
                    config = before;
                }
            }
        }
        Err(ParserLimit::Search)
    }
}

/// Takes one step of a completion.
fn take_step(
    parser: &mut Parser,
    config: ConfigId,
    step: CompletionStep,
) -> Result<ConfigId, ParserLimit> {
    match step {
        CompletionStep::Byte(byte) => parser.advance(config, byte),
        CompletionStep::Special(special) => parser.step_special(config, special),
        CompletionStep::Part { .. } | CompletionStep::On => Ok(config),
    }
}

/// The shortest completion if values may be equal.
fn shortest_unconstrained(
    parser: &mut Parser,
    lengths: &mut ShortestPaths,
    config: ConfigId,
) -> Result<(u64, Box<[CompletionStep]>), ParserLimit> {
    // The search ignores registers.
    lengths.shortest(parser, config)?.ok_or(ParserLimit::Search)
}
