//! Tests of strings: encoding, lengths, patterns and formats.

use super::*;

#[test]
fn strings_are_valid_utf8() {
    let mut recognizer = recognizer_with("true", &SchemaOptions::default());
    for bad in [&b"\"\xff\""[..], b"\"\xc0\x80\"", b"\"\xed\xa0\x80\"", b"\"\xf4\x90\x80\x80\""] {
        recognizer.reset();
        assert!(recognizer.push(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn string_lengths_count_code_points() {
    check(
        r#"{"type":"string","minLength":2,"maxLength":3}"#,
        &["\"ab\"", "\"éé\"", "\"😀😀😀\"", r#""\ud83d\ude00a""#, r#""\n\u0041""#],
        &["\"a\"", "\"abcd\"", r#""\ud83d\ude00""#, "\"😀\"", r#""\ud83da""#],
    );
    check(r#"{"type":"string","minLength":1}"#, &["\"a\"", "\"abc\""], &["\"\""]);
    let long = format!("\"{}\"", "a".repeat(5000));
    check(
        r#"{"type":"string","maxLength":5000}"#,
        &["\"\"", &long],
        &[&format!("\"a{}", &long[1..])],
    );
}

#[test]
fn patterns() {
    check(
        r#"{"type":"string","pattern":"^[a-z]{2,4}$"}"#,
        &["\"ab\"", "\"abcd\""],
        &["\"a\"", "\"abcde\"", "\"AB\""],
    );
    check(
        r#"{"type":"string","pattern":"b+"}"#,
        &["\"b\"", "\"abc\"", r#""bb\u0041\n""#],
        &["\"a\"", "\"\""],
    );
    check(
        r#"{"type":"string","pattern":"^a|b$"}"#,
        &["\"a\"", "\"ax\"", "\"xb\""],
        &["\"xa\"", "\"bx\""],
    );
    check(
        r#"{"type":"string","pattern":"^\"\\\\\\n$"}"#,
        &[r#""\"\\\n""#, r#""\"\\\u000a""#],
        &[r#""\"\\""#],
    );
    check(
        r#"{"type":"string","pattern":"^.$"}"#,
        &["\"a\"", "\"é\"", "\"😀\"", r#""\"""#, r#""\t""#],
        &[r#""\n""#, "\"ab\""],
    );
    check(
        r#"{"type":"string","pattern":"^[ab]*$","minLength":2,"maxLength":3}"#,
        &["\"ab\"", "\"aba\""],
        &["\"a\"", "\"abab\"", "\"cc\""],
    );
    check(
        r#"{"type":"string","allOf":[{"pattern":"^a"},{"pattern":"z$"},{"minLength":3}]}"#,
        &["\"abz\"", "\"aaz\""],
        &["\"az\"", "\"abc\""],
    );
    check(r#"{"type":"string","pattern":""}"#, &["\"\"", "\"x\""], &["1"]);
    check(
        r#"{"type":"string","pattern":"(^|,)x(,|$)"}"#,
        &["\"x\"", "\"a,x\"", "\"x,b\""],
        &["\"ax\"", "\"xb\""],
    );
}

#[test]
fn formats() {
    check(r#"{"type":"string","format":"date"}"#, &["\"2024-02-29\""], &["\"2023-02-29\"", "\"\""]);
    check(r#"{"format":"uuid"}"#, &["1", "\"2eb8aa08-aa98-11ea-b4aa-73b441d16380\""], &["\"x\""]);
    check(r#"{"type":"string","format":"made-up"}"#, &["\"anything\""], &["1"]);
    let annotate = SchemaOptions { formats: Formats::Annotate, ..SchemaOptions::default() };
    check_with(r#"{"type":"string","format":"date"}"#, &annotate, &["\"x\""], &["1"]);
}

#[test]
fn patterns_combine_with_short_length_bounds() {
    for (pattern, min, max) in [
        ("^[a-z]+$", 2, 3),
        ("^[a-z][a-z0-9]*$", 2, 3),
        ("^x([a-z]{1,9})y$", 3, 4),
        ("^(?:é|b)*$", 1, 2),
        ("^a?[b-z]{2}$", 3, 9),
        ("[a-z]+$", 2, 3),
        ("^a{2}b*$", 0, 1),
    ] {
        let schema = format!(r#"{{"pattern":"{pattern}","minLength":{min},"maxLength":{max}}}"#);
        let oracle = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
        let mut recognizer = recognizer_with(&schema, &SchemaOptions::default());
        let texts = [
            "", "a", "ab", "abc", "abcd", "a1", "xay", "xaby", "xabcy", "xy", "éb", "ééé", "1a",
            "ccc", "acc", "aa", "1",
        ];
        for text in texts {
            let text = serde_json::Value::from(text);
            assert_eq!(
                accepts(&mut recognizer, &text.to_string()),
                oracle.is_valid(&text),
                "{schema} {text}"
            );
        }
    }
}

#[test]
fn patterns_combine_with_long_length_bounds() {
    // Automata whose product with the length bounds is too large to build at once. Prefixes that
    // cannot end within the bounds, or only in steps of two, are dead ends.
    for (pattern, min, max, alphabet) in [
        ("^(?:[ab]+ ){0,40}c$", 5, 30, "ab c"),
        ("a[xy]b", 3, 90, "axyb"),
        ("^([a-z][0-9])+é?$", 21, 160, "a1é"),
        (".+[@].+[.]__", 10, 70, "x@._"),
        ("^(?:\\\\u00e9|b\\n)*$", 7, 200, "éb\n"),
        ("^a*b*$", 150, 151, "ab"),
    ] {
        let schema = format!(
            r#"{{"type":"string","pattern":"{pattern}","minLength":{min},"maxLength":{max}}}"#
        );
        let limits = Limits::default();
        let grammar =
            lower(&Json::parse(&schema, &limits).unwrap(), &SchemaOptions::default(), &limits)
                .unwrap();
        assert!(format!("{grammar:?}").contains("Counted"), "{schema}");
        let oracle = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
        let mut recognizer = recognizer_with(&schema, &SchemaOptions::default());
        let letters: Vec<char> = alphabet.chars().collect();
        let mut random = 0x2545_F491_4F6C_DD1Du64;
        let mut draw = |n: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % n as u64) as usize
        };
        let (mut valid, mut dead) = (0, 0);
        for _ in 0..400 {
            // A random walk through the allowed bytes. Every prefix can be completed.
            recognizer.reset();
            let mut text = Vec::new();
            loop {
                let allowed: Vec<u8> = recognizer.allowed().iter().collect();
                if allowed.is_empty() {
                    assert!(
                        recognizer.is_complete(),
                        "{schema}: {:?} cannot go on",
                        String::from_utf8_lossy(&text)
                    );
                    break;
                }
                let wanted: Vec<u8> =
                    allowed.iter().copied().filter(|b| alphabet.bytes().any(|a| a == *b)).collect();
                let from = if wanted.is_empty() || draw(9) == 0 { &allowed } else { &wanted };
                let byte = from[draw(from.len())];
                recognizer.push(&[byte]).unwrap();
                text.push(byte);
            }
            let value = serde_json::from_slice(&text).unwrap();
            assert!(oracle.is_valid(&value), "{schema} {value}");
            valid += 1;
            // A random text, whether allowed or not.
            let length = draw(max as usize + 4);
            let text: String = (0..length).map(|_| letters[draw(letters.len())]).collect();
            let text = serde_json::Value::from(text);
            let expected = oracle.is_valid(&text);
            assert_eq!(accepts(&mut recognizer, &text.to_string()), expected, "{schema} {text}");
            dead += usize::from(!expected);
        }
        assert!(valid == 400 && dead > 0, "{schema}");
    }
    // Pairs of code points never have an odd length in all.
    for (min, max) in [(11, 11), (301, 301)] {
        let schema = format!(
            r#"{{"type":"string","pattern":"^(ab)*$","minLength":{min},"maxLength":{max}}}"#
        );
        let limits = Limits::default();
        let refused =
            lower(&Json::parse(&schema, &limits).unwrap(), &SchemaOptions::default(), &limits)
                .unwrap_err();
        assert!(refused.is_unsatisfiable(), "{refused}");
    }
}

#[test]
fn lengths_that_patterns_state_are_counted() {
    for (pattern, more) in [
        (r"^[a.]{3,70}$", ""),
        (r"^b[a.]{3,70}(?:bb|\\.\\.)$", ""),
        (r"^[a.]{70}$", ""),
        (r"^(?:[a.]{0,70}|b{2,5}|c.{40,65})$", ""),
        (r"^(?=.{3,70}\\.?$)[a.]*$", ""),
        (r"^(?=.{3,70}\\.?$)(?=[^b]{5,80}$)(?:a\\.?|b)*$", ""),
        (r"^(?=.{3,70}$)[a.]*$", r#","maxLength":69,"minLength":4"#),
        (r"^(?!.{60,70}$)[a.]*$", r#","maxLength":75"#),
        (r"^[a.]{3,70}$", r#","not":{"pattern":"^a{60,68}$"}"#),
        (r"^(?:a\\.?){3,70}$", r#","maxLength":72"#),
        (r"^a.{60,}$", r#","allOf":[{"pattern":"^.{0,71}$"},{"maxLength":5000}]"#),
    ] {
        let schema = format!(r#"{{"type":"string","pattern":"{pattern}"{more}}}"#);
        let oracle = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
        let mut recognizer = recognizer_with(&schema, &SchemaOptions::default());
        let mut decided = [0, 0];
        for (length, begin, fill, end) in (0..90).flat_map(|length| {
            let parts = [("", "a", ""), ("", "a.", "."), ("b", "a", ".."), ("c", "b", "bb")];
            parts.map(|(begin, fill, end)| (length, begin, fill, end))
        }) {
            let fill = fill.chars().cycle().take(length);
            let text: String = begin.chars().chain(fill).chain(end.chars()).collect();
            let text = serde_json::Value::from(text);
            let expected = oracle.is_valid(&text);
            assert_eq!(accepts(&mut recognizer, &text.to_string()), expected, "{schema} {text}");
            decided[usize::from(expected)] += 1;
        }
        assert!(decided[0] > 0 && decided[1] > 0, "{schema}: {decided:?}");
    }
}

#[test]
fn wide_bounds_on_the_length_cost_as_much_as_none() {
    let limits = Limits::default();
    let units = |schema: &str| {
        let lowered =
            || lower(&Json::parse(schema, &limits).unwrap(), &SchemaOptions::default(), &limits);
        // The first time, shared automata are built.
        lowered().unwrap();
        let (grammar, lowering) = crate::fuel::measure(|| lowered().unwrap());
        let (compiled, compiling) =
            crate::fuel::measure(|| crate::Compiled::new(grammar, &limits).map(|_| ()));
        compiled.unwrap();
        lowering + compiling
    };
    for (keywords, bounds) in [
        (r#""format":"uri""#, r#""maxLength":65536,"minLength":1"#),
        (r#""format":"uri""#, r#""maxLength":65536,"minLength":3000"#),
        (r#""format":"iri-reference""#, r#""maxLength":65536"#),
        (r#""format":"hostname""#, r#""maxLength":253"#),
        (r#""pattern":"^[a-z]{1,63}(\\.[a-z]{1,63}){0,9}$""#, r#""maxLength":253"#),
        (r#""pattern":"^(?:ab|c)*$""#, r#""pattern":"^(?=.{1,65536}$)(?:ab|c)*$""#),
        (r#""pattern":"[a-z]""#, r#""maxLength":65536,"minLength":2"#),
    ] {
        let without = units(&format!(r#"{{"type":"string",{keywords}}}"#));
        let keywords =
            if bounds.contains("pattern") { String::new() } else { format!("{keywords},") };
        let with = units(&format!(r#"{{"type":"string",{keywords}{bounds}}}"#));
        assert!(with <= 3 * without + 80_000, "{keywords}{bounds}: {with} against {without}");
    }
}
