//! Output of the demo: text for people, or one line of JSON per event.

use std::io::{self, IsTerminal, Write};

use louver_mistralrs::Event;
use serde_json::{Value, json};

use super::columns::{ColumnSize, Columns};

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStyle {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The colour of a line on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Good,
    Bad,
    Dim,
}

/// Maximum characters of free text printed per turn.
const MAX_TEXT_CHARS: usize = 600;

/// The printer. Errors of printing, such as a closed pipe, are ignored; the exit code still reports
/// the result.
pub(super) struct Output {
    style: OutputStyle,
    turn: usize,
    /// Characters of free text printed in this turn.
    printed: usize,
    /// Whether a line is incomplete.
    has_open_line: bool,
    has_colours: bool,
    /// The columns that are being written.
    columns: Option<Columns>,
}

impl Output {
    pub(super) fn new(style: OutputStyle) -> Output {
        let has_colours = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Output { style, turn: 0, printed: 0, has_open_line: false, has_colours, columns: None }
    }

    /// The text in a colour, if standard output is a terminal.
    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Plain => return text.to_owned(),
            _ if !self.has_colours => return text.to_owned(),
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Dim => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Prints a line of text.
    pub(super) fn print_line(&mut self, text: impl AsRef<str>) {
        if self.style == OutputStyle::Text {
            self.end_line();
            self.write(&format!("{}\n", text.as_ref()));
        }
    }

    /// Prints a line of text behind a label.
    pub(super) fn print_labelled(&mut self, paint: Paint, label: &str, text: &str) {
        let line = self.label(label) + text;
        self.print_line(self.paint(paint, &line));
    }

    /// A label as it begins a line.
    fn label(&self, name: &str) -> String {
        match self.columns {
            Some(_) => format!("{name:<7} "),
            None => format!("  {name:<10} "),
        }
    }

    /// What is printed from here on stands in the left of two columns, if there is room for them.
    pub(super) fn begin_columns(&mut self) {
        if self.style == OutputStyle::Text
            && let Some(size) = ColumnSize::of_terminal()
        {
            self.columns = Some(Columns::new(size));
        }
    }

    /// What is printed from here on stands in the right column.
    pub(super) fn next_column(&mut self) {
        self.printed = 0;
        if let Some(columns) = &mut self.columns {
            let next = columns.next();
            write_out(&next);
        }
    }

    /// What is printed from here on stands below the columns.
    pub(super) fn end_columns(&mut self) {
        if let Some(columns) = self.columns.take() {
            write_out(&columns.end());
        }
    }

    /// Prints a line of text, or of JSON.
    pub(super) fn print(&mut self, text: impl AsRef<str>, value: Value) {
        self.print_line(text);
        self.record(value);
    }

    /// Prints a line of JSON.
    pub(super) fn record(&mut self, value: Value) {
        if self.style == OutputStyle::Json {
            self.write(&format!("{value}\n"));
        }
    }

    /// Begins a turn of the model.
    pub(super) fn turn(&mut self, description: &str) {
        self.turn += 1;
        self.printed = 0;
        let record = json!({"type": "turn", "turn": self.turn, "what": description});
        self.print(format!("\nturn {}: {description}", self.turn), record);
    }

    /// Prints an event of the running turn.
    pub(super) fn event(&mut self, event: &Event) {
        if self.style == OutputStyle::Json {
            let mut value = serde_json::to_value(event).unwrap_or_default();
            value["turn"] = self.turn.into();
            return self.record(value);
        }
        match event {
            Event::TextDelta { delta } => self.stream("text", delta),
            Event::ReasoningDelta { delta } => self.stream("reasoning", delta),
            Event::CallStart { name, .. } => {
                self.end_line();
                let label = self.label("call");
                self.write(&format!("{label}{name}("));
                self.has_open_line = true;
            }
            Event::ArgumentsDelta { delta, .. } => self.write(&printable(delta)),
            Event::CallEnd { .. } => {
                self.write(")\n");
                self.has_open_line = false;
            }
            Event::Incomplete { why, .. } => {
                self.print_labelled(Paint::Plain, "cut off", &format!("inside: {why:?}"))
            }
            _ => self.end_line(),
        }
    }

    fn stream(&mut self, label: &str, delta: &str) {
        if !self.has_open_line {
            let label = self.label(label);
            self.write(&label);
            self.has_open_line = true;
        }
        let remaining = MAX_TEXT_CHARS.saturating_sub(self.printed);
        let text: String = delta.chars().take(remaining).collect();
        self.printed += delta.chars().count();
        self.write_text(&text);
        if remaining > 0 && self.printed >= MAX_TEXT_CHARS {
            self.write(" ...");
        }
    }

    /// Writes the model's text. Columns have its line breaks, lines behind a label do not.
    fn write_text(&mut self, text: &str) {
        let parts: Vec<String> = text.split('\n').map(printable).collect();
        self.write(&parts.join(if self.columns.is_some() { "\n" } else { "\\n" }));
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.has_open_line) {
            self.write("\n");
        }
    }

    fn write(&mut self, text: &str) {
        match &mut self.columns {
            Some(columns) => write_out(&columns.write(text)),
            None => write_out(text),
        }
    }
}

fn write_out(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Escapes control characters, so that model output cannot control the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}
