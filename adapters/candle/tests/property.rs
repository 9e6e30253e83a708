//! `op(logits, mask)[i]` is `logits[i]`, bit for bit, where `i` is allowed, and minus infinity elsewhere.

use candle_core::Device;
use proptest::prelude::*;

use crate::case::{DTYPES, Place, Random, WIDTHS, check_dtype};

fn place() -> impl Strategy<Value = Place> {
    (0..5usize, 0..200usize, 0..9usize, 0..9usize, 0..3usize, 0..2usize).prop_map(
        |(rows, ids, left, right, above, below)| Place { rows, ids, left, right, above, below },
    )
}

proptest! {
    #[test]
    fn allowed_logits_keep_their_bits_and_others_are_masked(
        place in place(), width in 1..220usize, dtype in 0..3usize, seed in any::<u64>()
    ) {
        check_dtype(DTYPES[dtype], &mut Random(seed), place, width, &Device::Cpu);
    }
}

#[test]
fn all_widths_and_types() {
    let mut random = Random(7);
    for dtype in DTYPES {
        for ids in WIDTHS {
            let views = [
                Place::plain(3, ids),
                Place { left: 3, right: 2, above: 1, below: 1, ..Place::plain(3, ids) },
            ];
            for place in views {
                // Masks as wide as the logits, narrower, and wider.
                for width in [ids, (ids / 2).max(1), ids + 40] {
                    check_dtype(dtype, &mut random, place, width, &Device::Cpu);
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
        let place = Place { right: 8, ..Place::plain(40, 20_000) };
        check_dtype(dtype, &mut random, place, 20_000, &Device::Cpu);
    }
}
