//! Batched token masks for candle: masks applied to logits tensors on their own device.
//!
//! An engine fills a [`MaskBatch`]; [`apply_bitmask_`] applies it in place to the logits of all
//! sequences. On the CPU it works row by row, vectorised; on a CUDA device (feature `cuda`) with
//! one copy and one kernel launch per step. [`greedy()`] masks and selects tokens in one pass.
//! `docs/CANDLE.md` describes the integration into a host with batched logits.
//!
//! ```
//! use std::sync::Arc;
//!
//! use candle_core::{Device, Tensor};
//! use louver::engine::{Engine, EngineOptions};
//! use louver::front::json_schema::SchemaOptions;
//! use louver::vocab::Vocabulary;
//! use louver_candle::{MaskBatch, apply_bitmask_};
//!
//! let vocab = Arc::new(Vocabulary::toy(&[b"true", b"null"]));
//! let engine = Engine::new(vocab.clone(), EngineOptions::default());
//! let schema = r#"{"const": true}"#;
//! let constraint = engine.compile_json_schema(schema, &SchemaOptions::default())?;
//! let mut matcher = constraint.matcher();
//! let mut masks = MaskBatch::for_vocabulary(&vocab);
//!
//! // Two sequences; the second one is unconstrained.
//! let logits = Tensor::zeros((2, vocab.width()), candle_core::DType::F32, &Device::Cpu)?;
//! masks.fill(&engine, [Some(&mut matcher), None])?;
//! apply_bitmask_(&logits, &masks, None)?;
//! let rows = logits.to_vec2::<f32>()?;
//! assert_eq!(rows[0].iter().filter(|x| x.is_finite()).count(), 2); // t, true
//! assert!(rows[1].iter().all(|x| x.is_finite()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod batch;
#[cfg(feature = "cuda")]
mod cuda;
mod error;
mod geometry;
mod greedy;
mod logit;
mod row;
pub mod scalar;
mod store;
mod table;
mod upload;

pub use apply::apply_bitmask_;
pub use batch::MaskBatch;
pub use error::{ApplyError, MaskError};
pub use greedy::{Pick, Picks, greedy};
pub use logit::Logit;
pub use row::{LogitCheck, greedy_row, mask_row, mask_row_checked};
pub use table::RowMask;
#[doc(hidden)]
pub use upload::HostCopy;

/// Compiles the programs of `docs/CANDLE.md` as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/CANDLE.md")]
struct Guide;
