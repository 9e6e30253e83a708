//! The shape of files: line lengths, sizes of functions and structures, circles of imports.

use std::collections::{BTreeMap, BTreeSet};

use super::{CRATES, code, files, is_test, read, relative, without_tests};

/// Most columns of a line.
const MAX_COLUMNS: usize = 100;
/// Most lines of code of a function.
const MAX_FUNCTION_LINES: usize = 60;
/// The comment directly above a longer function, with the reason.
const LONG: &str = "// Long: ";
/// Most fields of a structure.
const MAX_FIELDS: usize = 12;
/// The comment directly above a structure with more fields, with the reason.
const MANY_FIELDS: &str = "// Many fields: ";
/// Most parameters of a function besides `self`.
const MAX_PARAMETERS: usize = 6;
/// Most functions and structures with such a comment. That number only falls.
const MAX_EXCEPTIONS: usize = 14;

/// Folders whose functions and structures are measured.
const MEASURED: &[&str] =
    &["src", "adapters", "benches", "cli/src", "examples/agents", "fuzz", "server/src"];

#[test]
fn lines_have_at_most_100_columns() {
    let mut long = Vec::new();
    let python = ["adapters", "benches"].map(|folder| files(folder, &["py", "pyi"]));
    for path in files("", &["rs", "md", "toml"]).into_iter().chain(python.into_iter().flatten()) {
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

/// An item of a file.
struct Item<'t> {
    /// Its first line, attributes and comments apart.
    head: &'t str,
    /// The lines of code up to its end.
    body: Vec<&'t str>,
    /// The comments and attributes directly above it.
    above: Vec<&'t str>,
}

impl Item<'_> {
    /// Whether a comment above the item begins like this.
    fn has_comment(&self, begin: &str) -> bool {
        self.above.iter().any(|line| line.starts_with(begin))
    }
}

/// The items that begin with a line of this form.
fn items(text: &str, begins: impl Fn(&str) -> bool) -> Vec<Item<'_>> {
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
        let is_above = |line: &&str| line.starts_with("//") || line.starts_with("#[");
        let above = lines[..i].iter().rev().map(|line| line.trim_start()).take_while(is_above);
        out.push(Item {
            head: trimmed,
            body: body.filter(is_code).copied().collect(),
            above: above.collect(),
        });
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

/// Whether a line begins a function.
fn begins_function(line: &str) -> bool {
    let line = bare(line);
    ["fn ", "async fn ", "const fn ", "unsafe fn "].iter().any(|head| line.starts_with(head))
}

#[test]
fn functions_and_structures_are_small() {
    let (mut wrong, mut exceptions, mut seen) = (Vec::new(), Vec::new(), 0);
    for path in MEASURED.iter().flat_map(|folder| files(folder, &["rs"])) {
        let (name, text) = (relative(&path), read(&path));
        if is_test(&name) {
            continue;
        }
        let mut check = |item: &Item, count: usize, most: usize, comment: &str| {
            let list = match (count > most, item.has_comment(comment)) {
                (false, false) => return,
                (false, true) | (true, false) => &mut wrong,
                (true, true) => &mut exceptions,
            };
            list.push(format!("{name}: {} ({count}, {comment:?})", item.head));
        };
        for item in items(&text, begins_function) {
            seen += 1;
            // The closing brace is a line, too.
            check(&item, item.body.len() + 1, MAX_FUNCTION_LINES, LONG);
        }
        for item in items(&text, |line| bare(line).starts_with("struct ")) {
            let fields = item.body.iter().skip(1).filter(|line| {
                let field = bare(line.trim_start()).split(':').next().unwrap_or_default();
                line.contains(": ") && field.chars().all(|c| c.is_alphanumeric() || c == '_')
            });
            check(&item, fields.count(), MAX_FIELDS, MANY_FIELDS);
        }
    }
    assert!(seen > 2_000, "only {seen} functions were found");
    assert!(wrong.is_empty(), "too large, or a comment without need: {wrong:#?}");
    let found = exceptions.len();
    assert!(found <= MAX_EXCEPTIONS, "{found} exceptions: {exceptions:#?}");
}

