//! Operations on grammars against set operations on their sentences, by the oracle.

use std::collections::BTreeSet;

use louver::fsm::Dfa;
use louver::ir::{AlgebraError, Counted, Expr, Grammar, Graph, Homomorphism};
use louver::limits::Limits;
use louver::spec::json::Json;
use proptest::prelude::*;

use super::{Shown, WORK, config, generate};
use crate::harness::oracle::{Oracle, Symbol};

/// Longest sentences that are compared.
const LEN: usize = 4;

type Sentences = BTreeSet<Vec<u8>>;

/// The sentences of up to [`LEN`] letters; None past the oracle's budget.
fn sentences(grammar: &Grammar) -> Option<Sentences> {
    let mut oracle = Oracle::new(grammar);
    let mut out = Sentences::new();
    if !oracle.derives_something() {
        return Some(out);
    }
    let mut prefixes = vec![Vec::new()];
    while let Some(prefix) = prefixes.pop() {
        oracle.back_to(0);
        assert!(prefix.iter().all(|&b| oracle.push(Symbol::Byte(b))));
        if oracle.is_complete() {
            out.insert(prefix.clone());
        }
        for &letter in generate::LETTERS.iter().filter(|_| prefix.len() < LEN) {
            if oracle.push(Symbol::Byte(letter)) {
                oracle.back_to(prefix.len());
                prefixes.push([prefix.as_slice(), &[letter]].concat());
            }
        }
        if oracle.work() > WORK / 20 {
            return None;
        }
    }
    Some(out)
}

fn concat(a: &Sentences, b: &Sentences) -> Sentences {
    let all = a.iter().flat_map(|x| b.iter().map(move |y| [x.as_slice(), y].concat()));
    all.filter(|word| word.len() <= LEN).collect()
}

fn repeat(a: &Sentences, min: u32, max: Option<u32>) -> Sentences {
    let mut out = Sentences::new();
    let mut power = Sentences::from([Vec::new()]);
    // Beyond this many parts, further ones are empty, or the sentence is too long.
    for n in 0..=max.unwrap_or(u32::MAX).min(min + LEN as u32 + 1) {
        if n >= min {
            out.extend(power.iter().cloned());
        }
        power = concat(&power, a);
    }
    out
}

