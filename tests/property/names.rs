//! Names that must differ: what may follow is what may follow where they need not, without what has a name twice.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use louver::compile::Compiled;
use louver::engine::{CompletionOptions, Engine, EngineOptions};
use louver::front::ebnf;
use louver::front::json_schema::{self, AdditionalNames, MemberOrder, SchemaOptions, Whitespace};
use louver::ids::TokenId;
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::config;
use crate::harness::columns::{COLUMNS, mask};

const SCHEMAS: &[&str] = &[
    r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#,
    r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "integer"}}"#,
    r##"{"type": "object", "properties": {"a": {"$ref": "#"}, "ab": {}}, "required": ["ab"]}"##,
    r##"{"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}"##,
    r#"{}"#,
    r#"{"type": "array", "items": {"type": "object", "additionalProperties": {"enum": [1, true]}}}"#,
    r#"{"anyOf": [{"properties": {"a": {"type": "integer"}}, "type": "object"}, {"properties": {"b": {"type": "object"}}, "type": "object", "additionalProperties": {"type": "boolean"}}]}"#,
    r#"{"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "object"}}"#,
    r#"{"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": false, "maxProperties": 3}"#,
    r#"{"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object"}, "maxItems": 2}, "maxProperties": 4}"#,
    r#"{"type": "array", "uniqueItems": true, "items": {"type": "object", "additionalProperties": {"type": "integer"}}}"#,
    r#"{"type": "array", "uniqueItems": true, "items": {"type": "object", "properties": {"a": {"type": "object"}}, "maxProperties": 2}}"#,
    r#"{"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}}}}"#,
    r#"{"type": "object", "patternProperties": {"ab": {"type": "integer"}, "b": {"type": "integer"}, "^.?a": {}}}"#,
    r#"{"prefixItems": [{"type": "object"}, {"type": "object"}], "type": "array"}"#,
];

/// Objects that may be many things at once, whose names are text with each of them, and what is text with one is not always with another.
fn many_kinds(letters: &str) -> String {
    let kinds: Vec<String> = (0..50)
        .map(|i| {
            let letter = char::from(letters.as_bytes()[i % letters.len()]);
            format!(
                r#"{{"type": "object", "properties": {{"{letter}{i}": {{"type": "integer"}}}}, "required": ["{letter}{i}"],
                    "patternProperties": {{"^{letter}{{{}}}": {{"enum": [1, {i}]}}}}, "additionalProperties": {}}}"#,
                i / letters.len() + 1,
                if i.is_multiple_of(3) { "false" } else { r#"{"type": "integer"}"# },
            )
        })
        .collect();
    format!(r#"{{"anyOf": [{}]}}"#, kinds.join(", "))
}

/// [`SCHEMAS`], and those that are too long to be written.
static ALL_SCHEMAS: LazyLock<Vec<String>> = LazyLock::new(|| {
    SCHEMAS
        .iter()
        .map(|&schema| schema.to_owned())
        .chain([many_kinds("a"), many_kinds("ab")])
        .collect()
});

/// Grammars with names, which are quoted letters; `%` stands for what is said of a name.
const GRAMMARS: &[&str] = &[
    // Objects one behind the other, between nothing.
    "root ::= object+\nobject ::= \"{\" (n \":\" v (\",\" n \":\" v)*)? \"}\"\nv ::= \"1\" | object\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Names one behind the other.
    "root ::= \"{\" n* \"}\"\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Within budgets.
    "root ::= part \"!\"?\npart[max_tokens=9] ::= object\nobject ::= \"{\" (n \":\" v (\",\" n \":\" v)*)? \"}\"\nv ::= \"1\" | object\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    "root ::= \"[\" part \"]\"\npart[max_chars=30] ::= object\nobject ::= \"{\" (n \":\" v (\",\" n \":\" v)*)? \"}\"\nv ::= \"1\" | object\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Where what is no object is read as well.
    "root ::= object | \"{\" [ab:,1\\\"}]*\nobject ::= \"{\" (n \":\" \"1\" (\",\" n \":\" \"1\")*)? \"}\"\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Where that is only what has no white space.
    "root ::= object | \"{\" [ab:,1\\\"}]*\nobject ::= \"{\" (ws n \":\" \"1\" (\",\" ws n \":\" \"1\")*)? \"}\"\nws ::= [ \\t\\n\\r]{0,60}\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Members of rules of their own, many of them counted.
    "root ::= \"{\" (n \":\" \"1\" \",\"){2,40} \"}\"\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
];

