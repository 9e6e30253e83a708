//! Markers that are special tokens in one vocabulary and text in another.

use std::sync::Arc;

use louver::engine::{Engine, EngineOptions};
use louver::ids::TokenId;
use louver::matcher::Tracer;
use louver::vocab::Vocabulary;
use louver_formats::{Catalog, Marker, MarkerPart, Turn, WireFormat};
use serde_json::json;

use crate::harness::{SEED, request};
use crate::rig::{Rig, Specials};

const MARKERS: [&str; 4] = ["<think>", "</think>", "<tool_call>", "</tool_call>"];
const END: u32 = 300;

/// A vocabulary of single bytes, the markers as special tokens, and a stop token.
fn vocabulary() -> Vocabulary {
    let mut builder = Vocabulary::builder(END as usize + 1);
    for byte in 0..=255u8 {
        builder.token(u32::from(byte), &[byte]);
    }
    for (id, marker) in (256..).zip(MARKERS) {
        builder.special(id, marker);
    }
    builder.special(END, "<|im_end|>").stop(END);
    builder.build().expect("vocabulary")
}

fn tokens(vocab: &Vocabulary, wire: &str) -> Vec<TokenId> {
    let mut out = Vec::new();
    let mut rest = wire;
    while !rest.is_empty() {
        if let Some(marker) = MARKERS.iter().find(|m| rest.starts_with(**m)) {
            out.push(vocab.special(marker).expect("marker"));
            rest = &rest[marker.len()..];
        } else {
            let len = rest.chars().next().map_or(1, char::len_utf8);
            out.extend(rest.bytes().take(len).map(|b| TokenId::from_raw(u32::from(b))));
            rest = &rest[len..];
        }
    }
    out
}

