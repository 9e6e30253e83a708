//! Sampling temperatures of rules.

use super::parser::Parser;
use super::store::ConfigId;

impl Parser {
    /// The highest temperature of a configuration. An item takes its temperature from the innermost
    /// rule around it that sets one.
    pub(crate) fn temperature(&self, config: ConfigId) -> Option<f32> {
        let rules = &self.compiled().split_grammar.rules;
        let mut walk = self.store().walk(self.store().items(config));
        let mut highest: Option<f32> = None;
        while let Some(item) = walk.next_item() {
            let temperature = rules
                .get(self.program().rule(item.state).index())
                .and_then(|rule| rule.attributes.temperature);
            match temperature {
                Some(temperature) => {
                    highest = Some(highest.map_or(temperature, |other| other.max(temperature)))
                }
                None => walk.enter(item.frame),
            }
        }
        highest
    }
}
