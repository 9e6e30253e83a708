//! Rewriting of frames: maps the items of all frames that a configuration can reach.
//!
//! Budgets and registers are stored in the items of frames. When one changes, the frames that hold
//! it are interned anew, and so is every frame that refers to them. Rewriting is memoised for each
//! call: cost is in proportion to the items of the frames reached. Frames that track nothing of the
//! requested kind are left alone; [`Tracked`] flags find them without a search.

use super::store::{ConfigId, FrameGroup, FrameId, Item, Store, Tracked};
use super::value_constraints::registers::Registers;
use crate::compile::{Program, ReturnRole};
use crate::fuel;
use crate::hash::{HashMap, HashSet};

/// Fuel for the rewrite of one frame.
const FUEL_PER_FRAME: usize = 8;

/// Result of a rewrite by old frame; `None` if no item of the frame is left. Frames not listed are
/// unchanged.
pub(super) type RewrittenFrames = HashMap<FrameId, Option<FrameId>>;

/// Maps an item; `None` drops it.
pub(super) type ItemMap<'c> = &'c mut dyn FnMut(&Program, &mut Registers, Item) -> Option<Item>;

/// The frames to rewrite: those that track any of these constraints. With `stops_at_scope`, frames
/// outside the innermost scope are left alone.
#[derive(Clone, Copy)]
pub(super) struct RewriteScope {
    /// Any of these flags puts a frame in scope.
    pub(super) tracked: Tracked,
    /// Frames outside the innermost `uniqueItems` scope are out of scope.
    pub(super) stops_at_scope: bool,
}

impl RewriteScope {
    /// All frames with budgets.
    pub(super) const BUDGETED: RewriteScope =
        RewriteScope { tracked: Tracked::BUDGET, stops_at_scope: false };

    /// Whether the frame of this item is out of scope.
    pub(super) fn is_boundary(self, program: &Program, item: &Item) -> bool {
        self.stops_at_scope && program.state(item.state).return_role == ReturnRole::Scope
    }
}

impl Store {
    /// Maps the items of all frames in scope that are reachable from `roots`. An item is dropped if
    /// `map` gives `None`, or if its frame has no items left.
    pub(super) fn rewrite_frames(
        &mut self,
        program: &Program,
        max_token_bytes: Option<u32>,
        scope: RewriteScope,
        roots: Vec<FrameId>,
        map: ItemMap<'_>,
    ) -> RewrittenFrames {
        let mut affected: HashSet<FrameId> = HashSet::default();
        let mut queue = roots;
        while let Some(frame) = queue.pop() {
            if !self.tracked(frame).intersects(scope.tracked) || !affected.insert(frame) {
                continue;
            }
            // The members of a group are rewritten together.
            affected.extend(self.group_of(frame).members());
            for member in self.group_of(frame).or_self(frame) {
                let returns = self.returns(member);
                fuel::charge(returns.len());
                let outer = returns.iter().filter(|i| !scope.is_boundary(program, i));
                queue.extend(outer.map(|i| i.frame));
            }
        }
        // Ids ascend in the order of interning: a frame refers to smaller ids, or to its own group.
        let mut order: Vec<FrameId> = affected.into_iter().collect();
        order.sort_unstable();
        fuel::charge(FUEL_PER_FRAME * order.len());
        let mut rewritten = RewrittenFrames::default();
        for frame in order {
            if rewritten.contains_key(&frame) {
                continue;
            }
            let group = self.group_of(frame);
            if group.len() > 0 {
                self.rewrite_group(program, group, scope, map, &mut rewritten);
                if let Some(max_token_bytes) = max_token_bytes
                    && let Some(&Some(new)) =
                        group.members().filter_map(|m| rewritten.get(&m)).find(|m| m.is_some())
                {
                    self.canonicalise_group(program, new, max_token_bytes);
                }
                continue;
            }
            let mut items = self.returns(frame).to_vec();
            items.retain_mut(|item| {
                let registers = &mut self.registers;
                let new = map_item(program, scope, &rewritten, registers, map, *item);
                new.map(|new| *item = new).is_some()
            });
            items.sort_unstable();
            items.dedup();
            let new =
                (!items.is_empty()).then(|| self.intern_frame(program, &items, max_token_bytes));
            rewritten.insert(frame, new);
        }
        rewritten
    }

