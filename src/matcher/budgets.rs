//! Budgets of tokens and of code points, enforced while parsing.
//!
//! A rule can have a budget: the number of tokens or code points that one occurrence of the rule
//! may take. The remaining count is stored in the item that the occurrence returns to, inside its
//! frame. Counting therefore rewrites frames (see [`super::frame_rewrite`]). Grammars without
//! budgets never run this code.

use super::frame_rewrite::{ItemMap, RewriteScope, RewrittenFrames, with_rewritten_frame};
use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigFlags, ConfigId, FrameId, Item, Tracked};
use super::symbol::SymbolCode;
use super::value_constraints::registers::Registers;
use crate::compile::{BudgetMeter, BudgetUnit, FAR_FROM_BOUNDS, Program, ReturnRole, StateId};
use crate::hash::HashSet;
use crate::ir::BudgetPolicy;

impl Parser {
    /// The configuration after a token ends: counts the token against budgets. Without budgets, the
    /// configuration stays the same.
    pub(crate) fn token_ended(&mut self, config: ConfigId) -> Result<ConfigId, ParserLimit> {
        if !self.has_budgets(config) {
            return Ok(config);
        }
        if self.tracks_keys(config) {
            return self.token_ended_with_keys(config);
        }
        if let Some(&cached) = self.steps.token_ends.get(&config) {
            return Ok(cached);
        }
        let next = self.compute_token_end(config)?;
        self.steps.token_ends.insert(config, next);
        Ok(next)
    }

    /// Computes the configuration after a token ends, without the cache.
    pub(super) fn compute_token_end(&mut self, config: ConfigId) -> Result<ConfigId, ParserLimit> {
        let next = self.map_counts(config, BudgetMeter::count_after_token);
        self.drop_spent(next, BudgetPoint::Token)
    }

    /// Counts a symbol in the frames of the items that have just read it, and appends it to open
    /// elements. Budgets do not count special tokens here. Returns whether any frame has a budget
    /// or an open element.
    pub(super) fn account_symbol(&mut self, symbol: SymbolCode, items: &mut Vec<Item>) -> bool {
        let scope = RewriteScope {
            tracked: Tracked::BUDGET.union(Tracked::ELEMENT),
            stops_at_scope: false,
        };
        if !self.store().tracked_after(items).intersects(scope.tracked) {
            return false;
        }
        let rewritten = self.frames_after_symbol(symbol, scope, items, false);
        if items.iter().any(|&item| with_rewritten_frame(&rewritten, item).is_some()) {
            items.retain_mut(|item| {
                with_rewritten_frame(&rewritten, *item).map(|new| *item = new).is_some()
            });
            return true;
        }
        // All items exceed their budgets. An overrun is better than a dead configuration.
        let rewritten = self.frames_after_symbol(symbol, scope, items, true);
        for item in items {
            *item = with_rewritten_frame(&rewritten, *item).unwrap_or(*item);
        }
        true
    }

    /// Rewrites the frames of items that have just read a symbol. An item over its budget is
    /// dropped, unless `keep_overrun`.
    fn frames_after_symbol(
        &mut self,
        symbol: SymbolCode,
        scope: RewriteScope,
        items: &[Item],
        keep_overrun: bool,
    ) -> RewrittenFrames {
        let byte = symbol.byte();
        let mut read = |program: &Program, registers: &mut Registers, item: Item| {
            let count = match (
                program.budget_meter(item.state),
                program.state(item.state).return_role,
                byte,
            ) {
                (Some(meter), _, Some(byte)) => meter
                    .count_after_byte(byte, item.count)
                    .or_else(|| keep_overrun.then_some(item.count))?,
                (None, ReturnRole::Scope, _) => {
                    registers.read_symbol(item.register(), symbol).raw()
                }
                _ => item.count,
            };
            Some(Item { count, ..item })
        };
        self.rewrite_frames(scope, items.iter().map(|i| i.frame).collect(), &mut read)
    }

