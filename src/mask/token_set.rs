//! Sets of token ids: a list if few, otherwise a shared bitmap row and the differences from it.

use std::ops::Range;
use std::sync::Arc;

use crate::hash::HashSet;
use crate::ids::TokenId;

/// Sets bit `id`; ignored beyond the row.
#[inline]
pub(crate) fn set_bit(words: &mut [u32], id: TokenId) {
    if let Some(word) = words.get_mut(id.index() / 32) {
        *word |= 1 << (id.raw() % 32);
    }
}

/// Clears bit `id`; ignored beyond the row.
#[inline]
pub(crate) fn clear_bit(words: &mut [u32], id: TokenId) {
    if let Some(word) = words.get_mut(id.index() / 32) {
        *word &= !(1 << (id.raw() % 32));
    }
}

/// Whether bit `id` is set; false beyond the row.
///
/// ```
/// use louver::TokenId;
/// use louver::mask::bit;
///
/// let words = [0, 1 << 3];
/// assert!(bit(&words, TokenId::from_raw(35)) && !bit(&words, TokenId::from_raw(3)));
/// ```
#[inline]
pub fn bit(words: &[u32], id: TokenId) -> bool {
    words.get(id.index() / 32).is_some_and(|word| word >> (id.raw() % 32) & 1 == 1)
}

/// The ids of a row, in ascending order.
pub(super) fn ids(words: impl IntoIterator<Item = u32>) -> impl Iterator<Item = TokenId> {
    words.into_iter().enumerate().flat_map(|(at, word)| {
        let left = std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
        let bits = left.take_while(|left| *left != 0).map(u32::trailing_zeros);
        bits.map(move |bit| TokenId::new(at * 32 + bit as usize))
    })
}

/// A new row of this many words, zeros at first, filled by `fill`.
pub(super) fn build_row(words: usize, fill: impl FnOnce(&mut [u32])) -> Arc<[u32]> {
    edit_row(std::iter::repeat_n(0, words).collect(), fill)
}

/// A row after a change; copied if it is shared.
fn edit_row(mut row: Arc<[u32]>, change: impl FnOnce(&mut [u32])) -> Arc<[u32]> {
    change(Arc::make_mut(&mut row));
    row
}

/// Most ids that are stored as a difference from a shared row. Beyond, a new row is written.
const MAX_DIFFERENCE: usize = 512;

/// An immutable set of token ids.
#[derive(Clone, Debug)]
pub(crate) enum TokenSet {
    /// These ids, which may repeat.
    List(Arc<[TokenId]>),
    /// A shared row, without some ids and with some more.
    Row { base: Arc<[u32]>, remove: Arc<[TokenId]>, add: Arc<[TokenId]> },
}

impl TokenSet {
    /// The tokens of `listed` at the positions `runs`, which are in ascending order. `all` is the
    /// row of the tokens `listed`.
    pub(crate) fn new(runs: &[Range<usize>], all: &Arc<[u32]>, listed: &[TokenId]) -> TokenSet {
        let count: usize = runs.iter().map(Range::len).sum();
        let own = || runs.iter().flat_map(|run| &listed[run.clone()]).copied();
        if count <= MAX_DIFFERENCE {
            return TokenSet::List(own().collect());
        }
        if count < listed.len() / 2 {
            return TokenSet::from_row_fn(all.len(), |bits| own().for_each(|id| set_bit(bits, id)));
        }
        let ends = std::iter::once(0).chain(runs.iter().map(|run| run.end));
        let begins = runs.iter().map(|run| run.start).chain([listed.len()]);
        let others = ends.zip(begins).flat_map(|(from, to)| &listed[from..to]).copied();
        if listed.len() - count <= MAX_DIFFERENCE {
            return TokenSet::Row {
                base: all.clone(),
                remove: others.collect(),
                add: Arc::default(),
            };
        }
        TokenSet::row(edit_row(all.clone(), |bits| others.for_each(|id| clear_bit(bits, id))))
    }

    /// A new row of this many words, zeros at first, filled by `fill`.
    pub(crate) fn from_row_fn(words: usize, fill: impl FnOnce(&mut [u32])) -> TokenSet {
        TokenSet::row(build_row(words, fill))
    }

