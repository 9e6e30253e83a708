//! Analysis of a whole grammar in one pass over its expressions, before any automaton is built.
//!
//! It finds the reachable, productive and nullable rules, the call graph with its components, the
//! order of calls, and the byte classes. Only dispatch automata are built here.

mod call_order;
mod derivability;

use std::sync::OnceLock;

use super::components::Components;
use super::dispatch::UnresolvedDispatch;
use super::expressions::{
    MAX_COUNT, countable, expr_address, is_bounded_white_space, is_tiny, is_unrolled,
};
use super::rule_facts::{Regularity, RuleFacts};
use super::thompson::{self, Nesting};
use super::{ByteClasses, CompileError, Compiled};
use crate::fsm::{ByteSet, ExactSteps, TooLarge};
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Counted, Dispatch, Expr, Grammar, GrammarError, Members, Trigger};
use crate::limits::Limits;

/// Fuel per rule, and per node of its expression.
const RULE_FUEL: usize = 16;
const NODE_FUEL: usize = 4;

/// Bodies of auxiliary rules, and dispatches by rule.
type Bodies<'a> = (&'a [&'a Expr], &'a HashMap<u32, UnresolvedDispatch>);

/// Fills in the analysis results of a compiled grammar.
pub(super) fn analyze(compiled: &mut Compiled, limits: &Limits) -> Result<(), CompileError> {
    let grammar = compiled.split_grammar.clone();
    let mut scan = Scan::new(&grammar, limits);
    scan.scan_from(grammar.start.raw())?;
    if !compiled.budgets.is_empty() {
        // Budgets of code points tell these UTF-8 byte ranges apart.
        [(0x80, 0xBF), (0xC0, 0xDF), (0xE0, 0xEF), (0xF0, 0xFF)]
            .into_iter()
            .for_each(|(lo, hi)| scan.add_boundary(lo, hi));
    }
    // Deferred bodies are JSON, which has such white space.
    compiled.has_bounded_white_space =
        (scan.gaps || !scan.deferred.is_empty()) && compiled.budgets.is_empty();
    compiled.deferred = scan.deferred.iter().map(|&rule| (rule, OnceLock::new())).collect();
    let Scan {
        rules,
        call_ranges,
        calls,
        auxiliary,
        bodies,
        dispatches,
        step_levels,
        boundaries,
        member_sets,
        ..
    } = scan;
    compiled.step_levels = step_levels;
    compiled.rules = rules;
    compiled.auxiliary = auxiliary;
    compiled.classes = ByteClasses::new(&boundaries).into();
    let calls = |rule: usize| &calls[call_ranges[rule].0 as usize..call_ranges[rule].1 as usize];
    let components = Components::find(compiled.rules.len(), calls);
    compiled.find_productive_and_nullable(&grammar, (&bodies, &dispatches), &components);
    if !compiled.rules[compiled.start as usize].productive {
        return Err(CompileError::Empty {
            rule: grammar.rules[compiled.start as usize].name.clone(),
        });
    }
    check_members(compiled, &member_sets)?;
    compiled.assign_ranks(&grammar, (&bodies, &dispatches), &components);
    compiled.budgets.keys().for_each(|&rule| compiled.rules[rule as usize].tracked = true);
    super::distinct_scopes::check_scopes(compiled, &calls)?;
    find_unique_names(&mut compiled.rules, grammar.rules.len(), &calls);
    let rules = &compiled.rules;
    compiled.dispatches =
        dispatches.iter().map(|(&rule, pending)| (rule, pending.resolve(rules).into())).collect();
    build_auxiliary(compiled, &bodies)
}

/// Rejects member sets with nullable members.
fn check_members(compiled: &Compiled, member_sets: &[(u32, &Members)]) -> Result<(), CompileError> {
    for (rule, set) in member_sets {
        let mut bodies = set.once.iter().map(|member| &member.body).chain(&set.often);
        if bodies.any(|body| compiled.nullable(body)) {
            let rule = compiled.split_grammar.rules.get(*rule as usize);
            let rule = rule.map_or("(members)", |rule| &rule.name).to_owned();
            return Err(CompileError::EmptyMember { rule });
        }
    }
    Ok(())
}

