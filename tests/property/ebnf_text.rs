//! Property tests of grammars as EBNF: a printed grammar parses to the same grammar, and no text
//! makes the parser panic.

use louver::front::ebnf::{self, EbnfDialect, EbnfOptions};
use louver::ids::{Label, RuleId, SpecialId};
use louver::ir::{Attributes, Budget, BudgetPolicy, Expr, Grammar, SpecialToken, Trigger};
use louver::limits::Limits;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{Shown, config, generate};

/// The grammar without what [`Grammar`]'s `Display` says that it drops.
fn as_printed(grammar: &Grammar) -> Grammar {
    let mut out = Grammar { specials: Vec::new(), ..grammar.clone() };
    for (i, rule) in out.rules.iter_mut().enumerate() {
        let namesakes = grammar.rules.iter().filter(|other| other.name == rule.name).count();
        if rule.name.is_empty() {
            rule.name = "rule".to_owned();
        }
        if namesakes > 1 {
            rule.name = format!("{}-{i}", rule.name);
        }
        rule.body = expr(&rule.body, grammar, &mut out.specials);
        let attributes = &mut rule.attributes;
        attributes.budget = attributes.budget.filter(|b| b.tokens.is_some() || b.chars.is_some());
    }
    out
}

fn special(id: SpecialId, grammar: &Grammar, specials: &mut Vec<SpecialToken>) -> SpecialId {
    let token = single(&grammar.specials[id.index()]);
    let index = specials.iter().position(|t| *t == token).unwrap_or_else(|| {
        specials.push(token);
        specials.len() - 1
    });
    SpecialId::new(index)
}

/// A set of one token is that token.
fn single(token: &SpecialToken) -> SpecialToken {
    match token {
        SpecialToken::AnyOf(tokens) if tokens.len() == 1 => single(&tokens[0]),
        SpecialToken::AnyOf(tokens) => SpecialToken::AnyOf(tokens.iter().map(single).collect()),
        SpecialToken::AnyBut(tokens) => SpecialToken::AnyBut(tokens.iter().map(single).collect()),
        other => other.clone(),
    }
}

fn expr(from: &Expr, grammar: &Grammar, specials: &mut Vec<SpecialToken>) -> Expr {
    let mut list =
        |parts: &[Expr]| parts.iter().map(|part| expr(part, grammar, specials)).collect::<Vec<_>>();
    match from {
        Expr::Bytes(bytes) => Expr::bytes(bytes),
        Expr::Class(set) => Expr::class(*set),
        Expr::Seq(parts) => match list(parts) {
            parts if parts.is_empty() => Expr::Empty,
            mut parts if parts.len() == 1 => parts.remove(0),
            parts => Expr::Seq(parts),
        },
        Expr::Alt(parts) => match list(parts) {
            parts if parts.is_empty() => Expr::Never,
            mut parts if parts.len() == 1 => parts.remove(0),
            parts => Expr::Alt(parts),
        },
        Expr::Repeat { min, max: Some(max), .. } if min > max => Expr::Never,
        Expr::Repeat { body, min, max } => {
            Expr::Repeat { body: Box::new(expr(body, grammar, specials)), min: *min, max: *max }
        }
        Expr::Special(s) => Expr::Special(special(*s, grammar, specials)),
        Expr::Graph(graph) => {
            let mut graph = graph.clone();
            graph.edges.iter_mut().for_each(|(_, e, _)| *e = expr(e, grammar, specials));
            Expr::Graph(graph)
        }
        Expr::Members(members) => {
            let mut members = members.clone();
            members.parts_mut().for_each(|part| *part = expr(part, grammar, specials));
            Expr::Members(members)
        }
        Expr::Dispatch(dispatch) => {
            let mut dispatch = dispatch.clone();
            for trigger in dispatch.tags.iter_mut().map(|(t, _)| t).chain(&mut dispatch.stops) {
                if let Trigger::Special(s) | Trigger::TextThenSpecial(_, s) = trigger {
                    *s = special(*s, grammar, specials);
                }
            }
            Expr::Dispatch(dispatch)
        }
        Expr::Except(except) => expr(&except.to_graph(), grammar, specials),
        Expr::Counted(counted) => expr(&counted.to_graph(), grammar, specials),
        Expr::Empty | Expr::Never | Expr::Ref(_) | Expr::Automaton(_) | Expr::Deferred(_) => {
            from.clone()
        }
    }
}

fn token() -> impl Strategy<Value = SpecialToken> {
    let one = prop_oneof![
        "<[a-z|]{1,5}>".prop_map(SpecialToken::Name),
        "\\PC{0,4}".prop_map(SpecialToken::Name),
        any::<u32>().prop_map(SpecialToken::Id),
        Just(SpecialToken::Name("<[1]>".to_owned())),
    ];
    one.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(SpecialToken::AnyOf),
            vec(inner, 0..3).prop_map(SpecialToken::AnyBut),
        ]
    })
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let budget = (
        option::of(0u32..9),
        option::of(any::<u32>()),
        prop_oneof![Just(BudgetPolicy::Finish), Just(BudgetPolicy::Cut)],
    );
    let budget =
        budget.prop_map(|(tokens, chars, on_exhausted)| Budget { tokens, chars, on_exhausted });
    let values =
        (option::of(0u32..5), option::of("\\PC{0,4}"), option::of(0.0f32..3.0), option::of(budget));
    (values, any::<[bool; 5]>()).prop_map(
        |(
            (label, capture, temperature, budget),
            [hidden, scope, element, unique_key, unlikely],
        )| {
            Attributes {
                label: label.map(Label::from_raw),
                capture,
                hidden,
                temperature,
                budget,
                scope,
                element,
                unique_key,
                unlikely,
            }
        },
    )
}

