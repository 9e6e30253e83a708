//! Tokenizers built in code, one per decoder family.

use louver::ids::TokenId;
use louver_hf_tokenizers::{
    DecoderError, Encoder, LoadError, VocabOptions, Warning, load, vocabulary,
};
use serde_json::{Value, json};
use tokenizers::Tokenizer;

fn tokenizer(value: &Value) -> Tokenizer {
    Tokenizer::from_bytes(value.to_string()).expect("the test's tokenizer is valid")
}

fn added(id: u32, content: &str, special: bool) -> Value {
    json!({"id": id, "content": content, "special": special, "single_word": false,
           "lstrip": false, "rstrip": false, "normalized": false})
}

/// The character for a byte in GPT-2's alphabet, from its definition.
fn gpt2(byte: u8) -> char {
    let stands_for_itself =
        |b: u8| (b'!'..=b'~').contains(&b) || (0xa1..=0xac).contains(&b) || b >= 0xae;
    if stands_for_itself(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|&b| !stands_for_itself(b)).count() as u32;
    char::from_u32(0x100 + rank).expect("below U+0180")
}

/// 256 bytes with ids 0..=255, three words, a special token, two added ones, one of which decodes
/// to other bytes.
fn byte_level() -> Value {
    let mut vocab: serde_json::Map<String, Value> =
        (0..=255u8).map(|b| (gpt2(b).to_string(), json!(b))).collect();
    for (i, word) in ["th", "the", "\u{120}t", "\u{c3}\u{a9}"].iter().enumerate() {
        vocab.insert((*word).to_owned(), json!(256 + i));
    }
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [
            added(260, "<|end|>", true), added(261, "<tool_call>", false), added(262, "  ", false),
            added(263, "\u{e9}\u{e9}", false), added(264, "<｜sep｜>", false),
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                  "vocab": vocab, "merges": ["t h", "th e", "\u{120} t", "\u{c3} \u{a9}"]},
    })
}

/// `<unk>`, `</s>`, the 256 byte tokens, then letters and words with `▁`.
fn byte_fallback() -> Value {
    let mut vocab = serde_json::Map::new();
    vocab.insert("<unk>".into(), json!(0));
    vocab.insert("</s>".into(), json!(1));
    for b in 0..=255u8 {
        vocab.insert(format!("<0x{b:02X}>"), json!(2 + u32::from(b)));
    }
    for word in ["\u{2581}", "a", "b", "{", "\u{2581}a", "ab"] {
        vocab.insert(word.into(), json!(vocab.len()));
    }
    json!({
        "version": "1.0", "truncation": null, "padding": null, "post_processor": null, "pre_tokenizer": null,
        "added_tokens": [added(0, "<unk>", true), added(1, "</s>", true)],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u{2581}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}]},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true,
                  "vocab": vocab, "merges": ["\u{2581} a", "a b"]},
    })
}

fn stops(ids: &[u32]) -> VocabOptions {
    VocabOptions::default().with_stop_ids(ids.to_vec())
}

#[test]
fn byte_level_tokens_have_their_bytes() {
    let tokenizer = tokenizer(&byte_level());
    let (vocab, warnings) = vocabulary(&tokenizer, &stops(&[260])).expect("a vocabulary");
    let bytes = |id| vocab.bytes(TokenId::from_raw(id)).map(<[u8]>::to_vec);
    for b in 0..=255u8 {
        assert_eq!(bytes(u32::from(b)), Some(vec![b]));
    }
    assert_eq!(bytes(257).as_deref(), Some(&b"the"[..]));
    assert_eq!(bytes(258).as_deref(), Some(&b" t"[..]));
    assert_eq!(bytes(259).as_deref(), Some("\u{e9}".as_bytes()));
    assert_eq!(bytes(260), None);
    assert_eq!(vocab.special("<|end|>"), Some(TokenId::from_raw(260)));
    assert_eq!(bytes(261).as_deref(), Some(&b"<tool_call>"[..]));
    assert_eq!(bytes(262).as_deref(), Some(&b"  "[..]), "an added token's spaces are spaces");
    assert_eq!(bytes(264).as_deref(), Some("<｜sep｜>".as_bytes()));
    assert!(vocab.missing_bytes().is_empty());
    // The byte-level decoder decodes the added token `éé` to the bytes 0xE9 0xE9, and so does the
    // host.
    assert_eq!(bytes(263), Some(vec![0xe9, 0xe9]));
    assert_eq!(
        warnings,
        [Warning::ShownDifferently {
            id: 263,
            token: "\u{e9}\u{e9}".into(),
            shown: "\u{fffd}\u{fffd}".into()
        }]
    );
    assert_eq!(vocab.width(), 265);
}

