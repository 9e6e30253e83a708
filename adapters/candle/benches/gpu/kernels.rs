//! The kernels alone: masks against moving the same bytes, one operation against two, and how much
//! of the upload overlaps with a forward pass.

use std::time::Instant;

use candle_core::cuda_backend::WrapErr;
use candle_core::{DType, Device, Tensor};
use half::bf16;
use louver_candle::{MaskBatch, apply_bitmask_, greedy};

use crate::{Outcome, median_and_p99};

const ROUNDS: usize = 101;
/// Launches per measurement, to amortise timing and synchronisation.
const REPEAT: u32 = 20;

/// Medians of the alternating operations in microseconds per run; the device is idle before and
/// after each.
fn compare<const N: usize>(
    device: &Device,
    mut run: [&mut dyn FnMut() -> Outcome<()>; N],
) -> Outcome<[f64; N]> {
    let mut times = [const { Vec::new() }; N];
    for round in 0..ROUNDS + 5 {
        for (run, times) in run.iter_mut().zip(&mut times) {
            device.synchronize()?;
            let begin = Instant::now();
            for _ in 0..REPEAT {
                run()?;
            }
            device.synchronize()?;
            if round >= 5 {
                times.push(begin.elapsed() / REPEAT);
            }
        }
    }
    Ok(times.map(|times| median_and_p99(times).0))
}

fn noise(row: usize, at: usize) -> u32 {
    let x = ((row * 4099 + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}

fn batch(rows: usize, ids: usize, word: impl Fn(usize, usize) -> u32) -> Outcome<MaskBatch> {
    let mut batch = MaskBatch::new(ids);
    batch.resize(rows);
    for row in 0..rows {
        let words: Vec<u32> = (0..batch.row_words()).map(|at| word(row, at)).collect();
        batch.set(row, &words)?;
    }
    Ok(batch)
}

/// Compares with the lower bound of memory traffic: a device copy that reads and writes as many
/// bytes as the kernel must.
pub(crate) fn floors(device: &Device) -> Outcome<()> {
    let (rows, ids) = (256, 128_256);
    println!("[{rows}, {ids}] bf16, microseconds a batch, masks on the device");
    let stream = device.as_cuda_device()?.cuda_stream();
    let logits = Tensor::zeros((rows, ids), DType::BF16, device)?;
    let zeros = |n: usize| stream.alloc_zeros::<bf16>(n).w();
    let half = ids / 64;
    let kinds = [
        ("half, at random", batch(rows, ids, noise)?, 1.0),
        // Written, not read: half the traffic of a copy of that size.
        (
            "half, in one piece",
            batch(rows, ids, move |_, at| if at < half { u32::MAX } else { 0 })?,
            0.25,
        ),
        (
            "all but one",
            batch(rows, ids, |row, at| if at == 2000 { !(1 << (row % 32)) } else { u32::MAX })?,
            0.0,
        ),
    ];
    for (name, masks, copied) in &kinds {
        let elements = ((rows * ids) as f64 * copied) as usize + 1;
        let (from, mut to) = (zeros(elements)?, zeros(elements)?);
        let [floor, apply, choose, separate] = compare(
            device,
            [
                &mut || Ok(stream.memcpy_dtod(&from, &mut to).w()?),
                &mut || Ok(apply_bitmask_(&logits, masks, None)?),
                &mut || {
                    let _picks = greedy(&logits, masks, None, &[1.0])?;
                    Ok(())
                },
                &mut || {
                    apply_bitmask_(&logits, masks, None)?;
                    let _tokens = logits.argmax(1)?;
                    Ok(())
                },
            ],
        )?;
        println!(
            "{name:20} floor {floor:7.1}, masks {apply:7.1} ({:.2}x), greedy {choose:7.1}, masks \
             and argmax {separate:7.1}",
            apply / floor
        );
    }
    Ok(())
}

/// A forward pass (matrix products) with masks uploaded during it and after it.
pub(crate) fn overlap(device: &Device) -> Outcome<()> {
    let (rows, ids) = (256, 128_256);
    let mut masks = batch(rows, ids, noise)?;
    let weights = Tensor::rand(-1f32, 1.0, (8192, 8192), device)?.to_dtype(DType::BF16)?;
    let logits = Tensor::zeros((rows, ids), DType::BF16, device)?;
    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        for (way, times) in times.iter_mut().enumerate() {
            // Every mask changes.
            for row in 0..rows {
                let words: Vec<u32> =
                    (0..masks.row_words()).map(|at| noise(row + round + way, at)).collect();
                masks.set(row, &words)?;
            }
            device.synchronize()?;
            let begin = Instant::now();
            for _ in 0..2 {
                drop(weights.matmul(&weights)?);
            }
            match way {
                0 => {}
                1 => masks.upload(device)?,
                _ => {
                    device.synchronize()?;
                    masks.upload(device)?;
                }
            }
            if way > 0 {
                apply_bitmask_(&logits, &masks, None)?;
            }
            device.synchronize()?;
            times.push(begin.elapsed());
        }
    }
    let [alone, during, after] = times.map(|times| median_and_p99(times).0);
    println!(
        "\nforward pass and {rows} new masks, microseconds: forward alone {alone:.0}, masks sent \
         during it {during:.0}, after it {after:.0}"
    );
    Ok(())
}
