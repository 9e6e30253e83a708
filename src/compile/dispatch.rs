//! Tag dispatch as an automaton: the Aho-Corasick automaton over all triggers, stops and excludes becomes the states of free
//! text; a fired trigger leads to a state that calls the tag's body.

mod layout;
mod matches;
#[cfg(test)]
mod tests;
mod trie;

use std::sync::Arc;

use self::layout::{StateEdges, TagBodies};
use self::matches::MatchTable;
use super::DispatchMark;
use super::analysis::RuleFacts;
use crate::cache::Shared;
use crate::fsm::TooLarge;
use crate::fuel;
use crate::hash::HashMap;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Trigger};

pub(crate) use self::layout::DispatchAutomaton;

/// Memory of all shared automata, in bytes; what has not been used lately is dropped.
const MAX_BYTES: usize = 16 << 20;
/// Fuel of a byte that is dispatch_texts for.
const BYTE_FUEL: usize = 4;

/// What a dispatch watches for: all of it but the rules that are called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DispatchTexts {
    /// Triggers of tags, each once.
    tags: Vec<Trigger>,
    stops: Vec<Trigger>,
    excludes: Vec<Vec<u8>>,
    after: AfterTag,
    end: DispatchEnd,
}

/// A dispatch before it is known what the rules it calls derive.
#[derive(Debug)]
pub(super) struct UnresolvedDispatch {
    dispatch_texts: Arc<DispatchTexts>,
    automaton: Arc<DispatchAutomaton>,
    /// By trigger: the rules of its tags.
    rules: Vec<Vec<u32>>,
}

/// A dispatch of a grammar.
#[derive(Debug)]
pub(crate) struct CompiledDispatch {
    automaton: Arc<DispatchAutomaton>,
    /// Other grammars have the same automaton.
    is_shared: bool,
    /// By trigger: the rules of its tags that derive something.
    rules: Vec<Vec<u32>>,
}

impl CompiledDispatch {
    pub(super) fn start(&self) -> u32 {
        self.automaton.start()
    }

    pub(super) fn mark(&self, state: u32) -> DispatchMark {
        self.automaton.mark(state)
    }

    /// The edges of a state. Found anew each time.
    pub(super) fn state_edges(&self, state: u32) -> StateEdges {
        self.automaton.state_edges(state)
    }

    /// Whether a state is final, reads something, calls something.
    pub(super) fn summarize(&self, state: u32) -> (bool, bool, bool) {
        self.automaton.summarize(state)
    }

    /// The rules that are called behind a trigger.
    pub(super) fn called_rules(&self, trigger: u32) -> &[u32] {
        &self.rules[trigger as usize]
    }

    /// What it watches for, if that is all that its automaton depends on.
    pub(super) fn shared(&self) -> Option<&Arc<DispatchAutomaton>> {
        self.is_shared.then_some(&self.automaton)
    }
}

/// By what is dispatch_texts for, compared whole.
static AUTOMATA: Shared<Arc<DispatchTexts>, Arc<DispatchAutomaton>> = Shared::new(MAX_BYTES);

impl UnresolvedDispatch {
    /// The automaton is built if nothing in the process has dispatch_texts for the same before. `limit`: most states of it.
    pub(super) fn new(dispatch: &Dispatch, limit: usize) -> Result<UnresolvedDispatch, TooLarge> {
        let (mut tags, mut rules): (Vec<Trigger>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
        let mut numbers: HashMap<&Trigger, usize> = HashMap::default();
        for (trigger, body) in &dispatch.tags {
            let number = *numbers.entry(trigger).or_insert_with(|| {
                tags.push(trigger.clone());
                rules.push(Vec::new());
                tags.len() - 1
            });
            rules[number].push(body.raw());
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

    /// States of the automaton, free text before and after a tag counted once.
    pub(super) fn len(&self) -> usize {
        self.automaton.len()
    }

    /// Whether its end can be reached over calls that pass, and over what is read if `reading`.
    pub(super) fn can_end(&self, passes: impl Fn(u32) -> bool, reading: bool) -> bool {
        let any = |trigger: u32| self.rules[trigger as usize].iter().any(|&rule| passes(rule));
        self.automaton.is_nullable() || reading && self.automaton.can_end(any)
    }

    /// The dispatch: callees that derive nothing lead nowhere, nullable ones can be skipped.
    pub(super) fn resolve(&self, facts: &[RuleFacts]) -> CompiledDispatch {
        let productive = |rule: &u32| facts[*rule as usize].productive;
        let nullable = |rule: &u32| facts[*rule as usize].nullable;
        let all = || self.rules.iter().flatten();
        if all().all(|rule| productive(rule) && !nullable(rule)) {
            return CompiledDispatch {
                automaton: self.automaton.clone(),
                is_shared: true,
                rules: self.rules.clone(),
            };
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
        CompiledDispatch { automaton: automaton.into(), is_shared: false, rules }
    }
}

impl DispatchTexts {
    /// Memory held, in bytes, roughly.
    fn bytes(&self) -> usize {
        let texts = self.tags.iter().chain(&self.stops).map(|trigger| match trigger {
            Trigger::Text(text) | Trigger::Led(text, _) => text.len(),
            Trigger::Special(_) => 0,
        });
        texts.chain(self.excludes.iter().map(Vec::len)).map(|len| len + 48).sum()
    }

    /// The automaton for rules that all derive something, and none of them the empty string.
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
                AUTOMATA.lock().insert(dispatch_texts.clone(), automaton.clone(), bytes);
                automaton
            }
        };
        if automaton.len() > limit { Err(TooLarge::States { limit }) } else { Ok(automaton) }
    }
}
