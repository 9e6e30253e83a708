//! Frames of left-recursive components, which refer to each other: a group is interned as a whole.

use super::{ByteLabel, FrameId, InternedFrame, Item, Store};
use crate::compile::Program;

/// A left-recursive group: frames with consecutive ids. Outside of groups, it is empty.
#[derive(Clone, Copy, Debug)]
pub(in crate::matcher) struct FrameGroup {
    first: FrameId,
    len: u32,
}

impl FrameGroup {
    /// The group of a frame outside of groups.
    pub(super) fn empty(frame: FrameId) -> FrameGroup {
        FrameGroup { first: frame, len: 0 }
    }

    /// Number of members.
    pub(in crate::matcher) fn len(self) -> usize {
        self.len as usize
    }

    /// The members, in order.
    pub(in crate::matcher) fn members(self) -> impl Iterator<Item = FrameId> {
        (self.first.raw()..self.first.raw() + self.len).map(FrameId::from_raw)
    }

    /// The index of a member.
    pub(in crate::matcher) fn position(self, frame: FrameId) -> Option<usize> {
        frame.index().checked_sub(self.first.index()).filter(|&index| index < self.len())
    }
}

impl FrameId {
    /// The frame of member `index` of the group that begins with this frame.
    pub(in crate::matcher) fn member(self, index: usize) -> FrameId {
        FrameId::new(self.index() + index)
    }
}

/// Flag in a group's key: the rest of the value is the index of a group member.
const GROUP_MEMBER: u32 = 0x8000_0000;

impl Store {
    /// The left-recursive group of a frame.
    pub(in crate::matcher) fn group_of(&self, frame: FrameId) -> FrameGroup {
        self.frames[frame.index()].group
    }

    /// Placeholder frame for a member in the key of [`Store::intern_group`].
    pub(crate) fn group_member(index: usize) -> FrameId {
        FrameId::from_raw(GROUP_MEMBER | index as u32)
    }

    /// Whether a frame is a placeholder for a group member.
    pub(crate) fn is_group_member(frame: FrameId) -> bool {
        frame.raw() & GROUP_MEMBER != 0
    }

    /// Interns the frames of a left-recursive component: one list of items for each member. An item
    /// with the frame `group_member(i)` refers to member `i` of this group. Returns the frame of
    /// the first member; the others follow it.
    pub(crate) fn intern_group(&mut self, program: &Program, members: &[Vec<Item>]) -> FrameId {
        let mut key: Vec<u32> = Vec::new();
        for items in members {
            key.push(items.len() as u32);
            key.extend(items.iter().flat_map(|i| [i.state.raw(), i.count, i.frame.raw()]));
        }
        if let Some(&base) = self.groups.get(&key[..]) {
            return base;
        }
        let base = FrameId::new(self.frames.len());
        self.group_bytes += key.len() * 4 + 32;
        self.groups.insert(key.into_boxed_slice(), base);
        for (i, items) in members.iter().enumerate() {
            let mut items = items.clone();
            for item in &mut items {
                if Store::is_group_member(item.frame) {
                    item.frame = base.member((item.frame.raw() & !GROUP_MEMBER) as usize);
                }
            }
            items.sort_unstable();
            items.dedup();
            let span = self.push_items(&items);
            let group = FrameGroup { first: base, len: members.len() as u32 };
            self.frames
                .push(InternedFrame { group, ..InternedFrame::untracked(span, base.member(i)) });
        }
        self.track_group(program, base);
        self.set_group_labels(program, base);
        base
    }

    /// Computes the byte_labels of a new group's frames: a fixpoint, as they refer to each other.
    fn set_group_labels(&mut self, program: &Program, base: FrameId) {
        let mut byte_labels: Vec<Option<ByteLabel>> = vec![None; self.frames.len() - base.index()];
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..byte_labels.len() {
                let mut byte_label = byte_labels[i];
                for item in self.items_in(self.frames[base.index() + i].items) {
                    let label = program.label(item.state);
                    let inner = match label {
                        Some(label) => Some(ByteLabel::Label(label)),
                        None if item.frame >= base => {
                            byte_labels[item.frame.index() - base.index()]
                        }
                        None => Some(self.frames[item.frame.index()].byte_label),
                    };
                    if let Some(inner) = inner {
                        byte_label = Some(ByteLabel::merge(byte_label, inner));
                    }
                }
                changed |= byte_label != byte_labels[i];
                byte_labels[i] = byte_label;
            }
        }
        for (i, byte_label) in byte_labels.into_iter().enumerate() {
            self.frames[base.index() + i].byte_label = byte_label.unwrap_or(ByteLabel::None);
        }
    }
}
