//! Tag dispatch as an automaton: the Aho-Corasick automaton over all triggers, stops and excludes (aho-corasick crate, output
//! links included) becomes the states of free text; a fired trigger leads to a state that calls the tag's body.

use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, StartKind};
use std::sync::{Arc, OnceLock};

use super::Mark;
use super::facts::RuleFacts;
use super::units::Symbol;
use crate::cache::Shared;
use crate::fsm::{ByteSet, Edge, Nfa, TooLarge};
use crate::hash::HashMap;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Trigger};

/// Memory of all shared automata, in bytes; what has not been used lately is dropped.
const MAX_BYTES: usize = 16 << 20;

/// What a dispatch watches for: all of it but the rules that are called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watched {
    /// Triggers of tags, each once.
    tags: Vec<Trigger>,
    stops: Vec<Trigger>,
    excludes: Vec<Vec<u8>>,
    after: AfterTag,
    end: DispatchEnd,
}

/// The automaton of all dispatches that watch for the same.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Calls are numbers of triggers.
    nfa: Nfa,
    marks: Vec<Mark>,
    /// Which states can reach an end, if everything that is called derives something.
    live: Vec<bool>,
    /// By state, once asked for.
    closed: Box<[OnceLock<Closed>]>,
}

/// A state with all that epsilon edges lead to.
#[derive(Debug)]
pub(super) struct Closed {
    /// Sorted; calls are numbers of triggers.
    pub(super) edges: Box<[Edge]>,
    pub(super) is_final: bool,
    pub(super) scannable: bool,
    pub(super) calling: bool,
}

/// A dispatch before it is known what the rules it calls derive.
#[derive(Debug)]
pub(super) struct Pending {
    shape: Arc<Shape>,
    /// By trigger: the rules of its tags.
    rules: Vec<Vec<u32>>,
}

/// A dispatch of a grammar.
#[derive(Debug)]
pub(crate) struct Dispatching {
    shape: Arc<Shape>,
    /// Other grammars have the same automaton.
    is_shared: bool,
    /// By trigger: the rules of its tags that derive something.
    rules: Vec<Vec<u32>>,
}

impl Dispatching {
    pub(super) fn start(&self) -> u32 {
        self.shape.nfa.start()
    }

    pub(super) fn mark(&self, state: u32) -> Mark {
        self.shape.marks[state as usize]
    }

    pub(super) fn closed(&self, state: u32) -> &Closed {
        self.shape.closed[state as usize].get_or_init(|| self.shape.close(state))
    }

    /// The rules that are called behind a trigger.
    pub(super) fn called(&self, trigger: u32) -> &[u32] {
        &self.rules[trigger as usize]
    }

    /// What it watches for, if that is all that its automaton depends on.
    pub(super) fn shared(&self) -> Option<&Arc<Shape>> {
        self.is_shared.then_some(&self.shape)
    }
}

/// By what is watched for, compared whole.
static SHAPES: Shared<Watched, Arc<Shape>> = Shared::new(MAX_BYTES);

