//! Members that mean nothing to the server, and members that mean something it cannot do.

use louver::spec::json::Json;

use crate::config::UnknownMembers;
use crate::error::ApiFault;
use crate::request::members::{Faults, Members};
use crate::request::structure::is_structure;

/// Members that every route reads, and that mean the same in all.
pub(crate) const COMMON: [&str; 15] = [
    "model",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "stop",
    "stream",
    "louver",
];

/// Members of other servers that ask for something no route does, and what to write instead.
pub(crate) const REFUSED: [(&str, &str); 27] = [
    ("extra_body", "its members belong in the body itself, where client libraries put them"),
    ("extra_query", "not a member of bodies"),
    ("options", "its members belong in the body itself, by the names of OpenAI's API"),
    ("sampling_params", "its members belong in the body itself"),
    ("guided_whitespace_pattern", "use `louver.whitespace`"),
    ("whitespace_pattern", "use `louver.whitespace`"),
    ("response_schema", "use `response_format` of type \"json_schema\""),
    ("responseSchema", "use `response_format` of type \"json_schema\""),
    ("response_mime_type", "use `response_format` of type \"json_object\""),
    ("output_schema", "use `response_format` of type \"json_schema\""),
    ("output_format", "use `response_format`"),
    ("output_config", "use `response_format`"),
    ("grammar_lazy", "use `tools`, or a structural tag with triggers"),
    ("grammar_triggers", "use `tools`, or a structural tag with triggers"),
    ("stop_regex", "use `stop`"),
    ("stop_token_ids", "use `stop`"),
    ("bad_words", "use a structural tag with `excludes`"),
    ("allowed_token_ids", "use a structural tag"),
    ("logits_processors", "use a structural tag"),
    ("custom_logit_processor", "use a structural tag"),
    ("min_tokens", "use a schema with `minLength` or `minItems`"),
    ("ignore_eos", "an answer ends where its structure does"),
    ("continue_final_message", "messages are not continued"),
    ("n_predict", "use `max_completion_tokens`"),
    ("max_new_tokens", "use `max_completion_tokens`"),
    ("think", "use `reasoning_effort` or `enable_thinking`"),
    ("thinking", "use `reasoning_effort` or `enable_thinking`"),
];

/// Parts of names. An unknown member that has one of them may ask for structure: it is refused,
/// whatever the configuration says of unknown members.
const STRUCTURAL: [&str; 10] = [
    "schema",
    "grammar",
    "regex",
    "bnf",
    "guided",
    "structured",
    "format",
    "constrain",
    "pattern",
    "json",
];

/// What a route knows of its members beside [`COMMON`].
pub(crate) struct Table {
    /// Read by the route.
    pub(crate) known: &'static [&'static str],
    /// Known from OpenAI's API, and without a meaning for what is generated here.
    pub(crate) ignored: &'static [&'static str],
    /// Known from OpenAI's API, with a meaning that cannot be honoured, and why.
    pub(crate) refused: &'static [(&'static str, &'static str)],
}

impl Table {
    /// Notes members that must be refused. A refused member that asks for nothing (`null`, `false`, empty) is let pass.
    pub(crate) fn check(
        &self,
        members: &Members<'_>,
        unknown: UnknownMembers,
        faults: &mut Faults,
    ) {
        for name in members.names() {
            let Some(value) = members.get(name) else { continue };
            let refused = self.refused.iter().chain(&REFUSED);
            if let Some((_, why)) = refused.into_iter().find(|(refused, _)| *refused == name) {
                if !asks_for_nothing(value) {
                    members.fail(faults, name, "unsupported", *why);
                }
                continue;
            }
            let is_known = is_structure(name)
                || [&COMMON, self.known, self.ignored].iter().any(|known| known.contains(&name));
            let is_refused = unknown == UnknownMembers::Refuse || may_ask_for_structure(name);
            if !is_known
                && is_refused
                && !(asks_for_nothing(value) && unknown == UnknownMembers::Ignore)
            {
                faults.push(ApiFault::at(
                    members.pointer(name),
                    "unknown_member",
                    "there is no such member",
                ));
            }
        }
    }
}

fn may_ask_for_structure(name: &str) -> bool {
    let name = name.to_lowercase();
    STRUCTURAL.iter().any(|part| name.contains(part))
}

fn asks_for_nothing(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Bool(true) | Json::Number(_) | Json::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    const TABLE: Table =
        Table { known: &["a"], ignored: &["user"], refused: &[("bias", "it cannot be done")] };

    #[test]
    fn what_is_refused() {
        let check = |text: &str, unknown| {
            let (json, mut faults) =
                (Json::parse(text, &Limits::default()).unwrap(), Faults::new());
            TABLE.check(&Members::of(&json, "", &mut faults).unwrap(), unknown, &mut faults);
            faults.into_iter().map(|f| f.param.unwrap()).collect::<Vec<_>>()
        };
        let text = r#"{"a": 1, "seed": 1, "user": 2, "bias": {"1": 2}, "x": 3}"#;
        assert_eq!(check(text, UnknownMembers::Ignore), ["/bias"]);
        let structural = r#"{"regex": "a", "responseFormat": {"type": "x"}, "jsonMode": true, "min_tokens": 1, "format_x": null}"#;
        let want = ["/responseFormat", "/jsonMode", "/min_tokens"];
        assert_eq!(check(structural, UnknownMembers::Ignore), want);
        assert_eq!(check(text, UnknownMembers::Refuse), ["/bias", "/x"]);
        assert_eq!(check(r#"{"bias": {}, "x": null}"#, UnknownMembers::Refuse), [""; 0]);
    }
}
