//! The files of checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use louver_formats::Catalog;
use louver_templates::{ChatTemplate, Checkpoint, TemplateError, confirm, resolve};

/// A folder of this process that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("louver {name} {}", std::process::id()));
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("folder")).expect("folder");
            fs::write(path, text).expect("file");
        }
        Folder(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn source(path: &Path) -> String {
    let checkpoint = Checkpoint::read(path).expect("checkpoint");
    checkpoint.template.expect("template").source().to_owned()
}

#[test]
fn files_win_over_members() {
    let config = r#"{"chat_template": [{"name": "default", "template": "d"},
        {"name": "tool_use", "template": "t"}], "eos_token": {"content": "<e>"},
        "added_tokens_decoder": {"1": {"content": "<x>"}, "2": {"content": "<e>"},
            "3": {"content": "<b>", "special": false}}}"#;
    let folder = Folder::new(
        "files",
        &[
            ("tokenizer_config.json", config),
            ("tokenizer.json", r#"{"added_tokens": [{"content": "<not read>"}]}"#),
            ("config.json", r#"{"model_type": "m", "architectures": ["A", "B"]}"#),
            ("other.jinja", "o"),
        ],
    );
    let checkpoint = Checkpoint::read(&folder.0).expect("checkpoint");
    assert_eq!(checkpoint.tokens, ["<x>", "<e>", "<b>"]);
    assert_eq!(checkpoint.special_tokens, ["<x>", "<e>"]);
    assert_eq!(checkpoint.template_tokens[1].as_deref(), Some("<e>"));
    assert_eq!(checkpoint.model_type.as_deref(), Some("m"));
    assert_eq!(checkpoint.architectures, ["A", "B"]);
    let template = checkpoint.template.expect("template");
    assert_eq!((template.source(), template.tokens()[1].as_deref()), ("t", Some("<e>")));
    assert_eq!(source(&folder.path("tokenizer_config.json")), "t");
    assert_eq!(source(&folder.path("other.jinja")), "o");
    fs::write(folder.path("chat_template.json"), r#"{"chat_template": "j"}"#).expect("file");
    assert_eq!(source(&folder.0), "j");
    fs::write(folder.path("chat_template.jinja"), "f").expect("file");
    assert_eq!(source(&folder.0), "f");
}

#[test]
fn tokens_of_the_tokenizer_are_read_if_there_are_no_others() {
    let folder = Folder::new(
        "tokens",
        &[
            ("chat_template.jinja", "x"),
            (
                "tokenizer.json",
                r#"{"model": {"vocab": {"a": 0}}, "added_tokens": [{"content": "<x>"}]}"#,
            ),
        ],
    );
    assert_eq!(Checkpoint::read(&folder.0).expect("checkpoint").tokens, ["<x>"]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = Folder::new("faults", &[("tokenizer_config.json", "{"), ("empty/x", "")]);
    let error = Checkpoint::read(&folder.0).expect_err("no JSON").to_string();
    assert!(error.contains("tokenizer_config.json") && error.contains("line 1"), "{error}");
    let error = Checkpoint::read(&folder.path("empty")).expect_err("no files").to_string();
    assert!(error.contains("empty: has neither"), "{error}");
    let error = Checkpoint::read(&folder.path("none")).expect_err("nothing").to_string();
    assert!(error.ends_with("none: there is no such file or folder"), "{error}");
    fs::write(folder.path("other.json"), r#"{"a": 1}"#).expect("file");
    let error = Checkpoint::read(&folder.path("other.json")).expect_err("another").to_string();
    assert!(error.contains("other.json: is no tokenizer_config.json: it has none"), "{error}");
    fs::write(folder.path("tokenizer_config.json"), r#"{"response_template": {"fields": 1}}"#)
        .expect("file");
    let checkpoint = Checkpoint::read(&folder.0).expect("checkpoint");
    assert!(matches!(checkpoint.template, Err(TemplateError::Missing)));
    assert!(matches!(checkpoint.response_template, Some(Err(_))));
}

#[test]
fn a_broken_chat_template_is_told_first_with_its_file() {
    for file in ["chat_template.jinja", "tokenizer_config.json"] {
        let text = if file.ends_with("json") { r#"{"chat_template": "{% if"}"# } else { "{% if" };
        let folder = Folder::new(&format!("broken-{}", file.len()), &[(file, text)]);
        let checkpoint = Checkpoint::read(&folder.0).expect("checkpoint");
        let error = resolve(&checkpoint, &Catalog::shipped(), "x").expect_err("no format");
        let error = error.to_string();
        let path = folder.path(file).display().to_string();
        assert!(error.starts_with(&format!("chat template: {path}: syntax error: ")), "{error}");
        let rest = "the wire format is unknown: without a chat template, tokens and";
        assert!(error.contains(rest) && error.matches("syntax error").count() == 1, "{error}");
    }
}

#[test]
fn a_format_that_does_not_compile_is_told_once() {
    let template = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let template = ChatTemplate::new(template, Default::default()).expect("a template");
    let mut format = Catalog::shipped().get("hermes").expect("a family").clone();
    format.stop_tokens.clear();
    let lines = confirm(&format, &template, &[]).lines();
    let told = lines.iter().filter(|line| line.contains("cannot be compiled")).count();
    assert_eq!((told, lines.len()), (1, 1), "{lines:?}");
}
