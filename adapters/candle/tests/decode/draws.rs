//! Draws on the device, and look-ups.

use std::collections::BTreeSet;

use candle_core::Tensor;
use louver_candle::MaskBatch;

use crate::device;
use crate::serving::draw::{DrawRow, Sampling, draw, mix, top_k};
use crate::serving::lookup::look_up;

fn numbers(count: usize, distinct: u64) -> Vec<f32> {
    (0..count as u64).map(|i| (mix(i) % distinct) as f32 / 16.0 - 9.0).collect()
}

/// Narrow and wide rows, few and many equal values: the values of a sort, each at its position, the
/// first one at the lowest position on the CPU. The blocks of 9,000 numbers need no padding.
#[test]
fn the_largest_of_wide_rows_are_found() {
    for (n, distinct) in
        [(5, 3), (1024, 50), (1025, 9), (9_000, 1 << 40), (9_001, 100), (151_936, 7)]
    {
        let rows = numbers(2 * n, distinct);
        let values = Tensor::new(&rows[..], &device()).unwrap().reshape((2, n)).unwrap();
        for k in [1, 256] {
            let (found, ids) = top_k(&values, k).expect("candle's operations");
            let (found, ids) = (found.to_vec2::<f32>().unwrap(), ids.to_vec2::<u32>().unwrap());
            for (row, (found, ids)) in rows.chunks(n).zip(found.iter().zip(&ids)) {
                let mut sorted = row.to_vec();
                sorted.sort_by(|a, b| b.total_cmp(a));
                assert_eq!(found[..], sorted[..k.min(n)]);
                assert!(ids.iter().zip(found).all(|(&id, &value)| row[id as usize] == value));
                let lowest = row.iter().position(|&value| value == sorted[0]);
                assert!(device().is_cuda() || Some(ids[0] as usize) == lowest);
                assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
            }
        }
    }
}

/// Frequencies of 20,000 draws are those of a softmax over the allowed three of the four largest;
/// greedy rows beside them take the largest, and rows that allow nothing draw nothing.
#[test]
fn draws_have_the_distribution_of_the_softmax() {
    let row = [0.5f32, 2.0, -1.0, 1.5, 0.0, 9.0];
    let sampling = Sampling { temperature: 0.7, top_k: 3, seed: 11 };
    let (count, temperature) = (20_000, f64::from(sampling.temperature));
    let mut masks = MaskBatch::new(6);
    masks.resize(count + 2);
    masks.set(0, &[0b01_1111]).expect("a mask");
    (1..=count).for_each(|row| masks.share(row, 0).expect("rows"));
    masks.set(count + 1, &[0]).expect("a mask");
    let drawn = |position| DrawRow { sampling, position };
    let mut rows: Vec<DrawRow> = (0..count).map(drawn).collect();
    rows.extend([DrawRow { sampling: Sampling::GREEDY, position: 0 }; 2]);
    let logits = Tensor::new(row.repeat(count + 2), &device()).unwrap();
    let tokens = draw(&logits.reshape((count + 2, 6)).unwrap(), &masks, &rows).expect("draws");

    assert_eq!(tokens[count..], [Some(1), None]);
    let weight = |id: usize| (f64::from(row[id]) / temperature).exp();
    let total: f64 = [0, 1, 3].map(weight).iter().sum();
    for id in 0..6 {
        let share = tokens[..count].iter().filter(|t| **t == Some(id as u32)).count();
        let expected = if [0, 1, 3].contains(&id) { weight(id) / total } else { 0.0 };
        assert!((share as f64 / count as f64 - expected).abs() < 0.015, "{id}: {share}");
    }
}

#[test]
fn look_ups_prefer_long_runs_and_late_ones() {
    assert!(look_up(&[], 4).is_empty());
    assert!(look_up(&[1, 2, 3], 4).is_empty());
    // The latest 7 is followed by 3, the latest `5 6 7` by 1.
    assert_eq!(look_up(&[5, 6, 7, 1, 2, 7, 3, 5, 6, 7], 4), [1, 2, 7, 3]);
    assert_eq!(look_up(&[5, 6, 7, 1, 2, 7, 3, 4, 7], 2), [3, 4]);
    assert_eq!(look_up(&[4, 4, 4], 8), [4]);
    assert!(look_up(&[1, 2, 1], 0).is_empty());
}
