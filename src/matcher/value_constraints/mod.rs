//! Constraints on values: what a context-free grammar cannot say about JSON, because it compares
//! parts of a text.
//!
//! * **Distinct values** (`uniqueItems`): no two elements of an array are equal. An item carries a
//!   *register*, the values of its array so far (`distinct_values`, `registers`). `value_cursor`
//!   follows a value byte by byte as far as it can still equal an earlier one; `json_value`,
//!   `json_string` and `number_prefix` decide when two spellings are one value.
//! * **Duplicate keys**: no two members of an object have one name (`duplicate_keys`,
//!   `key_tracker`).
//!
//! The parser knows three things of them: an item's count may be a register, the store owns the
//! registers, and the parser owns the names. See `docs/internals/DISTINCT_VALUES.md`.

mod distinct_values;
pub(super) mod duplicate_keys;
mod json_string;
mod json_value;
pub(in crate::matcher) mod key_tracker;
mod number_prefix;
pub(in crate::matcher) mod registers;
mod value_cursor;

pub(crate) use duplicate_keys::KeyStatus;
