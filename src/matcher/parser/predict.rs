//! Prediction: the rules that begin in a configuration, and the frames that they return through.
//!
//! Tail calls reuse the caller's frame, so right recursion takes no stack (J. Leo, "A general
//! context-free parsing algorithm running in linear time on every LR(k) grammar without using
//! lookahead", 1991). The rules of a left-recursive component form a group of frames that refer to
//! each other.

use std::ops::Range;

use crate::compile::{CompiledRuleId, DistinctRole, Program, StateId};
use crate::fuel;
use crate::hash::HashSet;
use crate::matcher::limit::ParserLimit;
use crate::matcher::parser::{Parser, Scratch, UNKNOWN};
use crate::matcher::store::{ConfigFlags, ConfigId, FrameId, Item, Store};

/// Most calls of one configuration, for each item that it may have.
const CALLS_PER_ITEM: usize = 256;

/// Marks a rule that no item calls after all.
const NO_FRAME: FrameId = FrameId::from_raw(u32::MAX);

/// A rule that prediction calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct CalledRule {
    rule: CompiledRuleId,
    rank: u32,
    frame: FrameId,
}

impl Parser {
    /// Prediction: assigns a frame to each called rule, adds the first states of the rule, and
    /// interns the configuration.
    pub(super) fn predict(&mut self, mut flags: ConfigFlags) -> Result<ConfigId, ParserLimit> {
        self.collect_calls()?;
        fuel::charge(self.scratch.kernel.len() + 4 * self.scratch.called.len());
        if self.program.has_unbuildable_rules() {
            return Err(ParserLimit::Deferred);
        }
        let mut out = std::mem::take(&mut self.scratch.out);
        out.clear();
        for item in &self.scratch.kernel {
            let state = self.program.state(item.state);
            let after_trigger = item.has_fired(state);
            if state.has_scan_edge || after_trigger {
                out.push(*item);
            }
            flags.after_trigger |= after_trigger;
        }
        if !self.scratch.called.is_empty() {
            self.assign_frames();
            for called in &self.scratch.called {
                if called.frame != NO_FRAME {
                    let heads = self.program.first_readers(called.rule);
                    out.extend(heads.iter().map(|&state| Item {
                        state,
                        count: 0,
                        frame: called.frame,
                    }));
                }
            }
        }
        let result = self.intern(&mut out, flags);
        self.scratch.out = out;
        result
    }

    /// Collects the rules called here, directly or through other rules. Callers come first. Errors:
    /// the fuel is spent, or there are too many calls. A state is expanded whole, so that its edges
    /// are right for others.
    fn collect_calls(&mut self) -> Result<(), ParserLimit> {
        let Scratch { kernel, slot, called, outer, .. } = &mut self.scratch;
        let program = &mut self.program;
        let max_calls = self.limits.items.saturating_mul(CALLS_PER_ITEM);
        called.drain(..).for_each(|called| slot[called.rule.index()] = UNKNOWN);
        outer.clear();
        slot.resize(program.rule_count(), UNKNOWN);
        let add = |program: &Program,
                   slot: &mut [u32],
                   called: &mut Vec<CalledRule>,
                   rule: CompiledRuleId| {
            if slot[rule.index()] == UNKNOWN {
                slot[rule.index()] = 0;
                let rank = program.facts(rule).rank;
                called.push(CalledRule { rule, rank, frame: FrameId::ROOT });
            }
        };
        for item in kernel.iter() {
            let state = program.state(item.state);
            if !state.has_call_edge || item.has_fired(state) {
                continue;
            }
            fuel::check()?;
            program.expand(item.state);
            let calls = program.calls(item.state).len();
            fuel::spend(2 * calls)?;
            if outer.len() + calls > max_calls {
                return Err(ParserLimit::Calls);
            }
            for &(rule, to) in program.calls(item.state) {
                add(program, slot, called, rule);
                let count = program.return_count(to, item.count);
                outer.push((rule, Item { state: to, count, frame: item.frame }));
            }
        }
        let mut at = 0;
        while at < called.len() {
            fuel::check()?;
            program.instantiate(called[at].rule);
            slot.resize(program.rule_count(), UNKNOWN);
            for &(rule, _) in program.leading_calls(called[at].rule) {
                add(program, slot, called, rule);
            }
            at += 1;
        }
        // Lower rank first: a caller's frame must exist before its callees' frames.
        called.sort_unstable_by(|a, b| a.rank.cmp(&b.rank).then(a.rule.cmp(&b.rule)));
        for (i, c) in called.iter().enumerate() {
            slot[c.rule.index()] = i as u32;
        }
        Ok(())
    }

