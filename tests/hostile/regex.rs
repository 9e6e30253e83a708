//! Hostile regular expressions: products of classes, counts, nested repeats, unions, look-around,
//! case folding.

use louver::engine::{Constraint, Engine};
use louver::front::regex::{Case, Classes, RegexOptions, Scope};

use crate::harness::{Input, Refused, family};

fn matched(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_regex(text, &RegexOptions::default())?)
}

fn searched(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_regex(text, &RegexOptions::default().with_scope(Scope::Search))?)
}

fn ecma(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_regex(text, &RegexOptions::ECMA)?)
}

fn folded(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    let options =
        RegexOptions::default().with_case(Case::Insensitive).with_classes(Classes::Unicode);
    Ok(engine.compile_regex(text, &options)?)
}

fn unicode_searched(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    let options = RegexOptions::default().with_scope(Scope::Search);
    Ok(engine.compile_regex(text, &options.with_classes(Classes::Unicode))?)
}

pub(crate) fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    // F4: eight and twenty products of two classes of Unicode, counted.
    let products = |n: usize| format!("^{}", r"([^\p{L}]*\P{Greek}{1,500})".repeat(n));
    inputs.extend(family("regex/class-product-searched", &[1, 8, 20, 60], products, searched));
    inputs.extend(family("regex/class-product-matched", &[8, 20], products, matched));
    inputs.extend(family(
        "regex/optional-then-count",
        &[12, 30, 100, 1_000],
        |n| format!("(a?){{{n}}}a{{{n}}}"),
        matched,
    ));
    inputs.extend(family(
        "regex/optionals",
        &[20, 100, 1_000],
        |n| format!("{}{}", "a?".repeat(n), "a".repeat(n)),
        matched,
    ));
    inputs.extend(family(
        "regex/union-star",
        &[1, 3, 12],
        |n| format!("{}(a|a)*{}b", "(".repeat(n), ")*".repeat(n)),
        matched,
    ));
    inputs.extend(family(
        "regex/nested-stars",
        &[5, 20, 60, 120, 5_000],
        |n| format!("{}a{}", "(".repeat(n), ")*".repeat(n)),
        matched,
    ));
    inputs.extend(family(
        "regex/nested-counts",
        &[2, 3, 4, 8],
        |n| format!("{}a{}", "(".repeat(n), "){1,500}".repeat(n)),
        matched,
    ));
    inputs.extend(family(
        "regex/nested-counts-searched",
        &[2, 4],
        |n| format!("{}a{}", "(".repeat(n), "){1,500}".repeat(n)),
        searched,
    ));
    inputs.extend(family(
        "regex/dot-before-count",
        &[8, 16, 24, 64, 500],
        |n| format!(".*a.{{{n}}}"),
        matched,
    ));
    inputs.extend(family(
        "regex/letter-before-count",
        &[10, 40, 400],
        |n| format!("(a|b)*a(a|b){{{n}}}c"),
        searched,
    ));
    inputs.extend(family(
        "regex/counted-classes",
        &[5, 40, 200],
        |n| r"\p{L}{0,300}\w{0,300}".repeat(n),
        matched,
    ));
    inputs.extend(family(
        "regex/counted-words",
        &[99, 1_000, 100_000],
        |n| format!(r"^(\S+\s+){{0,{n}}}\S+$"),
        searched,
    ));
    inputs.extend(family(
        "regex/huge-counts",
        &[1_000, 1_000_000, 4_000_000_000],
        |n| format!("(ab|c){{{n}}}"),
        matched,
    ));
    inputs.extend(family(
        "regex/unicode-sequence",
        &[10, 100, 1_000],
        |n| r"[\p{L}\p{N}\p{M}]".repeat(n),
        matched,
    ));
    inputs.extend(family(
        "regex/unicode-unions",
        &[10, 200],
        |n| format!("({})*", vec![r"\p{L}\P{Latin}\p{Lu}"; n].join("|")),
        matched,
    ));
    inputs.extend(family(
        "regex/unicode-folded",
        &[5, 50, 400],
        |n| r"[\p{Ll}\p{Greek}]\w".repeat(n),
        folded,
    ));
    // The automaton is within its bounds; its spelling in bytes is large.
    inputs.extend(family(
        "regex/unicode-word-boundaries",
        &[5, 7, 9],
        |n| format!(r"_(\b\d\w{{2,}}|1[^a]{{3,{n}}})*"),
        unicode_searched,
    ));
    inputs.extend(family(
        "regex/class-negations",
        &[5, 40],
        |n| r"[^\p{L}]*[^\p{N}]*[^\s]*".repeat(n),
        searched,
    ));
    inputs.extend(family(
        "regex/lookaheads",
        &[2, 4, 8, 16],
        |n| {
            let ahead =
                (0..n).map(|i| format!("(?=.*{})", char::from(b'a' + i as u8))).collect::<String>();
            format!("^{ahead}.*$")
        },
        ecma,
    ));
    inputs.extend(family(
        "regex/counted-lookaheads",
        &[2, 4, 8],
        |n| (0..n).map(|i| format!("(?!.*a.{{{}}}b)", 10 + i)).collect::<String>() + ".{5,80}",
        ecma,
    ));
    inputs.extend(family(
        "regex/nested-lookaheads",
        &[3, 20],
        |n| format!("^{}a{}.*$", "(?=.*(?!b".repeat(n), "))".repeat(n)),
        ecma,
    ));
    inputs.extend(family("regex/word-boundaries", &[5, 40], |n| r"\b\w+\b.*".repeat(n), ecma));
    inputs.extend(family(
        "regex/look-behind",
        &[3, 20, 200],
        |n| (0..n).map(|i| format!("(?<!a.{{{i}}})b")).collect::<String>() + ".*",
        ecma,
    ));
    inputs.extend(family(
        "regex/look-ahead-in-look-behind",
        &[3, 20],
        |n| (0..n).map(|i| format!(r".(?<!a.*(?=b.{{{i}}}\b))")).collect::<String>(),
        ecma,
    ));
    inputs.extend(family(
        "regex/word-boundaries",
        &[20_000],
        |n| format!(r"a{}", r"\b".repeat(n)),
        matched,
    ));
    inputs.extend(family("regex/backreference", &[1], |_| r"(a*)\1".to_owned(), ecma));
    inputs.extend(family(
        "regex/words",
        &[100, 5_000, 50_000],
        |n| (0..n).map(|i| format!("w{}x{i}", i * 7919 % n)).collect::<Vec<_>>().join("|"),
        matched,
    ));
    inputs.extend(family(
        "regex/words-searched",
        &[100, 2_000],
        |n| {
            (0..n)
                .map(|i| format!("{:x}", i * 2_654_435_761 % 0xFFFF_FFFF))
                .collect::<Vec<_>>()
                .join("|")
        },
        searched,
    ));
    inputs.extend(family(
        "regex/gaps-between-words",
        &[10, 30, 200],
        |n| (0..n).map(|i| format!("k{i}")).collect::<Vec<_>>().join(".*"),
        searched,
    ));
    inputs.extend(family(
        "regex/alternated-gaps",
        &[4, 8, 16],
        |n| {
            (0..n)
                .map(|i| {
                    let c = char::from(b'a' + i as u8);
                    format!(".*{c}.*{c}")
                })
                .collect::<Vec<_>>()
                .join("|")
        },
        matched,
    ));
    inputs.extend(family(
        "regex/long-literal",
        &[100_000, 3_000_000, 5_000_000],
        |n| "ab".repeat(n / 2),
        matched,
    ));
    inputs.extend(family("regex/unclosed", &[100, 100_000], |n| "(".repeat(n), matched));
    inputs.extend(family(
        "regex/quantifiers",
        &[100, 10_000],
        |n| format!("a{}", "{1,2}".repeat(n)),
        matched,
    ));
    inputs.extend(family(
        "regex/emails",
        &[3, 30],
        |n| format!("^({})$", vec![r"(([\w.+-]+)+@([\w-]+\.)+\w{2,})"; n].join("|")),
        ecma,
    ));
    inputs
}
