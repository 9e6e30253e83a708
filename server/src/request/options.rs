//! Options that several routes share: sampling, length limits, reasoning, and the `louver` member.

use std::num::NonZeroU32;

use louver::front::json_schema::SchemaOptions;
use louver::spec::json::Json;
use louver_formats::Parallel;
use louver_mistralrs::{LimitPolicy, Whitespace};
use mistralrs::SamplingParams;

use crate::config::{Overrides, UnknownMembers};
use crate::error::{ApiError, ApiFault};
use crate::limits::RequestLimits;
use crate::request::members::{Faults, Members};
use crate::request::{structure, to_value};

/// How a request's tokens are sampled.
#[derive(Clone, Debug)]
pub(crate) struct Sampling {
    /// The host's parameters. Absent ones: temperature 1, the whole distribution, no penalties.
    pub(crate) params: SamplingParams,
    pub(crate) seed: Option<u64>,
    /// The name of the member that was sent, and its value.
    pub(crate) max_tokens: Option<(&'static str, usize)>,
    /// Number of alternatives per token, if log probabilities were requested.
    pub(crate) logprobs: Option<usize>,
}

/// Maximum of `top_logprobs`, as in OpenAI's API.
const MAX_TOP_LOGPROBS: i64 = 20;

/// What 0 means as `top_p`: the likeliest token alone.
const MIN_TOP_P: f64 = 1e-9;

impl Default for Sampling {
    fn default() -> Self {
        let params = SamplingParams::neutral();
        Sampling { params, seed: None, max_tokens: None, logprobs: None }
    }
}

impl Sampling {
    /// Parses `temperature`, `top_p`, `top_k`, `min_p`, the penalties and `seed`.
    pub(crate) fn read(members: &Members<'_>, faults: &mut Faults) -> Sampling {
        // For `min_p`, 0 means off. For `top_p`, the likeliest token is always left.
        let top_p = members.number(faults, "top_p", 0.0..=1.0).map(|p| p.max(MIN_TOP_P));
        let penalty =
            |faults: &mut Faults, name| members.number(faults, name, -2.0..=2.0).map(|p| p as f32);
        let repetition_penalty = members.number(faults, "repetition_penalty", 0.01..=100.0);
        // In other servers -1 and 0 mean no limit.
        let top_k = members.integer(faults, "top_k", -1..=1_000_000);
        let params = SamplingParams {
            temperature: members.number(faults, "temperature", 0.0..=2.0),
            top_p: top_p.filter(|p| *p < 1.0),
            top_k: top_k.and_then(|k| usize::try_from(k).ok()).filter(|k| *k > 0),
            min_p: members.number(faults, "min_p", 0.0..=1.0).filter(|p| *p > 0.0),
            frequency_penalty: penalty(faults, "frequency_penalty"),
            presence_penalty: penalty(faults, "presence_penalty"),
            repetition_penalty: repetition_penalty.filter(|p| *p != 1.0).map(|p| p as f32),
            ..SamplingParams::neutral()
        };
        let seed = members.integer(faults, "seed", i64::MIN..=i64::MAX).map(i64::cast_unsigned);
        Sampling { params, seed, ..Sampling::default() }
    }

