//! Regular expressions as Lark.

/// A regular expression as it stands between the slashes of a Lark grammar. `use_ascii` has the
/// letters among `d`, `w` and `s` of the classes that are written out as ASCII.
///
/// ```
/// assert_eq!(llguidance::regex_to_lark("\\d/\n", "d"), r"[0-9]\/\n");
/// ```
pub fn regex_to_lark(rx: &str, use_ascii: &str) -> String {
    let (mut lark, mut chars) = (String::with_capacity(rx.len()), rx.chars());
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        match (c, escaped) {
            ('\\', None) => {}
            ('\\', Some(class)) if use_ascii.contains(class.to_ascii_lowercase()) => {
                lark.push_str(&ascii_class(class));
            }
            // These cannot stand in a regular expression of Lark, escaped or not.
            ('\n', _) | (_, Some('\n')) => lark.push_str("\\n"),
            ('\r', _) | (_, Some('\r')) => lark.push_str("\\r"),
            ('\t', _) | (_, Some('\t')) => lark.push_str("\\t"),
            ('/', _) => lark.push_str("\\/"),
            (c, escaped) => lark.extend([c].into_iter().chain(escaped)),
        }
    }
    lark
}

/// A class of ASCII, written out; another escape as it is.
fn ascii_class(class: char) -> String {
    let characters = match class.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9a-zA-Z_",
        's' => r" \t\n\r\f\v",
        _ => return format!("\\{class}"),
    };
    format!("[{}{characters}]", if class.is_ascii_uppercase() { "^" } else { "" })
}