    /// Assigns a frame to each called rule: the interned set of items that its callers continue
    /// with. Members of a left-recursive component form one group.
    fn assign_frames(&mut self) {
        let mut outer = std::mem::take(&mut self.scratch.outer);
        fuel::charge_sort(outer.len());
        outer.sort_unstable_by_key(|(rule, _)| self.scratch.slot[rule.index()]);
        let mut inner = std::mem::take(&mut self.scratch.inner);
        inner.clear();
        for (i, c) in self.scratch.called.iter().enumerate() {
            for &(rule, to) in self.program.leading_calls(c.rule) {
                inner.push((self.scratch.slot[rule.index()], i as u32, to));
            }
        }
        fuel::charge_sort(inner.len());
        inner.sort_unstable();
        let (mut outer_calls, mut inner_calls) = (&outer[..], &inner[..]);
        let mut at = 0;
        while at < self.scratch.called.len() {
            let first = self.scratch.called[at];
            let mut end = at + 1;
            let left_recursive = self.program.facts(first.rule).left_recursive;
            if left_recursive {
                while self.scratch.called.get(end).is_some_and(|c| c.rank == first.rank) {
                    end += 1;
                }
            }
            let group = left_recursive.then_some(at as u32..end as u32);
            let mut members: Vec<Vec<Item>> = Vec::new();
            for slot in at as u32..end as u32 {
                let mut entries = std::mem::take(&mut self.scratch.entries);
                entries.clear();
                let group = group.as_ref();
                let (outer, inner) = (&mut outer_calls, &mut inner_calls);
                self.collect_returns(slot, group, outer, inner, &mut entries);
                if group.is_none() {
                    if self.compiled().scopes.role(first.rule) == Some(DistinctRole::Element) {
                        self.begin_element(&mut entries);
                    }
                    let frame =
                        if entries.is_empty() { NO_FRAME } else { self.return_frame(&mut entries) };
                    self.scratch.called[at].frame = frame;
                } else {
                    self.inline_tail_callers(&mut entries);
                    members.push(entries.clone());
                }
                self.scratch.entries = entries;
            }
            if group.is_some() {
                self.assign_group(at..end, &members);
            }
            at = end;
        }
        self.scratch.outer = outer;
        self.scratch.inner = inner;
    }

    /// Collects the items that the rule in `slot` returns to. `outer` and `inner` are the
    /// remaining calls by kernel items and by called rules, in the order of the callees' slots.
    fn collect_returns(
        &self,
        slot: u32,
        group: Option<&Range<u32>>,
        outer: &mut &[(CompiledRuleId, Item)],
        inner: &mut &[(u32, u32, StateId)],
        entries: &mut Vec<Item>,
    ) {
        while let Some((&(rule, item), rest)) = outer.split_first()
            && self.scratch.slot[rule.index()] == slot
        {
            entries.push(item);
            *outer = rest;
        }
        while let Some((&(callee, caller, to), rest)) = inner.split_first()
            && callee == slot
        {
            let frame = match group {
                Some(g) if g.contains(&caller) => Store::group_member((caller - g.start) as usize),
                _ => self.scratch.called[caller as usize].frame,
            };
            if frame != NO_FRAME {
                let count = self.program.return_count(to, 0);
                entries.push(Item { state: to, count, frame });
            }
            *inner = rest;
        }
    }

