//! Checks of a body's member names: accepted, ignored, unsupported and unknown members.

use std::cell::LazyCell;

use louver::front::diagnostic::{is_same_name, similar};
use louver::spec::json::Json;

use crate::config::UnknownMembers;
use crate::error::MAX_FAULTS;
use crate::request::foreign_members::{
    Advice, IGNORED, NEUTRAL_NUMBERS, SETTINGS_OF, TRUE_BY_DEFAULT, UNSUPPORTED, WITHOUT_DEFAULT,
};
use crate::request::members::{Faults, Members};
use crate::request::pointers::PointerMap;
use crate::request::structure;

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

/// The advice that depends on the route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteAdvice {
    pub(crate) structure: &'static str,
    pub(crate) max_tokens: &'static str,
    pub(crate) reasoning: &'static str,
    pub(crate) stop: &'static str,
    pub(crate) tools: &'static str,
}

impl RouteAdvice {
    fn of(&self, advice: Advice) -> &'static str {
        match advice {
            Advice::Text(text) => text,
            Advice::Structure => self.structure,
            Advice::MaxTokens => self.max_tokens,
            Advice::Reasoning => self.reasoning,
            Advice::Stop => self.stop,
            Advice::Tools => self.tools,
        }
    }
}

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

/// Most unknown members of a body: each is compared with all that ask for structure.
const MAX_UNKNOWN: usize = 1_000;

/// Members that ask for structure, besides those of [`structure::names`], on the routes that accept
/// them. A name that resembles one of these is probably a misspelling.
const STRUCTURE_MEMBERS: [&str; 8] = [
    "response_format",
    "text",
    "output_config",
    "output_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "louver",
];

/// The members of a route's bodies, besides [`COMMON`].
pub(crate) struct MemberTable {
    /// Members that the route reads.
    pub(crate) accepted: &'static [&'static str],
    /// Members of the route's API that do not affect generation.
    pub(crate) ignored: &'static [&'static str],
    /// Members of the route's API that are not supported, and the reason.
    pub(crate) unsupported: &'static [(&'static str, &'static str)],
    /// The advice about members of [`UNSUPPORTED`].
    pub(crate) advice: RouteAdvice,
}

impl MemberTable {
    /// Reports unsupported and unknown members. An unsupported member with a neutral value (`null`,
    /// empty, a default) is accepted. The map gets warnings of unknown members that are ignored
    /// though they may ask for structure.
    pub(crate) fn check(
        &self,
        members: &Members<'_>,
        unknown: UnknownMembers,
        faults: &mut Faults,
        pointers: &mut PointerMap,
    ) {
        let mut earlier = 0;
        let structure = LazyCell::new(|| {
            let is_structure =
                |name: &&str| STRUCTURE_MEMBERS.contains(name) || structure::is_structure(name);
            self.supported().filter(is_structure).collect::<Vec<&str>>()
        });
        for (name, value) in members.iter().filter(|(_, value)| **value != Json::Null) {
            if faults.is_full() {
                return;
            }
            if let Some((known, reason)) = self.refusal(name) {
                if !is_neutral(known, value) {
                    members.fail(faults, name, "unsupported", reason);
                }
                continue;
            }
            let mut ignored = self.ignored.iter().chain(IGNORED);
            if self.is_read(name)
                || ignored.any(|known| is_same_name(name, known))
                || is_setting_of_nothing(name, members)
            {
                continue;
            }
            let known = self.read().find(|known| is_same_name(name, known));
            let asks_for_structure = may_request_structure(name)
                || TOOL_NAME_PARTS.iter().any(|part| name.to_lowercase().contains(part))
                || known.is_some();
            if earlier == MAX_UNKNOWN {
                return members.fail(faults, name, "unknown_member", "too many unknown members");
            }
            let meant = similar(name, structure.iter().copied(), earlier);
            earlier += 1;
            let is_misspelled = structure.iter().any(|known| is_misspelling(name, known));
            let is_checked =
                asks_for_structure || is_misspelled || unknown == UnknownMembers::Refuse;
            if is_checked && !is_neutral(known.unwrap_or(name), value) {
                members.fail_unknown(faults, name, self.supported(), "");
                continue;
            }
            let is_warned = asks_for_structure || is_misspelled || meant.is_some();
            if is_warned && pointers.warnings().len() < MAX_FAULTS {
                let meant = meant.map(|meant| format!("; is `{meant}` meant?"));
                let message = format!("there is no such member{}", meant.unwrap_or_default());
                pointers.warn(members.pointer(name), message);
            }
        }
    }

