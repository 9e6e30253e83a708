//! Edges of states of counted graphs.

use super::state_table::{EdgeLists, PoolSpan};
use super::{InstanceId, Program, StateId, StateSource};
use crate::compile::ByteEdge;
use crate::compile::counted_graph::{FAR_FROM_BOUNDS, StepCounts};
use crate::compile::rule_nfa::{EdgeSymbol, RuleNfa};
use crate::fsm::elementary_cuts;

impl Program {
    /// The largest number of steps until the step count of a state stops mattering; 0 outside of
    /// counted graphs.
    pub(crate) fn steps(&self, state: StateId) -> u32 {
        let Some((StateSource::Counted(rule_nfa), set)) = self.source_of(state) else { return 0 };
        let Some(counts) = &rule_nfa.step_counts else { return 0 };
        let all = set.chunks_exact(2).filter(|pair| pair[1] != FAR_FROM_BOUNDS);
        all.map(|pair| counts.max.unwrap_or(counts.min).saturating_sub(pair[1])).max().unwrap_or(0)
    }

    /// Computes the edges of a counted-graph state.
    pub(super) fn add_counted_edges(
        &mut self,
        instance: InstanceId,
        rule_nfa: &RuleNfa,
        set: PoolSpan,
        out: &mut EdgeLists,
    ) {
        /// Largest set that stays one state; larger ones are split.
        const MAX_SET: usize = 512;
        let Some(counts) = &rule_nfa.step_counts else { return };
        let [read, others] = StepCounts::edges(&rule_nfa.main, self.states.slice(set));
        let first = self.instances[instance.index()].first_rule;
        let mut next = Vec::new();
        let mut cuts = Vec::new();
        elementary_cuts(read.iter().map(|(e, _)| e), &mut cuts);
        for pair in cuts.windows(2) {
            let (lo, hi) = (pair[0], pair[1] - 1);
            let over = read.iter().filter(|(e, _)| e.lo <= lo && hi <= e.hi);
            let targets: Vec<(u32, u32)> = over.map(|(e, steps)| (e.to, *steps)).collect();
            counts.close(&rule_nfa.main, &targets, &mut next);
            if next.len() > MAX_SET {
                for one in next.chunks_exact(2) {
                    let to = self.intern(instance, one);
                    out.bytes.push(ByteEdge { lo: lo as u8, hi: hi as u8, to });
                }
            } else if !next.is_empty() {
                let to = self.intern(instance, &next);
                out.push_bytes(lo, hi, to);
            }
        }
        for same in others.chunk_by(|(a, _), (b, _)| a.lo == b.lo) {
            let targets: Vec<(u32, u32)> = same.iter().map(|(e, steps)| (e.to, *steps)).collect();
            counts.close(&rule_nfa.main, &targets, &mut next);
            if next.is_empty() {
                continue;
            }
            let to = self.intern(instance, &next);
            match EdgeSymbol::decode(same[0].0.lo) {
                EdgeSymbol::Call(rule) => out.calls.push((rule.appended_from(first), to)),
                EdgeSymbol::Special(special) => out.specials.push((special, to)),
                EdgeSymbol::Byte(_) | EdgeSymbol::Block(_) => {
                    debug_assert!(false, "steps have no blocks")
                }
            }
        }
    }
}
