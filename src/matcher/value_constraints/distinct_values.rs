//! Distinct values (`uniqueItems`), enforced while parsing.
//!
//! A *scope* is the occurrence of a rule whose elements must differ; its register (see
//! [`super::registers`]) holds the values of its elements so far. The register is stored in the
//! item that an element returns to, inside the frame. Beginning, extending and ending an element
//! therefore rewrites frames (see [`crate::matcher::frame_rewrite`]). Grammars without scopes never
//! run this code.
//!
//! An element that ends with an earlier value is dropped. While an open element may still become
//! equal to an earlier one (a *rival*), a step is taken only if a search finds a continuation; so
//! no allowed text is a dead end. See `docs/internals/DISTINCT_VALUES.md`.

use std::collections::VecDeque;

use super::registers::{Registers, RivalState};
use crate::compile::{DistinctRole, Program, RegisterId, ReturnRole};
use crate::fsm::ByteSet;
use crate::hash::HashSet;
use crate::matcher::frame_rewrite::{RewriteScope, with_rewritten_frame};
use crate::matcher::limit::ParserLimit;
use crate::matcher::parser::Parser;
use crate::matcher::store::{ConfigId, FrameId, FrameWalk, Item, Tracked};

/// Most configurations that a search visits.
const MAX_SEARCHED_CONFIGS: usize = 4096;
/// Longest text of the greedy attempt before a search, in bytes.
const MAX_GREEDY_BYTES: usize = 100;
/// Most consecutive zeros that a search reads.
const MAX_ZEROS: u32 = 4;

impl Parser {
    /// The constraints that a configuration tracks.
    fn tracked(&self, config: ConfigId) -> Tracked {
        self.store().tracked_after(self.store().items(config))
    }

    /// Whether values or keys are compared here. Such a configuration needs a mask of its own.
    #[inline]
    pub(crate) fn compares_values(&self, config: ConfigId) -> bool {
        self.tracks_keys(config)
            || !self.compiled().scopes.is_empty()
                && self.tracked(config).intersects(Tracked::VALUES)
    }

    /// Whether elements are compared or counted here.
    #[inline]
    pub(crate) fn has_scope(&self, config: ConfigId) -> bool {
        !self.compiled().scopes.is_empty() && self.tracked(config).intersects(Tracked::SCOPE)
    }

    /// Whether all compared elements are quoted strings without a length bound.
    pub(crate) fn compares_strings(&self, config: ConfigId) -> bool {
        !self.tracked(config).intersects(Tracked::EXHAUSTIBLE_SCOPE)
    }

    /// Whether an item's rule may call an element of a scope outside the rule.
    pub(crate) fn may_call_outer_element(&self, item: &Item) -> bool {
        self.compiled().scopes.may_call_outer_element(self.program().rule(item.state))
    }

    /// Maps the registers of the innermost scope around each item; `change` gives `None` to drop an
    /// item.
    fn update_scopes(
        &mut self,
        items: &mut Vec<Item>,
        change: &dyn Fn(&mut Registers, RegisterId) -> Option<RegisterId>,
    ) {
        let scope = RewriteScope { tracked: Tracked::SCOPE, stops_at_scope: true };
        let mut map = |program: &Program, registers: &mut Registers, item: Item| {
            if program.state(item.state).return_role != ReturnRole::Scope {
                return Some(item);
            }
            change(registers, item.register()).map(|register| item.with_register(register))
        };
        let program = self.program();
        let inner: Vec<FrameId> =
            items.iter().filter(|i| !scope.is_boundary(program, i)).map(|i| i.frame).collect();
        let rewritten = self.rewrite_frames(scope, inner, &mut map);
        let (store, program, _) = self.store_and_program();
        items.retain_mut(|item| {
            let new = match scope.is_boundary(program, item) {
                true => map(program, &mut store.registers, *item),
                false => with_rewritten_frame(&rewritten, *item),
            };
            new.map(|new| *item = new).is_some()
        });
    }

    /// An element begins and will return to these items. Removes the items whose scope allows no
    /// further element.
    pub(in crate::matcher) fn begin_element(&mut self, returns: &mut Vec<Item>) {
        self.update_scopes(returns, &|registers, register| registers.begin_element(register));
    }

    /// The items that an element with this frame returns to; none if the value is not new.
    pub(in crate::matcher) fn end_element(
        &mut self,
        frame: FrameId,
    ) -> Result<Vec<Item>, ParserLimit> {
        let mut returns = self.store().returns(frame).to_vec();
        self.update_scopes(&mut returns, &|registers, register| registers.end_element(register));
        match std::mem::take(&mut self.store_mut().registers.too_deep) {
            true => Err(ParserLimit::Values),
            false => Ok(returns),
        }
    }

