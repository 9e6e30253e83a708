//! The Python package `louver`: the engine, wire formats and tokenizers of Louver as a module of
//! Python. The package around it (`python/louver`) adds exceptions, helpers and the adapters of
//! transformers and vLLM; docs/PYTHON.md describes all of it.
//!
//! Compilation and masks run without Python's global lock, where a panic of the engine becomes
//! `InternalError`. Errors are exceptions of `louver.errors`, or `TypeError` and `ValueError` for
//! wrong arguments.

mod arguments;
mod constraint;
mod engine;
mod errors;
mod formats;
mod mask_buffer;
mod options;
mod tool_request;
mod vocabulary;

use pyo3::prelude::*;

/// The compiled part of the package `louver`.
#[pymodule]
mod _louver {
    use super::*;

    #[pymodule_export]
    use constraint::Matcher;
    #[pymodule_export]
    use constraint::{Constraint, Extractor};
    #[pymodule_export]
    use engine::{Engine, RowStatus};
    #[pymodule_export]
    use formats::{detect, families, read};
    #[pymodule_export]
    use vocabulary::Vocabulary;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
