//! Frames of left-recursive components, which refer to each other: a group is interned as a whole.

use super::{ByteLabel, FrameId, InternedFrame, Item, Store};
use crate::compile::Program;
use crate::fsm::Csr;
use crate::fuel;

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

    /// The members; outside of groups, the frame by itself.
    pub(in crate::matcher) fn or_self(self, frame: FrameId) -> impl Iterator<Item = FrameId> {
        let alone = (self.len == 0).then_some(frame);
        alone.into_iter().chain(self.members())
    }

    /// By member, the members that return to it. `returns` yields the indices of the members that a
    /// member returns to. Cost: their number.
    pub(in crate::matcher) fn callers<I: Iterator<Item = usize>>(
        self,
        returns: impl Fn(usize) -> I,
    ) -> Csr {
        let of_member =
            |member| returns(member as usize).map(move |callee| (callee as u32, member));
        let pairs: Vec<(u32, u32)> = (0..self.len).flat_map(of_member).collect();
        fuel::charge(pairs.len());
        Csr::new(self.len(), || pairs.iter().copied())
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

    /// Computes the labels of a new group's frames: a fixpoint, as they refer to each other.
    fn set_group_labels(&mut self, program: &Program, base: FrameId) {
        let group = self.group_of(base);
        let items = |member| self.returns(base.member(member)).iter();
        let is_unlabelled = |item: &&Item| program.label(item.state).is_none();
        let callers = group.callers(|member| {
            items(member).filter(is_unlabelled).filter_map(|item| group.position(item.frame))
        });
        // What the items of each member say by themselves, then what members pass to callers. A
        // label changes at most twice.
        let mut labels: Vec<Option<ByteLabel>> = Vec::with_capacity(group.len());
        for member in 0..group.len() {
            let known = items(member).filter_map(|item| match program.label(item.state) {
                Some(label) => Some(ByteLabel::Label(label)),
                None if group.position(item.frame).is_some() => None,
                None => Some(self.frame_label(item.frame)),
            });
            labels.push(known.fold(None, |all, label| Some(ByteLabel::merge(all, label))));
        }
        let mut queue: Vec<u32> = (0..).take(group.len()).collect();
        while let Some(member) = queue.pop() {
            let Some(label) = labels[member as usize] else { continue };
            for &caller in callers.row(member) {
                let merged = Some(ByteLabel::merge(labels[caller as usize], label));
                if merged != labels[caller as usize] {
                    labels[caller as usize] = merged;
                    queue.push(caller);
                }
            }
        }
        for (member, label) in labels.into_iter().enumerate() {
            self.frames[base.member(member).index()].byte_label = label.unwrap_or(ByteLabel::None);
        }
    }
}
