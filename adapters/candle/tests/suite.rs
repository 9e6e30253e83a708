//! The operations on tensors against their scalar twin: all element types, layouts, widths and subsets of rows.

mod case;
mod errors;
mod kernels;
mod property;

#[cfg(feature = "cuda")]
mod gpu;
