//! Walking a trie with the parser: which of its words can follow.

use std::ops::Range;
use std::sync::Arc;

use super::ambiguous::Only;
use super::token_set::{bit, built, clear_bit, set_bit};
use crate::fsm::ByteSet;
use crate::fuel::{self, OutOfFuel};
use crate::ids::TokenId;
use crate::matcher::{Asking, ConfigId, DEAD, Exit, Parser, ParserLimit, SWALLOW, may_be_again};
use crate::vocab::{Fan, Trie};

/// Nodes of a trie for which fuel is spent at once.
const PAY_AT_ONCE: usize = 64;

/// Why a walk was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It would look at more nodes than the caller wants to pay for.
    Budget,
    /// The parser ran into a limit.
    Parser(ParserLimit),
}

impl From<OutOfFuel> for Stopped {
    fn from(out: OutOfFuel) -> Self {
        Stopped::Parser(out.into())
    }
}

impl From<ParserLimit> for Stopped {
    fn from(limit: ParserLimit) -> Self {
        Stopped::Parser(limit)
    }
}

/// What a walk found, and its buffers.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Words that can follow (each once per walk).
    pub(crate) words: Vec<TokenId>,
    /// Rows of further words, found as a whole.
    pub(crate) rows: Vec<Arc<[u32]>>,
    /// Nodes at which a rule over the unknown frame ended, and how: what is below has to be decided by what follows.
    pub(crate) exits: Vec<(Exit, u32)>,
    /// Walk with a rule looked at on its own, and leave what it calls to others.
    pub(crate) apart: bool,
    /// Configurations with items of called rules, and the nodes at which they were left.
    pub(crate) called: Vec<(ConfigId, u32)>,
    /// Places of a trie, by number, and what follows items that were looked at on their own to there.
    pub(crate) behind: Vec<(u32, ConfigId)>,
    /// How many nodes were looked at one by one, in all.
    pub(crate) looked: usize,
    /// For how many of those fuel was spent.
    paid: usize,
    /// When it is asked what any text leads to.
    pub(super) asking: Asking,
    /// The row of words that are white space and nothing else, if they may be found as a row.
    pub(crate) white_row: Option<Arc<[u32]>>,
    /// The only words that are to be looked at; others may be found, too.
    pub(super) only: Option<Only>,
    /// A row that is empty between uses.
    marks: Vec<u32>,
    stack: Vec<(u32, ConfigId)>,
    /// Most configurations the parser may hold before a walk gives up.
    pub(crate) most_configs: Option<usize>,
}

