//! The files of a model: a repository on the Hugging Face Hub, a directory, or a GGUF file.

use std::path::{Path, PathBuf};

/// Where a model's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelSource {
    /// A repository on the Hugging Face Hub, `owner/name`.
    Hub(String),
    /// A directory with `config.json`, `tokenizer.json` and weights.
    Directory(PathBuf),
    /// A GGUF file.
    Gguf(PathBuf),
}

/// Why a model's files were not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// There is no such path, and it is not an id of the Hub.
    #[error("no such directory or file: {}; {}", path.display(), path_advice(path))]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// The directory lacks files of a model.
    #[error(
        "{} is not a model's directory: it has no {}; expected are {CONFIG}, {TOKENIZER} and \
         {WEIGHTS}, or one GGUF file (*.gguf)",
        directory.display(),
        missing.join(" and no ")
    )]
    MissingFiles {
        /// The directory.
        directory: PathBuf,
        /// The missing files.
        missing: Vec<&'static str>,
    },
    /// The directory has several GGUF files.
    #[error(
        "{} has several GGUF files, name one: {}",
        directory.display(),
        files.join(", ")
    )]
    SeveralGguf {
        /// The directory.
        directory: PathBuf,
        /// The names of the files.
        files: Vec<String>,
    },
    /// The file is not a GGUF file by its name.
    #[error(
        "{} is not a GGUF file (*.gguf); name a GGUF file or the directory of the model",
        path.display()
    )]
    NotGguf {
        /// The file.
        path: PathBuf,
    },
}

/// What to write instead of a path that does not exist.
fn path_advice(path: &Path) -> &'static str {
    let text = path.to_string_lossy();
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    if text.starts_with('~') {
        "`~` is not expanded here: write the whole path"
    } else if text.contains("://") || text.starts_with("hf.co/") {
        "URLs are not read: write the id owner/name of a repository of the Hugging Face Hub, or \
         download a GGUF file and write its path"
    } else if last.contains(':') {
        "tags are not read: write the id owner/name of a repository of the Hugging Face Hub with \
         *.safetensors, or download a GGUF file and write its path"
    } else {
        "an id of the Hugging Face Hub has the form owner/name"
    }
}

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "weights (*.safetensors)";
/// Tokenizer files that mistral.rs reads.
const TOKENIZERS: [&str; 2] = [TOKENIZER, "tekken.json"];
/// Extensions of weights that mistral.rs reads.
const WEIGHT_EXTENSIONS: [&str; 5] = ["safetensors", "bin", "pt", "pth", "uqff"];

/// Finds the files of `model`: an existing path, or else an id of the Hub. With `has_tokenizer` the
/// tokenizer is given elsewhere.
pub(crate) fn find(model: &str, has_tokenizer: bool) -> Result<ModelSource, SourceError> {
    let path = PathBuf::from(model);
    if path.is_dir() {
        return find_in_directory(path, has_tokenizer);
    }
    if path.is_file() {
        return match has_extension(&path, &["gguf"]) {
            true => Ok(ModelSource::Gguf(path)),
            false => Err(SourceError::NotGguf { path }),
        };
    }
    if is_hub_id(model) {
        Ok(ModelSource::Hub(model.to_owned()))
    } else {
        Err(SourceError::NoSuchPath { path })
    }
}

/// Whether a text has the form `owner/name` of the Hub. A file name is not an id.
fn is_hub_id(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(is_plain)
    };
    let parts = text.split_once('/');
    parts.is_some_and(|(owner, name)| is_part(owner) && is_part(name))
        && !has_extension(Path::new(text), &["gguf"])
}

