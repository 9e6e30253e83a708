//! Element types of logits.

use candle_core::DType;
use half::{bf16, f16};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

/// An element type of logits: `f32`, `f16` or `bf16`.
pub trait Logit: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The value of a masked logit: minus infinity.
    const MASKED: Self;
    /// The candle type.
    const DTYPE: DType;
    /// An integer that orders logits: larger for larger values, equal for both zeros. NaN ranks
    /// below minus infinity, and no logit has [`i32::MIN`].
    fn order(self) -> i32;
    /// The exact value.
    fn value(self) -> f32;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

/// Converts a float's sign and magnitude, in the upper bits of `bits`, to an ordered integer.
#[inline(always)]
fn order(bits: u32, infinite: u32) -> i32 {
    let magnitude = (bits & 0x7fff_ffff) as i32;
    let signed = if bits >> 31 == 1 { -magnitude } else { magnitude };
    if magnitude > infinite as i32 { i32::MIN + 1 } else { signed }
}

impl Logit for f32 {
    const MASKED: f32 = f32::NEG_INFINITY;
    const DTYPE: DType = DType::F32;

    #[inline(always)]
    fn order(self) -> i32 {
        order(self.to_bits(), 0x7f80_0000)
    }

    #[inline(always)]
    fn value(self) -> f32 {
        self
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl Logit for f16 {
    const MASKED: f16 = f16::NEG_INFINITY;
    const DTYPE: DType = DType::F16;

    #[inline(always)]
    fn order(self) -> i32 {
        order(u32::from(self.to_bits()) << 16, 0x7c00_0000)
    }

    #[inline(always)]
    fn value(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.to_bits() & 0x7c00 != 0x7c00
    }
}

impl Logit for bf16 {
    const MASKED: bf16 = bf16::NEG_INFINITY;
    const DTYPE: DType = DType::BF16;

    #[inline(always)]
    fn order(self) -> i32 {
        order(u32::from(self.to_bits()) << 16, 0x7f80_0000)
    }

    #[inline(always)]
    fn value(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.to_bits() & 0x7f80 != 0x7f80
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_agrees_with_float_comparison() {
        let values = [
            f32::NEG_INFINITY,
            -65504.0,
            -1.0,
            -f32::MIN_POSITIVE,
            0.0,
            1e-7,
            0.5,
            1.0,
            3e4,
            f32::INFINITY,
        ];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                let bf = (bf16::from_f32(*a), bf16::from_f32(*b));
                assert_eq!(a.order().cmp(&b.order()), i.cmp(&j), "{a} {b}");
                assert_eq!(bf.0.order().cmp(&bf.1.order()), bf.0.total_cmp(&bf.1), "{a} {b}");
            }
        }
        for bits in 0..=u16::MAX {
            let x = f16::from_bits(bits);
            let next = f16::from_bits(bits.wrapping_add(1));
            if x.is_nan() {
                assert_eq!(x.order(), i32::MIN + 1);
            } else if !next.is_nan() {
                assert_eq!(
                    x.order().cmp(&next.order()),
                    x.partial_cmp(&next).expect("numbers"),
                    "{bits:x}"
                );
            }
            assert_eq!(Logit::is_finite(x), x.to_f32().is_finite());
        }
        assert_eq!((-0f32).order(), 0f32.order());
        assert_eq!(f32::NAN.order(), (-f32::NAN).order());
        assert!(f32::NAN.order() < f32::NEG_INFINITY.order() && f32::NAN.order() > i32::MIN);
    }
}
