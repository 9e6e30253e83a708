//! Answers that a structural tag constrains.

use louver::front::structural_tag::{
    StructuralTag, StructuralTagError, StructuralTagErrors, StructuralTagOptions,
};
use louver::ids::RuleId;
use louver::limits::Limits;
use louver::spec::json::Json;

use crate::lower::Lowering;

/// A structural tag that constrains the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerTag {
    /// The tag.
    pub tag: StructuralTag,
    /// Options of its lowering. [`ToolRequest::apply_engine`](crate::ToolRequest::apply_engine)
    /// adds the special tokens of a vocabulary.
    pub options: StructuralTagOptions,
    /// Whether the request has the older form, with `structures`.
    is_older_form: bool,
}

impl From<StructuralTag> for AnswerTag {
    fn from(tag: StructuralTag) -> Self {
        AnswerTag { tag, options: StructuralTagOptions::default(), is_older_form: false }
    }
}

impl AnswerTag {
    /// Parses a request's `response_format` of type `structural_tag`. Errors have pointers into the
    /// request.
    pub(crate) fn parse(body: &Json, limits: &Limits) -> Result<AnswerTag, StructuralTagErrors> {
        let tag = StructuralTag::from_response_format(body, limits)?;
        let is_older_form = body.pointer("/response_format/structures").is_some();
        Ok(AnswerTag { is_older_form, ..AnswerTag::from(tag) })
    }

    /// The pointer into the request for a pointer into the tag's document.
    fn request_pointer(&self, pointer: &str) -> String {
        match pointer.strip_prefix("/format/tags/").filter(|_| self.is_older_form) {
            Some(rest) => {
                let rest = rest.replacen("/content/json_schema", "/schema", 1);
                format!("/response_format/structures/{rest}")
            }
            None => format!("/response_format{pointer}"),
        }
    }
}

impl Lowering<'_> {
    /// The rule of the texts that the tag allows.
    pub(crate) fn answer(&mut self, answer: &AnswerTag) -> Option<RuleId> {
        match answer.tag.lower(&answer.options, &self.request.limits) {
            Ok(lowered) => {
                let mut grammar = lowered.grammar;
                // Labels are those of `Role`, so that the tag must have none.
                grammar.rules.iter_mut().for_each(|rule| rule.attributes.label = None);
                Some(self.builder.import(&grammar))
            }
            Err(StructuralTagErrors(errors)) => {
                let rebase = |e: StructuralTagError| StructuralTagError {
                    pointer: answer.request_pointer(&e.pointer),
                    ..e
                };
                let errors = errors.into_iter().map(rebase).collect();
                self.findings.errors.tag = Some(StructuralTagErrors(errors));
                None
            }
        }
    }
}
