//! Random batches and their expected results from the scalar reference.

use candle_core::{DType, Device, Tensor};
use half::{bf16, f16};
use louver_candle::{Logit, MaskBatch, RowMask, scalar};

/// A small random generator with a fixed seed, so that failures are reproducible.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 ^ (self.0 >> 15) as u32
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound.max(1)
    }
}

/// The position of a logits view within its tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViewLayout {
    pub rows: usize,
    pub ids: usize,
    /// Padding of the view: elements before and after each row, and rows before and after.
    pub left: usize,
    pub right: usize,
    pub above: usize,
    pub below: usize,
}

impl ViewLayout {
    pub(crate) fn contiguous(rows: usize, ids: usize) -> Self {
        Self { rows, ids, left: 0, right: 0, above: 0, below: 0 }
    }

    fn stride(&self) -> usize {
        self.left + self.ids + self.right
    }

    /// Number of elements of the whole tensor.
    pub(crate) fn elements(&self) -> usize {
        (self.above + self.rows + self.below) * self.stride()
    }

    pub(crate) fn row_range(&self, row: usize) -> std::ops::Range<usize> {
        let begin = (self.above + row) * self.stride() + self.left;
        begin..begin + self.ids
    }

    pub(crate) fn view(&self, whole_tensor: &Tensor) -> Tensor {
        let rows = whole_tensor.narrow(0, self.above, self.rows).expect("rows");
        rows.narrow(1, self.left, self.ids).expect("ids")
    }

    pub(crate) fn whole_tensor<T: Element>(&self, values: &[T], device: &Device) -> Tensor {
        let rows = self.above + self.rows + self.below;
        T::tensor(values, (rows, self.stride()), device)
    }
}

/// An element type of tensors.
pub(crate) trait Element: Logit {
    fn of(bits: u32) -> Self;
    fn bits(self) -> u32;
    fn tensor(values: &[Self], shape: (usize, usize), device: &Device) -> Tensor;
    fn values(tensor: &Tensor) -> Vec<Self>;
}

macro_rules! element {
    ($t:ty, |$bits:ident| $of:expr) => {
        impl Element for $t {
            fn of($bits: u32) -> Self {
                $of
            }
            fn bits(self) -> u32 {
                self.to_bits().into()
            }
            fn tensor(values: &[Self], shape: (usize, usize), device: &Device) -> Tensor {
                Tensor::from_slice(values, shape, device).expect("a tensor")
            }
            fn values(tensor: &Tensor) -> Vec<Self> {
                tensor
                    .to_device(&Device::Cpu)
                    .and_then(|t| t.flatten_all())
                    .and_then(|t| t.to_vec1())
                    .expect("values")
            }
        }
    };
}
// Every 13th value is infinite or NaN.
element!(f32, |bits| f32::from_bits(if bits.is_multiple_of(13) {
    bits | 0x7f80_0000
} else {
    bits
}));
element!(f16, |bits| f16::from_bits(
    (bits >> 8) as u16 | if bits.is_multiple_of(13) { 0x7c00 } else { 0 }
));
element!(bf16, |bits| bf16::from_bits(
    (bits >> 8) as u16 | if bits.is_multiple_of(13) { 0x7f80 } else { 0 }
));

/// Random logits; sometimes only four distinct values, so that many are equal.
pub(crate) fn logits<T: Element>(random: &mut Random, count: usize) -> Vec<T> {
    let few = [1, 2, 3, 4].map(|_| T::of(random.next()));
    let any = random.below(3) > 0;
    (0..count).map(|_| if any { T::of(random.next()) } else { few[random.below(4)] }).collect()
}

/// A random batch with free rows, shared masks, and masks of different kinds.
pub(crate) fn masks(random: &mut Random, rows: usize, width: usize) -> MaskBatch {
    let mut batch = MaskBatch::new(width);
    batch.resize(rows);
    let words = batch.row_words();
    for row in 0..rows {
        let kind = random.below(8);
        let mask: Vec<u32> = match kind {
            0 => continue,
            1 if row > 0 => {
                batch.share(row, row - 1).expect("shared");
                continue;
            }
            2 => vec![u32::MAX; words],
            3 => vec![0; words],
            4 => (0..words).map(|i| [0, u32::MAX, u32::MAX, 0xffff][(i / 20) % 4]).collect(),
            5 => (0..words).map(|i| if i == words / 3 { 1 << (row % 32) } else { 0 }).collect(),
            6 => (0..words)
                .map(|i| if i == words / 3 { !(1 << (row % 32)) } else { u32::MAX })
                .collect(),
            _ => (0..words).map(|_| random.next()).collect(),
        };
        batch.set(row, &mask).expect("set");
    }
    batch
}