impl Pending {
    /// The automaton is built if nothing in the process has watched for the same before. `limit`: most states of it.
    pub(super) fn new(dispatch: &Dispatch, limit: usize) -> Result<Pending, TooLarge> {
        let (mut tags, mut rules): (Vec<Trigger>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
        let mut numbers: HashMap<&Trigger, usize> = HashMap::default();
        for (trigger, body) in &dispatch.tags {
            let number = *numbers.entry(trigger).or_insert_with(|| {
                tags.push(trigger.clone());
                rules.push(Vec::new());
                tags.len() - 1
            });
            rules[number].push(body.raw());
        }
        let (stops, excludes) = (dispatch.stops.clone(), dispatch.excludes.clone());
        let watched = Watched { tags, stops, excludes, after: dispatch.after, end: dispatch.end };
        Ok(Pending { shape: Shape::of(watched, limit)?, rules })
    }

    /// States of the automaton.
    pub(super) fn len(&self) -> usize {
        self.shape.nfa.len()
    }

    /// Whether its end can be reached over calls that pass, and over what is read if `reading`.
    pub(super) fn ends(&self, passes: impl Fn(u32) -> bool, reading: bool) -> bool {
        let nfa = &self.shape.nfa;
        let mut seen = vec![false; nfa.len()];
        let mut stack = vec![nfa.start()];
        while let Some(s) = stack.pop() {
            if std::mem::replace(&mut seen[s as usize], true) {
                continue;
            }
            if nfa.is_final(s) {
                return true;
            }
            stack.extend(nfa.epsilons(s));
            stack.extend(nfa.edges(s).filter_map(|e| {
                let passes = match Symbol::decode(e.lo) {
                    Symbol::Call(trigger) => self.rules[trigger as usize].iter().any(|&rule| passes(rule)),
                    Symbol::Byte(_) | Symbol::Special(_) | Symbol::Block(_) => reading,
                };
                passes.then_some(e.to)
            }));
        }
        false
    }

    /// The dispatch: callees that derive nothing lead nowhere, nullable ones can be skipped.
    pub(super) fn dispatching(&self, facts: &[RuleFacts]) -> Dispatching {
        let productive = |rule: &u32| facts[*rule as usize].productive;
        let nullable = |rule: &u32| facts[*rule as usize].nullable;
        let all = || self.rules.iter().flatten();
        if all().all(|rule| productive(rule) && !nullable(rule)) {
            return Dispatching { shape: self.shape.clone(), is_shared: true, rules: self.rules.clone() };
        }
        let from = &self.shape.nfa;
        let mut nfa = Nfa::new();
        for state in 0..from.len() as u32 {
            nfa.state();
            if from.is_final(state) {
                nfa.set_final(state);
            }
        }
        nfa.set_start(from.start());
        for state in 0..from.len() as u32 {
            from.epsilons(state).for_each(|to| nfa.epsilon(state, to));
            for e in from.edges(state) {
                let called = match Symbol::decode(e.lo) {
                    Symbol::Call(trigger) => Some(&self.rules[trigger as usize]),
                    _ => None,
                };
                if called.is_none_or(|rules| rules.iter().any(productive)) {
                    nfa.edge(state, e.lo, e.hi, e.to);
                }
                if called.is_some_and(|rules| rules.iter().any(nullable)) {
                    nfa.epsilon(state, e.to);
                }
            }
        }
        let rules = self.rules.iter().map(|rules| rules.iter().copied().filter(productive).collect()).collect();
        Dispatching { shape: Shape::new(nfa, self.shape.marks.clone()).into(), is_shared: false, rules }
    }
}

impl Watched {
    /// Memory held, in bytes, roughly.
    fn bytes(&self) -> usize {
        let texts = self.tags.iter().chain(&self.stops).map(|trigger| match trigger {
            Trigger::Text(text) | Trigger::Led(text, _) => text.len(),
            Trigger::Special(_) => 0,
        });
        texts.chain(self.excludes.iter().map(Vec::len)).map(|len| len + 48).sum()
    }
}

impl Shape {
    fn new(nfa: Nfa, marks: Vec<Mark>) -> Shape {
        let closed = (0..nfa.len()).map(|_| OnceLock::new()).collect();
        Shape { live: nfa.live(), nfa, marks, closed }
    }

    /// Memory held, in bytes, roughly, all of it asked for.
    fn bytes(&self) -> usize {
        self.nfa.bytes() * 2 + self.nfa.len() * (size_of::<Mark>() + size_of::<OnceLock<Closed>>() + 1)
    }

