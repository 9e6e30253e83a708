//! How single expressions become parts of automata: inlined, unrolled or counted.

use crate::fsm::{ByteSet, LONG_WHITE_SPACE_RUN};
use crate::ir::{Expr, MAX_COUNT, Rule};

/// A counted repeat that costs at most this many states is unrolled; larger ones become counted
/// blocks.
const UNROLL_STATES: usize = 12;
/// Most states of a rule that is inlined.
const TINY_STATES: usize = 4;

/// The identity of an expression within its grammar: its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExprId(usize);

impl ExprId {
    /// The id of an expression.
    pub(super) fn of(expr: &Expr) -> ExprId {
        ExprId(std::ptr::from_ref(expr).addr())
    }
}

/// The body of a rule that is inlined where it is called. A call of a single class, such as white
/// space, costs more than its state. Counts are not inlined: callers share one copy of their
/// states.
pub(super) fn inlined_body(rule: &Rule) -> Option<&Expr> {
    (rule.attributes.is_empty() && is_tiny(&rule.body)).then_some(&rule.body)
}

fn is_tiny(body: &Expr) -> bool {
    match body {
        Expr::Class(_) | Expr::Special(_) => true,
        Expr::Bytes(bytes) => bytes.len() <= TINY_STATES,
        &Expr::Repeat { body: ref repeated, min, max } => {
            let repeat = Repeat { whole: body, body: repeated, min, max };
            let states = max.unwrap_or(min) as usize;
            matches!(**repeated, Expr::Class(_))
                && (states <= TINY_STATES || repeat.is_bounded_white_space())
        }
        _ => false,
    }
}

/// An [`Expr::Repeat`].
#[derive(Clone, Copy)]
pub(super) struct Repeat<'e> {
    /// The expression itself.
    pub(super) whole: &'e Expr,
    pub(super) body: &'e Expr,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
}

impl Repeat<'_> {
    /// Whether no number of repetitions is allowed.
    pub(super) fn is_empty(&self) -> bool {
        self.max.is_some_and(|max| max < self.min)
    }

    /// With an upper bound that can be counted. Larger ones are unbounded: no text in memory has
    /// that many repetitions.
    pub(super) fn countable(self) -> Self {
        Repeat { max: self.max.filter(|&max| max <= MAX_COUNT), ..self }
    }

    /// Whether it is optional white space with a bound that nearly every token is shorter than.
    pub(super) fn is_bounded_white_space(&self) -> bool {
        let is_white = |set: &ByteSet| set.union(&ByteSet::WHITE_SPACE) == ByteSet::WHITE_SPACE;
        let white = matches!(self.body, Expr::Class(set) if is_white(set));
        white && self.min == 0 && self.max.is_some_and(|max| max as usize > LONG_WHITE_SPACE_RUN)
    }

    /// Whether it is unrolled rather than counted.
    pub(super) fn is_unrolled(&self) -> bool {
        let copies = self.max.unwrap_or(self.min.max(1)) as usize;
        let states = || unrolled_states(self.body, UNROLL_STATES);
        copies <= 1 || states().saturating_mul(copies) <= UNROLL_STATES
    }
}

/// States that an expression costs, counted up to `cap`.
fn unrolled_states(expr: &Expr, cap: usize) -> usize {
    let sum = |parts: &mut dyn Iterator<Item = &Expr>| {
        let mut total = 0;
        for part in parts {
            total += unrolled_states(part, cap);
            if total > cap {
                break;
            }
        }
        total
    };
    match expr {
        Expr::Empty | Expr::Never => 0,
        Expr::Bytes(b) => b.len(),
        Expr::Class(_) | Expr::Special(_) | Expr::Ref(_) | Expr::Dispatch(_) | Expr::Members(_) => {
            1
        }
        Expr::Deferred(_) => 1,
        Expr::Seq(parts) | Expr::Alt(parts) => sum(&mut parts.iter()),
        Expr::Repeat { body, min, max } => {
            let times = max.unwrap_or(min.saturating_add(1)).max(1);
            unrolled_states(body, cap).saturating_mul(times as usize)
        }
        Expr::Automaton(dfa) => dfa.len(),
        Expr::Except(except) => except.state_estimate(),
        Expr::Counted(_) => 1,
        Expr::Graph(graph) => {
            graph.nodes as usize + sum(&mut graph.edges.iter().map(|(_, e, _)| e))
        }
    }
}
