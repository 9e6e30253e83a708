//! Frames of left-recursive components, which refer to each other: a group is interned as a whole.

use super::{FrameId, InternedFrame, Item, Owner, Store};
use crate::compile::Program;

/// Flag in a group's key: the rest of the value is the index of a group member.
const GROUP_MEMBER: u32 = 0x8000_0000;

impl Store {
    /// The left-recursive group of a frame: first member and length. The length is 0 outside of
    /// groups.
    pub(in crate::matcher) fn group_of(&self, frame: FrameId) -> (FrameId, u32) {
        self.frames[frame as usize].group
    }

    /// Placeholder frame for a member in the key of [`Store::intern_group`].
    pub(crate) fn group_member(index: usize) -> FrameId {
        GROUP_MEMBER | index as u32
    }

    /// Whether a frame is a placeholder for a group member.
    pub(crate) fn is_group_member(frame: FrameId) -> bool {
        frame & GROUP_MEMBER != 0
    }

    /// Interns the frames of a left-recursive component: one list of items for each member. An item
    /// with the frame `group_member(i)` refers to member `i` of this group. Returns the frame of
    /// the first member; the others follow it.
    pub(crate) fn intern_group(&mut self, program: &Program, members: &[Vec<Item>]) -> FrameId {
        let mut key: Vec<u32> = Vec::new();
        for items in members {
            key.push(items.len() as u32);
            key.extend(items.iter().flat_map(|i| [i.state, i.count, i.frame]));
        }
        if let Some(&base) = self.groups.get(&key[..]) {
            return base;
        }
        let base = self.frames.len() as u32;
        self.group_bytes += key.len() * 4 + 32;
        self.groups.insert(key.into_boxed_slice(), base);
        for (i, items) in members.iter().enumerate() {
            let mut items = items.clone();
            for item in &mut items {
                if item.frame & GROUP_MEMBER != 0 {
                    item.frame = base + (item.frame & !GROUP_MEMBER);
                }
            }
            items.sort_unstable();
            items.dedup();
            let span = self.push_items(&items);
            let group = (base, members.len() as u32);
            self.frames
                .push(InternedFrame { group, ..InternedFrame::untracked(span, base + i as u32) });
        }
        self.track_group(program, base);
        self.set_group_owners(program, base);
        base
    }

    /// Computes the owners of a new group's frames: a fixpoint, as they refer to each other.
    fn set_group_owners(&mut self, program: &Program, base: FrameId) {
        let mut owners: Vec<Option<Owner>> = vec![None; self.frames.len() - base as usize];
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..owners.len() {
                let mut owner = owners[i];
                for item in self.items_in(self.frames[base as usize + i].items) {
                    let label = program.label(item.state);
                    let inner = match label {
                        Some(label) => Some(Owner::Label(label)),
                        None if item.frame >= base => owners[(item.frame - base) as usize],
                        None => Some(self.frames[item.frame as usize].owner),
                    };
                    if let Some(inner) = inner {
                        owner = Some(Owner::merge(owner, inner));
                    }
                }
                changed |= owner != owners[i];
                owners[i] = owner;
            }
        }
        for (i, owner) in owners.into_iter().enumerate() {
            self.frames[base as usize + i].owner = owner.unwrap_or(Owner::None);
        }
    }
}
