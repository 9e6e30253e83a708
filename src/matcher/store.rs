//! Interned configurations and frames.
//!
//! An *item* is (state of a rule's automaton, runs completed of the counted block it is in, frame). A *frame* is what
//! happens when the item's rule ends: the interned set of items to go on with. A *configuration* is the interned set of
//! items that can read something, with what has just been completed. None of them knows a position in the text: one more
//! character of a string, one more element of an array give back the same configuration.

use std::hash::{Hash, Hasher};

use super::registers::Registers;
use crate::capacity::ReserveMore;
use crate::compile::{Behind, Program, Role};
use crate::hash::{Seeded, hasher};
use crate::ids::Label;
use crate::interner::InternIndex;
use crate::matcher::Exit;

/// An interned configuration.
pub(crate) type ConfigId = u32;
/// An interned frame.
pub(crate) type FrameId = u32;

/// The configuration from which nothing can follow.
pub(crate) const DEAD: ConfigId = 0;
/// Behind the start rule: the text is complete.
pub(crate) const ROOT: FrameId = 0;
/// Behind a rule looked at on its own: what follows is not known here.
pub(crate) const BOTTOM: FrameId = 1;
/// As [`BOTTOM`], behind a dispatch looked at on its own: what its tags' bodies are is not known here either.
pub(crate) const GATED: FrameId = 2;
/// In a counter: it has no bounds, and only counts. Used to look at a block for all counters at once.
pub(crate) const FREE: u32 = 0x8000_0000;
/// In a counter: as good as any that is far from its bounds. It stays as it is.
pub(crate) const FAR: u32 = u32::MAX;
/// Configurations and frames that there is room for from the beginning: as many as a small schema takes.
pub(super) const CONFIGS: usize = 448;
const FRAMES: usize = 112;
/// In a group's key: the group's member with this number.
const MEMBER: u32 = 0x8000_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Item {
    pub(crate) state: u32,
    pub(crate) count: u32,
    pub(crate) frame: FrameId,
}

impl Item {
    /// Whether the item is of a rule looked at on its own.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self.frame, BOTTOM | GATED)
    }

    /// Whether the item is of a rule looked at on its own, and leaves that rule by this exit.
    #[inline]
    pub(crate) fn leaves_by(&self, exit: Exit) -> bool {
        self.frame == GATED || self.frame == BOTTOM && exit == Exit::End
    }
}

/// Which labelled rule bytes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    None,
    Label(Label),
    /// Several items disagree.
    Ambiguous,
}

