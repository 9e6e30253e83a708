//! Ids of calls: `toolu_...` in the Messages API, `call_...` or the model's own in its output.

use std::borrow::Cow;

/// The prefix of ids in the Messages API.
const PREFIX: &str = "toolu_";
/// The prefix of ids that the formats make up.
const MADE_UP: &str = "call_";
/// Number of letters and digits of a made-up id.
const MADE_UP_LEN: usize = 16;

/// The id that a client gets. A made-up one has one prefix instead of two.
pub(super) fn to_client(id: &str) -> String {
    format!("{PREFIX}{}", exchanged(id))
}

/// The id that the chat template gets: the one of the output, so that a model whose format has ids
/// reads the ones that it has written. Ids of other servers are unchanged.
pub(super) fn from_client(id: &str) -> String {
    id.strip_prefix(PREFIX).map_or_else(|| id.to_owned(), |rest| exchanged(rest).into_owned())
}

/// Adds or removes the prefix of made-up ids, if the rest has their form. It is its own inverse, so
/// that no two ids become one.
fn exchanged(id: &str) -> Cow<'_, str> {
    let has_form = |rest: &str| {
        rest.len() == MADE_UP_LEN && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match id.strip_prefix(MADE_UP) {
        Some(rest) if has_form(rest) => rest.into(),
        None if has_form(id) => format!("{MADE_UP}{id}").into(),
        _ => id.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_the_turn_had_them() {
        for (id, shown) in [
            ("call_0123456789abcdef", "toolu_0123456789abcdef"),
            ("functions.get:0", "toolu_functions.get:0"),
            ("call00001", "toolu_call00001"),
            ("0", "toolu_0"),
            ("0123456789abcdef", "toolu_call_0123456789abcdef"),
            ("call_abc", "toolu_call_abc"),
            ("call_call_0123456789abcdef", "toolu_call_call_0123456789abcdef"),
            ("toolu_x", "toolu_toolu_x"),
        ] {
            assert_eq!((to_client(id), from_client(shown)), (shown.to_owned(), id.to_owned()));
        }
        assert_eq!(from_client("mine"), "mine");
    }
}
