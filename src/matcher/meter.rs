//! Budgets while parsing. The count of a metered occurrence stands in the frame its rule returns through, so counting means
//! rewriting frames; grammars without budgets never get here.

use rustc_hash::{FxHashMap, FxHashSet};

use super::parser::{Parser, ParserLimit};
use super::store::{ConfigId, Done, FrameId, Item, Store};
use crate::compile::{Meter, Program, Unit};
use crate::ir::Spent;

/// Frames that were rewritten; `None`: nothing is left of it. Others are as they were.
type Rewritten = FxHashMap<FrameId, Option<FrameId>>;

impl Store {
    /// Whether counting concerns any of these items, which refer to interned frames.
    pub(super) fn is_metered(&self, program: &Program, items: &[Item]) -> bool {
        items.iter().any(|i| self.is_metered_frame(i.frame) || program.meter(i.state).is_some())
    }

    /// Maps the items of all metered frames that can be reached from `roots`, innermost returns first. An item that is mapped to
    /// `None`, or whose frame has nothing left, is dropped.
    fn rewrite(
        &mut self,
        program: &Program,
        reach: Option<u32>,
        roots: impl Iterator<Item = FrameId>,
        map: &dyn Fn(Item) -> Option<Item>,
    ) -> Rewritten {
        let mut found: FxHashSet<FrameId> = FxHashSet::default();
        let mut queue: Vec<FrameId> = roots.collect();
        while let Some(frame) = queue.pop() {
            if self.is_metered_frame(frame) && found.insert(frame) {
                queue.extend(self.returns(frame).iter().map(|i| i.frame));
                let (base, len) = self.group_of(frame);
                queue.extend(base..base + len);
            }
        }
        // Ids are given in the order of interning, so what a frame refers to has a smaller one, or is of its own group.
        let mut order: Vec<FrameId> = found.into_iter().collect();
        order.sort_unstable();
        let mut out = Rewritten::default();
        for frame in order {
            if out.contains_key(&frame) {
                continue;
            }
            let (base, len) = self.group_of(frame);
            if len > 0 {
                self.rewrite_group(program, (base, len), map, &mut out);
                if let Some(reach) = reach
                    && let Some(&Some(new)) = (base..base + len).filter_map(|m| out.get(&m)).find(|m| m.is_some())
                {
                    self.normalise_group(program, new, reach);
                }
                continue;
            }
            let mut items: Vec<Item> =
                self.returns(frame).iter().filter_map(|&i| map(i)).filter_map(|i| behind(&out, i)).collect();
            items.sort_unstable();
            items.dedup();
            let new = (!items.is_empty()).then(|| self.frame(program, &items, reach));
            out.insert(frame, new);
        }
        out
    }

    /// Finds what stands for the frames of a left-recursive group where masks are concerned.
    pub(super) fn normalise_group(&mut self, program: &Program, base: FrameId, reach: u32) {
        let (base, len) = self.group_of(base);
        if !self.is_metered_frame(base) {
            return;
        }
        let normal = |item: Item| {
            let count = program.meter(item.state).map_or(item.count, |meter| meter.normal(item.count, reach));
            Some(Item { count, ..item })
        };
        let normal = self.rewrite(program, None, std::iter::once(base), &normal);
        for member in base..base + len {
            if let Some(&Some(stands)) = normal.get(&member) {
                self.set_normal(member, stands);
            }
        }
    }

    fn rewrite_group(
        &mut self,
        program: &Program,
        (base, len): (FrameId, u32),
        map: &dyn Fn(Item) -> Option<Item>,
        out: &mut Rewritten,
    ) {
        let group = base..base + len;
        // What is left of a member: something that returns out of the group, perhaps through other members.
        let mut left = vec![false; len as usize];
        let mut changed = true;
        while changed {
            changed = false;
            for member in group.clone() {
                if left[(member - base) as usize] {
                    continue;
                }
                let lives =
                    self.returns(member).iter().filter_map(|&i| map(i)).any(|i| match group.contains(&i.frame) {
                        true => left[(i.frame - base) as usize],
                        false => behind(out, i).is_some(),
                    });
                left[(member - base) as usize] |= lives;
                changed |= lives;
            }
        }
        let members: Vec<Vec<Item>> = group
            .clone()
            .map(|member| {
                let kept = self.returns(member).iter().filter_map(|&i| map(i)).filter_map(|i| {
                    if !group.contains(&i.frame) {
                        return behind(out, i);
                    }
                    let index = (i.frame - base) as usize;
                    left[index].then(|| Item { frame: Store::member(index), ..i })
                });
                let mut kept: Vec<Item> = kept.collect();
                kept.sort_unstable();
                kept.dedup();
                kept
            })
            .collect();
        let new = self.group(program, &members);
        for member in group {
            let index = member - base;
            out.insert(member, left[index as usize].then_some(new + index));
        }
    }
}

/// An item with its frame as rewritten; `None` if nothing is left of that.
fn behind(rewritten: &Rewritten, item: Item) -> Option<Item> {
    match rewritten.get(&item.frame) {
        None => Some(item),
        Some(frame) => frame.map(|frame| Item { frame, ..item }),
    }
}

impl Parser {
    /// Where a configuration leads when a token ends. Counts tokens against budgets; the same configuration in grammars
    /// without any.
    pub(crate) fn token_ended(&mut self, config: ConfigId) -> Result<ConfigId, ParserLimit> {
        if !self.is_metered(config) {
            return Ok(config);
        }
        if let Some(&known) = self.ticks.get(&config) {
            return Ok(known);
        }
        let next = self.count(config, &|meter, count| Some(meter.token_ended(count)));
        let next = self.settle(next, At::Token)?;
        self.ticks.insert(config, next);
        Ok(next)
    }

