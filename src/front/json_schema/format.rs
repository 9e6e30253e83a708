//! `format` as patterns. Each accepts only texts that the format's specification allows; where the specification is
//! broader than what a model should write (comments in e-mail addresses, leap seconds), the pattern is narrower.

/// What is known about a format.
pub(super) enum Format {
    /// Enforced by this pattern.
    Pattern(&'static str),
    /// Specified, but not enforced here.
    Unenforced,
    /// Not in the specification: an annotation.
    Unknown,
}

macro_rules! date {
    () => {
        concat!(
            r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))",
            r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
        )
    };
}

macro_rules! time {
    () => {
        r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
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
            r"(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,7}:|(?:[0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}",
            r"|(?:[0-9A-Fa-f]{1,4}:){1,5}(?::[0-9A-Fa-f]{1,4}){1,2}|(?:[0-9A-Fa-f]{1,4}:){1,4}(?::[0-9A-Fa-f]{1,4}){1,3}",
            r"|(?:[0-9A-Fa-f]{1,4}:){1,3}(?::[0-9A-Fa-f]{1,4}){1,4}|(?:[0-9A-Fa-f]{1,4}:){1,2}(?::[0-9A-Fa-f]{1,4}){1,5}",
            r"|[0-9A-Fa-f]{1,4}:(?::[0-9A-Fa-f]{1,4}){1,6}|:(?:(?::[0-9A-Fa-f]{1,4}){1,7}|:))"
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

const DURATION: &str = concat!(
    r"^P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?",
    r"|T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))$"
);

const EMAIL: &str =
    concat!(r"^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,32}(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,30})?@", hostname!(), r"$");

/// The format of this name.
pub(super) fn lookup(name: &str) -> Format {
    Format::Pattern(match name {
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
        "uuid" => "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
        "json-pointer" => "^(?:/(?:[^~/]|~[01])*)*$",
        "relative-json-pointer" => "^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$",
        "idn-email" | "idn-hostname" | "iri" | "iri-reference" | "uri-template" | "regex" => return Format::Unenforced,
        _ => return Format::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::regex::Pattern;
    use crate::limits::Limits;

    fn valid(format: &str, text: &str) -> bool {
        let Format::Pattern(source) = lookup(format) else { panic!("{format} has no pattern") };
        let pattern = Pattern::parse(source, &Limits::default()).unwrap();
        pattern.search_dfa(100_000).unwrap().accepts(text.chars().map(u32::from))
    }

    #[test]
    fn formats_tell_right_from_wrong() {
        for (format, right, wrong) in [
            ("date", &["2024-02-29", "1999-12-31", "2000-02-29"][..], &["2023-02-29", "1900-02-29", "2024-13-01"][..]),
            ("time", &["23:59:59Z", "00:00:00.5+01:30"], &["24:00:00Z", "15:30:00", "1:00:00Z"]),
            ("date-time", &["2024-12-31T23:59:59Z"], &["2024-12-31T23:59:59", "2024-12-31 23:59:59Z"]),
            ("duration", &["P1Y2M3DT4H5M6S", "P4W", "PT36H"], &["P", "PT", "P1D2H", "P1YT"]),
            ("email", &["a.b@example.com", "x+y@localhost"], &["a", "@b", ".a@b", "a..b@c", "a b@c"]),
            ("hostname", &["example.com", "a-b.c"], &["-a", "a-", "a..b", "a_b", "", "a:80"]),
            ("ipv4", &["127.0.0.1", "255.255.255.255"], &["256.0.0.1", "1.2.3", "01.2.3.4"]),
            ("ipv6", &["::", "::1", "1::", "fe80::1:2", "1:2:3:4:5:6:7:8"], &["1", ":::", "1::2::3", "12345::"]),
            (
                "uri",
                &["https://a.b/c?d#e", "urn:isbn:1", "mailto:a@b"],
                &["/a", "a b:c", "http://a b", "://x", "bar,baz"],
            ),
            ("uri-reference", &["/a", "a/b", "#x", "", "//h/p"], &["\\\\x", "a b", "#a\\b"]),
            ("uuid", &["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], &["2eb8aa08aa9811eab4aa73b441d16380"]),
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
