//! The prompt boundary: finds the generated part of the host's context. The host passes neither the
//! prompt's length nor the sequence's identity. After a prefix-cache hit its first context is only
//! the uncached end of the prompt.

/// How the prompt's length is determined.
#[derive(Debug)]
pub(crate) enum PromptBoundary {
    /// Louver sent the prompt: its length in tokens.
    Fixed(usize),
    /// The host rendered the prompt. At the first call nothing is generated; the context of the
    /// second call is one token longer than the prompt.
    Learned {
        /// The first context, or its part that was not in the prefix cache.
        first_context: Option<Vec<u32>>,
        /// The prompt's length, once known.
        len: Option<usize>,
    },
}

impl PromptBoundary {
    /// A prompt that the host renders.
    pub(crate) fn learned() -> PromptBoundary {
        PromptBoundary::Learned { first_context: None, len: None }
    }

    /// The generated part of a context. It depends on the contexts only, not on the number of
    /// calls.
    pub(crate) fn generated<'c>(&mut self, context: &'c [u32]) -> &'c [u32] {
        let prompt = match self {
            PromptBoundary::Fixed(len) => *len,
            PromptBoundary::Learned { len: Some(len), .. } => *len,
            PromptBoundary::Learned { first_context: Some(first_context), len }
                if first_context.as_slice() != context =>
            {
                *len.insert(context.len().saturating_sub(1))
            }
            PromptBoundary::Learned { first_context, .. } => {
                first_context.get_or_insert_with(|| context.to_vec());
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
    fn fixed_length_ignores_a_partial_first_context() {
        let mut prompt = PromptBoundary::Fixed(4);
        assert_eq!(prompt.generated(&[3, 4]), [0u32; 0]);
        assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
        assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
        assert_eq!(prompt.generated(&[1, 2, 3, 4]), [0u32; 0]);
    }

    #[test]
    fn learned_length_ignores_cached_and_repeated_contexts() {
        for first_context in [&[1, 2, 3, 4][..], &[4], &[3, 4]] {
            let mut prompt = PromptBoundary::learned();
            assert_eq!(prompt.generated(first_context), [0u32; 0]);
            assert_eq!(prompt.generated(first_context), [0u32; 0]);
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 5]), [5]);
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 5, 6]), [5, 6]);
            // Another choice of the same request.
            assert_eq!(prompt.generated(&[1, 2, 3, 4, 9]), [9]);
        }
    }

    #[test]
    fn common_prefixes() {
        assert_eq!(common_prefix(&[1, 2, 3], &[1, 2, 4, 5]), 2);
        assert_eq!(common_prefix(&[], &[1]), 0);
    }
}
