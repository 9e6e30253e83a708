//! Self-loops of configurations, and similar states.
//!
//! A trie walk can accept a whole subtree if all its bytes lead a configuration back to itself.
//! Mask entries of a state can be derived from those of a similar state if most bytes lead both to
//! the same configuration. All answers are memoised.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::query_caches::SelfLoops;
use super::store::{ConfigId, FrameId, Item};
use crate::compile::BlockId;
use crate::fsm::{CODE_POINTS, NON_SPACE_CODE_POINTS, kind_bytes, shape_bytes, utf8};

/// Fewest bytes that count as a majority; text in most languages uses few other bytes.
const MIN_MAJORITY: u32 = 48;
/// Most items that are tried as the similar item.
const MAX_CANDIDATES: usize = 8;
/// Most configurations inside of code points that are visited.
const MAX_INSIDE_CONFIGS: usize = 32;

/// Smallest subtree, in trie nodes, for which self-loops are tested.
pub(crate) const MIN_SKIP_NODES: u32 = 4;

/// Whether a step may close a loop: the configuration is unchanged, or the byte may end a code
/// point that began at the same configuration.
#[inline]
pub(crate) fn may_be_self_loop(before: ConfigId, config: ConfigId, byte: u8) -> bool {
    before == config || matches!(byte, 0x80..0xC0)
}

