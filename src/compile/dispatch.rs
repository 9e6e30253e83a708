//! Tag dispatch as an automaton. An Aho-Corasick trie over all triggers, stops and excludes gives
//! the states of free text; a state in which a trigger has fired calls the tag's body.
//!
//! The automaton depends on the texts only, not on the tag bodies. So grammars with the same texts
//! share it. See docs/internals/DISPATCH.md.

mod layout;
mod matches;
#[cfg(test)]
mod tests;
mod trie;

use std::sync::{Arc, OnceLock};

use self::layout::TagBodies;
use self::matches::{MatchTable, TriggerId, TriggerOrStop};
use super::rule_facts::{CompiledRuleId, RuleFacts};
use crate::cache::ProcessCache;
use crate::fsm::TooLarge;
use crate::fuel;
use crate::hash::HashMap;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Trigger};

pub(crate) use self::layout::{DispatchAutomaton, DispatchStateId};

/// Memory bound of the process-wide table, in bytes; least recently used automata are dropped.
const MAX_BYTES: usize = 16 << 20;
/// Fuel per byte of the texts.
const BYTE_FUEL: usize = 4;

/// The texts of a dispatch: everything but the tag bodies. Key of the process-wide table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DispatchTexts {
    /// Distinct triggers of tags.
    tags: Vec<Trigger>,
    stops: Vec<Trigger>,
    excludes: Vec<Vec<u8>>,
    after: AfterTag,
    end: DispatchEnd,
}

/// A dispatch whose bodies have not been analyzed yet.
#[derive(Debug)]
pub(super) struct UnresolvedDispatch {
    dispatch_texts: Arc<DispatchTexts>,
    automaton: Arc<DispatchAutomaton>,
    /// By trigger: the rules of its tags.
    rules: Vec<Vec<CompiledRuleId>>,
}

/// A dispatch of a compiled grammar.
#[derive(Debug)]
pub(crate) struct CompiledDispatch {
    pub(super) automaton: Arc<DispatchAutomaton>,
    /// Grammars with the same texts have the same automaton.
    is_shared: bool,
    /// By trigger: the productive rules of its tags.
    rules: Vec<Vec<CompiledRuleId>>,
    /// By node of the trie: whether its text begins a stop or a trigger with likely bodies. Made
    /// when first needed.
    likely_nodes: OnceLock<Box<[bool]>>,
}

impl CompiledDispatch {
    /// Whether a state has begun, or read, excludes and triggers with unlikely bodies only; `None`
    /// where it has begun nothing. `unlikely` tells which rules are. Cost: the first call looks at
    /// all texts.
    pub(super) fn is_unlikely(
        &self,
        state: DispatchStateId,
        unlikely: impl Fn(CompiledRuleId) -> bool,
    ) -> Option<bool> {
        let is_likely = |fires: TriggerOrStop| {
            fires.is_none_or(|tag| !self.called_rules(tag).iter().all(|&rule| unlikely(rule)))
        };
        let node = self.automaton.begun_node(state)?;
        let likely = self.likely_nodes.get_or_init(|| self.automaton.likely_nodes(is_likely));
        Some(!likely[node.index()])
    }

    /// The tag bodies that follow a trigger.
    pub(super) fn called_rules(&self, trigger: TriggerId) -> &[CompiledRuleId] {
        &self.rules[trigger.index()]
    }

    /// The automaton, if it depends on nothing but the texts.
    pub(super) fn shared(&self) -> Option<&Arc<DispatchAutomaton>> {
        self.is_shared.then_some(&self.automaton)
    }
}

/// Automata by texts (compared in full).
static AUTOMATA: ProcessCache<Arc<DispatchTexts>, Arc<DispatchAutomaton>> =
    ProcessCache::new(MAX_BYTES);

