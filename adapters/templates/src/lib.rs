//! Wire formats from what a checkpoint ships.
//!
//! ```text
//! chat template -+-- probe ------------------+--> WireFormat -- confirm --> Resolved
//! response_template -- lower ----------------+        ^
//! tokens, configuration -- Catalog::detect --+        |
//!                        turns that the chat template renders
//! ```
//!
//! | module | content |
//! |---|---|
//! | `chat_template` | rendering of prompts with the model's own chat template |
//! | `message_style` | how templates want the messages of earlier calls |
//! | `units` | tags, special tokens and characters of wire text |
//! | `turns` | an assistant turn as a chat template writes it |
//! | `written` | the turns of a confirmation, in each message style |
//! | `confirm` | whether a wire format accepts what a template writes and reads it back |
//! | `probe` | a wire format from renderings alone |
//! | `response_template` | a wire format from a checkpoint's `response_template` |
//! | `checkpoint` | the files of a checkpoint |
//! | `notes` | what derived formats forbid or lack |
//! | `resolve` | the sources in their order |
//!
//! ```
//! use louver_formats::Catalog;
//! use louver_templates::{ChatTemplate, Checkpoint, FormatSource, resolve};
//!
//! // A template that no family has.
//! let source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\
//!     {%- for call in m.tool_calls or [] -%}\
//!         <call>{{ call.function | tojson }}</call>\
//!     {%- endfor -%}<|end|>{% endfor %}\
//!     {%- if add_generation_prompt %}<|assistant|>{% endif %}";
//! let template = ChatTemplate::new(source, [None, Some("<|end|>".to_owned()), None]);
//! let checkpoint = Checkpoint::default().with_template(template);
//! let found = resolve(&checkpoint, &Catalog::shipped(), "mine")?;
//! assert!(matches!(found.source, FormatSource::ChatTemplate) && found.is_confirmed());
//! assert_eq!(found.format.call.begin.map(|begin| begin.write()), Some("<call>".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chat_template;
mod checkpoint;
mod confirm;
mod message_style;
mod notes;
mod probe;
mod resolve;
mod response_template;
mod turns;
mod units;
mod written;

pub use chat_template::{
    ChatTemplate, SHIPPED_TEMPLATES, TemplateError, TemplateInput, TemplateSources,
    conform_call_ids, join_text_parts, openai_message, parse_call_arguments, shipped_template,
};
pub use checkpoint::{Checkpoint, CheckpointError, read_json};
pub use confirm::{CaseOutcome, Confirmation, Outcome, confirm};
pub use message_style::MessageStyle;
pub use probe::{FIELD_SOURCES, ProbeError, Probed, probe};
pub use resolve::{FamilyError, FormatSource, ResolveError, Resolved, SourceError, resolve};
pub use response_template::{ResponseTemplate, ResponseTemplateError, ResponseTemplateWarning};
