//! Grammar algebra: union, concatenation, repetition, and intersection with a regular language.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Counted, Expr, Grammar, GrammarBuilder, GrammarError, Graph};
use crate::fsm::{ByteSet, Combine, Csr, Dfa, DfaBuilder, TooLarge};
use crate::fuel::{self, OutOfFuel};
use crate::hash::{HashMap, HashSet};
use crate::ids::RuleId;
use crate::limits::Limits;

/// Deepest expression that is intersected by recursion.
const MAX_DEPTH: usize = 500;

/// Why a grammar cannot be intersected with a regular language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntersectError {
    /// A special token is not a byte, so no language over bytes contains it.
    #[error("rule `{rule}` has a special token, which is not a byte")]
    Special {
        /// The rule.
        rule: String,
    },
    /// A dispatch cannot be split by states of the automaton.
    #[error("rule `{rule}` has a tag dispatch")]
    Dispatch {
        /// The rule.
        rule: String,
    },
    /// A budget counts whole occurrences of a rule, which the intersection splits.
    #[error("rule `{rule}` has a budget")]
    Budget {
        /// The rule.
        rule: String,
    },
    /// Distinct elements are compared whole; the intersection splits them.
    #[error("rule `{rule}` has distinct values")]
    Distinct {
        /// The rule.
        rule: String,
    },
    /// Expressions are nested too deeply.
    #[error("rule `{rule}` is nested deeper than {limit}")]
    TooDeep {
        /// The rule.
        rule: String,
        /// The limit.
        limit: usize,
    },
    /// The result has more expressions than [`Limits::nodes`], or takes a hundred times as many
    /// steps.
    #[error("the intersection has more than {limit} expressions")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// An automaton inside grew past [`Limits::automaton_states`].
    #[error(transparent)]
    Automaton(#[from] TooLarge),
    /// The fuel was spent.
    #[error("the intersection: {0}")]
    Fuel(#[from] OutOfFuel),
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}

/// Fuel per visit of one expression in one state of the automaton.
const STEP: usize = 16;

impl Grammar {
    /// A grammar with a new start rule; `body` gets calls of the start rules of `parts`.
    fn with_start_rule(parts: &[&Grammar], body: impl FnOnce(Vec<Expr>) -> Expr) -> Grammar {
        let mut builder = GrammarBuilder::new();
        let start = builder.declare("root");
        let parts = parts.iter().map(|part| Expr::Ref(builder.import(part))).collect();
        builder.define(start, body(parts));
        builder.into_grammar(start)
    }

    /// Union of the languages; empty without parts. Cost: their size.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::front::regex;
    /// use louver::{Compiled, Grammar, Limits, Recognizer, RegexOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = Limits::default();
    /// let lower = |pattern| regex::lower(pattern, &RegexOptions::default(), &limits);
    /// let union = Grammar::union(&[&lower("[0-9]+")?, &lower("none")?]);
    /// let mut recognizer = Recognizer::new(Arc::new(Compiled::new(union, &limits)?));
    /// recognizer.push(b"none")?;
    /// assert!(recognizer.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn union(parts: &[&Grammar]) -> Grammar {
        Grammar::with_start_rule(parts, Expr::alt)
    }

    /// Concatenation of the languages; the empty text without parts. Cost: their size.
    pub fn concat(parts: &[&Grammar]) -> Grammar {
        Grammar::with_start_rule(parts, Expr::seq)
    }

    /// Kleene star. Cost: the grammar's size.
    pub fn star(&self) -> Grammar {
        self.repeat(0, None)
    }

    /// Union with the empty text. Cost: the grammar's size.
    pub fn optional(&self) -> Grammar {
        self.repeat(0, Some(1))
    }

    /// Repetition, `min..=max` times; empty if `min > max`. Cost: the grammar's size, independent
    /// of the bounds.
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Grammar {
        Grammar::with_start_rule(&[self], |mut parts| Expr::repeat(parts.remove(0), min, max))
    }

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
    pub fn intersect(&self, language: &Dfa, limits: &Limits) -> Result<Grammar, IntersectError> {
        self.validate()?;
        let whole = self.with_deferred_bodies()?;
        let mut intersection = Intersection {
            grammar: &whole,
            language,
            limits,
            steps: 0,
            nodes: 0,
            ends: HashMap::default(),
            callers: HashMap::default(),
            caller: None,
            queue: Vec::new(),
            queued: HashSet::default(),
            rule: self.start,
            ids: HashMap::default(),
            todo: Vec::new(),
            builder: GrammarBuilder::new(),
        };
        intersection.find_ends()?;
        intersection.build()
    }
}

/// A rule and the state in which it begins.
type RuleStart = (RuleId, u32);

