//! Tests of detection, probing and confirmation. The templates are data.

mod checkpoints;
mod families;
mod probing;
mod real;
mod response_templates;