impl Owner {
    pub(crate) fn merge(a: Option<Owner>, b: Owner) -> Owner {
        match a {
            None => b,
            Some(a) if a == b => a,
            Some(_) => Owner::Ambiguous,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    at: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    items: Span,
    owner: Owner,
    /// The frame with counters normalised for masks.
    normal: FrameId,
    /// That one, with what stands for its states: see [`Program::alike`].
    alike: FrameId,
    /// What is somewhere in it.
    has: Has,
    /// Members of the left-recursive group it belongs to: the first, and how many; none outside of groups.
    group: (FrameId, u32),
}

impl Frame {
    fn bare(items: Span, id: FrameId) -> Frame {
        Frame {
            items,
            owner: Owner::None,
            normal: id,
            alike: id,
            has: Has::default(),
            group: (id, 0),
        }
    }
}

/// What there is to keep account of somewhere in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Has(u8);

impl Has {
    /// A budget.
    pub(super) const METER: Has = Has(1);
    /// A scope whose elements are told apart, or counted.
    pub(super) const SCOPE: Has = Has(2);
    /// Such a scope with values.
    pub(super) const VALUES: Has = Has(4);
    /// Such a scope with an element under way.
    pub(super) const ELEMENT: Has = Has(8);
    /// Such an element that may still become one that there has been.
    pub(super) const RIVALS: Has = Has(16);
    /// On every way out there is such an element: see [`Has::is_stuck`].
    const STUCK: Has = Has(32);
    /// A scope whose elements may be other things than strings without end.
    pub(super) const CLOSED: Has = Has(64);
    /// A name.
    pub(super) const NAME: Has = Has(128);

    pub(super) fn any(self, of: Has) -> bool {
        self.0 & of.0 != 0
    }

    /// Whether on every way out an element is under way that may still become one that there has been.
    pub(super) fn is_stuck(self) -> bool {
        self.any(Has::STUCK)
    }

    pub(super) fn or(self, other: Has) -> Has {
        Has(self.0 | other.0)
    }

    /// Of several ways.
    fn of_ways(ways: impl Iterator<Item = Has>) -> Has {
        let (mut all, mut stuck) = (0, Has::STUCK.0);
        for way in ways {
            all |= way.0;
            stuck &= way.0;
        }
        Has(all & !Has::STUCK.0 | stuck)
    }
}

/// What has been completed exactly here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Done {
    /// The start rule: the text may end.
    pub(crate) root: bool,
    /// A rule over [`BOTTOM`] or [`GATED`].
    pub(crate) bottom: bool,
    /// A trigger over [`GATED`] has fired: what its tags' bodies are is not looked at here. The items say which.
    pub(crate) gated: bool,
    /// White space has no bounds from here on; see [`super::gaps`].
    pub(super) loose: bool,
    /// Names that there have been, as a number; see [`super::names`].
    pub(super) names: u32,
}

impl Done {
    /// What is looked at on its own ends here, or may end.
    #[inline]
    pub(crate) fn open(self) -> bool {
        self.bottom | self.gated
    }
}

#[derive(Clone, Copy, Debug)]
struct Config {
    items: Span,
    done: Done,
    /// The same without names.
    plain: ConfigId,
    /// The same with counters normalised for masks, once that is known; see [`super::normal`].
    normal: ConfigId,
    /// What stands for it where masks are concerned, once that is known.
    alike: ConfigId,
}

/// Not known.
const UNKNOWN: ConfigId = u32::MAX;

/// All interned frames and configurations of one parser. Grows until it is dropped as a whole.
#[derive(Debug)]
pub(crate) struct Store {
    arena: Vec<Item>,
    frames: Vec<Frame>,
    configs: Vec<Config>,
    frame_ids: InternIndex,
    config_ids: InternIndex,
    /// Frames of left-recursive components, by their key.
    groups: hashbrown::HashMap<Box<[u32]>, FrameId, Seeded>,
    group_bytes: usize,
    /// What scopes have had.
    pub(super) registers: Registers,
}

fn hash_items(items: &[Item], done: Done) -> u64 {
    let mut hasher = hasher();
    done.hash(&mut hasher);
    for item in items {
        hasher.write_u64(u64::from(item.state) << 32 | u64::from(item.frame));
        hasher.write_u32(item.count);
    }
    hasher.finish()
}

impl Store {
    pub(crate) fn new() -> Store {
        let empty = Span { at: 0, len: 0 };
        let mut frames = Vec::with_capacity(FRAMES);
        frames.extend([ROOT, BOTTOM, GATED].map(|id| Frame::bare(empty, id)));
        let mut store = Store {
            arena: Vec::with_capacity(CONFIGS * 2),
            frames,
            configs: Vec::with_capacity(CONFIGS),
            frame_ids: InternIndex::with_capacity(FRAMES),
            config_ids: InternIndex::with_capacity(CONFIGS),
            groups: hashbrown::HashMap::default(),
            group_bytes: 0,
            registers: Registers::new(),
        };
        let dead = store.config(&[], Done::default());
        debug_assert_eq!(dead, DEAD);
        store
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.len() * size_of::<Item>()
            + self.frames.len() * (size_of::<Frame>() + 8)
            + self.configs.len() * (size_of::<Config>() + 8)
            + self.group_bytes
            + self.registers.bytes()
    }

    /// Makes room for more: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.arena.reserve_more();
        self.frames.reserve_more();
        self.configs.reserve_more();
        self.frame_ids.reserve_more();
        self.config_ids.reserve_more();
        self.registers.reserve_more();
    }

    /// How many configurations there are.
    pub(crate) fn configs(&self) -> usize {
        self.configs.len()
    }

    /// How many items configurations and frames have, in all.
    pub(crate) fn all_items(&self) -> usize {
        self.arena.len()
    }

    fn slice(&self, span: Span) -> &[Item] {
        &self.arena[span.at as usize..(span.at + span.len) as usize]
    }

    #[inline]
    pub(crate) fn items(&self, config: ConfigId) -> &[Item] {
        self.slice(self.configs[config as usize].items)
    }

