//! Turns as a chat template writes them, for every confirmation of a checkpoint: in each message
//! style, each rendered once.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::chat_template::ChatTemplate;
use crate::message_style::MessageStyle;
use crate::turns::{RenderedTurn, TurnInput, TurnRenderer};

/// Turns that a template writes, in the message styles that have been asked for.
pub(crate) struct WrittenTurns<'a> {
    template: &'a ChatTemplate,
    tools: Vec<Value>,
    tokens: &'a [String],
    inputs: Vec<TurnInput>,
    /// The turns that tell styles apart, by index.
    telling: &'a [usize],
    /// The styles so far. `None`: its turns are those of an earlier one.
    styles: RefCell<Vec<Option<Rc<StyledTurns>>>>,
    /// Turns that are not the last of their conversation, by style.
    followed: RefCell<Vec<Rc<StyledTurns>>>,
}

/// The turns in one message style.
pub(crate) struct StyledTurns {
    pub(crate) style: MessageStyle,
    /// The prompt of the model's turn, and what ends a turn of text; or why there are none.
    pub(crate) frame: Result<[String; 2], String>,
    /// The turns in the order of the inputs, or why the template refuses them.
    pub(crate) turns: Vec<Result<RenderedTurn, String>>,
}

impl<'a> WrittenTurns<'a> {
    /// The turns of `inputs`. Styles in which the turns at the indices `telling` are equal are one.
    pub(crate) fn new(
        template: &'a ChatTemplate,
        tools: Vec<Value>,
        tokens: &'a [String],
        inputs: Vec<TurnInput>,
        telling: &'a [usize],
    ) -> WrittenTurns<'a> {
        let (styles, followed) = (RefCell::default(), RefCell::default());
        WrittenTurns { template, tools, tokens, inputs, telling, styles, followed }
    }

    /// The special tokens of the checkpoint.
    pub(crate) fn tokens(&self) -> &'a [String] {
        self.tokens
    }

    /// The chat template.
    pub(crate) fn template(&self) -> &'a ChatTemplate {
        self.template
    }

    /// The turns in each style, the usual first, as far as they differ. Renders them when they are
    /// asked for.
    pub(crate) fn in_each_style(&self) -> impl Iterator<Item = Rc<StyledTurns>> {
        MessageStyle::all().enumerate().filter_map(|(k, style)| {
            let known = self.styles.borrow().get(k).cloned();
            known.unwrap_or_else(|| {
                let found = self.render(style).map(Rc::new);
                self.styles.borrow_mut().push(found.clone());
                found
            })
        })
    }

    /// The turns in a style, each before another question: templates may write the last turn of a
    /// conversation otherwise.
    pub(crate) fn followed(&self, style: MessageStyle) -> Rc<StyledTurns> {
        let known = self.followed.borrow().iter().find(|turns| turns.style == style).cloned();
        known.unwrap_or_else(|| {
            let renderer = self
                .renderer(style)
                .and_then(|renderer| renderer.followed().map_err(|error| error.to_string()));
            let found = Rc::new(self.all(style, &renderer, &[]));
            self.followed.borrow_mut().push(found.clone());
            found
        })
    }

    fn renderer(&self, style: MessageStyle) -> Result<TurnRenderer<'_>, String> {
        let renderer = TurnRenderer::new(self.template, &self.tools, self.tokens, style);
        renderer.map_err(|error| error.to_string())
    }

    /// The turns in a style, if they differ from those in the earlier styles.
    fn render(&self, style: MessageStyle) -> Option<StyledTurns> {
        let renderer = self.renderer(style);
        let earlier: Vec<Rc<StyledTurns>> =
            self.styles.borrow().iter().flatten().cloned().collect();
        let mut same: Vec<&Rc<StyledTurns>> = earlier.iter().collect();
        let mut told = Vec::new();
        for &k in self.telling {
            let turn = self.turn(&renderer, k);
            same.retain(|earlier| earlier.turns[k] == turn);
            told.push((k, turn));
            if same.is_empty() {
                return Some(self.all(style, &renderer, &told));
            }
        }
        None
    }

    /// All turns in a style. `told`: those that are rendered already.
    fn all(
        &self,
        style: MessageStyle,
        renderer: &Result<TurnRenderer<'_>, String>,
        told: &[(usize, Result<RenderedTurn, String>)],
    ) -> StyledTurns {
        let turns = (0..self.inputs.len()).map(|k| match told.iter().find(|(at, _)| *at == k) {
            Some((_, turn)) => turn.clone(),
            None => self.turn(renderer, k),
        });
        let turns = turns.collect();
        let frame = renderer.as_ref().map_err(Clone::clone);
        let frame = frame.map(|turns| [turns.prompt.clone(), turns.text_end().to_owned()]);
        StyledTurns { style, frame, turns }
    }

    fn turn(
        &self,
        renderer: &Result<TurnRenderer<'_>, String>,
        k: usize,
    ) -> Result<RenderedTurn, String> {
        let renderer = renderer.as_ref().map_err(Clone::clone)?;
        renderer.render(&self.inputs[k]).map_err(|error| error.to_string())
    }
}
