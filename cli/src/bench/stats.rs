//! Statistics of measurements.

use std::time::Duration;

/// In nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The quantile of ascending values at `share` (0 to 1), by nearest rank; 0 if there are none.
pub(super) fn quantile_of_sorted(values: &[u64], share: f64) -> u64 {
    let rank = (share.clamp(0.0, 1.0) * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(0)
}

/// As [`quantile_of_sorted`], of values in any order. Sorts them.
#[cfg(feature = "host")]
pub(super) fn quantile(values: &mut [u64], share: f64) -> u64 {
    values.sort_unstable();
    quantile_of_sorted(values, share)
}

/// The least, the median and the greatest value; `None` if there are none.
pub(super) fn spread(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    Some([*values.first()?, values[values.len() / 2], *values.last()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let values: Vec<u64> = (1..=100).collect();
        for (share, want) in [(0.0, 1), (0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100)] {
            assert_eq!(quantile_of_sorted(&values, share), want);
        }
        let values: Vec<u64> = (1..=1000).collect();
        assert_eq!(quantile_of_sorted(&values, 0.999), 999);
        assert_eq!((quantile_of_sorted(&[], 0.5), quantile_of_sorted(&[7], 0.0)), (0, 7));
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), Some([1.0, 2.0, 3.0]));
        assert_eq!(spread(Vec::new()), None);
    }
}
