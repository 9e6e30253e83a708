//! Why the masks of the two may differ. `docs/LLGUIDANCE.md` has the same list.

use serde::Deserialize;

use crate::Case;

/// Who allows a token that the other refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The adapter.
    Ours,
    /// The original.
    Original,
}

/// A token that only one side allows.
#[derive(Clone, Debug)]
pub struct Difference<'a> {
    /// Which side.
    pub side: Side,
    /// The text before.
    pub text: &'a [u8],
    /// The token's bytes; empty for the end.
    pub token: &'a [u8],
}

/// A reason for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Ours reads all escapes of JSON in free strings.
    Escapes,
    /// The character U+007F: ours reads it as such in strings, the original as `\\u007f`.
    Delete,
    /// Exponents: ours keeps them in the range of double precision, and has them where numbers have
    /// bounds.
    Exponents,
    /// Ours writes -0 where 0 is the least number.
    NegativeZero,
    /// Ours reads at most 40 characters of white space between two parts.
    WhiteSpace,
    /// Ours reads a name once in an object.
    DuplicateNames,
    /// The original takes a name with an escape in it for an additional one, whatever it spells.
    EscapedNames,
    /// Ours follows all ways to cut a text into terminals; the original the longest terminal only.
    Lexing,
    /// Ours reads ignored text after the last terminal.
    TrailingIgnored,
    /// Classes and case of regular expressions: ours are about ASCII.
    AsciiClasses,
    /// Formats have other languages: ours has leap days and seconds only where they exist, and
    /// bounds on names of hosts and mailboxes.
    Formats,
    /// Numbers with bounds are written in other ways.
    BoundedNumbers,
    /// A token that the grammar names or a budget of tokens.
    Budgets,
    /// Forced text is cut into tokens, or found to be forced, in another way.
    Forced,
}

/// The reason for a difference, if there is one.
pub fn classify(case: &Case, difference: &Difference<'_>) -> Option<Class> {
    let of_case = || case.classes.first().copied();
    if !case.is_json() {
        return of_case();
    }
    let Difference { side, text, token } = *difference;
    let whole = [text, token].concat();
    let string = open_string(text);
    if side == Side::Ours {
        if string.is_some_and(|s| s.contains(&b'\\')) || token.contains(&b'\\') {
            return Some(Class::Escapes);
        }
        if token.contains(&0x7F) {
            return Some(Class::Delete);
        }
    }
    if side == Side::Original && string.is_some() {
        let string = &whole[text.len() - string.map_or(0, <[u8]>::len)..];
        if string.windows(5).any(|part| part == b"\\u007") {
            return Some(Class::Delete);
        }
    }
    let number = number_at(&whole, text);
    if side == Side::Ours && number.is_some_and(is_negative_zero) {
        return Some(Class::NegativeZero);
    }
    if string.is_none() && longest_white_space(&whole) > 40 {
        return Some(Class::WhiteSpace);
    }
    if number.is_some_and(|number| number.contains(&b'e') || number.contains(&b'E')) {
        return Some(Class::Exponents);
    }
    let schema = case.schema.as_deref().unwrap_or_default();
    let is_bounded =
        ["inimum\"", "aximum\"", "multipleOf\""].iter().any(|key| schema.contains(key));
    if is_bounded && number.is_some_and(|number| number.contains(&b'.')) {
        return Some(Class::BoundedNumbers);
    }
    if side == Side::Original && repeats_name(&whole, token) {
        return Some(Class::DuplicateNames);
    }
    if side == Side::Original && last_member(text, &whole).windows(2).any(|part| part == b"\\u") {
        return Some(Class::EscapedNames);
    }
    if string.is_some() && schema.contains("\"format\"") {
        return Some(Class::Formats);
    }
    of_case()
}

/// The bytes after the quote of the string that is open at the end of a JSON text.
fn open_string(text: &[u8]) -> Option<&[u8]> {
    let (mut start, mut at) = (None, 0);
    while at < text.len() {
        match (start, text[at]) {
            (None, b'"') => start = Some(at + 1),
            (Some(_), b'"') => start = None,
            (Some(_), b'\\') => at += 1,
            _ => {}
        }
        at += 1;
    }
    start.map(|start: usize| &text[start..])
}

