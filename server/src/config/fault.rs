//! Faults of configuration files, all of a file at once, each with its place and advice.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use louver::front::diagnostic::similar;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::foreign::member_advice;

/// Most faults that are collected of one file.
const MAX_FAULTS: usize = 100;

/// One fault of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// Line and column in the file, from 1, if known.
    pub place: Option<(usize, usize)>,
    /// The member, such as `limits.http.body_bytes` or `model[0].device`; empty if the file is not
    /// TOML.
    pub member: String,
    /// What is wrong with it.
    pub problem: String,
}

impl ConfigFault {
    /// A fault of a member without a place.
    pub(crate) fn new(member: impl Into<String>, problem: impl Into<String>) -> ConfigFault {
        ConfigFault { place: None, member: member.into(), problem: problem.into() }
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}: ")?;
        }
        if !self.member.is_empty() {
            write!(f, "{}: ", self.member)?;
        }
        f.write_str(&self.problem)
    }
}

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file has faults.
    #[error("{}", in_file(path, faults))]
    File {
        /// The file.
        path: PathBuf,
        /// At least one, in the order of the file.
        faults: Vec<ConfigFault>,
    },
    /// Values are invalid.
    #[error("{}", lines(faults))]
    Values {
        /// At least one.
        faults: Vec<ConfigFault>,
    },
}

impl ConfigError {
    /// The faults; none if the file cannot be read.
    pub fn faults(&self) -> &[ConfigFault] {
        match self {
            ConfigError::Read { .. } => &[],
            ConfigError::File { faults, .. } | ConfigError::Values { faults } => faults,
        }
    }
}

fn lines(faults: &[ConfigFault]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    faults.join("\n")
}

fn in_file(path: &Path, faults: &[ConfigFault]) -> String {
    let of_file = faults.iter().map(|fault| {
        let separator = if fault.place.is_some() { ":" } else { ": " };
        format!("{}{separator}{fault}", path.display())
    });
    of_file.collect::<Vec<_>>().join("\n")
}

/// A configuration file: its text, for places of faults.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
    text: String,
}

impl ConfigFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`].
    pub fn open(path: &Path) -> Result<ConfigFile, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Ok(ConfigFile::new(path, text))
    }

    /// A file with this text; the path is only for messages.
    pub fn new(path: &Path, text: impl Into<String>) -> ConfigFile {
        ConfigFile { path: path.to_owned(), text: text.into() }
    }

    /// Parses the file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::File`] with all faults of syntax, members and types.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        parse(&self.text).map_err(|faults| self.error(faults))
    }

    /// The error of faults that were found in values. Each gets the place of its member, or of the
    /// closest table around it.
    pub fn error(&self, mut faults: Vec<ConfigFault>) -> ConfigError {
        if let Ok(table) = DeTable::parse(&self.text) {
            for fault in faults.iter_mut().filter(|fault| fault.place.is_none()) {
                fault.place = member_at(table.get_ref(), &fault.member)
                    .map(|at| line_and_column(&self.text, at));
            }
        }
        faults.sort_by_key(|fault| fault.place);
        ConfigError::File { path: self.path.clone(), faults }
    }
}

/// Parses a TOML text. A member that is at fault is removed, and the rest read again, so that all
/// faults are found.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Vec<ConfigFault>> {
    let (mut table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| fault(text, error, String::new())).collect());
    }
    let mut faults = Vec::new();
    loop {
        let error = match T::deserialize(toml::Deserializer::from(table.clone())) {
            Ok(value) if faults.is_empty() => return Ok(value),
            Ok(_) => return Err(faults),
            Err(error) => error,
        };
        // One of several words is read as a text, so that the error lists the words.
        if error.message() == NO_WORD
            && let Some(span) = error.span()
            && let Some(value) = value_at(table.get_mut(), &span)
            && value.as_str().is_none()
        {
            *value = DeValue::String(text.get(span).unwrap_or_default().to_owned().into());
            continue;
        }
        let removed = error.span().and_then(|span| remove(table.get_mut(), &span));
        let is_last = removed.is_none() || faults.len() + 1 >= MAX_FAULTS;
        faults.push(fault(text, &error, removed.unwrap_or_default()));
        if is_last {
            return Err(faults);
        }
    }
}

