//! Property tests of duplicate keys: masks are those of the grammar that allows them, less the
//! tokens with which an object has a key twice.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use louver::compile::Compiled;
use louver::engine::{CompletionOptions, Engine};
use louver::front::ebnf;
use louver::front::json_schema::{self, AdditionalNames, MemberOrder, SchemaOptions, Whitespace};
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{config, matcher_after};
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
    r#"{"type": "object", "propertyNames": {"minLength": 2}}"#,
    r#"{"type": "object", "propertyNames": {"maxLength": 4}, "additionalProperties": {"type": "integer"}}"#,
    r#"{"type": "object", "propertyNames": {"pattern": "^(a\"|b){2,7}$"}, "additionalProperties": {"type": "integer"}}"#,
    r#"{"prefixItems": [{"type": "object"}, {"type": "object"}], "type": "array"}"#,
    // Elements that are objects, of which one must be special: an alternative dies at their end.
    r#"{"type": "array", "items": {"type": "object"}, "contains": {"required": ["b"]}}"#,
    r#"{"type": "array", "contains": {"type": "object", "minProperties": 2}, "maxContains": 2}"#,
    r#"{"type": "array", "items": {"type": "object"}, "not": {"items": {"maxProperties": 1}}}"#,
    r#"{"type": "array", "items": {"properties": {"a": {}, "b": {}}, "additionalProperties": false}, "contains": {"type": "object", "required": ["b"]}}"#,
    r#"{"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object"}, "contains": {"required": ["a", "b"]}}}"#,
];