    fn close(&self, state: u32) -> Closed {
        let mut all = vec![state];
        let mut at = 0;
        while let Some(&state) = all.get(at) {
            at += 1;
            for to in self.nfa.epsilons(state).filter(|&to| self.live[to as usize]) {
                if !all.contains(&to) {
                    all.push(to);
                }
            }
        }
        let edges = all.iter().flat_map(|&s| self.nfa.edges(s)).filter(|e| self.live[e.to as usize]);
        let mut edges: Vec<Edge> = edges.collect();
        edges.sort_unstable();
        edges.dedup();
        let is_call = |e: &Edge| matches!(Symbol::decode(e.lo), Symbol::Call(_));
        Closed {
            is_final: all.iter().any(|&s| self.nfa.is_final(s)),
            scannable: edges.iter().any(|e| !is_call(e)),
            calling: edges.iter().any(is_call),
            edges: edges.into(),
        }
    }

    fn of(watched: Watched, limit: usize) -> Result<Arc<Shape>, TooLarge> {
        let known = SHAPES.lock().get(&watched);
        let shape = match known {
            Some(shape) => shape,
            None => {
                let (mut nfa, mut marks) = (Nfa::new(), Vec::new());
                nfa.state();
                build(&watched, &mut nfa, &mut marks, limit)?;
                let shape = Arc::new(Shape::new(nfa, marks));
                let bytes = shape.bytes() + watched.bytes();
                SHAPES.lock().insert(watched, shape.clone(), bytes);
                shape
            }
        };
        if shape.nfa.len() > limit { Err(TooLarge::States { limit }) } else { Ok(shape) }
    }
}

/// Where in a dispatch a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Free text before the first tag.
    Before,
    /// Free text after a tag.
    After,
    /// A trigger has fired, but its text also begins a longer one: only the rest of that may follow.
    Committed,
}

/// What a pattern means.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Tag(usize),
    Stop,
    Exclude,
    /// What stands before a special token; alone, it is text.
    Lead,
}

struct Builder<'d> {
    dispatch: &'d Watched,
    /// `None` where nothing is watched for.
    text: Option<DFA>,
    /// Bytes of the patterns; every other byte leads back to the root.
    alphabet: ByteSet,
    root: usize,
    patterns: Vec<&'d [u8]>,
    meanings: Vec<(Meaning, usize)>,
    ids: HashMap<(usize, Phase), u32>,
    queue: Vec<(usize, Phase, u32)>,
    depth: HashMap<usize, u32>,
    end: u32,
    limit: usize,
}

/// Builds into an empty automaton whose state 0 is the start; one mark per state.
fn build(dispatch: &Watched, nfa: &mut Nfa, marks: &mut Vec<Mark>, limit: usize) -> Result<(), TooLarge> {
    let mut patterns: Vec<&[u8]> = Vec::new();
    let mut meanings: Vec<(Meaning, usize)> = Vec::new();
    let tags = dispatch.tags.iter().enumerate().map(|(i, trigger)| (trigger, Meaning::Tag(i)));
    for (trigger, meaning) in tags.chain(dispatch.stops.iter().map(|stop| (stop, Meaning::Stop))) {
        let (text, meaning) = match trigger {
            Trigger::Text(text) => (text, meaning),
            Trigger::Led(text, _) => (text, Meaning::Lead),
            Trigger::Special(_) => continue,
        };
        patterns.push(text);
        meanings.push((meaning, text.len()));
    }
    for exclude in &dispatch.excludes {
        patterns.push(exclude);
        meanings.push((Meaning::Exclude, exclude.len()));
    }
    let text = if patterns.is_empty() {
        None
    } else {
        let build = DFA::builder().start_kind(StartKind::Unanchored).build(&patterns);
        Some(build.map_err(|_| TooLarge::States { limit })?)
    };
    let root =
        text.as_ref().map_or(0, |t| t.start_state(Anchored::No).expect("built with an unanchored start").as_usize());
    let mut alphabet = ByteSet::EMPTY;
    patterns.iter().copied().flatten().for_each(|&b| alphabet.insert(b));
    let end = nfa.state();
    nfa.set_final(end);
    marks.extend([Mark::Plain, Mark::Plain]);
    let mut builder = Builder {
        dispatch,
        text,
        alphabet,
        root,
        patterns,
        meanings,
        ids: HashMap::default(),
        queue: Vec::new(),
        depth: HashMap::default(),
        end,
        limit,
    };
    builder.depths();
    let before = builder.node(nfa, marks, root, Phase::Before);
    nfa.epsilon(0, before);
    let mut at = 0;
    while at < builder.queue.len() {
        if nfa.len() > limit {
            return Err(TooLarge::States { limit });
        }
        let (ac, phase, state) = builder.queue[at];
        builder.expand(nfa, marks, ac, phase, state);
        at += 1;
    }
    Ok(())
}

