//! Requests with other tools share the mask of free text, with which most turns begin.

use std::sync::Arc;

use louver::{Engine, EngineOptions, Vocabulary};
use louver_formats::Catalog;
use serde_json::json;

use crate::harness::{as_text, request};

fn tools(name: &str) -> String {
    let parameters = json!({"type": "object", "properties": {name: {"type": "string"}}});
    json!([{"name": name, "parameters": parameters}]).to_string()
}

#[test]
fn requests_share_the_mask_of_free_text() {
    // The longest token decides how much of the free text a mask depends on.
    let mut pieces: Vec<Vec<u8>> = (0..20_000u32).map(|n| format!(" w{n}").into_bytes()).collect();
    pieces.extend([vec![b' '; 128], b"{\n  \"name".to_vec(), b"name\": \"".to_vec()]);
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    let vocab = Arc::new(Vocabulary::toy(&pieces));
    let mut mask = vec![0u32; vocab.mask_words()];
    let mut checked = 0;
    for name in Catalog::shipped().names() {
        let format = as_text(&name);
        let engine = Engine::new(vocab.clone(), EngineOptions::default());
        let mut misses = Vec::new();
        for tool in ["get_weather", "find", "play_music"] {
            let Ok(lowered) = format.lower(&request(&tools(tool), &json!("auto"))) else {
                continue;
            };
            // The markers of some families are always special tokens.
            let Ok(constraint) = engine.compile(lowered.grammar().clone()) else { continue };
            constraint.matcher().fill_mask(&mut mask);
            misses.push(engine.pool_stats().misses);
        }
        if let [first, .., last] = misses[..] {
            checked += 1;
            assert_eq!(first, last, "{name}: {misses:?}");
        }
    }
    assert!(checked > 70, "{checked}");
}