fn automaton() -> impl Strategy<Value = Dfa> {
    generate::automaton().prop_map(|expr| match expr {
        Expr::Automaton(dfa) => (*dfa).clone(),
        _ => unreachable!("an automaton"),
    })
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn grammar_operations_are_set_operations_on_sentences(
        Shown(a) in generate::byte_grammar().prop_map(Shown),
        Shown(b) in generate::byte_grammar().prop_map(Shown),
        min in 0u32..3,
        max in proptest::option::of(0u32..4),
    ) {
        let (Some(of_a), Some(of_b)) = (sentences(&a), sentences(&b)) else { return Ok(()) };
        let operations = [
            (Grammar::union(&[&a, &b]), of_a.union(&of_b).cloned().collect()),
            (Grammar::concat(&[&a, &b]), concat(&of_a, &of_b)),
            (a.star(), repeat(&of_a, 0, None)),
            (a.optional(), repeat(&of_a, 0, Some(1))),
            (a.repeat(min, max), repeat(&of_a, min, max)),
            (Grammar::union(&[]), Sentences::new()),
            (Grammar::concat(&[]), Sentences::from([Vec::new()])),
        ];
        for (grammar, want) in operations {
            prop_assert_eq!(grammar.validate(), Ok(()));
            let Some(got) = sentences(&grammar) else { continue };
            prop_assert_eq!(got, want, "of\n{}", grammar);
        }
    }

    #[test]
    fn intersections_have_the_sentences_of_both(
        Shown(grammar) in generate::byte_grammar().prop_map(Shown),
        dfa in automaton(),
        small in any::<bool>(),
    ) {
        let limits = Limits::default().with_nodes(if small { 300 } else { 20_000 });
        let both = match grammar.intersect(&dfa, &limits) {
            Ok(both) => both,
            Err(AlgebraError::Undefined { rule, what: "a tag dispatch" }) => {
                let has = grammar
                    .rules
                    .iter()
                    .any(|r| r.name == rule && format!("{:?}", r.body).contains("Dispatch"));
                prop_assert!(has, "no dispatch in {}", rule);
                return Ok(());
            }
            Err(AlgebraError::TooLarge { limit }) => {
                prop_assert_eq!(limit, limits.nodes);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert_eq!(both.validate(), Ok(()));
        let (Some(of_grammar), Some(of_both)) = (sentences(&grammar), sentences(&both)) else {
            return Ok(());
        };
        let want: Sentences =
            of_grammar.into_iter().filter(|w| dfa.accepts(w.iter().map(|&b| b.into()))).collect();
        prop_assert_eq!(of_both, want, "of\n{}", both);
    }

    /// Letters map to other letters: some to longer texts, some to the same, one to nothing. The
    /// image has exactly the mapped sentences.
    #[test]
    fn images_contain_the_mapped_sentences(
        Shown(grammar) in generate::byte_grammar().prop_map(Shown),
        images in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(generate::LETTERS), 0..3),
            1..4,
        ),
    ) {
        let image_of = |byte: u8| {
            generate::LETTERS.iter().position(|&l| l == byte).and_then(|k| images.get(k)).cloned()
        };
        let letters = Homomorphism::new(|byte| image_of(byte).unwrap_or_else(|| vec![byte]));
        let image = match grammar.image(&letters, &Limits::default()) {
            Ok(image) => image,
            Err(AlgebraError::Undefined { rule, what: "a tag dispatch" }) => {
                let has = grammar
                    .rules
                    .iter()
                    .any(|r| r.name == rule && format!("{:?}", r.body).contains("Dispatch"));
                prop_assert!(has, "no dispatch in {}", rule);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert_eq!(image.validate(), Ok(()));
        let (Some(of_grammar), Some(of_image)) = (sentences(&grammar), sentences(&image)) else {
            return Ok(());
        };
        // Short images of short sentences are in the image.
        for word in &of_grammar {
            let written = letters.apply(word);
            prop_assert!(
                written.len() > LEN || of_image.contains(&written),
                "{:?} of\n{}",
                written,
                image
            );
        }
        // Where no letter maps to nothing, there is nothing else.
        if maps_no_letter_to_nothing(&letters) {
            let want: Sentences = of_grammar
                .iter()
                .map(|word| letters.apply(word))
                .filter(|w| w.len() <= LEN)
                .collect();
            prop_assert_eq!(of_image, want, "of\n{}", image);
        }
    }
}

fn maps_no_letter_to_nothing(map: &Homomorphism) -> bool {
    generate::LETTERS.iter().all(|&letter| !map.image(letter).is_empty())
}

/// A text is a sentence exactly if its JSON encoding is in the image.
#[test]
fn json_string_encoding_is_an_image() {
    let limits = Limits::default();
    let json = Homomorphism::quoted(louver::spec::json::write_string);
    let grammars = [
        r#"root ::= [^a]{0,3} "\"\n" | "\x01" root?"#,
        r#"root ::= ("\\" | [\x00-\x1f"é-ü])* "end""#,
        "root ::= line{1,2}\nline ::= [^\\n]* \"\\n\"",
    ];
    let texts = [
        "",
        "\"\n",
        "bc\"\n",
        "\u{1}\u{1}",
        "\u{1}é\"\n",
        "\\\u{8}\t\u{1f}üéend",
        "end",
        "\\\\end",
        "a\n",
        "\n\n",
        "\u{7f}😀/\n\\\n",
        "x",
    ];
    let (mut taken, mut refused) = (0, 0);
    for source in grammars {
        let grammar = louver::front::ebnf::lower(source, &Default::default(), &limits)
            .expect("a grammar")
            .grammar;
        let image = grammar.image(&json, &limits).expect("an image");
        for text in texts {
            let mut quoted = String::new();
            louver::spec::json::write_string(&mut quoted, text);
            let written = &quoted.as_bytes()[1..quoted.len() - 1];
            assert_eq!(json.apply(text.as_bytes()), written);
            let is_sentence = recognizes(&grammar, text.as_bytes());
            assert_eq!(recognizes(&image, written), is_sentence, "{text:?} of {source}");
            // As it stands, a text is in the image only if it is the encoding of another one.
            let other = match Json::parse(&format!("\"{text}\""), &limits) {
                Ok(Json::String(other)) if json.apply(other.as_bytes()) == text.as_bytes() => {
                    Some(other)
                }
                _ => None,
            };
            let raw = other.is_some_and(|other| recognizes(&grammar, other.as_bytes()));
            assert_eq!(recognizes(&image, text.as_bytes()), raw, "{text:?} raw, of {source}");
            if is_sentence { taken += 1 } else { refused += 1 }
        }
    }
    assert!(taken >= 8 && refused >= 8, "{taken} and {refused}");
}

fn recognizes(grammar: &Grammar, text: &[u8]) -> bool {
    let mut oracle = Oracle::new(grammar);
    text.iter().all(|&byte| oracle.push(Symbol::Byte(byte))) && oracle.is_complete()
}

/// Special tokens, budgets, unique keys and large counts have no image. The error names the rule of
/// the former three. Unreachable rules do not matter.
#[test]
fn grammars_without_image_are_rejected_with_the_rule() {
    let (limits, json) =
        (Limits::default(), Homomorphism::quoted(louver::spec::json::write_string));
    let lower = |text: &str| {
        louver::front::ebnf::lower(text, &Default::default(), &limits).expect("a grammar").grammar
    };
    let budget = lower("root ::= part \npart[max_chars=3] ::= [a-z]*").image(&json, &limits);
    let undefined = |what| Err(AlgebraError::Undefined { rule: "part".into(), what });
    assert_eq!(budget, undefined("a budget"));
    let unique_key = lower("root ::= part \":1\" \npart[unique_key] ::= \"\\\"\" [a-z]* \"\\\"\"");
    let what = match unique_key.image(&json, &limits) {
        Err(AlgebraError::Undefined { rule, what }) if rule == "part" => what,
        other => panic!("{other:?}"),
    };
    assert!(what.starts_with("unique keys"), "{what}");
    let mut count = lower("root ::= \"a\"");
    let (ends, edges) = (vec![0], vec![(0, Expr::text("a"), 0)]);
    let graph = Graph { nodes: 1, start: 0, ends, edges };
    count.rules[0].body = Expr::Counted(Box::new(Counted { graph, min: 0, max: Some(1 << 18) }));
    let too_large = AlgebraError::TooLarge { limit: limits.nodes };
    assert_eq!(count.image(&json, &limits), Err(too_large));
    let special = lower("root ::= \"a\" part \npart ::= <x>");
    let special_token = "a special token, which is not a byte";
    assert_eq!(special.image(&json, &limits), undefined(special_token));
    let mut unmet = special.clone();
    unmet.start = louver::ids::RuleId::new(unmet.rules.len());
    unmet.rules.push(louver::ir::Rule {
        name: "start".into(),
        body: Expr::text("\n"),
        attributes: Default::default(),
    });
    let image = unmet.image(&json, &limits).expect("an image");
    assert!(recognizes(&image, b"\\n") && !recognizes(&image, b"\n"));
}

/// A language that counts, intersected with a long bounded repeat: only reachable pairs are made.
#[test]
fn intersections_with_counted_words_stay_small() {
    let text = "root ::= \"(\" root \")\" | [a-z]{0,60000}";
    let limits = Limits::default();
    let lowered =
        louver::front::ebnf::lower(text, &Default::default(), &limits).expect("a grammar");
    let even = Dfa::counted(&[(0, 255)], 0, None, 10).expect("small");
    let both = lowered.grammar.intersect(&even, &limits).expect("an intersection");
    assert!(both.rules.len() == 2 && both.to_string().len() < 200, "{both}");
    let special = louver::front::ebnf::lower("root ::= \"a\" <x>", &Default::default(), &limits)
        .expect("a grammar");
    assert!(matches!(
        special.grammar.intersect(&even, &limits),
        Err(AlgebraError::Undefined { what: "a special token, which is not a byte", .. })
    ));
    let budget =
        louver::front::ebnf::lower("root[max_chars=3] ::= [a-z]*", &Default::default(), &limits)
            .expect("a grammar");
    assert!(matches!(
        budget.grammar.intersect(&even, &limits),
        Err(AlgebraError::Undefined { what: "a budget", .. })
    ));
}
