//! Assistant turns as a chat template writes them: the text between the prompt and the end of the
//! conversation.

use std::rc::Rc;

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
    /// The ids of the calls. A call without one has that of the message style.
    pub(crate) ids: Vec<String>,
}

/// An id with all characters that ids may have.
pub(crate) const LONG_ID: &str = "call_q7-Xw0Lp2VnB4tRz";

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

    pub(crate) fn with_ids(self, ids: Vec<String>) -> TurnInput {
        TurnInput { ids, ..self }
    }

    /// The id of call `k`, of a tool with this name.
    fn id(&self, style: MessageStyle, k: usize, name: &str) -> String {
        self.ids.get(k).cloned().unwrap_or_else(|| style.id(k, name))
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
                json!({"type": "function", "id": self.id(style, k, name), "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        openai_message(&message, style)
    }
}

/// What stands before and after a turn in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TurnContext {
    pub(crate) opening: Opening,
    pub(crate) next: Next,
}

/// What stands before a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Opening {
    /// A question.
    Question,
    /// A question, in a request without tools.
    WithoutTools,
    /// The result of a call.
    Result,
}

/// What stands after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Next {
    Nothing,
    Question,
    /// The result of a call.
    Result,
}

impl TurnContext {
    /// At the end, after a question.
    pub(crate) const LAST: TurnContext = TurnContext::after(Opening::Question);

    /// At the end.
    pub(crate) const fn after(opening: Opening) -> TurnContext {
        TurnContext { opening, next: Next::Nothing }
    }

    /// The same before something.
    pub(crate) const fn before(self, next: Next) -> TurnContext {
        TurnContext { next, ..self }
    }
}

/// What is around the turns of one context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnSurroundings {
    /// The prompt of the model's turn.
    pub(crate) prompt: String,
    /// What ends a turn of text.
    pub(crate) text_end: String,
}

/// A turn as the template writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RenderedTurn {
    pub(crate) surroundings: Rc<TurnSurroundings>,
    /// The conversation before the turn, with the header of the turn.
    pub(crate) prompt: String,
    /// The turn, with its end.
    pub(crate) wire: String,
}

/// Renders assistant turns.
#[derive(Clone, Debug)]
pub(crate) struct TurnRenderer<'a> {
    template: &'a ChatTemplate,
    input: TemplateInput,
    tokens: &'a [String],
    pub(crate) style: MessageStyle,
    context: TurnContext,
    pub(crate) surroundings: Rc<TurnSurroundings>,
    /// The bytes after the question or the result that stand before every turn. What follows in
    /// the prompt belongs to a turn: the begin of its reasoning.
    header: usize,
    /// Whether the template opens the model's next turn even if it is not asked to.
    always_opens: bool,
    /// What opens the model's turn. What stands between a result and it may depend on whether the
    /// turn is there.
    opener: String,
}

/// The question before each turn.
const QUESTION: &str = "How far is it to Zqstadt?";

/// The question after a turn that another one follows.
const FOLLOWING: &str = "And to Zqdorf?";

/// The result of a call.
pub(crate) const RESULT: &str = "Zqresult domik.";

/// Why a template does not show text.
pub(crate) const TAKES_PARTS: &str = "the template takes content as a list of parts only";

/// A text that no template contains.
pub(crate) const TEXT: &str = "Zqtext vakol.";

