//! Where text leads back to where it was: what lets a walk take whole subtrees, and one state's entry be derived from another's.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, DEAD, Done, GATED, Item};
use crate::compile::NO_BLOCK;
use crate::fsm::{BLACK_CODE_POINTS, CODE_POINTS, bytes_of, shape_bytes, utf8};

/// Bytes that make a majority: text in most languages has few others.
const MAJORITY: u32 = 48;
/// Items of which one may be what a configuration is like.
const CANDIDATES: usize = 8;
/// Configurations inside of code points that are looked at.
const INSIDE: usize = 32;
/// Most bytes that a configuration inside of a character reads, and most pairs of such that are looked at.
const FEW_BYTES: usize = 64;
const PAIRS: usize = 128;

/// Nodes of a subtree from which on its bytes are looked at as a whole.
pub(crate) const SWALLOW: u32 = 4;

/// Whether a byte has led back to where it began, or, ending a code point, perhaps to where that began.
#[inline]
pub(crate) fn may_be_again(before: ConfigId, config: ConfigId, byte: u8) -> bool {
    before == config || matches!(byte, 0x80..0xC0)
}

impl Parser {
    /// For an isolated item (or several that end alike), another one that does the same with most bytes, and that most bytes lead both of
    /// them to: `any text` for a state that is like it but for a few continuations. The other one is like none itself.
    pub(crate) fn loops_like(&mut self, isolated: ConfigId) -> Result<Option<Item>, ParserLimit> {
        let [ref all @ .., own] = *self.store().items(isolated) else { return Ok(None) };
        let single = all.is_empty();
        let Some(next) = self.majority(isolated)? else { return Ok(None) };
        if self.store().done(next).gated {
            return Ok(None);
        }
        // A dispatch that was called from here goes on behind its triggers; looked at on its own it does not.
        let alike = |i: &&Item| {
            i.frame == own.frame
                && self.program().state(i.state).block == NO_BLOCK
                && (own.frame == GATED || !self.program().is_dispatch(i.state))
        };
        let candidates: Vec<Item> =
            self.store().items(next).iter().filter(alike).take(CANDIDATES).copied().collect();
        for candidate in candidates {
            // What does the same with most bytes is not like another itself, and is no different from itself.
            if single && candidate == own {
                return Ok(None);
            }
            let other = self.isolated(candidate);
            if self.majority(other)? == Some(next) {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// The configuration that most bytes lead to, if so many do that most tokens begin with one of them.
    fn majority(&mut self, config: ConfigId) -> Result<Option<ConfigId>, ParserLimit> {
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
            .filter(|&(_, n)| n >= MAJORITY)
            .max_by_key(|&(_, n)| n)
            .map(|(c, _)| c))
    }

    /// Whether all bytes of these kinds (see [`crate::fsm::kind`] and [`CODE_POINTS`]) lead a configuration back to itself. Looked at kind by
    /// kind, once.
    pub(crate) fn loops(&mut self, config: ConfigId, kinds: u64) -> Result<bool, ParserLimit> {
        let (mut looping, leaving) = self.loops.get(config as usize).copied().unwrap_or_default();
        if kinds & leaving != 0 {
            return Ok(false);
        }
        let mut open = kinds & !looping;
        if open == 0 {
            return Ok(true);
        }
        if self.loops.len() <= config as usize {
            self.loops.resize(config as usize + 1, (0, 0));
        }
        while open != 0 {
            let one = open & open.wrapping_neg();
            let loops = match one {
                CODE_POINTS => self.loops_over_code_points(config, &utf8::ANY)?,
                BLACK_CODE_POINTS => self.loops_over_code_points(config, &utf8::BLACK)?,
                _ => self.loops_over(config, one)?,
            };
            if !loops {
                self.loops[config as usize] = (looping, leaving | one);
                return Ok(false);
            }
            looping |= one;
            open &= !one;
        }
        self.loops[config as usize] = (looping, leaving);
        Ok(true)
    }

    fn loops_over(&mut self, config: ConfigId, one: u64) -> Result<bool, ParserLimit> {
        // What is kept account of tells bytes apart that classes do not.
        let by_byte = self.compares(config);
        let mut last = None;
        for &byte in bytes_of(one) {
            if last.replace(self.class(byte)) == Some(self.class(byte)) && !by_byte {
                continue;
            }
            if self.step(config, byte)? != config {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether each code point that is not ASCII, of those that an automaton has, leads a configuration back to itself.
    fn loops_over_code_points(
        &mut self,
        config: ConfigId,
        code_points: &utf8::Steps,
    ) -> Result<bool, ParserLimit> {
        // What is kept account of tells bytes apart that classes do not.
        let by_byte = self.compares(config);
        let mut inside = vec![(utf8::WHOLE, config)];
        let mut at = 0;
        while let Some(&(state, begun)) = inside.get(at) {
            at += 1;
            let mut last = None;
            for byte in 0x80..=0xFFu8 {
                let Some(state) = code_points.next(state, byte) else { continue };
                if last.replace((self.class(byte), state)) == Some((self.class(byte), state))
                    && !by_byte
                {
                    continue;
                }
                let next = self.step(begun, byte)?;
                if next == DEAD || state == utf8::WHOLE && next != config || inside.len() > INSIDE {
                    return Ok(false);
                }
                if state != utf8::WHOLE && !inside.contains(&(state, next)) {
                    inside.push((state, next));
                }
            }
        }
        Ok(true)
    }

    /// Whether all bytes of a shape (see [`crate::fsm::shape`]) lead a configuration to the same. Looked at shape by shape, once.
    pub(crate) fn is_uniform(&mut self, config: ConfigId, shape: u8) -> Result<bool, ParserLimit> {
        let (lo, hi) = shape_bytes(shape);
        if lo == hi {
            return Ok(true);
        }
        let (known, uniform) = self.uniform.get(config as usize).copied().unwrap_or_default();
        let bit = 1 << shape;
        if known & bit != 0 {
            return Ok(uniform & bit != 0);
        }
        // What is kept account of tells bytes apart that classes do not.
        let mut alike = !self.compares(config) && !self.is_named(config);
        if alike {
            let (first, mut class) = (self.step(config, lo)?, self.class(lo));
            for byte in lo + 1..=hi {
                if std::mem::replace(&mut class, self.class(byte)) != self.class(byte)
                    && self.step(config, byte)? != first
                {
                    alike = false;
                    break;
                }
            }
        }
        if self.uniform.len() <= config as usize {
            self.uniform.resize(config as usize + 1, (0, 0));
        }
        self.uniform[config as usize] = (known | bit, if alike { uniform | bit } else { uniform });
        Ok(alike)
    }

    /// Whether two configurations, both inside of a character that is written with several bytes, go on alike: text behind it leads
    /// both to the same. Found out once; where it takes long, no.
    pub(crate) fn goes_on_alike(&mut self, a: ConfigId, b: ConfigId) -> Result<bool, ParserLimit> {
        if let Some(&known) = self.alike.get(&(a, b)) {
            return Ok(known);
        }
        let mut pairs = vec![(a, b)];
        let mut alike = true;
        let mut at = 0;
        while let Some(&(a, b)) = pairs.get(at).filter(|_| alike) {
            at += 1;
            alike = pairs.len() <= PAIRS && self.add_pairs(a, b, &mut pairs)?;
        }
        self.alike.insert((a, b), alike);
        Ok(alike)
    }

    /// Adds where each byte leads two configurations, unless that is the same. False if they end differently or few bytes do not tell.
    fn add_pairs(
        &mut self,
        a: ConfigId,
        b: ConfigId,
        pairs: &mut Vec<(ConfigId, ConfigId)>,
    ) -> Result<bool, ParserLimit> {
        let (left, right) = (self.store().done(a), self.store().done(b));
        let bytes = self.allowed(a);
        let plain = |done: Done| !done.gated && !done.root && !done.bottom;
        if !plain(left) || !plain(right) || bytes.len() > FEW_BYTES || bytes != self.allowed(b) {
            return Ok(false);
        }
        if self.specials(a).next().is_some() || self.specials(b).next().is_some() {
            return Ok(false);
        }
        let mut class = None;
        for byte in bytes.iter() {
            if class.replace(self.class(byte)) == Some(self.class(byte)) {
                continue;
            }
            let next = (self.step(a, byte)?, self.step(b, byte)?);
            if next.0 != next.1 && !pairs.contains(&next) {
                pairs.push(next);
            }
        }
        Ok(true)
    }
}