impl<'d> Builder<'d> {
    fn next(&self, ac: usize, byte: u8) -> usize {
        match &self.text {
            Some(text) if self.alphabet.contains(byte) => {
                let sid = aho_corasick::automaton::StateID::new(ac).expect("a state of this automaton");
                text.next_state(Anchored::No, sid, byte).as_usize()
            }
            _ => self.root,
        }
    }

    /// Depth of each automaton state in the trie of patterns: the length of the shortest text that leads there.
    fn depths(&mut self) {
        self.depth.insert(self.root, 0);
        let mut order = vec![self.root];
        let mut at = 0;
        while at < order.len() && order.len() <= self.limit {
            let depth = self.depth[&order[at]];
            for byte in self.alphabet.iter() {
                let next = self.next(order[at], byte);
                self.depth.entry(next).or_insert_with(|| {
                    order.push(next);
                    depth + 1
                });
            }
            at += 1;
        }
    }

    /// The state for an automaton state in a phase.
    fn node(&mut self, nfa: &mut Nfa, marks: &mut Vec<Mark>, ac: usize, phase: Phase) -> u32 {
        if let Some(&state) = self.ids.get(&(ac, phase)) {
            return state;
        }
        let state = nfa.state();
        marks.push(Mark::Text { pending: self.depth.get(&ac).copied().unwrap_or(0) });
        let ends = match self.dispatch.end {
            DispatchEnd::Anywhere => phase != Phase::Committed,
            DispatchEnd::AfterOneTag => phase == Phase::After,
            DispatchEnd::AtStop => false,
        };
        if ends {
            nfa.set_final(state);
        }
        self.ids.insert((ac, phase), state);
        self.queue.push((ac, phase, state));
        state
    }

    /// The edges of one state.
    fn expand(&mut self, nfa: &mut Nfa, marks: &mut Vec<Mark>, ac: usize, phase: Phase, state: u32) {
        // Runs of bytes that lead to the same automaton state share an edge.
        let mut run: Option<(u8, u8, usize)> = None;
        for byte in 0..=255u8 {
            let next = self.next(ac, byte);
            match &mut run {
                Some((_, hi, to)) if *to == next => *hi = byte,
                _ => {
                    if let Some(done) = run.replace((byte, byte, next)) {
                        self.text_edge(nfa, marks, ac, phase, state, done);
                    }
                }
            }
        }
        if let Some(done) = run {
            self.text_edge(nfa, marks, ac, phase, state, done);
        }
        let (before, committed) = (self.leads(ac), phase == Phase::Committed);
        let depth = self.depth.get(&ac).copied().unwrap_or(0) as usize;
        let tags = self.dispatch.tags.iter().enumerate().map(|(i, trigger)| (trigger, Some(i)));
        // By special token: how much text before it belongs to a trigger, and what fires.
        let mut fired: Vec<(u32, usize, Vec<Option<usize>>)> = Vec::new();
        for (trigger, tag) in tags.chain(self.dispatch.stops.iter().map(|stop| (stop, None))) {
            let (special, lead) = match trigger {
                Trigger::Special(special) if !committed => (special, 0),
                Trigger::Led(lead, special) if before.contains(&&lead[..]) && !(committed && lead.len() != depth) => {
                    (special, lead.len())
                }
                Trigger::Special(_) | Trigger::Led(..) | Trigger::Text(_) => continue,
            };
            match fired.iter_mut().find(|(known, ..)| *known == special.raw()) {
                Some((_, longest, tags)) => {
                    *longest = lead.max(*longest);
                    tags.push(tag);
                }
                None => fired.push((special.raw(), lead, vec![tag])),
            }
        }
        for (special, matched, tags) in fired {
            let target = nfa.state();
            marks.push(Mark::Fired { matched: matched as u32, special: true });
            let symbol = Symbol::Special(special).encode();
            nfa.edge(state, symbol, symbol, target);
            tags.into_iter().for_each(|tag| self.fire(nfa, marks, target, tag));
        }
    }