fn run(format: &WireFormat, choice: &serde_json::Value, tokens: &[TokenId]) -> Option<Turn> {
    let lowered = format.lower(&request(r#"[{"name": "f"}]"#, choice)).expect("lowers");
    let engine = Engine::new(Arc::new(vocabulary()), EngineOptions::default());
    let mut matcher = engine.compile(lowered.grammar().clone()).expect("compiles").matcher();
    let (mut tracer, mut extractor, mut events) =
        (Tracer::new(), lowered.extractor(SEED), Vec::new());
    for token in tokens {
        matcher.advance_traced(*token, &mut tracer).ok()?;
        events.extend(extractor.push(tracer.drain()));
    }
    let complete = matcher.is_complete();
    events.extend(extractor.push(tracer.finish()));
    events.extend(extractor.finish(complete));
    complete.then(|| Turn::collect(&events))
}

const CALL: &str = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";

#[test]
fn either_takes_token_and_text() {
    let vocab = vocabulary();
    let format = Catalog::shipped().get("qwen3").expect("format").bind(&vocab);
    let wire = format!("<think>\nHm\n</think>\n\nSo:\n{CALL}");
    for choice in [json!("auto"), json!("required")] {
        let wire = if choice == "auto" { wire.clone() } else { wire.replace("So:\n", "") };
        let spelled: Vec<TokenId> = wire.bytes().map(|b| TokenId::from_raw(u32::from(b))).collect();
        let by_token = run(&format, &choice, &tokens(&vocab, &wire)).expect("special tokens");
        let by_text = run(&format, &choice, &spelled).expect("text");
        assert_eq!(by_token, by_text);
        assert_eq!((by_token.reasoning.as_str(), by_token.calls.len()), ("Hm", 1));
    }
}

#[test]
fn a_token_is_never_its_spelling() {
    let vocab = vocabulary();
    let mut format = Catalog::shipped().get("qwen3").expect("format").clone();
    format.call.begin = Some(Marker::Token("<tool_call>".to_owned()));
    let format = format.bind(&vocab);
    let wire = CALL;
    let spelled: Vec<TokenId> = wire.bytes().map(|b| TokenId::from_raw(u32::from(b))).collect();
    let turn = run(&format, &json!("auto"), &tokens(&vocab, wire)).expect("special token");
    assert_eq!(turn.calls.len(), 1);
    assert_eq!(run(&format, &json!("required"), &spelled), None);
    assert_eq!(run(&format, &json!("auto"), &spelled), None, "</tool_call> cannot stand in text");
}

#[test]
fn forbidden_calls_forbid_the_token() {
    let vocab = vocabulary();
    let format = Catalog::shipped().get("qwen3").expect("format").bind(&vocab);
    assert!(run(&format, &json!("none"), &tokens(&vocab, "text")).is_some());
    assert_eq!(run(&format, &json!("none"), &tokens(&vocab, "text<tool_call>")), None);
}

#[test]
fn a_vocabulary_without_the_token_leaves_the_text() {
    let format = Catalog::shipped().get("qwen3").expect("format").bind(&Vocabulary::toy(&[]));
    assert_eq!(format.call.begin, Some(Marker::Text("<tool_call>".to_owned())));
    assert_eq!(format.reasoning.expect("reasoning").end, Marker::Text("</think>".to_owned()));
}

/// A vocabulary of single bytes and these tokens, special or not.
fn with_tokens(tokens: &[(String, bool)]) -> Vocabulary {
    let mut builder = Vocabulary::builder(257 + tokens.len());
    for byte in 0..=255u8 {
        builder.token(u32::from(byte), &[byte]);
    }
    builder.special(256, "<stop>").stop(256);
    for (id, (token, is_special)) in (257..).zip(tokens) {
        if *is_special {
            builder.special(id, token);
        } else {
            builder.token(id, token.as_bytes());
        }
    }
    builder.build().expect("vocabulary")
}

#[test]
fn a_suffix_of_markers_is_read_from_the_vocabulary() {
    let format = Catalog::shipped().get("hy_v4").expect("format").clone();
    let tags = ["think", "tool_calls", "tool_call", "arg_key", "arg_value"];
    let vocabulary = |suffix: &str, is_special: bool, tags: &[&str]| {
        let tokens = tags.iter().flat_map(|tag| ["", "/"].map(|slash| (slash, tag)));
        let mut tokens: Vec<(String, bool)> =
            tokens.map(|(slash, tag)| (format!("<{slash}{tag}{suffix}>"), is_special)).collect();
        tokens.push(("<thinking>".to_owned(), is_special));
        with_tokens(&tokens)
    };
    let begin = |vocab: &Vocabulary| format.bind(vocab).section.expect("section").begin;
    for suffix in [":6124c78e", "", ":opensource", "#1"] {
        let text = format!("<tool_calls{suffix}>");
        let special = vocabulary(suffix, true, &tags);
        assert_eq!(begin(&special), Marker::Either(text.clone()));
        let ordinary = vocabulary(suffix, false, &tags);
        assert_eq!(begin(&ordinary), Marker::Text(text));
        let bound = format.bind(&special);
        assert_eq!(bound.stop_tokens, [format!("<｜hy_end{suffix}｜>")]);
        assert_eq!(bound.text.excludes[1], format!("</think{suffix}>"));
        assert_eq!((&bound.name, &bound.detect), (&format.name, &format.detect));
        let turn = Turn::default().with_text("Hi").with_reasoning("Hm");
        let want = format!("<think{suffix}>Hm</think{suffix}>Hi");
        assert_eq!(bound.render(&turn).expect("renders"), want);
        assert!(bound.prompt_opens_reasoning(&format!("<think{suffix}>\n")));
    }
    // A vocabulary that lacks one of the markers has no suffix.
    let lacking = vocabulary(":6124c78e", true, &tags[..4]);
    assert_eq!(begin(&lacking), Marker::Text("<tool_calls:opensource>".to_owned()));
}

/// Whether the marker can be ordinary text in a vocabulary that has its special tokens.
fn can_be_text(marker: &Marker) -> bool {
    match marker {
        Marker::Text(_) | Marker::Either(_) => true,
        Marker::Token(_) => false,
        Marker::Any(markers) => markers.iter().any(can_be_text),
        Marker::Seq(steps) => steps.iter().all(|step| match step {
            MarkerPart::Text(_) => true,
            MarkerPart::Marker(marker) => can_be_text(marker),
        }),
    }
}

/// The begin marker of the template's calls, or of messages, in families that have one.
fn begin(format: &WireFormat) -> Option<&Marker> {
    let section = format.section.as_ref().map(|section| &section.begin);
    let separator = format.messages.as_ref().map(|messages| &messages.separator);
    section.or(format.call.begin.as_ref()).or(separator)
}

/// Whether the begin marker of calls is a special token in every vocabulary, and whether it is one
/// in some.
pub(crate) fn begin_marker_tokens(format: &WireFormat) -> (bool, bool) {
    fn is_one(marker: &Marker) -> bool {
        match marker {
            Marker::Token(_) | Marker::Either(_) => true,
            Marker::Text(_) => false,
            Marker::Any(markers) => markers.first().is_some_and(is_one),
            Marker::Seq(steps) => steps.iter().any(|step| match step {
                MarkerPart::Text(_) => false,
                MarkerPart::Marker(marker) => is_one(marker),
            }),
        }
    }
    (!written_out_marker_begins_a_call(format), begin(format).is_some_and(is_one))
}

/// Whether the begin marker of calls, written out in ordinary tokens, begins a call.
pub(crate) fn written_out_marker_begins_a_call(format: &WireFormat) -> bool {
    begin(format).is_some_and(can_be_text)
}

/// The page of the formats says for each family what a written-out begin marker is. Harmony, whose
/// messages begin with special tokens, has a test of its own (spelled_out_markers_are_text).
#[test]
fn a_written_out_marker_begins_a_call_as_documented() {
    let mut without = Vec::new();
    for format in Catalog::shipped().formats() {
        if !written_out_marker_begins_a_call(format) {
            without.push(format.name.clone());
            continue;
        }
        let marker = begin(format).expect("a marker").write();
        let rig = Rig::new(format, Specials::Most);
        let request = request(r#"[{"name": "f"}]"#, &json!("auto"));
        let lowered = rig.format.lower(&request).expect("lowers");
        let turn = Turn::default().with_text("PLACE.");
        let wire = rig.format.render(&turn).expect("renders");
        let written_out: String = marker.chars().flat_map(|c| ['\0', c]).collect();
        let wire = wire.replace("PLACE", &written_out);
        let units = rig.units(&wire);
        let session = rig.session(&lowered, &units, &[0]);
        let run = session.run(&session.tokens(&units, 0), 1);
        let is_text = run.taken.is_ok() && run.complete;
        assert!(!is_text, "{}: {run:?}", format.name);
    }
    assert_eq!(without, ["beam", "glm4", "harmony", "inkling", "muse_glimmer"]);
}