#[test]
fn functions_have_few_parameters() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in MEASURED.iter().flat_map(|folder| files(folder, &["rs"])) {
        let (name, text) = (relative(&path), read(&path));
        if is_test(&name) {
            continue;
        }
        let text: Vec<&str> = code(&text).collect();
        let text = text.join(" ");
        for (at, _) in text.match_indices("fn ").filter(|(at, _)| text[..*at].ends_with(' ')) {
            let Some(parameters) = parameters(&text[at..]) else { continue };
            seen += 1;
            let count = parameters.len();
            // A tuple that is taken apart is several parameters.
            let is_tuple = |parameter: &&str| parameter.contains("): (");
            if count > MAX_PARAMETERS || parameters.iter().any(is_tuple) {
                let head: String = text[at..].chars().take(60).collect();
                wrong.push(format!("{name}: {head} ({count})"));
            }
        }
    }
    assert!(seen > 2_000, "only {seen} functions were found");
    assert!(wrong.is_empty(), "over {MAX_PARAMETERS} parameters, or tuples: {wrong:#?}");
}

/// The parameters, without `self`, of a function whose text this begins with.
fn parameters(text: &str) -> Option<Vec<&str>> {
    let text = text.strip_prefix("fn ")?;
    let name = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').count();
    let mut rest = &text[name..];
    if name == 0 {
        return None;
    }
    if rest.starts_with('<') {
        rest = &rest[group(rest)?..];
    }
    let list = &rest[..group(rest.starts_with('(').then_some(rest)?)?];
    let is_self = |parameter: &&str| {
        let name = parameter.split(':').next().unwrap_or_default();
        name.split_whitespace().last().is_some_and(|name| name.trim_start_matches('&') == "self")
    };
    Some(elements(list).into_iter().filter(|p| !is_self(p)).collect())
}

/// The length of the bracketed group at the start of a text.
fn group(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if text[..at].ends_with(['-', '=']) => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The elements of a bracketed list.
fn elements(list: &str) -> Vec<&str> {
    let inner = list.get(1..list.len().saturating_sub(1)).unwrap_or_default();
    let (mut out, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(c) = inner[at..].chars().next() {
        match c {
            ',' => {
                out.push(inner[from..at].trim());
                (from, at) = (at + 1, at + 1);
            }
            '(' | '[' | '{' | '<' => at += group(&inner[at..]).unwrap_or(1),
            _ => at += c.len_utf8(),
        }
    }
    out.push(inner[from..].trim());
    out.retain(|part| !part.is_empty());
    out
}

#[test]
fn parameters_are_counted() {
    for (text, count) in [
        ("fn f()", Some(0)),
        ("fn f(&self, a: u8)", Some(1)),
        ("fn f(&mut self, (a, (b, c)): (u8, (u8, u8)), d: impl Fn(u8, u8) -> u8,)", Some(2)),
        ("fn f<T: Into<(u8, u8)>>(mut self, a: &[(u8, u8)], b: HashMap<u8, T>)", Some(2)),
        ("fn (u8, u8)", None),
        ("fn f", None),
    ] {
        assert_eq!(parameters(text).map(|found| found.len()), count, "{text}");
    }
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

/// Imports of a crate's files that close a circle: the imported file leads back to the importing
/// one.
/// Parents and children are not counted.
fn circular_imports(folder: &str) -> Vec<String> {
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
    let circular = |from: &Module, to: &Module| reachable(to).contains(from);
    edges
        .iter()
        .flat_map(|(from, targets)| targets.iter().map(move |to| (from, to)))
        .filter(|(from, to)| circular(from, to))
        .map(|(from, to)| format!("{} imports {}", from.join("/"), to.join("/")))
        .collect()
}

#[test]
fn files_form_no_circles() {
    for folder in CRATES {
        let circular = circular_imports(folder);
        assert!(circular.is_empty(), "{folder}: {circular:#?}");
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
    "exact",
    "channel",
    "pattern",
    "format",
    "request",
    "arguments",
    "lowered",
    "lower",
    "read",
    "render",
    "compile",
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
const SCHEMA_LEAVES: &[&str] = &["error", "format", "options", "schema_key", "keyword", "warnings"];
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
