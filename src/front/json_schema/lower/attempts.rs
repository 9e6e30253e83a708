//! Repeated attempts to lower a schema: with more features, and with more relaxed.

use super::super::error::{SchemaError, SchemaErrors};
use super::super::options::{Policy, SchemaOptions};
use super::super::read::relaxations::Attempt;
use crate::fuel;

/// Why lowering ended without a rule.
pub(crate) enum LoweringError {
    /// The schema needs more features than are enabled, or less of it is enforced from now on.
    /// Lower it again, with this. The errors led to the relaxations.
    Restart(Attempt, Vec<SchemaError>),
    /// The schema cannot be enforced.
    Refused(SchemaErrors),
}

/// The largest number of attempts to lower a schema. After so many, nothing more is relaxed.
const MAX_ATTEMPTS: usize = 20;

/// What lowering returns: a result, and what was relaxed.
pub(crate) type WithErrors<T> = (T, Vec<SchemaError>);

/// Calls `lower` until the features that are enabled suffice for the schema and, under a policy
/// that relaxes, until no limit is reached. Such an attempt may use half of the fuel that is left,
/// so that there is some for the next one.
pub(crate) fn retry<T>(
    options: &SchemaOptions,
    mut lower: impl FnMut(Attempt) -> Result<WithErrors<T>, LoweringError>,
) -> Result<WithErrors<T>, SchemaErrors> {
    let (mut attempt, mut limits) = (Attempt::default(), Vec::<SchemaError>::new());
    let add = |limits: &mut Vec<SchemaError>, errors: Vec<SchemaError>| {
        for error in errors {
            if !limits.iter().any(|other| other.pointer == error.pointer) {
                limits.push(error);
            }
        }
    };
    for _ in 0..MAX_ATTEMPTS {
        let lowered = match options.policy {
            Policy::Strict => lower(attempt),
            Policy::Validate | Policy::BestEffort => fuel::with_half(|| lower(attempt)),
        };
        match lowered {
            Ok((out, relaxed)) => {
                add(&mut limits, relaxed);
                return Ok((out, limits));
            }
            Err(LoweringError::Restart(next, errors)) => {
                attempt = next;
                add(&mut limits, errors);
            }
            Err(LoweringError::Refused(errors)) => return Err(errors),
        }
    }
    Err(SchemaErrors(limits))
}
