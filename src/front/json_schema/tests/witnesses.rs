//! Tests of witnesses (members that are known only by a property), and of names that patterns
//! declare.

use super::*;

#[test]
fn one_member_can_be_either_witness() {
    // Two witnesses: a member other than `a` whose value is not 1, and any member but `b` and `c`.
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
fn literal_patterns_declare_their_name() {
    let schema = r#"{"properties":{"a":{"type":"integer"}},"patternProperties":{"^a$":{"minimum":2},"^b_c$":{"type":"null"},"^d.$":{"const":1}},
        "additionalProperties":{"type":"string"}}"#;
    let valid = [r#"{"b_c":null,"a":2,"d":"","de":1,"b_cd":""}"#, r#"{"dx":1,"a":3}"#, "{}"];
    let invalid = [r#"{"a":1}"#, r#"{"b_c":""}"#, r#"{"b_cd":null}"#, r#"{"dx":2}"#, r#"{"d":1}"#];
    check(schema, &valid, &invalid);
    // With a fixed order, the pattern declares no name.
    let fixed = SchemaOptions { order: MemberOrder::Fixed, ..SchemaOptions::default() };
    check_with(schema, &fixed, &[r#"{"a":2,"x":"","b_c":null}"#], &invalid);
    check(schema, &[], &[r#"{"b_c":null,"b_c":null}"#]);
}
