//! Sampling, lengths, and the `louver` member: what several routes have in common.

use std::num::NonZeroU32;

use louver::front::json_schema::SchemaOptions;
use louver::spec::json::Json;
use louver_formats::Parallel;
use louver_mistralrs::{Truncation, Whitespace};

use serde_json::Value;

use crate::limits::RequestLimits;
use crate::request::members::{Faults, Members};
use crate::request::to_value;

/// How tokens are chosen. What is absent is the host's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) top_k: Option<usize>,
    pub(crate) min_p: Option<f64>,
    pub(crate) frequency_penalty: Option<f32>,
    pub(crate) presence_penalty: Option<f32>,
    pub(crate) repetition_penalty: Option<f32>,
    pub(crate) seed: Option<u64>,
    /// The member that was given and its value.
    pub(crate) max_tokens: Option<(&'static str, usize)>,
    /// Choices.
    pub(crate) n: Option<usize>,
    /// The chosen token's probability, and those of so many others.
    pub(crate) logprobs: Option<usize>,
}

/// Most alternatives with their probabilities, as in OpenAI's API.
const MOST_LOGPROBS: i64 = 20;

impl Sampling {
    /// Reads `temperature`, `top_p`, `top_k`, `min_p`, the penalties and `seed`.
    pub(crate) fn read(members: &Members<'_>, faults: &mut Faults) -> Sampling {
        // As a share of the most likely token, 0 is off; as a share of all, nothing would be left.
        let top_p = members.number(faults, "top_p", 0.0..=1.0);
        if top_p == Some(0.0) {
            members.fail(faults, "top_p", "out_of_range", "must be above 0");
        }
        let penalty =
            |faults: &mut Faults, name| members.number(faults, name, -2.0..=2.0).map(|p| p as f32);
        let repetition_penalty = members.number(faults, "repetition_penalty", 0.01..=100.0);
        // Elsewhere -1 and 0 say that there is no such bound.
        let top_k = members.integer(faults, "top_k", -1..=1_000_000);
        Sampling {
            temperature: members.number(faults, "temperature", 0.0..=2.0),
            top_p: top_p.filter(|p| *p < 1.0),
            top_k: top_k.and_then(|k| usize::try_from(k).ok()).filter(|k| *k > 0),
            min_p: members.number(faults, "min_p", 0.0..=1.0).filter(|p| *p > 0.0),
            frequency_penalty: penalty(faults, "frequency_penalty"),
            presence_penalty: penalty(faults, "presence_penalty"),
            repetition_penalty: repetition_penalty.filter(|p| *p != 1.0).map(|p| p as f32),
            seed: members.integer(faults, "seed", i64::MIN..=i64::MAX).map(i64::cast_unsigned),
            ..Sampling::default()
        }
    }

    /// Reads the length limit under any of these names.
    pub(crate) fn read_max_tokens(
        &mut self,
        members: &Members<'_>,
        names: &[&'static str],
        limits: &RequestLimits,
        faults: &mut Faults,
    ) {
        for name in names {
            let Some(value) = members.count(faults, name, limits.max_tokens) else { continue };
            match self.max_tokens {
                Some((other, before)) if before != value => {
                    members.fail(
                        faults,
                        name,
                        "contradiction",
                        format!("`{other}` says otherwise"),
                    );
                }
                _ => self.max_tokens = Some((name, value)),
            }
        }
    }

    /// Reads `n`.
    pub(crate) fn read_n(
        &mut self,
        members: &Members<'_>,
        limits: &RequestLimits,
        faults: &mut Faults,
    ) {
        self.n = members.count(faults, "n", limits.n);
    }

    /// Reads `logprobs` and `top_logprobs` as Chat Completions has them.
    pub(crate) fn read_logprobs(&mut self, members: &Members<'_>, faults: &mut Faults) {
        let wanted = members.boolean(faults, "logprobs").unwrap_or(false);
        let top = members.integer(faults, "top_logprobs", 0..=MOST_LOGPROBS);
        if top.is_some() && !wanted {
            members.fail(faults, "top_logprobs", "contradiction", "needs `logprobs` to be true");
        }
        self.logprobs = wanted.then_some(top.and_then(|n| usize::try_from(n).ok()).unwrap_or(0));
    }
}

/// What a request asks of Louver beside OpenAI's members: the member `louver`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extension {
    /// The request is recorded, to be looked at in the inspector.
    pub(crate) trace: bool,
    /// The answer carries the enforcement report.
    pub(crate) report: bool,
    /// What happens near the length limit.
    pub(crate) truncation: Truncation,
    /// White space in JSON.
    pub(crate) whitespace: Option<Whitespace>,
    /// Members of [`SchemaOptions`] that replace those of the configuration.
    pub(crate) schema_options: Option<Value>,
    /// Most tokens of reasoning.
    pub(crate) reasoning_budget: Option<u32>,
    /// Most calls.
    pub(crate) max_calls: Option<NonZeroU32>,
}

