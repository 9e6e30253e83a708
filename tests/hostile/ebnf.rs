//! Hostile grammars in EBNF: ambiguity, left and hidden recursion, doubling, counts, size, depth.

use std::fmt::Write;

use louver::engine::{Constraint, Engine};
use louver::front::ebnf::{EbnfDialect, EbnfOptions};

use crate::harness::{Input, Refused, family};

fn common(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_ebnf(text, &EbnfOptions::default())?)
}

fn kbnf(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_ebnf(text, &EbnfOptions::default().with_dialect(EbnfDialect::Kbnf))?)
}

/// A first rule, and `n` generated ones.
fn rules(first: &str, n: usize, rule: impl Fn(usize) -> String) -> String {
    let mut text = format!("root ::= {first}\n");
    for i in 0..n {
        let _ = writeln!(text, "r{i} ::= {}", rule(i));
    }
    text
}

/// Options of the rules `root` and `k`: what items and frames hold beside their states.
const RULE_OPTIONS: [(&str, &str, &str); 7] = [
    ("unique-key", "", "[unique_key]"),
    ("elements", "[scope]", "[element]"),
    ("budgets", "[max_tokens=12]", "[max_chars=5, on_exhausted=cut]"),
    ("keys-in-budgets", "[max_chars=30]", "[unique_key]"),
    ("keys-and-elements", "[scope]", "[unique_key, element]"),
    ("temperatures", "[temperature=1]", "[temperature=0.5]"),
    ("labels", "[label=1]", "[label=2, capture=\"k\"]"),
];

/// Recursion inside of a quoted rule `k`, and of the rule itself.
const RECURSION: [(&str, &str); 9] = [
    ("left", "t ::= t \"a\" | \"b\"\n"),
    ("mutual-left", "t ::= u \"a\" | \"x\"\nu ::= t \"b\" | u u \"c\" | \"y\" \"z\"\n"),
    ("hidden-left", "t ::= e t \"a\" | \"b\"\ne ::= \"\" | \"c\" e | e e\n"),
    ("ambiguous", "t ::= t t | t t t | \"a\" | \"ab\"\n"),
    ("nullable", "t ::= t t | \"a\"? | e\ne ::= t? e? \"b\"?\n"),
    ("right", "t ::= \"a\" t | \"ab\" t | \"b\"\n"),
    ("keys-in-keys", "t ::= k \"a\" | t k | \"b\"?\n"),
    ("repeats", "t ::= (t{0,3} \"a\"){1,40} | [ab]{3,200}\n"),
    ("objects-in-keys", "t ::= root \"a\" | t root | \"b\"\n"),
];

fn options_in_recursion() -> Vec<Input> {
    let mut inputs = Vec::new();
    for (options, root, key) in RULE_OPTIONS {
        for (recursion, rules) in RECURSION {
            let text = format!(
                "root{root} ::= \"{{\" k \":1\" (\",\" k \":1\")* \"}}\"\n\
                 k{key} ::= \"\\\"\" t \"\\\"\"\n{rules}"
            );
            let name = format!("ebnf/{options}-{recursion}");
            inputs.extend(family(&name, &[1], move |_| text.clone(), common));
        }
    }
    inputs
}

