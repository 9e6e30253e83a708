//! Thompson's construction of sequences, alternatives and repeats, for any kind of expression.
//!
//! Source: Thompson, "Regular Expression Search Algorithm", Communications of the ACM 11(6), 1968.

/// Builds an automaton from expressions of type `X`. Each construct is appended to a state, and
/// returns its last state.
pub(crate) trait Thompson<X> {
    /// Why a state cannot be added.
    type Error;

    /// Number of states so far.
    fn states(&self) -> usize;

    /// Adds a state.
    fn state(&mut self) -> Result<u32, Self::Error>;

    /// Adds an epsilon edge.
    fn epsilon(&mut self, from: u32, to: u32);

    /// Appends an expression.
    fn append(&mut self, from: u32, expr: &X) -> Result<u32, Self::Error>;

    /// Appends expressions one after the other.
    fn append_sequence(&mut self, from: u32, parts: &[X]) -> Result<u32, Self::Error> {
        parts.iter().try_fold(from, |at, part| self.append(at, part))
    }

    /// Appends alternatives.
    fn append_alternatives(&mut self, from: u32, parts: &[X]) -> Result<u32, Self::Error> {
        let end = self.state()?;
        for part in parts {
            let begin = self.state()?;
            self.epsilon(from, begin);
            let to = self.append(begin, part)?;
            self.epsilon(to, end);
        }
        Ok(end)
    }

    /// Appends `min..=max` copies of an expression.
    fn append_repeat(
        &mut self,
        from: u32,
        body: &X,
        min: u32,
        max: Option<u32>,
    ) -> Result<u32, Self::Error> {
        let mut at = from;
        for _ in 0..min {
            let before = self.states();
            at = self.append(at, body)?;
            if self.states() == before {
                break; // The body is empty.
            }
        }
        let end = self.state()?;
        self.epsilon(at, end);
        let Some(max) = max else {
            // The loop has states of its own, so that nothing before it can be re-entered through
            // it.
            let begin = self.state()?;
            self.epsilon(end, begin);
            let to = self.append(begin, body)?;
            self.epsilon(to, end);
            return Ok(end);
        };
        for _ in min..max {
            let begin = self.state()?;
            self.epsilon(at, begin);
            at = self.append(begin, body)?;
            self.epsilon(at, end);
        }
        Ok(end)
    }
}
