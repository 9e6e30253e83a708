//! Tables of members that other servers, or other routes, have.

use crate::request::structure;

/// What to do instead of sending a member that is not supported.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Advice {
    /// The same on all routes.
    Text(&'static str),
    /// The route's way to constrain the response.
    Structure,
    /// The route's limit of tokens.
    MaxTokens,
    /// The route's way to turn reasoning on or off.
    Reasoning,
    /// The route's stop strings.
    Stop,
    /// The route's tools.
    Tools,
}

/// Members of other servers that do not change the answer: what they are for, such as caching,
/// tracing, routing and accounts, the server does in its own way or not at all.
pub(super) const IGNORED: &[&str] = &[
    "guided_decoding_backend",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "detokenize",
    "add_special_tokens",
    "user",
    "metadata",
    "service_tier",
    "safety_identifier",
    "store",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "cache_prompt",
    "cache_salt",
    "extra_key",
    "id_slot",
    "slot_id",
    "keep_alive",
    "ttl",
    "timeout",
    "kv_transfer_params",
    "data_parallel_rank",
    "priority",
    "request_id",
    "rid",
    "session_id",
    "conversation_id",
    "chat_id",
    "user_id",
    "client_metadata",
    "tags",
    "trace",
    "trace_id",
    "usage",
    "provider",
    "route",
    "access_programs",
    "timings_per_token",
    "return_progress",
    "return_token_ids",
    "anthropic_version",
    "anthropic_beta",
    "betas",
    "fallbacks",
    "fallback_credit_token",
    "billing_policy",
];

/// Members that set how something works which another member turns on, and that member: while it is
/// absent or asks for nothing, they ask for nothing.
pub(super) const SETTINGS_OF: [(&str, &str); 4] = [
    ("dry_", "dry_multiplier"),
    ("mirostat_", "mirostat"),
    ("xtc_", "xtc_probability"),
    ("dynatemp_", "dynatemp_range"),
];

/// Members that only some routes or other servers have, and their replacements, unless a route
/// accepts them.
pub(super) const UNSUPPORTED: &[(&str, Advice)] = {
    use Advice::{MaxTokens, Reasoning, Stop, Structure, Text, Tools};
    const IN_BODY: Advice = Text("its members belong in the body itself");
    const API_NAMES: Advice =
        Text("its members belong in the body itself, by the names of this API");
    const TAG: Advice = Text("use a structural tag");
    const BOUNDS: Advice = Text("use a schema with `minLength` or `minItems`");
    const BUDGET: Advice = Text("use `louver.reasoning_budget`");
    const ONE_ANSWER: Advice = Text("one answer a request on this route: use /v1/chat/completions");
    const NOT_HERE: Advice = Text("not on this route: use /v1/chat/completions");
    &[
        (
            "extra_body",
            Text("its members belong in the body itself, where client libraries put them"),
        ),
        ("extra_query", Text("not a member of bodies")),
        ("options", API_NAMES),
        ("sampling_params", IN_BODY),
        ("nvext", IN_BODY),
        ("generationConfig", API_NAMES),
        ("generation_config", API_NAMES),
        ("response_model", Structure),
        ("output_type", Structure),
        (
            structure::NO_WHITE_SPACE,
            Text("belongs in `structured_outputs`; or use `louver.whitespace`"),
        ),
        ("guided_whitespace_pattern", Text("use `louver.whitespace`")),
        ("json", Structure),
        ("schema", Structure),
        ("json_mode", Structure),
        ("strict", Text("belongs beside the schema, or in the tool")),
        ("response_schema", Structure),
        ("responseSchema", Structure),
        ("response_mime_type", Structure),
        ("output_schema", Structure),
        ("output_format", Structure),
        ("output_config", Structure),
        ("gbnf", Text("use `grammar`: {\"type\": \"gbnf\", \"value\": GRAMMAR}")),
        ("grammar_lazy", Text("use a structural tag with triggers")),
        ("grammar_triggers", Text("use a structural tag with triggers")),
        ("parse_tool_calls", Text("calls are always read")),
        ("functions", Tools),
        ("function_call", Tools),
        ("stop_regex", Stop),
        ("stop_token_ids", Stop),
        ("stop_sequences", Stop),
        ("bad_words", Text("use a structural tag with `excludes`")),
        ("allowed_token_ids", TAG),
        ("logits_processors", TAG),
        ("custom_logit_processor", TAG),
        ("vllm_xargs", TAG),
        ("logit_bias", Text("the host does not support logit bias")),
        ("min_tokens", BOUNDS),
        ("min_new_tokens", BOUNDS),
        ("n_indent", Text("use a grammar; of JSON, `louver.whitespace`")),
        ("ignore_eos", Text("an answer ends where its structure does")),
        ("continue_final_message", Text("messages are not continued")),
        ("chat_template", Text("the server's configuration names the chat template")),
        ("repeat_penalty", Text("use `repetition_penalty`")),
        ("n_predict", MaxTokens),
        ("max_new_tokens", MaxTokens),
        ("think", Reasoning),
        ("thinking", Reasoning),
        ("reasoning", Reasoning),
        ("thinking_budget", BUDGET),
        ("thinking_token_budget", BUDGET),
        ("reasoning_budget", BUDGET),
        ("num_predict", MaxTokens),
        ("max_length", MaxTokens),
        ("max_gen_len", MaxTokens),
        ("stop_seqs", Stop),
        ("stop_strings", Stop),
        ("stop_words", Stop),
        ("stopping_strings", Stop),
        ("end_sequences", Stop),
        ("random_seed", Text("use `seed`")),
        ("sampling_seed", Text("use `seed`")),
        ("rng_seed", Text("use `seed`")),
        ("thinking_config", Reasoning),
        ("thinking_level", Reasoning),
        ("disable_thinking", Reasoning),
        ("enable_thought", Reasoning),
        ("enable_reasoning", Reasoning),
        ("disable_reasoning", Reasoning),
        ("reasoning_level", Reasoning),
        ("effort", Reasoning),
        ("thinking_budget_tokens", BUDGET),
        ("reasoning_budget_tokens", BUDGET),
        ("max_thinking_tokens", BUDGET),
        ("max_reasoning_tokens", BUDGET),
        ("parameters", API_NAMES),
        ("config", API_NAMES),
        ("lora", Text("use `model`")),
        ("lora_path", Text("use `model`")),
        ("adapters", Text("use `model`")),
        ("whitespace", Text("use `louver.whitespace`")),
        ("truncation", Text("use `louver.truncation`")),
        ("schema_options", Text("use `louver.schema_options`")),
        ("max_calls", Text("use `louver.max_calls`")),
        ("audio", Text("the server does not support audio")),
        ("web_search_options", Text("the server does not search the web")),
        ("documents", NOT_HERE),
        ("n", ONE_ANSWER),
        ("best_of", ONE_ANSWER),
        ("logprobs", NOT_HERE),
        ("top_logprobs", NOT_HERE),
    ]
};

