//! Assistant turns as a chat template writes them: the text between the prompt and the end of the
//! conversation.

use serde_json::{Value, json};

use crate::chat_template::{ChatTemplate, TemplateError, TemplateInput, openai_message};
use crate::message_style::MessageStyle;
use crate::units::{common_end, common_start};

/// The content of an assistant's turn, for a template to write.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnInput {
    pub(crate) text: &'static str,
    pub(crate) reasoning: &'static str,
    /// Names and arguments.
    pub(crate) calls: Vec<(&'static str, Value)>,
}

impl TurnInput {
    pub(crate) fn text(text: &'static str) -> TurnInput {
        TurnInput { text, ..TurnInput::default() }
    }

    pub(crate) fn calls(calls: Vec<(&'static str, Value)>) -> TurnInput {
        TurnInput { calls, ..TurnInput::default() }
    }

    pub(crate) fn with_text(self, text: &'static str) -> TurnInput {
        TurnInput { text, ..self }
    }

    pub(crate) fn with_reasoning(self, reasoning: &'static str) -> TurnInput {
        TurnInput { reasoning, ..self }
    }

    fn message(&self, style: MessageStyle) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.reasoning.is_empty() {
            // The names of different templates. None writes more than one of them.
            for key in ["reasoning_content", "reasoning", "thinking"] {
                message[key] = self.reasoning.into();
            }
        }
        if !self.calls.is_empty() {
            let calls = self.calls.iter().enumerate().map(|(k, (name, arguments))| {
                let function = json!({"name": name, "arguments": arguments});
                json!({"type": "function", "id": style.id(k, name), "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        openai_message(&message, style)
    }
}

/// A turn as the template writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RenderedTurn {
    /// The conversation before the turn, with the header of the turn.
    pub(crate) prompt: String,
    /// The turn, with its end.
    pub(crate) wire: String,
}

/// Renders assistant turns after one question.
#[derive(Debug)]
pub(crate) struct TurnRenderer<'a> {
    template: &'a ChatTemplate,
    input: TemplateInput,
    tokens: &'a [String],
    pub(crate) style: MessageStyle,
    /// The prompt of the model's turn.
    pub(crate) prompt: String,
    /// The bytes after the question that stand before every turn. What follows in `prompt` belongs
    /// to a turn: the begin of its reasoning.
    header: usize,
    /// Whether the template opens the model's next turn even if it is not asked to.
    always_opens: bool,
    /// What ends a turn of text.
    text_end: String,
    /// Whether another question follows each turn.
    is_followed: bool,
}

/// The question before each turn.
const QUESTION: &str = "How far is it to Zqstadt?";

/// The question after a turn that another one follows.
const FOLLOWING: &str = "And to Zqdorf?";

/// What follows the question; all, if the template does not write it.
fn after_question(text: &str) -> &str {
    text.rfind(QUESTION).map_or(text, |at| &text[at + QUESTION.len()..])
}

/// A text that no template contains.
pub(crate) const TEXT: &str = "Zqtext vakol.";

impl<'a> TurnRenderer<'a> {
    pub(crate) fn new(
        template: &'a ChatTemplate,
        tools: &[Value],
        tokens: &'a [String],
        style: MessageStyle,
    ) -> Result<TurnRenderer<'a>, TemplateError> {
        let mut renderer = TurnRenderer {
            template,
            input: TemplateInput { tools: tools.to_vec(), ..TemplateInput::default() },
            tokens,
            style,
            prompt: String::new(),
            header: 0,
            always_opens: false,
            text_end: String::new(),
            is_followed: false,
        };
        renderer.prompt = renderer.conversation(None, true)?;
        renderer.always_opens = renderer.conversation(None, false)? == renderer.prompt;
        renderer.measured()
    }

    /// The same for turns that another question follows. It belongs to what ends a turn.
    pub(crate) fn followed(self) -> Result<TurnRenderer<'a>, TemplateError> {
        TurnRenderer { is_followed: true, ..self }.measured()
    }

    /// Finds the header of turns and the end of turns of text.
    fn measured(mut self) -> Result<TurnRenderer<'a>, TemplateError> {
        let text = self.conversation(Some(&TurnInput::text(TEXT)), false)?;
        let prompt = after_question(&self.prompt);
        self.header = common_start(prompt, after_question(&text), self.tokens);
        let turn = self.turn_in(text);
        self.text_end = turn.wire.split_once(TEXT).map_or("", |(_, end)| end).to_owned();
        Ok(self)
    }

    /// What ends a turn of text.
    pub(crate) fn text_end(&self) -> &str {
        &self.text_end
    }

    fn conversation(
        &self,
        turn: Option<&TurnInput>,
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        let mut messages = vec![json!({"role": "user", "content": QUESTION})];
        messages.extend(turn.map(|turn| turn.message(self.style)));
        if turn.is_some() && self.is_followed {
            messages.push(json!({"role": "user", "content": FOLLOWING}));
        }
        self.template.render_conversation(&messages, &self.input, add_generation_prompt)
    }

    /// The turn as the template writes it at the end of a conversation, or before another question.
    pub(crate) fn render(&self, turn: &TurnInput) -> Result<RenderedTurn, TemplateError> {
        Ok(self.turn_in(self.conversation(Some(turn), false)?))
    }

    /// The turn in a conversation.
    fn turn_in(&self, mut whole: String) -> RenderedTurn {
        if self.always_opens {
            let (prompt, turn) = (after_question(&self.prompt), after_question(&whole));
            whole.truncate(whole.len() - common_end(prompt, turn, self.tokens));
        }
        // What stands before the question may depend on what follows it.
        let (start, turn) = (after_question(&self.prompt), after_question(&whole));
        let before = match turn.starts_with(start) {
            true => start.len(),
            // The turn lacks what the prompt opens.
            false => common_start(&start[..self.header], turn, self.tokens),
        };
        let at = whole.len() - turn.len() + before;
        let (prompt, wire) = whole.split_at(at);
        RenderedTurn { prompt: prompt.to_owned(), wire: wire.to_owned() }
    }
}
