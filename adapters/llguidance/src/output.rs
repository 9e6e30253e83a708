//! What a constraint reports as it goes on, as JSON.

use serde::Serialize;

use crate::api::StopReason;
use crate::earley::ParserStats;

/// Bytes as text and as hexadecimal digits.
#[derive(Clone, Debug, Serialize)]
pub struct BytesOutput {
    /// The text; what is not UTF-8 is replaced.
    pub str: String,
    /// The bytes.
    pub hex: String,
}

impl From<&[u8]> for BytesOutput {
    fn from(bytes: &[u8]) -> Self {
        BytesOutput {
            str: String::from_utf8_lossy(bytes).into_owned(),
            hex: toktrie::bytes::to_hex_string(bytes),
        }
    }
}

/// A step of a generation.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "object", rename_all = "snake_case")]
pub enum ParserOutput {
    /// A rule with a capture name has ended.
    Capture {
        /// The capture name.
        name: String,
        /// What it derived.
        #[serde(flatten)]
        bytes: BytesOutput,
        /// Always 0.
        log_prob: f64,
    },
    /// The whole text, at the end.
    FinalText {
        /// The text.
        #[serde(flatten)]
        bytes: BytesOutput,
        /// Why it ends.
        stop_reason: StopReason,
    },
    /// Text that was added.
    Text {
        /// The text.
        #[serde(flatten)]
        bytes: BytesOutput,
        /// Always 0.
        log_prob: f64,
        /// Tokens of the text.
        num_tokens: usize,
        /// Whether the model has chosen it.
        is_generated: bool,
        /// Counters of the parser.
        stats: ParserStats,
    },
}
