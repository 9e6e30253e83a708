//! Masks of patterns that count, with bounds on the length: each bit against stepping the token.
//! Most tokens of the vocabulary differ only in letters that the patterns do not tell apart.

use std::sync::{Arc, LazyLock};

use louver::engine::{Engine, EngineOptions};
use louver::front::json_schema::SchemaOptions;
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::ir::{Expr, GrammarBuilder, SpecialToken};
use louver::mask::PoolScope;
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::sample::select;

use super::{STEPS, Shown, check_prefixes_and_walk, compile, config, generate};
use crate::harness::columns::mask;
use crate::harness::oracle::Oracle;

/// Patterns; `N`, `4N` and `M` are numbers.
const PATTERNS: &[&str] = &[
    r"^(?:\\S+\\s+){0,N}\\S+$",
    r"^$|(^(?:\\S+\\s+){0,N}\\S+$)",
    r"^([a-f]+ ){N}[a-f]*$",
    r"^(ab?c|d)*$",
    r"^(a|bb|é|,)*$",
    r"^[^x]*(x[^x]*){0,N}$",
    r"^(\\w+(, )?){M,}$",
    r"^([a-z]{1,M} ?)*$",
    r"x",
    r"",
    r"^(..\\s)*.?$",
    r"^[^\\s,]+(,\\s*[^\\s,]+){0,N}$",
    r"^.*x.{0,M}$",
    r"^[^x]{M,4N}$",
    r"^(?=.{M,4N} ?$)([^x]|x ?)*$",
];

/// Texts in front of a string, and schemas around it.
const AROUND: &[(&str, &str)] = &[
    ("", "STRING"),
    ("", r#"{"type": "array", "items": STRING, "minItems": 1, "maxItems": 3}"#),
    (r#"{"b": 1, "a": "#, r#"{"type": "object", "properties": {"a": STRING}, "required": ["a"]}"#),
];

/// All texts of two or three of these pieces, and some that are longer or go beyond the end of a
/// string.
static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
    let letters = ["a", "b", "c", "d", "e", "f", "g", "x", " ", ",", "\"", "é", "\\n", "\\u0062"];
    let mut texts: Vec<String> = Vec::new();
    for a in letters {
        texts.extend(letters.iter().map(|b| format!("{a}{b}")));
        texts
            .extend(letters.iter().flat_map(|b| letters.iter().map(move |c| format!("{a}{b}{c}"))));
    }
    let long = [
        "aaaaaaaa",
        "          ",
        "a b c d e f",
        "x x x x",
        "abc, def, ",
        "----",
        "ab\", \"",
        "]}",
        "\"]",
        "d\"]",
    ];
    texts.extend(long.map(String::from));
    texts.extend(
        ["語語語", "語\u{3000}語", "aé\u{2003}é語é", "\u{A0}\u{A0}", "a\u{2028}b", "éé éé"]
            .map(String::from),
    );
    texts.extend(["é", "\\u", "\\u00", "ab\\u00", "a\\"].map(String::from));
    texts.sort();
    texts.dedup();
    Arc::new(Vocabulary::toy(&texts.iter().map(String::as_bytes).collect::<Vec<_>>()))
});

