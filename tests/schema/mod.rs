//! JSON Schema against others: the official suite, the `jsonschema` crate, and documents walked out
//! of masks.

mod deferred;
mod differential;
mod generate;
mod overlaps;
mod presence;
mod profile;
mod relaxed;
mod suite;
mod support;
mod walks;

/// Calls `compare` with one seed after the other, from `LOUVER_SEED` on (default 1), until the
/// number of instances that it returns reaches the variable's (`default`).
fn compare_seeds(variable: &str, default: usize, mut compare: impl FnMut(u64) -> usize) {
    let wanted = number(variable, default);
    let mut seed = number("LOUVER_SEED", 1) as u64;
    while compare(seed) < wanted {
        seed += 1;
    }
}

/// A number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}