    /// A set that is a whole row.
    pub(crate) fn row(bits: impl Into<Arc<[u32]>>) -> TokenSet {
        TokenSet::Row { base: bits.into(), remove: Arc::default(), add: Arc::default() }
    }

    /// This set without the ids `less` and with the ids `more`, which win. `words` is the length of
    /// a row.
    pub(crate) fn with_changes(
        &self,
        less: &[TokenId],
        more: &[TokenId],
        words: usize,
    ) -> TokenSet {
        if less.is_empty() && more.is_empty() {
            return self.clone();
        }
        if let TokenSet::List(ids) = self
            && less.is_empty()
            && ids.len() + more.len() <= MAX_DIFFERENCE
        {
            return TokenSet::List(ids.iter().chain(more).copied().collect());
        }
        if let TokenSet::List(ids) = self
            && more.is_empty()
        {
            let mut rest: HashSet<TokenId> = ids.iter().copied().collect();
            for id in less {
                rest.remove(id);
            }
            return TokenSet::List(ids.iter().copied().filter(|id| rest.contains(id)).collect());
        }
        if let TokenSet::Row { base, remove, add } = self
            && remove.len() + add.len() + less.len() + more.len() <= MAX_DIFFERENCE
        {
            let added = add.iter().filter(|id| !less.contains(id)).chain(more).copied();
            return TokenSet::Row {
                base: base.clone(),
                remove: remove.iter().chain(less).copied().collect(),
                add: added.collect(),
            };
        }
        TokenSet::row(edit_row(self.to_row(words), |bits| {
            less.iter().for_each(|&id| clear_bit(bits, id));
            more.iter().for_each(|&id| set_bit(bits, id));
        }))
    }

    /// The set as a row of this many words.
    pub(super) fn to_row(&self, words: usize) -> Arc<[u32]> {
        match self {
            TokenSet::Row { base, .. } if base.len() == words => {
                edit_row(base.clone(), |bits| self.write_difference(bits))
            }
            _ => build_row(words, |bits| self.write(bits)),
        }
    }

    /// Those of some ids that are in the set, in their order. `marks` is a scratch row of zeros.
    pub(crate) fn among(&self, ids: &[TokenId], marks: &mut [u32]) -> Vec<TokenId> {
        ids.iter().for_each(|&id| set_bit(marks, id));
        let marked = |own: &[TokenId]| {
            own.iter().copied().filter(|&id| bit(marks, id)).collect::<Vec<TokenId>>()
        };
        let (base, less, more): (&[u32], _, _) = match self {
            TokenSet::List(own) => (&[], Vec::new(), marked(own)),
            TokenSet::Row { base, remove, add } => (base, marked(remove), marked(add)),
        };
        ids.iter().for_each(|&id| clear_bit(marks, id));
        less.iter().for_each(|&id| set_bit(marks, id));
        let mut out = ids.to_vec();
        out.retain(|&id| bit(base, id) && !bit(marks, id));
        less.iter().for_each(|&id| clear_bit(marks, id));
        if more.is_empty() {
            return out;
        }
        out.iter().chain(&more).for_each(|&id| set_bit(marks, id));
        let all = ids.iter().copied().filter(|&id| bit(marks, id)).collect();
        ids.iter().for_each(|&id| clear_bit(marks, id));
        all
    }

