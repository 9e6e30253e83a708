//! Compile, first mask, warm mask and advance, on a synthetic vocabulary of 64,000 tokens made here
//! (no files needed). Real tokenizers and real schemas: `louver bench`.

#![allow(missing_docs, reason = "criterion_group! makes a public function without documentation")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use louver::engine::{Constraint, Engine, EngineOptions};
use louver::front::ebnf::{self, EbnfOptions};
use louver::fsm::ByteSet;
use louver::ids::TokenId;
use louver::ir::{Expr, Grammar, GrammarBuilder};
use louver::limits::Limits;
use louver::vocab::Vocabulary;

const WIDTH: usize = 64_000;

/// Single bytes, JSON punctuation runs, and pseudo-words with and without a leading space.
fn vocabulary() -> Vocabulary {
    let syllables = [
        "an", "be", "co", "du", "er", "fi", "go", "he", "in", "ka", "lo", "mi", "no", "re", "st",
        "ti",
    ];
    let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    for p in [
        "\": ", "\", \"", "\": \"", "{\"", "\"}", "\"]", "[\"", "}}", "]}", "},", ", ", ": ",
        "\",", "  ", "\n  ",
    ] {
        tokens.push(p.as_bytes().to_vec());
    }
    let mut seed = 1u64;
    let mut known: std::collections::HashSet<Vec<u8>> = tokens.iter().cloned().collect();
    while tokens.len() < WIDTH - 1 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut rest = seed >> 20;
        let mut token = if rest & 1 == 1 { b" ".to_vec() } else { Vec::new() };
        for _ in 0..1 + (rest >> 1) % 4 {
            rest = rest.rotate_right(5);
            token.extend_from_slice(syllables[(rest % 16) as usize].as_bytes());
        }
        if known.insert(token.clone()) {
            tokens.push(token);
        } else {
            token.push(b'a' + (rest % 26) as u8);
            token.push(b'a' + (rest / 26 % 26) as u8);
            if known.insert(token.clone()) {
                tokens.push(token);
            }
        }
    }
    let mut builder = Vocabulary::builder(WIDTH);
    for (id, bytes) in tokens.iter().enumerate() {
        builder.token(id as u32, bytes);
    }
    builder.special(WIDTH as u32 - 1, "<|end|>").stop(WIDTH as u32 - 1);
    builder.build().expect("a valid vocabulary")
}

/// Any JSON value, whitespace bounded.
fn json() -> Grammar {
    let mut b = GrammarBuilder::new();
    let value = b.declare("value");
    let ws = Expr::repeat(Expr::class(ByteSet::from_bytes(b" \t\r\n")), 0, Some(40));
    let plain =
        Expr::class(ByteSet::from_bytes(b"\"\\").union(&ByteSet::range(0, 0x1f)).complement());
    let escape = Expr::seq([Expr::text("\\"), Expr::class(ByteSet::from_bytes(b"\"\\/bfnrt"))]);
    let chars = Expr::star(Expr::alt([plain, escape]));
    let string = b.rule("string", Expr::seq([Expr::text("\""), chars, Expr::text("\"")]));
    let digits = Expr::repeat(Expr::class(ByteSet::range(b'0', b'9')), 1, None);
    let number = b.rule("number", Expr::seq([Expr::optional(Expr::text("-")), digits]));
    let comma = Expr::seq([ws.clone(), Expr::text(","), ws.clone()]);
    let pair =
        Expr::seq([Expr::Ref(string), ws.clone(), Expr::text(":"), ws.clone(), Expr::Ref(value)]);
    let list = |item: Expr| {
        Expr::optional(Expr::seq([item.clone(), Expr::star(Expr::seq([comma.clone(), item]))]))
    };
    let wrap = |open, inner, close| {
        Expr::seq([Expr::text(open), ws.clone(), inner, ws.clone(), Expr::text(close)])
    };
    let object = b.rule("object", wrap("{", list(pair), "}"));
    let array = b.rule("array", wrap("[", list(Expr::Ref(value)), "]"));
    let literals = ["true", "false", "null"].map(Expr::text);
    let rules = [string, number, object, array].map(Expr::Ref);
    b.define(value, Expr::alt(rules.into_iter().chain(literals)));
    b.finish(value).expect("well formed")
}