impl Parser {
    /// A similar item for an isolated item (or for several with the same end): most bytes lead both
    /// to the same configuration. An example is a name that is not declared, which is like free
    /// text except for a few continuations. The result has no similar item itself.
    pub(crate) fn similar_item(&mut self, isolated: ConfigId) -> Result<Option<Item>, ParserLimit> {
        let [ref others @ .., item] = *self.store().items(isolated) else { return Ok(None) };
        let single = others.is_empty();
        let Some(next) = self.majority_target(isolated)? else { return Ok(None) };
        if self.store().flags(next).after_trigger {
            return Ok(None);
        }
        // A dispatch called from here continues after its triggers; in isolation it does not.
        let is_comparable = |i: &&Item| {
            i.frame == item.frame
                && self.program().state(i.state).block == BlockId::NONE
                && (item.frame == FrameId::ISOLATED_DISPATCH
                    || !self.program().is_dispatch(i.state))
        };
        let candidates: Vec<Item> = self
            .store()
            .items(next)
            .iter()
            .filter(is_comparable)
            .take(MAX_CANDIDATES)
            .copied()
            .collect();
        for candidate in candidates {
            // The item loops itself, so it is derived from no other.
            if single && candidate == item {
                return Ok(None);
            }
            let other = self.isolated(candidate);
            if self.majority_target(other)? == Some(next) {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// The configuration that at least [`MIN_MAJORITY`] bytes lead to.
    fn majority_target(&mut self, config: ConfigId) -> Result<Option<ConfigId>, ParserLimit> {
        let mut counts: Vec<(ConfigId, u32)> = Vec::new();
        for byte in self.allowed(config).iter() {
            let next = self.step(config, byte)?;
            match counts.iter_mut().find(|(c, _)| *c == next) {
                Some((_, n)) => *n += 1,
                None => counts.push((next, 1)),
            }
        }
        Ok(counts
            .into_iter()
            .filter(|&(_, n)| n >= MIN_MAJORITY)
            .max_by_key(|&(_, n)| n)
            .map(|(c, _)| c))
    }

    /// Whether all bytes of these kinds (see [`crate::fsm::kind_bit`] and [`CODE_POINTS`]) lead a
    /// configuration back to itself. Memoised by kind.
    pub(crate) fn loops_on(&mut self, config: ConfigId, kinds: u64) -> Result<bool, ParserLimit> {
        let SelfLoops { mut looping, leaving } = self.queries.self_loops.get(config);
        if kinds & leaving != 0 {
            return Ok(false);
        }
        let mut pending = kinds & !looping;
        if pending == 0 {
            return Ok(true);
        }
        while pending != 0 {
            let kind_bit = pending & pending.wrapping_neg();
            let loops = match kind_bit {
                CODE_POINTS => self.loops_on_code_points(config, &utf8::ANY)?,
                NON_SPACE_CODE_POINTS => self.loops_on_code_points(config, &utf8::NON_SPACE)?,
                _ => self.loops_on_kind(config, kind_bit)?,
            };
            if !loops {
                *self.queries.self_loops.entry(config) =
                    SelfLoops { looping, leaving: leaving | kind_bit };
                return Ok(false);
            }
            looping |= kind_bit;
            pending &= !kind_bit;
        }
        *self.queries.self_loops.entry(config) = SelfLoops { looping, leaving };
        Ok(true)
    }

    /// Whether all bytes of one kind in ASCII lead a configuration back to itself.
    fn loops_on_kind(&mut self, config: ConfigId, kind_bit: u64) -> Result<bool, ParserLimit> {
        // Constraints distinguish bytes that share a class.
        let by_byte = self.compares_values(config);
        let mut last = None;
        for &byte in kind_bytes(kind_bit) {
            if last.replace(self.class(byte)) == Some(self.class(byte)) && !by_byte {
                continue;
            }
            if self.step(config, byte)? != config {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether each code point that `code_points` accepts leads a configuration back to itself.
    /// Code points in ASCII are not tested.
    fn loops_on_code_points(
        &mut self,
        config: ConfigId,
        code_points: &utf8::Utf8Automaton,
    ) -> Result<bool, ParserLimit> {
        let mut inside = vec![(utf8::BOUNDARY, config)];
        let mut at = 0;
        while let Some(&(state, before)) = inside.get(at) {
            at += 1;
            let all_loop =
                self.step_in_code_points(code_points, state, before, |_, state, next| {
                    let has_room = inside.len() <= MAX_INSIDE_CONFIGS;
                    if state == utf8::BOUNDARY {
                        return has_room && next == config;
                    }
                    if !inside.contains(&(state, next)) {
                        inside.push((state, next));
                    }
                    has_room
                })?;
            if !all_loop {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Steps over each byte outside of ASCII that a UTF-8 automaton reads from its state, and calls
    /// `visit` with the state and the configuration after it. Bytes that lead to the same are
    /// stepped over once. Returns false as soon as a byte is rejected or `visit` returns false.
    pub(super) fn step_in_code_points(
        &mut self,
        code_points: &utf8::Utf8Automaton,
        state: u8,
        config: ConfigId,
        mut visit: impl FnMut(&mut Parser, u8, ConfigId) -> bool,
    ) -> Result<bool, ParserLimit> {
        // Constraints distinguish bytes that share a class.
        let by_byte = self.compares_values(config);
        let mut last = None;
        for byte in 0x80..=0xFFu8 {
            let Some(state) = code_points.next(state, byte) else { continue };
            let step = Some((self.class(byte), state));
            if std::mem::replace(&mut last, step) == step && !by_byte {
                continue;
            }
            let next = self.step(config, byte)?;
            if next == ConfigId::DEAD || !visit(self, state, next) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all bytes of a shape (see [`crate::fsm::shape`]) lead a configuration to the same
    /// target. Memoised by shape.
    pub(crate) fn is_uniform_shape(
        &mut self,
        config: ConfigId,
        shape: u8,
    ) -> Result<bool, ParserLimit> {
        let (lo, hi) = shape_bytes(shape);
        if lo == hi {
            return Ok(true);
        }
        let known = self.queries.uniform_shapes.get(config);
        let bit = 1 << shape;
        if known.examined & bit != 0 {
            return Ok(known.uniform & bit != 0);
        }
        // Constraints distinguish bytes that share a class.
        let mut uniform = !self.compares_values(config) && !self.tracks_keys(config);
        if uniform {
            let (first, mut class) = (self.step(config, lo)?, self.class(lo));
            for byte in lo + 1..=hi {
                if std::mem::replace(&mut class, self.class(byte)) != self.class(byte)
                    && self.step(config, byte)? != first
                {
                    uniform = false;
                    break;
                }
            }
        }
        let known = self.queries.uniform_shapes.entry(config);
        known.examined |= bit;
        if uniform {
            known.uniform |= bit;
        }
        Ok(uniform)
    }
}
