//! (printing to come)
