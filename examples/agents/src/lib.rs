//! What the agent examples share: loading a model, local tools that really run, and printing.

mod history;
mod lean;
mod setup;
mod toolbox;

pub use history::{remember, run_calls};
pub use setup::{Setup, one_spelling};
pub use toolbox::{Tool, Toolbox, desk, travel};

/// What a model says must not steer the terminal: control characters are spelled out, and long text is cut.
pub fn printable(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut out = String::new();
    for c in text.chars().take(LONGEST) {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    if text.chars().nth(LONGEST).is_some() {
        out.push_str(" ...");
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn printable_text_has_no_control_characters() {
        assert_eq!(super::printable("a\x1b[2J\n"), "a\\u{1b}[2J\\n");
        assert!(super::printable(&"x".repeat(300)).ends_with("x ..."));
    }
}
