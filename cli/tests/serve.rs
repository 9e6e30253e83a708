//! Startup of `louver serve`: log lines about API keys, and refused configurations.
#![cfg(feature = "host")]

use std::net::TcpListener;
use std::process::{Command, Stdio};

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
