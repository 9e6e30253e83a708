//! Checks of a body's member names: accepted, ignored, unsupported and unknown members.

use louver::front::diagnostic::is_same_name;
use louver::spec::json::Json;

use crate::config::UnknownMembers;
use crate::request::members::{Faults, Members};
use crate::request::structure::{self, is_structure};

/// Members with the same meaning on every route.
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

/// Members without effect on every route.
const IGNORED: [&str; 1] = ["guided_decoding_backend"];

/// Members that only some routes or other servers have, and their replacements, unless a route
/// accepts them.
pub(crate) const UNSUPPORTED: [(&str, &str); 45] = [
    ("extra_body", "its members belong in the body itself, where client libraries put them"),
    ("extra_query", "not a member of bodies"),
    ("options", "its members belong in the body itself, by the names of OpenAI's API"),
    ("sampling_params", "its members belong in the body itself"),
    ("nvext", "its members belong in the body itself"),
    ("generationConfig", "its members belong in the body itself, by the names of OpenAI's API"),
    ("generation_config", "its members belong in the body itself, by the names of OpenAI's API"),
    ("response_model", "use `response_format` of type \"json_schema\""),
    ("output_type", "use `response_format`"),
    (structure::NO_WHITE_SPACE, "belongs in `structured_outputs`; or use `louver.whitespace`"),
    ("guided_whitespace_pattern", "use `louver.whitespace`"),
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
    ("min_new_tokens", "use a schema with `minLength` or `minItems`"),
    ("n_indent", "use a grammar; of JSON, `louver.whitespace`"),
    ("ignore_eos", "an answer ends where its structure does"),
    ("continue_final_message", "messages are not continued"),
    ("n_predict", "use `max_completion_tokens`"),
    ("max_new_tokens", "use `max_completion_tokens`"),
    ("think", "use `reasoning_effort` or `enable_thinking`"),
    ("thinking", "use `reasoning_effort` or `enable_thinking`"),
    ("reasoning", "use `reasoning_effort`, or `louver.reasoning_budget`"),
    ("thinking_budget", "use `louver.reasoning_budget`"),
    ("thinking_token_budget", "use `louver.reasoning_budget`"),
    ("reasoning_budget", "use `louver.reasoning_budget`"),
    ("whitespace", "use `louver.whitespace`"),
    ("truncation", "use `louver.truncation`"),
    ("schema_options", "use `louver.schema_options`"),
    ("max_calls", "use `louver.max_calls`"),
    ("n", "one answer a request on this route: use /v1/chat/completions"),
    ("logprobs", "not on this route: use /v1/chat/completions"),
    ("top_logprobs", "not on this route: use /v1/chat/completions"),
];

/// Name parts of parameters of structured output. An unknown member whose name has one of them may
/// ask for structure, so it is rejected regardless of the configuration about unknown members.
const STRUCTURE_NAME_PARTS: [&str; 11] = [
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
    "lark",
];

/// The same for the body itself. Below it, members such as `tool_name` only describe.
const TOOL_NAME_PARTS: [&str; 5] = ["enum", "choice", "tool", "function", "strict"];

/// The members of a route's bodies, besides [`COMMON`].
pub(crate) struct MemberTable {
    /// Members that the route reads.
    pub(crate) accepted: &'static [&'static str],
    /// Members of the route's API that do not affect generation.
    pub(crate) ignored: &'static [&'static str],
    /// Members of the route's API that are not supported, and the reason.
    pub(crate) unsupported: &'static [(&'static str, &'static str)],
}

impl MemberTable {
    /// Reports unsupported and unknown members. An unsupported member with a neutral value (`null`,
    /// empty, a default) is accepted.
    pub(crate) fn check(
        &self,
        members: &Members<'_>,
        unknown: UnknownMembers,
        faults: &mut Faults,
    ) {
        for name in members.names() {
            if faults.is_full() {
                return;
            }
            let Some(value) = members.get(name) else { continue };
            // A route may accept a member that the other routes do not support.
            let others = UNSUPPORTED.iter().chain(&structure::UNSUPPORTED_OPTIONS);
            let others = others.filter(|(other, _)| !self.accepted.contains(other));
            let mut unsupported = self.unsupported.iter().chain(others);
            if let Some((_, reason)) = unsupported.find(|(unsupported, _)| *unsupported == name) {
                if !is_neutral(name, value) {
                    members.fail(faults, name, "unsupported", *reason);
                }
                continue;
            }
            let is_accepted = is_structure(name)
                || [&COMMON, self.accepted, self.ignored, &IGNORED]
                    .iter()
                    .any(|accepted| accepted.contains(&name));
            let mut known = COMMON.iter().chain(self.accepted).copied().chain(structure::names());
            let is_rejected = unknown == UnknownMembers::Refuse
                || may_request_structure(name)
                || TOOL_NAME_PARTS.iter().any(|part| name.to_lowercase().contains(part))
                || known.any(|known| is_same_name(name, known));
            if !is_accepted
                && is_rejected
                && !(is_neutral(name, value) && unknown == UnknownMembers::Ignore)
            {
                let known = COMMON.iter().chain(self.accepted).copied().chain(structure::names());
                let is_read =
                    |name: &&str| !self.unsupported.iter().any(|(other, _)| other == name);
                members.fail_unknown(faults, name, known.filter(is_read), "");
            }
        }
    }
}

