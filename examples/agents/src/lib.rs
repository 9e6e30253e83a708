//! Shared code of the agent examples: model loading, executable local tools, and printing.

mod history;
mod lean;
mod setup;
mod toolbox;

pub use history::{append_turn, run_calls};
pub use setup::{Setup, training_format};
pub use toolbox::{Tool, Toolbox, desk, travel};

/// Makes model output printable: escapes control characters, so that it cannot control the
/// terminal, and truncates long text.
pub fn printable(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let mut out = String::new();
    for c in text.chars().take(MAX_CHARS) {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    if text.chars().nth(MAX_CHARS).is_some() {
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
