//! Earley chart with text positions, for captures.
//!
//! The parser's configurations hold no positions. To report what each rule derived, the text is
//! parsed again with a textbook chart (J. Earley, 1970), which is read backwards along one
//! derivation. Slower than the parser; it runs only when captures are requested. Everything that
//! can grow spends fuel, and the memory has a bound.

use super::symbol::Symbol;
use crate::compile::{Block, BlockId, BudgetUnit, CompiledRuleId, Program, RunEnd, StateId};
use crate::fsm::utf8;
use crate::fuel::{self, OutOfFuel};
use crate::hash::{HashMap, HashSet};
use crate::ids::SpecialId;
use crate::ir::BudgetPolicy;

/// Most memory of a chart and of what is read from it, in bytes, approximately.
const MAX_BYTES: usize = 96 << 20;
/// Memory of an item: a place in a list that may be half empty.
const ITEM_BYTES: usize = 2 * size_of::<(ChartItem, Derivation)>();
/// Memory of a call: a place in such a list, and its part of a table.
const CALL_BYTES: usize = 2 * size_of::<(u32, StateId)>() + 64;

/// Tables of at most this capacity are kept from column to column.
const MIN_SHRUNK: usize = 1 << 10;

/// Fuel of an item that is added, completed and predicted from.
const ITEM_FUEL: usize = 8;
/// Fuel of an attempt to add an item, which may be there already.
const PUSH_FUEL: usize = 4;

/// A token of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChartInput<'t> {
    Bytes(&'t [u8]),
    /// One of these special tokens of the grammar, and its text.
    Special(&'t [SpecialId], &'t [u8]),
}

/// What a rule derived: bytes `start..end` of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DerivedSpan {
    pub(crate) rule: CompiledRuleId,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Number of calls around it.
    pub(crate) depth: u32,
}

/// Why captures have no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartLimit {
    /// The chart takes too much memory.
    Memory,
    /// The fuel of one call is spent.
    Fuel,
    /// The request was cancelled.
    Cancelled,
    /// The parse read a token in a way that the chart did not.
    Token,
}

impl From<OutOfFuel> for ChartLimit {
    fn from(out: OutOfFuel) -> Self {
        match out {
            OutOfFuel::Spent { .. } => ChartLimit::Fuel,
            OutOfFuel::Cancelled => ChartLimit::Cancelled,
        }
    }
}

impl ChartLimit {
    /// What was reached, for error messages: a noun.
    pub(crate) fn what(self) -> &'static str {
        match self {
            ChartLimit::Memory => "memory of a chart for captures",
            ChartLimit::Fuel => "fuel for captures",
            ChartLimit::Cancelled => "cancellation of the request",
            ChartLimit::Token => "a token of the text that a chart for captures cannot read",
        }
    }
}

/// An Earley item with its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ChartItem {
    rule: CompiledRuleId,
    state: StateId,
    count: u32,
    /// The column in which its rule began.
    origin: u32,
    /// Nothing was read since its rule, or its run of a block, began: neither may end here.
    fresh: bool,
}

/// A call of a rule, by the column in which the rule begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ChartCall {
    rule: CompiledRuleId,
    origin: u32,
}

/// The place of an item.
#[derive(Clone, Copy, Debug)]
struct ItemPlace {
    column: u32,
    /// Index in the column.
    index: u32,
}

impl ChartItem {
    /// The call of the item's rule.
    fn chart_call(&self) -> ChartCall {
        ChartCall { rule: self.rule, origin: self.origin }
    }
}

/// How an item was derived.
#[derive(Clone, Copy, Debug)]
enum Derivation {
    /// Its rule begins.
    Begin,
    /// From an item of the same column.
    SameColumn(u32),
    /// From an item of the previous column.
    Scan(u32),
    /// After a call: the caller, and how the callee ended.
    Completion { caller: ItemPlace, ended: EndedRule },
}

/// How a rule ended.
#[derive(Clone, Copy, Debug)]
enum EndedRule {
    /// By this item in a final state.
    Final(u32),
    /// By a spent budget: an index into [`Column::cuts`].
    Cut(u32),
}

/// The items of the open calls inside of a rule when it was cut, innermost first.
type CutPath = Vec<ItemPlace>;

