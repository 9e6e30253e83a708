//! The frontier of the search for likely paths: candidates that have not been expanded.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ConstraintConfig;
use crate::hash::HashMap;
use crate::matcher::{ConfigId, Symbol};

/// A configuration at the end of a likely token, and the path to it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The configuration itself. Its representative would not do: counters of a representative are
    /// right for one token only.
    pub(super) config: ConfigId,
    /// The representative of all configurations with the same mask.
    pub(super) representative: ConfigId,
    /// The configuration before the token, in the constraint's parser; `None` at the start.
    pub(super) origin: Option<ConstraintConfig>,
    /// The symbols of the token.
    pub(super) path: Arc<[Symbol]>,
    /// Estimated likelihood that a text passes here, relative to the start of the text.
    pub(super) likelihood: f64,
    /// The last byte of the token, if it is not a special token.
    pub(super) last_byte: Option<u8>,
}

/// The priority of a candidate: higher likelihood first, then earlier insertion.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rank {
    likelihood: f64,
    sequence: usize,
}

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.likelihood.total_cmp(&other.likelihood).then(other.sequence.cmp(&self.sequence))
    }
}

/// The candidates by rank, one for each representative.
pub(super) struct Frontier {
    by_rank: BTreeMap<Rank, Candidate>,
    /// By representative: its rank, or `None` once it has been expanded.
    ranks: HashMap<ConfigId, Option<Rank>>,
    /// Number of candidates inserted, to order those of equal likelihood.
    next_sequence: usize,
    /// Candidates that may still be expanded.
    candidates_left: usize,
}

impl Frontier {
    /// The frontier of a search that begins at a configuration and expands at most `max_candidates`
    /// candidates.
    pub(super) fn new(
        config: ConfigId,
        representative: ConfigId,
        max_candidates: usize,
    ) -> Frontier {
        let start = Candidate {
            config,
            representative,
            origin: None,
            path: Arc::new([]),
            likelihood: 1.0,
            last_byte: None,
        };
        let rank = Rank { likelihood: 1.0, sequence: 0 };
        Frontier {
            by_rank: BTreeMap::from([(rank, start)]),
            ranks: HashMap::from_iter([(representative, Some(rank))]),
            next_sequence: 0,
            candidates_left: max_candidates,
        }
    }

    /// Removes and returns the likeliest candidate; `None` at the end of the search or of its
    /// budget.
    pub(super) fn pop(&mut self) -> Option<Candidate> {
        self.candidates_left = self.candidates_left.checked_sub(1)?;
        let (_, candidate) = self.by_rank.pop_last()?;
        self.ranks.insert(candidate.representative, None);
        Some(candidate)
    }

    /// Likelihood of the next candidate; `None` at the end of the search or of its budget.
    pub(super) fn next_likelihood(&self) -> Option<f64> {
        let (rank, _) = self.by_rank.last_key_value()?;
        (self.candidates_left > 0).then_some(rank.likelihood)
    }

    /// Adds a candidate, or adds its likelihood to one with the same representative. `false` if
    /// that representative has been expanded.
    pub(super) fn add(&mut self, mut candidate: Candidate) -> bool {
        match self.ranks.get(&candidate.representative) {
            Some(None) => return false,
            Some(Some(rank)) => {
                let rank = *rank;
                let Some(other) = self.by_rank.remove(&rank) else { return true };
                let likelihood = other.likelihood + candidate.likelihood;
                if other.likelihood >= candidate.likelihood {
                    candidate = other;
                }
                candidate.likelihood = likelihood;
            }
            None => {}
        }
        self.next_sequence += 1;
        let rank = Rank { likelihood: candidate.likelihood, sequence: self.next_sequence };
        self.ranks.insert(candidate.representative, Some(rank));
        self.by_rank.insert(rank, candidate);
        while self.by_rank.len() > self.candidates_left
            && let Some((_, last)) = self.by_rank.pop_first()
        {
            self.ranks.remove(&last.representative);
        }
        true
    }
}
