//! Unsupported calls are rejected with a typed error, and nothing is written.

use candle_core::{DType, Device, Tensor};
use louver_candle::{ApplyError, MaskBatch, apply_bitmask_, greedy};

fn batch(rows: usize) -> MaskBatch {
    let mut batch = MaskBatch::new(4);
    batch.resize(rows);
    for row in 0..rows {
        batch.set(row, &[0b0101]).expect("set");
    }
    batch
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32, &Device::Cpu).expect("zeros")
}

fn rejection(logits: &Tensor, masks: &MaskBatch, rows: Option<&[u32]>) -> ApplyError {
    let error = apply_bitmask_(logits, masks, rows).expect_err("refused");
    let greedy_error = greedy(logits, masks, rows, &[1.0]).expect_err("refused");
    assert_eq!(error.to_string(), greedy_error.to_string());
    if logits.dtype() == DType::F32 {
        let values = logits.flatten_all().and_then(|t| t.to_vec1::<f32>()).expect("values");
        assert!(values.iter().all(|x| *x == 0.0), "{error}");
    }
    error
}

#[test]
fn shapes_are_checked() {
    assert!(
        matches!(rejection(&zeros(&[]), &batch(1), None), ApplyError::Rank { dims } if dims.is_empty())
    );
    assert!(
        matches!(rejection(&zeros(&[1, 2, 4]), &batch(1), None), ApplyError::Rank { dims } if dims == [1, 2, 4])
    );
    assert!(matches!(
        rejection(&zeros(&[2, 4]), &batch(3), None),
        ApplyError::Rows { masks: 3, rows: 2 }
    ));
    assert!(matches!(
        rejection(&zeros(&[4]), &batch(2), None),
        ApplyError::Rows { masks: 2, rows: 1 }
    ));
    assert!(matches!(
        rejection(&zeros(&[2, 4]), &batch(2), Some(&[0])),
        ApplyError::Rows { masks: 2, rows: 1 }
    ));
    assert!(matches!(
        rejection(&zeros(&[2, 4]), &batch(1), Some(&[2])),
        ApplyError::Row { row: 2, rows: 2 }
    ));
    assert!(matches!(
        rejection(&zeros(&[2, 4]), &batch(2), Some(&[1, 1])),
        ApplyError::Repeated { row: 1 }
    ));
}

#[test]
fn element_types_are_checked() {
    for dtype in [DType::F64, DType::U32, DType::U8, DType::I64] {
        let logits = Tensor::zeros((1, 4), dtype, &Device::Cpu).expect("zeros");
        assert!(
            matches!(rejection(&logits, &batch(1), None), ApplyError::DType(got) if got == dtype)
        );
    }
}

#[test]
fn layouts_are_checked() {
    let turned = zeros(&[4, 2]).t().expect("a view");
    assert!(matches!(rejection(&turned, &batch(2), None), ApplyError::Layout { .. }));
    let repeated = zeros(&[1, 4]).broadcast_as((2, 4)).expect("a view");
    assert!(matches!(rejection(&repeated, &batch(2), None), ApplyError::Layout { .. }));
    // A single row may have any stride, and a column is a set of one-id rows.
    apply_bitmask_(&zeros(&[3, 4]).narrow(0, 1, 1).expect("a view"), &batch(1), None)
        .expect("one row");
    apply_bitmask_(&zeros(&[2, 4]).narrow(1, 2, 1).expect("a view"), &batch(2), None)
        .expect("one id each");
}

#[test]
fn temperatures() {
    let logits = zeros(&[2, 4]);
    let error =
        |temperatures: &[f32]| greedy(&logits, &batch(2), None, temperatures).expect_err("refused");
    assert!(matches!(error(&[]), ApplyError::Temperatures { rows: 2, got: 0 }));
    assert!(matches!(error(&[1.0; 3]), ApplyError::Temperatures { rows: 2, got: 3 }));
    for wrong in [0.0, -1.0, f32::INFINITY] {
        assert!(matches!(error(&[1.0, wrong]), ApplyError::Temperature(got) if got == wrong));
    }
    assert!(matches!(error(&[f32::NAN]), ApplyError::Temperature(got) if got.is_nan()));
}

#[test]
fn empty_batches_are_no_error() {
    apply_bitmask_(&zeros(&[0, 4]), &batch(0), None).expect("no rows");
    apply_bitmask_(&zeros(&[2, 0]), &batch(2), None).expect("no ids");
    apply_bitmask_(&zeros(&[2, 4]), &batch(0), Some(&[])).expect("no rows named");
    assert!(
        greedy(&zeros(&[0, 4]), &batch(0), None, &[1.0])
            .and_then(|p| Ok(p.read()?))
            .expect("no rows")
            .is_empty()
    );
    let picks = greedy(&zeros(&[2, 0]), &batch(2), None, &[1.0])
        .and_then(|p| Ok(p.read()?))
        .expect("no ids");
    assert!(picks.iter().all(|pick| pick.token.is_none()));
}
