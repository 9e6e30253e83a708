//! The arguments of macros and rule options: `key=value`, or a value alone.

use super::ast::{ByteSpan, Name, SyntaxKind};
use super::cursor::{EscapeMode, Reported};
use super::parse::Parser;
use crate::front::diagnostic::{Diagnostic, UniqueKeys};
use crate::ir::SpecialToken;

/// The arguments with keys of each macro that has some.
const MACRO_KEYS: [(&str, &[&str]); 3] = [
    ("Regex", &["json_string", "flags"]),
    ("TagDispatch", &["stops", "excludes", "loop_after_dispatch", "ends"]),
    ("TokenTagDispatch", &["loop_after_dispatch", "excludes"]),
];

/// The value of an argument.
#[derive(Debug)]
pub(super) struct ArgumentValue {
    pub(super) kind: ArgumentKind,
    pub(super) span: ByteSpan,
}

/// The kinds of argument values.
#[derive(Debug)]
pub(super) enum ArgumentKind {
    /// A string.
    Text(Vec<u8>),
    /// A number, a name, `true` or `false`.
    Word(String),
    /// Values in parentheses.
    Tuple(Vec<ArgumentValue>),
    /// A special token.
    Token(SpecialToken),
}

/// An argument: `key=value`, or a value without a key.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) key: Option<Name>,
    pub(super) value: ArgumentValue,
}