impl<'a> TurnRenderer<'a> {
    pub(crate) fn new(
        template: &'a ChatTemplate,
        tools: &[Value],
        tokens: &'a [String],
        style: MessageStyle,
        context: TurnContext,
    ) -> Result<TurnRenderer<'a>, TemplateError> {
        let tools = if context.opening == Opening::WithoutTools { &[] } else { tools };
        let mut renderer = TurnRenderer {
            template,
            input: TemplateInput { tools: tools.to_vec(), ..TemplateInput::default() },
            tokens,
            style,
            context,
            surroundings: Rc::default(),
            header: 0,
            always_opens: false,
            opener: String::new(),
        };
        let prompt = renderer.conversation(None, true)?;
        if context.opening == Opening::Result && !prompt.contains(RESULT) {
            let problem = "it does not write the results of tools";
            return Err(TemplateError::Render(problem.to_owned()));
        }
        let closed = renderer.conversation(None, false)?;
        renderer.always_opens = closed == prompt;
        renderer.opener = match (context.opening, prompt.strip_prefix(&*closed)) {
            (Opening::Result, Some("") | None) => {
                // What this prompt and that after a question have in common.
                let question = TurnRenderer { context: TurnContext::LAST, ..renderer.clone() };
                let question = question.conversation(None, true)?;
                prompt[prompt.len() - common_end(&question, &prompt, tokens)..].to_owned()
            }
            (Opening::Result, Some(opener)) => opener.to_owned(),
            _ => renderer.in_turn(&prompt).to_owned(),
        };
        renderer.surroundings = Rc::new(TurnSurroundings { prompt, text_end: String::new() });
        renderer.measured()
    }

    /// The same for turns in another style, after a question.
    pub(crate) fn in_style(self, style: MessageStyle) -> TurnRenderer<'a> {
        TurnRenderer { style, ..self }
    }

    /// The same for turns before another question, which belongs to what ends a turn, or before
    /// the result of a call.
    pub(crate) fn before(self, next: Next) -> Result<TurnRenderer<'a>, TemplateError> {
        let renderer = TurnRenderer { context: self.context.before(next), ..self };
        if next == Next::Question { renderer.measured() } else { Ok(renderer) }
    }

    /// Finds the header of turns and the end of turns of text.
    fn measured(mut self) -> Result<TurnRenderer<'a>, TemplateError> {
        let text = self.conversation(Some(&TurnInput::text(TEXT)), false)?;
        let prompt = self.in_turn(&self.surroundings.prompt);
        self.header = common_start(prompt, self.in_turn(&text), self.tokens);
        let turn = self.turn_in(text);
        let text_end = turn.wire.split_once(TEXT).map_or("", |(_, end)| end).to_owned();
        self.surroundings =
            Rc::new(TurnSurroundings { prompt: self.surroundings.prompt.clone(), text_end });
        Ok(self)
    }

    /// Whether the template writes text that is given as a list of content parts.
    pub(crate) fn takes_parts(&self) -> bool {
        let messages = [("user", QUESTION), ("assistant", TEXT)]
            .map(|(role, text)| json!({"role": role, "content": [{"type": "text", "text": text}]}));
        let whole = self.template.render_conversation(&messages, &self.input, false);
        whole.is_ok_and(|whole| whole.contains(TEXT))
    }

    /// What follows the question or the result before the turn; all, if the template writes
    /// neither.
    fn in_turn<'t>(&self, text: &'t str) -> &'t str {
        let anchor = if self.context.opening == Opening::Result { RESULT } else { QUESTION };
        text.rfind(anchor).map_or(text, |at| &text[at + anchor.len()..])
    }

    fn conversation(
        &self,
        turn: Option<&TurnInput>,
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        let (name, style) = ("get-time2", self.style);
        let user = |text: &str| json!({"role": "user", "content": text});
        let result_of = |id: String| {
            json!({"role": "tool", "name": name, "tool_call_id": id,
                "content": RESULT})
        };
        let mut messages = vec![user(QUESTION)];
        if self.context.opening == Opening::Result {
            let call = TurnInput::calls(vec![(name, json!({"zone": "UTC"}))]);
            messages.extend([call.message(style), result_of(style.id(0, name))]);
        }
        messages.extend(turn.map(|turn| turn.message(style)));
        match (self.context.next, turn) {
            (Next::Question, Some(_)) => messages.push(user(FOLLOWING)),
            (Next::Result, Some(turn)) => messages.push(result_of(turn.id(style, 0, name))),
            _ => {}
        }
        self.template.render_conversation(&messages, &self.input, add_generation_prompt)
    }

    /// The turn as the template writes it in its context.
    pub(crate) fn render(&self, turn: &TurnInput) -> Result<RenderedTurn, TemplateError> {
        Ok(self.turn_in(self.conversation(Some(turn), false)?))
    }

    /// The turn in a conversation.
    fn turn_in(&self, mut whole: String) -> RenderedTurn {
        if self.always_opens {
            let next = common_end(&self.opener, self.in_turn(&whole), self.tokens);
            whole.truncate(whole.len() - next);
        }
        // What stands before the question may depend on what follows it.
        let (start, turn) = (self.in_turn(&self.surroundings.prompt), self.in_turn(&whole));
        let is_found = self.context.opening == Opening::Result && !self.opener.is_empty();
        let opener = turn.find(&self.opener).filter(|_| is_found && !self.always_opens);
        let before = match opener {
            _ if turn.starts_with(start) => start.len(),
            Some(at) => at + self.opener.len(),
            // The turn lacks what the prompt opens.
            None => common_start(&start[..self.header], turn, self.tokens),
        };
        let at = whole.len() - turn.len() + before;
        let (prompt, wire) = whole.split_at(at);
        RenderedTurn {
            surroundings: self.surroundings.clone(),
            prompt: prompt.to_owned(),
            wire: wire.to_owned(),
        }
    }
}
