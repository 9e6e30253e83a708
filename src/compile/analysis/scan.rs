//! The pass over all expressions of a grammar: which rules call which, and what each contains.

use super::RuleBodies;
use crate::compile::auxiliary_rules::AuxiliaryRules;
use crate::compile::dispatch::UnresolvedDispatch;
use crate::compile::expressions::{ExprId, Repeat, inlined_body};
use crate::compile::rule_facts::{Regularity, RuleFacts};
use crate::compile::thompson::Nesting;
use crate::compile::{CompileError, CompiledRuleId};
use crate::fsm::{ByteSet, PathLengths, TooLarge};
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Counted, Dispatch, Except, Expr, Grammar, MAX_COUNT, Members, Trigger};
use crate::limits::Limits;

/// Fuel per rule, and per node of its expression.
const RULE_FUEL: usize = 16;
const NODE_FUEL: usize = 4;

/// The calls of all rules, in one list.
#[derive(Default)]
pub(super) struct RuleCalls {
    /// By rule: its range in `callees`.
    ranges: Vec<(u32, u32)>,
    callees: Vec<CompiledRuleId>,
}

impl RuleCalls {
    /// The callees of a rule.
    pub(super) fn of(&self, rule: CompiledRuleId) -> &[CompiledRuleId] {
        let (from, to) = self.ranges[rule.index()];
        &self.callees[from as usize..to as usize]
    }
}

/// What the body of a rule contains, beside what its automaton reads.
#[derive(Clone, Copy, Default)]
struct BodyContent {
    /// Counters or special tokens.
    has_counters: bool,
    /// Small rules that are inlined.
    has_inlined: bool,
}

impl BodyContent {
    /// Whether a rule with this content is regular.
    fn regularity(self, has_calls: bool) -> Regularity {
        match (self.has_counters || has_calls, self.has_inlined) {
            (true, _) => Regularity::NotRegular,
            (false, true) => Regularity::WithInlinedRules,
            (false, false) => Regularity::SelfContained,
        }
    }
}

/// The pass over all expressions. Rules are [`RuleFacts::reached`] once they are in the worklist.
pub(super) struct Scan<'g> {
    limits: &'g Limits,
    pub(super) bodies: RuleBodies<'g>,
    pub(super) rules: Vec<RuleFacts>,
    pub(super) calls: RuleCalls,
    pub(super) auxiliary: AuxiliaryRules,
    /// Bytes that some expression tells apart from the byte before them.
    pub(super) boundaries: ByteSet,
    /// Member sets, with the rules that contain them.
    pub(super) member_sets: Vec<(CompiledRuleId, &'g Members)>,
    /// Some repeat is bounded white space.
    pub(super) has_bounded_white_space: bool,
    /// Rules with deferred bodies.
    pub(super) deferred: Vec<CompiledRuleId>,
    /// States so far, against the limit.
    total: usize,
    /// The content of the current rule.
    content: BodyContent,
}

