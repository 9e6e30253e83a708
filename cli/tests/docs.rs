//! Checks of the guides: each block after a `<!-- check: KIND -->` is checked according to its
//! kind. Rust programs are compiled with the documentation tests of louver-mistralrs.

#![cfg(feature = "host")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use louver_server::{Config, ServerLimits};
use serde_json::Value;

mod support;

use support::Folder;

const LOUVER: &str = env!("CARGO_BIN_EXE_louver");
const GUIDES: [&str; 3] = ["README.md", "docs/TUTORIAL.md", "docs/DEPLOYING.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A fenced block or a table that is marked for checking.
#[derive(Debug)]
struct Block {
    kind: String,
    /// The arguments after the kind in the marker comment.
    argument: String,
    text: String,
}

fn blocks(guide: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(guide)).expect("the guide");
    let mut out = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(marker) =
            line.strip_prefix("<!-- check: ").and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        let (kind, argument) = marker.split_once(' ').unwrap_or((marker, ""));
        let fenced = lines.peek().is_some_and(|line| line.starts_with("```"));
        let body: Vec<&str> = if fenced {
            lines.next();
            lines.by_ref().take_while(|line| !line.starts_with("```")).collect()
        } else {
            lines.by_ref().take_while(|line| !line.is_empty()).collect()
        };
        assert!(!body.is_empty(), "{guide}: nothing after {line}");
        out.push(Block {
            kind: kind.to_owned(),
            argument: argument.to_owned(),
            text: body.join("\n") + "\n",
        });
    }
    out
}

fn blocks_of_kind(kind: &str) -> Vec<Block> {
    let found: Vec<Block> =
        GUIDES.iter().flat_map(|guide| blocks(guide)).filter(|block| block.kind == kind).collect();
    assert!(!found.is_empty(), "no block of kind {kind}");
    found
}

