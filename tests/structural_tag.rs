//! Structural tags: documents, formats over tokens, and defects known from another engine.

mod documents;
pub(crate) mod meaning;

use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions, StructuralTagCompileError};
use louver::front::structural_tag::StructuralTagOptions;
use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use serde_json::{Value, json};

use self::documents::recorded_if_present;

/// The 256 bytes, a stop token (256), special tokens `<x>`, `<y>`, `<z>` (257 to 259), the words
/// `</x>` and `aX` (260, 261).
fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = Vocabulary::builder(262);
    for byte in 0..=255u8 {
        builder.token(u32::from(byte), &[byte]);
    }
    builder.special(256, "<|end|>").stop(256);
    builder.special(257, "<x>").special(258, "<y>").special(259, "<z>");
    builder.token(260, b"</x>").token(261, b"aX");
    Arc::new(builder.build().expect("a vocabulary"))
}

fn compile(format: &Value) -> Result<Constraint, StructuralTagCompileError> {
    let engine = Engine::new(vocabulary(), EngineOptions::default());
    engine.compile_structural_tag(
        &json!({"format": format}).to_string(),
        &StructuralTagOptions::default(),
    )
}

/// Whether the tokens are a complete answer. Checks at every step that the mask agrees with
/// `advance`.
fn accepts(constraint: &Constraint, tokens: &[u32]) -> bool {
    let mut matcher = constraint.matcher();
    let mut mask = vec![0u32; constraint.vocab().mask_words()];
    for &token in tokens {
        matcher.fill_mask(&mut mask);
        let allowed = mask[token as usize / 32] >> (token % 32) & 1 == 1;
        assert_eq!(
            matcher.advance(TokenId::from_raw(token)).is_ok(),
            allowed,
            "{token} of {tokens:?}"
        );
        if !allowed {
            return false;
        }
    }
    matcher.is_complete()
}

fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// Masks of a chain of rules, one for each level of precedence, are costly.
#[test]
fn grammars_are_simplified() {
    for (syntax, grammar) in [
        ("ebnf", "root ::= sum\nsum ::= product | sum \"+\" product\nproduct ::= \"x\"\n"),
        ("lark", "start: sum\nsum: product | sum \"+\" product\nproduct: \"x\"\n"),
    ] {
        let format = json!({"type": "grammar", "syntax": syntax, "grammar": grammar});
        let constraint = compile(&format).expect("a grammar");
        let names: Vec<&str> =
            constraint.compiled().grammar().rules.iter().map(|rule| &*rule.name).collect();
        assert!(!names.contains(&"product"), "{syntax}: {names:?}");
        assert!(accepts(&constraint, &bytes("x+x+x")) && !accepts(&constraint, &bytes("x+")));
    }
}

#[test]
fn recorded_documents_compile_if_present() {
    let documents: Vec<Value> = recorded_if_present();
    let engine = Engine::new(vocabulary(), EngineOptions::default());
    for document in &documents {
        let constraint =
            engine.compile_structural_tag(&document.to_string(), &StructuralTagOptions::default());
        let mut matcher = constraint.unwrap_or_else(|e| panic!("{document}: {e}")).matcher();
        let mut mask = vec![0u32; engine.vocab().mask_words()];
        matcher.fill_mask(&mut mask);
        assert!(mask.iter().any(|&word| word != 0), "{document}");
    }
    println!("{} documents", documents.len());
}