proptest! {
    #![proptest_config(config(12))]

    /// Random walks through strings of a pattern.
    #[test]
    fn masks_of_counting_patterns_agree_with_stepping(
        pattern in select(PATTERNS),
        (n, m) in (prop_oneof![1u32..9, 9u32..40], 1u32..4),
        bounds in (
            prop_oneof![0u32..4, 4u32..60],
            prop::option::of(prop_oneof![4u32..24, 24u32..60, 60u32..200]),
        ),
        (before, around) in select(AROUND),
        direct_walk in select(vec![0usize, 64, 16_384]),
        walks in prop::collection::vec(prop::collection::vec((any::<u16>(), any::<bool>()), 14), 2),
    ) {
        let pattern = pattern.replace("4N", &(4 * n).to_string());
        let pattern = pattern.replace('N', &n.to_string()).replace('M', &m.to_string());
        let most = bounds.1.map_or(String::new(), |max| format!(r#", "maxLength": {max}"#));
        let mut schema = format!(
            r#"{{"type": "string", "pattern": "{pattern}", "minLength": {}{most}}}"#,
            bounds.0
        );
        schema = around.replace("STRING", &schema);
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning::with_direct_walk(direct_walk))
            .with_pool_scope(PoolScope::Engine);
        let engine = Engine::new(VOCABULARY.clone(), options);
        let Ok(constraint) = engine.compile_json_schema(&schema, &SchemaOptions::default()) else {
            return Ok(());
        };
        let vocab = constraint.vocab().clone();
        for walk in walks {
            let mut matcher = constraint.matcher();
            for &byte in before.as_bytes() {
                prop_assert_eq!(matcher.advance(TokenId::from_raw(u32::from(byte))), Ok(()));
            }
            for (choice, content) in walk {
                let allowed = mask(&mut matcher, &vocab);
                for (id, allowed) in allowed.iter().enumerate() {
                    let id = TokenId::new(id);
                    prop_assert_eq!(
                        *allowed,
                        matcher.allows(id),
                        "{}: {:?} after {:?}",
                        &schema,
                        vocab.shown(id),
                        matcher.tokens().iter().map(|t| vocab.shown(*t)).collect::<String>()
                    );
                }
                // Most steps stay within the string.
                let stays = |id: &TokenId| {
                    let bytes = vocab.bytes(*id).unwrap_or_default();
                    !content || bytes.len() > 1 && !bytes.contains(&b'"') && !bytes.contains(&b'\\')
                };
                let ids = |filter: &dyn Fn(&TokenId) -> bool| -> Vec<TokenId> {
                    (0..vocab.width())
                        .map(TokenId::new)
                        .filter(|id| allowed[id.index()] && filter(id))
                        .collect()
                };
                let mut next = ids(&stays);
                if next.is_empty() {
                    next = ids(&|_| true);
                }
                let token = next[usize::from(choice) % next.len()];
                if matcher.advance(token).is_err() || vocab.is_stop(token) {
                    break;
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// Where bounds are out of a token's reach, masks are taken from other counters.
    #[test]
    fn masks_between_wide_bounds_equal_the_oracle(
        Shown(grammar) in generate::wide_grammar().prop_map(Shown),
        vocab in generate::vocabulary(),
        path in prop::collection::vec(any::<u16>(), 2 * STEPS),
    ) {
        let vocab = Arc::new(vocab.build());
        let mut oracle = Oracle::new(&grammar);
        for direct_walk in [crate::harness::unlimited().tuning.direct_walk, 0] {
            let change = |o: &mut EngineOptions| o.tuning.direct_walk = direct_walk;
            let Some(constraint) = compile(&grammar, &vocab, &oracle, change)? else {
                return Ok(());
            };
            oracle.back_to(0);
            check_prefixes_and_walk(&constraint, &mut oracle, &path)?;
        }
    }
}

/// Text of bounded length has one mask wherever the bound is out of reach, whatever the keys before
/// it; also after counted members.
#[test]
fn text_far_from_its_bounds_has_one_mask() {
    let engine = Engine::new(VOCABULARY.clone(), crate::harness::unlimited());
    let schema = r#"{"type": "object", "maxProperties": 900, "additionalProperties": {"type": "string", "maxLength": 900}}"#;
    let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
    let mut matcher = constraint.matcher();
    let mut misses = Vec::new();
    for text in [r#"{"b": "a"#, "abcdefgx", "abc, def", r#"a", "c": "a"#, "abcdefgx", "abc, def"] {
        for byte in text.bytes() {
            mask(&mut matcher, constraint.vocab());
            matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
        }
        misses.push(engine.pool_stats().mask_misses);
    }
    assert_eq!((misses[1], misses[4]), (misses[2], misses[5]), "{misses:?}");
}

/// Text of a pattern has few masks wherever its lower bound is out of reach.
#[test]
fn text_far_below_its_lower_bound_has_few_masks() {
    for pattern in ["^(?:[a-f]+ )*x$", "^(?:[a-f][a-f ])*$"] {
        let engine = Engine::new(VOCABULARY.clone(), crate::harness::unlimited());
        let schema = format!(r#"{{"pattern": "{pattern}", "minLength": 700, "maxLength": 900}}"#);
        let schema = format!(r#"{{"allOf": [{{"type": "string"}}, {schema}]}}"#);
        let constraint = engine.compile_json_schema(&schema, &SchemaOptions::default()).unwrap();
        let mut matcher = constraint.matcher();
        let mut misses = Vec::new();
        for text in [r#""abc d"#, "af abc e", "af abc e", "af abc e"] {
            for byte in text.bytes() {
                mask(&mut matcher, constraint.vocab());
                matcher.advance(TokenId::from_raw(u32::from(byte))).unwrap();
            }
            misses.push(engine.pool_stats().mask_misses);
        }
        assert_eq!(misses[1], misses[3], "{pattern}: {misses:?}");
    }
}

/// The number of runs is not clear from the text where runs begin with a special token and call a
/// rule.
#[test]
fn counted_runs_may_begin_with_a_special_token() {
    let mut b = GrammarBuilder::new();
    let start = b.declare("start");
    let special = Expr::Special(b.special(SpecialToken::Name("<x>".to_owned())));
    let run = Expr::seq([
        special,
        Expr::alt([Expr::text("b"), Expr::seq([Expr::text("a"), Expr::Ref(start)])]),
    ]);
    b.define(start, Expr::repeat(run, 2, Some(40)));
    let grammar = b.finish(start).unwrap();
    let mut b = Vocabulary::builder(5);
    b.special(0, "<stop>").stop(0).special(1, "<x>").token(2, b"a").token(3, b"b").token(4, b"c");
    let vocab = Arc::new(b.build().unwrap());
    for direct_walk in [crate::harness::unlimited().tuning.direct_walk, 0] {
        let engine = Engine::new(
            vocab.clone(),
            crate::harness::unlimited().with_tuning(MaskTuning::with_direct_walk(direct_walk)),
        );
        let mut matcher = engine.compile(&grammar).unwrap().matcher();
        matcher.advance(TokenId::from_raw(1)).unwrap();
        assert_eq!(mask(&mut matcher, &vocab), [false, false, true, true, false]);
    }
}
