//! A short way to a complete sentence where values must differ: the shortest one that would be if nothing were compared, followed as
//! far as it goes; where an element ends as another has, the nearest byte that goes around it, and on from there.

use super::{Completion, CompletionOptions, Lengths, Matcher, pieces};
use crate::hash::HashSet;
use crate::mask::{Index, IndexState};
use crate::matcher::{ConfigId, DEAD, Parser, ParserLimit, Step};

/// Most places at which a way around is looked for.
const MAX_TURNS: usize = 4096;

impl Matcher {
    pub(super) fn complete_compared(
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
        let cost = |step: &Step| if matches!(step, Step::Special(_)) { special } else { 1 };
        // Where the way has been, and what was read from there.
        let mut way: Vec<(ConfigId, Step)> = Vec::new();
        let mut spoilt: HashSet<ConfigId> = HashSet::default();
        let mut at = self.config();
        for _ in 0..MAX_TURNS {
            let read: u64 = way.iter().map(|(_, step)| cost(step)).sum();
            let (length, steps) = shortest(parser, lengths, at)?;
            let length = read.saturating_add(length);
            if length > longest {
                return Ok(Completion { length, pieces: None });
            }
            for step in lengths.text(&steps, options.longest) {
                let next = read_step(parser, at, step)?;
                if next == DEAD || spoilt.contains(&next) {
                    break;
                }
                way.push((at, step));
                at = next;
            }
            if parser.store().done(at).root {
                let text: Vec<Step> = way.iter().map(|(_, step)| *step).collect();
                return Ok(Completion {
                    length: text.iter().map(cost).sum(),
                    pieces: Some(pieces(index, &text)),
                });
            }
            let mut around: Option<(u64, Step, ConfigId)> = None;
            let specials: Vec<u32> = parser.specials(at).collect();
            let bytes = parser.allowed(at).iter().map(Step::Byte);
            for step in bytes.chain(specials.into_iter().map(Step::Special)) {
                let next = read_step(parser, at, step)?;
                if next == DEAD || spoilt.contains(&next) {
                    continue;
                }
                let length = shortest(parser, lengths, next)?.0.saturating_add(cost(&step));
                if around.is_none_or(|(least, ..)| length < least) {
                    around = Some((length, step, next));
                }
            }
            match around {
                Some((_, step, next)) => {
                    way.push((at, step));
                    at = next;
                }
                None => {
                    spoilt.insert(at);
                    let Some((before, _)) = way.pop() else { return Err(ParserLimit::Search) };
                    at = before;
                }
            }
        }
        Err(ParserLimit::Search)
    }
}

fn read_step(parser: &mut Parser, at: ConfigId, step: Step) -> Result<ConfigId, ParserLimit> {
    match step {
        Step::Byte(byte) => parser.advance(at, byte),
        Step::Special(special) => parser.step_special(at, special),
        Step::Part { .. } | Step::On => Ok(at),
    }
}

/// The shortest way where nothing is compared.
fn shortest(
    parser: &mut Parser,
    lengths: &mut Lengths,
    config: ConfigId,
) -> Result<(u64, Box<[Step]>), ParserLimit> {
    // The search looks at no register.
    lengths.shortest(parser, config)?.ok_or(ParserLimit::Search)
}
