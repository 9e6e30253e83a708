//! Tests of detection, probing and confirmation. The templates are data.

mod probing;
mod response_templates;
