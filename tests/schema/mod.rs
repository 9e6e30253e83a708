//! JSON Schema against others: the official suite, the `jsonschema` crate, and documents walked out
//! of masks.

mod deferred;
mod differential;
mod generate;
mod overlaps;
mod profile;
mod relaxed;
mod suite;
mod support;
mod walks;

/// A number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}
