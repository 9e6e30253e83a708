//! Ids of calls: `toolu_...` in the Messages API, `call_...` or the model's own in a turn.

/// The prefix of ids in the Messages API.
const PREFIX: &str = "toolu_";
/// The prefix of ids that the formats make up.
const MADE_UP: &str = "call_";
/// Number of letters and digits of a made-up id.
const MADE_UP_LEN: usize = 16;

/// The id that a client gets.
pub(super) fn to_client(id: &str) -> String {
    format!("{PREFIX}{}", id.strip_prefix(MADE_UP).unwrap_or(id))
}

/// The id that the chat template gets: the one of the turn, so that a model whose format has ids
/// reads the ones that it has written. Ids of other servers are unchanged.
pub(super) fn from_client(id: &str) -> String {
    let Some(rest) = id.strip_prefix(PREFIX) else { return id.to_owned() };
    let is_made_up =
        rest.len() == MADE_UP_LEN && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_made_up { format!("{MADE_UP}{rest}") } else { rest.to_owned() }
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
        ] {
            assert_eq!((to_client(id), from_client(shown)), (shown.to_owned(), id.to_owned()));
        }
        assert_eq!(from_client("mine"), "mine");
    }
}
