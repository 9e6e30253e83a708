//! One name for one thing: type names are unique in a crate, documents name what exists, and tests
//! that may skip say so.

use std::collections::BTreeMap;

use super::{CRATES, files, is_test, read, relative, root, without_tests};

/// Names of types that conventionally repeat.
const CONVENTIONAL: &[&str] = &[
    "Builder", "Config", "Cursor", "Error", "Iter", "Node", "Options", "Parser", "Scratch", "Token",
];

/// The name that a line defines as a type: a structure, an enumeration or a trait.
fn defined_type(line: &str) -> Option<&str> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let kind = words.next()?;
    let name = words.next()?;
    // An associated type, which is indented, may have the name of another type.
    let is_alias = kind == "type" && !line.starts_with(' ');
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    let defines = is_alias || ["struct", "enum", "trait", "union"].contains(&kind);
    (defines && end > 0).then(|| &name[..end])
}

#[test]
fn type_names_are_unique_in_a_crate() {
    let (mut repeated, mut seen) = (Vec::new(), 0);
    for folder in CRATES {
        let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in files(folder, &["rs"]) {
            let name = relative(&path);
            if is_test(&name) {
                continue;
            }
            for line in without_tests(&read(&path)).lines() {
                if let Some(defined_name) = defined_type(line) {
                    defined.entry(defined_name.to_owned()).or_default().push(name.clone());
                }
            }
        }
        seen += defined.len();
        let of_several = defined.into_iter().filter(|(_, places)| places.len() > 1);
        repeated.extend(of_several.filter(|(name, _)| !CONVENTIONAL.contains(&name.as_str())));
    }
    assert!(seen > 1_000, "only {seen} types were found");
    assert!(repeated.is_empty(), "types with the name of another one: {repeated:#?}");
}

#[test]
fn type_definitions_are_seen() {
    let lines = [
        "pub(crate) struct A<T> {",
        "enum B {",
        "pub trait C: D {",
        "pub struct E;",
        "struct F(u32);",
        "pub type G<T> = Vec<T>;",
    ];
    assert_eq!(lines.map(defined_type), ["A", "B", "C", "E", "F", "G"].map(Some));
    let others = ["let structure = 1;", "impl A {", "fn enum_of() {", "    type Item = u32;"];
    assert_eq!(others.map(defined_type), [None; 4]);
}

/// Texts in backticks.
fn quoted(text: &str) -> Vec<&str> {
    let outside_of_programs = text.split("```").step_by(2);
    outside_of_programs.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn documents_name_what_exists() {
    let sources: Vec<String> = files("", &["rs"]).iter().map(|path| read(path)).collect();
    let mut documents = files("docs/internals", &["md"]);
    documents.push(root().join("ARCHITECTURE.md"));
    let (mut wrong, mut named) = (Vec::new(), 0);
    for path in documents {
        let (document, text) = (relative(&path), read(&path));
        for quote in quoted(&text) {
            let missing = if let Some((owner, item)) = quote.split_once("::")
                && owner.starts_with(char::is_uppercase)
                && item.chars().all(|c| c.is_alphanumeric() || c == '_')
            {
                let field = format!(" {item}: ");
                let (function, variant) =
                    (format!("fn {item}"), item.starts_with(char::is_uppercase));
                !variant
                    && !sources
                        .iter()
                        .any(|source| source.contains(&function) || source.contains(&field))
            } else if quote.contains('/') && (quote.ends_with(".rs") || quote.ends_with('/')) {
                !quote.contains(['{', '*', ' ', 'N']) && !root().join(quote).exists()
            } else {
                continue;
            };
            named += 1;
            if missing {
                wrong.push(format!("{document}: `{quote}`"));
            }
        }
    }
    assert!(named > 40, "only {named} names were found");
    assert!(wrong.is_empty(), "names of nothing: {wrong:#?}");
}

/// The end of the name of a function that does nothing without a file or a program that not every
/// machine has.
const IF_PRESENT: &str = "_if_present";

/// The functions of a file that call one ending in [`IF_PRESENT`], or record a skipped part, and
/// have another ending. A comment "Without" in front of the call says what runs anyway.
fn silent_skips(text: &str) -> Vec<&str> {
    let (mut function, mut explained, mut out) = ("", false, Vec::new());
    for line in text.lines().map(str::trim_start) {
        if let Some((_, rest)) = line.split_once("fn ")
            && line.ends_with(['{', '('])
        {
            let end = rest.find(['(', '<']).unwrap_or(rest.len());
            (function, explained) = (&rest[..end], false);
            continue;
        }
        explained |= line.starts_with("// Without");
        let skips = line.contains("_if_present(") || line.contains("record_skipped(");
        if skips && !explained && !function.ends_with(IF_PRESENT) && !out.contains(&function) {
            out.push(function);
        }
    }
    out
}

#[test]
fn tests_that_skip_say_so() {
    let mut silent = Vec::new();
    for path in files("", &["rs"]) {
        let (name, text) = (relative(&path), read(&path));
        if name.starts_with("tests/tidy/") || !is_test(&name) {
            continue;
        }
        silent.extend(silent_skips(&text).iter().map(|function| format!("{name}: {function}")));
        if text.contains("shared/data") {
            silent.push(format!("{name}: reads shared/data without louver-test-support"));
        }
    }
    assert!(silent.is_empty(), "their names do not end in {IF_PRESENT}: {silent:#?}");
}

#[test]
fn silent_skips_are_seen() {
    let text = "fn a() {\n let x = data_if_present(1);\n}\nfn b_if_present() {\n \
                record_skipped(2);\n}\nfn c() {\n // Without it: the rest.\n \
                data_if_present(3);\n}\nfn d() {\n record_skipped(4);\n}";
    assert_eq!(silent_skips(text), ["a", "d"]);
}
