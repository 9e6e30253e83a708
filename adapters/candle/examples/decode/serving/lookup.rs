//! Drafts by prompt look-up: what followed when the last tokens occurred before.

/// Longest run of last tokens that is looked for. Longer runs come first, because their
/// continuations are right more often.
const LONGEST_RUN: usize = 3;

/// The tokens that followed the latest earlier occurrence of the longest possible run of last
/// tokens; at most `longest`, none if the last token is new. Cost: a pass over the tokens for each
/// length of a run.
pub(crate) fn look_up(tokens: &[u32], longest: usize) -> &[u32] {
    for run in (1..=LONGEST_RUN.min(tokens.len())).rev() {
        let last = &tokens[tokens.len() - run..];
        let earlier = &tokens[..tokens.len() - 1];
        if let Some(start) = earlier.windows(run).rposition(|window| window == last) {
            let follow = &tokens[start + run..];
            return &follow[..follow.len().min(longest)];
        }
    }
    &[]
}
