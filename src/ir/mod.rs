//! Stage 2: the intermediate representation. Every front end lowers to a [`Grammar`]: rules over
//! bytes, special tokens, calls, counted repeats, graphs, member sets, prebuilt automata and tag
//! dispatch. It is typed data, never text, so names cannot be mistaken for syntax.

mod algebra;
mod builder;
mod call_graph;
mod counted_graph;
mod deferred;
mod excluded_words;
mod homomorphism;
mod intersection;
mod literal;
mod member_bits;
mod members;
mod presence;
mod print;
mod productive;
#[doc(hidden)]
pub mod regular;
mod simplify;
mod unroll;
mod validate;
mod visit;

pub use algebra::AlgebraError;
pub use builder::GrammarBuilder;
pub(crate) use call_graph::CallGraph;
pub use counted_graph::Counted;
pub use deferred::Deferred;
pub use excluded_words::Except;
pub use homomorphism::Homomorphism;
pub use literal::Literal;
pub use members::{Member, Members};
pub(crate) use members::{MemberBounds, MemberChoices, NextMember, SeenMembers};
pub use presence::PresenceClause;
pub(crate) use presence::are_propagated;
pub(crate) use print::MACROS;
pub(crate) use productive::ProductiveRules;
pub use simplify::{Pass, Simplify};
pub use validate::GrammarError;

use std::sync::Arc;

use crate::fsm::{ByteSet, Dfa};
use crate::hash::HashSet;
use crate::ids::{Label, RuleId, SpecialId};

/// A context-free grammar over bytes and special tokens. Build one with [`GrammarBuilder`].
///
/// Invariant: every [`RuleId`] and [`SpecialId`] inside lies within `rules` and `specials`
/// (checked by [`Grammar::validate`], which the compiler calls).
#[derive(Clone, Debug, PartialEq)]
pub struct Grammar {
    /// The rules; [`RuleId`]s index this list.
    pub rules: Vec<Rule>,
    /// The start rule.
    pub start: RuleId,
    /// The special tokens that the grammar names; [`SpecialId`]s index this list.
    pub specials: Vec<SpecialToken>,
}

impl Grammar {
    /// Moves the body and the attributes of a rule to a new rule, and leaves a call of that rule.
    /// Returns the index of the new rule.
    pub(crate) fn split_rule(&mut self, outer: usize) -> usize {
        let inner = self.rules.len();
        let rule = &mut self.rules[outer];
        let moved = Rule {
            name: rule.name.clone(),
            body: std::mem::replace(&mut rule.body, Expr::Ref(RuleId::new(inner))),
            attributes: std::mem::take(&mut rule.attributes),
        };
        self.rules.push(moved);
        inner
    }
}

/// Clones the grammar.
impl From<&Grammar> for Arc<Grammar> {
    fn from(grammar: &Grammar) -> Self {
        Arc::new(grammar.clone())
    }
}

/// A special token, as the grammar names it. It matches one whole token, and is resolved when a
/// vocabulary is bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SpecialToken {
    /// By text, such as `<|im_end|>`. If no special token has this text, an ordinary token with
    /// these bytes matches.
    Name(String),
    /// By id. If the token is ordinary, it matches as this token, regardless of its bytes.
    Id(u32),
    /// Any of several tokens.
    AnyOf(Vec<SpecialToken>),
    /// Any token of the vocabulary except these and the stop tokens.
    AnyBut(Vec<SpecialToken>),
}

/// A rule: a named expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// For printing and error messages. Need not be unique.
    pub name: String,
    /// The language of the rule.
    pub body: Expr,
    /// Further constraints and annotations.
    pub attributes: Attributes,
}