/// A union of fifty object types. Keys are text in each of them, with different exceptions.
fn object_union(letters: &str) -> String {
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

/// [`SCHEMAS`] and the generated ones.
static ALL_SCHEMAS: LazyLock<Vec<String>> = LazyLock::new(|| {
    SCHEMAS
        .iter()
        .map(|&schema| schema.to_owned())
        .chain([object_union("a"), object_union("ab")])
        .collect()
});

/// Grammars with keys, which are quoted letters; `%` stands for the attribute of the key's rule.
const GRAMMARS: &[&str] = &[
    // Consecutive objects, without separators.
    "root ::= object+\nobject ::= \"{\" (n \":\" v (\",\" n \":\" v)*)? \"}\"\n\
     v ::= \"1\" | object\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Objects of two kinds: the end of one decides.
    "root ::= object* special object*\nobject ::= \"{\" (n \":1,\")* \"}\"\n\
     special ::= \"{\" (n \":1,\")* \"1}\"\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Consecutive keys.
    "root ::= \"{\" n* \"}\"\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Within budgets.
    "root ::= part \"!\"?\npart[max_tokens=9] ::= object\n\
     object ::= \"{\" (n \":\" v (\",\" n \":\" v)*)? \"}\"\nv ::= \"1\" | object\n\
     n% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    "root ::= \"[\" part \"]\"\npart[max_chars=30] ::= object\n\
     object ::= \"{\" (n \":\" v (\",\" n \":\" v)*)? \"}\"\nv ::= \"1\" | object\n\
     n% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // With texts that are not objects.
    "root ::= object | \"{\" [ab:,1\\\"}]*\n\
     object ::= \"{\" (n \":\" \"1\" (\",\" n \":\" \"1\")*)? \"}\"\n\
     n% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // With texts that are not objects, and have no white space.
    "root ::= object | \"{\" [ab:,1\\\"}]*\n\
     object ::= \"{\" (ws n \":\" \"1\" (\",\" ws n \":\" \"1\")*)? \"}\"\n\
     ws ::= [ \\t\\n\\r]{0,60}\nn% ::= \"\\\"\" [ab]* \"\\\"\"\n",
    // Names with left recursion.
    "root ::= \"{\" (n \":\" \"1\" \",\")* \"}\"\nn% ::= \"\\\"\" t \"\\\"\"\n\
     t ::= u \"a\" | \"\"\nu ::= t \"b\" | u u | t\n",
    // Names that are counted blocks, in which a quote ends a run and not the name.
    "root ::= \"{\" (n \":\" \"1\" \",\")* \"}\"\n\
     n% ::= \"\\\"\" ([ab] | \"\\\\\\\"\" | \"\\\\u0022\"){2,} \"\\\"\"\n",
    "root ::= \"{\" (n \":\" \"1\" \",\")* \"}\"\n\
     n% ::= \"\\\"\" ([ab] | \"\\\\\\\"\"){3,40} (\"\\\"\"){1,1}\n",
    // A counted block of members.
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
    "\\\"",
    "\"\\\"",
    "\\\"\\\"\":1",
    "a\\\"\":1,",
    "\\u0022",
    "\"\\u0022a\":1,",
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

/// White space, and keys after it.
const WHITE_SPACE_TOKENS: &[&str] = &[
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

/// Whether no object of a text, which may be incomplete, has a key twice.
fn keys_are_distinct(text: &[u8]) -> bool {
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

/// The same for consecutive keys, which only their quotes separate.
fn bare_keys_are_distinct(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let names: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    let ended = text.matches('"').count() / 2;
    let mut seen = BTreeSet::new();
    names.into_iter().take(ended).all(|name| seen.insert(name.to_owned()))
}

/// A schema or grammar, from which a grammar with or without distinct keys is made.
#[derive(Clone, Debug)]
enum Subject {
    Schema { schema: String, order: MemberOrder, whitespace: Whitespace },
    Grammar(&'static str),
}

impl Subject {
    fn grammar(&self, names: AdditionalNames) -> Grammar {
        match self {
            Subject::Schema { schema, order, whitespace } => {
                let options = SchemaOptions::default()
                    .with_whitespace(*whitespace)
                    .with_order(*order)
                    .with_additional_names(names);
                let schema = Json::parse(schema, &Limits::default()).expect("JSON");
                json_schema::lower(&schema, &options, &Limits::default()).expect("a schema")
            }
            Subject::Grammar(text) => {
                let attribute = if names == AdditionalNames::Differ { "[unique_key]" } else { "" };
                let text = text.replace('%', attribute);
                ebnf::lower(&text, &Default::default(), &Limits::default())
                    .expect("a grammar")
                    .grammar
            }
        }
    }

    /// Whether names have a greatest length that texts of the test reach.
    fn bounds_names(&self) -> bool {
        match self {
            Subject::Schema { schema, .. } => {
                schema.contains("maxLength") || schema.contains(",7}")
            }
            Subject::Grammar(_) => false,
        }
    }

    /// Whether a text has no duplicate keys, or is not an object.
    fn keys_are_distinct(&self, text: &[u8]) -> bool {
        match self {
            Subject::Grammar(grammar) if grammar.contains("n* ") => bare_keys_are_distinct(text),
            // A text that is not an object may have all of these.
            Subject::Grammar(grammar) if grammar.contains("| \"{\"") => {
                !text.iter().any(u8::is_ascii_whitespace) || keys_are_distinct(text)
            }
            _ => keys_are_distinct(text),
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
        2 => (select(&ALL_SCHEMAS[..]), order, white)
            .prop_map(|(schema, order, whitespace)| Subject::Schema { schema, order, whitespace }),
        1 => select(GRAMMARS).prop_map(Subject::Grammar),
    ]
}

/// Whether the text ends in a key that can only end here, as a duplicate: its length is bounded.
/// `repeating`: the grammar in which keys may repeat.
fn must_repeat(subject: &Subject, repeating: &Arc<Compiled>, text: &[u8]) -> bool {
    let may_read = |byte: u8| accepts(repeating, &[text, &[byte]].concat()).is_some();
    subject.bounds_names()
        && !b"ab".iter().any(|&byte| may_read(byte))
        && may_read(b'"')
        && !subject.keys_are_distinct(&[text, b"\""].concat())
        && !(0..=u8::MAX).any(|byte| byte != b'"' && may_read(byte))
}

/// Whether a text is a sentence; None if it is not even the beginning of one.
fn accepts(compiled: &Arc<Compiled>, text: &[u8]) -> Option<bool> {
    let mut recognizer = Recognizer::new(compiled.clone());
    recognizer.push(text).is_ok().then(|| recognizer.is_complete())
}

proptest! {
    #![proptest_config(config(300))]

    /// Masks with distinct keys against masks without, along random walks.
    #[test]
    fn keys_of_an_object_are_distinct(
        subject in subject(),
        tokens in subsequence(TOKENS, 12..TOKENS.len()),
        white: bool,
        picks in proptest::collection::vec(any::<u32>(), 16),
        (direct_walk, mutual_rules) in select(vec![(1024usize, 24usize), (0, 24), (60, 24), (0, 0)]),
    ) {
        let white = if white { WHITE_SPACE_TOKENS } else { &[] };
        let tokens: Vec<&[u8]> = tokens.iter().chain(white).map(|t| t.as_bytes()).collect();
        let vocab = Arc::new(Vocabulary::toy(&tokens));
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning { direct_walk, mutual_rules });
        let engine = Engine::new(vocab.clone(), options);
        let (with_distinct_keys, with_repeating_keys) =
            (subject.grammar(AdditionalNames::Differ), subject.grammar(AdditionalNames::MayRepeat));
        let constraint = engine.compile(with_distinct_keys).expect("compiles");
        let repeating = engine.compile(with_repeating_keys).expect("compiles");
        let mut prefix: Vec<TokenId> = Vec::new();
        for pick in picks {
            let text: Vec<u8> =
                prefix.iter().flat_map(|&t| vocab.bytes(t).unwrap().to_vec()).collect();
            let column = COLUMNS[pick as usize % COLUMNS.len()];
            let mut matcher = column.matcher(&constraint, &prefix, &[]);
            let mut other = column.matcher(&repeating, &prefix, &[]);
            let (got, all) = (mask(&mut matcher, &vocab), mask(&mut other, &vocab));
            let mut follow = Vec::new();
            for (id, (&got, &all)) in got.iter().zip(&all).enumerate() {
                let token = TokenId::new(id);
                let after = [&text[..], vocab.bytes(token).unwrap_or_default()].concat();
                let is_live = || {
                    subject.keys_are_distinct(&after)
                        && !must_repeat(&subject, repeating.compiled(), &after)
                };
                let want = all && (vocab.is_stop(token) || is_live());
                prop_assert!(
                    got == want,
                    "{:?} after {:?}: {got}\n{subject:?}",
                    String::from_utf8_lossy(vocab.bytes(token).unwrap_or_default()),
                    String::from_utf8_lossy(&text),
                );
                prop_assert_eq!(got, matcher.clone().advance(token).is_ok());
                let likely = vocab
                    .bytes(token)
                    .is_some_and(|b| b.len() > 1 || b"{}[]\",:1ab".contains(&b[0]));
                if got && !vocab.is_stop(token) && likely {
                    follow.push(token);
                }
            }
            let end =
                matcher.shortest_completion(&CompletionOptions::default()).expect("within limits");
            let whole = [&text[..], &end.bytes().expect("short")].concat();
            prop_assert!(subject.keys_are_distinct(&whole), "{}", String::from_utf8_lossy(&whole));
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

/// Continuations of a rejected key are rejected with it, even where the text continues as something
/// else.
#[test]
fn continuations_of_a_rejected_key_are_rejected() {
    let text = r#"
        root ::= "{" key ":1," (key ":1" | "\"a\"!") "}"
        key[unique_key] ::= "\"" [a-c]+ "\""
    "#;
    let grammar =
        ebnf::lower(text, &Default::default(), &Limits::default()).expect("a grammar").grammar;
    let tokens: [&[u8]; 5] = [b"\"a\":", b"\"b\":", b"\"a\"!", b"a\":1", b"\"a"];
    let vocab = Arc::new(Vocabulary::toy(&tokens));
    for direct_walk in [1024, 0] {
        let mut matcher = matcher_after(&grammar, &vocab, direct_walk, br#"{"a":1,"#);
        let got = mask(&mut matcher, &vocab);
        let allowed = |text: &[u8]| got[vocab.find(text).unwrap().index()];
        assert_eq!(tokens.map(allowed), [false, true, true, false, true]);
        for token in tokens.map(|text| vocab.find(text).unwrap()) {
            assert_eq!(matcher.allows(token), got[token.index()]);
        }
    }
}
