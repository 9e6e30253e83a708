//! Leaf: pseudo-random numbers that are a function of a seed. The adapters use them, too.

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
/// 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator. Any seed will do.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.next_u64().checked_rem(bound as u64).unwrap_or(0) as usize
    }
}

/// The output function of [`SplitMix64`]: spreads a number over all bits.
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[test]
fn numbers_are_those_of_the_reference_implementation() {
    let mut random = SplitMix64::new(1_234_567);
    let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
    assert_eq!(expected.map(|_| random.next_u64()), expected);
    assert_eq!(random.below(0), 0);
}