/// Work on rules and frames that was neither counted nor bounded.
fn products_and_fixpoints() -> Vec<Input> {
    let elements = "root[scope] ::= \"[\" (e (\",\" e)*)? \"]\"\ne[element] ::= \"\\\"\" r0\n";
    let last = |n: usize| format!("r{n} ::= [a-z]* \"\\\"\"\n");
    let chain = move |n: usize, rule: &dyn Fn(usize) -> String| {
        format!("{elements}{}{}", (0..n).map(rule).collect::<String>(), last(n))
    };
    let doubling = move |n| chain(n, &|i| format!("r{i} ::= \"a\" r{0} | \"b\" r{0}\n", i + 1));
    let deep =
        move |n| chain(n, &|i| format!("r{i} ::= \"a\" r{0} | \"(\" r{i} \")\" r{0}\n", i + 1));
    let ring = |n: usize, step: usize, budget: &str| {
        let first = format!("s \"!\"\ns{budget} ::= r0");
        rules(&first, n, |i| format!("r{} \"x\" | \"a{i}\"", (i + step) % n))
    };
    let ascending = move |n| ring(n, 1, "[max_chars=100]");
    let descending = move |n| ring(n, n - 1, "[max_chars=100]");
    let unlimited = move |n| ring(n, n - 1, "");
    let excluded = |n: usize| {
        let parts: Vec<String> = (0..n).map(|i| format!("ExcludeToken({i}) \"x{i}\"")).collect();
        format!("root ::= {}\n", parts.join(" | "))
    };
    let keys = |n: usize| {
        let parts: Vec<String> = (0..n).map(|i| format!("s{i} \"z{i}\"")).collect();
        let callers: String = (0..n).map(|i| format!("s{i} ::= k \"x\" k \"y\"\n")).collect();
        let key = "k[unique_key] ::= \"\\\"\" [a-z]* \"\\\"\"\n";
        format!("root ::= {}\n{callers}{key}", parts.join(" | "))
    };
    [
        family("ebnf/elements-of-doubled-rules", &[24, 60, 1_000], doubling, common),
        family("ebnf/elements-of-deep-rules", &[1_000, 12_000], deep, common),
        family("ebnf/ascending-ring-in-budget", &[500, 8_000], ascending, common),
        family("ebnf/descending-ring-in-budget", &[500, 8_000], descending, common),
        family("ebnf/descending-ring", &[2_000, 16_000], unlimited, common),
        family("ebnf/excluded-tokens", &[100, 250], excluded, common),
        family("ebnf/keys-of-many-callers", &[1_000, 16_000], keys, common),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(crate) fn inputs() -> Vec<Input> {
    let mut inputs = options_in_recursion();
    inputs.extend(products_and_fixpoints());
    let fixed = |name: &str, text: &'static str| {
        family(&format!("ebnf/{name}"), &[1], move |_| text.to_owned(), common)
    };
    // F6 and F4.
    inputs.extend(fixed("two-or-three", "root ::= root root | root root root | \"a\" | \"\"\n"));
    inputs.extend(fixed(
        "ambiguous-words",
        "root ::= x+ y\nx ::= [a-z]+ \" \"? | x x\ny ::= x* y? \".\" | x y\n",
    ));
    inputs.extend(fixed("itself", "root ::= root\n"));
    inputs.extend(fixed("itself-or-text", "root ::= root | \"a\"\n"));
    inputs.extend(fixed("unit-cycle", "root ::= a | \"x\"\na ::= b | \"y\"\nb ::= root | a\n"));
    inputs.extend(fixed(
        "nullable-cycle",
        "root ::= a b root | \"x\"\na ::= b? a?\nb ::= a? b? \"y\"?\n",
    ));
    inputs.extend(fixed(
        "hidden-left",
        "root ::= e root \"a\" | \"b\"\ne ::= \"\" | \"c\" e | e e\n",
    ));
    inputs.extend(fixed(
        "left-and-right",
        "root ::= root \"+\" root | root \"*\" root | \"(\" root \")\" | [0-9]+ | root root\n",
    ));
    inputs.extend(fixed(
        "nullable-powers",
        "root ::= a a a a a a a a\na ::= a a | a a a a | \"\" | \"x\" | [a-z]*\n",
    ));
    // Each state after a rule calls all rules that follow.
    let in_a_row = |n: usize| {
        let names: Vec<String> = (0..n).map(|i| format!("r{i}")).collect();
        let rule = |i: usize| format!("r{i} ::= \"{i}\"? | r{}?\n", (i + 1) % n);
        format!("root ::= {}\n{}", names.join(" "), (0..n).map(rule).collect::<String>())
    };
    inputs.extend(family("ebnf/nullable-rules-in-a-row", &[200, 2_000, 20_000], in_a_row, common));
    // Each alternative leads back to all.
    let in_a_star = |n: usize| {
        let names: Vec<String> = (0..n).map(|i| format!("r{i}")).collect();
        let rule = |i: usize| format!("r{i} ::= \"{i}\" r{}? \".\"\n", (i + 1) % n);
        format!("root ::= ({})*\n{}", names.join(" | "), (0..n).map(rule).collect::<String>())
    };
    inputs.extend(family("ebnf/rules-in-a-star", &[2_000, 20_000], in_a_star, common));
    inputs.extend(fixed(
        "palindromes",
        "root ::= \"a\" root \"a\" | \"b\" root \"b\" | [ab]? | root root\n",
    ));
    inputs.extend(fixed("stars-in-recursion", "root ::= (root* [a-z]* root*)* \".\"\n"));
    inputs.extend(fixed("plus-in-recursion", "root ::= (root+ | [a-z]+)+ (root? \" \")*\n"));
    inputs.extend(fixed("empty", "root ::= a\na ::= \"x\" a\n"));
    inputs.extend(family(
        "ebnf/copies",
        &[2, 6, 20, 100],
        |n| {
            rules("r0*", n, |i| {
                format!(
                    "\"a\" r{} | r{} \"a\" | [a-z]* | r{}*",
                    (i + 1) % n,
                    (i * 7 + 3) % n,
                    (i * 3 + 1) % n
                )
            })
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/many-roots",
        &[3, 5, 9, 20],
        |n| {
            format!(
                "root ::= {} | \"a\" | \"\"\n",
                (2..=n).map(|k| vec!["root"; k].join(" ")).collect::<Vec<_>>().join(" | ")
            )
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/doubling",
        &[16, 30, 60, 1_000],
        |n| {
            rules(&format!("r{}", n - 1), n, |i| {
                if i == 0 { "\"a\" | \"b\"".to_owned() } else { format!("r{0} r{0}", i - 1) }
            })
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/optional-doubling",
        &[16, 30, 60],
        |n| {
            rules(&format!("r{}", n - 1), n, |i| {
                if i == 0 { "\"a\"?".to_owned() } else { format!("r{0}? r{0}? \"b\"?", i - 1) }
            })
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/star-doubling",
        &[10, 30],
        |n| {
            rules(&format!("r{}", n - 1), n, |i| {
                if i == 0 { "[a-z]*".to_owned() } else { format!("(r{0}* r{0}+)* | r{0}", i - 1) }
            })
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/unit-chain",
        &[100, 3_000, 50_000],
        |n| rules("r0", n, |i| if i + 1 == n { "\"a\"".to_owned() } else { format!("r{}", i + 1) }),
        common,
    ));
    inputs.extend(family(
        "ebnf/left-chain",
        &[50, 1_000, 20_000],
        |n| {
            rules("r0", n, |i| {
                if i + 1 == n {
                    "[a-z]+".to_owned()
                } else {
                    format!("r{} | r{i} \"+\" r{}", i + 1, i + 1)
                }
            })
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/complete-graph",
        &[10, 40, 200],
        |n| {
            let others = (0..n).map(|i| format!("r{i}")).collect::<Vec<_>>().join(" | ");
            rules("r0", n, |i| format!("\"k{i}\" ({others}) | {others}"))
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/starts-alike",
        &[100, 2_000],
        |n| {
            let others = (0..n).map(|i| format!("r{i}")).collect::<Vec<_>>().join(" | ");
            rules(&others, n, |i| format!("[a-z]* \"a\"? [0-9]* \"k{i}\" root?"))
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/parentheses",
        &[100, 120, 10_000, 1_000_000],
        |n| format!("root ::= {}\"a\"{}\n", "(".repeat(n), ")".repeat(n)),
        common,
    ));
    inputs.extend(family(
        "ebnf/nested-stars",
        &[10, 100],
        |n| format!("root ::= {}\"a\"{}\n", "(".repeat(n), ")*".repeat(n)),
        common,
    ));
    inputs.extend(family(
        "ebnf/nested-counts",
        &[2, 3, 5, 9],
        |n| format!("root ::= {}[a-z] \"b\"?{}\n", "(".repeat(n), "){1,500}".repeat(n)),
        common,
    ));
    inputs.extend(family(
        "ebnf/counted-rules",
        &[3, 8, 30],
        |n| {
            rules("r0{2,500}", n, |i| {
                if i + 1 == n { "[a-z]*".to_owned() } else { format!("r{}{{0,500}} \"a\"?", i + 1) }
            })
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/huge-count",
        &[1_000_000, 4_000_000_000],
        |n| format!("root ::= (\"a\" | root){{{n}}}\n"),
        common,
    ));
    inputs.extend(family(
        "ebnf/alternatives",
        &[1_000, 30_000],
        |n| {
            format!(
                "root ::= {}\n",
                (0..n).map(|i| format!("\"w{}\"", i * 7919 % n)).collect::<Vec<_>>().join(" | ")
            )
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/rules",
        &[1_000, 30_000],
        |n| {
            let calls = (0..n).map(|i| format!("r{i}")).collect::<Vec<_>>().join(" | ");
            rules(&calls, n, |i| format!("\"w{i}\" r{}?", (i + 1) % n))
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/classes",
        &[50, 2_000],
        |n| {
            format!(
                "root ::= ({})*\n",
                (0..n)
                    .map(|i| format!(
                        "[^{}-\\U0010FFFF]",
                        char::from_u32(0x100 + i as u32).unwrap_or('a')
                    ))
                    .collect::<Vec<_>>()
                    .join(" | ")
            )
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/long-literal",
        &[100_000, 3_000_000, 5_000_000],
        |n| format!("root ::= \"{}\"\n", "ab".repeat(n / 2)),
        common,
    ));
    inputs.extend(family(
        "ebnf/undefined",
        &[10, 20_000],
        |n| format!("root ::= {}\n", (0..n).map(|i| format!("u{i} ")).collect::<String>()),
        common,
    ));
    inputs.extend(family(
        "ebnf/kbnf-exceptions",
        &[2, 20, 200],
        |n| {
            let words = (0..n).map(|i| format!("\"w{i}\"")).collect::<Vec<_>>().join("|");
            format!("root ::= except!(words) words;\nwords ::= {words};\n")
        },
        kbnf,
    ));
    inputs.extend(family(
        "ebnf/kbnf-brackets",
        &[10, 300_000],
        |n| format!("root ::= {};\na ::= \"a\";\n", "[a]".repeat(n)),
        kbnf,
    ));
    inputs.extend(family(
        "ebnf/token-dispatch",
        &[10, 60_000],
        |n| {
            let list = |from: usize, item: &dyn Fn(usize) -> String| {
                (from..from + n).map(item).collect::<Vec<_>>().join(", ")
            };
            let tags = list(0, &|i| format!("({i}, a)"));
            let excludes = list(n, &|i| i.to_string());
            format!("root ::= TokenTagDispatch({tags}, excludes=({excludes}))\na ::= \"a\"\n")
        },
        common,
    ));
    inputs.extend(family(
        "ebnf/kbnf-nested-regexes",
        &[3, 30],
        |n| format!("root ::= {};\n", r##"#"[a-z]*(ab|a.){1,80}" "##.repeat(n)),
        kbnf,
    ));
    inputs.extend(family(
        "ebnf/early-regexes",
        &[3, 20],
        |n| format!("root ::= {}\n", r##"#e".*a.{12}b" "##.repeat(n)),
        common,
    ));
    inputs
}
