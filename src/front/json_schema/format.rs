//! Patterns for the `format` keyword.
//!
//! Each pattern accepts only texts that the format's specification allows. Where the specification
//! is broader than a model should write (comments in e-mail addresses), the pattern is narrower.

use std::sync::OnceLock;

/// Result of looking up a format name.
pub(super) enum FormatLookup {
    /// The pattern that enforces the format.
    Pattern(&'static str),
    /// The specification does not define the format: it is an annotation.
    Unknown,
}

macro_rules! date {
    () => {
        concat!(
            r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])",
            r"|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))",
            r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
        )
    };
}

macro_rules! time {
    () => {
        concat!(
            r"(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
            // A leap second is the last second of a UTC day.
            r"|23:59:60(?:\.\d+)?(?:[Zz]|[+-]00:00))"
        )
    };
}

macro_rules! label {
    () => {
        r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,30}"
    };
}

macro_rules! hostname {
    () => {
        concat!(label!(), r"(?:\.", label!(), r"){0,3}")
    };
}

macro_rules! ipv4 {
    () => {
        r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
    };
}

macro_rules! ipv6 {
    () => {
        concat!(
            r"(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,7}:",
            r"|(?:[0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}",
            r"|(?:[0-9A-Fa-f]{1,4}:){1,5}(?::[0-9A-Fa-f]{1,4}){1,2}",
            r"|(?:[0-9A-Fa-f]{1,4}:){1,4}(?::[0-9A-Fa-f]{1,4}){1,3}",
            r"|(?:[0-9A-Fa-f]{1,4}:){1,3}(?::[0-9A-Fa-f]{1,4}){1,4}",
            r"|(?:[0-9A-Fa-f]{1,4}:){1,2}(?::[0-9A-Fa-f]{1,4}){1,5}",
            r"|[0-9A-Fa-f]{1,4}:(?::[0-9A-Fa-f]{1,4}){1,6}|:(?:(?::[0-9A-Fa-f]{1,4}){1,7}|:)",
            r"|(?:[0-9A-Fa-f]{1,4}:){6}",
            ipv4!(),
            r"|(?:(?:[0-9A-Fa-f]{1,4}:){0,4}[0-9A-Fa-f]{1,4})?::",
            ipv4!(),
            r"|(?:(?:[0-9A-Fa-f]{1,4}:){0,3}[0-9A-Fa-f]{1,4})?::[0-9A-Fa-f]{1,4}:",
            ipv4!(),
            r"|(?:(?:[0-9A-Fa-f]{1,4}:){0,2}[0-9A-Fa-f]{1,4})?::(?:[0-9A-Fa-f]{1,4}:){2}",
            ipv4!(),
            r"|(?:(?:[0-9A-Fa-f]{1,4}:)?[0-9A-Fa-f]{1,4})?::(?:[0-9A-Fa-f]{1,4}:){3}",
            ipv4!(),
            r"|(?:[0-9A-Fa-f]{1,4})?::(?:[0-9A-Fa-f]{1,4}:){4}",
            ipv4!(),
            r"|::(?:[0-9A-Fa-f]{1,4}:){5}",
            ipv4!(),
            r")"
        )
    };
}

/// Characters of a URI path segment, as a group.
macro_rules! pchar {
    () => {
        r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
    };
}

macro_rules! authority {
    () => {
        concat!(
            r"(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?",
            r"(?:(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*|\[",
            ipv6!(),
            r"\])(?::\d*)?"
        )
    };
}

macro_rules! query_fragment {
    () => {
        concat!(r"(?:\?(?:", pchar!(), r"|[/?])*)?(?:#(?:", pchar!(), r"|[/?])*)?")
    };
}

macro_rules! uri {
    () => {
        concat!(
            r"[A-Za-z][A-Za-z0-9+.-]*:(?://",
            authority!(),
            r"(?:/",
            pchar!(),
            r"*)*|/(?:",
            pchar!(),
            r"+(?:/",
            pchar!(),
            r"*)*)?|",
            pchar!(),
            r"+(?:/",
            pchar!(),
            r"*)*|)",
            query_fragment!()
        )
    };
}

macro_rules! varspec {
    () => {
        concat!(
            r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*",
            r"(?::[1-9]\d{0,3}|\*)?"
        )
    };
}

/// URI references of RFC 3986.
const URI_REFERENCE: &str = concat!(
    r"^(?:",
    uri!(),
    r"|(?://",
    authority!(),
    r"(?:/",
    pchar!(),
    r"*)*|/(?:",
    pchar!(),
    r"+(?:/",
    pchar!(),
    r"*)*)?|(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+(?:/",
    pchar!(),
    r"*)*|)",
    query_fragment!(),
    r")$"
);