#[test]
fn token_formats_match_whole_tokens() {
    let token = |token: Value| json!({"type": "token", "token": token});
    let one = compile(&token(json!("<x>"))).expect("compiles");
    assert!(accepts(&one, &[257]) && !accepts(&one, &[258]) && !accepts(&one, &bytes("<x>")));
    // An ordinary token by its id: other tokens with the same bytes do not match.
    let word = compile(&token(json!(261))).expect("compiles");
    assert!(accepts(&word, &[261]) && !accepts(&word, &bytes("aX")));
    assert!(compile(&token(json!("<none>"))).is_err() && compile(&token(json!(9_999))).is_err());

    let but = compile(&json!({"type": "exclude_token", "exclude_tokens": ["<x>", 97]}))
        .expect("compiles");
    assert!(
        accepts(&but, &[258])
            && accepts(&but, &[98])
            && !accepts(&but, &[257])
            && !accepts(&but, &[97])
    );
    assert!(!accepts(&but, &[98, 98]) && !accepts(&but, &[256]));

    let some = compile(&json!({"type": "any_tokens", "exclude_tokens": ["<x>"], "max_tokens": 2}))
        .expect("compiles");
    assert!(
        accepts(&some, &[])
            && accepts(&some, &[258, 261])
            && !accepts(&some, &[257])
            && !accepts(&some, &[1, 2, 3])
    );
}

#[test]
fn text_budgets_end_free_text() {
    let text = |more: Value| {
        let mut text = json!({"type": "any_text"});
        text.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        compile(&json!({"begin": "(", "content": text, "end": ")"})).expect("compiles")
    };
    let mut mask = vec![0u32; vocabulary().mask_words()];
    for budget in [
        json!({"max_tokens": 2}),
        json!({"max_chars": 2}),
        json!({"max_tokens": 2, "excludes": ["z"]}),
    ] {
        let constraint = text(budget.clone());
        assert!(
            accepts(&constraint, &bytes("()")) && accepts(&constraint, &bytes("(ab)")),
            "{budget}"
        );
        assert!(!accepts(&constraint, &bytes("(abc)")), "{budget}");
        // Only the end of the tag may follow.
        let mut matcher = constraint.matcher();
        for token in bytes("(ab") {
            matcher.advance(TokenId::from_raw(token)).expect("is allowed");
        }
        matcher.fill_mask(&mut mask);
        assert_eq!(mask.iter().map(|word| word.count_ones()).sum::<u32>(), 1, "{budget}");
        assert_eq!(mask[1] >> (u32::from(b')') - 32) & 1, 1);
    }
    // `max_tokens` counts tokens, `max_chars` their code points.
    let word = 261;
    assert!(accepts(&text(json!({"max_tokens": 2})), &[40, word, word, 41]));
    assert!(!accepts(&text(json!({"max_chars": 2})), &[40, word, word, 41]));
    assert!(
        accepts(&text(json!({"max_chars": 1})), &bytes("(é)"))
            && !accepts(&text(json!({"max_chars": 1})), &bytes("(éa)"))
    );
    let plain = compile(&json!({"type": "any_text", "max_tokens": 1})).expect("compiles");
    assert!(accepts(&plain, &[word]) && !accepts(&plain, &[97, 97]));
}

#[test]
fn tags_with_token_markers_and_triggers() {
    let tag = |begin: Value, end: Value, content: Value| {
        json!({"begin": {"type": "token",
        "token": begin}, "content": content, "end": end})
    };
    let y = json!({"type": "token", "token": "<y>"});
    let inner =
        compile(&tag(json!("<x>"), y.clone(), json!({"type": "any_tokens"}))).expect("compiles");
    // The token that ends the tag is not a free token.
    assert!(accepts(&inner, &[257, 97, 259, 258]) && accepts(&inner, &[257, 258]));
    assert!(!accepts(&inner, &[257, 258, 258]) && !accepts(&inner, &[257, 97]));

    let content = json!({"type": "const_string", "value": "a"});
    let tags = json!([
        tag(json!("<x>"), y.clone(), content.clone()),
        tag(json!(259), json!("!"), content)
    ]);
    let format = |least: bool, stop: bool| {
        json!({"type": "token_triggered_tags", "trigger_tokens": ["<x>", 259], "tags": tags,
            "exclude_tokens": [98],
            "at_least_one": least, "stop_after_first": stop})
    };
    let first = [257, 97, 258];
    let second = [259, 97, 33];
    let (free, both) = ([&[99], &first[..]].concat(), [&first[..], &[99], &second[..]].concat());
    for (least, stop, want) in [
        (false, false, [true, true, true, true]),
        (true, false, [false, true, false, true]),
        (false, true, [true, true, true, false]),
        (true, true, [false, true, false, false]),
    ] {
        let constraint = compile(&format(least, stop)).expect("compiles");
        let got = [
            accepts(&constraint, &[]),
            accepts(&constraint, &first),
            accepts(&constraint, &free),
            accepts(&constraint, &both),
        ];
        assert_eq!(got, want, "{least} {stop}");
        // Rejected: an excluded token, and a trigger without its tag.
        assert!(!accepts(&constraint, &[98]) && !accepts(&constraint, &[257]));
    }
    for (loops, twice) in [(true, true), (false, false)] {
        let rules = json!([["<x>", {"type": "const_string", "value": "a"}], [259,
            {"type": "regex", "pattern": "[0-9]"}]]);
        let format = json!({"type": "token_dispatch", "rules": rules, "loop": loops,
            "exclude_tokens": [98]});
        let constraint = compile(&format).expect("compiles");
        assert!(
            accepts(&constraint, &[])
                && accepts(&constraint, &[99, 257, 97])
                && !accepts(&constraint, &[257, 98])
        );
        assert!(!accepts(&constraint, &[98]));
        assert_eq!(accepts(&constraint, &[257, 97, 259, 48]), twice);
    }
}

