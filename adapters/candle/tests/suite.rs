//! Tensor operations against the scalar reference: all element types, layouts, widths and subsets
//! of rows.

mod case;
mod errors;
mod kernels;
mod property;

#[cfg(feature = "cuda")]
mod gpu;
