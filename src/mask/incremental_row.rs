//! A mask row that is updated incrementally from token to token, so that only differences are
//! written.

use std::sync::Arc;

use super::token_set::{TokenSet, bit};
use crate::hash::ByAddress;
use crate::ids::TokenId;
use crate::vocab::Vocabulary;

/// Cached rows: one for masks that are lists, and one each for text, white space, and one more.
const CACHED_ROWS: usize = 4;

/// The mask of one sequence, updated incrementally from token to token.
///
/// [`Matcher::update_mask`](crate::engine::Matcher::update_mask) writes only what differs from
/// earlier masks. That is nothing where the mask is the same, and a few words where it is a list of
/// few tokens or differs in few tokens from a row that was written before. A mask that the engine
/// stores as a whole row is not copied at all.
///
/// ```
/// use std::sync::Arc;
/// use louver::{Engine, EngineOptions, MaskRow, RegexOptions, TokenId, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let vocab = Arc::new(Vocabulary::toy(&[]));
/// let engine = Engine::new(vocab.clone(), EngineOptions::default());
/// let mut matcher = engine.compile_regex("ab", &RegexOptions::default())?.matcher();
/// let mut row = MaskRow::new(&vocab);
/// for byte in *b"ab" {
///     matcher.update_mask(&mut row);
///     let token = TokenId::from_raw(byte.into());
///     assert!(row.allows(token));
///     matcher.advance(token)?;
/// }
/// assert_eq!(row.words().len(), vocab.mask_words());
/// # Ok(())
/// # }
/// ```
///
/// Memory: up to four rows of [`Vocabulary::mask_words`] words, and references to the masks written
/// there.
#[derive(Clone, Debug)]
pub struct MaskRow {
    /// The current mask.
    mask: Arc<TokenSet>,
    /// The cached row with its bits; `None` for a mask that is a whole row itself.
    row: Option<usize>,
    /// Cached rows: the first has the bits of masks that are lists, the others those of masks that
    /// are a shared row and a few tokens.
    rows: Vec<WrittenRow>,
    /// See [`MaskRow::version`].
    version: u64,
}

/// The identity of a mask: rows of equal identity have equal masks.
///
/// Masks that return are stored once, so a caller that converts masks to a form of its own can keep
/// what it has made of each. Masks of different identity may be equal, too.
///
/// ```
/// use std::sync::Arc;
/// use louver::{Engine, EngineOptions, MaskRow, RegexOptions, TokenId, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let vocab = Arc::new(Vocabulary::toy(&[]));
/// let engine = Engine::new(vocab.clone(), EngineOptions::default());
/// let constraint = engine.compile_regex("[a-z]+", &RegexOptions::default())?;
/// let [mut first, mut second] = [0, 1].map(|_| MaskRow::new(&vocab));
/// assert!(first.identity() != second.identity());
/// constraint.matcher().update_mask(&mut first);
/// constraint.matcher().update_mask(&mut second);
/// assert!(first.identity() == second.identity());
/// # Ok(())
/// # }
/// ```
///
/// Memory: keeps the mask, at most one row of [`Vocabulary::mask_words`] words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaskIdentity(ByAddress<TokenSet>);

/// A row of bits, and the mask that was written to it.
#[derive(Clone, Debug)]
struct WrittenRow {
    /// The row: the mask's base, with its differences applied.
    bits: Vec<u32>,
    mask: Arc<TokenSet>,
    /// The version that was written here last.
    version: u64,
}

impl MaskRow {
    /// A row for masks of this vocabulary, in which only stop tokens are allowed yet.
    pub fn new(vocab: &Vocabulary) -> MaskRow {
        let none = Arc::new(TokenSet::List(Arc::default()));
        let list = WrittenRow { bits: vec![0; vocab.mask_words()], mask: none.clone(), version: 0 };
        let mut row = MaskRow { mask: none, row: Some(0), rows: vec![list], version: 0 };
        row.set(stop_tokens(vocab));
        row
    }

    /// The mask: bit `t % 32` of word `t / 32` is 1 iff token `t` may follow.
    pub fn words(&self) -> &[u32] {
        match (self.row, &*self.mask) {
            (None, TokenSet::Row { base, .. }) => base,
            (row, _) => &self.rows[row.unwrap_or(0)].bits,
        }
    }

    /// Whether a token may follow.
    pub fn allows(&self, token: TokenId) -> bool {
        bit(self.words(), token)
    }

    /// A number that changes whenever the mask may have changed. A copy of the mask, such as one on
    /// a device, is valid as long as the number is the same.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The identity of the mask, which other rows may have as well.
    pub fn identity(&self) -> MaskIdentity {
        MaskIdentity(ByAddress(self.mask.clone()))
    }

    /// Replaces the mask, by only the stop tokens where `mask` is None. Returns whether it has
    /// changed.
    pub(crate) fn update(&mut self, vocab: &Vocabulary, mask: Option<Arc<TokenSet>>) -> bool {
        let is_resized = self.rows[0].bits.len() != vocab.mask_words();
        if is_resized {
            *self = MaskRow { version: self.version + 1, ..MaskRow::new(vocab) };
        }
        let changed = match (mask, &*self.mask) {
            (Some(mask), _) => self.set(mask),
            (None, TokenSet::List(ids)) if **ids == *vocab.stops() => false,
            (None, _) => self.set(stop_tokens(vocab)),
        };
        is_resized || changed
    }

