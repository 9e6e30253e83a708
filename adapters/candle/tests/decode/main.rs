//! The decode loop of `examples/decode`: its model against candle's, and the same tokens whatever
//! is switched on. On the CPU, or on a CUDA device if there is one and the feature `cuda` is on.

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

use candle_core::Device;

/// Where the tests run. `LOUVER_GPU=required` (`just gpu`) refuses the CPU.
fn device() -> Device {
    let device = Device::cuda_if_available(0).expect("a device");
    let required = std::env::var("LOUVER_GPU").is_ok_and(|value| value == "required");
    assert!(device.is_cuda() || !required, "no CUDA device");
    device
}
