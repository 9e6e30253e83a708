//! Answers that a structural tag constrains.

use louver::front::structural_tag::{StructuralTag, StructuralTagErrors, StructuralTagOptions};
use louver::limits::Limits;
use louver::spec::json::Json;

/// A structural tag that constrains the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerTag {
    /// The tag.
    pub tag: StructuralTag,
    /// Options of its lowering. [`ToolRequest::compile`](crate::ToolRequest::compile) adds the
    /// special tokens of the engine's vocabulary.
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
    pub(crate) fn request_pointer(&self, pointer: &str) -> String {
        match pointer.strip_prefix("/format/tags/").filter(|_| self.is_older_form) {
            Some(rest) => {
                let rest = rest.replacen("/content/json_schema", "/schema", 1);
                format!("/response_format/structures/{rest}")
            }
            None => format!("/response_format{pointer}"),
        }
    }
}