    /// The configuration after a byte without the items whose budget is spent.
    #[inline]
    pub(super) fn byte_ended(&mut self, config: ConfigId) -> Result<ConfigId, ParserLimit> {
        self.drop_spent(config, BudgetPoint::Byte)
    }

    /// Drops items whose budget is spent. If nothing would be left, items whose rule must be
    /// finished stay, and rules that are cut end here.
    fn drop_spent(
        &mut self,
        config: ConfigId,
        point: BudgetPoint,
    ) -> Result<ConfigId, ParserLimit> {
        let spent = |meter: BudgetMeter, count| point.is_spent(meter, count);
        let remaining = self.remove_spent(config, &spent)?;
        if !self.is_dead_end(remaining) {
            return Ok(remaining);
        }
        let remaining = self.remove_spent(config, &|meter, count| {
            meter.on_exhausted == BudgetPolicy::Cut && spent(meter, count)
        })?;
        Ok(if self.is_dead_end(remaining) { config } else { remaining })
    }

    /// Whether nothing can follow and nothing is complete.
    fn is_dead_end(&self, config: ConfigId) -> bool {
        self.store().items(config).is_empty()
            && self.store().flags(config) == ConfigFlags::default()
    }

    /// The configuration without items whose budget is spent; rules that are cut end here.
    fn remove_spent(
        &mut self,
        config: ConfigId,
        is_spent: &dyn Fn(BudgetMeter, u32) -> bool,
    ) -> Result<ConfigId, ParserLimit> {
        let mut config = config;
        let mut ended: HashSet<Item> = HashSet::default();
        loop {
            if !self.has_budgets(config) {
                return Ok(config);
            }
            let mut spent: Vec<(BudgetMeter, Item)> = Vec::new();
            self.for_each_budget(config, &mut |meter, item| {
                if is_spent(meter, item.count) {
                    spent.push((meter, item));
                }
            });
            if spent.is_empty() {
                return Ok(config);
            }
            let remaining = self
                .rewrite_counts(config, &|meter, count| (!is_spent(meter, count)).then_some(count));
            // The items after a rule that is cut may have spent their own budgets, too.
            let cut =
                spent.into_iter().filter(|(meter, _)| meter.on_exhausted == BudgetPolicy::Cut);
            let cut = cut
                .filter_map(|(_, item)| with_rewritten_frame(&remaining, item))
                .filter(|&item| ended.insert(item));
            let cut: Vec<Item> = cut.collect();
            if cut.is_empty() {
                return Ok(self.store_mut().with_rewritten_frames(config, &remaining));
            }
            let after = self.close_items(&cut)?;
            config = self.union(config, after);
        }
    }

    /// The fewest code points left in any budgeted occurrence, as far as
    /// [`BudgetMeter::chars_left`] reports it.
    pub(crate) fn chars_left(&self, config: ConfigId) -> Option<u32> {
        if !self.has_budgets(config) {
            return None;
        }
        let mut fewest = None;
        self.for_each_budget(config, &mut |meter, item| {
            let remaining = meter.chars_left(item.count);
            fewest = fewest.into_iter().chain(remaining).min();
        });
        fewest
    }

    /// Whether a single token can exhaust a budget of code points. If so, what may follow depends
    /// on the exact remainder.
    pub(crate) fn is_near_bound(&mut self, config: ConfigId) -> bool {
        let (_, _, max_token_bytes) = self.store_and_program();
        self.chars_left(config).is_some_and(|remaining| {
            max_token_bytes.is_none_or(|max_token_bytes| remaining <= max_token_bytes)
        })
    }

    /// The configuration with all budgets of code points out of reach.
    pub(crate) fn without_char_budgets(&mut self, config: ConfigId) -> ConfigId {
        self.map_counts(config, |meter, count| {
            if meter.chars_left(count).is_some() { FAR_FROM_BOUNDS } else { count }
        })
    }

