//! Tests of the Lark front end: positions of errors, attributes, tokens, limits, and random texts.

use proptest::prelude::*;

use super::*;
use crate::compile::Compiled;
use crate::engine::{Engine, EngineOptions};
use crate::front::diagnostic::Severity;
use crate::ids::TokenId;
use crate::ir::{Attributes, Budget, BudgetPolicy, Expr, Rule, SpecialToken};
use crate::matcher::Recognizer;
use crate::vocab::Vocabulary;

fn parse(text: &str) -> Result<LoweredGrammar, Diagnostics> {
    lower(text, &LarkOptions::default(), &Limits::default())
}

fn parse_valid(text: &str) -> LoweredGrammar {
    parse(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Lines and columns of the errors.
fn error_positions(text: &str) -> Vec<(usize, usize)> {
    let all = parse(text).expect_err("errors");
    let errors = all.list().iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| all.place(d.span.start)).collect()
}

fn rules_with(lowered: &LoweredGrammar, fits: impl Fn(&Attributes) -> bool) -> Vec<&Rule> {
    lowered.grammar.rules.iter().filter(|r| fits(&r.attributes)).collect()
}

#[test]
fn all_errors_report_line_and_column() {
    let text = "start: a\na: \"x\" )\n%import common.INTT\nB: /[/ | /a(?=b)/\n\
                c[lasy]: \"\\q\"\nstart: %regex {\"x\": 1}\n";
    let want = [(2, 8), (3, 16), (4, 5), (4, 12), (5, 3), (5, 11), (6, 1), (6, 15)];
    assert_eq!(error_positions(text), want);
    assert_eq!(error_positions("start: %lark {\n  start: x\n  y: @z\n}"), [(2, 10), (3, 6)]);
}

#[test]
fn warnings_accompany_the_grammar() {
    let lowered = parse_valid("start: A\nA: \"a\"\nb:\n  | \"x\"\n");
    let list: Vec<&str> = lowered.warnings.list().iter().map(|d| &*d.message).collect();
    assert_eq!(list, ["`b` begins with `|`, so it may be empty", "`b` is never used"]);
}

#[test]
fn rule_attributes_reach_the_grammar() {
    let lowered = parse_valid(
        "start: v w\nv[capture, temperature=0.5, max_chars=7]: /[0-9]+/\n\
         w[capture=\"x\", max_tokens=3]: v v",
    );
    let budget = |tokens, chars, on_exhausted| Some(Budget { tokens, chars, on_exhausted });
    let v = rules_with(&lowered, |a| a.capture.as_deref() == Some("v"));
    assert_eq!((v.len(), v[0].attributes.temperature), (1, Some(0.5)));
    assert_eq!(v[0].attributes.budget, budget(None, Some(7), BudgetPolicy::Finish));
    assert!(!v[0].attributes.hidden);
    let w = rules_with(&lowered, |a| a.capture.as_deref() == Some("x"));
    assert_eq!(w[0].attributes.budget, budget(Some(3), None, BudgetPolicy::Finish));
    // With a suffix, the text before it is captured, and the rule is cut at its budget.
    let lowered = parse_valid(
        "start: r\nr[capture, suffix=\"!\", stop_capture=\"m\", max_tokens=3]: /[a-z]*/\n\
         %ignore \" \"",
    );
    let text = rules_with(&lowered, |a| a.capture.as_deref() == Some("r"));
    let marker = rules_with(&lowered, |a| a.capture.as_deref() == Some("m"));
    let cut = rules_with(&lowered, |a| a.budget == budget(Some(3), None, BudgetPolicy::Cut));
    assert_eq!((text.len(), marker.len(), cut.len()), (1, 1, 1));
    // A stop is hidden, a suffix is not.
    assert!(!marker[0].attributes.hidden);
    let stop = parse_valid("start: r\nr[stop=\"!\", stop_capture=\"m\"]: /[a-z]*/");
    assert!(rules_with(&stop, |a| a.capture.is_some()).iter().all(|rule| rule.attributes.hidden));
    // With a stop, the rule itself has the capture.
    let stop = parse_valid("start: r\nr[stop=\"!\", capture=\"c\"]: /[a-z]*/");
    let r = rules_with(&stop, |a| a.capture.as_deref() == Some("c"));
    assert!(matches!(&r[0].body, Expr::Seq(parts) if parts.len() == 2));
    assert!(matches!(&cut[0].body, Expr::Seq(parts) if parts.len() == 2));
}

#[test]
fn tools_with_fixed_markers_lower_to_a_dispatch() {
    let tools = "start: (a | b)* TEXT\nha[lazy]: TEXT \"<a>\"\nhb[suffix=\"<b>\"]: TEXT\n\
                 a: ha \"1\"\nb: hb \"2\" | hb \"3\"\n";
    let dispatches = |text: &str| {
        let lowered = parse_valid(&format!("{text}TEXT: /(.|\\n)*/\n"));
        let is_dispatch =
            |rule: &Rule| matches!(&rule.body, Expr::Dispatch(d) if d.tags.len() == 3);
        lowered.grammar.rules.iter().filter(|rule| is_dispatch(rule)).count()
    };
    assert_eq!(dispatches(tools), 1);
    // Many tools with one beginning.
    let many: String = (0..3_000).map(|i| format!("t{i}: ha \"{i}\"\n")).collect();
    let list: Vec<String> = (0..3_000).map(|i| format!("t{i}")).collect();
    let text = format!(
        "start: ({})* TEXT\nTEXT: /(.|\\n)*/\nha[lazy]: TEXT \"<a>\"\n{many}",
        list.join(" | ")
    );
    let lowered = parse_valid(&text);
    assert!(
        lowered
            .grammar
            .rules
            .iter()
            .any(|r| matches!(&r.body, Expr::Dispatch(d) if d.tags.len() == 3_000))
    );
    // Captures and constrained text cannot be lowered to a dispatch.
    assert_eq!(dispatches(&tools.replace("[lazy]", "[lazy, capture]")), 0);
    assert_eq!(dispatches(&tools.replace("ha[lazy]: TEXT", "ha[lazy]: /[a-z]*/")), 0);
}

#[test]
fn special_tokens_and_ids_are_parsed() {
    let lowered = parse_valid("start: <|tool|> <[7]> <[1-3,9]> <[^2]> <[*]> <think>");
    let ids = |list: &[u32]| list.iter().map(|&id| SpecialToken::Id(id)).collect::<Vec<_>>();
    let want = [
        SpecialToken::Name("<|tool|>".into()),
        SpecialToken::Id(7),
        SpecialToken::AnyOf(ids(&[1, 2, 3, 9])),
        SpecialToken::AnyBut(ids(&[2])),
        SpecialToken::AnyBut(Vec::new()),
        SpecialToken::Name("<think>".into()),
    ];
    assert_eq!(lowered.grammar.specials, want);
    for wrong in
        ["<[]>", "<[3-1]>", "<[a]>", "<[1,]>", "<[-1]>", "<[99999999999]>", "<[0-4294967295]>"]
    {
        assert_eq!(error_positions(&format!("start: {wrong}")), [(1, 8)], "{wrong}");
    }
    assert_eq!(error_positions("start: \"a\" ~ 2000000000"), [(1, 14)]);
}

#[test]
fn names_are_not_missed_where_the_syntax_has_errors() {
    let errors = |text: &str| {
        let all = parse(text).expect_err("errors");
        let texts = all.list().iter().map(|one| (one.message.clone(), one.help.clone()));
        texts.collect::<Vec<_>>()
    };
    let found = errors("start: name 'it is \"x\"'\nother: 'a\n");
    let want = [r#"write "it is \"x\"""#, r#"write "a""#]
        .map(|help| ("strings have double quotes".to_owned(), Some(help.to_owned())));
    assert_eq!(found, want);
    let found = errors("start = name\n");
    assert!(found.iter().all(|(message, _)| !message.contains("no rule")), "{found:?}");
    assert!(errors("start: name\n")[0].0.contains("no rule `name`"));
}

/// The tokens allowed after a prefix of single-byte tokens.
fn allowed(text: &str, prefix: &str) -> Vec<u32> {
    let vocab: std::sync::Arc<Vocabulary> = Vocabulary::toy(&[b"bc"]).into();
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let constraint = engine.compile_lark(text, &LarkOptions::default()).unwrap();
    let mut matcher = constraint.matcher();
    prefix.bytes().for_each(|b| matcher.advance(TokenId::from_raw(b.into())).unwrap());
    let mut mask = vec![0; vocab.mask_words()];
    matcher.fill_mask(&mut mask);
    (0..vocab.width() as u32).filter(|&id| crate::mask::bit(&mask, TokenId::from_raw(id))).collect()
}

#[test]
fn token_ids_are_allowed_by_the_mask() {
    let text = "start: \"a\" <[97,99-100,257]> | \"b\" <[^0-96,98-255]> \"!\"";
    assert_eq!(allowed(text, "a"), [97, 99, 100, 257]);
    assert_eq!(allowed(text, "b"), [97, 257]);
    // A special token ends a lazy rule.
    let text = "start: head \"!\"\nhead[lazy]: TEXT <[97]>\nTEXT: /[b-z]*/";
    assert_eq!(allowed(text, "xa"), [33]);
}

#[test]
fn large_and_deep_texts_end() {
    let nested = |n: usize| format!("start: {}\"a\"{}", "(".repeat(n), ")".repeat(n));
    assert!(parse(&nested(100)).is_ok());
    assert!(parse(&nested(100_000)).is_err());
    assert!(parse(&format!("start: {}", "%lark { start: ".repeat(50_000))).is_err());
    // Each terminal refers to the next one twice: neither deep recursion nor exponential size.
    let mut chain: String = (0..20_000).map(|i| format!("T{i}: T{} T{}\n", i + 1, i + 1)).collect();
    chain.push_str("start: T0\nT20000: \"ab\"\n");
    let lowered = parse_valid(&chain);
    assert!(lowered.grammar.rules.len() <= 20_002);
    // Long texts are not inlined into all terminals that refer to them.
    let long = format!("start: B\nB:{}\nA: \"{}\"", " A".repeat(2_000), "x".repeat(100_000));
    assert!(parse(&long).is_ok());
    // The limit on states covers all automata together.
    let heavy: String = (0..500).map(|i| format!("A{i}: /[ab]*a[ab]{{9}}/ & ~/{i}/\n")).collect();
    let limits = Limits { automaton_states: 10_000, ..Limits::default() };
    assert!(lower(&format!("start: A0\n{heavy}"), &LarkOptions::default(), &limits).is_err());
    let classes: String = (0..20_000).map(|i| format!("A{i}: /\\p{{L}}/\n")).collect();
    let limits = Limits { nodes: 10_000, ..Limits::default() };
    assert!(lower(&format!("start: A0\n{classes}"), &LarkOptions::default(), &limits).is_err());
    // Rules that refer to each other many times are not walked path by path.
    let mut fans: String =
        (0..40).map(|i| format!("r{i}: {}\n", format!("| r{} ", i + 1).repeat(50))).collect();
    fans.push_str("r40: <|x|>\nstart: r0* /(.|\\n)*/\n");
    let _ = parse(&fans);
}

#[test]
fn grammars_of_thousands_of_rules_lower() {
    let mut text: String =
        (0..3_000).map(|i| format!("r{i}: \"k{i}\" N (r{} | \";\")\n", (i + 1) % 3_000)).collect();
    text.push_str("start: r0\nN: /[0-9]+/\n%ignore /[ \\t]+/\n");
    assert!(parse_valid(&text).grammar.rules.len() >= 3_000);
}

/// Valid texts to mutate.
const VALID: [&str; 5] = [
    "start: ( f_foo | f_bar )* f_end\nf_end: TEXT\nTEXT: /(.|\\n)*/\n\
     f_foo_hd[lazy]: TEXT \"<function\"\n\
     f_foo: f_foo_hd \"=foo>\" %json { \"type\": \"object\" }\nf_bar_hd[lazy]: TEXT \"<function\"\n\
     f_bar: f_bar_hd \"=bar>\" /[0-9]+/\n",
    "%import common (INT, WS)\n%ignore WS\nstart[capture=\"x\"]: r \"z\" -> alias\n\
     \x20 | <|tool|> <[1-3,^4]> @g\n\
     r[suffix=/b?a/i, stop_capture=\"m\", max_tokens=3, temperature=0.5]: \
     \"b\"i~1..3 [INT]\n",
    "start: %lark { start: A{2,} \"\\u00e9\"..\"\\U0001F600\" }\n\
     A: /[a-pr-z]+/ & ~(\"if\" | /\\p{Lu}/)\n",
    "%llguidance {\"allow_initial_skip\": true}\n\
     start: %regex {\"substring_words\": \"a b\"} | expr\n\
     expr: expr \"+\" expr | /(?s:.)\\d{1,30}/s\n",
    "start: \"a\" /^x$/ (\"b\"\n | )\n# end\n",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(512),
        ..ProptestConfig::default()
    })]

    /// No text causes a panic or a hang; accepted texts compile and can be parsed with.
    #[test]
    fn mutated_texts_never_panic_and_compile_if_accepted(
        base in 0..VALID.len(),
        edits in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                0usize..12,
                "[\\PC\n]{0,3}|[%/\"\\[\\]{}()<>~|&?*+:@=.-]{1,3}",
            ),
            0..6,
        ),
        other in 0..VALID.len(),
    ) {
        let mut chars: Vec<char> = VALID[base].chars().collect();
        for (at, removed, added) in edits {
            let at = at.index(chars.len() + 1);
            let end = (at + removed).min(chars.len());
            chars.splice(at..end, added.chars());
        }
        if base % 2 == 0 {
            let at = chars.len() / 2;
            chars.splice(at..at, VALID[other].chars());
        }
        let text: String = chars.into_iter().collect();
        let limits =
            Limits { automaton_states: 2_000, nodes: 20_000, depth: 40, ..Limits::default() };
        let g = NamedGrammar::Lark("start: @g | \"g\"".to_owned());
        let named = BTreeMap::from([("g".to_owned(), g)]);
        let options = LarkOptions { named, ..LarkOptions::default() };
        match lower(&text, &options, &limits) {
            Err(all) => prop_assert!(all.has_errors() && !all.to_string().is_empty()),
            Ok(lowered) => {
                if let Ok(compiled) = Compiled::new(&lowered.grammar, &limits) {
                    let compiled = std::sync::Arc::new(compiled);
                    let _ = Recognizer::with_limits(compiled, &limits).push(b"ab 12<function");
                }
            }
        }
    }
}

#[test]
fn one_mistake_is_one_message() {
    for (text, message) in [
        ("%import common.NUMBR\nstart: NUMBR\n", "`common` has no terminal `NUMBR`"),
        ("start: \"a\"\nstart: \"b\"\n", "`start` is defined twice"),
    ] {
        let messages = lower(text, &LarkOptions::default(), &Limits::default()).unwrap_err();
        let messages: Vec<&str> = messages.list().iter().map(|d| &*d.message).collect();
        assert_eq!(messages, [message], "{text}");
    }
}
