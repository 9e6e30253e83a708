//! Continuous batching with constraints, on candle: a decode loop to read and to copy from.
//!
//! ```text
//!  submit ──> waiting ──> running rows ────────────────────────────────┐
//!                              │                                       │
//!             ┌────────────────┴────────────────┐                      │
//!             │ one step                        │                      │
//!             │  plan    next chunk, draft      │   sequence, lookup   │
//!             │  ┌─────────────┬──────────────┐ │                      │
//!             │  │ forward     │ fill masks   │ │   model, masks       │
//!             │  │ all chunks  │ all rows     │ │   (at the same time) │
//!             │  └─────────────┴──────────────┘ │                      │
//!             │  draw    one kernel             │   draw               │
//!             │  accept  draft, forced tokens   │   sequence           │
//!             └────────────────┬────────────────┘                      │
//!                              ├──> not finished ──────────────────────┘
//!                              └──> Output
//! ```
//!
//! A row of the batch is a sequence. In each step it reads a *chunk*: a part of its prompt, or the
//! token drawn last and the forced tokens after it. A draft (prompt look-up) follows the last
//! token of a chunk. The rows of one forward pass have chunks of any lengths at any positions, so
//! prompts are read and tokens drawn in the same pass, and sequences come and go at any step.
//!
//! | to change | open |
//! |---|---|
//! | the model | [`model`]: the trait; `llama.rs` beside this folder implements it |
//! | which tokens a sequence takes | [`sequence`] |
//! | how masks get into the batch | [`masks`] |
//! | how tokens are drawn | [`draw`] |
//! | who runs when | [`scheduler`] |
//! | what is switched on | [`settings`] |

pub(crate) mod draw;
pub(crate) mod lookup;
pub(crate) mod masks;
pub(crate) mod model;
pub(crate) mod scheduler;
pub(crate) mod sequence;
pub(crate) mod settings;
