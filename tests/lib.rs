//! The integration tests, in one binary: cases as data, the brute-force oracle, properties, and
//! checks of the source tree.

mod cases;
mod compat;
mod fuzz;
mod harness;
mod mistakes;
mod property;
mod scale;
mod schema;
mod simplify;
mod structural_tag;
mod sweep;
mod tidy;
mod traces;