/// The last member or element that begins in a JSON text, with what follows.
fn last_member<'a>(text: &[u8], whole: &'a [u8]) -> &'a [u8] {
    let begins = |&at: &usize| b"{,".contains(&text[at]) && open_string(&text[..at]).is_none();
    &whole[(0..text.len()).rev().find(begins).unwrap_or(0)..]
}

/// The longest run of white space, which in tokens may be split.
fn longest_white_space(text: &[u8]) -> usize {
    let runs = text.split(|byte| !b" \n\r\t".contains(byte));
    runs.map(<[u8]>::len).max().unwrap_or(0)
}

/// The number that a token begins, continues or ends.
fn number_at<'a>(whole: &'a [u8], text: &[u8]) -> Option<&'a [u8]> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let number_until = |end: usize| {
        let start = whole[..end].iter().rposition(|byte| !is_part(byte)).map_or(0, |at| at + 1);
        (start < end).then(|| &whole[start..end])
    };
    let behind = whole[text.len()..].iter().position(|byte| !is_part(byte));
    let across = number_until(behind.map_or(whole.len(), |at| text.len() + at));
    let last = whole.iter().rposition(|byte| !b" \n\r\t,]}".contains(byte)).map_or(0, |at| at + 1);
    across.or_else(|| number_until(last))
}

/// Whether a number is -0, or its beginning.
fn is_negative_zero(number: &[u8]) -> bool {
    number[0] == b'-' && number[1..].iter().all(|digit| b"0.".contains(digit))
}

/// Whether an object has a name twice, or a name at the end of the text may become one that it has.
fn repeats_name(text: &[u8], token: &[u8]) -> bool {
    let mut objects: Vec<Vec<&[u8]>> = vec![Vec::new()];
    let (mut start, mut at) = (None, 0);
    let begun = text.len() - token.len();
    let mut found = false;
    while at < text.len() {
        match (start, text[at]) {
            (None, b'"') => start = Some(at + 1),
            (Some(from), b'"') => {
                let string = &text[from..at];
                let names = objects.last_mut().expect("the text around");
                found |= names.contains(&string) && at >= begun;
                names.push(string);
                start = None;
            }
            (Some(_), b'\\') => at += 1,
            (None, b'{' | b'[') => objects.push(Vec::new()),
            (None, b'}' | b']') if objects.len() > 1 => drop(objects.pop()),
            _ => {}
        }
        at += 1;
    }
    let open = start.map(|from| &text[from.min(text.len())..]);
    let names = objects.last().expect("the text around");
    found || open.is_some_and(|open| names.iter().any(|name| name.starts_with(open)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_their_reasons() {
        let case = Case {
            name: String::new(),
            lark: None,
            regex: None,
            schema: Some("{}".to_owned()),
            classes: Vec::new(),
        };
        let class = |side, text: &str, token: &str| {
            let (text, token) = (text.as_bytes(), token.as_bytes());
            classify(&case, &Difference { side, text, token })
        };
        assert_eq!(class(Side::Ours, "\"a", "\\/"), Some(Class::Escapes));
        assert_eq!(class(Side::Original, "\"a", "\\/"), None);
        assert_eq!(class(Side::Ours, "\"a", "\u{7f}"), Some(Class::Delete));
        assert_eq!(class(Side::Original, "[1", "e9"), Some(Class::Exponents));
        assert_eq!(class(Side::Original, "[1e999", ","), Some(Class::Exponents));
        assert_eq!(class(Side::Original, "[0e97", "0 "), Some(Class::Exponents));
        assert_eq!(class(Side::Original, "{\"a\":1,\"a", "\":"), Some(Class::DuplicateNames));
        assert_eq!(class(Side::Original, "{\"a\":1,\"b", "\":"), None);
        let spaces = " ".repeat(40);
        assert_eq!(class(Side::Original, &format!("[{spaces}"), " "), Some(Class::WhiteSpace));
        assert_eq!(class(Side::Original, "{\"\\u0061\"", ": 4,"), Some(Class::EscapedNames));
        assert_eq!(class(Side::Ours, "[-", "0"), Some(Class::NegativeZero));
        assert_eq!(class(Side::Ours, "[-", "1"), None);
        assert_eq!(class(Side::Ours, "[1", "2"), None);
    }
}
