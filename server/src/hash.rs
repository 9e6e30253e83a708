//! A hash whose values may be stored and sent.

/// The 64-bit FNV-1a hash (Fowler, Noll and Vo, 1991). Stable across builds, unlike the standard
/// library's hash.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
