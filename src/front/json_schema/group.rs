//! Groups of facets, most of which say nothing: those cost nothing, and copies share the others.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// What can say nothing.
pub(super) trait Free: Clone + Default {
    /// What says nothing.
    fn free<'f>() -> &'f Self
    where
        Self: 'f;
}

/// Facets of one type; changed where they are shared, they are copied.
#[derive(Clone)]
pub(super) struct Group<T>(Option<Rc<T>>);

impl<T> Group<T> {
    /// Says nothing.
    pub(super) const FREE: Group<T> = Group(None);

    /// Whether nothing has been said.
    pub(super) fn is_unsaid(&self) -> bool {
        self.0.is_none()
    }

    /// Whether both are one.
    pub(super) fn is_same(&self, other: &Group<T>) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl<T: Free> Group<T> {
    /// What this group says and what another one does; `both` adds what another one says.
    pub(super) fn join(&mut self, other: &Group<T>, both: impl FnOnce(&mut T, &T)) {
        if self.is_unsaid() {
            *self = other.clone();
        } else if !other.is_unsaid() && !self.is_same(other) {
            both(self, other);
        }
    }
}

impl<T: Free> Deref for Group<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(said) => said,
            None => T::free(),
        }
    }
}

impl<T: Free> DerefMut for Group<T> {
    fn deref_mut(&mut self) -> &mut T {
        Rc::make_mut(self.0.get_or_insert_default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