/// Durations of RFC 3339, appendix A.
const DURATION: &str = concat!(
    r"^P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)",
    r"(?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?",
    r"|T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))$"
);

/// E-mail addresses with a dot-atom as local part.
const EMAIL: &str = concat!(
    r"^(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}",
    r"|[A-Za-z0-9!#$%&'*+/=?^_`{|}~-](?:\.?[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]){0,31})@",
    hostname!(),
    r"$"
);

/// RFC 3987's `ucschar`.
const UCSCHAR: &str = concat!(
    r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}",
    r"\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}",
    r"\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}",
    r"\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}",
    r"\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}"
);

/// Letters allowed at any position of an internationalised label: PVALID in RFC 5892, written left
/// to right and without context rules. Latin, Greek, Cyrillic, Hiragana, Katakana, Han, Hangul.
const IDN_LETTERS: &str = concat!(
    r"\u{DF}-\u{F6}\u{F8}-\u{FF}\u{3B1}-\u{3C9}\u{430}-\u{45F}\u{3041}-\u{3096}",
    r"\u{30A1}-\u{30FA}\u{4E00}-\u{9FFF}\u{AC00}-\u{D7A3}"
);

/// URI templates of RFC 6570, without the operators that it reserves.
const URI_TEMPLATE: &str = concat!(
    r"^(?:[!#$&(-;=?-\[\]_a-z~",
    r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}]",
    r"|%[0-9A-Fa-f]{2}|\{[+#./;?&]?",
    varspec!(),
    r"(?:,",
    varspec!(),
    r")*\})*$"
);

/// A pattern of ECMA-262 regular expressions (`u` flag) without back references, with groups nested
/// at most two deep.
fn regex() -> String {
    let escape = r"\\[dDwWsSfnrtv^$.*+?()\[\]{}|/\\]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}";
    let class = format!(r"\[\^?-?(?:a-z|A-Z|0-9|[^\\\[\]-]|{escape}|\\[b-])*-?\]");
    let quantifier = r"(?:[*+?]|\{\d\}|\{\d,\}|\{[0-4],[5-9]\d?\})\??";
    let atom = format!(r"(?:[^\\^$.*+?()\[\]{{}}|]|\.|{escape}|{class})");
    let one = |atom: &str| format!(r"(?:{atom}(?:{quantifier})?|[\^$]|\\[bB])");
    let mut inner = atom.clone();
    for _ in 0..2 {
        let each = one(&inner);
        inner = format!(r"(?:{atom}|\((?:\?[:=!])?{each}*(?:\|{each}*)*\))");
    }
    let each = one(&inner);
    format!("^{each}*(?:\\|{each}*)*$")
}

/// Formats whose patterns are composed from others at run time, once per process.
fn composed(name: &str) -> Option<&'static str> {
    static PATTERNS: [(&str, OnceLock<String>); 5] = [
        ("iri", OnceLock::new()),
        ("iri-reference", OnceLock::new()),
        ("idn-hostname", OnceLock::new()),
        ("idn-email", OnceLock::new()),
        ("regex", OnceLock::new()),
    ];
    let wider =
        |pattern: &str| pattern.replace("[A-Za-z0-9._~!", &format!("[{UCSCHAR}A-Za-z0-9._~!"));
    let idn = || {
        // Up to 18 letters stay below 63 octets in every encoding.
        let label =
            format!(r"(?:{}|[a-z0-9{IDN_LETTERS}](?:-?[a-z0-9{IDN_LETTERS}]){{0,8}})", label!());
        format!(r"{label}(?:\.{label}){{0,3}}")
    };
    let (name, cell) = PATTERNS.iter().find(|(format, _)| *format == name)?;
    Some(cell.get_or_init(|| match *name {
        "iri" => wider(concat!("^", uri!(), "$")),
        "iri-reference" => wider(URI_REFERENCE),
        "idn-hostname" => format!("^{}$", idn()),
        "idn-email" => {
            let atom = format!(r"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{UCSCHAR}-]");
            format!(r"^{atom}(?:\.?{atom}){{0,15}}@{}$", idn())
        }
        _ => regex(),
    }))
}

