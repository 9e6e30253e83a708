//! Stage 2. The typed grammar all front ends lower to: rules over bytes, special tokens, references, counted
//! repeats, labelled graphs, sets of members, prebuilt automata and tag dispatch. Never text: names are data, not syntax.

mod algebra;
mod builder;
mod counted_graph;
mod deferred;
mod excluded_words;
mod homomorphism;
mod literal;
mod members;
mod print;
pub mod regular;
mod simplify;
mod tags;
mod unroll;
mod validate;

pub use algebra::IntersectError;
pub use builder::GrammarBuilder;
pub use counted_graph::Counted;
pub use deferred::Deferred;
pub use excluded_words::Except;
pub use homomorphism::{Homomorphism, MapError};
pub use literal::Literal;
pub use members::{Member, Members};
pub(crate) use members::{MemberBounds, NextMember, SeenMembers};
pub(crate) use print::MACROS;
pub use simplify::{Pass, Simplify};
pub use tags::{NewTrigger, TagsError};
pub use validate::GrammarError;

use std::sync::Arc;

use crate::fsm::{ByteSet, Dfa};
use crate::ids::{Label, RuleId, SpecialId};

/// A context-free grammar over bytes and special tokens. Build one with [`GrammarBuilder`].
///
/// Invariant: every [`RuleId`] and [`SpecialId`] inside lies within `rules` and `specials`
/// (checked by [`Grammar::validate`], which the compiler calls).
#[derive(Clone, Debug, PartialEq)]
pub struct Grammar {
    /// The rules; [`RuleId`]s index this list.
    pub rules: Vec<Rule>,
    /// Where derivations begin.
    pub start: RuleId,
    /// The special tokens the grammar names; [`SpecialId`]s index this list.
    pub specials: Vec<SpecialToken>,
}

/// A copy to share.
impl From<&Grammar> for Arc<Grammar> {
    fn from(grammar: &Grammar) -> Self {
        Arc::new(grammar.clone())
    }
}

/// One step over a whole token, as the grammar knows it. Resolved against a vocabulary when the two are bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SpecialToken {
    /// By its text, such as `<|im_end|>`; an ordinary token with just these bytes where no special token is called so.
    Name(String),
    /// By its id. The token may be an ordinary one: it is then allowed as this token, however its bytes fare.
    Id(u32),
    /// Any one of several tokens.
    AnyOf(Vec<SpecialToken>),
    /// Any token of the vocabulary but these and the stop tokens.
    AnyBut(Vec<SpecialToken>),
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// For people: printing, errors. Need not be unique.
    pub name: String,
    /// What it derives.
    pub body: Expr,
    /// What else holds of the text it derives.
    pub attributes: Attributes,
}

/// What is said of a rule beside the language it derives. A rule with any of these is kept apart from all others: its
/// calls are never written out or shared with another rule's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    /// Bytes derived by this rule (and not by a labelled rule inside it) carry this label in a trace.
    pub label: Option<Label>,
    /// The texts the rule derives are reported under this name.
    pub capture: Option<String>,
    /// What the rule derives is left out of captures around it.
    pub hidden: bool,
    /// The sampling temperature while inside. The engine only reports it.
    pub temperature: Option<f32>,
    /// How much text the rule may take.
    pub budget: Option<Budget>,
    /// Within one occurrence of the rule, no two occurrences of elements have the same value: see [`Attributes::element`].
    pub scope: bool,
    /// Each occurrence differs from those before it in the innermost scope around it, if there is one: as a JSON value where the
    /// text is one (`1` is `1.0`, `"\u0061"` is `"a"`, members in any order), else byte by byte, white space outside of quotes apart. A sentence in which one does not
    /// is none. What is begun can be finished: a beginning that only leads to values that there have been is no beginning. But whether
    /// there are values left before one begins is for the grammar to see to: where it asks for more elements than there are values, a
    /// text gets to where nothing can follow, which is reported as a limit.
    pub element: bool,
    /// Each occurrence differs, as a JSON string, from those before it that the same occurrence of a rule has called: the name of a member,
    /// called by the rule of the object. Names are texts that begin with a quote and end with the next one that is not escaped; whatever a
    /// name has begun with, there are infinitely many it can still become; and the rule that calls one goes on behind it. (What is
    /// otherwise is not told apart, or gets to where nothing can follow.) Cheaper than [`Attributes::element`]: where no name has been read, it costs
    /// nothing.
    pub name: bool,
}

