//! Reports notation of other languages that would be read with another meaning.

use super::EbnfDialect;
use super::cursor::{Cursor, KBNF_TERMINALS, Reported};
use crate::front::diagnostic::Diagnostic;

/// Beginnings of terminals of other notations, after their `#`, with what to write.
const FOREIGN_TERMINALS: [(&str, &str); 3] = [
    ("[", "a class is written without the `#`: `[0-9]`"),
    ("/", "a regular expression is written `Regex(\"...\")`"),
    ("<", "a token is written without the `#`: `<think>`"),
];

/// Signs of other notations where no expression begins, with what to write.
const FOREIGN_SIGNS: [(&str, &str); 6] = [
    ("/*", "a comment is written `# ...` or `(* ... *)`"),
    ("//", "a comment is written `# ...` or `(* ... *)`"),
    ("/", "a regular expression is written `Regex(\"...\")`, a comment `# ...`"),
    ("~", "expressions follow each other without a sign; a repetition is written `a{3}`"),
    ("&", "a look-ahead or an intersection is not supported"),
    (",", "expressions follow each other without a comma; the dialect `kbnf` reads one"),
];

impl Cursor<'_> {
    /// Rejects, in the dialect `common`, a comment without a space that could be a terminal of
    /// another notation, or that stands where an expression is expected. At the beginning of a
    /// line, only terminals of KBNF are rejected.
    pub(super) fn check_comment(&mut self) -> Result<(), Reported> {
        let rest = &self.rest()[1..];
        let is_common = self.dialect == EbnfDialect::Common;
        if !is_common || rest.is_empty() || rest.starts_with(char::is_whitespace) {
            return Ok(());
        }
        let help = match terminal_help(rest) {
            Some(help) if !self.at_line_start || is_kbnf_terminal(rest) => help,
            None if !self.at_line_start && self.expects_expression() => "write the expression",
            _ => return Ok(()),
        };
        let at = self.offset;
        let message = if is_kbnf_terminal(rest) {
            "a comment, or a terminal of KBNF"
        } else {
            "a comment, or a terminal of another notation"
        };
        self.error(
            Diagnostic::error(at..at + 1, message)
                .help(format!("a comment has a space here: `# ...`; {help}")),
        )
    }

    /// Whether the last character before the cursor, in this line, needs an expression after it.
    fn expects_expression(&self) -> bool {
        let before = self.text[..self.offset].trim_end_matches([' ', '\t']);
        before.ends_with(['|', '(', ',']) || before.ends_with("::=")
    }

    /// Rejects, in the dialect `common`, `\x` with more than two digits, which began at `begin` and
    /// has this code.
    pub(super) fn check_hex_escape(&mut self, begin: usize, code: u32) -> Result<(), Reported> {
        if self.dialect != EbnfDialect::Common || self.offset - begin <= r"\xHH".len() {
            return Ok(());
        }
        let message = "one character, or one with two digits and then others";
        self.error(Diagnostic::error(begin..self.offset, message).help(format!(
            "the character is written `\\u{{{code:X}}}`; `gbnf` reads two digits, `xgrammar` all"
        )))
    }

    /// Rejects `"a".."z"` and `"a"..."z"`, after their first string; in the dialect `gbnf`, only
    /// without blanks.
    pub(super) fn check_range(&mut self) -> Result<(), Reported> {
        let blanks: &[char] = if self.dialect == EbnfDialect::Gbnf { &[] } else { &[' ', '\t'] };
        let rest = self.rest().trim_start_matches(blanks);
        let end = rest.trim_start_matches('.');
        let dots = rest.len() - end.len();
        // llama.cpp reads three as three characters.
        let most = if self.dialect == EbnfDialect::Gbnf { 2 } else { 3 };
        if !(2..=most).contains(&dots) || !end.trim_start_matches(blanks).starts_with(['"', '\'']) {
            return Ok(());
        }
        let at = self.text.len() - rest.len();
        self.error(
            Diagnostic::error(at..at + dots, "a range of another notation, or any characters")
                .help("a range is written `[0-9]`, and any characters with blanks: `. .`"),
        )
    }

    /// Rejects `{2}` and `{1,2}`, after the bracket at `begin`, in the dialect `kbnf`.
    pub(super) fn check_counts(&mut self, begin: usize) -> Result<(), Reported> {
        let is_count = |c: char| c.is_ascii_digit() || matches!(c, ',' | ' ');
        let rest = self.rest().trim_start_matches(is_count);
        if !self.text[begin..].starts_with('{') || !rest.starts_with('}') {
            return Ok(());
        }
        let end = self.text.len() - rest.len() + 1;
        self.error(
            Diagnostic::error(begin..end, "the dialect `kbnf` has no counted repetition").help(
                "`{a}` is any number of `a`: write `a a` for two, `[a]` for at most one, \
                 or a regular expression `#\"a{2}\"`",
            ),
        )
    }

    /// Rejects `{a}`, at its bracket, in dialects in which brackets count.
    pub(super) fn check_braces(&mut self) -> Result<(), Reported> {
        let at = self.offset;
        let inside = self.rest().strip_prefix('{').unwrap_or_default().trim_start();
        if !inside.starts_with(|c: char| c.is_alphabetic() || matches!(c, '"' | '\'' | '(' | '_')) {
            return Ok(());
        }
        let message = "a repetition of another notation, or a count without a number";
        self.error(
            Diagnostic::error(at..at + 1, message)
                .help("any number of `a` is written `a*`; the dialect `kbnf` reads `{a}`"),
        )
    }

    /// Rejects `[^a]`, after its bracket at `begin`, in the dialect `kbnf`.
    pub(super) fn check_negated_class(&mut self, begin: usize) -> Result<(), Reported> {
        if !self.text[begin..].starts_with("[^") {
            return Ok(());
        }
        let inside = self.rest().split([']', '\n']).next().unwrap_or_default();
        let (end, help) = (self.offset + inside.len() + 1, kbnf_class_help(inside));
        let message = "the dialect `kbnf` has no classes in brackets";
        self.error(Diagnostic::error(begin..end, message).help(help))
    }

    /// Rejects a class, after its `[` at `begin`, whose content is strings or alternatives: in
    /// other notations, an optional expression.
    pub(super) fn check_class(&mut self, begin: usize) -> Result<(), Reported> {
        let inside = self.rest().split([']', '\n']).next().unwrap_or_default();
        self.check_class_codes(begin, inside)?;
        let text = inside.trim_matches([' ', '\t']);
        let is_quoted =
            |quote: char| text.len() > 2 && text.starts_with(quote) && text.ends_with(quote);
        if !is_quoted('"') && !is_quoted('\'') && !text.contains(" | ") {
            return Ok(());
        }
        let end = begin + 2 + inside.len();
        self.error(Diagnostic::error(begin..end, "a class, or an optional expression").help(
            "an optional expression is written `(\"a\" | \"b\")?`; \
                 a class has each character once: `[ab]`",
        ))
    }

    /// Rejects, in the dialect `common`, the class at `begin` if it consists of codes as W3C's
    /// notation writes them: `[#x9#xA]`, `[#x61-#x7A]`.
    fn check_class_codes(&mut self, begin: usize, inside: &str) -> Result<(), Reported> {
        if self.dialect != EbnfDialect::Common {
            return Ok(());
        }
        let Some(class) = class_of_codes(inside) else { return Ok(()) };
        let span = begin..begin + inside.len() + 2;
        self.error(
            Diagnostic::error(span, "a class of codes in another notation, or of characters")
                .help(format!("codes are written `[{class}]`")),
        )
    }

    /// Reports a name in angle brackets before `::=`, where a rule begins.
    pub(super) fn check_bracketed_head(&mut self) -> Result<(), Reported> {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let Some((name, after)) = line.strip_prefix('<').and_then(|line| line.split_once('>'))
        else {
            return Ok(());
        };
        if !after.trim_start().starts_with("::=") {
            return Ok(());
        }
        let at = self.offset;
        self.error(
            Diagnostic::error(at..at + name.len() + 2, "a rule of another notation")
                .help("rules are written `name ::= ...`, and `<name>` is a token"),
        )
    }

    /// What to write in place of a sign of other notations that begins here.
    pub(super) fn foreign_sign(&self) -> Option<(&'static str, &'static str)> {
        FOREIGN_SIGNS.into_iter().find(|(sign, _)| self.rest().starts_with(sign))
    }
}

