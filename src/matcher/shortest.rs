//! The shortest way to the end of a sentence, through calls, counted blocks and frames: Knuth's generalisation of Dijkstra's
//! algorithm (D. E. Knuth, "A generalization of Dijkstra's algorithm", 1977), run forward and lazily. A call costs
//! what the shortest sentence of its rule does, a counted block that of its shortest run times the runs that are missing.
//!
//! Every rule and block that a search meets is a search of its own, from its beginning; all take their steps in the order of
//! their own costs. A search that waits for another at cost `c` has therefore missed nothing below `c`, and nothing beyond
//! the cost of the answer is looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{BOTTOM, ConfigId, Item, ROOT};
use crate::compile::NO_BLOCK;
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{HashMap, HashSet};

/// Bytes, and of equally many, those that no token has. What does not fit is the largest that does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    length: u64,
    missing: u64,
}

impl Cost {
    fn plus(self, other: Cost) -> Cost {
        Cost {
            length: self.length.saturating_add(other.length),
            missing: self.missing.saturating_add(other.missing),
        }
    }

    fn times(self, n: u64) -> Cost {
        Cost { length: self.length.saturating_mul(n), missing: self.missing.saturating_mul(n) }
    }
}

/// What has a length of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// The shortest sentence of a rule that is not empty.
    Rule(u32),
    /// The shortest run of a block that is not empty.
    Run(u32),
}

/// One step of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Byte(u8),
    Special(u32),
    /// Over the shortest text of a part, so many times.
    Part {
        search: u32,
        times: u64,
    },
    /// On to what follows, reading nothing.
    On,
}

/// A place that a search has got to. `from` is the label before it.
#[derive(Clone, Copy, Debug)]
struct Label {
    item: Item,
    cost: Cost,
    from: u32,
    step: Step,
}

/// Fuel for taking a label from its queue, and for putting one there.
const SETTLING: usize = 16;
const PUSHING: usize = 16;
const NONE: u32 = u32::MAX;
/// The search from a configuration.
const QUERY: u32 = u32::MAX;

/// A label to come when a part's length is known.
#[derive(Clone, Copy, Debug)]
struct Wait {
    search: u32,
    from: u32,
    times: u64,
    to: Item,
}

#[derive(Debug, Default)]
struct Search {
    labels: Vec<Label>,
    settled: HashSet<Item>,
    waiting: Vec<Wait>,
    /// The answer, and the steps of a way that has it.
    found: Option<(Cost, Box<[Step]>)>,
}

impl Search {
    /// Ends the search at a label.
    fn end(&mut self, label: u32) {
        let mut steps = Vec::new();
        let mut at = label;
        while at != NONE {
            let Label { from, step, .. } = self.labels[at as usize];
            if step != Step::On {
                steps.push(step);
            }
            at = from;
        }
        steps.reverse();
        self.found = Some((self.labels[label as usize].cost, steps.into()));
        self.labels = Vec::new();
        self.settled = HashSet::default();
    }
}

type Queue = BinaryHeap<Reverse<(Cost, u32, u32)>>;

/// Shortest lengths of one grammar's rules and blocks, found as far as they were needed.
#[derive(Debug)]
pub(crate) struct Lengths {
    /// What a special token counts.
    special: u64,
    /// Bytes that no token has.
    missing: ByteSet,
    parts: HashMap<Part, u32>,
    searches: Vec<Search>,
    /// Next steps of the parts' searches.
    queue: Queue,
    query: Search,
    query_queue: Queue,
}

impl Lengths {
    /// `special` is what a special token counts (at least 1), `missing` are bytes to avoid where others are as good.
    pub(crate) fn new(special: u64, missing: ByteSet) -> Lengths {
        Lengths {
            special,
            missing,
            parts: HashMap::default(),
            searches: Vec::new(),
            queue: Queue::new(),
            query: Search::default(),
            query_queue: Queue::new(),
        }
    }

    /// What a special token counts.
    pub(crate) fn special(&self) -> u64 {
        self.special
    }

