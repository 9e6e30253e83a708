//! The format of the response that a request asks for.

use louver::front::structural_tag::{StructuralTag, StructuralTagErrors, StructuralTagOptions};
use louver::limits::Limits;
use louver::spec::json::Json;

/// The format of the response: of the text for the user, in place of free text.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseFormat {
    /// JSON that a schema allows. If tools may be called, the turn is calls without text or the
    /// response; if a call is forced, calls without text.
    Schema(Json),
    /// Text that a structural tag allows. It excludes tools that may be called.
    StructuralTag(Box<ResponseTag>),
}

/// A structural tag that constrains the response.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTag {
    /// The tag.
    pub tag: StructuralTag,
    /// Options of its lowering. [`ToolRequest::compile`](crate::ToolRequest::compile) adds the
    /// special tokens of the engine's vocabulary.
    pub options: StructuralTagOptions,
    /// Whether the request has the older form, with `structures`.
    is_older_form: bool,
}

impl From<StructuralTag> for ResponseTag {
    fn from(tag: StructuralTag) -> Self {
        ResponseTag { tag, options: StructuralTagOptions::default(), is_older_form: false }
    }
}

impl ResponseTag {
    /// Parses a request's `response_format` of type `structural_tag`. Errors have pointers into the
    /// request.
    pub(crate) fn parse(body: &Json, limits: &Limits) -> Result<ResponseTag, StructuralTagErrors> {
        let tag = StructuralTag::from_response_format(body, limits)?;
        let is_older_form = body.pointer("/response_format/structures").is_some();
        Ok(ResponseTag { is_older_form, ..ResponseTag::from(tag) })
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
