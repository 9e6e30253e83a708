//! Token steps in counted blocks, shared by all counter values.
//!
//! Each character of a string with `maxLength` has its own configuration, because the counter
//! differs. A token that stays in the block and cannot reach a bound moves all counters alike. It
//! is therefore read once, in isolation, with one probe counter; the result is translated back. See
//! `docs/internals/COUNTERS.md`.

use smallvec::SmallVec;

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigFlags, ConfigId, FrameId, Item, Tracked};
use crate::compile::{BlockId, CompiledRuleId, ReturnRole};

/// Probe counters are shared by tokens up to this length, in bytes; longer tokens share by the next
/// power of two.
const MIN_READ_REACH: usize = 8;

/// Position of a configuration whose items are all in one counted block.
#[derive(Clone, Copy)]
struct CountedPosition {
    /// The rule and frame of all items.
    rule: CompiledRuleId,
    frame: FrameId,
    /// The actual counter, and the probe counter that stands for it.
    count: u32,
    probe_count: u32,
    /// The upper bound of runs, and the most runs of the longest token.
    max: u32,
    max_token_bytes: u32,
}

impl Parser {
    /// The configuration after a token's bytes, if the token stays in the configuration's block and
    /// cannot reach the block's bounds. `None` if the bytes must be stepped one by one. Cost:
    /// cached steps, and one interning.
    pub(super) fn step_within_block(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<Option<ConfigId>, ParserLimit> {
        if self.program().blocks.is_empty() {
            return Ok(None);
        }
        let base = self.store().base(config);
        let Some(position) = self.block_position(base, bytes) else { return Ok(None) };
        if self.tracks_keys(config) && !self.keeps_key_list(config, position.frame) {
            return Ok(None);
        }
        let is_counted = |item: &Item| self.program().state(item.state).block != BlockId::NONE;
        let count = |item: &Item| if is_counted(item) { position.probe_count } else { 0 };
        let items = self.store().items(base).iter();
        let isolated: SmallVec<[Item; 4]> = items
            .map(|item| Item { count: count(item), frame: FrameId::ISOLATED, ..*item })
            .collect();
        let mut target = self.intern_unchecked(&isolated, ConfigFlags::default());
        for &byte in bytes {
            target = self.step(target, byte)?;
            if !self.stays_in_rule(target, position) {
                return Ok(None);
            }
        }
        let count = |runs: u32| {
            if runs >= position.probe_count {
                runs - position.probe_count + position.count
            } else {
                runs
            }
        };
        let items = self.store().items(target).iter();
        // The order of items is kept: states are the same, and counts shift by the same distance.
        let items: SmallVec<[Item; 4]> = items
            .map(|item| Item { count: count(item.count), frame: position.frame, ..*item })
            .collect();
        let flags = ConfigFlags {
            start_completed: self.store().flags(target).item_completed,
            ..ConfigFlags::default()
        };
        let max_count = items.iter().map(|item| item.count).max().unwrap_or(0);
        let next = self.intern_sorted(&items, flags)?;
        if position.max - max_count.min(position.max) > position.max_token_bytes {
            self.memoise_canonical(next, (target, position.frame));
        }
        Ok(Some(self.with_keys_of(config, next)))
    }

    /// Memoises the canonical configuration of a counter that no token can take to a bound. All
    /// configurations that differ only in such counters share it; `key` identifies them.
    fn memoise_canonical(&mut self, config: ConfigId, key: (ConfigId, FrameId)) {
        if self.store_mut().representatives(config).canonical != ConfigId::UNKNOWN {
            return;
        }
        let canonical = match self.queries.far_canonical.get(&key) {
            Some(&canonical) => canonical,
            None => {
                let canonical = self.canonical(config);
                self.queries.far_canonical.insert(key, canonical);
                canonical
            }
        };
        self.store_mut().representatives(config).canonical = canonical;
    }

    /// The position of a base configuration, if all its items are in one rule and one block, track
    /// no constraints, and no token of this length can reach the block's bounds.
    fn block_position(&self, base: ConfigId, bytes: &[u8]) -> Option<CountedPosition> {
        let (program, store) = (self.program(), self.store());
        let items = store.items(base);
        let in_block = |item: &&Item| program.state(item.state).block != BlockId::NONE;
        let &Item { state, count, frame } = items.iter().find(in_block)?;
        let block_id = program.state(state).block;
        let block = program.block(block_id);
        let max = block.max.filter(|_| !block.is_bounded_white_space)?;
        // No token reaches the probe count by itself, so runs that begin in the token stay apart.
        let token_runs = bytes.len().max(MIN_READ_REACH).next_power_of_two() as u32;
        let probe_count = block.min.max(token_runs + 1);
        let fits = count >= block.min
            && max.saturating_sub(count) > token_runs
            && max.saturating_sub(probe_count) > token_runs;
        // Without masks, canonical configurations are not needed.
        let longest = self.vocab().map_or(u32::MAX, |vocab| vocab.max_token_bytes() as u32 + 1);
        let position = CountedPosition {
            rule: program.rule(state),
            frame,
            count,
            probe_count,
            max,
            max_token_bytes: longest,
        };
        let is_at_position = |item: &Item| {
            let state = program.state(item.state);
            let has_count = item.count == if state.block == BlockId::NONE { 0 } else { count };
            item.frame == frame
                && state.rule == position.rule
                && (state.block == block_id || state.block == BlockId::NONE)
                && has_count
        };
        let tracks_nothing =
            |item: &Item| self.tracks_nothing(item) && !program.is_dispatch(item.state);
        let free = store.tracked(frame) == Tracked::default() && items.iter().all(tracks_nothing);
        (fits && items.iter().all(is_at_position) && free).then_some(position)
    }

    /// Whether an isolated configuration has not left its rule and has called nothing.
    fn stays_in_rule(&self, config: ConfigId, position: CountedPosition) -> bool {
        let (program, flags) = (self.program(), self.store().flags(config));
        let is_in_rule = |item: &Item| {
            item.frame == FrameId::ISOLATED
                && program.rule(item.state) == position.rule
                && self.tracks_nothing(item)
        };
        // After the start rule, nothing follows.
        let may_be_at_end = position.frame == FrameId::ROOT;
        config != ConfigId::DEAD
            && !flags.after_trigger
            && (!flags.item_completed || may_be_at_end)
            && self.store().items(config).iter().all(is_in_rule)
    }

    /// Whether an item tracks no constraint itself.
    fn tracks_nothing(&self, item: &Item) -> bool {
        let (program, store) = (self.program(), self.store());
        program.state(item.state).return_role == ReturnRole::Nothing
            && store.tracked_by_state(program, item) == Tracked::default()
    }
}
