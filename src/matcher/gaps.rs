//! Gaps: white space with a bound. In a *loose* configuration, white space has none: however much of it there is, the configuration
//! stays the same. Masks are made of loose ones, and tokens with too much white space are taken out.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, Item};
use crate::fsm::ByteSet;

/// Configurations among white space that are looked at.
const FEW: usize = 6;

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
    pub(crate) fn loosened(&mut self, config: ConfigId) -> Result<(ConfigId, Gap), ParserLimit> {
        let gap = self.gap(config)?;
        Ok((self.loose_of(config), gap))
    }

    /// The loose configuration of one that is as it is; the same in grammars without gaps.
    pub(crate) fn loose_of(&mut self, config: ConfigId) -> ConfigId {
        let mut items = self.store().items(config).to_vec();
        for item in &mut items {
            if self.gap_room(item).is_some() {
                item.count = 0;
            }
        }
        items.sort_unstable();
        items.dedup();
        let done = self.store().done(config);
        self.set_loose(true);
        let loose = self.interned_as(&items, done);
        self.set_loose(false);
        loose
    }

    /// The white space that may follow a configuration.
    pub(crate) fn gap(&mut self, config: ConfigId) -> Result<Gap, ParserLimit> {
        let (rooms, others) = self.rooms(config);
        let Some(&least) = rooms.iter().min() else { return Ok(Gap::Outside) };
        let mut alone = !others && rooms.iter().all(|&room| room == least);
        for byte in ByteSet::WHITE_SPACE.iter() {
            if !alone {
                break;
            }
            // Behind this gap there must not be another one.
            let next = self.step(config, byte)?;
            let (rooms, others) = self.rooms(next);
            alone &= !others && rooms.iter().all(|&room| room + 1 == least);
        }
        Ok(if alone { Gap::Room(least) } else { Gap::Mixed(least) })
    }

    /// The bytes of white space that may follow, if the same may follow behind each of them, and so on: there is no bound. None where that is not soon clear.
    pub(crate) fn endless_white(
        &mut self,
        config: ConfigId,
    ) -> Result<Option<ByteSet>, ParserLimit> {
        let mut seen = vec![config];
        let mut white = None;
        let mut at = 0;
        while let Some(&config) = seen.get(at) {
            at += 1;
            let own = self.allowed(config).intersect(&ByteSet::WHITE_SPACE);
            if *white.get_or_insert(own) != own || seen.len() > FEW {
                return Ok(None);
            }
            for byte in own.iter() {
                let next = self.step(config, byte)?;
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        Ok(white)
    }

    /// How much white space may follow in each gap a configuration is in, and whether anything else reads white space.
    fn rooms(&mut self, config: ConfigId) -> (Vec<u32>, bool) {
        let items = self.store().items(config).to_vec();
        let rooms = items.iter().filter_map(|item| self.gap_room(item)).collect();
        let others: Vec<u32> =
            items.iter().filter(|i| self.gap_room(i).is_none()).map(|i| i.state).collect();
        (rooms, others.into_iter().any(|state| self.reads_of(state).meets(&ByteSet::WHITE_SPACE)))
    }

    /// How much white space may follow in the gap that an item is in.
    fn gap_room(&self, item: &Item) -> Option<u32> {
        let block = self.program().block_of(item.state).filter(|block| block.gap)?;
        Some(block.max.map_or(u32::MAX, |max| max.saturating_sub(item.count)))
    }
}
