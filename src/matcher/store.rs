//! Interned parser state: items, frames, configurations.
//!
//! An *item* is a triple: a state of a rule's automaton, the count of completed runs of the counted
//! block that the state is in, and a frame. A *frame* is the interned set of items to return to
//! when the item's rule ends (a node of a graph-structured stack). A *configuration* is the
//! interned set of items that can read input, plus flags for what has just been completed.
//!
//! Invariants: no part holds a text position, so one more character of a string or one more element
//! of an array gives the same configuration. A frame refers only to frames with smaller ids, or to
//! members of its own left-recursive group. Item lists are sorted and without duplicates.
//!
//! See `docs/internals/CONFIGURATIONS.md`.

mod frame_walk;
mod groups;
mod tracked;

pub(super) use frame_walk::FrameWalk;
pub(super) use groups::FrameGroup;
pub(super) use tracked::Tracked;

use std::hash::{Hash, Hasher};

use super::value_constraints::registers::Registers;
use crate::capacity::ReserveMore;
use crate::compile::{FAR_FROM_BOUNDS, Program, RegisterId, ReturnRole, State, StateId};
use crate::hash::{Seeded, hasher};
use crate::ids::{Label, id};
use crate::interner::InternIndex;
use crate::matcher::Exit;

id! {
    /// Id of an interned configuration.
    pub(crate) ConfigId
}

impl ConfigId {
    /// The empty configuration: no input can follow.
    pub(crate) const DEAD: ConfigId = ConfigId::from_raw(0);
    /// Not computed yet.
    pub(super) const UNKNOWN: ConfigId = ConfigId::from_raw(u32::MAX);
}

id! {
    /// Id of an interned frame.
    pub(crate) FrameId
}

impl FrameId {
    /// Frame of the start rule: when the rule ends, the text is complete.
    pub(crate) const ROOT: FrameId = FrameId::from_raw(0);
    /// Frame of an isolated item: the items to return to are unknown.
    pub(crate) const ISOLATED: FrameId = FrameId::from_raw(1);
    /// As [`FrameId::ISOLATED`], for isolated items of a dispatch: the bodies of its tags are
    /// unknown, too.
    pub(crate) const ISOLATED_DISPATCH: FrameId = FrameId::from_raw(2);
    /// The frames without items to return to.
    const FIXED: [FrameId; 3] = [FrameId::ROOT, FrameId::ISOLATED, FrameId::ISOLATED_DISPATCH];

    /// Whether the frame has items to return to.
    #[inline]
    pub(super) fn has_returns(self) -> bool {
        self.index() >= FrameId::FIXED.len()
    }

    /// Whether the frame is that of an isolated item.
    #[inline]
    pub(super) fn is_isolated(self) -> bool {
        matches!(self, FrameId::ISOLATED | FrameId::ISOLATED_DISPATCH)
    }
}

id! {
    /// Id of an interned list of earlier keys; see `value_constraints/duplicate_keys.rs`.
    pub(super) KeyListId
}

impl KeyListId {
    /// The empty list.
    pub(super) const EMPTY: KeyListId = KeyListId::from_raw(0);
}

impl Default for KeyListId {
    fn default() -> KeyListId {
        KeyListId::EMPTY
    }
}

/// Flag in an item's count: the block has no bounds, and runs are only counted. Mask profiles use
/// it to examine a block for all counter values at once.
pub(crate) const UNBOUNDED_COUNT: u32 = 0x8000_0000;
// A count that is far from both bounds never changes, and has the flag, so that runs end as in a
// block without bounds.
const _: () = assert!(FAR_FROM_BOUNDS & UNBOUNDED_COUNT != 0);
/// Initial capacity for configurations; enough for a small schema.
pub(super) const INITIAL_CONFIGS: usize = 448;
/// Initial capacity for frames; enough for a small schema.
const INITIAL_FRAMES: usize = 112;

/// An Earley item without a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Item {
    /// State of the rule's automaton.
    pub(crate) state: StateId,
    /// Completed runs of the state's counted block. In a frame, the remaining budget or the
    /// [`RegisterId`] of the return state. Otherwise 0.
    pub(crate) count: u32,
    /// The items to return to when the rule ends.
    pub(crate) frame: FrameId,
}

impl Item {
    /// Whether the item belongs to an isolated rule.
    #[inline]
    pub(crate) fn is_isolated(&self) -> bool {
        self.frame.is_isolated()
    }

