//! Canonical configurations: representatives of all configurations that have the same mask.
//!
//! Masks are cached by configuration. Two configurations have the same mask if no token can tell
//! them apart: their counters may differ as long as a token cannot reach a bound, and so may states
//! of counted graphs. Canonical configurations replace each such counter and state by a
//! representative. See `docs/internals/COUNTERS.md`.
//!
//! What each function replaces by a representative:
//!
//! | | counters and graph nodes of items | counts of frames | member sets |
//! |---|---|---|---|
//! | [`Parser::canonical_keeping_frames`] | yes | | |
//! | [`Parser::canonical`] | yes | yes | |
//! | [`Parser::mask_representative`] | yes | yes | yes |
//!
//! Invariant: the mask of a configuration equals the mask of its canonical configuration.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, Item, canonical_runs, map_items};
use super::white_space_bounds::with_relaxation;
use crate::compile::StateId;

impl Parser {
    /// The canonical configuration.
    pub(crate) fn canonical(&mut self, config: ConfigId) -> ConfigId {
        let known = self.store_mut().representatives(config).canonical;
        if known != ConfigId::UNKNOWN {
            return known;
        }
        let (store, program, max_token_bytes) = self.store_and_program();
        let Some(max_token_bytes) = max_token_bytes else { return config };
        let canonical = store.canonical_config(program, config, max_token_bytes);
        let canonical = self.with_canonical_nodes(canonical, max_token_bytes);
        self.store_mut().representatives(config).canonical = canonical;
        canonical
    }

    /// The representative of a base configuration for mask construction. It drops what no token can
    /// reach, such as the object members already present. Only the masks are equal; the
    /// configurations after a token may differ.
    pub(crate) fn mask_representative(&mut self, config: ConfigId) -> ConfigId {
        let canonical = self.canonical(config);
        if !self.program().has_members() {
            return canonical;
        }
        let known = self.store_mut().representatives(canonical).mask;
        if known != ConfigId::UNKNOWN {
            return known;
        }
        let Some(vocab) = self.vocab().cloned() else { return canonical };
        let representative_state = |parser: &mut Parser, state| {
            Ok(parser.program_mut().representative_state(state, vocab.trigrams()))
        };
        let mapped = self.map_states(canonical, representative_state).unwrap_or(canonical);
        let representative = self.store_mut().representative_config(mapped);
        self.store_mut().representatives(canonical).mask = representative;
        representative
    }

    /// The canonical configuration with frames and keys unchanged, for callers that keep data by
    /// frame.
    pub(crate) fn canonical_keeping_frames(&mut self, config: ConfigId) -> ConfigId {
        let known = self.store_mut().representatives(config).keeping_frames;
        if known != ConfigId::UNKNOWN {
            return known;
        }
        let (store, program, max_token_bytes) = self.store_and_program();
        let Some(max_token_bytes) = max_token_bytes else { return config };
        let canonical_item = |item: &Item| Item {
            count: canonical_runs(program, item.state, item.count, max_token_bytes),
            ..*item
        };
        let mut base = store.base(config);
        if let Some(items) = map_items(store.items(config), canonical_item) {
            base = store.intern_config(&items, store.flags(base));
        }
        let mut canonical = self.with_canonical_nodes(base, max_token_bytes);
        if self.tracks_keys(config) {
            canonical = self.with_keys_of(config, canonical);
        }
        self.store_mut().representatives(config).keeping_frames = canonical;
        canonical
    }

    /// Replaces states of counted graphs by representatives.
    fn with_canonical_nodes(&mut self, config: ConfigId, max_token_bytes: u32) -> ConfigId {
        self.map_states(config, |parser, state| {
            Ok(parser.program_mut().canonical_node_state(state, max_token_bytes))
        })
        .unwrap_or(config)
    }

    /// Maps states of graphs. The items that the old states predict are replaced by those that the
    /// new states predict, unless the grammar tracks constraints in frames.
    pub(super) fn map_states(
        &mut self,
        config: ConfigId,
        mut map_state: impl FnMut(&mut Parser, StateId) -> Result<StateId, ParserLimit>,
    ) -> Result<ConfigId, ParserLimit> {
        let (mut before, mut after): (Vec<Item>, Vec<Item>) = (Vec::new(), Vec::new());
        for i in 0..self.store().items(config).len() {
            let item = self.store().items(config)[i];
            let state = map_state(self, item.state)?;
            if state != item.state {
                before.push(item);
                after.push(Item { state, ..item });
            }
        }
        if before.is_empty() {
            return Ok(config);
        }
        let flags = self.store().flags(config);
        if self.compiled().frames_hold_no_counts() {
            let [replaced, replacement] = with_relaxation(self, flags.relaxed, |parser| {
                [&before, &after].map(|items| parser.close_items(items))
            });
            before = self.store().items(replaced?).to_vec();
            after = self.store().items(replacement?).to_vec();
        }
        after.extend(self.store().items(config).iter().filter(|item| !before.contains(item)));
        after.sort_unstable();
        after.dedup();
        Ok(self.store_mut().intern_config(&after, flags))
    }
}