impl Default for Extension {
    fn default() -> Self {
        Extension {
            trace: false,
            report: true,
            truncation: Truncation::Auto,
            whitespace: None,
            schema_options: None,
            reasoning_budget: None,
            max_calls: None,
        }
    }
}

impl Extension {
    /// Reads the member `louver`. It is Louver's own: a member of it that is unknown is a fault.
    pub(crate) fn read(body: &Members<'_>, faults: &mut Faults) -> Extension {
        let mut extension = Extension::default();
        let Some(members) = body.object(faults, "louver") else { return extension };
        const KNOWN: [&str; 7] = [
            "trace",
            "report",
            "truncation",
            "whitespace",
            "schema_options",
            "reasoning_budget",
            "max_calls",
        ];
        for name in members.names().filter(|name| !KNOWN.contains(name)) {
            members.fail(faults, name, "unknown_member", "there is no such member");
        }
        extension.trace = members.boolean(faults, "trace").unwrap_or(false);
        extension.report = members.boolean(faults, "report").unwrap_or(true);
        extension.truncation = match members.word(faults, "truncation", &["auto", "safe", "off"]) {
            Some("safe") => Truncation::Safe,
            Some("off") => Truncation::Off,
            _ => Truncation::Auto,
        };
        if let Some(whitespace) = members.get("whitespace") {
            match serde_json::from_value(to_value(whitespace)) {
                Ok(whitespace) => extension.whitespace = Some(whitespace),
                Err(error) => members.fail(faults, "whitespace", "invalid_type", error.to_string()),
            }
        }
        if let Some(options) = members.object(faults, "schema_options") {
            if options.get("policy").is_some() {
                options.fail(faults, "policy", "unsupported", "the server's configuration decides");
            }
            let changes: Value =
                options.iter().map(|(name, value)| (name.to_owned(), to_value(value))).collect();
            match with_changes(&SchemaOptions::default(), &changes) {
                Ok(_) => extension.schema_options = Some(changes),
                Err(error) => {
                    members.fail(faults, "schema_options", "invalid_type", error.to_string())
                }
            }
        }
        let count = |faults: &mut Faults, name, most| {
            members.integer(faults, name, 1..=most).and_then(|value| u32::try_from(value).ok())
        };
        extension.reasoning_budget = count(faults, "reasoning_budget", i64::from(u32::MAX));
        extension.max_calls = count(faults, "max_calls", 1000).and_then(NonZeroU32::new);
        extension
    }

    /// How schemas are read, where the configuration says `options`.
    pub(crate) fn schema_options(&self, options: SchemaOptions) -> SchemaOptions {
        // They were read before, so that they can be read now.
        let changed =
            self.schema_options.as_ref().and_then(|changes| with_changes(&options, changes).ok());
        let changed = changed.unwrap_or(options);
        SchemaOptions { whitespace: self.whitespace.unwrap_or(changed.whitespace), ..changed }
    }