const TOKENS: &[&str] = &[
    "{\"",
    "{\"a\":",
    "\":",
    "\":1",
    "\":1,\"",
    ",\"",
    "\"a\":1",
    "\"a\":1,",
    "\"a\":1,\"a\":1",
    "\"a\":1,\"b\":1",
    "\"b\":{\"b\":1",
    "a\":1,\"a\"",
    "a\":{\"a\"",
    "\":1,\"\":1",
    "\"\":1,\"\"",
    "\"\":",
    "1,\"a\"",
    "1,\"ab\":1",
    "}",
    "}}",
    "},\"a\":",
    "},\"b",
    "},{\"a\"",
    "}{\"a\":1}",
    "a\"",
    "b\"",
    "ab",
    "ab\":1",
    "\\u0061",
    "\\u00",
    "61\"",
    "61",
    "\\u0061\":1,\"a",
    "{\"a\":1,\"a\":1}",
    "{\"\":1,\"\":1,",
    "\"a\"\"a\"",
    "\"a\"\"",
    "\"\"\"\"",
    "[{\"a\":1},{\"a\":1}]",
    "true,\"",
    "{}",
    "[]",
    "1",
];

/// White space, and names behind it.
const WHITE: &[&str] = &[
    "  ",
    "   ",
    "    ",
    "     ",
    "\n\n",
    "\n ",
    "\n  ",
    "\n\n ",
    "\t",
    "\t\t",
    " \t",
    "\r\n",
    "\r\n ",
    "\n\t",
    "      ",
    "       ",
    " \n",
    "  \"",
    "\n \"",
    "    \"a",
    "\n\"a\"",
    " \"a\":",
    "  \"b\": 1",
    "\t\"ab\"",
    " \"\\u0061\"",
    "\n  \"a\": {",
];

/// Whether no object of a text, which may break off, has a name twice.
fn names_differ(text: &[u8]) -> bool {
    let mut open: Vec<Option<BTreeSet<String>>> = Vec::new();
    let mut string: Option<Vec<u8>> = None;
    let mut before = b' ';
    for &byte in text {
        let Some(read) = &mut string else {
            match byte {
                b'"' => string = Some(Vec::new()),
                b'{' => open.push(Some(BTreeSet::new())),
                b'[' => open.push(None),
                b'}' | b']' => {
                    open.pop();
                }
                _ => {}
            }
            before = if byte == b'"' || byte.is_ascii_whitespace() { before } else { byte };
            continue;
        };
        let escaped = read.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
        if byte != b'"' || escaped {
            read.push(byte);
            continue;
        }
        let name: String =
            serde_json::from_slice(&[b"\"", &read[..], b"\""].concat()).expect("a string");
        if let Some(Some(names)) = open.last_mut()
            && matches!(before, b'{' | b',')
            && !names.insert(name)
        {
            return false;
        }
        string = None;
        before = b'"';
    }
    true
}

/// Names one behind the other are told apart by their quotes alone.
fn bare_names_differ(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let names: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    let ended = text.matches('"').count() / 2;
    let mut seen = BTreeSet::new();
    names.into_iter().take(ended).all(|name| seen.insert(name.to_owned()))
}

/// What is said of what, with and without names that differ.
#[derive(Clone, Debug)]
enum Subject {
    Schema { schema: String, order: MemberOrder, whitespace: Whitespace },
    Grammar(&'static str),
}

impl Subject {
    fn grammar(&self, names: AdditionalNames) -> Grammar {
        match self {
            Subject::Schema { schema, order, whitespace } => {
                let options = SchemaOptions {
                    whitespace: *whitespace,
                    order: *order,
                    additional_names: names,
                    ..SchemaOptions::default()
                };
                let schema = Json::parse(schema, &Limits::default()).expect("JSON");
                json_schema::lower(&schema, &options, &Limits::default()).expect("a schema")
            }
            Subject::Grammar(text) => {
                let said = if names == AdditionalNames::Differ { "[name]" } else { "" };
                let text = text.replace('%', said);
                ebnf::lower(&text, &Default::default(), &Limits::default())
                    .expect("a grammar")
                    .grammar
            }
        }
    }

