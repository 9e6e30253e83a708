//! Shortest completion: the fewest bytes from a configuration to the end of the text.
//!
//! The search is Knuth's generalisation of Dijkstra's algorithm (D. E. Knuth, "A generalization of
//! Dijkstra's algorithm", 1977), run forward and lazily, through calls, counted blocks and frames.
//! A call costs as much as the shortest text of its rule. A counted block costs its shortest run,
//! times the number of missing runs.
//!
//! Each rule and block on the way is a search of its own, from its beginning. All searches take
//! their steps in the order of cost. A search that waits for another at cost `c` has therefore
//! missed nothing below `c`, and nothing beyond the cost of the answer is visited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, FrameId, Item};
use super::symbol::Symbol;
use crate::compile::{BlockId, CompiledRuleId};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::ids::id;

id! {
    /// A search: an index into [`ShortestPaths::searches`], or [`SearchId::QUERY`].
    pub(crate) SearchId
}

impl SearchId {
    /// The search from a configuration.
    const QUERY: SearchId = SearchId::from_raw(u32::MAX);
}

id! {
    /// A label of one search: an index into [`CostSearch::labels`].
    LabelId
}

impl LabelId {
    /// No label: the beginning of a search.
    const NONE: LabelId = LabelId::from_raw(u32::MAX);
}

/// A label of any search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LabelPlace {
    search: SearchId,
    label: LabelId,
}

/// Length in bytes; ties prefer fewer bytes that no token has. Saturating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    length: u64,
    unspellable: u64,
}

impl Cost {
    fn plus(self, other: Cost) -> Cost {
        Cost {
            length: self.length.saturating_add(other.length),
            unspellable: self.unspellable.saturating_add(other.unspellable),
        }
    }

    fn times(self, n: u64) -> Cost {
        Cost {
            length: self.length.saturating_mul(n),
            unspellable: self.unspellable.saturating_mul(n),
        }
    }
}

/// A part of the grammar with a shortest text of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subgoal {
    /// The shortest text of a rule that is not empty.
    Rule(CompiledRuleId),
    /// The shortest run of a block that is not empty.
    Run(BlockId),
}

/// One step of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionStep {
    Read(Symbol),
    /// The shortest text of a subgoal, this many times.
    Subgoal {
        search: SearchId,
        times: u64,
    },
    /// A step to what follows, without input.
    Epsilon,
}

/// A node of the search: an item with its cost. `from` is the label before it.
#[derive(Clone, Copy, Debug)]
struct Label {
    item: Item,
    cost: Cost,
    from: LabelId,
    step: CompletionStep,
}

impl Label {
    /// The beginning of a search.
    fn start(item: Item) -> Label {
        Label { item, cost: Cost::default(), from: LabelId::NONE, step: CompletionStep::Epsilon }
    }
}

/// Fuel of taking a label from the queue.
const SETTLE_FUEL: usize = 16;
/// Fuel of adding a label.
const PUSH_FUEL: usize = 16;
/// Capacity of the cache of answers: total steps plus entries. Beyond it, the cache is cleared.
const MAX_ANSWER_STEPS: usize = 1 << 17;
/// Approximate memory of a step or an entry of that cache, in bytes.
const BYTES_PER_ANSWER_STEP: usize = 40;
/// Most labels that wait for a subgoal.
const MAX_WAITING: usize = 1 << 20;

/// A label to be added when a subgoal is solved.
#[derive(Clone, Copy, Debug)]
struct PendingLabel {
    /// The label before it.
    from: LabelPlace,
    times: u64,
    to: Item,
}

/// One search by increasing cost.
#[derive(Debug, Default)]
struct CostSearch {
    labels: Vec<Label>,
    settled: HashSet<Item>,
    waiting: Vec<PendingLabel>,
    /// The cost and the steps of the answer.
    answer: Option<(Cost, Box<[CompletionStep]>)>,
}

impl CostSearch {
    /// Ends the search at a label.
    fn end(&mut self, label: LabelId) {
        let mut steps = Vec::new();
        let mut at = label;
        while at != LabelId::NONE {
            let Label { from, step, .. } = self.labels[at.index()];
            if step != CompletionStep::Epsilon {
                steps.push(step);
            }
            at = from;
        }
        steps.reverse();
        self.answer = Some((self.labels[label.index()].cost, steps.into()));
        self.labels = Vec::new();
        self.settled = HashSet::default();
    }
}