impl UnresolvedDispatch {
    /// Builds the automaton, unless the process-wide table has it. `limit`: the most states.
    pub(super) fn new(dispatch: &Dispatch, limit: usize) -> Result<UnresolvedDispatch, TooLarge> {
        let mut tags: Vec<Trigger> = Vec::new();
        let mut rules: Vec<Vec<CompiledRuleId>> = Vec::new();
        let mut numbers: HashMap<&Trigger, usize> = HashMap::default();
        for &(ref trigger, body) in &dispatch.tags {
            let number = *numbers.entry(trigger).or_insert_with(|| {
                tags.push(trigger.clone());
                rules.push(Vec::new());
                tags.len() - 1
            });
            rules[number].push(body.into());
        }
        let (stops, excludes) = (dispatch.stops.clone(), dispatch.excludes.clone());
        let dispatch_texts = Arc::new(DispatchTexts {
            tags,
            stops,
            excludes,
            after: dispatch.after,
            end: dispatch.end,
        });
        let automaton = DispatchTexts::automaton(&dispatch_texts, limit)?;
        Ok(UnresolvedDispatch { dispatch_texts, automaton, rules })
    }

    /// Number of states; free text before and after a tag counts once.
    pub(super) fn len(&self) -> usize {
        self.automaton.len()
    }

    /// Whether the end can be reached. `passes` tells which rules can be passed; `reading`: whether
    /// triggers may be read.
    pub(super) fn can_end(&self, passes: impl Fn(CompiledRuleId) -> bool, reading: bool) -> bool {
        let any = |trigger: TriggerId| self.rules[trigger.index()].iter().any(|&rule| passes(rule));
        self.automaton.is_nullable() || reading && self.automaton.can_end(any)
    }

    /// The dispatch with analyzed bodies. Unproductive bodies have no edge; nullable ones can be
    /// skipped.
    pub(super) fn resolve(&self, facts: &[RuleFacts]) -> CompiledDispatch {
        let productive = |rule: &CompiledRuleId| facts[rule.index()].productive;
        let nullable = |rule: &CompiledRuleId| facts[rule.index()].nullable;
        let likely_nodes = OnceLock::new();
        if self.rules.iter().flatten().all(|rule| productive(rule) && !nullable(rule)) {
            let (automaton, rules) = (self.automaton.clone(), self.rules.clone());
            return CompiledDispatch { automaton, is_shared: true, rules, likely_nodes };
        }
        let bodies = self.rules.iter().map(|rules| TagBodies {
            productive: rules.iter().any(productive),
            nullable: rules.iter().any(nullable),
        });
        let automaton = self.automaton.with_bodies(&self.dispatch_texts, bodies.collect());
        let rules = self
            .rules
            .iter()
            .map(|rules| rules.iter().copied().filter(productive).collect())
            .collect();
        CompiledDispatch { automaton: automaton.into(), is_shared: false, rules, likely_nodes }
    }
}

impl DispatchTexts {
    /// Approximate memory use in bytes.
    fn bytes(&self) -> usize {
        let texts = self.tags.iter().chain(&self.stops).map(|trigger| trigger.bytes().len());
        texts.chain(self.excludes.iter().map(Vec::len)).map(|len| len + 48).sum()
    }

    /// The automaton for bodies that are all productive and not nullable.
    fn automaton(
        dispatch_texts: &Arc<DispatchTexts>,
        limit: usize,
    ) -> Result<Arc<DispatchAutomaton>, TooLarge> {
        let known = AUTOMATA.lock().get(dispatch_texts);
        let automaton = match known {
            Some(automaton) => automaton,
            None => {
                fuel::spend(BYTE_FUEL * dispatch_texts.bytes())?;
                let bodies = vec![
                    TagBodies { productive: true, nullable: false };
                    dispatch_texts.tags.len()
                ];
                let automaton = Arc::new(DispatchAutomaton::new(
                    dispatch_texts,
                    MatchTable::new(dispatch_texts).into(),
                    bodies,
                ));
                let bytes = automaton.bytes() + dispatch_texts.bytes();
                AUTOMATA.insert(dispatch_texts.clone(), automaton.clone(), bytes);
                automaton
            }
        };
        if automaton.len() > limit { Err(TooLarge::States { limit }) } else { Ok(automaton) }
    }
}