    /// Parses the length limit, which may have any of these names. One above the limits of the
    /// server or the model means as many tokens as they allow.
    pub(crate) fn read_max_tokens(
        &mut self,
        members: &Members<'_>,
        names: &[&'static str],
        faults: &mut Faults,
    ) {
        for name in names {
            let Some(value) = members.count(faults, name, usize::MAX) else { continue };
            match self.max_tokens {
                Some((other, previous)) if previous != value => {
                    members.fail(faults, name, "contradiction", format!("contradicts `{other}`"));
                }
                _ => self.max_tokens = Some((name, value)),
            }
        }
    }

    /// Parses `n`.
    pub(crate) fn read_n(
        &mut self,
        members: &Members<'_>,
        limits: &RequestLimits,
        faults: &mut Faults,
    ) {
        self.params.n_choices = members.count(faults, "n", limits.n).unwrap_or(1);
    }

    /// Parses `logprobs` and `top_logprobs` in the format of Chat Completions.
    pub(crate) fn read_logprobs(&mut self, members: &Members<'_>, faults: &mut Faults) {
        let is_enabled = members.boolean(faults, "logprobs").unwrap_or(false);
        let top = members.integer(faults, "top_logprobs", 0..=MAX_TOP_LOGPROBS);
        if top.is_some_and(|top| top > 0) && !is_enabled {
            members.fail(faults, "top_logprobs", "contradiction", "requires `logprobs` to be true");
        }
        self.logprobs =
            is_enabled.then_some(top.and_then(|n| usize::try_from(n).ok()).unwrap_or(0));
    }
}

/// Names that other libraries give to JSON without white space.
const NO_SPACE: [&str; 4] = ["none", "minimal", "minified", "dense"];

/// Louver's extension of OpenAI's request format: the member `louver`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestExtension {
    /// Whether to record a trace for the inspector.
    pub(crate) trace: bool,
    /// Whether the response includes the enforcement report.
    pub(crate) report: bool,
    /// Behaviour near the length limit.
    pub(crate) limit_policy: LimitPolicy,
    /// White space in JSON output.
    pub(crate) whitespace: Option<Whitespace>,
    /// Members of [`SchemaOptions`] that override the configuration.
    pub(crate) schema_options: Overrides<SchemaOptions>,
    /// Maximum reasoning tokens.
    pub(crate) reasoning_budget: Option<u32>,
    /// Maximum number of tool calls.
    pub(crate) max_calls: Option<NonZeroU32>,
}

impl Default for RequestExtension {
    fn default() -> Self {
        RequestExtension {
            trace: false,
            report: true,
            limit_policy: LimitPolicy::Safe,
            whitespace: None,
            schema_options: Overrides::default(),
            reasoning_budget: None,
            max_calls: None,
        }
    }
}

impl RequestExtension {
    /// Parses the member `louver`, and what has the same meaning elsewhere in the body.
    pub(crate) fn read(body: &Members<'_>, faults: &mut Faults) -> RequestExtension {
        let members = body.object(faults, "louver");
        let mut extension =
            members.map_or_else(Default::default, |members| Self::read_own(&members, faults));
        if let Some(pointer) = structure::without_white_space(body)
            && extension.whitespace.replace(Whitespace::Compact).is_some_and(is_not_compact)
        {
            let message = "contradicts `louver.whitespace`";
            faults.push(ApiFault::at(pointer, "contradiction", message));
        }
        extension
    }

    /// Parses the member `louver`. Unknown members of it are always faults, unless they are `null`.
    fn read_own(members: &Members<'_>, faults: &mut Faults) -> RequestExtension {
        let mut extension = RequestExtension::default();
        const KNOWN: [&str; 7] = [
            "trace",
            "report",
            "truncation",
            "whitespace",
            "schema_options",
            "reasoning_budget",
            "max_calls",
        ];
        members.refuse_unknown(faults, &KNOWN);
        extension.trace = members.boolean(faults, "trace").unwrap_or(false);
        extension.report = members.boolean(faults, "report").unwrap_or(true);
        extension.limit_policy =
            match members.one_of(faults, "truncation", &["auto", "safe", "off"]) {
                Some("auto") => LimitPolicy::Auto,
                Some("off") => LimitPolicy::Off,
                _ => LimitPolicy::Safe,
            };
        if let Some(whitespace) = members.get("whitespace") {
            match serde_json::from_value(to_value(whitespace)) {
                Ok(whitespace) => extension.whitespace = Some(whitespace),
                Err(error) => {
                    let is_none = whitespace.as_str().is_some_and(|text| NO_SPACE.contains(&text));
                    let meant = if is_none { "; is `compact` meant?" } else { "" };
                    members.fail(faults, "whitespace", "invalid_type", format!("{error}{meant}"));
                }
            }
        }
        if let Some(options) = members.object(faults, "schema_options") {
            extension.schema_options = read_schema_options(&options, faults);
        }
        let count = |faults: &mut Faults, name, max| {
            members.integer(faults, name, 1..=max).and_then(|value| u32::try_from(value).ok())
        };
        extension.reasoning_budget = count(faults, "reasoning_budget", i64::from(u32::MAX));
        extension.max_calls = count(faults, "max_calls", 1000).and_then(NonZeroU32::new);
        extension
    }