/// The items at one position of the text: after a byte or a special token.
#[derive(Default)]
struct Column {
    items: Vec<(ChartItem, Derivation)>,
    /// By rule: the items that called it here, and the states to return to.
    callers: HashMap<CompiledRuleId, Vec<(u32, StateId)>>,
    /// Rules that were cut here.
    cuts: Vec<CutPath>,
    position: TextPosition,
}

/// A position of the text.
#[derive(Clone, Copy, Debug, Default)]
struct TextPosition {
    /// Bytes before it.
    offset: usize,
    /// Code points that began before it.
    chars: u32,
    /// Bytes that the last one of them still lacks.
    missing_bytes: u8,
    /// Tokens that ended up to here.
    tokens: u32,
    /// Whether a token ended exactly here.
    token_ends: bool,
}

impl TextPosition {
    /// The position after a byte.
    fn after_byte(self, byte: u8) -> TextPosition {
        let (new_chars, missing_bytes) = match byte {
            0x80..0xC0 => (0, self.missing_bytes.saturating_sub(1)),
            _ => (1, utf8::continuation_bytes(byte)),
        };
        let (offset, chars) = (self.offset + 1, self.chars + new_chars);
        TextPosition { offset, chars, missing_bytes, token_ends: false, ..self }
    }

    /// The position at the end of a token.
    fn at_token_end(self) -> TextPosition {
        TextPosition { tokens: self.tokens + 1, token_ends: true, ..self }
    }
}

/// An Earley chart of one text.
pub(crate) struct Chart<'p> {
    program: &'p mut Program,
    columns: Vec<Column>,
    /// The items of the last column, as a set.
    members: HashSet<ChartItem>,
    /// Rules that ended in the last column.
    ended: HashSet<ChartCall>,
    /// Calls of rules that are cut when their budget is spent.
    open_budgets: Vec<ChartCall>,
    /// Memory that was taken so far.
    bytes: usize,
}

