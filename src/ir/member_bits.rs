//! Sets of members, one bit for each.

/// A set of unique members, by index. The first 64 need no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MemberBits {
    first: u64,
    /// Up to the last word that is not zero.
    more: Box<[u64]>,
}

impl MemberBits {
    /// Adds a member.
    pub(crate) fn insert(&mut self, member: usize) {
        match (member / 64).checked_sub(1) {
            None => self.first |= 1 << member,
            Some(word) => {
                if word >= self.more.len() {
                    let mut longer = vec![0; word + 1];
                    longer[..self.more.len()].copy_from_slice(&self.more);
                    self.more = longer.into();
                }
                self.more[word] |= 1 << (member % 64);
            }
        }
    }

    /// Whether a member is in the set.
    pub(crate) fn contains(&self, member: usize) -> bool {
        self.word(member / 64) >> (member % 64) & 1 == 1
    }

    /// Members `64 * word..64 * (word + 1)`, one bit each.
    pub(super) fn word(&self, word: usize) -> u64 {
        match word.checked_sub(1) {
            None => self.first,
            Some(word) => self.more.get(word).copied().unwrap_or(0),
        }
    }

    /// The words of the members that are not in `other`.
    pub(super) fn words_without<'a>(
        &'a self,
        other: &'a MemberBits,
    ) -> impl Iterator<Item = u64> + 'a {
        (0..=self.more.len()).map(|word| self.word(word) & !other.word(word))
    }

    /// The members that are not in `other`, ascending.
    pub(super) fn without<'a>(&'a self, other: &'a MemberBits) -> impl Iterator<Item = usize> + 'a {
        self.words_without(other).enumerate().flat_map(|(word, mut bits)| {
            std::iter::from_fn(move || {
                let member = (bits != 0).then(|| 64 * word + bits.trailing_zeros() as usize);
                bits &= bits.wrapping_sub(1);
                member
            })
        })
    }

    /// The number of members that are not in `other`.
    pub(super) fn count_without(&self, other: &MemberBits) -> u32 {
        self.words_without(other).map(u64::count_ones).sum()
    }

    /// The largest member and one; 0 for the empty set.
    pub(super) fn end(&self) -> usize {
        let last = self.more.len();
        64 * last + (u64::BITS - self.word(last).leading_zeros()) as usize
    }
}

impl FromIterator<usize> for MemberBits {
    fn from_iter<T: IntoIterator<Item = usize>>(members: T) -> Self {
        let mut out = MemberBits::default();
        members.into_iter().for_each(|member| out.insert(member));
        out
    }
}
