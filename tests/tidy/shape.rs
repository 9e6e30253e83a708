//! The shape of files: line lengths, sizes of functions and structures, circles of imports.

use std::collections::{BTreeMap, BTreeSet};

use super::{code, files, is_test, read, relative, without_tests};

/// Most columns of a line.
const MAX_COLUMNS: usize = 100;
/// Most lines of code of a function, and how many functions are longer. That number only falls.
const MAX_FUNCTION_LINES: usize = 60;
const LONG_FUNCTIONS: usize = 57;
/// Most fields of a structure, and how many structures have more. That number only falls.
const MAX_FIELDS: usize = 12;
const WIDE_STRUCTURES: usize = 25;

/// Folders whose functions and structures are measured.
const MEASURED: &[&str] = &["src", "adapters", "cli/src", "server/src"];

#[test]
fn lines_have_at_most_100_columns() {
    let mut long = Vec::new();
    for path in files("", &["rs", "md", "toml"]) {
        let (name, text) = (relative(&path), read(&path));
        // Wire examples and titles of families, which a generated page shows as well.
        if name.contains("/families/") || name == "docs/FORMATS.md" {
            continue;
        }
        let (data, mut program) = (name.ends_with(".toml"), false);
        for (i, line) in text.lines().enumerate() {
            program ^= name.ends_with(".md") && line.trim_start().starts_with("```");
            if line.chars().count() > MAX_COLUMNS && !program && !may_be_long(line, data) {
                long.push(format!("{name}:{}", i + 1));
            }
        }
    }
    assert!(long.is_empty(), "{} lines over {MAX_COLUMNS} columns: {long:#?}", long.len());
}

/// Rows of tables, links, data, and texts that cannot be broken.
fn may_be_long(line: &str, data: bool) -> bool {
    let trimmed = line.trim_start();
    let comment = trimmed.starts_with("//") || trimmed.starts_with("# ");
    if comment {
        // Tables within documentation comments, and addresses.
        return trimmed.trim_start_matches(['/', '!', ' ']).starts_with('|')
            || line.contains("://");
    }
    // What rustfmt cannot break: attributes, and the arguments of macros.
    if trimmed.starts_with("#[") || trimmed.contains("!(") || trimmed.contains("![") {
        return true;
    }
    data || trimmed.starts_with('|') || trimmed.contains("://") || has_long_text(trimmed)
}

/// Whether a line of code has a text of more than 40 characters, or continues one.
fn has_long_text(line: &str) -> bool {
    let quotes: Vec<usize> = line.match_indices('"').map(|(at, _)| at).collect();
    quotes
        .first()
        .zip(quotes.last())
        .is_some_and(|(first, last)| last - first > 40 || quotes.len() == 1)
        || line.starts_with(['{', '<', '\\'])
}

/// The items that begin with a line of this form, each with the lines of code up to its end.
fn items(text: &str, begins: impl Fn(&str) -> bool) -> Vec<(&str, Vec<&str>)> {
    let lines: Vec<&str> = without_tests(text).lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        if !begins(trimmed) || trimmed.ends_with([';', '}']) {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - trimmed.len()]);
        let body = lines[i..].iter().take_while(|line| !line.starts_with(&end));
        let is_code = |line: &&&str| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with("//")
        };
        out.push((trimmed, body.filter(is_code).copied().collect()));
    }
    out
}

/// A line without its visibility.
fn bare(line: &str) -> &str {
    match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c: char| !c.is_whitespace()).trim_start(),
        None => line,
    }
}

#[test]
fn functions_and_structures_are_small() {
    let (mut long, mut wide, mut seen) = (Vec::new(), Vec::new(), 0);
    for path in MEASURED.iter().flat_map(|folder| files(folder, &["rs"])) {
        let (name, text) = (relative(&path), read(&path));
        if is_test(&name) {
            continue;
        }
        let function = |line: &str| {
            let line = bare(line);
            ["fn ", "async fn ", "const fn ", "unsafe fn "]
                .iter()
                .any(|head| line.starts_with(head))
        };
        for (head, body) in items(&text, function) {
            seen += 1;
            // The closing brace is a line, too.
            if body.len() + 1 > MAX_FUNCTION_LINES {
                long.push(format!("{name}: {head} ({})", body.len() + 1));
            }
        }
        for (head, body) in items(&text, |line| bare(line).starts_with("struct ")) {
            let fields = body.iter().skip(1).filter(|line| {
                let field = bare(line.trim_start()).split(':').next().unwrap_or_default();
                line.contains(": ") && field.chars().all(|c| c.is_alphanumeric() || c == '_')
            });
            if fields.clone().count() > MAX_FIELDS {
                wide.push(format!("{name}: {head} ({})", fields.count()));
            }
        }
    }
    assert!(seen > 2_000, "only {seen} functions were found");
    assert!(long.len() <= LONG_FUNCTIONS, "{} long functions: {long:#?}", long.len());
    assert!(wide.len() <= WIDE_STRUCTURES, "{} wide structures: {wide:#?}", wide.len());
}

