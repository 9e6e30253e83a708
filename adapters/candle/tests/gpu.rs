//! Kernel tests on a CUDA device. Without one they print a line and pass, unless
//! `LOUVER_GPU=required` (`just gpu`).

use candle_core::{DType, Device, Tensor};
use louver_candle::{MaskBatch, apply_bitmask_, greedy};
use louver_test_support::record_skipped;

use crate::case::{DTYPES, Random, ViewLayout, WIDTHS, check_dtype, masks};

fn device_if_present() -> Option<Device> {
    match Device::new_cuda(0) {
        Ok(device) => Some(device),
        Err(error) if std::env::var("LOUVER_GPU").is_ok_and(|v| v == "required") => {
            panic!("no CUDA device: {error}")
        }
        Err(_) => {
            record_skipped("there is no CUDA device here");
            None
        }
    }
}

/// Small enough for compute-sanitizer: all types, widths around a word and a vector, unaligned
/// views.
#[test]
fn gpu_small_if_present() {
    let Some(device) = device_if_present() else { return };
    let mut random = Random(21);
    for dtype in DTYPES {
        for ids in [1, 7, 31, 32, 33, 127, 1000, 4097] {
            for left in [0, 1, 3, 8] {
                for width in [ids, (ids / 2).max(1), ids + 40] {
                    let layout = ViewLayout {
                        left,
                        right: 8 - left,
                        above: 1,
                        below: 1,
                        ..ViewLayout::contiguous(3, ids)
                    };
                    check_dtype(dtype, &mut random, layout, width, &device);
                }
            }
        }
    }
}

#[test]
fn gpu_all_widths_if_present() {
    let Some(device) = device_if_present() else { return };
    let mut random = Random(22);
    for dtype in DTYPES {
        for ids in WIDTHS {
            for rows in [1, 5, 70] {
                check_dtype(dtype, &mut random, ViewLayout::contiguous(rows, ids), ids, &device);
                let layout = ViewLayout {
                    left: 5,
                    right: 2,
                    above: 1,
                    below: 0,
                    ..ViewLayout::contiguous(rows, ids)
                };
                check_dtype(dtype, &mut random, layout, ids.saturating_sub(100).max(1), &device);
            }
        }
    }
}

/// One batch over many steps with some changed rows each, uploaded early or not: the device copy is
/// never stale.
#[test]
fn gpu_steps_if_present() {
    let Some(device) = device_if_present() else { return };
    let mut random = Random(23);
    let (rows, ids) = (24, 5000);
    let mut batch = masks(&mut random, rows, ids);
    let zeros = Tensor::zeros((rows, ids), DType::F32, &Device::Cpu).expect("zeros");
    for step in 0..60 {
        for _ in 0..random.below(4) {
            let row = random.below(rows);
            let words: Vec<u32> = (0..batch.row_words()).map(|_| random.next()).collect();
            batch.set(row, &words).expect("set");
        }
        if step % 20 == 19 {
            batch = masks(&mut random, rows, ids);
        }
        if step % 2 == 0 {
            batch.upload(&device).expect("sent");
        }
        let (here, there) =
            (zeros.copy().expect("a copy"), zeros.to_device(&device).expect("a copy"));
        apply_bitmask_(&here, &batch, None).expect("applied");
        apply_bitmask_(&there, &batch, None).expect("applied");
        let read = |t: &Tensor| t.to_vec2::<f32>().expect("values");
        assert!(
            read(&here) == read(&there.to_device(&Device::Cpu).expect("a copy")),
            "step {step}"
        );
        let picks = |t: &Tensor| {
            greedy(t, &batch, None, &[1.0]).and_then(|p| Ok(p.read()?)).expect("chosen")
        };
        assert_eq!(picks(&here), picks(&there), "step {step}");
    }
}

/// A batch alternates between the CPU and the device.
#[test]
fn gpu_and_cpu_share_a_batch_if_present() {
    let Some(device) = device_if_present() else { return };
    let mut batch = MaskBatch::new(64);
    batch.resize(1);
    for word in [1, 2, 4] {
        batch.set(0, &[word, 0]).expect("set");
        for location in [&Device::Cpu, &device, &Device::Cpu] {
            let logits = Tensor::zeros(64, DType::BF16, location).expect("zeros");
            let pick = greedy(&logits, &batch, None, &[1.0])
                .and_then(|p| Ok(p.read()?))
                .expect("chosen")[0];
            assert_eq!(pick.token, Some(word.trailing_zeros()));
        }
    }
}
