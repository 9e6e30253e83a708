//! Shortest completions of grammars in which values must differ or rules have budgets.
//!
//! The search ignores both. Its result is followed until the parser rejects a symbol, where an
//! element would equal an earlier one or a budget is spent; there the cheapest other symbol is
//! taken, and the search starts again. Configurations without a way on are dead ends and are left
//! by backtracking.

use super::{Completion, CompletionOptions, Matcher, ShortestPaths, to_pieces};
use crate::hash::HashSet;
use crate::ids::SpecialId;
use crate::mask::MaskState;
use crate::matcher::{ConfigId, Parser, ParserLimit, ShortestPath, Symbol};

/// Most positions at which a detour is searched.
const MAX_DETOURS: usize = 4096;

impl Matcher {
    /// A short completion that repeats no value and stays within budgets of characters.
    pub(super) fn complete_with_detours(
        &self,
        state: &mut MaskState,
        options: &CompletionOptions,
    ) -> Result<Completion, ParserLimit> {
        let MaskState { parser, shortest_paths: Some(shortest_paths), .. } = state else {
            return Err(ParserLimit::Search);
        };
        let longest = shortest_paths.special_cost().saturating_mul(options.longest as u64);
        let (path, dead_ends) = (Vec::new(), HashSet::default());
        let mut search =
            DetourSearch { parser, shortest_paths, config: self.config(), path, dead_ends };
        for _ in 0..MAX_DETOURS {
            let (length, steps) = search.shortest(search.config)?;
            let length = search.length().saturating_add(length);
            if length > longest {
                return Ok(Completion { length, pieces: None });
            }
            search.follow(&search.shortest_paths.text(&steps, options.longest))?;
            if search.parser.store().is_complete(search.config) {
                let text: Vec<Symbol> = search.path.iter().map(|(_, symbol)| *symbol).collect();
                return Ok(Completion {
                    length: search.length(),
                    pieces: Some(to_pieces(&self.masks, &text)),
                });
            }
            search.detour()?;
        }
        Err(ParserLimit::Search)
    }
}

/// A search by shortest completions, and detours around what the parser rejects.
struct DetourSearch<'s> {
    parser: &'s mut Parser,
    shortest_paths: &'s mut ShortestPaths,
    /// The configuration at the end of the path.
    config: ConfigId,
    /// The configurations passed, and the symbol read from each.
    path: Vec<(ConfigId, Symbol)>,
    /// Configurations without a way on.
    dead_ends: HashSet<ConfigId>,
}

impl DetourSearch<'_> {
    /// The cost of a symbol.
    fn cost(&self, symbol: Symbol) -> u64 {
        symbol.byte().map_or(self.shortest_paths.special_cost(), |_| 1)
    }

    /// The cost of the path.
    fn length(&self) -> u64 {
        self.path.iter().map(|(_, symbol)| self.cost(*symbol)).sum()
    }

    /// The shortest completion if values may be equal and budgets have no end.
    fn shortest(&mut self, config: ConfigId) -> Result<ShortestPath, ParserLimit> {
        self.shortest_paths.shortest(self.parser, config)?.ok_or(ParserLimit::Search)
    }

    /// The configuration after a symbol; `None` if it is a dead end.
    fn take_step(&mut self, symbol: Symbol) -> Result<Option<ConfigId>, ParserLimit> {
        let next = self.parser.step_symbol_tracking_keys(self.config, symbol)?;
        Ok((next != ConfigId::DEAD && !self.dead_ends.contains(&next)).then_some(next))
    }

    /// Follows a completion until the parser rejects a symbol.
    fn follow(&mut self, text: &[Symbol]) -> Result<(), ParserLimit> {
        for &symbol in text {
            let Some(next) = self.take_step(symbol)? else { break };
            self.path.push((self.config, symbol));
            self.config = next;
        }
        Ok(())
    }

    /// Takes the symbol with the shortest completion, or goes back from a dead end.
    fn detour(&mut self) -> Result<(), ParserLimit> {
        let mut best: Option<(u64, Symbol, ConfigId)> = None;
        let specials: Vec<SpecialId> = self.parser.specials(self.config).collect();
        let bytes = self.parser.allowed(self.config).iter().map(Symbol::Byte);
        for symbol in bytes.chain(specials.into_iter().map(Symbol::Special)) {
            let Some(next) = self.take_step(symbol)? else { continue };
            let length = self.shortest(next)?.0.saturating_add(self.cost(symbol));
            if best.is_none_or(|(least, ..)| length < least) {
                best = Some((length, symbol, next));
            }
        }
        match best {
            Some((_, symbol, next)) => {
                self.path.push((self.config, symbol));
                self.config = next;
            }
            None => {
                self.dead_ends.insert(self.config);
                (self.config, _) = self.path.pop().ok_or(ParserLimit::Search)?;
            }
        }
        Ok(())
    }
}
