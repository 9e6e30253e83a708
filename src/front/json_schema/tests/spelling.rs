//! How values may be spelt.

use super::*;

#[test]
fn exponents_within_bounds() {
    check(
        r#"{"type":"number","minimum":-5,"maximum":120}"#,
        &["1.2e2", "1.19E+02", "-5e0", "-4.99e-000", "1e-999", "0.0e5", "-0e5"],
        &["1.21e2", "1.2e3", "-5.01e0", "0.5e1", "12e1", "1e", "1.e1", "1e+-1"],
    );
    check(r#"{"type":"number","exclusiveMinimum":0}"#, &["12.5e-3", "0.001e9"], &["0e5", "0.00E1", "-1e5", "-0"]);
    check(
        r#"{"type":"integer","minimum":1,"maximum":1000}"#,
        &["1e3", "5.0e2", "1e0"],
        &["2e3", "1.5e2", "1e-1", "10e1"],
    );
    check(r#"{"type":"number","multipleOf":0.05}"#, &["5e-2", "1e-1", "3e0"], &["5e-3", "1e-2", "1.5e0"]);
    check(r#"{"type":"integer","not":{"const":500}}"#, &["5e1", "50"], &["5e2", "500", "5.0e+2"]);
    check(r#"{"type":"number","not":{"type":"integer"}}"#, &["5e-1", "2.5"], &["5e1", "2.0"]);
    let digits = SchemaOptions { integers: Integers::Digits, ..SchemaOptions::default() };
    check_with(r#"{"type":"integer"}"#, &digits, &["100"], &["1e2", "100.0"]);
    let draft4 = SchemaOptions { dialect: Dialect::Draft4, ..SchemaOptions::default() };
    check_with(r#"{"type":"integer","minimum":5}"#, &draft4, &["100"], &["1e2", "100.0"]);
    let forbidden = SchemaOptions { exponents: Exponents::Forbidden, ..SchemaOptions::default() };
    for schema in [r#"{}"#, r#"{"type":"number","minimum":0}"#, r#"{"type":"integer"}"#, r#"{"enum":[20,5]}"#] {
        check_with(schema, &forbidden, &["20", "20.0"], &["2e1", "2E+01"]);
    }
    let capped = SchemaOptions { max_digits: Some(2), ..SchemaOptions::default() };
    check_with(r#"{"type":"number","minimum":1}"#, &capped, &["1.25e10", "1e+09"], &["1.255e1", "1e100", "1e001"]);
}

#[test]
fn listed_numbers() {
    check(
        r#"{"enum":[150,"x",2.50]}"#,
        &["150", "150.00", "1.5e2", "15E+1", "0.15e03", "150e0", "2.5", "2.50", "25e-1", "\"x\""],
        &["1.5e1", "1500e-1", "0.015e4", "25e1", "2.05", "2.5.0"],
    );
    check(r#"{"const":1500e-1}"#, &["1500e-1", "150"], &["1500e-2"]);
    check(r#"{"const":{"n":[100]}}"#, &[r#"{"n":[1e2]}"#], &[r#"{"n":[1e3]}"#]);
    check(r#"{"const":0}"#, &["0", "-0.0", "0e7"], &["1e-400"]);
    let draft4 = SchemaOptions { dialect: Dialect::Draft4, ..SchemaOptions::default() };
    check_with(r#"{"enum":[1]}"#, &draft4, &["1", "1.0", "1e0"], &["2"]);
    check_with(r#"{"type":"integer","enum":[1]}"#, &draft4, &["1"], &["1.0", "1e0"]);
}

#[test]
fn many_listed_numbers_are_lowered_soon() {
    let numbers: Vec<String> = (0..100_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    let schema = format!("{{\"enum\":[{}]}}", numbers.join(","));
    let begin = std::time::Instant::now();
    check(&schema, &[&numbers[77], &format!("{}.0", numbers[7])], &["2"]);
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}
