//! What derived what: a textbook Earley chart over the positions of a finished text (Earley 1970), read backwards along
//! one derivation. Slower than the parser, which knows no positions, and only run when someone asks for captures.

use crate::compile::{NO_BLOCK, Program, Unit};
use crate::hash::{HashMap, HashSet};
use crate::ir::Spent;

/// Most items of a chart.
const MAX_ITEMS: usize = 4_000_000;

/// A piece of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'t> {
    Bytes(&'t [u8]),
    /// One of these special tokens of the grammar, and its text.
    Special(&'t [u32], &'t [u8]),
}

/// What a rule derived: bytes `start..end` of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) rule: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Calls around it.
    pub(crate) depth: u32,
}

/// The chart has grown too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChartLimit;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Item {
    rule: u32,
    state: u32,
    count: u32,
    /// The column it began in.
    origin: u32,
    /// Nothing was read since its rule or its run of a block began: it does not end here.
    fresh: bool,
}

/// How an item came about.
#[derive(Clone, Copy, Debug)]
enum From {
    /// Its rule begins.
    Begin,
    /// From an item of the same column.
    Same(u32),
    /// From an item of the column before.
    Read(u32),
    /// A call has returned: the caller's column and number, and what ended here.
    Return { caller: (u32, u32), ended: Ended },
}

#[derive(Clone, Copy, Debug)]
enum Ended {
    /// The rule of this item.
    Final(u32),
    /// A rule with a spent budget: a number in [`Column::cuts`].
    Cut(u32),
}

/// The items along the calls that were open when a rule was cut: where they are, innermost first.
type Cut = Vec<(u32, u32)>;

#[derive(Default)]
struct Column {
    items: Vec<(Item, From)>,
    known: HashSet<Item>,
    /// Per rule: items that called it here, and where they go on.
    waiting: HashMap<u32, Vec<(u32, u32)>>,
    /// Rules that ended here, with the columns they began in.
    ended: HashSet<(u32, u32)>,
    cuts: Vec<Cut>,
    /// Bytes before.
    offset: usize,
    /// Code points before, and bytes one of them still lacks.
    chars: (u32, u32),
    /// Tokens that have ended before or here.
    tokens: u32,
    token_ends: bool,
}

impl Column {
    fn push(&mut self, item: Item, from: From) {
        if self.known.insert(item) {
            self.items.push((item, from));
        }
    }
}

pub(crate) struct Chart<'p> {
    program: &'p mut Program,
    columns: Vec<Column>,
    /// Calls of rules that are cut when their budget is spent: rule and column.
    metered: Vec<(u32, u32)>,
    items: usize,
}

