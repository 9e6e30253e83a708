//! Responses that a structural tag constrains, as grammar.

use louver::front::DocumentWarning;
use louver::front::structural_tag::{LoweredTag, StructuralTagError, StructuralTagErrors};
use louver::ids::RuleId;

use super::Lowering;
use crate::request::ResponseTag;

impl Lowering<'_> {
    /// The rule of the texts that the tag allows.
    pub(crate) fn response_tag(&mut self, tag: &ResponseTag) -> Option<RuleId> {
        match tag.tag.lower(&tag.options, &self.request.limits) {
            Ok(LoweredTag { mut grammar, warnings }) => {
                let warnings = warnings.into_iter().map(|warning| DocumentWarning {
                    pointer: tag.request_pointer(&warning.pointer),
                    ..warning
                });
                self.findings.warnings.extend(warnings.map(Into::into));
                // Labels are those of `SpanPhase`, so that the tag must have none.
                grammar.rules.iter_mut().for_each(|rule| rule.attributes.label = None);
                Some(self.builder.import(&grammar))
            }
            Err(StructuralTagErrors(errors)) => {
                let rebase = |e: StructuralTagError| StructuralTagError {
                    pointer: tag.request_pointer(&e.pointer),
                    ..e
                };
                self.findings.errors.tag.extend(errors.into_iter().map(rebase));
                None
            }
        }
    }
}
