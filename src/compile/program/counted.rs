//! Edges of states of graphs whose steps are counted.

use super::edges::push_edge;
use super::{Program, Span};
use crate::compile::ByteEdge;
use crate::compile::counted::Counts;
use crate::compile::units::{Symbol, Unit};

impl Program {
    /// Edges of a state of a graph whose steps are counted.
    #[allow(clippy::type_complexity)]
    pub(super) fn counted(
        &mut self,
        instance: u32,
        (unit, counts): (&Unit, &Counts),
        set: Span,
        (bytes, calls, specials): (&mut Vec<ByteEdge>, &mut Vec<(u32, u32)>, &mut Vec<(u32, u32)>),
    ) {
        /// Largest set that is kept together.
        const MAX_SET: usize = 512;
        let [read, others] = Counts::edges(&unit.main, &self.sets[set.range()]);
        let first = self.instances[instance as usize].from;
        let mut next = Vec::new();
        let mut cuts: Vec<u32> = read.iter().flat_map(|(e, _)| [e.lo, e.hi + 1]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        for pair in cuts.windows(2) {
            let (lo, hi) = (pair[0], pair[1] - 1);
            let over = read.iter().filter(|(e, _)| e.lo <= lo && hi <= e.hi);
            let targets: Vec<(u32, u32)> = over.map(|(e, steps)| (e.to, *steps)).collect();
            counts.close(&unit.main, &targets, &mut next);
            if next.len() > MAX_SET {
                for one in next.chunks_exact(2) {
                    let to = self.intern(instance, one);
                    bytes.push(ByteEdge { lo: lo as u8, hi: hi as u8, to });
                }
            } else if !next.is_empty() {
                let to = self.intern(instance, &next);
                push_edge(bytes, lo, hi, to);
            }
        }
        for same in others.chunk_by(|(a, _), (b, _)| a.lo == b.lo) {
            let targets: Vec<(u32, u32)> = same.iter().map(|(e, steps)| (e.to, *steps)).collect();
            counts.close(&unit.main, &targets, &mut next);
            if next.is_empty() {
                continue;
            }
            let to = self.intern(instance, &next);
            match Symbol::decode(same[0].0.lo) {
                Symbol::Call(rule) => calls.push((rule + first, to)),
                Symbol::Special(special) => specials.push((special, to)),
                Symbol::Byte(_) | Symbol::Block(_) => debug_assert!(false, "steps have no blocks"),
            }
        }
    }
}