#[test]
fn byte_fallback_tokens_have_their_bytes() {
    let plain = byte_fallback();
    // As converters of GGUF files flag them.
    let mut flagged = plain.clone();
    for byte in 0..=255u8 {
        let token = added(2 + u32::from(byte), &format!("<0x{byte:02X}>"), true);
        flagged["added_tokens"].as_array_mut().expect("a list").push(token);
    }
    for json in [plain, flagged] {
        let tokenizer = tokenizer(&json);
        let (vocab, warnings) = vocabulary(&tokenizer, &stops(&[1])).expect("a vocabulary");
        let bytes = |text: &str| {
            let id = tokenizer.token_to_id(text).expect("a token of the test");
            vocab.bytes(TokenId::from_raw(id)).map(<[u8]>::to_vec)
        };
        assert_eq!(bytes("<0x0A>"), Some(vec![b'\n']));
        assert_eq!(bytes("<0xFF>"), Some(vec![0xff]));
        assert_eq!(bytes("\u{2581}a").as_deref(), Some(&b" a"[..]));
        assert_eq!(bytes("\u{2581}").as_deref(), Some(&b" "[..]));
        assert_eq!(bytes("</s>"), None);
        assert!(vocab.missing_bytes().is_empty());
        assert_eq!(warnings, []);
    }
}

#[test]
fn encoding_has_no_prefix_space() {
    for (value, stop) in [(byte_level(), 260), (byte_fallback(), 1)] {
        let tokenizer = tokenizer(&value);
        let (vocab, _) = vocabulary(&tokenizer, &stops(&[stop])).expect("a vocabulary");
        let encoder = Encoder::new(&tokenizer, &vocab);
        for text in ["ab", " ab", "a b\n", "{\"the\": [1, 2]}", "\u{e9}\u{1f600} the", ""] {
            let ids = encoder.encode(text).expect("tokens");
            let bytes: Vec<u8> = ids
                .iter()
                .flat_map(|&id| vocab.bytes(TokenId::from_raw(id)).expect("text").to_vec())
                .collect();
            assert_eq!(bytes, text.as_bytes(), "{text:?} as {ids:?}");
        }
    }
}

#[test]
fn width_pads_or_truncates() {
    let tokenizer = tokenizer(&byte_level());
    let wide = stops(&[260]).with_width(512);
    let (vocab, _) = vocabulary(&tokenizer, &wide).expect("a vocabulary");
    assert_eq!((vocab.width(), vocab.mask_words()), (512, 16));
    assert!((265..512).all(|id| !vocab.is_used(TokenId::from_raw(id))));
    let narrow = stops(&[260]).with_width(262);
    let (vocab, warnings) = vocabulary(&tokenizer, &narrow).expect("a vocabulary");
    assert_eq!(vocab.width(), 262);
    assert_eq!(warnings, [Warning::BeyondWidth { first: 262, count: 3, width: 262 }]);
    let impossible = stops(&[260]).with_width(100);
    assert!(matches!(vocabulary(&tokenizer, &impossible), Err(LoadError::Vocab(_))));
}

