//! Gaps: white space with a bound. In a *loose* configuration, white space has none: however much of it there is, the configuration
//! stays the same. Masks are made of loose ones, and tokens with too much white space are taken out.

use super::parser::Parser;
use super::store::{ConfigId, Item};
use crate::fsm::{ByteSet, white_space};

/// The white space at whose bounds a configuration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// None: no white space that is bounded has begun, or could here.
    Outside,
    /// So much of it may follow, and nothing but it reads white space.
    Room(u32),
    /// At least so much of it may follow, and perhaps more in other ways.
    Mixed(u32),
}

impl Parser {
    /// From here on, configurations are loose ones, or they are again as they are.
    pub(crate) fn set_loose(&mut self, loose: bool) {
        self.loose = loose && self.compiled().gaps;
    }

    /// The loose configuration of one that is as it is, and where that is.
    pub(crate) fn loosened(&mut self, config: ConfigId) -> (ConfigId, Gap) {
        let items = self.store().items(config).to_vec();
        let (mut rooms, mut reads) = (Vec::new(), ByteSet::EMPTY);
        let mut loose: Vec<Item> = Vec::with_capacity(items.len());
        for item in items {
            match self.gap_room(&item) {
                Some(room) => {
                    rooms.push(room);
                    loose.push(Item { count: 0, ..item });
                }
                None => {
                    reads = reads.union(&self.reads_of(item.state));
                    loose.push(item);
                }
            }
        }
        let least = rooms.iter().copied().min();
        let gap = match least {
            None => Gap::Outside,
            Some(least) if rooms.iter().any(|&room| room > least) || reads.meets(&white_space()) => Gap::Mixed(least),
            Some(least) => Gap::Room(least),
        };
        loose.sort_unstable();
        loose.dedup();
        let done = self.store().done(config);
        self.set_loose(true);
        let loose = self.interned_as(&loose, done);
        self.set_loose(false);
        (loose, gap)
    }

    /// How much white space may follow in the gap that an item is in.
    fn gap_room(&self, item: &Item) -> Option<u32> {
        let block = self.program().block_of(item.state).filter(|block| block.gap)?;
        Some(block.max.map_or(u32::MAX, |max| max.saturating_sub(item.count)))
    }
}