impl<'p> Chart<'p> {
    /// The chart of the empty text.
    pub(crate) fn new(program: &'p mut Program) -> Result<Chart<'p>, ChartLimit> {
        let mut chart = Chart {
            program,
            columns: Vec::new(),
            members: HashSet::default(),
            ended: HashSet::default(),
            open_budgets: Vec::new(),
            bytes: 0,
        };
        let rule = chart.program.compiled().start;
        let state = chart.program.instantiate(rule);
        chart.begin_column(TextPosition { token_ends: true, ..TextPosition::default() })?;
        let start = ChartItem { rule, state, count: 0, origin: 0, fresh: true };
        chart.push(start, Derivation::Begin)?;
        chart.note_budget(start.chart_call());
        chart.close()?;
        Ok(chart)
    }

    /// Reads one token. Returns false, and reads nothing, if it does not fit.
    pub(crate) fn token(&mut self, input: ChartInput<'_>) -> Result<bool, ChartLimit> {
        fuel::spend(self.open_budgets.len())?;
        let (columns, budgets) = (self.columns.len(), self.open_budgets.clone());
        let fits = match input {
            ChartInput::Bytes(bytes) => self.read_bytes(bytes)?,
            ChartInput::Special(specials, text) => {
                let symbols: Vec<Symbol> = specials.iter().copied().map(Symbol::Special).collect();
                let mut position = self.position().at_token_end();
                position.offset += text.len();
                self.read(&symbols, position)?
            }
        };
        if !fits {
            self.columns.truncate(columns);
            self.open_budgets = budgets;
        }
        Ok(fits)
    }

    /// Reads the bytes of one token as far as they fit. Returns whether all do.
    fn read_bytes(&mut self, bytes: &[u8]) -> Result<bool, ChartLimit> {
        for (i, &byte) in bytes.iter().enumerate() {
            let mut position = self.position().after_byte(byte);
            if i + 1 == bytes.len() {
                position = position.at_token_end();
            }
            if !self.read(&[Symbol::Byte(byte)], position)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The last position.
    fn position(&self) -> TextPosition {
        self.columns.last().map_or_else(TextPosition::default, |column| column.position)
    }

    /// Adds the column after one of these symbols, at a position. Returns whether it has items.
    fn read(&mut self, symbols: &[Symbol], position: TextPosition) -> Result<bool, ChartLimit> {
        let from = self.columns.len() - 1;
        self.begin_column(position)?;
        for index in 0..self.columns[from].items.len() {
            let (item, _) = self.columns[from].items[index];
            if !self.program.state(item.state).has_scan_edge {
                continue;
            }
            self.program.expand(item.state);
            for symbol in symbols {
                let targets: Vec<StateId> = symbol.targets(self.program, item.state).collect();
                for state in targets {
                    let item = ChartItem { state, fresh: false, ..item };
                    self.push(item, Derivation::Scan(index as u32))?;
                }
            }
        }
        self.close()?;
        Ok(self.columns.last().is_some_and(|column| !column.items.is_empty()))
    }

    /// Adds an empty column.
    fn begin_column(&mut self, position: TextPosition) -> Result<(), ChartLimit> {
        self.take_bytes(2 * size_of::<Column>())?;
        self.columns.push(Column { position, ..Column::default() });
        // Clearing a table takes its whole capacity.
        if self.members.capacity() > MIN_SHRUNK + 8 * self.members.len() {
            (self.members, self.ended) = Default::default();
        }
        self.members.clear();
        self.ended.clear();
        Ok(())
    }

    /// Adds an item to the last column, unless it is there.
    fn push(&mut self, item: ChartItem, from: Derivation) -> Result<(), ChartLimit> {
        fuel::spend(PUSH_FUEL)?;
        if self.members.insert(item) {
            self.take_bytes(ITEM_BYTES)?;
            let last = self.columns.len() - 1;
            self.columns[last].items.push((item, from));
        }
        Ok(())
    }

    /// Counts memory that is taken for good. Error: it is more than [`MAX_BYTES`].
    pub(crate) fn take_bytes(&mut self, bytes: usize) -> Result<(), ChartLimit> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES { Err(ChartLimit::Memory) } else { Ok(()) }
    }

    /// Notes the call of a rule that its budget may cut.
    fn note_budget(&mut self, start: ChartCall) {
        if self
            .program
            .compiled()
            .budgets
            .get(&start.rule)
            .is_some_and(|m| m.on_exhausted == BudgetPolicy::Cut)
        {
            self.open_budgets.push(start);
        }
    }

    /// Completion and prediction in the last column.
    fn close(&mut self) -> Result<(), ChartLimit> {
        let mut index = 0;
        loop {
            let last = self.columns.len() - 1;
            while let Some(&(item, _)) = self.columns[last].items.get(index) {
                fuel::spend(ITEM_FUEL)?;
                self.complete(index as u32, item)?;
                self.predict(last, index as u32, item)?;
                index += 1;
            }
            if !self.cut_spent(last)? {
                return Ok(());
            }
        }
    }

    /// Completes one item: the end of a rule, or of a block's run.
    fn complete(&mut self, index: u32, item: ChartItem) -> Result<(), ChartLimit> {
        let state = self.program.state(item.state);
        if item.fresh || !state.is_final {
            return Ok(());
        }
        if state.block == BlockId::NONE {
            return self.end_rule(item.chart_call(), EndedRule::Final(index));
        }
        let &Block { start, exit, .. } = self.program.block(state.block);
        let RunEnd { next_run, may_exit } = self.program.block(state.block).end_run(item.count);
        if let Some(count) = next_run {
            let run = ChartItem { state: start, count, fresh: true, ..item };
            self.push(run, Derivation::SameColumn(index))?;
        }
        if may_exit {
            let after = ChartItem { state: exit, count: 0, ..item };
            self.push(after, Derivation::SameColumn(index))?;
        }
        Ok(())
    }

    /// Ends a rule.
    fn end_rule(&mut self, start: ChartCall, ended: EndedRule) -> Result<(), ChartLimit> {
        if !self.ended.insert(start) {
            return Ok(());
        }
        let ChartCall { rule, origin } = start;
        let caller = |chart: &Self, index: usize| {
            chart.columns[origin as usize].callers.get(&rule)?.get(index).copied()
        };
        let mut index = 0;
        while let Some((at, to)) = caller(self, index) {
            let (from, _) = self.columns[origin as usize].items[at as usize];
            let count = self.program.return_count(to, from.count);
            let item = ChartItem { state: to, count, fresh: false, ..from };
            let caller = ItemPlace { column: origin, index: at };
            self.push(item, Derivation::Completion { caller, ended })?;
            index += 1;
        }
        Ok(())
    }

    /// Predicts from one item: blocks that it enters, and rules that it calls.
    fn predict(&mut self, last: usize, index: u32, item: ChartItem) -> Result<(), ChartLimit> {
        if !self.program.state(item.state).has_call_edge {
            return Ok(());
        }
        self.program.expand(item.state);
        for i in 0..self.program.block_entries(item.state).len() {
            let start = self.program.block(self.program.block_entries(item.state)[i]).start;
            let run = ChartItem { state: start, count: 0, fresh: true, ..item };
            self.push(run, Derivation::SameColumn(index))?;
        }
        for i in 0..self.program.calls(item.state).len() {
            let (rule, to) = self.program.calls(item.state)[i];
            fuel::spend(PUSH_FUEL)?;
            self.take_bytes(CALL_BYTES)?;
            let callers = self.columns[last].callers.entry(rule).or_default();
            let is_first = callers.is_empty();
            // The calls of one item stand together.
            let of_item = callers.iter().rev().take_while(|(caller, _)| *caller == index);
            if !of_item.into_iter().any(|call| call.1 == to) {
                callers.push((index, to));
            }
            if is_first {
                let state = self.program.instantiate(rule);
                let begin = ChartItem { rule, state, count: 0, origin: last as u32, fresh: true };
                self.push(begin, Derivation::Begin)?;
                self.note_budget(begin.chart_call());
            }
        }
        Ok(())
    }

    /// Ends the rules whose budget is spent. Returns whether there were any. Rules that no item is
    /// inside of are forgotten, as no later item will be.
    fn cut_spent(&mut self, last: usize) -> Result<bool, ChartLimit> {
        let mut any_cut = false;
        for start in std::mem::take(&mut self.open_budgets) {
            fuel::spend(1)?;
            if !self.ended.contains(&start) && self.is_spent(start, last) {
                let Some(path) = self.open_calls(last, start)? else { continue };
                self.take_bytes(path.len() * size_of::<ItemPlace>())?;
                let column = &mut self.columns[last];
                column.cuts.push(path);
                let number = column.cuts.len() as u32 - 1;
                self.end_rule(start, EndedRule::Cut(number))?;
                any_cut = true;
            }
            self.open_budgets.push(start);
        }
        Ok(any_cut)
    }

    /// Whether a rule has spent its budget in column `last`.
    fn is_spent(&self, ChartCall { rule, origin }: ChartCall, last: usize) -> bool {
        let Some(meter) = self.program.compiled().budgets.get(&rule) else { return false };
        let [begin, end] = [origin as usize, last].map(|column| self.columns[column].position);
        match meter.unit {
            BudgetUnit::Char => end.missing_bytes == 0 && end.chars - begin.chars >= meter.units(),
            BudgetUnit::Token => {
                let since = begin.tokens + u32::from(!begin.token_ends);
                end.token_ends && end.missing_bytes == 0 && end.tokens >= since + meter.units() - 1
            }
        }
    }

    /// The open calls from an item of the last column outwards to a call of `goal`, if any.
    fn open_calls(&self, last: usize, goal: ChartCall) -> Result<Option<CutPath>, ChartLimit> {
        let mut seen: HashSet<ChartCall> = HashSet::default();
        // Items with an open call, and the index of the item that led to each.
        let mut places: Vec<(ItemPlace, Option<usize>)> = Vec::new();
        for (index, (item, _)) in self.columns[last].items.iter().enumerate() {
            fuel::spend(PUSH_FUEL)?;
            if self.program.state(item.state).has_scan_edge && seen.insert(item.chart_call()) {
                places.push((ItemPlace { column: last as u32, index: index as u32 }, None));
            }
        }
        let mut next = 0;
        while let Some(&(place, _)) = places.get(next) {
            let (item, _) = self.entry(place);
            if item.chart_call() == goal {
                let mut path: CutPath = std::iter::successors(Some(next), |&at| places[at].1)
                    .map(|at| places[at].0)
                    .collect();
                path.reverse();
                return Ok(Some(path));
            }
            for &(caller, _) in
                self.columns[item.origin as usize].callers.get(&item.rule).into_iter().flatten()
            {
                fuel::spend(PUSH_FUEL)?;
                let place = ItemPlace { column: item.origin, index: caller };
                let (outer, _) = self.entry(place);
                if seen.insert(outer.chart_call()) {
                    places.push((place, Some(next)));
                }
            }
            next += 1;
        }
        Ok(None)
    }

    /// The item at a place, and how it was derived.
    fn entry(&self, place: ItemPlace) -> (ChartItem, Derivation) {
        self.columns[place.column as usize].items[place.index as usize]
    }

    /// What each rule derived, along one derivation of the text. Of calls that are still open, what
    /// ended inside of them.
    pub(crate) fn derived_spans(&self) -> Result<Vec<DerivedSpan>, ChartLimit> {
        let last = self.columns.len() - 1;
        let start = self.program.compiled().start;
        let mut spans = SpanCollector { chart: self, spans: Vec::new(), pending: Vec::new() };
        match self.columns[last].items.iter().position(|(item, _)| self.is_whole(item)) {
            Some(index) => {
                let end = self.columns[last].position.offset;
                spans.spans.push(DerivedSpan { rule: start, start: 0, end, depth: 0 });
                spans.pending.push((ItemPlace { column: last as u32, index: index as u32 }, 1));
            }
            None => {
                let start = ChartCall { rule: start, origin: 0 };
                let open = self.open_calls(last, start)?.unwrap_or_default();
                let depths = open.iter().rev().zip(1..);
                spans.pending.extend(depths.map(|(&place, depth)| (place, depth)));
            }
        }
        while let Some((place, depth)) = spans.pending.pop() {
            spans.collect(place, depth)?;
        }
        Ok(spans.spans)
    }

    /// Whether an item of the last column is the start rule with the whole text read.
    fn is_whole(&self, item: &ChartItem) -> bool {
        let state = self.program.state(item.state);
        item.rule == self.program.compiled().start
            && item.origin == 0
            && !item.fresh
            && state.is_final
            && state.block == BlockId::NONE
    }
}

/// Reads a chart backwards along one derivation.
struct SpanCollector<'c, 'p> {
    chart: &'c Chart<'p>,
    spans: Vec<DerivedSpan>,
    /// Items of rules whose calls are still to be read, and the number of calls around those.
    pending: Vec<(ItemPlace, u32)>,
}

impl SpanCollector<'_, '_> {
    /// Follows one rule from the item at `place` back to its beginning, and collects the rules that
    /// it called.
    fn collect(&mut self, mut place: ItemPlace, depth: u32) -> Result<(), ChartLimit> {
        loop {
            fuel::spend(PUSH_FUEL)?;
            let (item, from) = self.chart.entry(place);
            match from {
                Derivation::Begin => return Ok(()),
                Derivation::SameColumn(other) => place.index = other,
                Derivation::Scan(other) => {
                    place = ItemPlace { column: place.column - 1, index: other };
                }
                Derivation::Completion { caller, ended } => {
                    self.add_ended(place.column, ended, depth);
                    debug_assert_eq!(self.chart.entry(caller).0.rule, item.rule);
                    place = caller;
                }
            }
        }
    }

    /// Adds a rule that ended in a column; of a rule that was cut, also the calls that were open.
    fn add_ended(&mut self, column: u32, ended: EndedRule, depth: u32) {
        match ended {
            EndedRule::Final(inner) => self.add(ItemPlace { column, index: inner }, column, depth),
            EndedRule::Cut(number) => {
                let path = &self.chart.columns[column as usize].cuts[number as usize];
                for (&open, inner) in path.iter().rev().zip(depth..) {
                    self.add(open, column, inner);
                }
            }
        }
    }

    /// Adds the span of an item's rule up to a column.
    fn add(&mut self, place: ItemPlace, column: u32, depth: u32) {
        let (item, _) = self.chart.entry(place);
        self.spans.push(DerivedSpan {
            rule: item.rule,
            start: self.chart.columns[item.origin as usize].position.offset,
            end: self.chart.columns[column as usize].position.offset,
            depth,
        });
        self.pending.push((place, depth + 1));
    }
}
