//! Objects: declared, additional and counted members, their names and order.

use super::*;

#[test]
fn declared_members_appear_at_most_once() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{},"v":{},"w":{}},"required":["b"],"additionalProperties":false}"#;
    check(
        schema,
        &[
            r#"{"b":""}"#,
            r#"{"a":1,"b":""}"#,
            r#"{"b":"","c":[]}"#,
            r#"{"b":"","c":1,"a":1}"#,
            r#"{ "a" : 1 , "b" : "x" , "c" : null }"#,
        ],
        &[
            "{}",
            r#"{"a":1}"#,
            r#"{"b":"","b":""}"#,
            r#"{"b":"","c":1,"\u0062":""}"#,
            r#"{"b":1}"#,
            r#"{"b":"","d":1}"#,
            r#"{"b":"",}"#,
            r#"{,"b":""}"#,
            r#"{"a":1"b":""}"#,
        ],
    );
}

#[test]
fn objects_of_any_size_take_any_order() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{},"v":{},"w":{}},"required":["b"]}"#;
    let twice = &[
        "{}",
        r#"{"a":1}"#,
        r#"{"b":"","c":1,"b":""}"#,
        r#"{"x":1,"b":1}"#,
        r#"{"b":"","\u0062":""}"#,
        r#"{"b":"",}"#,
    ];
    let ordered =
        [r#"{"b":""}"#, r#"{"x":1,"b":"","y":2,"a":1,"c":null,"z":3}"#, r#"{"a":1,"b":"","c":2}"#];
    let free = [r#"{"c":1,"b":"","a":1}"#, r#"{"b":"","c":1,"a":1}"#];
    check(schema, &ordered, twice);
    check(schema, &free, &[]);
    let any = SchemaOptions { order: MemberOrder::Any, ..SchemaOptions::default() };
    check_with(schema, &any, &ordered, twice);
    check_with(schema, &any, &free, &[]);
    let small = r#"{"properties":{"a":{"type":"integer"},"b":{}},"required":["b"]}"#;
    check(
        small,
        &[r#"{"b":1,"a":1}"#, r#"{"a":1,"b":1}"#],
        &[r#"{"a":1,"b":1,"a":1}"#, r#"{"a":1}"#],
    );
    let many = |count: usize| {
        let many: Vec<String> = (0..count).map(|i| format!("\"p{i}\":{{}}")).collect();
        format!("{{\"properties\":{{{}}},\"required\":[\"p9\",\"p3\"]}}", many.join(","))
    };
    let (ordered, free) =
        ([r#"{"p3":1,"p9":1}"#, r#"{"p9":1,"p3":1,"p1":2}"#], [r#"{"p9":1,"p1":2,"p3":1}"#]);
    let twice = [r#"{"p3":1,"p9":1,"p3":1}"#, r#"{"p3":1}"#];
    for count in [64, 65, 129, 1_000] {
        check(&many(count), &ordered, &twice);
        check(&many(count), &free, &[]);
        check_with(&many(count), &any, &free, &twice);
        let last = count - 1;
        let names = format!(r#""p3":1,"p{last}":1,"p10":1,"p1":1,"x":1,"p{}":1,"p9":1"#, count / 2);
        check(&many(count), &[&format!("{{{names}}}")], &[&format!("{{{names},\"p{last}\":1}}")]);
    }
    // A node for each subset: where a member is known only by its value.
    let by_value = many(13).replacen('{', r#"{"not":{"additionalProperties":{"type":"null"}},"#, 1);
    check(&by_value, &[r#"{"p3":1,"p9":1}"#], &[r#"{"p3":null,"p9":null}"#, r#"{"p3":1}"#]);
    let json = Json::parse(&by_value, &Limits::default()).unwrap();
    let errors = lower(&json, &any, &Limits::default()).unwrap_err();
    assert!(matches!(errors.0[0].reason, SchemaErrorReason::Limit(_)), "{errors}");
    // Names from a finite set, counted.
    check(
        r#"{"minProperties":3,"additionalProperties":false,"patternProperties":{"^[a-z]{2}$":{}}}"#,
        &[r#"{"zz":1,"ab":2,"ef":3}"#, r#"{"zz":1,"ab":2,"ef":3,"aa":4}"#],
        &[r#"{"zz":1,"ab":2}"#, r#"{"zz":1,"ab":2,"zz":3}"#, r#"{"zz":1,"ab":2,"abc":3}"#],
    );
    let constant = r#"{"const":{"a":1,"b":2,"c":3,"d":4,"e":5}}"#;
    check(constant, &[r#"{"e":5,"b":2,"a":1,"c":3,"d":4}"#], &[r#"{"e":5,"b":2,"a":1,"c":3}"#]);
    let counted = r#"{"properties":{"a":{},"b":{},"c":{},"d":{},"e":{}},"minProperties":3,"maxProperties":4}"#;
    let counts =
        [r#"{"e":5,"b":2,"x":1}"#, r#"{"x":5,"c":2,"y":1,"a":1}"#, r#"{"x":1,"y":1,"z":1}"#];
    check(
        counted,
        &counts,
        &[r#"{"a":1,"b":1}"#, r#"{"e":1,"d":1,"c":1,"b":1,"a":1}"#, r#"{"x":1,"y":1,"x":1}"#],
    );
}

#[test]
fn additional_properties_exclude_declared_names() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"null"}},"additionalProperties":{"type":"boolean"}}"#;
    check(
        schema,
        &[
            "{}",
            r#"{"x":true}"#,
            r#"{"a":1,"abc":true,"b":false}"#,
            r#"{"":true}"#,
            r#"{"é\n":true}"#,
            r#"{"aé\u0062":true}"#,
            r#"{"b\u0061":true}"#,
        ],
        &[
            r#"{"x":1}"#,
            r#"{"a":true}"#,
            r#"{"x":true,"a":true}"#,
            r#"{"\u0061":true}"#,
            r#"{"\u0061b":true}"#,
            r#"{"a\u0062":true}"#,
            r#"{"ab":true}"#,
        ],
    );
    // Names that need escapes, and names beyond ASCII.
    check(
        r#"{"type":"object","properties":{"\"q":{"type":"null"},"é":{"type":"null"},"n\n":{"type":"null"}}}"#,
        &[
            r#"{"\"q":null}"#,
            r#"{"é":null}"#,
            r#"{"n\n":null}"#,
            r#"{"\"x":1}"#,
            r#"{"è":1}"#,
            r#"{"n\t":1}"#,
            r#"{"n\u0000":1}"#,
            r#"{"ée":1}"#,
        ],
        &[
            r#"{"\"q":1}"#,
            r#"{"é":1}"#,
            r#"{"\u00e9":1}"#,
            r#"{"n\n":1}"#,
            r#"{"n\u000a":1}"#,
            r#"{"n\u000A":1}"#,
        ],
    );
    check(
        r#"{"type":"object","required":["z"],"additionalProperties":{"type":"integer"}}"#,
        &[r#"{"z":1}"#, r#"{"z":1,"a":2}"#],
        &["{}", r#"{"z":""}"#, r#"{"a":2}"#],
    );
}

#[test]
fn pattern_properties_and_property_names() {
    let schema = r#"{"type":"object","properties":{"xa":{"minimum":5}},"patternProperties":{"^x":{"type":"integer"},"y$":{"maximum":3}},"additionalProperties":false}"#;
    check(
        schema,
        &["{}", r#"{"xa":6}"#, r#"{"xb":1}"#, r#"{"y":"s"}"#, r#"{"xy":3}"#, r#"{"by":2,"x":100}"#],
        &[
            r#"{"xa":4}"#,
            r#"{"xb":""}"#,
            r#"{"xy":4}"#,
            r#"{"y":4}"#,
            r#"{"b":1}"#,
            r#"{"\u0078a":1}"#,
        ],
    );
    check(
        r#"{"type":"object","propertyNames":{"maxLength":2,"pattern":"^[a-z]"},"properties":{"abc":{},"ab":{}}}"#,
        &["{}", r#"{"ab":1}"#, r#"{"b":1}"#, r#"{"ab":1,"cd":2}"#],
        &[r#"{"abc":1}"#, r#"{"A":1}"#, r#"{"":1}"#, r#"{"bcd":1}"#],
    );
    check(
        r#"{"type":"object","propertyNames":{"enum":["a","b"]}}"#,
        &["{}", r#"{"b":1}"#],
        &[r#"{"c":1}"#],
    );
}

#[test]
fn min_and_max_properties() {
    check(r#"{"type":"object","minProperties":1}"#, &[r#"{"a":1}"#, r#"{"a":1,"b":1}"#], &["{}"]);
    check(r#"{"type":"object","maxProperties":1}"#, &["{}", r#"{"a":1}"#], &[r#"{"a":1,"b":1}"#]);
    let schema = r#"{"type":"object","properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":2,"maxProperties":2}"#;
    check(
        schema,
        &[r#"{"a":1,"c":1}"#, r#"{"b":1,"c":1}"#],
        &["{}", r#"{"a":1}"#, r#"{"a":1,"b":1,"c":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{}},"minProperties":2}"#,
        &[r#"{"a":1,"b":2}"#],
        &[r#"{"b":1,"b":2}"#, r#"{"a":1}"#],
    );
}

#[test]
fn lengths_of_names_are_counted() {
    let name = |length: usize, first: &str| format!("{first}{}", "é".repeat(length - 1));
    let one = |name: String| format!(r#"{{"{name}":1}}"#);
    let (least, most, longer) = (one(name(2, "a")), one(name(900, "a")), one(name(901, "a")));
    let schema = r#"{"type":"object","propertyNames":{"minLength":2,"maxLength":900},
        "properties":{"ab":{"type":"null"}},"patternProperties":{"^x":{"type":"boolean"}},
        "additionalProperties":{"type":"integer"}}"#;
    let repeated = format!(r#"{{"{0}":1,"{0}":2}}"#, name(900, "a"));
    let distinct = format!(r#"{{"{}":1,"{}":2,"xé":true}}"#, name(900, "a"), name(900, "b"));
    let of_pattern = format!(r#"{{"{}":true}}"#, name(900, "x"));
    let too_long = format!(r#"{{"{}":true}}"#, name(901, "x"));
    check(
        schema,
        &["{}", &least, &most, &distinct, &of_pattern, r#"{"ab":null}"#],
        &[&longer, &repeated, &too_long, r#"{"a":1}"#, r#"{"":1}"#, r#"{"ab":1}"#, r#"{"xa":1}"#],
    );
    // Few names are declared members, and must suffice.
    check(
        r#"{"type":"object","propertyNames":{"maxLength":1,"pattern":"^[ab]*$"},"minProperties":3}"#,
        &[r#"{"":1,"a":2,"b":3}"#],
        &[r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2,"aa":3}"#],
    );
    // One name for each length.
    check(
        r#"{"type":"object","propertyNames":{"maxLength":300,"pattern":"^a*$"},"minProperties":1}"#,
        &[r#"{"":1,"a":2}"#, &one("a".repeat(300))],
        &["{}", &one("a".repeat(301)), r#"{"a":1,"a":2}"#],
    );
}