    #[inline]
    pub(crate) fn done(&self, config: ConfigId) -> Done {
        self.configs[config as usize].done
    }

    /// What to go on with when a rule with this frame ends.
    #[inline]
    pub(crate) fn returns(&self, frame: FrameId) -> &[Item] {
        self.slice(self.frames[frame as usize].items)
    }

    /// What there is to keep account of in a frame.
    #[inline]
    pub(super) fn has(&self, frame: FrameId) -> Has {
        self.frames[frame as usize].has
    }

    /// What there is to keep account of behind some items, which refer to interned frames.
    pub(super) fn has_behind(&self, items: &[Item]) -> Has {
        Has::of_ways(items.iter().map(|i| self.has(i.frame)))
    }

    /// What is kept account of in a state itself.
    pub(super) fn has_own(&self, program: &Program, item: &Item) -> Has {
        if program.state(item.state).name {
            return Has::NAME;
        }
        if program.meter(item.state).is_some() {
            return Has::METER;
        }
        if program.state(item.state).behind != Behind::Scope || item.count == crate::compile::NONE {
            return Has::default();
        }
        let said = self.registers.said(item.count);
        let values = if said.real { Has::VALUES } else { Has::default() };
        let element = if said.reading { Has::ELEMENT } else { Has::default() };
        // Where infinitely many values are left however an element has begun, nobody gets stuck.
        let open = program.compiled().scopes.role(program.rule(item.state))
            == Some(Role::Scope { open: true });
        let rivals = match said.rivalled {
            true if open => Has::RIVALS,
            true => Has::RIVALS.or(Has::STUCK),
            false => Has::default(),
        };
        let closed = if open { Has::default() } else { Has::CLOSED };
        Has::SCOPE.or(values).or(element).or(rivals).or(closed)
    }

    /// What there is to keep account of in a frame with these items.
    fn has_in(&self, program: &Program, items: &[Item]) -> Has {
        if program.says_nothing_in_frames() {
            return Has::default();
        }
        Has::of_ways(items.iter().map(|i| self.has_own(program, i).or(self.has(i.frame))))
    }

    /// The first of the group a frame belongs to, and how many are in it; none outside of groups.
    pub(super) fn group_of(&self, frame: FrameId) -> (FrameId, u32) {
        self.frames[frame as usize].group
    }

    pub(super) fn set_normal(&mut self, frame: FrameId, normal: FrameId) {
        let frame = &mut self.frames[frame as usize];
        (frame.normal, frame.alike) = (normal, normal);
    }

    pub(crate) fn frame_owner(&self, frame: FrameId) -> Owner {
        self.frames[frame as usize].owner
    }

    fn push(&mut self, items: &[Item]) -> Span {
        let at = self.arena.len() as u32;
        self.arena.extend_from_slice(items);
        Span { at, len: items.len() as u32 }
    }

    /// Interns a configuration; `items` are sorted and distinct.
    pub(crate) fn config(&mut self, items: &[Item], done: Done) -> ConfigId {
        let hash = hash_items(items, done);
        let found = self.config_ids.find(hash, |id| {
            let c = &self.configs[id as usize];
            c.done == done && self.slice(c.items) == items
        });
        if let Some(id) = found {
            return id;
        }
        let span = self.push(items);
        let id = self.configs.len() as u32;
        self.configs.push(Config { items: span, done, plain: id, normal: UNKNOWN, alike: UNKNOWN });
        self.config_ids.insert(hash, id);
        id
    }

    /// A configuration with names that there have been.
    pub(super) fn named(&mut self, config: ConfigId, names: u32) -> ConfigId {
        let Config { items: span, done, plain, .. } = self.configs[config as usize];
        if names == 0 || plain == DEAD {
            return plain;
        }
        let done = Done { names, ..done };
        let hash = hash_items(self.slice(span), done);
        let same = |id: u32| {
            self.configs[id as usize].done == done && self.configs[id as usize].plain == plain
        };
        if let Some(id) = self.config_ids.find(hash, same) {
            return id;
        }
        let id = self.configs.len() as u32;
        self.configs.push(Config { items: span, done, plain, normal: UNKNOWN, alike: UNKNOWN });
        self.config_ids.insert(hash, id);
        id
    }