const TEXT: &str = r#"{"name": "an end to it", "list": ["go", "be", {"deep": [1, 22, true]}], "text": "reason in mind\n"}"#;

fn walk(constraint: &Constraint, mask: &mut [u32]) -> usize {
    let mut matcher = constraint.matcher();
    for byte in TEXT.bytes() {
        matcher.fill_mask(mask);
        let token = TokenId::from_raw(u32::from(byte));
        assert!(louver::mask::bit(mask, token));
        matcher.advance(token).expect("allowed");
    }
    TEXT.len()
}

fn engine(c: &mut Criterion) {
    let vocab = Arc::new(vocabulary());
    let grammar = json();
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    c.bench_function("compile", |b| {
        b.iter(|| engine.compile(black_box(&grammar)).expect("compiles"))
    });
    let mut mask = vec![0; vocab.mask_words()];
    c.bench_function("first_pass_new_grammar", |b| {
        b.iter(|| walk(&engine.compile(&grammar).expect("compiles"), &mut mask));
    });
    let constraint = engine.compile(&grammar).expect("compiles");
    walk(&constraint, &mut mask);
    c.bench_function("warm_mask_and_advance_100_bytes", |b| {
        b.iter(|| walk(&constraint, &mut mask))
    });
    batch(c, &vocab);
    let source = vec![u32::MAX; vocab.mask_words()];
    c.bench_function("floor_copy_one_mask", |b| {
        b.iter(|| mask.copy_from_slice(black_box(&source)))
    });
}

/// 512 sequences on 20 grammars, at as many places as the text has, all masks known.
fn batch(c: &mut Criterion, vocab: &Arc<Vocabulary>) {
    let parallel = EngineOptions::default().with_batch_threads(2);
    let alone = EngineOptions::default().with_batch_threads(1);
    for (name, options) in
        [("batch_512_on_20_two_threads", parallel), ("batch_512_on_20_one_thread", alone)]
    {
        let engine = Engine::new(vocab.clone(), options);
        let constraints: Vec<Constraint> =
            (0..20).map(|_| engine.compile(json()).expect("compiles")).collect();
        let matcher = |i: usize| {
            let mut matcher = constraints[i % 20].matcher();
            for byte in TEXT.bytes().take(i / 5) {
                matcher.advance(TokenId::from_raw(u32::from(byte))).expect("allowed");
            }
            matcher
        };
        let mut matchers: Vec<_> = (0..512).map(matcher).collect();
        let mut masks = vec![0; 512 * vocab.mask_words()];
        let mut fill = || engine.fill_masks(&mut matchers, &mut masks).expect("fits");
        fill();
        c.bench_function(name, |b| b.iter(&mut fill));
        let mut unique = Vec::new();
        let mut fill = || engine.fill_masks_unique(&mut matchers, &mut unique).expect("fits");
        c.bench_function(&format!("{name}_unique"), |b| b.iter(&mut fill));
    }
}

/// Reading grammars: 3,000 rules of every common kind of expression, and two of languages.
fn ebnf(c: &mut Criterion) {
    let rule = |i: usize| {
        format!(
            "rule-{i} ::= \"word{i}\" ws (rule-{} | [a-zA-Z_] [a-zA-Z0-9_]{{0,63}} | \"(\" rule-{} (\",\" ws rule-{})* \")\")? # {i}\n",
            (i * 7 + 1) % 3_000,
            (i + 1) % 3_000,
            (i * 3) % 3_000,
        )
    };
    let rules: String = (0..3_000).map(rule).collect();
    let texts = [
        ("ebnf_3000_rules", format!("root ::= ws rule-0\nws ::= [ \\t\\n]*\n{rules}")),
        ("ebnf_c_subset", include_str!("../tests/data/ebnf/c_subset.ebnf").to_owned()),
        ("ebnf_sql_select", include_str!("../tests/data/ebnf/sql_select.ebnf").to_owned()),
    ];
    let (options, limits) = (EbnfOptions::default(), Limits::default());
    for (name, text) in texts {
        c.bench_function(name, |b| {
            b.iter(|| ebnf::lower(black_box(&text), &options, &limits).expect("a grammar"))
        });
    }
}

criterion_group!(benches, engine, ebnf);
criterion_main!(benches);