    /// How many calls a turn may have, where the request says `parallel`.
    pub(crate) fn parallel(&self, parallel: Parallel) -> Parallel {
        match (parallel, self.max_calls) {
            (Parallel::Any, Some(most)) => Parallel::AtMost(most),
            (parallel, _) => parallel,
        }
    }
}

/// Options with some members replaced.
fn with_changes(
    options: &SchemaOptions,
    changes: &Value,
) -> Result<SchemaOptions, serde_json::Error> {
    let mut whole = serde_json::to_value(options)?;
    for (name, value) in changes.as_object().into_iter().flatten() {
        whole[name] = value.clone();
    }
    serde_json::from_value(whole)
}

/// What is said about reasoning: whether the chat template is told to open it, and whether there may be any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Nothing is said.
    #[default]
    Unsaid,
    /// On.
    On,
    /// Off.
    Off,
}

impl Thinking {
    /// Reads `reasoning_effort`, `enable_thinking` and `chat_template_kwargs.enable_thinking`. Efforts beside `none` are all
    /// the same here: chat templates know on and off.
    pub(crate) fn read(members: &Members<'_>, faults: &mut Faults) -> Thinking {
        const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
        let mut said: Option<(String, Thinking)> = None;
        let mut say = |faults: &mut Faults, members: &Members<'_>, name: &str, is_on: bool| {
            let thinking = if is_on { Thinking::On } else { Thinking::Off };
            match &said {
                Some((other, before)) if *before != thinking => {
                    members.fail(faults, name, "contradiction", format!("{other} says otherwise"));
                }
                _ => said = Some((members.pointer(name), thinking)),
            }
        };
        if let Some(effort) = members.word(faults, "reasoning_effort", &EFFORTS) {
            say(faults, members, "reasoning_effort", effort != "none");
        }
        if let Some(on) = members.boolean(faults, "enable_thinking") {
            say(faults, members, "enable_thinking", on);
        }
        if let Some(arguments) = members.object(faults, "chat_template_kwargs") {
            for name in arguments.names().filter(|name| *name != "enable_thinking") {
                arguments.fail(
                    faults,
                    name,
                    "unsupported",
                    "only `enable_thinking` is handed on to the chat template",
                );
            }
            if let Some(on) = arguments.boolean(faults, "enable_thinking") {
                say(faults, &arguments, "enable_thinking", on);
            }
        }
        said.map_or(Thinking::Unsaid, |(_, thinking)| thinking)
    }
}

/// Stop strings: a string or an array of them.
pub(crate) fn check_stop(members: &Members<'_>, limits: &RequestLimits, faults: &mut Faults) {
    let texts: Vec<&Json> = match members.get("stop") {
        None => return,
        Some(text @ Json::String(_)) => vec![text],
        Some(Json::Array(texts)) => texts.iter().collect(),
        Some(_) => {
            return members.fail(
                faults,
                "stop",
                "invalid_type",
                "must be a string or an array of strings",
            );
        }
    };
    if texts.len() > limits.stop {
        members.fail(faults, "stop", "too_many", format!("at most {} stop strings", limits.stop));
    }
    if texts.iter().any(|text| text.as_str().is_none_or(str::is_empty)) {
        members.fail(
            faults,
            "stop",
            "invalid_type",
            "stop strings must be strings that are not empty",
        );
    }
}

#[cfg(test)]
mod tests {
    use louver::front::json_schema::{Integers, Policy};
    use louver::limits::Limits;

    use super::*;