    /// The configuration after a byte, if it has a continuation; for configurations that compare
    /// values.
    pub(in crate::matcher) fn step_comparing_values(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<ConfigId, ParserLimit> {
        let next = self.step_unchecked(config, byte)?;
        self.dead_unless_continuable(config, next)
    }

    /// `next`, which follows `config`; or [`ConfigId::DEAD`] if values are compared and none can
    /// follow.
    pub(in crate::matcher) fn dead_unless_continuable(
        &mut self,
        config: ConfigId,
        next: ConfigId,
    ) -> Result<ConfigId, ParserLimit> {
        let is_live = !self.compares_values(config) || self.has_continuation(next)?;
        Ok(if is_live { next } else { ConfigId::DEAD })
    }

    /// The configuration after a byte, whether or not it has a continuation.
    fn step_unchecked(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if let Some(&cached) = self.distinct_values.steps.get(&(config, byte)) {
            return Ok(cached);
        }
        let next = self.compute_byte(config, byte)?;
        self.distinct_values.steps.insert((config, byte), next);
        Ok(next)
    }

    /// Whether the open elements of a configuration can still become distinct values.
    fn has_continuation(&mut self, config: ConfigId) -> Result<bool, ParserLimit> {
        if self.is_trivially_live(config) {
            return Ok(true);
        }
        if let Some(&cached) = self.distinct_values.has_continuation.get(&config) {
            return Ok(cached);
        }
        let live = self.diverges_greedily(config, true)?
            || self.diverges_greedily(config, false)?
            || self.search_continuation(config)?;
        self.distinct_values.has_continuation.insert(config, live);
        Ok(live)
    }

    /// Looks for a continuation greedily, along one text that leaves the rivals as soon as it can.
    /// Otherwise the text takes the first allowed byte or, with `from_last`, the last one, which
    /// tends to end a container or a number. If the text succeeds, all its configurations have a
    /// continuation.
    fn diverges_greedily(
        &mut self,
        config: ConfigId,
        from_last: bool,
    ) -> Result<bool, ParserLimit> {
        let mut path = vec![config];
        while path.len() < MAX_GREEDY_BYTES {
            let at = path[path.len() - 1];
            let (reads, towards) = (self.allowed(at), self.bytes_matching_earlier_values(at, true));
            let away = reads.intersect(&towards.complement());
            let text = |set: &ByteSet| set.intersect(&ByteSet::WHITE_SPACE.complement());
            let mut candidates: Vec<u8> = text(&reads).iter().collect();
            if from_last {
                candidates.reverse();
            }
            let mut next = ConfigId::DEAD;
            for byte in text(&away).iter().take(1).chain(candidates) {
                next = self.step_unchecked(at, byte)?;
                if next != ConfigId::DEAD {
                    break;
                }
            }
            if next != ConfigId::DEAD
                && (self.is_trivially_live(next)
                    || self.distinct_values.has_continuation.get(&next) == Some(&true))
            {
                self.distinct_values.has_continuation.extend(path.into_iter().map(|at| (at, true)));
                return Ok(true);
            }
            if next == ConfigId::DEAD || self.distinct_values.has_continuation.contains_key(&next) {
                return Ok(false);
            }
            path.push(next);
        }
        Ok(false)
    }

    /// Whether the text may end here, or some item has no open element with rivals.
    fn is_trivially_live(&self, config: ConfigId) -> bool {
        let flags = self.store().flags(config);
        flags.start_completed
            || flags.isolated_rule_ended()
            || config != ConfigId::DEAD && !self.tracked(config).is_stuck()
    }

    /// Looks for a continuation breadth first, along texts that may still equal a rival. White
    /// space is tried last, because it can repeat without end. Configurations that differ only in
    /// the spelling of what was read are visited once. A search that visits
    /// [`MAX_SEARCHED_CONFIGS`] configurations has found none: the value is rejected, although one
    /// may exist. An error would end the sequence, where other values are often possible.
    fn search_continuation(&mut self, config: ConfigId) -> Result<bool, ParserLimit> {
        let mut seen: HashSet<(ConfigId, Vec<RivalState>)> = HashSet::default();
        let mut queue: VecDeque<(ConfigId, u32)> = [(config, 0)].into_iter().collect();
        let mut after_space: VecDeque<(ConfigId, u32)> = VecDeque::new();
        while let Some((at, zeros)) = queue.pop_front().or_else(|| after_space.pop_front()) {
            let mut next: Vec<(ConfigId, u32, bool)> = Vec::new();
            for byte in self.allowed(at).iter() {
                // Trailing zeros can repeat without end and need not change a number.
                let zeros = if byte == b'0' { zeros + 1 } else { 0 };
                if zeros <= MAX_ZEROS {
                    next.push((
                        self.step_unchecked(at, byte)?,
                        zeros,
                        ByteSet::WHITE_SPACE.contains(byte),
                    ));
                }
            }
            for special in self.specials(at).collect::<Vec<_>>() {
                next.push((self.compute_special(at, special)?, 0, false));
            }
            for (next, zeros, space) in next {
                if next == ConfigId::DEAD {
                    continue;
                }
                if self.is_trivially_live(next) {
                    return Ok(true);
                }
                if seen.insert((self.canonical(next), self.rival_states(next))) {
                    if space { &mut after_space } else { &mut queue }.push_back((next, zeros));
                }
            }
            if seen.len() > MAX_SEARCHED_CONFIGS {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// The bytes that may follow. Exact, also where values are compared. Cost: one step for each
    /// byte there.
    pub(crate) fn exact_allowed(&mut self, config: ConfigId) -> Result<ByteSet, ParserLimit> {
        self.exact_allowed_up_to(config, usize::MAX)
    }

    /// As [`Parser::exact_allowed`]; where values are compared, only the first `most` bytes. Cost
    /// there: one step for each of these, and for each byte before them that may not follow.
    pub(crate) fn exact_allowed_up_to(
        &mut self,
        config: ConfigId,
        most: usize,
    ) -> Result<ByteSet, ParserLimit> {
        let all = self.allowed(config);
        if !self.compares_values(config) {
            return Ok(all);
        }
        let mut exact = ByteSet::EMPTY;
        for byte in all.iter() {
            if exact.len() == most {
                break;
            }
            if self.step(config, byte)? != ConfigId::DEAD {
                exact.insert(byte);
            }
        }
        Ok(exact)
    }

    /// A superset of the bytes that keep an open element equal to the beginning of a rival; empty
    /// if there is no rival. Elements without any byte count only if `begin`.
    pub(crate) fn bytes_matching_earlier_values(&self, config: ConfigId, begin: bool) -> ByteSet {
        let mut out = ByteSet::EMPTY;
        self.visit_rivalled_registers(config, &mut |registers, register| {
            out = out.union(&registers.rival_bytes(register, begin));
        });
        out
    }

    /// The rival states of all open elements; equal states have equal continuations.
    fn rival_states(&self, config: ConfigId) -> Vec<RivalState> {
        let mut out = Vec::new();
        self.visit_rivalled_registers(config, &mut |registers, register| {
            out.extend(registers.rival_state(register))
        });
        out
    }

    /// Visits the registers of scopes, innermost first, as far as open elements have rivals.
    fn visit_rivalled_registers(
        &self,
        config: ConfigId,
        visit: &mut dyn FnMut(&Registers, RegisterId),
    ) {
        let store = self.store();
        let mut walk = store.walk(&[]);
        let enter = |walk: &mut FrameWalk<'_>, frame| {
            if store.tracked(frame).intersects(Tracked::RIVALS) {
                walk.enter(frame);
            }
        };
        store.items(config).iter().for_each(|item| enter(&mut walk, item.frame));
        while let Some(item) = walk.next_item() {
            if self.program().state(item.state).return_role == ReturnRole::Scope {
                visit(&store.registers, item.register());
            }
            enter(&mut walk, item.frame);
        }
    }

    /// The configuration that compares nothing, but allows only so many elements to begin and end
    /// as tokens that need no individual check; see [`Registers::counting_register`].
    pub(crate) fn with_counting_scopes(&mut self, config: ConfigId) -> ConfigId {
        let scope = RewriteScope { tracked: Tracked::SCOPE, stops_at_scope: false };
        let mut limit = |program: &Program, registers: &mut Registers, item: Item| {
            let inexhaustible = match program.compiled().scopes.role(program.rule(item.state)) {
                Some(DistinctRole::Scope { inexhaustible })
                    if program.state(item.state).return_role == ReturnRole::Scope =>
                {
                    inexhaustible
                }
                _ => return Some(item),
            };
            Some(item.with_register(registers.counting_register(item.register(), inexhaustible)))
        };
        let rewritten = self.rewrite_frames(scope, self.store().frames_of(config), &mut limit);
        let counting = self.store_mut().with_rewritten_frames(config, &rewritten);
        self.canonical(counting)
    }
}
