//! What the levels of simplification cost, and what they save on grammars written as people write
//! them: many small rules, copies, long lists of literals. For grammars of JSON Schemas:
//! `cargo run --release --example simplify_sweep`.

#![allow(missing_docs, reason = "criterion_group! makes a public function without documentation")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use louver::compile::Compiled;
use louver::fsm::ByteSet;
use louver::ir::{Expr, Grammar, GrammarBuilder, Simplify};
use louver::limits::Limits;
use louver::matcher::Recognizer;

const LEVELS: [Simplify; 3] = [Simplify::Off, Simplify::Cheap, Simplify::Full];

/// JSON with a rule for every notion, as grammar files write it.
fn json() -> Grammar {
    let mut b = GrammarBuilder::new();
    let value = b.declare("value");
    let class = |set| Expr::class(set);
    let space = b.rule("space", Expr::star(class(ByteSet::from_bytes(b" \t\r\n"))));
    let digit = b.rule("digit", class(ByteSet::range(b'0', b'9')));
    let one_nine = b.rule("onenine", class(ByteSet::range(b'1', b'9')));
    let digits = b.rule("digits", Expr::repeat(Expr::Ref(digit), 1, None));
    let sign = b.rule("sign", Expr::alt([Expr::Empty, Expr::text("+"), Expr::text("-")]));
    let minus = b.rule("minus", Expr::optional(Expr::text("-")));
    let large = Expr::seq([Expr::Ref(one_nine), Expr::Ref(digits)]);
    let unsigned = b.rule("unsigned", Expr::alt([Expr::Ref(digit), large]));
    let integer = b.rule("integer", Expr::seq([Expr::Ref(minus), Expr::Ref(unsigned)]));
    let fraction = b.rule(
        "fraction",
        Expr::alt([Expr::Empty, Expr::seq([Expr::text("."), Expr::Ref(digits)])]),
    );
    let e = b.rule("e", Expr::alt([Expr::text("e"), Expr::text("E")]));
    let tail = Expr::seq([Expr::Ref(e), Expr::Ref(sign), Expr::Ref(digits)]);
    let exponent = b.rule("exponent", Expr::alt([Expr::Empty, tail]));
    let number = b.rule("number", Expr::seq([integer, fraction, exponent].map(Expr::Ref)));
    let letters = class(ByteSet::range(b'a', b'f').union(&ByteSet::range(b'A', b'F')));
    let hex = b.rule("hex", Expr::alt([Expr::Ref(digit), letters]));
    let unicode = Expr::seq([
        Expr::text("u"),
        Expr::Ref(hex),
        Expr::Ref(hex),
        Expr::Ref(hex),
        Expr::Ref(hex),
    ]);
    let named = b"\"\\/bfnrt".iter().map(|byte| Expr::bytes(&[*byte]));
    let escape = b.rule("escape", Expr::alt(named.chain([unicode])));
    let plain = class(ByteSet::from_bytes(b"\"\\").union(&ByteSet::range(0, 0x1f)).complement());
    let character =
        b.rule("character", Expr::alt([plain, Expr::seq([Expr::text("\\"), Expr::Ref(escape)])]));
    let characters = b.declare("characters");
    b.define(
        characters,
        Expr::alt([Expr::Empty, Expr::seq([Expr::Ref(character), Expr::Ref(characters)])]),
    );
    let string =
        b.rule("string", Expr::seq([Expr::text("\""), Expr::Ref(characters), Expr::text("\"")]));
    let element =
        b.rule("element", Expr::seq([Expr::Ref(space), Expr::Ref(value), Expr::Ref(space)]));
    let elements = b.declare("elements");
    let more = Expr::seq([Expr::Ref(element), Expr::text(","), Expr::Ref(elements)]);
    b.define(elements, Expr::alt([Expr::Ref(element), more]));
    let name = Expr::seq([Expr::Ref(space), Expr::Ref(string), Expr::Ref(space), Expr::text(":")]);
    let member = b.rule("member", Expr::seq([name, Expr::Ref(element)]));
    let members = b.declare("members");
    let more = Expr::seq([Expr::Ref(member), Expr::text(","), Expr::Ref(members)]);
    b.define(members, Expr::alt([Expr::Ref(member), more]));
    let mut wrap = |name: &str, open: &str, inner, close: &str| {
        let empty = Expr::seq([Expr::text(open), Expr::Ref(space), Expr::text(close)]);
        b.rule(
            name,
            Expr::alt([empty, Expr::seq([Expr::text(open), Expr::Ref(inner), Expr::text(close)])]),
        )
    };
    let (object, array) = (wrap("object", "{", members, "}"), wrap("array", "[", elements, "]"));
    let rules = [object, array, string, number].map(Expr::Ref);
    b.define(value, Expr::alt(rules.into_iter().chain(["true", "false", "null"].map(Expr::text))));
    b.finish(element).expect("valid")
}

