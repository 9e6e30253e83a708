//! Which part of the host's context was generated. The host tells neither the prompt's length nor which sequence it is,
//! and after a prefix-cache hit its first context is only the prompt's uncached end.

/// What is known of the prompt.
#[derive(Debug)]
pub(crate) enum Prompt {
    /// We made it: this many tokens.
    Known(usize),
    /// The host made it. Nothing is generated at the first call; the second call's context has one token more than the
    /// prompt.
    Learned {
        /// The first context, or the end of it that the prefix cache did not have.
        first: Option<Vec<u32>>,
        /// The prompt's length, once known.
        len: Option<usize>,
    },
}

impl Prompt {
    /// A prompt the host makes.
    pub(crate) fn unknown() -> Prompt {
        Prompt::Learned { first: None, len: None }
    }

    /// The generated end of a context: a function of the contexts' contents, not of how often each is shown.
    pub(crate) fn generated<'c>(&mut self, context: &'c [u32]) -> &'c [u32] {
        let prompt = match self {
            Prompt::Known(len) => *len,
            Prompt::Learned { len: Some(len), .. } => *len,
            Prompt::Learned { first: Some(first), len } if first.as_slice() != context => {
                *len.insert(context.len().saturating_sub(1))
            }
            Prompt::Learned { first, .. } => {
                first.get_or_insert_with(|| context.to_vec());
                return &[];
            }
        };
        context.get(prompt..).unwrap_or(&[])
    }
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_prompt_with_a_suffix_as_first_context() {
        let mut prompt = Prompt::Known(4);
        assert_eq!(prompt.generated(&[3, 4]), [0u32; 0]);
        assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
        assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
        assert_eq!(prompt.generated(&[1, 2, 3, 4]), [0u32; 0]);
    }

    #[test]
    fn learned_prompt_whatever_is_cached_and_repeated() {
        for first in [&[1, 2, 3, 4][..], &[4], &[3, 4]] {
            let mut prompt = Prompt::unknown();
            assert_eq!(prompt.generated(first), [0u32; 0]);
            assert_eq!(prompt.generated(first), [0u32; 0]);
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 5, 6]), [5, 6]);
            // Another choice of the same request.
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 9]), [9]);
        }
    }

    #[test]
    fn prefixes() {
        assert_eq!(common_prefix(&[1, 2, 3], &[1, 2, 4, 5]), 2);
        assert_eq!(common_prefix(&[], &[1]), 0);
    }
}
