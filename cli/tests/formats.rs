//! Wire formats from files, files of cases, and builds without the host.

mod support;

use support::{Folder, louver, path};

#[test]
fn the_guide_to_wire_formats_works() {
    let guide = include_str!("../../docs/WIRE_FORMATS.md");
    let block = |language: &str| {
        let after = guide.split(&format!("\n```{language}\n")).nth(1).expect("a block");
        after.split("```").next().expect("its end").to_owned()
    };
    let folder = Folder::new("guide");
    let format = folder.file("harbor.toml", &block("toml"));
    let template = folder.file("harbor.jinja", &block("jinja"));
    let tools =
        r#"[{"name": "get_weather", "parameters": {}}, {"name": "get_time", "parameters": {}}]"#;
    let tools = folder.file("tools.json", tools);
    let output = folder.file("output.txt", &block("text"));
    let options = format!("{{\"format\": {:?}}}", path(&format));
    for command in [
        &["formats", "show", path(&format)][..],
        &["formats", "check", path(&format), path(&template)],
        &["formats", "detect", path(&template)],
        &["check", "--tools", path(&tools), "--options", &options, path(&output)],
        &["explain", "--tools", path(&tools), "--options", &options, "--at", "<|call|>"],
    ] {
        let run = louver(command);
        assert!(run.status.success(), "{command:?}: {run:?}");
    }
}

/// Reasons are on stderr. What was derived is on stdout: a description to be corrected, which says
/// what speaks against it.
#[test]
fn what_is_not_confirmed_is_printed_to_be_corrected() {
    let folder = Folder::new("unconfirmed");
    let detect = |arguments: &str| {
        let call = format!("<call>{{{{ c.function.name }}}} {{{{ {arguments} }}}}</call>");
        let template = format!(
            "{{% for t in tools or [] %}}{{{{ t | tojson }}}}{{% endfor %}}{{% for m in messages %}}\
             <|{{{{ m.role }}}}|>{{{{ m.content or '' }}}}\
             {{%- for c in m.tool_calls or [] %}}{call}{{% endfor %}}<|end|>{{% endfor %}}\
             {{%- if add_generation_prompt %}}<|assistant|>{{% endif %}}"
        );
        let template = folder.file("mine.jinja", &template);
        let run = louver(&["formats", "detect", path(&template)]);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (run.status.code(), text(run.stdout), text(run.stderr))
    };
    let json = "c.function.arguments | tojson";
    assert_eq!(detect(json).0, Some(0));
    let (code, description, said) = detect(&format!("({json}) | replace('  ', ' ')"));
    assert_eq!(code, Some(1));
    assert!(said.contains("mine.jinja: the wire format is unknown"), "{said}");
    assert!(said.contains("is not confirmed: values: the calls are read as"), "{said}");
    let mut lines = description.lines().skip_while(|line| !line.ends_with("against the format:"));
    let (against, next) = (lines.nth(1).unwrap_or_default(), lines.next().unwrap_or_default());
    assert!(against.starts_with("#   values: the calls are read as"), "{description}");
    assert_eq!(next, "# Other turns:");
    let file = folder.file("mine.toml", &description);
    assert!(louver(&["formats", "show", path(&file)]).status.success(), "{description}");
    let (code, description, said) = detect("c.function.arguments.values() | list | tojson");
    assert!(code == Some(1) && description.is_empty() && said.contains("does not tell"), "{said}");
}

#[test]
fn a_format_may_be_a_file() {
    let folder = Folder::new("own_format");
    let text = include_str!("../../adapters/formats/families/hermes.toml");
    let text = text.replacen("\"hermes\"", "\"mine\"", 1).replace("tool_call>", "my_call>");
    let format = folder.file("mine.toml", &text);
    let tools = folder.file("tools.json", r#"[{"name": "f", "parameters": {}}]"#);
    let call = "<my_call>\n{\"name\": \"f\", \"arguments\": {}}\n</my_call>";
    let options = format!("{{\"format\": {:?}, \"tool_choice\": \"required\"}}", path(&format));
    for (input, code) in [(call, 0), ("<my_call>\n{\"name\": \"g\"", 1)] {
        let input = folder.file("input", input);
        let check = ["check", "--tools", path(&tools), "--options", &options, path(&input)];
        assert_eq!(louver(&check).status.code(), Some(code), "{:?}", louver(&check));
    }
    for command in ["check", "explain"] {
        let help = louver(&[command, "--help"]);
        let help = String::from_utf8_lossy(&help.stdout).replace("\n          ", " ");
        assert!(help.contains("by default qwen3"), "{help}");
    }
}

#[test]
fn files_without_a_case_are_refused() {
    let folder = Folder::new("no_case");
    let out = folder.0.join("out.jsonl");
    let check = |lines: &str| {
        let cases = folder.file("in.jsonl", lines);
        let run = louver(&["check", "--cases", path(&cases), "--out", path(&out)]);
        (run.status.code(), String::from_utf8(run.stderr).expect("text"))
    };
    let case = |id: &str| {
        format!("{{\"id\": {id}, \"kind\": \"regex\", \"spec\": \"a\", \"input\": \"a\"}}\n")
    };
    assert_eq!(check(&(case("1") + &case("\"b\""))).0, Some(0));
    let (code, said) = check(&(case("1") + &case("[]")));
    assert!(code == Some(0) && said.contains("1 of 2 lines are not cases: line 2"), "{said}");
    let (code, said) = check("\n");
    assert!(code == Some(2) && said.contains("is a case: none was read"), "{said}");
    let (code, said) = check(&case("null"));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is a case: line 1 is not a case: `id` must be a string or"), "{said}");
}

#[cfg(not(feature = "host"))]
#[test]
fn a_build_without_the_host_says_so() {
    for command in [&["serve", "--tiny"][..], &["demo"], &["serve", "--help"]] {
        let run = louver(command);
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(2) && said.contains("the feature `host`"), "{said}");
    }
    let help = louver(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    assert!(!help.contains("serve") && !help.contains("demo"), "{help}");
}
