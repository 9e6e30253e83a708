//! Parses the options of a rule, `[max_tokens=3, lazy]`.

use super::arguments::{Argument, ArgumentKind, ArgumentValue};
use super::ast::{Name, RuleOptions};
use super::cursor::Reported;
use super::parse::Parser;
use crate::front::diagnostic::{Diagnostic, UniqueKeys};
use crate::ids::Label;
use crate::ir::{Budget, BudgetPolicy};

/// Options without effect, which printed grammars of other engines contain. They describe bytes
/// that a capture excludes; here, a capture is always the text that its rule derives.
const WITHOUT_EFFECT: [&str; 5] = [
    "capture_hidden_suffix_bytes",
    "capture_hidden_stop_bytes",
    "capture_hidden_body_rule_id",
    "capture_hidden_marker_rule_id",
    "stop_capture",
];

/// The rule options.
const OPTIONS: [&str; 13] = [
    "capture",
    "element",
    "hidden",
    "label",
    "lazy",
    "max_chars",
    "max_tokens",
    "unique_key",
    "scope",
    "on_exhausted",
    "start",
    "temperature",
    "unlikely",
];

impl Parser<'_> {
    /// Parses the options of a rule after their `[`.
    pub(super) fn rule_options(&mut self) -> Result<RuleOptions, Reported> {
        let (mut out, mut keys, mut spent) = (RuleOptions::default(), UniqueKeys::default(), None);
        let mut budget = Budget { tokens: None, chars: None, on_exhausted: BudgetPolicy::Finish };
        for argument in self.arguments("]")? {
            let (key, value) = match argument {
                Argument { key: Some(key), value } => (key, Some(value)),
                Argument {
                    key: None,
                    value: ArgumentValue { kind: ArgumentKind::Word(text), span },
                } => (Name { text, span }, None),
                Argument { value, .. } => return self.unexpected_value(&value, "an option's name"),
            };
            self.add_key(&mut keys, &key)?;
            match (&*key.text, value) {
                ("max_tokens", Some(value)) => budget.tokens = Some(self.integer(&value)?),
                ("max_chars", Some(value)) => budget.chars = Some(self.integer(&value)?),
                ("capture", None) => out.capture_by_rule_name = true,
                ("capture", Some(value)) => out.attributes.capture = Some(self.text(value)?),
                ("temperature", Some(value)) => {
                    out.attributes.temperature = Some(self.temperature(&value)?)
                }
                ("hidden", None) => out.attributes.hidden = true,
                ("scope", None) => out.attributes.scope = true,
                ("element", None) => out.attributes.element = true,
                ("unique_key", None) => out.attributes.unique_key = true,
                ("unlikely", None) => out.attributes.unlikely = true,
                ("lazy", None) => out.lazy = Some(key.span),
                ("start", None) => out.start = Some(key.span),
                ("label", Some(value)) => {
                    out.attributes.label = Some(Label::from_raw(self.integer(&value)?))
                }
                ("on_exhausted", Some(ArgumentValue { kind: ArgumentKind::Word(word), .. }))
                    if word == "cut" =>
                {
                    budget.on_exhausted = BudgetPolicy::Cut;
                    spent = Some(key.span);
                }
                ("on_exhausted", Some(value)) => return self.unexpected_value(&value, "`cut`"),
                (known, Some(_)) if WITHOUT_EFFECT.contains(&known) => {
                    let message = format!("the option `{known}` has no effect");
                    self.cursor.diagnostics.push(Diagnostic::warning(key.span, message));
                }
                _ => return self.unknown_option(key),
            }
        }
        if budget.tokens.is_some() || budget.chars.is_some() {
            out.attributes.budget = Some(budget);
        } else if let Some(span) = spent {
            let message = "`on_exhausted` without `max_tokens` or `max_chars`";
            return self.cursor.error(Diagnostic::error(span, message));
        }
        Ok(out)
    }

    /// The value as a temperature.
    fn temperature(&mut self, value: &ArgumentValue) -> Result<f32, Reported> {
        if let ArgumentKind::Word(word) = &value.kind
            && let Ok(temperature) = word.parse::<f32>()
            && temperature.is_finite()
            && temperature >= 0.0
        {
            return Ok(temperature);
        }
        self.unexpected_value(value, "a number")
    }

    /// Reports an option that does not exist, or is written otherwise.
    fn unknown_option<T>(&mut self, key: Name) -> Result<T, Reported> {
        let name = &*key.text;
        if OPTIONS.contains(&name) {
            let message = format!("the option `{name}` is written otherwise");
            let help = "as in `name[max_tokens=3, capture=\"x\", lazy] ::= ...`";
            return self.cursor.error(Diagnostic::error(key.span, message).help(help));
        }
        let help = self.cursor.diagnostics.suggest(name, OPTIONS);
        let message = format!("there is no option `{name}`");
        self.cursor.error(Diagnostic { help, ..Diagnostic::error(key.span, message) })
    }
}
