//! Intersection of a grammar with a regular language (Bar-Hillel, Perles and Shamir, 1961).

mod graphs;

use std::collections::BTreeSet;
use std::sync::Arc;

use self::graphs::{end_flags, graph_of, to_sequence};
use super::algebra::AlgebraError;
use super::{Counted, Expr, Grammar, GrammarBuilder, GrammarError, Graph, Rule};
use crate::fsm::{ByteSet, Combine, Csr, Dfa, StatePairs};
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::ids::RuleId;
use crate::limits::Limits;

/// Deepest expression that is intersected by recursion.
const MAX_DEPTH: usize = 500;

/// Fuel per visit of one expression in one state of the automaton.
const STEP: usize = 16;

impl Grammar {
    /// Intersection with a regular language over bytes (Bar-Hillel, Perles and Shamir, 1961). A
    /// rule of the result is a rule of this grammar between two states of the automaton; only
    /// reachable combinations are made. Labels, captures and temperatures are kept.
    ///
    /// Cost: up to the grammar's size times the square of the automaton's; bounded by
    /// [`Limits::nodes`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::front::regex::{self, Pattern};
    /// use louver::{Compiled, Limits, Recognizer, RegexOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = Limits::default();
    /// let letters = regex::lower("[a-z]+", &RegexOptions::default(), &limits)?;
    /// // An automaton over code points, which are bytes in ASCII.
    /// let short = Pattern::parse("^[ -~]{2}$", &limits)?.match_dfa(limits.automaton_states)?;
    /// let both = letters.intersect(&short, &limits)?;
    /// let mut recognizer = Recognizer::new(Arc::new(Compiled::new(both, &limits)?));
    /// assert!(recognizer.push(b"ab").is_ok() && recognizer.push(b"c").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn intersect(&self, language: &Dfa, limits: &Limits) -> Result<Grammar, AlgebraError> {
        self.validate()?;
        let whole = self.with_deferred_bodies()?;
        let mut intersection = Intersection {
            grammar: &whole,
            language,
            limits,
            rule: self.start,
            steps: 0,
            nodes: 0,
            ends: RuleEnds::default(),
            restricted: RestrictedRules::default(),
        };
        intersection.find_ends()?;
        intersection.build()
    }
}

/// A rule and the state in which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RuleStart {
    rule: RuleId,
    from: u32,
}

/// A rule between two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RuleBetween {
    rule: RuleId,
    from: u32,
    to: u32,
}

/// An edge of the product of a graph and the automaton.
#[derive(Clone, Copy, Debug)]
struct ProductEdge {
    /// The number of the pair that it leaves.
    from: u32,
    /// Index of the edge of the graph.
    edge: usize,
    /// The number of the pair that it leads to.
    to: u32,
}

type Result<T, E = AlgebraError> = std::result::Result<T, E>;

/// The construction: first a fixpoint of the states in which rules may end, then the rules of the
/// result.
struct Intersection<'g> {
    grammar: &'g Grammar,
    language: &'g Dfa,
    limits: &'g Limits,
    /// The current rule, for errors.
    rule: RuleId,
    /// Steps so far.
    steps: usize,
    /// Expressions made so far.
    nodes: usize,
    ends: RuleEnds,
    restricted: RestrictedRules,
}

/// The fixpoint of the states in which rules may end, by rule and first state.
#[derive(Default)]
struct RuleEnds {
    /// The ends as far as known.
    known: HashMap<RuleStart, BTreeSet<u32>>,
    /// Dependents: to be examined again when a rule gets another end.
    callers: HashMap<RuleStart, HashSet<RuleStart>>,
    /// The worklist.
    queue: Vec<RuleStart>,
    queued: HashSet<RuleStart>,
    /// What is being examined; `None` before and after the fixpoint is computed.
    current: Option<RuleStart>,
}

impl RuleEnds {
    /// The states in which a rule may end, as far as known. Registers the current rule as a
    /// dependent.
    fn of(&mut self, start: RuleStart) -> BTreeSet<u32> {
        if let Some(caller) = self.current {
            self.callers.entry(start).or_default().insert(caller);
        }
        if let Some(ends) = self.known.get(&start) {
            return ends.clone();
        }
        self.known.insert(start, BTreeSet::new());
        self.enqueue(start);
        BTreeSet::new()
    }

