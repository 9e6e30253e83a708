//! Leaf: fuel, a counted budget of work.
//!
//! A schema or a grammar decides how much work the engine does for it, and no bound on sizes bounds
//! that work: products of automata, ambiguous parses and walks of the vocabulary grow faster than
//! their input. So every computation that can grow spends fuel. It ends with [`OutOfFuel`] when its
//! budget is spent or its request is cancelled.
//!
//! * A **unit** stands for about 10 nanoseconds of one core. Units are counted and never timed, so
//!   the same work spends the same on every machine. A result that an engine or the process has
//!   cached costs nothing: what ran before can only make work cheaper.
//! * The **meter** belongs to the thread, as the stack does: code deep inside a compilation spends
//!   without passing a budget through every call. Outside of [`with_budget`] nothing is limited.
//! * **Budgets nest**: an inner one is at most the rest of the outer one.
//!
//! [`Limits`](crate::limits::Limits) has the budgets; docs/RELIABILITY.md says how they were set.
//!
//! ```
//! use louver::fuel;
//!
//! let sum = |n: u64| (0..n).sum::<u64>();
//! // Work that spends no fuel is not limited.
//! let (result, units) = fuel::measure(|| fuel::with_budget(10, || sum(100)));
//! assert_eq!((result, units), (4950, 0));
//! ```

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Units between two checks of the budget and of cancel tokens: about 40 microseconds.
const SLICE_UNITS: u64 = 1 << 12;

/// Why work was given up.
///
/// ```
/// use louver::OutOfFuel;
///
/// let message = OutOfFuel::Spent { limit: 500 }.to_string();
/// assert_eq!(message, "too complex: more than 500 units of work (fuel)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutOfFuel {
    /// The budget is spent.
    #[error("too complex: more than {limit} units of work (fuel)")]
    Spent {
        /// The budget, in units.
        limit: u64,
    },
    /// A [`CancelToken`] was cancelled.
    #[error("the work was cancelled")]
    Cancelled,
}

/// The fuel of one thread.
struct FuelMeter {
    /// Units that may be spent before the budget is checked again.
    slice: Cell<u64>,
    /// Units of the budget that were not issued in slices yet; `u64::MAX` without a budget.
    reserve: Cell<u64>,
    /// The budget that runs out first, in units; the error names it.
    limit: Cell<u64>,
    /// Units issued in slices since the thread began.
    issued: Cell<u64>,
    /// Set once the budget is spent or the work is cancelled: all further work fails.
    halted: Cell<Option<OutOfFuel>>,
    /// Whether there is a [`CHECK_OBSERVER`].
    is_observed: Cell<bool>,
}