    /// The members that the route reads.
    fn read(&self) -> impl Iterator<Item = &'static str> {
        COMMON.into_iter().chain(self.accepted.iter().copied()).chain(structure::names())
    }

    /// The members that the route reads and does not refuse.
    fn supported(&self) -> impl Iterator<Item = &'static str> {
        self.read().filter(|name| self.refusal(name).is_none())
    }

    fn is_read(&self, name: &str) -> bool {
        self.read().any(|known| known == name)
    }

    /// The name of a member that the route does not support, and the reason; `None` if it does
    /// support it, or does not know it. The name may be written in another style (`minTokens`).
    fn refusal(&self, name: &str) -> Option<(&'static str, &'static str)> {
        // A route may accept a member that the other routes do not support.
        let others = UNSUPPORTED.iter().map(|(other, advice)| (*other, self.advice.of(*advice)));
        let others = others.chain(structure::UNSUPPORTED_OPTIONS);
        let others = others.filter(|(other, _)| !self.accepted.contains(other));
        let mut unsupported = self.unsupported.iter().copied().chain(others);
        unsupported.find(|(other, _)| is_same_name(other, name))
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

/// Reports members that the messages of another API have, with what stands for them here.
pub(crate) fn refuse_members(members: &Members<'_>, others: &[(&str, &str)], faults: &mut Faults) {
    for (name, instead) in others {
        if members.get(name).is_some_and(|value| !is_neutral(name, value)) {
            members.fail(faults, name, "unsupported", format!("not in messages here: {instead}"));
        }
    }
}

/// Whether a name is another one with one wrong letter, or two if it is long, in any style.
fn is_misspelling(name: &str, known: &str) -> bool {
    let most = match known.len() {
        ..5 => return false,
        5..10 => 1,
        10.. => 2,
    };
    // Further apart than letters and styles can be.
    if name.len().abs_diff(known.len()) > 2 * most + 2 {
        return false;
    }
    let [name, known] = [name, known].map(|name| name.to_lowercase().replace(['_', '-'], ""));
    strsim::damerau_levenshtein(&name, &known) <= most
}

fn may_request_structure(name: &str) -> bool {
    let name = name.to_lowercase();
    STRUCTURE_NAME_PARTS.iter().any(|part| name.contains(part))
}

/// Whether a member sets how something works that the request does not turn on.
fn is_setting_of_nothing(name: &str, members: &Members<'_>) -> bool {
    SETTINGS_OF.iter().any(|(part, main)| {
        name != *main
            && name.starts_with(part)
            && members.get(main).is_none_or(|value| is_neutral(main, value))
    })
}

/// Whether a member asks for nothing: some clients send every parameter with its default.
fn is_neutral(name: &str, value: &Json) -> bool {
    match value {
        Json::Null => true,
        // An empty object turns the search on.
        Json::Object(_) if name == "web_search_options" => false,
        Json::Object(biases) if name == "logit_bias" => {
            let is_zero = |bias: &Json| matches!(bias, Json::Number(n) if n.is_equal_to("0"));
            biases.iter().all(|(_, bias)| is_zero(bias))
        }
        Json::Bool(value) => {
            let is_true = TRUE_BY_DEFAULT.iter().any(|other| is_same_name(other, name));
            let lower = name.to_lowercase();
            let has_default = is_true || !WITHOUT_DEFAULT.iter().any(|part| lower.contains(part));
            has_default && *value == is_true
        }
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Number(number) => {
            let neutral = NEUTRAL_NUMBERS.iter().find(|(other, _)| is_same_name(other, name));
            neutral.is_some_and(|(_, value)| number.is_equal_to(value))
        }
        Json::String(value) => value.is_empty() || name == "function_call" && &**value == "none",
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use louver_formats::RequestFault;

    use super::*;
    use crate::{chat, completions, messages, responses};

    const MEMBER_TABLE: MemberTable = MemberTable {
        accepted: &["a"],
        ignored: &["user"],
        unsupported: &[("bias", "it cannot be done")],
        advice: RouteAdvice {
            structure: "use `format`",
            max_tokens: "use `a`",
            reasoning: "use `a`",
            stop: "use `stop`",
            tools: "use `tools`",
        },
    };

    /// The faults and warnings of a body.
    fn check(
        table: &MemberTable,
        text: &str,
        unknown: UnknownMembers,
    ) -> (Faults, Vec<RequestFault>) {
        let (json, mut faults) = (Json::parse(text, &Limits::default()).unwrap(), Faults::new());
        let (members, mut pointers) = (Members::of_body(&json).unwrap(), PointerMap::default());
        table.check(&members, unknown, &mut faults, &mut pointers);
        (faults, pointers.warnings().to_vec())
    }

    #[test]
    fn unsupported_and_unknown_members_are_rejected() {
        let check = |text: &str, unknown| {
            let (faults, _) = check(&MEMBER_TABLE, text, unknown);
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

    /// By default members that are not known are refused, but not those of clients that send every
    /// parameter with its default, nor those that cannot change an answer.
    #[test]
    fn members_of_other_servers_are_refused_if_they_change_the_answer() {
        let check = |text: &str| {
            let (faults, _) = check(&MEMBER_TABLE, text, UnknownMembers::default());
            faults.into_iter().map(|f| (f.param.unwrap(), f.message)).collect::<Vec<_>>()
        };
        for name in ["typical_p", "mirostat", "lora_path", "echo", "config", "temprature"] {
            let found = check(&format!("{{\"{name}\": {{\"guided_choice\": [\"a\"]}}}}"));
            assert_eq!(found.len(), 1, "{name}");
        }
        for (name, value, advice) in [
            ("thinkingConfig", "{\"a\": 1}", "use `a`"),
            ("enableThought", "false", "use `a`"),
            ("enable_reasoning", "false", "use `a`"),
            ("reasoning_budget_tokens", "5", "use `louver.reasoning_budget`"),
            ("stop_words", "[\"x\"]", "use `stop`"),
            ("random_seed", "7", "use `seed`"),
            ("num_predict", "7", "use `a`"),
            ("lora", "\"x\"", "use `model`"),
            ("prompt_logprobs", "0", "no such member"),
            ("dry_multiplier", "0.8", "no such member"),
            ("early_stopping", "true", "no such member"),
        ] {
            let found = check(&format!("{{\"{name}\": {value}}}"));
            assert!(found.len() == 1 && found[0].1.ends_with(advice), "{name}: {found:?}");
        }
        let neutral = r#"{"typical_p": 1.0, "mirostat": 0, "echo": false, "lora_path": "",
            "do_sample": true, "include_reasoning": true, "config": {}, "samplers": [],
            "cache_prompt": true, "requestId": "r1", "keep_alive": "5m", "priority": 3,
            "promptCacheKey": "k", "candidateCount": 1, "dry_base": 1.75, "dry_multiplier": 0,
            "mirostat_tau": 5, "xtc_threshold": 0.1, "usage": {"include": true}}"#;
        assert_eq!(check(neutral), []);
        assert_eq!(check(r#"{"dry_multiplier": 0.8, "dry_base": 1.75}"#).len(), 2);
    }

    /// Members have the same meaning in every style of names, also with values that ask for
    /// nothing.
    #[test]
    fn names_in_other_styles_are_rejected() {
        let check = |text: &str| {
            let (faults, warnings) = check(&MEMBER_TABLE, text, UnknownMembers::Ignore);
            assert!(warnings.is_empty(), "{warnings:?}");
            faults.into_iter().map(|f| f.param.unwrap()).collect::<Vec<_>>()
        };
        for (name, neutral) in [
            ("responseMimeType", "null"),
            ("outputConfig", "{}"),
            ("extraBody", "{}"),
            ("stopSequences", "[]"),
            ("samplingParams", "{}"),
            ("responseModel", "null"),
            ("minTokens", "0"),
            ("logitBias", r#"{"1": 0}"#),
            ("bestOf", "1"),
            ("generation-config", "{}"),
        ] {
            let asking = format!("{{\"{name}\": \"x\"}}");
            assert_eq!(check(&asking), [format!("/{name}")]);
            assert_eq!(check(&format!("{{\"{name}\": {neutral}}}")), [""; 0], "{name}");
        }
        assert_eq!(check(r#"{"parallelToolCalls": false}"#), ["/parallelToolCalls"]);
    }

    /// Members that a route refuses are not suggested, and only the first unknown members have
    /// suggestions: comparing the names of a large body would take seconds.
    #[test]
    fn suggestions_are_bounded() {
        let table = MemberTable { unsupported: &[("stop", "use `a`")], ..MEMBER_TABLE };
        let many: Vec<String> = (0..200).map(|k| format!("\"see{k}\": 1")).collect();
        let text = format!("{{\"stops\": 1, \"seeds\": 1, {}}}", many.join(", "));
        let (faults, _) = check(&table, &text, UnknownMembers::Refuse);
        assert_eq!(faults[0].message, "there is no such member");
        assert_eq!(faults[1].message, "there is no such member; is `seed` meant?");
        assert!(faults.is_full(), "{}", faults.len());
        assert!(faults.iter().filter(|fault| fault.message.contains("meant")).count() < 20);
    }

    #[test]
    fn ignored_members_that_may_ask_for_structure_are_warned_of() {
        let text = r#"{"grammer": false, "response_fromat": {}, "guided_jsn": {}, "voice": 1,
            "json_modes": false, "schemas": [], "format_x": null, "tolls": [], "lovuer": {}}"#;
        let accepted = &["response_format"];
        let table = MemberTable { accepted, ..MEMBER_TABLE };
        let (faults, warnings) = check(&table, text, UnknownMembers::Ignore);
        assert!(faults.is_empty(), "{faults:?}");
        let found: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let none = "there is no such member";
        let expected = [
            format!("/grammer: {none}; is `grammar` meant?"),
            format!("/response_fromat: {none}; is `response_format` meant?"),
            format!("/guided_jsn: {none}; is `guided_json` meant?"),
            format!("/voice: {none}; is `choice` meant?"),
            format!("/json_modes: {none}"),
            format!("/schemas: {none}"),
            format!("/tolls: {none}; is `tools` meant?"),
            format!("/lovuer: {none}; is `louver` meant?"),
        ];
        assert_eq!(found, expected);
        let many: Vec<String> = (0..500).map(|k| format!("\"json{k}\": false")).collect();
        let many = format!("{{{}}}", many.join(", "));
        assert_eq!(check(&table, &many, UnknownMembers::Ignore).1.len(), MAX_FAULTS);
    }

    /// Also after many members that ask for nothing here. Other words are not misspellings.
    #[test]
    fn misspelled_members_that_ask_for_structure_are_refused() {
        let accepted = &["response_format"];
        let table = MemberTable { accepted, ..MEMBER_TABLE };
        let members = |count: usize, last: &str| {
            let many: String = (0..count).map(|k| format!("\"sampler_{k}\": 1, ")).collect();
            let text = format!("{{{many}\"{last}\": \"x\"}}");
            let (faults, _) = check(&table, &text, UnknownMembers::Ignore);
            faults.iter().map(|fault| fault.message.clone()).collect::<Vec<String>>()
        };
        for name in [
            "grammer",
            "response_fromat",
            "reponse_formt",
            "tolls",
            "lovuer",
            "choise",
            "Grammer",
            "responseFromat",
        ] {
            let faults = members(10, name);
            assert!(faults[0].ends_with("meant?"), "{name}: {faults:?}");
            assert_eq!(members(30, name).len(), 1, "{name}");
        }
        for name in ["voice", "router", "reset", "lower", "response_id", "response_mode", "test"] {
            assert_eq!(members(10, name), [""; 0], "{name}");
        }
        assert_eq!(members(MAX_UNKNOWN, "x"), ["too many unknown members"]);
    }

    /// No advice names a member that the route refuses for its name.
    #[test]
    fn advice_can_be_followed_on_its_route() {
        /// Not members of a body: keywords of schemas, a role, a member of a structural tag.
        const OTHERS: [&str; 5] =
            ["minLength", "minItems", "\"additionalProperties\": false", "system", "excludes"];
        for (route, table) in [
            ("chat", &chat::request::MEMBER_TABLE),
            ("completions", &completions::request::MEMBER_TABLE),
            ("responses", &responses::translate::MEMBER_TABLE),
            ("messages", &messages::translate::MEMBER_TABLE),
        ] {
            let own = table.unsupported.iter().map(|(name, _)| *name);
            let others = UNSUPPORTED.iter().map(|(name, _)| *name);
            let options = structure::UNSUPPORTED_OPTIONS.iter().map(|(name, _)| *name);
            for name in own.chain(others).chain(options) {
                let Some((_, reason)) = table.refusal(name) else { continue };
                let is_role = reason.contains("the role");
                for advised in reason.split('`').skip(1).step_by(2) {
                    let member = advised.split('.').next().unwrap();
                    let is_accepted = table.supported().any(|name| name == member);
                    let is_other = OTHERS.contains(&advised) && (advised != "system" || is_role);
                    assert!(is_accepted || is_other, "{route}: {name}: {reason}");
                }
            }
        }
    }
}
