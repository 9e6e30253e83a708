//! White-space bounds: limits on consecutive white space between JSON tokens.
//!
//! A *relaxed* configuration ignores these bounds, so it stays the same however much white space is
//! read. Masks are made from relaxed configurations; tokens with too much white space are removed
//! afterwards.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, Item};
use crate::fsm::ByteSet;

/// Most configurations that the search for unbounded white space visits.
const MAX_CONFIGS: usize = 6;

/// The white space that may follow a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhiteSpaceBound {
    /// No bounded white space has begun or may begin.
    Outside,
    /// Exactly so many bytes of white space may follow, and no other item reads white space.
    Exact(u32),
    /// At least so many bytes of white space may follow; other parses may allow more.
    AtLeast(u32),
}

/// Runs `work` while the parser of `owner` makes relaxed configurations, and restores what was
/// before. No effect in grammars without white-space bounds.
pub(crate) fn with_relaxed<P: AsMut<Parser>, T>(
    owner: &mut P,
    work: impl FnOnce(&mut P) -> T,
) -> T {
    let relaxed = owner.as_mut().compiled().has_bounded_white_space;
    with_relaxation(owner, relaxed, work)
}

/// As [`with_relaxed`], with a choice of whether new configurations are relaxed.
pub(super) fn with_relaxation<P: AsMut<Parser>, T>(
    owner: &mut P,
    relaxed: bool,
    work: impl FnOnce(&mut P) -> T,
) -> T {
    let before = std::mem::replace(&mut owner.as_mut().relaxed, relaxed);
    let result = work(owner);
    owner.as_mut().relaxed = before;
    result
}

impl AsMut<Parser> for Parser {
    fn as_mut(&mut self) -> &mut Parser {
        self
    }
}

impl Parser {
    /// The relaxed configuration; the same one in grammars without white-space bounds.
    pub(crate) fn relax(&mut self, config: ConfigId) -> ConfigId {
        let mut items = self.store().items(config).to_vec();
        for item in &mut items {
            if self.white_space_left(item).is_some() {
                item.count = 0;
            }
        }
        items.sort_unstable();
        items.dedup();
        let flags = self.store().flags(config);
        with_relaxed(self, |parser| parser.intern_unchecked(&items, flags))
    }

    /// The white space that may follow a configuration.
    pub(crate) fn white_space_bound(
        &mut self,
        config: ConfigId,
    ) -> Result<WhiteSpaceBound, ParserLimit> {
        let (remaining, others) = self.white_space_allowances(config);
        let Some(&least) = remaining.iter().min() else { return Ok(WhiteSpaceBound::Outside) };
        let mut alone = !others && remaining.iter().all(|&runs| runs == least);
        for byte in ByteSet::WHITE_SPACE.iter() {
            if !alone {
                break;
            }
            // White space after this one must not be read by another bounded block.
            let next = self.step(config, byte)?;
            let (remaining, others) = self.white_space_allowances(next);
            alone &= !others && remaining.iter().all(|&runs| runs.saturating_add(1) == least);
        }
        Ok(if alone { WhiteSpaceBound::Exact(least) } else { WhiteSpaceBound::AtLeast(least) })
    }

    /// The white-space bytes that may follow without any bound: each may be followed by the same
    /// bytes, and so on. `None` if a search of [`MAX_CONFIGS`] configurations does not show that.
    pub(crate) fn endless_white_space(
        &mut self,
        config: ConfigId,
    ) -> Result<Option<ByteSet>, ParserLimit> {
        let mut seen = vec![config];
        let mut common = None;
        let mut at = 0;
        while let Some(&config) = seen.get(at) {
            at += 1;
            let allowed = self.allowed(config).intersect(&ByteSet::WHITE_SPACE);
            if *common.get_or_insert(allowed) != allowed || seen.len() > MAX_CONFIGS {
                return Ok(None);
            }
            for byte in allowed.iter() {
                let next = self.step(config, byte)?;
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        Ok(common)
    }

    /// The white space left in each bounded block of a configuration, and whether any other item
    /// reads white space.
    fn white_space_allowances(&mut self, config: ConfigId) -> (Vec<u32>, bool) {
        let items = self.store().items(config).to_vec();
        let remaining = items.iter().filter_map(|item| self.white_space_left(item)).collect();
        let others: Vec<&Item> =
            items.iter().filter(|item| self.white_space_left(item).is_none()).collect();
        let mut others = others.into_iter();
        (remaining, others.any(|item| self.reads_of(item.state).meets(&ByteSet::WHITE_SPACE)))
    }

    /// The white space left in the bounded block of an item.
    fn white_space_left(&self, item: &Item) -> Option<u32> {
        let block =
            self.program().block_of(item.state).filter(|block| block.is_bounded_white_space)?;
        Some(block.max.map_or(u32::MAX, |max| max.saturating_sub(item.count)))
    }
}