thread_local! {
    /// The meter of this thread.
    static METER: FuelMeter = const {
        FuelMeter {
            slice: Cell::new(0),
            reserve: Cell::new(u64::MAX),
            limit: Cell::new(u64::MAX),
            issued: Cell::new(0),
            halted: Cell::new(None),
            is_observed: Cell::new(false),
        }
    };
    /// Cancel tokens of the work under way, outermost first.
    static TOKENS: RefCell<Vec<CancelToken>> = const { RefCell::new(Vec::new()) };
    /// Called before each check of cancel tokens; see [`observe_checks`].
    static CHECK_OBSERVER: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

impl FuelMeter {
    /// Issues a slice that covers `units`, or halts.
    #[cold]
    fn refill(&self, units: u64) -> Result<(), OutOfFuel> {
        self.check()?;
        let (slice, reserve) = (self.slice.get(), self.reserve.get());
        let more = units.saturating_sub(slice).max(SLICE_UNITS).min(reserve);
        if reserve != u64::MAX {
            self.reserve.set(reserve - more);
        }
        self.issued.set(self.issued.get() + more);
        self.slice.set(slice + more);
        match (slice + more).checked_sub(units) {
            Some(left) => {
                self.slice.set(left);
                Ok(())
            }
            None => self.halt(OutOfFuel::Spent { limit: self.limit.get() }),
        }
    }

    /// Ends all work under the budget. The rest of the budget counts as spent.
    fn halt(&self, why: OutOfFuel) -> Result<(), OutOfFuel> {
        if why == OutOfFuel::Cancelled {
            self.return_slice();
        }
        self.slice.set(0);
        self.halted.set(Some(why));
        Err(why)
    }

    /// Whether work may go on: within its budget, and not cancelled.
    fn check(&self) -> Result<(), OutOfFuel> {
        if let Some(halted) = self.halted.get() {
            return Err(halted);
        }
        if self.is_observed.get() {
            CHECK_OBSERVER.with_borrow_mut(|observer| observer.iter_mut().for_each(|call| call()));
        }
        if TOKENS.with_borrow(|tokens| any_cancelled(tokens)) {
            return self.halt(OutOfFuel::Cancelled);
        }
        match self.slice.get() == 0 && self.reserve.get() == 0 {
            true => self.halt(OutOfFuel::Spent { limit: self.limit.get() }),
            false => Ok(()),
        }
    }

    /// Returns the slice to the budget, so that the next unit checks it.
    fn return_slice(&self) {
        let slice = self.slice.take();
        self.issued.set(self.issued.get() - slice);
        if self.reserve.get() != u64::MAX {
            self.reserve.set(self.reserve.get() + slice);
        }
    }

    /// Units spent since the thread began.
    fn spent(&self) -> u64 {
        self.issued.get() - self.slice.get()
    }
}

/// Spends fuel. Errors: the budget is spent, or the work was cancelled. From then on every call
/// fails.
#[inline]
pub(crate) fn spend(units: usize) -> Result<(), OutOfFuel> {
    METER.with(|meter| {
        let (units, slice) = (units as u64, meter.slice.get());
        // An empty slice takes the slow path, so that a halted meter fails for zero units, too.
        if units < slice {
            meter.slice.set(slice - units);
            return Ok(());
        }
        meter.refill(units)
    })
}

/// Spends fuel for work that is done in any case; the next [`spend`] or [`check`] reports the
/// error.
#[inline]
pub(crate) fn charge(units: usize) {
    let _ = spend(units);
}

/// As [`charge`], for sorting so many small values.
#[inline]
pub(crate) fn charge_sort(values: usize) {
    charge(values * (2 + values.max(1).ilog2() as usize) / 4);
}

/// Units spent since the thread began.
pub(crate) fn spent() -> u64 {
    METER.with(FuelMeter::spent)
}

/// Whether work may go on.
#[inline]
pub(crate) fn check() -> Result<(), OutOfFuel> {
    METER.with(FuelMeter::check)
}

/// Whether the budget of this thread is spent, or its work cancelled. Then an automaton may not be
/// minimal, so what others share is not made of it.
///
/// ```
/// use louver::fuel;
///
/// assert!(!fuel::is_exhausted());
/// assert!(fuel::with_budget(0, fuel::is_exhausted));
/// ```
pub fn is_exhausted() -> bool {
    check().is_err()
}

/// Whether the work of this thread is cancelled.
pub(crate) fn is_cancelled() -> bool {
    check() == Err(OutOfFuel::Cancelled)
}

/// Runs `work` with a budget of `units`, or with the rest of the surrounding budget if that is
/// less. The work itself reports [`OutOfFuel`], as a limit error of its own stage.
///
/// ```
/// use louver::fuel;
/// use louver::{Engine, EngineOptions, SchemaOptions, Vocabulary};
///
/// let engine = Engine::new(std::sync::Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
/// let compile = || engine.compile_json_schema(r#"{"type": "array"}"#, &SchemaOptions::default());
/// assert!(fuel::with_budget(10, compile).is_err());
/// assert!(fuel::with_budget(10_000_000, compile).is_ok());
/// ```
pub fn with_budget<T>(units: u64, work: impl FnOnce() -> T) -> T {
    /// Restores the surrounding budget, also after a panic.
    struct OuterBudget {
        left: u64,
        limit: u64,
        halted: Option<OutOfFuel>,
        spent: u64,
    }
    impl Drop for OuterBudget {
        fn drop(&mut self) {
            METER.with(|meter| {
                meter.return_slice();
                let used = meter.spent() - self.spent;
                let left =
                    if self.left == u64::MAX { u64::MAX } else { self.left.saturating_sub(used) };
                meter.reserve.set(left);
                meter.limit.set(self.limit);
                meter.halted.set(self.halted);
            });
        }
    }
    let _outer = METER.with(|meter| {
        meter.return_slice();
        let left = meter.reserve.get();
        let outer = OuterBudget {
            left,
            limit: meter.limit.get(),
            halted: meter.halted.get(),
            spent: meter.spent(),
        };
        if units < left {
            meter.reserve.set(units);
            meter.limit.set(units);
        }
        outer
    });
    work()
}

/// Runs an attempt with half of the fuel that is left, so that there is some for another attempt.
///
/// ```
/// use louver::fuel;
///
/// assert_eq!(fuel::with_budget(100, || fuel::with_half(|| 7)), 7);
/// ```
pub fn with_half<T>(work: impl FnOnce() -> T) -> T {
    let left = METER.with(|meter| {
        meter.return_slice();
        meter.reserve.get()
    });
    if left == u64::MAX { work() } else { with_budget(left / 2, work) }
}

/// Runs `work` with the surrounding budget, or with `units()` if there is none.
///
/// ```
/// use louver::fuel;
///
/// let budget = || -> u64 { unreachable!("there is a budget already") };
/// assert_eq!(fuel::with_budget(100, || fuel::with_default_budget(budget, || 7)), 7);
/// ```
pub fn with_default_budget<T>(units: impl FnOnce() -> u64, work: impl FnOnce() -> T) -> T {
    if METER.with(|meter| meter.reserve.get() == u64::MAX) {
        with_budget(units(), work)
    } else {
        work()
    }
}

/// As [`with_separate_budget`], but charged to the surrounding budget: the request that makes a
/// shared result pays for it.
pub(crate) fn with_shared_budget<T>(units: u64, work: impl FnOnce() -> T) -> T {
    let (made, spent) = with_separate_budget(units, || measure(work));
    charge(spent as usize);
    made
}

/// Runs work whose result others share with a budget of its own, regardless of the surrounding
/// budget and of cancel tokens. The surrounding budget is not charged.
pub(crate) fn with_separate_budget<T>(units: u64, work: impl FnOnce() -> T) -> T {
    /// Restores the surrounding budget and cancel tokens, also after a panic.
    struct SavedMeter {
        reserve: u64,
        limit: u64,
        issued: u64,
        halted: Option<OutOfFuel>,
        tokens: Vec<CancelToken>,
    }
    impl Drop for SavedMeter {
        fn drop(&mut self) {
            METER.with(|meter| {
                meter.return_slice();
                meter.reserve.set(self.reserve);
                meter.limit.set(self.limit);
                meter.issued.set(self.issued);
                meter.halted.set(self.halted);
            });
            TOKENS.set(std::mem::take(&mut self.tokens));
        }
    }
    let _saved = METER.with(|meter| {
        meter.return_slice();
        SavedMeter {
            reserve: meter.reserve.replace(units),
            limit: meter.limit.replace(units),
            issued: meter.issued.get(),
            halted: meter.halted.take(),
            tokens: TOKENS.take(),
        }
    });
    work()
}

/// Runs work and returns the fuel that it spends, in units. For tests, benchmarks and reports.
///
/// ```
/// use louver::fuel;
/// use louver::{Engine, EngineOptions, RegexOptions, Vocabulary};
///
/// let engine = Engine::new(std::sync::Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
/// let compile = |pattern| engine.compile_regex(pattern, &RegexOptions::default()).is_ok();
/// let (_, short) = fuel::measure(|| compile("ab"));
/// let (_, long) = fuel::measure(|| compile("(?:ab|c[d-x]){30}"));
/// assert!(long > short);
/// ```
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = METER.with(FuelMeter::spent);
    let result = work();
    (result, METER.with(FuelMeter::spent) - before)
}

