//! The engine on small grammars. Random grammars against an independent recogniser are in `tests/`.

mod fuel_bounds;
mod many_values;
mod mask_agreement;
mod sharing;
mod unicode_classes;

use proptest::prelude::*;

use super::*;
use crate::RegexOptions;
use crate::front::json_schema::SchemaOptions;
use crate::fsm::ByteSet;
use crate::ids::Label;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, GrammarBuilder, SpecialToken, Trigger};
use crate::limits::Limits;
use crate::mask::PoolScope;
use crate::matcher::Recognizer;

fn engine(extra: &[&str]) -> Engine {
    let extra: Vec<&[u8]> = extra.iter().map(|s| s.as_bytes()).collect();
    Engine::new(Arc::new(Vocabulary::toy(&extra)), EngineOptions::default())
}

/// An engine that always assembles masks from entries of single states.
fn entries_only(extra: &[&[u8]]) -> Engine {
    let options = EngineOptions {
        tuning: MaskTuning::with_direct_walk(0),
        pool_scope: PoolScope::Engine,
        ..EngineOptions::default()
    };
    Engine::new(Arc::new(Vocabulary::toy(extra)), options)
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    let compiled = Arc::new(Compiled::new(grammar, &Limits::default()).unwrap());
    let mut recognizer = Recognizer::new(compiled);
    recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete()
}

/// The tokens that the mask allows, as text. Asserts that each mask bit agrees with
/// [`Matcher::allows`].
fn allowed(matcher: &mut Matcher, constraint: &Constraint) -> Vec<String> {
    let vocab = constraint.vocab().clone();
    let mut mask = vec![0; vocab.mask_words()];
    matcher.fill_mask(&mut mask);
    let mut out = Vec::new();
    for id in 0..vocab.width() {
        let id = TokenId::new(id);
        assert_eq!(
            crate::mask::bit(&mask, id),
            matcher.allows(id),
            "mask and allows disagree on {id}, {:?} after {:?}",
            vocab.bytes(id).map(String::from_utf8_lossy),
            matcher.tokens().iter().map(|t| vocab.shown(*t)).collect::<String>()
        );
        if crate::mask::bit(&mask, id) {
            out.push(match vocab.bytes(id) {
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                None => vocab.special_name(id).unwrap_or("?").to_owned(),
            });
        }
    }
    out.sort();
    out
}

fn feed(matcher: &mut Matcher, constraint: &Constraint, text: &str) {
    for byte in text.bytes() {
        allowed(matcher, constraint);
        matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
    }
}

#[test]
fn right_recursion_and_repeats_stay_on_one_configuration() {
    let mut b = GrammarBuilder::new();
    let list = b.declare("list");
    b.define(
        list,
        Expr::seq([Expr::text("a"), Expr::optional(Expr::seq([Expr::text(","), Expr::Ref(list)]))]),
    );
    let grammar = b.finish(list).unwrap();
    let constraint = engine(&[",a", "a,a"]).compile(&grammar).unwrap();
    let mut matcher = constraint.matcher();
    feed(&mut matcher, &constraint, "a,a,a,a");
    let n = matcher.configs.len();
    assert_eq!(matcher.configs[n - 1], matcher.configs[n - 3]);
    assert_eq!(allowed(&mut matcher, &constraint), [",", ",a", "<|end|>"]);
}

#[test]
fn ambiguity_and_left_recursion_stay_small() {
    // S -> S S | a : every prefix of a's has exponentially many derivations.
    let mut b = GrammarBuilder::new();
    let s = b.declare("s");
    b.define(s, Expr::alt([Expr::seq([Expr::Ref(s), Expr::Ref(s)]), Expr::text("a")]));
    let grammar = b.finish(s).unwrap();
    let constraint = engine(&["aa", "aaa"]).compile(&grammar).unwrap();
    let mut matcher = constraint.matcher();
    feed(&mut matcher, &constraint, &"a".repeat(300));
    assert_eq!(allowed(&mut matcher, &constraint), ["<|end|>", "a", "aa", "aaa"]);
    assert!(constraint.masks.lock().parser.store().configs() < 20);
    // Mutual left recursion: A -> B x | y ; B -> A z.
    let mut b = GrammarBuilder::new();
    let (a, bb) = (b.declare("a"), b.declare("b"));
    b.define(a, Expr::alt([Expr::seq([Expr::Ref(bb), Expr::text("x")]), Expr::text("y")]));
    b.define(bb, Expr::seq([Expr::Ref(a), Expr::text("z")]));
    let grammar = b.finish(a).unwrap();
    for (text, ok) in
        [("y", true), ("yzx", true), ("yzxzx", true), ("yz", false), ("zx", false), ("yx", false)]
    {
        assert_eq!(accepts(&grammar, text), ok, "{text}");
    }
}