    /// Whether the set has no ids.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            TokenSet::List(ids) => ids.is_empty(),
            TokenSet::Row { base, remove, add } if add.is_empty() => {
                let ids: usize = base.iter().map(|word| word.count_ones() as usize).sum();
                ids <= remove.len() && {
                    let mut bits = base.to_vec();
                    remove.iter().for_each(|&id| clear_bit(&mut bits, id));
                    bits.iter().all(|&word| word == 0)
                }
            }
            TokenSet::Row { .. } => false,
        }
    }

    /// Writes the set to a row; words beyond it become 0.
    pub(crate) fn write(&self, out: &mut [u32]) {
        match self {
            TokenSet::List(_) => out.fill(0),
            TokenSet::Row { base, .. } => {
                let n = base.len().min(out.len());
                out[..n].copy_from_slice(&base[..n]);
                out[n..].fill(0);
            }
        }
        self.write_difference(out);
    }

    /// Writes only the difference to a row that holds the base, or zeros for a list.
    pub(super) fn write_difference(&self, out: &mut [u32]) {
        match self {
            TokenSet::List(ids) => ids.iter().for_each(|&id| set_bit(out, id)),
            TokenSet::Row { remove, add, .. } => {
                remove.iter().for_each(|&id| clear_bit(out, id));
                add.iter().for_each(|&id| set_bit(out, id));
            }
        }
    }

    /// Adds the set's ids to a row.
    pub(crate) fn add_to(&self, bits: &mut [u32]) {
        match self {
            TokenSet::List(ids) => ids.iter().for_each(|&id| set_bit(bits, id)),
            TokenSet::Row { base, remove, add } => {
                // Removed ids that are in the row already stay.
                let already_set: Vec<TokenId> =
                    remove.iter().copied().filter(|&id| bit(bits, id)).collect();
                bits.iter_mut().zip(&**base).for_each(|(a, b)| *a |= b);
                remove.iter().for_each(|&id| clear_bit(bits, id));
                already_set.into_iter().chain(add.iter().copied()).for_each(|id| set_bit(bits, id));
            }
        }
    }

    /// Memory in use, in bytes. A shared row counts a quarter for each user, which is cheap and an
    /// overestimate.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            TokenSet::List(ids) => 64 + ids.len() * 4,
            TokenSet::Row { base, remove, add } => {
                96 + base.len() * 4 / Arc::strong_count(base).clamp(1, 4)
                    + (remove.len() + add.len()) * 4
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn operations_agree_with_a_set_of_ids(
            ids in prop::collection::btree_set(0u32..2_000, 0..1_200),
            less in prop::collection::vec(0u32..2_000, 0..700),
            more in prop::collection::vec(0u32..2_000, 0..700),
            dense: bool,
        ) {
            let width = 2_000u32;
            let all: Vec<u32> = (0..width.div_ceil(32))
                .map(|w| if w == width / 32 { 0xffff } else { u32::MAX })
                .collect();
            let ids: std::collections::BTreeSet<u32> = if dense {
                (0..width).filter(|i| !ids.contains(i) || i % 3 == 0).collect()
            } else {
                ids
            };
            let token = |i: &u32| TokenId::from_raw(*i);
            let listed: Vec<TokenId> = (0..width).map(|i| token(&i)).collect();
            let runs: Vec<Range<usize>> = ids.iter().map(|&i| i as usize..i as usize + 1).collect();
            let set = TokenSet::new(&runs, &all.clone().into(), &listed);
            let less_ids: Vec<TokenId> = less.iter().map(token).collect();
            let more_ids: Vec<TokenId> = more.iter().map(token).collect();
            let mut row = vec![7; all.len() + 1];
            let mut marks = vec![0; all.len()];
            set.with_changes(&less_ids, &[], all.len()).write(&mut row);
            for i in 0..width {
                prop_assert_eq!(bit(&row, token(&i)), ids.contains(&i) && !less.contains(&i));
            }
            let expected: Vec<TokenId> =
                less_ids.iter().copied().filter(|id| ids.contains(&id.raw())).collect();
            prop_assert_eq!(set.among(&less_ids, &mut marks), expected);
            prop_assert!(marks.iter().all(|&word| word == 0));
            let changed = set.with_changes(&less_ids, &more_ids, all.len());
            let among = changed.among(&listed, &mut marks);
            prop_assert!(marks.iter().all(|&word| word == 0));
            changed.write(&mut row);
            prop_assert_eq!(
                among,
                listed.iter().copied().filter(|&id| bit(&row, id)).collect::<Vec<_>>()
            );
            set.write(&mut row);
            prop_assert!(
                (0..width).all(|i| bit(&row, token(&i)) == ids.contains(&i)) && row[all.len()] == 0
            );
            changed.write(&mut row);
            for i in 0..width {
                let expected = more.contains(&i) || ids.contains(&i) && !less.contains(&i);
                prop_assert_eq!(bit(&row, token(&i)), expected);
            }
        }
    }
}
