//! Tokens inside of counted blocks. Each character of a `maxLength` is a configuration of its own; where a token leads that stays in its block, out of
//! reach of its bounds, is read with one counter for all, and carried over.

use smallvec::SmallVec;

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{BOTTOM, ConfigId, DEAD, Done, FrameId, Has, Item, ROOT};
use crate::compile::{Behind, NO_BLOCK};

/// No rule.
const NO_RULE: u32 = u32::MAX;

/// Tokens of at most so many bytes are read with the same counter; longer ones with that of the next power of two.
const SHORT: usize = 8;

/// What is common to the items of a configuration in a counted block.
#[derive(Clone, Copy)]
struct InBlock {
    rule: u32,
    frame: FrameId,
    /// The counter, and the one that is read with.
    count: u32,
    stands: u32,
    /// Most runs, and so many as the longest token may span.
    max: u32,
    reach: u32,
}

/// Whether a configuration that is read on its own is still in its rule, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stays {
    Inside,
    /// And the rule may end.
    AtEnd,
    Outside,
}

impl Parser {
    /// Where the bytes of a token lead, if that can be known from another counter: the configuration is in a block that the token stays in, and its
    /// bounds are out of reach. `None` where they have to be read.
    pub(super) fn read_in_block(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<Option<ConfigId>, ParserLimit> {
        if self.program().blocks.is_empty() {
            return Ok(None);
        }
        let plain = self.store().plain(config);
        let Some(at) = self.in_block(plain, bytes) else { return Ok(None) };
        if self.is_named(config) && !self.keeps_names(config, at.frame) {
            return Ok(None);
        }
        let counted = |item: &Item| self.program().state(item.state).block != NO_BLOCK;
        let count = |item: &Item| if counted(item) { at.stands } else { 0 };
        let items = self.store().items(plain).iter();
        let alone: SmallVec<[Item; 4]> =
            items.map(|item| Item { count: count(item), frame: BOTTOM, ..*item }).collect();
        let mut to = self.interned_as(&alone, Done::default());
        for &byte in bytes {
            to = self.step(to, byte)?;
            if !self.stays(to, at) {
                return Ok(None);
            }
        }
        let count = |runs: u32| if runs >= at.stands { runs - at.stands + at.count } else { runs };
        let items = self.store().items(to).iter();
        // They stay in order: states are what they were, and so is which count is greater.
        let items: SmallVec<[Item; 4]> =
            items.map(|item| Item { count: count(item.count), frame: at.frame, ..*item }).collect();
        let done = Done { root: self.store().done(to).bottom, ..Done::default() };
        let far = items.iter().map(|item| item.count).max().unwrap_or(0);
        let next = self.intern_sorted(&items, done)?;
        if at.max - far.min(at.max) > at.reach {
            self.note_far(next, (to, at.frame));
        }
        Ok(Some(self.with_names_of(config, next)))
    }

    /// Notes what stands for a configuration whose counter is out of reach of its bounds for any token: it is the same for all that differ in nothing else,
    /// which have been read as `to`, and go on with the same frame.
    fn note_far(&mut self, config: ConfigId, key: (ConfigId, FrameId)) {
        if self.store().known_normal(config).is_some() {
            return;
        }
        let normal = match self.far.get(&key) {
            Some(&normal) => normal,
            None => {
                let normal = self.normal(config);
                self.far.insert(key, normal);
                normal
            }
        };
        self.parts().0.note_normal(config, normal);
    }

    /// Where a plain configuration is, if all of it is in one rule and in one block, no account is kept of what it reads, and a token cannot reach
    /// the block's bounds.
    fn in_block(&self, plain: ConfigId, bytes: &[u8]) -> Option<InBlock> {
        let (program, store) = (self.program(), self.store());
        let items = store.items(plain);
        let in_block = |item: &&Item| program.state(item.state).block != NO_BLOCK;
        let &Item { state, count, frame } = items.iter().find(in_block)?;
        let block = program.state(state).block;
        let of_block = program.block(block);
        let max = of_block.max.filter(|_| !of_block.gap)?;
        // Runs that begin in the token are told from those that there have been by their number.
        let reach = bytes.len().max(SHORT).next_power_of_two() as u32;
        let stands = of_block.min.max(reach + 1);
        let fits = count >= of_block.min
            && max.saturating_sub(count) > reach
            && max.saturating_sub(stands) > reach;
        // Where no masks are made, nothing is near enough.
        let longest = self.vocab().map_or(u32::MAX, |vocab| vocab.reach() as u32 + 1);
        let at = InBlock { rule: program.rule(state), frame, count, stands, max, reach: longest };
        let alike = |item: &Item| {
            let state = program.state(item.state);
            let counts = item.count == if state.block == NO_BLOCK { 0 } else { count };
            item.frame == frame
                && state.rule == at.rule
                && (state.block == block || state.block == NO_BLOCK)
                && counts
        };
        let says_nothing =
            |item: &Item| self.says_nothing(item) && !program.is_dispatch(item.state);
        let free = store.has(frame) == Has::default() && items.iter().all(says_nothing);
        (fits && items.iter().all(alike) && free).then_some(at)
    }

    /// Whether a configuration that is read on its own has not left its rule, and nothing has been called. Looked at once for the
    /// last rule that was asked for.
    fn stays(&mut self, config: ConfigId, at: InBlock) -> bool {
        if self.staying.len() <= config as usize {
            self.staying.resize(config as usize + 1, (NO_RULE, Stays::Outside));
        }
        if self.staying[config as usize].0 != at.rule {
            self.staying[config as usize] = (at.rule, self.find_stays(config, at.rule));
        }
        match self.staying[config as usize].1 {
            Stays::Inside => true,
            // Nothing follows what the whole text is.
            Stays::AtEnd => at.frame == ROOT,
            Stays::Outside => false,
        }
    }

    fn find_stays(&self, config: ConfigId, rule: u32) -> Stays {
        let (program, done) = (self.program(), self.store().done(config));
        let own = |item: &Item| {
            item.frame == BOTTOM && program.rule(item.state) == rule && self.says_nothing(item)
        };
        if config == DEAD || done.gated || !self.store().items(config).iter().all(own) {
            return Stays::Outside;
        }
        if done.bottom { Stays::AtEnd } else { Stays::Inside }
    }

    /// Whether no account is kept in a state itself.
    fn says_nothing(&self, item: &Item) -> bool {
        let (program, store) = (self.program(), self.store());
        program.state(item.state).behind == Behind::Nothing
            && store.has_own(program, item) == Has::default()
    }
}