    /// Counts a byte for the items that have just read it.
    pub(super) fn byte_read(&mut self, byte: u8, items: &mut Vec<Item>) {
        if !self.store().is_metered(self.program(), items) {
            return;
        }
        let count = |meter: Meter, count| meter.byte_read(byte, count);
        let rewritten = self.recount(items.iter().map(|i| i.frame), &count);
        if items.iter().any(|&item| behind(&rewritten, item).is_some()) {
            items.retain_mut(|item| behind(&rewritten, *item).map(|new| *item = new).is_some());
            return;
        }
        // Nothing but what is over can be read: better that than nothing.
        let count = |meter: Meter, count| Some(meter.byte_read(byte, count).unwrap_or(count));
        let rewritten = self.recount(items.iter().map(|i| i.frame), &count);
        for item in items {
            *item = behind(&rewritten, *item).unwrap_or(*item);
        }
    }

    /// Drops what has used up its budget, unless nothing else is left.
    pub(super) fn settle(&mut self, config: ConfigId, at: At) -> Result<ConfigId, ParserLimit> {
        let mut config = config;
        let mut ended: FxHashSet<Item> = FxHashSet::default();
        loop {
            if !self.is_metered(config) {
                return Ok(config);
            }
            let items = self.store().items(config).to_vec();
            let mut spent: Vec<(Meter, Item)> = Vec::new();
            self.each_metered(&items, &mut |meter, item| {
                if at.is_spent(meter, item.count) {
                    spent.push((meter, item));
                }
            });
            if spent.is_empty() {
                return Ok(config);
            }
            let (store, program, reach) = self.parts();
            let live =
                |item: Item| program.meter(item.state).is_none_or(|m| !at.is_spent(m, item.count)).then_some(item);
            let left = store.rewrite(program, reach, items.iter().map(|i| i.frame), &live);
            // Rules that end where they are; what follows them may be spent at once, too.
            let cut = spent.into_iter().filter(|(meter, _)| meter.spent == Spent::Cut);
            let cut = cut.filter_map(|(_, item)| behind(&left, item)).filter(|&item| ended.insert(item));
            let cut: Vec<Item> = cut.collect();
            if cut.is_empty() {
                let kept = self.interned(items.into_iter().filter_map(|i| behind(&left, i)), config);
                let dead = self.store().items(kept).is_empty() && self.store().done(kept) == Done::default();
                return Ok(if dead { config } else { kept });
            }
            let after = self.close_items(&cut)?;
            config = self.union(config, after);
        }
    }

    /// Fewest code points that may still come in any metered occurrence whose bound is near.
    pub(crate) fn chars_left(&self, config: ConfigId) -> Option<u32> {
        if !self.is_metered(config) {
            return None;
        }
        let mut fewest = None;
        self.each_metered(self.store().items(config), &mut |meter, item| {
            let left = meter.chars_left(item.count);
            fewest = fewest.into_iter().chain(left).min();
        });
        fewest
    }

    /// The configuration with no bound on code points.
    pub(crate) fn unbounded(&mut self, config: ConfigId) -> ConfigId {
        let far = |meter: Meter, count| if meter.chars_left(count).is_some() { Meter::FAR } else { count };
        self.count(config, &|meter, count| Some(far(meter, count)))
    }

    fn each_metered(&self, items: &[Item], visit: &mut dyn FnMut(Meter, Item)) {
        let mut seen: FxHashSet<FrameId> = FxHashSet::default();
        let mut queue: Vec<Item> = items.to_vec();
        while let Some(item) = queue.pop() {
            if let Some(meter) = self.program().meter(item.state) {
                visit(meter, item);
            }
            if self.store().is_metered_frame(item.frame) && seen.insert(item.frame) {
                queue.extend_from_slice(self.store().returns(item.frame));
            }
        }
    }

    fn is_metered(&self, config: ConfigId) -> bool {
        !self.compiled().meters.is_empty()
            && self.store().items(config).iter().any(|i| self.store().is_metered_frame(i.frame))
    }

    /// The configuration with every count changed, and without what has none then.
    fn count(&mut self, config: ConfigId, change: &dyn Fn(Meter, u32) -> Option<u32>) -> ConfigId {
        let items = self.store().items(config).to_vec();
        let rewritten = self.recount(items.iter().map(|i| i.frame), change);
        self.interned(items.into_iter().filter_map(|i| behind(&rewritten, i)), config)
    }

    /// These items, with what is completed in `config`.
    fn interned(&mut self, items: impl Iterator<Item = Item>, config: ConfigId) -> ConfigId {
        let mut items: Vec<Item> = items.collect();
        items.sort_unstable();
        items.dedup();
        let done = self.store().done(config);
        self.parts().0.config(&items, done)
    }

    fn recount(
        &mut self,
        roots: impl Iterator<Item = FrameId>,
        change: &dyn Fn(Meter, u32) -> Option<u32>,
    ) -> Rewritten {
        let (store, program, reach) = self.parts();
        let map = |item: Item| match program.meter(item.state) {
            None => Some(item),
            Some(meter) => change(meter, item.count).map(|count| Item { count, ..item }),
        };
        store.rewrite(program, reach, roots, &map)
    }
}

/// When budgets are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Behind a byte: code points count, and where text is cut, the rest of one.
    Byte,
    /// Behind a token: tokens count, too.
    Token,
}

impl At {
    /// Nothing may follow inside.
    fn is_spent(self, meter: Meter, count: u32) -> bool {
        count == 0 && (self == At::Token || meter.unit == Unit::Char || meter.spent == Spent::Cut)
    }
}