/// Builds the automata of auxiliary rules, those of dispatches excepted.
fn build_auxiliary(compiled: &mut Compiled, bodies: &[&Expr]) -> Result<(), CompileError> {
    for (i, body) in bodies.iter().enumerate() {
        let rule = (compiled.split_grammar.rules.len() + i) as u32;
        if compiled.dispatches.contains_key(&rule) {
            continue;
        }
        let rule_nfa = match body {
            Expr::Counted(counted) => {
                let passes = |e: &Expr| compiled.productive(e) && !compiled.nullable(e);
                if !counted.graph.edges.iter().all(|(_, e, _)| passes(e)) {
                    let what = "a step of a counted graph is unproductive or nullable";
                    let rule = "(counted)".to_owned();
                    return Err(GrammarError::Malformed { rule, what }.into());
                }
                let levels = compiled.step_levels[&expr_address(body)].clone();
                thompson::counted_rule_nfa(compiled, counted, levels)
            }
            body => thompson::rule_nfa(compiled, body),
        };
        compiled.rule_nfas.insert(rule, rule_nfa.into());
    }
    Ok(())
}

/// Finds the rules that call unique names, also through auxiliary rules. Those have the largest
/// ids, callers before callees.
fn find_unique_names<'c>(rules: &mut [RuleFacts], own: usize, calls: &impl Fn(usize) -> &'c [u32]) {
    if !rules.iter().any(|facts| facts.name) {
        return;
    }
    for rule in (0..rules.len()).rev() {
        let names = |&callee: &u32| {
            rules[callee as usize].name
                || callee as usize >= own && rules[callee as usize].has_names
        };
        rules[rule].has_names = rules[rule].reached && calls(rule).iter().any(names);
    }
}

/// The pass over all expressions.
struct Scan<'g> {
    grammar: &'g Grammar,
    limits: &'g Limits,
    rules: Vec<RuleFacts>,
    /// By rule: its range in `calls`.
    call_ranges: Vec<(u32, u32)>,
    calls: Vec<u32>,
    seen: Vec<bool>,
    /// Auxiliary rules, by the address of their expression.
    auxiliary: HashMap<usize, u32>,
    /// Bodies of auxiliary rules.
    bodies: Vec<&'g Expr>,
    dispatches: HashMap<u32, UnresolvedDispatch>,
    /// Path lengths of counted graphs, by the address of their expression.
    step_levels: HashMap<usize, std::sync::Arc<ExactSteps>>,
    /// Bytes that some expression tells apart from the byte before them.
    boundaries: ByteSet,
    /// Member sets, with the rules that contain them.
    member_sets: Vec<(u32, &'g Members)>,
    /// States so far, against the limit.
    total: usize,
    /// The current rule has counters or special tokens.
    has_counters: bool,
    /// The current rule has small rules inlined.
    has_inlined: bool,
    /// See [`Compiled::has_bounded_white_space`].
    gaps: bool,
    /// Rules with deferred bodies.
    deferred: Vec<u32>,
}

