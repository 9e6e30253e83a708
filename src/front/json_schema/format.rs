//! The formats of the `format` keyword: names, patterns and lengths.
//!
//! Each pattern accepts only texts that the format's specification allows. Where no automaton
//! describes a format, the pattern is narrower (docs/JSON_SCHEMA.md).

use std::sync::LazyLock;

use crate::spec::json::Json;

/// A format.
#[derive(Debug)]
pub(super) struct DefinedFormat {
    name: &'static str,
    /// The pattern that enforces it.
    pub(super) pattern: String,
    /// The greatest length of a text, in code points.
    pub(super) max: Option<u32>,
    /// What texts that certainly do not have the format do not match, if `pattern` describes only
    /// some of its texts. The others are neither of the format nor of its negation.
    wider: Option<String>,
}

impl DefinedFormat {
    /// The pattern whose complement is the negation of the format.
    pub(super) fn wider(&self) -> &str {
        self.wider.as_ref().unwrap_or(&self.pattern)
    }
}

/// Whether a document may assert a format whose pattern leaves out some of its texts. Cost: linear.
pub(super) fn may_be_narrow(document: &Json) -> bool {
    document.values().any(|json| {
        let format = json.get("format").and_then(Json::as_str).and_then(lookup);
        format.is_some_and(|format| format.wider.is_some())
    })
}

/// Whether `max` is of the format with this pattern, and longer texts may have the format: its
/// octets are limited, and not its characters.
pub(super) fn is_narrower_length(pattern: &str, max: u32) -> bool {
    max == MAX_IDN_MAILBOX && lookup("idn-email").is_some_and(|format| format.pattern == pattern)
}

/// Looks up a format by name. `None` if it is not known: then it is an annotation. Schemas of
/// earlier dialects mean the same by a name that a later one defines.
pub(super) fn lookup(name: &str) -> Option<&'static DefinedFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The names of all formats.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

/// All formats, made once per process.
static FORMATS: LazyLock<Vec<DefinedFormat>> = LazyLock::new(|| {
    let format = |name, max, pattern: String| {
        let whole = |pattern: &str| format!("^(?:{pattern})$");
        let wider = wider(name).map(|wider| whole(&wider));
        DefinedFormat { name, pattern: whole(&pattern), max, wider }
    };
    let hex = |n: u8| format!("[0-9A-Fa-f]{{{n}}}");
    vec![
        format("date-time", None, format!("{DATE}[Tt]{TIME}")),
        format("email", Some(MAX_MAILBOX), email()),
        format("hostname", Some(MAX_HOST), host()),
        format("ipv4", None, IPV4.to_owned()),
        format("ipv6", None, ipv6(7)),
        format("uri", None, uri("", "")),
        format("uri-reference", None, uri_reference("", "")),
        format("uri-template", None, uri_template()),
        format("json-pointer", None, POINTER.to_owned()),
        format("date", None, DATE.to_owned()),
        format("time", None, TIME.to_owned()),
        format("idn-email", Some(MAX_IDN_MAILBOX), idn_email()),
        format("idn-hostname", Some(MAX_HOST), idn_host()),
        format("iri", None, uri(UCSCHAR, IPRIVATE)),
        format("iri-reference", None, uri_reference(UCSCHAR, IPRIVATE)),
        format("relative-json-pointer", None, format!("(?:0|[1-9][0-9]*)(?:#|{POINTER})")),
        format("regex", None, regex()),
        format("duration", None, DURATION.to_owned()),
        format("uuid", None, [8, 4, 4, 4, 12].map(hex).join("-")),
    ]
});

/// All texts of a format that has others than its pattern describes.
fn wider(name: &str) -> Option<String> {
    let time =
        r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)";
    Some(match name {
        "time" => time.to_owned(),
        "date-time" => format!("{DATE}[Tt]{time}"),
        "email" | "idn-email" => r"[^@]*@[\s\S]*".to_owned(),
        "hostname" => list("[A-Za-z0-9-]{1,63}", r"\."),
        "idn-hostname" => r"[A-Za-z0-9.\u{80}-\u{10FFFF}-]+".to_owned(),
        "uri-template" => r"(?:[^{}]|\{[^{}]+\})*".to_owned(),
        "relative-json-pointer" => format!(r"(?:0|[1-9]\d*)(?:[+-]\d+)?(?:#|{POINTER})"),
        // An escape has a character.
        "regex" => r"(?:[^\\]|\\[\s\S])*".to_owned(),
        _ => return None,
    })
}