/// What a rule means beyond its language. A rule with any attribute is never inlined, and only
/// merged with rules of equal attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    /// Bytes derived by this rule carry this label in a trace, except those of labelled rules
    /// inside of it.
    pub label: Option<Label>,
    /// The texts of the rule are reported under this name.
    pub capture: Option<String>,
    /// The texts of the rule are left out of enclosing captures.
    pub hidden: bool,
    /// The sampling temperature inside of the rule. The engine only reports it.
    pub temperature: Option<f32>,
    /// A bound on the text of one occurrence.
    pub budget: Option<Budget>,
    /// Distinct-values scope (`uniqueItems`): within one occurrence of the rule, no two elements
    /// are equal. See [`Attributes::element`].
    pub scope: bool,
    /// Distinct-values element: each occurrence differs from the earlier ones in the innermost
    /// enclosing scope.
    ///
    /// Texts that are JSON values are compared as such: `1` equals `1.0`, `"\u0061"` equals `"a"`,
    /// and members are unordered. Other texts are compared bytewise, without white space outside of
    /// quotes. A text with two equal elements is not a sentence.
    ///
    /// A prefix that can only become an earlier value is rejected at once. But the grammar must
    /// ensure that enough values exist: if it requires more elements than there are values, a text
    /// reaches a dead end, which is reported as a limit.
    pub element: bool,
    /// Unique key (duplicate-key detection): each occurrence differs, as a JSON string, from those
    /// that the same occurrence of the calling rule has called before. The name of a member, called
    /// by the rule of its object.
    ///
    /// Requirements: a name begins with a quote and ends with the next unescaped quote; every
    /// prefix of a name has infinitely many completions; the calling rule continues after the name.
    /// Names that violate this are not compared, or reach a dead end. Cheaper than
    /// [`Attributes::element`]: free until a name has been read.
    pub unique_key: bool,
    /// The texts of the rule are possible but unlikely, for example a spelling of calls that the
    /// model was not trained on. Changes no mask: preparation comes to them last.
    pub unlikely: bool,
}

impl Attributes {
    /// Whether the only attribute is `unique_key`.
    pub(crate) fn is_only_unique_key(&self) -> bool {
        self.unique_key && self.has_none_but_unique_key()
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        !self.unique_key && self.has_none_but_unique_key()
    }

    /// Whether there are no attributes, `unique_key` aside.
    fn has_none_but_unique_key(&self) -> bool {
        matches!(
            self,
            Attributes {
                label: None,
                capture: None,
                hidden: false,
                temperature: None,
                budget: None,
                scope: false,
                element: false,
                unique_key: _,
                unlikely: false,
            }
        )
    }
}

/// A bound on the text of one occurrence of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Most tokens. Counts tokens that begin inside of the occurrence, but not a token across its
    /// beginning.
    pub tokens: Option<u32>,
    /// Most code points.
    pub chars: Option<u32>,
    /// What happens once it is spent.
    pub on_exhausted: BudgetPolicy,
}

/// What happens to an occurrence whose [`Budget`] is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum BudgetPolicy {
    /// The occurrence continues only if it must. It is dropped as soon as anything else can follow,
    /// its own end included; unfinished parts are completed first.
    #[default]
    Finish,
    /// The rule ends at once, even if incomplete.
    Cut,
}

/// The largest number of repetitions that is counted.
pub(crate) const MAX_COUNT: u32 = 1 << 30;

/// The language of a rule, as an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// The empty text.
    Empty,
    /// The empty language.
    Never,
    /// These bytes in order.
    Bytes(Literal),
    /// Any byte of the set.
    Class(ByteSet),
    /// A special token. No sequence of ordinary bytes matches it.
    Special(SpecialId),
    /// The language of another rule.
    Ref(RuleId),
    /// Concatenation.
    Seq(Vec<Expr>),
    /// Alternation.
    Alt(Vec<Expr>),
    /// `body` repeated `min..=max` times; `None` is unbounded. Large bounds become counters, not
    /// copies.
    Repeat {
        /// The repeated expression.
        body: Box<Expr>,
        /// Fewest repetitions, at most 2^30.
        min: u32,
        /// Most repetitions. More than 2^30 are unbounded.
        max: Option<u32>,
    },
    /// A regular language over bytes, as a DFA with symbols `0..=255`.
    Automaton(Arc<Dfa>),
    /// A finite automaton with expressions on its edges. It shares tails that an expression tree
    /// would copy.
    Graph(Box<Graph>),
    /// A member set: object members in any order, each at most once.
    Members(Box<Members>),
    /// Texts other than some words.
    Except(Box<Except>),
    /// Paths of a graph with a bounded number of edges.
    Counted(Box<Counted>),
    /// Free text that tags interrupt.
    Dispatch(Box<Dispatch>),
    /// A grammar that is built when a parse first reaches it. Only as the whole body of a rule.
    Deferred(Deferred),
}

/// A generalised finite automaton: concatenations of edge expressions along paths from `start` to
/// an end node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Graph<E = Expr> {
    /// Number of nodes.
    pub nodes: u32,
    /// The start node.
    pub start: u32,
    /// The accepting nodes.
    pub ends: Vec<u32>,
    /// `(from, expression, to)`; `Expr::Empty` is an epsilon edge.
    pub edges: Vec<(u32, E, u32)>,
}

/// No node and no edge.
impl<E> Default for Graph<E> {
    fn default() -> Self {
        Graph { nodes: 0, start: 0, ends: Vec::new(), edges: Vec::new() }
    }
}

