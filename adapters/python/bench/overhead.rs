//! The Rust side of bench/overhead.py: the same calls without Python.

use std::sync::Arc;
use std::time::Instant;

use louver::{Engine, EngineOptions, SchemaOptions, TokenId, Vocabulary};

const SCHEMA: &str =
    r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}"#;
const CALLS: u32 = 40_000;

fn measure(name: &str, mut call: impl FnMut()) {
    let best = (0..5).map(|_| {
        let started = Instant::now();
        (0..CALLS).for_each(|_| call());
        started.elapsed() / CALLS
    });
    println!("{name:45} {:9} ns", best.min().unwrap_or_default().as_nanos());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = (0..128_000 - 257).map(|k| format!(" w{k}")).collect();
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    for (name, words) in [("128,000 ids", &words[..]), ("257 ids", &[])] {
        let vocab = Arc::new(Vocabulary::toy(words));
        let engine = Engine::new(vocab.clone(), EngineOptions::default());
        let mut matcher = engine.compile_json_schema(SCHEMA, &SchemaOptions::default())?.matcher();
        for byte in *br#"{"a": 1"# {
            matcher.advance(TokenId::from_raw(byte.into()))?;
        }
        let mut row = vec![0; vocab.mask_words()];
        measure(&format!("fill_mask, cached mask, {name}"), || matcher.fill_mask(&mut row));
        let token = TokenId::from_raw(b'2'.into());
        measure(&format!("advance and rollback(1), {name}"), || {
            matcher.advance(token).expect("a digit may follow");
            matcher.rollback(1);
        });
        measure(&format!("is_complete, {name}"), || {
            std::hint::black_box(matcher.is_complete());
        });
    }
    Ok(())
}
