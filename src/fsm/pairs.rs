//! Pairs of states, numbered as a product construction meets them.

use std::collections::hash_map::Entry;

use super::TooLarge;
use crate::hash::HashMap;

/// The pairs of states that a product construction has met, numbered in that order.
pub(crate) struct StatePairs {
    numbers: HashMap<(u32, u32), u32>,
    /// By number.
    pairs: Vec<(u32, u32)>,
    /// Most pairs.
    limit: usize,
}

impl StatePairs {
    /// The start of the product only.
    pub(crate) fn new(start: (u32, u32), limit: usize) -> StatePairs {
        let numbers = HashMap::from_iter([(start, 0)]);
        StatePairs { numbers, pairs: vec![start], limit }
    }

    /// The pair with this number.
    pub(crate) fn get(&self, number: usize) -> Option<(u32, u32)> {
        self.pairs.get(number).copied()
    }

    /// The number of a pair that has been met.
    pub(super) fn find(&self, pair: (u32, u32)) -> Option<u32> {
        self.numbers.get(&pair).copied()
    }

    /// The number of a pair; a new one gets the next number.
    pub(crate) fn number(&mut self, pair: (u32, u32)) -> Result<u32, TooLarge> {
        match self.numbers.entry(pair) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(_) if self.pairs.len() >= self.limit => {
                Err(TooLarge::States { limit: self.limit })
            }
            Entry::Vacant(new) => {
                self.pairs.push(pair);
                Ok(*new.insert(self.pairs.len() as u32 - 1))
            }
        }
    }

    /// All pairs by number.
    pub(crate) fn all(&self) -> &[(u32, u32)] {
        &self.pairs
    }
}
