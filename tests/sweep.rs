//! Fault injection by limits. Each limit is set so low that the first piece of work reaches it,
//! then the second, and so on, over a table of grammars. The outcome is always typed, and a mask
//! equals that of an engine with default limits, or ends the sequence.

use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions, Matcher, PrepareBudget};
use louver::front::ebnf::EbnfOptions;
use louver::front::json_schema::SchemaOptions;
use louver::front::lark::LarkOptions;
use louver::front::regex::RegexOptions;
use louver::front::structural_tag::StructuralTagOptions;
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::mask::{PoolScope, bit};
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;

/// Tokens of a walk.
const STEPS: usize = 16;

/// The name of a limit, and how it is set.
type Limit = (&'static str, fn(&mut Limits, usize));

const LIMITS: &[Limit] = &[
    ("source_bytes", |limits, n| limits.source_bytes = n),
    ("depth", |limits, n| limits.depth = n),
    ("nodes", |limits, n| limits.nodes = n),
    ("automaton_states", |limits, n| limits.automaton_states = n),
    ("compiled_states", |limits, n| limits.compiled_states = n),
    ("config_items", |limits, n| limits.config_items = n),
    ("parser_bytes", |limits, n| limits.parser_bytes = n),
    ("mask_bytes", |limits, n| limits.mask_bytes = n),
    ("compile_fuel", |limits, n| limits.compile_fuel = n as u64),
    ("mask_fuel", |limits, n| limits.mask_fuel = n as u64),
    ("sequence_fuel", |limits, n| limits.sequence_fuel = n as u64),
    ("prepare_fuel", |limits, n| limits.prepare_fuel = n as u64),
];

/// The kind of a grammar, and its text.
const GRAMMARS: &[(&str, &str)] = &[
    ("schema", "true"),
    (
        "schema",
        r##"{"type": "object", "properties": {"a": {"type": "string", "pattern": "^\\w{2,9}$"}, "b": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": true}}, "required": ["a"], "additionalProperties": {"type": "integer", "minimum": -7, "maximum": 350}}"##,
    ),
    (
        "schema",
        r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"type": "array", "items": {"enum": [1, "x", null]}}]}"#,
    ),
    ("regex", r"(\p{L}+[ ,]){3,80}\d{2,4}"),
    ("regex", ".*a.{7}b"),
    ("ebnf", "root ::= e\ne ::= e [-+] t | t\nt ::= t [*/] f | f\nf ::= \"(\" e \")\" | [0-9]+\n"),
    ("ebnf", "root ::= root root | root root root | \"a\" | \"ab\"\n"),
    (
        "lark",
        "start: (tool | other)*\ntool: \"<t>\" body\nbody[suffix=\"</t>\"]: /(.|\\n)*/\n\
         other: OTHER | \" \"\nOTHER: /[a-z]+/ & ~\"ab\"\n",
    ),
    (
        "tag",
        r#"{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<t"], "tags": [{"begin": "<t>", "content": {"type": "any_text", "max_tokens": 5}, "end": "</t>"}], "excludes": ["<!"]}}"#,
    ),
];

fn compile(engine: &Engine, (kind, text): (&str, &str)) -> Result<Constraint, String> {
    match kind {
        "schema" => {
            engine.compile_json_schema(text, &SchemaOptions::default()).map_err(|e| e.to_string())
        }
        "regex" => engine.compile_regex(text, &RegexOptions::default()).map_err(|e| e.to_string()),
        "ebnf" => engine.compile_ebnf(text, &EbnfOptions::default()).map_err(|e| e.to_string()),
        "lark" => engine.compile_lark(text, &LarkOptions::default()).map_err(|e| e.to_string()),
        _ => engine
            .compile_structural_tag(text, &StructuralTagOptions::default())
            .map_err(|e| e.to_string()),
    }
}

fn engine(vocab: &Arc<Vocabulary>, limits: Limits) -> Engine {
    let options = EngineOptions::default()
        .with_limits(limits)
        .with_pool_scope(PoolScope::Engine)
        .with_grammar_cache_bytes(0)
        .with_batch_threads(1);
    Engine::new(vocab.clone(), options)
}

/// Values of a limit: consecutive at first, then in growing steps.
fn values() -> impl Iterator<Item = usize> {
    let growing =
        std::iter::successors(Some(16), |n: &usize| (*n < 20_000_000).then_some(n * 7 / 5 + 1));
    (0..16).chain(growing)
}

/// Walks in step with an engine of default limits. Returns whether a limit ended the walk.
fn walk(matcher: &mut Matcher, unlimited: &mut Matcher, seed: u32) -> bool {
    let vocab = matcher.vocab().clone();
    let (mut mask, mut want) = (vec![0; vocab.mask_words()], vec![0; vocab.mask_words()]);
    let mut random = seed.wrapping_mul(0x9E37_79B9) | 1;
    for _ in 0..STEPS {
        matcher.fill_mask(&mut mask);
        unlimited.fill_mask(&mut want);
        if matcher.limit().is_some() {
            let stops =
                (0..vocab.width()).map(TokenId::new).all(|t| bit(&mask, t) == vocab.is_stop(t));
            assert!(stops, "a limit leaves the stop tokens");
            return true;
        }
        assert_eq!(mask, want, "a wrong mask after {:?}", matcher.tokens());
        let allowed: Vec<TokenId> =
            (0..vocab.width()).map(TokenId::new).filter(|&t| bit(&mask, t)).collect();
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let token = allowed[(random >> 16) as usize % allowed.len()];
        match matcher.advance(token) {
            Ok(()) => unlimited.advance(token).expect("with room, too"),
            Err(AdvanceError::Limit { .. }) => return true,
            Err(error) => panic!("token {token} is in the mask: {error}"),
        }
        if matcher.is_terminated() {
            return false;
        }
    }
    false
}

#[test]
fn every_limit_gives_a_typed_outcome_wherever_it_is_reached() {
    let vocab = Arc::new(Vocabulary::toy(&[
        b"aa", b"ab", b"\": ", b"{\"", b"\"}", b"10", b"<t", b"</t>", b" a",
    ]));
    let default_engine = engine(&vocab, Limits::default());
    let unlimited: Vec<Constraint> = GRAMMARS
        .iter()
        .map(|&grammar| compile(&default_engine, grammar).expect("compiles"))
        .collect();
    for (name, set) in LIMITS {
        let (mut refused, mut ended, mut completed) = (0, 0, 0);
        for n in values() {
            let mut limits = Limits::default();
            set(&mut limits, n);
            let limited_engine = engine(&vocab, limits);
            for (&grammar, unlimited) in GRAMMARS.iter().zip(&unlimited) {
                let constraint = match compile(&limited_engine, grammar) {
                    Ok(constraint) => constraint,
                    Err(message) => {
                        assert!(!message.is_empty());
                        refused += 1;
                        continue;
                    }
                };
                if *name == "prepare_fuel" || n % 4 == 0 {
                    constraint.prepare(PrepareBudget::default().with_candidates(20)).wait();
                }
                match walk(&mut constraint.matcher(), &mut unlimited.matcher(), n as u32) {
                    true => ended += 1,
                    false => completed += 1,
                }
            }
            assert_eq!(limited_engine.stats().background_panics, 0, "{name} of {n}");
        }
        println!("{name}: {refused} refused, {ended} ended by the limit, {completed} not");
        assert!(completed > 0, "{name} is reached whatever its value");
        let never = ["mask_bytes", "prepare_fuel"].contains(name);
        assert!(never || refused + ended > 0, "{name} is never reached");
    }
}
