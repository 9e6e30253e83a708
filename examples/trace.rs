//! Prints all stages of one schema: `cargo run -p louver --example trace`.

use std::sync::Arc;

use louver::compile::Compiled;
use louver::engine::{Engine, EngineOptions};
use louver::front::json_schema::{SchemaOptions, lower};
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = r#"{"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": false}"#;
    println!("schema\n  {schema}\n");

    let limits = Limits::default();
    let grammar = lower(&Json::parse(schema, &limits)?, &SchemaOptions::default(), &limits)?;
    println!("grammar (ir)");
    for line in grammar.to_string().lines() {
        println!("  {line}");
    }

    let compiled = Arc::new(Compiled::new(&grammar, &limits)?);
    println!("\ncompiled\n  {:?}", compiled.size());

    let vocab =
        Arc::new(Vocabulary::toy(&[b"{\"", b"on", b"\":", b" true", b"true}", b"false", b"}\n"]));
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let constraint = engine.bind(compiled)?;
    let mut matcher = constraint.matcher();
    let mut mask = vec![0; vocab.mask_words()];
    println!("\ntoken by token (matcher, mask)");
    for next in [257, 258, 259, 261, 256] {
        matcher.fill_mask(&mut mask);
        let allowed: Vec<String> = (0..vocab.width())
            .map(TokenId::new)
            .filter(|&t| louver::mask::bit(&mask, t))
            .map(|t| text(&vocab, t))
            .collect();
        println!(
            "  allowed {:<60} take {}",
            allowed.join(" "),
            text(&vocab, TokenId::from_raw(next))
        );
        matcher.advance(TokenId::from_raw(next))?;
    }

    let mut logits = vec![0.5f32; vocab.width()];
    for (id, logit) in logits.iter_mut().enumerate() {
        if !louver::mask::bit(&mask, TokenId::new(id)) {
            *logit = f32::NEG_INFINITY;
        }
    }
    println!(
        "\nlogits left finite by the last mask: {}",
        logits.iter().filter(|l| l.is_finite()).count()
    );
    Ok(())
}

fn text(vocab: &Vocabulary, token: TokenId) -> String {
    match vocab.bytes(token) {
        Some(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        None => vocab.special_name(token).unwrap_or("?").to_owned(),
    }
}