/// What the parser says of a value that is not one of several words.
const NO_WORD: &str = "wanted string or table";

fn fault(text: &str, error: &toml::de::Error, member: String) -> ConfigFault {
    let place = error.span().map(|span| line_and_column(text, span.start));
    let message = error.message();
    let problem = expected(message, &member).unwrap_or_else(|| advised(message));
    ConfigFault { place, member, problem }
}

/// What a member must be, if a value has another type.
fn expected(message: &str, member: &str) -> Option<String> {
    let (_, kind) = message.rsplit_once("expected ")?;
    let name = member.rsplit('.').next().unwrap_or(member);
    Some(match kind {
        "a sequence" if ["model", "mcp"].contains(&name) => {
            format!("must be a list of tables: write `[[{member}]]`")
        }
        "a sequence" => "must be a list, such as [\"a\", \"b\"]".to_owned(),
        "u16" => format!("must be an integer from 0 to {}", u16::MAX),
        "usize" | "u64" if name.ends_with("bytes") => {
            "must be a whole number of bytes, such as 268435456, without a unit".to_owned()
        }
        "usize" | "u32" | "u64" => "must be a whole number, 0 or more".to_owned(),
        "a nonzero usize" => "must be a whole number above 0".to_owned(),
        "f64" => "must be a number of seconds, such as 30, without a unit".to_owned(),
        "a boolean" => "must be true or false".to_owned(),
        "a string" => "must be a text in quotes".to_owned(),
        "literal string" => "there is no value, or a text without quotes".to_owned(),
        _ => return None,
    })
}

/// An error's message, with the name that is likely meant instead of an unknown one.
fn advised(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown ") else { return message.to_owned() };
    // serde's form: unknown field `x`, expected one of `a`, `b`.
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let Some(name) = quoted.next() else { return message.to_owned() };
    let known: Vec<&str> = quoted.collect();
    let is_member = rest.starts_with("field");
    let what = if is_member { "member" } else { "value" };
    let advice = member_advice(name).filter(|_| is_member);
    match (similar(name, known.iter().copied(), 0), advice) {
        (Some(meant), _) => format!("there is no {what} `{name}`; is `{meant}` meant?"),
        (None, Some(advice)) => format!("there is no {what} `{name}`: {advice}"),
        (None, None) if known.is_empty() => format!("there is no {what} `{name}`"),
        (None, None) => format!("there is no {what} `{name}`; known: {}", known.join(", ")),
    }
}

/// Line and column of a byte, from 1. Columns count code points.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// Removes the member whose name or value, or an element of it, has this span. Returns its path.
fn remove(table: &mut DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let found = table.iter().find(|(name, value)| {
        let elements = value.get_ref().as_array().into_iter().flatten();
        name.span() == *span
            || value.span() == *span
            || elements.into_iter().any(|element| element.span() == *span)
    });
    if let Some(name) = found.map(|(name, _)| name.clone()) {
        table.remove(&name);
        return Some(name.into_inner().into_owned());
    }
    table.iter_mut().find_map(|(name, value)| {
        let inner = remove_in(value, span)?;
        let separator = if inner.starts_with('[') { "" } else { "." };
        Some(format!("{}{separator}{inner}", name.get_ref()))
    })
}

fn remove_in(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    match value.get_mut() {
        DeValue::Table(table) => remove(table, span),
        DeValue::Array(items) => items.iter_mut().enumerate().find_map(|(index, item)| {
            let inner = remove_in(item, span)?;
            Some(format!("[{index}].{inner}"))
        }),
        _ => None,
    }
}

