//! Token counts.

use std::ops::Add;

use louver_mistralrs::Generation;

/// Token counts of a response, or of a part of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) generated: usize,
    /// Those of the reasoning, among the generated ones.
    pub(crate) reasoning: usize,
}

impl Usage {
    /// The counts of one generation with its prompt.
    pub(crate) fn of_generation(generation: &Generation) -> Usage {
        let mut usage = Usage { prompt: generation.prompt_tokens, ..Usage::default() };
        usage.add_choice(generation);
        usage
    }

    /// Adds the counts of one of several choices, which share a prompt.
    pub(crate) fn add_choice(&mut self, generation: &Generation) {
        self.generated += generation.tokens.len();
        self.reasoning += generation.reasoning_tokens;
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            prompt: self.prompt + other.prompt,
            generated: self.generated + other.generated,
            reasoning: self.reasoning + other.reasoning,
        }
    }
}
