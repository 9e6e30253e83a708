//! engine (docs to come)
pub mod compile;
pub mod engine;
pub mod front;
pub mod fsm;
pub mod ids;
pub mod ir;
pub mod limits;
pub mod mask;
pub mod matcher;
pub mod spec;
pub mod vocab;