impl<E> Graph<E> {
    /// Adds a node.
    pub fn node(&mut self) -> u32 {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds an edge.
    pub fn edge(&mut self, from: u32, expr: E, to: u32) {
        self.edges.push((from, expr, to));
    }

    /// The graph with other expressions on its edges.
    pub(crate) fn map<'e, F>(&'e self, mut expr: impl FnMut(&'e E) -> F) -> Graph<F> {
        Graph {
            nodes: self.nodes,
            start: self.start,
            ends: self.ends.clone(),
            edges: self.edges.iter().map(|(from, e, to)| (*from, expr(e), *to)).collect(),
        }
    }

    /// `min..=max` repetitions: a node in front of each and one after the last.
    fn repeat(body: E, min: u32, max: Option<u32>) -> Graph<E>
    where
        E: Clone,
    {
        let last = max.unwrap_or(min);
        let mut edges: Vec<(u32, E, u32)> =
            (0..last).map(|run| (run, body.clone(), run + 1)).collect();
        if max.is_none() {
            edges.push((last, body, last));
        }
        Graph { nodes: last + 1, start: 0, ends: (min..=last).collect(), edges }
    }
}

/// What interrupts free text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// These bytes.
    Text(Vec<u8>),
    /// This special token.
    Special(SpecialId),
    /// These bytes, directly followed by this special token. Without the token, the bytes are free
    /// text.
    TextThenSpecial(Vec<u8>, SpecialId),
}

impl Trigger {
    /// The trigger of a text that the special token, if there is one, follows directly. Without
    /// text, the token alone.
    pub fn new(text: impl Into<Vec<u8>>, special: Option<SpecialId>) -> Trigger {
        match (text.into(), special) {
            (text, None) => Trigger::Text(text),
            (text, Some(special)) if text.is_empty() => Trigger::Special(special),
            (text, Some(special)) => Trigger::TextThenSpecial(text, special),
        }
    }

    /// Its text, if it is a text without a special token.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Trigger::Text(text) => Some(text),
            Trigger::Special(_) | Trigger::TextThenSpecial(..) => None,
        }
    }

    /// Its bytes, without the special token.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Trigger::Text(bytes) | Trigger::TextThenSpecial(bytes, _) => bytes,
            Trigger::Special(_) => &[],
        }
    }

    /// The expression that matches exactly what fires the trigger.
    pub fn expr(&self) -> Expr {
        match self {
            Trigger::Text(bytes) => Expr::bytes(bytes),
            Trigger::Special(special) => Expr::Special(*special),
            Trigger::TextThenSpecial(bytes, special) => {
                Expr::seq([Expr::bytes(bytes), Expr::Special(*special)])
            }
        }
    }
}

/// Tag dispatch (XGrammar 2, section on TagDispatch): free text that is searched for triggers,
/// stops and excludes with an Aho-Corasick automaton. A trigger starts the body of its tag; free
/// text continues after the body. The trigger's bytes belong to the dispatch, not to the body. See
/// docs/internals/DISPATCH.md.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dispatch {
    /// `(trigger, body)`. Several tags may share a trigger: any of their bodies may follow.
    pub tags: Vec<(Trigger, RuleId)>,
    /// Each of these ends the dispatch.
    pub stops: Vec<Trigger>,
    /// Free text must not contain any of these.
    pub excludes: Vec<Vec<u8>>,
    /// What follows a body.
    pub after: AfterTag,
    /// Where the dispatch may end.
    pub end: DispatchEnd,
}

impl Dispatch {
    /// Free text up to and including the first stop.
    pub fn until(stops: Vec<Trigger>) -> Dispatch {
        let (tags, excludes) = (Vec::new(), Vec::new());
        Dispatch { tags, stops, excludes, after: AfterTag::End, end: DispatchEnd::AtStop }
    }

    /// Free text without the excluded texts, up to and including the first of the ends; see
    /// [`Dispatch::add_ends`].
    pub fn until_ends(
        ends: impl IntoIterator<Item = (Trigger, Expr)>,
        excludes: Vec<Vec<u8>>,
        rule: impl FnMut(Expr) -> RuleId,
    ) -> Dispatch {
        let mut text = Dispatch { excludes, ..Dispatch::until(Vec::new()) };
        text.add_ends(ends, rule);
        text
    }

    /// Adds ends: triggers, each with the expression that follows it. A trigger that nothing
    /// follows is a stop; `rule` makes the rules of the other expressions.
    pub fn add_ends(
        &mut self,
        ends: impl IntoIterator<Item = (Trigger, Expr)>,
        mut rule: impl FnMut(Expr) -> RuleId,
    ) {
        for (trigger, following) in ends {
            match following {
                Expr::Empty => self.stops.push(trigger),
                following => self.tags.push((trigger, rule(following))),
            }
        }
    }

