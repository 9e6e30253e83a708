//! Harmony on the real host, with its own vocabulary and ids, and a template that mistralrs 0.8.1
//! detects as Harmony. Without Louver, the host ends every such generation at the first
//! `<|channel|>`.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use louver_mistralrs::{Completion, Finish, Louver, Reasoning, ToolChoice};
use mistralrs::{ModelDType, TextModelBuilder};
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::support::{
    Host, check_calls, check_json, prefer_tokens, request, response_schema, run_request, seeded,
    token_id, tools,
};

/// Number of ordinary tokens, which come before the special ones.
const ORDINARY_TOKENS: u32 = 199_998;
/// Environment variable with the folder from which the host's library loads the encoding.
const ENCODINGS_VARIABLE: &str = "TIKTOKEN_ENCODINGS_BASE";

/// The host downloads its encoding at the first Harmony request, unless an environment variable
/// names a folder. So the test runs in a separate process.
#[test]
fn harmony() {
    let folder = std::env::temp_dir().join("louver-tests").join("o200k");
    std::fs::create_dir_all(&folder).unwrap();
    let bpe = tiktoken_rs::o200k_harmony().unwrap();
    let bytes: Vec<Vec<u8>> =
        bpe._decode_native_and_split((0..ORDINARY_TOKENS).collect()).collect();
    write_encoding(&folder, &bytes);
    write_tokenizer(&folder, &bpe, &bytes);
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "harmony::run_in_host",
            "--ignored",
            "--nocapture",
            "--test-threads",
            "1",
        ])
        .env(ENCODINGS_VARIABLE, &folder)
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

fn write_encoding(folder: &Path, bytes: &[Vec<u8>]) {
    let mut text = String::new();
    for (rank, bytes) in bytes.iter().enumerate() {
        base64::engine::general_purpose::STANDARD.encode_string(bytes, &mut text);
        text.push_str(&format!(" {rank}\n"));
    }
    std::fs::write(folder.join("o200k_base.tiktoken"), text).unwrap();
}

/// Writes the same vocabulary as a `tokenizer.json`: byte-level BPE, with merges reconstructed by
/// merging.
fn write_tokenizer(folder: &Path, bpe: &CoreBPE, bytes: &[Vec<u8>]) {
    let ranks: HashMap<&[u8], usize> =
        bytes.iter().enumerate().map(|(rank, b)| (b.as_slice(), rank)).collect();
    let shown = |bytes: &[u8]| -> String { bytes.iter().map(|b| byte_letter(*b)).collect() };
    let mut merges = Vec::new();
    for (rank, token) in bytes.iter().enumerate().filter(|(_, token)| token.len() > 1) {
        let mut parts: Vec<&[u8]> = token.chunks(1).collect();
        let mut ends: Vec<usize> = (1..=token.len()).collect();
        while parts.len() > 2 {
            let start = |at: usize| if at == 0 { 0 } else { ends[at - 1] };
            let best = (0..parts.len() - 1)
                .filter_map(|at| {
                    ranks
                        .get(&token[start(at)..ends[at + 1]])
                        .filter(|r| **r < rank)
                        .map(|r| (*r, at))
                })
                .min();
            let Some((_, at)) = best else { break };
            let from = start(at);
            parts[at] = &token[from..ends[at + 1]];
            parts.remove(at + 1);
            ends.remove(at);
        }
        if let [left, right] = parts[..] {
            merges.push(json!([shown(left), shown(right)]));
        }
    }
    let vocab: serde_json::Map<String, Value> =
        bytes.iter().enumerate().map(|(rank, bytes)| (shown(bytes), rank.into())).collect();
    let mut added: Vec<(u32, String)> = bpe
        .special_tokens()
        .into_iter()
        .map(|name| (bpe.encode_with_special_tokens(name)[0], name.to_owned()))
        .collect();
    added.sort();
    let added: Vec<Value> = added
        .into_iter()
        .map(|(token_id, content)| {
            json!({"id": token_id, "content": content, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false})
        })
        .collect();
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": level, "post_processor": null, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
            "vocab": vocab, "merges": merges},
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer_config.json"), r#"{"eos_token": "<|return|>"}"#).unwrap();
}

/// GPT-2's printable character for a byte.
fn byte_letter(byte: u8) -> char {
    let plain = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if plain(byte) {
        return char::from(byte);
    }
    let hidden = (0..byte).filter(|b| !plain(*b)).count() as u32;
    char::from_u32(0x100 + hidden).unwrap()
}

async fn load_host(folder: &Path) -> Host {
    let parent = folder.parent().unwrap();
    let tiny = louver_tiny_model::ensure_around(parent, &folder.join("tokenizer.json")).unwrap();
    let template = folder.join("harmony.jinja");
    let text = "{#- <|channel|> -#}{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>\
        {% endfor %}<|start|>assistant";
    std::fs::write(&template, text).unwrap();
    let builder =
        TextModelBuilder::new(tiny.dir.display()).with_force_cpu().with_dtype(ModelDType::F32);
    let builder = builder.with_jinja_explicit(template.display().to_string());
    let (model, louver) = Louver::load(builder).await.unwrap();
    Host { model, louver }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by `harmony`, in a process of its own"]
async fn run_in_host() {
    let folder = std::env::var_os(ENCODINGS_VARIABLE).expect("run by `harmony`");
    let host = load_host(Path::new(&folder)).await;
    let louver = &host.louver;
    assert_eq!(louver.format().unwrap(), "harmony");
    let end = token_id(louver, "<|end|>");
    let ends = || {
        prefer_tokens(vec![end, token_id(louver, "<|call|>"), token_id(louver, "<|return|>")], 30.0)
    };

    // An immediate call.
    let plan = louver
        .tools(tools())
        .choice(ToolChoice::Required)
        .reasoning(Reasoning::Off)
        .build()
        .unwrap();
    for seed in 0..5 {
        let generation =
            run_request(&host, &plan, request("Book!").add_logits_processor(ends()), seeded(seed))
                .await;
        assert_eq!(
            (generation.finish, generation.turn.calls.len()),
            (Finish::Stop, 1),
            "{:?}",
            generation.turn
        );
        check_calls(&generation.turn, &tools());
    }
    // Reasoning on its channel, then the response on the final channel.
    let plan = louver.answer(&response_schema()).reasoning(Reasoning::Required).build().unwrap();
    let generation =
        run_request(&host, &plan, request("Think!").add_logits_processor(ends()), seeded(1)).await;
    assert_eq!(generation.report.completion, Completion::Complete);
    check_json(&generation.turn.text, &response_schema());
    // Free text continues after markers that end a generation for the host.
    let plan =
        louver.tools(tools()).choice(ToolChoice::None).reasoning(Reasoning::Off).build().unwrap();
    let generation =
        run_request(&host, &plan, request("Talk!").set_sampler_max_len(40), seeded(1)).await;
    assert_eq!((generation.tokens.len(), generation.finish), (40, Finish::Length));
    assert!(generation.turn.text.chars().count() > 40);
    assert!(generation.tokens.starts_with(&[token_id(louver, "<|channel|>")]));
}
