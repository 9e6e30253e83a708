//! Tests of the spellings of values: escapes, numbers, characters outside ASCII.

use super::*;

/// A JSON string of a text, with an escape of each character chosen by `draw`.
fn spell_with(text: &str, mut draw: impl FnMut(u32) -> u32) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let short = crate::spec::json::short_escape(c).or((c == '/').then_some("\\/"));
        let raw = !matches!(c, '"' | '\\') && u32::from(c) >= 0x20;
        match draw(4) {
            0 | 1 if raw => out.push(c),
            2 if short.is_some() => out.extend(short),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let digits = format!("{unit:04x}");
                    let cased = digits
                        .chars()
                        .map(|c| if draw(2) == 0 { c } else { c.to_ascii_uppercase() });
                    out.push_str("\\u");
                    out.extend(cased);
                }
            }
        }
    }
    out.push('"');
    out
}

/// All positions of constrained text: a schema and an instance, in which `TEXT` stands for a JSON
/// string.
const PLACES: [(&str, &str); 9] = [
    (r#"{"const":TEXT}"#, "TEXT"),
    (r#"{"enum":["a",TEXT,"ab/",1,"é"]}"#, "TEXT"),
    (r#"{"const":{"k":[TEXT]}}"#, r#"{"k":[TEXT]}"#),
    (
        r#"{"properties":{TEXT:{"type":"null"}},"additionalProperties":false,"minProperties":1}"#,
        "{TEXT:null}",
    ),
    (
        r#"{"required":["o",TEXT],"additionalProperties":{"type":"null"}}"#,
        r#"{TEXT:null,"o":null}"#,
    ),
    (r#"{"type":"string","pattern":"^[ -0a-c/\"\\\\\n\u0001é😀]+$"}"#, "TEXT"),
    (r#"{"pattern":"[^z]$","minLength":1,"maxLength":9}"#, "TEXT"),
    (
        r#"{"patternProperties":{"^.[^z]*$":{"type":"null"}},"additionalProperties":false}"#,
        "{TEXT:null}",
    ),
    (r#"{"not":{"enum":["z","zz"]},"type":"string"}"#, "TEXT"),
];

#[test]
fn constrained_text_accepts_every_escape() {
    let any = SchemaOptions { escapes: Escapes::Any, ..SchemaOptions::default() };
    let mut seed = 1u32;
    let mut draw = move |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) % n
    };
    for text in ["a", "ab/c", "b\"\\\n\u{1}", "é/😀", "a -0"] {
        for (schema, instance) in PLACES {
            let schema = schema.replace("TEXT", &Json::String(text.into()).to_string());
            let mut recognizer = recognizer_with(&schema, &any);
            for round in 0..30 {
                let text = instance
                    .replace("TEXT", &spell_with(text, |n| if round == 0 { 0 } else { draw(n) }));
                assert!(accepts(&mut recognizer, &text), "{schema} should accept {text}");
                for other in
                    [text.replace("u00", "u01"), text.replace("\\/", "\\."), text.replace('d', "z")]
                {
                    let same = |a: &str, b: &str| {
                        Json::parse(a, &Limits::default()).ok()
                            == Json::parse(b, &Limits::default()).ok()
                    };
                    let json = Json::parse(&other, &Limits::default()).is_ok();
                    assert!(
                        json || !accepts(&mut recognizer, &other),
                        "{schema} should not accept {other}"
                    );
                    let exact = schema.starts_with(r#"{"const"#);
                    assert!(
                        same(&text, &other) || !exact || !accepts(&mut recognizer, &other),
                        "{schema}: {other}"
                    );
                }
            }
        }
    }
}

#[test]
fn escaped_spellings_denote_the_same_name() {
    let any = SchemaOptions { escapes: Escapes::Any, ..SchemaOptions::default() };
    let schema = r#"{"type":"object","properties":{"ab":{"type":"null"},"c/":{"type":"null"}},"additionalProperties":{"type":"integer"}}"#;
    for options in [SchemaOptions::default(), any] {
        check_with(
            schema,
            &options,
            &[r#"{"ab":null,"c/":null}"#, r#"{"abc":1,"c":2}"#, r#"{"aé":1}"#],
            &[
                r#"{"\u0061b":1}"#,
                r#"{"a\u0062":1}"#,
                r#"{"c\/":1}"#,
                r#"{"c\u002F":1}"#,
                r#"{"ab":null,"\u0061\u0062":null}"#,
                r#"{"ab":null,"ab":null}"#,
            ],
        );
    }
    check_with(
        schema,
        &any,
        &[
            r#"{"\u0061b":null}"#,
            r#"{"c\/":null}"#,
            r#"{"\u0061":1}"#,
            r#"{"a\u0062c":1}"#,
            r#"{"c\u002Fd":1}"#,
            r#"{"\/":1}"#,
        ],
        &[r#"{"\u0061b":1}"#, r#"{"a\u0062":null,"ab":null}"#, r#"{"\u0061":null}"#],
    );
    check(schema, &[], &[r#"{"\u0061b":null}"#, r#"{"c\/":null}"#]);
}

#[test]
fn characters_of_constants_are_spelled_independently() {
    check(
        r#"{"enum":["éa😀","x"]}"#,
        &[r#""\u00e9a😀""#, r#""éa\uD83D\ude00""#, "\"x\""],
        &[r#""éa\ud83d""#, r#""\u0065a😀""#],
    );
    check(r#"{"const":"\u001f\n"}"#, &[r#""\u001f\n""#, r#""\u001F\u000A""#], &["\"\u{1f}\n\""]);
    let raw = SchemaOptions {
        non_ascii: NonAscii::Raw,
        escapes: Escapes::Any,
        ..SchemaOptions::default()
    };
    check_with(r#"{"const":"éa"}"#, &raw, &[r#""é\u0061""#], &[r#""\u00e9a""#]);
    let escaped = SchemaOptions { non_ascii: NonAscii::Escaped, ..SchemaOptions::default() };
    check_with(r#"{"const":"éa"}"#, &escaped, &[r#""\u00E9a""#], &["\"éa\"", r#""\u00e9\u0061""#]);
}

#[test]
fn exponents_within_bounds() {
    check_any(
        r#"{"type":"number","minimum":-5,"maximum":120}"#,
        &["1.2e2", "1.19E+02", "-5e0", "-4.99e-000", "1e-999", "0.0e5", "-0e5"],
        &["1.21e2", "1.2e3", "-5.01e0", "0.5e1", "12e1", "1e", "1.e1", "1e+-1"],
    );
    check_any(
        r#"{"type":"number","exclusiveMinimum":0}"#,
        &["12.5e-3", "0.001e9"],
        &["0e5", "0.00E1", "-1e5", "-0"],
    );
    check_any(
        r#"{"type":"integer","minimum":1,"maximum":1000}"#,
        &["1e3", "5.0e2", "1e0"],
        &["2e3", "1.5e2", "1e-1", "10e1"],
    );
    check_any(
        r#"{"type":"number","multipleOf":0.05}"#,
        &["5e-2", "1e-1", "3e0"],
        &["5e-3", "1e-2", "1.5e0"],
    );
    check_any(
        r#"{"type":"integer","not":{"const":500}}"#,
        &["5e1", "50"],
        &["5e2", "500", "5.0e+2"],
    );
    check_any(r#"{"type":"number","not":{"type":"integer"}}"#, &["5e-1", "2.5"], &["5e1", "2.0"]);
    let digits = SchemaOptions { integers: Integers::Digits, ..any_spelling() };
    check_with(r#"{"type":"integer"}"#, &digits, &["100"], &["1e2", "100.0"]);
    let draft4 = SchemaOptions { dialect: Dialect::Draft4, ..any_spelling() };
    check_with(r#"{"type":"integer","minimum":5}"#, &draft4, &["100"], &["1e2", "100.0"]);
    let forbidden = SchemaOptions { exponents: Exponents::Forbidden, ..any_spelling() };
    for schema in
        [r#"{}"#, r#"{"type":"number","minimum":0}"#, r#"{"type":"integer"}"#, r#"{"enum":[20,5]}"#]
    {
        check_with(schema, &forbidden, &["20", "20.0"], &["2e1", "2E+01"]);
    }
    let capped = SchemaOptions { max_digits: Some(2), ..any_spelling() };
    check_with(
        r#"{"type":"number","minimum":1}"#,
        &capped,
        &["1.25e10", "1e+09"],
        &["1.255e1", "1e100", "1e001"],
    );
}

#[test]
fn listed_numbers_in_any_spelling() {
    check_any(
        r#"{"enum":[150,"x",2.50]}"#,
        &["150", "150.00", "1.5e2", "15E+1", "0.15e03", "150e0", "2.5", "2.50", "25e-1", "\"x\""],
        &["1.5e1", "1500e-1", "0.015e4", "25e1", "2.05", "2.5.0"],
    );
    check_any(r#"{"const":1500e-1}"#, &["1500e-1", "150"], &["1500e-2"]);
    check_any(r#"{"const":{"n":[100]}}"#, &[r#"{"n":[1e2]}"#], &[r#"{"n":[1e3]}"#]);
    check_any(r#"{"const":0}"#, &["0", "-0.0", "0e7"], &["1e-400"]);
    let draft4 = SchemaOptions { dialect: Dialect::Draft4, ..any_spelling() };
    check_with(r#"{"enum":[1]}"#, &draft4, &["1", "1.0", "1e0"], &["2"]);
    check_with(r#"{"type":"integer","enum":[1]}"#, &draft4, &["1"], &["1.0", "1e0"]);
}

#[test]
fn many_listed_numbers_are_lowered_in_linear_work() {
    let numbers: Vec<String> =
        (0..100_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    let schema = format!("{{\"enum\":[{}]}}", numbers.join(","));
    let ((), spent) = fuel::measure(|| {
        check_any(&schema, &[&numbers[77], &format!("{}.0", numbers[7])], &["2"]);
    });
    assert!(spent < 20 * 100_000, "{spent} units");
}

#[test]
fn default_numbers_fit_double_precision() {
    let integers: &[&str] = &["0", "-7", "12", "100000000000000000000"];
    let not_digits: &[&str] = &["1.0", "5e+0", "9E72592122", "1e999", "01", "7.", "+1"];
    check(r#"{"type":"integer"}"#, integers, not_digits);
    check(r#"{"type":"integer","minimum":-10}"#, integers, not_digits);
    check(r#"{"type":"integer","minimum":1,"maximum":7}"#, &["1", "7"], &["7.0", "5e+0", "0", "8"]);
    check(r#"{"type":"integer","multipleOf":5}"#, &["0", "15"], &["15.0", "1.5e1", "5e0"]);
    let numbers: &[&str] = &[
        "0",
        "-0.5",
        "12.50",
        "1e5",
        "1.5E+10",
        "6.02e23",
        "12e-7",
        "9.9e307",
        "1e-308",
        "3e39",
        "1e308",
        "1.7976931348623157e+308",
        "-1.7976931348623157e308",
        "1.79769313486231570e308",
        "0e0",
        "10e3",
        "1e010",
    ];
    let not_read: &[&str] = &[
        "1e999",
        "2e308",
        "1.7976931348623158e308",
        "1.79769313486231571e308",
        "1.8e308",
        "9E72592122",
        "0e999",
        "1e-309",
        "12e100",
        "1e0000",
        "12e007",
    ];
    for schema in ["{}", r#"{"type":"number"}"#, r#"{"type":["number","string"]}"#] {
        check(schema, numbers, not_read);
    }
    check(r#"{"type":"number","minimum":0}"#, &["10e3", "0.25e-3", "1e307"], not_read);
    check(r#"{"type":"number","minimum":-1000}"#, &["1e5", "9.9e307", "250.5"], not_read);
    check(r#"{"type":"number","multipleOf":0.5}"#, &["1e5", "0.5", "1e308"], &["1e999", "2e308"]);
    check(r#"{"enum":[1,2,3]}"#, &["1", "3"], &["1.0", "0.20E+00001", "1e0"]);
    check(
        r#"{"enum":[2.50,1e3,7.0]}"#,
        &["2.50", "2.5", "1e3", "1000", "7.0", "7"],
        &["25e-1", "2.500", "10e2", "7.00"],
    );
    check(r#"{"const":{"n":[100]}}"#, &[r#"{"n":[100]}"#], &[r#"{"n":[1e2]}"#, r#"{"n":[100.0]}"#]);
    let forbidden = SchemaOptions { exponents: Exponents::Forbidden, ..SchemaOptions::default() };
    check_with(r#"{"type":"number"}"#, &forbidden, &["1.5", "-12"], &["1e5"]);
    let options: SchemaOptions = serde_json::from_str(
        r#"{"integers":"zero_fraction","exponents":"allowed","max_digits":4}"#,
    )
    .unwrap();
    check_with(r#"{"type":"integer"}"#, &options, &["7.0", "5e+0", "1e999"], &["12345"]);
}

#[test]
fn max_digits_limits_every_part() {
    let options = SchemaOptions { max_digits: Some(3), ..any_spelling() };
    for schema in
        [r#"{"type":"number"}"#, r#"{"type":"number","minimum":-5000}"#, r#"{"multipleOf":0.001}"#]
    {
        check_with(schema, &options, &["0", "-123", "999.125", "1.5"], &["1234", "0.1234"]);
    }
    check_with(r#"{"type":"integer"}"#, &options, &["123", "-1.000"], &["1234", "1.0000"]);
    check_with(r#"{"type":"number"}"#, &options, &["1e123"], &["1e1234"]);
}

#[test]
fn non_ascii_option_selects_the_spelling() {
    let schema = r#"{"type":"object","properties":{"é":{"const":"😀é"},"p":{"type":"string","pattern":"^[à-ÿ😀]$"},"q":{"type":"string","maxLength":1}},"additionalProperties":{}}"#;
    let (raw, escaped) = (r#"{"é":"😀é"}"#, r#"{"\u00e9":"\ud83d\ude00\u00e9"}"#);
    let with = |non_ascii| SchemaOptions { non_ascii, ..SchemaOptions::default() };
    check_with(
        schema,
        &with(NonAscii::Either),
        &[
            raw,
            escaped,
            r#"{"p":"\u00E0"}"#,
            r#"{"p":"\uD83D\uDE00"}"#,
            r#"{"q":"é"}"#,
            r#"{"q":"\u00e9"}"#,
        ],
        &[
            r#"{"\u00e9":"x"}"#,
            r#"{"é":"😀é","\u00e9":"😀é"}"#,
            r#"{"p":"\u0100"}"#,
            r#"{"p":"\uD83D\uDE01"}"#,
        ],
    );
    check_with(
        schema,
        &with(NonAscii::Raw),
        &[raw, r#"{"p":"à"}"#],
        &[escaped, r#"{"p":"\u00e0"}"#],
    );
    check_with(
        schema,
        &with(NonAscii::Escaped),
        &[escaped],
        &[raw, r#"{"p":"à"}"#, r#"{"q":"é"}"#, r#"{"x":"é"}"#],
    );
}