impl<'g> Scan<'g> {
    /// A scan that has visited nothing.
    pub(super) fn new(grammar: &'g Grammar, limits: &'g Limits) -> Scan<'g> {
        let rules = grammar.rules.len();
        Scan {
            limits,
            bodies: RuleBodies { grammar, auxiliary: Vec::new(), dispatches: HashMap::default() },
            rules: vec![RuleFacts::default(); rules],
            calls: RuleCalls { ranges: vec![(0, 0); rules], callees: Vec::new() },
            auxiliary: AuxiliaryRules::default(),
            boundaries: ByteSet::EMPTY,
            member_sets: Vec::new(),
            has_bounded_white_space: false,
            deferred: Vec::new(),
            total: 0,
            content: BodyContent::default(),
        }
    }

    /// Scans every rule that is reachable from `start`.
    pub(super) fn scan_from(&mut self, start: CompiledRuleId) -> Result<(), CompileError> {
        let mut queue = vec![start];
        self.rules[start.index()].reached = true;
        while let Some(rule) = queue.pop() {
            let from = self.calls.callees.len();
            self.content = BodyContent::default();
            let nodes = self.body(rule)?;
            self.charge(rule, nodes)?;
            self.calls.ranges[rule.index()] = (from as u32, self.calls.callees.len() as u32);
            self.record_facts(rule, nodes);
            for &callee in self.calls.of(rule) {
                if !std::mem::replace(&mut self.rules[callee.index()].reached, true) {
                    queue.push(callee);
                }
            }
        }
        Ok(())
    }

    /// Scans the body of a rule; returns its estimated number of states.
    fn body(&mut self, rule: CompiledRuleId) -> Result<usize, CompileError> {
        let body = self.bodies.body(rule);
        match body {
            Expr::Dispatch(dispatch) => self.dispatch(rule, dispatch),
            Expr::Counted(counted) if self.bodies.is_auxiliary(rule) => {
                self.counted_graph(rule, body, counted)
            }
            _ => self.expr(rule, body, Nesting::Rule),
        }
    }

    /// Records what is known about a rule once its body has been scanned.
    fn record_facts(&mut self, rule: CompiledRuleId, nodes: usize) {
        let has_calls = !self.calls.of(rule).is_empty();
        let facts = &mut self.rules[rule.index()];
        facts.nodes = nodes as u32;
        facts.regularity = self.content.regularity(has_calls);
        if let Some(rule) = self.bodies.grammar.rules.get(rule.index()) {
            facts.label = rule.attributes.label;
            facts.tracked = !rule.attributes.is_empty();
            facts.unique_key = rule.attributes.unique_key;
            facts.unlikely = rule.attributes.unlikely;
            facts.only_unique_key = facts.unique_key && rule.attributes.is_only_unique_key();
        }
    }

    /// The name of a rule for messages.
    fn name(&self, rule: CompiledRuleId) -> String {
        let rule = self.bodies.grammar.rules.get(rule.index());
        rule.map_or_else(|| "(repeat)".to_owned(), |r| r.name.clone())
    }

    /// Charges the fuel and the states of a rule.
    fn charge(&mut self, owner: CompiledRuleId, nodes: usize) -> Result<(), CompileError> {
        fuel::spend(RULE_FUEL + NODE_FUEL * nodes)
            .map_err(|out| CompileError::fuel(self.bodies.grammar, owner, out))?;
        self.total = self.total.saturating_add(nodes);
        if self.total > self.limits.compiled_states {
            let limit = self.limits.compiled_states;
            let largest = (0..self.rules.len()).max_by_key(|&rule| self.rules[rule].nodes);
            let largest = largest.map(CompiledRuleId::new);
            let is_larger = |rule: &CompiledRuleId| self.rules[rule.index()].nodes as usize > nodes;
            let rule = self.name(largest.filter(is_larger).unwrap_or(owner));
            return Err(CompileError::Limit { rule, what: "states", limit });
        }
        Ok(())
    }

    /// Makes `lo..=hi` a union of byte classes.
    pub(super) fn add_boundary(&mut self, lo: u8, hi: u8) {
        self.boundaries.insert(lo);
        // Nothing follows byte 255, and byte 0 starts a class anyway, so wrapping around is
        // harmless.
        self.boundaries.insert(hi.wrapping_add(1));
    }

    /// Records the calls and byte boundaries of an expression; returns its estimated number of
    /// states.
    fn expr(
        &mut self,
        owner: CompiledRuleId,
        expr: &'g Expr,
        nesting: Nesting,
    ) -> Result<usize, CompileError> {
        Ok(match expr {
            Expr::Empty | Expr::Never => 0,
            Expr::Bytes(bytes) => {
                bytes.iter().for_each(|&b| self.add_boundary(b, b));
                bytes.len()
            }
            Expr::Class(set) => {
                self.boundaries = self.boundaries.union(&set.bounds());
                1
            }
            Expr::Special(_) => {
                self.content.has_counters = true;
                1
            }
            Expr::Deferred(_) => {
                self.content.has_counters = true;
                self.deferred.push(owner);
                1
            }
            Expr::Ref(r) => self.reference(owner, *r, nesting)?,
            Expr::Except(except) => self.except(owner, except, nesting)?,
            Expr::Seq(parts) | Expr::Alt(parts) => {
                let mut nodes = parts.len();
                for part in parts {
                    nodes += self.expr(owner, part, nesting)?;
                }
                nodes
            }
            Expr::Automaton(dfa) => {
                self.boundaries = self.boundaries.union(&dfa.bounds());
                dfa.len()
            }
            Expr::Graph(graph) => {
                let mut nodes = graph.nodes as usize;
                for (_, e, _) in &graph.edges {
                    nodes += self.expr(owner, e, nesting)?;
                }
                nodes
            }
            Expr::Members(members) if nesting == Nesting::Rule => self.members(owner, members)?,
            Expr::Dispatch(_) | Expr::Members(_) | Expr::Counted(_) => {
                self.auxiliary(expr);
                1
            }
            Expr::Repeat { body, min, max } => {
                let repeat = Repeat { whole: expr, body, min: *min, max: *max };
                self.repeat(owner, repeat, nesting)?
            }
        })
    }

    /// Scans the words that another expression excludes.
    fn except(
        &mut self,
        owner: CompiledRuleId,
        except: &Except,
        nesting: Nesting,
    ) -> Result<usize, CompileError> {
        let bytes = except.words.iter().chain([&except.close]).flat_map(|word| word.iter());
        bytes.for_each(|&b| self.add_boundary(b, b));
        self.boundaries = self.boundaries.union(&except.leave.bounds());
        let called = self.reference(owner, except.tail, nesting)?
            + self.reference(owner, except.other, nesting)?;
        Ok(except.state_estimate().saturating_add(called))
    }

    /// Scans a repeat: unrolled, as a block, or as an auxiliary rule within another block.
    fn repeat(
        &mut self,
        owner: CompiledRuleId,
        repeat: Repeat<'g>,
        nesting: Nesting,
    ) -> Result<usize, CompileError> {
        if repeat.min > MAX_COUNT {
            let limit = MAX_COUNT as usize;
            return Err(CompileError::Limit { rule: self.name(owner), what: "repetitions", limit });
        }
        if repeat.is_empty() || repeat.max == Some(0) {
            return Ok(0);
        }
        let repeat = repeat.countable();
        let Repeat { whole, body, min, max } = repeat;
        if repeat.is_unrolled() {
            let copies = max.unwrap_or(min.saturating_add(1)) as usize;
            return Ok(self.expr(owner, body, nesting)?.saturating_add(1).saturating_mul(copies));
        }
        self.content.has_counters = true;
        self.has_bounded_white_space |= repeat.is_bounded_white_space();
        if nesting == Nesting::Block {
            self.auxiliary(whole);
            return Ok(1);
        }
        Ok(self.expr(owner, body, Nesting::Block)? + 2)
    }

    /// Records a call, or the expression that is inlined for it.
    fn reference(
        &mut self,
        owner: CompiledRuleId,
        rule: RuleId,
        nesting: Nesting,
    ) -> Result<usize, CompileError> {
        let called = &self.bodies.grammar.rules[rule.index()];
        if let Some(body) = inlined_body(called) {
            self.content.has_inlined = true;
            return self.expr(owner, body, nesting);
        }
        self.calls.callees.push(rule.into());
        Ok(1)
    }

    /// Records a call of an auxiliary rule for an expression.
    fn auxiliary(&mut self, expr: &'g Expr) {
        let next = CompiledRuleId::new(self.rules.len());
        let rule = *self.auxiliary.ids.entry(ExprId::of(expr)).or_insert(next);
        if rule == next {
            self.bodies.auxiliary.push(expr);
            self.rules.push(RuleFacts::default());
            self.calls.ranges.push((0, 0));
        }
        self.calls.callees.push(rule);
    }

    /// Scans a member set.
    fn members(
        &mut self,
        owner: CompiledRuleId,
        members: &'g Members,
    ) -> Result<usize, CompileError> {
        self.content.has_counters = true;
        self.member_sets.push((owner, members));
        let mut nodes = 4;
        for part in members.parts() {
            nodes += self.expr(owner, part, Nesting::Member)? + 2;
        }
        Ok(nodes)
    }

    /// Scans a counted graph, which is an auxiliary rule.
    fn counted_graph(
        &mut self,
        owner: CompiledRuleId,
        expr: &'g Expr,
        counted: &'g Counted,
    ) -> Result<usize, CompileError> {
        self.content.has_counters = true;
        let graph = &counted.graph;
        let path_lengths = PathLengths::new(
            graph.nodes as usize,
            &counted.steps(),
            &graph.ends,
            counted.min,
            counted.max,
        );
        let path_lengths = path_lengths.map_err(|error| match error {
            TooLarge::Fuel(out) => CompileError::fuel(self.bodies.grammar, owner, out),
            TooLarge::States { limit } => {
                CompileError::Limit { rule: self.name(owner), what: "numbers of steps", limit }
            }
        })?;
        self.auxiliary.path_lengths.insert(ExprId::of(expr), path_lengths.into());
        let mut nodes = graph.nodes as usize;
        for (_, e, _) in &graph.edges {
            nodes += self.expr(owner, e, Nesting::Block)? + 1;
        }
        Ok(nodes)
    }

    /// Scans a dispatch and builds its automaton.
    fn dispatch(
        &mut self,
        owner: CompiledRuleId,
        dispatch: &Dispatch,
    ) -> Result<usize, CompileError> {
        self.content.has_counters = true;
        let (rule, limit) = (|| self.name(owner), self.limits.dispatch_bytes);
        if dispatch.bytes() > limit {
            return Err(CompileError::Limit {
                rule: rule(),
                what: "bytes of triggers, stops and excludes",
                limit,
            });
        }
        let bodies = dispatch.tags.iter().map(|&(_, body)| CompiledRuleId::from(body));
        self.calls.callees.extend(bodies);
        let texts = dispatch.triggers_and_stops().map(Trigger::bytes);
        let texts = texts.chain(dispatch.excludes.iter().map(Vec::as_slice));
        let mut bytes = ByteSet::EMPTY;
        texts.flatten().for_each(|&b| bytes.insert(b));
        bytes.iter().for_each(|b| self.add_boundary(b, b));
        let limit = self.limits.automaton_states;
        let pending = UnresolvedDispatch::new(dispatch, limit).map_err(|error| match error {
            TooLarge::Fuel(out) => CompileError::fuel(self.bodies.grammar, owner, out),
            TooLarge::States { limit } => {
                CompileError::Limit { rule: self.name(owner), what: "dispatch states", limit }
            }
        })?;
        let nodes = pending.len();
        self.bodies.dispatches.insert(owner, pending);
        Ok(nodes)
    }
}