/// A hundred calls that begin with an id are one item while the id is read.
#[test]
fn callers_share_a_counted_rule() {
    let mut b = GrammarBuilder::new();
    let letter = Expr::class(ByteSet::range(b'a', b'z'));
    let id = b.rule("id", Expr::repeat(letter, 8, Some(16)));
    let call = |n: usize| Expr::seq([Expr::Ref(id), Expr::text(&format!("={n}"))]);
    let calls = (0..100).map(|n| Expr::Ref(b.rule(format!("call {n}"), call(n))));
    let calls = Expr::alt(calls.collect::<Vec<_>>());
    let start = b.rule("start", calls);
    let constraint = engine(&["abcd", "h=4"]).compile(b.finish(start).unwrap()).unwrap();
    let mut matcher = constraint.matcher();
    let items = |matcher: &Matcher| {
        let state = constraint.masks.lock();
        state.parser.store().items(matcher.config()).len()
    };
    feed(&mut matcher, &constraint, "abcdefg");
    assert_eq!(items(&matcher), 1);
    feed(&mut matcher, &constraint, "h");
    assert_eq!(items(&matcher), 101);
    feed(&mut matcher, &constraint, "ijklmnop=42");
    assert_eq!(allowed(&mut matcher, &constraint), ["<|end|>"]);
}

#[test]
fn counted_repeats_are_exact() {
    let class = Expr::class(ByteSet::range(b'a', b'z'));
    let mut b = GrammarBuilder::new();
    let word = Expr::seq([Expr::text("\""), Expr::repeat(class, 70, Some(1000)), Expr::text("\"")]);
    let words = Expr::repeat(Expr::seq([word, Expr::text(",")]), 60, Some(61));
    let start = b.rule("start", words);
    let grammar = b.finish(start).unwrap();
    let word = |n: usize| format!("\"{}\",", "q".repeat(n));
    let text = |count: usize, n: usize| word(n).repeat(count);
    assert!(accepts(&grammar, &text(60, 70)));
    assert!(accepts(&grammar, &text(61, 1000)));
    assert!(!accepts(&grammar, &text(59, 70)));
    assert!(!accepts(&grammar, &text(62, 70)));
    assert!(!accepts(&grammar, &text(60, 69)));
    assert!(!accepts(&grammar, &text(60, 1001)));
    let constraint =
        engine(&["qqqq", "q\"", "\",\"", "qqqqqqqqqqqqqqqq"]).compile(&grammar).unwrap();
    let mut matcher = constraint.matcher();
    feed(&mut matcher, &constraint, &format!("\"{}", "q".repeat(69)));
    assert!(!allowed(&mut matcher, &constraint).contains(&"\"".to_owned()));
    assert!(allowed(&mut matcher, &constraint).contains(&"q\"".to_owned()));
    feed(&mut matcher, &constraint, &"q".repeat(928));
    let now = allowed(&mut matcher, &constraint);
    assert!(now.contains(&"q\"".to_owned()) && !now.contains(&"qqqq".to_owned()), "{now:?}");
    let distinct: std::collections::HashSet<_> = matcher.configs.iter().collect();
    let normal: std::collections::HashSet<_> = {
        let mut state = constraint.masks.lock();
        distinct.iter().map(|&&c| state.parser.canonical(c)).collect()
    };
    assert!(distinct.len() > 900 && normal.len() < 60, "{} {}", distinct.len(), normal.len());
}

