use std::cell::LazyCell;

use super::*;

/// Texts, many of which say the same as others or begin as they do.
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

fn symbols(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// A text that all texts of a value have in common: members by name, and numbers by what they are.
fn canonical(value: &Value, node: u32) -> String {
    match &value.nodes[node as usize] {
        Node::Array(items) => {
            format!("[{:?}]", items.iter().map(|&item| canonical(value, item)).collect::<Vec<_>>())
        }
        Node::Object(members) => {
            let members = members.iter().map(|(name, node)| (name, canonical(value, *node)));
            format!("{{{:?}}}", members.collect::<Vec<_>>())
        }
        scalar => format!("{scalar:?}"),
    }
}

/// Follows a text: how it may go on before each symbol and at its end, and whether it says the value. It ends where it cannot.
fn follow(places: &mut Places, value: &Value, text: &[u32]) -> (Vec<ByteSet>, bool) {
    let number =
        |read: usize| LazyCell::new(move || Number::behind(text[..read].iter().rev().copied()));
    let mut place = Places::begin(value);
    let mut next = vec![places.next(value, place, &number(0))];
    for (read, &symbol) in text.iter().enumerate() {
        let Some(to) = places.step(value, place, symbol, &number(read)) else {
            return (next, false);
        };
        place = to;
        next.push(places.next(value, place, &number(read + 1)));
        if next[read + 1].is_empty() {
            return (next, false);
        }
    }
    (next, Places::says(value, place, &number(text.len())))
}

#[test]
fn texts_of_a_value_are_followed_to_their_ends() {
    let mut places = Places::new();
    let mut same = 0;
    for rival in TEXTS {
        let value = Value::read(&symbols(rival)).unwrap();
        for text in TEXTS {
            let said = Value::read(&symbols(text)).unwrap();
            let want = canonical(&value, 0) == canonical(&said, 0);
            let (next, says) = follow(&mut places, &value, &symbols(text));
            assert_eq!(says, want, "{text} {rival}");
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
fn what_a_text_may_go_on_with_is_what_it_goes_on_with() {
    // Bytes of texts that are exchanged, left out or added.
    let mut places = Places::new();
    let mut dead = 0;
    for rival in TEXTS {
        let value = Value::read(&symbols(rival)).unwrap();
        for text in TEXTS {
            for cut in 0..=text.len() {
                let text = &symbols(text)[..cut];
                let (next, _) = follow(&mut places, &value, text);
                if next.len() <= cut || next[cut].is_empty() {
                    dead += 1;
                    continue;
                }
                for byte in ByteSet::ALL.iter() {
                    let longer: Vec<u32> = text.iter().copied().chain([byte.into()]).collect();
                    let (after, says) = follow(&mut places, &value, &longer);
                    let alive = after.len() > cut + 1 && !after[cut + 1].is_empty();
                    assert!(!alive || next[cut].contains(byte), "{rival} {longer:?}");
                    assert!(!says || alive);
                }
            }
        }
    }
    assert!(dead > 0);
}

#[test]
fn values_that_are_built_alike_have_one_place() {
    let read = |text: &str| Value::read(&symbols(text)).unwrap();
    let (a, b) = (read(r#"{"name":"the same","id":1}"#), read(r#"{"name":"the same","id":27}"#));
    let mut places = Places::new();
    let number = LazyCell::new(|| Number::NONE);
    let (mut at_a, mut at_b) = (Places::begin(&a), Places::begin(&b));
    for symbol in symbols(r#"{ "name": "the s"#) {
        at_a = places.step(&a, at_a, symbol, &number).unwrap();
        at_b = places.step(&b, at_b, symbol, &number).unwrap();
        assert_eq!(at_a, at_b);
    }
}