    /// Whether a trigger of an isolated dispatch has fired: the rules that it calls are unknown.
    #[inline]
    pub(super) fn has_fired(&self, state: &State) -> bool {
        state.is_trigger_state && self.frame == FrameId::ISOLATED_DISPATCH
    }

    /// The register of an item that a scope returns to.
    #[inline]
    pub(super) fn register(&self) -> RegisterId {
        RegisterId::from_raw(self.count)
    }

    /// The item with another register.
    #[inline]
    pub(super) fn with_register(self, register: RegisterId) -> Item {
        Item { count: register.raw(), ..self }
    }

    /// Whether the item belongs to an isolated rule and may leave it by `exit`.
    #[inline]
    pub(crate) fn leaves_by(&self, exit: Exit) -> bool {
        self.frame == FrameId::ISOLATED_DISPATCH
            || self.frame == FrameId::ISOLATED && exit == Exit::End
    }
}

/// The labelled rule that derives a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteLabel {
    None,
    Label(Label),
    /// Several items with different labels read the byte.
    Ambiguous,
}

impl ByteLabel {
    /// The label of a byte that several items read.
    pub(crate) fn merge(a: Option<ByteLabel>, b: ByteLabel) -> ByteLabel {
        match a {
            None => b,
            Some(a) if a == b => a,
            Some(_) => ByteLabel::Ambiguous,
        }
    }
}

/// A slice of the item arena.
#[derive(Clone, Copy, Debug)]
struct ArenaSpan {
    start: u32,
    len: u32,
}

/// A frame and what is known about it.
#[derive(Clone, Copy, Debug)]
struct InternedFrame {
    items: ArenaSpan,
    /// The innermost labelled rule around the frame.
    byte_label: ByteLabel,
    /// The frame with canonical counters; see [`super::canonical`].
    canonical: FrameId,
    /// The canonical frame with representative states; see [`Program::representative_state`].
    representative: FrameId,
    /// The constraints that the frame, or any frame reachable from it, tracks.
    tracked: Tracked,
    /// The left-recursive group of the frame.
    group: FrameGroup,
}

impl InternedFrame {
    /// A frame that tracks no constraint and is its own representative.
    fn untracked(items: ArenaSpan, id: FrameId) -> InternedFrame {
        InternedFrame {
            items,
            byte_label: ByteLabel::None,
            canonical: id,
            representative: id,
            tracked: Tracked::default(),
            group: FrameGroup::empty(id),
        }
    }
}

/// Flags that belong to a configuration's identity, in addition to its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct ConfigFlags {
    /// The start rule has ended: the text may end.
    pub(crate) start_completed: bool,
    /// A rule over [`FrameId::ISOLATED`] or [`FrameId::ISOLATED_DISPATCH`] ended.
    pub(crate) item_completed: bool,
    /// A trigger over [`FrameId::ISOLATED_DISPATCH`] fired. The bodies of its tags are unknown; the
    /// items say which trigger it was.
    pub(crate) after_trigger: bool,
    /// White-space bounds are ignored from here on; see [`super::white_space_bounds`].
    pub(super) relaxed: bool,
    /// The list of earlier keys.
    pub(super) key_list: KeyListId,
}

impl ConfigFlags {
    /// Whether an isolated item's rule ends or may end here.
    #[inline]
    pub(crate) fn isolated_rule_ended(self) -> bool {
        self.item_completed | self.after_trigger
    }
}

/// A configuration and what is known about it.
#[derive(Clone, Copy, Debug)]
struct InternedConfig {
    items: ArenaSpan,
    flags: ConfigFlags,
    /// The same configuration without keys.
    base: ConfigId,
    representatives: Representatives,
}

/// The configurations that stand for one in mask construction, each [`ConfigId::UNKNOWN`] until it
/// is computed; see [`super::canonical`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Representatives {
    /// See [`Parser::canonical`](super::parser::Parser::canonical).
    pub(super) canonical: ConfigId,
    /// See [`Parser::canonical_keeping_frames`](super::parser::Parser::canonical_keeping_frames).
    pub(super) keeping_frames: ConfigId,
    /// See [`Parser::mask_representative`](super::parser::Parser::mask_representative).
    pub(super) mask: ConfigId,
}