    /// Assigns the frames of a left-recursive group; `members` are the items that each returns to.
    fn assign_group(&mut self, slots: Range<usize>, members: &[Vec<Item>]) {
        if members.iter().flatten().all(|e| Store::is_group_member(e.frame)) {
            // Only the members call each other.
            self.scratch.called[slots].iter_mut().for_each(|called| called.frame = NO_FRAME);
            return;
        }
        let base = match self.bisimilar_outer_frame(members) {
            Some(frame) => frame,
            None => {
                let base = self.store.intern_group(&self.program, members);
                if let Some(max_token_bytes) = self.max_token_bytes() {
                    self.store.canonicalise_group(&self.program, base, max_token_bytes);
                }
                base
            }
        };
        for (i, called) in self.scratch.called[slots].iter_mut().enumerate() {
            called.frame = base.member(i);
        }
    }

    /// The frame of a rule that returns to these items. If all callers are tail calls with the same
    /// frame, it is that frame (Leo's optimisation).
    fn return_frame(&mut self, entries: &mut Vec<Item>) -> FrameId {
        let first = entries[0].frame;
        if entries.iter().all(|e| e.frame == first && self.is_tail_caller(e)) {
            return first;
        }
        self.inline_tail_callers(entries);
        if self.program.has_members()
            && let Some(vocab) = &self.vocab
        {
            for entry in entries.iter() {
                self.program.representative_state(entry.state, vocab.trigrams());
            }
        }
        let max_token_bytes = self.max_token_bytes();
        self.store.intern_frame(&self.program, entries, max_token_bytes)
    }

    /// Whether a caller's return state only returns. In isolated configurations, the end of a
    /// unique key may stand before that.
    fn is_tail_caller(&self, item: &Item) -> bool {
        let state = self.program.state(item.state);
        state.is_return_only || state.ends_unique_key && item.is_isolated()
    }

    /// Replaces tail callers by the items that they return to. Sorts and removes duplicates.
    fn inline_tail_callers(&self, entries: &mut Vec<Item>) {
        // Frames already inlined; ambiguous grammars have many callers for each.
        let mut spliced: HashSet<FrameId> = HashSet::default();
        let callers = entries.len();
        for i in 0..callers {
            let entry = entries[i];
            if !self.is_tail_caller(&entry) || Store::is_group_member(entry.frame) {
                continue;
            }
            if !entry.frame.has_returns() {
                // All such states are equivalent.
                entries[i].state = Program::RETURN;
                continue;
            }
            let returns = self.store.returns(entry.frame);
            entries[i] = returns[0];
            if callers == 1 || spliced.insert(entry.frame) {
                fuel::charge(returns.len());
                entries.extend_from_slice(&returns[1..]);
            }
        }
        fuel::charge_sort(entries.len());
        entries.sort_unstable();
        entries.dedup();
    }

    /// Short cut for left recursion. If the new frame would equal an outer frame once its
    /// references to itself are read as references to that frame, the two are bisimilar, and the
    /// outer one is used. This keeps `S -> S S` at one frame.
    fn bisimilar_outer_frame(&self, members: &[Vec<Item>]) -> Option<FrameId> {
        let [entries] = members else {
            return None;
        };
        let mut candidates: Vec<FrameId> = entries
            .iter()
            .map(|e| e.frame)
            .filter(|&frame| !Store::is_group_member(frame) && frame.has_returns())
            .collect();
        candidates.dedup();
        candidates.into_iter().find(|&outer| {
            let returns = self.store.returns(outer);
            let read = |e: &Item| {
                if Store::is_group_member(e.frame) { Item { frame: outer, ..*e } } else { *e }
            };
            fuel::charge(1);
            // Most candidates fail at the first entry.
            if !entries.iter().all(|e| returns.binary_search(&read(e)).is_ok()) {
                return false;
            }
            let mut read: Vec<Item> = entries.iter().map(read).collect();
            fuel::charge_sort(read.len());
            read.sort_unstable();
            read.dedup();
            read.len() == returns.len()
        })
    }
}
