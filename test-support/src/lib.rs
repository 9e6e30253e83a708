//! What the tests of several crates share: files that not every machine has, the record of what was
//! skipped without them, and random numbers that are the same on every machine.
//!
//! A test that checks nothing without such a file has a name that ends in `_if_present`
//! (test: tests_that_skip_say_so). A skipped part prints a line, and is counted by `.ci/run`.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Environment variable with the path of a file to which each skipped part adds a line.
pub const RECORD_VARIABLE: &str = "LOUVER_SKIPPED";

/// The path of a file or folder below `shared/data` beside the repository. Records that it was
/// skipped if it is missing.
pub fn data_if_present(path: impl AsRef<Path>) -> Option<PathBuf> {
    let path = path.as_ref();
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(path);
    if found.exists() {
        return Some(found);
    }
    record_skipped(&format!("../shared/data/{} is not here", path.display()));
    None
}

/// The text of a file below `shared/data`, as [`data_if_present`].
///
/// # Panics
///
/// If the file is there and cannot be read.
pub fn text_if_present(path: impl AsRef<Path>) -> Option<String> {
    let path = data_if_present(path)?;
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Prints that a part of a test was skipped and why, and adds it to the file that
/// [`RECORD_VARIABLE`] names.
///
/// # Panics
///
/// If that file cannot be written.
pub fn record_skipped(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a thread of a test").to_owned();
    let line = format!("skipped: {test}: {reason}\n");
    print!("{line}");
    if let Some(record) = std::env::var_os(RECORD_VARIABLE) {
        // One write, so that the lines of several processes do not mix.
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(record)
            .expect("the record of skipped tests is opened");
        file.write_all(line.as_bytes()).expect("the record of skipped tests is written");
    }
}

/// Random numbers (xorshift): the same for the same beginning, which must not be 0.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}