impl Attributes {
    /// Nothing is said but that it is a name.
    pub(crate) fn is_only_name(&self) -> bool {
        self.name && self.is_no_more()
    }

    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        !self.name && self.is_no_more()
    }

    /// Whether nothing is said but, perhaps, that it is a name.
    fn is_no_more(&self) -> bool {
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
                name: _,
            }
        )
    }
}

/// How much text one occurrence of a rule may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Most tokens. Counted are tokens that begin inside the occurrence; a token across its beginning is not.
    pub tokens: Option<u32>,
    /// Most code points.
    pub chars: Option<u32>,
    /// What happens when it is spent.
    pub spent: Spent,
}

/// What becomes of a rule whose [`Budget`] is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Spent {
    /// The occurrence goes on only if it must: it is dropped as soon as something else can follow, its own end included. Text that
    /// may end anywhere ends; what is half written is finished first.
    #[default]
    Finish,
    /// The rule ends where it is, whatever is missing.
    Cut,
}

/// What a rule derives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// The empty string.
    Empty,
    /// Nothing at all: the empty language.
    Never,
    /// These bytes, in this order.
    Bytes(Literal),
    /// One byte of the set.
    Class(ByteSet),
    /// One special token. Bytes never spell it.
    Special(SpecialId),
    /// Whatever the rule derives.
    Ref(RuleId),
    /// All, one after the other.
    Seq(Vec<Expr>),
    /// Any one.
    Alt(Vec<Expr>),
    /// `body` at least `min` and at most `max` times (no upper bound: `None`). Large bounds are counters, not copies.
    Repeat {
        /// What is repeated.
        body: Box<Expr>,
        /// Fewest times.
        min: u32,
        /// Most times.
        max: Option<u32>,
    },
    /// A regular language over bytes, already an automaton (symbols 0..=255).
    Automaton(Arc<Dfa>),
    /// A finite automaton whose edges carry expressions. Shares tails that an expression tree would copy.
    Graph(Box<Graph>),
    /// Members in any order, each at most once.
    Members(Box<Members>),
    /// Texts that are none of some words.
    Except(Box<Except>),
    /// Paths of a graph that have so many edges.
    Counted(Box<Counted>),
    /// Free text that tags interrupt.
    Dispatch(Box<Dispatch>),
    /// A grammar that is made when a parse gets to it. The whole body of a rule, never a part of one.
    Deferred(Deferred),
}

/// A generalised finite automaton: derives the concatenations of edge expressions along paths from `start` to an end node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Graph {
    /// Number of nodes.
    pub nodes: u32,
    /// Where paths begin.
    pub start: u32,
    /// Where paths may end.
    pub ends: Vec<u32>,
    /// `(from, expression, to)`; `Expr::Empty` is an epsilon edge.
    pub edges: Vec<(u32, Expr, u32)>,
}

impl Graph {
    /// Adds a node.
    pub fn node(&mut self) -> u32 {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds an edge.
    pub fn edge(&mut self, from: u32, expr: Expr, to: u32) {
        self.edges.push((from, expr, to));
    }
}

/// Text or a special token that interrupts free text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// These bytes.
    Text(Vec<u8>),
    /// This special token.
    Special(SpecialId),
    /// These bytes, and right behind them this special token. Without the token the bytes are text.
    Led(Vec<u8>, SpecialId),
}

/// Tag dispatch (XGrammar 2, section on TagDispatch): free text, watched by an Aho-Corasick automaton over all
/// triggers, stops and excludes. When a trigger has been read, the tag's body constrains what follows; when the body
/// ends, back to free text. The bytes of the trigger itself are part of the dispatch, not of the body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dispatch {
    /// `(trigger, body)`. Several tags may share a trigger: any of their bodies may follow.
    pub tags: Vec<(Trigger, RuleId)>,
    /// Reading one of these ends the dispatch.
    pub stops: Vec<Trigger>,
    /// Free text never contains these.
    pub excludes: Vec<Vec<u8>>,
    /// After a body: back to free text, or out.
    pub after: AfterTag,
    /// Where the dispatch may end.
    pub end: DispatchEnd,
}

