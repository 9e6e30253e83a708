//! Why the masks of the two may differ. `docs/LLGUIDANCE.md` has the same list.

use serde::Deserialize;

use crate::Case;

/// Who allows a token that the other refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Exponents: the original has them of any length, and none where numbers have bounds.
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
    /// Ours has leap days and leap seconds only where they exist, bounds on names of hosts and
    /// mailboxes, and quoted names of mailboxes.
    Formats,
    /// Ours writes zeros at the end of fractions of numbers with bounds.
    BoundedNumbers,
    /// The original takes no tokens back under `max_tokens=` and `stop=`.
    Budgets,
    /// Flag `i` is about ASCII in ours: the original also has the long s and the sign of kelvin.
    UnicodeCase,
    /// Free text around tools may be any bytes in ours.
    AnyBytes,
    /// The original may also end where a part that is the first grammar again ends.
    InnerEnds,
}

/// The reason for a difference, if there is one.
pub fn classify(case: &Case, difference: &Difference<'_>) -> Option<Class> {
    let whole = [difference.text, difference.token].concat();
    match case.schema.as_deref() {
        Some(schema) => of_json(schema, difference, &whole),
        None => case.classes.iter().copied().find(|class| match class {
            Class::Lexing => difference.side == Side::Ours && case.reads(&whole, difference.token),
            Class::TrailingIgnored => {
                let is_ignored = |byte: &u8| b" \t".contains(byte);
                let last = whole.iter().rfind(|byte| !is_ignored(byte));
                let ends = whole.last().is_some_and(is_ignored) || difference.token.is_empty();
                difference.side == Side::Ours && last == Some(&b';') && ends
            }
            Class::WhiteSpace => is_long_white_space(difference, &whole),
            Class::InnerEnds => difference.side == Side::Original && difference.token.is_empty(),
            Class::UnicodeCase => difference.side == Side::Original && !whole.is_ascii(),
            Class::AnyBytes => {
                let is_end = difference.token.is_empty();
                let text = std::str::from_utf8(&whole);
                difference.side == Side::Ours
                    && text.is_err_and(|error| is_end || error.error_len().is_some())
            }
            _ => false,
        }),
    }
}

/// The reason for a difference in a JSON text.
fn of_json(schema: &str, difference: &Difference<'_>, whole: &[u8]) -> Option<Class> {
    let Difference { side, text, token } = *difference;
    let string = open_string(text);
    // The string that the token continues, or the token.
    let region = &whole[text.len() - string.map_or(0, <[u8]>::len)..];
    let is_bounded =
        ["inimum\"", "aximum\"", "multipleOf\""].iter().any(|key| schema.contains(key));
    let number = number_at(whole, text).filter(|_| string.is_none() || token.contains(&b'"'));
    let is_number = |is: fn(&[u8]) -> bool| number.is_some_and(is);
    match side {
        Side::Ours if has_refused_escape(region) => Some(Class::Escapes),
        Side::Ours if token.contains(&0x7F) => Some(Class::Delete),
        Side::Ours if is_bounded && is_number(is_negative_zero) => Some(Class::NegativeZero),
        Side::Ours if is_bounded && is_number(has_exponent) => Some(Class::Exponents),
        Side::Ours if is_bounded && is_number(ends_in_zero) => Some(Class::BoundedNumbers),
        // The quotes of a local part.
        Side::Ours if has_format(schema, &["email"]) && region.starts_with(b"\\") => {
            Some(Class::Formats)
        }
        Side::Ours => None,
        Side::Original if string.is_some() && has_delete_escape(region) => Some(Class::Delete),
        Side::Original if is_long_white_space(difference, whole) => Some(Class::WhiteSpace),
        Side::Original if is_number(has_long_exponent) => Some(Class::Exponents),
        Side::Original if repeats_name(whole, token) => Some(Class::DuplicateNames),
        Side::Original if last_member(text, whole).windows(2).any(|part| part == b"\\u") => {
            Some(Class::EscapedNames)
        }
        Side::Original if string.is_some() && is_narrower(schema, region) => Some(Class::Formats),
        Side::Original => None,
    }
}

/// Whether a string has an escape, or the beginning of one, that the original writes in no free
/// string: `\/`, or the number of a printable character.
fn has_refused_escape(string: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = string[at..].iter().position(|&byte| byte == b'\\') {
        let escape = &string[at + found + 1..];
        let digits =
            |rest: &[u8]| rest.iter().take(4).take_while(|b| b.is_ascii_hexdigit()).count();
        match escape.split_first() {
            Some((b'/', _)) => return true,
            Some((b'u', rest)) => {
                let number = rest[..digits(rest)].to_ascii_lowercase();
                let of = |begin: &[u8]| begin.starts_with(&number[..number.len().min(begin.len())]);
                let is_control = (of(b"000") || of(b"001")) || of(b"007f");
                if !is_control {
                    return true;
                }
            }
            _ => {}
        }
        at += (found + 2).min(string.len() - at);
    }
    false
}

/// Whether a string has the number of U+007F as an escape, or its beginning.
fn has_delete_escape(string: &[u8]) -> bool {
    string.windows(5).any(|part| part == b"\\u007")
}

/// Whether the white space that a token begins, continues or ends is longer than ours.
fn is_long_white_space(difference: &Difference<'_>, whole: &[u8]) -> bool {
    let is_white = |byte: &u8| b" \n\r\t".contains(byte);
    let before = difference.text.iter().rev().take_while(|byte| is_white(byte)).count();
    let runs = whole[difference.text.len() - before..].split(|byte| !is_white(byte));
    difference.side == Side::Original && runs.map(<[u8]>::len).any(|length| length > 40)
}