    /// Adds to the worklist.
    fn enqueue(&mut self, start: RuleStart) {
        if self.queued.insert(start) {
            self.queue.push(start);
        }
    }

    /// Takes the next rule to examine from the worklist.
    fn next(&mut self) -> Option<RuleStart> {
        self.current = self.queue.pop();
        self.queued.remove(&self.current?);
        self.current
    }

    /// Adds ends of a rule. If one is new, its dependents are examined again.
    fn add(&mut self, start: RuleStart, found: BTreeSet<u32>) {
        let ends = self.known.entry(start).or_default();
        let before = ends.len();
        ends.extend(found);
        if ends.len() > before {
            let mut callers: Vec<RuleStart> =
                self.callers.get(&start).into_iter().flatten().copied().collect();
            callers.sort_unstable();
            callers.into_iter().for_each(|caller| self.enqueue(caller));
        }
    }
}

/// The rules of the result: each is a rule of the grammar between two states.
#[derive(Default)]
struct RestrictedRules {
    ids: HashMap<RuleBetween, RuleId>,
    /// Rules without a body so far.
    todo: Vec<RuleBetween>,
    builder: GrammarBuilder,
}

impl RestrictedRules {
    /// The rule of the result for a rule between two states; `source` is that rule.
    fn rule(&mut self, key: RuleBetween, source: &Rule) -> RuleId {
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = self.builder.declare(&*source.name);
        *self.builder.attributes(id) = source.attributes.clone();
        self.ids.insert(key, id);
        self.todo.push(key);
        id
    }
}

