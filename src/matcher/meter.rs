//! Budgets while parsing. The count of a metered occurrence stands in the frame its rule returns through, so counting means
//! rewriting frames; grammars without budgets never get here.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::registers::Registers;
use super::store::{ConfigId, Done, FrameId, Has, Item, Store};
use crate::compile::{Behind, Meter, Program, Unit};
use crate::hash::{HashMap, HashSet};
use crate::ir::Spent;

/// Frames that were rewritten; `None`: nothing is left of it. Others are as they were.
pub(super) type Rewritten = HashMap<FrameId, Option<FrameId>>;

/// What becomes of an item; nothing, where it is dropped.
pub(super) type Change<'c> = &'c mut dyn FnMut(&mut Registers, Item) -> Option<Item>;

/// Which frames are rewritten: those that have something of this kind; and whether frames behind a scope are left alone.
#[derive(Clone, Copy)]
pub(super) struct Where {
    pub(super) has: Has,
    pub(super) nearest: bool,
}

impl Where {
    /// All that are metered.
    const METERED: Where = Where { has: Has::METER, nearest: false };

    /// Whether nothing behind this item is looked at.
    pub(super) fn ends_at(self, program: &Program, item: &Item) -> bool {
        self.nearest && program.state(item.state).behind == Behind::Scope
    }
}

