//! `docs/FORMATS.md` is generated from the descriptions. `LOUVER_WRITE_DOCS=1` writes it.

use std::fmt::Write as _;
use std::path::PathBuf;

use louver_formats::{
    ArgumentStyle, Call, Catalog, Opener, RenderError, RenderOptions, TextPlace, Turn, WireFormat,
};

use crate::special_tokens::{begin_marker_tokens, written_out_marker_begins_a_call};

const HEAD: &str = "# Wire formats

Each model family has one TOML file in `adapters/formats/families`, with the fields of
`schemas/wire-format.schema.json`. A user's own file is read at run time (`Catalog::add_file`):
[WIRE_FORMATS.md](WIRE_FORMATS.md) explains each field with an example, and how to try a file. The
grammar of a turn, the extractor, the renderer and detection are made from the file. A test (`docs`)
generates this page from the files and checks it.

A family's file also lists alternative spellings of calls (`[[spellings]]`) that its models are
known to write beside the syntax of the chat template. In free text they begin a call, which is
constrained as any other. If a call is forced, the template's syntax is the only one. The begin
marker of a call cannot occur in reasoning or in a string between tags, unless it is a single
character or ambiguous. An ambiguous begin marker (`text_unless`) is text unless the name of an
offered tool follows.

In all families whose free text has no markers, a JSON object with the name of an offered tool is
such a call, too: `{\"name\": \"get_weather\", \"arguments\": {...}}`, with `parameters` for
`arguments`, with `function`, `tool` or `tool_name` for `name`, perhaps after
`\"type\": \"function\"`, and in the white space that encoders of JSON write. An object with the
name of another tool cannot go on with `arguments` or `parameters`; any other object is text.
`json_objects = false` in a description leaves all of them to the text.

Other texts that look like calls stay text, also with the name of an offered tool. They also
occur in ordinary answers, above all in code:

* `get_weather(city=\"Oslo\")` without brackets, and `[get_weather(city=\"Oslo\")]` in families
  whose section does not show it, although Gemma 3, Llama 3.2 and LFM2 may write it;
* a JSON object with other members before the name, such as an `id`, or with other names of members:
  `function_name`, `action` and `action_input`, `args`;
* a Python dictionary: `{'name': 'get_weather', 'arguments': {...}}`;
* `<invoke name=\"get_weather\">` in families whose section does not show it.

Markers are shown as text. `bind` replaces those that a vocabulary has as special tokens. The
markers of Harmony are always special tokens.

The prompt is not read: a marker in a user's message or in a tool's result begins nothing. (Only the
end of the prompt is read, for the question whether it opens a reasoning block.) Tokenizers make a
special token of its text in a prompt, too; written-out text stays text. A model that quotes such a
text may write the marker out in ordinary tokens. In most families that begins a call too, which is
constrained as any other: a call of a tool that is not offered, or with wrong arguments, cannot
follow. Where it is text instead, the family's section says so.

";

fn example(format: &WireFormat) -> Turn {
    let call = |name: &str, arguments: &str| Call::new(name, arguments);
    Turn::default()
        .with_text("Let me look.")
        .with_reasoning(
            format.reasoning.as_ref().map(|_| "They ask for Oslo.".to_owned()).unwrap_or_default(),
        )
        .with_calls(vec![
            call("get_weather", "{\"city\": \"Oslo\", \"days\": 3}"),
            call("get_time", "{\"zone\": \"CET\"}"),
        ])
}

fn style(format: &WireFormat) -> &'static str {
    match format.call.arguments {
        ArgumentStyle::Json => "JSON",
        ArgumentStyle::Keywords => "Python keyword arguments",
        ArgumentStyle::JsonKeywords => "Python keyword arguments with JSON's words, too",
        ArgumentStyle::Delimited(_) => "bare names, delimited strings",
        ArgumentStyle::Tagged(_) => "one tag per argument, unescaped strings",
        ArgumentStyle::Nested(_) => "nested tags, unescaped strings",
    }
}

fn list<T>(items: impl IntoIterator<Item = T>, write: impl FnMut(T) -> String) -> String {
    items.into_iter().map(write).collect::<Vec<_>>().join(", ")
}

/// The built-in tools, with a call with arguments and a call with code.
fn builtins(format: &WireFormat) -> String {
    let Some(builtin) = &format.builtin else { return String::new() };
    let known = list(builtin.known.keys(), |name| format!("`{name}`"));
    let call = |name: &str, arguments: &str| {
        let calls = vec![Call::new(name, arguments)];
        let builtins = [name];
        let options = RenderOptions::default().with_builtins(&builtins);
        format.render_with(&Turn::default().with_calls(calls), options).expect("renders")
    };
    let searches = builtin.known.keys().find(|name| name.contains("search")).expect("a search");
    let (search, code) =
        (call(searches, "{\"query\": \"Oslo\"}"), call("python", "{\"code\": \"1 + 1\"}"));
    format!(
        "* Built-in tools, if a request offers them: {known}\n  * `{search}`\n  * others are called \
         with code: `{code}`\n"
    )
}