/// Numbers with which members of other servers ask for nothing.
pub(super) const NEUTRAL_NUMBERS: &[(&str, &str)] = &[
    ("best_of", "1"),
    ("n", "1"),
    ("min_tokens", "0"),
    ("min_new_tokens", "0"),
    ("min_length", "0"),
    ("n_indent", "0"),
    ("top_logprobs", "0"),
    ("n_probs", "0"),
    ("num_beams", "1"),
    ("num_return_sequences", "1"),
    ("candidate_count", "1"),
    ("length_penalty", "1"),
    ("guidance_scale", "1"),
    ("typical_p", "1"),
    ("tfs", "1"),
    ("tfs_z", "1"),
    ("top_a", "0"),
    ("mirostat", "0"),
    ("mirostat_mode", "0"),
    ("dry_multiplier", "0"),
    ("dynatemp_range", "0"),
    ("xtc_probability", "0"),
    ("min_keep", "0"),
    ("no_repeat_ngram_size", "0"),
    ("typ_p", "1"),
    ("repeat_penalty", "1"),
    ("repeat_last_n", "64"),
    ("n_keep", "0"),
    ("n_discard", "0"),
    ("top_n_sigma", "-1"),
    ("n_predict", "-1"),
    ("t_max_predict_ms", "0"),
    ("truncate_prompt_tokens", "-1"),
];

/// Members whose default is `true`.
pub(super) const TRUE_BY_DEFAULT: [&str; 8] = [
    "parallel_tool_calls",
    "add_special_tokens",
    "parse_tool_calls",
    "add_generation_prompt",
    "do_sample",
    "include_reasoning",
    "separate_reasoning",
    "stream_reasoning",
];

/// Name parts of members that ask for something whether they are `true` or `false`.
pub(super) const WITHOUT_DEFAULT: [&str; 3] = ["think", "thought", "reason"];

/// Members of messages with content other than text.
pub(crate) const MEDIA: [(&str, &str); 10] = {
    const ONLY_TEXT: &str = "only text is supported";
    [
        ("images", ONLY_TEXT),
        ("image", ONLY_TEXT),
        ("image_url", ONLY_TEXT),
        ("video", ONLY_TEXT),
        ("videos", ONLY_TEXT),
        ("audios", ONLY_TEXT),
        ("file", ONLY_TEXT),
        ("files", ONLY_TEXT),
        ("attachment", ONLY_TEXT),
        ("attachments", ONLY_TEXT),
    ]
};
