//! Hostile grammars in Lark: terminals that are boolean combinations, lazy rules, many patterns,
//! nested schemas and grammars.

use std::fmt::Write;

use louver::engine::{Constraint, Engine};
use louver::front::lark::LarkOptions;

use crate::harness::{Input, Refused, family};

fn lark(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_lark(text, &LarkOptions::default())?)
}

/// A start rule, and generated lines.
fn lines(start: &str, n: usize, line: impl Fn(usize) -> String) -> String {
    let mut text = format!("start: {start}\n");
    for i in 0..n {
        let _ = writeln!(text, "{}", line(i));
    }
    text
}

fn names(prefix: &str, n: usize, between: &str) -> String {
    (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(between)
}

pub(crate) fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut add = |name: &str, sizes: &[usize], text: &dyn Fn(usize) -> String| {
        inputs.extend(family(&format!("lark/{name}"), sizes, text, lark));
    };
    // F9: hundreds of patterns.
    add("patterns", &[30, 300, 2_000], &|n| {
        lines(&names("T", n, " | "), n, |i| format!("T{i}: /[a-z]*k{i}[^a-z]{{1,{}}}/", 20 + i))
    });
    add("patterns-in-a-row", &[30, 300], &|n| {
        lines(&names("T", n, " "), n, |i| format!("T{i}: /[a-z]*k{i}.*/"))
    });
    add("ambiguous", &[1], &|_| "start: start start | start start start | \"a\" | \n".to_owned());
    add("ambiguous-words", &[1], &|_| {
        "start: x+ y\nx: /[a-z]+/ \" \"? | x x\ny: x* y? \".\" | x y\n".to_owned()
    });
    add("intersections", &[2, 5, 10, 20], &|n| {
        lines("T", 1, |_| {
            format!(
                "T: {}",
                (0..n).map(|i| format!("/(.*a.{{{}}}b.*)/", i + 2)).collect::<Vec<_>>().join(" & ")
            )
        })
    });
    add("complements", &[2, 6, 12], &|n| {
        lines("T", 1, |_| format!("T: {}/.*a.{{{n}}}/{}", "~(/b*/ | ".repeat(n), ")".repeat(n)))
    });
    add("differences", &[10, 100, 1_000], &|n| {
        lines("T", 1, |_| {
            format!(
                "T: /[a-z]+/ & ~({})",
                (0..n).map(|i| format!("\"w{i}x\"")).collect::<Vec<_>>().join(" | ")
            )
        })
    });
    add("coprime-lengths", &[3, 5, 8], &|n| {
        let primes = [2, 3, 5, 7, 11, 13, 17, 19];
        lines("T", 1, |_| {
            format!(
                "T: {}",
                primes[..n]
                    .iter()
                    .map(|p| format!("/(a{{{p}}})*/"))
                    .collect::<Vec<_>>()
                    .join(" & ")
            )
        })
    });
    add("lazy-rules", &[3, 20, 200], &|n| {
        lines(&format!("({})*", names("l", n, " | ")), n, |i| {
            format!("l{i}[suffix=\"</k{i}>\"]: /(.|\\n)*/")
        })
    });
    add("lazy-bombs", &[2, 6], &|n| {
        lines(&names("l", n, " "), n, |i| format!("l{i}[lazy]: /.*a.{{{}}}b/", 10 + i))
    });
    add("long-suffix", &[100, 20_000], &|n| {
        format!("start: a start | a\na[suffix=\"{}\"]: /(.|\\n)*/\n", "ab".repeat(n / 2))
    });
    add("long-stop", &[100, 20_000], &|n| {
        format!("start: A \"x\"\nA[stop=\"{}c\"]: /(.|\\n)*/\n", "a".repeat(n))
    });
    add("counts", &[3, 6], &|n| {
        format!("start: {}/[a-z]*/{}\n", "(".repeat(n), ")~1..500".repeat(n))
    });
    add("huge-count", &[1_000_000, 4_000_000_000], &|n| {
        format!("start: (\"a\" | \"b\" start)~{n}\n")
    });
    add("substrings", &[100, 3_000, 100_000], &|n| {
        let text = (0..n).map(|i| char::from(b'a' + (i * i % 7) as u8)).collect::<String>();
        format!("start: %regex {{\"substring_chars\": \"{text}\"}}\n")
    });
    add("many-substrings", &[20], &|n| {
        lines(&names("s", n, " "), n, |i| {
            format!("s{i}: %regex {{\"substring_chars\": \"{}\"}}", "abcab".repeat(50 + i))
        })
    });
    add("ignores", &[5, 50], &|n| {
        lines("(\"a\" | start \"b\" | start start)*", n, |i| {
            format!("%ignore /[ \\t]{{0,{}}}(k{i})?/", i + 1)
        })
    });
    add("terminal-cycle", &[1, 100], &|n| {
        lines("T0", n, |i| format!("T{i}: \"a\" T{}", (i + 1) % n))
    });
    add("terminal-doubling", &[10, 18, 40], &|n| {
        lines(&format!("T{}", n - 1), n, |i| {
            if i == 0 { "T0: /[a-z]/".to_owned() } else { format!("T{i}: T{0} \"x\"? T{0}", i - 1) }
        })
    });
    add("rule-doubling", &[20, 60], &|n| {
        lines(&format!("r{}", n - 1), n, |i| {
            if i == 0 {
                "r0: /[a-z]*/".to_owned()
            } else {
                format!("r{i}: r{0} \"x\"? r{0}?", i - 1)
            }
        })
    });
    add("templates", &[1], &|_| {
        "start: sep{\"a\", sep{\"b\", \",\"}}\nsep{x, y}: x (y x)* | sep{sep{x, y}, y}\n".to_owned()
    });
    add("schemas", &[10, 200], &|n| {
        lines(&names("s", n, " | "), n, |i| {
            format!(
                "s{i}: %json {{\"type\": \"array\", \"items\": {{\"enum\": [{i}, \"{i}\"]}}, \"uniqueItems\": true}}"
            )
        })
    });
    add("schema-products", &[6, 14], &|n| {
        let parts = (0..n)
            .map(|i| {
                format!(
                    "{{\"anyOf\": [{{\"required\": [\"a{i}\"]}}, {{\"required\": [\"b{i}\"]}}]}}"
                )
            })
            .collect::<Vec<_>>();
        format!("start: %json {{\"allOf\": [{}]}}\n", parts.join(", "))
    });
    add("nested-grammars", &[5, 60, 500], &|n| {
        format!("{}start: \"a\"\n{}", "start: %lark {\n".repeat(n), "}\n".repeat(n))
    });
    add("deep-parentheses", &[100, 100_000], &|n| {
        format!("start: {}\"a\"{}\n", "(".repeat(n), ")".repeat(n))
    });
    add("deep-optionals", &[50, 100], &|n| {
        format!("start: {}\"a\"{}\n", "[".repeat(n), "]".repeat(n))
    });
    add("budgets", &[10, 300], &|n| {
        lines(&format!("({})*", names("b", n, " | ")), n, |i| {
            format!("b{i}[max_tokens={}]: /(.|\\n)*/", i + 1)
        })
    });
    add("words", &[2_000, 40_000], &|n| {
        format!(
            "start: {}\n",
            (0..n).map(|i| format!("\"w{}\"i", i * 7919 % n)).collect::<Vec<_>>().join(" | ")
        )
    });
    add("folded-classes", &[3, 60], &|n| {
        format!(
            "start: {}\n",
            (0..n).map(|i| format!("/[^k{i}\\P{{L}}]{{1,90}}/i ")).collect::<String>()
        )
    });
    inputs
}