    /// The triggers of tags, in their order, and then the stops.
    pub(crate) fn triggers_and_stops(&self) -> impl Iterator<Item = &Trigger> {
        self.tags.iter().map(|(trigger, _)| trigger).chain(&self.stops)
    }

    /// Total bytes of triggers, stops and excludes, each trigger counted once; bounded by
    /// [`dispatch_bytes`](crate::limits::Limits::dispatch_bytes).
    pub fn bytes(&self) -> usize {
        let mut seen: HashSet<&Trigger> = HashSet::default();
        let tags =
            self.tags.iter().map(|(trigger, _)| trigger).filter(|trigger| seen.insert(trigger));
        let texts = tags.chain(&self.stops).map(|trigger| trigger.bytes().len());
        texts.chain(self.excludes.iter().map(Vec::len)).sum()
    }
}

impl From<Dispatch> for Expr {
    fn from(dispatch: Dispatch) -> Expr {
        Expr::Dispatch(Box::new(dispatch))
    }
}

/// What follows the body of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterTag {
    /// Free text and further tags.
    Loop,
    /// The end of the dispatch.
    End,
}

/// Where a dispatch may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchEnd {
    /// Anywhere in free text, and at a stop.
    Anywhere,
    /// In free text after at least one tag, and at a stop.
    AfterOneTag,
    /// Only at a stop, or after a body with [`AfterTag::End`].
    AtStop,
}

impl Expr {
    /// A literal.
    pub fn text(text: &str) -> Expr {
        Expr::bytes(text.as_bytes())
    }

    /// A literal; without bytes, [`Expr::Empty`].
    pub fn bytes(bytes: &[u8]) -> Expr {
        if bytes.is_empty() { Expr::Empty } else { Expr::Bytes(bytes.into()) }
    }

    /// A byte class; the empty set is [`Expr::Never`].
    pub fn class(set: ByteSet) -> Expr {
        if set.is_empty() { Expr::Never } else { Expr::Class(set) }
    }

    /// Concatenation. Flattens, drops [`Expr::Empty`], and collapses to [`Expr::Never`].
    pub fn seq(parts: impl IntoIterator<Item = Expr>) -> Expr {
        let mut out = Vec::new();
        for part in parts {
            match part {
                Expr::Empty => {}
                Expr::Never => return Expr::Never,
                Expr::Seq(inner) => out.extend(inner),
                other => out.push(other),
            }
        }
        match out.len() {
            0 => Expr::Empty,
            1 => out.remove(0),
            _ => Expr::Seq(out),
        }
    }

    /// Alternation. Flattens, and drops [`Expr::Never`].
    pub fn alt(parts: impl IntoIterator<Item = Expr>) -> Expr {
        let mut out = Vec::new();
        for part in parts {
            match part {
                Expr::Never => {}
                Expr::Alt(inner) => out.extend(inner),
                other => out.push(other),
            }
        }
        match out.len() {
            0 => Expr::Never,
            1 => out.remove(0),
            _ => Expr::Alt(out),
        }
    }

    /// `body?`.
    pub fn optional(body: Expr) -> Expr {
        Expr::repeat(body, 0, Some(1))
    }

    /// `body*`.
    pub fn star(body: Expr) -> Expr {
        Expr::repeat(body, 0, None)
    }

    /// `body{min,max}`. Trivial bounds collapse; `min > max` is [`Expr::Never`].
    pub fn repeat(body: Expr, min: u32, max: Option<u32>) -> Expr {
        match (body, min, max) {
            (_, min, Some(max)) if min > max => Expr::Never,
            (_, _, Some(0)) => Expr::Empty,
            (body, 1, Some(1)) => body,
            (Expr::Empty, _, _) => Expr::Empty,
            (Expr::Never, 0, _) => Expr::Empty,
            (Expr::Never, _, _) => Expr::Never,
            (body, min, max) => Expr::Repeat { body: Box::new(body), min, max },
        }
    }

    /// The UTF-8 encodings of the code points `lo..=hi` without surrogates, by `regex-syntax`'s
    /// UTF-8 ranges.
    pub fn code_points(lo: char, hi: char) -> Expr {
        Expr::alt(regex_syntax::utf8::Utf8Sequences::new(lo, hi).map(|sequence| {
            Expr::seq(
                sequence.as_slice().iter().map(|r| Expr::Class(ByteSet::range(r.start, r.end))),
            )
        }))
    }
}
