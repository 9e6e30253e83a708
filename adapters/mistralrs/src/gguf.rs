//! GGUF files: loading them, and the tokenizer, chat template and stop tokens in their metadata.
//!
//! The host converts the metadata itself and does not expose the result of a loaded model. This
//! conversion is the same: byte-level BPE (`gpt2`) and SentencePiece (`llama`).

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Content, Value as Metadata};
use candle_core::quantized::{GgmlDType, QTensor};
use louver_host::{ChatTemplate, Checkpoint, TemplateError};
use mistralrs::{
    AutoDeviceMapParams, DefaultSchedulerMethod, DeviceMapSetting, ModelDType, SchedulerConfig,
    TokenSource,
};
use mistralrs_core::{GGUFLoaderBuilder, GGUFSpecificConfig, MistralRsBuilder, Pipeline};
use serde_json::{Value, json};
use tokenizers::Tokenizer;
use tokio::sync::Mutex;

use crate::error::LoadError;
use crate::model_parts::ModelParts;

/// A GGUF model, as [`Louver::load_gguf`](crate::Louver::load_gguf) loads it.
#[derive(Clone, Debug)]
pub struct GgufModel {
    directory: PathBuf,
    file: String,
    device: Device,
    dtype: ModelDType,
    max_sequences: NonZeroUsize,
    prefix_cache: Option<usize>,
}

impl GgufModel {
    /// A file, on the host's best device. Activations are F32 on the CPU and of the host's choice
    /// elsewhere.
    pub fn new(file: &Path) -> Result<GgufModel, LoadError> {
        let fault = |problem: &str| LoadError::file(file, problem);
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| fault("the file's name is not UTF-8"))?.to_owned();
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let device = mistralrs::best_device(false).map_err(|error| fault(&error.to_string()))?;
        Ok(GgufModel {
            directory: directory.unwrap_or(Path::new(".")).to_owned(),
            file: name,
            device,
            dtype: ModelDType::Auto,
            max_sequences: NonZeroUsize::new(32).unwrap_or(NonZeroUsize::MIN),
            prefix_cache: Some(16),
        })
    }

    /// Sets the device.
    pub fn with_device(self, device: Device) -> GgufModel {
        GgufModel { device, ..self }
    }

    /// Sets the data type of activations. The host's own builder takes F16 on the CPU, which is
    /// several times slower than F32.
    pub fn with_dtype(self, dtype: ModelDType) -> GgufModel {
        GgufModel { dtype, ..self }
    }

    /// Sets the maximum number of sequences that the host batches.
    pub fn with_max_sequences(self, max_sequences: NonZeroUsize) -> GgufModel {
        GgufModel { max_sequences, ..self }
    }

    /// Sets the number of prompt prefixes that the host caches.
    pub fn with_prefix_cache(self, prefix_cache: Option<usize>) -> GgufModel {
        GgufModel { prefix_cache, ..self }
    }

    /// Loads the pipeline, and a builder of the host that runs it.
    pub(crate) fn load(
        self,
    ) -> Result<(Arc<Mutex<dyn Pipeline + Send + Sync>>, MistralRsBuilder), LoadError> {
        let loader = GGUFLoaderBuilder::new(
            None,
            None,
            self.directory.display().to_string(),
            vec![self.file],
            GGUFSpecificConfig::default(),
            false,
            None,
        );
        let dtype = match self.dtype {
            ModelDType::Auto if self.device.is_cpu() => ModelDType::F32,
            dtype => dtype,
        };
        let pipeline = loader.build().load_model_from_hf(
            None,
            TokenSource::CacheToken,
            &dtype,
            &self.device,
            true,
            DeviceMapSetting::Auto(AutoDeviceMapParams::default_text()),
            None,
            None,
        );
        let pipeline = pipeline.map_err(|error| LoadError::host(&error))?;
        let method = DefaultSchedulerMethod::Fixed(self.max_sequences);
        let scheduler = SchedulerConfig::DefaultScheduler { method };
        let runner = MistralRsBuilder::new(pipeline.clone(), scheduler, false, None)
            .with_no_prefix_cache(self.prefix_cache.is_none())
            .with_prefix_cache_n(self.prefix_cache.unwrap_or_default());
        Ok((pipeline, runner))
    }
}