impl Parser<'_> {
    /// Reports a value that does not fit.
    pub(super) fn unexpected_value<T>(
        &mut self,
        value: &ArgumentValue,
        expected: &str,
    ) -> Result<T, Reported> {
        let message = match &value.kind {
            ArgumentKind::Text(_) => "a string".to_owned(),
            ArgumentKind::Word(word) => format!("`{word}`"),
            ArgumentKind::Tuple(_) => "a tuple".to_owned(),
            ArgumentKind::Token(_) => "a token".to_owned(),
        };
        let span = value.span.clone();
        self.cursor.error(
            Diagnostic::error(span, format!("{message} does not fit here"))
                .label(format!("expected {expected}")),
        )
    }

    /// Parses one value.
    pub(super) fn value(&mut self, depth: usize) -> Result<ArgumentValue, Reported> {
        self.cursor.skip()?;
        let begin = self.cursor.offset;
        let kind = match self.cursor.peek() {
            Some(quote @ ('"' | '\'')) => {
                self.cursor.next();
                ArgumentKind::Text(self.cursor.quoted(quote, begin, EscapeMode::Text)?)
            }
            Some('@') if self.cursor.eat("@\"") => {
                ArgumentKind::Text(self.cursor.quoted('"', begin, EscapeMode::Raw)?)
            }
            Some('<') => ArgumentKind::Token(self.token()?),
            Some('(') if depth < 4 => {
                self.cursor.next();
                let mut parts = Vec::new();
                loop {
                    self.cursor.skip()?;
                    if self.cursor.eat(")") {
                        break ArgumentKind::Tuple(parts);
                    }
                    parts.push(self.value(depth + 1)?);
                    self.cursor.skip()?;
                    if !self.cursor.eat(",") && !self.cursor.rest().starts_with(')') {
                        return self.cursor.expected("`,` or `)`");
                    }
                }
            }
            _ => match self.cursor.name()? {
                Some(name)
                    if self.cursor.rest().starts_with('(')
                        && matches!(&*name.text, "Token" | "ExcludeToken") =>
                {
                    let SyntaxKind::Token(token) = self.call(&name)? else { return Err(Reported) };
                    ArgumentKind::Token(token)
                }
                Some(name) => ArgumentKind::Word(name.text),
                None => return self.cursor.expected("a string, a number, a name or a tuple"),
            },
        };
        Ok(ArgumentValue { kind, span: begin..self.cursor.offset })
    }

    /// Parses arguments up to and including the text `end`. Errors: a key that is given twice.
    pub(super) fn arguments(&mut self, end: &str) -> Result<Vec<Argument>, Reported> {
        let (mut out, mut keys) = (Vec::new(), UniqueKeys::default());
        loop {
            self.cursor.skip()?;
            if self.cursor.eat(end) {
                return Ok(out);
            }
            let value = self.value(0)?;
            self.cursor.skip()?;
            let argument = match value {
                ArgumentValue { kind: ArgumentKind::Word(key), span }
                    if self.cursor.rest().starts_with('=') =>
                {
                    self.cursor.eat("=");
                    let key = Name { text: key, span };
                    self.add_key(&mut keys, &key)?;
                    Argument { key: Some(key), value: self.value(0)? }
                }
                value => Argument { key: None, value },
            };
            out.push(argument);
            self.cursor.skip()?;
            if !self.cursor.eat(",") && !self.cursor.rest().starts_with(end) {
                return self.cursor.expected(&format!("`,` or `{end}`"));
            }
        }
    }

    /// Adds a key to the keys so far; reports one that is given twice.
    pub(super) fn add_key(&mut self, keys: &mut UniqueKeys, key: &Name) -> Result<(), Reported> {
        let name = match &*key.text {
            // Older names of the same keys.
            "stop_eos" => "ends",
            "stop_str" => "stops",
            name => name,
        };
        keys.add(name, &key.span).map_or(Ok(()), |repeated| self.cursor.error(repeated))
    }

    /// The value as an integer.
    pub(super) fn integer(&mut self, value: &ArgumentValue) -> Result<u32, Reported> {
        let parsed =
            if let ArgumentKind::Word(word) = &value.kind { word.parse().ok() } else { None };
        match parsed {
            Some(number) => Ok(number),
            None => self.unexpected_value(value, "a number of at most 32 bits"),
        }
    }

    /// The value as a boolean.
    pub(super) fn boolean(&mut self, value: &ArgumentValue) -> Result<bool, Reported> {
        match &value.kind {
            ArgumentKind::Word(word) if word.eq_ignore_ascii_case("true") => Ok(true),
            ArgumentKind::Word(word) if word.eq_ignore_ascii_case("false") => Ok(false),
            _ => self.unexpected_value(value, "`true` or `false`"),
        }
    }

    /// The value as bytes.
    pub(super) fn bytes(&mut self, value: ArgumentValue) -> Result<Vec<u8>, Reported> {
        match value.kind {
            ArgumentKind::Text(bytes) => Ok(bytes),
            _ => self.unexpected_value(&value, "a string"),
        }
    }

    /// The value as UTF-8 text.
    pub(super) fn text(&mut self, value: ArgumentValue) -> Result<String, Reported> {
        let span = value.span.clone();
        match String::from_utf8(self.bytes(value)?) {
            Ok(text) => Ok(text),
            Err(_) => self.cursor.error(Diagnostic::error(span, "these bytes are not text")),
        }
    }

    /// The values of a tuple; a single value counts as a tuple.
    pub(super) fn tuple(&mut self, value: ArgumentValue) -> Vec<ArgumentValue> {
        match value.kind {
            ArgumentKind::Tuple(parts) => parts,
            _ => vec![value],
        }
    }

    /// The value as a special token.
    pub(super) fn special_token(&mut self, value: ArgumentValue) -> Result<SpecialToken, Reported> {
        match value.kind {
            ArgumentKind::Token(token) => Ok(token),
            ArgumentKind::Text(_) => self.text(value).map(SpecialToken::Name),
            ArgumentKind::Word(_) => self.integer(&value).map(SpecialToken::Id),
            ArgumentKind::Tuple(_) => self.unexpected_value(&value, "a token's id or text"),
        }
    }

    /// Reports an unknown key.
    pub(super) fn unknown_key(&mut self, key: &Name, of: &str) -> Reported {
        let message = format!("`{of}` has no argument `{}`", key.text);
        let known = MACRO_KEYS.iter().find(|(name, _)| *name == of).map_or(&[][..], |(_, k)| *k);
        let similar = self.cursor.diagnostics.suggest(&key.text, known.iter().copied());
        let all = (!known.is_empty()).then(|| format!("it has {}", known.join(", ")));
        let help = similar.or(all);
        let error = Diagnostic::error(key.span.clone(), message);
        self.cursor.diagnostics.push(Diagnostic { help, ..error });
        Reported
    }
}

/// The values of arguments without keys; a key is an error.
pub(super) fn positional(
    arguments: Vec<Argument>,
) -> impl Iterator<Item = Result<ArgumentValue, Name>> {
    arguments.into_iter().map(|argument| match argument.key {
        None => Ok(argument.value),
        Some(key) => Err(key),
    })
}
