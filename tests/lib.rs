//! The one integration binary: cases as data, the brute-force oracle, properties, and the tidiness of the tree.

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
