//! Two columns on a terminal: first the left one is written, then the right one beside it.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Least rows and columns of a terminal that gets columns.
const MIN_SIZE: (u16, u16) = (24, 80);
/// Most characters in a line of a column.
const MAX_WIDTH: usize = 58;
/// Characters between the columns.
const GAP: usize = 3;

/// The size of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnSize {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl ColumnSize {
    /// The size that fits standard output, if that is a terminal large enough.
    pub(super) fn of_terminal() -> Option<ColumnSize> {
        let stdout = std::io::stdout();
        let size = stdout.is_terminal().then(|| terminal_size_of(&stdout))?;
        let (Width(columns), Height(rows)) = size?;
        let is_large = rows >= MIN_SIZE.0 && columns >= MIN_SIZE.1;
        let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
        (is_large && !is_dumb).then(|| ColumnSize {
            width: ((usize::from(columns) - GAP) / 2).min(MAX_WIDTH),
            height: usize::from(rows) - 1,
        })
    }
}

/// Turns text into the text and cursor movements that put it into a column.
///
/// Lines are wrapped. What does not fit into the height is left out, since the cursor cannot return
/// to lines that have left the terminal.
#[derive(Debug)]
pub(super) struct Columns {
    size: ColumnSize,
    is_right: bool,
    /// The cursor's row, from the first row of both columns.
    row: usize,
    /// The cursor's position in its column.
    position: usize,
    /// Rows that either column has.
    rows: usize,
    /// Whether the next character begins a row.
    begins_row: bool,
}

impl Columns {
    /// The columns, from the cursor's line on. The left one is current.
    pub(super) fn new(size: ColumnSize) -> Columns {
        Columns { size, is_right: false, row: 0, position: 0, rows: 1, begins_row: false }
    }

    /// Text in the current column. Sequences of colours are passed on.
    pub(super) fn write(&mut self, text: &str) -> String {
        let mut out = String::new();
        for line in text.split_inclusive('\n') {
            // A word moves to the next line as a whole, if it was written as a whole.
            for word in line.trim_end_matches('\n').split_inclusive(' ') {
                let width = word.trim_end().width();
                if self.position + width > self.size.width && width <= self.size.width {
                    self.begins_row = true;
                }
                self.write_word(word, &mut out);
            }
            self.begins_row |= line.ends_with('\n');
        }
        out
    }

    fn write_word(&mut self, word: &str, out: &mut String) {
        let mut is_escape = false;
        for c in word.chars() {
            is_escape |= c == '\u{1b}';
            if is_escape {
                out.push(c);
                is_escape = c != 'm';
                continue;
            }
            let width = c.width().unwrap_or(0);
            if std::mem::take(&mut self.begins_row) || self.position + width > self.size.width {
                self.begin_row(out);
            }
            if self.row < self.size.height {
                out.push(c);
            }
            self.position += width;
        }
    }

    /// Moves to the right column.
    pub(super) fn next(&mut self) -> String {
        let mut out = String::new();
        self.draw_line(&mut out);
        out.push_str(&self.move_to_row(0));
        (self.is_right, self.position, self.begins_row) = (true, 0, false);
        self.move_to_column(&mut out);
        out
    }

    /// Moves below both columns.
    pub(super) fn end(mut self) -> String {
        let mut out = String::new();
        self.draw_line(&mut out);
        out + "\n"
    }

    fn begin_row(&mut self, out: &mut String) {
        self.position = 0;
        if self.row + 1 < self.rows {
            out.push_str(&self.move_to_row(self.row + 1));
        } else if self.row + 1 < self.size.height {
            out.push('\n');
            self.row += 1;
            self.rows += 1;
        } else {
            self.row = self.size.height;
        }
        self.move_to_column(out);
    }

    /// Moves the cursor up or down.
    fn move_to_row(&mut self, row: usize) -> String {
        let from = std::mem::replace(&mut self.row, row).min(self.rows - 1);
        match row.checked_sub(from) {
            Some(0) => String::new(),
            Some(down) => format!("\u{1b}[{down}B"),
            None => format!("\u{1b}[{}A", from - row),
        }
    }

    /// Moves the cursor to the first character of the current column.
    fn move_to_column(&self, out: &mut String) {
        let first = if self.is_right { self.size.width + GAP + 1 } else { 1 };
        let _ = write!(out, "\u{1b}[{first}G");
    }

    /// Draws the line between the columns, and moves to the last row.
    fn draw_line(&mut self, out: &mut String) {
        for row in 0..self.rows {
            out.push_str(&self.move_to_row(row));
            let _ = write!(out, "\u{1b}[{}G\u{2502}", self.size.width + 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The screen of a terminal of 40 columns after the text.
    fn screen(text: &str) -> String {
        let mut terminal = vt100::Parser::new(12, 40, 0);
        terminal.process(text.replace('\n', "\r\n").as_bytes());
        terminal.screen().contents()
    }

    /// The screen after lines before, both columns and a line after.
    fn columns(height: usize, before: usize, left: &[&str], right: &[&str]) -> String {
        let mut text = "before\n".repeat(before);
        let mut columns = Columns::new(ColumnSize { width: 15, height });
        left.iter().for_each(|piece| text.push_str(&columns.write(piece)));
        text.push_str(&columns.next());
        right.iter().for_each(|piece| text.push_str(&columns.write(piece)));
        text.push_str(&columns.end());
        screen(&(text + "after"))
    }

    #[test]
    fn columns_stand_side_by_side() {
        let left = ["one\n", "\u{1b}[31mtwo words that wrap\u{1b}[0m\n", "abcdefghijklmnopqrst\n"];
        let right = ["\u{65e5}\u{672c}", "\u{8a9e}\n", "right\n"];
        let expected = [
            "one             \u{2502} \u{65e5}\u{672c}\u{8a9e}",
            "two words that  \u{2502} right",
            "wrap            \u{2502}",
            "abcdefghijklmno \u{2502}",
            "pqrst           \u{2502}",
            "after",
        ];
        assert_eq!(columns(10, 0, &left, &right), expected.join("\n"));
        // At the end of the screen, which scrolls.
        let scrolled = columns(10, 11, &left, &right);
        let last: Vec<&str> = scrolled.lines().rev().take(6).collect();
        assert_eq!(last.into_iter().rev().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_right_column_may_be_longer() {
        let expected = ["l               \u{2502} a", "                \u{2502} b", "after"];
        assert_eq!(columns(10, 0, &["l\n"], &["a\n", "b\n"]), expected.join("\n"));
    }

    #[test]
    fn what_exceeds_the_height_is_left_out() {
        let rows: Vec<String> = (0..20).map(|row| format!("{row}\n")).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let expected = ["0               \u{2502} 0", "1               \u{2502} 1", "after"];
        assert_eq!(columns(2, 0, &rows, &rows), expected.join("\n"));
    }
}
