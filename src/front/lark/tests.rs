use super::*;

fn ok(text: &str) -> Lowered {
    lower(text, &LarkOptions::default(), &Limits::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_first_grammar() {
    assert_eq!(ok("start: \"a\"").grammar.rules.len(), 1);
}
