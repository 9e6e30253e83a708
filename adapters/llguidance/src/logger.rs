//! Messages of a parser: kept, and printed to stderr.

/// A log with two levels: for the buffer, and for stderr. 0 is nothing, 1 warnings, 2 information.
/// A clone has the levels and an empty buffer.
///
/// ```
/// use llguidance::Logger;
///
/// let mut logger = Logger::new(1, 0);
/// logger.warn("odd");
/// logger.write_level(2, "left out");
/// assert_eq!(logger.get_and_clear_logs(), "Warning: odd\n");
/// ```
#[derive(Debug, Default)]
pub struct Logger {
    buffer: String,
    buffer_level: u32,
    stderr_level: u32,
}

impl Clone for Logger {
    fn clone(&self) -> Self {
        Logger::new(self.buffer_level, self.stderr_level)
    }
}

impl Logger {
    /// An empty log.
    pub fn new(buffer_level: u32, stderr_level: u32) -> Self {
        Logger { buffer: String::new(), buffer_level, stderr_level }
    }

    /// Writes text of a level.
    pub fn write_level(&mut self, level: u32, text: &str) {
        if level <= self.buffer_level {
            self.buffer.push_str(text);
        }
        if level <= self.stderr_level {
            eprint!("{text}");
        }
    }
    /// Writes a warning, as a line.
    pub fn warn(&mut self, message: &str) {
        self.write_level(1, &format!("Warning: {message}\n"));
    }

    /// Writes text to the buffer, regardless of its level.
    pub fn write_buffer(&mut self, text: &str) {
        self.buffer.push_str(text);
    }

    /// Sets the level of the buffer.
    pub fn set_buffer_level(&mut self, level: u32) {
        self.buffer_level = level;
    }

    /// Sets the level of stderr.
    pub fn set_stderr_level(&mut self, level: u32) {
        self.stderr_level = level;
    }

    /// The level of the buffer.
    pub fn buffer_level(&self) -> u32 {
        self.buffer_level
    }

    /// The level of stderr.
    pub fn stderr_level(&self) -> u32 {
        self.stderr_level
    }

    /// The buffer.
    pub fn get_buffer(&self) -> &str {
        &self.buffer
    }

    /// Takes the buffer.
    pub fn get_and_clear_logs(&mut self) -> String {
        std::mem::take(&mut self.buffer)
    }
}
