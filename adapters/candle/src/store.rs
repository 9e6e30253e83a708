//! The distinct masks of a batch: those that rows use, and, in a store, those that may come back.

use std::collections::HashMap;
use std::hash::BuildHasher;

/// Masks at numbered places. A mask keeps its place while a row uses it. Without a store the next
/// mask takes any unused place; with one, masks stay at their places until the store is full, and
/// are found again by their words.
#[derive(Debug)]
pub(crate) struct MaskStore {
    row_words: usize,
    /// The masks, concatenated.
    words: Vec<u32>,
    /// Per place: the version at which it was last written. Versions only increase.
    versions: Vec<u64>,
    /// Per place: the number of rows that use it.
    users: Vec<u32>,
    /// Per place: the version at which its last row released it.
    released_at: Vec<u64>,
    kept: Option<KeptMasks>,
}

/// How masks that no row uses are found again.
#[derive(Debug)]
struct KeptMasks {
    /// Number of places from which unused ones are taken again, least recently used first.
    places: usize,
    /// Seeded per process: the words depend on what clients send.
    hasher: foldhash::fast::RandomState,
    by_hash: HashMap<u64, u32>,
    /// Per place: the hash of its words.
    hashes: Vec<u64>,
}

impl MaskStore {
    pub(crate) fn new(row_words: usize) -> Self {
        let (words, versions, users, released_at) = Default::default();
        Self { row_words, words, versions, users, released_at, kept: None }
    }

    /// Keeps unused masks as long as there are no more than `places` masks. Forgets all masks.
    pub(crate) fn keep(&mut self, places: usize) {
        let (hasher, by_hash, hashes) = Default::default();
        *self = Self::new(self.row_words);
        self.kept = (places > 0).then_some(KeptMasks { places, hasher, by_hash, hashes });
    }

    pub(crate) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// Number of masks.
    pub(crate) fn len(&self) -> usize {
        self.versions.len()
    }

    pub(crate) fn mask(&self, place: u32) -> &[u32] {
        &self.words[place as usize * self.row_words..][..self.row_words]
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    pub(crate) fn versions(&self) -> &[u64] {
        &self.versions
    }

    /// The buffer of all masks, to overwrite them all; then call [`MaskStore::replaced`].
    pub(crate) fn words_mut(&mut self) -> &mut Vec<u32> {
        &mut self.words
    }

    /// After [`MaskStore::words_mut`]: the buffer has this many masks, which no row uses yet.
    pub(crate) fn replaced(&mut self, masks: usize, version: u64) {
        for (list, number) in [(&mut self.versions, version), (&mut self.released_at, version)] {
            list.clear();
            list.resize(masks, number);
        }
        self.users.clear();
        self.users.resize(masks, 0);
    }

    /// Stores a mask and returns its place. The caller adds its row with [`MaskStore::acquire`].
    pub(crate) fn insert(&mut self, words: &[u32], version: u64) -> u32 {
        let Some(kept) = &self.kept else {
            let place = self.unused().unwrap_or(self.len());
            self.write(place, words, version);
            return place as u32;
        };
        let hash = kept.hasher.hash_one(words);
        if let Some(&place) = kept.by_hash.get(&hash)
            && self.mask(place) == words
        {
            return place;
        }
        let full = self.len() >= kept.places;
        let place = if full { self.unused() } else { None }.unwrap_or(self.len());
        self.write(place, words, version);
        if let Some(kept) = &mut self.kept {
            match kept.hashes.get_mut(place) {
                Some(old) => {
                    if kept.by_hash.get(old) == Some(&(place as u32)) {
                        kept.by_hash.remove(old);
                    }
                    *old = hash;
                }
                None => kept.hashes.push(hash),
            }
            kept.by_hash.insert(hash, place as u32);
        }
        place as u32
    }

    /// The unused place that was released first.
    fn unused(&self) -> Option<usize> {
        (0..self.len()).filter(|&place| self.users[place] == 0).min_by_key(|&p| self.released_at[p])
    }

    fn write(&mut self, place: usize, words: &[u32], version: u64) {
        if place == self.len() {
            self.words.resize((place + 1) * self.row_words, 0);
            self.versions.push(0);
            self.users.push(0);
            self.released_at.push(0);
        }
        self.words[place * self.row_words..][..self.row_words].copy_from_slice(words);
        self.versions[place] = version;
    }

    /// Adds a row to a mask. Other numbers, of rows without a mask, are ignored.
    pub(crate) fn acquire(&mut self, place: u32) {
        if let Some(users) = self.users.get_mut(place as usize) {
            *users += 1;
        }
    }

    /// Takes a row from a mask.
    pub(crate) fn release(&mut self, place: u32, version: u64) {
        if let Some(users) = self.users.get_mut(place as usize) {
            *users -= 1;
            self.released_at[place as usize] = version;
        }
    }
}
