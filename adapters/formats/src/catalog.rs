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
    /// `model_type` of the model's configuration.
    pub model_type: Option<&'a str>,
    /// `architectures` of the model's configuration.
    pub architectures: &'a [&'a str],
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

    /// Reads a format from a TOML file and adds it; returns its name.
    pub fn add_file(&mut self, path: &std::path::Path) -> Result<String, FormatError> {
        let format = WireFormat::from_file(path)?;
        let name = format.name.clone();
        self.add(format);
        Ok(name)
    }

    /// Which family a model speaks, from its chat template, tokens and configuration. Never a guess: one family fits,
    /// or an error says which do. Where several fit, those whose rule names less than another's count only if nothing
    /// else does. Cost: a few searches of the template.
    pub fn detect(&self, hints: ModelHints<'_>) -> Result<Detected, DetectError> {
        let template = hints.chat_template.map(unescape);
        let mut candidates: Vec<(Strength, Detected)> = Vec::new();
        for format in &self.formats {
            let fitting =
                format.detect.iter().filter(|rule| fits(rule, template.as_deref(), &hints));
            if let Some(rule) = fitting.max_by_key(|rule| Strength::of(rule)) {
                let found = Detected { name: format.name.clone(), reason: reason(rule) };
                candidates.push((Strength::of(rule), found));
            }
        }
        // What a template says outweighs what a configuration says, and that what a tokenizer says.
        let best = candidates.iter().map(|(strength, _)| *strength).max();
        candidates.retain(|(strength, _)| Some(*strength) == best);
        let mut candidates: Vec<Detected> =
            candidates.into_iter().map(|(_, found)| found).collect();
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

/// What a rule goes by, the strongest part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Tokens,
    Configuration,
    Template,
}

impl Strength {
    fn of(rule: &DetectRule) -> Strength {
        match (
            rule.template.is_empty(),
            rule.model_type.is_empty() && rule.architectures.is_empty(),
        ) {
            (false, _) => Strength::Template,
            (true, false) => Strength::Configuration,
            (true, true) => Strength::Tokens,
        }
    }
}

/// Jinja string literals spell newlines and quotes with a backslash; rules are written without.
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
    let list = |texts: &[String], word| {
        texts.iter().map(|t| format!("{t:?}")).collect::<Vec<_>>().join(word)
    };
    let parts = [
        ("the chat template has ", &rule.template, " and "),
        ("the tokenizer has ", &rule.tokens, " and "),
        ("the model type is ", &rule.model_type, " or "),
        ("the architecture is ", &rule.architectures, " or "),
    ];
    let said = parts.iter().filter(|(_, texts, _)| !texts.is_empty());
    said.map(|(what, texts, word)| format!("{what}{}", list(texts, word)))
        .collect::<Vec<_>>()
        .join(", and ")
}
