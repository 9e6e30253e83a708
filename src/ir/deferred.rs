//! Deferred rule bodies: grammars that are built when a parse first reaches their rule.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Expr, Grammar, GrammarError, SpecialToken};
use crate::fuel;
use crate::ids::{RuleId, SpecialId};

/// A rule body that is a grammar of its own, built on first use. A request may offer hundreds of
/// tools and call one or two. Cloning is cheap; clones share the result.
///
/// The grammar must be productive, derive the empty text only if the body is nullable
/// ([`Deferred::is_nullable`]), name only special tokens of the grammar around it, and have no rule
/// attributes except `name`. The creator must ensure that it can be built. If it cannot, a parse
/// that reaches it fails with a limit; everywhere else that is an error.
#[derive(Clone)]
pub struct Deferred(Arc<DeferredBody>);

/// The serial of the next body.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// The shared part of a [`Deferred`].
struct DeferredBody {
    /// Unique in the process.
    serial: u64,
    /// Whether the grammar derives the empty text.
    is_nullable: bool,
    /// Builds the grammar.
    make: Box<dyn Fn() -> Option<Grammar> + Send + Sync>,
    /// The grammar, once built; `None` if that failed.
    made: OnceLock<Option<Arc<Grammar>>>,
}

impl Deferred {
    /// A body that `make` builds, once unless it runs out of fuel.
    pub fn new(make: impl Fn() -> Option<Grammar> + Send + Sync + 'static) -> Deferred {
        Self::with_nullability(false, make)
    }

    /// As [`Deferred::new`], for a body that derives the empty text and others if `is_nullable`.
    pub fn with_nullability(
        is_nullable: bool,
        make: impl Fn() -> Option<Grammar> + Send + Sync + 'static,
    ) -> Deferred {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let (make, made) = (Box::new(make), OnceLock::new());
        Deferred(Arc::new(DeferredBody { serial, is_nullable, make, made }))
    }

    /// The grammar; built on first use. `None` if it cannot be built or violates the requirements.
    pub fn grammar(&self) -> Option<&Arc<Grammar>> {
        let made = || {
            let grammar = (self.0.make)()?;
            let plain = |rule: &super::Rule| {
                let attributes = &rule.attributes;
                (attributes.is_empty() || attributes.is_only_unique_key())
                    && !matches!(rule.body, Expr::Deferred(_))
            };
            (grammar.rules.iter().all(plain) && grammar.validate().is_ok())
                .then(|| Arc::new(grammar))
        };
        if let Some(made) = self.0.made.get() {
            return made.as_ref();
        }
        let grammar = made();
        if grammar.is_none() && fuel::is_exhausted() {
            // Another request may have enough fuel.
            return None;
        }
        self.0.made.get_or_init(|| grammar).as_ref()
    }

    /// The grammar with the special tokens of the grammar around it. `None` also if that lacks one.
    pub(crate) fn grammar_within(&self, specials: &[SpecialToken]) -> Option<Arc<Grammar>> {
        let grammar = self.grammar()?;
        if specials.starts_with(&grammar.specials) {
            return Some(grammar.clone());
        }
        let position = |token| Some(SpecialId::new(specials.iter().position(|s| s == token)?));
        let ids: Vec<SpecialId> = grammar.specials.iter().map(position).collect::<Option<_>>()?;
        let mut out = Grammar { specials: specials.to_vec(), ..(**grammar).clone() };
        for rule in &mut out.rules {
            rule.body.remap(&|rule| rule, &|special| ids[special.index()]);
        }
        Some(Arc::new(out))
    }

    /// Whether the grammar derives the empty text.
    pub fn is_nullable(&self) -> bool {
        self.0.is_nullable
    }

    /// Equal for clones, and unique otherwise.
    pub(crate) fn serial(&self) -> u64 {
        self.0.serial
    }

    /// Whether it has been built.
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
    /// The grammar with all deferred bodies included. Cost: building them.
    pub fn with_deferred_bodies(&self) -> Result<Cow<'_, Grammar>, GrammarError> {
        if !self.rules.iter().any(|rule| matches!(rule.body, Expr::Deferred(_))) {
            return Ok(Cow::Borrowed(self));
        }
        let mut out = self.clone();
        for id in 0..self.rules.len() {
            let Expr::Deferred(deferred) = &self.rules[id].body else { continue };
            let Some(grammar) = deferred.grammar_within(&self.specials) else {
                let what = "the deferred body cannot be built";
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
