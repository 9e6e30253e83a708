//! The frames of rules in which keys are open, begin or end.

use smallvec::SmallVec;

use super::QUOTE;
use crate::compile::BlockId;
use crate::fuel;
use crate::matcher::parser::Parser;
use crate::matcher::store::{ConfigId, FrameId, Item, Tracked};
use crate::matcher::symbol::Symbol;
use crate::matcher::value_constraints::key_tracker::KeyList;

/// A short set of frames.
pub(super) type FrameList = SmallVec<[FrameId; 4]>;

impl Parser {
    /// Whether two configurations have items with the same set of frames.
    pub(super) fn has_same_frames(&self, a: ConfigId, b: ConfigId) -> bool {
        let frames = |config| {
            let items = self.store().items(config).iter();
            let mut frames: FrameList = items.map(|item| item.frame).collect();
            frames.sort_unstable();
            frames.dedup();
            frames
        };
        frames(a) == frames(b)
    }

    /// Keeps the frames that these items have or return to. Cost: their number.
    pub(super) fn retain_open_frames(&self, list: &mut KeyList, items: &[Item]) {
        if list.is_empty() {
            return;
        }
        let mut walk = self.store().walk(items);
        while let Some(item) = walk.next_item() {
            walk.enter(item.frame);
        }
        fuel::charge(list.len());
        list.retain(|(frame, _)| walk.has_entered(*frame));
    }

    /// Whether a key is open or may begin.
    pub(crate) fn may_begin_key(&self, config: ConfigId) -> bool {
        let (program, store) = (self.program(), self.store());
        store.items(config).iter().any(|i| {
            program.state(i.state).unique_key || store.tracked(i.frame).intersects(Tracked::KEY)
        })
    }

    /// The frames of the rules in which a key is open or may begin. Sorted.
    pub(super) fn key_frames(&self, config: ConfigId) -> FrameList {
        let mut out = FrameList::new();
        let mut walk = self.store().walk(self.store().items(config));
        while let Some(item) = walk.next_item() {
            if self.program().state(item.state).unique_key {
                self.owner_frames(item.frame, &mut out);
            } else if self.store().tracked(item.frame).intersects(Tracked::KEY) {
                walk.enter(item.frame);
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The keys that end with a quote read here: the frames of the rules that called them, and
    /// their own. Sorted.
    pub(super) fn ending_keys(&mut self, config: ConfigId) -> SmallVec<[(FrameId, FrameId); 4]> {
        let mut ends: SmallVec<[Item; 8]> = SmallVec::new();
        for item in SmallVec::<[Item; 8]>::from(self.store().items(config)) {
            let program = self.program_mut();
            program.expand(item.state);
            let targets = Symbol::Byte(QUOTE).targets(program, item.state);
            ends.extend(targets.map(|state| Item { state, ..item }));
        }
        let mut out: SmallVec<[(FrameId, FrameId); 4]> = SmallVec::new();
        let mut walk = self.store().walk(&ends);
        while let Some(item) = walk.next_item() {
            let state = self.program().state(item.state);
            if !state.is_final {
                continue;
            }
            if state.block != BlockId::NONE {
                // The quote ends a run of the block, and the rule only if nothing must follow.
                self.after_block(item).into_iter().for_each(|after| walk.visit_later(after));
            } else if state.unique_key {
                let mut owners = FrameList::new();
                self.owner_frames(item.frame, &mut owners);
                out.extend(owners.into_iter().map(|owner| (owner, item.frame)));
            } else if self.store().tracked(item.frame).intersects(Tracked::KEY) {
                walk.enter(item.frame);
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Adds the frames of the rules that called the rule with this frame. Auxiliary rules count as
    /// parts of the rules that they were split from.
    fn owner_frames(&self, frame: FrameId, out: &mut FrameList) {
        let mut walk = self.store().walk(&[]);
        walk.enter(frame);
        while let Some(item) = walk.next_item() {
            if self.program().is_auxiliary(item.state) {
                walk.enter(item.frame);
            } else if out.last() != Some(&item.frame) {
                out.push(item.frame);
            }
        }
    }
}