/// Looks up a format by name.
pub(super) fn lookup(name: &str) -> FormatLookup {
    FormatLookup::Pattern(match name {
        "date" => concat!("^", date!(), "$"),
        "time" => concat!("^", time!(), "$"),
        "date-time" => concat!("^", date!(), "[Tt]", time!(), "$"),
        "duration" => DURATION,
        "email" => EMAIL,
        "hostname" => concat!("^", hostname!(), "$"),
        "ipv4" => concat!("^", ipv4!(), "$"),
        "ipv6" => concat!("^", ipv6!(), "$"),
        "uri" => concat!("^", uri!(), "$"),
        "uri-reference" => URI_REFERENCE,
        "uri-template" => URI_TEMPLATE,
        "uuid" => "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
        "json-pointer" => "^(?:/(?:[^~/]|~[01])*)*$",
        "relative-json-pointer" => "^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$",
        name => return composed(name).map_or(FormatLookup::Unknown, FormatLookup::Pattern),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::regex::Pattern;
    use crate::limits::Limits;

    fn valid(format: &str, text: &str) -> bool {
        let FormatLookup::Pattern(source) = lookup(format) else {
            panic!("{format} has no pattern")
        };
        let pattern =
            Pattern::parse(source, &Limits::default()).unwrap_or_else(|e| panic!("{format}: {e}"));
        pattern.search_dfa(100_000).unwrap().accepts(text.chars().map(u32::from))
    }

    #[test]
    fn format_patterns_accept_valid_and_reject_invalid_texts() {
        for (format, right, wrong) in [
            (
                "date",
                &["2024-02-29", "1999-12-31", "2000-02-29"][..],
                &["2023-02-29", "1900-02-29", "2024-13-01"][..],
            ),
            ("time", &["23:59:59Z", "00:00:00.5+01:30"], &["24:00:00Z", "15:30:00", "1:00:00Z"]),
            (
                "date-time",
                &["2024-12-31T23:59:59Z"],
                &["2024-12-31T23:59:59", "2024-12-31 23:59:59Z"],
            ),
            ("duration", &["P1Y2M3DT4H5M6S", "P4W", "PT36H"], &["P", "PT", "P1D2H", "P1YT"]),
            (
                "email",
                &["a.b@example.com", "x+y@localhost"],
                &["a", "@b", ".a@b", "a..b@c", "a b@c"],
            ),
            ("hostname", &["example.com", "a-b.c"], &["-a", "a-", "a..b", "a_b", "", "a:80"]),
            ("ipv4", &["127.0.0.1", "255.255.255.255"], &["256.0.0.1", "1.2.3", "01.2.3.4"]),
            (
                "ipv6",
                &["::", "::1", "1::", "fe80::1:2", "1:2:3:4:5:6:7:8"],
                &["1", ":::", "1::2::3", "12345::"],
            ),
            (
                "uri",
                &["https://a.b/c?d#e", "urn:isbn:1", "mailto:a@b"],
                &["/a", "a b:c", "http://a b", "://x", "bar,baz"],
            ),
            ("uri-reference", &["/a", "a/b", "#x", "", "//h/p"], &["\\\\x", "a b", "#a\\b"]),
            (
                "uuid",
                &["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
                &["2eb8aa08aa9811eab4aa73b441d16380"],
            ),
            (
                "ipv6",
                &["::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1::2:3:4:5:1.2.3.4"],
                &["1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4"],
            ),
            ("time", &["23:59:60Z", "23:59:60.5+00:00"], &["22:59:60Z", "23:59:60+01:00"]),
            ("email", &["a.b.c@d.e"], &["a.@b"]),
            ("iri", &["https://é.b/ü?ñ"], &["/ü", "é", "http://a b"]),
            ("iri-reference", &["/ü", "#ƒ"], &["a b", "\\"]),
            ("idn-hostname", &["실례.테스트", "münchen.de"], &["-a", "a..b", "a b", "〮a"]),
            ("idn-email", &["실례@실례.테스트"], &["2962", "@é"]),
            ("uri-template", &["http://a/{b}/{?c*,d:3}", "a%20b", ""], &["{a", "a b", "{}", "%2"]),
            (
                "regex",
                &["^(a|[^b-]+)*$", "", r"\d{2,5}?", "((a)b)"],
                &["^(abc]", "*", "(", "[", r"\a", "a{"],
            ),
            ("json-pointer", &["", "/a/~0~1"], &["a", "/~2", "/~"]),
            ("relative-json-pointer", &["0#", "1/a"], &["01", "/a", "-1"]),
        ] {
            for text in right {
                assert!(valid(format, text), "{format} {text:?}");
            }
            for text in wrong {
                assert!(!valid(format, text), "{format} {text:?}");
            }
        }
    }
}
