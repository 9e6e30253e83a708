//! Values that must differ, while parsing. A scope's register stands in the frame its rule returns through, so what begins, goes
//! on and ends rewrites frames; grammars without scopes never get here.
//!
//! A register is that of the innermost scope around an element. An element that ends as one there has been does not end. A text that
//! can no longer become such an element is *diverged*; a configuration all of whose items have another one under way is kept only
//! if a search finds a way on, so that no text that is allowed leads nowhere.

use std::collections::VecDeque;

use super::limit::ParserLimit;
use super::meter::{Change, Where, behind};
use super::parser::Parser;
use super::registers::{Outlook, Registers};
use super::store::{ConfigId, DEAD, Done, FrameId, Has, Item};
use crate::compile::{Behind, NONE, Role};
use crate::fsm::ByteSet;
use crate::hash::{HashMap, HashSet};

/// Most configurations that are looked at for a way on. Where that is too few, there is none.
const MAX_SEARCH: usize = 4096;
/// Most bytes of a text that is tried before others are searched for.
const MAX_TURN: usize = 100;
/// Zeros one after the other that a search reads.
const MAX_ZEROS: u32 = 4;

/// What is known of configurations in which values must differ.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    /// Where a byte leads, whether or not there is a way on from there.
    steps: HashMap<(ConfigId, u8), ConfigId>,
    /// Whether there is a way on, where a search was needed.
    live: HashMap<ConfigId, bool>,
}

impl Distinct {
    pub(super) fn bytes(&self) -> usize {
        self.steps.len() * 24 + self.live.len() * 16
    }
}

impl Parser {
    /// What there is to keep account of in a configuration.
    fn has(&self, config: ConfigId) -> Has {
        self.store().has_behind(self.store().items(config))
    }

    /// Whether values are compared here: masks are then the configuration's own.
    #[inline]
    pub(crate) fn compares(&self, config: ConfigId) -> bool {
        self.is_named(config)
            || !self.compiled().scopes.is_empty() && self.has(config).any(Has::VALUES)
    }

    /// Whether elements are compared or counted here.
    #[inline]
    pub(crate) fn is_scoped(&self, config: ConfigId) -> bool {
        !self.compiled().scopes.is_empty() && self.has(config).any(Has::SCOPE)
    }

    /// Whether all elements that are compared here are strings in quotes.
    pub(crate) fn compares_strings(&self, config: ConfigId) -> bool {
        !self.has(config).any(Has::CLOSED)
    }

    /// One item alone, with what follows its rule.
    pub(crate) fn single(&mut self, item: Item) -> ConfigId {
        self.interned_as(&[item], Done::default())
    }

    /// Whether an item's rule may call an element of a scope around it.
    pub(crate) fn exposes(&self, item: &Item) -> bool {
        self.compiled().scopes.exposes(self.program().rule(item.state))
    }

    /// Changes the items whose frames are the returns of an element: the innermost scope around each.
    fn renew(
        &mut self,
        items: &mut Vec<Item>,
        change: &dyn Fn(&mut Registers, u32) -> Option<u32>,
    ) {
        let at = Where { has: Has::SCOPE, nearest: true };
        let (store, program, reach) = self.parts();
        let mut map = |registers: &mut Registers, item: Item| {
            if program.state(item.state).behind != Behind::Scope {
                return Some(item);
            }
            change(registers, item.count).map(|count| Item { count, ..item })
        };
        let map: Change<'_> = &mut map;
        let inner: Vec<FrameId> =
            items.iter().filter(|i| !at.ends_at(program, i)).map(|i| i.frame).collect();
        let rewritten = store.rewrite(program, reach, (at, inner.into_iter()), map);
        items.retain_mut(|item| {
            let new = match at.ends_at(program, item) {
                true => map(&mut store.registers, *item),
                false => behind(&rewritten, *item),
            };
            new.is_some_and(|new| {
                *item = new;
                true
            })
        });
        self.names.carry(&rewritten);
    }