impl Walk {
    /// Forgets what was found.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.rows.clear();
        self.exits.clear();
        self.called.clear();
        self.behind.clear();
        self.stack.clear();
    }

    /// Spends fuel for the nodes that were looked at, if there are so many.
    #[inline]
    fn pay(&mut self, least: usize) -> Result<(), OutOfFuel> {
        let due = self.looked - self.paid;
        if due < least {
            return Ok(());
        }
        self.paid = self.looked;
        fuel::spend(due)
    }

    /// How many words and rows were found.
    pub(crate) fn found(&self) -> (usize, usize) {
        (self.words.len(), self.rows.len())
    }

    /// Forgets all but the first words and rows.
    pub(crate) fn forget(&mut self, (words, rows): (usize, usize)) {
        self.words.truncate(words);
        self.rows.truncate(rows);
    }

    /// Keeps each word but the first once; a row has so many numbers.
    pub(crate) fn distinct(&mut self, from: usize, width: usize) {
        self.marks.resize(width, 0);
        let mut to = from;
        for at in from..self.words.len() {
            let word = self.words[at];
            if !bit(&self.marks, word) {
                set_bit(&mut self.marks, word);
                self.words[to] = word;
                to += 1;
            }
        }
        self.words.truncate(to);
        self.words[from..].iter().for_each(|&word| clear_bit(&mut self.marks, word));
    }

    /// Makes a row of so many numbers of all words but the first.
    pub(crate) fn fold_words(&mut self, from: usize, width: usize) {
        self.rows
            .push(built(width, |row| self.words.drain(from..).for_each(|id| set_bit(row, id))));
    }

    /// Whether the parser had to make more configurations than the caller wants to pay for.
    fn is_spent(&self, parser: &Parser) -> bool {
        self.most_configs.is_some_and(|most| parser.store().configs() > most)
    }

    /// Adds every word strictly below `node` that `config` can read. Gives up after `budget` nodes. Cost: one transition
    /// a visited node; subtrees whose first byte fails are skipped.
    pub(crate) fn run(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        node: u32,
        config: ConfigId,
        budget: usize,
    ) -> Result<(), Stopped> {
        let mut left = budget;
        self.stack.clear();
        self.asking = Asking::new(parser, self.looked);
        if node == 0 {
            let known = match self.white(parser, trie, config, &mut left)? {
                true => ByteSet::WHITE_SPACE,
                false => ByteSet::EMPTY,
            };
            // Only the root has a table of its children.
            for byte in parser.allowed(config).intersect(&known.complement()).iter() {
                if let Some(child) = trie.root_child(byte) {
                    let next = parser.step(config, byte)?;
                    self.enter(parser, trie, child, (config, next), &mut left)?;
                }
            }
            return Ok(self.pay(0)?);
        }
        self.below(parser, trie, node, config, &mut left)?;
        Ok(self.pay(0)?)
    }

    /// Adds every word at or below these nodes that `config` can read, which stands in front of them.
    pub(crate) fn run_into(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        nodes: &[u32],
        config: ConfigId,
    ) -> Result<(), Stopped> {
        self.stack.clear();
        self.asking = Asking::new(parser, self.looked);
        let (allowed, mut left) = (parser.allowed(config), usize::MAX);
        for &node in nodes {
            let byte = trie.node(node).byte;
            if allowed.contains(byte) {
                let next = parser.step(config, byte)?;
                self.enter(parser, trie, node, (config, next), &mut left)?;
            }
        }
        Ok(self.pay(0)?)
    }

    /// Adds the words that begin with white space, if all of it leads to one place: many do, and few of them go on as that place does. False
    /// where it does not.
    fn white(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        config: ConfigId,
        left: &mut usize,
    ) -> Result<bool, Stopped> {
        let Some(white) = trie.white() else { return Ok(false) };
        let next = parser.step(config, b' ')?;
        if next == DEAD || parser.store().done(next).open() || self.apart && !parser.is_alone(next)
        {
            return Ok(false);
        }
        for byte in ByteSet::WHITE_SPACE.iter() {
            if parser.step(config, byte)? != next || parser.step(next, byte)? != next {
                return Ok(false);
            }
        }
        match &self.white_row {
            Some(row) => self.rows.push(row.clone()),
            None => self.words.extend_from_slice(&white.only),
        }
        for byte in parser.allowed(next).intersect(&ByteSet::WHITE_SPACE.complement()).iter() {
            let behind = parser.step(next, byte)?;
            for node in white.behind(byte) {
                self.enter(parser, trie, node, (next, behind), left)?;
            }
        }
        Ok(true)
    }

    /// Visits one node that was reached with `config`, and its subtree.
    pub(crate) fn enter(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        node: u32,
        (before, config): (ConfigId, ConfigId),
        left: &mut usize,
    ) -> Result<(), Stopped> {
        if self.is_skipped(trie, node) {
            return Ok(());
        }
        self.looked += 1;
        self.pay(PAY_AT_ONCE)?;
        if *left == 0 || self.is_spent(parser) {
            return Err(Stopped::Budget);
        }
        *left -= 1;
        let again = may_be_again(before, config, trie.node(node).byte);
        if config == DEAD || self.swallow(parser, trie, (node, config, again), left)? {
            return Ok(());
        }
        self.take(trie, trie.range_at(node));
        if trie.node(node).end == node + 1 {
            return Ok(());
        }
        if parser.store().done(config).open() {
            self.exits.extend(parser.exits(config).map(|exit| (exit, node)));
            if !parser.reads(config) {
                return Ok(());
            }
        }
        if self.apart && !parser.is_alone(config) {
            self.called.push((config, node));
            return Ok(());
        }
        self.below(parser, trie, node, config, left)
    }

    /// Takes a whole subtree where every byte in it leads the configuration back to itself, which `again` says it may, or any such text goes on: free text
    /// reads most words without a look at their bytes.
    fn swallow(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (node, config, again): (u32, ConfigId, bool),
        left: &mut usize,
    ) -> Result<bool, Stopped> {
        let nodes = trie.node(node).end - node;
        if nodes < SWALLOW {
            return Ok(false);
        }
        let (kinds, asked) = (trie.kinds_below(node), (&self.asking, self.looked));
        let loops = again && parser.loops(config, kinds)?;
        if !loops
            && (self.apart
                || !parser.reads_any(config, (kinds, trie.longest_below(node)), asked)?)
        {
            return Ok(false);
        }
        // A mask of so many words is better put together from a shared entry.
        *left = left.checked_sub(nodes as usize).ok_or(Stopped::Budget)?;
        self.take(trie, trie.range_at(node).start..trie.range_below(node).end);
        Ok(true)
    }

    /// Whether no word at or below a node is to be looked at.
    #[inline]
    fn is_skipped(&mut self, trie: &Trie, node: u32) -> bool {
        let Some(only) = &mut self.only else { return false };
        !only.has(trie.range_at(node).start..trie.range_below(node).end)
    }

    /// Adds words.
    #[inline]
    fn take(&mut self, trie: &Trie, words: Range<usize>) {
        self.words.extend_from_slice(trie.words(words));
    }

    /// Visits the nodes strictly below one that was reached with `config`.
    fn below(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        node: u32,
        config: ConfigId,
        left: &mut usize,
    ) -> Result<(), Stopped> {
        if let Some(fan) = trie.fan(node) {
            return self.fan_out(parser, trie, &fan, config, left);
        }
        let base = self.stack.len();
        let mut at = node + 1;
        let mut top = (trie.node(node).end, config);
        let end = top.0;
        while at < end {
            if self.is_skipped(trie, at) {
                at = trie.node(at).end;
                continue;
            }
            if *left == 0 || self.is_spent(parser) {
                return Err(Stopped::Budget);
            }
            *left -= 1;
            self.looked += 1;
            self.pay(PAY_AT_ONCE)?;
            while at >= top.0 {
                top = self.stack.pop().unwrap_or((end, config));
            }
            let node = *trie.node(at);
            let next = parser.step(top.1, node.byte)?;
            let again = may_be_again(top.1, next, node.byte);
            if next == DEAD || self.swallow(parser, trie, (at, next, again), left)? {
                at = node.end;
                continue;
            }
            self.take(trie, trie.range_at(at));
            at += 1;
            if node.end == at {
                continue;
            }
            if parser.store().done(next).open() {
                self.exits.extend(parser.exits(next).map(|exit| (exit, at - 1)));
                if !parser.reads(next) {
                    at = node.end;
                    continue;
                }
            }
            if self.apart && !parser.is_alone(next) {
                self.called.push((next, at - 1));
                at = node.end;
                continue;
            }
            if let Some(fan) = trie.fan(at - 1) {
                self.stack.push(top);
                self.fan_out(parser, trie, &fan, next, left)?;
                top = self.stack.pop().unwrap_or((end, config));
                at = node.end;
                continue;
            }
            self.stack.push(top);
            top = (node.end, next);
        }
        self.stack.truncate(base);
        Ok(())
    }

    /// As [`Walk::below`] for a node that has many children: looks at those that the configuration reads.
    fn fan_out(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        fan: &Fan<'_>,
        config: ConfigId,
        left: &mut usize,
    ) -> Result<(), Stopped> {
        for byte in fan.bytes.intersect(&parser.allowed(config)).iter() {
            let next = parser.step(config, byte)?;
            self.enter(parser, trie, fan.child(byte), (config, next), left)?;
        }
        Ok(())
    }
}
