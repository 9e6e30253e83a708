//! Property tests: `op(logits, mask)[i]` is bitwise equal to `logits[i]` if `i` is allowed, and
//! minus infinity otherwise.

use candle_core::Device;
use proptest::prelude::*;

use crate::case::{DTYPES, Random, ViewLayout, WIDTHS, check_dtype};

fn layout() -> impl Strategy<Value = ViewLayout> {
    (0..5usize, 0..200usize, 0..9usize, 0..9usize, 0..3usize, 0..2usize).prop_map(
        |(rows, ids, left, right, above, below)| ViewLayout {
            rows,
            ids,
            left,
            right,
            above,
            below,
        },
    )
}

proptest! {
    #[test]
    fn allowed_logits_keep_their_bits_and_others_are_masked(
        layout in layout(),
        width in 1..220usize,
        dtype in 0..3usize,
        seed in any::<u64>(),
    ) {
        check_dtype(DTYPES[dtype], &mut Random(seed), layout, width, &Device::Cpu);
    }
}

#[test]
fn all_widths_and_types() {
    let mut random = Random(7);
    for dtype in DTYPES {
        for ids in WIDTHS {
            let views = [
                ViewLayout::contiguous(3, ids),
                ViewLayout {
                    left: 3,
                    right: 2,
                    above: 1,
                    below: 1,
                    ..ViewLayout::contiguous(3, ids)
                },
            ];
            for layout in views {
                // Masks as wide as the logits, narrower and wider.
                for width in [ids, (ids / 2).max(1), ids + 40] {
                    check_dtype(dtype, &mut random, layout, width, &Device::Cpu);
                }
            }
        }
    }
}

/// Large enough for several threads.
#[test]
fn large_batches() {
    let mut random = Random(8);
    for dtype in DTYPES {
        let layout = ViewLayout { right: 8, ..ViewLayout::contiguous(40, 20_000) };
        check_dtype(dtype, &mut random, layout, 20_000, &Device::Cpu);
    }
}
