//! Options of other servers, and what does the same here.

/// Names of options, without leading hyphens and with `_` for `-`, and advice: options of vLLM,
/// SGLang, llama.cpp and Ollama that people are likely to bring along.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &["tool_call_parser", "enable_auto_tool_choice", "jinja"],
        "not needed: calls are read in the model's wire format, which is detected; `--format NAME` \
         (`format` of a [[model]]) names another",
    ),
    (
        &["reasoning_parser", "reasoning_format", "enable_reasoning"],
        "not needed: reasoning is read in the model's wire format; `reasoning` of a configuration \
         turns it off or demands it",
    ),
    (
        &[
            "guided_decoding_backend",
            "structured_outputs_config",
            "grammar_backend",
            "grammar",
            "json_schema",
        ],
        "not needed: Louver enforces the schemas and grammars of requests",
    ),
    (
        &["served_model_name", "alias", "a"],
        "write `--name NAME`, or `name` and `aliases` of a [[model]]",
    ),
    (&["model_path", "model_id", "m"], "write `--model PATH_OR_ID`, or `model` of a [[model]]"),
    (
        &["hf", "hfr", "hff", "hf_repo", "hf_file"],
        "write `--model OWNER/NAME` for a repository with *.safetensors; download a GGUF file and \
         give its path",
    ),
    (
        &["max_model_len", "context_length", "ctx_size", "c", "num_ctx"],
        "the context is the model's; `max_tokens` and `prompt_bytes` of [limits.requests] bound \
         requests",
    ),
    (
        &["max_num_seqs", "max_running_requests", "parallel", "np"],
        "write `concurrent` of [limits.requests], and `max_sequences` of a [[model]]",
    ),
    (&["max_tokens", "predict", "n_predict", "n"], "write `max_tokens` of [limits.requests]"),
    (
        &["gpu_memory_utilization", "mem_fraction_static", "kv_cache_dtype"],
        "not needed: the cache of a sequence grows with it",
    ),
    (
        &["tensor_parallel_size", "tp", "tp_size", "pipeline_parallel_size", "pp"],
        "not supported: `--device cuda:N` selects a GPU; run one server for each",
    ),
    (
        &["n_gpu_layers", "gpu_layers", "ngl"],
        "write `--device cuda` or `--device metal` in a build for that device",
    ),
    (&["threads", "t"], "set the variable RAYON_NUM_THREADS; all cores work by default"),
    (
        &["log_level", "uvicorn_log_level", "verbose", "v", "disable_log_requests"],
        "set the variable RUST_LOG, such as RUST_LOG=warn",
    ),
    (&["metrics", "enable_metrics"], "not needed: GET /metrics always has them"),
    (&["trust_remote_code"], "not needed: no code of a model's repository is run"),
    (
        &["quantization", "q"],
        "write `--isq 4` (`isq` of a [[model]]) for a model in *.safetensors; a GGUF file is \
         quantised already",
    ),
    (
        &["chat_template_kwargs", "default_chat_template_kwargs"],
        "requests have `chat_template_kwargs`; `reasoning` of a configuration is the default of \
         `enable_thinking`",
    ),
    (
        &["ssl_keyfile", "ssl_certfile", "ssl_key_file", "ssl_cert_file"],
        "not supported: a proxy gives TLS (docs/DEPLOYING.md)",
    ),
    (&["tokenizer", "revision"], "write it in the table [[model]] of a file for `--config`"),
    (
        &["enable_prefix_caching"],
        "write `prefix_cache` of a [[model]], after reading about it in docs/DEPLOYING.md",
    ),
    (&["download_dir", "hf_home"], "set the variable HF_HOME"),
    (&["temperature", "temp", "top_p", "top_k", "min_p", "seed"], "requests have it"),
];

/// What to use instead of an option of another server. The name may be a flag with its hyphens.
pub fn foreign_option(name: &str) -> Option<&'static str> {
    let name = name.trim_start_matches('-').replace('-', "_");
    let of_name = OPTIONS.iter().find(|(names, _)| names.contains(&name.as_str()));
    of_name.map(|(_, advice)| *advice)
}

/// What to write instead of a member that a configuration does not have: an option of another
/// server, or a table of limits at a wrong place.
pub(super) fn member_advice(name: &str) -> Option<&'static str> {
    match name {
        "requests" | "http" | "schema" | "traces" | "responses" => Some(
            "the limits are tables of [limits], such as [limits.requests]; of the file of \
             `--limits`, [requests]",
        ),
        "limits" => {
            Some("the file of `--limits` has the tables of [limits] without that name: [requests]")
        }
        // Single letters are flags.
        _ if name.len() > 1 => foreign_option(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_members_have_the_same_advice() {
        let advice = foreign_option("--served-model-name").unwrap();
        assert!(advice.contains("`--name NAME`"), "{advice}");
        assert_eq!(foreign_option("served_model_name"), Some(advice));
        assert!(foreign_option("-hf").unwrap().contains("--model"));
        assert_eq!(foreign_option("--model"), None);
        let mut names: Vec<&str> = OPTIONS.iter().flat_map(|(names, _)| *names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name is in two rows");
    }
}