    /// The configuration without names that there have been.
    #[inline]
    pub(crate) fn plain(&self, config: ConfigId) -> ConfigId {
        self.configs[config as usize].plain
    }

    /// What stands for a configuration where masks are concerned, if that is known.
    #[inline]
    pub(super) fn known_normal(&self, config: ConfigId) -> Option<ConfigId> {
        Some(self.configs[config as usize].normal).filter(|&normal| normal != UNKNOWN)
    }

    /// The same of what stands for one where masks are concerned.
    #[inline]
    pub(super) fn known_alike(&self, config: ConfigId) -> Option<ConfigId> {
        Some(self.configs[config as usize].alike).filter(|&alike| alike != UNKNOWN)
    }

    pub(super) fn note_alike(&mut self, config: ConfigId, alike: ConfigId) {
        self.configs[config as usize].alike = alike;
    }

    /// Notes what stands for a configuration.
    pub(super) fn note_normal(&mut self, config: ConfigId, normal: ConfigId) {
        self.configs[config as usize].normal = normal;
    }

    /// The frame with these items, if it is interned.
    pub(super) fn find_frame(&self, items: &[Item]) -> Option<FrameId> {
        self.frame_hashed(hash_items(items, Done::default()), items)
    }

    fn frame_hashed(&self, hash: u64, items: &[Item]) -> Option<FrameId> {
        self.frame_ids.find(hash, |id| self.slice(self.frames[id as usize].items) == items)
    }

    /// Interns a frame that does not refer to itself; `items` are sorted and distinct, their frames interned.
    pub(crate) fn frame(
        &mut self,
        program: &Program,
        items: &[Item],
        reach: Option<u32>,
    ) -> FrameId {
        let hash = hash_items(items, Done::default());
        if let Some(id) = self.frame_hashed(hash, items) {
            return id;
        }
        let owner =
            items.iter().fold(None, |o, item| Some(Owner::merge(o, self.owner(program, item))));
        let span = self.push(items);
        let id = self.frames.len() as u32;
        let has = self.has_in(program, items);
        self.frames.push(Frame {
            owner: owner.unwrap_or(Owner::None),
            has,
            ..Frame::bare(span, id)
        });
        self.frame_ids.insert(hash, id);
        if let Some(reach) = reach {
            let normal = match self.normalise_items(program, span, reach) {
                Some(normal) => self.frame(program, &normal, None),
                None => id,
            };
            let alike = match self.alike_items(program, self.frames[normal as usize].items) {
                Some(alike) => self.frame(program, &alike, None),
                None => normal,
            };
            let frame = &mut self.frames[id as usize];
            (frame.normal, frame.alike) = (normal, alike);
        }
        id
    }

