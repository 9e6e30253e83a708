//! Why a template does not tell its wire format.

/// Why a template does not tell its wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// It refuses the turns.
    #[error("the chat template does not write calls: {0}")]
    NoCalls(String),
    /// A part of the description cannot be told.
    #[error("the chat template does not tell {part}: {problem}")]
    Undetermined {
        /// The part.
        part: &'static str,
        /// Why.
        problem: String,
    },
}

/// An error about one part.
pub(super) fn undetermined(part: &'static str, problem: impl Into<String>) -> ProbeError {
    ProbeError::Undetermined { part, problem: problem.into() }
}
