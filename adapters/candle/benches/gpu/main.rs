//! CUDA benchmark, run by `just gpu`: the kernels alone, then a decode loop with and without
//! constraints.
//!
//! ```text
//! cargo bench -p louver-candle --features cuda --bench gpu -- [TOKENIZER.json]
//! ```
//!
//! The decode loop has the vocabulary of TOKENIZER.json, otherwise a small one.

mod decode;
mod kernels;
#[path = "../../examples/decode/llama.rs"]
#[allow(dead_code, reason = "the example uses the rest")]
mod llama;
#[path = "../../examples/decode/serving/mod.rs"]
#[allow(dead_code, reason = "the example uses the rest")]
mod serving;
#[path = "../../examples/decode/vocabulary.rs"]
mod vocabulary;

use std::time::Duration;

use candle_core::Device;
use louver_hf_tokenizers::VocabOptions;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The median and the 99th percentile, in microseconds.
fn median_and_p99(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let at = |place: usize| times[place].as_secs_f64() * 1e6;
    (at(times.len() / 2), at(times.len() * 99 / 100))
}

fn main() -> Outcome<()> {
    let device = Device::new_cuda(0)?;
    let context = device.as_cuda_device()?.cuda_stream().context().clone();
    println!("{}", context.name()?);
    kernels::floors(&device)?;
    kernels::overlap(&device)?;
    let vocab = match std::env::args().skip(1).find(|argument| argument != "--bench") {
        Some(path) => louver_hf_tokenizers::load(path, &VocabOptions::default())?.vocab,
        None => vocabulary::words()?,
    };
    decode::losses(&device, vocab)
}
