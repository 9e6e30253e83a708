//! Duplicate-key detection: no two members of one object have the same name.
//!
//! A *name* is an occurrence of a rule marked as such: the text of a member's name. The names that
//! one occurrence of a rule calls must differ. Every JSON object has this constraint, so names must
//! cost little: they are not stored in frames. Instead, a configuration is a pair of a *plain*
//! configuration, which has no names, and the id of a list. The list maps the frame of each
//! occurrence that has called names to a register (see [`super::registers`]) of those names and of
//! the open one.
//!
//! Transitions are therefore computed once, whatever the names were. Before the first name of an
//! object, and after its end, configurations are plain. The mask of a configuration is that of the
//! plain one, without the tokens that would end a duplicate name.
//!
//! A trie walk begins no names ([`Parser::step`]); text does ([`Parser::advance`]).
//!
//! See `docs/internals/DISTINCT_VALUES.md`.

mod naming_frames;

use smallvec::SmallVec;

use naming_frames::FrameList;

use super::name_tracker::{NameList, TokenLookup};
use crate::compile::EMPTY_REGISTER;
use crate::fsm::ByteSet;
use crate::matcher::limit::ParserLimit;
use crate::matcher::parser::Parser;
use crate::matcher::store::{ConfigId, DEAD, FrameId, Item, Tracked};
use crate::matcher::symbol::Symbol;

/// Names begin and end with this byte.
const QUOTE: u8 = b'"';

/// A configuration as a plain configuration and a list.
struct SplitConfig {
    plain: ConfigId,
    list: NameList,
}

/// Whether a name is open or may begin at a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NameStatus {
    /// No name is open or may begin.
    Outside,
    /// A name may begin. In a plain configuration, one may also be open.
    MayBegin,
    /// A name is open.
    Open,
}

impl Parser {
    /// Whether a configuration has earlier names or an open one.
    #[inline]
    pub(crate) fn has_names(&self, config: ConfigId) -> bool {
        self.store().flags(config).names != 0
    }

    /// As [`Parser::step`], but records the names that begin here.
    #[inline]
    pub(crate) fn advance(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if byte == QUOTE && !self.has_names(config) && self.is_name_byte(config, byte) {
            return Ok(self.step_with_names(config, byte)?.0);
        }
        self.step(config, byte)
    }

    /// As [`Parser::step_symbol`], but records the names that begin here.
    pub(crate) fn advance_symbol(
        &mut self,
        config: ConfigId,
        symbol: Symbol,
    ) -> Result<ConfigId, ParserLimit> {
        match symbol {
            Symbol::Byte(byte) => self.advance(config, byte),
            Symbol::Special(special) => self.step_special(config, special),
        }
    }

    /// As [`Parser::advance_over`], and caches every transition.
    pub(crate) fn advance_by_byte(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let mut current = config;
        for (accepted, &byte) in bytes.iter().enumerate() {
            current = self.advance(current, byte)?;
            if current == DEAD {
                return Ok((DEAD, accepted));
            }
        }
        Ok((current, bytes.len()))
    }

    /// The configuration after a token, and the number of bytes that were accepted. Equal to
    /// [`Parser::advance`] byte by byte, but interns nothing inside of names.
    pub(crate) fn advance_over(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let (mut current, mut accepted) = (config, 0);
        while current != DEAD
            && let Some(&byte) = bytes.get(accepted)
        {
            // Cached transitions ignore names; only a quote can begin one.
            if byte != QUOTE
                && let Some(next) = self.cached_step(current, byte)
            {
                current = next;
                accepted += usize::from(current != DEAD);
            } else if accepted == 0
                && let Some(next) = self.step_within_block(current, bytes)?
            {
                return Ok((next, bytes.len()));
            } else if let Some(&next) = self.cached_name_start(current, byte) {
                current = next;
                accepted += 1;
            } else if self.is_name_byte(current, byte) {
                if let Some(&next) = self.names.tokens.get(&TokenLookup(config, bytes)) {
                    return Ok((next, bytes.len()));
                }
                let mut split = self.split(current);
                while let Some(&byte) = bytes.get(accepted)
                    && split.plain != DEAD
                    && (byte == QUOTE || self.has_open_name(&split.list))
                {
                    match self.read_first_name(&mut split, &bytes[accepted..])? {
                        0 => {
                            self.step_split(&mut split, byte)?;
                            accepted += usize::from(split.plain != DEAD);
                        }
                        read => accepted += read,
                    }
                }
                current = self.join(split);
            } else {
                current = self.step(current, byte)?;
                accepted += usize::from(current != DEAD);
            }
        }
        Ok((current, accepted))
    }