/// Whether a number has an exponent.
fn has_exponent(number: &[u8]) -> bool {
    number.contains(&b'e') || number.contains(&b'E')
}

/// Whether the fraction of a number ends in 0.
fn ends_in_zero(number: &[u8]) -> bool {
    number.contains(&b'.') && number.ends_with(b"0")
}

/// Whether an exponent has more digits than ours.
fn has_long_exponent(number: &[u8]) -> bool {
    let exponent = number.split(|byte| b"eE".contains(byte)).nth(1).unwrap_or_default();
    exponent.iter().filter(|byte| byte.is_ascii_digit()).count() > 2
}

/// Whether a string has what our formats refuse and the original's do not.
fn is_narrower(schema: &str, string: &[u8]) -> bool {
    let string = string.split(|&byte| byte == b'"').next().unwrap_or_default();
    let at_second_60 = |part: &[u8]| {
        part[0] == b':'
            && part[1].is_ascii_digit()
            && part[2].is_ascii_digit()
            && part[3..] == *b":6"
    };
    let has_leap =
        string.windows(6).any(|part| part == b"-02-29") || string.windows(5).any(at_second_60);
    (has_format(schema, &["date", "time", "date-time"]) && has_leap)
        || (has_format(schema, &["email", "hostname"]) && string.len() > 63)
}

/// Whether a schema names one of these formats.
fn has_format(schema: &str, names: &[&str]) -> bool {
    let compact: String = schema.split_whitespace().collect();
    names.iter().any(|name| compact.contains(&format!("\"format\":\"{name}\"")))
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

/// The number that a token begins, continues or ends.
fn number_at<'a>(whole: &'a [u8], text: &[u8]) -> Option<&'a [u8]> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let number_until = |end: usize| {
        let start = whole[..end].iter().rposition(|byte| !is_part(byte)).map_or(0, |at| at + 1);
        (start < end).then(|| &whole[start..end])
    };
    let after = whole[text.len()..].iter().position(|byte| !is_part(byte));
    let across = number_until(after.map_or(whole.len(), |at| text.len() + at));
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
        let mut case = Case { schema: Some("{}".to_owned()), ..Case::default() };
        let bounded = Case { schema: Some(r#"{"minimum": 0}"#.to_owned()), ..Case::default() };
        let reason = |case: &Case, side, text: &str, token: &str| {
            let (text, token) = (text.as_bytes(), token.as_bytes());
            classify(case, &Difference { side, text, token })
        };
        let any = case.clone();
        let class = |side, text: &str, token: &str| reason(&any, side, text, token);
        assert_eq!(class(Side::Ours, "\"a", "\\/"), Some(Class::Escapes));
        assert_eq!(class(Side::Ours, "\"a\\u0", "02"), Some(Class::Escapes));
        assert_eq!(class(Side::Ours, "\"a\\u0", "01"), None);
        assert_eq!(class(Side::Ours, "\"a\\n", "b"), None);
        assert_eq!(class(Side::Original, "\"a", "\\/"), None);
        assert_eq!(class(Side::Ours, "\"a", "\u{7f}"), Some(Class::Delete));
        assert_eq!(class(Side::Original, "[1", "e9"), None);
        assert_eq!(class(Side::Original, "[1e30", ","), None);
        assert_eq!(class(Side::Original, "[1e30", "9"), Some(Class::Exponents));
        assert_eq!(class(Side::Original, "[1e999", ","), Some(Class::Exponents));
        assert_eq!(class(Side::Original, "[0e97", "0 "), Some(Class::Exponents));
        assert_eq!(class(Side::Original, "{\"a\":1,\"a", "\":"), Some(Class::DuplicateNames));
        assert_eq!(class(Side::Original, "{\"a\":1,\"b", "\":"), None);
        let spaces = " ".repeat(40);
        assert_eq!(class(Side::Original, &format!("[{spaces}"), " "), Some(Class::WhiteSpace));
        assert_eq!(class(Side::Ours, &format!("[{spaces}"), " "), None);
        assert_eq!(class(Side::Original, "{\"\\u0061\"", ": 4,"), Some(Class::EscapedNames));
        assert_eq!(class(Side::Ours, "[-", "0"), None);
        case.schema = Some(r#"{"format": "date"}"#.to_owned());
        assert_eq!(reason(&case, Side::Original, "\"2023-02-2", "9"), Some(Class::Formats));
        assert_eq!(reason(&case, Side::Original, "\"2023-02-2", "8"), None);
        assert_eq!(reason(&bounded, Side::Ours, "[-", "0"), Some(Class::NegativeZero));
        assert_eq!(reason(&bounded, Side::Ours, "[-", "1"), None);
        assert_eq!(reason(&bounded, Side::Ours, "[1", "e2"), Some(Class::Exponents));
        assert_eq!(reason(&bounded, Side::Ours, "[1.2", "0"), Some(Class::BoundedNumbers));
        assert_eq!(reason(&bounded, Side::Ours, "[1.2", "1"), None);
        let (language, classes) = (Some("ab[cd]".to_owned()), vec![Class::Lexing]);
        let lark = Case { language, classes, ..Case::default() };
        assert_eq!(reason(&lark, Side::Ours, "a", "b"), Some(Class::Lexing));
        assert_eq!(reason(&lark, Side::Ours, "abd", ""), Some(Class::Lexing));
        assert_eq!(reason(&lark, Side::Ours, "ab", ""), None);
        assert_eq!(reason(&lark, Side::Ours, "ab", "x"), None);
        assert_eq!(reason(&lark, Side::Original, "a", "b"), None);
    }
}
