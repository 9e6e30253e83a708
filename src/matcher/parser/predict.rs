//! Prediction: which rules begin in a configuration, and the frames they return through. Right recursion stays in the
//! frame it is in (Leo's optimisation), left recursion in one that refers to itself.

use crate::compile::{Program, Role};
use crate::fuel;
use crate::hash::HashSet;
use crate::matcher::limit::ParserLimit;
use crate::matcher::parser::{Parser, Scratch, UNKNOWN};
use crate::matcher::store::{BOTTOM, ConfigId, Done, FrameId, GATED, Item, ROOT, Store};

/// The frame of a rule that is not called after all.
const NOWHERE: FrameId = u32::MAX;

/// A rule that is called where a configuration begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    rule: u32,
    rank: u32,
    frame: FrameId,
}

impl Parser {
    /// Prediction: gives every called rule its frame and adds where it begins; then interns the configuration.
    pub(super) fn predict(&mut self, done: Done) -> Result<ConfigId, ParserLimit> {
        self.collect_calls();
        fuel::charge(
            self.scratch.kernel.len()
                + 4 * self.scratch.called.len()
                + 2 * self.scratch.outer.len(),
        );
        if self.program.lacks_rules() {
            return Err(ParserLimit::Deferred);
        }
        let mut out = std::mem::take(&mut self.scratch.out);
        out.clear();
        let mut done = done;
        for item in &self.scratch.kernel {
            let state = self.program.state(item.state);
            let gated = state.gate && item.frame == GATED;
            if state.scannable || gated {
                out.push(*item);
            }
            done.gated |= gated;
        }
        if !self.scratch.called.is_empty() {
            self.assign_frames();
            for called in &self.scratch.called {
                self.scratch.slot[called.rule as usize] = UNKNOWN;
                if called.frame != NOWHERE {
                    let heads = self.program.heads(called.rule);
                    out.extend(heads.iter().map(|&state| Item {
                        state,
                        count: 0,
                        frame: called.frame,
                    }));
                }
            }
        }
        let result = self.intern(&mut out, done);
        self.scratch.out = out;
        result
    }

    /// Which rules begin here, directly or through others; sorted with callers first.
    fn collect_calls(&mut self) {
        let Scratch { kernel, slot, called, outer, .. } = &mut self.scratch;
        let program = &mut self.program;
        called.clear();
        outer.clear();
        slot.resize(program.rule_count(), UNKNOWN);
        let add = |program: &Program, slot: &mut [u32], called: &mut Vec<Called>, rule: u32| {
            if slot[rule as usize] == UNKNOWN {
                slot[rule as usize] = 0;
                called.push(Called { rule, rank: program.facts(rule).rank, frame: ROOT });
            }
        };
        for item in kernel.iter() {
            let state = program.state(item.state);
            if !state.calling || state.gate && item.frame == GATED {
                continue;
            }
            program.expand(item.state);
            for &(rule, to) in program.calls(item.state) {
                add(program, slot, called, rule);
                let count = program.count_behind(to, item.count);
                outer.push((rule, Item { state: to, count, frame: item.frame }));
            }
        }
        let mut at = 0;
        while at < called.len() {
            program.open(called[at].rule);
            slot.resize(program.rule_count(), UNKNOWN);
            for &(rule, _) in program.leading_calls(called[at].rule) {
                add(program, slot, called, rule);
            }
            at += 1;
        }
        // Lower rank first: a frame is known before the frames that return through it.
        called.sort_unstable_by(|a, b| a.rank.cmp(&b.rank).then(a.rule.cmp(&b.rule)));
        for (i, c) in called.iter().enumerate() {
            slot[c.rule as usize] = i as u32;
        }
    }