    /// An element is called, to return to these items. None are left where none may begin.
    pub(super) fn begin_element(&mut self, returns: &mut Vec<Item>) {
        self.renew(returns, &|registers, register| registers.begin(register));
    }

    /// What an element with this frame returns to. Nothing, where there has been one of the same value.
    pub(super) fn end_element(&mut self, frame: FrameId) -> Result<Vec<Item>, ParserLimit> {
        let mut returns = self.store().returns(frame).to_vec();
        self.renew(&mut returns, &|registers, register| registers.end(register));
        match std::mem::take(&mut self.parts().0.registers.too_deep) {
            true => Err(ParserLimit::Values),
            false => Ok(returns),
        }
    }

    /// Where a byte leads from a configuration in which values are compared.
    pub(super) fn step_compared(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<ConfigId, ParserLimit> {
        let next = self.step_on(config, byte)?;
        Ok(if self.is_live(next)? { next } else { DEAD })
    }

    /// The same, whether or not there is a way on from there.
    fn step_on(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if let Some(&known) = self.distinct.steps.get(&(config, byte)) {
            return Ok(known);
        }
        let next = self.read_byte(config, byte)?;
        self.distinct.steps.insert((config, byte), next);
        Ok(next)
    }

    /// Whether there is a way on, as far as elements under way are concerned.
    pub(super) fn is_live(&mut self, config: ConfigId) -> Result<bool, ParserLimit> {
        if self.goes_on(config) {
            return Ok(true);
        }
        if let Some(&known) = self.distinct.live.get(&config) {
            return Ok(known);
        }
        let live = self.turns_away(config, true)?
            || self.turns_away(config, false)?
            || self.finds_a_way(config)?;
        self.distinct.live.insert(config, live);
        Ok(live)
    }

    /// Whether one text, which turns away from what there has been as soon as it can, finds a way on. Then so does all of it. Where it
    /// cannot turn, it takes the first byte that it may, or the last, which is rather one that ends something: a list, or a
    /// number's digits.
    fn turns_away(&mut self, config: ConfigId, last: bool) -> Result<bool, ParserLimit> {
        let mut path = vec![config];
        while path.len() < MAX_TURN {
            let at = path[path.len() - 1];
            let (reads, towards) = (self.allowed(at), self.towards_rivals(at, true));
            let away = reads.intersect(&towards.complement());
            let text = |set: &ByteSet| set.intersect(&ByteSet::WHITE_SPACE.complement());
            let mut ways: Vec<u8> = text(&reads).iter().collect();
            if last {
                ways.reverse();
            }
            let mut next = DEAD;
            for byte in text(&away).iter().take(1).chain(ways) {
                next = self.step_on(at, byte)?;
                if next != DEAD {
                    break;
                }
            }
            if next != DEAD && (self.goes_on(next) || self.distinct.live.get(&next) == Some(&true))
            {
                self.distinct.live.extend(path.into_iter().map(|at| (at, true)));
                return Ok(true);
            }
            if next == DEAD || self.distinct.live.contains_key(&next) {
                return Ok(false);
            }
            path.push(next);
        }
        Ok(false)
    }

    /// Whether the text may end, or an item has no element under way that may still become one that there has been.
    fn goes_on(&self, config: ConfigId) -> bool {
        self.store().done(config) != Done::default()
            || config != DEAD && !self.has(config).is_stuck()
    }

    /// A search by length, along texts that may still become what there has been; behind white space only where nothing else is left, as
    /// there is no end of ways to write some; and once from configurations that are alike but for how what has been read is written. What
    /// is found behind a configuration is found from each one on the way, as that search
    /// is a part of this one.
    fn finds_a_way(&mut self, config: ConfigId) -> Result<bool, ParserLimit> {
        let mut seen: HashSet<(ConfigId, Vec<Outlook>)> = HashSet::default();
        let mut queue: VecDeque<(ConfigId, u32)> = [(config, 0)].into_iter().collect();
        let mut spaced: VecDeque<(ConfigId, u32)> = VecDeque::new();
        while let Some((at, zeros)) = queue.pop_front().or_else(|| spaced.pop_front()) {
            let mut next: Vec<(ConfigId, u32, bool)> = Vec::new();
            for byte in self.allowed(at).iter() {
                // There is no end of zeros that change no number.
                let zeros = if byte == b'0' { zeros + 1 } else { 0 };
                if zeros <= MAX_ZEROS {
                    next.push((
                        self.step_on(at, byte)?,
                        zeros,
                        ByteSet::WHITE_SPACE.contains(byte),
                    ));
                }
            }
            for special in self.specials(at).collect::<Vec<_>>() {
                next.push((self.read_special(at, special)?, 0, false));
            }
            for (next, zeros, space) in next {
                if next == DEAD {
                    continue;
                }
                if self.goes_on(next) {
                    return Ok(true);
                }
                if seen.insert((self.normal(next), self.outlooks(next))) {
                    if space { &mut spaced } else { &mut queue }.push_back((next, zeros));
                }
            }
            if seen.len() > MAX_SEARCH {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Bytes that may follow: exact also where values are compared. Cost: a step each there.
    pub(crate) fn follows(&mut self, config: ConfigId) -> Result<ByteSet, ParserLimit> {
        let mut set = self.allowed(config);
        if self.compares(config) {
            for byte in set.iter() {
                if self.step(config, byte)? == DEAD {
                    set.remove(byte);
                }
            }
        }
        Ok(set)
    }

    /// Bytes (and perhaps others, never none) with which an element under way may still become one that there has been, if one may. Of
    /// elements of which nothing has been read, only if `begin`.
    pub(crate) fn towards_rivals(&self, config: ConfigId, begin: bool) -> ByteSet {
        let mut out = ByteSet::EMPTY;
        self.each_rivalled(config, &mut |registers, register| {
            out = out.union(&registers.towards_rivals(register, begin));
        });
        out
    }

    /// What tells how elements under way go on that may still become others.
    fn outlooks(&self, config: ConfigId) -> Vec<Outlook> {
        let mut out = Vec::new();
        self.each_rivalled(config, &mut |registers, register| {
            out.extend(registers.outlook(register))
        });
        out
    }

    /// Visits the registers of scopes around, from the innermost, as far as elements may still become others.
    fn each_rivalled(&self, config: ConfigId, visit: &mut dyn FnMut(&Registers, u32)) {
        let mut seen: HashSet<FrameId> = HashSet::default();
        let mut queue: Vec<FrameId> = self.store().items(config).iter().map(|i| i.frame).collect();
        while let Some(frame) = queue.pop() {
            if !self.store().has(frame).any(Has::RIVALS) || !seen.insert(frame) {
                continue;
            }
            for item in self.store().returns(frame) {
                if self.program().state(item.state).behind == Behind::Scope {
                    visit(&self.store().registers, item.count);
                }
                queue.push(item.frame);
            }
        }
    }

    /// The configuration in which only such texts follow as need not be looked at one by one: nothing is compared, but in every
    /// scope only so many elements begin and end.
    pub(crate) fn limited(&mut self, config: ConfigId) -> ConfigId {
        let at = Where { has: Has::SCOPE, nearest: false };
        let items = self.store().items(config).to_vec();
        let (store, program, reach) = self.parts();
        let mut limit = |registers: &mut Registers, item: Item| {
            let open = match program.compiled().scopes.role(program.rule(item.state)) {
                Some(Role::Scope { open }) if program.state(item.state).behind == Behind::Scope => {
                    open
                }
                _ => return Some(item),
            };
            let count = if item.count == NONE { NONE } else { registers.limited(item.count, open) };
            Some(Item { count, ..item })
        };
        let rewritten =
            store.rewrite(program, reach, (at, items.iter().map(|i| i.frame)), &mut limit);
        let limited =
            self.interned(items.into_iter().filter_map(|i| behind(&rewritten, i)), config);
        self.normal(limited)
    }
}
