//! Wire formats of tool calls, as each engine expects them.

use anyhow::Result;
use clap::ValueEnum;
use louver_formats::{Call, Catalog, RenderError, Turn, WireFormat};

/// A wire format that all engines can enforce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolFormat {
    /// `<function=NAME>{..}</function>`, as text.
    #[default]
    #[value(name = "llama3_function")]
    Llama3Function,
    /// JSON in `<tool_call>` tags.
    Qwen3,
    /// Messages on channels, in special tokens.
    Harmony,
}

/// The markers of the calls of one tool.
pub(crate) struct CallMarkers {
    /// What begins a call of any tool.
    pub(crate) trigger: &'static str,
    /// What begins a call of this tool; the trigger first.
    pub(crate) begin: String,
    /// What follows the arguments.
    pub(crate) end: &'static str,
}

impl ToolFormat {
    pub(crate) const ALL: [ToolFormat; 3] =
        [ToolFormat::Llama3Function, ToolFormat::Qwen3, ToolFormat::Harmony];

    /// The name in Louver's catalogue.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ToolFormat::Llama3Function => "llama3_function",
            ToolFormat::Qwen3 => "qwen3",
            ToolFormat::Harmony => "harmony",
        }
    }

    /// The tokenizer of a model family with this format.
    pub(crate) fn tokenizer(self) -> &'static str {
        match self {
            ToolFormat::Llama3Function => "llama3_1",
            ToolFormat::Qwen3 => "qwen3",
            ToolFormat::Harmony => crate::o200k::NAME,
        }
    }

    /// Louver's description of the format.
    pub(crate) fn wire_format(self) -> Result<WireFormat> {
        Ok(Catalog::shipped().get(self.name())?.clone())
    }

    /// The markers of a tool's calls.
    pub(crate) fn markers(self, tool: &str) -> CallMarkers {
        let (trigger, begin, end) = match self {
            ToolFormat::Llama3Function => {
                ("<function=", format!("<function={tool}>"), "</function>")
            }
            ToolFormat::Qwen3 => (
                "<tool_call>",
                format!("<tool_call>\n{{\"name\": \"{tool}\", \"arguments\": "),
                "}\n</tool_call>",
            ),
            ToolFormat::Harmony => (
                "<|channel|>commentary to=",
                format!("<|channel|>commentary to=functions.{tool} <|constrain|>json<|message|>"),
                "<|call|>",
            ),
        };
        CallMarkers { trigger, begin, end }
    }

    /// The format's special tokens, as far as markers of calls and messages consist of them.
    pub(crate) fn special_tokens(self) -> &'static [&'static str] {
        match self {
            ToolFormat::Llama3Function => &[],
            ToolFormat::Qwen3 => &["<tool_call>", "</tool_call>"],
            ToolFormat::Harmony => {
                &["<|channel|>", "<|message|>", "<|constrain|>", "<|start|>", "<|call|>", "<|end|>"]
            }
        }
    }

    /// The text of a turn: a sentence, then calls by name with their arguments.
    pub(crate) fn turn(self, sentence: &str, calls: &[(String, String)]) -> Result<String> {
        let call = |(name, arguments): &(String, String)| Call::new(name, arguments);
        let calls: Vec<Call> = calls.iter().map(call).collect();
        let format = self.wire_format()?;
        let turn = Turn::default().with_text(sentence).with_calls(calls);
        Ok(match format.render(&turn) {
            Err(RenderError::TextBesideCalls) => format.render(&turn.with_text(String::new()))?,
            text => text?,
        })
    }
}
