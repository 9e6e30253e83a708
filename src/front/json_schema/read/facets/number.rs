//! Constraints on numbers.

use std::cmp::Ordering;

use super::super::shared_facets::Unconstrained;
use super::lists::extend_hashed;
use crate::decimal::{Decimal, common_multiple};

/// One end of a numeric range. It is a lower bound if the numbers within it compare to it as
/// [`Ordering::Greater`], and an upper bound if they compare as [`Ordering::Less`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) value: Decimal,
    pub(crate) exclusive: bool,
}

impl Bound {
    /// Whether a number is within the bound.
    fn allows(&self, number: &Decimal, order: Ordering) -> bool {
        match number.cmp(&self.value) {
            Ordering::Equal => !self.exclusive,
            actual => actual == order,
        }
    }

    /// Whether fewer numbers are within this bound than within the other one.
    fn is_tighter_than(&self, other: &Bound, order: Ordering) -> bool {
        match self.value.cmp(&other.value) {
            Ordering::Equal => self.exclusive && !other.exclusive,
            actual => actual == order,
        }
    }
}

/// Constraints on numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NumberFacets {
    pub(crate) low: Option<Bound>,
    pub(crate) high: Option<Bound>,
    /// `multipleOf`: the number is a multiple of all of these.
    pub(crate) multiples: Vec<Decimal>,
    /// Numbers that are excluded.
    pub(crate) excluded: Vec<Decimal>,
    /// Multiples of these are excluded.
    pub(crate) not_multiples: Vec<Decimal>,
}

impl Unconstrained for NumberFacets {
    fn unconstrained<'f>() -> &'f Self {
        const UNCONSTRAINED: &NumberFacets = &NumberFacets {
            low: None,
            high: None,
            multiples: Vec::new(),
            excluded: Vec::new(),
            not_multiples: Vec::new(),
        };
        UNCONSTRAINED
    }
}

impl NumberFacets {
    /// Adds the constraints of other facets.
    pub(super) fn conjoin(&mut self, other: &NumberFacets) {
        other.bounds().for_each(|(bound, order)| self.add_bound(bound.clone(), order));
        other.multiples.iter().for_each(|unit| self.add_multiple(unit));
        extend_hashed(&mut self.excluded, &other.excluded);
        other.not_multiples.iter().for_each(|unit| self.exclude_multiples_of(unit));
    }

    /// Adds a divisor. It is merged with a known one into their least common multiple, if that is
    /// representable.
    pub(crate) fn add_multiple(&mut self, unit: &Decimal) {
        let both = self
            .multiples
            .iter()
            .enumerate()
            .find_map(|(i, known)| Some((i, common_multiple(known, unit)?)));
        match both {
            Some((i, both)) => self.multiples[i] = both,
            None if self.multiples.contains(unit) => {}
            None => self.multiples.push(unit.clone()),
        }
    }

    /// Excludes the multiples of a divisor, unless they are excluded already.
    pub(crate) fn exclude_multiples_of(&mut self, unit: &Decimal) {
        if !self.not_multiples.iter().any(|known| divides(known, unit)) {
            self.not_multiples.retain(|known| !divides(unit, known));
            self.not_multiples.push(unit.clone());
        }
    }

    /// The bounds, each with the order of the numbers within it.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (&Bound, Ordering)> {
        let ends = [(&self.low, Ordering::Greater), (&self.high, Ordering::Less)];
        ends.into_iter().filter_map(|(bound, order)| Some((bound.as_ref()?, order)))
    }

    /// Adds a bound.
    pub(crate) fn add_bound(&mut self, bound: Bound, order: Ordering) {
        if self.is_tightened_by(&bound, order) {
            let end = if order == Ordering::Greater { &mut self.low } else { &mut self.high };
            *end = Some(bound);
        }
    }

    /// Whether a bound is tighter than the present one.
    pub(crate) fn is_tightened_by(&self, bound: &Bound, order: Ordering) -> bool {
        let end = if order == Ordering::Greater { &self.low } else { &self.high };
        end.as_ref().is_none_or(|present| bound.is_tighter_than(present, order))
    }

    /// Whether every number satisfies these facets.
    pub(crate) fn allows_all(&self) -> bool {
        *self == NumberFacets::default()
    }

    /// Whether the sign of a number decides whether it is accepted.
    pub(crate) fn sign_decides(&self) -> bool {
        self.bounds().all(|(bound, _)| bound.value.is_zero())
            && self.excluded.iter().all(Decimal::is_zero)
            && self.multiples.is_empty()
            && self.not_multiples.is_empty()
    }

    /// Whether the bounds, or the multiples, leave no number.
    pub(super) fn is_contradictory(&self) -> bool {
        let apart = |(low, high): (&Bound, &Bound)| {
            low.value > high.value || (low.value == high.value && (low.exclusive || high.exclusive))
        };
        self.low.as_ref().zip(self.high.as_ref()).is_some_and(apart)
            || self
                .not_multiples
                .iter()
                .any(|not| self.multiples.iter().any(|unit| divides(not, unit)))
    }

    /// Whether a number lies within the bounds.
    pub(crate) fn is_within_bounds(&self, value: &Decimal) -> bool {
        self.bounds().all(|(bound, order)| bound.allows(value, order))
    }

    /// Whether a number certainly satisfies these facets.
    pub(crate) fn allow(&self, value: &Decimal) -> bool {
        self.is_within_bounds(value)
            && !self.excluded.contains(value)
            && self.multiples.iter().all(|unit| value.is_multiple_of(unit) == Some(true))
            && self.not_multiples.iter().all(|unit| value.is_multiple_of(unit) == Some(false))
    }
}

/// Whether every multiple of `other` is certainly a multiple of `unit`.
pub(crate) fn divides(unit: &Decimal, other: &Decimal) -> bool {
    other.is_multiple_of(unit) == Some(true)
}
