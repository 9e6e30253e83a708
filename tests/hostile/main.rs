//! Hostile inputs: small schemas and grammars that ask for as much work as possible. With the
//! default limits, each of them becomes a constraint or a typed error, and its masks end too.
//!
//! The inputs are made by generators, one file for each kind of input. To run some of them and see
//! what each costs: `LOUVER_HOSTILE=regex/ cargo test -p louver --test hostile -- --nocapture`.

mod ebnf;
mod harness;
mod json_schema;
mod lark;
mod regex;
mod structural_tag;

use harness::{Input, PeakAlloc, Suite};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn inputs() -> Vec<Input> {
    let mut all = regex::inputs();
    all.extend(json_schema::inputs());
    all.extend(ebnf::inputs());
    all.extend(lark::inputs());
    all.extend(structural_tag::inputs());
    all
}

#[test]
fn hostile_inputs_end_within_fuel_and_memory() {
    let inputs = inputs();
    assert!(inputs.len() >= 230, "{} inputs", inputs.len());
    let test = "hostile_inputs_end_within_fuel_and_memory";
    Suite::new(&MEMORY).run(test, &inputs, Suite::compile_and_walk);
}

#[test]
fn cancelled_compilations_of_hostile_inputs_end_soon() {
    let test = "cancelled_compilations_of_hostile_inputs_end_soon";
    Suite::new(&MEMORY).run(test, &inputs(), Suite::cancel_compilations);
}

#[test]
fn hostile_input_names_are_unique() {
    harness::check_names(&inputs());
}
