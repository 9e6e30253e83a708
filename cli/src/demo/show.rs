//! What the demo prints: for people, or every event as a line of JSON.

use std::io::{self, Write};

use louver_mistralrs::Event;
use serde_json::{Value, json};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Text of one delta stream after which the rest is left out.
const LONGEST: usize = 600;

/// The printer. Failing to print is not the demo's concern (a closed pipe, say): it goes on and reports by exit code.
pub(super) struct Show {
    style: Style,
    turn: usize,
    /// Characters of free text printed in this turn.
    printed: usize,
    /// A line has been begun.
    open: bool,
}

impl Show {
    pub(super) fn new(style: Style) -> Show {
        Show { style, turn: 0, printed: 0, open: false }
    }

    /// A line for people.
    pub(super) fn say(&mut self, text: impl AsRef<str>) {
        if self.style == Style::Text {
            self.close();
            self.write(&format!("{}\n", text.as_ref()));
        }
    }

    /// A line of JSON.
    pub(super) fn record(&mut self, value: Value) {
        if self.style == Style::Json {
            self.write(&format!("{value}\n"));
        }
    }

    /// The beginning of a model's turn.
    pub(super) fn turn(&mut self, what: &str) {
        self.turn += 1;
        self.printed = 0;
        self.say(format!("\nturn {}: {what}", self.turn));
        self.record(json!({"type": "turn", "turn": self.turn, "what": what}));
    }

    /// An event of the running turn.
    pub(super) fn event(&mut self, event: &Event) {
        if self.style == Style::Json {
            let mut value = serde_json::to_value(event).unwrap_or_default();
            value["turn"] = self.turn.into();
            return self.record(value);
        }
        match event {
            Event::TextDelta { delta } => self.stream("  text       ", delta),
            Event::ReasoningDelta { delta } => self.stream("  reasoning  ", delta),
            Event::CallStart { name, .. } => {
                self.close();
                self.write(&format!("  call       {name}("));
                self.open = true;
            }
            Event::ArgumentsDelta { delta, .. } => self.write(&printable(delta)),
            Event::CallEnd { .. } => {
                self.write(")\n");
                self.open = false;
            }
            Event::Incomplete { why, .. } => self.say(format!("  cut off    inside: {why:?}")),
            _ => self.close(),
        }
    }

    fn stream(&mut self, head: &str, delta: &str) {
        if !self.open {
            self.write(head);
            self.open = true;
        }
        let left = LONGEST.saturating_sub(self.printed);
        let text: String = delta.chars().take(left).collect();
        self.printed += delta.chars().count();
        self.write(&printable(&text));
        if left > 0 && self.printed >= LONGEST {
            self.write(" ...");
        }
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.write("\n");
        }
    }

    fn write(&mut self, text: &str) {
        let mut out = io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// What a model says must not steer the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}
