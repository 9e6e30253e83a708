//! Formats with every combination of texts around and between tagged arguments: what they render is
//! accepted and read back, however it is cut, and what a reader cannot decide is refused.

use louver_formats::{Call, FormatError, Turn, WireFormat};
use serde_json::json;

use crate::harness::{bytes, extract, pieces, request};

/// What may stand before, between and after arguments, as TOML.
const AROUND: [&str; 5] = [r#""""#, r#""(""#, r#"", ""#, r#""\n""#, r#"[{ gap = "\n" }]"#];
/// The begin of an argument.
const FIRST: [&str; 4] = ["<a=", r"\n<a=", "  ", " x "];
/// The end of a value.
const CLOSE: [&str; 2] = ["</a>", r"\n"];

fn toml(before: &str, between: &str, after: &str, first: &str, close: &str) -> String {
    format!(
        r#"
            name = "tags"
            title = "Arguments between tags"
            sources = []
            stop_tokens = ["<stop>"]
            text = {{ place = "anywhere" }}
            [call]
            begin = {{ text = "<call>" }}
            header = [{{ name = "raw" }}]
            trailer = ["."]
            end = {{ text = "</call>" }}
            parallel = "many"
            [call.arguments.tagged]
            before = {before}
            open = ["{first}", {{ key = "raw" }}, ": "]
            close = {{ text = "{close}" }}
            between = {between}
            after = {after}
        "#
    )
}

#[test]
fn texts_around_tagged_arguments_are_read_back_or_refused() {
    let tools = r#"[{"name": "f", "parameters": {"properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "list": {}}}}]"#;
    let arguments = ["{}", r#"{"city": "Oslo"}"#, r#"{"city": " a, (b", "days": 3, "list": [1]}"#];
    let (mut read, mut refused) = (0, 0);
    for before in AROUND {
        for between in AROUND {
            for (after, first, close) in AROUND
                .iter()
                .flat_map(|a| FIRST.iter().map(move |f| (a, f)))
                .flat_map(|(after, first)| CLOSE.iter().map(move |close| (after, first, close)))
            {
                let text = toml(before, between, after, first, close);
                let is_undecided = first.trim().is_empty()
                    && [before, between].iter().any(|part| part.contains("gap"));
                let format = match WireFormat::from_toml(&text) {
                    Ok(format) => format,
                    Err(FormatError::Invalid { pointer, line, .. }) => {
                        assert!(is_undecided, "{text}");
                        assert_eq!(pointer, "/call/arguments/tagged/open");
                        let line = line.and_then(|line| text.lines().nth(line - 1));
                        assert!(line.is_some_and(|line| line.contains("open =")), "{line:?}");
                        refused += 1;
                        continue;
                    }
                    Err(error) => panic!("{text}: {error}"),
                };
                assert!(!is_undecided, "{text}");
                let lowered = format.lower(&request(tools, &json!("auto"))).expect("lowers");
                let calls = arguments.map(|arguments| Call::new("f", arguments));
                let mut turn = Turn::default();
                turn.calls = calls.to_vec();
                let wire = format.render(&turn).expect("renders");
                for seed in 0..3 {
                    let cut =
                        if seed == 0 { bytes(&wire) } else { pieces(wire.as_bytes(), seed, 9) };
                    let (found, _) = extract(&lowered, &cut, 1)
                        .unwrap_or_else(|at| panic!("{wire:?} is refused at {at}\n{text}"));
                    let found: Vec<_> = found.calls.iter().map(|call| &call.arguments).collect();
                    assert_eq!(found, arguments.each_ref(), "{wire:?}\n{text}");
                }
                read += 1;
            }
        }
    }
    assert!(read > 300 && refused > 20, "{read} {refused}");
}
