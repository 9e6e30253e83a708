//! The sampling temperature that rules ask for.

use super::parser::Parser;
use super::store::{ConfigId, FrameId, Item};
use crate::hash::HashSet;

impl Parser {
    /// The highest of the temperatures of the innermost rules around the items that name one.
    pub(crate) fn temperature(&self, config: ConfigId) -> Option<f32> {
        let rules = &self.compiled().parsed.rules;
        let mut seen: HashSet<FrameId> = HashSet::default();
        let mut queue: Vec<Item> = self.store().items(config).to_vec();
        let mut highest: Option<f32> = None;
        while let Some(item) = queue.pop() {
            let own = rules
                .get(self.program().rule(item.state) as usize)
                .and_then(|rule| rule.attributes.temperature);
            match own {
                Some(own) => highest = Some(highest.map_or(own, |other| other.max(own))),
                None if seen.insert(item.frame) => {
                    queue.extend_from_slice(self.store().returns(item.frame))
                }
                None => {}
            }
        }
        highest
    }
}
