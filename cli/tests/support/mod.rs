//! Support for tests of the binary.
#![allow(
    dead_code,
    reason = "each file of tests is a program of its own, and not all need everything"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Map, Value, json};

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

/// Runs the binary without input.
pub(crate) fn louver(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_louver"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

/// Writes a file of JSON lines.
pub(crate) fn write_lines(folder: &Folder, name: &str, values: &[Value]) -> PathBuf {
    folder.file(name, &values.iter().map(|v| format!("{v}\n")).collect::<String>())
}

pub(crate) fn read_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("an output file");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("a path of UTF-8")
}

/// A tokenizer.json of byte pairs, with these tokens and merges, that ends turns with `<|im_end|>`.
pub(crate) fn bpe_tokenizer(vocab: &Map<String, Value>, end: u32, merges: &[&str]) -> String {
    let byte_level = |is_pre_tokenizer: bool| {
        json!({"type": "ByteLevel", "add_prefix_space": !is_pre_tokenizer, "trim_offsets": true,
               "use_regex": !is_pre_tokenizer})
    };
    let text = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "post_processor": null,
        "added_tokens": [
            {"id": end, "content": "<|im_end|>", "special": true, "single_word": false,
             "lstrip": false, "rstrip": false, "normalized": false},
        ],
        "pre_tokenizer": byte_level(true),
        "decoder": byte_level(false),
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
                  "continuing_subword_prefix": null, "end_of_word_suffix": null,
                  "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": merges},
    });
    text.to_string()
}
