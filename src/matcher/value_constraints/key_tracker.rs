//! The key lists of configurations, for [`super::duplicate_keys`].

use smallvec::SmallVec;

use crate::capacity::ReserveMore;
use crate::compile::RegisterId;
use crate::hash::{HashMap, Seeded};
use crate::matcher::frame_rewrite::RewrittenFrames;
use crate::matcher::store::{ConfigId, FrameId, KeyListId};

/// Frames of rule occurrences that have called keys, with the registers of the keys. Sorted.
pub(in crate::matcher) type KeyList = SmallVec<[(FrameId, RegisterId); 4]>;
/// The bytes of a token.
pub(in crate::matcher) type TokenBytes = SmallVec<[u8; 16]>;

/// The key lists of one parser, and the caches of their transitions.
#[derive(Debug)]
pub(in crate::matcher) struct KeyTracker {
    /// Interned lists; the first one is empty.
    lists: Vec<KeyList>,
    /// Entries of all lists.
    entries: usize,
    ids: HashMap<KeyList, KeyListId>,
    /// Transitions over bytes of keys, which byte classes do not describe.
    pub(in crate::matcher) steps: HashMap<(ConfigId, u8), ConfigId>,
    /// Transitions over likely tokens; see [`crate::matcher::parser::Parser::cache_token_step`].
    pub(in crate::matcher) tokens: hashbrown::HashMap<(ConfigId, TokenBytes), ConfigId, Seeded>,
    /// Empty between steps.
    pub(in crate::matcher) current_step: KeyStep,
}

/// What the parser is told of keys during one step, and tells about frames.
#[derive(Debug, Default)]
pub(in crate::matcher) struct KeyStep {
    /// Frames to follow while they are rewritten: the old and the new one.
    pub(in crate::matcher) followed_frames: Vec<(FrameId, FrameId)>,
    /// Frames of duplicate keys, which may not end in this step.
    pub(in crate::matcher) duplicates: Vec<FrameId>,
}

/// Look-up key of [`KeyTracker::tokens`].
#[derive(Hash)]
pub(in crate::matcher) struct TokenLookup<'b>(
    pub(in crate::matcher) ConfigId,
    pub(in crate::matcher) &'b [u8],
);

impl hashbrown::Equivalent<(ConfigId, TokenBytes)> for TokenLookup<'_> {
    fn equivalent(&self, (config, bytes): &(ConfigId, TokenBytes)) -> bool {
        self.0 == *config && self.1 == &bytes[..]
    }
}

impl KeyTracker {
    pub(in crate::matcher) fn new() -> KeyTracker {
        KeyTracker {
            lists: vec![KeyList::new()],
            entries: 0,
            ids: [(KeyList::new(), KeyListId::EMPTY)].into_iter().collect(),
            steps: HashMap::default(),
            tokens: hashbrown::HashMap::default(),
            current_step: KeyStep::default(),
        }
    }

    /// Reserves capacity; see [`crate::capacity`].
    pub(in crate::matcher) fn reserve_more(&mut self) {
        self.lists.reserve_more();
        self.ids.reserve_more();
        self.steps.reserve_more();
    }

    /// Approximate memory in bytes.
    pub(in crate::matcher) fn bytes(&self) -> usize {
        // Each list is stored twice.
        self.lists.len() * 2 * (size_of::<KeyList>() + 8)
            + self.entries * 2 * size_of::<(FrameId, RegisterId)>()
            + self.steps.len() * 16
            + self.tokens.len() * size_of::<(ConfigId, TokenBytes, ConfigId)>()
    }

    /// The list with this id.
    pub(in crate::matcher) fn list(&self, id: KeyListId) -> &KeyList {
        &self.lists[id.index()]
    }

    /// Sorts and interns a list.
    pub(in crate::matcher) fn intern_list(&mut self, mut list: KeyList) -> KeyListId {
        list.sort_unstable();
        if let Some(&cached) = self.ids.get(&list) {
            return cached;
        }
        let id = KeyListId::new(self.lists.len());
        self.entries += list.len();
        self.lists.push(list.clone());
        self.ids.insert(list, id);
        id
    }
}

impl KeyStep {
    /// Applies a rewrite to the followed frames. Old frames remain, because some items may keep
    /// them.
    pub(in crate::matcher) fn follow_rewrite(&mut self, rewritten: &RewrittenFrames) {
        for i in 0..self.followed_frames.len() {
            let (old, current) = self.followed_frames[i];
            if let Some(&Some(new)) = rewritten.get(&current)
                && new != current
            {
                self.followed_frames.push((old, new));
            }
        }
        let duplicates = self.duplicates.iter().filter_map(|frame| *rewritten.get(frame)?);
        let duplicates: Vec<FrameId> = duplicates.collect();
        self.duplicates.extend(duplicates);
    }
}
