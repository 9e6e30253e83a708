//! Masks under `uniqueItems`: elements of an array must differ from the earlier ones.
//!
//! The mask is that of the configuration with its registers removed, in which nothing is compared,
//! less the tokens that repeat a value. All places of one kind share the former mask.
//!
//! A token is rejected where an element would end equal to an earlier one, or where no other
//! continuation is left. There are two cases:
//!
//! * The element under way may still become an earlier value. A walk along the earlier values finds
//!   these tokens.
//! * The element begins within the token, after the end of another one. Few tokens contain so
//!   much, the same for all places of a kind. They are found once and tested one by one.

use std::sync::Arc;

use smallvec::smallvec;

use super::comparison_walk::{ComparisonKind, ComparisonWalkState};
use super::found_mask::FoundMask;
use super::grammar_masks::GrammarMasks;
use super::mask_state::MaskState;
use super::token_set::ids;
use crate::ids::{SpecialId, TokenId};
use crate::matcher::{ConfigId, ParserLimit};
use crate::vocab::NodeId;

impl GrammarMasks {
    /// The mask of a configuration whose values are compared.
    pub(super) fn mask_with_distinct_values(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<FoundMask, ParserLimit> {
        if state.parser.has_interdependent_items(config) {
            // The walk begins no keys.
            let found = FoundMask::new(self.build_by_walk(state, config)?);
            return self.without_repeated_keys(state, config, found);
        }
        let base_config = state.parser.canonical(config);
        let mask = self.mask(state, base_config)?;
        let candidates = self.distinct_candidates(state, config, base_config)?;
        let mut rejected = self.rejected_tokens(state, config, &candidates)?;
        let start = ComparisonWalkState {
            nodes: smallvec![NodeId::ROOT],
            config,
            base: base_config,
            may_begin: true,
        };
        ComparisonKind::Values.walk(&mut state.parser, self.vocab.trie(), start, &mut rejected)?;
        self.add_special_and_stop_tokens(state, config, base_config, &mut rejected)?;
        self.subtract_repeated(state, config, mask, rejected)
    }

    /// The tokens that have to be tested one by one in such a configuration; memoised.
    fn distinct_candidates(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        base_config: ConfigId,
    ) -> Result<Arc<[TokenId]>, ParserLimit> {
        let counting = state.parser.with_counting_scopes(config);
        if let Some(memoised) = state.candidates.values.get(&counting) {
            return Ok(memoised.clone());
        }
        let mask = self.mask(state, base_config)?;
        let candidates: Arc<[TokenId]> = if state.parser.compares_strings(config) {
            // Only a token with two quotes contains a whole string element.
            let quoting_tokens =
                self.filter_by_mask(state, &mask, self.vocab.by_quotes().at_least(2));
            self.rejected_tokens(state, counting, &quoting_tokens)?.into()
        } else {
            let words = self.vocab.mask_words();
            let (all, counting) = (mask.to_row(words), self.mask(state, counting)?.to_row(words));
            ids(all.iter().zip(&counting[..]).map(|(all, counting)| all & !counting)).collect()
        };
        state.candidates.values.insert(counting, candidates.clone());
        Ok(candidates)
    }

    /// Adds special tokens and stop tokens that are rejected. A token that is special and has bytes
    /// is rejected only if both readings are.
    fn add_special_and_stop_tokens(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        base_config: ConfigId,
        rejected: &mut Vec<TokenId>,
    ) -> Result<(), ParserLimit> {
        let specials: Vec<SpecialId> = state.parser.specials(base_config).collect();
        for special in specials {
            if state.parser.step_special(config, special)? == ConfigId::DEAD {
                let mut tokens = Vec::new();
                self.specials[special.index()].each(&mut |id| tokens.push(id));
                rejected.extend(self.rejected_tokens(state, config, &tokens)?);
            }
        }
        let ends = |config| state.parser.store().is_complete(config);
        if ends(base_config) && !ends(config) {
            rejected.extend_from_slice(self.vocab.stops());
        }
        Ok(())
    }
}
