//! Why only one of the two compiles a schema. `docs/LLGUIDANCE.md` has the same list.

use crate::Side;

/// The reasons for which the original refuses a schema that ours compiles, by its message.
const ORIGINAL_REFUSES: [(&str, &str); 5] = [
    ("Unimplemented keys", "a keyword that it does not enforce"),
    ("Unknown format", "a format that it does not know, which is an annotation"),
    ("oneOf constraints are not supported", "branches of `oneOf` that overlap"),
    ("min/maxProperties only supported", "a number of optional members"),
    ("circular references with sibling keys", "a recursive reference beside other keywords"),
];

/// The reason for which the other side than `only` refuses a schema, by its message.
pub fn reason_of_refusal(only: Side, message: &str) -> Option<&'static str> {
    let reasons = if only == Side::Ours { &ORIGINAL_REFUSES[..] } else { &[] };
    reasons.iter().find(|(part, _)| message.contains(part)).map(|&(_, reason)| reason)
}