impl Intersection<'_> {
    /// The name of the current rule.
    fn name(&self) -> String {
        self.grammar.rules[self.rule.index()].name.clone()
    }

    /// Charges a step.
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        fuel::spend(STEP)?;
        let limit = self.limits.nodes;
        if self.steps > limit.saturating_mul(100) {
            Err(AlgebraError::TooLarge { limit })
        } else {
            Ok(())
        }
    }

    /// A counted graph as a graph, if that is within the limits.
    fn unrolled(&self, counted: &Counted) -> Result<Expr> {
        let limit = self.limits.nodes;
        counted.to_graph_within(limit).ok_or(AlgebraError::TooLarge { limit })
    }

    /// Charges an expression of the result.
    fn count_expr(&mut self, expr: Expr) -> Result<Expr> {
        self.nodes += 1;
        let limit = self.limits.nodes;
        if self.nodes > limit { Err(AlgebraError::TooLarge { limit }) } else { Ok(expr) }
    }

    /// The depth of subexpressions.
    fn check_depth(&self, depth: usize) -> Result<usize> {
        if depth > MAX_DEPTH {
            return Err(GrammarError::TooDeep { rule: self.name(), limit: MAX_DEPTH }.into());
        }
        Ok(depth + 1)
    }

    /// Computes the ends of all reachable rules: a worklist fixpoint.
    fn find_ends(&mut self) -> Result<()> {
        let grammar = self.grammar;
        self.ends.of(RuleStart { rule: grammar.start, from: 0 });
        while let Some(start) = self.ends.next() {
            self.rule = start.rule;
            let rule = &grammar.rules[start.rule.index()];
            AlgebraError::check_attributes(rule)?;
            let found = self.ends_of(&rule.body, start.from, 0)?;
            self.ends.add(start, found);
        }
        Ok(())
    }

    /// The states in which an expression that begins in `from` may end.
    fn ends_of(&mut self, expr: &Expr, from: u32, depth: usize) -> Result<BTreeSet<u32>> {
        let depth = self.check_depth(depth)?;
        self.step()?;
        Ok(match expr {
            Expr::Empty => BTreeSet::from([from]),
            Expr::Never => BTreeSet::new(),
            Expr::Bytes(bytes) => self.run(from, bytes).into_iter().collect(),
            Expr::Class(set) => {
                let edges = self.language.edges(from).iter();
                edges
                    .filter(|e| set.iter().any(|b| (e.lo..=e.hi).contains(&b.into())))
                    .map(|e| e.to)
                    .collect()
            }
            Expr::Special(_) | Expr::Dispatch(_) | Expr::Deferred(_) => {
                let rule = &self.grammar.rules[self.rule.index()];
                return Err(AlgebraError::undefined_expr(rule, expr));
            }
            &Expr::Ref(rule) => self.ends.of(RuleStart { rule, from }),
            Expr::Counted(counted) => self.ends_of(&self.unrolled(counted)?, from, depth)?,
            Expr::Except(except) => self.ends_of(&except.to_graph(), from, depth)?,
            Expr::Alt(parts) => {
                let mut out = BTreeSet::new();
                for part in parts {
                    out.extend(self.ends_of(part, from, depth)?);
                }
                out
            }
            Expr::Automaton(dfa) => self.automaton_ends(dfa, from)?,
            Expr::Repeat { body, min, max } if self.returns_to_state(body, from, depth)? => {
                let any = *min == 0 || !self.ends_of(body, from, depth)?.is_empty();
                if any && max.is_none_or(|max| *min <= max) {
                    BTreeSet::from([from])
                } else {
                    BTreeSet::new()
                }
            }
            Expr::Seq(_) | Expr::Repeat { .. } | Expr::Graph(_) | Expr::Members(_) => {
                match graph_of(expr, self.limits.nodes)? {
                    Some(graph) => self.graph_ends(&graph, from, depth)?,
                    None => BTreeSet::new(),
                }
            }
        })
    }

    /// The states in which a word of an automaton that begins in `from` may end.
    fn automaton_ends(&mut self, dfa: &Dfa, from: u32) -> Result<BTreeSet<u32>> {
        let mut seen = HashSet::from_iter([(0, from)]);
        let mut stack = vec![(0, from)];
        let mut out = BTreeSet::new();
        while let Some((a, b)) = stack.pop() {
            self.step()?;
            if dfa.is_final(a) {
                out.insert(b);
            }
            for (x, y) in
                dfa.edges(a).iter().flat_map(|x| self.language.edges(b).iter().map(move |y| (x, y)))
            {
                if x.lo <= y.hi && y.lo <= x.hi && seen.insert((x.to, y.to)) {
                    stack.push((x.to, y.to));
                }
            }
        }
        Ok(out)
    }

    /// The states in which a path of a graph that begins in `from` may end.
    fn graph_ends(
        &mut self,
        graph: &Graph<&Expr>,
        from: u32,
        depth: usize,
    ) -> Result<BTreeSet<u32>> {
        let (pairs, _) = self.product(graph, from, depth)?;
        let is_end = end_flags(graph);
        let ends = pairs.all().iter().filter(|(node, _)| is_end[*node as usize]);
        Ok(ends.map(|&(_, state)| state).collect())
    }

    /// The state after reading `bytes`.
    fn run(&self, from: u32, bytes: &[u8]) -> Option<u32> {
        bytes.iter().try_fold(from, |at, &byte| self.language.next(at, byte.into()))
    }

    /// Whether every repetition of `body` that begins in `from` ends there. Then the intersection
    /// only counts.
    fn returns_to_state(&mut self, body: &Expr, from: u32, depth: usize) -> Result<bool> {
        Ok(self.ends_of(body, from, depth)?.iter().all(|&end| end == from))
    }

    /// The product of a graph and the automaton: the reachable pairs of node and state, and the
    /// edges between them.
    fn product(
        &mut self,
        graph: &Graph<&Expr>,
        from: u32,
        depth: usize,
    ) -> Result<(StatePairs, Vec<ProductEdge>)> {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes as usize];
        for (edge, (node, ..)) in graph.edges.iter().enumerate() {
            out[*node as usize].push(edge);
        }
        // The number of steps bounds that of the pairs.
        let mut pairs = StatePairs::new((graph.start, from), usize::MAX);
        let mut edges = Vec::new();
        let mut from = 0;
        while let Some((node, state)) = pairs.get(from as usize) {
            for &edge in &out[node as usize] {
                let (_, expr, to) = graph.edges[edge];
                for end in self.ends_of(expr, state, depth)? {
                    self.step()?;
                    edges.push(ProductEdge { from, edge, to: pairs.number((to, end))? });
                }
            }
            from += 1;
        }
        Ok((pairs, edges))
    }

    /// Builds the result, once all ends are known.
    fn build(mut self) -> Result<Grammar> {
        let start = self.grammar.start;
        let mut ends = self.ends.of(RuleStart { rule: start, from: 0 });
        ends.retain(|&end| self.language.is_final(end));
        let root = self.restricted.builder.declare("root");
        let ends = ends.into_iter().map(|to| RuleBetween { rule: start, from: 0, to });
        let whole: Vec<Expr> = ends.map(|key| Expr::Ref(self.rule_between(key))).collect();
        self.restricted.builder.define(root, Expr::alt(whole));
        let grammar = self.grammar;
        while let Some(key) = self.restricted.todo.pop() {
            let RuleBetween { rule, from, to } = key;
            self.rule = rule;
            let body = self.restrict(&grammar.rules[rule.index()].body, from, to, 0)?;
            let id = self.rule_between(key);
            self.restricted.builder.define(id, body);
        }
        Ok(self.restricted.builder.into_grammar(root))
    }

    /// The rule of the result for a rule between two states.
    fn rule_between(&mut self, key: RuleBetween) -> RuleId {
        self.restricted.rule(key, &self.grammar.rules[key.rule.index()])
    }

    /// The part of an expression that leads from one state to another.
    fn restrict(&mut self, expr: &Expr, from: u32, to: u32, depth: usize) -> Result<Expr> {
        let depth = self.check_depth(depth)?;
        self.step()?;
        let part = match expr {
            Expr::Empty if from == to => Expr::Empty,
            Expr::Bytes(bytes) if self.run(from, bytes) == Some(to) => expr.clone(),
            Expr::Class(set) => {
                let mut some = ByteSet::EMPTY;
                set.iter()
                    .filter(|&b| self.language.next(from, b.into()) == Some(to))
                    .for_each(|b| some.insert(b));
                Expr::class(some)
            }
            &Expr::Ref(rule) if self.ends.of(RuleStart { rule, from }).contains(&to) => {
                Expr::Ref(self.rule_between(RuleBetween { rule, from, to }))
            }
            Expr::Counted(counted) => self.restrict(&self.unrolled(counted)?, from, to, depth)?,
            Expr::Except(except) => self.restrict(&except.to_graph(), from, to, depth)?,
            Expr::Alt(parts) => {
                let parts: Result<Vec<Expr>> =
                    parts.iter().map(|part| self.restrict(part, from, to, depth)).collect();
                Expr::alt(parts?)
            }
            Expr::Automaton(dfa) => {
                let words = self.language.restarted(from, |state| state == to);
                let both = dfa.combine(&words, Combine::And, self.limits.automaton_states)?;
                self.nodes += both.len();
                if both.is_empty() { Expr::Never } else { Expr::Automaton(Arc::new(both)) }
            }
            Expr::Repeat { body, min, max } if self.returns_to_state(body, from, depth)? => {
                if from == to {
                    Expr::repeat(self.restrict(body, from, from, depth)?, *min, *max)
                } else {
                    Expr::Never
                }
            }
            Expr::Seq(_) | Expr::Repeat { .. } | Expr::Graph(_) | Expr::Members(_) => {
                match graph_of(expr, self.limits.nodes)? {
                    Some(graph) => self.restrict_graph(&graph, from, to, depth)?,
                    None => Expr::Never,
                }
            }
            _ => Expr::Never,
        };
        self.count_expr(part)
    }

    /// The part of a graph that leads from one state to another.
    fn restrict_graph(
        &mut self,
        graph: &Graph<&Expr>,
        from: u32,
        to: u32,
        depth: usize,
    ) -> Result<Expr> {
        let (pairs, edges) = self.product(graph, from, depth)?;
        let (pairs, is_end) = (pairs.all(), end_flags(graph));
        let ends: Vec<u32> = (0u32..)
            .zip(pairs)
            .filter(|(_, (node, state))| is_end[*node as usize] && *state == to)
            .map(|(i, _)| i)
            .collect();
        // Backward reachability from the ends.
        let back = Csr::new(pairs.len(), || edges.iter().map(|edge| (edge.to, edge.from)));
        let live = back.reached(ends.iter().copied());
        if !live[0] {
            return Ok(Expr::Never);
        }
        let mut out = Graph { nodes: pairs.len() as u32, start: 0, ends, edges: Vec::new() };
        for ProductEdge { from, edge, to } in edges {
            if !live[from as usize] || !live[to as usize] {
                continue;
            }
            let (_, expr, _) = graph.edges[edge];
            let [(_, before), (_, after)] = [from, to].map(|pair| pairs[pair as usize]);
            let part = self.restrict(expr, before, after, depth)?;
            if part != Expr::Never {
                out.edge(from, part, to);
            }
        }
        Ok(to_sequence(out))
    }
}
