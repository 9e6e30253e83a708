//! The tree keeps its shape: file sizes, the direction of imports, what the README and
//! ARCHITECTURE.md promise.

mod names;
mod shape;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Most lines of code (blank lines, comments and inline tests apart) of a file, and of a file of
/// tests.
const MAX_CODE_LINES: usize = 500;
const MAX_TEST_LINES: usize = 700;

/// The folders of sources, a crate each.
const CRATES: &[&str] = &[
    "src",
    "adapters/candle/src",
    "adapters/formats/src",
    "adapters/hf-tokenizers/src",
    "adapters/host/src",
    "adapters/llguidance/conformance/src",
    "adapters/llguidance/mistralrs/src",
    "adapters/llguidance/published-tests/src",
    "adapters/llguidance/published-tests/tokenizers/src",
    "adapters/llguidance/src",
    "adapters/mistralrs/src",
    "adapters/python/src",
    "adapters/templates/src",
    "adapters/tiny-model/src",
    "benches/peers/src",
    "cli/src",
    "examples/agents/src",
    "fuzz/src",
    "server/src",
    "test-support/src",
];

/// Leaves of the engine, which all stages may use.
const LEAVES: &[&str] = &[
    "ids",
    "limits",
    "fuel",
    "cache",
    "interner",
    "capacity",
    "decimal",
    "disjoint_sets",
    "random",
    "utf16",
    "setters",
    "switches",
    "hash",
    "fsm",
];
/// What each stage may import beside the leaves.
const STAGES: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("limits", &[]),
    ("fuel", &[]),
    ("cache", &[]),
    ("interner", &[]),
    ("capacity", &[]),
    ("decimal", &[]),
    ("disjoint_sets", &[]),
    ("random", &[]),
    ("utf16", &[]),
    ("setters", &[]),
    ("switches", &[]),
    ("hash", &[]),
    ("fsm", &[]),
    ("vocab", &[]),
    ("spec", &[]),
    ("ir", &[]),
    ("front", &["spec", "ir"]),
    ("compile", &["ir"]),
    ("matcher", &["compile", "ir", "vocab"]),
    ("mask", &["matcher", "compile", "ir", "vocab"]),
    ("engine", &["mask", "matcher", "compile", "ir", "front", "spec", "vocab"]),
    ("lib", &["engine", "mask", "matcher", "compile", "front", "ir", "spec", "vocab"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Files of the tree below a folder, build outputs and hidden folders apart.
fn files(below: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|e| e.expect("an entry").path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && (!name.starts_with('.') || name == ".ci") {
                    folders.push(path);
                }
            } else if extensions.is_empty()
                || extensions.iter().any(|e| path.extension().is_some_and(|x| x == *e))
            {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Whether a file of sources has tests only.
fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

/// A file without its inline tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// Lines of code: what counts towards a file's size.
fn code(text: &str) -> impl Iterator<Item = &str> {
    without_tests(text)
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
}

#[test]
fn files_have_a_bounded_size() {
    let files = files("", &["rs"]);
    assert!(files.len() > 40, "only {} files were found", files.len());
    let sized = files.iter().map(|path| (relative(path), code(&read(path)).count()));
    let most = |name: &str| match is_test(name) || name.starts_with("tests/") {
        true => MAX_TEST_LINES,
        false => MAX_CODE_LINES,
    };
    let large: Vec<_> = sized.filter(|(name, lines)| *lines > most(name)).collect();
    assert!(large.is_empty(), "too many lines of code: {large:?}");
}

/// Every crate is measured, also those of workspaces of their own.
#[test]
fn every_crate_is_listed() {
    let manifests = files("", &["toml"]).into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let sources = manifests.map(|path| path.with_file_name("src"));
    let mut found: Vec<_> = sources.filter(|path| path.is_dir()).map(|p| relative(&p)).collect();
    let mut listed = CRATES.to_vec();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
}

/// The stages that a file's code names as `crate::STAGE`.
fn imports(text: &str) -> BTreeSet<&str> {
    let mut out = BTreeSet::new();
    for line in code(text) {
        for rest in line.split("crate::").skip(1) {
            match rest.strip_prefix('{') {
                Some(list) => out.extend(list.split(',').map(|part| ident(part.trim()))),
                None => drop(out.insert(ident(rest))),
            }
        }
    }
    out
}

fn ident(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(text)
}

#[test]
fn stages_import_downward_only() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for path in files("src", &["rs"]) {
        let name = relative(&path);
        if is_test(&name) {
            continue;
        }
        let inside = name.strip_prefix("src/").unwrap_or(&name);
        let stage = ident(inside);
        let Some((_, allowed)) = STAGES.iter().find(|(s, _)| *s == stage) else {
            wrong.push(format!("{name}: stage `{stage}` is not in the table"));
            continue;
        };
        seen.insert(stage.to_owned());
        for import in imports(&read(&path)) {
            let is_stage = STAGES.iter().any(|(s, _)| *s == import);
            if is_stage
                && import != stage
                && !LEAVES.contains(&import)
                && !allowed.contains(&import)
            {
                wrong.push(format!("{name} imports `{import}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(STAGES.iter().all(|(s, _)| seen.contains(*s)), "stages without a file; seen {seen:?}");
}

#[test]
fn imports_are_seen() {
    let text = "use crate::front::regex;\nuse crate::{ir, ids::X};\n// crate::mask\nlet a: crate::vocab::Trie;\n\
                #[cfg(test)]\nmod tests {\n    use crate::engine;\n}";
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["front", "ids", "ir", "vocab"]);
}

/// Only the plugin knows the host, only it and the masks of batches know candle, and the engine
/// knows neither tokenizers nor model files.
#[test]
fn foreign_crates_stay_in_their_adapter() {
    let manifest = |path: &str| -> BTreeSet<String> {
        let text = read(&root().join(path));
        let table: toml::Table = text.parse().expect("a manifest is TOML");
        let names = table.get("dependencies").and_then(toml::Value::as_table);
        names.map(|t| t.keys().cloned().collect()).unwrap_or_default()
    };
    let (engine, formats) = (manifest("Cargo.toml"), manifest("adapters/formats/Cargo.toml"));
    let hf = manifest("adapters/hf-tokenizers/Cargo.toml");
    for host in ["candle-core", "mistralrs", "mistralrs-core"] {
        assert!(!engine.contains(host) && !formats.contains(host) && !hf.contains(host), "{host}");
    }
    let candle = manifest("adapters/candle/Cargo.toml");
    assert!(
        candle.contains("candle-core") && !candle.iter().any(|name| name.starts_with("mistralrs"))
    );
    let host = manifest("adapters/host/Cargo.toml");
    let foreign = |name: &String| name.starts_with("mistralrs") || name.starts_with("candle");
    assert!(!host.iter().any(foreign), "the plugin's neutral part knows a host or its tensors");
    assert!(!engine.contains("tokenizers") && !formats.contains("tokenizers"));
    assert!(hf.contains("tokenizers"));
}

#[test]
fn nothing_names_a_machine() {
    // Spelled in two halves, so that this file does not name one.
    let homes = [
        ["/ho", "me/"].concat(),
        ["/Use", "rs/"].concat(),
        ["/ro", "ot/"].concat(),
        ["/wo", "rk/"].concat(),
    ];
    let mut wrong = Vec::new();
    for path in files("", &["rs", "toml", "md", "json", "yml", "yaml", "lock", "justfile"])
        .iter()
        .chain(&files(".ci", &[]))
    {
        let text = read(path);
        for (i, line) in text.lines().enumerate() {
            if homes.iter().any(|home| names_path(line, home)) {
                wrong.push(format!("{}:{}: {line}", relative(path), i + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether a line has an absolute path below this folder: not within a longer word or path.
fn names_path(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/*".contains(c))
    })
}

#[test]
fn readme_has_the_commands() {
    let readme = read(&root().join("README.md"));
    for command in ["cargo run -- demo", "cargo test --workspace"] {
        assert!(readme.lines().any(|line| line.trim() == command), "README.md lacks `{command}`");
    }
    let plugin = read(&root().join("adapters/mistralrs/src/lib.rs"));
    assert!(
        plugin.contains("include_str!(\"../../../README.md\")"),
        "the README's programs are not compiled"
    );
    let ci = read(&root().join(".ci/run"));
    assert!(
        ci.contains("cargo test --workspace"),
        ".ci/run does not run the README's test command"
    );
}

/// Keys come from requests: no map has a hash function that others know. The seeded ones are
/// `crate::hash` in the engine and the standard library's default elsewhere.
#[test]
fn no_map_has_a_fixed_seed() {
    // Spelled in two halves, so that this file does not name them.
    let fixed = [
        ["Fx", "Hash"].concat(),
        ["Fx", "BuildHasher"].concat(),
        ["rustc", "_hash"].concat(),
        ["rustc", "-hash"].concat(),
        ["Default", "Hasher"].concat(),
        ["BuildHasher", "Default"].concat(),
        ["Fixed", "State"].concat(),
        ["Sip", "Hasher"].concat(),
    ];
    // Where such a function is the attacker's, in a test.
    let attacker = "src/hash.rs";
    let mut wrong = Vec::new();
    let mut maps = 0;
    for path in files("", &["rs"]).into_iter().chain(files("", &["toml"])) {
        let (name, text) = (relative(&path), read(&path));
        let text = if name == attacker {
            text.split("mod tests").next().unwrap_or_default()
        } else {
            &text
        };
        for (i, line) in text.lines().enumerate() {
            if fixed.iter().any(|fixed| line.contains(fixed.as_str())) {
                wrong.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
            // In the engine, maps come with the seed of `crate::hash`; the default of another crate
            // has its own.
            let imports =
                line.starts_with("use ") || line.trim_start().starts_with("pub(crate) type");
            maps += usize::from(imports && (line.contains("HashMap") || line.contains("HashSet")));
            let has = |texts: [&str; 2]| texts.iter().any(|text| line.contains(text));
            let is_of_a_crate = has(["hashbrown::HashMap<", "hashbrown::HashSet<"])
                || line.contains("indexmap::") && has(["IndexMap", "IndexSet"]);
            if name.starts_with("src/") && is_of_a_crate && !line.contains("Seeded") {
                wrong.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    assert!(maps > 50, "only {maps} imports of maps were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `(test: NAME)` after an invariant or a promise is the name of a test function.
#[test]
fn invariants_name_tests_that_exist() {
    let sources: Vec<String> = files("", &["rs"]).iter().map(|path| read(path)).collect();
    let mut documents = vec![root().join("ARCHITECTURE.md"), root().join("docs/RELIABILITY.md")];
    documents.extend(files("docs/internals", &["md"]));
    for path in documents {
        named_tests_exist(&relative(&path), &read(&path), &sources);
    }
}

fn named_tests_exist(document: &str, text: &str, sources: &[String]) {
    let mut named = 0;
    for list in text.split("(test: ").skip(1).filter_map(|rest| rest.split(')').next()) {
        for name in list.split(',').map(str::trim) {
            let function =
                name.strip_prefix("test: ").unwrap_or(name).rsplit("::").next().unwrap_or(name);
            let head = format!("fn {function}(");
            assert!(
                sources.iter().any(|s| s.contains(&head)),
                "{document} names test `{name}`, which is not there"
            );
            named += 1;
        }
    }
    // Pages without promises.
    let index = ["README.md", "EXPERIMENTS.md"].iter().any(|name| document.ends_with(name));
    assert!(named > 0 || index, "{document} names no test");
}