    /// Interns the frames of a left-recursive component: one list of items per member, where an item's frame
    /// `member(i)` stands for member `i` of this very group. Returns the first member's frame; the others follow.
    pub(crate) fn group(&mut self, program: &Program, members: &[Vec<Item>]) -> FrameId {
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
                if item.frame & MEMBER != 0 {
                    item.frame = base + (item.frame & !MEMBER);
                }
            }
            items.sort_unstable();
            items.dedup();
            let span = self.push(&items);
            // Owners of members are settled below; a member's own frame adds nothing new.
            let group = (base, members.len() as u32);
            self.frames.push(Frame { group, ..Frame::bare(span, base + i as u32) });
        }
        self.account(program, base);
        let mut owners: Vec<Option<Owner>> = vec![None; members.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..members.len() {
                let mut owner = owners[i];
                for item in self.slice(self.frames[base as usize + i].items) {
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
        base
    }

    /// Finds what there is to keep account of in the frames of a new group.
    fn account(&mut self, program: &Program, base: FrameId) {
        if program.says_nothing_in_frames() {
            return;
        }
        let group = base..self.frames.len() as FrameId;
        let outside = |store: &Store, member: FrameId| {
            let items = store.returns(member).iter();
            let ways = items.map(|i| match group.contains(&i.frame) {
                true => store.has_own(program, i),
                false => store.has_own(program, i).or(store.has(i.frame)),
            });
            ways.fold(Has::default(), Has::or)
        };
        let all = group.clone().map(|member| outside(self, member)).fold(Has::default(), Has::or);
        // Stuck is who has no way out, in the group or out of it.
        for member in group.clone() {
            self.frames[member as usize].has = all.or(Has::STUCK);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for member in group.clone() {
                if !self.has(member).any(Has::STUCK) {
                    continue;
                }
                let free =
                    |i: &Item| !self.has_own(program, i).or(self.has(i.frame)).any(Has::STUCK);
                if self.returns(member).iter().any(free) {
                    self.frames[member as usize].has = Has(all.0 & !Has::STUCK.0);
                    changed = true;
                }
            }
        }
    }

    /// Stands for a group's member in [`Store::group`].
    pub(crate) fn member(index: usize) -> FrameId {
        MEMBER | index as u32
    }

    /// Whether a frame stands for a group's member.
    pub(crate) fn is_member(frame: FrameId) -> bool {
        frame & MEMBER != 0
    }

    /// The labelled rule an item is in.
    pub(crate) fn owner(&self, program: &Program, item: &Item) -> Owner {
        match program.label(item.state) {
            Some(label) => Owner::Label(label),
            None => self.frame_owner(item.frame),
        }
    }

    /// The configuration with every counter moved to where no token of at most `reach` bytes can tell the difference.
    pub(crate) fn normal_config(
        &mut self,
        program: &Program,
        config: ConfigId,
        reach: u32,
    ) -> ConfigId {
        if program.blocks.is_empty() && program.compiled().keeps_no_account() {
            return config;
        }
        let Config { items, done, .. } = self.configs[config as usize];
        match self.normalise_items(program, items, reach) {
            Some(items) => self.config(&items, done),
            None => config,
        }
    }

    /// A normal configuration with frames in which states stand for all those that are like them where masks are concerned.
    pub(super) fn alike_config(&mut self, config: ConfigId) -> ConfigId {
        let Config { items, done, .. } = self.configs[config as usize];
        let alike = |item: &Item| Item { frame: self.frames[item.frame as usize].alike, ..*item };
        match changed(self.slice(items), alike) {
            Some(items) => self.config(&items, done),
            None => config,
        }
    }

    /// What stands for the states of a frame's items; `None` where they do for themselves.
    fn alike_items(&self, program: &Program, span: Span) -> Option<Vec<Item>> {
        changed(self.slice(span), |item| Item {
            state: program.known_alike(item.state),
            frame: self.frames[item.frame as usize].alike,
            ..*item
        })
    }

    /// `None` where nothing changes.
    fn normalise_items(&self, program: &Program, span: Span, reach: u32) -> Option<Vec<Item>> {
        changed(self.slice(span), |item| Item {
            state: item.state,
            count: normal_count(program, item.state, item.count, reach),
            frame: self.frames[item.frame as usize].normal,
        })
    }
}

/// Items with others in their places, sorted and distinct; `None` where nothing changes.
pub(super) fn changed(items: &[Item], map: impl Fn(&Item) -> Item) -> Option<Vec<Item>> {
    if items.iter().all(|item| map(item) == *item) {
        return None;
    }
    let mut out: Vec<Item> = items.iter().map(map).collect();
    out.sort_unstable();
    out.dedup();
    Some(out)
}

/// A counter within `reach` runs of neither bound is as good as any other such counter: each run spans at least a byte, so
/// no token can reach a bound. Runs still missing to `min` and still possible up to `max` are all that ever matters. Outside of
/// blocks nothing changes.
pub(super) fn normal_runs(program: &Program, state: u32, count: u32, reach: u32) -> u32 {
    let Some(block) = program.block_of(state) else { return count };
    let far = reach.saturating_add(1);
    let room = block.max.map_or(u32::MAX, |max| max.saturating_sub(count));
    if room <= far {
        return count;
    }
    let missing = block.min.saturating_sub(count);
    if missing > far {
        // As far below `min` as a token can make no difference.
        block.min - far - 1
    } else if missing > 0 {
        count
    } else if block.max.is_some() && !block.gap {
        FAR
    } else {
        block.min
    }
}

/// What stands for an item's count where masks are concerned.
fn normal_count(program: &Program, state: u32, count: u32, reach: u32) -> u32 {
    match (program.meter(state), program.state(state).behind) {
        _ if program.block_of(state).is_some() => normal_runs(program, state, count, reach),
        (Some(meter), _) => meter.normal(count, reach),
        (None, Behind::Scope) => Registers::normal(count),
        (None, _) => 0,
    }
}
