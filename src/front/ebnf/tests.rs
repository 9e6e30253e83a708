//! Tests of the EBNF front end beyond `tests/data`: tokens, attributes, positions of errors,
//! limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{EbnfDialect, EbnfOptions, lower};
use crate::front::LoweredGrammar;
use crate::front::diagnostic::Diagnostics;
use crate::ids::SpecialId;
use crate::ir::{Attributes, Budget, BudgetPolicy, Expr, Grammar, SpecialToken};
use crate::limits::Limits;

fn parse(text: &str) -> Result<LoweredGrammar, Diagnostics> {
    lower(text, &EbnfOptions::default(), &Limits::default())
}

fn grammar(text: &str) -> Grammar {
    parse(text).unwrap_or_else(|e| panic!("{e}")).grammar
}

/// Messages with their lines and columns.
fn messages(diagnostics: &Diagnostics) -> Vec<String> {
    let shown = |d: &crate::front::diagnostic::Diagnostic| {
        let (line, column) = diagnostics.place(d.span.start);
        format!("{line}:{column} {}", d.message)
    };
    diagnostics.list().iter().map(shown).collect()
}

#[test]
fn tokens_are_parsed_by_text_id_and_exclusion() {
    let parse = grammar(
        r#"root ::= <|im_end|> <[1000]> !<think> !<[7]> Token(3, "a", <b>)
           ExcludeToken(4) Token(5) <|im_end|>"#,
    );
    let name = |text: &str| SpecialToken::Name(text.to_owned());
    let want = [
        name("<|im_end|>"),
        SpecialToken::Id(1000),
        SpecialToken::AnyBut(vec![name("<think>")]),
        SpecialToken::AnyBut(vec![SpecialToken::Id(7)]),
        SpecialToken::AnyOf(vec![SpecialToken::Id(3), name("a"), name("<b>")]),
        SpecialToken::AnyBut(vec![SpecialToken::Id(4)]),
        SpecialToken::Id(5),
    ];
    assert_eq!(parse.specials, want);
    let ids = [0, 1, 2, 3, 4, 5, 6, 0].map(|i| Expr::Special(SpecialId::new(i)));
    assert_eq!(parse.rules[0].body, Expr::Seq(ids.to_vec()));
}

