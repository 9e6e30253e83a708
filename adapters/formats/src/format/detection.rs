//! Detection of a model's family by the rules of the descriptions.

use louver::with_methods;
use serde::{Deserialize, Serialize};

use super::{Catalog, WireFormat};

/// A rule that recognises a family. It holds if all of its parts do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DetectRule {
    /// The chat template contains all of these. Its escapes `\n` and `\"` are decoded first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub template: Vec<String>,
    /// The chat template contains none of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// The tokenizer has all of these special or added tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<String>,
    /// The configuration's `model_type` is one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_type: Vec<String>,
    /// One of the configuration's `architectures` is one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
}

/// The properties of a model by which its family is detected.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ModelHints<'a> {
    /// The chat template's source.
    pub chat_template: Option<&'a str>,
    /// Texts of the tokenizer's special and added tokens.
    pub tokens: &'a [&'a str],
    /// `model_type` of the model's configuration.
    pub model_type: Option<&'a str>,
    /// `architectures` of the model's configuration.
    pub architectures: &'a [&'a str],
}

with_methods!(ModelHints<'a> {
    with_chat_template: chat_template = impl Into<Option<&'a str>>,
    with_tokens: tokens = &'a [&'a str],
    with_model_type: model_type = impl Into<Option<&'a str>>,
    with_architectures: architectures = &'a [&'a str],
});

/// The detected family of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detected {
    /// The format's name.
    pub name: String,
    /// The properties of the model that decided, for people.
    pub reason: String,
    /// Whether the model's configuration names the family, too, and no other family.
    pub is_configured: bool,
}

/// Why no family was detected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectError {
    /// The rules of several families hold.
    #[error("the wire format is ambiguous: {}; name one", list(candidates))]
    Ambiguous {
        /// The families.
        candidates: Vec<Detected>,
    },
    /// No rule of a family holds.
    #[error("the wire format is unknown: {seen} of {} families; name one", known.len())]
    Unknown {
        /// What of the model fits none, for people.
        seen: &'static str,
        /// The names of the catalog.
        known: Vec<String>,
    },
}

fn list(candidates: &[Detected]) -> String {
    let candidates = candidates.iter().map(|found| format!("{} ({})", found.name, found.reason));
    candidates.collect::<Vec<_>>().join(", ")
}

impl Catalog {
    /// Detects the family of a model from its chat template, tokens and configuration. Fails unless
    /// exactly one family fits. A family whose rule is about the template outweighs those whose
    /// rules are about the configuration, and these outweigh those about tokens. Cost: a few
    /// searches of the template.
    pub fn detect(&self, hints: ModelHints<'_>) -> Result<Detected, DetectError> {
        let template = hints.chat_template.map(unescape);
        let strongest = |format| strongest_rule(format, template.as_deref(), &hints);
        let found: Vec<(&WireFormat, &DetectRule)> =
            self.formats().iter().filter_map(strongest).collect();
        let best = found.iter().map(|(_, rule)| strength(rule)).max();
        let is_configured = |format: &&WireFormat| {
            let mut rules = format.detect.iter().filter(|rule| is_about_configuration(rule));
            rules.any(|rule| fits(rule, template.as_deref(), &hints))
        };
        let configured: Vec<&WireFormat> = self.formats().iter().filter(is_configured).collect();
        let found = found.into_iter().filter(|(_, rule)| Some(strength(rule)) == best);
        let mut candidates: Vec<Detected> = found
            .map(|(format, rule)| Detected {
                name: format.name.clone(),
                reason: reason(rule),
                is_configured: matches!(configured[..], [only] if only.name == format.name),
            })
            .collect();
        match candidates.len() {
            1 => Ok(candidates.remove(0)),
            0 => {
                let is_configured = hints.model_type.is_some() || !hints.architectures.is_empty();
                let seen = match (hints.chat_template, hints.tokens) {
                    (Some(_), []) => "the chat template of this model fits none",
                    (None, [_, ..]) => "the tokens of this model fit none",
                    (Some(_), _) => "the chat template and tokens of this model fit none",
                    (None, []) if is_configured => "the configuration of this model fits none",
                    (None, []) => {
                        "without a chat template, tokens and a configuration the model fits none"
                    }
                };
                Err(DetectError::Unknown { seen, known: self.names() })
            }
            _ => Err(DetectError::Ambiguous { candidates }),
        }
    }
}

/// The strongest property that a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RuleStrength {
    Tokens,
    Configuration,
    Template,
}

fn strength(rule: &DetectRule) -> RuleStrength {
    if !rule.template.is_empty() {
        RuleStrength::Template
    } else if is_about_configuration(rule) {
        RuleStrength::Configuration
    } else {
        RuleStrength::Tokens
    }
}

fn is_about_configuration(rule: &DetectRule) -> bool {
    !rule.model_type.is_empty() || !rule.architectures.is_empty()
}

/// The strongest of a format's rules that hold.
fn strongest_rule<'a>(
    format: &'a WireFormat,
    template: Option<&str>,
    hints: &ModelHints<'_>,
) -> Option<(&'a WireFormat, &'a DetectRule)> {
    let rules = format.detect.iter().filter(|rule| fits(rule, template, hints));
    Some((format, rules.max_by_key(|rule| strength(rule))?))
}

/// Decodes the escapes of Jinja string literals, which the texts of rules do not have.
fn unescape(template: &str) -> String {
    template.replace("\\n", "\n").replace("\\\"", "\"").replace("\\'", "'")
}

fn fits(rule: &DetectRule, template: Option<&str>, hints: &ModelHints<'_>) -> bool {
    let is_type = |t: &String| hints.model_type == Some(t.as_str());
    let is_built_as = |a: &String| hints.architectures.contains(&a.as_str());
    rule.template.iter().all(|t| template.is_some_and(|template| template.contains(t)))
        && !rule.absent.iter().any(|t| template.is_some_and(|template| template.contains(t)))
        && rule.tokens.iter().all(|t| hints.tokens.contains(&t.as_str()))
        && (rule.model_type.is_empty() || rule.model_type.iter().any(is_type))
        && (rule.architectures.is_empty() || rule.architectures.iter().any(is_built_as))
}

fn reason(rule: &DetectRule) -> String {
    let join = |texts: &[String], word| {
        texts.iter().map(|t| format!("{t:?}")).collect::<Vec<_>>().join(word)
    };
    let parts = [
        ("the chat template has ", &rule.template, " and "),
        ("the tokenizer has ", &rule.tokens, " and "),
        ("the model type is ", &rule.model_type, " or "),
        ("the architecture is ", &rule.architectures, " or "),
    ];
    let parts = parts.iter().filter(|(_, texts, _)| !texts.is_empty());
    parts
        .map(|(what, texts, word)| format!("{what}{}", join(texts, word)))
        .collect::<Vec<_>>()
        .join(", and ")
}