impl<'g> Scan<'g> {
    /// A scan that has visited nothing.
    fn new(grammar: &'g Grammar, limits: &'g Limits) -> Scan<'g> {
        Scan {
            grammar,
            limits,
            rules: vec![RuleFacts::default(); grammar.rules.len()],
            call_ranges: vec![(0, 0); grammar.rules.len()],
            calls: Vec::new(),
            seen: vec![false; grammar.rules.len()],
            auxiliary: HashMap::default(),
            bodies: Vec::new(),
            dispatches: HashMap::default(),
            step_levels: HashMap::default(),
            boundaries: ByteSet::EMPTY,
            member_sets: Vec::new(),
            total: 0,
            has_counters: false,
            has_inlined: false,
            gaps: false,
            deferred: Vec::new(),
        }
    }

    /// Scans every rule that is reachable from `start`.
    fn scan_from(&mut self, start: u32) -> Result<(), CompileError> {
        let mut queue = vec![start];
        self.seen[start as usize] = true;
        while let Some(rule) = queue.pop() {
            let (body, owner) = match self.grammar.rules.get(rule as usize) {
                Some(r) => (&r.body, rule),
                None => (self.bodies[rule as usize - self.grammar.rules.len()], rule),
            };
            let from = self.calls.len();
            (self.has_counters, self.has_inlined) = (false, false);
            let nodes = if let Expr::Dispatch(dispatch) = body {
                self.has_counters = true;
                self.dispatch(owner, dispatch)?
            } else if let (Expr::Counted(counted), None) =
                (body, self.grammar.rules.get(rule as usize))
            {
                self.has_counters = true;
                self.counted_graph(owner, body, counted)?
            } else {
                self.expr(owner, body, Nesting::Rule)?
            };
            self.charge(owner, nodes)?;
            let facts = &mut self.rules[rule as usize];
            facts.reached = true;
            facts.nodes = nodes as u32;
            if let Some(rule) = self.grammar.rules.get(rule as usize) {
                facts.label = rule.attributes.label;
                facts.tracked = !rule.attributes.is_empty();
                facts.name = rule.attributes.name;
                facts.unusual = rule.attributes.unusual;
                facts.only_unique_name = facts.name && rule.attributes.is_only_name();
            }
            facts.regularity =
                match (self.has_counters || self.calls.len() > from, self.has_inlined) {
                    (true, _) => Regularity::NotRegular,
                    (false, true) => Regularity::WithInlinedRules,
                    (false, false) => Regularity::SelfContained,
                };
            self.call_ranges[rule as usize] = (from as u32, self.calls.len() as u32);
            for i in from..self.calls.len() {
                let callee = self.calls[i];
                if !std::mem::replace(&mut self.seen[callee as usize], true) {
                    queue.push(callee);
                }
            }
        }
        Ok(())
    }

    /// The name of a rule for messages.
    fn name(&self, rule: u32) -> String {
        self.grammar
            .rules
            .get(rule as usize)
            .map_or_else(|| "(repeat)".to_owned(), |r| r.name.clone())
    }

    /// Charges the fuel and the states of a rule.
    fn charge(&mut self, owner: u32, nodes: usize) -> Result<(), CompileError> {
        fuel::spend(RULE_FUEL + NODE_FUEL * nodes)
            .map_err(|out| CompileError::fuel(self.grammar, owner, out))?;
        self.total = self.total.saturating_add(nodes);
        if self.total > self.limits.compiled_states {
            let limit = self.limits.compiled_states;
            return Err(CompileError::Limit { rule: self.name(owner), what: "states", limit });
        }
        Ok(())
    }

    /// Makes `lo..=hi` a union of byte classes.
    fn add_boundary(&mut self, lo: u8, hi: u8) {
        self.boundaries.insert(lo);
        // Nothing follows byte 255, and byte 0 starts a class anyway, so wrapping around is
        // harmless.
        self.boundaries.insert(hi.wrapping_add(1));
    }

    /// Records the calls and byte boundaries of an expression; returns its estimated number of
    /// states.
    fn expr(
        &mut self,
        owner: u32,
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
                self.has_counters = true;
                1
            }
            Expr::Deferred(_) => {
                self.has_counters = true;
                self.deferred.push(owner);
                1
            }
            Expr::Ref(r) => self.reference(owner, *r, nesting)?,
            Expr::Except(except) => {
                let bytes = except.words.iter().chain([&except.close]).flat_map(|word| word.iter());
                bytes.for_each(|&b| self.add_boundary(b, b));
                self.boundaries = self.boundaries.union(&except.leave.bounds());
                let called = self.reference(owner, except.tail, nesting)?
                    + self.reference(owner, except.other, nesting)?;
                except.state_estimate().saturating_add(called)
            }
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
                self.repeat(owner, expr, (body, *min, *max), nesting)?
            }
        })
    }

    /// Scans a repeat: unrolled, as a block, or as an auxiliary rule within another block.
    fn repeat(
        &mut self,
        owner: u32,
        expr: &'g Expr,
        (body, min, max): (&'g Expr, u32, Option<u32>),
        nesting: Nesting,
    ) -> Result<usize, CompileError> {
        if min > MAX_COUNT {
            let limit = MAX_COUNT as usize;
            return Err(CompileError::Limit { rule: self.name(owner), what: "repetitions", limit });
        }
        if max.is_some_and(|max| max < min || max == 0) {
            return Ok(0);
        }
        let max = countable(max);
        if is_unrolled(body, min, max) {
            let copies = max.unwrap_or(min.saturating_add(1)) as usize;
            return Ok(self.expr(owner, body, nesting)?.saturating_add(1).saturating_mul(copies));
        }
        self.has_counters = true;
        self.gaps |= is_bounded_white_space(body, min, max);
        if nesting == Nesting::Block {
            self.auxiliary(expr);
            return Ok(1);
        }
        Ok(self.expr(owner, body, Nesting::Block)? + 2)
    }

    /// Records a call, or the expression that is inlined for it.
    fn reference(
        &mut self,
        owner: u32,
        rule: RuleId,
        nesting: Nesting,
    ) -> Result<usize, CompileError> {
        let called = &self.grammar.rules[rule.index()];
        if called.attributes.is_empty() && is_tiny(&called.body) {
            self.has_inlined = true;
            return self.expr(owner, &called.body, nesting);
        }
        self.calls.push(rule.raw());
        Ok(1)
    }

    /// Records a call of an auxiliary rule for an expression.
    fn auxiliary(&mut self, expr: &'g Expr) {
        let next = self.rules.len() as u32;
        let rule = *self.auxiliary.entry(expr_address(expr)).or_insert(next);
        if rule == next {
            self.bodies.push(expr);
            self.rules.push(RuleFacts::default());
            self.call_ranges.push((0, 0));
            self.seen.push(false);
        }
        self.calls.push(rule);
    }

    /// Scans a member set.
    fn members(&mut self, owner: u32, members: &'g Members) -> Result<usize, CompileError> {
        self.has_counters = true;
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
        owner: u32,
        expr: &'g Expr,
        counted: &'g Counted,
    ) -> Result<usize, CompileError> {
        let graph = &counted.graph;
        let levels = ExactSteps::new(
            graph.nodes as usize,
            &counted.steps(),
            &graph.ends,
            (counted.min, counted.max),
        );
        let Some(levels) = levels else {
            let limit = self.limits.automaton_states;
            return Err(CompileError::Limit {
                rule: self.name(owner),
                what: "states for numbers of steps",
                limit,
            });
        };
        self.step_levels.insert(expr_address(expr), levels.into());
        let mut nodes = graph.nodes as usize;
        for (_, e, _) in &graph.edges {
            nodes += self.expr(owner, e, Nesting::Block)? + 1;
        }
        Ok(nodes)
    }

    /// Scans a dispatch and builds its automaton.
    fn dispatch(&mut self, owner: u32, dispatch: &Dispatch) -> Result<usize, CompileError> {
        let (rule, limit) = (|| self.name(owner), self.limits.dispatch_bytes);
        if dispatch.bytes() > limit {
            return Err(CompileError::Limit {
                rule: rule(),
                what: "bytes of triggers, stops and excludes",
                limit,
            });
        }
        self.calls.extend(dispatch.tags.iter().map(|(_, body)| body.raw()));
        let texts = dispatch.tags.iter().map(|(trigger, _)| trigger).chain(&dispatch.stops);
        let texts = texts.filter_map(|t| match t {
            Trigger::Text(text) | Trigger::Led(text, _) => Some(text),
            Trigger::Special(_) => None,
        });
        let mut bytes = ByteSet::EMPTY;
        texts.chain(&dispatch.excludes).flatten().for_each(|&b| bytes.insert(b));
        bytes.iter().for_each(|b| self.add_boundary(b, b));
        let limit = self.limits.automaton_states;
        let pending = UnresolvedDispatch::new(dispatch, limit).map_err(|error| match error {
            TooLarge::Fuel(out) => CompileError::fuel(self.grammar, owner, out),
            TooLarge::States { limit } => {
                CompileError::Limit { rule: self.name(owner), what: "dispatch states", limit }
            }
        })?;
        let nodes = pending.len();
        self.dispatches.insert(owner, pending);
        Ok(nodes)
    }
}

impl Compiled {
    /// The auxiliary rule of an expression.
    pub(super) fn auxiliary(&self, expr_address: usize) -> u32 {
        self.auxiliary[&expr_address]
    }
}
