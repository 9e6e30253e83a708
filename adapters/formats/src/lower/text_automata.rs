//! Automata of texts that are not part of a call. They are kept for the process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use louver::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge};
use louver::fuel;
use louver::ir::{Expr, regular};

use super::Lowering;
use super::raw::ends_clean;
use crate::pattern::pattern_dfa;
use crate::request::LowerError;

/// A regular set of texts that cannot be (part of) a call. See [`Lowering::text_automaton`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum TextKind {
    /// The shortest texts that do not begin any text of a regular expression.
    Mismatch(String),
    /// The shortest texts that do not begin as any of the watched texts does.
    Unwatched,
    /// Texts up to the first occurrence of a byte. They begin with one of the bytes of the set, if
    /// there is a set.
    UpTo(u8, Option<ByteSet>),
}

/// The automata of [`Lowering::text_automaton`], by watched texts, kind and limit of states.
type TextAutomata = HashMap<(Arc<[Vec<u8>]>, TextKind, usize), Arc<Dfa>>;

/// Shared by all requests of the process: formats are few, and most requests watch for the texts
/// of the format alone.
static TEXT_AUTOMATA: LazyLock<Mutex<TextAutomata>> = LazyLock::new(Mutex::default);

/// The most automata in [`TEXT_AUTOMATA`].
const MAX_CACHED_AUTOMATA: usize = 1024;

/// The most bytes of watched texts of an automaton in [`TEXT_AUTOMATA`].
const MAX_CACHED_TEXT_BYTES: usize = 16 << 10;

impl Lowering<'_> {
    /// The automaton of texts of a kind that contain no watched text and do not end with the
    /// beginning of one. Small automata are cached for the process.
    pub(crate) fn text_automaton(
        &self,
        watched: &Arc<[Vec<u8>]>,
        kind: TextKind,
    ) -> Result<Arc<Dfa>, LowerError> {
        let limit = self.request.limits.automaton_states;
        let error =
            |cause| LowerError::TooLarge { what: "texts that free text must not contain", cause };
        let too_large = || error(TooLarge::States { limit });
        let automaton = |expr: &Expr| regular::automaton(expr, &[], limit).map_err(|_| too_large());
        let cache = || TEXT_AUTOMATA.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (watched.clone(), kind, limit);
        if let Some(dfa) = cache().get(&key) {
            return Ok(dfa.clone());
        }
        let dfa = match &key.1 {
            TextKind::Mismatch(pattern) => {
                let dfa = pattern_dfa(pattern, &self.request.limits).map_err(|_| too_large())?;
                shortest_non_prefixes(&dfa, false)
            }
            TextKind::Unwatched => {
                let watched = Expr::alt(watched.iter().map(|text| Expr::bytes(text)));
                shortest_non_prefixes(&automaton(&watched)?, true)
            }
            TextKind::UpTo(end, first) => {
                let end = ByteSet::from_bytes(&[*end]);
                let before = Expr::star(Expr::Class(end.complement()));
                let first = first.map_or(Expr::Empty, Expr::class);
                automaton(&Expr::seq([first, before, Expr::Class(end)]))?
            }
        };
        let dfa = dfa.combine(&ends_clean(watched), Combine::And, limit).map_err(error)?;
        let dfa = Arc::new(if key.1 == TextKind::Unwatched { dfa.shortest() } else { dfa });
        let is_small = watched.iter().map(Vec::len).sum::<usize>() < MAX_CACHED_TEXT_BYTES;
        if is_small && !fuel::is_exhausted() {
            let mut cache = cache();
            if cache.len() >= MAX_CACHED_AUTOMATA {
                cache.clear();
            }
            cache.insert(key, dfa.clone());
        }
        Ok(dfa)
    }
}

/// The automaton of the shortest texts that are not a prefix of a text of `dfa`, and do not begin
/// with one. `goes_on`: of these and what follows them.
fn shortest_non_prefixes(dfa: &Dfa, goes_on: bool) -> Dfa {
    let mut builder = DfaBuilder::new();
    (0..dfa.len()).for_each(|_| {
        builder.state(false);
    });
    let outside = builder.state(true);
    if goes_on {
        builder.edge(outside, 0, 255, outside);
    }
    for state in (0..dfa.len() as u32).filter(|&state| !dfa.is_final(state)) {
        let mut from = 0;
        for edge in dfa.edges(state) {
            if from < edge.lo {
                builder.edge(state, from, edge.lo - 1, outside);
            }
            if !dfa.is_final(edge.to) {
                builder.edge(state, edge.lo, edge.hi, edge.to);
            }
            from = edge.hi + 1;
        }
        if from <= 255 {
            builder.edge(state, from, 255, outside);
        }
    }
    builder.finish().minimize()
}
