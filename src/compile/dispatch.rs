//! Tag dispatch as an automaton: the Aho-Corasick automaton over all triggers, stops and excludes becomes the states of free
//! text; a fired trigger leads to a state that calls the tag's body.

mod found;
mod shape;
#[cfg(test)]
mod tests;
mod trie;

use std::sync::Arc;

use self::found::Texts;
use self::shape::{Closed, Derives};
use super::Mark;
use super::facts::RuleFacts;
use crate::cache::Shared;
use crate::fsm::TooLarge;
use crate::fuel;
use crate::hash::HashMap;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Trigger};

pub(crate) use self::shape::Shape;

/// Memory of all shared automata, in bytes; what has not been used lately is dropped.
const MAX_BYTES: usize = 16 << 20;
/// Fuel of a byte that is watched for.
const BYTE: usize = 4;

/// What a dispatch watches for: all of it but the rules that are called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watched {
    /// Triggers of tags, each once.
    tags: Vec<Trigger>,
    stops: Vec<Trigger>,
    excludes: Vec<Vec<u8>>,
    after: AfterTag,
    end: DispatchEnd,
}

/// A dispatch before it is known what the rules it calls derive.
#[derive(Debug)]
pub(super) struct Pending {
    watched: Arc<Watched>,
    shape: Arc<Shape>,
    /// By trigger: the rules of its tags.
    rules: Vec<Vec<u32>>,
}

/// A dispatch of a grammar.
#[derive(Debug)]
pub(crate) struct Dispatching {
    shape: Arc<Shape>,
    /// Other grammars have the same automaton.
    is_shared: bool,
    /// By trigger: the rules of its tags that derive something.
    rules: Vec<Vec<u32>>,
}

impl Dispatching {
    pub(super) fn start(&self) -> u32 {
        self.shape.start()
    }

    pub(super) fn mark(&self, state: u32) -> Mark {
        self.shape.mark(state)
    }

    /// The edges of a state. Found anew each time.
    pub(super) fn closed(&self, state: u32) -> Closed {
        self.shape.closed(state)
    }

    /// Whether a state is final, reads something, calls something.
    pub(super) fn look(&self, state: u32) -> (bool, bool, bool) {
        self.shape.look(state)
    }

    /// The rules that are called behind a trigger.
    pub(super) fn called(&self, trigger: u32) -> &[u32] {
        &self.rules[trigger as usize]
    }

    /// What it watches for, if that is all that its automaton depends on.
    pub(super) fn shared(&self) -> Option<&Arc<Shape>> {
        self.is_shared.then_some(&self.shape)
    }
}

/// By what is watched for, compared whole.
static SHAPES: Shared<Arc<Watched>, Arc<Shape>> = Shared::new(MAX_BYTES);

impl Pending {
    /// The automaton is built if nothing in the process has watched for the same before. `limit`: most states of it.
    pub(super) fn new(dispatch: &Dispatch, limit: usize) -> Result<Pending, TooLarge> {
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
        let watched =
            Arc::new(Watched { tags, stops, excludes, after: dispatch.after, end: dispatch.end });
        let shape = Watched::shape(&watched, limit)?;
        Ok(Pending { watched, shape, rules })
    }

    /// States of the automaton, free text before and after a tag counted once.
    pub(super) fn len(&self) -> usize {
        self.shape.len()
    }

    /// Whether its end can be reached over calls that pass, and over what is read if `reading`.
    pub(super) fn ends(&self, passes: impl Fn(u32) -> bool, reading: bool) -> bool {
        let any = |trigger: u32| self.rules[trigger as usize].iter().any(|&rule| passes(rule));
        self.shape.is_nullable() || reading && self.shape.ends(any)
    }

    /// The dispatch: callees that derive nothing lead nowhere, nullable ones can be skipped.
    pub(super) fn dispatching(&self, facts: &[RuleFacts]) -> Dispatching {
        let productive = |rule: &u32| facts[*rule as usize].productive;
        let nullable = |rule: &u32| facts[*rule as usize].nullable;
        let all = || self.rules.iter().flatten();
        if all().all(|rule| productive(rule) && !nullable(rule)) {
            return Dispatching {
                shape: self.shape.clone(),
                is_shared: true,
                rules: self.rules.clone(),
            };
        }
        let derives = self.rules.iter().map(|rules| Derives {
            something: rules.iter().any(productive),
            nothing: rules.iter().any(nullable),
        });
        let shape = self.shape.with(&self.watched, derives.collect());
        let rules = self
            .rules
            .iter()
            .map(|rules| rules.iter().copied().filter(productive).collect())
            .collect();
        Dispatching { shape: shape.into(), is_shared: false, rules }
    }
}

impl Watched {
    /// Memory held, in bytes, roughly.
    fn bytes(&self) -> usize {
        let texts = self.tags.iter().chain(&self.stops).map(|trigger| match trigger {
            Trigger::Text(text) | Trigger::Led(text, _) => text.len(),
            Trigger::Special(_) => 0,
        });
        texts.chain(self.excludes.iter().map(Vec::len)).map(|len| len + 48).sum()
    }

    /// The automaton for rules that all derive something, and none of them the empty string.
    fn shape(watched: &Arc<Watched>, limit: usize) -> Result<Arc<Shape>, TooLarge> {
        let known = SHAPES.lock().get(watched);
        let shape = match known {
            Some(shape) => shape,
            None => {
                fuel::spend(BYTE * watched.bytes())?;
                let derives = vec![Derives { something: true, nothing: false }; watched.tags.len()];
                let shape = Arc::new(Shape::new(watched, Texts::new(watched).into(), derives));
                let bytes = shape.bytes() + watched.bytes();
                SHAPES.lock().insert(watched.clone(), shape.clone(), bytes);
                shape
            }
        };
        if shape.len() > limit { Err(TooLarge::States { limit }) } else { Ok(shape) }
    }
}
