//! Tests of regular expressions: semantics, options, errors, limits.

use super::*;

fn pattern(source: &str) -> Pattern {
    Pattern::parse(source, &Limits::default()).unwrap_or_else(|e| panic!("{source}: {e}"))
}

fn contains_match(source: &str, text: &str) -> bool {
    pattern(source).search_dfa(10_000).unwrap().accepts(text.chars().map(u32::from))
}

fn matches(source: &str, text: &str) -> bool {
    pattern(source).match_dfa(10_000).unwrap().accepts(text.chars().map(u32::from))
}

#[test]
fn search_finds_matches_anywhere_and_respects_anchors() {
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
        assert_eq!(contains_match(source, text), found, "{source:?} in {text:?}");
    }
}

#[test]
fn escapes_and_classes_have_ecma_meaning() {
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
        ("a{", "a{", true),
        ("a{,b}", "a{,b}", true),
        (r"[\d-a]", "-", true),
        (r"[\w--_]", "-", true),
        (r"[\w--_]", ".", false),
        (r"\<a\>", "<a>", true),
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
fn errors_state_the_offset() {
    for (source, offset) in [
        (r"(a)\1", 3),
        ("a{,2}", 1),
        (r"\k<x>", 0),
        ("(?m)a", 2),
        (r"\ud800", 0),
        ("a++", 1),
        (r"a\Z", 1),
    ] {
        match Pattern::parse(source, &Limits::default()) {
            Err(RegexError::Unsupported { offset: at, .. }) => assert_eq!(at, offset, "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    for source in [
        "a**",
        "*",
        "a{3,2}",
        "a{2000000000}",
        "(",
        ")",
        "[b-a]",
        r"[\d-a-z]",
        "[a",
        "^*",
        r"\xZZ",
        r"\p{Nonsense}",
        "(?:",
        "\\",
    ] {
        assert!(
            matches!(Pattern::parse(source, &Limits::default()), Err(RegexError::Syntax { .. })),
            "{source}"
        );
    }
}

#[test]
fn limits_on_states_and_depth_hold() {
    let large = pattern("^(?:a{1000}){1000}$");
    assert!(large.search_dfa(5_000).is_err());
    let limits = Limits { depth: 10, ..Limits::default() };
    let deep = format!("{}a{}", "(?:".repeat(50), ")".repeat(50));
    assert!(Pattern::parse(&deep, &limits).is_err());
    // An empty body is not repeated.
    assert!(pattern("(?:){100000000}").match_dfa(100).is_ok());
}

#[test]
fn branches_require_anchors_at_the_ends() {
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
    assert_eq!(spell_utf8(&[(0x41, 0x41)]), Expr::Class(crate::fsm::ByteSet::from_bytes(b"A")));
    assert_eq!(spell_utf8(&[]), Expr::Never);
}

#[test]
fn patterns_lower_to_grammars() {
    let lower = |source| lower(source, &RegexOptions::default(), &Limits::default());
    assert!(lower("^a(b|c)*$").is_ok());
    assert!(lower("(^|x)a").is_ok());
    assert!(lower("(?=a)[ab]").is_ok());
    assert!(lower("a(?<=a)b").is_ok());
    assert!(lower(r"(a)\1").is_err());
}

/// Whether a text matches as a whole under the given options.
fn matches_with(source: &str, options: RegexOptions, text: &str) -> bool {
    let pattern = Pattern::with_options(source, &options, &Limits::default());
    let pattern = pattern.unwrap_or_else(|e| panic!("{source}: {e}"));
    pattern.match_dfa(10_000).unwrap().accepts(text.chars().map(u32::from))
}

#[test]
fn options_and_flags_change_the_meaning() {
    let default = RegexOptions::default();
    let (ascii, unicode) = (Classes::Ascii, Classes::Unicode);
    for (source, options, text, whole) in [
        (r"\d", RegexOptions { classes: unicode, ..default }, "\u{0667}", true),
        (r"\w[^\W]", RegexOptions { classes: unicode, ..default }, "éß", true),
        (r"[\w-]", RegexOptions { classes: unicode, ..default }, "λ", true),
        (r"\D", RegexOptions { classes: unicode, ..default }, "\u{0667}", false),
        (r"\s", RegexOptions { classes: unicode, ..default }, "\u{85}", true),
        (r"\s", RegexOptions { classes: ascii, ..default }, "\u{A0}", false),
        (r"\S", RegexOptions { classes: ascii, ..default }, "\u{A0}", true),
        (r"\s", default, "\u{A0}", true),
        ("aé", RegexOptions { case: Case::Insensitive, ..default }, "AÉ", true),
        ("[^a]", RegexOptions { case: Case::Insensitive, ..default }, "A", false),
        (".", RegexOptions { dot: Dot::Any, ..default }, "\n", true),
        (".", RegexOptions { dot: Dot::NoLineFeed, ..default }, "\r", true),
        (".", RegexOptions { dot: Dot::NoLineFeed, ..default }, "\n", false),
        ("(?i)ab", default, "aB", true),
        ("a(?i)b|c", default, "aB", true),
        ("a(?i)b|c", default, "AB", false),
        ("a(?i)b|c", default, "C", true),
        ("(?:(?i)a)b", default, "aB", false),
        ("(?i:a(?-i)b)c", default, "Abc", true),
        ("(?i:a(?-i)b)c", default, "ABc", false),
        ("(?i:a)b", default, "AB", false),
        ("(?s:.).", default, "\na", true),
        ("(?s:.).", default, "a\n", false),
        ("(?s).(?-s).", default, "\na", true),
        ("(?s).(?-s).", default, "\n\n", false),
        ("(?-s).", RegexOptions { dot: Dot::Any, ..default }, "\n", false),
        ("((?s).)(.)", default, "\n\n", false),
        ("(?s-i:A.)", default, "a\n", false),
        ("(?s-i:A.)", RegexOptions { case: Case::Insensitive, ..default }, "A\n", true),
        (r"\a\e[\e]", default, "\u{7}\u{1b}\u{1b}", true),
        (r"\Aa\z", default, "a", true),
        ("(?P<x>a)(?<y>b)", default, "ab", true),
    ] {
        assert_eq!(
            matches_with(source, options, text),
            whole,
            "{source:?} on {text:?} with {options:?}"
        );
    }
}

#[test]
fn syntax_is_the_same_for_both_scopes() {
    for (source, offset) in [
        ("a(?m)b", 3),
        ("(?x: a)", 2),
        (r"\Z", 0),
        ("(?>a)", 0),
        ("(?P=x)", 0),
        ("(?#c)", 0),
        ("a++", 1),
    ] {
        for options in [RegexOptions::default(), RegexOptions::ECMA] {
            match Pattern::with_options(source, &options, &Limits::default()) {
                Err(RegexError::Unsupported { offset: at, .. }) => {
                    assert_eq!(at, offset, "{source}")
                }
                other => panic!("{source}: {other:?}"),
            }
        }
    }
    for (source, text) in [
        (r"^\a$", "\u{7}"),
        (r"\Aa\z", "a"),
        ("^(?i)a$", "A"),
        ("^(?P<x>a)$", "a"),
        (r"(?=.*b)^ab$", "ab"),
    ] {
        assert!(
            pattern(source).search_dfa(1_000).unwrap().accepts(text.chars().map(u32::from)),
            "{source}"
        );
        assert!(matches_with(source, RegexOptions::default(), text), "{source}");
    }
    let terminal = RegexOptions { look_around: LookAround::Refused, ..RegexOptions::default() };
    for source in ["a(?=b)", "(?!a)b", "a(?<=a)", "(?<!a)b", r"a\b", r"\Ba"] {
        let result = Pattern::with_options(source, &terminal, &Limits::default());
        assert!(matches!(result, Err(RegexError::Unsupported { .. })), "{source}");
    }
    // Errors: nothing to repeat, also after flags and anchors; unclosed flags.
    for source in ["(?i)*", r"\A*", "(?i", "(?", "(?i-)a", "(?ii)a"] {
        assert!(
            Pattern::with_options(source, &RegexOptions::default(), &Limits::default()).is_err(),
            "{source}"
        );
    }
}

#[test]
fn counted_repeats_are_not_unrolled() {
    for source in
        ["a{100000}", "(?:[ab]c?){0,100000}", r"^\p{L}{99999,100000}$", "(?:a{1000}b){1000}"]
    {
        let grammar = lower(source, &RegexOptions::default(), &Limits::default()).unwrap();
        assert!(grammar.size() < 5_000, "{source}: {}", grammar.size());
    }
}

#[test]
fn unicode_tables_count_against_the_limit() {
    let limits = Limits { nodes: 20_000, ..Limits::default() };
    for source in
        [r"\p{L}".repeat(1_000), r"\P{L}".repeat(30), "[a-cé]".repeat(20_000), "abc".repeat(10_000)]
    {
        let result = Pattern::with_options(&source, &RegexOptions::default(), &limits);
        assert!(matches!(result, Err(RegexError::TooLarge(_))), "{}", &source[..5]);
    }
    assert!(pattern(r"(?:\p{L}{1000}$|a){200}").match_dfa(5_000).is_err());
}

#[test]
fn diagnostics_show_the_offset_in_the_pattern() {
    let error = lower("ab(?>c)", &RegexOptions::default(), &Limits::default()).unwrap_err();
    let shown = error.diagnostics("pattern", "ab(?>c)").to_string();
    assert!(shown.contains("pattern:1:3") && shown.contains("  ^ an atomic group"), "{shown}");
    let error = lower("é[b-a]", &RegexOptions::default(), &Limits::default()).unwrap_err();
    let shown = error.diagnostics("pattern", "é[b-a]").to_string();
    assert!(
        shown.contains("pattern:1:5") && shown.contains("a class range out of order"),
        "{shown}"
    );
}

#[test]
fn assertions_agree_with_another_engine() {
    let patterns = [
        "^(?!a)",
        "(?!a)b",
        r"^((?!ab)(?!ba).)*$",
        "a(?=b)",
        "(?=a)b?",
        "^(?=.*a)(?=.*b).{2,3}$",
        r"\bab\b",
        r"a\Bb",
        r"\b",
        r"^\B",
        r"\B$",
        "^(?!ab|b$)[a-c]+$",
        "(?!$)b*$",
        "(a|(?=b))b",
        "^(?:(?!aa)(?:a|b))+$",
        "^(?=(?!ab)a)..",
        "(?=$)",
        "^(?!$)",
        "(?:a(?!b)|b(?=a)){2}",
        r"^(?!a[)\]]?b).c",
        r"(?:\ba|b\b){2}c",
        r"^(?:\b(?!c)[a-c ])*$",
        "(?=a)(?!ab)a|(?!.)",
        "^a(?!)|b",
        "^(?=)b",
    ];
    let mut texts = vec![String::new()];
    for from in 0.. {
        let Some(text) = texts.get(from).cloned() else { break };
        if text.chars().count() < 5 {
            texts.extend("abc )".chars().map(|c| format!("{text}{c}")));
        }
    }
    for source in patterns {
        let oracle = jsonschema::validator_for(&serde_json::json!({ "pattern": source })).unwrap();
        let dfa = pattern(source).search_dfa(10_000).unwrap();
        for text in &texts {
            let expected = oracle.is_valid(&serde_json::Value::from(text.as_str()));
            assert_eq!(dfa.accepts(text.chars().map(u32::from)), expected, "{source} {text:?}");
        }
    }
}

/// A parser of named groups compares each name with those before it.
#[test]
fn marks_are_groups_without_names() {
    let options = RegexOptions::default();
    let mark = |source: &str| translate(source, &options, options.dot, Side::Whole).unwrap();
    let (one, many) = (mark(r"\B"), mark(&r"\B".repeat(1_000)));
    assert_eq!(one.text, "(?:()()|()())");
    assert_eq!(many.text, one.text.repeat(1_000));
    assert_eq!((many.assertions.len(), many.marks), (4, one.marks.repeat(1_000)));
}

#[test]
fn unsupported_assertions_are_errors() {
    for (source, at) in [(r"ab(?=c(?<!\1))", 10), ("a(?<=é(?>a))", 7), (r"(?!\Z)", 3)] {
        match Pattern::parse(source, &Limits::default()) {
            Err(RegexError::Unsupported { offset, .. }) => assert_eq!(offset, at, "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    for source in ["(?=a", "(?=a)*", "(?=(a)", "a(?=[)", "(?<=a)+", "(?<!a"] {
        assert!(
            matches!(Pattern::parse(source, &Limits::default()), Err(RegexError::Syntax { .. })),
            "{source}"
        );
    }
    // Limits: deep nesting, many assertions, many states.
    let deep = format!("{}a{}", "(?=".repeat(5_000), ")".repeat(5_000));
    assert!(Pattern::parse(&deep, &Limits::default()).is_err());
    let numbers = (0..1_000).map(|i| format!("(?!{i})")).collect::<String>();
    assert!(Pattern::parse(&numbers, &Limits::default()).is_err());
    assert!(Pattern::parse(&"(?!a)".repeat(1_000), &Limits::default()).is_ok());
    let many: String = (0..12).map(|i| format!("(?!.*a.{{{i}}}b)")).collect();
    let large = pattern(&format!("{many}(?:c|a)*"));
    assert!(large.search_dfa(200).is_err());
}

/// A pattern, to be written and to be matched by definition.
#[derive(Clone, Debug)]
enum Sample {
    Text(&'static str),
    Seq(Vec<Sample>),
    Alt(Vec<Sample>),
    Star(Box<Sample>),
    Start,
    End,
    Boundary(bool),
    Look { is_lookbehind: bool, negated: bool, body: Box<Sample> },
}

impl Sample {
    fn random(next: &mut dyn FnMut(usize) -> usize, depth: usize) -> Sample {
        if depth == 0 || next(3) == 0 {
            let texts = ["a", "b", "ab", "[ab]", ".", " ", ""];
            return match next(9) {
                0 => Sample::Start,
                1 => Sample::End,
                2 => Sample::Boundary(next(2) == 0),
                _ => Sample::Text(texts[next(texts.len())]),
            };
        }
        let mut parts =
            |n: usize| (0..n).map(|_| Sample::random(next, depth - 1)).collect::<Vec<_>>();
        let (few, one) = (parts(2), Box::new(parts(1).remove(0)));
        match next(7) {
            0..=2 => Sample::Seq(few),
            3 => Sample::Alt(few),
            4 => Sample::Star(one),
            _ => Sample::Look { is_lookbehind: next(2) == 0, negated: next(2) == 0, body: one },
        }
    }

    fn write(&self) -> String {
        let all = |parts: &[Sample], between| {
            parts.iter().map(Sample::write).collect::<Vec<_>>().join(between)
        };
        match self {
            Sample::Text(text) => (*text).to_owned(),
            Sample::Seq(parts) => all(parts, ""),
            Sample::Alt(parts) => format!("(?:{})", all(parts, "|")),
            Sample::Star(body) => format!("(?:{})*", body.write()),
            Sample::Start => "^".to_owned(),
            Sample::End => "$".to_owned(),
            Sample::Boundary(negated) => if *negated { r"\B" } else { r"\b" }.to_owned(),
            Sample::Look { is_lookbehind, negated, body } => {
                let kind = if *negated { "!" } else { "=" };
                format!("(?{}{kind}{})", if *is_lookbehind { "<" } else { "" }, body.write())
            }
        }
    }

    /// Where a match that begins at `from` can end.
    fn ends(&self, text: &[u8], from: usize) -> Vec<usize> {
        let when = |holds| if holds { vec![from] } else { Vec::new() };
        let mut out: Vec<usize> = match self {
            Sample::Text("") => vec![from],
            Sample::Text("ab") => {
                if text[from..].starts_with(b"ab") {
                    vec![from + 2]
                } else {
                    Vec::new()
                }
            }
            Sample::Text(class) => match text.get(from) {
                Some(&c)
                    if match *class {
                        "." => c != b'\n',
                        "[ab]" => c == b'a' || c == b'b',
                        one => one.as_bytes()[0] == c,
                    } =>
                {
                    vec![from + 1]
                }
                _ => Vec::new(),
            },
            Sample::Seq(parts) => parts.iter().fold(vec![from], |ends, part| {
                ends.into_iter().flat_map(|end| part.ends(text, end)).collect()
            }),
            Sample::Alt(parts) => parts.iter().flat_map(|part| part.ends(text, from)).collect(),
            Sample::Star(body) => {
                let mut all = vec![from];
                let mut i = 0;
                while i < all.len() {
                    let more = body.ends(text, all[i]);
                    all.extend(
                        more.into_iter().filter(|end| !all.contains(end)).collect::<Vec<_>>(),
                    );
                    i += 1;
                }
                all
            }
            Sample::Start => when(from == 0),
            Sample::End => when(from == text.len()),
            Sample::Boundary(negated) => {
                let is_word = |at: Option<usize>| {
                    at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric)
                };
                when((is_word(from.checked_sub(1)) != is_word(Some(from))) != *negated)
            }
            Sample::Look { is_lookbehind: false, negated, body } => {
                when(body.ends(text, from).is_empty() == *negated)
            }
            Sample::Look { is_lookbehind: true, negated, body } => {
                when((0..=from).any(|begin| body.ends(text, begin).contains(&from)) != *negated)
            }
        };
        out.sort_unstable();
        out.dedup();
        out
    }
}

#[test]
fn random_assertions_match_by_definition() {
    let mut texts = vec![Vec::new()];
    for from in 0.. {
        let Some(text) = texts.get(from).cloned() else { break };
        if text.len() < 5 {
            texts.extend(b"ab \n".iter().map(|&c| [&text[..], &[c]].concat()));
        }
    }
    let mut seed = 1u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    let patterns = std::env::var("LOUVER_PATTERNS").ok().and_then(|n| n.parse().ok());
    let mut built = 0;
    for _ in 0..patterns.unwrap_or(400) {
        let sample = Sample::random(&mut next, 5);
        let source = sample.write();
        let Ok(dfa) = pattern(&source).search_dfa(10_000) else { continue };
        built += 1;
        for text in &texts {
            let expected = (0..=text.len()).any(|from| !sample.ends(text, from).is_empty());
            let found = dfa.accepts(text.iter().map(|&c| u32::from(c)));
            assert_eq!(found, expected, "{source:?} in {:?}", String::from_utf8_lossy(text));
        }
    }
    assert!(built > 300, "{built}");
}
