//! In-place edits of a row of logits. The result always has a finite allowed logit and no NaN among
//! the allowed logits.

use louver_candle::{LogitCheck, mask_row_checked, scalar};

/// A large logit that stays finite when scaled.
pub(crate) const LARGE: f32 = 1e30;

/// Sets the logits of ids whose bit is 0, and of ids beyond the mask, to `-inf`. Cost: one pass
/// over the row. Irregular logits are replaced by finite ones.
pub(crate) fn mask(row: &mut [f32], mask: &[u32]) -> LogitCheck {
    let check = mask_row_checked(row, mask);
    if check == LogitCheck::Irregular {
        let covered = row.len().min(mask.len() * 32);
        repair_irregular(&mut row[..covered], mask);
    }
    check
}

/// Replaces irregular logits of a row without a mask.
pub(crate) fn repair(row: &mut [f32]) {
    let all = vec![u32::MAX; row.len().div_ceil(32)];
    repair_irregular(row, &all);
}

/// Replaces irregular allowed logits: NaN by `-inf`, `+inf` by a large value. If none remains
/// finite, all allowed logits become equal.
fn repair_irregular(row: &mut [f32], mask: &[u32]) {
    let is_allowed = |id: usize| scalar::allows(mask, id);
    let mut has_finite = false;
    for (id, x) in row.iter_mut().enumerate() {
        if is_allowed(id) {
            *x = if x.is_nan() { f32::NEG_INFINITY } else { x.min(LARGE) };
            has_finite |= x.is_finite();
        }
    }
    if !has_finite {
        for (_, x) in row.iter_mut().enumerate().filter(|(id, _)| is_allowed(*id)) {
            *x = 0.0;
        }
    }
}

/// Allows only these ids, with equal logits; the first id of the row if none lies within it.
pub(crate) fn allow_only(row: &mut [f32], ids: &[u32]) {
    row.fill(f32::NEG_INFINITY);
    let mut has_id = false;
    for id in ids {
        if let Some(x) = row.get_mut(*id as usize) {
            *x = 0.0;
            has_id = true;
        }
    }
    if let (false, Some(x)) = (has_id, row.first_mut()) {
        *x = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f32 = f32::INFINITY;

    #[test]
    fn masks_every_width() {
        for width in [1, 31, 32, 33, 64, 100] {
            for words in [1, 2, 4] {
                let bits: Vec<u32> = (0..words).map(|w| [0xdead_beef, u32::MAX, 0, 1][w]).collect();
                let mut row: Vec<f32> = (0..width).map(|i| i as f32).collect();
                assert_eq!(mask(&mut row, &bits), LogitCheck::Finite);
                for (id, x) in row.iter().enumerate() {
                    let allowed = bits.get(id / 32).is_some_and(|w| (w >> (id % 32)) & 1 == 1);
                    assert_eq!(*x, if allowed { id as f32 } else { -INF }, "{width} {words} {id}");
                }
            }
        }
    }

    #[test]
    fn nothing_allowed_in_a_narrow_row() {
        let mut row = vec![1.0; 8];
        assert_eq!(mask(&mut row, &[0x100]), LogitCheck::NoneAllowed);
        assert_eq!(row, [-INF; 8]);
        allow_only(&mut row, &[100, 3]);
        assert_eq!(row[3], 0.0);
        allow_only(&mut row, &[100]);
        assert_eq!(row[0], 0.0);
        allow_only(&mut [], &[1]);
    }

    #[test]
    fn irregular_logits_become_finite() {
        let mut row = vec![f32::NAN, INF, -INF, 2.0];
        assert_eq!(mask(&mut row, &[0b1111]), LogitCheck::Irregular);
        assert_eq!(row, [-INF, LARGE, -INF, 2.0]);
        let mut row = vec![f32::NAN; 40];
        assert_eq!(mask(&mut row, &[u32::MAX, 1]), LogitCheck::Irregular);
        assert!(row[..33].iter().all(|x| *x == 0.0) && row[33..].iter().all(|x| *x == -INF));
        let mut row = vec![f32::NAN, 1.0];
        assert_eq!(mask(&mut row, &[0b10]), LogitCheck::Finite);
        assert_eq!(row, [-INF, 1.0]);
    }
}
