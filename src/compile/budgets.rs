//! Text budgets: limits on the tokens or code points of one occurrence of a rule.
//!
//! A rule with a budget is split in two: an outer rule that only calls the inner one. The return
//! address of that call holds the remaining count, in the frame through which the inner rule
//! returns.

use std::sync::Arc;

use super::CompiledRuleId;
use super::counted_graph::FAR_FROM_BOUNDS;
use crate::fsm::utf8;
use crate::hash::HashMap;
use crate::ir::{BudgetPolicy, Grammar};

/// What the return address of a budgeted call counts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetMeter {
    /// What is counted.
    pub(crate) unit: BudgetUnit,
    /// The initial count.
    pub(crate) full: u32,
    /// What happens once it is spent.
    pub(crate) on_exhausted: BudgetPolicy,
}

/// The unit of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetUnit {
    /// Ends of tokens. The token that contains the beginning of the occurrence ends as well, so the
    /// initial count is one higher.
    Token,
    /// Code points.
    Char,
}

/// A count is `4 * units + missing`: the units that may still come, and the bytes that the current
/// code point lacks. Below 4, only the rest of that code point may come.
impl BudgetMeter {
    /// A budget of `most` units.
    fn new(unit: BudgetUnit, most: u32, on_exhausted: BudgetPolicy) -> BudgetMeter {
        let units = most.saturating_add(u32::from(unit == BudgetUnit::Token));
        let full = if units > u32::MAX / 8 { FAR_FROM_BOUNDS } else { units * 4 };
        BudgetMeter { unit, full, on_exhausted }
    }

    /// The initial number of units.
    pub(crate) fn units(self) -> u32 {
        self.full / 4
    }

    /// The count after the end of a token. A budget of tokens never ends inside a code point.
    pub(crate) fn count_after_token(self, count: u32) -> u32 {
        if self.unit == BudgetUnit::Char || count == FAR_FROM_BOUNDS {
            count
        } else {
            count.checked_sub(4).unwrap_or(count)
        }
    }

    /// The count after a byte of UTF-8. `None`: the budget is spent, and the byte is not part of
    /// the current code point.
    pub(crate) fn count_after_byte(self, byte: u8, count: u32) -> Option<u32> {
        if count == FAR_FROM_BOUNDS {
            return Some(count);
        }
        if byte & 0xC0 == 0x80 {
            return Some(count - u32::from(count & 3 != 0));
        }
        if self.on_exhausted == BudgetPolicy::Cut && self.is_finishing(count) {
            return None;
        }
        let missing = u32::from(utf8::continuation_bytes(byte));
        let remaining =
            if self.unit == BudgetUnit::Char { (count & !3).saturating_sub(4) } else { count & !3 };
        Some(remaining | missing)
    }

    /// Whether one item's continuation can depend on the other items of its configuration: an
    /// occurrence whose code points are spent, but which must be finished, goes on only if nothing
    /// else can. Masks of such configurations cannot be assembled item by item.
    pub(crate) fn makes_items_interdependent(self) -> bool {
        self.unit == BudgetUnit::Char && self.on_exhausted == BudgetPolicy::Finish
    }

    /// Whether only the rest of the current code point may come.
    fn is_finishing(self, count: u32) -> bool {
        (1..4).contains(&count)
    }

    /// Code points that may still come; `None` if no bound is near.
    pub(crate) fn chars_left(self, count: u32) -> Option<u32> {
        (self.unit == BudgetUnit::Char && count != FAR_FROM_BOUNDS || self.is_finishing(count))
            .then_some(count / 4)
    }

    /// The representative of a count for tokens of at most `max_token_bytes` bytes. A token budget
    /// has no effect within one token.
    pub(crate) fn canonical_count(self, count: u32, max_token_bytes: u32) -> u32 {
        match self.unit {
            BudgetUnit::Token if self.is_finishing(count) => count,
            BudgetUnit::Token => FAR_FROM_BOUNDS,
            BudgetUnit::Char if count / 4 > max_token_bytes => FAR_FROM_BOUNDS,
            BudgetUnit::Char => count,
        }
    }
}

/// Splits each rule with a budget; returns the rewritten grammar and the budgets by rule.
pub(super) fn split_budgets(
    grammar: Arc<Grammar>,
) -> (Arc<Grammar>, HashMap<CompiledRuleId, BudgetMeter>) {
    let mut meters = HashMap::default();
    if grammar.rules.iter().all(|rule| rule.attributes.budget.is_none()) {
        return (grammar, meters);
    }
    let mut out = (*grammar).clone();
    for id in 0..grammar.rules.len() {
        let Some(budget) = out.rules[id].attributes.budget else { continue };
        let chars = if budget.tokens == Some(0) { Some(0) } else { budget.chars };
        let chars = chars.map(|most| BudgetMeter::new(BudgetUnit::Char, most, budget.on_exhausted));
        let tokens = budget
            .tokens
            .map(|most| BudgetMeter::new(BudgetUnit::Token, most, budget.on_exhausted));
        for meter in chars.into_iter().chain(tokens) {
            let inner = out.split_rule(id);
            // So that the inner rule is not inlined into the outer one.
            out.rules[inner].attributes.budget = Some(budget);
            // The budget added before now belongs to the inner rule.
            if let Some(outer) = meters.insert(CompiledRuleId::new(id), meter) {
                meters.insert(CompiledRuleId::new(inner), outer);
            }
        }
    }
    (Arc::new(out), meters)
}