/// Interner of all frames and configurations of one parser. It only grows; the parser drops it as a
/// whole.
#[derive(Debug)]
pub(crate) struct Store {
    /// Items of all frames and configurations.
    arena: Vec<Item>,
    frames: Vec<InternedFrame>,
    configs: Vec<InternedConfig>,
    frame_ids: InternIndex,
    config_ids: InternIndex,
    /// Left-recursive groups by key: the first member's frame.
    groups: hashbrown::HashMap<Box<[u32]>, FrameId, Seeded>,
    group_bytes: usize,
    /// Registers of scopes and keys.
    pub(super) registers: Registers,
}

fn hash_items(items: &[Item], flags: ConfigFlags) -> u64 {
    let mut hasher = hasher();
    flags.hash(&mut hasher);
    for item in items {
        hasher.write_u64(u64::from(item.state.raw()) << 32 | u64::from(item.frame.raw()));
        hasher.write_u32(item.count);
    }
    hasher.finish()
}

impl Store {
    /// A store with the fixed frames and the dead configuration.
    pub(crate) fn new() -> Store {
        let empty = ArenaSpan { start: 0, len: 0 };
        let mut frames = Vec::with_capacity(INITIAL_FRAMES);
        frames.extend(FrameId::FIXED.map(|id| InternedFrame::untracked(empty, id)));
        let mut store = Store {
            arena: Vec::with_capacity(INITIAL_CONFIGS * 2),
            frames,
            configs: Vec::with_capacity(INITIAL_CONFIGS),
            frame_ids: InternIndex::with_capacity(INITIAL_FRAMES),
            config_ids: InternIndex::with_capacity(INITIAL_CONFIGS),
            groups: hashbrown::HashMap::default(),
            group_bytes: 0,
            registers: Registers::new(),
        };
        let flags = ConfigFlags::default();
        store.push_config(hash_items(&[], flags), empty, flags, ConfigId::DEAD);
        store
    }