    fn with<T>(text: &str, read: impl FnOnce(&Members<'_>, &mut Faults) -> T) -> (T, Vec<String>) {
        let json = Json::parse(text, &Limits::default()).unwrap();
        let mut faults = Faults::new();
        let members = Members::of(&json, "", &mut faults).unwrap();
        let value = read(&members, &mut faults);
        (value, faults.into_iter().map(|f| f.param.unwrap()).collect())
    }

    #[test]
    fn thinking_in_three_spellings() {
        for (text, want, faults) in [
            ("{}", Thinking::Unsaid, vec![]),
            (r#"{"reasoning_effort": "none"}"#, Thinking::Off, vec![]),
            (r#"{"reasoning_effort": "high", "enable_thinking": true}"#, Thinking::On, vec![]),
            (r#"{"chat_template_kwargs": {"enable_thinking": false}}"#, Thinking::Off, vec![]),
            (
                r#"{"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": false, "x": 1}}"#,
                Thinking::On,
                vec!["/chat_template_kwargs/x", "/chat_template_kwargs/enable_thinking"],
            ),
            (r#"{"reasoning_effort": "most"}"#, Thinking::Unsaid, vec!["/reasoning_effort"]),
        ] {
            let (thinking, found) = with(text, Thinking::read);
            assert_eq!(
                (thinking, found),
                (want, faults.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn sampling_and_lengths() {
        let limits = RequestLimits { max_tokens: 100, ..RequestLimits::default() };
        let names = ["max_completion_tokens", "max_tokens"];
        let read = |members: &Members<'_>, faults: &mut Faults| {
            let mut sampling = Sampling::read(members, faults);
            sampling.read_max_tokens(members, &names, &limits, faults);
            sampling.read_logprobs(members, faults);
            sampling
        };
        let (sampling, faults) = with(
            r#"{"top_k": -1, "top_p": 1, "seed": -1, "max_tokens": 7, "logprobs": true}"#,
            read,
        );
        assert_eq!(faults, [""; 0]);
        assert_eq!((sampling.top_k, sampling.top_p, sampling.seed), (None, None, Some(u64::MAX)));
        assert_eq!((sampling.max_tokens, sampling.logprobs), (Some(("max_tokens", 7)), Some(0)));
        let text = r#"{"temperature": 3, "top_p": 0, "max_tokens": 101, "max_completion_tokens": 0, "top_logprobs": 2}"#;
        let (_, faults) = with(text, read);
        assert_eq!(
            faults,
            ["/top_p", "/temperature", "/max_completion_tokens", "/max_tokens", "/top_logprobs"]
        );
        let (_, faults) = with(r#"{"max_tokens": 5, "max_completion_tokens": 6}"#, read);
        assert_eq!(faults, ["/max_tokens"]);
    }

    #[test]
    fn the_extension_is_strict() {
        let text = r#"{"louver": {"trace": true, "whitespace": "compact", "truncation": "safe", "max_calls": 3}}"#;
        let (extension, faults) = with(text, Extension::read);
        assert_eq!(faults, [""; 0]);
        assert_eq!((extension.trace, extension.report), (true, true));
        assert_eq!(
            (extension.whitespace, extension.truncation),
            (Some(Whitespace::Compact), Truncation::Safe)
        );
        assert_eq!(
            extension.parallel(Parallel::Any),
            Parallel::AtMost(NonZeroU32::new(3).unwrap())
        );
        assert_eq!(extension.parallel(Parallel::One), Parallel::One);
        let text = r#"{"louver": {"whitespace": "compact", "schema_options": {"integers": "zero_fraction", "max_digits": 9}}}"#;
        let (extension, faults) = with(text, Extension::read);
        assert_eq!(faults, [""; 0]);
        let base = SchemaOptions { policy: Policy::Validate, ..SchemaOptions::default() };
        let want = SchemaOptions {
            integers: Integers::ZeroFraction,
            max_digits: Some(9),
            whitespace: Whitespace::Compact,
            ..base
        };
        assert_eq!(extension.schema_options(base), want);
        let text = r#"{"louver": {"schema_options": {"policy": "best_effort"}}}"#;
        assert_eq!(with(text, Extension::read).1, ["/louver/schema_options/policy"]);
        let text = r#"{"louver": {"schema_options": {"integer": 1}}}"#;
        assert_eq!(with(text, Extension::read).1, ["/louver/schema_options"]);
        let text = r#"{"louver": {"tracing": true, "whitespace": "wide", "truncation": 1}}"#;
        let (_, faults) = with(text, Extension::read);
        assert_eq!(faults, ["/louver/tracing", "/louver/truncation", "/louver/whitespace"]);
    }
}
