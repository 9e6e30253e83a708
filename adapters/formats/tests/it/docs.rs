//! `docs/FORMATS.md` says what the families' files say. `LOUVER_WRITE_DOCS=1` writes it.

use std::fmt::Write as _;
use std::path::PathBuf;

use louver_formats::{
    ArgumentStyle, Call, CallKind, Catalog, Opener, RenderError, RenderOptions, TextPlace, Turn,
    WireFormat,
};

const HEAD: &str = "# Wire formats

One TOML file a family (`adapters/formats/families`), read by the rules of `schemas/wire-format.schema.json`; a user's own file is read
the same way at run time (`Catalog::add_file`). The grammar of a turn, the extractor, the renderer and detection come from it. This
page is written from the files by a test (`docs`), which also holds it to them.

A family's file also lists other spellings of calls than the template's (`[[spellings]]`) that its
models are known to write. In free text they begin a call that is constrained as any other; where a
call is forced, the template's spelling is. What begins a call cannot stand in reasoning or in a
string between tags. A beginning that may be text (`text_unless`) is text unless the name of an
offered tool follows.

Markers stand here as text; `bind` makes those that a vocabulary has as special tokens special tokens. Harmony's are never text.

";

fn example(format: &WireFormat) -> Turn {
    let call = |name: &str, arguments: &str| Call {
        id: String::new(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        kind: CallKind::Function,
    };
    Turn {
        text: "Let me look.".to_owned(),
        reasoning: format
            .reasoning
            .as_ref()
            .map(|_| "They ask for Oslo.".to_owned())
            .unwrap_or_default(),
        calls: vec![
            call("get_weather", "{\"city\": \"Oslo\", \"days\": 3}"),
            call("get_time", "{\"zone\": \"CET\"}"),
        ],
        ..Turn::default()
    }
}

fn style(format: &WireFormat) -> &'static str {
    match format.call.arguments {
        ArgumentStyle::Json => "JSON",
        ArgumentStyle::Keywords => "Python keyword arguments",
        ArgumentStyle::Delimited(_) => "bare names, delimited strings",
        ArgumentStyle::Tagged(_) => "a tag each, strings raw",
    }
}

/// The model's own tools, with a call of one and code.
fn own(format: &WireFormat) -> String {
    let Some(builtin) = &format.builtin else { return String::new() };
    let known = builtin.known.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let call = |name: &str, arguments: &str| {
        let calls = vec![Call {
            id: String::new(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            kind: CallKind::Function,
        }];
        let options = RenderOptions { builtins: &[name], ..RenderOptions::default() };
        format.render_with(&Turn { calls, ..Turn::default() }, options).expect("renders")
    };
    let searches = builtin.known.keys().find(|name| name.contains("search")).expect("a search");
    let (search, code) =
        (call(searches, "{\"query\": \"Oslo\"}"), call("python", "{\"code\": \"1 + 1\"}"));
    format!(
        "\n\nThe model's own tools, where a request offers them: {known} (`{search}`); others are called with code (`{code}`)."
    )
}

/// What else begins calls.
fn spellings(format: &WireFormat) -> String {
    let begin = |spelling: &louver_formats::CallSpelling| {
        let named =
            if spelling.text_unless.is_some() { " with the name of an offered tool" } else { "" };
        let begin = spelling.begin.write();
        let begin = if begin.contains('`') {
            format!("`` {} ``", begin.trim())
        } else {
            format!("`{begin}`")
        };
        begin + named
    };
    let mut begins: Vec<String> = format.spellings.iter().map(begin).collect();
    begins.dedup();
    if begins.is_empty() {
        String::new()
    } else {
        format!("\n\nOther spellings of calls begin with: {}.", begins.join(", "))
    }
}

fn page() -> String {
    let mut out = HEAD.to_owned();
    for format in Catalog::builtin().formats() {
        let mut turn = example(format);
        let rendered = match format.render(&turn) {
            Err(RenderError::TextBesideCalls) => {
                turn.text.clear();
                format.render(&turn)
            }
            other => other,
        };
        let text = match (format.messages.is_some(), format.text.place) {
            (true, _) => "messages of their own",
            (_, TextPlace::Anywhere) => "before, between and behind calls",
            (_, TextPlace::BeforeCalls) => "before calls",
            (_, TextPlace::InsteadOfCalls) => "instead of calls",
        };
        let reasoning = match format.reasoning.as_ref().map(|reasoning| reasoning.opened_by) {
            None => "none",
            Some(Opener::Model) => "opened by the model",
            Some(Opener::Template) => "opened by the chat template",
        };
        let _ = write!(
            out,
            "## {}\n\n{}.\n\nArguments: {}. Text: {text}. Reasoning: {reasoning}. Ends with: {}.{}{}\n\n````text\n{}\n````\n\nSources: {}.\n\n",
            format.name,
            format.title,
            style(format),
            format.stop_tokens.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", "),
            own(format),
            spellings(format),
            rendered.expect("renders"),
            format.sources.join("; "),
        );
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

#[test]
fn the_page_on_formats_is_what_the_files_say() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMATS.md");
    let page = page();
    if std::env::var_os("LOUVER_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/FORMATS.md is not up to date: LOUVER_WRITE_DOCS=1 writes it");
}
