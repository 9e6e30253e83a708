//! Constraints on values: what a context-free grammar cannot say about JSON, because it compares
//! parts of a text.
//!
//! * **Distinct values** (`uniqueItems`): no two elements of an array are equal. An item carries a
//!   *register*, the values of its array so far (`distinct_values`, `registers`). `rivals` finds
//!   those that the open element may still equal, and `value_cursor` follows one of them byte by
//!   byte; `json_value`, `json_string` and `number_prefix` decide when two spellings are one value.
//! * **Duplicate keys**: no two members of an object have one name (`duplicate_keys`,
//!   `key_tracker`).
//!
//! An item's count may be a register, the store owns the registers, and the parser owns the names.
//! Values and keys are a part of the configuration, so there is no wrapper around the parser: its
//! functions call these at the places where a constraint acts.
//!
//! | function of the parser | what it calls |
//! |---|---|
//! | `compute_step`, `step_special`, `token_ended`, `union` | the same with keys: `step_with_keys`, `step_special_with_keys`, `token_ended_with_keys`, `union_with_keys` |
//! | `compute_step`, `step_special` | `step_comparing_values`, `dead_unless_continuable`: a step that leads to no complete value is refused |
//! | `compute_byte_range`, `compute_special` | `account_symbol`: registers read the symbol |
//! | prediction (`assign_frames`) and completion (`complete`) | `begin_element`, `end_element` |
//! | completion (`complete_from`) and rewriting of frames | `KeyStep`: keys that may not end, frames to follow |
//! | `canonical`, `canonical_keeping_frames` | `with_keys_of` |
//! | `step_within_block`, `step_bytes` | `keeps_key_list`, `cached_key_start`, `is_key_byte`, `step_over_keys` |
//!
//! See `docs/internals/DISTINCT_VALUES.md`.

mod distinct_values;
pub(super) mod duplicate_keys;
mod json_string;
mod json_value;
pub(in crate::matcher) mod key_tracker;
mod number_prefix;
pub(in crate::matcher) mod registers;
mod rivals;
mod value_cursor;

pub(crate) use duplicate_keys::{KeyStatus, QUOTE};