    /// The configuration with rewritten frames. Items whose frame has no items left are dropped.
    pub(super) fn with_rewritten_frames(
        &mut self,
        config: ConfigId,
        rewritten: &RewrittenFrames,
    ) -> ConfigId {
        let items = self.items(config).iter();
        let mut items: Vec<Item> =
            items.filter_map(|&item| with_rewritten_frame(rewritten, item)).collect();
        items.sort_unstable();
        items.dedup();
        self.intern_config(&items, self.flags(config))
    }

    /// Interns the canonical form of a left-recursive group and links it; see [`super::canonical`].
    pub(super) fn canonicalise_group(
        &mut self,
        program: &Program,
        base: FrameId,
        max_token_bytes: u32,
    ) {
        let group = self.group_of(base);
        let scope =
            RewriteScope { tracked: Tracked::BUDGET.union(Tracked::SCOPE), stops_at_scope: false };
        if !self.tracked(base).intersects(scope.tracked) {
            return;
        }
        let mut canonicalise = |program: &Program, _: &mut Registers, item: Item| {
            let count = match program.budget_meter(item.state) {
                Some(meter) => meter.canonical_count(item.count, max_token_bytes),
                None if program.state(item.state).return_role == ReturnRole::Scope => {
                    Registers::canonical(item.register()).raw()
                }
                None => item.count,
            };
            Some(Item { count, ..item })
        };
        let rewritten = self.rewrite_frames(program, None, scope, vec![base], &mut canonicalise);
        for member in group.members() {
            if let Some(&Some(canonical)) = rewritten.get(&member) {
                self.set_frame_canonical(member, canonical);
            }
        }
    }

    /// Rewrites the frames of a left-recursive group together.
    fn rewrite_group(
        &mut self,
        program: &Program,
        group: FrameGroup,
        scope: RewriteScope,
        map: ItemMap<'_>,
        rewritten: &mut RewrittenFrames,
    ) {
        let position =
            |i: &Item| group.position(i.frame).filter(|_| !scope.is_boundary(program, i));
        // The mapped items of each member; references inside the group still name the old members.
        let mut mapped_items: Vec<Vec<Item>> = Vec::new();
        for member in group.members() {
            let mut items = self.returns(member).to_vec();
            items.retain_mut(|item| {
                let new = match position(item) {
                    Some(_) => map(program, &mut self.registers, *item),
                    None => map_item(program, scope, rewritten, &mut self.registers, map, *item),
                };
                new.map(|new| *item = new).is_some()
            });
            mapped_items.push(items);
        }
        // A member survives if it returns out of the group, perhaps through other members.
        let survives = group
            .callers(|member| mapped_items[member].iter().filter_map(position))
            .reached((0u32..).zip(&mapped_items).filter_map(|(member, items)| {
                items.iter().any(|i| position(i).is_none()).then_some(member)
            }));
        let members: Vec<Vec<Item>> = mapped_items
            .iter()
            .map(|items| {
                let surviving = items.iter().filter_map(|i| match position(i) {
                    None => Some(*i),
                    Some(index) => {
                        survives[index].then(|| Item { frame: Store::group_member(index), ..*i })
                    }
                });
                let mut surviving: Vec<Item> = surviving.collect();
                surviving.sort_unstable();
                surviving.dedup();
                surviving
            })
            .collect();
        let new = self.intern_group(program, &members);
        for (index, member) in group.members().enumerate() {
            rewritten.insert(member, survives[index].then_some(new.member(index)));
        }
    }
}

/// Maps an item and its frame.
fn map_item(
    program: &Program,
    scope: RewriteScope,
    rewritten: &RewrittenFrames,
    registers: &mut Registers,
    map: ItemMap<'_>,
    item: Item,
) -> Option<Item> {
    let new = map(program, registers, item)?;
    if scope.is_boundary(program, &item) { Some(new) } else { with_rewritten_frame(rewritten, new) }
}

/// The item with its rewritten frame; `None` if that frame has no items left.
pub(super) fn with_rewritten_frame(rewritten: &RewrittenFrames, item: Item) -> Option<Item> {
    match rewritten.get(&item.frame) {
        None => Some(item),
        Some(frame) => frame.map(|frame| Item { frame, ..item }),
    }
}