    /// Replaces the mask. Returns whether it is another one.
    fn set(&mut self, mask: Arc<TokenSet>) -> bool {
        if Arc::ptr_eq(&self.mask, &mask) {
            return false;
        }
        self.version += 1;
        self.row = match &*mask {
            TokenSet::List(_) => {
                self.rows[0].clear();
                Some(0)
            }
            TokenSet::Row { remove, add, .. } if remove.is_empty() && add.is_empty() => None,
            TokenSet::Row { base, .. } => Some(self.row_with(base, &mask)),
        };
        if let Some(at) = self.row {
            self.rows[at].write(&mask, self.version);
        }
        self.mask = mask;
        true
    }

    /// The index of a cached row with exactly these bits: those of the mask that is to be written
    /// there.
    fn row_with(&mut self, base: &Arc<[u32]>, mask: &Arc<TokenSet>) -> usize {
        if let Some(at) = self.rows.iter().position(|row| row.has_base(base)) {
            self.rows[at].clear();
            return at;
        }
        if self.rows.len() < CACHED_ROWS {
            self.rows.push(WrittenRow { bits: base.to_vec(), mask: mask.clone(), version: 0 });
            return self.rows.len() - 1;
        }
        let at = (1..CACHED_ROWS).min_by_key(|&at| self.rows[at].version).unwrap_or(1);
        self.rows[at].bits.copy_from_slice(base);
        at
    }
}

impl WrittenRow {
    /// Whether the mask is this row apart from some tokens.
    fn has_base(&self, row: &Arc<[u32]>) -> bool {
        matches!(&*self.mask, TokenSet::Row { base, .. } if Arc::ptr_eq(base, row))
    }

    /// Writes a mask's own tokens to its row.
    fn write(&mut self, mask: &Arc<TokenSet>, version: u64) {
        mask.write_difference(&mut self.bits);
        (self.mask, self.version) = (mask.clone(), version);
    }

    /// Undoes [`WrittenRow::write`]: only the base row's bits are left, none for a list.
    fn clear(&mut self) {
        let mut reset = |id: TokenId, base: &[u32]| {
            let at = id.index() / 32;
            if let Some(word) = self.bits.get_mut(at) {
                *word = base.get(at).copied().unwrap_or(0);
            }
        };
        match &*self.mask {
            TokenSet::List(ids) => ids.iter().for_each(|&id| reset(id, &[])),
            TokenSet::Row { base, remove, add } => {
                remove.iter().chain(&**add).for_each(|&id| reset(id, base))
            }
        }
    }
}

/// The mask of only the stop tokens.
fn stop_tokens(vocab: &Vocabulary) -> Arc<TokenSet> {
    Arc::new(TokenSet::List(vocab.stops().iter().copied().collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mask::set_bit;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever was written before, and wherever the bits are, they equal the mask.
        #[test]
        fn incremental_rows_equal_their_masks(
            masks in proptest::collection::vec(
                (0usize..6, any::<u64>(), 0usize..4, 0usize..4),
                1..12,
            ),
            order in proptest::collection::vec(any::<prop::sample::Index>(), 1..60),
        ) {
            let vocab = Vocabulary::toy(&[b"ab", b"cd"]);
            let (words, width) = (vocab.mask_words(), vocab.width());
            let bases: Vec<Arc<[u32]>> = (1..5u32)
                .map(|n| {
                    (0..words as u32)
                        .map(|at| at.wrapping_mul(n.wrapping_mul(0x9E37_79B9)))
                        .collect()
                })
                .collect();
            let make = |&(kind, seed, remove, add): &(usize, u64, usize, usize)| {
                let ids = |n: usize, by: u64| -> Arc<[TokenId]> {
                    (0..n as u64)
                        .map(|i| TokenId::new((seed.wrapping_mul(by + i) >> 7) as usize % width))
                        .collect()
                };
                Arc::new(match bases.get(kind) {
                    Some(base) => TokenSet::Row {
                        base: base.clone(),
                        remove: ids(remove, 3),
                        add: ids(add, 11),
                    },
                    None => TokenSet::List(ids(remove * 3, 5)),
                })
            };
            let masks: Vec<Arc<TokenSet>> = masks.iter().map(make).collect();
            let mut row = MaskRow::new(&vocab);
            for index in order {
                let mask = index.get(&masks);
                let (before, version) = (row.words().to_vec(), row.version());
                let changed = row.update(&vocab, Some(mask.clone()));
                let mut want = vec![0; words];
                mask.write(&mut want);
                prop_assert_eq!(row.words(), &want[..]);
                prop_assert_eq!(changed, row.version() != version);
                prop_assert!(changed || before == want);
            }
            row.update(&vocab, None);
            let mut want = vec![0; words];
            set_bit(&mut want, vocab.stops()[0]);
            prop_assert_eq!(row.words(), &want[..]);
            prop_assert!(!row.update(&vocab, None));
            // Another vocabulary.
            let wide = Vocabulary::toy(&[&b"x"[..]; 99]);
            let version = row.version();
            prop_assert!(row.update(&wide, None) && row.version() != version);
            prop_assert_eq!(row.words().len(), wide.mask_words());
        }
    }
}