/// One token repeated up to the bound: at every position each token is allowed iff it still fits.
#[test]
fn masks_near_the_bound_of_counted_text_are_exact() {
    let (long, longest) = ("a".repeat(17), "a".repeat(40));
    let extra = ["aa", "aaa", "a\"", "é", &long, &longest];
    let engine = engine(&extra);
    for (token, chars) in [("a", 1), ("aa", 2), ("aaa", 3), ("é", 1)] {
        for schema in [
            r#"{"type": "string", "maxLength": 90}"#,
            r#"{"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 90}}"#,
        ] {
            let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
            let id = constraint.vocab().find(token.as_bytes()).unwrap();
            let mut matcher = constraint.matcher();
            feed(&mut matcher, &constraint, if schema.contains("items") { "[\"" } else { "\"" });
            for read in 0..=90 / chars {
                let left = 90 - read * chars;
                let next = allowed(&mut matcher, &constraint);
                for text in &extra {
                    let needs = text.chars().filter(|c| *c != '"').count();
                    let ends =
                        text.ends_with('"') && schema.contains("items") && read * chars + needs < 3;
                    assert_eq!(
                        next.iter().any(|n| n == text),
                        needs <= left && !ends,
                        "{text:?} with {left} left of {schema}"
                    );
                }
                if left >= chars {
                    matcher.advance(id).unwrap();
                }
            }
        }
    }
}

#[test]
fn repeats_of_nullable_bodies_are_accepted() {
    // Each repetition may be empty, and the bound is far past what a configuration may hold.
    let mut b = GrammarBuilder::new();
    let run = Expr::seq([Expr::star(Expr::text("a")), Expr::star(Expr::text("b"))]);
    let start =
        b.rule("start", Expr::seq([Expr::repeat(run, 500_000, Some(1_000_000)), Expr::text(".")]));
    let grammar = b.finish(start).unwrap();
    let constraint = entries_only(&[b"aab", b"ba."]).compile(&grammar).unwrap();
    let mut matcher = constraint.matcher();
    feed(&mut matcher, &constraint, "aabbab.");
    assert!(matcher.is_complete() && matcher.limit().is_none());
}

/// Free text that excludes `<!`, with one tag `<t>` whose body is `(x)</t>` and a stop `STOP`.
fn dispatch(after: AfterTag, end: DispatchEnd) -> Grammar {
    let mut b = GrammarBuilder::new();
    let body = b.labelled("body", Label::from_raw(7), Expr::text("(x)</t>"));
    let special = b.special(SpecialToken::Name("<|end|>".into()));
    let _ = special;
    let text = b.labelled(
        "text",
        Label::from_raw(1),
        Expr::Dispatch(Box::new(Dispatch {
            tags: vec![(Trigger::Text(b"<t>".to_vec()), body)],
            stops: vec![Trigger::Text(b"STOP".to_vec())],
            excludes: vec![b"<!".to_vec()],
            after,
            end,
        })),
    );
    b.finish(text).unwrap()
}

#[test]
fn dispatch_fires_loops_and_ends() {
    let grammar = dispatch(AfterTag::Loop, DispatchEnd::Anywhere);
    for (text, ok) in [
        ("", true),
        ("hello <t", true),
        ("hello <t>(x)</t> more <t>(x)</t>", true),
        ("<<t>(x)</t>", true),
        ("hello <t>", false),
        ("hello <t>oops", false),
        ("a <! b", false),
        ("a STOP", true),
        ("a STOPb", false),
    ] {
        assert_eq!(accepts(&grammar, text), ok, "{text}");
    }
    let once = dispatch(AfterTag::End, DispatchEnd::AfterOneTag);
    for (text, ok) in [("", false), ("a<t>(x)</t>", true), ("a<t>(x)</t>b", false)] {
        assert_eq!(accepts(&once, text), ok, "{text}");
    }
    // A token may contain the end of a trigger and the start of its body.
    let constraint = engine(&["t>(", "t>)", "o <t>(x)</t> y", "<!x"]).compile(&grammar).unwrap();
    let mut matcher = constraint.matcher();
    feed(&mut matcher, &constraint, "hi <");
    let now = allowed(&mut matcher, &constraint);
    assert!(now.contains(&"t>(".to_owned()) && !now.contains(&"t>)".to_owned()));
    assert!(now.contains(&"o <t>(x)</t> y".to_owned()) && !now.contains(&"!".to_owned()));
}

