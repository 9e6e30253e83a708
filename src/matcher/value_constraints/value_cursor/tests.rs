use std::cell::LazyCell;

use super::*;

/// Texts, many of which spell the same value or share a beginning.
const TEXTS: &[&str] = &[
    "null",
    "true",
    "nul",
    "0",
    "-0",
    "0.0",
    "0e7",
    "1",
    "1.0",
    "10",
    "10e-1",
    "0.1E+1",
    "-1",
    "1e2",
    "100",
    "1.00e+02",
    "0.001E005",
    "12000e-1",
    "1200",
    "1e-00",
    "-2.5e-13",
    "-0.25e-12",
    "-25e-0014",
    "1e2000000000000",
    "10e1999999999999",
    "1e9999999999999",
    "1.5",
    "15e-1",
    "0.05",
    "5e-2",
    "01",
    "1-",
    "-",
    "1.",
    r#""""#,
    r#""a""#,
    r#""ab""#,
    r#""\u0061""#,
    r#""\u0061b""#,
    r#""\/""#,
    r#""/""#,
    r#""\u002f""#,
    r#""\u002F""#,
    r#""\\\"\n""#,
    r#""\u005c\u0022\u000a""#,
    "\"\u{e9}\"",
    r#""\u00E9""#,
    "\"\u{1F600}a\"",
    r#""\ud83d\uDE00\u0061""#,
    r#""\ud83d""#,
    r#""\ud83da""#,
    r#""\ud83d\u0061""#,
    r#""\ud83d\n""#,
    r#""\ud83d\ud83d\ude00""#,
    "\"\\ud83d\u{1F600}\"",
    r#""\ude00""#,
    r#""\x""#,
    "[]",
    "[ ]",
    "[1]",
    "[1.0 ]",
    "[ 1,2]",
    "[10e-1 , 2.0]",
    "[1 2]",
    "[[],[[]]]",
    r#"["a",[1]]"#,
    "{}",
    "{ }",
    r#"{"a":1}"#,
    r#"{ "\u0061" : 1.0 }"#,
    r#"{"a":1,"b":2}"#,
    r#"{"b":2,"a":1}"#,
    r#"{"b":2,"a":1,"ab":[]}"#,
    r#"{"ab":[],"\u0062":2,"a":1e0}"#,
    r#"{"a":{"a":{},"b":1},"b":{}}"#,
    r#"{"b":{},"a":{"b":1,"a":{}}}"#,
    r#"{"a":1,"a":1}"#,
    r#"{"":1,"\ud83d":2,"\ud83d\ude00":3}"#,
    "{\"\u{1F600}\":3,\"\":1,\"\\ud83d\":2}",
    "x",
    "x1",
    " x",
    " 1",
    "1 ",
    " \"a\" ",
];

fn symbols(text: &str) -> Vec<SymbolCode> {
    text.bytes().map(SymbolCode::from).collect()
}

/// A text that is equal for all spellings of a value: members sorted, numbers normalised.
fn canonical_text(value: &JsonValue, node: JsonNodeId) -> String {
    match value.node(node) {
        JsonNode::Array(items) => {
            format!(
                "[{:?}]",
                items.iter().map(|&item| canonical_text(value, item)).collect::<Vec<_>>()
            )
        }
        JsonNode::Object(members) => {
            let members = members.iter().map(|(name, node)| (name, canonical_text(value, *node)));
            format!("{{{:?}}}", members.collect::<Vec<_>>())
        }
        scalar => format!("{scalar:?}"),
    }
}

/// Follows a text: the next bytes before each symbol and at the end, and whether the text spells
/// the value. Stops at the first symbol that does not fit.
fn follow(table: &mut CursorTable, value: &JsonValue, text: &[SymbolCode]) -> (Vec<ByteSet>, bool) {
    let number = |read: usize| {
        LazyCell::new(move || NumberPrefix::at_end_of(text[..read].iter().rev().copied()))
    };
    let mut cursor = CursorTable::begin(value);
    let mut next = vec![table.next_bytes(value, cursor, &number(0))];
    for (read, &symbol) in text.iter().enumerate() {
        let Some(to) = table.step(value, cursor, symbol, &number(read)) else {
            return (next, false);
        };
        cursor = to;
        next.push(table.next_bytes(value, cursor, &number(read + 1)));
        if next[read + 1].is_empty() {
            return (next, false);
        }
    }
    (next, CursorTable::is_equal(value, cursor, &number(text.len())))
}

#[test]
fn cursors_accept_exactly_the_spellings_of_a_value() {
    let mut table = CursorTable::new();
    let mut same = 0;
    for rival in TEXTS {
        let value = JsonValue::read(&symbols(rival)).unwrap();
        for text in TEXTS {
            let decoded = JsonValue::read(&symbols(text)).unwrap();
            let want = canonical_text(&value, JsonNodeId::ROOT)
                == canonical_text(&decoded, JsonNodeId::ROOT);
            let (next, is_equal) = follow(&mut table, &value, &symbols(text));
            assert_eq!(is_equal, want, "{text} {rival}");
            if want {
                same += 1;
                for (byte, next) in text.bytes().zip(&next) {
                    assert!(next.contains(byte), "{text} {rival}: {next:?}");
                }
            }
        }
    }
    assert!(same > TEXTS.len() + 40, "{same}");
}

#[test]
fn next_bytes_cover_every_live_continuation() {
    // Texts with bytes exchanged, removed or added.
    let mut table = CursorTable::new();
    let mut dead = 0;
    for rival in TEXTS {
        let value = JsonValue::read(&symbols(rival)).unwrap();
        for text in TEXTS {
            for cut in 0..=text.len() {
                let text = &symbols(text)[..cut];
                let (next, _) = follow(&mut table, &value, text);
                if next.len() <= cut || next[cut].is_empty() {
                    dead += 1;
                    continue;
                }
                for byte in ByteSet::ALL.iter() {
                    let longer: Vec<SymbolCode> =
                        text.iter().copied().chain([byte.into()]).collect();
                    let (after, is_equal) = follow(&mut table, &value, &longer);
                    let alive = after.len() > cut + 1 && !after[cut + 1].is_empty();
                    assert!(!alive || next[cut].contains(byte), "{rival} {longer:?}");
                    assert!(!is_equal || alive);
                }
            }
        }
    }
    assert!(dead > 0);
}

#[test]
fn structurally_equal_values_share_cursors() {
    let read = |text: &str| JsonValue::read(&symbols(text)).unwrap();
    let (a, b) = (read(r#"{"name":"the same","id":1}"#), read(r#"{"name":"the same","id":27}"#));
    let mut table = CursorTable::new();
    let number = LazyCell::new(|| NumberPrefix::NONE);
    let (mut at_a, mut at_b) = (CursorTable::begin(&a), CursorTable::begin(&b));
    for symbol in symbols(r#"{ "name": "the s"#) {
        at_a = table.step(&a, at_a, symbol, &number).unwrap();
        at_b = table.step(&b, at_b, symbol, &number).unwrap();
        assert_eq!(at_a, at_b);
    }
}