/// Writes a copy of a GGUF file whose quantised weights become F16: 2 bytes a weight. On the CPU
/// candle multiplies quantised weights with scalar code unless it is compiled for AVX2 or NEON; it
/// turns F16 weights into F32 when it loads them and multiplies those with vector code.
pub fn widen_gguf(from: &Path, to: &Path) -> Result<(), LoadError> {
    let widen = || -> candle_core::Result<()> {
        let mut file = File::open(from)?;
        let content = Content::read(&mut file)?;
        let mut names: Vec<&String> = content.tensor_infos.keys().collect();
        names.sort();
        let mut tensors = Vec::with_capacity(names.len());
        for name in names {
            let tensor = content.tensor(&mut file, name, &Device::Cpu)?;
            let is_wide = matches!(tensor.dtype(), GgmlDType::F32 | GgmlDType::F16);
            let tensor = match is_wide {
                true => tensor,
                false => QTensor::quantize(&tensor.dequantize(&Device::Cpu)?, GgmlDType::F16)?,
            };
            tensors.push((name.as_str(), tensor));
        }
        let tensors: Vec<(&str, &QTensor)> =
            tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let mut metadata: Vec<(&str, &Metadata)> =
            content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        metadata.sort_by_key(|(key, _)| *key);
        let mut out = BufWriter::new(File::create(to)?);
        gguf_file::write(&mut out, &metadata, &tensors)?;
        out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        Ok(())
    };
    widen().map_err(|error| LoadError::file(to, format!("the copy of {}: {error}", from.display())))
}

/// How the host splits texts before BPE, in every byte-level tokenizer.
const SPLIT: &str = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}\
                     | ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
/// The type of ordinary tokens; others are special.
const NORMAL: i64 = 1;

/// Checks that a file is a GGUF file with a tokenizer that can be used. Reads its metadata, not its
/// weights.
///
/// # Errors
///
/// [`LoadError::Checkpoint`].
pub fn check_gguf(path: &Path) -> Result<(), LoadError> {
    read(path).map(drop)
}

/// Reads the parts of a model in a GGUF file.
pub(crate) fn read(path: &Path) -> Result<ModelParts, LoadError> {
    let fault = |problem: String| LoadError::file(path, problem);
    let mut file = File::open(path).map_err(|error| fault(error.to_string()))?;
    let content = Content::read(&mut file).map_err(|error| fault(error.to_string()))?;
    let metadata = GgufMetadata(&content.metadata);
    let tokenizer = metadata.tokenizer().map_err(fault)?;
    let special = |name: &str| {
        let id = metadata.number(&format!("tokenizer.ggml.{name}_token_id"))?;
        tokenizer.id_to_token(u32::try_from(id).ok()?)
    };
    let template_tokens = ["bos", "eos", "unknown"].map(special);
    let template = match metadata.text("tokenizer.chat_template") {
        Some(source) => ChatTemplate::new(source, template_tokens.clone()),
        None => Err(TemplateError::Missing),
    };
    let architecture = metadata.text("general.architecture").unwrap_or_default();
    let max_context = metadata.number(&format!("{architecture}.context_length"));
    let max_context = max_context.and_then(|n| usize::try_from(n).ok());
    let checkpoint =
        Checkpoint::default().with_template(template).with_template_tokens(template_tokens);
    Ok(ModelParts { tokenizer: Arc::new(tokenizer), checkpoint, max_context, ends: Vec::new() })
}

struct GgufMetadata<'m>(&'m HashMap<String, Metadata>);