type Module = Vec<String>;

/// The paths that a use tree names.
fn expand(prefix: &str, tree: &str, out: &mut Vec<String>) {
    let (mut depth, mut from) = (0, 0);
    let mut parts = Vec::new();
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[from..]);
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('{') {
            Some((head, rest)) => {
                let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
                expand(&format!("{prefix}{head}"), inner, out);
            }
            None => out.push(format!("{prefix}{}", part.split(" as ").next().unwrap_or(part))),
        }
    }
}

/// All paths that begin with `crate`, `super` or `self`, and all that are imported.
fn paths(text: &str) -> Vec<String> {
    let lines: Vec<&str> = code(text).map(|line| line.split("//").next().unwrap_or(line)).collect();
    let (text, mut out) = (lines.join(" "), Vec::new());
    let uses = text
        .match_indices("use ")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    for (at, word) in uses {
        let tree = text[at + word.len()..].split(';').next().unwrap_or_default();
        expand("", tree, &mut out);
    }
    for head in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(head) {
            let path = text[at..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            out.push(path.into_iter().next().unwrap_or_default().trim_end_matches(':').to_owned());
        }
    }
    out
}

/// The module a path leads to from another one, as far as modules are files.
fn target(from: &Module, path: &str, modules: &BTreeMap<Module, String>) -> Option<Module> {
    let mut names = path.split("::").map(str::trim).peekable();
    let mut at = match *names.peek()? {
        "crate" => Module::new(),
        "super" | "self" => from.clone(),
        name => {
            let child: Module = from.iter().cloned().chain([name.to_owned()]).collect();
            return modules.contains_key(&child).then_some(child);
        }
    };
    while let Some(name) = names.next_if(|name| ["crate", "super", "self"].contains(name)) {
        if name == "super" {
            at.pop();
        }
    }
    for name in names {
        at.push(name.to_owned());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    modules.contains_key(&at).then_some(at)
}

/// The modules of a crate that are files, and for each one the modules that it names.
fn imports_of_modules(folder: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut modules: BTreeMap<Module, String> = BTreeMap::new();
    for path in files(folder, &["rs"]) {
        let name = relative(&path);
        let inside = name.strip_prefix(folder).unwrap_or(&name).trim_matches('/').to_owned();
        let mut module: Module =
            inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if module.iter().any(|part| part == "tests") {
            continue;
        }
        if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            module.pop();
        }
        modules.insert(module, read(&path));
    }
    let targets = |module: &Module, text: &str| -> BTreeSet<Module> {
        paths(text).into_iter().filter_map(|path| target(module, &path, &modules)).collect()
    };
    modules.iter().map(|(module, text)| (module.clone(), targets(module, text))).collect()
}

/// Files of a crate that are in a circle: each imports the next, parents and children apart.
fn files_in_circles(folder: &str) -> Vec<String> {
    let related = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
    let mut edges = imports_of_modules(folder);
    edges.iter_mut().for_each(|(module, targets)| targets.retain(|to| !related(module, to)));
    let reachable = |from: &Module| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = todo.pop() {
            for to in &edges[&next] {
                if seen.insert(to.clone()) {
                    todo.push(to.clone());
                }
            }
        }
        seen
    };
    edges.keys().filter(|module| reachable(module).contains(*module)).map(|m| m.join("/")).collect()
}

/// The folders of sources without circles, a crate each.
const WITHOUT_CIRCLES: &[&str] = &["src", FORMATS, "adapters/templates/src", "cli/src"];

