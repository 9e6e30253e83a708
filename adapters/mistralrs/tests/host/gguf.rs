//! GGUF files: the tiny model as one, and a trained model where it is.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Value as Metadata};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use louver_mistralrs::{
    GgufModel, Louver, LouverOptions, Parallel, Reasoning, ToolChoice, shipped_template, widen_gguf,
};
use mistralrs::{RequestBuilder, TextMessageRole};
use serde_json::{Value, json};

use crate::support::{check_calls, seeded, tools, without_ids};

/// The environment variable with the GGUF file of SmolLM2-135M-Instruct.
const FILE_VARIABLE: &str = "LOUVER_SMOLLM2";

fn json_file(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Writes the tiny model as a GGUF file, with eight bits a weight.
fn write_tiny(to: &Path) {
    let parent = std::env::temp_dir().join("louver-host-tests");
    let dir = louver_tiny_model::ensure(&parent).unwrap().dir;
    let config = json_file(dir.join("config.json"));
    let tokenizer = json_file(dir.join("tokenizer.json"));
    let template = json_file(dir.join("tokenizer_config.json"))["chat_template"].clone();
    let mut tokens: Vec<(u64, String, i32)> = tokenizer["model"]["vocab"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(token, id)| (id.as_u64().unwrap(), token.clone(), 1))
        .collect();
    for added in tokenizer["added_tokens"].as_array().unwrap() {
        let id = added["id"].as_u64().unwrap();
        let kind = if added["special"] == true { 3 } else { 4 };
        tokens.retain(|(other, ..)| *other != id);
        tokens.push((id, added["content"].as_str().unwrap().to_owned(), kind));
    }
    tokens.sort();
    let merge = |merge: &Value| match merge {
        Value::String(pair) => pair.clone(),
        pair => format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
    };
    let merges = tokenizer["model"]["merges"].as_array().unwrap().iter().map(merge);
    let number = |name: &str| Metadata::U32(config[name].as_u64().unwrap() as u32);
    let text = |text: &str| Metadata::String(text.to_owned());
    let heads = config["num_attention_heads"].as_u64().unwrap();
    let rope = config["hidden_size"].as_u64().unwrap() / heads;
    let metadata = [
        ("general.architecture", text("llama")),
        ("llama.block_count", number("num_hidden_layers")),
        ("llama.context_length", number("max_position_embeddings")),
        ("llama.embedding_length", number("hidden_size")),
        ("llama.feed_forward_length", number("intermediate_size")),
        ("llama.attention.head_count", number("num_attention_heads")),
        ("llama.attention.head_count_kv", number("num_key_value_heads")),
        ("llama.attention.layer_norm_rms_epsilon", Metadata::F32(1e-5)),
        ("llama.rope.dimension_count", Metadata::U32(rope as u32)),
        ("llama.rope.freq_base", Metadata::F32(10_000.0)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("gpt-2")),
        ("tokenizer.ggml.eos_token_id", number("eos_token_id")),
        ("tokenizer.ggml.merges", Metadata::Array(merges.map(Metadata::String).collect())),
        (
            "tokenizer.ggml.token_type",
            Metadata::Array(tokens.iter().map(|(.., kind)| Metadata::I32(*kind)).collect()),
        ),
        (
            "tokenizer.ggml.tokens",
            Metadata::Array(tokens.iter().map(|(_, t, _)| Metadata::String(t.clone())).collect()),
        ),
        ("tokenizer.chat_template", text(template.as_str().unwrap())),
    ];
    let weights = candle_core::safetensors::load(dir.join("model.safetensors"), &Device::Cpu);
    let weights: HashMap<String, Tensor> = weights.unwrap();
    let tensors: Vec<(String, QTensor)> = weights
        .iter()
        .map(|(name, tensor)| {
            let kind = if tensor.rank() == 2 { GgmlDType::Q8_0 } else { GgmlDType::F32 };
            (gguf_name(name), QTensor::quantize(tensor, kind).unwrap())
        })
        .collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let metadata: Vec<(&str, &Metadata)> = metadata.iter().map(|(k, v)| (*k, v)).collect();
    gguf_file::write(&mut File::create(to).unwrap(), &metadata, &tensors).unwrap();
}

/// The name in a GGUF file of a tensor of a Llama.
fn gguf_name(name: &str) -> String {
    let name = name.strip_prefix("model.").unwrap_or(name);
    if name == "norm.weight" {
        return "output_norm.weight".to_owned();
    }
    let parts = [
        ("layers.", "blk."),
        ("embed_tokens", "token_embd"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    parts.into_iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

#[tokio::test(flavor = "multi_thread")]
async fn gguf_files_are_supported() {
    let folder = std::env::temp_dir().join(format!("louver-gguf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (narrow, wide) = (folder.join("narrow"), folder.join("wide"));
    std::fs::create_dir_all(&narrow).unwrap();
    std::fs::create_dir_all(&wide).unwrap();
    write_tiny(&narrow.join("tiny.gguf"));
    widen_gguf(&narrow.join("tiny.gguf"), &wide.join("tiny.gguf")).unwrap();
    let mut turns = Vec::new();
    for file in [narrow.join("tiny.gguf"), wide.join("tiny.gguf")] {
        let gguf = GgufModel::new(&file).unwrap().with_device(Device::Cpu).with_prefix_cache(None);
        let (model, louver) = Louver::load_gguf(gguf, LouverOptions::default()).await.unwrap();
        assert_eq!(louver.format().unwrap(), "qwen3");
        // The metadata, read by Louver, gives the host's tokenizer and template.
        let read = Louver::for_model(&model).await.unwrap();
        assert_eq!(read.engine().vocab().fingerprint(), louver.engine().vocab().fingerprint());
        assert_eq!(read.max_context(), louver.max_context());
        assert_eq!(read.template().unwrap().source(), louver.template().unwrap().source());
        // A template that is given knows the tokens of the model's own.
        let given = LouverOptions::default().with_chat_template("{{ bos_token }}".to_owned());
        let given = Louver::for_model_with(&model, given).await.unwrap();
        assert!(louver.template().unwrap().tokens()[1].is_some());
        assert_eq!(given.template().unwrap().tokens(), louver.template().unwrap().tokens());
        for louver in [&louver, &read] {
            let plan = louver.tools(tools()).choice(ToolChoice::Required).parallel(Parallel::One);
            let plan = plan.reasoning(Reasoning::Off).build().unwrap();
            let request = RequestBuilder::new()
                .set_sampler_max_len(400)
                .add_message(TextMessageRole::User, "Well? It's 12 o'clock.\n\n Grüße 世界");
            let stream = plan.stream_with(&model, request, seeded(5)).await.unwrap();
            let generation = stream.finish().await.unwrap();
            check_calls(&generation.turn, &tools());
            turns.push((generation.prompt_tokens, without_ids(generation.turn)));
        }
    }
    // The same model, whoever read its metadata.
    assert_eq!(turns[0], turns[1]);
    assert_eq!(turns[2], turns[3]);
    let missing = GgufModel::new(&folder.join("no.gguf")).unwrap();
    let error = Louver::load_gguf(missing, LouverOptions::default()).await.err().unwrap();
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A strict call in each style of call syntax, by a model whose template has no tools.
#[tokio::test(flavor = "multi_thread")]
async fn a_trained_model_makes_strict_calls_in_every_style_if_present() {
    let Some(file) = std::env::var_os(FILE_VARIABLE).map(PathBuf::from) else {
        louver_test_support::record_skipped(&format!("{FILE_VARIABLE} is not set"));
        return;
    };
    let template = shipped_template("chatml-tools").map(str::to_owned);
    let options = |format: Option<&str>, template: Option<String>| {
        LouverOptions::default().with_format(format.map(str::to_owned)).with_chat_template(template)
    };
    let gguf = GgufModel::new(&file).unwrap().with_device(Device::Cpu);
    let (model, plain) = Louver::load_gguf(gguf, options(None, None)).await.unwrap();
    // Its own template has no tools; the system message of the family asks for this format.
    assert_eq!(plain.format().unwrap(), "smollm2");
    let own = Louver::for_model_with(&model, options(None, template.clone())).await.unwrap();
    assert_eq!(own.format().unwrap(), "hermes");
    assert_eq!(own.engine().vocab().fingerprint(), plain.engine().vocab().fingerprint());
    let tools = json!([{"type": "function", "function": {
        "name": "set_timer", "description": "Start a timer.",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer", "minimum": 1, "maximum": 1440}},
            "required": ["minutes"], "additionalProperties": false,
        },
    }}]);
    // JSON in tags, a JSON array, functions in XML, Python, and a name before JSON.
    for format in ["hermes", "xlam", "qwen3_coder", "olmo3", "mistral_v11"] {
        let louver = Louver::for_model_with(&model, options(Some(format), template.clone())).await;
        let louver = louver.unwrap();
        let plan = louver.tools(&tools).choice(ToolChoice::Required).parallel(Parallel::One);
        let plan = plan.build().unwrap_or_else(|error| panic!("{format}: {error}"));
        let request = RequestBuilder::new()
            .set_sampler_max_len(60)
            .set_sampler_temperature(0.0)
            .add_message(TextMessageRole::User, "Set a timer for 25 minutes.");
        let stream = plan.stream_with(&model, request, seeded(1)).await.unwrap();
        let generation = stream.finish().await.unwrap();
        check_calls(&generation.turn, &tools);
        let [call] = &generation.turn.calls[..] else { panic!("{format}: {:?}", generation.turn) };
        println!("{format}: {}", call.arguments);
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        if format == "hermes" {
            assert_eq!(arguments["minutes"].as_f64(), Some(25.0), "{arguments}");
        }
    }
}
