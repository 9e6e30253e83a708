//! The tests of this crate run mistral.rs with the adapter in llguidance's place.
