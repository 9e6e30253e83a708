//! Stage 5.