#[test]
fn stop_tokens_come_from_options_then_files_then_common_names() {
    let folder = std::env::temp_dir().join(format!("louver-hf-tokenizers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let file = folder.join("tokenizer.json");
    std::fs::write(&file, byte_fallback().to_string()).expect("written");
    let stops_of = |options: &VocabOptions| {
        let loaded = load(&file, options).expect("loads");
        let ids: Vec<u32> = loaded.vocab.stops().iter().map(|id| id.raw()).collect();
        (ids, loaded.warnings)
    };
    let guessed = Warning::StopGuessed { id: 1, name: "</s>".into() };
    assert_eq!(stops_of(&VocabOptions::default()), (vec![1], vec![guessed]));
    std::fs::write(folder.join("tokenizer_config.json"), r#"{"eos_token": {"content": "</s>"}}"#)
        .expect("written");
    assert_eq!(stops_of(&VocabOptions::default()), (vec![1], vec![]));
    std::fs::write(folder.join("generation_config.json"), r#"{"eos_token_id": [0, 1]}"#)
        .expect("written");
    assert_eq!(stops_of(&VocabOptions::default()), (vec![0, 1], vec![]));
    assert_eq!(stops_of(&stops(&[0])), (vec![0], vec![]));
    let unknown = VocabOptions::default().with_stop_names(vec!["</s>".into(), "<nope>".into()]);
    assert_eq!(stops_of(&unknown), (vec![1], vec![Warning::UnknownStop("<nope>".into())]));
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// The files of fine-tuned models may have the truncation and the padding of their training.
#[test]
fn texts_are_encoded_whole() {
    let mut value = byte_level();
    value["truncation"] =
        json!({"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0});
    value["padding"] = json!({
        "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 260, "pad_type_id": 0, "pad_token": "<|end|>"});
    let file = std::env::temp_dir().join(format!("louver whole {}.json", std::process::id()));
    std::fs::write(&file, value.to_string()).expect("written");
    let loaded = load(&file, &stops(&[260])).expect("loads");
    let encoder = Encoder::new(&loaded.tokenizer, &loaded.vocab);
    for text in ["ab", "abcdefghijkl"] {
        let ids: Vec<u32> = text.bytes().map(u32::from).collect();
        assert_eq!(encoder.encode(text).expect("encodes"), ids);
    }
    std::fs::remove_file(&file).expect("removed");
}

#[test]
fn unsupported_decoders_are_rejected() {
    let mut value = byte_level();
    value["decoder"] = Value::Null;
    let refused = vocabulary(&tokenizer(&value), &stops(&[260]));
    assert!(matches!(refused, Err(LoadError::Decoder(DecoderError::Missing))));
    value["decoder"] = json!({"type": "Sequence", "decoders": [
        {"type": "Fuse"}, {"type": "WordPiece", "prefix": "##", "cleanup": true}]});
    match vocabulary(&tokenizer(&value), &stops(&[260])) {
        Err(LoadError::Decoder(DecoderError::Unsupported { pointer, kind })) => {
            assert_eq!((pointer.as_str(), kind.as_str()), ("/decoder/decoders/1", "WordPiece"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        load("no/such/tokenizer.json", &VocabOptions::default()),
        Err(LoadError::Tokenizer { .. })
    ));
}

#[test]
fn inconsistent_tokens_are_left_out() {
    // A replacement that removes letters leaves tokens without text; then a byte has no token.
    let mut value = byte_level();
    value["decoder"] = json!({"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "q"}, "content": ""}, value["decoder"].take()]});
    let (vocab, warnings) = vocabulary(&tokenizer(&value), &stops(&[260])).expect("a vocabulary");
    assert!(!vocab.is_used(TokenId::from_raw(u32::from(b'q'))));
    assert!(
        warnings.contains(&Warning::NoText { id: u32::from(b'q'), token: "q".into() }),
        "{warnings:?}"
    );
    assert!(
        warnings.iter().any(|w| matches!(w, Warning::MissingBytes(set) if set.iter().eq([b'q']))),
        "{warnings:?}"
    );
}