/// Reports the members of an object below the body, such as a message, that may ask for structure,
/// which belongs in the body itself.
pub(crate) fn refuse_structure(members: &Members<'_>, faults: &mut Faults) {
    for (name, value) in members.iter() {
        if may_request_structure(name) && !is_neutral(name, value) {
            let message = "there is no such member: structure is asked for in the body itself";
            members.fail(faults, name, "unknown_member", message);
        }
    }
}

fn may_request_structure(name: &str) -> bool {
    let name = name.to_lowercase();
    STRUCTURE_NAME_PARTS.iter().any(|part| name.contains(part))
}

/// Members whose default is `true`.
const TRUE_BY_DEFAULT: [&str; 2] = ["parallel_tool_calls", "add_special_tokens"];

/// Members that ask for something whether they are `true` or `false`.
const WITHOUT_DEFAULT: [&str; 3] = ["think", "thinking", "enable_thinking"];

/// Whether a member asks for nothing: some clients send every parameter with its default.
fn is_neutral(name: &str, value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(_) if WITHOUT_DEFAULT.contains(&name) => false,
        Json::Bool(value) => *value == TRUE_BY_DEFAULT.contains(&name),
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Number(number) => {
            matches!(
                (name, number.as_str()),
                ("best_of" | "n", "1")
                    | ("min_tokens" | "min_new_tokens" | "n_indent" | "top_logprobs", "0")
            )
        }
        Json::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    const MEMBER_TABLE: MemberTable = MemberTable {
        accepted: &["a"],
        ignored: &["user"],
        unsupported: &[("bias", "it cannot be done")],
    };

    #[test]
    fn unsupported_and_unknown_members_are_rejected() {
        let check = |text: &str, unknown| {
            let (json, mut faults) =
                (Json::parse(text, &Limits::default()).unwrap(), Faults::new());
            MEMBER_TABLE.check(
                &Members::from_json(&json, "", &mut faults).unwrap(),
                unknown,
                &mut faults,
            );
            faults.into_iter().map(|f| f.param.unwrap()).collect::<Vec<_>>()
        };
        let text = r#"{"a": 1, "seed": 1, "user": 2, "bias": {"1": 2}, "x": 3}"#;
        assert_eq!(check(text, UnknownMembers::Ignore), ["/bias"]);
        let structural = r#"{"regex": "a", "responseFormat": {"type": "x"}, "jsonMode": true, "min_tokens": 1, "format_x": null, "topP": 1, "toolChoice": "none", "users": 1}"#;
        let expected = ["/responseFormat", "/jsonMode", "/min_tokens", "/topP", "/toolChoice"];
        assert_eq!(check(structural, UnknownMembers::Ignore), expected);
        assert_eq!(check(text, UnknownMembers::Refuse), ["/bias", "/x"]);
        assert_eq!(check(r#"{"bias": {}, "x": null}"#, UnknownMembers::Refuse), [""; 0]);
    }

    /// Members that a route refuses are not suggested, and only the first unknown members have
    /// suggestions: comparing the names of a large body would take seconds.
    #[test]
    fn suggestions_are_bounded() {
        let table = MemberTable { unsupported: &[("stop", "use `a`")], ..MEMBER_TABLE };
        let many: Vec<String> = (0..200).map(|k| format!("\"see{k}\": 1")).collect();
        let text = format!("{{\"stops\": 1, \"seeds\": 1, {}}}", many.join(", "));
        let (json, mut faults) = (Json::parse(&text, &Limits::default()).unwrap(), Faults::new());
        let members = Members::of_body(&json).unwrap();
        table.check(&members, UnknownMembers::Refuse, &mut faults);
        assert_eq!(faults[0].message, "there is no such member");
        assert_eq!(faults[1].message, "there is no such member; is `seed` meant?");
        assert!(faults.is_full(), "{}", faults.len());
        assert!(faults.iter().filter(|fault| fault.message.contains("meant")).count() < 20);
    }
}
