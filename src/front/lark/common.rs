//! The terminals of Lark's `common` library, as regular expressions.

/// The pattern of a terminal of `common`.
pub(super) fn pattern(name: &str) -> Option<&'static str> {
    TERMINALS.iter().find(|(terminal, _)| *terminal == name).map(|(_, pattern)| *pattern)
}

/// The names of all terminals.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TERMINALS.iter().map(|(name, _)| *name)
}

/// Terminals by name. Lark defines strings and comments with lazy quantifiers and look-behind; here
/// they are equivalent patterns without them.
const TERMINALS: [(&str, &str); 27] = [
    ("DIGIT", r"[0-9]"),
    ("HEXDIGIT", r"[0-9A-Fa-f]"),
    ("INT", r"[0-9]+"),
    ("SIGNED_INT", r"[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", r"[eE][+-]?[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SIGNED_FLOAT", r"[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)"),
    ("NUMBER", r"[0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    (
        "SIGNED_NUMBER",
        r"[+-]?([0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)",
    ),
    ("_STRING_INNER", r".*"),
    ("_STRING_ESC_INNER", r#"([^"\\\n]|\\.)*"#),
    ("ESCAPED_STRING", r#""([^"\\\n]|\\.)*""#),
    ("LCASE_LETTER", r"[a-z]"),
    ("UCASE_LETTER", r"[A-Z]"),
    ("LETTER", r"[A-Za-z]"),
    ("WORD", r"[A-Za-z]+"),
    ("CNAME", r"[_A-Za-z][_A-Za-z0-9]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    ("C_COMMENT", r"/\*([^*]|\*+[^*/])*\*+/"),
    ("SQL_COMMENT", r"--[^\n]*"),
];