    /// Visits the budgeted items in a configuration's items and frames.
    fn for_each_budget(&self, config: ConfigId, visit: &mut dyn FnMut(BudgetMeter, Item)) {
        let mut walk = self.store().walk(self.store().items(config));
        while let Some(item) = walk.next_item() {
            if let Some(meter) = self.program().budget_meter(item.state) {
                visit(meter, item);
            }
            if self.store().tracked(item.frame).intersects(Tracked::BUDGET) {
                walk.enter(item.frame);
            }
        }
    }

    /// Whether one item's continuation can depend on the other items of a configuration within one
    /// token; see [`BudgetMeter::makes_items_interdependent`]. Cost where the grammar has such
    /// budgets: the configuration's frames, and the states of each rule that may begin one.
    pub(crate) fn has_interdependent_items(&mut self, config: ConfigId) -> bool {
        if !self.compiled().budgets.values().any(|meter| meter.makes_items_interdependent()) {
            return false;
        }
        let mut states: HashSet<StateId> = HashSet::default();
        let mut walk = self.store().walk(self.store().items(config));
        while let Some(item) = walk.next_item() {
            let meter = self.program().budget_meter(item.state);
            if item.count != FAR_FROM_BOUNDS
                && meter.is_some_and(BudgetMeter::makes_items_interdependent)
            {
                return true;
            }
            let facts = self.program().facts_of(self.program().rule(item.state));
            if facts.is_some_and(|facts| facts.may_begin_interdependence) {
                states.insert(item.state);
            }
            walk.enter(item.frame);
        }
        let begins = |program: &Program, rule| program.facts(rule).may_begin_interdependence;
        states.into_iter().any(|state| self.program_mut().may_call(state, &begins))
    }

    /// Whether any frame of a configuration has a budget.
    fn has_budgets(&self, config: ConfigId) -> bool {
        !self.compiled().budgets.is_empty()
            && self.store().tracked_after(self.store().items(config)).intersects(Tracked::BUDGET)
    }

    /// Maps the counts of all budgets of a configuration.
    fn map_counts(
        &mut self,
        config: ConfigId,
        change: impl Fn(BudgetMeter, u32) -> u32,
    ) -> ConfigId {
        let rewritten = self.rewrite_counts(config, &|meter, count| Some(change(meter, count)));
        self.store_mut().with_rewritten_frames(config, &rewritten)
    }

    /// Maps the counts of all budgets in the frames of a configuration; items without a count are
    /// dropped.
    fn rewrite_counts(
        &mut self,
        config: ConfigId,
        change: &dyn Fn(BudgetMeter, u32) -> Option<u32>,
    ) -> RewrittenFrames {
        let mut map = |program: &Program, _: &mut Registers, item: Item| {
            let Some(meter) = program.budget_meter(item.state) else { return Some(item) };
            change(meter, item.count).map(|count| Item { count, ..item })
        };
        self.rewrite_frames(RewriteScope::BUDGETED, self.store().frames_of(config), &mut map)
    }

    /// As [`super::store::Store::rewrite_frames`]; also replaces the frames in key lists.
    pub(super) fn rewrite_frames(
        &mut self,
        scope: RewriteScope,
        roots: Vec<FrameId>,
        map: ItemMap<'_>,
    ) -> RewrittenFrames {
        let (store, program, max_token_bytes) = self.store_and_program();
        let rewritten = store.rewrite_frames(program, max_token_bytes, scope, roots, map);
        self.keys.current_step.follow_rewrite(&rewritten);
        rewritten
    }
}

/// When budgets are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BudgetPoint {
    /// After a byte: budgets of code points, and the bytes of a code point that a cut rule still
    /// needs.
    Byte,
    /// After a token: all budgets.
    Token,
}

impl BudgetPoint {
    /// Whether an occurrence with this count may read no more.
    fn is_spent(self, meter: BudgetMeter, count: u32) -> bool {
        count == 0
            && (self == BudgetPoint::Token
                || meter.unit == BudgetUnit::Char
                || meter.on_exhausted == BudgetPolicy::Cut)
    }
}