    /// A model's schema options with this request's overrides.
    pub(crate) fn schema_options(&self, options: SchemaOptions) -> SchemaOptions {
        let merged = self.schema_options.apply(&options);
        merged.with_whitespace(self.whitespace.unwrap_or(merged.whitespace))
    }

    /// The request's `parallel` setting, bounded by `max_calls`.
    pub(crate) fn parallel(&self, parallel: Parallel) -> Parallel {
        match (parallel, self.max_calls) {
            (Parallel::Any, Some(max)) => Parallel::AtMost(max),
            (parallel, _) => parallel,
        }
    }
}

fn is_not_compact(whitespace: Whitespace) -> bool {
    whitespace != Whitespace::Compact
}

/// Parses `louver.schema_options`.
fn read_schema_options(options: &Members<'_>, faults: &mut Faults) -> Overrides<SchemaOptions> {
    let mut overrides = Overrides::default();
    let defaults = serde_json::to_value(SchemaOptions::default()).unwrap_or_default();
    let known = || defaults.as_object().into_iter().flat_map(|options| options.keys());
    for (name, value) in options.iter() {
        if faults.is_full() {
            break;
        }
        if name == "policy" {
            let message = "only the server's configuration sets the policy";
            if options.get(name).is_some() {
                options.fail(faults, name, "unsupported", message);
            }
        } else if !known().any(|option| option == name) {
            options.fail_unknown(faults, name, known().map(String::as_str), "");
        } else if let Err(error) = overrides.set(name, to_value(value)) {
            options.fail(faults, name, "invalid_type", error.to_string());
        }
    }
    overrides
}

/// Options of a streamed response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamOptions {
    /// Whether a final chunk reports token usage.
    pub(crate) include_usage: bool,
}

impl StreamOptions {
    /// Parses `stream` and `stream_options`. `None`: the response is not streamed.
    /// Unknown options are treated as unknown members of the body.
    pub(crate) fn read(
        members: &Members<'_>,
        unknown: UnknownMembers,
        faults: &mut Faults,
    ) -> Option<StreamOptions> {
        let is_streamed = members.boolean(faults, "stream").unwrap_or(false);
        let mut options = StreamOptions::default();
        if let Some(read) = members.object(faults, "stream_options") {
            if !is_streamed {
                let message = "requires `stream` to be true";
                members.fail(faults, "stream_options", "contradiction", message);
            }
            if unknown == UnknownMembers::Refuse {
                read.refuse_unknown(
                    faults,
                    &["include_usage", "include_obfuscation", "continuous_usage_stats"],
                );
            }
            options.include_usage = read.boolean(faults, "include_usage").unwrap_or(false);
            // Padding against traffic analysis is left to proxies; accepted and ignored.
            read.boolean(faults, "include_obfuscation");
        }
        is_streamed.then_some(options)
    }
}

/// Checks the numbers of stop strings and tools.
pub(crate) fn check_counts(members: &Members<'_>, limits: &RequestLimits) -> Result<(), ApiError> {
    let mut faults = Faults::new();
    for (name, limit, what) in
        [("stop", limits.stop, "stop strings"), ("tools", limits.tools, "tools")]
    {
        let count = members.get(name).and_then(Json::as_array).map_or(0, <[Json]>::len);
        if count > limit {
            faults.push(ApiFault::too_many(members.pointer(name), limit, what));
        }
    }
    ApiError::reject(faults)
}

#[cfg(test)]
mod tests {
    use louver::front::json_schema::{Integers, Policy};
    use louver::limits::Limits;

    use super::*;

