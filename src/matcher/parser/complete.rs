//! Completion: what follows when rules and runs of counted blocks end.

use super::{Parser, Scratch};
use crate::compile::{Block, BlockId, ReturnRole, RunEnd};
use crate::fuel;
use crate::hash::Seeded;
use crate::matcher::limit::ParserLimit;
use crate::matcher::store::{ConfigFlags, FrameId, Item, UNBOUNDED_COUNT};

/// Kernels from this length on are hashed; smaller ones are searched linearly.
const LARGE_KERNEL: usize = 24;

/// The kernel as a set, while completion adds to it.
struct KernelSet<'s> {
    items: &'s mut Vec<Item>,
    /// The same items, once there are many.
    seen: &'s mut hashbrown::HashSet<Item, Seeded>,
    is_hashed: bool,
}

impl<'s> KernelSet<'s> {
    fn new(
        items: &'s mut Vec<Item>,
        seen: &'s mut hashbrown::HashSet<Item, Seeded>,
    ) -> KernelSet<'s> {
        KernelSet { items, seen, is_hashed: false }
    }

    /// Adds an item, unless the kernel has it.
    #[inline]
    fn insert(&mut self, item: Item) {
        if self.items.len() < LARGE_KERNEL {
            if !self.items.contains(&item) {
                self.items.push(item);
            }
            return;
        }
        if !self.is_hashed {
            self.is_hashed = true;
            self.seen.clear();
            self.seen.extend(self.items.iter().copied());
        }
        if self.seen.insert(item) {
            self.items.push(item);
        }
    }

    /// Ends a run of a block: the item after the block is added to the kernel, and the one of the
    /// next run to `restarts`, as far as the block's bounds allow. `relaxed`: white space has no
    /// bounds.
    #[inline]
    fn end_run(&mut self, item: Item, block: &Block, relaxed: bool, restarts: &mut Vec<Item>) {
        let RunEnd { next_run, may_exit } = run_end(item.count, block, relaxed);
        if let Some(count) = next_run {
            restarts.push(Item { state: block.start, count, frame: item.frame });
        }
        if may_exit {
            self.insert(Item { state: block.exit, count: 0, frame: item.frame });
        }
    }
}

/// The end of a run of a block in an item with this count. `relaxed`: white space has no bounds.
#[inline]
fn run_end(count: u32, block: &Block, relaxed: bool) -> RunEnd {
    if count & UNBOUNDED_COUNT != 0 {
        return RunEnd { next_run: Some(count.saturating_add(1)), may_exit: true };
    }
    match relaxed && block.is_bounded_white_space {
        true => Block { max: None, ..*block }.end_run(count),
        false => block.end_run(count),
    }
}

impl Parser {
    /// The item after a block, if an item that ends a run of it may leave it.
    pub(in crate::matcher) fn after_block(&self, item: Item) -> Option<Item> {
        let block = self.program.block(self.program.state(item.state).block);
        let may_exit = run_end(item.count, block, self.relaxed).may_exit;
        may_exit.then_some(Item { state: block.exit, count: 0, frame: item.frame })
    }

    /// Completion: the fixpoint over the kernel. An item whose rule ends adds the items of its
    /// frame. An item whose run of a block ends adds the next run, the item after the block, or
    /// both.
    pub(super) fn complete(&mut self, flags: &mut ConfigFlags) -> Result<(), ParserLimit> {
        self.scratch.restarts.clear();
        self.scratch.ended.clear();
        fuel::charge_sort(self.scratch.kernel.len());
        self.scratch.kernel.sort_unstable();
        self.scratch.kernel.dedup();
        let mut at = 0;
        loop {
            at = self.complete_from(at, flags)?;
            if self.scratch.ended.is_empty() {
                return Ok(());
            }
            let mut returns = Vec::new();
            while let Some(frame) = self.scratch.ended.pop() {
                returns.extend(self.end_element(frame)?);
            }
            fuel::spend(2 * returns.len())?;
            let mut kernel = KernelSet::new(&mut self.scratch.kernel, &mut self.scratch.seen);
            returns.into_iter().for_each(|back| kernel.insert(back));
        }
    }

    /// Completion from index `at` on. Elements that end are collected in `ended` for the caller.
    fn complete_from(
        &mut self,
        mut at: usize,
        flags: &mut ConfigFlags,
    ) -> Result<usize, ParserLimit> {
        let Scratch { kernel, seen, restarts, ended, .. } = &mut self.scratch;
        let (program, relaxed, duplicates) =
            (&self.program, self.relaxed, &self.keys.current_step.duplicates);
        let mut kernel = KernelSet::new(kernel, seen);
        while let Some(&item) = kernel.items.get(at) {
            at += 1;
            fuel::charge(2);
            let state = program.state(item.state);
            if !state.is_final {
                continue;
            }
            if state.block != BlockId::NONE {
                kernel.end_run(item, program.block(state.block), relaxed, restarts);
                continue;
            }
            match item.frame {
                FrameId::ROOT => flags.start_completed = true,
                FrameId::ISOLATED | FrameId::ISOLATED_DISPATCH => flags.item_completed = true,
                frame if state.return_role == ReturnRole::Element => ended.push(frame),
                frame if state.unique_key && duplicates.contains(&frame) => {}
                frame => {
                    fuel::spend(2 * self.store.returns(frame).len())?;
                    for &back in self.store.returns(frame) {
                        kernel.insert(back);
                    }
                }
            }
            if kernel.items.len() > self.limits.items {
                return Err(ParserLimit::Items);
            }
        }
        Ok(at)
    }

    /// Adds the first state of each block that an item may enter, and of each next run. Those
    /// states have read nothing of their run and are not completed, so an empty run is never
    /// counted. Errors: the fuel is spent.
    pub(super) fn enter_blocks(&mut self) -> Result<(), ParserLimit> {
        let Scratch { kernel, restarts, .. } = &mut self.scratch;
        fuel::charge(kernel.len() + restarts.len());
        for i in 0..kernel.len() {
            let item = kernel[i];
            let state = self.program.state(item.state);
            if !state.has_call_edge || item.has_fired(state) {
                continue;
            }
            fuel::check()?;
            self.program.expand(item.state);
            for &block in self.program.block_entries(item.state) {
                let start = self.program.block(block).start;
                kernel.push(Item { state: start, count: 0, frame: item.frame });
            }
        }
        kernel.append(restarts);
        Ok(())
    }
}