/// A statement of one of 2,000 names, as one alternative each.
fn names() -> Grammar {
    let mut b = GrammarBuilder::new();
    let words = ["get", "set", "list", "drop", "find", "move", "copy", "open", "send", "read"];
    let name = |i: usize| format!("{}_{}_{}", words[i % 10], words[i / 10 % 10], i / 100);
    let names = b.rule("name", Expr::alt((0..2000).map(|i| Expr::text(&name(i)))));
    let list = Expr::star(Expr::seq([Expr::text(", "), Expr::Ref(names)]));
    let start = b.rule("start", Expr::seq([Expr::Ref(names), list]));
    b.finish(start).expect("valid")
}

/// Expressions of twelve levels of precedence, each a rule that may be just the next one.
fn precedence() -> Grammar {
    let mut b = GrammarBuilder::new();
    let levels: Vec<_> = (0..12).map(|i| b.declare(format!("level{i}"))).collect();
    for (i, pair) in levels.windows(2).enumerate() {
        let operator = Expr::bytes(&[b"|&^=<>+-*/%!"[i]]);
        let tail = Expr::star(Expr::seq([operator, Expr::Ref(pair[1])]));
        b.define(pair[0], Expr::seq([Expr::Ref(pair[1]), tail]));
    }
    let digits = Expr::repeat(Expr::class(ByteSet::range(b'0', b'9')), 1, None);
    let parens = Expr::seq([Expr::text("("), Expr::Ref(levels[0]), Expr::text(")")]);
    b.define(levels[11], Expr::alt([digits, parens]));
    b.finish(levels[0]).expect("valid")
}

fn simplify(c: &mut Criterion) {
    let text = r#"{"name": "an \"end\" to it", "list": ["go", -12.5e3, {"deep": [1, 22, true]}], "text": "\u00e9\n"}"#;
    let grammars = [
        ("json", json(), text),
        ("names", names(), "get_set_0, open_list_19, send_read_3"),
        ("precedence", precedence(), "1+2*(3-4)|5&(6^7)=8<9*(1+(2))"),
    ];
    let limits = Limits::default();
    for (name, grammar, text) in grammars {
        let mut group = c.benchmark_group(name);
        for level in LEVELS {
            let id = |what: &str| BenchmarkId::new(what, format!("{level:?}"));
            group.bench_function(id("simplify"), |b| {
                b.iter(|| black_box(&grammar).simplify(level).expect("valid"))
            });
            let simple = grammar.simplify(level).expect("valid");
            group.bench_function(id("compile"), |b| {
                b.iter(|| Compiled::new(&*simple, &limits).expect("compiles"))
            });
            let compiled = Arc::new(Compiled::new(&*simple, &limits).expect("compiles"));
            group.bench_function(id("first_pass"), |b| {
                b.iter(|| {
                    let mut recognizer = Recognizer::new(compiled.clone());
                    recognizer.push(text.as_bytes()).expect("allowed");
                    assert!(recognizer.is_complete());
                });
            });
        }
    }
}

criterion_group!(benches, simplify);
criterion_main!(benches);