/// The content of a class of codes such as `#x61-#x7A`, as it is written here.
fn class_of_codes(inside: &str) -> Option<String> {
    let (sign, mut rest) = match inside.strip_prefix('^') {
        Some(rest) => ("^", rest),
        None => ("", inside),
    };
    let mut class = sign.to_owned();
    while let Some(code) = rest.strip_prefix("#x") {
        let end = code.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(code.len());
        let digits = &code[..end];
        u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
        class += &match end {
            1 => format!("\\x0{digits}"),
            2 => format!("\\x{digits}"),
            3.. => format!("\\u{{{digits}}}"),
            0 => return None,
        };
        rest = code[end..].trim_start_matches(' ');
        if let Some(high) = rest.strip_prefix('-').filter(|high| high.starts_with("#x")) {
            class.push('-');
            rest = high;
        }
    }
    (rest.is_empty() && class.len() > sign.len()).then_some(class)
}

/// How the dialect `kbnf` writes a class.
pub(super) fn kbnf_class_help(inside: &str) -> String {
    format!("`[a]` is at most one `a`; a class is a regular expression: `#\"[{inside}]\"`")
}

/// What to write in place of a terminal of another notation, given the text after its `#`.
fn terminal_help(rest: &str) -> Option<&'static str> {
    if is_kbnf_terminal(rest) {
        return Some("the dialect `kbnf` reads a terminal");
    }
    let is_code = rest
        .strip_prefix(['x', 'X'])
        .is_some_and(|code| code.starts_with(|c: char| c.is_ascii_hexdigit()));
    if is_code {
        return Some("a character of a code is written `\"\\x30\"`");
    }
    FOREIGN_TERMINALS.iter().find(|(sign, _)| rest.starts_with(sign)).map(|&(_, help)| help)
}

/// Whether the text after a `#` is a terminal of KBNF: an optional kind, then a quote.
fn is_kbnf_terminal(rest: &str) -> bool {
    KBNF_TERMINALS.iter().any(|kind| {
        let quoted = |rest: &str| rest.trim_start_matches(' ').starts_with(['"', '\'']);
        rest.strip_prefix(kind).is_some_and(quoted)
    })
}