/// The value with this span.
fn value_at<'t, 'd>(
    table: &'t mut DeTable<'d>,
    span: &Range<usize>,
) -> Option<&'t mut DeValue<'d>> {
    table.iter_mut().find_map(|(_, value)| value_in(value, span))
}

fn value_in<'t, 'd>(
    value: &'t mut Spanned<DeValue<'d>>,
    span: &Range<usize>,
) -> Option<&'t mut DeValue<'d>> {
    if value.span() == *span {
        return Some(value.get_mut());
    }
    match value.get_mut() {
        DeValue::Table(table) => value_at(table, span),
        DeValue::Array(items) => items.iter_mut().find_map(|item| value_in(item, span)),
        _ => None,
    }
}

/// Where a member is: the byte of its name, or of the closest table around it.
fn member_at(table: &DeTable<'_>, member: &str) -> Option<usize> {
    let (name, rest) = member.split_once('.').unwrap_or((member, ""));
    let (name, index) = match name.split_once('[') {
        Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().ok()),
        None => (name, None),
    };
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    let (at, inner) = match (value.get_ref(), index) {
        (DeValue::Array(items), Some(index)) => {
            let item = items.get(index)?;
            (item.span().start, item.get_ref())
        }
        (value, _) => (key.span().start, value),
    };
    match inner {
        DeValue::Table(inner) if !rest.is_empty() => member_at(inner, rest).or(Some(at)),
        _ => Some(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The faults of a text, each on a line.
    fn faults(text: &str) -> String {
        let file = ConfigFile::new(Path::new("a"), text);
        let error = file.config().map(|config| file.error(config.faults()));
        error.unwrap_or_else(|error| error).to_string()
    }

    #[test]
    fn faults_say_what_a_member_must_be() {
        for (text, fault) in [
            ("port = ", "a:1:8: there is no value, or a text without quotes"),
            ("port = 99999", "a:1:8: port: must be an integer from 0 to 65535"),
            ("reasoning_budget = -1", "reasoning_budget: must be a whole number, 0 or more"),
            ("grace_s = \"30s\"", "grace_s: must be a number of seconds, such as 30"),
            ("allow_no_keys = \"yes\"", "allow_no_keys: must be true or false"),
            (
                "[engine]\npool_bytes = \"256MB\"",
                "engine.pool_bytes: must be a whole number of bytes",
            ),
            (
                "[[model]]\nengine = { pool_bytes = \"5\" }",
                "model[0].engine.pool_bytes: must be a whole number of bytes",
            ),
            ("[[model]]\nmodel = 5", "model[0].model: must be a text in quotes"),
            ("[model]\nmodel = \"a\"", "model: must be a list of tables: write `[[model]]`"),
            ("[schema_options]\npolicy = \"strict\"", "a:1:1: schema_options: there is no option"),
            ("[[model]]\nname = \"a\"", "model[0].model: is missing: name a directory"),
            (
                "[[model]]\nmodel = \"a\"\n[limits.requests]\nconcurrent = 4",
                "limits.requests.n: is 8 (8 by default) and must be at most `concurrent` (4)",
            ),
        ] {
            let faults = faults(text);
            assert!(faults.contains(fault), "{text}: {faults}");
        }
    }

    #[test]
    fn members_of_other_servers_have_advice() {
        for (text, advice) in [
            ("[[model]]\nserved_model_name = \"x\"", "`name` and `aliases` of a [[model]]"),
            ("[[model]]\nmax_model_len = 5", "the context is the model's"),
            ("tool_call_parser = \"hermes\"", "not needed"),
            ("[requests]\nn = 5", "[limits.requests]"),
        ] {
            let faults = faults(text);
            assert!(faults.contains(advice) && !faults.contains("known:"), "{text}: {faults}");
        }
        // Not the member of a table with the same name.
        assert!(!faults("[limits]\nn = 5").contains("max_tokens"));
    }
}