    /// Approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.len() * size_of::<Item>()
            + self.frames.len() * (size_of::<InternedFrame>() + 8)
            + self.configs.len() * (size_of::<InternedConfig>() + 8)
            + self.group_bytes
            + self.registers.bytes()
    }

    /// Reserves capacity; see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.arena.reserve_more();
        self.frames.reserve_more();
        self.configs.reserve_more();
        self.frame_ids.reserve_more();
        self.config_ids.reserve_more();
        self.registers.reserve_more();
    }

    /// Number of configurations.
    pub(crate) fn configs(&self) -> usize {
        self.configs.len()
    }

    /// Number of items of all configurations and frames.
    pub(crate) fn all_items(&self) -> usize {
        self.arena.len()
    }

    fn items_in(&self, span: ArenaSpan) -> &[Item] {
        &self.arena[span.start as usize..(span.start + span.len) as usize]
    }

    /// The items of a configuration.
    #[inline]
    pub(crate) fn items(&self, config: ConfigId) -> &[Item] {
        self.items_in(self.configs[config.index()].items)
    }

    /// The frames of a configuration's items, one for each.
    pub(super) fn frames_of(&self, config: ConfigId) -> Vec<FrameId> {
        self.items(config).iter().map(|item| item.frame).collect()
    }

    /// The flags of a configuration.
    #[inline]
    pub(crate) fn flags(&self, config: ConfigId) -> ConfigFlags {
        self.configs[config.index()].flags
    }

    /// Whether the text may end in a configuration.
    #[inline]
    pub(crate) fn is_complete(&self, config: ConfigId) -> bool {
        self.flags(config).start_completed
    }

    /// The items to return to when a rule with this frame ends.
    #[inline]
    pub(crate) fn returns(&self, frame: FrameId) -> &[Item] {
        self.items_in(self.frames[frame.index()].items)
    }

    /// Stores the canonical frame.
    pub(super) fn set_frame_canonical(&mut self, frame: FrameId, canonical: FrameId) {
        let frame = &mut self.frames[frame.index()];
        (frame.canonical, frame.representative) = (canonical, canonical);
    }

    /// The innermost labelled rule around a frame.
    pub(crate) fn frame_label(&self, frame: FrameId) -> ByteLabel {
        self.frames[frame.index()].byte_label
    }

    fn push_items(&mut self, items: &[Item]) -> ArenaSpan {
        let at = self.arena.len() as u32;
        self.arena.extend_from_slice(items);
        ArenaSpan { start: at, len: items.len() as u32 }
    }

    /// Interns a configuration. `items` must be sorted and without duplicates. Where there are none
    /// and nothing has ended, the configuration is dead, relaxed or not.
    pub(crate) fn intern_config(&mut self, items: &[Item], flags: ConfigFlags) -> ConfigId {
        if items.is_empty() && !flags.start_completed && !flags.isolated_rule_ended() {
            return ConfigId::DEAD;
        }
        let hash = hash_items(items, flags);
        let found = self.config_ids.find(hash, |index| {
            let c = &self.configs[index as usize];
            c.flags == flags && self.items_in(c.items) == items
        });
        if let Some(index) = found {
            return ConfigId::from_raw(index);
        }
        let span = self.push_items(items);
        self.push_config(hash, span, flags, ConfigId::new(self.configs.len()))
    }

    /// Adds a configuration that is not interned yet.
    fn push_config(
        &mut self,
        hash: u64,
        items: ArenaSpan,
        flags: ConfigFlags,
        base: ConfigId,
    ) -> ConfigId {
        let id = ConfigId::new(self.configs.len());
        let [canonical, keeping_frames, mask] = [ConfigId::UNKNOWN; 3];
        let representatives = Representatives { canonical, keeping_frames, mask };
        self.configs.push(InternedConfig { items, flags, base, representatives });
        self.config_ids.insert(hash, id.raw());
        id
    }

    /// The configuration with another key list; the empty list gives the base one.
    pub(super) fn with_key_list(&mut self, config: ConfigId, key_list: KeyListId) -> ConfigId {
        let InternedConfig { items: span, flags, base, .. } = self.configs[config.index()];
        if key_list == KeyListId::EMPTY || base == ConfigId::DEAD {
            return base;
        }
        let flags = ConfigFlags { key_list, ..flags };
        let hash = hash_items(self.items_in(span), flags);
        let same = |index: u32| {
            let other = &self.configs[index as usize];
            other.flags == flags && other.base == base
        };
        if let Some(index) = self.config_ids.find(hash, same) {
            return ConfigId::from_raw(index);
        }
        self.push_config(hash, span, flags, base)
    }

    /// The configuration without keys.
    #[inline]
    pub(crate) fn base(&self, config: ConfigId) -> ConfigId {
        self.configs[config.index()].base
    }

    /// The configurations that stand for one.
    #[inline]
    pub(super) fn representatives(&mut self, config: ConfigId) -> &mut Representatives {
        &mut self.configs[config.index()].representatives
    }

    /// The frame with these items, if it is interned.
    pub(super) fn find_frame(&self, items: &[Item]) -> Option<FrameId> {
        self.find_frame_hashed(hash_items(items, ConfigFlags::default()), items)
    }

    fn find_frame_hashed(&self, hash: u64, items: &[Item]) -> Option<FrameId> {
        let same = |index: u32| self.items_in(self.frames[index as usize].items) == items;
        self.frame_ids.find(hash, same).map(FrameId::from_raw)
    }

    /// Interns a frame that does not refer to itself. `items` must be sorted and without
    /// duplicates, and their frames interned. With `max_token_bytes` (the longest token, in bytes),
    /// its canonical and its representative frame are interned, too.
    pub(crate) fn intern_frame(
        &mut self,
        program: &Program,
        items: &[Item],
        max_token_bytes: Option<u32>,
    ) -> FrameId {
        let hash = hash_items(items, ConfigFlags::default());
        if let Some(id) = self.find_frame_hashed(hash, items) {
            return id;
        }
        let byte_label = items
            .iter()
            .fold(None, |o, item| Some(ByteLabel::merge(o, self.byte_label(program, item))));
        let span = self.push_items(items);
        let id = FrameId::new(self.frames.len());
        let tracked = self.tracked_in(program, items);
        self.frames.push(InternedFrame {
            byte_label: byte_label.unwrap_or(ByteLabel::None),
            tracked,
            ..InternedFrame::untracked(span, id)
        });
        self.frame_ids.insert(hash, id.raw());
        if let Some(max_token_bytes) = max_token_bytes {
            let canonical = match self.canonical_items(program, span, max_token_bytes) {
                Some(items) => self.intern_frame(program, &items, None),
                None => id,
            };
            let representative =
                match self.representative_items(program, self.frames[canonical.index()].items) {
                    Some(items) => self.intern_frame(program, &items, None),
                    None => canonical,
                };
            let frame = &mut self.frames[id.index()];
            (frame.canonical, frame.representative) = (canonical, representative);
        }
        id
    }

    /// The innermost labelled rule around an item.
    pub(crate) fn byte_label(&self, program: &Program, item: &Item) -> ByteLabel {
        match program.label(item.state) {
            Some(label) => ByteLabel::Label(label),
            None => self.frame_label(item.frame),
        }
    }

    /// The configuration with canonical counters for tokens of at most `max_token_bytes` bytes.
    pub(crate) fn canonical_config(
        &mut self,
        program: &Program,
        config: ConfigId,
        max_token_bytes: u32,
    ) -> ConfigId {
        if program.blocks.is_empty() && program.compiled().frames_hold_no_counts() {
            return config;
        }
        let InternedConfig { items, flags, .. } = self.configs[config.index()];
        match self.canonical_items(program, items, max_token_bytes) {
            Some(items) => self.intern_config(&items, flags),
            None => config,
        }
    }

    /// The canonical configuration with representative states in its frames.
    pub(super) fn representative_config(&mut self, config: ConfigId) -> ConfigId {
        let InternedConfig { items, flags, .. } = self.configs[config.index()];
        let representative =
            |item: &Item| Item { frame: self.frames[item.frame.index()].representative, ..*item };
        match map_items(self.items_in(items), representative) {
            Some(items) => self.intern_config(&items, flags),
            None => config,
        }
    }

    /// The items of a frame with representative states; `None` if nothing changes.
    fn representative_items(&self, program: &Program, span: ArenaSpan) -> Option<Vec<Item>> {
        map_items(self.items_in(span), |item| Item {
            state: program.cached_representative_state(item.state),
            frame: self.frames[item.frame.index()].representative,
            ..*item
        })
    }

    /// The items with canonical counts; `None` if nothing changes.
    fn canonical_items(
        &self,
        program: &Program,
        span: ArenaSpan,
        max_token_bytes: u32,
    ) -> Option<Vec<Item>> {
        map_items(self.items_in(span), |item| Item {
            state: item.state,
            count: canonical_count(program, item, max_token_bytes),
            frame: self.frames[item.frame.index()].canonical,
        })
    }
}