    /// What an automaton state's text ends with that stands before special tokens.
    fn leads(&self, ac: usize) -> Vec<&'d [u8]> {
        let Some(text) = &self.text else { return Vec::new() };
        let sid = aho_corasick::automaton::StateID::new(ac).expect("a state of this automaton");
        let matches = if text.is_match(sid) { text.match_len(sid) } else { 0 };
        let found = (0..matches).map(|i| text.match_pattern(sid, i).as_usize());
        found.filter(|at| matches!(self.meanings[*at].0, Meaning::Lead)).map(|at| self.patterns[at]).collect()
    }

    fn text_edge(
        &mut self,
        nfa: &mut Nfa,
        marks: &mut Vec<Mark>,
        ac: usize,
        phase: Phase,
        state: u32,
        (lo, hi, next): (u8, u8, usize),
    ) {
        let depth = |b: &Self, s: usize| b.depth.get(&s).copied().unwrap_or(0);
        if phase == Phase::Committed && depth(self, next) != depth(self, ac) + 1 {
            return;
        }
        let (mut tags, mut stop, mut matched, mut excluded, mut led) = (Vec::new(), false, 0, 0, 0);
        if let Some(text) = &self.text {
            let sid = aho_corasick::automaton::StateID::new(next).expect("a state of this automaton");
            if text.is_match(sid) {
                for i in 0..text.match_len(sid) {
                    let (meaning, len) = self.meanings[text.match_pattern(sid, i).as_usize()];
                    match meaning {
                        Meaning::Tag(tag) => tags.push((tag, len)),
                        Meaning::Stop => stop = true,
                        Meaning::Exclude => excluded = excluded.max(len),
                        Meaning::Lead => led = led.max(len),
                    }
                    if matches!(meaning, Meaning::Tag(_) | Meaning::Stop) {
                        matched = matched.max(len);
                    }
                }
            }
        }
        // An exclude only loses against a trigger or stop that contains it.
        if excluded > matched {
            return;
        }
        let edge = |nfa: &mut Nfa, to| nfa.edge(state, u32::from(lo), u32::from(hi), to);
        if tags.is_empty() && !stop {
            let to = self.node(nfa, marks, next, phase);
            edge(nfa, to);
            return;
        }
        let target = nfa.state();
        marks.push(Mark::Fired { matched: matched as u32, special: false });
        edge(nfa, target);
        for (tag, _) in tags {
            self.fire(nfa, marks, target, Some(tag));
        }
        if stop {
            self.fire(nfa, marks, target, None);
        }
        let longer =
            led == matched || self.alphabet.iter().any(|b| depth(self, self.next(next, b)) == depth(self, next) + 1);
        if longer && depth(self, next) as usize == matched {
            let to = self.node(nfa, marks, next, Phase::Committed);
            edge(nfa, to);
        }
    }

    /// What a fired state leads to: a tag's body and what follows it, or the end.
    fn fire(&mut self, nfa: &mut Nfa, marks: &mut Vec<Mark>, target: u32, tag: Option<usize>) {
        let Some(tag) = tag else {
            nfa.epsilon(target, self.end);
            return;
        };
        let symbol = Symbol::Call(tag as u32).encode();
        let after = match self.dispatch.after {
            AfterTag::End => self.end,
            AfterTag::Loop => self.node(nfa, marks, self.root, Phase::After),
        };
        nfa.edge(target, symbol, symbol, after);
    }
}