/// What the begin marker of calls is, and so what its text in a prompt is.
fn begin_marker(format: &WireFormat) -> &'static str {
    match begin_marker_tokens(format) {
        (true, _) => "special tokens, also in a prompt",
        (false, true) => "a special token, also in a prompt, if the vocabulary has it",
        (false, false) => "written-out text; in a prompt it is text",
    }
}

/// The begin markers of alternative spellings.
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
        format!("* Begin markers of alternative spellings:\n  * {}\n", begins.join("\n  * "))
    }
}

fn page() -> String {
    let mut out = HEAD.to_owned();
    for format in Catalog::shipped().formats() {
        let mut turn = example(format);
        let rendered = match format.render(&turn) {
            Err(RenderError::TextBesideCalls) => {
                turn.text.clear();
                format.render(&turn)
            }
            other => other,
        };
        let text = match (format.messages.is_some(), format.text.place) {
            (true, _) => "a message",
            (_, TextPlace::Anywhere) => "before, between and after calls",
            (_, TextPlace::BeforeCalls) => "before calls",
            (_, TextPlace::InsteadOfCalls) => "instead of calls",
        };
        let reasoning = match format.reasoning.as_ref().map(|reasoning| reasoning.opened_by) {
            None => "none",
            Some(Opener::Model) => "opened by the model",
            Some(Opener::Template) => "opened by the chat template",
        };
        let written_out = if written_out_marker_begins_a_call(format) {
            ""
        } else {
            "* Markers written out in ordinary tokens: text\n"
        };
        let _ = write!(
            out,
            "## {name}\n\n{title}.\n\n* Arguments: {style}\n* Text: {text}\n\
             * Reasoning: {reasoning}\n* Stop tokens: {stops}\n* Begin marker of calls: {begin}\n\
             {written_out}{builtins}{spellings}\n\
             ````text\n{example}\n````\n\n\
             Sources:\n\n* {sources}\n\n",
            name = format.name,
            title = format.title,
            style = style(format),
            begin = begin_marker(format),
            stops = list(&format.stop_tokens, |token| format!("`{token}`")),
            builtins = builtins(format),
            spellings = spellings(format),
            example = rendered.expect("renders"),
            sources = format.sources.join("\n* "),
        );
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

#[test]
fn readmes_say_how_many_families_there_are() {
    let claim = format!("{} model families", Catalog::shipped().formats().len());
    for readme in [include_str!("../../README.md"), include_str!("../../../../README.md")] {
        assert!(readme.contains(&claim), "not \"{claim}\"");
    }
}

const GUIDE: &str = include_str!("../../../../docs/WIRE_FORMATS.md");

/// The first block of the guide in a language.
fn block(language: &str) -> &'static str {
    let (_, after) = GUIDE.split_once(&format!("\n```{language}\n")).expect("a block");
    after.split_once("```").expect("its end").0
}

#[test]
fn the_guide_has_a_format_that_writes_its_turn() {
    let format = WireFormat::from_toml(block("toml")).expect("a wire format");
    let rendered = format.render(&example(&format)).expect("renders");
    assert_eq!(rendered + "\n", block("text"));
}

#[test]
fn the_guide_has_every_field_and_families_that_exist() {
    let schema = include_str!("../../../../schemas/wire-format.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
    let members = |table: &serde_json::Value| -> Vec<(String, bool)> {
        let required = table["required"].as_array().cloned().unwrap_or_default();
        let names = table["properties"].as_object().into_iter().flat_map(|table| table.keys());
        names.map(|name| (name.clone(), required.contains(&name.as_str().into()))).collect()
    };
    let tables = ["text", "reasoning", "section", "call"];
    let mut fields = members(&schema);
    fields.retain(|(name, _)| !tables.contains(&&**name));
    for table in tables {
        let inner = members(&schema["properties"][table]);
        assert!(!inner.is_empty(), "{table}");
        fields.extend(inner.into_iter().map(|(name, is)| (format!("{table}.{name}"), is)));
    }
    for (field, is_required) in fields {
        let rows = GUIDE.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let cells: Vec<&str> = rows.flat_map(|cell| cell.split(", ")).collect();
        let cell = format!("`{field}`{}", if is_required { " *" } else { "" });
        assert!(cells.contains(&&*cell), "no row has {cell}");
    }
    let catalog = Catalog::shipped();
    let rows: Vec<&str> =
        GUIDE.split("a family that has it").nth(1).expect("rows").lines().collect();
    let last = rows.iter().filter_map(|row| row.strip_suffix("` |")?.rsplit('`').next());
    let known = last.filter(|name| catalog.get(name).is_ok()).count();
    assert_eq!(known, 6, "each style names a family");
}

#[test]
fn formats_page_is_generated_from_the_descriptions() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMATS.md");
    let page = page();
    if std::env::var_os("LOUVER_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/FORMATS.md is not up to date: LOUVER_WRITE_DOCS=1 writes it");
}