type Result<T, E = IntersectError> = std::result::Result<T, E>;

/// The construction: first a fixpoint of the states in which rules may end, then the rules of the
/// result.
struct Intersection<'g> {
    grammar: &'g Grammar,
    language: &'g Dfa,
    limits: &'g Limits,
    /// Steps so far.
    steps: usize,
    /// Expressions made so far.
    nodes: usize,
    /// By rule and first state: the states in which it may end, as far as known.
    ends: HashMap<RuleStart, BTreeSet<u32>>,
    /// Dependents: to be examined again when a rule gets another end.
    callers: HashMap<RuleStart, HashSet<RuleStart>>,
    /// What is being examined; `None` while the result is built.
    caller: Option<RuleStart>,
    /// The worklist.
    queue: Vec<RuleStart>,
    queued: HashSet<RuleStart>,
    /// The current rule, for errors.
    rule: RuleId,
    /// Rules of the result, by rule and two states.
    ids: HashMap<(RuleId, u32, u32), RuleId>,
    todo: Vec<(RuleId, u32, u32)>,
    builder: GrammarBuilder,
}

/// A sequence, repeat, graph or member set, viewed as a graph. For a member set it has a node for
/// each set of seen members.
struct GraphView<'e> {
    nodes: u32,
    start: u32,
    ends: Vec<u32>,
    edges: Vec<(u32, &'e Expr, u32)>,
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
            Err(IntersectError::TooLarge { limit })
        } else {
            Ok(())
        }
    }

    /// A counted graph as a graph, if that is within the limits.
    fn unrolled(&self, counted: &Counted) -> Result<Expr> {
        let limit = self.limits.nodes;
        match counted.unrolled_size() <= limit {
            true => Ok(counted.to_graph()),
            false => Err(IntersectError::TooLarge { limit }),
        }
    }

    /// Charges an expression of the result.
    fn count_expr(&mut self, expr: Expr) -> Result<Expr> {
        self.nodes += 1;
        let limit = self.limits.nodes;
        if self.nodes > limit { Err(IntersectError::TooLarge { limit }) } else { Ok(expr) }
    }

    /// The depth of subexpressions.
    fn check_depth(&self, depth: usize) -> Result<usize> {
        if depth > MAX_DEPTH {
            return Err(IntersectError::TooDeep { rule: self.name(), limit: MAX_DEPTH });
        }
        Ok(depth + 1)
    }

    /// Adds to the worklist.
    fn enqueue(&mut self, start: RuleStart) {
        if self.queued.insert(start) {
            self.queue.push(start);
        }
    }

    /// The states in which a rule may end, as far as known. Registers the current rule as a
    /// dependent.
    fn rule_ends(&mut self, start: RuleStart) -> BTreeSet<u32> {
        if let Some(caller) = self.caller {
            self.callers.entry(start).or_default().insert(caller);
        }
        if let Some(ends) = self.ends.get(&start) {
            return ends.clone();
        }
        self.ends.insert(start, BTreeSet::new());
        self.enqueue(start);
        BTreeSet::new()
    }

    /// Computes the ends of all reachable rules: a worklist fixpoint.
    fn find_ends(&mut self) -> Result<()> {
        let grammar = self.grammar;
        self.rule_ends((grammar.start, 0));
        while let Some(start) = self.queue.pop() {
            self.queued.remove(&start);
            self.caller = Some(start);
            self.rule = start.0;
            let rule = &grammar.rules[start.0.index()];
            if rule.attributes.budget.is_some() {
                return Err(IntersectError::Budget { rule: self.name() });
            }
            if rule.attributes.scope || rule.attributes.element {
                return Err(IntersectError::Distinct { rule: self.name() });
            }
            let found = self.ends_of(&rule.body, start.1, 0)?;
            let ends = self.ends.entry(start).or_default();
            let before = ends.len();
            ends.extend(found);
            if ends.len() > before {
                let mut callers: Vec<RuleStart> =
                    self.callers.get(&start).into_iter().flatten().copied().collect();
                callers.sort_unstable();
                callers.into_iter().for_each(|caller| self.enqueue(caller));
            }
        }
        self.caller = None;
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
            Expr::Special(_) => return Err(IntersectError::Special { rule: self.name() }),
            Expr::Dispatch(_) | Expr::Deferred(_) => {
                return Err(IntersectError::Dispatch { rule: self.name() });
            }
            Expr::Ref(rule) => self.rule_ends((*rule, from)),
            Expr::Counted(counted) => self.ends_of(&self.unrolled(counted)?, from, depth)?,
            Expr::Except(except) => self.ends_of(&except.to_graph(), from, depth)?,
            Expr::Alt(parts) => {
                let mut out = BTreeSet::new();
                for part in parts {
                    out.extend(self.ends_of(part, from, depth)?);
                }
                out
            }
            Expr::Automaton(dfa) => {
                let mut seen = HashSet::from_iter([(0, from)]);
                let mut stack = vec![(0, from)];
                let mut out = BTreeSet::new();
                while let Some((a, b)) = stack.pop() {
                    self.step()?;
                    if dfa.is_final(a) {
                        out.insert(b);
                    }
                    for (x, y) in dfa
                        .edges(a)
                        .iter()
                        .flat_map(|x| self.language.edges(b).iter().map(move |y| (x, y)))
                    {
                        if x.lo <= y.hi && y.lo <= x.hi && seen.insert((x.to, y.to)) {
                            stack.push((x.to, y.to));
                        }
                    }
                }
                out
            }
            Expr::Repeat { body, min, max } if self.returns_to_state(body, from, depth)? => {
                let any = *min == 0 || !self.ends_of(body, from, depth)?.is_empty();
                if any && max.is_none_or(|max| *min <= max) {
                    BTreeSet::from([from])
                } else {
                    BTreeSet::new()
                }
            }
            Expr::Seq(_) | Expr::Repeat { .. } | Expr::Graph(_) | Expr::Members(_) => {
                let Some(view) = self.graph_view(expr)? else { return Ok(BTreeSet::new()) };
                let (pairs, _) = self.product(&view, from, depth)?;
                let is_end = end_flags(&view);
                pairs
                    .into_iter()
                    .filter(|(node, _)| is_end[*node as usize])
                    .map(|(_, state)| state)
                    .collect()
            }
        })
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

    /// A composite expression as a graph; `None` if it derives nothing.
    fn graph_view<'e>(&self, expr: &'e Expr) -> Result<Option<GraphView<'e>>> {
        Ok(Some(match expr {
            Expr::Seq(parts) => {
                let edges = (0u32..).zip(parts).map(|(i, part)| (i, part, i + 1)).collect();
                let last = parts.len() as u32;
                GraphView { nodes: last + 1, start: 0, ends: vec![last], edges }
            }
            Expr::Repeat { min, max: Some(max), .. } if min > max => return Ok(None),
            Expr::Repeat { body, min, max } => {
                let last = max.unwrap_or(*min);
                let limit = self.limits.nodes;
                if last as usize > limit {
                    return Err(IntersectError::TooLarge { limit });
                }
                let mut edges: Vec<_> = (0..last).map(|i| (i, &**body, i + 1)).collect();
                if max.is_none() {
                    edges.push((last, body, last));
                }
                GraphView { nodes: last + 1, start: 0, ends: (*min..=last).collect(), edges }
            }
            Expr::Graph(graph) => GraphView {
                nodes: graph.nodes,
                start: graph.start,
                ends: graph.ends.clone(),
                edges: graph.edges.iter().map(|(from, expr, to)| (*from, expr, *to)).collect(),
            },
            Expr::Members(members) => {
                let limit = self.limits.nodes;
                let paths =
                    members.to_graph(limit).map_err(|_| IntersectError::TooLarge { limit })?;
                GraphView { nodes: paths.nodes, start: 0, ends: paths.ends, edges: paths.edges }
            }
            _ => return Ok(None),
        }))
    }

    /// The product of a graph and the automaton: the reachable pairs of node and state, and the
    /// edges between them as (from, edge, to).
    fn product(
        &mut self,
        view: &GraphView<'_>,
        from: u32,
        depth: usize,
    ) -> Result<(Vec<(u32, u32)>, Vec<[u32; 3]>)> {
        let mut out: Vec<Vec<u32>> = vec![Vec::new(); view.nodes as usize];
        for (i, (node, ..)) in (0u32..).zip(&view.edges) {
            out[*node as usize].push(i);
        }
        let mut pairs = vec![(view.start, from)];
        let mut indices: HashMap<(u32, u32), u32> = HashMap::from_iter([((view.start, from), 0)]);
        let mut edges = Vec::new();
        let mut at = 0;
        while at < pairs.len() {
            let (node, state) = pairs[at];
            for &i in &out[node as usize] {
                let (_, expr, to) = view.edges[i as usize];
                for end in self.ends_of(expr, state, depth)? {
                    self.step()?;
                    let next = *indices.entry((to, end)).or_insert_with(|| {
                        pairs.push((to, end));
                        pairs.len() as u32 - 1
                    });
                    edges.push([at as u32, i, next]);
                }
            }
            at += 1;
        }
        Ok((pairs, edges))
    }

    /// Builds the result, once all ends are known.
    fn build(mut self) -> Result<Grammar> {
        let start = self.grammar.start;
        let finals: Vec<u32> = self
            .rule_ends((start, 0))
            .into_iter()
            .filter(|&end| self.language.is_final(end))
            .collect();
        let root = self.builder.declare("root");
        let body = Expr::alt(
            finals
                .into_iter()
                .map(|end| Expr::Ref(self.rule_between(start, 0, end)))
                .collect::<Vec<_>>(),
        );
        self.builder.define(root, body);
        let grammar = self.grammar;
        while let Some((rule, from, to)) = self.todo.pop() {
            self.rule = rule;
            let body = self.restrict(&grammar.rules[rule.index()].body, from, to, 0)?;
            let id = self.rule_between(rule, from, to);
            self.builder.define(id, body);
        }
        Ok(self.builder.into_grammar(root))
    }

    /// The rule of the result for a rule between two states.
    fn rule_between(&mut self, rule: RuleId, from: u32, to: u32) -> RuleId {
        if let Some(&id) = self.ids.get(&(rule, from, to)) {
            return id;
        }
        let source = &self.grammar.rules[rule.index()];
        let id = self.builder.declare(&*source.name);
        *self.builder.attributes(id) = source.attributes.clone();
        self.ids.insert((rule, from, to), id);
        self.todo.push((rule, from, to));
        id
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
            Expr::Ref(rule) if self.rule_ends((*rule, from)).contains(&to) => {
                Expr::Ref(self.rule_between(*rule, from, to))
            }
            Expr::Counted(counted) => self.restrict(&self.unrolled(counted)?, from, to, depth)?,
            Expr::Except(except) => self.restrict(&except.to_graph(), from, to, depth)?,
            Expr::Alt(parts) => {
                let parts: Result<Vec<Expr>> =
                    parts.iter().map(|part| self.restrict(part, from, to, depth)).collect();
                Expr::alt(parts?)
            }
            Expr::Automaton(dfa) => {
                let words = words_between(self.language, from, to);
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
                match self.graph_view(expr)? {
                    Some(view) => self.restrict_graph(&view, from, to, depth)?,
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
        view: &GraphView<'_>,
        from: u32,
        to: u32,
        depth: usize,
    ) -> Result<Expr> {
        let (pairs, edges) = self.product(view, from, depth)?;
        let is_end = end_flags(view);
        let ends: Vec<u32> = (0u32..)
            .zip(&pairs)
            .filter(|(_, (node, state))| is_end[*node as usize] && *state == to)
            .map(|(i, _)| i)
            .collect();
        // Backward reachability from the ends.
        let back = Csr::new(pairs.len(), || edges.iter().map(|&[from, _, to]| (to, from)));
        let live = back.reached(ends.iter().copied());
        if !live[0] {
            return Ok(Expr::Never);
        }
        let mut graph = Graph { nodes: pairs.len() as u32, start: 0, ends, edges: Vec::new() };
        for [a, i, b] in
            edges.into_iter().filter(|[a, _, b]| live[*a as usize] && live[*b as usize])
        {
            let (_, expr, _) = view.edges[i as usize];
            let part = self.restrict(expr, pairs[a as usize].1, pairs[b as usize].1, depth)?;
            if part != Expr::Never {
                graph.edge(a, part, b);
            }
        }
        Ok(to_sequence(graph))
    }
}

/// By node: whether it is accepting.
fn end_flags(view: &GraphView<'_>) -> Vec<bool> {
    let mut out = vec![false; view.nodes as usize];
    view.ends.iter().for_each(|&end| out[end as usize] = true);
    out
}

/// The words that lead from one state to another.
fn words_between(language: &Dfa, from: u32, to: u32) -> Dfa {
    let mut builder = DfaBuilder::new();
    // Exchange the first state with state 0, which is the start.
    let number = |state: u32| {
        if state == from {
            0
        } else if state == 0 {
            from
        } else {
            state
        }
    };
    for state in 0..language.len() as u32 {
        builder.state(number(state) == to);
    }
    for state in 0..language.len() as u32 {
        let edges = language.edges(state).iter();
        edges.for_each(|e| builder.edge(number(state), e.lo, e.hi, number(e.to)));
    }
    builder.finish()
}

/// Turns a graph that is a single path into a sequence.
fn to_sequence(graph: Graph) -> Expr {
    let one = |edges: &[(u32, Expr, u32)]| {
        (0u32..).zip(edges).all(|(i, (from, _, to))| *from == i && *to == i + 1)
    };
    if graph.start == 0 && one(&graph.edges) && graph.ends == [graph.edges.len() as u32] {
        return Expr::seq(graph.edges.into_iter().map(|(_, expr, _)| expr));
    }
    Expr::Graph(Box::new(graph))
}
