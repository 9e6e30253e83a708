//! The families Louver ships, a user's own beside them, and which of them a model speaks.

use crate::format::{DetectRule, FormatError, WireFormat};

/// Every `families/*.toml`: file name and text.
static FAMILIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/families.rs"));

/// Wire formats by name.
#[derive(Clone, Debug)]
pub struct Catalog {
    formats: Vec<WireFormat>,
}

/// No format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no wire format is called `{name}`; known: {}", known.join(", "))]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
    /// The names there are.
    pub known: Vec<String>,
}

/// What is known of a model whose family is sought.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelHints<'a> {
    /// The chat template's source.
    pub chat_template: Option<&'a str>,
    /// Texts of the tokenizer's special and added tokens.
    pub tokens: &'a [&'a str],
}

/// A model's family, found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The format's name.
    pub name: String,
    /// What gave it away, for people.
    pub reason: String,
}

/// A model's family, not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectError {
    /// Several families fit.
    #[error("the wire format is ambiguous: {}; name one", candidates.iter().map(|c| format!("{} ({})", c.name, c.reason)).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// Those that fit.
        candidates: Vec<Detected>,
    },
    /// None fits.
    #[error("the wire format is unknown: the {seen} of this model fit none of {}; name one", known.join(", "))]
    Unknown {
        /// What there was to look at.
        seen: &'static str,
        /// The names there are.
        known: Vec<String>,
    },
}

impl Catalog {
    /// The families that Louver ships.
    pub fn builtin() -> Catalog {
        let formats = FAMILIES.iter().map(|(file, text)| match WireFormat::from_toml(text) {
            Ok(format) => format,
            Err(error) => unreachable!("embedded family {file} (every one is tested): {error}"),
        });
        Catalog { formats: formats.collect() }
    }

    /// Adds a format, in place of one of the same name.
    pub fn add(&mut self, format: WireFormat) {
        match self.formats.iter_mut().find(|f| f.name == format.name) {
            Some(slot) => *slot = format,
            None => self.formats.push(format),
        }
    }

    /// Reads a format from TOML and adds it; returns its name.
    pub fn add_toml(&mut self, text: &str) -> Result<String, FormatError> {
        let format = WireFormat::from_toml(text)?;
        let name = format.name.clone();
        self.add(format);
        Ok(name)
    }

    /// The format of this name.
    pub fn get(&self, name: &str) -> Result<&WireFormat, UnknownFormat> {
        let found = self.formats.iter().find(|f| f.name == name);
        found.ok_or_else(|| UnknownFormat { name: name.to_owned(), known: self.names() })
    }

    /// All of them.
    pub fn formats(&self) -> &[WireFormat] {
        &self.formats
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.formats.iter().map(|f| f.name.clone()).collect()
    }

    /// Which family a model speaks, from its chat template and tokens. Never a guess: one family fits, or an error says
    /// which do. Cost: a few searches of the template.
    pub fn detect(&self, hints: ModelHints<'_>) -> Result<Detected, DetectError> {
        let template = hints.chat_template.map(unescape).unwrap_or_default();
        let mut candidates: Vec<Detected> = Vec::new();
        for format in &self.formats {
            if let Some(rule) = format.detect.iter().find(|rule| fits(rule, &template, hints.tokens)) {
                candidates.push(Detected { name: format.name.clone(), reason: reason(rule) });
            }
        }
        match candidates.len() {
            1 => Ok(candidates.remove(0)),
            0 => {
                let seen = match (hints.chat_template, hints.tokens) {
                    (Some(_), []) => "chat template",
                    (None, [_, ..]) => "tokens (there is no chat template)",
                    (Some(_), _) => "chat template and tokens",
                    (None, []) => "missing chat template and tokens",
                };
                Err(DetectError::Unknown { seen, known: self.names() })
            }
            _ => Err(DetectError::Ambiguous { candidates }),
        }
    }
}

/// Jinja string literals spell newlines and quotes with a backslash; rules are written without.
fn unescape(template: &str) -> String {
    template.replace("\\n", "\n").replace("\\\"", "\"").replace("\\'", "'")
}

fn fits(rule: &DetectRule, template: &str, tokens: &[&str]) -> bool {
    rule.template.iter().all(|t| template.contains(t))
        && !rule.absent.iter().any(|t| template.contains(t))
        && rule.tokens.iter().all(|t| tokens.contains(&t.as_str()))
}

fn reason(rule: &DetectRule) -> String {
    let list = |texts: &[String]| texts.iter().map(|t| format!("{t:?}")).collect::<Vec<_>>().join(" and ");
    match (rule.template.is_empty(), rule.tokens.is_empty()) {
        (false, true) => format!("the chat template has {}", list(&rule.template)),
        (true, _) => format!("the tokenizer has {}", list(&rule.tokens)),
        (false, false) => {
            format!("the chat template has {} and the tokenizer has {}", list(&rule.template), list(&rule.tokens))
        }
    }
}
