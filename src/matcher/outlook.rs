//! What a configuration does with bytes, for those who want to know where texts go, and whether there is room to look.

use super::parser::Parser;
use super::store::{ConfigId, Item, ROOT};
use crate::compile::{Likely, Mark};
use crate::fsm::ByteSet;
use crate::fuel;

/// How many callers are asked.
const CALLERS: usize = 4;

impl Parser {
    /// Whether half of the memory budget is used up.
    pub(crate) fn is_half_full(&self) -> bool {
        self.bytes() > self.max_bytes / 2
    }

    /// The bytes that may follow, those together that the same edges read: they lead to one place.
    pub(crate) fn alike(&mut self, config: ConfigId) -> Vec<ByteSet> {
        self.expand(config);
        let mut edges: Vec<(u16, u16, u64)> = Vec::new();
        for (number, item) in (0u64..).zip(self.store().items(config)) {
            let own = self.program().byte_edges(item.state).iter();
            edges.extend(
                own.map(|e| (u16::from(e.lo), u16::from(e.hi) + 1, u64::from(e.to) | number << 32)),
            );
        }
        let mut cuts: Vec<u16> = edges.iter().flat_map(|&(from, to, _)| [from, to]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        fuel::charge(edges.len() * (cuts.len() + 8) / 16);
        let mut out: Vec<(Vec<u64>, ByteSet)> = Vec::new();
        let mut by: Vec<u64> = Vec::new();
        for cut in cuts.windows(2) {
            let at = cut[0];
            by.clear();
            by.extend(edges.iter().filter(|&&(from, to, _)| from <= at && at < to).map(|e| e.2));
            if by.is_empty() {
                continue;
            }
            let (lo, hi) = (at as u8, (cut[1] - 1) as u8);
            match out.iter_mut().find(|(edges, _)| *edges == by) {
                Some((_, bytes)) => bytes.insert_range(lo, hi),
                None => out.push((by.clone(), ByteSet::range(lo, hi))),
            }
        }
        out.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// What [`Parser::alike`] depends on, written down: configurations with the same look tell the same bytes apart.
    pub(crate) fn look(&mut self, config: ConfigId, look: &mut Vec<u32>) {
        self.expand(config);
        fuel::charge(self.store().items(config).len());
        look.clear();
        let mut targets: Vec<u32> = Vec::new();
        for item in self.store().items(config) {
            // Targets are numbered as they come, for each item anew.
            targets.clear();
            look.push(u32::MAX);
            for e in self.program().byte_edges(item.state) {
                let to = targets.iter().position(|&to| to == e.to).unwrap_or_else(|| {
                    targets.push(e.to);
                    targets.len() - 1
                });
                look.extend([u32::from(e.lo) << 8 | u32::from(e.hi), to as u32]);
            }
        }
    }

    /// How many bytes of a trigger free text ends in here; all there can be where one has fired.
    pub(crate) fn pending(&self, config: ConfigId) -> u32 {
        let marks = self.store().items(config).iter().map(|item| self.program().mark(item.state));
        let pending = marks.map(|mark| match mark {
            Mark::Plain => 0,
            Mark::Text { pending } => pending,
            Mark::Fired { .. } => u32::MAX,
        });
        pending.max().unwrap_or(0)
    }

    /// How likely a configuration is beside others that follow the same one; none where nothing is known of that.
    pub(crate) fn likely(&self, config: ConfigId) -> Option<Likely> {
        let items = self.store().items(config).iter();
        items.filter_map(|item| self.likely_item(item, CALLERS)).reduce(Likely::or)
    }

    fn likely_item(&self, item: &Item, callers: usize) -> Option<Likely> {
        let own = self.program().likely(item.state, callers < CALLERS);
        if own.is_some() || callers == 0 || item.frame == ROOT || item.is_alone() {
            return own;
        }
        let returns = self.store().returns(item.frame).iter().take(CALLERS);
        returns.filter_map(|back| self.likely_item(back, callers - 1)).next()
    }
}
