//! Support for tests of the binary.
#![allow(
    dead_code,
    reason = "each file of tests is a program of its own, and not all need everything"
)]

use std::path::PathBuf;

/// A folder that is removed at the end of the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Creates a folder. The name must be unique per test; the process id separates runs.
    pub(crate) fn new(name: &str) -> Folder {
        let program = env!("CARGO_CRATE_NAME");
        let path =
            std::env::temp_dir().join(format!("louver-{program}-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    /// Writes a file in the folder.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A remaining temporary folder is no failure.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
