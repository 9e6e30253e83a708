//! The kernels alone: masks against moving the same bytes, one operation against two, and how much
//! of the upload overlaps with a forward pass.

use std::time::{Duration, Instant};

use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::sys::CUevent_flags;
use candle_core::{DType, Device, Tensor};
use half::bf16;
use louver_candle::{MaskBatch, apply_bitmask_, greedy};

use crate::{Outcome, median_and_p99};

const ROUNDS: usize = 101;
/// Rounds that are not counted.
const WARM_UP: usize = 5;
/// Launches per measurement, to amortise timing and synchronisation.
const REPEAT: u32 = 20;

/// What one operation takes, in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    /// On the device.
    device: f64,
    /// Of the thread that queues it.
    queue: f64,
}

/// Square weights whose product with themselves keeps the device busy for more than a millisecond.
fn forward_weights(device: &Device) -> Outcome<Tensor> {
    Ok(Tensor::rand(-1f32, 1.0, (8192, 8192), device)?.to_dtype(DType::BF16)?)
}

/// Two matrix products, in place of a forward pass.
fn forward(weights: &Tensor) -> Outcome<()> {
    for _ in 0..2 {
        drop(weights.matmul(weights)?);
    }
    Ok(())
}

/// Medians of the alternating operations. They are queued behind a forward pass, as in a decode
/// loop, so that the device does not wait for launches: the time between two events is its own.
fn compare<const N: usize>(
    device: &Device,
    weights: &Tensor,
    mut run: [&mut dyn FnMut() -> Outcome<()>; N],
) -> Outcome<[Cost; N]> {
    let stream = device.as_cuda_device()?.cuda_stream();
    let event = || stream.context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).w();
    let (begin, end) = (event()?, event()?);
    let mut times = [const { (Vec::new(), Vec::new()) }; N];
    for round in 0..ROUNDS + WARM_UP {
        for (run, (on_device, queued)) in run.iter_mut().zip(&mut times) {
            device.synchronize()?;
            forward(weights)?;
            begin.record(&stream).w()?;
            let queue = Instant::now();
            for _ in 0..REPEAT {
                run()?;
            }
            let queue = queue.elapsed();
            // Otherwise the device has waited for launches.
            let is_counted = round >= WARM_UP && !begin.is_complete();
            end.record(&stream).w()?;
            let seconds = begin.elapsed_ms(&end).w()? / 1e3;
            if is_counted {
                on_device.push(Duration::from_secs_f32(seconds) / REPEAT);
                queued.push(queue / REPEAT);
            }
        }
    }
    if times.iter().any(|(times, _)| times.len() < ROUNDS / 2) {
        return Err("launches take longer than the forward pass that hides them".into());
    }
    Ok(times.map(|(device, queue)| Cost {
        device: median_and_p99(device).0,
        queue: median_and_p99(queue).0,
    }))
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
    println!("[{rows}, {ids}] bf16, masks on the device; microseconds a batch (and to queue it)");
    let weights = forward_weights(device)?;
    let stream = device.as_cuda_device()?.cuda_stream();
    let logits = Tensor::rand(-1f32, 1.0, (rows, ids), device)?.to_dtype(DType::BF16)?;
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
        let costs = compare(
            device,
            &weights,
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
        let [copy, apply, choose, separate] =
            costs.map(|Cost { device, queue }| format!("{device:6.1} ({queue:4.1})"));
        println!(
            "{name:20} copy {copy}, masks {apply}, {:.2}x, greedy {choose}, masks and argmax \
             {separate}",
            costs[1].device / costs[0].device
        );
    }
    Ok(())
}

/// A forward pass (matrix products) with masks uploaded during it and after it.
pub(crate) fn overlap(device: &Device) -> Outcome<()> {
    let (rows, ids) = (256, 128_256);
    let mut masks = batch(rows, ids, noise)?;
    let weights = forward_weights(device)?;
    let logits = Tensor::rand(-1f32, 1.0, (rows, ids), device)?.to_dtype(DType::BF16)?;
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
            forward(&weights)?;
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
