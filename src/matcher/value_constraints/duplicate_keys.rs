//! Duplicate-key detection: no two members of one object have the same key.
//!
//! A *key* is an occurrence of a rule marked as such: the name of a member. The keys that
//! one occurrence of a rule calls must differ. Every JSON object has this constraint, so keys must
//! cost little: they are not stored in frames. Instead, a configuration is a pair of a *base*
//! configuration, which has no keys, and the id of a list. The list maps the frame of each
//! occurrence that has called keys to a register (see [`super::registers`]) of those keys and of
//! the open one.
//!
//! Transitions are therefore computed once, regardless of the keys. Before the first key of an
//! object, and after its end, a configuration is its own base. The mask of a configuration is that
//! of the base one, without the tokens that would end a duplicate key.
//!
//! A trie walk begins no keys ([`Parser::step`]); text does ([`Parser::step_tracking_keys`]).
//!
//! See `docs/internals/DISTINCT_VALUES.md`.

mod key_frames;

use smallvec::SmallVec;

use key_frames::FrameList;

use super::key_tracker::{KeyList, KeyStep};
use crate::compile::RegisterId;
use crate::fsm::ByteSet;
use crate::fuel;
use crate::ids::SpecialId;
use crate::matcher::limit::ParserLimit;
use crate::matcher::parser::Parser;
use crate::matcher::store::{ConfigId, FrameId, Item, KeyListId, Tracked};
use crate::matcher::symbol::Symbol;

/// Keys begin and end with this byte.
pub(crate) const QUOTE: u8 = b'"';

/// A configuration as a base configuration and a list.
struct SplitConfig {
    base: ConfigId,
    list: KeyList,
}

/// Whether a key is open or may begin at a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyStatus {
    /// No key is open or may begin.
    Outside,
    /// A key may begin. In a base configuration, one may also be open.
    MayBegin,
    /// A key is open.
    Open,
}

impl Parser {
    /// Whether a configuration has earlier keys or an open one.
    #[inline]
    pub(crate) fn tracks_keys(&self, config: ConfigId) -> bool {
        self.store().flags(config).key_list != KeyListId::EMPTY
    }