    fn assign_frames(&mut self) {
        let mut outer = std::mem::take(&mut self.scratch.outer);
        fuel::charge_sort(outer.len());
        outer.sort_unstable_by_key(|(rule, _)| self.scratch.slot[*rule as usize]);
        let mut inner = std::mem::take(&mut self.scratch.inner);
        inner.clear();
        for (i, c) in self.scratch.called.iter().enumerate() {
            for &(rule, to) in self.program.leading_calls(c.rule) {
                inner.push((self.scratch.slot[rule as usize], i as u32, to));
            }
        }
        fuel::charge_sort(inner.len());
        inner.sort_unstable();
        let (mut o, mut n) = (0, 0);
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
                while let Some(&(rule, item)) = outer.get(o)
                    && self.scratch.slot[rule as usize] == slot
                {
                    entries.push(item);
                    o += 1;
                }
                while let Some(&(callee, caller, to)) = inner.get(n)
                    && callee == slot
                {
                    let frame = match &group {
                        Some(g) if g.contains(&caller) => {
                            Store::member((caller - g.start) as usize)
                        }
                        _ => self.scratch.called[caller as usize].frame,
                    };
                    if frame == NOWHERE {
                        n += 1;
                        continue;
                    }
                    entries.push(Item {
                        state: to,
                        count: self.program.count_behind(to, 0),
                        frame,
                    });
                    n += 1;
                }
                if group.is_none() {
                    if self.compiled().scopes.role(first.rule) == Some(Role::Element) {
                        self.begin_element(&mut entries);
                    }
                    let frame =
                        if entries.is_empty() { NOWHERE } else { self.frame_of(&mut entries) };
                    self.scratch.called[at].frame = frame;
                } else {
                    self.splice(&mut entries);
                    members.push(entries.clone());
                }
                self.scratch.entries = entries;
            }
            if group.is_some() && members.iter().flatten().all(|e| Store::is_member(e.frame)) {
                // Called by each other only.
                self.scratch.called[at..end].iter_mut().for_each(|called| called.frame = NOWHERE);
            } else if group.is_some() {
                let base = match self.same_as_outer(&members) {
                    Some(frame) => frame,
                    None => {
                        let base = self.store.group(&self.program, &members);
                        if let Some(reach) = self.reach() {
                            self.store.normalise_group(&self.program, base, reach);
                        }
                        base
                    }
                };
                for (i, called) in self.scratch.called[at..end].iter_mut().enumerate() {
                    called.frame = base + i as u32;
                }
            }
            at = end;
        }
        self.scratch.outer = outer;
        self.scratch.inner = inner;
    }

    /// The frame of a rule that returns to these items. Where every caller has nothing left to do but return to one and
    /// the same frame, it is that frame: right recursion stays where it is (Leo's optimisation).
    fn frame_of(&mut self, entries: &mut Vec<Item>) -> FrameId {
        let first = entries[0].frame;
        if entries.iter().all(|e| e.frame == first && self.only_returns(e)) {
            return first;
        }
        self.splice(entries);
        if self.program.has_members()
            && let Some(vocab) = &self.vocab
        {
            for entry in entries.iter() {
                self.program.alike(entry.state, vocab.triples());
            }
        }
        let reach = self.reach();
        self.store.frame(&self.program, entries, reach)
    }

    /// Whether a caller has nothing left to do. That a name ends is not said of what is looked at on its own.
    fn only_returns(&self, item: &Item) -> bool {
        let state = self.program.state(item.state);
        state.pure_return || state.ends_name && item.is_alone()
    }

    /// Replaces callers that have nothing left to do by what they return to; sorts.
    fn splice(&self, entries: &mut Vec<Item>) {
        // Frames whose returns are there: ambiguous grammars have many callers for each.
        let mut spliced: HashSet<FrameId> = HashSet::default();
        let callers = entries.len();
        for i in 0..callers {
            let entry = entries[i];
            if !self.only_returns(&entry) || Store::is_member(entry.frame) {
                continue;
            }
            if matches!(entry.frame, ROOT | BOTTOM | GATED) {
                // Which pure return it was makes no difference.
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

    /// The coinductive short cut for left recursion: if the new frame would equal an outer one once its references to
    /// itself are read as references to that outer one, it is that outer one (the two are bisimilar). Keeps `S -> S S`
    /// at one frame.
    fn same_as_outer(&self, members: &[Vec<Item>]) -> Option<FrameId> {
        let [entries] = members else {
            return None;
        };
        let mut candidates: Vec<FrameId> = entries
            .iter()
            .map(|e| e.frame)
            .filter(|&f| !Store::is_member(f) && !matches!(f, ROOT | BOTTOM | GATED))
            .collect();
        candidates.dedup();
        candidates.into_iter().find(|&outer| {
            let returns = self.store.returns(outer);
            let read =
                |e: &Item| if Store::is_member(e.frame) { Item { frame: outer, ..*e } } else { *e };
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