/// Labels by cost.
type LabelQueue = BinaryHeap<Reverse<(Cost, LabelPlace)>>;

/// Shortest completions of one grammar. Searches of rules and blocks are kept as far as they ran.
#[derive(Debug)]
pub(crate) struct ShortestPaths {
    /// The cost of a special token.
    special_cost: u64,
    /// Bytes that no token has.
    unspellable: ByteSet,
    subgoals: HashMap<Subgoal, SearchId>,
    searches: Vec<CostSearch>,
    /// Labels of all searches that wait for a subgoal.
    waiting: usize,
    /// Labels of the subgoals' searches, by cost.
    queue: LabelQueue,
    query: CostSearch,
    query_queue: LabelQueue,
    /// Answers by configuration. Near a length limit the same ones are asked about again and again.
    answers: HashMap<ConfigId, Option<ShortestPath>>,
    /// Steps of all answers, and one for each.
    answer_steps: usize,
}

/// The length of a completion in bytes, and its steps.
pub(crate) type ShortestPath = (u64, Arc<[CompletionStep]>);

impl ShortestPaths {
    /// `special_cost` is the cost of a special token (at least 1). Bytes in `unspellable` are
    /// avoided among equal costs.
    pub(crate) fn new(special_cost: u64, unspellable: ByteSet) -> ShortestPaths {
        ShortestPaths {
            special_cost,
            unspellable,
            subgoals: HashMap::default(),
            searches: Vec::new(),
            waiting: 0,
            queue: LabelQueue::new(),
            query: CostSearch::default(),
            query_queue: LabelQueue::new(),
            answers: HashMap::default(),
            answer_steps: 0,
        }
    }

