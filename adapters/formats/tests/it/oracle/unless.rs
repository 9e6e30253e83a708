//! The `text_unless` of descriptions, read by hand.

/// How a text matches [`UNLESS`].
#[derive(PartialEq)]
pub(super) enum PatternMatch {
    No,
    Prefix,
    Complete,
}

/// The `text_unless` of all families.
pub(super) const UNLESS: &str = r#"[ \t\r\n]*,[ \t\r\n]*"(arguments|parameters)"[ \t\r\n]*:"#;

pub(super) fn match_unless(text: &[u8]) -> PatternMatch {
    let Ok(text) = std::str::from_utf8(text) else { return PatternMatch::No };
    let space = [' ', '\t', '\r', '\n'];
    let text = text.trim_start_matches(space);
    let Some(text) = text.strip_prefix(',') else {
        return if text.is_empty() { PatternMatch::Prefix } else { PatternMatch::No };
    };
    let text = text.trim_start_matches(space);
    for key in ["\"arguments\"", "\"parameters\""] {
        if let Some(rest) = text.strip_prefix(key) {
            let rest = rest.trim_start_matches(space);
            return match rest {
                "" => PatternMatch::Prefix,
                ":" => PatternMatch::Complete,
                _ => PatternMatch::No,
            };
        }
        if key.starts_with(text) {
            return PatternMatch::Prefix;
        }
    }
    PatternMatch::No
}
