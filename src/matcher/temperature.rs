//! Sampling temperatures of rules.

use super::parser::Parser;
use super::store::{ConfigId, FrameId, Item};
use crate::hash::HashSet;

impl Parser {
    /// The highest temperature of a configuration. An item takes its temperature from the innermost
    /// rule around it that sets one.
    pub(crate) fn temperature(&self, config: ConfigId) -> Option<f32> {
        let rules = &self.compiled().split_grammar.rules;
        let mut seen: HashSet<FrameId> = HashSet::default();
        let mut queue: Vec<Item> = self.store().items(config).to_vec();
        let mut highest: Option<f32> = None;
        while let Some(item) = queue.pop() {
            let temperature = rules
                .get(self.program().rule(item.state).index())
                .and_then(|rule| rule.attributes.temperature);
            match temperature {
                Some(temperature) => {
                    highest = Some(highest.map_or(temperature, |other| other.max(temperature)))
                }
                None if seen.insert(item.frame) => {
                    queue.extend_from_slice(self.store().returns(item.frame))
                }
                None => {}
            }
        }
        highest
    }
}