fn find_in_directory(directory: PathBuf, has_tokenizer: bool) -> Result<ModelSource, SourceError> {
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let has = |name: &str| names.iter().any(|existing| existing == name);
    let has_weights = names.iter().any(|name| has_extension(Path::new(name), &WEIGHT_EXTENSIONS));
    let gguf: Vec<&String> =
        names.iter().filter(|name| has_extension(Path::new(name), &["gguf"])).collect();
    if !has_weights {
        match gguf[..] {
            [] => {}
            [file] => return Ok(ModelSource::Gguf(directory.join(file))),
            _ => {
                let files = gguf.into_iter().cloned().collect();
                return Err(SourceError::SeveralGguf { directory, files });
            }
        }
    }
    let is_missing = [
        (!has(CONFIG), CONFIG),
        (!has_tokenizer && !TOKENIZERS.iter().any(|name| has(name)), TOKENIZER),
        (!has_weights, WEIGHTS),
    ];
    let missing: Vec<&str> =
        is_missing.into_iter().filter_map(|(missing, name)| missing.then_some(name)).collect();
    if missing.is_empty() {
        Ok(ModelSource::Directory(directory))
    } else {
        Err(SourceError::MissingFiles { directory, missing })
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| extensions.contains(&extension.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_paths() {
        for id in ["Qwen/Qwen3-4B", "org/name", "HuggingFaceTB/SmolLM2-135M", "a/b.c_d-e"] {
            assert_eq!(find(id, false), Ok(ModelSource::Hub(id.to_owned())));
        }
        for path in [
            "/nope",
            "./nope",
            "../a/b",
            "~/models/x",
            "a/b/c",
            "nope",
            "a\\b",
            "",
            "a/",
            "/",
            "a b/c",
            "models/x.gguf",
            ".",
        ] {
            let error = find(path, false).expect_err(path).to_string();
            assert!(error.starts_with("no such") || error.contains("is not a model"), "{error}");
        }
    }

    #[test]
    fn names_of_other_programs_have_advice() {
        for (path, advice) in [
            ("~/m", "`~` is not expanded"),
            ("qwen3:4b", "tags are not read"),
            ("owner/x:Q4_K_M", "tags are not read"),
            ("https://huggingface.co/a/b", "URLs are not read"),
            ("hf.co/a/b:Q4_K_M", "URLs are not read"),
            ("C:\\models\\x", "form owner/name"),
        ] {
            let error = find(path, false).expect_err(path).to_string();
            assert!(error.contains(advice), "{error}");
        }
    }

    #[test]
    fn directories_and_files_are_recognised() {
        let root = std::env::temp_dir().join(format!("louver-source-{}", std::process::id()));
        let text = |names: &[&str], has_tokenizer: bool| {
            let _ = std::fs::remove_dir_all(&root);
            std::fs::create_dir_all(&root).unwrap();
            for name in names {
                std::fs::write(root.join(name), "").unwrap();
            }
            match find(&root.display().to_string(), has_tokenizer) {
                Ok(ModelSource::Directory(_)) => "directory".to_owned(),
                Ok(ModelSource::Gguf(file)) => file.file_name().unwrap().display().to_string(),
                Ok(ModelSource::Hub(id)) => id,
                Err(error) => error.to_string().replace(&root.display().to_string(), "DIR"),
            }
        };
        for (names, has_tokenizer, expected) in [
            (&["config.json", "tokenizer.json", "model.safetensors"][..], false, "directory"),
            (&["config.json", "tekken.json", "x.safetensors", "x.gguf"], false, "directory"),
            (&["config.json", "model.safetensors"], true, "directory"),
            (&["a.gguf", "README.md"], false, "a.gguf"),
            (&["a.gguf", "B.GGUF"], false, "DIR has several GGUF files, name one: B.GGUF, a.gguf"),
            (&[], false, "it has no config.json and no tokenizer.json and no weights"),
            (&["config.json", "model.safetensors"], false, "it has no tokenizer.json; expected"),
        ] {
            let found = text(names, has_tokenizer);
            assert!(found.contains(expected), "{names:?}: {found}");
        }
        std::fs::write(root.join("a.gguf"), "").unwrap();
        let file = root.join("a.gguf");
        assert_eq!(find(&file.display().to_string(), false), Ok(ModelSource::Gguf(file)));
        let not = find(&root.join("config.json").display().to_string(), false);
        assert!(matches!(not, Err(SourceError::NotGguf { .. })));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