fn is_installed(program: &str) -> bool {
    let status =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Splits a command line into words, with a shell's quotes.
fn words(line: &str) -> Vec<String> {
    let (mut out, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => out.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    out.push(word);
    out.retain(|word| !word.is_empty());
    out
}

/// The flags of a subcommand, from its help.
fn flags(subcommand: &str) -> BTreeSet<String> {
    let help = Command::new(LOUVER).args([subcommand, "--help"]).output().expect("the binary runs");
    assert!(help.status.success(), "louver {subcommand} --help");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let named = help
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-'));
    named.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

/// The error in a `louver` command line, if there is one.
fn command_error(words: &[String]) -> Option<String> {
    let subcommand = words.get(1)?;
    if subcommand == "--version" {
        return None;
    }
    let defined = flags(subcommand);
    let used = words.iter().filter(|word| word.starts_with("--"));
    let unknown: Vec<&String> =
        used.filter(|word| !defined.contains(word.split('=').next().unwrap_or(word))).collect();
    (!unknown.is_empty()).then(|| format!("louver {subcommand} has no {unknown:?}"))
}

#[test]
fn marker_comments_have_known_kinds() {
    let kinds = ["shell", "curl", "python", "config", "limits", "systemd", "nginx", "metrics"];
    for guide in GUIDES {
        let blocks = blocks(guide);
        assert!(!blocks.is_empty(), "{guide} has no marked blocks");
        assert!(
            blocks.iter().all(|block| kinds.contains(&block.kind.as_str())),
            "{guide}: {blocks:#?}"
        );
    }
}

#[test]
fn links_have_targets() {
    for guide in ["TUTORIAL.md", "DEPLOYING.md", "INSPECTOR.md"] {
        let text = std::fs::read_to_string(root().join("docs").join(guide)).expect("the guide");
        let links: Vec<&str> =
            text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(!links.is_empty());
        for link in links.into_iter().filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let path = root().join("docs").join(if file.is_empty() { guide } else { file });
            assert!(path.exists(), "{guide}: {link}");
            if !heading.is_empty() {
                let other = std::fs::read_to_string(&path).expect("text");
                let slug = |line: &str| {
                    line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-")
                };
                let found =
                    other.lines().any(|line| line.starts_with('#') && slug(line) == heading);
                assert!(found, "{guide}: {link}");
            }
        }
    }
}

#[test]
fn documented_flags_exist() {
    let lines = |block: &Block| block.text.lines().map(str::to_owned).collect::<Vec<_>>();
    let mut seen = 0;
    for line in blocks_of_kind("shell").iter().flat_map(lines) {
        let words = words(&line);
        if words[0] == "louver" {
            assert_eq!(command_error(&words), None, "{line}");
            seen += 1;
        }
        if let Some((name, version)) = words.iter().find_map(|word| word.split_once("@=")) {
            let manifest =
                std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
            assert!(manifest.contains(&format!("{name} = {{ version = \"={version}\"")), "{line}");
        }
        if let Some(path) = words.iter().skip_while(|word| *word != "--path").nth(1) {
            let inside = path.strip_prefix("../louver/").unwrap_or(path);
            assert!(root().join(inside).join("Cargo.toml").is_file(), "{line}");
        }
    }
    assert!(seen >= 5, "{seen} commands");
    // Also within sentences.
    for guide in GUIDES {
        let text = std::fs::read_to_string(root().join(guide)).expect("the guide");
        for line in
            text.split('`').filter(|code| code.starts_with("louver ") && code.contains(" --"))
        {
            if !line.contains('\n') {
                assert_eq!(command_error(&words(line)), None, "{guide}: {line}");
            }
        }
    }
    assert!(command_error(&words("louver serve --no-such-flag 1")).is_some());
}

#[test]
fn documented_explain_output_is_current() {
    let explain = blocks_of_kind("shell")
        .into_iter()
        .find(|block| block.text.starts_with("louver explain"))
        .expect("the command");
    let out: Output = Command::new(LOUVER)
        .args(&words(explain.text.trim())[1..])
        .output()
        .expect("the binary runs");
    let stdout = String::from_utf8_lossy(&out.stdout).into_owned();
    let printed = stdout.lines().find_map(|line| line.trim().strip_prefix("bytes: "));
    let guide = std::fs::read_to_string(root().join("docs/TUTORIAL.md")).expect("the guide");
    let documented = guide
        .split("The bytes that may follow are `")
        .nth(1)
        .and_then(|rest| rest.split('`').next());
    assert!(
        out.status.success() && printed.is_some() && printed == documented,
        "{documented:?} {stdout}"
    );
}

/// The members that an error about an unknown one lists.
fn known_members(error: &str) -> Vec<&str> {
    error.rsplit("known: ").next().unwrap_or_default().split(", ").collect()
}

#[test]
fn documented_configurations_are_valid() {
    let folder = Folder::new("config");
    for block in blocks_of_kind("config") {
        let config =
            Config::read(&folder.file("louver.toml", &block.text)).expect("a configuration");
        config.check().expect("one that can be used");
        assert!(!config.models.is_empty());
    }
    for block in blocks_of_kind("limits") {
        let path = folder.file("limits.toml", &block.text);
        let limits = ServerLimits::read(&path).expect("limits");
        assert_eq!(limits, ServerLimits::default(), "the guide says these are the defaults");
        // All of them: the names listed in the error for an unknown member.
        for section in block.text.lines().filter(|line| line.starts_with('[')) {
            let path = folder.file("unknown.toml", &format!("{section}\nno_such_limit = 1\n"));
            let error = ServerLimits::read(&path).expect_err("an unknown member").to_string();
            let limit_names = known_members(&error);
            assert!(limit_names.len() > 1, "{error}");
            // The last is a limit of the engine that is refused here, with what to use.
            for name in limit_names.into_iter().filter(|name| *name != "source_bytes") {
                assert!(
                    block.text.lines().any(|line| line.starts_with(&format!("{name} = "))),
                    "{section} {name}"
                );
            }
        }
        let error = ServerLimits::read(&folder.file("unknown.toml", "[no_such]\n"))
            .expect_err("unknown")
            .to_string();
        for section in known_members(&error) {
            assert!(block.text.contains(&format!("[{section}]\n")), "{section}");
        }
    }
}

#[test]
fn documented_services_start_the_server() {
    let folder = Folder::new("systemd");
    for block in blocks_of_kind("systemd") {
        let start =
            block.text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
        let mut command = words(start);
        let program = std::mem::replace(&mut command[0], "louver".to_owned());
        assert_eq!(command_error(&command), None, "{start}");
        if !is_installed("systemd-analyze") {
            println!(
                "SKIPPED: there is no systemd-analyze here; the unit was read only for its command"
            );
            continue;
        }
        // The program must be installed to be verified.
        let path = folder.file("louver-docs.service", &block.text.replace(&program, LOUVER));
        let verified =
            Command::new("systemd-analyze").arg("verify").arg(&path).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&verified.stderr).into_owned();
        let about: Vec<&str> = stderr.lines().filter(|line| line.contains("louver-docs")).collect();
        assert!(about.is_empty(), "{about:#?}");
    }
    for name in ["Containerfile", "Containerfile.cuda"] {
        let text = std::fs::read_to_string(root().join(name)).expect("the file");
        let entry = text.lines().find_map(|line| line.strip_prefix("ENTRYPOINT "));
        let entry: Vec<String> =
            serde_json::from_str(entry.expect("an entry point")).expect("JSON");
        assert_eq!(command_error(&entry), None, "{name}: {entry:?}");
        let version = env!("CARGO_PKG_RUST_VERSION");
        assert!(text.contains(&format!("FROM rust:{version}.")), "{name}: Rust {version}");
    }
    for block in blocks_of_kind("nginx") {
        if !is_installed("nginx") && Command::new("nginx").arg("-v").output().is_err() {
            println!("SKIPPED: there is no nginx here; its configuration was not read");
            continue;
        }
        let log = folder.0.join("error.log");
        let text = format!(
            "pid {}/pid;\nevents {{}}\nhttp {{\naccess_log off;\nserver {{\nlisten \
             127.0.0.1:18080;\n{}}}\n}}\n",
            folder.0.display(),
            block.text
        );
        let path = folder.file("nginx.conf", &text);
        let tested = Command::new("nginx")
            .arg("-t")
            .arg("-e")
            .arg(&log)
            .arg("-c")
            .arg(&path)
            .output()
            .expect("it runs");
        assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    }
}

/// `louver serve --tiny` on a free port.
struct RunningServer {
    process: Child,
    address: String,
}

impl RunningServer {
    fn start() -> RunningServer {
        let mut command = Command::new(LOUVER);
        command
            .args(["serve", "--tiny", "--port", "0"])
            .env_remove("LOUVER_API_KEY")
            .env("RUST_LOG", "error");
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.trim().rsplit("http://").next().unwrap_or_default().to_owned();
        assert!(line.contains("http://"), "the server prints its address: {line:?}");
        RunningServer { process, address }
    }

    /// Status and body of a request.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: \
             application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status =
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        // Only bodies of known length: the guides' requests are not streamed.
        assert!(!head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
        (status, body.to_owned())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn documented_requests_and_metrics_work() {
    let server = RunningServer::start();
    for block in blocks_of_kind("curl") {
        let body = block
            .text
            .split("-d '")
            .nth(1)
            .and_then(|rest| rest.rsplit_once('\''))
            .expect("a body")
            .0;
        assert!(
            block.text.contains(&block.argument),
            "the marker names the route: {}",
            block.argument
        );
        let (status, answer) = server.ask("POST", &block.argument, body);
        assert_eq!(status, 200, "{answer}");
        let (request, answer): (Value, Value) = (json(body), json(&answer));
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        assert_eq!(call["name"], request["tools"][0]["function"]["name"], "{answer}");
        let schema = &request["tools"][0]["function"]["parameters"];
        let arguments = json(call["arguments"].as_str().expect("text"));
        assert!(jsonschema::is_valid(schema, &arguments), "{arguments}");
    }
    let (status, metrics) = server.ask("GET", "/metrics", "");
    assert_eq!(status, 200);
    let names = |text: &str| -> BTreeSet<String> {
        let words = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|w| w.starts_with("louver_"));
        words.map(str::to_owned).collect()
    };
    let declared = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP "))
        .filter_map(|line| line.split(' ').next());
    let declared: BTreeSet<&str> = declared.collect();
    // Families without samples are not exported: an error creates that of errors.
    let (status, _) = server.ask("POST", "/v1/chat/completions", "{");
    assert_eq!(status, 400);
    let (_, after) = server.ask("GET", "/metrics", "");
    let declared: BTreeSet<String> =
        declared.into_iter().map(str::to_owned).chain(names(&after)).collect();
    for block in blocks_of_kind("metrics") {
        let documented = names(&block.text);
        assert!(documented.len() >= 10, "{documented:?}");
        for name in documented {
            let plain = name.strip_suffix("_total").unwrap_or(&name);
            let shown = declared.contains(plain) || declared.contains(&name);
            assert!(shown, "{name} is not among {declared:#?}");
        }
    }
    python(&server);
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Compiles the client program if Python is installed, and runs it if that has the `openai` package
/// (LOUVER_PYTHON names another Python).
fn python(server: &RunningServer) {
    let python = std::env::var("LOUVER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !is_installed(&python) {
        println!("SKIPPED: there is no {python} here; the client's program was not read");
        return;
    }
    let folder = Folder::new("python");
    for block in blocks_of_kind("python") {
        let program = block.text.replace("127.0.0.1:8080", &server.address);
        assert_ne!(program, block.text, "the program asks the port of the guide");
        let path = folder.file("agent.py", &program);
        let compiled =
            Command::new(&python).args(["-m", "py_compile"]).arg(&path).output().expect("it runs");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let package =
            Command::new(&python).args(["-c", "import openai"]).output().expect("it runs");
        if !package.status.success() {
            println!(
                "SKIPPED: {python} has no openai package; the client's program was compiled and \
                 not run"
            );
            continue;
        }
        let output = Command::new(&python).arg(&path).output().expect("it runs");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer = stdout.trim().split_once(' ').map_or("", |(_, answer)| answer);
        assert!(json(answer)["umbrella"].is_boolean(), "{stdout}");
    }
}