#[test]
fn files_form_no_circles() {
    for folder in WITHOUT_CIRCLES {
        let circular = files_in_circles(folder);
        assert!(circular.is_empty(), "{folder}: files in circles of imports: {circular:#?}");
    }
}

/// The imports from a folder's files and folders that lead to one of greater height, and the names
/// seen. `height`: of a name in the folder; of the folder itself, whose name is empty.
fn upward_imports(
    crate_folder: &str,
    folder: &[&str],
    height: impl Fn(&str) -> Option<usize>,
) -> (Vec<String>, BTreeSet<String>) {
    let folder: Module = folder.iter().map(|name| (*name).to_owned()).collect();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (module, targets) in imports_of_modules(crate_folder) {
        let Some([own, ..]) = module.strip_prefix(&folder[..]) else { continue };
        let Some(own_height) = height(own) else {
            wrong.push(format!("`{own}` is in no list"));
            continue;
        };
        seen.insert(own.clone());
        for to in &targets {
            let Some(inside) = to.strip_prefix(&folder[..]) else { continue };
            let target_height = height(inside.first().map_or("", String::as_str));
            if target_height.is_none_or(|target| target > own_height) {
                wrong.push(format!("{} imports {}", module.join("/"), to.join("/")));
            }
        }
    }
    (wrong, seen)
}

/// The sources of the wire formats.
const FORMATS: &str = "adapters/formats/src";
/// Their stages in order. A stage may use the earlier ones.
const FORMAT_STAGES: &[&str] = &[
    "channel",
    "pattern",
    "format",
    "request",
    "arguments",
    "plan",
    "lower",
    "read",
    "render",
    "compile",
    "constraint",
    "registry",
];

#[test]
fn format_stages_import_earlier_stages_only() {
    let height = |name: &str| FORMAT_STAGES.iter().position(|stage| *stage == name);
    let (wrong, seen) = upward_imports(FORMATS, &[], height);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(seen.len(), FORMAT_STAGES.len(), "stages are gone; seen {seen:?}");
}

/// The folder of the JSON Schema front end.
const JSON_SCHEMA: [&str; 2] = ["front", "json_schema"];
/// Its leaves, which all of its steps may use.
const SCHEMA_LEAVES: &[&str] =
    &["decimal", "error", "format", "options", "schema_key", "subschemas"];
/// Its steps in order. A step may use the earlier ones.
const SCHEMA_STEPS: &[&str] = &["read", "normalize", "lower"];
/// Its files above the steps, which may use all others.
const ABOVE_SCHEMA_STEPS: &[&str] = &["deferred", "profile"];

/// How high a file or folder of the JSON Schema front end stands; `None` if it is in no list.
fn schema_height(name: &str) -> Option<usize> {
    if SCHEMA_LEAVES.contains(&name) {
        return Some(0);
    }
    let step = SCHEMA_STEPS.iter().position(|step| *step == name).map(|step| step + 1);
    // The folder itself has the entry points, which use all steps.
    let is_above = name.is_empty() || ABOVE_SCHEMA_STEPS.contains(&name);
    step.or_else(|| is_above.then_some(SCHEMA_STEPS.len() + 1))
}

#[test]
fn schema_steps_import_earlier_steps_and_leaves_only() {
    let (wrong, seen) = upward_imports("src", &JSON_SCHEMA, schema_height);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let listed = SCHEMA_LEAVES.len() + SCHEMA_STEPS.len() + ABOVE_SCHEMA_STEPS.len();
    assert_eq!(seen.len(), listed, "files or folders are gone; seen {seen:?}");
}

#[test]
fn imports_are_resolved() {
    let mut found = paths("use a::{b, c::{d as e}};\nlet x = super::f::g(crate::h);\n// use not;");
    found.sort();
    assert_eq!(found, ["a::b", "a::c::d", "crate::h", "super::f::g"]);
    let module = |path: &str| path.split('/').map(str::to_owned).collect::<Module>();
    let known = ["x", "x/y", "x/z"].map(|path| (module(path), String::new()));
    let known = BTreeMap::from(known);
    assert_eq!(target(&module("x/y"), "super::z::T", &known), Some(module("x/z")));
    assert_eq!(target(&module("x/y"), "crate::x::f", &known), Some(module("x")));
    assert_eq!(target(&module("x"), "y::T", &known), Some(module("x/y")));
    assert_eq!(target(&module("x/y"), "std::fmt", &known), None);
}