impl<'p> Chart<'p> {
    pub(crate) fn new(program: &'p mut Program) -> Result<Chart<'p>, ChartLimit> {
        let mut chart =
            Chart { program, columns: vec![Column::default()], metered: Vec::new(), items: 0 };
        let rule = chart.program.compiled().start;
        let state = chart.program.open(rule);
        chart.columns[0].token_ends = true;
        chart.columns[0].push(Item { rule, state, count: 0, origin: 0, fresh: true }, From::Begin);
        chart.begun(rule, 0);
        chart.close()?;
        Ok(chart)
    }

    /// Reads one token. False, and nothing is read, if it does not fit.
    pub(crate) fn token(&mut self, piece: Piece<'_>) -> Result<bool, ChartLimit> {
        let before = self.columns.len();
        match piece {
            Piece::Bytes(bytes) => {
                for (i, &byte) in bytes.iter().enumerate() {
                    self.read(&|program, state, out| {
                        let edges = program.byte_edges(state).iter();
                        out.extend(edges.filter(|e| e.lo <= byte && byte <= e.hi).map(|e| e.to));
                    });
                    let here = self.columns.last_mut().expect("just added");
                    here.offset += 1;
                    let (chars, lacks) = here.chars;
                    here.chars = match byte {
                        0x80..0xC0 => (chars, lacks.saturating_sub(1)),
                        0xC0..0xE0 => (chars + 1, 1),
                        0xE0..0xF0 => (chars + 1, 2),
                        0xF0.. => (chars + 1, 3),
                        _ => (chars + 1, 0),
                    };
                    self.end_of_token(i + 1 == bytes.len());
                    self.close()?;
                    if self.columns.last().is_some_and(|c| c.items.is_empty()) {
                        self.columns.truncate(before);
                        return Ok(false);
                    }
                }
            }
            Piece::Special(specials, text) => {
                self.read(&|program, state, out| {
                    let edges = program.special_edges(state).iter();
                    out.extend(edges.filter(|(s, _)| specials.contains(s)).map(|&(_, to)| to));
                });
                self.columns.last_mut().expect("just added").offset += text.len();
                self.end_of_token(true);
                self.close()?;
                if self.columns.last().is_some_and(|c| c.items.is_empty()) {
                    self.columns.truncate(before);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn end_of_token(&mut self, ends: bool) {
        let here = self.columns.last_mut().expect("there is always a column");
        here.token_ends = ends;
        here.tokens += u32::from(ends);
    }

    fn read(&mut self, targets: &dyn Fn(&Program, u32, &mut Vec<u32>)) {
        let last = self.columns.last().expect("there is always a column");
        let mut next = Column {
            offset: last.offset,
            chars: last.chars,
            tokens: last.tokens,
            ..Column::default()
        };
        let mut out = Vec::new();
        for (at, (item, _)) in last.items.iter().enumerate() {
            if !self.program.state(item.state).scannable {
                continue;
            }
            self.program.expand(item.state);
            out.clear();
            targets(self.program, item.state, &mut out);
            for &state in &out {
                next.push(Item { state, fresh: false, ..*item }, From::Read(at as u32));
            }
        }
        self.columns.push(next);
    }

    fn begun(&mut self, rule: u32, column: u32) {
        if self.program.compiled().meters.get(&rule).is_some_and(|m| m.spent == Spent::Cut) {
            self.metered.push((rule, column));
        }
    }

    /// Completion and prediction in the last column.
    fn close(&mut self) -> Result<(), ChartLimit> {
        let mut at = 0;
        loop {
            let last = self.columns.len() - 1;
            while let Some(&(item, _)) = self.columns[last].items.get(at) {
                self.items += 1;
                if self.items > MAX_ITEMS {
                    return Err(ChartLimit);
                }
                self.complete(last, at as u32, item);
                self.predict(last, at as u32, item);
                at += 1;
            }
            if !self.cut(last) {
                return Ok(());
            }
        }
    }

    fn complete(&mut self, last: usize, at: u32, item: Item) {
        let state = self.program.state(item.state);
        if item.fresh || !state.is_final {
            return;
        }
        if state.block != NO_BLOCK {
            let block = *self.program.block(state.block);
            let runs = item.count.saturating_add(1);
            let column = &mut self.columns[last];
            if block.max.is_none_or(|max| runs < max) {
                let count = if block.max.is_none() { runs.min(block.min) } else { runs };
                column
                    .push(Item { state: block.start, count, fresh: true, ..item }, From::Same(at));
            }
            if runs >= block.min {
                column.push(Item { state: block.exit, count: 0, ..item }, From::Same(at));
            }
            return;
        }
        self.end(last, (item.rule, item.origin), Ended::Final(at));
    }

    /// A rule that began in `origin` ends in the last column.
    fn end(&mut self, last: usize, (rule, origin): (u32, u32), ended: Ended) {
        if !self.columns[last].ended.insert((rule, origin)) {
            return;
        }
        let waiting = self.columns[origin as usize].waiting.get(&rule).cloned().unwrap_or_default();
        for (caller, to) in waiting {
            let (from, _) = self.columns[origin as usize].items[caller as usize];
            let in_block = self.program.state(to).block != NO_BLOCK;
            let item = Item {
                state: to,
                count: if in_block { from.count } else { 0 },
                fresh: false,
                ..from
            };
            self.columns[last].push(item, From::Return { caller: (origin, caller), ended });
        }
    }

    fn predict(&mut self, last: usize, at: u32, item: Item) {
        if !self.program.state(item.state).calling {
            return;
        }
        self.program.expand(item.state);
        for i in 0..self.program.enters(item.state).len() {
            let start = self.program.block(self.program.enters(item.state)[i]).start;
            self.columns[last]
                .push(Item { state: start, count: 0, fresh: true, ..item }, From::Same(at));
        }
        for i in 0..self.program.calls(item.state).len() {
            let (rule, to) = self.program.calls(item.state)[i];
            let waiting = self.columns[last].waiting.entry(rule).or_default();
            let is_first = waiting.is_empty();
            if !waiting.contains(&(at, to)) {
                waiting.push((at, to));
            }
            if is_first {
                let state = self.program.open(rule);
                let begin = Item { rule, state, count: 0, origin: last as u32, fresh: true };
                self.columns[last].push(begin, From::Begin);
                self.begun(rule, last as u32);
            }
        }
    }

    /// Ends the rules whose budget is spent here; whether there were any.
    fn cut(&mut self, last: usize) -> bool {
        let mut any = false;
        for i in 0..self.metered.len() {
            let (rule, origin) = self.metered[i];
            if self.columns[last].ended.contains(&(rule, origin))
                || !self.is_spent(rule, origin, last)
            {
                continue;
            }
            let Some(path) = self.path(last, (rule, origin)) else { continue };
            let column = &mut self.columns[last];
            column.cuts.push(path);
            let number = column.cuts.len() as u32 - 1;
            self.end(last, (rule, origin), Ended::Cut(number));
            any = true;
        }
        any
    }

    fn is_spent(&self, rule: u32, origin: u32, last: usize) -> bool {
        let Some(meter) = self.program.compiled().meters.get(&rule) else { return false };
        let (begin, here) = (&self.columns[origin as usize], &self.columns[last]);
        match meter.unit {
            Unit::Char => here.chars.1 == 0 && here.chars.0 - begin.chars.0 >= meter.full / 4,
            Unit::Token => {
                let since = begin.tokens + u32::from(!begin.token_ends);
                here.token_ends && here.chars.1 == 0 && here.tokens >= since + meter.full / 4 - 1
            }
        }
    }

    /// From an item of the last column outwards to a call of `goal`, if one is inside of it.
    fn path(&self, last: usize, goal: (u32, u32)) -> Option<Cut> {
        let mut seen: HashSet<(u32, u32)> = HashSet::default();
        let mut stack: Vec<Cut> = Vec::new();
        for (at, (item, _)) in self.columns[last].items.iter().enumerate() {
            if self.program.state(item.state).scannable && seen.insert((item.rule, item.origin)) {
                stack.push(vec![(last as u32, at as u32)]);
            }
        }
        while let Some(path) = stack.pop() {
            let (item, _) = self.item(path[path.len() - 1]);
            if (item.rule, item.origin) == goal {
                return Some(path);
            }
            for &(caller, _) in
                self.columns[item.origin as usize].waiting.get(&item.rule).into_iter().flatten()
            {
                let at = (item.origin, caller);
                let (outer, _) = self.item(at);
                if seen.insert((outer.rule, outer.origin)) {
                    stack.push([&path[..], &[at]].concat());
                }
            }
        }
        None
    }

    fn item(&self, (column, at): (u32, u32)) -> (Item, From) {
        self.columns[column as usize].items[at as usize]
    }

    /// What each rule derived, along one derivation of what was read; of calls that are still open, what has ended inside.
    pub(crate) fn regions(&self) -> Vec<Region> {
        let last = self.columns.len() - 1;
        let start = self.program.compiled().start;
        let is_whole = |item: &Item| {
            let state = self.program.state(item.state);
            item.rule == start
                && item.origin == 0
                && !item.fresh
                && state.is_final
                && state.block == NO_BLOCK
        };
        let mut out = Vec::new();
        let mut walks: Vec<((u32, u32), u32)> = Vec::new();
        match self.columns[last].items.iter().position(|(item, _)| is_whole(item)) {
            Some(at) => {
                out.push(Region {
                    rule: start,
                    start: 0,
                    end: self.columns[last].offset,
                    depth: 0,
                });
                walks.push(((last as u32, at as u32), 1));
            }
            None => {
                let open = self.path(last, (start, 0)).unwrap_or_default();
                walks.extend(open.iter().rev().zip(1..).map(|(&at, depth)| (at, depth)));
            }
        }
        while let Some((mut at, depth)) = walks.pop() {
            loop {
                let (item, from) = self.item(at);
                match from {
                    From::Begin => break,
                    From::Same(other) => at.1 = other,
                    From::Read(other) => at = (at.0 - 1, other),
                    From::Return { caller, ended } => {
                        let end = self.columns[at.0 as usize].offset;
                        let region = |item: Item, depth| Region {
                            rule: item.rule,
                            start: self.columns[item.origin as usize].offset,
                            end,
                            depth,
                        };
                        match ended {
                            Ended::Final(inner) => {
                                out.push(region(self.item((at.0, inner)).0, depth));
                                walks.push(((at.0, inner), depth + 1));
                            }
                            Ended::Cut(number) => {
                                let path = &self.columns[at.0 as usize].cuts[number as usize];
                                for (&open, inner) in path.iter().rev().zip(depth..) {
                                    out.push(region(self.item(open).0, inner));
                                    walks.push((open, inner + 1));
                                }
                            }
                        }
                        debug_assert_eq!(self.item(caller).0.rule, item.rule);
                        at = caller;
                    }
                }
            }
        }
        out
    }
}
