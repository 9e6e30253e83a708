//! Members that only what they satisfy tells, and names that patterns declare.

use super::*;

#[test]
fn a_member_may_be_either_of_those_looked_for() {
    // One that is not 1 and not called "a", and any.
    check(
        r#"{"type":"object","properties":{"b":{"enum":[1,"x"]}},"required":["c"],"allOf":[
            {"not":{"properties":{"a":{"const":1}},"required":["b"],"additionalProperties":{"const":1}}},
            {"not":{"required":["b","c"],"additionalProperties":false}}]}"#,
        &[
            r#"{"a":1,"b":"x","c":1}"#,
            r#"{"a":1,"c":1,"b":"x"}"#,
            r#"{"b":"x","a":1,"c":1}"#,
            r#"{"b":"x","c":1,"a":1}"#,
            r#"{"c":1,"a":1,"b":"x"}"#,
            r#"{"c":1,"b":"x","a":1}"#,
            r#"{"c":1}"#,
        ],
        &[r#"{"a":1,"b":1,"c":1}"#, r#"{"b":"x"}"#],
    );
}

#[test]
fn a_pattern_of_one_name_declares_it() {
    let schema = r#"{"properties":{"a":{"type":"integer"}},"patternProperties":{"^a$":{"minimum":2},"^b_c$":{"type":"null"},"^d.$":{"const":1}},
        "additionalProperties":{"type":"string"}}"#;
    let valid = [r#"{"b_c":null,"a":2,"d":"","de":1,"b_cd":""}"#, r#"{"dx":1,"a":3}"#, "{}"];
    let invalid = [r#"{"a":1}"#, r#"{"b_c":""}"#, r#"{"b_cd":null}"#, r#"{"dx":2}"#, r#"{"d":1}"#];
    check(schema, &valid, &invalid);
    // Where members are in the order they are declared in, it is a pattern like any other.
    let fixed = SchemaOptions { order: MemberOrder::Fixed, ..SchemaOptions::default() };
    check_with(schema, &fixed, &[r#"{"a":2,"x":"","b_c":null}"#], &invalid);
    check(schema, &[], &[r#"{"b_c":null,"b_c":null}"#]);
}