/// Runs work, and calls `observer` before each check of cancel tokens on this thread. For tests:
/// the observer may cancel a token, but spends no fuel.
#[doc(hidden)]
pub fn observe_checks<T>(observer: impl FnMut() + 'static, work: impl FnOnce() -> T) -> T {
    /// Removes the observer, also after a panic.
    struct Observed;
    impl Drop for Observed {
        fn drop(&mut self) {
            METER.with(|meter| meter.is_observed.set(false));
            CHECK_OBSERVER.set(None);
        }
    }
    let _observed = Observed;
    CHECK_OBSERVER.set(Some(Box::new(observer)));
    METER.with(|meter| {
        meter.return_slice();
        meter.is_observed.set(true);
    });
    work()
}

/// Cancels the work of a request from another thread. Clones are the same token.
///
/// ```
/// use louver::{CancelToken, Engine, EngineOptions, SchemaOptions, Vocabulary};
///
/// let engine = Engine::new(std::sync::Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
/// let token = CancelToken::default();
/// token.cancel(); // as a server does when the client has closed the connection
/// let schema = r#"{"type": "array"}"#;
/// let compiled = token.run(|| engine.compile_json_schema(schema, &SchemaOptions::default()));
/// assert!(compiled.is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Ends the work that runs under the token with a limit error. What spends fuel ends within 10
    /// milliseconds of its compute time; docs/RELIABILITY.md says what is not interrupted.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`CancelToken::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs work on this thread that ends when the token is cancelled. Preparations that it starts
    /// on background threads end as well.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        run_under(std::slice::from_ref(self), work)
    }
}