#[test]
fn special_tokens_in_markers_match_as_token_or_text() {
    let any = json!({"type": "any_text"});
    let tag = compile(&json!({"begin": "a<x>b", "content": any, "end": "<y>!"})).expect("compiles");
    // A special token in a marker matches as the token or as text; free text contains none.
    assert!(accepts(&tag, &[97, 257, 98, 99, 258, 33]));
    assert!(accepts(&tag, &bytes("a<x>bc<y>!")) && accepts(&tag, &bytes("a<x>b<x><y>!")));
    assert!(
        !accepts(&tag, &[97, 257, 98, 257, 258, 33]) && !accepts(&tag, &[97, 257, 98, 258, 34])
    );
    let content = json!({"type": "const_string", "value": "1"});
    let format = json!({"type": "triggered_tags", "triggers": ["<x>a"],
        "tags": [{"begin": "<x>ab", "content": content, "end": "</x>"}]});
    let tags = compile(&format).expect("compiles");
    let call = [&[99, 257][..], &bytes("ab1</x>d")].concat();
    assert!(
        accepts(&tags, &call)
            && accepts(&tags, &bytes("c<x>ab1</x>d"))
            && accepts(&tags, &[&bytes("<x>ab1")[..], &[260]].concat())
    );
    assert!(!accepts(&tags, &[257, 99]) && !accepts(&tags, &[258]));
}

/// A special token may occur anywhere in the beginning of a triggered tag: after the trigger,
/// inside it, and across the end of the trigger.
#[test]
fn special_tokens_at_any_position_of_a_trigger() {
    let content = json!({"type": "const_string", "value": "1"});
    let [x, y] = [257, 258].map(|token| vec![token]);
    for (at_least_one, trigger) in [false, true].into_iter().flat_map(|one| {
        ["a", "a<", "a<x", "a<x>", "a<x>b", "a<x>b<", "a<x>b<y>"].map(|trigger| (one, trigger))
    }) {
        let tag = json!({"begin": "a<x>b<y>c", "content": content, "end": "."});
        let format = json!({"type": "triggered_tags", "triggers": [trigger], "tags": [tag],
            "at_least_one": at_least_one});
        let tags = compile(&format).expect("compiles");
        for (first, second) in
            [(&x, &y), (&x, &bytes("<y>")), (&bytes("<x>"), &y), (&bytes("<x>"), &bytes("<y>"))]
        {
            let call = [&bytes("a")[..], first, &bytes("b"), second, &bytes("c1.")].concat();
            assert!(accepts(&tags, &call), "{trigger} {call:?}");
            assert!(
                accepts(&tags, &[&call[..], &bytes("de"), &call, &bytes("f")].concat()),
                "{trigger} {call:?}"
            );
            assert_eq!(accepts(&tags, &[&bytes("d")[..], &call].concat()), !at_least_one);
            // Rejected: the other token, or other text after it.
            let wrong = [&bytes("a")[..], second, &bytes("b"), first, &bytes("c1.")].concat();
            assert!(
                !accepts(&tags, &wrong) || second == &bytes("<y>") && trigger.len() > 1,
                "{trigger} {wrong:?}"
            );
            let wrong = [&bytes("a")[..], first, &bytes("b"), second, &bytes("c2.")].concat();
            assert!(!accepts(&tags, &wrong), "{trigger} {wrong:?}");
        }
        assert!(
            !accepts(&tags, &[97, 258]) && !accepts(&tags, &[97, 257]) && !accepts(&tags, &[257])
        );
        // A text that only begins like the tag is free text.
        assert_eq!(accepts(&tags, &bytes("b<x")), !at_least_one);
    }
}