/// RFC 6901.
const POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

/// The length of a host name without the root's dot (RFC 1123, section 2.1; RFC 1035).
const MAX_HOST: u32 = 253;
/// The length of an e-mail address: a path of 256 octets without its angle brackets (RFC 5321,
/// section 4.5.3.1.3).
const MAX_MAILBOX: u32 = 254;
/// As [`MAX_MAILBOX`], in code points: the 64 octets of the local part are at least 16.
const MAX_IDN_MAILBOX: u32 = MAX_MAILBOX - 48;

const DATE: &str = concat!(
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])",
    r"|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))",
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
);

const TIME: &str = concat!(
    r"(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    // A leap second is the last second of a UTC day.
    r"|23:59:60(?:\.\d+)?(?:[Zz]|[+-]00:00))"
);

/// Durations of RFC 3339, appendix A.
const DURATION: &str = concat!(
    r"P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)",
    r"(?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?",
    r"|T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))"
);

const IPV4: &str =
    r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)";

/// RFC 3987's `ucschar`.
const UCSCHAR: &str = concat!(
    r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}",
    r"\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}",
    r"\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}",
    r"\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}",
    r"\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}"
);

/// RFC 3987's `iprivate`.
const IPRIVATE: &str = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}";

/// Letters allowed at any position of an internationalised label: PVALID in RFC 5892, written left
/// to right and without context rules. Latin, Greek, Cyrillic, Hiragana, Katakana, Han, Hangul.
const IDN_LETTERS: &str = concat!(
    r"\u{DF}-\u{F6}\u{F8}-\u{FF}\u{3B1}-\u{3C9}\u{430}-\u{45F}\u{3041}-\u{3096}",
    r"\u{30A1}-\u{30FA}\u{4E00}-\u{9FFF}\u{AC00}-\u{D7A3}"
);

/// Labels of host names (RFC 1123). Labels with hyphens at the third and fourth place are reserved
/// (RFC 5890): only some of them encode names.
const LABEL: &str = r"(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

/// A list with at least one element.
fn list(element: &str, separator: &str) -> String {
    format!("{element}(?:{separator}{element})*")
}

/// Host names of RFC 1123, any length.
fn host() -> String {
    list(LABEL, r"\.")
}

/// Internationalised host names, and those of ASCII. Up to 18 letters and hyphens stay below 58
/// octets in every encoding, and four labels, one of them of letters, below 254.
fn idn_host() -> String {
    let letter = format!("[a-z0-9{IDN_LETTERS}]");
    let label = format!("(?:{LABEL}|{letter}(?:-?{letter}){{0,8}})");
    format!(r"(?:{}|{label}(?:[.\u3002\uFF0E\uFF61]{label}){{0,3}})", host())
}

/// IPv6 addresses of RFC 4291. `groups`: the most groups beside `::`.
fn ipv6(groups: usize) -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let mut out = format!("(?:(?:{group}:){{7}}{group}|(?:{group}:){{6}}{IPV4}");
    for before in 0..=groups {
        let begin = match before {
            0 => String::new(),
            n => format!("(?:{group}:){{{}}}{group}", n - 1),
        };
        let rest = match groups - before {
            0 => String::new(),
            n => format!("(?:(?:{group}:){{0,{}}}{group})?", n - 1),
        };
        out += &format!("|{begin}::{rest}");
        if before + 2 <= groups {
            out += &format!("|{begin}::(?:{group}:){{0,{}}}{IPV4}", groups - 2 - before);
        }
    }
    out + ")"
}

/// RFC 5322's `dot-atom-text`, with more characters.
fn atom(more: &str) -> String {
    list(&format!(r"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{more}-]+"), r"\.")
}

