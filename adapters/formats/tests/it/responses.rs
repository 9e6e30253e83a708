//! With a response format, the text of a turn is the response or empty: in random turns of all
//! families.

use louver::engine::Matcher;
use louver::ids::TokenId;
use louver::spec::json::Json;
use louver_formats::{Call, Catalog, Reasoning, RenderError, ResponseFormat, Turn};
use serde_json::{Value, json};

use crate::harness::request;
use crate::rig::{Rig, Session, Specials, Unit, marker_texts};

/// The only response, and the only arguments.
const OBJECT: &str = "{\"n\": 1}";
const WALKS: u64 = 40;
const MAX_PIECES: usize = 80;

/// Turns of a family without a response format, with text, calls and both.
fn wires(rig: &Rig) -> Vec<String> {
    let call = || Call::new("f", OBJECT);
    let mut out = Vec::new();
    for (text, calls) in [
        ("So:", vec![]),
        (OBJECT, vec![]),
        ("", vec![call()]),
        ("", vec![call(), call()]),
        ("So:", vec![call(), call()]),
        (OBJECT, vec![call()]),
    ] {
        let turn = Turn::default().with_text(text).with_calls(calls);
        match rig.format.render(&turn) {
            Ok(wire) => out.push(wire),
            Err(RenderError::TextBesideCalls) => {}
            Err(error) => panic!("{}: {error}", rig.format.name),
        }
    }
    out
}

/// A random sequence of tokens that the grammar accepts, if it is a complete turn.
fn walk(mut matcher: Matcher, tokens: &[TokenId], seed: u64) -> Option<Vec<TokenId>> {
    let (mut state, mut taken) = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Vec::new());
    while taken.len() < MAX_PIECES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if matcher.is_complete() && state >> 40 & 1 == 0 {
            break;
        }
        let is_allowed = |token: &&TokenId| matcher.clone().advance(**token).is_ok();
        let allowed: Vec<TokenId> = tokens.iter().filter(is_allowed).copied().collect();
        let Some(&token) = allowed.get((state >> 20) as usize % allowed.len().max(1)) else {
            break;
        };
        matcher.advance(token).expect("allowed");
        taken.push(token);
    }
    matcher.is_complete().then_some(taken)
}

/// The turns of random walks over the pieces of these wire texts, cut at all markers.
fn turns(rig: &Rig, session: &Session<'_>, pieces: &[Unit<'_>]) -> Vec<Turn> {
    let token = |piece: &Unit<'_>| match piece {
        Unit::Special(name) if rig.specials.iter().any(|special| special == name) => {
            session.tokens(&[*piece], 0)[0]
        }
        Unit::Special(text) => session.token(text.as_bytes()),
        Unit::Bytes(bytes) => session.token(bytes),
    };
    let tokens: Vec<TokenId> = pieces.iter().map(token).collect();
    let walks = (1..=WALKS).filter_map(|seed| walk(session.matcher(), &tokens, seed));
    walks.map(|taken| session.run(&taken, 1).turn).collect()
}

#[test]
fn text_is_the_response_or_empty() {
    let parameters = json!({"type": "object", "properties": {"n": {"const": 1}}, "required": ["n"],
        "additionalProperties": false});
    let tools = json!([{"name": "f", "parameters": parameters}]).to_string();
    let (mut wrong, mut responses, mut calls) = (Vec::new(), 0, 0);
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Most);
        let wires = wires(&rig);
        let mut markers = Vec::new();
        let value = serde_json::to_value(&rig.format).expect("JSON");
        marker_texts(&value, &["text", "token", "either"], &mut markers);
        markers.retain(|marker| !marker.is_empty());
        markers.sort_by_key(|marker| std::cmp::Reverse(marker.len()));
        let cutter = Rig { format: rig.format.clone(), specials: markers };
        let mut pieces: Vec<Unit<'_>> = Vec::new();
        for piece in wires.iter().flat_map(|wire| cutter.units(wire)) {
            if !pieces.contains(&piece) {
                pieces.push(piece);
            }
        }
        for choice in ["auto", "required"] {
            let schema = Json::from(json!({"const": {"n": 1}}));
            let request = request(&tools, &json!(choice))
                .with_reasoning(Reasoning::Off)
                .with_response_format(ResponseFormat::Schema(schema));
            let lowered =
                rig.format.lower(&request).unwrap_or_else(|e| panic!("{}: {e}", format.name));
            let bytes = pieces.iter().map(|piece| match piece {
                Unit::Special(text) => text.as_bytes().to_vec(),
                Unit::Bytes(bytes) => bytes.to_vec(),
            });
            let session = rig.session_of(&lowered, bytes);
            let (mut with_text, mut with_calls) = (0, 0);
            for turn in turns(&rig, &session, &pieces) {
                let value = serde_json::from_str::<Value>(&turn.text).ok();
                if !turn.text.is_empty() && value != Some(json!({"n": 1})) {
                    wrong.push(format!("{}, {choice}: {turn:?}", format.name));
                }
                with_text += usize::from(!turn.text.is_empty());
                with_calls += usize::from(!turn.calls.is_empty());
            }
            if (with_text > 0) != (choice == "auto") || with_calls == 0 {
                wrong.push(format!(
                    "{}, {choice}: {with_text} responses, {with_calls} turns with calls",
                    format.name
                ));
            }
            (responses, calls) = (responses + with_text, calls + with_calls);
        }
    }
    println!("{responses} responses, {calls} turns with calls");
    wrong.dedup();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