/// Grammars of every kind of expression, with names and attributes of every kind.
fn grammar() -> impl Strategy<Value = Shown> {
    let name = prop_oneof![
        Just("root".to_owned()),
        Just("Token".to_owned()),
        Just(String::new()),
        "[a-z.-]{1,3}",
        ".{0,4}",
        "[\\s\"`\\\\]{1,3}",
    ];
    let rules = vec((name, attributes()), 4);
    (generate::grammar(), rules, vec(token(), 2), any::<prop::sample::Index>(), any::<[u8; 3]>())
        .prop_map(|(mut grammar, rules, specials, start, bytes)| {
            for (rule, (name, attributes)) in grammar.rules.iter_mut().zip(rules) {
                rule.name = name;
                rule.attributes = attributes;
            }
            if let Some(rule) = grammar.rules.last_mut() {
                let byte_class = Expr::Class(louver::fsm::ByteSet::range(
                    bytes[0].min(bytes[1]),
                    bytes[0].max(bytes[1]),
                ));
                rule.body = Expr::Alt(vec![
                    rule.body.clone(),
                    Expr::Seq(vec![Expr::bytes(&bytes), byte_class]),
                ]);
            }
            if !grammar.specials.is_empty() {
                grammar.specials = specials;
            }
            grammar.start = RuleId::new(start.index(grammar.rules.len()));
            Shown(grammar)
        })
}

/// Pieces of the language, and of similar texts.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "root",
        " ::= ",
        "\n",
        "a",
        "b.c",
        "\"x\"",
        "\"",
        "'",
        "[a-z]",
        "[^",
        "]",
        "(",
        ")",
        "(=",
        "{2,3}",
        "{",
        "}",
        "*",
        "+",
        "?",
        "|",
        "#",
        "#\"a+\"",
        "#e\"",
        "any!",
        "except!(",
        "\"q\", 3)",
        "Regex(",
        "TagDispatch((\"t\", a), ",
        "Graph(2, 0, (1),",
        "Members(\",\", required(\"a\"), optional(",
        ", repeated(",
        "min=1, max=2)",
        "Automaton((true, (0, 255, 0)))",
        "Substring(\"a\", ",
        "Token(1, 2)",
        "ExcludeToken(",
        "<t>",
        "<[7]>",
        "!",
        "@\"\\xff\"",
        "@[",
        "\\u00e9",
        "\\x",
        "é",
        ".",
        "-",
        ";",
        "(* ",
        " *)",
        "[lazy]",
        "[max_tokens=2, ",
        "[start]",
        ",",
        " ",
        "`n m`",
        "=",
    ];
    vec(
        prop_oneof![9 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => ".{1,2}"],
        0..40,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn printed_grammars_parse_to_themselves(Shown(grammar) in grammar()) {
        let text = grammar.to_string();
        let read = ebnf::lower(&text, &EbnfOptions::default(), &Limits::default());
        prop_assert!(read.is_ok(), "{}\nin\n{}", read.unwrap_err(), text);
        let read = read.unwrap().grammar;
        prop_assert_eq!(&read, &as_printed(&grammar), "{}\nread as\n{}", text, read);
        prop_assert_eq!(read.to_string(), text);
    }

    /// Any text parses or is rejected, in every dialect. A parsed grammar is valid, and prints as a
    /// text that parses to it.
    #[test]
    fn any_text_parses_or_is_rejected(text in pieces(), whole in any::<bool>()) {
        let text =
            if whole { format!("root ::= \"a\" {text}\na ::= \"b\"\nb.c ::= a\n") } else { text };
        for dialect in
            [EbnfDialect::Common, EbnfDialect::Gbnf, EbnfDialect::Xgrammar, EbnfDialect::Kbnf]
        {
            let limits =
                Limits::default().with_automaton_states(2_000).with_nodes(1_000).with_depth(20);
            let options = EbnfOptions::default().with_dialect(dialect);
            match ebnf::lower(&text, &options, &limits) {
                Ok(lowered) => {
                    prop_assert_eq!(lowered.grammar.validate(), Ok(()));
                    prop_assert!(!lowered.warnings.has_errors());
                    let again = ebnf::lower(
                        &lowered.grammar.to_string(),
                        &EbnfOptions::default(),
                        &Limits::default(),
                    );
                    prop_assert_eq!(
                        again.map(|again| again.grammar),
                        Ok(as_printed(&lowered.grammar))
                    );
                }
                Err(diagnostics) => {
                    prop_assert!(diagnostics.has_errors());
                    prop_assert!(!diagnostics.to_string().is_empty());
                }
            }
        }
    }
}