/// RFC 5321's `Mailbox` without tagged address literals. `atoms`: local parts that are not quoted.
/// `more`: further characters of quoted local parts, of which each takes up to `octets`.
fn mailbox(atoms: &str, more: &str, octets: usize, host: &str) -> String {
    let (text, most, ipv6) = (r"[ !#-\[\]-~]", 62 / octets, ipv6(6));
    let quoted = format!(r#""(?:{text}{{0,62}}|(?:[ !#-\[\]-~{more}]|\\[ -~]){{0,{most}}})""#);
    format!(r"(?:{atoms}|{quoted})@(?:{host}|\[(?:{IPV4}|IPv6:{ipv6})\])")
}

fn email() -> String {
    mailbox(&format!("(?=[^@]{{1,64}}@){}", atom("")), "", 2, &host())
}

/// RFC 6531's `Mailbox`.
fn idn_email() -> String {
    let other = r"\u{80}-\u{10FFFF}";
    // Local parts of at most 64 octets in UTF-8.
    let lengths = [(64, r"\x7F"), (32, r"\u{7FF}"), (21, r"\u{FFFF}"), (16, r"\u{10FFFF}")];
    let lengths = lengths.map(|(max, last)| format!(r"[!-?A-{last}]{{1,{max}}}")).join("|");
    let atoms = format!("(?=(?:{lengths})@){}", atom(other));
    mailbox(&atoms, other, 4, &idn_host())
}

/// Parts of RFC 3986 and RFC 3987: characters, and more of them.
struct UriParts {
    /// `pchar`.
    pchar: String,
    /// `authority`.
    authority: String,
    /// `[ "?" query ] [ "#" fragment ]`.
    tail: String,
    /// `segment-nz-nc`.
    segment: String,
}

/// The parts of URIs: `more` may stand for unreserved characters, `private` only in the query.
fn uri_parts(more: &str, private: &str) -> UriParts {
    let chars =
        |others: &str| format!(r"(?:[A-Za-z0-9._~!$&'()*+,;={more}{others}-]|%[0-9A-Fa-f]{{2}})");
    let host = format!(
        r"(?:{}*|\[(?:{}|[Vv][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\])",
        chars(""),
        ipv6(7)
    );
    UriParts {
        pchar: chars(":@"),
        authority: format!(r"(?:{}*@)?{host}(?::\d*)?", chars(":")),
        tail: format!(r"(?:\?{}*)?(?:#{}*)?", chars(&format!(":@/?{private}")), chars(":@/?")),
        segment: format!("{}+", chars("@")),
    }
}

/// RFC 3986's `URI`, RFC 3987's `IRI`.
fn uri(more: &str, private: &str) -> String {
    let UriParts { pchar, authority, tail, .. } = uri_parts(more, private);
    let path = format!("{pchar}+(?:/{pchar}*)*");
    format!("[A-Za-z][A-Za-z0-9+.-]*:(?://{authority}(?:/{pchar}*)*|/(?:{path})?|{path}|){tail}")
}

/// RFC 3986's `URI-reference`, RFC 3987's `IRI-reference`.
fn uri_reference(more: &str, private: &str) -> String {
    let UriParts { pchar, authority, tail, segment } = uri_parts(more, private);
    let path = format!("(?:/{pchar}*)*");
    let relative = format!("//{authority}{path}|/(?:{pchar}+{path})?|{segment}{path}|");
    format!("{}|(?:{relative}){tail}", uri(more, private))
}

/// URI templates of RFC 6570, without the operators that it reserves.
fn uri_template() -> String {
    let name = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})";
    let variables = list(&format!(r"{name}(?:\.?{name})*(?::[1-9]\d{{0,3}}|\*)?"), ",");
    let literal = format!(r"[!#$&-;=?-\[\]_a-z~{UCSCHAR}{IPRIVATE}]|%[0-9A-Fa-f]{{2}}");
    format!(r"(?:{literal}|\{{[+#./;?&]?{variables}\}})*")
}

/// Most groups inside each other in a regular expression.
const GROUP_DEPTH: usize = 4;