/// What follows a tag's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterTag {
    /// Free text again, and further tags.
    Loop,
    /// The dispatch ends.
    End,
}

/// Where a dispatch may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchEnd {
    /// Anywhere in free text (and at a stop).
    Anywhere,
    /// In free text after at least one tag (and at a stop).
    AfterOneTag,
    /// Only at a stop, or behind a body with [`AfterTag::End`].
    AtStop,
}

/// ExprList of an expression. One costs no list.
#[derive(Default)]
struct ExprList {
    first: Option<Expr>,
    /// With the first, once there are more.
    all: Vec<Expr>,
}

impl ExprList {
    fn push(&mut self, part: Expr, expected: usize) {
        if self.first.is_none() && self.all.is_empty() {
            self.first = Some(part);
            return;
        }
        if let Some(first) = self.first.take() {
            self.all.reserve(expected.max(2));
            self.all.push(first);
        }
        self.all.push(part);
    }

    fn extend(&mut self, parts: Vec<Expr>) {
        match self.first.take() {
            Some(first) => {
                self.all.reserve(parts.len() + 2);
                self.all.push(first);
                self.all.extend(parts);
            }
            None if self.all.is_empty() => self.all = parts,
            None => self.all.extend(parts),
        }
    }

    fn finish(mut self, none: Expr, more: impl FnOnce(Vec<Expr>) -> Expr) -> Expr {
        match (self.first, self.all.len()) {
            (Some(only), _) => only,
            (None, 0) => none,
            (None, 1) => self.all.remove(0),
            (None, _) => more(self.all),
        }
    }
}

impl Expr {
    /// The bytes of a string.
    pub fn text(text: &str) -> Expr {
        Expr::bytes(text.as_bytes())
    }

    /// These bytes; none is [`Expr::Empty`].
    pub fn bytes(bytes: &[u8]) -> Expr {
        if bytes.is_empty() { Expr::Empty } else { Expr::Bytes(bytes.into()) }
    }

    /// One byte of the set; the empty set is [`Expr::Never`].
    pub fn class(set: ByteSet) -> Expr {
        if set.is_empty() { Expr::Never } else { Expr::Class(set) }
    }

    /// Concatenation; flattens, drops [`Expr::Empty`], collapses to [`Expr::Never`].
    pub fn seq(parts: impl IntoIterator<Item = Expr>) -> Expr {
        let (parts, mut out) = (parts.into_iter(), ExprList::default());
        let expected = parts.size_hint().0;
        for part in parts {
            match part {
                Expr::Empty => {}
                Expr::Never => return Expr::Never,
                Expr::Seq(inner) => out.extend(inner),
                other => out.push(other, expected),
            }
        }
        out.finish(Expr::Empty, Expr::Seq)
    }

    /// Alternation; flattens and drops [`Expr::Never`].
    pub fn alt(parts: impl IntoIterator<Item = Expr>) -> Expr {
        let (parts, mut out) = (parts.into_iter(), ExprList::default());
        let expected = parts.size_hint().0;
        for part in parts {
            match part {
                Expr::Never => {}
                Expr::Alt(inner) => out.extend(inner),
                other => out.push(other, expected),
            }
        }
        out.finish(Expr::Never, Expr::Alt)
    }

    /// Zero or one time.
    pub fn optional(body: Expr) -> Expr {
        Expr::repeat(body, 0, Some(1))
    }

    /// Any number of times.
    pub fn star(body: Expr) -> Expr {
        Expr::repeat(body, 0, None)
    }

    /// `min..=max` times; trivial bounds collapse, `min > max` is [`Expr::Never`].
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

    /// The UTF-8 spellings of the code points `lo..=hi` (surrogates left out), through `regex-syntax`'s UTF-8 ranges.
    pub fn code_points(lo: char, hi: char) -> Expr {
        Expr::alt(regex_syntax::utf8::Utf8Sequences::new(lo, hi).map(|sequence| {
            Expr::seq(
                sequence.as_slice().iter().map(|r| Expr::Class(ByteSet::range(r.start, r.end))),
            )
        }))
    }
}
