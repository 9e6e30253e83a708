//! Grammar algebra: union, concatenation and repetition.

use super::{Expr, Grammar, GrammarBuilder};

impl Grammar {
    /// A grammar with a new start rule; `body` gets calls of the start rules of `parts`.
    fn with_start_rule(parts: &[&Grammar], body: impl FnOnce(Vec<Expr>) -> Expr) -> Grammar {
        let mut builder = GrammarBuilder::new();
        let start = builder.declare("root");
        let parts = parts.iter().map(|part| Expr::Ref(builder.import(part))).collect();
        builder.define(start, body(parts));
        builder.into_grammar(start)
    }

    /// Union of the languages; empty without parts. Cost: their size.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use louver::front::regex;
    /// use louver::{Compiled, Grammar, Limits, Recognizer, RegexOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = Limits::default();
    /// let lower = |pattern| regex::lower(pattern, &RegexOptions::default(), &limits);
    /// let union = Grammar::union(&[&lower("[0-9]+")?, &lower("none")?]);
    /// let mut recognizer = Recognizer::new(Arc::new(Compiled::new(union, &limits)?));
    /// recognizer.push(b"none")?;
    /// assert!(recognizer.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn union(parts: &[&Grammar]) -> Grammar {
        Grammar::with_start_rule(parts, Expr::alt)
    }

    /// Concatenation of the languages; the empty text without parts. Cost: their size.
    pub fn concat(parts: &[&Grammar]) -> Grammar {
        Grammar::with_start_rule(parts, Expr::seq)
    }

    /// Kleene star. Cost: the grammar's size.
    pub fn star(&self) -> Grammar {
        self.repeat(0, None)
    }

    /// Union with the empty text. Cost: the grammar's size.
    pub fn optional(&self) -> Grammar {
        self.repeat(0, Some(1))
    }

    /// Repetition, `min..=max` times; empty if `min > max`. Cost: the grammar's size, independent
    /// of the bounds.
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Grammar {
        Grammar::with_start_rule(&[self], |mut parts| Expr::repeat(parts.remove(0), min, max))
    }
}
