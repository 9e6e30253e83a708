//! Wire formats end to end: cases are data (`../data`), every one runs through grammar, extractor and renderer.

mod harness;

mod answers;
mod choices;
mod constraint;
mod customs;
mod detection;
mod docs;
mod generation;
mod lenient;
mod matrix;
mod mutation;
mod o200k;
mod published_schemas;
mod real_calls;
mod rig;
mod special_tokens;
mod tags;
mod templates;
mod turns;
