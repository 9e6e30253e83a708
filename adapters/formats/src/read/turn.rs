//! A whole turn: the sum of the extractor's events, and the input of the renderer.

use louver::with_methods;
use serde::{Deserialize, Serialize};

use super::events::{Cut, Event};
use crate::request::CallKind;

/// The content of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Turn {
    /// Text for the user, or the response that `response_format` asks for.
    pub text: String,
    /// Reasoning.
    pub reasoning: String,
    /// Complete calls.
    pub calls: Vec<Call>,
    /// Where the generation was cut off, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Incomplete>,
}

with_methods!(Turn {
    with_text: text = impl Into<String>,
    with_reasoning: reasoning = impl Into<String>,
    with_calls: calls = Vec<Call>,
    with_incomplete: incomplete = impl Into<Option<Incomplete>>,
});

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Call {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments of a function as JSON text, or the input of a custom tool.
    pub arguments: String,
    /// The kind of the tool.
    #[serde(default, skip_serializing_if = "CallKind::is_function")]
    pub kind: CallKind,
}

impl Call {
    /// A call of a function, without an id. The arguments are JSON text.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Call {
        let (id, kind) = (String::new(), CallKind::Function);
        Call { id, name: name.into(), arguments: arguments.into(), kind }
    }
}

with_methods!(Call {
    with_id: id = impl Into<String>,
    with_kind: kind = CallKind,
});

/// Where a generation was cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Incomplete {
    /// The part of the turn.
    pub why: Cut,
    /// The call that was cut off, incomplete. It must not be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// The bytes of a part that is neither text nor reasoning nor arguments.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partial: String,
}

impl Incomplete {
    /// A generation that was cut off in this part of its turn.
    pub fn new(why: Cut) -> Incomplete {
        Incomplete { why, call: None, partial: String::new() }
    }
}

with_methods!(Incomplete {
    with_call: call = impl Into<Option<Call>>,
    with_partial: partial = impl Into<String>,
});

/// Adds events up to a [`Turn`].
#[derive(Clone, Debug, Default)]
pub struct TurnCollector {
    turn: Turn,
    open: Option<(usize, Call)>,
}

impl TurnCollector {
    /// An empty turn.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    pub fn push(&mut self, event: &Event) {
        match event {
            Event::TextDelta { delta } => self.turn.text.push_str(delta),
            Event::ReasoningDelta { delta } => self.turn.reasoning.push_str(delta),
            Event::CallStart { index, id, name, kind } => {
                let call = Call {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                    kind: *kind,
                };
                self.open = Some((*index, call));
            }
            Event::ArgumentsDelta { index, delta } => {
                if let Some((open, call)) = &mut self.open
                    && open == index
                {
                    call.arguments.push_str(delta);
                }
            }
            Event::CallEnd { index } => {
                let open = self.open.take_if(|(open, _)| open == index);
                self.turn.calls.extend(open.map(|(_, call)| call));
            }
            Event::Incomplete { why, partial, .. } => {
                let call = self.open.take().map(|(_, call)| call);
                self.turn.incomplete =
                    Some(Incomplete { why: *why, call, partial: partial.clone() });
            }
            Event::End => {}
        }
    }

    /// The turn so far, without an open call.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    /// The turn.
    pub fn finish(self) -> Turn {
        self.turn
    }
}

impl Turn {
    /// The turn that events add up to.
    pub fn collect<'a>(events: impl IntoIterator<Item = &'a Event>) -> Turn {
        let mut collector = TurnCollector::new();
        events.into_iter().for_each(|event| collector.push(event));
        collector.finish()
    }
}
