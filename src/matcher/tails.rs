//! Rules that a state calls last: they end where it ends, so that what they begin with is looked at together with it. A name that is not
//! declared goes on with a plain character, or calls the rule of all others; as one, both are any text but for a few words.

use super::parser::Parser;
use super::store::{BOTTOM, ConfigId, Done, Item};
use crate::compile::{Behind, NO_BLOCK};

impl Parser {
    /// Of `items`, which are sorted, those with which the rules begin that one of them calls, if it calls all of them last: what follows
    /// them is what follows the item, names not looked at. None if it calls others as well, or if what it calls stands for other
    /// callers, too.
    pub(crate) fn called_last(&mut self, item: &Item, items: &[Item]) -> Vec<Item> {
        let mut found = Vec::new();
        let state = self.program().state(item.state);
        let counted = state.block != NO_BLOCK || self.program().meter(item.state).is_some();
        if !state.calling || self.program().is_dispatch(item.state) || counted {
            return found;
        }
        self.program_mut().expand(item.state);
        if !self.program().enters(item.state).is_empty() {
            return found;
        }
        for &(rule, to) in self.program().calls(item.state) {
            let back = Item {
                state: to,
                count: self.program().count_behind(to, item.count),
                frame: item.frame,
            };
            let returns = self.program().state(to);
            let frame = match returns.pure_return {
                _ if returns.behind != Behind::Nothing => None,
                true => Some(item.frame),
                false if returns.ends_name => self.store().find_frame(&[back]),
                false => None,
            };
            for &head in self.program().heads(rule) {
                let begin = frame.map(|frame| Item { state: head, count: 0, frame });
                match begin.filter(|begin| items.binary_search(begin).is_ok()) {
                    Some(begin) if !self.program().is_dispatch(head) => found.push(begin),
                    _ => return Vec::new(),
                }
            }
        }
        found
    }

    /// Items that end alike, with nothing known about what follows them.
    pub(crate) fn isolated_all(&mut self, items: &[Item]) -> ConfigId {
        let [item] = items else {
            let mut alone: Vec<Item> =
                items.iter().map(|item| Item { frame: BOTTOM, ..*item }).collect();
            alone.sort_unstable();
            return self.interned_as(&alone, Done::default());
        };
        self.isolated(*item)
    }
}
