//! The constraints beyond context-free grammars that items and frames track.

use super::{FrameId, Item, Store};
use crate::compile::{DistinctRole, Program, RegisterId, ReturnRole};

/// Set of flags: constraints that an item, frame or configuration tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::matcher) struct Tracked(u8);

impl Tracked {
    /// A budget of tokens or code points.
    pub(in crate::matcher) const BUDGET: Tracked = Tracked(1);
    /// A scope (an array with `uniqueItems`), also one whose register only counts.
    pub(in crate::matcher) const SCOPE: Tracked = Tracked(2);
    /// A scope whose register holds values.
    pub(in crate::matcher) const VALUES: Tracked = Tracked(4);
    /// A scope with values that has an element open.
    pub(in crate::matcher) const ELEMENT: Tracked = Tracked(8);
    /// An open element that may still become equal to an earlier element (a *rival*).
    pub(in crate::matcher) const RIVALS: Tracked = Tracked(16);
    /// Every path to the root frame has an open element with rivals; see [`Tracked::is_stuck`].
    const STUCK: Tracked = Tracked(32);
    /// A scope that is not inexhaustible ([`DistinctRole`]): some of its elements may have only
    /// finitely many values.
    pub(in crate::matcher) const EXHAUSTIBLE_SCOPE: Tracked = Tracked(64);
    /// A key: the text of an occurrence of a rule that must differ from its siblings.
    pub(in crate::matcher) const KEY: Tracked = Tracked(128);

    /// Whether the sets share a flag.
    pub(in crate::matcher) fn intersects(self, flags: Tracked) -> bool {
        self.0 & flags.0 != 0
    }

    /// Whether every path to the root frame has an open element with rivals. Such a configuration
    /// needs a search to prove that it can be completed.
    pub(in crate::matcher) fn is_stuck(self) -> bool {
        self.intersects(Tracked::STUCK)
    }

    /// The flags of both sets.
    pub(in crate::matcher) fn union(self, other: Tracked) -> Tracked {
        Tracked(self.0 | other.0)
    }

    /// Flags of alternative paths: any path sets a flag, except `STUCK`, which all must have.
    fn over_paths(paths: impl Iterator<Item = Tracked>) -> Tracked {
        let (mut all, mut stuck) = (0, Tracked::STUCK.0);
        for path in paths {
            all |= path.0;
            stuck &= path.0;
        }
        Tracked(all & !Tracked::STUCK.0 | stuck)
    }
}

impl Store {
    /// The constraints that a frame tracks.
    #[inline]
    pub(in crate::matcher) fn tracked(&self, frame: FrameId) -> Tracked {
        self.frames[frame.index()].tracked
    }

    /// The constraints that the frames of some items track. The frames must be interned.
    pub(in crate::matcher) fn tracked_after(&self, items: &[Item]) -> Tracked {
        Tracked::over_paths(items.iter().map(|i| self.tracked(i.frame)))
    }

    /// The constraints that an item tracks itself, without its frame.
    pub(in crate::matcher) fn tracked_by_state(&self, program: &Program, item: &Item) -> Tracked {
        if program.state(item.state).unique_key {
            return Tracked::KEY;
        }
        if program.budget_meter(item.state).is_some() {
            return Tracked::BUDGET;
        }
        if program.state(item.state).return_role != ReturnRole::Scope
            || item.register() == RegisterId::UNKNOWN
        {
            return Tracked::default();
        }
        let status = self.registers.status(item.register());
        let values = if status.holds_values { Tracked::VALUES } else { Tracked::default() };
        let element = if status.element_open { Tracked::ELEMENT } else { Tracked::default() };
        // A scope of unbounded strings always has further values, so no element gets stuck.
        let inexhaustible = program.compiled().scopes.role(program.rule(item.state))
            == Some(DistinctRole::Scope { inexhaustible: true });
        let rivals = match status.has_rivals {
            true if inexhaustible => Tracked::RIVALS,
            true => Tracked::RIVALS.union(Tracked::STUCK),
            false => Tracked::default(),
        };
        let exhaustible =
            if inexhaustible { Tracked::default() } else { Tracked::EXHAUSTIBLE_SCOPE };
        Tracked::SCOPE.union(values).union(element).union(rivals).union(exhaustible)
    }

    /// The constraints that a new frame with these items tracks.
    pub(super) fn tracked_in(&self, program: &Program, items: &[Item]) -> Tracked {
        if program.frames_hold_nothing() {
            return Tracked::default();
        }
        Tracked::over_paths(
            items.iter().map(|i| self.tracked_by_state(program, i).union(self.tracked(i.frame))),
        )
    }

    /// Computes the tracked flags of a new group.
    pub(super) fn track_group(&mut self, program: &Program, base: FrameId) {
        if program.frames_hold_nothing() {
            return;
        }
        let group = self.group_of(base);
        let outside = |store: &Store, member: FrameId| {
            let items = store.returns(member).iter();
            let paths = items.map(|i| match group.position(i.frame) {
                Some(_) => store.tracked_by_state(program, i),
                None => store.tracked_by_state(program, i).union(store.tracked(i.frame)),
            });
            paths.fold(Tracked::default(), Tracked::union)
        };
        let all = group
            .members()
            .map(|member| outside(self, member))
            .fold(Tracked::default(), Tracked::union);
        // A member is stuck unless one of its items is on a free path: out of the group, or to a
        // member that is not stuck.
        let is_free = |i: &&Item| !self.tracked_by_state(program, i).is_stuck();
        let free_items = |member| self.returns(base.member(member)).iter().filter(is_free);
        let callers =
            group.callers(|member| free_items(member).filter_map(|i| group.position(i.frame)));
        let leaves_freely =
            |i: &Item| group.position(i.frame).is_none() && !self.tracked(i.frame).is_stuck();
        let free = callers.reached(
            (0u32..).take(group.len()).filter(|&m| free_items(m as usize).any(leaves_freely)),
        );
        for (member, is_free) in group.members().zip(free) {
            let stuck = if is_free { 0 } else { Tracked::STUCK.0 };
            self.frames[member.index()].tracked = Tracked(all.0 & !Tracked::STUCK.0 | stuck);
        }
    }
}