    fn with<T>(text: &str, read: impl FnOnce(&Members<'_>, &mut Faults) -> T) -> (T, Vec<String>) {
        let json = Json::parse(text, &Limits::default()).unwrap();
        let mut faults = Faults::new();
        let members = Members::from_json(&json, "", &mut faults).unwrap();
        let value = read(&members, &mut faults);
        (value, faults.into_iter().map(|f| f.param.unwrap()).collect())
    }

    #[test]
    fn sampling_members_are_read_and_range_checked() {
        let names = ["max_completion_tokens", "max_tokens"];
        let read = |members: &Members<'_>, faults: &mut Faults| {
            let mut sampling = Sampling::read(members, faults);
            sampling.read_max_tokens(members, &names, faults);
            sampling.read_logprobs(members, faults);
            sampling
        };
        let (sampling, faults) = with(
            r#"{"top_k": -1, "top_p": 1, "seed": -1, "max_tokens": 7, "logprobs": true}"#,
            read,
        );
        assert_eq!(faults, [""; 0]);
        let (params, seed) = (sampling.params, sampling.seed);
        assert_eq!((params.top_k, params.top_p, seed), (None, None, Some(u64::MAX)));
        assert_eq!((sampling.max_tokens, sampling.logprobs), (Some(("max_tokens", 7)), Some(0)));
        let text = r#"{"temperature": 3, "top_p": 0, "max_tokens": -1, "max_completion_tokens": 0, "top_logprobs": 2}"#;
        let (_, faults) = with(text, read);
        assert_eq!(
            faults,
            ["/temperature", "/max_completion_tokens", "/max_tokens", "/top_logprobs"]
        );
        let (_, faults) = with(r#"{"max_tokens": 5, "max_completion_tokens": 6}"#, read);
        assert_eq!(faults, ["/max_tokens"]);
    }

    #[test]
    fn unknown_stream_options_are_unknown_members() {
        let text = r#"{"stream": true, "stream_options": {
            "include_usage": true, "include_obfuscation": false, "include_usag": 1, "x": null}}"#;
        for (unknown, faults) in [
            (UnknownMembers::Ignore, &[][..]),
            (UnknownMembers::Refuse, &["/stream_options/include_usag"]),
        ] {
            let (options, found) = with(text, |m, f| StreamOptions::read(m, unknown, f));
            assert_eq!(
                (options.unwrap().include_usage, &found[..]),
                (true, &faults.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>()[..])
            );
        }
    }

    #[test]
    fn louver_members_are_read_strictly() {
        let text = r#"{"louver": {"trace": true, "whitespace": "compact", "truncation": "safe", "max_calls": 3}}"#;
        let (extension, faults) = with(text, RequestExtension::read);
        assert_eq!(faults, [""; 0]);
        assert_eq!((extension.trace, extension.report), (true, true));
        assert_eq!(
            (extension.whitespace, extension.limit_policy),
            (Some(Whitespace::Compact), LimitPolicy::Safe)
        );
        assert_eq!(
            extension.parallel(Parallel::Any),
            Parallel::AtMost(NonZeroU32::new(3).unwrap())
        );
        assert_eq!(extension.parallel(Parallel::One), Parallel::One);
        let text = r#"{"louver": {"whitespace": "compact", "schema_options": {"integers": "zero_fraction", "max_digits": 9}}}"#;
        let (extension, faults) = with(text, RequestExtension::read);
        assert_eq!(faults, [""; 0]);
        let base = SchemaOptions::default().with_policy(Policy::Validate);
        let expected = base
            .with_integers(Integers::ZeroFraction)
            .with_max_digits(Some(9))
            .with_whitespace(Whitespace::Compact);
        assert_eq!(extension.schema_options(base), expected);
        let compact = |louver: &str| {
            let options = r#"{"disable_any_whitespace": true, "json": {}}"#;
            with(&format!(r#"{{"structured_outputs": {options}{louver}}}"#), RequestExtension::read)
        };
        for louver in ["", r#", "louver": {}"#, r#", "louver": {"whitespace": "compact"}"#] {
            let (extension, faults) = compact(louver);
            assert_eq!((extension.whitespace, faults.len()), (Some(Whitespace::Compact), 0));
        }
        let (_, faults) = compact(r#", "louver": {"whitespace": "python_like"}"#);
        assert_eq!(faults, ["/structured_outputs/disable_any_whitespace"]);
        let text = r#"{"louver": {"schema_options": {"policy": "best_effort"}}}"#;
        assert_eq!(with(text, RequestExtension::read).1, ["/louver/schema_options/policy"]);
        let text = r#"{"louver": {"schema_options": {"integer": 1, "order": "wide"}}}"#;
        let places = ["/louver/schema_options/integer", "/louver/schema_options/order"];
        assert_eq!(with(text, RequestExtension::read).1, places);
        let text = r#"{"louver": {"tracing": true, "whitespace": "wide", "truncation": 1}}"#;
        let (_, faults) = with(text, RequestExtension::read);
        assert_eq!(faults, ["/louver/tracing", "/louver/truncation", "/louver/whitespace"]);
    }
}
