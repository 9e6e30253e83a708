//! Copy-on-write facets of one type. Unconstrained facets take no memory, copies share the rest.
//!
//! Alternatives are cloned for every product of normalization, and most constrain one or two types
//! only. So the facets of each type are a shared pointer, which is null while nothing is
//! constrained.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Facets with an unconstrained value.
pub(crate) trait Unconstrained: Clone + Default {
    /// Facets that every value satisfies.
    fn unconstrained<'f>() -> &'f Self
    where
        Self: 'f;
}

/// Facets of one type. Mutable access copies facets that are shared.
#[derive(Clone)]
pub(crate) struct SharedFacets<T>(Option<Rc<T>>);

impl<T> SharedFacets<T> {
    /// No constraint.
    pub(super) const UNCONSTRAINED: SharedFacets<T> = SharedFacets(None);

    /// These constraints.
    pub(super) fn new(facets: T) -> SharedFacets<T> {
        SharedFacets(Some(Rc::new(facets)))
    }

    /// Whether no constraint has been added.
    pub(super) fn is_unconstrained(&self) -> bool {
        self.0.is_none()
    }

    /// Whether both share one allocation, or neither has a constraint. Cost: constant.
    pub(crate) fn is_shared_with(&self, other: &SharedFacets<T>) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl<T: Unconstrained> SharedFacets<T> {
    /// Conjoins with other facets; `conjoin` is called only if both have constraints.
    pub(super) fn conjoin_with(
        &mut self,
        other: &SharedFacets<T>,
        conjoin: impl FnOnce(&mut T, &T),
    ) {
        if self.is_unconstrained() {
            *self = other.clone();
        } else if !other.is_unconstrained() && !self.is_shared_with(other) {
            conjoin(self, other);
        }
    }
}

impl<T: Unconstrained> Deref for SharedFacets<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(facets) => facets,
            None => T::unconstrained(),
        }
    }
}

impl<T: Unconstrained> DerefMut for SharedFacets<T> {
    fn deref_mut(&mut self) -> &mut T {
        Rc::make_mut(self.0.get_or_insert_default())
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedFacets<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