    /// Memory of the cached answers, in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.answer_steps * BYTES_PER_ANSWER_STEP
    }

    /// The cost of a special token.
    pub(crate) fn special_cost(&self) -> u64 {
        self.special_cost
    }

    /// The fewest bytes from a configuration to the end of the text, and the steps of such a
    /// completion. `None` for a dead configuration. Cost: a look-up once it is known; otherwise the
    /// states within that distance, here and in each rule on the way. Searches of rules and blocks
    /// are shared by all calls.
    pub(crate) fn shortest(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<Option<ShortestPath>, ParserLimit> {
        if let Some(answer) = self.answers.get(&config) {
            return Ok(answer.clone());
        }
        let answer = self.find_shortest(parser, config)?;
        let answer = answer.map(|(cost, steps)| (cost.length, Arc::from(steps)));
        let steps = 1 + answer.as_ref().map_or(0, |(_, steps): &ShortestPath| steps.len());
        self.answer_steps += steps;
        if self.answer_steps > MAX_ANSWER_STEPS {
            self.answers.clear();
            self.answer_steps = steps;
        }
        self.answers.insert(config, answer.clone());
        Ok(answer)
    }

    /// Searches the shortest completion of a configuration.
    fn find_shortest(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<Option<(Cost, Box<[CompletionStep]>)>, ParserLimit> {
        if parser.store().is_complete(config) {
            return Ok(Some((Cost::default(), Box::default())));
        }
        self.query = CostSearch::default();
        self.query_queue.clear();
        parser.expand(config);
        // A configuration has already followed its ends and calls; each item reads something first.
        for item in parser.store().items(config).to_vec() {
            let item = Item { state: parser.program_mut().completion_state(item.state), ..item };
            parser.program_mut().expand(item.state);
            let before = LabelPlace { search: SearchId::QUERY, label: LabelId::NONE };
            self.push_edges(parser, before, Label::start(item));
        }
        let answer = self.run(parser);
        fuel::charge(self.searches.len() / 4);
        self.waiting = 0;
        for search in &mut self.searches {
            search.waiting.retain(|pending| pending.from.search != SearchId::QUERY);
            self.waiting += search.waiting.len();
        }
        self.query = CostSearch::default();
        answer
    }

    /// The fewest bytes from a configuration to the end of the text; `u64::MAX` for a dead one.
    pub(crate) fn length(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<u64, ParserLimit> {
        Ok(self.shortest(parser, config)?.map_or(u64::MAX, |(length, _)| length))
    }

    /// Expands steps into symbols. `longest` bounds their number.
    pub(crate) fn text(&self, steps: &[CompletionStep], longest: usize) -> Vec<Symbol> {
        let mut out = Vec::new();
        // Remaining steps, and how often to repeat them.
        let mut stack: Vec<(&[CompletionStep], u64)> = vec![(steps, 1)];
        while let Some((steps, times)) = stack.pop()
            && out.len() <= longest
        {
            let Some((&first, rest)) = steps.split_first() else { continue };
            if times > 1 {
                stack.push((steps, times - 1));
            }
            stack.push((rest, 1));
            match first {
                CompletionStep::Subgoal { search, times } => {
                    if let Some((_, inner)) = &self.searches[search.index()].answer {
                        stack.push((inner, times));
                    }
                }
                CompletionStep::Epsilon => {}
                CompletionStep::Read(symbol) => out.push(symbol),
            }
        }
        out
    }

    /// Runs all searches in the order of cost until the query is solved.
    fn run(
        &mut self,
        parser: &mut Parser,
    ) -> Result<Option<(Cost, Box<[CompletionStep]>)>, ParserLimit> {
        loop {
            let next_query = self.query_queue.peek().map(|next| next.0.0);
            let next_subgoal = self.queue.peek().map(|next| next.0.0);
            let queue = match (next_query, next_subgoal) {
                (Some(next), other) if other.is_none_or(|other| next < other) => {
                    &mut self.query_queue
                }
                (_, Some(_)) => &mut self.queue,
                _ => return Ok(None),
            };
            // Fuel comes first, so that a search that stops here can be resumed later.
            fuel::spend(SETTLE_FUEL)?;
            if self.waiting > MAX_WAITING {
                return Err(ParserLimit::Memory);
            }
            let Some(Reverse((_, at))) = queue.pop() else { return Ok(None) };
            let current = self.search(at.search);
            if current.answer.is_some() {
                continue;
            }
            let label = current.labels[at.label.index()];
            // The first label of a subgoal has read nothing: it cannot end the rule, and may be
            // visited again.
            let is_start = label.from == LabelId::NONE && label.step == CompletionStep::Epsilon;
            if !is_start {
                if !current.settled.insert(label.item) {
                    continue;
                }
                if self.finish(parser, at, label) {
                    if at.search == SearchId::QUERY {
                        return Ok(self.query.answer.take());
                    }
                    continue;
                }
            }
            self.expand(parser, at, label)?;
        }
    }

    /// Adds labels for what the state of a settled label reads, calls and enters.
    fn expand(
        &mut self,
        parser: &mut Parser,
        at: LabelPlace,
        label: Label,
    ) -> Result<(), ParserLimit> {
        let state = parser.program_mut().completion_state(label.item.state);
        let label = Label { item: Item { state, ..label.item }, ..label };
        parser.program_mut().expand(state);
        if parser.is_exhausted() {
            return Err(ParserLimit::Memory);
        }
        self.push_edges(parser, at, label);
        for i in 0..parser.program().calls(state).len() {
            let (rule, to) = parser.program().calls(state)[i];
            let count = parser.program().return_count(to, label.item.count);
            let to = Item { state: to, count, ..label.item };
            self.step_over(parser, at, Subgoal::Rule(rule), 1, to);
        }
        for i in 0..parser.program().block_entries(state).len() {
            // A block that may run zero times has an edge around it; entering means at least one
            // run.
            let block = parser.program().block_entries(state)[i];
            let block_data = *parser.program().block(block);
            let to = Item { state: block_data.exit, count: 0, ..label.item };
            let runs = u64::from(block_data.min.max(1));
            self.step_over(parser, at, Subgoal::Run(block), runs, to);
        }
        Ok(())
    }

    /// A search by its id.
    fn search(&mut self, search: SearchId) -> &mut CostSearch {
        if search == SearchId::QUERY { &mut self.query } else { &mut self.searches[search.index()] }
    }

    /// Adds a label to a search and to its queue.
    fn push(&mut self, search: SearchId, label: Label) {
        let current = self.search(search);
        if current.answer.is_some() || current.settled.contains(&label.item) {
            return;
        }
        fuel::charge(PUSH_FUEL);
        let at = LabelPlace { search, label: LabelId::new(current.labels.len()) };
        current.labels.push(label);
        let queue = if search == SearchId::QUERY { &mut self.query_queue } else { &mut self.queue };
        queue.push(Reverse((label.cost, at)));
    }

    /// Adds labels for byte edges and special tokens. `from` is the label before them.
    fn push_edges(&mut self, parser: &Parser, from: LabelPlace, label: Label) {
        let LabelPlace { search, label: from } = from;
        for edge in parser.program().byte_edges(label.item.state) {
            let byte = (edge.lo..=edge.hi).find(|&b| !self.unspellable.contains(b));
            let cost = Cost { length: 1, unspellable: u64::from(byte.is_none()) };
            let item = Item { state: edge.to, ..label.item };
            let step = CompletionStep::Read(Symbol::Byte(byte.unwrap_or(edge.lo)));
            self.push(search, Label { item, cost: label.cost.plus(cost), from, step });
        }
        for &(special, to) in parser.program().special_edges(label.item.state) {
            let cost = Cost { length: self.special_cost, unspellable: 0 };
            let item = Item { state: to, ..label.item };
            let step = CompletionStep::Read(Symbol::Special(special));
            self.push(search, Label { item, cost: label.cost.plus(cost), from, step });
        }
    }

    /// Completes a label's rule or run. Returns true if the search is solved.
    fn finish(&mut self, parser: &mut Parser, at: LabelPlace, label: Label) -> bool {
        let item = label.item;
        let state = *parser.program().state(item.state);
        if !state.is_final {
            return false;
        }
        let epsilon =
            |item| Label { item, cost: label.cost, from: at.label, step: CompletionStep::Epsilon };
        if at.search != SearchId::QUERY {
            self.resolve(at);
            return true;
        }
        if state.block != BlockId::NONE {
            let block_data = *parser.program().block(state.block);
            let missing_runs =
                u64::from(block_data.min.saturating_sub(item.count.saturating_add(1)));
            let exit = Item { state: block_data.exit, count: 0, ..item };
            match missing_runs {
                0 => self.push(at.search, epsilon(exit)),
                _ => self.step_over(parser, at, Subgoal::Run(state.block), missing_runs, exit),
            }
            return false;
        }
        match item.frame {
            FrameId::ROOT => {
                self.resolve(at);
                return true;
            }
            FrameId::ISOLATED => {}
            frame => parser
                .store()
                .returns(frame)
                .iter()
                .for_each(|&back| self.push(at.search, epsilon(back))),
        }
        false
    }

    /// A search is solved: resumes those that wait for it.
    fn resolve(&mut self, at: LabelPlace) {
        let current = self.search(at.search);
        current.end(at.label);
        let waiting = std::mem::take(&mut current.waiting);
        self.waiting = self.waiting.saturating_sub(waiting.len());
        for pending in waiting {
            self.resume(at.search, pending);
        }
    }

    /// Continues a search that waited for a subgoal.
    fn resume(&mut self, subgoal: SearchId, pending: PendingLabel) {
        let Some((length, _)) = self.search(subgoal).answer else { return };
        let LabelPlace { search, label: from } = pending.from;
        let waiting = self.search(search);
        // A search that was solved in the meantime has no labels any more.
        let Some(before) = waiting.labels.get(from.index()) else { return };
        let cost = before.cost.plus(length.times(pending.times));
        let step = CompletionStep::Subgoal { search: subgoal, times: pending.times };
        self.push(search, Label { item: pending.to, cost, from, step });
    }

    /// Adds a label for an item after the shortest text of a subgoal, repeated `times`. `from` is
    /// the label before it.
    fn step_over(
        &mut self,
        parser: &mut Parser,
        from: LabelPlace,
        subgoal: Subgoal,
        times: u64,
        to: Item,
    ) {
        let search = match self.subgoals.get(&subgoal) {
            Some(&search) => search,
            None => self.begin(parser, subgoal),
        };
        let pending = PendingLabel { from, times, to };
        if self.search(search).answer.is_some() {
            self.resume(search, pending);
        } else {
            fuel::charge(PUSH_FUEL);
            self.waiting += 1;
            self.search(search).waiting.push(pending);
        }
    }

    /// Begins the search of a subgoal.
    fn begin(&mut self, parser: &mut Parser, subgoal: Subgoal) -> SearchId {
        let search = SearchId::new(self.searches.len());
        self.subgoals.insert(subgoal, search);
        self.searches.push(CostSearch::default());
        let state = match subgoal {
            Subgoal::Rule(rule) => parser.program_mut().instantiate(rule),
            Subgoal::Run(block) => parser.program().block(block).start,
        };
        self.push(search, Label::start(Item { state, count: 0, frame: FrameId::ISOLATED }));
        search
    }
}