/// Maps items; the result is sorted and without duplicates. `None` if nothing changes.
pub(super) fn map_items(items: &[Item], map: impl Fn(&Item) -> Item) -> Option<Vec<Item>> {
    if items.iter().all(|item| map(item) == *item) {
        return None;
    }
    let mut out: Vec<Item> = items.iter().map(map).collect();
    out.sort_unstable();
    out.dedup();
    Some(out)
}

/// Canonical run count of a state: the value that represents all counts that no token of at most
/// `max_token_bytes` bytes can tell apart. Each run spans at least one byte, so a token cannot
/// reach a bound that is more than `max_token_bytes` runs away. Only the distances to `min` and
/// `max` matter. Outside of blocks, nothing changes.
pub(super) fn canonical_runs(
    program: &Program,
    state: StateId,
    count: u32,
    max_token_bytes: u32,
) -> u32 {
    let Some(block) = program.block_of(state) else { return count };
    let far = max_token_bytes.saturating_add(1);
    let runs_to_max = block.max.map_or(u32::MAX, |max| max.saturating_sub(count));
    if runs_to_max <= far {
        return count;
    }
    let missing = block.min.saturating_sub(count);
    if missing > far {
        // The largest count from which no token can reach `min`.
        block.min - far - 1
    } else if missing > 0 {
        count
    } else if block.max.is_some() && !block.is_bounded_white_space {
        FAR_FROM_BOUNDS
    } else {
        block.min
    }
}

/// Canonical count of an item: runs of a block, budget, or register.
fn canonical_count(program: &Program, item: &Item, max_token_bytes: u32) -> u32 {
    let &Item { state, count, .. } = item;
    match (program.budget_meter(state), program.state(state).return_role) {
        _ if program.block_of(state).is_some() => {
            canonical_runs(program, state, count, max_token_bytes)
        }
        (Some(meter), _) => meter.canonical_count(count, max_token_bytes),
        (None, ReturnRole::Scope) => Registers::canonical(item.register()).raw(),
        (None, _) => 0,
    }
}
