//! Tail calls in mask entries.
//!
//! A rule in tail position ends where its caller ends. The mask entry of the caller's state can
//! therefore include the first states of the callee. Example: the name of an undeclared member is a
//! plain character or a call of the rule of all other names; together they are free text except for
//! a few words.

use super::parser::Parser;
use super::store::{ConfigFlags, ConfigId, FrameId, Item};
use crate::compile::{BlockId, ReturnRole};

impl Parser {
    /// The first items of the rules that `item` calls, if it makes tail calls only. `items` is the
    /// sorted configuration. Returns nothing if any call is not in tail position, or if a callee's
    /// frame serves other callers, too. Keys are ignored.
    pub(crate) fn tail_called_items(&mut self, item: &Item, items: &[Item]) -> Vec<Item> {
        let mut starts = Vec::new();
        let state = self.program().state(item.state);
        let counted =
            state.block != BlockId::NONE || self.program().budget_meter(item.state).is_some();
        if !state.has_call_edge || self.program().is_dispatch(item.state) || counted {
            return starts;
        }
        self.program_mut().expand(item.state);
        if !self.program().block_entries(item.state).is_empty() {
            return starts;
        }
        for &(rule, to) in self.program().calls(item.state) {
            let back = Item {
                state: to,
                count: self.program().return_count(to, item.count),
                frame: item.frame,
            };
            let returns = self.program().state(to);
            let frame = match returns.is_return_only {
                _ if returns.return_role != ReturnRole::Nothing => None,
                true => Some(item.frame),
                false if returns.ends_unique_key => self.store().find_frame(&[back]),
                false => None,
            };
            for &head in self.program().first_readers(rule) {
                let begin = frame.map(|frame| Item { state: head, count: 0, frame });
                match begin.filter(|begin| items.binary_search(begin).is_ok()) {
                    Some(begin) if !self.program().is_dispatch(head) => starts.push(begin),
                    _ => return Vec::new(),
                }
            }
        }
        starts
    }

    /// The configuration of items with a common end and an unknown continuation.
    pub(crate) fn isolated_group(&mut self, items: &[Item]) -> ConfigId {
        let [item] = items else {
            let mut alone: Vec<Item> =
                items.iter().map(|item| Item { frame: FrameId::ISOLATED, ..*item }).collect();
            alone.sort_unstable();
            return self.intern_unchecked(&alone, ConfigFlags::default());
        };
        self.isolated(*item)
    }
}