    /// Whether a text has no name twice, or is none that has names.
    fn differ(&self, text: &[u8]) -> bool {
        match self {
            Subject::Grammar(grammar) if grammar.contains("n* ") => bare_names_differ(text),
            // What is no object may have all of these.
            Subject::Grammar(grammar) if grammar.contains("| \"{\"") => {
                !text.iter().any(u8::is_ascii_whitespace) || names_differ(text)
            }
            _ => names_differ(text),
        }
    }
}

fn subject() -> impl Strategy<Value = Subject> {
    let order = select(vec![MemberOrder::Declared, MemberOrder::Any]);
    let white = select(vec![
        Whitespace::Compact,
        Whitespace::Flexible { max: 3 },
        Whitespace::Flexible { max: 40 },
    ]);
    prop_oneof![
        2 => (select(&ALL_SCHEMAS[..]), order, white).prop_map(|(schema, order, whitespace)| Subject::Schema { schema, order, whitespace }),
        1 => select(GRAMMARS).prop_map(Subject::Grammar),
    ]
}

fn accepts(compiled: &Arc<Compiled>, text: &[u8]) -> Option<bool> {
    let mut recognizer = Recognizer::new(compiled.clone());
    recognizer.push(text).is_ok().then(|| recognizer.is_complete())
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn names_of_an_object_differ(
        subject in subject(),
        tokens in subsequence(TOKENS, 12..TOKENS.len()),
        white: bool,
        picks in proptest::collection::vec(any::<u32>(), 16),
        (direct_walk, mutual_rules) in select(vec![(1024usize, 24usize), (0, 24), (60, 24), (0, 0)]),
    ) {
        let white = if white { WHITE } else { &[] };
        let tokens: Vec<&[u8]> = tokens.iter().chain(white).map(|t| t.as_bytes()).collect();
        let vocab = Arc::new(Vocabulary::toy(&tokens));
        let engine = Engine::new(vocab.clone(), EngineOptions { direct_walk, mutual_rules, ..crate::harness::unlimited() });
        let (told, plain) = (subject.grammar(AdditionalNames::Differ), subject.grammar(AdditionalNames::MayRepeat));
        let constraint = engine.compile(told).expect("compiles");
        let repeating = engine.compile(plain).expect("compiles");
        let mut prefix: Vec<TokenId> = Vec::new();
        for pick in picks {
            let text: Vec<u8> = prefix.iter().flat_map(|&t| vocab.bytes(t).unwrap().to_vec()).collect();
            let column = COLUMNS[pick as usize % COLUMNS.len()];
            let mut matcher = column.matcher(&constraint, &prefix, &[]);
            let mut other = column.matcher(&repeating, &prefix, &[]);
            let (got, all) = (mask(&mut matcher, &vocab), mask(&mut other, &vocab));
            let mut follow = Vec::new();
            for (id, (&got, &all)) in got.iter().zip(&all).enumerate() {
                let token = TokenId::new(id);
                let behind = [&text[..], vocab.bytes(token).unwrap_or_default()].concat();
                let want = all && (vocab.is_stop(token) || subject.differ(&behind));
                prop_assert!(
                    got == want,
                    "{:?} behind {:?}: {got}\n{subject:?}",
                    String::from_utf8_lossy(vocab.bytes(token).unwrap_or_default()),
                    String::from_utf8_lossy(&text),
                );
                prop_assert_eq!(got, matcher.clone().advance(token).is_ok());
                let likely = vocab.bytes(token).is_some_and(|b| b.len() > 1 || b"{}[]\",:1ab".contains(&b[0]));
                if got && !vocab.is_stop(token) && likely {
                    follow.push(token);
                }
            }
            let end = matcher.shortest_completion(&CompletionOptions::default()).expect("within limits");
            let whole = [&text[..], &end.bytes().expect("short")].concat();
            prop_assert!(subject.differ(&whole), "{}", String::from_utf8_lossy(&whole));
            if !matches!(subject, Subject::Grammar(text) if text.contains("max_")) {
                prop_assert_eq!(accepts(repeating.compiled(), &whole), Some(true));
                prop_assert_eq!(accepts(constraint.compiled(), &whole), Some(true));
                prop_assert_eq!(accepts(constraint.compiled(), &text), Some(matcher.is_complete()));
                let forced = [&text[..], &matcher.forced_bytes(20)].concat();
                prop_assert!(whole.starts_with(&forced) || forced.starts_with(&whole));
            }
            if follow.is_empty() {
                break;
            }
            prefix.push(follow[(pick >> 8) as usize % follow.len()]);
        }
    }
}

/// What would have followed a name that there has been is refused with it, though the text goes on as something else.
#[test]
fn what_follows_a_refused_name_is_refused_where_the_text_goes_on() {
    let text = r#"
        root ::= "{" key ":1," (key ":1" | "\"a\"!") "}"
        key[name] ::= "\"" [a-c]+ "\""
    "#;
    let grammar =
        ebnf::lower(text, &Default::default(), &Limits::default()).expect("a grammar").grammar;
    let tokens: [&[u8]; 5] = [b"\"a\":", b"\"b\":", b"\"a\"!", b"a\":1", b"\"a"];
    let vocab = Arc::new(Vocabulary::toy(&tokens));
    for direct_walk in [1024, 0] {
        let engine = Engine::new(
            vocab.clone(),
            EngineOptions { direct_walk, ..crate::harness::unlimited() },
        );
        let mut matcher = engine.compile(grammar.clone()).expect("compiles").matcher();
        for byte in br#"{"a":1,"# {
            matcher.advance(TokenId::from_raw(u32::from(*byte))).unwrap();
        }
        let got = mask(&mut matcher, &vocab);
        let allowed = |text: &[u8]| got[vocab.find(text).unwrap().index()];
        assert_eq!(tokens.map(allowed), [false, true, true, false, true]);
        for token in tokens.map(|text| vocab.find(text).unwrap()) {
            assert_eq!(matcher.allows(token), got[token.index()]);
        }
    }
}
