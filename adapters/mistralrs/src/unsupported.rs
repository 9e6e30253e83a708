//! Models and pipelines that cannot be constrained through a logits processor, because the host
//! does not call it for each token.

use louver_host::Checkpoint;
use mistralrs_core::ModelCategory;

use crate::error::LoadError;

/// Parts of the model types and architectures of block-diffusion language models, lower case,
/// letters and digits only: DiffusionGemma and DiffuLLaMA, LLaDA, Dream (also of DiffuCoder), SDAR,
/// Fast-dLLM, BD3-LM, MDLM.
const BLOCK_DIFFUSION: [&str; 7] = ["diffu", "llada", "dream", "sdar", "dllm", "bd3lm", "mdlm"];

/// Refuses what would not call the hook once for each token. `name` is the host's name of the
/// pipeline.
pub(crate) fn check(
    name: &str,
    category: Option<&ModelCategory>,
    checkpoint: &Checkpoint,
) -> Result<(), LoadError> {
    if name.starts_with("Speculative:") {
        return Err(LoadError::Speculative);
    }
    match category {
        None | Some(ModelCategory::Text | ModelCategory::Multimodal { .. }) => {}
        Some(other) => return Err(LoadError::NotText { category: category_name(other) }),
    }
    let names = checkpoint.model_type.iter().chain(&checkpoint.architectures);
    match names.into_iter().find(|name| is_block_diffusion(name)) {
        Some(name) => Err(LoadError::BlockDiffusion { model_type: name.clone() }),
        None => Ok(()),
    }
}

fn category_name(category: &ModelCategory) -> &'static str {
    match category {
        ModelCategory::Text => "text",
        ModelCategory::Multimodal { .. } => "multimodal",
        ModelCategory::Diffusion => "image generation",
        ModelCategory::Audio => "audio",
        ModelCategory::Speech => "speech",
        ModelCategory::Embedding => "embedding",
    }
}

/// Whether a model type or an architecture is that of a block-diffusion language model.
fn is_block_diffusion(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    BLOCK_DIFFUSION.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_diffusion_models_are_recognised() {
        for name in [
            "diffusion_gemma",
            "DiffusionGemmaForBlockDiffusion",
            "llada",
            "LLaDAModelLM",
            "LLaDA2MoeModelLM",
            "Dream",
            "DreamModel",
            "SDARForCausalLM",
            "Fast_dLLM_QwenForCausalLM",
            "bd3-lm",
        ] {
            let refused = |model_type: Option<&str>, architectures: &[&str]| {
                let architectures = architectures.iter().map(|name| (*name).to_owned()).collect();
                let model_type = model_type.map(str::to_owned);
                let kind = Checkpoint::default()
                    .with_model_type(model_type)
                    .with_architectures(architectures);
                check("a", Some(&ModelCategory::Text), &kind)
            };
            for refused in [refused(Some(name), &[]), refused(Some("x"), &["A", name])] {
                let Err(error @ LoadError::BlockDiffusion { .. }) = refused else {
                    panic!("{name} is taken")
                };
                assert!(error.to_string().contains(name), "{error}");
            }
        }
        for name in ["gemma3_text", "Qwen3ForCausalLM", "llama", "LlamaForCausalLM", "mistral"] {
            let kind = Checkpoint::default().with_model_type(name.to_owned());
            assert!(check(name, None, &kind).is_ok(), "{name}");
        }
    }

    #[test]
    fn pipelines_without_text_are_refused() {
        let kind = Checkpoint::default();
        for category in [ModelCategory::Embedding, ModelCategory::Speech, ModelCategory::Diffusion]
        {
            let refused = check("a", Some(&category), &kind);
            assert!(matches!(refused, Err(LoadError::NotText { .. })), "{category:?}");
        }
        let speculative = check("Speculative: tgt = `a`", Some(&ModelCategory::Text), &kind);
        assert!(matches!(speculative, Err(LoadError::Speculative)));
    }
}
