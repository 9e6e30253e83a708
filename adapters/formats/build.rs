//! Embeds every `families/*.toml`, so that a new family is a new file and no Rust.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(&root).join("families"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            files.extend(path.file_name().and_then(|n| n.to_str()).map(str::to_owned));
        }
    }
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let _ = writeln!(
            code,
            "    ({file:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/families/\", {file:?}))),"
        );
    }
    code.push_str("]\n");
    println!("cargo::rerun-if-changed=families");
    println!("cargo::rerun-if-changed=build.rs");
    fs::write(Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("families.rs"), code)
}
