use std::sync::Arc;

use louver::engine::{Constraint, EngineOptions};
use louver::front::json_schema::SchemaOptions;
use louver::ids::TokenId;

use super::*;

fn engine() -> Engine {
    Engine::new(Arc::new(Vocabulary::toy(&[b"true", b"null", b"false"])), EngineOptions::default())
}

fn schema(engine: &Engine, schema: &str) -> Constraint {
    engine.compile_json_schema(schema, &SchemaOptions::default()).expect("a schema")
}

/// The mask of a single matcher.
fn single_mask(matcher: &mut Matcher) -> Vec<u32> {
    let mut mask = vec![0; matcher.vocab().mask_words()];
    matcher.fill_mask(&mut mask);
    mask
}

fn words(batch: &MaskBatch, row: usize) -> &[u32] {
    match batch.row(row) {
        Some(RowMask::Words(words)) => words,
        other => panic!("row {row} is {other:?}"),
    }
}

#[test]
fn equal_rows_share_a_mask_and_match_their_matchers() {
    let engine = engine();
    let (yes, any) =
        (schema(&engine, r#"{"const": true}"#), schema(&engine, r#"{"type": "boolean"}"#));
    let mut matchers = [yes.matcher(), any.matcher(), yes.matcher(), yes.matcher()];
    let mut batch = MaskBatch::for_vocabulary(engine.vocab());
    batch.fill(&engine, &mut matchers).expect("filled");
    assert_eq!((batch.len(), batch.masks()), (4, 2));
    for (row, matcher) in matchers.iter_mut().enumerate() {
        assert_eq!(words(&batch, row), single_mask(matcher), "{row}");
    }
}

#[test]
fn refill_changes_the_given_rows_only() {
    let engine = engine();
    let any = schema(&engine, r#"{"type": "boolean"}"#);
    let mut matchers: Vec<Matcher> = (0..4).map(|_| any.matcher()).collect();
    let mut batch = MaskBatch::for_vocabulary(engine.vocab());
    batch.fill(&engine, &mut matchers).expect("filled");
    for step in 0..3 {
        let row = step % 2 + 1;
        let id = [b't', b'f', b'r'][step];
        matchers[row].advance(TokenId::from_raw(u32::from(id))).expect("allowed");
        batch.refill(&engine, &[row], [&mut matchers[row]]).expect("refilled");
        for (row, matcher) in matchers.iter_mut().enumerate() {
            assert_eq!(words(&batch, row), single_mask(matcher), "{step} {row}");
        }
    }
    // Masks of rows 0 and 3, of row 1, and of row 2; the old mask of row 1 was overwritten.
    assert_eq!(batch.masks(), 3);
    batch.refill(&engine, &[0, 3], [None, None]).expect("refilled");
    assert_eq!((batch.row(0), batch.row(3)), (Some(RowMask::Free), Some(RowMask::Free)));
    assert_eq!(words(&batch, 1), single_mask(&mut matchers[1]));
}

#[test]
fn versions_track_changed_masks() {
    let mut batch = MaskBatch::new(64);
    batch.resize(3);
    batch.set(0, &[1, 0]).expect("set");
    batch.set(1, &[2, 0]).expect("set");
    let before = batch.table.mask_versions().to_vec();
    batch.share(2, 1).expect("shared");
    assert_eq!(batch.table.mask_versions(), before);
    batch.set(1, &[3, 0]).expect("set");
    assert_eq!((words(&batch, 1), words(&batch, 2)), (&[3, 0][..], &[2, 0][..]));
    assert_eq!((batch.table.mask_versions()[..2].to_vec(), batch.masks()), (before, 3));
    batch.set(2, &[4, 0]).expect("set");
    assert_eq!(batch.masks(), 3);
}

#[test]
fn manual_masks_are_truncated_at_the_width() {
    let mut batch = MaskBatch::new(40);
    batch.resize(2);
    batch.set(0, &[u32::MAX, u32::MAX]).expect("set");
    batch.set(1, &[u32::MAX, 0xffff_ff7f]).expect("set");
    assert_eq!(batch.row(0), Some(RowMask::All));
    assert_eq!(words(&batch, 1), [u32::MAX, 0x7f]);
    assert_eq!(batch.row(2), None);
}

#[test]
fn errors_are_typed_and_change_nothing() {
    let engine = engine();
    let any = schema(&engine, r#"{"type": "boolean"}"#);
    let mut matcher = any.matcher();
    let mut narrow = MaskBatch::new(7);
    let width = engine.vocab().width();
    assert_eq!(
        narrow.fill(&engine, [&mut matcher]),
        Err(MaskError::Width { engine: width, batch: 7 })
    );
    let mut batch = MaskBatch::for_vocabulary(engine.vocab());
    batch.fill(&engine, [&mut matcher]).expect("filled");
    let before = words(&batch, 0).to_vec();
    assert_eq!(
        batch.refill(&engine, &[1], [&mut matcher]),
        Err(MaskError::Row { row: 1, rows: 1 })
    );
    assert_eq!(batch.refill(&engine, &[0, 0], [None, None]), Err(MaskError::Repeated { row: 0 }));
    assert_eq!(
        batch.refill(&engine, &[0], [None, None]),
        Err(MaskError::Matchers { rows: 1, matchers: 2 })
    );
    assert_eq!(batch.set(0, &[1]), Err(MaskError::Words { words: width.div_ceil(32), got: 1 }));
    assert_eq!(batch.set(3, &[1]), Err(MaskError::Row { row: 3, rows: 1 }));
    assert_eq!(batch.share(0, 3), Err(MaskError::Row { row: 3, rows: 1 }));
    assert_eq!(batch.set_free(3), Err(MaskError::Row { row: 3, rows: 1 }));
    assert_eq!(words(&batch, 0), before);
}

/// Random fills, refills and settings by hand, with stores of several sizes: rows have their masks,
/// and what a device is sent makes it equal.
#[test]
fn kept_masks_change_no_row() {
    let engine = engine();
    let schemas = [r#"{"type": "boolean"}"#, r#"{"enum": [true, null]}"#, "true"];
    let schemas = schemas.map(|text| schema(&engine, text));
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (state >> 33) as usize % below
    };
    let mut sent = Vec::new();
    for masks in [0, 1, 3, 40] {
        let mut batch = MaskBatch::for_vocabulary(engine.vocab());
        batch.keep_masks(masks * batch.row_words() * 4);
        let mut copy = crate::upload::HostCopy::new(16);
        let mut matchers: Vec<Option<Matcher>> = Vec::new();
        sent.push(0);
        for _ in 0..200 {
            let rows = random(7);
            matchers.resize_with(rows, || (random(4) > 0).then(|| schemas[random(3)].matcher()));
            for matcher in matchers.iter_mut().flatten() {
                let mut mask = single_mask(matcher);
                mask.iter_mut().enumerate().for_each(|(i, word)| *word &= u32::MAX >> (i % 2));
                let allowed = (0..256).find(|id| mask[id / 32] & (1 << (id % 32)) != 0);
                match allowed {
                    Some(id) => matcher.advance(TokenId::from_raw(id as u32)).expect("allowed"),
                    None => *matcher = schemas[random(3)].matcher(),
                }
            }
            if random(2) == 0 || batch.len() != rows {
                batch.fill(&engine, matchers.iter_mut().map(Option::as_mut)).expect("filled");
            } else {
                let rows: Vec<usize> = (0..rows).collect();
                let matchers = matchers.iter_mut().map(Option::as_mut);
                batch.refill(&engine, &rows, matchers).expect("refilled");
            }
            for (row, matcher) in matchers.iter_mut().enumerate() {
                match (matcher, batch.row(row).expect("a row")) {
                    (None, mask) => assert_eq!(mask, RowMask::Free),
                    (Some(matcher), RowMask::Words(mask)) => assert_eq!(mask, single_mask(matcher)),
                    (Some(_), mask) => assert_eq!(mask, RowMask::All),
                }
            }
            let ranges = copy.update(&batch);
            assert!(copy.equals(&batch));
            *sent.last_mut().expect("a size") += ranges.into_iter().map(|r| r.len()).sum::<usize>();
        }
    }
    assert!(sent[3] * 2 < sent[0], "{sent:?}");
}