impl GgufMetadata<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_string().ok().map(String::as_str)
    }

    fn number(&self, key: &str) -> Option<i64> {
        number(self.0.get(key)?)
    }

    fn list(&self, key: &str) -> Option<&[Metadata]> {
        self.0.get(key)?.to_vec().ok().map(Vec::as_slice)
    }

    fn texts(&self, key: &str) -> Result<Vec<&str>, String> {
        let list = self.list(key).ok_or_else(|| format!("the metadata has no {key}"))?;
        let texts: Option<Vec<&str>> =
            list.iter().map(|item| item.to_string().ok().map(String::as_str)).collect();
        texts.ok_or_else(|| format!("{key} is not a list of texts"))
    }

    /// The tokenizer of the metadata.
    fn tokenizer(&self) -> Result<Tokenizer, String> {
        let tokens = self.texts("tokenizer.ggml.tokens")?;
        let kind = self.text("tokenizer.ggml.model").unwrap_or_default();
        let mut document = match kind {
            "gpt2" => self.byte_level(&tokens)?,
            "llama" => self.sentence_piece(&tokens)?,
            other => return Err(format!("the tokenizer model {other:?} is not supported")),
        };
        document["version"] = "1.0".into();
        document["added_tokens"] = self.special_tokens(&tokens);
        document.to_string().parse().map_err(|error| format!("the tokenizer: {error}"))
    }

    fn byte_level(&self, tokens: &[&str]) -> Result<Value, String> {
        let vocab: serde_json::Map<String, Value> = tokens
            .iter()
            .zip(0..)
            .map(|(token, id): (_, u32)| ((*token).to_owned(), id.into()))
            .collect();
        let bytes = json!({
            "type": "ByteLevel",
            "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
        });
        let split = json!({
            "type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": false,
        });
        Ok(json!({
            "model": {
                "type": "BPE", "vocab": vocab, "merges": self.texts("tokenizer.ggml.merges")?,
                "unk_token": self.token(tokens, "unknown"),
            },
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytes]},
            "decoder": bytes,
            "post_processor": bytes,
        }))
    }

    fn sentence_piece(&self, tokens: &[&str]) -> Result<Value, String> {
        let scores = self.list("tokenizer.ggml.scores").unwrap_or_default();
        if scores.len() != tokens.len() {
            return Err("the metadata has no tokenizer.ggml.scores".to_owned());
        }
        let scores = scores.iter().map(|score| score.to_f32().unwrap_or_default());
        let vocab: Vec<Value> =
            tokens.iter().zip(scores).map(|(token, score)| json!([token, score])).collect();
        let unknown = self.number("tokenizer.ggml.unknown_token_id").unwrap_or(0);
        Ok(json!({
            "model": {"type": "Unigram", "vocab": vocab, "unk_id": unknown, "byte_fallback": true},
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ]},
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ]},
        }))
    }

    fn token<'t>(&self, tokens: &[&'t str], name: &str) -> Option<&'t str> {
        let id = self.number(&format!("tokenizer.ggml.{name}_token_id"))?;
        tokens.get(usize::try_from(id).ok()?).copied()
    }

    /// The tokens that are not ordinary, in the format of `added_tokens`.
    fn special_tokens(&self, tokens: &[&str]) -> Value {
        let types = self.list("tokenizer.ggml.token_type").unwrap_or_default();
        let named = ["bos", "eos", "unknown"].map(|name| self.token(tokens, name));
        let is_special = |id: usize, token: &str| {
            types.get(id).and_then(number).is_some_and(|kind| kind != NORMAL)
                || named.contains(&Some(token))
        };
        let special = tokens.iter().enumerate().filter(|(id, token)| is_special(*id, token));
        let special = special.map(|(id, token)| {
            json!({
                "id": id, "content": token, "special": true, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false,
            })
        });
        special.collect()
    }
}

/// An integer of any width.
fn number(value: &Metadata) -> Option<i64> {
    match *value {
        Metadata::U8(n) => Some(n.into()),
        Metadata::I8(n) => Some(n.into()),
        Metadata::U16(n) => Some(n.into()),
        Metadata::I16(n) => Some(n.into()),
        Metadata::U32(n) => Some(n.into()),
        Metadata::I32(n) => Some(n.into()),
        Metadata::U64(n) => i64::try_from(n).ok(),
        Metadata::I64(n) => Some(n),
        _ => None,
    }
}