/// The mask words of a row for the scalar reference; a free row allows all ids.
pub(crate) fn words(batch: &MaskBatch, row: usize, ids: usize) -> Vec<u32> {
    let ones = |ids: usize| {
        let mut words = vec![u32::MAX; ids / 32];
        words.extend((!ids.is_multiple_of(32)).then(|| (1 << (ids % 32)) - 1));
        words
    };
    match batch.row(row).expect("a row") {
        RowMask::Free => ones(ids),
        RowMask::All => ones(batch.width()),
        RowMask::Words(words) => words.to_vec(),
    }
}

/// The expected contents of the whole tensor after masking.
pub(crate) fn expected_logits<T: Element>(
    values: &[T],
    layout: ViewLayout,
    batch: &MaskBatch,
    rows: Option<&[u32]>,
) -> Vec<u32> {
    let mut values = values.to_vec();
    for row in 0..batch.len() {
        let target = rows.map_or(row, |rows| rows[row] as usize);
        scalar::mask_row(&mut values[layout.row_range(target)], &words(batch, row, layout.ids));
    }
    values.iter().map(|x| x.bits()).collect()
}

/// The expected selection per row: token and bits of the score.
pub(crate) fn expected_picks<T: Element>(
    values: &[T],
    layout: ViewLayout,
    batch: &MaskBatch,
    rows: Option<&[u32]>,
    temperatures: &[f32],
) -> Vec<(Option<u32>, u32)> {
    let one = |row: usize| {
        let target = rows.map_or(row, |rows| rows[row] as usize);
        let logits = &values[layout.row_range(target)];
        let id = scalar::greedy_row(logits, &words(batch, row, layout.ids));
        let temperature = temperatures[if temperatures.len() == 1 { 0 } else { row }];
        let score = id.map_or(f32::NEG_INFINITY, |id| logits[id].value() / temperature);
        (id.map(|id| id as u32), if score.is_nan() { f32::NAN.to_bits() } else { score.to_bits() })
    };
    (0..batch.len()).map(one).collect()
}

/// A random subset of the rows in random order.
pub(crate) fn subset(random: &mut Random, rows: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..rows as u32).collect();
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i + 1));
    }
    all.truncate(random.below(rows + 1));
    all
}

/// Compares both operations with the reference on one random batch.
pub(crate) fn check<T: Element>(
    random: &mut Random,
    layout: ViewLayout,
    width: usize,
    device: &Device,
) {
    let values: Vec<T> = logits(random, layout.elements());
    for named in [None, Some(subset(random, layout.rows))] {
        let rows = named.as_deref();
        let batch = masks(random, rows.map_or(layout.rows, <[u32]>::len), width);
        let whole_tensor = layout.whole_tensor(&values, device);
        let view = layout.view(&whole_tensor);
        let label = format!("{:?} {layout:?} width {width} rows {rows:?}", T::DTYPE);
        let temperatures: Vec<f32> = match random.below(2) {
            0 => vec![0.7],
            _ => (0..batch.len()).map(|row| 0.25 + row as f32).collect(),
        };
        if !temperatures.is_empty() {
            let picks = louver_candle::greedy(&view, &batch, rows, &temperatures).expect(&label);
            let picks = picks.read().expect(&label).into_iter().map(|pick| {
                (
                    pick.token,
                    if pick.score.is_nan() { f32::NAN.to_bits() } else { pick.score.to_bits() },
                )
            });
            let expected = expected_picks(&values, layout, &batch, rows, &temperatures);
            assert_eq!(picks.collect::<Vec<_>>(), expected, "{label}");
        }
        louver_candle::apply_bitmask_(&view, &batch, rows).expect(&label);
        let actual: Vec<u32> = T::values(&whole_tensor).iter().map(|x| x.bits()).collect();
        let expected = expected_logits(&values, layout, &batch, rows);
        let difference = actual.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(difference.is_none(), "{label}: element {difference:?}");
    }
}

/// As [`check`], for a dynamic element type.
pub(crate) fn check_dtype(
    dtype: DType,
    random: &mut Random,
    layout: ViewLayout,
    width: usize,
    device: &Device,
) {
    match dtype {
        DType::F32 => check::<f32>(random, layout, width, device),
        DType::F16 => check::<f16>(random, layout, width, device),
        DType::BF16 => check::<bf16>(random, layout, width, device),
        other => panic!("{other:?}"),
    }
}

pub(crate) const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Widths at typical boundaries, and those of real models.
pub(crate) const WIDTHS: [usize; 10] = [1, 31, 32, 33, 127, 1000, 4097, 128_256, 151_936, 200_064];
