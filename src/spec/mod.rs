//! Stage 0.
