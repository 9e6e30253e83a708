//! Bodies of rules that are made when a parse first gets to the rule.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Expr, Grammar, GrammarError};
use crate::ids::RuleId;

/// A rule's body that is a grammar of its own, made when it is first needed: a request with hundreds of tools calls one or two of
/// them. Cheap to clone; clones share what is made.
///
/// The grammar's sentences are not empty, it has some, and it says nothing beside its language: no special tokens, no attributes of rules but that
/// they are names. Whoever defers it has
/// made sure that it can be made. One that turns out otherwise ends a parse that gets to it in a typed limit, and is an error
/// everywhere else.
#[derive(Clone)]
pub struct Deferred(Arc<DeferredBody>);

static SERIAL: AtomicU64 = AtomicU64::new(0);

struct DeferredBody {
    /// Different for every one of the process.
    serial: u64,
    make: Box<dyn Fn() -> Option<Grammar> + Send + Sync>,
    made: OnceLock<Option<Arc<Grammar>>>,
}

impl Deferred {
    /// `make` is called at most once.
    pub fn new(make: impl Fn() -> Option<Grammar> + Send + Sync + 'static) -> Deferred {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Deferred(Arc::new(DeferredBody { serial, make: Box::new(make), made: OnceLock::new() }))
    }

    /// The grammar, made if it has not been yet; none if it cannot be made, or is not what it should be.
    pub fn grammar(&self) -> Option<&Arc<Grammar>> {
        let made = || {
            let grammar = (self.0.make)()?;
            let plain = |rule: &super::Rule| {
                let said = &rule.attributes;
                (said.is_empty() || said.is_only_name()) && !matches!(rule.body, Expr::Deferred(_))
            };
            let is_plain = grammar.specials.is_empty() && grammar.rules.iter().all(plain);
            (is_plain && grammar.validate().is_ok()).then(|| Arc::new(grammar))
        };
        self.0.made.get_or_init(made).as_ref()
    }

    /// The same for clones of one, and for nothing else in the process.
    pub(crate) fn serial(&self) -> u64 {
        self.0.serial
    }

    /// Whether it has been made.
    pub fn is_made(&self) -> bool {
        self.0.made.get().is_some()
    }
}

impl PartialEq for Deferred {
    fn eq(&self, other: &Self) -> bool {
        self.serial() == other.serial()
    }
}

impl Eq for Deferred {}

impl Hash for Deferred {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.serial().hash(state);
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("is_made", &self.is_made()).finish()
    }
}

impl Grammar {
    /// The grammar with everything in it that is deferred. Cost: that of making it.
    pub fn loaded(&self) -> Result<Cow<'_, Grammar>, GrammarError> {
        if !self.rules.iter().any(|rule| matches!(rule.body, Expr::Deferred(_))) {
            return Ok(Cow::Borrowed(self));
        }
        let mut out = self.clone();
        for id in 0..self.rules.len() {
            let Expr::Deferred(deferred) = &self.rules[id].body else { continue };
            let Some(grammar) = deferred.grammar() else {
                let what = "what was deferred cannot be made";
                return Err(GrammarError::Malformed { rule: self.rules[id].name.clone(), what });
            };
            let offset = out.rules.len();
            let moved = |rule: RuleId| RuleId::new(rule.index() + offset);
            out.rules.extend(grammar.rules.iter().cloned().map(|mut rule| {
                rule.body.remap(&moved, &|special| special);
                rule
            }));
            out.rules[id].body = Expr::Ref(moved(grammar.start));
        }
        Ok(Cow::Owned(out))
    }
}
