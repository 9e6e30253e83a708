//! CPU benchmark: masks against filling the same rows with minus infinity (`slice::fill`). The
//! compared operations alternate on the same threads; the fastest round counts, to reduce the
//! effect of other processes. `cargo bench -p louver-candle --bench apply`

use std::hint::black_box;
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use louver_candle::{MaskBatch, apply_bitmask_, greedy, mask_row, scalar};
use rayon::prelude::*;

const ROWS: usize = 64;
const IDS: usize = 128_256;
const ROUNDS: usize = 200;

/// The fastest round of each of the alternating operations, in microseconds.
fn compare<const N: usize>(mut run: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..ROUNDS {
        for (run, best) in run.iter_mut().zip(&mut best) {
            let begin = Instant::now();
            run();
            *best = begin.elapsed().min(*best);
        }
    }
    best.map(|time| time.as_secs_f64() * 1e6)
}

/// A batch whose mask words are given by a function.
fn batch(word: impl Fn(usize, usize) -> u32) -> MaskBatch {
    let mut batch = MaskBatch::new(IDS);
    batch.resize(ROWS);
    for row in 0..ROWS {
        let words: Vec<u32> = (0..batch.row_words()).map(|at| word(row, at)).collect();
        batch.set(row, &words).expect("set");
    }
    batch
}

fn noise(row: usize, at: usize) -> u32 {
    let x = ((row * 4099 + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}

fn against_fill() {
    println!(
        "[{ROWS}, {IDS}] f32, microseconds a batch; fill: slice::fill of the same rows on as many \
         threads"
    );
    println!(
        "{:20} {:>9} {:>9} {:>6}   {:>9} {:>9} {:>6}",
        "", "1 thread", "", "", "threads", "", ""
    );
    println!(
        "{:20} {:>9} {:>9} {:>6}   {:>9} {:>9} {:>6}",
        "mask", "fill", "masks", "speed", "fill", "masks", "speed"
    );
    let half = IDS / 64;
    let kinds: [(&str, MaskBatch); 6] = [
        ("half, at random", batch(noise)),
        ("half, every other", batch(|_, _| 0x5555_5555)),
        ("half, in one piece", batch(move |_, at| if at < half { u32::MAX } else { 0 })),
        ("all but one", batch(|row, at| if at == 2000 { !(1 << (row % 32)) } else { u32::MAX })),
        ("one", batch(|row, at| if at == 2000 { 1 << (row % 32) } else { 0 })),
        ("none", batch(|_, _| 0)),
    ];
    let logits = Tensor::zeros((ROWS, IDS), DType::F32, &Device::Cpu).expect("logits");
    let mut rows = vec![0f32; ROWS * IDS];
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    for (name, masks) in &kinds {
        let mut turns = || {
            compare([
                &mut || {
                    rows.par_chunks_mut(IDS).for_each(|row| black_box(row).fill(f32::NEG_INFINITY))
                },
                &mut || apply_bitmask_(&logits, masks, None).expect("applied"),
            ])
        };
        let [fill, apply] = single.install(&mut turns);
        let [all_fill, all_apply] = turns();
        println!(
            "{name:20} {fill:9.1} {apply:9.1} {:6.2}   {all_fill:9.1} {all_apply:9.1} {:6.2}",
            fill / apply,
            all_fill / all_apply
        );
    }
}

/// Single rows on one thread, without a tensor.
fn single_rows() {
    println!("\n[{IDS}] f32, microseconds a row, one row again and again (in the cache)");
    let words = |word: fn(usize, usize) -> u32| {
        (0..IDS.div_ceil(32)).map(|at| word(0, at)).collect::<Vec<_>>()
    };
    let (banned, random) = (words(|_, at| if at == 2000 { !1 } else { u32::MAX }), words(noise));
    let mut row = vec![0f32; IDS];
    for (name, words) in [("all but one", &banned), ("half, at random", &random)] {
        let mut other = row.clone();
        let mut third = row.clone();
        let [fill, fast, slow] = compare([
            &mut || black_box(&mut other).fill(f32::NEG_INFINITY),
            &mut || mask_row(black_box(&mut row), words),
            &mut || scalar::mask_row(black_box(&mut third), words),
        ]);
        println!("{name:28} fill {fill:7.2}, mask_row {fast:7.2}, scalar reference {slow:7.2}");
    }
}

fn choices() {
    println!(
        "\n[{ROWS}, {IDS}], microseconds a batch, half at random: mask then argmax (candle), and \
         greedy in one pass"
    );
    let masks = batch(noise);
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        let logits = Tensor::rand(-4f32, 4.0, (ROWS, IDS), &Device::Cpu)
            .and_then(|t| t.to_dtype(dtype))
            .expect("logits");
        let [apply, both, fused] = compare([
            &mut || apply_bitmask_(&logits, &masks, None).expect("applied"),
            &mut || {
                apply_bitmask_(&logits, &masks, None).expect("applied");
                black_box(logits.argmax(1).expect("chosen"));
            },
            &mut || drop(black_box(greedy(&logits, &masks, None, &[1.0]).expect("chosen"))),
        ]);
        println!(
            "{:28} mask {apply:9.1}, mask and argmax {both:9.1}, greedy {fused:9.1}",
            format!("{dtype:?}")
        );
    }
}

fn main() {
    println!("{} threads", rayon::current_num_threads());
    against_fill();
    single_rows();
    choices();
}