    /// The fewest bytes from a configuration to the end of a sentence, and the steps of a way that takes no more. `None`
    /// for a dead configuration. Cost: the states that can be reached with fewer bytes, from here and in each rule on the way;
    /// rules and blocks once for all calls.
    pub(crate) fn shortest(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<Option<(u64, Box<[Step]>)>, ParserLimit> {
        if parser.store().done(config).root {
            return Ok(Some((0, Box::default())));
        }
        self.query = Search::default();
        self.query_queue.clear();
        parser.expand(config);
        // Items that may end or call have been followed there already: each reads something first.
        for item in parser.store().items(config).to_vec() {
            let item = Item { state: parser.program_mut().nearing_end(item.state), ..item };
            parser.program_mut().expand(item.state);
            let start = Label { item, cost: Cost::default(), from: NONE, step: Step::On };
            self.read(parser, QUERY, NONE, start);
        }
        let found = self.run(parser);
        for search in &mut self.searches {
            search.waiting.retain(|wait| wait.search != QUERY);
        }
        self.query = Search::default();
        Ok(found?.map(|(cost, steps)| (cost.length, steps)))
    }

    /// Writes out steps. `longest` bounds the text, which must be no longer than that.
    pub(crate) fn text(&self, steps: &[Step], longest: usize) -> Vec<Step> {
        let mut out = Vec::new();
        // What is left to do, and how often.
        let mut stack: Vec<(&[Step], u64)> = vec![(steps, 1)];
        while let Some((steps, times)) = stack.pop()
            && out.len() <= longest
        {
            let Some((&first, rest)) = steps.split_first() else { continue };
            if times > 1 {
                stack.push((steps, times - 1));
            }
            stack.push((rest, 1));
            match first {
                Step::Part { search, times } => {
                    if let Some((_, inner)) = &self.searches[search as usize].found {
                        stack.push((inner, times));
                    }
                }
                Step::On => {}
                step => out.push(step),
            }
        }
        out
    }

    fn run(&mut self, parser: &mut Parser) -> Result<Option<(Cost, Box<[Step]>)>, ParserLimit> {
        loop {
            let own = self.query_queue.peek().map(|next| next.0.0);
            let others = self.queue.peek().map(|next| next.0.0);
            let queue = match (own, others) {
                (Some(own), others) if others.is_none_or(|o| own < o) => &mut self.query_queue,
                (_, Some(_)) => &mut self.queue,
                _ => return Ok(None),
            };
            // Before the label is taken: a search that stops here goes on from here when it is
            // asked again.
            fuel::spend(SETTLING)?;
            let Some(Reverse((_, search, at))) = queue.pop() else { return Ok(None) };
            let this = self.search(search);
            if this.found.is_some() {
                continue;
            }
            let label = this.labels[at as usize];
            // A part's beginning has read nothing: it ends nothing, and may be come back to.
            let is_start = label.from == NONE && label.step == Step::On;
            if !is_start {
                if !this.settled.insert(label.item) {
                    continue;
                }
                if self.finish(parser, search, at, label) {
                    if search == QUERY {
                        return Ok(self.query.found.take());
                    }
                    continue;
                }
            }
            let state = parser.program_mut().nearing_end(label.item.state);
            let label = Label { item: Item { state, ..label.item }, ..label };
            parser.program_mut().expand(state);
            if parser.is_exhausted() {
                return Err(ParserLimit::Memory);
            }
            self.read(parser, search, at, label);
            for i in 0..parser.program().calls(state).len() {
                let (rule, to) = parser.program().calls(state)[i];
                let count =
                    if parser.program().state(to).block == NO_BLOCK { 0 } else { label.item.count };
                self.through(
                    parser,
                    search,
                    at,
                    Part::Rule(rule),
                    1,
                    Item { state: to, count, ..label.item },
                );
            }
            for i in 0..parser.program().enters(state).len() {
                // A block that need not run at all can be gone around; one that is entered runs.
                let block = parser.program().enters(state)[i];
                let placed = *parser.program().block(block);
                let to = Item { state: placed.exit, count: 0, ..label.item };
                self.through(
                    parser,
                    search,
                    at,
                    Part::Run(block),
                    u64::from(placed.min.max(1)),
                    to,
                );
            }
        }
    }

    fn search(&mut self, search: u32) -> &mut Search {
        if search == QUERY { &mut self.query } else { &mut self.searches[search as usize] }
    }

    fn push(&mut self, search: u32, label: Label) {
        let this = self.search(search);
        if this.found.is_some() || this.settled.contains(&label.item) {
            return;
        }
        fuel::charge(PUSHING);
        let at = this.labels.len() as u32;
        this.labels.push(label);
        let queue = if search == QUERY { &mut self.query_queue } else { &mut self.queue };
        queue.push(Reverse((label.cost, search, at)));
    }

    /// Follows byte and special edges.
    fn read(&mut self, parser: &Parser, search: u32, from: u32, label: Label) {
        for edge in parser.program().byte_edges(label.item.state) {
            let byte = (edge.lo..=edge.hi).find(|&b| !self.missing.contains(b));
            let cost = Cost { length: 1, missing: u64::from(byte.is_none()) };
            let item = Item { state: edge.to, ..label.item };
            let step = Step::Byte(byte.unwrap_or(edge.lo));
            self.push(search, Label { item, cost: label.cost.plus(cost), from, step });
        }
        for &(special, to) in parser.program().special_edges(label.item.state) {
            let cost = Cost { length: self.special, missing: 0 };
            let item = Item { state: to, ..label.item };
            self.push(
                search,
                Label { item, cost: label.cost.plus(cost), from, step: Step::Special(special) },
            );
        }
    }

    /// Where a rule or a run may end: what follows, or that was all (true).
    fn finish(&mut self, parser: &mut Parser, search: u32, at: u32, label: Label) -> bool {
        let item = label.item;
        let state = *parser.program().state(item.state);
        if !state.is_final {
            return false;
        }
        let on = |item| Label { item, cost: label.cost, from: at, step: Step::On };
        if search != QUERY {
            self.settle(search, at);
            return true;
        }
        if state.block != NO_BLOCK {
            let placed = *parser.program().block(state.block);
            let more = u64::from(placed.min.saturating_sub(item.count.saturating_add(1)));
            let exit = Item { state: placed.exit, count: 0, ..item };
            match more {
                0 => self.push(QUERY, on(exit)),
                _ => self.through(parser, QUERY, at, Part::Run(state.block), more, exit),
            }
            return false;
        }
        match item.frame {
            ROOT => {
                self.settle(QUERY, at);
                return true;
            }
            BOTTOM => {}
            frame => {
                parser.store().returns(frame).iter().for_each(|&back| self.push(QUERY, on(back)))
            }
        }
        false
    }

    /// A search has its answer: those that wait for it go on.
    fn settle(&mut self, search: u32, at: u32) {
        let this = self.search(search);
        this.end(at);
        for wait in std::mem::take(&mut this.waiting) {
            self.resume(search, wait);
        }
    }

    fn resume(&mut self, part: u32, wait: Wait) {
        let Some((length, _)) = self.searches[part as usize].found else { return };
        let waiting = self.search(wait.search);
        // A search that has ended meanwhile has no labels any more.
        let Some(before) = waiting.labels.get(wait.from as usize) else { return };
        let cost = before.cost.plus(length.times(wait.times));
        let step = Step::Part { search: part, times: wait.times };
        self.push(wait.search, Label { item: wait.to, cost, from: wait.from, step });
    }

    /// From a label over a part's shortest text, so many times, to an item.
    fn through(
        &mut self,
        parser: &mut Parser,
        search: u32,
        from: u32,
        part: Part,
        times: u64,
        to: Item,
    ) {
        let number = match self.parts.get(&part) {
            Some(&number) => number,
            None => self.begin(parser, part),
        };
        let wait = Wait { search, from, times, to };
        if self.searches[number as usize].found.is_some() {
            self.resume(number, wait);
        } else {
            self.searches[number as usize].waiting.push(wait);
        }
    }

    fn begin(&mut self, parser: &mut Parser, part: Part) -> u32 {
        let number = self.searches.len() as u32;
        self.parts.insert(part, number);
        self.searches.push(Search::default());
        let state = match part {
            Part::Rule(rule) => parser.program_mut().open(rule),
            Part::Run(block) => parser.program().block(block).start,
        };
        let item = Item { state, count: 0, frame: BOTTOM };
        self.push(number, Label { item, cost: Cost::default(), from: NONE, step: Step::On });
        number
    }
}