/// Regular expressions of ECMA-262 with the flag `u`. No automaton describes them all; these are
/// without back references, and their names of properties, ranges and counts are among the usual.
fn regex() -> String {
    let categories = "L[ultmo]?|LC|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfson]?";
    let set = format!(r"\\[dDwWsS]|\\[pP]\{{(?:gc=)?(?:{categories})\}}");
    let hex = "[0-9A-Fa-f]";
    let code = format!(r"x{hex}{{2}}|u{hex}{{4}}|u\{{{hex}{{1,5}}\}}");
    let one = format!(r"\\(?:[fnrtv^$.*+?()\[\]{{}}|/\\]|0(?!\d)|c[A-Za-z]|{code})");
    let ranges = concat!(
        "a-[b-z]|A-[B-Z]|0-[1-9]|1-[2-9]|[b-y]-z|[B-Y]-Z|[2-8]-9|[Aa]-z|[ !]-~",
        r"|\\x[0-3][0-9A-Fa-f]-\\x[4-9A-Fa-f][0-9A-Fa-f]",
        r"|\\u0[0-9A-Fa-f]{3}-\\u[1-9A-CEFa-cef][0-9A-Fa-f]{3}"
    );
    let class = format!(r"\[\^?-?(?:{ranges}|[^\\\]-]|{set}|{one}|\\[b-])*-?\]");
    let count = r"\d+,?|[0-4],[5-9]|0,[1-4]|1,[2-4]|\d,[1-9]\d+|1\d,[2-9]\d|\d\d,[1-9]\d\d+";
    let quantifier = format!(r"(?:(?:[*+?]|\{{(?:{count})\}})\??)?");
    let atom = format!(r"(?:[^\\^$.*+?()\[\]{{}}|]|\.|{set}|{one}|{class})");
    let assertion = r"[\^$|]|\\[bB]";
    let mut bodies = vec![format!("(?:{atom}{quantifier}|{assertion})*")];
    let look = format!(r"\(\?<?[=!]{}\)", bodies[0]);
    let open = r"\((?:\?(?:i|m|s|im|is|ms|ims)?:)?";
    for depth in 0..GROUP_DEPTH {
        let group = format!(r"{open}{}\)", bodies[depth]);
        bodies.push(format!("(?:(?:{atom}|{group}){quantifier}|{look}|{assertion})*"));
    }
    // Names differ: there is one.
    let named = format!(r"\(\?<[A-Za-z_$][A-Za-z0-9_$]*>{}\)", bodies[2]);
    format!(r"(?:\^?{named})?{}", bodies[GROUP_DEPTH])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::regex::cached_pattern;
    use crate::limits::Limits;

    fn valid(name: &str, text: &str) -> bool {
        let format = lookup(name).unwrap_or_else(|| panic!("no {name}"));
        let pattern = cached_pattern(&format.pattern, &Limits::default());
        let dfa = pattern.unwrap_or_else(|e| panic!("{name}: {e}")).search_dfa(20_000).unwrap();
        format.max.is_none_or(|max| text.chars().count() <= max as usize) && dfa.accepts_text(text)
    }

    #[test]
    fn formats_have_the_lengths_of_their_specifications() {
        let label = "a".repeat(63);
        let host = [&label[..]; 3].join(".") + "." + &label[2..];
        let local = "l".repeat(64);
        for (format, right, wrong) in [
            ("hostname", host.clone(), format!("{host}a")),
            ("hostname", format!("{label}.a"), format!("a{label}.a")),
            ("hostname", "a.b.c.d.e.f.g.h".to_owned(), "a.b.c.d.e.f.g.h.".to_owned()),
            ("idn-hostname", host.clone(), format!("{host}a")),
            ("idn-hostname", "ü-üüüü.한국.xyz.a".to_owned(), "ü".repeat(64)),
            ("email", format!("{local}@{}", &host[64..]), format!("{local}@{}", &host[63..])),
            ("email", format!("{local}@a.b.c.d.e.f"), format!("l{local}@a")),
            ("email", format!("\"{}\"@a", &local[2..]), format!("\"{}\"@a", &local[1..])),
            ("idn-email", format!("{}@é.b", "é".repeat(32)), format!("{}@é.b", "é".repeat(33))),
            ("idn-email", format!("{local}@a"), format!("l{local}@a")),
            ("idn-email", format!("{}@a", "😀".repeat(16)), format!("{}@a", "😀".repeat(17))),
        ] {
            assert!(valid(format, &right), "{format} {right:?}");
            assert!(!valid(format, &wrong), "{format} {wrong:?}");
        }
    }
}