#[test]
fn member_sets_parse_and_print() {
    let text = "root ::= Members(\", \"?, required(\"a\" x), optional(x), \
                repeated(\"c\" | \"d\"), min=1, max=3)\nx ::= \"y\"\n";
    assert_eq!(grammar(text).to_string(), text);
    assert_eq!(grammar("root ::= Members( \",\" )").to_string(), "root ::= Members(\",\")\n");
    for wrong in [
        "root ::= Members(\",\", \"a\")",
        "root ::= Members(\",\", min=x)",
        "root ::= Members(\",\", required(\"a\"",
        "root ::= Members(\",\" required(\"a\"))",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    let many = "optional(\"a\"), ".repeat(100);
    assert!(parse(&format!("root ::= Members(\",\", {many}min=1)")).is_ok());
}

#[test]
fn token_dispatches_lower_to_free_tokens_and_triggers() {
    let looped = grammar("root ::= TokenTagDispatch((5, a), (<b>, a), excludes=(9,))\na ::= \"x\"");
    assert_eq!(
        looped.to_string(),
        "root ::= (ExcludeToken(<[5]>, <b>, <[9]>) | <[5]> a | <b> a)*\na ::= \"x\"\n"
    );
    let once = grammar("root ::= TokenTagDispatch((5, a), loop_after_dispatch=false)\na ::= \"x\"");
    assert_eq!(once.to_string(), "root ::= ExcludeToken(<[5]>)* (<[5]> a)?\na ::= \"x\"\n");
    assert!(parse("root ::= TokenTagDispatch((5, root), excludes=(5,))").is_err());
}

#[test]
fn rule_options_become_attributes() {
    let parse = grammar(
        "root[capture] ::= a b c\na[capture=\"x y\", temperature=0.25, max_tokens=3] ::= \"a\"\n\
         b [ max_chars = 7 , on_exhausted = cut, label=4 ] ::= \"b\"\n\
         c[max_tokens=0,max_chars=1,] ::= \"c\"",
    );
    let attributes: Vec<Attributes> =
        parse.rules.iter().map(|rule| rule.attributes.clone()).collect();
    let budget = |tokens, chars, on_exhausted| Some(Budget { tokens, chars, on_exhausted });
    assert_eq!(attributes[0], Attributes { capture: Some("root".into()), ..Attributes::default() });
    let a = &attributes[1];
    assert_eq!((a.capture.as_deref(), a.temperature), (Some("x y"), Some(0.25)));
    assert_eq!(a.budget, budget(Some(3), None, BudgetPolicy::Finish));
    assert_eq!(attributes[2].budget, budget(None, Some(7), BudgetPolicy::Cut));
    assert_eq!(attributes[2].label.map(|l| l.raw()), Some(4));
    assert_eq!(attributes[3].budget, budget(Some(0), Some(1), BudgetPolicy::Finish));
}

#[test]
fn options_without_effect_cause_warnings() {
    let parse = parse("root[capture_hidden_suffix_bytes=3, stop_capture=\"m\"] ::= \"a\"")
        .expect("a grammar");
    let want = [
        "1:6 the option `capture_hidden_suffix_bytes` has no effect",
        "1:37 the option `stop_capture` has no effect",
    ];
    assert_eq!(messages(&parse.warnings), want);
}

#[test]
fn all_errors_of_a_text_are_reported_at_once() {
    let text = "root ::= a | \"\\q\" [z-a] [\\d]\n\
                a ::= (\"x\"\n\
                a ::= \"b\" missing\n\
                c = \"d\"\n\
                d[lasy] ::= \"e\"{4,2}\n\
                e ::= Regex(\"(\") @unknown\n\
                f ::= \"unfinished\n\
                h ::= a broken unknown\n\
                broken ::= )\n\
                g ::= TagDispatch((\"t\", nowhere), (\"\", root))\n";
    let want = [
        "1:15 unknown escape `\\q`",
        "2:7 a `(` without end",
        "4:3 unexpected `=`",
        "5:3 there is no option `lasy`",
        "6:14 invalid pattern at offset 0: unclosed group",
        "6:18 there is no grammar `unknown`",
        "7:7 a string without end",
        "8:16 there is no rule `unknown`",
        "9:12 a `)` without its `(`",
        "10:36 a string does not fit here",
    ];
    assert_eq!(messages(&parse(text).unwrap_err()), want);
}

#[test]
fn imported_grammars_become_rules() {
    let number = Arc::new(grammar("root ::= [0-9]+ unit\nunit ::= \"%\""));
    let options = EbnfOptions {
        grammars: BTreeMap::from([("number".to_owned(), number)]),
        ..EbnfOptions::default()
    };
    let parse = lower("root ::= @number (\",\" @number)*", &options, &Limits::default())
        .expect("a grammar")
        .grammar;
    assert_eq!(
        parse.to_string(),
        "root-0[start] ::= root-1 (\",\" root-1)*\nroot-1 ::= [0-9]+ unit\nunit ::= \"%\"\n"
    );
}

#[test]
fn start_rule_is_selected_by_name_or_option() {
    let options = EbnfOptions { root: "start".to_owned(), ..EbnfOptions::default() };
    let parse =
        lower("a ::= \"a\"\nstart ::= a", &options, &Limits::default()).expect("a grammar").grammar;
    assert_eq!(parse.start.index(), 1);
    assert_eq!(grammar("a ::= \"a\"\nb[start] ::= a\nroot ::= b").start.index(), 1);
}

#[test]
fn exceeded_limits_are_errors_with_positions() {
    let small = Limits {
        source_bytes: 100,
        depth: 10,
        nodes: 20,
        automaton_states: 50,
        ..Limits::default()
    };
    let parse = |text: &str| lower(text, &EbnfOptions::default(), &small);
    let nested = |n: usize| format!("root ::= {}\"a\"{}", "(".repeat(n), ")".repeat(n));
    assert!(parse(&nested(9)).is_ok());
    assert_eq!(messages(&parse(&nested(10)).unwrap_err()), ["1:20 nested more than 10 deep"]);
    let error = parse(&format!("root ::= {}", "\"a\"".repeat(25))).unwrap_err();
    assert_eq!(messages(&error), ["1:70 the grammar has more than 20 expressions"]);
    assert!(parse(&" ".repeat(101)).unwrap_err().to_string().contains("101 bytes"));
    assert!(parse("root ::= except!(\"ab\", 200)").unwrap_err().to_string().contains("50 states"));
    let watching = Limits { dispatch_bytes: 8, ..small.clone() };
    let read_watching = |text: &str| lower(text, &EbnfOptions::default(), &watching);
    assert!(read_watching("root ::= TagDispatch(stops=(\"abcdef\",), excludes=(\"xy\",))").is_ok());
    let error = read_watching("root ::= TagDispatch(stops=(\"abcdef\",), excludes=(\"xyz\",))")
        .unwrap_err();
    assert_eq!(messages(&error), ["1:10 the triggers, stops and excludes have more than 8 bytes"]);
    let error = parse("root ::= \"a\"{2000000000}").unwrap_err();
    assert_eq!(messages(&error), ["1:13 the least count is too large"]);
    assert!(parse("root[lazy] ::= \"a\"{200}").unwrap_err().to_string().contains("cannot be lazy"));
    // Recursion is bounded, regardless of the limits.
    let wide = Limits { depth: usize::MAX, nodes: usize::MAX, ..Limits::default() };
    for text in [
        nested(100_000),
        format!("root ::= \"a\"{}", "?".repeat(100_000)),
        format!("root ::= TagDispatch({}", "(".repeat(100_000)),
    ] {
        for dialect in [EbnfDialect::Common, EbnfDialect::Gbnf] {
            let options = EbnfOptions { dialect, ..EbnfOptions::default() };
            assert!(lower(&text, &options, &wide).is_err());
        }
    }
}

/// Texts of some hundred kilobytes of any one construct are parsed in linear time.
#[test]
fn long_texts_are_read_in_linear_time() {
    let n = 40_000;
    let rules: String =
        (0..n / 4).map(|i| format!("r{i} ::= \"a\" r{} | \"b\"\n", (i + 1) % (n / 4))).collect();
    let texts = [
        (format!("root ::= r0\n{rules}"), true),
        (format!("root ::= {}", "\"a\" | ".repeat(n)), true),
        (format!("root ::= [{}]", "a-c".repeat(n)), true),
        (format!("root ::= Substring({})", "\"ab\", \"a\", ".repeat(n)), true),
        ("root[\n".repeat(n), false),
        ("`a\\`".repeat(n), false),
        ("a[\"\n".repeat(n), false),
        ("root ::= (\n".repeat(n), false),
        ("root ::= nothing\n".repeat(n), false),
        ("(* ".repeat(n), false),
        (format!("root ::= {}", "#\"".repeat(n)), false),
        (format!("root ::= {}", "< ".repeat(n)), false),
    ];
    for (text, fine) in texts {
        let parse = parse(&text);
        assert_eq!(parse.is_ok(), fine, "{:?}", text.get(..40));
    }
}

/// Grammars of C and SQL with hundreds of rules have neither errors nor warnings, and their printed
/// form parses back to the same grammar.
#[test]
fn language_grammars_lower_without_warnings_and_print_back() {
    for text in [
        include_str!("../../../tests/data/ebnf/c_subset.ebnf"),
        include_str!("../../../tests/data/ebnf/sql_select.ebnf"),
    ] {
        let lowered = parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert!(lowered.grammar.rules.len() > 150);
        assert!(lowered.warnings.is_empty(), "{}", lowered.warnings);
        assert_eq!(grammar(&lowered.grammar.to_string()), lowered.grammar);
    }
}
