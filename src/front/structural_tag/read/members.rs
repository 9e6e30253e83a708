//! The members of formats: texts, lists, numbers and tokens.

use super::super::model::{GrammarSyntax, TagCount, Token};
use super::{FormatObject, TagReader, element_pointer, member_pointer};
use crate::decimal::Decimal;
use crate::spec::json::Json;

/// Minimum length of a list.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum MinLength {
    /// May be empty.
    Zero,
    /// At least one element.
    One,
}

impl TagReader {
    /// Parses the member `syntax`.
    pub(super) fn syntax(&mut self, format: FormatObject<'_>) -> Option<GrammarSyntax> {
        let Some(value) = format.members.get("syntax") else {
            return Some(GrammarSyntax::default());
        };
        let named = GrammarSyntax::ALL.iter().find(|(_, name)| value.as_str() == Some(name));
        named.map(|(syntax, _)| *syntax).or_else(|| {
            let names = GrammarSyntax::ALL.map(|(_, name)| format!("\"{name}\"")).join(", ");
            self.malformed(&format.pointer_to("syntax"), format!("must be one of {names}"))
        })
    }

    /// Parses a string member.
    pub(super) fn text(&mut self, format: FormatObject<'_>, name: &str) -> Option<String> {
        match format.members.get(name)?.as_str() {
            Some(text) => Some(text.to_owned()),
            None => self.malformed(&format.pointer_to(name), "must be a string"),
        }
    }

    /// The elements of an array.
    pub(super) fn list<'j>(
        &mut self,
        value: &'j Json,
        pointer: &str,
        least: MinLength,
    ) -> Option<&'j [Json]> {
        match value.as_array() {
            Some([]) if least == MinLength::One => self.malformed(pointer, "must not be empty"),
            Some(items) => Some(items),
            None => self.malformed(pointer, "must be a list"),
        }
    }

    /// Parses a member that is an array of strings.
    pub(super) fn texts(
        &mut self,
        format: FormatObject<'_>,
        name: &str,
        least: MinLength,
    ) -> Option<Vec<String>> {
        if format.members.get(name).is_none() {
            return Some(Vec::new());
        }
        self.list_of(format, name, least, |reader, item, pointer| match item.as_str() {
            Some("") if name == "end" => Some(String::new()),
            _ => reader.pattern(item, pointer),
        })
    }

    /// Parses a member that is an array, element by element. Reports the faults of all elements.
    pub(super) fn list_of<T>(
        &mut self,
        format: FormatObject<'_>,
        name: &str,
        least: MinLength,
        mut read: impl FnMut(&mut Self, &Json, &str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let pointer = format.pointer_to(name);
        let items = self.list(format.members.get(name)?, &pointer, least)?.iter().enumerate();
        let elements: Vec<Option<T>> =
            items.map(|(i, item)| read(self, item, &element_pointer(&pointer, i))).collect();
        elements.into_iter().collect()
    }

    /// Parses the member `excludes`.
    pub(super) fn excludes(&mut self, format: FormatObject<'_>) -> Option<Vec<String>> {
        self.texts(format, "excludes", MinLength::Zero)
    }

    /// Parses a boolean member with a default.
    pub(super) fn flag(
        &mut self,
        format: FormatObject<'_>,
        name: &str,
        default: bool,
    ) -> Option<bool> {
        match format.members.get(name) {
            None => Some(default),
            Some(Json::Bool(flag)) => Some(*flag),
            Some(_) => self.malformed(&format.pointer_to(name), "must be true or false"),
        }
    }

    /// Parses the members `at_least_one` and `stop_after_first`.
    pub(super) fn count(&mut self, format: FormatObject<'_>) -> Option<TagCount> {
        let least = self.flag(format, "at_least_one", false);
        let stop = self.flag(format, "stop_after_first", false);
        Some(TagCount::new(least?, stop?))
    }

    /// Parses an integer.
    pub(super) fn number(&mut self, value: &Json, pointer: &str) -> Option<u32> {
        let count = match value {
            Json::Number(number) => Decimal::parse(number.as_str()).to_count(),
            _ => None,
        };
        // Larger counts are this one.
        count.filter(|count| *count < u32::MAX).or_else(|| {
            self.malformed(pointer, format!("must be a whole number from 0 to {}", u32::MAX - 1))
        })
    }

    /// Parses an optional integer member; `null` counts as absent.
    pub(super) fn budget(&mut self, format: FormatObject<'_>, name: &str) -> Option<Option<u32>> {
        match format.members.get_non_null(name) {
            None => Some(None),
            Some(value) => self.number(value, &format.pointer_to(name)).map(Some),
        }
    }

    /// Parses a token.
    pub(super) fn token(&mut self, value: &Json, pointer: &str) -> Option<Token> {
        match value {
            Json::String(text) if !text.is_empty() => Some(Token::Text(text.clone())),
            Json::String(_) => self.malformed(pointer, "must not be empty"),
            Json::Number(_) => self.number(value, pointer).map(Token::Id),
            _ => self.malformed(pointer, "must be a token's id or text"),
        }
    }

    /// Parses the member `exclude_tokens`.
    pub(super) fn excluded_tokens(&mut self, format: FormatObject<'_>) -> Option<Vec<Token>> {
        self.tokens(format, "exclude_tokens", MinLength::Zero)
    }

    /// Parses a member that is an array of tokens.
    pub(super) fn tokens(
        &mut self,
        format: FormatObject<'_>,
        name: &str,
        least: MinLength,
    ) -> Option<Vec<Token>> {
        if format.members.get(name).is_none() {
            return Some(Vec::new());
        }
        self.list_of(format, name, least, Self::token)
    }

    /// Parses `{"type": "token", "token": ...}` as the beginning or end of a tag.
    pub(super) fn token_format(
        &mut self,
        value: &Json,
        pointer: &str,
        expected: &str,
    ) -> Option<Token> {
        match value.as_object() {
            Some(object)
                if object.get("type").is_none_or(|kind| kind.as_str() == Some("token")) =>
            {
                self.check_required_members(object, pointer, &["token"], &[])?;
                self.token(object.get("token")?, &member_pointer(pointer, "token"))
            }
            _ => self.malformed(pointer, format!("must be {expected}")),
        }
    }

    /// Parses a text that is not empty, such as a trigger.
    pub(super) fn pattern(&mut self, value: &Json, pointer: &str) -> Option<String> {
        match value.as_str() {
            Some("") => self.malformed(pointer, "must not be empty"),
            Some(pattern) => Some(pattern.to_owned()),
            None => self.malformed(pointer, "must be a string"),
        }
    }
}
