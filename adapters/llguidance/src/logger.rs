//! Messages of a parser: kept, and printed to stderr.

use crate::methods::methods;

/// A log with two levels: for the buffer, and for stderr. 0 is nothing, 1 warnings, 2 information.
/// A clone has the levels and an empty buffer.
///
/// ```
/// use llguidance::Logger;
///
/// let mut logger = Logger::new(1, 0);
/// logger.warn("odd");
/// logger.info("left out");
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

    methods! {
        /// Writes a warning, as a line.
        mut warn(this, message: &str) -> () = this.write_level(1, &format!("Warning: {message}\n"));
        /// Writes information, as a line.
        mut info(this, message: &str) -> () = this.write_level(2, &format!("{message}\n"));
        /// Writes text as a warning.
        mut write_warning(this, text: &str) -> () = this.write_level(1, text);
        /// Writes text as information.
        mut write_info(this, text: &str) -> () = this.write_level(2, text);
        /// Writes text to the buffer, whatever its level.
        mut write_buffer(this, text: &str) -> () = this.buffer.push_str(text);
        /// Sets the level of the buffer.
        mut set_buffer_level(this, level: u32) -> () = this.buffer_level = level;
        /// Sets the level of stderr.
        mut set_stderr_level(this, level: u32) -> () = this.stderr_level = level;
        /// Whether text of a level is written anywhere.
        ref level_enabled(this, level: u32) -> bool = level <= this.effective_level();
        /// The higher of the two levels.
        ref effective_level(this) -> u32 = this.buffer_level.max(this.stderr_level);
        /// The level of the buffer.
        ref buffer_level(this) -> u32 = this.buffer_level;
        /// The level of stderr.
        ref stderr_level(this) -> u32 = this.stderr_level;
        /// The buffer.
        ref get_buffer(this) -> &str = &this.buffer;
        /// Takes the buffer.
        mut get_and_clear_logs(this) -> String = std::mem::take(&mut this.buffer);
    }
}