    /// As [`Parser::step`], but records the keys that begin here.
    #[inline]
    pub(crate) fn step_tracking_keys(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<ConfigId, ParserLimit> {
        if byte == QUOTE && !self.tracks_keys(config) && self.is_key_byte(config, byte) {
            return Ok(self.step_with_keys(config, byte)?.0);
        }
        self.step(config, byte)
    }

    /// As [`Parser::step_symbol`], but records the keys that begin here.
    pub(crate) fn step_symbol_tracking_keys(
        &mut self,
        config: ConfigId,
        symbol: Symbol,
    ) -> Result<ConfigId, ParserLimit> {
        match symbol {
            Symbol::Byte(byte) => self.step_tracking_keys(config, byte),
            Symbol::Special(special) => self.step_special(config, special),
        }
    }

    /// Reads bytes as long as they belong to a key. Interns nothing inside of keys. Returns the
    /// configuration after them, and their number.
    pub(in crate::matcher) fn step_over_keys(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let (mut split, mut accepted) = (self.split(config), 0);
        while let Some(&byte) = bytes.get(accepted)
            && split.base != ConfigId::DEAD
            && (byte == QUOTE || self.has_open_key(&split.list))
        {
            self.step_split(&mut split, byte)?;
            accepted += usize::from(split.base != ConfigId::DEAD);
        }
        Ok((self.join(split), accepted))
    }

    /// The cached configuration after the quote that begins a first key.
    #[inline]
    pub(in crate::matcher) fn cached_key_start(
        &self,
        config: ConfigId,
        byte: u8,
    ) -> Option<&ConfigId> {
        if byte != QUOTE || !self.program().has_unique_keys() || self.tracks_keys(config) {
            return None;
        }
        self.keys.steps.get(&(config, byte)).filter(|&&next| next != ConfigId::DEAD)
    }

    /// Whether a byte begins a key or belongs to one.
    pub(in crate::matcher) fn is_key_byte(&self, config: ConfigId, byte: u8) -> bool {
        match self.store().flags(config).key_list {
            KeyListId::EMPTY => {
                byte == QUOTE && self.program().has_unique_keys() && self.may_begin_key(config)
            }
            keys => byte == QUOTE || self.has_open_key(self.keys.list(keys)),
        }
    }

    /// The configuration after a byte, with keys recorded; and whether all bytes of the class lead
    /// there.
    pub(in crate::matcher) fn step_with_keys(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<(ConfigId, bool), ParserLimit> {
        if let Some(&cached) = self.keys.steps.get(&(config, byte)) {
            return Ok((cached, false));
        }
        let mut split = self.split(config);
        let distinguishes_bytes = self.step_split(&mut split, byte)?;
        let next = self.join(split);
        if distinguishes_bytes {
            self.keys.steps.insert((config, byte), next);
        }
        Ok((next, !distinguishes_bytes))
    }

    /// Splits a configuration.
    fn split(&self, config: ConfigId) -> SplitConfig {
        let store = self.store();
        SplitConfig {
            base: store.base(config),
            list: self.keys.list(store.flags(config).key_list).clone(),
        }
    }

    /// Interns a split configuration.
    fn join(&mut self, SplitConfig { base, list }: SplitConfig) -> ConfigId {
        if base == ConfigId::DEAD {
            return ConfigId::DEAD;
        }
        let keys = self.keys.intern_list(list);
        self.store_mut().with_key_list(base, keys)
    }

    /// Reads a byte. Returns false if all bytes of its class lead to the same configuration.
    fn step_split(&mut self, split: &mut SplitConfig, byte: u8) -> Result<bool, ParserLimit> {
        let SplitConfig { base, ref mut list } = *split;
        let duplicates = self.update_keys(list, base, byte)?;
        let distinguishes_bytes =
            byte == QUOTE || self.has_open_key(list) || self.compares_values(base);
        self.drop_ended_rules(list, base, Symbol::Byte(byte));
        let stepped =
            self.step_tracking_frames(list, duplicates, |parser, uncached| match uncached {
                true => {
                    let next = parser.compute_byte(base, byte)?;
                    parser.dead_unless_continuable(base, next)
                }
                false => parser.step(base, byte),
            });
        split.base = stepped?;
        self.retain_open(&mut split.list, base, split.base);
        Ok(distinguishes_bytes)
    }

    /// The configuration after a special token, for a configuration with keys.
    pub(in crate::matcher) fn step_special_with_keys(
        &mut self,
        config: ConfigId,
        special: SpecialId,
    ) -> Result<ConfigId, ParserLimit> {
        let SplitConfig { base, mut list } = self.split(config);
        self.drop_ended_rules(&mut list, base, Symbol::Special(special));
        let next =
            self.step_tracking_frames(&mut list, Vec::new(), |parser, uncached| match uncached {
                true => {
                    let next = parser.compute_special(base, special)?;
                    parser.dead_unless_continuable(base, next)
                }
                false => parser.step_special(base, special),
            })?;
        Ok(self.join_after_step(list, base, next))
    }

    /// The configuration after the end of a token, for a configuration with keys.
    pub(in crate::matcher) fn token_ended_with_keys(
        &mut self,
        config: ConfigId,
    ) -> Result<ConfigId, ParserLimit> {
        let SplitConfig { base, mut list } = self.split(config);
        let next =
            self.step_tracking_frames(&mut list, Vec::new(), |parser, uncached| match uncached {
                true => parser.compute_token_end(base),
                false => parser.token_ended(base),
            })?;
        Ok(self.join_after_step(list, base, next))
    }

    /// The union of two configurations that a token leads to: `a` as a text, and `b` as special
    /// tokens, which begin and end no keys. Where both have keys of a rule occurrence, those of `a`
    /// are all of those of `b` and perhaps more, so they are used: no duplicate key is allowed.
    pub(in crate::matcher) fn union_with_keys(&mut self, a: ConfigId, b: ConfigId) -> ConfigId {
        let store = self.store();
        let (mut list, others) =
            [a, b].map(|c| self.keys.list(store.flags(c).key_list).clone()).into();
        let (a, b) = (store.base(a), store.base(b));
        list.extend(
            others
                .into_iter()
                .filter(|(frame, _)| list.iter().all(|(listed, _)| listed != frame))
                .collect::<KeyList>(),
        );
        let both = self.union(a, b);
        let keys = self.keys.intern_list(list);
        self.store_mut().with_key_list(both, keys)
    }

    /// Steps from a base configuration, and updates the frames in the list. Keys with the frames
    /// in `duplicates` do not end in this step. `step` is told to bypass the transition cache
    /// where there are such keys, or frames in the list are rewritten.
    fn step_tracking_frames(
        &mut self,
        list: &mut KeyList,
        duplicates: Vec<FrameId>,
        step: impl FnOnce(&mut Parser, bool) -> Result<ConfigId, ParserLimit>,
    ) -> Result<ConfigId, ParserLimit> {
        let rewritable = Tracked::BUDGET.union(Tracked::SCOPE);
        let is_rewritten = |&(frame, _): &(FrameId, RegisterId)| {
            self.store().tracked(frame).intersects(rewritable)
        };
        let follows = list.iter().any(is_rewritten);
        if !follows && duplicates.is_empty() {
            return step(self, false);
        }
        let followed_frames = list.iter().filter(|_| follows).map(|&(frame, _)| (frame, frame));
        self.keys.current_step = KeyStep { followed_frames: followed_frames.collect(), duplicates };
        let next = step(self, true);
        let KeyStep { followed_frames, .. } = std::mem::take(&mut self.keys.current_step);
        if !follows {
            return next;
        }
        let old_list = std::mem::take(list);
        let register = |old: FrameId| {
            old_list.iter().find(|(frame, _)| *frame == old).map(|&(_, register)| register)
        };
        list.extend(
            followed_frames.into_iter().filter_map(|(old, new)| Some((new, register(old)?))),
        );
        list.sort_unstable();
        list.dedup_by_key(|(frame, _)| *frame);
        next
    }

    /// Extends open keys by a byte, and begins and ends keys at a quote. Returns the frames of
    /// duplicate keys, which may not end.
    fn update_keys(
        &mut self,
        list: &mut KeyList,
        base: ConfigId,
        byte: u8,
    ) -> Result<Vec<FrameId>, ParserLimit> {
        if byte == QUOTE {
            list.sort_unstable();
            let mut begun = KeyList::new();
            for frame in self.key_frames(base) {
                let at = list.binary_search_by_key(&frame, |&(listed, _)| listed);
                let register = at.map_or(RegisterId::EMPTY, |at| list[at].1);
                let registers = &mut self.store_mut().registers;
                if registers.status(register).element_open {
                    continue;
                }
                let new = registers.begin_element(register).unwrap_or(register);
                match at {
                    Ok(at) => list[at].1 = new,
                    Err(_) => begun.push((frame, new)),
                }
            }
            list.extend(begun);
        }
        let registers = &mut self.store_mut().registers;
        list.iter_mut()
            .for_each(|(_, register)| *register = registers.read_symbol(*register, byte.into()));
        let mut duplicates = Vec::new();
        if byte != QUOTE {
            return Ok(duplicates);
        }
        let ended_keys = self.ending_keys(base);
        for (frame, register) in list.iter_mut() {
            let first = ended_keys.partition_point(|(owner, _)| owner < frame);
            let ended = ended_keys[first..].iter().take_while(|(owner, _)| owner == frame);
            let mut ended = ended.map(|&(_, key)| key).peekable();
            if ended.peek().is_none() {
                continue;
            }
            let registers = &mut self.store_mut().registers;
            match registers.end_element(*register) {
                Some(new) => *register = new,
                None if std::mem::take(&mut registers.too_deep) => return Err(ParserLimit::Values),
                None => {
                    duplicates.extend(ended);
                    *register = registers.discard_element(*register);
                }
            }
        }
        Ok(duplicates)
    }

    /// Drops the keys of rules that call no more of them after a symbol, and of rules that cannot
    /// read it. The latter must go before the step: what is predicted after it may return to the
    /// same frame, as the next element of an array does, and would have the keys of this one.
    fn drop_ended_rules(&mut self, list: &mut KeyList, base: ConfigId, symbol: Symbol) {
        if list.is_empty() {
            return;
        }
        list.sort_unstable();
        let mut items = SmallVec::<[Item; 8]>::from(self.store().items(base));
        fuel::charge(items.len());
        let (mut all_read, mut ended) = (true, FrameList::new());
        for &Item { state, frame, .. } in &items {
            if list.binary_search_by_key(&frame, |&(owner, _)| owner).is_ok() {
                let program = self.program_mut();
                program.expand(state);
                let mut targets = symbol.targets(program, state).peekable();
                all_read &= targets.peek().is_some();
                if targets.any(|to| program.ends_unique_keys(state, to)) {
                    ended.push(frame);
                }
            }
        }
        ended.sort_unstable();
        list.retain(|(owner, _)| ended.binary_search(owner).is_err());
        if !all_read {
            let program = self.program_mut();
            items.retain(|item| {
                program.expand(item.state);
                symbol.targets(program, item.state).next().is_some()
            });
            self.retain_open_frames(list, &items);
        }
    }

    /// The configuration after a step; see [`Parser::retain_open`].
    fn join_after_step(&mut self, mut list: KeyList, before: ConfigId, base: ConfigId) -> ConfigId {
        self.retain_open(&mut list, before, base);
        self.join(SplitConfig { base, list })
    }

    /// Cleans up a list after a step: discards open keys that were abandoned, and the keys of
    /// rules that are no longer open.
    fn retain_open(&mut self, list: &mut KeyList, before: ConfigId, base: ConfigId) {
        if base == ConfigId::DEAD || self.has_same_frames(before, base) {
            return;
        }
        if self.has_open_key(list) {
            let key_frames = self.key_frames(base);
            let registers = &mut self.store_mut().registers;
            for (frame, register) in list.iter_mut() {
                if registers.status(*register).element_open
                    && key_frames.binary_search(frame).is_err()
                {
                    *register = registers.discard_element(*register);
                }
            }
        }
        list.retain(|(_, register)| *register != RegisterId::EMPTY);
        self.retain_open_frames(list, self.store().items(base));
    }

    /// Whether text that a rule with this frame reads cannot affect keys.
    pub(in crate::matcher) fn keeps_key_list(&self, config: ConfigId, frame: FrameId) -> bool {
        let list = self.keys.list(self.store().flags(config).key_list);
        !self.has_open_key(list) && list.iter().all(|(owner, _)| *owner != frame)
    }

    /// A base configuration with the keys of another configuration.
    pub(in crate::matcher) fn with_keys_of(
        &mut self,
        config: ConfigId,
        base: ConfigId,
    ) -> ConfigId {
        let keys = self.store().flags(config).key_list;
        self.store_mut().with_key_list(base, keys)
    }

    /// Whether a key is open.
    fn has_open_key(&self, list: &[(FrameId, RegisterId)]) -> bool {
        list.iter().any(|&(_, register)| self.store().registers.status(register).element_open)
    }

    /// Whether a key is open or may begin.
    pub(crate) fn key_status(&self, config: ConfigId) -> KeyStatus {
        let list = self.keys.list(self.store().flags(config).key_list);
        match self.may_begin_key(config) {
            true if self.has_open_key(list) => KeyStatus::Open,
            true => KeyStatus::MayBegin,
            false => KeyStatus::Outside,
        }
    }

    /// Whether a quote read here ends a key.
    pub(crate) fn quote_ends_key(&mut self, config: ConfigId) -> bool {
        !self.ending_keys(config).is_empty()
    }

    /// A superset of the bytes that keep a key equal to the beginning of an earlier one. Keys
    /// that have not begun count only if `begin`.
    pub(crate) fn bytes_matching_earlier_keys(&mut self, config: ConfigId, begin: bool) -> ByteSet {
        let keys = self.store().flags(config).key_list;
        let list = self.keys.list(keys);
        let begin = begin
            && list
                .iter()
                .any(|&(_, register)| !self.store().registers.status(register).element_open);
        let key_status = if begin { self.key_frames(config) } else { FrameList::new() };
        let mut out = ByteSet::EMPTY;
        for i in 0..self.keys.list(keys).len() {
            let (frame, register) = self.keys.list(keys)[i];
            let registers = &mut self.store_mut().registers;
            let register = match registers.status(register).element_open {
                true => register,
                false if key_status.binary_search(&frame).is_ok() => {
                    registers.begin_element(register).unwrap_or(register)
                }
                false => continue,
            };
            out = out.union(&registers.rival_bytes(register, true));
        }
        out
    }
}
