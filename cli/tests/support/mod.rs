//! What tests of the binary share.
#![allow(
    dead_code,
    reason = "each file of tests is a program of its own, and not all need everything"
)]

use std::path::PathBuf;

/// A folder that goes away with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// A new one. Names are told apart by the caller, runs by the process.
    pub(crate) fn new(name: &str) -> Folder {
        let program = env!("CARGO_CRATE_NAME");
        let path =
            std::env::temp_dir().join(format!("louver-{program}-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind in the temporary directory is no failure.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