/// The cancel tokens of this thread's work, to hand them to another thread.
pub(crate) fn cancel_tokens() -> Vec<CancelToken> {
    TOKENS.with_borrow(Clone::clone)
}

/// Whether one of these tokens is cancelled.
pub(crate) fn any_cancelled(tokens: &[CancelToken]) -> bool {
    tokens.iter().any(CancelToken::is_cancelled)
}

/// Runs work that ends when one of these tokens is cancelled.
pub(crate) fn run_under<T>(tokens: &[CancelToken], work: impl FnOnce() -> T) -> T {
    /// Restores the list of tokens to its length before.
    struct TokensBefore(usize);
    impl Drop for TokensBefore {
        fn drop(&mut self) {
            TOKENS.with_borrow_mut(|all| all.truncate(self.0));
            METER.with(|meter| {
                if meter.halted.get() == Some(OutOfFuel::Cancelled) {
                    meter.halted.set(None);
                }
            });
        }
    }
    let _before = TOKENS.with_borrow_mut(|all| {
        let before = TokensBefore(all.len());
        all.extend_from_slice(tokens);
        before
    });
    METER.with(FuelMeter::return_slice);
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_exact_and_nest() {
        assert_eq!(spend(usize::MAX >> 1), Ok(()), "without a budget nothing is limited");
        for budget in [0, 1, 10, SLICE_UNITS - 1, SLICE_UNITS, SLICE_UNITS + 1, 3 * SLICE_UNITS + 7]
        {
            let ((), spent) = measure(|| {
                with_budget(budget, || {
                    let mut done = 0;
                    while spend(1).is_ok() {
                        done += 1;
                    }
                    assert_eq!(done, budget);
                    assert_eq!(check(), Err(OutOfFuel::Spent { limit: budget }));
                });
            });
            assert_eq!(spent, budget);
        }
        with_budget(100, || {
            with_budget(1_000, || {
                assert_eq!(
                    spend(101),
                    Err(OutOfFuel::Spent { limit: 100 }),
                    "limited by the rest of the outer budget"
                );
            });
            assert_eq!(check(), Err(OutOfFuel::Spent { limit: 100 }), "it is spent outside, too");
        });
        with_budget(100, || {
            with_budget(10, || assert!(spend(11).is_err()));
            assert_eq!(spend(80), Ok(()), "an inner budget that is spent leaves the rest");
            assert!(spend(30).is_err());
        });
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn separate_budgets_are_not_charged_to_the_surrounding_ones() {
        let ((), spent) = measure(|| {
            with_budget(1_000, || {
                with_budget(100, || with_separate_budget(u64::MAX, || charge(900)));
                assert_eq!(spend(500), Ok(()));
            });
        });
        assert_eq!(spent, 500);
    }

    #[test]
    fn budgets_are_given_back_after_a_panic() {
        with_budget(50, || {
            let panicked =
                std::panic::catch_unwind(|| with_budget(10, || panic!("injected by a test")));
            assert!(panicked.is_err());
            assert_eq!(spend(50), Ok(()));
            assert!(spend(1).is_err());
        });
    }

    #[test]
    fn cancelled_work_ends_within_a_slice() {
        let token = CancelToken::default();
        token.run(|| {
            assert_eq!(spend(10), Ok(()));
            token.clone().cancel();
            let steps = (0..2 * SLICE_UNITS).take_while(|_| spend(1).is_ok()).count() as u64;
            assert!(steps <= SLICE_UNITS, "{steps}");
            assert_eq!(
                with_budget(10, check),
                Err(OutOfFuel::Cancelled),
                "further work does not begin"
            );
        });
        assert_eq!(check(), Ok(()), "other work is not cancelled");
        let outer = CancelToken::default();
        outer.run(|| {
            token.run(|| assert!(check().is_err()));
            assert_eq!(check(), Ok(()));
        });
    }
}