#[test]
fn trace_spans_do_not_depend_on_token_boundaries() {
    let grammar = dispatch(AfterTag::Loop, DispatchEnd::Anywhere);
    let text = "hello <t no <t>(x)</t> bye <";
    let expected = [
        (Some(1), "hello <t no ", false),
        (None, "<t>", true),
        (Some(7), "(x)</t>", true),
        (Some(1), " bye <", false),
    ];
    let pieces = ["hello <", "t no <t>", "(x)</t> b", "ye <", "(x)", "</t>"];
    let constraint = engine(&pieces).compile(&grammar).unwrap();
    let cuts: [&[&str]; 2] = [&[], &["hello <", "t no <t>", "(x)</t> b", "ye <"]];
    for cut in cuts {
        let mut matcher = constraint.matcher();
        let mut tracer = Tracer::new();
        let tokens: Vec<TokenId> = if cut.is_empty() {
            text.bytes().map(|b| TokenId::from_raw(u32::from(b))).collect()
        } else {
            cut.iter()
                .map(|p| TokenId::new(257 + pieces.iter().position(|q| q == p).unwrap()))
                .collect()
        };
        let mut spans: Vec<crate::matcher::Span> = Vec::new();
        for token in tokens {
            matcher.advance_traced(token, &mut tracer).unwrap();
            spans.extend(tracer.drain());
        }
        spans.extend(tracer.finish());
        // Chunking may split spans; joined they are the same.
        let mut joined: Vec<crate::matcher::Span> = Vec::new();
        for span in spans {
            match joined.last_mut() {
                Some(last) if last.label == span.label && !last.closed => {
                    last.bytes.extend(span.bytes);
                    last.closed = span.closed;
                }
                _ => joined.push(span),
            }
        }
        let got: Vec<_> = joined
            .iter()
            .map(|s| (s.label.map(Label::raw), std::str::from_utf8(&s.bytes).unwrap(), s.closed))
            .collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn special_tokens_are_not_bytes_and_stops_end() {
    let mut b = GrammarBuilder::new();
    let special = b.special(SpecialToken::Name("<|call|>".into()));
    let start =
        b.rule("start", Expr::seq([Expr::text("a"), Expr::Special(special), Expr::text("b")]));
    let grammar = b.finish(start).unwrap();
    let mut vocab = Vocabulary::builder(300);
    for byte in 0..=255u8 {
        vocab.token(u32::from(byte), &[byte]);
    }
    vocab.special(256, "<|end|>").special(257, "<|call|>").stop(256);
    let engine = Engine::new(Arc::new(vocab.build().unwrap()), EngineOptions::default());
    let constraint = engine.compile(&grammar).unwrap();
    let mut matcher = constraint.matcher();
    feed(&mut matcher, &constraint, "a");
    assert_eq!(allowed(&mut matcher, &constraint), ["<|call|>"]);
    matcher.advance(TokenId::from_raw(257)).unwrap();
    feed(&mut matcher, &constraint, "b");
    assert_eq!(allowed(&mut matcher, &constraint), ["<|end|>"]);
    assert_eq!(
        matcher.advance(TokenId::from_raw(299)),
        Err(AdvanceError::UnknownToken { token: TokenId::from_raw(299) })
    );
    matcher.advance(TokenId::from_raw(256)).unwrap();
    assert!(matcher.is_terminated());
    assert_eq!(matcher.advance(TokenId::from_raw(256)), Err(AdvanceError::Terminated));
    matcher.rollback(2);
    assert_eq!(allowed(&mut matcher, &constraint), ["b"]);
}

#[test]
fn emptied_caches_change_no_mask() {
    let run = |byte| Expr::repeat(Expr::class(ByteSet::range(byte, byte)), 0, Some(5000));
    let mut b = GrammarBuilder::new();
    let start = b.rule("start", Expr::seq([Expr::alt((b'a'..=b'z').map(run)), Expr::text(".")]));
    let grammar = b.finish(start).unwrap();
    let limits = Limits { parser_bytes: 60_000, ..Limits::default() };
    let vocab = Arc::new(Vocabulary::toy(&[b"ab", b"aaa."]));
    let engine = Engine::new(vocab, EngineOptions { limits, ..EngineOptions::default() });
    let constraint = engine.compile(&grammar).unwrap();
    let mut matchers: Vec<Matcher> = (0..26).map(|_| constraint.matcher()).collect();
    for (matcher, letter) in matchers.iter_mut().zip('a'..='z') {
        feed(matcher, &constraint, &letter.to_string().repeat(50));
    }
    assert!(constraint.masks.lock().epoch > 0, "the budget was never reached");
    for (matcher, letter) in matchers.iter_mut().zip('a'..='z') {
        assert!(!matcher.is_complete());
        let now = allowed(matcher, &constraint);
        let mut expected = vec![".".to_owned(), letter.to_string()];
        if letter == 'a' {
            expected.push("aaa.".to_owned());
        }
        expected.sort();
        assert_eq!(now, expected);
        matcher.rollback(49);
        feed(matcher, &constraint, ".");
        assert!(matcher.is_complete());
    }
}

#[test]
fn a_grammar_that_no_token_begins_is_refused_before_it_is_used() {
    let mut builder = Vocabulary::builder(3);
    builder.token(0, b"a").token(1, b"c").stop(2);
    let engine = Engine::new(Arc::new(builder.build().unwrap()), EngineOptions::default());
    for (regex, is_refused) in [("ac", false), ("(ac)?", false), ("", false), ("b", true)] {
        let constraint = engine.compile_regex(regex, &RegexOptions::default()).unwrap();
        let refused = matches!(constraint.make_first_mask(), Err(CompileError::NoToken));
        assert_eq!(refused, is_refused, "{regex}");
    }
}

#[test]
fn unit_rules_return_to_their_own_callers() {
    let mut b = GrammarBuilder::new();
    let inner = b.rule("inner", Expr::text("{}"));
    let outer = b.rule("outer", Expr::Ref(inner));
    let start = b.rule("start", Expr::seq([Expr::text("("), Expr::Ref(outer), Expr::text(")")]));
    let grammar = b.finish(start).unwrap();
    assert!(accepts(&grammar, "({})"));
    assert!(!accepts(&grammar, "({}"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 120,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Keys that exclude some names read nearly every text: their mask entries are derived from the
    /// entry of an unrestricted key.
    #[test]
    fn derived_mask_entries_are_exact(
        names in prop::collection::btree_set("[abc]{0,3}", 0..5),
        extra in prop::collection::vec("[abcx]{1,4}[\":, ]{0,3}[abx]{0,2}", 0..40),
        follow in "[:, ]{1,3}",
        walk in "[abcx]{0,4}",
    ) {
        let text = Expr::class(ByteSet::from_bytes(b"\"").complement());
        let mut b = GrammarBuilder::new();
        let tail = b.rule("tail", Expr::seq([Expr::star(text), Expr::text("\"")]));
        // One node for each prefix of a name; any other byte leads to `tail`.
        let prefixes: Vec<String> = names
            .iter()
            .flat_map(|n| (0..=n.len()).map(|i| n[..i].to_owned()))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let mut graph = crate::ir::Graph::default();
        let start = graph.node();
        let end = graph.node();
        let nodes: Vec<u32> = prefixes.iter().map(|_| graph.node()).collect();
        for (i, prefix) in prefixes.iter().enumerate() {
            let mut rest = ByteSet::from_bytes(b"\"").complement();
            for (j, longer) in prefixes.iter().enumerate() {
                if longer.len() == prefix.len() + 1 && longer.starts_with(prefix.as_str()) {
                    let byte = longer.as_bytes()[prefix.len()];
                    rest.remove(byte);
                    graph.edge(nodes[i], Expr::bytes(&[byte]), nodes[j]);
                }
            }
            graph.edge(nodes[i], Expr::seq([Expr::class(rest), Expr::Ref(tail)]), end);
            if !names.contains(prefix) {
                graph.edge(nodes[i], Expr::text("\""), end);
            }
        }
        let first = nodes.first().copied();
        graph.start = start;
        graph.ends = vec![end];
        graph.edge(start, first.map_or(Expr::Ref(tail), |_| Expr::Empty), first.unwrap_or(end));
        let name = b.rule("name", Expr::Graph(Box::new(graph)));
        let key =
            Expr::seq([Expr::text("\""), Expr::Ref(name), Expr::text(&follow), Expr::text("a")]);
        let start = b.rule("start", Expr::seq([key, Expr::text("bx")]));
        let grammar = b.finish(start).unwrap();
        let extra: Vec<&[u8]> = extra.iter().map(|e| e.as_bytes()).collect();
        for engine in [
            entries_only(&extra),
            Engine::new(Arc::new(Vocabulary::toy(&extra)), EngineOptions::default()),
        ] {
            let constraint = engine.compile(&grammar).unwrap();
            let mut matcher = constraint.matcher();
            // `allowed` compares every bit with stepping the token.
            for byte in format!("\"{walk}").bytes() {
                allowed(&mut matcher, &constraint);
                matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
            }
            allowed(&mut matcher, &constraint);
            if engine.options().tuning.direct_walk == 0 && names.len() > 1 {
                prop_assert!(engine.pool_stats().derived > 0);
            }
            if !names.contains(&walk) {
                feed(&mut matcher, &constraint, &format!("\"{follow}abx"));
                prop_assert!(matcher.is_complete());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Counters near their bounds: each mask bit against stepping the token, for bodies of one to
    /// three bytes, followed by text that cannot, can, or may partly be read as another repetition.
    #[test]
    fn counted_masks_are_exact(
        min in 0u32..9,
        more in 0u32..12,
        unbounded: bool,
        body in 0usize..5,
        follow in prop::sample::select(vec!["\"", "\",", "b", "ab\"", "", "}}"]),
        extra in prop::collection::vec("[abcd]{1,9}[\",}]{0,3}[ab]{0,3}", 0..40),
        twice: bool,
        left in 0u32..6,
        walk in prop::collection::vec(any::<u16>(), 12),
    ) {
        let (a, d) = (Expr::class(ByteSet::from_bytes(b"ab")), Expr::text("d"));
        let one = ["a", "b", "a", "ca", "x"][body];
        let body = match body {
            0 => a,
            1 => Expr::alt([a, Expr::seq([Expr::text("c"), d])]),
            2 => Expr::alt([Expr::text("a"), Expr::text("aa")]),
            3 => Expr::seq([Expr::text("c"), Expr::optional(d), a]),
            _ => Expr::class(ByteSet::from_bytes(b"\"").complement()),
        };
        // Bounds past those of repeats that are written out as copies.
        let max = if unbounded { None } else { Some(min + 13 + more) };
        let run =
            Expr::seq([Expr::repeat(body, min + 13, max.map(|m| m + 13)), Expr::text(follow)]);
        let mut b = GrammarBuilder::new();
        let rule = b.rule("run", if twice { Expr::repeat(run, 1, Some(2)) } else { run });
        let start =
            b.rule("start", Expr::seq([Expr::text("<"), Expr::Ref(rule), Expr::text(",.")]));
        let grammar = b.finish(start).unwrap();
        let common = [
            "ac", "bac", "cd", "cdc", "acdc", "aa", "aaa", "cac", "cda", "aab\"", "a\",", "xb\"",
            "bb", "b,",
        ];
        let extra: Vec<&[u8]> =
            extra.iter().map(String::as_str).chain(common).map(str::as_bytes).collect();
        // Up to shortly before a bound, then at random.
        let bound = max.map_or(min, |m| m) + 13;
        let prefix = format!("<{}", one.repeat(bound.saturating_sub(left) as usize));
        for engine in [
            entries_only(&extra),
            Engine::new(Arc::new(Vocabulary::toy(&extra)), EngineOptions::default()),
        ] {
            let constraint = engine.compile(&grammar).unwrap();
            let mut matcher = constraint.matcher();
            let vocab = constraint.vocab().clone();
            prefix.bytes().for_each(|b| matcher.advance(TokenId::from_raw(u32::from(b))).unwrap());
            for &choice in &walk {
                // `allowed` compares every bit with stepping the token.
                allowed(&mut matcher, &constraint);
                let next: Vec<TokenId> = (0..vocab.width())
                    .map(TokenId::new)
                    .filter(|&t| {
                        matcher.allows(t) && vocab.bytes(t).is_some_and(|b| b[0].is_ascii_graphic())
                    })
                    .collect();
                let Some(&token) = next.get(usize::from(choice) % next.len().max(1)) else { break };
                matcher.advance(token).unwrap();
            }
        }
    }

    /// White space near its bounds and far from them, with tokens longer than the bounds: each mask
    /// bit against stepping the token, where nothing, text, or more white space may follow.
    #[test]
    fn masks_near_white_space_bounds_are_exact(
        max in 15u32..44,
        other in 15u32..44,
        shape in 0usize..7,
        runs in prop::collection::vec(
            ("[x\",]{0,2}", 1usize..50, 0usize..3, "[x\",]{0,2}"),
            0..60
        ),
        left in 0u32..20,
        walk in prop::collection::vec(any::<u16>(), 10),
    ) {
        let gap = |max| Expr::repeat(Expr::class(ByteSet::WHITE_SPACE), 0, Some(max));
        let text = Expr::star(Expr::class(ByteSet::from_bytes(b"x, \n")));
        let list = |item: Expr| {
            Expr::seq([
                item.clone(),
                Expr::repeat(Expr::seq([Expr::text(","), gap(max), item]), 0, Some(30)),
            ])
        };
        let mut b = GrammarBuilder::new();
        let word = b.rule("word", Expr::seq([Expr::text("\""), text.clone(), Expr::text("\"")]));
        let body = match shape {
            0 => Expr::seq([gap(max), Expr::text("x"), gap(other)]),
            1 => Expr::seq([gap(max), Expr::Ref(word), gap(max), list(Expr::text("x"))]),
            2 => Expr::seq([gap(max), gap(other), Expr::text("x")]),
            3 => Expr::seq([gap(max), text]),
            4 => Expr::seq([gap(max), Expr::text(" "), gap(max), list(Expr::Ref(word))]),
            5 => Expr::alt([
                Expr::seq([gap(max), Expr::text("x")]),
                Expr::seq([gap(other), Expr::Ref(word)]),
            ]),
            _ => list(Expr::seq([
                gap(max),
                Expr::alt([Expr::Ref(word), Expr::text("x")]),
                gap(other),
            ])),
        };
        let body = b.rule("body", body);
        let start = b.rule("start", Expr::seq([Expr::text("<"), Expr::Ref(body), Expr::text(".")]));
        let grammar = b.finish(start).unwrap();
        let white = [" ", "\n", "\n "];
        let run = |n: usize, kind: usize| white[kind].repeat(n)[..n].to_owned();
        let mut extra: Vec<String> = runs
            .iter()
            .map(|(a, n, kind, z)| format!("{a}{}{z}", run(*n, *kind)))
            .filter(|t| t.len() > 1)
            .collect();
        extra.extend(
            [14usize, 16, 17, 18, 30, 44, 60]
                .iter()
                .flat_map(|&n| [run(n, 0), format!(",{}x", run(n, 1))]),
        );
        extra.sort();
        extra.dedup();
        let extra: Vec<&[u8]> = extra.iter().map(String::as_bytes).collect();
        let prefix = format!("<{}", " ".repeat(max.saturating_sub(left) as usize));
        for engine in [
            entries_only(&extra),
            Engine::new(Arc::new(Vocabulary::toy(&extra)), EngineOptions::default()),
        ] {
            let constraint = engine.compile(&grammar).unwrap();
            for prefix in [&prefix, "<"] {
                let mut matcher = constraint.matcher();
                let vocab = constraint.vocab().clone();
                prefix
                    .bytes()
                    .for_each(|b| matcher.advance(TokenId::from_raw(u32::from(b))).unwrap());
                for &choice in &walk {
                    allowed(&mut matcher, &constraint);
                    let next: Vec<TokenId> = (0..vocab.width())
                        .map(TokenId::new)
                        .filter(|&t| matcher.allows(t))
                        .collect();
                    let Some(&token) = next.get(usize::from(choice) % next.len().max(1)) else {
                        break;
                    };
                    if matcher.advance(token).is_err() || vocab.is_stop(token) {
                        break;
                    }
                }
            }
        }
    }
}