/// Regression tests for defects known from another engine.
#[test]
fn defects_of_another_engine_are_absent() {
    let dispatch = |rules: Value| json!({"type": "dispatch", "rules": rules});
    let text = |value: &str| json!({"type": "const_string", "value": value});
    // A trigger that is a suffix of a prefix of another trigger fires.
    let suffix =
        compile(&dispatch(json!([["bc", text("1")], ["abcd", text("2")]]))).expect("compiles");
    assert!(
        accepts(&suffix, &bytes("abc1"))
            && accepts(&suffix, &bytes("abbc1"))
            && !accepts(&suffix, &bytes("abce"))
    );
    let excludes = json!({"type": "any_text", "excludes": ["bc", "abcd"]});
    let excludes = compile(&excludes).expect("compiles");
    assert!(!accepts(&excludes, &bytes("abc")) && accepts(&excludes, &bytes("ab")));
    // Tokens by name inside `repeat`.
    let x = json!({"type": "token", "token": "<x>"});
    let repeat =
        compile(&json!({"type": "repeat", "min": 2, "max": 3, "content": x})).expect("compiles");
    assert!(
        !accepts(&repeat, &[257]) && accepts(&repeat, &[257, 257]) && !accepts(&repeat, &[257; 4])
    );
    // The same content in tags with different ends.
    let tag = |end: &str| {
        json!({"begin": "(", "content": {"type": "any_tokens"},
        "end": {"type": "token", "token": end}})
    };
    let ends = compile(&json!({"type": "sequence", "elements": [tag("<x>"), tag("<y>")]}))
        .expect("compiles");
    assert!(
        accepts(&ends, &[40, 258, 257, 40, 257, 258]) && !accepts(&ends, &[40, 257, 40, 258, 258])
    );
    // Two grammars of one engine that differ only in a token.
    let engine = Engine::new(vocabulary(), EngineOptions::default());
    for token in [97, 98, 257, 258] {
        for kind in ["token", "exclude"] {
            let format = match kind {
                "token" => json!({"type": "token", "token": token}),
                _ => json!({"type": "exclude_token", "exclude_tokens": [token]}),
            };
            let document = json!({"format": format}).to_string();
            let constraint = engine
                .compile_structural_tag(&document, &StructuralTagOptions::default())
                .expect("compiles");
            for other in [97, 98, 257, 258] {
                assert_eq!(
                    accepts(&constraint, &[other]),
                    (other == token) == (kind == "token"),
                    "{kind} {token} {other}"
                );
            }
        }
    }
    // A string with a length or a pattern does not contain the marker that ends it.
    for keyword in [
        json!({"minLength": 2}),
        json!({"pattern": "^.*$"}),
        json!({"pattern": "k"}),
        json!({"maxLength": 90}),
    ] {
        let mut schema = keyword.clone();
        schema["type"] = json!("string");
        let schema = json!({"type": "object", "properties": {"k": schema}, "required": ["k"]});
        let format = json!({"type": "json_schema", "json_schema": schema, "style": "qwen_xml"});
        let constraint = compile(&format).expect("compiles");
        assert!(accepts(&constraint, &bytes("<parameter=k>ok</parameter>")), "{keyword}");
        assert!(
            !accepts(&constraint, &bytes("<parameter=k>ok</parameter>k</parameter>")),
            "{keyword}"
        );
    }
}
