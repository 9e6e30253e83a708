use super::*;

fn pattern(source: &str) -> Pattern {
    Pattern::parse(source, &Limits::default()).unwrap_or_else(|e| panic!("{source}: {e}"))
}

fn finds(source: &str, text: &str) -> bool {
    pattern(source).search_dfa(10_000).unwrap().accepts(text.chars().map(u32::from))
}

fn matches(source: &str, text: &str) -> bool {
    pattern(source).match_dfa(10_000).unwrap().accepts(text.chars().map(u32::from))
}

#[test]
fn search_semantics() {
    for (source, text, found) in [
        ("a", "bab", true),
        ("^a", "bab", false),
        ("^a", "ab", true),
        ("a$", "ba", true),
        ("a$", "ba\n", false),
        ("^a$|^b", "bc", true),
        ("^a$|^b", "ac", false),
        ("^$", "", true),
        ("^$", "a", false),
        ("", "anything", true),
        ("(^a|b)c", "ac", true),
        ("(^a|b)c", "xac", false),
        ("(^a|b)c", "xbc", true),
        ("a^b", "ab", false),
        ("a$b", "ab", false),
        ("(a|$)*^", "", true),
        ("x*^y", "y", true),
        ("x*^y", "xy", false),
        ("^(?:a|b$)c?", "b", true),
        ("^(?:a|b$)c", "bc", false),
        ("(?<name>a)", "a", true),
    ] {
        assert_eq!(finds(source, text), found, "{source:?} in {text:?}");
    }
}

#[test]
fn ecma_meanings() {
    for (source, text, whole) in [
        (r"\d", "7", true),
        (r"\d", "\u{0667}", false),
        (r"\w", "é", false),
        (r"\W", "é", true),
        (r"\s", "\u{feff}", true),
        (r"\s", "\u{85}", false),
        (r"[\d\-x]", "-", true),
        (r"[^\d]", "a", true),
        (r"[\D]", "a", true),
        (r"[\S]", " ", false),
        (".", "\u{2028}", false),
        (".", "\r", false),
        (".", "\u{85}", true),
        (".", "😀", true),
        ("[^]", "\n", true),
        ("[]", "a", false),
        (r"\/\-\@", "/-@", true),
        (r"\cA", "\u{1}", true),
        (r"\0", "\0", true),
        (r"\x41\u0042\u{43}\ud83d\ude00", "ABC😀", true),
        ("[a-c&&b]", "&", true),
        ("[a-c&&b]", "c", true),
        ("[[a]", "[", true),
        ("[a-]", "-", true),
        (r"[\w-.]", "-", true),
        (r"[a-\d]", "-", true),
        ("a{", "a{", true),
        ("a{,2}", "a{,2}", true),
        ("{}", "{}", true),
        ("a]", "a]", true),
        ("a{2,3}?", "aaa", true),
        ("a{2,3}", "a", false),
        (r"\p{L}", "é", true),
        (r"\P{L}", "é", false),
        (r"[\p{Lu}\d]", "Z", true),
        (r"\p{Script=Greek}", "λ", true),
        ("[\u{1f600}-\u{1f610}]", "😀", true),
        ("a b#c", "a b#c", true),
        (r"[\b]", "\u{8}", true),
    ] {
        assert_eq!(matches(source, text), whole, "{source:?} on {text:?}");
    }
}

#[test]
fn refusals_name_the_position() {
    for (source, offset) in [
        ("ab(?=c)", 2),
        ("(?!a)", 0),
        ("é(?<=a)", 2),
        (r"(a)\1", 3),
        (r"a\b", 1),
        (r"\k<x>", 0),
        ("(?i)a", 0),
        (r"\ud800", 0),
        (r"a\Z", 1),
    ] {
        match Pattern::parse(source, &Limits::default()) {
            Err(RegexError::Unsupported { offset: at, .. }) => assert_eq!(at, offset, "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    for source in ["a**", "*", "a{3,2}", "(", ")", "[b-a]", "[a", "a++", "^*", r"\xZZ", r"\p{Nonsense}", "(?:", "\\"] {
        assert!(matches!(Pattern::parse(source, &Limits::default()), Err(RegexError::Syntax { .. })), "{source}");
    }
}

#[test]
fn limits_hold() {
    let large = pattern("^(?:a{1000}){1000}$");
    assert!(large.search_dfa(5_000).is_err());
    let limits = Limits { depth: 10, ..Limits::default() };
    let deep = format!("{}a{}", "(?:".repeat(50), ")".repeat(50));
    assert!(Pattern::parse(&deep, &limits).is_err());
    // A body that adds nothing is not repeated for ever.
    assert!(pattern("(?:){100000000}").match_dfa(100).is_ok());
}

#[test]
fn branches_need_anchors_at_the_edges() {
    let branches = |source| pattern(source).branches(&mut spell_utf8).map(|b| b.len());
    assert_eq!(branches("^a|b$"), Some(2));
    assert_eq!(branches("^(?:a|b)$"), Some(1));
    assert_eq!(branches("(?:^a$|^bc$)"), Some(2));
    assert_eq!(branches("x(^a|b)"), None);
    assert_eq!(pattern("^a{2,5}$").search_length(), (2, Some(5)));
    assert_eq!(pattern("a{2,5}").search_length(), (2, None));
}

#[test]
fn utf8_spelling_is_exact() {
    let expr = spell_utf8(&[(0, 0xD7FF), (0xE000, 0x10FFFF)]);
    let Expr::Alt(parts) = &expr else { panic!("{expr:?}") };
    assert!(matches!(&parts[0], Expr::Class(set) if set.len() == 128));
    assert_eq!(spell_utf8(&[(0x41, 0x41)]), Expr::Class(crate::fsm::ByteSet::of(b"A")));
    assert_eq!(spell_utf8(&[]), Expr::Never);
}

#[test]
fn lowers_to_a_grammar() {
    assert!(lower("^a(b|c)*$", &Limits::default()).is_ok());
    assert!(lower("(^|x)a", &Limits::default()).is_ok());
    assert!(lower("(?=a)", &Limits::default()).is_err());
}