    /// As [`Parser::advance_over`] followed by [`Parser::token_ended`]. Caches the result if it has
    /// names.
    pub(crate) fn memoise_token(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<ConfigId, ParserLimit> {
        let (next, _) = self.advance_over(config, bytes)?;
        if next != DEAD && self.has_names(next) {
            self.names.tokens.insert((config, bytes.into()), next);
        }
        self.token_ended(next)
    }

    /// The cached configuration after the quote that begins a first name.
    #[inline]
    fn cached_name_start(&self, config: ConfigId, byte: u8) -> Option<&ConfigId> {
        if byte != QUOTE || !self.program().has_unique_names() || self.has_names(config) {
            return None;
        }
        self.names.steps.get(&(config, byte)).filter(|&&next| next != DEAD)
    }

    /// Whether a byte begins a name or belongs to one.
    fn is_name_byte(&self, config: ConfigId, byte: u8) -> bool {
        match self.store().flags(config).names {
            0 => byte == QUOTE && self.program().has_unique_names() && self.may_begin_name(config),
            names => byte == QUOTE || self.has_open_name(&self.names.lists[names as usize]),
        }
    }

    /// The configuration after a byte, with names recorded; and whether all bytes of the class lead
    /// there.
    pub(in crate::matcher) fn step_with_names(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<(ConfigId, bool), ParserLimit> {
        if let Some(&cached) = self.names.steps.get(&(config, byte)) {
            return Ok((cached, false));
        }
        let mut split = self.split(config);
        let distinguishes_bytes = self.step_split(&mut split, byte)?;
        let next = self.join(split);
        if distinguishes_bytes {
            self.names.steps.insert((config, byte), next);
        }
        Ok((next, !distinguishes_bytes))
    }

    /// Splits a configuration.
    fn split(&self, config: ConfigId) -> SplitConfig {
        let store = self.store();
        SplitConfig { plain: store.plain(config), list: self.names.list(store.flags(config).names) }
    }

    /// Interns a split configuration.
    fn join(&mut self, SplitConfig { plain, list }: SplitConfig) -> ConfigId {
        if plain == DEAD {
            return DEAD;
        }
        let names = self.names.intern_list(list);
        self.store_mut().with_name_list(plain, names)
    }

    /// Reads the bytes of the first name of a rule, as long as they only extend the name. Returns
    /// their number.
    fn read_first_name(
        &mut self,
        split: &mut SplitConfig,
        bytes: &[u8],
    ) -> Result<usize, ParserLimit> {
        let [(frame, register)] = split.list[..] else { return Ok(0) };
        let rewritable = Tracked::BUDGET.union(Tracked::SCOPE);
        let store = self.store();
        if !store.registers.is_first_element(register)
            || store.tracked(frame).intersects(rewritable)
            || self.compares_values(split.plain)
        {
            return Ok(0);
        }
        let mut read = 0;
        for &byte in bytes.iter().take_while(|&&byte| byte != QUOTE) {
            let next = self.step(split.plain, byte)?;
            if next == DEAD
                || !self.has_same_frames(split.plain, next)
                || self.may_end_naming(split.plain, frame, byte)
            {
                break;
            }
            split.plain = next;
            read += 1;
        }
        if read > 0 {
            split.list[0].1 = self.store_mut().registers.read_bytes(register, &bytes[..read]);
        }
        Ok(read)
    }

    /// Whether a byte leads to a state after which the rule with this frame calls no more names.
    fn may_end_naming(&self, plain: ConfigId, frame: FrameId, byte: u8) -> bool {
        let program = self.program();
        self.store().items(plain).iter().filter(|item| item.frame == frame).any(|item| {
            let mut targets = Symbol::Byte(byte).targets(program, item.state);
            targets.any(|to| program.ends_unique_names(item.state, to))
        })
    }

    /// Reads a byte. Returns false if all bytes of its class lead to the same configuration.
    fn step_split(&mut self, split: &mut SplitConfig, byte: u8) -> Result<bool, ParserLimit> {
        let SplitConfig { plain, ref mut list } = *split;
        let duplicates = self.update_names(list, plain, byte)?;
        let distinguishes_bytes =
            byte == QUOTE || self.has_open_name(list) || self.compares_values(plain);
        self.drop_ended_rules(list, plain, Symbol::Byte(byte));
        let rewrites = !duplicates.is_empty();
        self.names.duplicates = duplicates;
        let stepped =
            self.step_tracking_frames(list, rewrites, |parser, uncached| match uncached {
                true => {
                    let next = parser.compute_byte(plain, byte)?;
                    parser.if_live(plain, next)
                }
                false => parser.step(plain, byte),
            });
        self.names.duplicates.clear();
        split.plain = stepped?;
        self.retain_open(&mut split.list, (plain, split.plain));
        Ok(distinguishes_bytes)
    }

    /// The configuration after a special token, for a configuration with names.
    pub(in crate::matcher) fn step_special_with_names(
        &mut self,
        config: ConfigId,
        special: u32,
    ) -> Result<ConfigId, ParserLimit> {
        let SplitConfig { plain, mut list } = self.split(config);
        self.drop_ended_rules(&mut list, plain, Symbol::Special(special));
        let next =
            self.step_tracking_frames(&mut list, false, |parser, uncached| match uncached {
                true => parser.compute_special(plain, special),
                false => parser.step_special(plain, special),
            })?;
        Ok(self.join_after_step(list, (plain, next)))
    }

    /// The configuration after the end of a token, for a configuration with names.
    pub(in crate::matcher) fn token_ended_with_names(
        &mut self,
        config: ConfigId,
    ) -> Result<ConfigId, ParserLimit> {
        let SplitConfig { plain, mut list } = self.split(config);
        let next =
            self.step_tracking_frames(&mut list, false, |parser, uncached| match uncached {
                true => parser.compute_token_end(plain),
                false => parser.token_ended(plain),
            })?;
        Ok(self.join_after_step(list, (plain, next)))
    }

    /// The union of two configurations. Where both have names of a rule occurrence, those of the
    /// first one are used.
    pub(in crate::matcher) fn union_with_names(&mut self, a: ConfigId, b: ConfigId) -> ConfigId {
        let store = self.store();
        let (mut list, others) = [a, b].map(|c| self.names.list(store.flags(c).names)).into();
        let (a, b) = (store.plain(a), store.plain(b));
        list.extend(
            others
                .into_iter()
                .filter(|(frame, _)| list.iter().all(|(listed, _)| listed != frame))
                .collect::<NameList>(),
        );
        let both = self.union(a, b);
        let names = self.names.intern_list(list);
        self.store_mut().with_name_list(both, names)
    }

    /// Steps from a plain configuration, and updates the frames in the list. `step` is told to
    /// bypass the transition cache where frames in the list are rewritten, or if `uncached`.
    fn step_tracking_frames(
        &mut self,
        list: &mut NameList,
        uncached: bool,
        step: impl FnOnce(&mut Parser, bool) -> Result<ConfigId, ParserLimit>,
    ) -> Result<ConfigId, ParserLimit> {
        let rewritable = Tracked::BUDGET.union(Tracked::SCOPE);
        if !list.iter().any(|&(frame, _)| self.store().tracked(frame).intersects(rewritable)) {
            return step(self, uncached);
        }
        self.names.followed_frames = list.iter().map(|&(frame, _)| (frame, frame)).collect();
        let next = step(self, true);
        let old_list = std::mem::take(list);
        let register = |old: FrameId| {
            old_list.iter().find(|(frame, _)| *frame == old).map(|&(_, register)| register)
        };
        list.extend(
            self.names
                .followed_frames
                .drain(..)
                .filter_map(|(old, current)| Some((current, register(old)?))),
        );
        list.sort_unstable();
        list.dedup_by_key(|(frame, _)| *frame);
        next
    }

    /// Extends open names by a byte, and begins and ends names at a quote. Returns the frames of
    /// duplicate names, which may not end.
    fn update_names(
        &mut self,
        list: &mut NameList,
        plain: ConfigId,
        byte: u8,
    ) -> Result<Vec<FrameId>, ParserLimit> {
        if byte == QUOTE {
            for frame in self.naming_frames(plain) {
                let register = list
                    .iter()
                    .find(|(listed, _)| *listed == frame)
                    .map_or(EMPTY_REGISTER, |&(_, register)| register);
                if !self.store().registers.status(register).element_open {
                    let begun =
                        self.store_mut().registers.begin_element(register).unwrap_or(register);
                    list.retain(|(listed, _)| *listed != frame);
                    list.push((frame, begun));
                }
            }
        }
        let registers = &mut self.store_mut().registers;
        list.iter_mut().for_each(|(_, register)| {
            *register = registers.read_symbol(*register, u32::from(byte))
        });
        let mut duplicates = Vec::new();
        if byte != QUOTE {
            return Ok(duplicates);
        }
        let ended_names = self.ending_names(plain);
        for (frame, register) in list.iter_mut() {
            let mut ended = ended_names
                .iter()
                .filter(|(_, owner)| owner == frame)
                .map(|&(name, _)| name)
                .peekable();
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

    /// Drops the names of rules that call no more of them after a symbol.
    fn drop_ended_rules(&mut self, list: &mut NameList, plain: ConfigId, symbol: Symbol) {
        if list.is_empty() {
            return;
        }
        for Item { state, frame, .. } in SmallVec::<[Item; 8]>::from(self.store().items(plain)) {
            if list.iter().any(|(owner, _)| *owner == frame) {
                let program = self.program_mut();
                program.expand(state);
                let mut targets = symbol.targets(program, state);
                if targets.any(|to| program.ends_unique_names(state, to)) {
                    list.retain(|(owner, _)| *owner != frame);
                }
            }
        }
    }

    /// The configuration after a step; see [`Parser::retain_open`].
    fn join_after_step(
        &mut self,
        mut list: NameList,
        (before, plain): (ConfigId, ConfigId),
    ) -> ConfigId {
        self.retain_open(&mut list, (before, plain));
        self.join(SplitConfig { plain, list })
    }

    /// Cleans up a list after a step: discards open names that were abandoned, and the names of
    /// rules that are no longer open.
    fn retain_open(&mut self, list: &mut NameList, (before, plain): (ConfigId, ConfigId)) {
        if plain == DEAD || self.has_same_frames(before, plain) {
            return;
        }
        if self.has_open_name(list) {
            let naming = self.naming_frames(plain);
            let registers = &mut self.store_mut().registers;
            for (frame, register) in list.iter_mut() {
                if registers.status(*register).element_open && !naming.contains(frame) {
                    *register = registers.discard_element(*register);
                }
            }
        }
        list.retain(|(_, register)| *register != EMPTY_REGISTER);
        self.retain_open_frames(list, plain);
    }

    /// Whether text that a rule with this frame reads cannot affect names.
    pub(in crate::matcher) fn leaves_names_alone(&self, config: ConfigId, frame: FrameId) -> bool {
        let list = &self.names.lists[self.store().flags(config).names as usize];
        !self.has_open_name(list) && list.iter().all(|(owner, _)| *owner != frame)
    }

    /// A plain configuration with the names of another configuration.
    pub(in crate::matcher) fn with_names_of(
        &mut self,
        config: ConfigId,
        plain: ConfigId,
    ) -> ConfigId {
        let names = self.store().flags(config).names;
        self.store_mut().with_name_list(plain, names)
    }

    /// Whether a name is open.
    fn has_open_name(&self, list: &[(FrameId, u32)]) -> bool {
        list.iter().any(|&(_, register)| self.store().registers.status(register).element_open)
    }

    /// Whether a name is open or may begin.
    pub(crate) fn name_status(&self, config: ConfigId) -> NameStatus {
        let list = &self.names.lists[self.store().flags(config).names as usize];
        match self.may_begin_name(config) {
            true if self.has_open_name(list) => NameStatus::Open,
            true => NameStatus::MayBegin,
            false => NameStatus::Outside,
        }
    }

    /// Whether a quote read here ends a name.
    pub(crate) fn quote_ends_name(&mut self, config: ConfigId) -> bool {
        !self.ending_names(config).is_empty()
    }

    /// A superset of the bytes that keep a name equal to the beginning of an earlier one. Names
    /// that have not begun count only if `begin`.
    pub(crate) fn bytes_towards_duplicates(&mut self, config: ConfigId, begin: bool) -> ByteSet {
        let names = self.store().flags(config).names as usize;
        let list = &self.names.lists[names];
        let begin = begin
            && list
                .iter()
                .any(|&(_, register)| !self.store().registers.status(register).element_open);
        let naming = if begin { self.naming_frames(config) } else { FrameList::new() };
        let mut out = ByteSet::EMPTY;
        for i in 0..self.names.lists[names].len() {
            let (frame, register) = self.names.lists[names][i];
            let registers = &mut self.store_mut().registers;
            let register = match registers.status(register).element_open {
                true => register,
                false if naming.contains(&frame) => {
                    registers.begin_element(register).unwrap_or(register)
                }
                false => continue,
            };
            out = out.union(&registers.towards_rivals(register, true));
        }
        out
    }
}
