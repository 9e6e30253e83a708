//! Answers that obey a structural tag.

use louver::front::structural_tag::{
    StructuralTag, StructuralTagError, StructuralTagErrors, StructuralTagOptions,
};
use louver::ids::RuleId;
use louver::limits::Limits;
use louver::spec::json::Json;

use crate::lower::Lowering;

/// A structural tag that the answer obeys.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerTag {
    /// The tag.
    pub tag: StructuralTag,
    /// How it is lowered. [`ToolRequest::settle`](crate::ToolRequest::settle) adds the special tokens of a vocabulary.
    pub options: StructuralTagOptions,
    /// The request has `structures`, the older form.
    older: bool,
}

impl From<StructuralTag> for AnswerTag {
    fn from(tag: StructuralTag) -> Self {
        AnswerTag { tag, options: StructuralTagOptions::default(), older: false }
    }
}

impl AnswerTag {
    /// Reads a request's `response_format` of type `structural_tag`. Pointers of errors are into the request.
    pub(crate) fn parse(body: &Json, limits: &Limits) -> Result<AnswerTag, StructuralTagErrors> {
        let tag = StructuralTag::from_response_format(body, limits)?;
        let older = body.pointer("/response_format/structures").is_some();
        Ok(AnswerTag { older, ..AnswerTag::from(tag) })
    }

    /// A place in the document, in the request.
    fn pointer(&self, pointer: &str) -> String {
        match pointer.strip_prefix("/format/tags/").filter(|_| self.older) {
            Some(rest) => {
                format!(
                    "/response_format/structures/{}",
                    rest.replacen("/content/json_schema", "/schema", 1)
                )
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
                // Labels are the plan's.
                grammar.rules.iter_mut().for_each(|rule| rule.attributes.label = None);
                Some(self.builder.import(&grammar))
            }
            Err(StructuralTagErrors(errors)) => {
                let rebase = |e: StructuralTagError| StructuralTagError {
                    pointer: answer.pointer(&e.pointer),
                    ..e
                };
                self.parts.tag =
                    Some(StructuralTagErrors(errors.into_iter().map(rebase).collect()));
                None
            }
        }
    }
}
