//! Fuzz targets of the engine: a text is parsed, lowered and compiled, and its masks are followed
//! on a toy vocabulary, with the default limits. Fuel bounds the work of an input; nothing is
//! timed.

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::front::ebnf::{self, EbnfOptions};
use louver::front::json_schema::{self, SchemaOptions};
use louver::front::lark::{self, LarkOptions};
use louver::front::regex::{self, RegexOptions};
use louver::front::structural_tag::{self, StructuralTagOptions};
use louver::fuel;
use louver::ids::TokenId;
use louver::ir::{Grammar, Simplify};
use louver::limits::Limits;
use louver::mask::bit;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;

/// Number of steps of a walk.
const STEPS: usize = 12;

/// All targets by name.
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("regex", regex),
    ("json_schema", json_schema),
    ("ebnf", ebnf),
    ("lark", lark),
    ("structural_tag", structural_tag),
];

/// Maximum fuel of one input, in units of about 10 ns: two seconds.
const MAX_FUEL: u64 = 200_000_000;

/// Runs a target. Panics if it exceeds its fuel.
pub fn bounded(target: fn(&[u8]), data: &[u8]) {
    let ((), spent) = fuel::measure(|| target(data));
    assert!(spent <= MAX_FUEL, "{spent} units of fuel");
}

fn limits() -> Limits {
    Limits::default()
}

/// Regular expressions; the first byte selects options.
pub fn regex(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let options = match choice {
        b's' => RegexOptions::default().with_scope(regex::Scope::Search),
        b'u' => RegexOptions::default().with_classes(regex::Classes::Unicode),
        b'i' => RegexOptions::default().with_case(regex::Case::Insensitive),
        b'e' => RegexOptions::ECMA,
        _ => RegexOptions::default(),
    };
    match regex::lower(text, &options, &limits()) {
        Ok(grammar) => walk(&grammar, data),
        Err(error) => drop(error.diagnostics("pattern", text).to_string()),
    }
}

/// JSON Schemas.
pub fn json_schema(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let limits = limits();
    let Ok(schema) = Json::parse(text, &limits) else { return };
    match json_schema::lower(&schema, &SchemaOptions::default(), &limits) {
        Ok(grammar) => walk(&grammar, data),
        Err(errors) => drop(errors.to_string()),
    }
}

/// EBNF grammars; the first byte selects the dialect.
pub fn ebnf(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let dialect = match choice {
        b'g' => ebnf::EbnfDialect::Gbnf,
        b'x' => ebnf::EbnfDialect::Xgrammar,
        b'k' => ebnf::EbnfDialect::Kbnf,
        _ => ebnf::EbnfDialect::Common,
    };
    match ebnf::lower(text, &EbnfOptions::default().with_dialect(dialect), &limits()) {
        Ok(lowered) => {
            drop(lowered.warnings.to_string());
            walk(&lowered.grammar, data);
        }
        Err(errors) => drop(errors.to_string()),
    }
}

/// Lark grammars.
pub fn lark(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match lark::lower(text, &LarkOptions::default(), &limits()) {
        Ok(lowered) => {
            drop(lowered.warnings.to_string());
            walk(&lowered.grammar, data);
        }
        Err(errors) => drop(errors.to_string()),
    }
}

/// Structural tags.
pub fn structural_tag(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match structural_tag::lower(text, &StructuralTagOptions::default(), &limits()) {
        Ok(lowered) => walk(&lowered.grammar, data),
        Err(errors) => drop(errors.to_string()),
    }
}

/// Compiles a grammar with and without simplification, and walks along both in lockstep.
fn walk(grammar: &Grammar, data: &[u8]) {
    drop(grammar.to_string());
    let engine = |simplify| {
        let vocab = Vocabulary::toy(&[
            b"a", b"ab", b"\": ", b"{\"", b"null", b"10", b"\xc3", b"\xa9b", b"<", b"</",
        ]);
        let options = EngineOptions::default()
            .with_limits(limits())
            .with_simplify(simplify)
            .with_batch_threads(1);
        Engine::new(vocab.into(), options)
    };
    let compile = |simplify| engine(simplify).compile(grammar).ok();
    let (Some(plain), Some(simple)) = (compile(Simplify::Off), compile(Simplify::On)) else {
        return;
    };
    walk_in_lockstep(&plain, &simple, data);
}

/// One walk. Invariants at each step: both masks are equal, the mask agrees with `allows`, and some
/// token is allowed.
fn walk_in_lockstep(plain: &Constraint, simple: &Constraint, data: &[u8]) {
    let vocab = plain.vocab().clone();
    let (mut matcher, mut other) = (plain.matcher(), simple.matcher());
    let (mut mask, mut second) = (vec![0; vocab.mask_words()], vec![0; vocab.mask_words()]);
    let mut seed =
        data.iter().fold(0x9E37_79B9u32, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    for _ in 0..STEPS {
        matcher.fill_mask(&mut mask);
        other.fill_mask(&mut second);
        if matcher.limit().is_some() || other.limit().is_some() {
            return;
        }
        assert_eq!(mask, second, "simplification changed a mask after {:?}", matcher.tokens());
        let allowed: Vec<TokenId> =
            (0..vocab.width()).map(TokenId::new).filter(|&t| bit(&mask, t)).collect();
        assert!(!allowed.is_empty(), "nothing is allowed after {:?}", matcher.tokens());
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let any = TokenId::from_raw(seed >> 8 & 0xFF);
        if matcher.limit().is_none() {
            let allows = matcher.allows(any);
            assert!(
                matcher.limit().is_some() || allows == bit(&mask, any),
                "mask and test differ for token {any}"
            );
        }
        let token = allowed[(seed >> 16) as usize % allowed.len()];
        match (matcher.advance(token), other.advance(token)) {
            (Ok(()), Ok(())) => {}
            (a, b) => {
                use louver::matcher::AdvanceError::Limit;
                let limited = matches!(a, Err(Limit { .. })) || matches!(b, Err(Limit { .. }));
                assert!(limited, "token {token} is in the mask: {a:?} {b:?}");
                return;
            }
        }
        if matcher.is_terminated() {
            return;
        }
    }
}
