//! Turns as a chat template writes them, for every confirmation of a checkpoint: each rendered
//! once, when it is asked for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use serde_json::Value;

use crate::chat_template::ChatTemplate;
use crate::message_style::MessageStyle;
use crate::turns::{Next, RenderedTurn, TurnContext, TurnInput, TurnRenderer};

/// A turn, or why the template refuses it.
type Written = Rc<Result<RenderedTurn, String>>;

/// Turns that a template writes.
pub(crate) struct WrittenTurns<'a> {
    template: &'a ChatTemplate,
    tools: Vec<Value>,
    tokens: &'a [String],
    inputs: Vec<TurnInput>,
    /// The turns that tell styles apart, by index.
    telling: Vec<usize>,
    renderers: Cache<(MessageStyle, TurnContext), Rc<Result<TurnRenderer<'a>, String>>>,
    turns: Cache<(MessageStyle, TurnContext, usize), Written>,
}

/// Values by key.
type Cache<K, V> = RefCell<HashMap<K, V>>;

/// The value of a key, which is made if it is not known. Making it may use the cache.
fn cached<K: Hash + Eq, V: Clone>(cache: &Cache<K, V>, key: K, make: impl FnOnce() -> V) -> V {
    let known = cache.borrow().get(&key).cloned();
    known.unwrap_or_else(|| {
        let made = make();
        cache.borrow_mut().insert(key, made.clone());
        made
    })
}

impl<'a> WrittenTurns<'a> {
    /// The turns of `inputs`. Styles in which the turns at the indices `telling` are equal are one.
    pub(crate) fn new(
        template: &'a ChatTemplate,
        tools: Vec<Value>,
        tokens: &'a [String],
        inputs: Vec<TurnInput>,
        telling: Vec<usize>,
    ) -> WrittenTurns<'a> {
        let (renderers, turns) = (RefCell::default(), RefCell::default());
        WrittenTurns { template, tools, tokens, inputs, telling, renderers, turns }
    }

    /// The special tokens of the checkpoint.
    pub(crate) fn tokens(&self) -> &'a [String] {
        self.tokens
    }

    /// The chat template.
    pub(crate) fn template(&self) -> &'a ChatTemplate {
        self.template
    }

    /// The indices of the turns that tell message styles apart.
    pub(crate) fn telling(&self) -> &[usize] {
        &self.telling
    }

    /// The message styles in which the telling turns differ, the usual first.
    pub(crate) fn styles(&self) -> impl Iterator<Item = MessageStyle> {
        let mut earlier: Vec<MessageStyle> = Vec::new();
        MessageStyle::all().filter(move |style| {
            let turn = |style: &MessageStyle, k| self.turn(*style, k, TurnContext::LAST);
            let mut same = earlier.clone();
            for &k in &self.telling {
                // Most styles differ soon.
                same.retain(|earlier| turn(earlier, k) == turn(style, k));
            }
            earlier.extend(same.is_empty().then_some(*style));
            same.is_empty()
        })
    }

    /// Turn `k` in a style and a context.
    pub(crate) fn turn(&self, style: MessageStyle, k: usize, context: TurnContext) -> Written {
        cached(&self.turns, (style, context, k), || {
            Rc::new(self.render(style, &self.inputs[k], context))
        })
    }

    /// As [`WrittenTurns::turn`], of a turn that is not kept.
    pub(crate) fn render(
        &self,
        style: MessageStyle,
        input: &TurnInput,
        context: TurnContext,
    ) -> Result<RenderedTurn, String> {
        let renderer = self.renderer(style, context);
        let renderer = renderer.as_ref().as_ref().map_err(Clone::clone)?;
        renderer.render(input).map_err(|error| error.to_string())
    }

    /// Whether the template writes text that is given as a list of content parts.
    pub(crate) fn takes_parts(&self) -> bool {
        let renderer = self.renderer(MessageStyle::default(), TurnContext::LAST);
        renderer.as_ref().as_ref().is_ok_and(TurnRenderer::takes_parts)
    }

    fn renderer(
        &self,
        style: MessageStyle,
        context: TurnContext,
    ) -> Rc<Result<TurnRenderer<'a>, String>> {
        cached(&self.renderers, (style, context), || {
            let usual = MessageStyle::default();
            let renderer = match context {
                // A conversation of text is the same in each style.
                TurnContext::LAST if style != usual => self
                    .renderer(usual, context)
                    .as_ref()
                    .clone()
                    .map(|turns| turns.in_style(style)),
                TurnContext { next: Next::Nothing, .. } => {
                    TurnRenderer::new(self.template, &self.tools, self.tokens, style, context)
                        .map_err(|error| error.to_string())
                }
                TurnContext { opening, next } => {
                    let turns = self.renderer(style, TurnContext::after(opening)).as_ref().clone();
                    turns.and_then(|turns| turns.before(next).map_err(|error| error.to_string()))
                }
            };
            Rc::new(renderer)
        })
    }
}
