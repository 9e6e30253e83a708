//! The decode loop of `examples/decode`: its model against candle's, and the same tokens whatever
//! is switched on.

#[path = "../../examples/decode/llama.rs"]
#[allow(dead_code, reason = "the example uses the rest")]
mod llama;
#[path = "../../examples/decode/serving/mod.rs"]
#[allow(dead_code, reason = "the example uses the rest")]
mod serving;

mod draws;
mod model;
mod replay;
mod same_tokens;
mod workload;
