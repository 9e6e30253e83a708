//! Lookahead queries: what a configuration reads, by groups of bytes and by likelihood.

use super::parser::Parser;
use super::store::{ConfigId, Item};
use crate::compile::{DispatchMark, MemberLikelihood};
use crate::fsm::ByteSet;
use crate::fuel;

/// Most callers that a likelihood query follows.
const MAX_CALLERS: usize = 4;

impl Parser {
    /// Partitions the bytes that may follow: bytes of one set take the same edges, so they lead to
    /// the same configuration.
    pub(crate) fn bytes_by_edges(&mut self, config: ConfigId) -> Vec<ByteSet> {
        self.expand(config);
        let mut edges: Vec<(u16, u16, u64)> = Vec::new();
        for (number, item) in (0u64..).zip(self.store().items(config)) {
            let own_edges = self.program().byte_edges(item.state).iter();
            edges.extend(own_edges.map(|e| {
                (u16::from(e.lo), u16::from(e.hi) + 1, u64::from(e.to.raw()) | number << 32)
            }));
        }
        let mut cuts: Vec<u16> = edges.iter().flat_map(|&(from, to, _)| [from, to]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        fuel::charge(edges.len() * (cuts.len() + 8) / 16);
        let mut out: Vec<(Vec<u64>, ByteSet)> = Vec::new();
        let mut edges_here: Vec<u64> = Vec::new();
        for cut in cuts.windows(2) {
            let at = cut[0];
            edges_here.clear();
            edges_here
                .extend(edges.iter().filter(|&&(from, to, _)| from <= at && at < to).map(|e| e.2));
            if edges_here.is_empty() {
                continue;
            }
            let (lo, hi) = (at as u8, (cut[1] - 1) as u8);
            match out.iter_mut().find(|(edges, _)| *edges == edges_here) {
                Some((_, bytes)) => bytes.insert_range(lo, hi),
                None => out.push((edges_here.clone(), ByteSet::range(lo, hi))),
            }
        }
        out.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// The longest beginning of a trigger that the free text ends in, in bytes; `u32::MAX` if one
    /// has fired.
    pub(crate) fn pending_trigger_bytes(&self, config: ConfigId) -> u32 {
        let marks =
            self.store().items(config).iter().map(|item| self.program().dispatch_mark(item.state));
        let pending = marks.map(|mark| match mark {
            DispatchMark::Plain => 0,
            DispatchMark::Text { pending } => pending,
            DispatchMark::Fired { .. } => u32::MAX,
        });
        pending.max().unwrap_or(0)
    }

    /// Whether free text ends in beginnings of excludes and unlikely triggers only, or in such a
    /// trigger.
    pub(crate) fn is_in_unlikely_trigger(&self, config: ConfigId) -> bool {
        let items = self.store().items(config).iter();
        let mut begun = items.filter_map(|item| self.program().is_unlikely_trigger(item.state));
        begun.next() == Some(true) && begun.all(|unlikely| unlikely)
    }

    /// The likelihood of a configuration among its alternatives; `None` if unknown.
    pub(crate) fn likelihood(&self, config: ConfigId) -> Option<MemberLikelihood> {
        let items = self.store().items(config).iter();
        items.filter_map(|item| self.likely_item(item, MAX_CALLERS)).reduce(MemberLikelihood::or)
    }

    /// The likelihood of an item, or of the first known caller, up to `callers` levels up.
    fn likely_item(&self, item: &Item, callers: usize) -> Option<MemberLikelihood> {
        let likelihood = self.program().member_likelihood(item.state, callers < MAX_CALLERS);
        if likelihood.is_some() || callers == 0 || !item.frame.has_returns() {
            return likelihood;
        }
        let returns = self.store().returns(item.frame).iter().take(MAX_CALLERS);
        returns.filter_map(|back| self.likely_item(back, callers - 1)).next()
    }
}