impl Store {
    /// Maps the items of all frames that are concerned and can be reached from `roots`, innermost returns first. An item that is
    /// mapped to `None`, or whose frame has nothing left, is dropped.
    pub(super) fn rewrite(
        &mut self,
        program: &Program,
        reach: Option<u32>,
        (at, roots): (Where, impl Iterator<Item = FrameId>),
        map: Change<'_>,
    ) -> Rewritten {
        let mut found: HashSet<FrameId> = HashSet::default();
        let mut queue: Vec<FrameId> = roots.collect();
        while let Some(frame) = queue.pop() {
            if self.has(frame).any(at.has) && found.insert(frame) {
                let behind = self.returns(frame).iter().filter(|i| !at.ends_at(program, i));
                queue.extend(behind.map(|i| i.frame));
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
                self.rewrite_group(program, (base, len), (at, map), &mut out);
                if let Some(reach) = reach
                    && let Some(&Some(new)) =
                        (base..base + len).filter_map(|m| out.get(&m)).find(|m| m.is_some())
                {
                    self.normalise_group(program, new, reach);
                }
                continue;
            }
            let mut items = self.returns(frame).to_vec();
            items.retain_mut(|item| {
                match mapped(program, (at, &out), (&mut self.registers, map), *item) {
                    Some(new) => {
                        *item = new;
                        true
                    }
                    None => false,
                }
            });
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
        let at = Where { has: Has::METER.or(Has::SCOPE), nearest: false };
        if !self.has(base).any(at.has) {
            return;
        }
        let mut normal = |_: &mut Registers, item: Item| {
            let count = match program.meter(item.state) {
                Some(meter) => meter.normal(item.count, reach),
                None if program.state(item.state).behind == Behind::Scope => {
                    Registers::normal(item.count)
                }
                None => item.count,
            };
            Some(Item { count, ..item })
        };
        let normal = self.rewrite(program, None, (at, std::iter::once(base)), &mut normal);
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
        (at, map): (Where, Change<'_>),
        out: &mut Rewritten,
    ) {
        let group = base..base + len;
        let inside = |i: &Item| group.contains(&i.frame) && !at.ends_at(program, i);
        // What becomes of each member's items, those in the group with frames as they are.
        let mut mapped_items: Vec<Vec<Item>> = Vec::new();
        for member in group.clone() {
            let mut items = self.returns(member).to_vec();
            items.retain_mut(|item| {
                let new = match inside(item) {
                    true => map(&mut self.registers, *item),
                    false => mapped(program, (at, out), (&mut self.registers, map), *item),
                };
                new.is_some_and(|new| {
                    *item = new;
                    true
                })
            });
            mapped_items.push(items);
        }
        // What is left of a member: something that returns out of the group, perhaps through other members.
        let mut left = vec![false; len as usize];
        let mut changed = true;
        while changed {
            changed = false;
            for (member, items) in mapped_items.iter().enumerate() {
                let lives = items.iter().any(|i| !inside(i) || left[(i.frame - base) as usize]);
                changed |= lives && !left[member];
                left[member] |= lives;
            }
        }
        let members: Vec<Vec<Item>> = mapped_items
            .iter()
            .map(|items| {
                let kept = items.iter().filter_map(|i| match inside(i) {
                    false => Some(*i),
                    true => {
                        let index = (i.frame - base) as usize;
                        left[index].then(|| Item { frame: Store::member(index), ..*i })
                    }
                });
                let mut kept: Vec<Item> = kept.collect();
                kept.sort_unstable();
                kept.dedup();
                kept
            })
            .collect();
        let new = self.group(program, &members);
        for member in group.clone() {
            let index = member - base;
            out.insert(member, left[index as usize].then_some(new + index));
        }
    }
}

/// What becomes of an item and of its frame.
fn mapped(
    program: &Program,
    (at, rewritten): (Where, &Rewritten),
    (registers, map): (&mut Registers, Change<'_>),
    item: Item,
) -> Option<Item> {
    let new = map(registers, item)?;
    if at.ends_at(program, &item) { Some(new) } else { behind(rewritten, new) }
}

/// An item with its frame as rewritten; `None` if nothing is left of that.
pub(super) fn behind(rewritten: &Rewritten, item: Item) -> Option<Item> {
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
        if self.is_named(config) {
            return self.ended_named(config);
        }
        if let Some(&known) = self.ticks.get(&config) {
            return Ok(known);
        }
        let next = self.count_token(config)?;
        self.ticks.insert(config, next);
        Ok(next)
    }

    /// The same, found anew.
    pub(super) fn count_token(&mut self, config: ConfigId) -> Result<ConfigId, ParserLimit> {
        let next = self.count(config, &|meter, count| Some(meter.token_ended(count)));
        self.settle(next, At::Token)
    }

    /// Counts a byte for the items that have just read it, and adds it to the elements under way. Says whether there was anything to do.
    pub(super) fn byte_read(&mut self, byte: u8, items: &mut Vec<Item>) -> bool {
        self.symbol_read(u32::from(byte), items)
    }

    /// The same of a special token, as a number from 256 on, which budgets do not count here.
    pub(super) fn symbol_read(&mut self, symbol: u32, items: &mut Vec<Item>) -> bool {
        let at = Where { has: Has::METER.or(Has::ELEMENT), nearest: false };
        if !self.store().has_behind(items).any(at.has) {
            return false;
        }
        let rewritten = self.counted(symbol, (at, items), false);
        if items.iter().any(|&item| behind(&rewritten, item).is_some()) {
            items.retain_mut(|item| behind(&rewritten, *item).map(|new| *item = new).is_some());
            return true;
        }
        // Nothing but what is over can be read: better that than nothing.
        let rewritten = self.counted(symbol, (at, items), true);
        for item in items {
            *item = behind(&rewritten, *item).unwrap_or(*item);
        }
        true
    }

    /// The frames of items that have just read a symbol. What is over is dropped, unless it is to go on.
    fn counted(&mut self, symbol: u32, (at, items): (Where, &[Item]), goes_on: bool) -> Rewritten {
        let (store, program, reach) = self.parts();
        let byte = u8::try_from(symbol).ok();
        let mut read = |registers: &mut Registers, item: Item| {
            let count = match (program.meter(item.state), program.state(item.state).behind, byte) {
                (Some(meter), _, Some(byte)) => {
                    meter.byte_read(byte, item.count).or_else(|| goes_on.then_some(item.count))?
                }
                (None, Behind::Scope, _) => registers.read(item.count, symbol),
                _ => item.count,
            };
            Some(Item { count, ..item })
        };
        let rewritten =
            store.rewrite(program, reach, (at, items.iter().map(|i| i.frame)), &mut read);
        self.names.carry(&rewritten);
        rewritten
    }

    /// Drops what has used up its budget. If nothing else is left, what is to be finished stays, and what is cut ends all the same.
    pub(super) fn settle(&mut self, config: ConfigId, at: At) -> Result<ConfigId, ParserLimit> {
        let spent = |meter: Meter, count| at.is_spent(meter, count);
        let left = self.without_spent(config, &spent)?;
        if !self.has_ended(left) {
            return Ok(left);
        }
        let left = self.without_spent(config, &|meter, count| {
            meter.spent == Spent::Cut && spent(meter, count)
        })?;
        Ok(if self.has_ended(left) { config } else { left })
    }

    /// Whether nothing can follow, and nothing is complete.
    fn has_ended(&self, config: ConfigId) -> bool {
        self.store().items(config).is_empty() && self.store().done(config) == Done::default()
    }

    /// A configuration without what is spent; rules that are cut end where they are.
    fn without_spent(
        &mut self,
        config: ConfigId,
        is_spent: &dyn Fn(Meter, u32) -> bool,
    ) -> Result<ConfigId, ParserLimit> {
        let mut config = config;
        let mut ended: HashSet<Item> = HashSet::default();
        loop {
            if !self.is_metered(config) {
                return Ok(config);
            }
            let items = self.store().items(config).to_vec();
            let mut spent: Vec<(Meter, Item)> = Vec::new();
            self.each_metered(&items, &mut |meter, item| {
                if is_spent(meter, item.count) {
                    spent.push((meter, item));
                }
            });
            if spent.is_empty() {
                return Ok(config);
            }
            let roots = items.iter().map(|i| i.frame);
            let left =
                self.recount(roots, &|meter, count| (!is_spent(meter, count)).then_some(count));
            // What follows rules that end where they are may be spent at once, too.
            let cut = spent.into_iter().filter(|(meter, _)| meter.spent == Spent::Cut);
            let cut =
                cut.filter_map(|(_, item)| behind(&left, item)).filter(|&item| ended.insert(item));
            let cut: Vec<Item> = cut.collect();
            if cut.is_empty() {
                return Ok(
                    self.interned(items.into_iter().filter_map(|i| behind(&left, i)), config)
                );
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

    /// Whether a token can get to the bound of a metered occurrence: what its items read depends on what is left.
    pub(crate) fn is_near_bound(&mut self, config: ConfigId) -> bool {
        let (_, _, reach) = self.parts();
        self.chars_left(config).is_some_and(|left| reach.is_none_or(|reach| left <= reach))
    }

    /// The configuration with no bound on code points.
    pub(crate) fn unbounded(&mut self, config: ConfigId) -> ConfigId {
        let far = |meter: Meter, count| {
            if meter.chars_left(count).is_some() { Meter::FAR } else { count }
        };
        self.count(config, &|meter, count| Some(far(meter, count)))
    }

    fn each_metered(&self, items: &[Item], visit: &mut dyn FnMut(Meter, Item)) {
        let mut seen: HashSet<FrameId> = HashSet::default();
        let mut queue: Vec<Item> = items.to_vec();
        while let Some(item) = queue.pop() {
            if let Some(meter) = self.program().meter(item.state) {
                visit(meter, item);
            }
            if self.store().has(item.frame).any(Has::METER) && seen.insert(item.frame) {
                queue.extend_from_slice(self.store().returns(item.frame));
            }
        }
    }

    fn is_metered(&self, config: ConfigId) -> bool {
        !self.compiled().meters.is_empty()
            && self.store().has_behind(self.store().items(config)).any(Has::METER)
    }

    /// The configuration with every count changed, and without what has none then.
    fn count(&mut self, config: ConfigId, change: &dyn Fn(Meter, u32) -> Option<u32>) -> ConfigId {
        let items = self.store().items(config).to_vec();
        let rewritten = self.recount(items.iter().map(|i| i.frame), change);
        self.interned(items.into_iter().filter_map(|i| behind(&rewritten, i)), config)
    }

    /// These items, with what is completed in `config`.
    pub(super) fn interned(
        &mut self,
        items: impl Iterator<Item = Item>,
        config: ConfigId,
    ) -> ConfigId {
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
        let mut map = |_: &mut Registers, item: Item| match program.meter(item.state) {
            None => Some(item),
            Some(meter) => change(meter, item.count).map(|count| Item { count, ..item }),
        };
        let rewritten = store.rewrite(program, reach, (Where::METERED, roots), &mut map);
        self.names.carry(&rewritten);
        rewritten
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
