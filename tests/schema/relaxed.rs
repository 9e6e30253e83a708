//! Random schemas under limits that are too low for them, with a policy that relaxes: every valid
//! instance keeps a text, and what is accepted wrongly was reported. `LOUVER_RELAXED=100000` sets
//! the number of instances, `LOUVER_SEED` the first seed.

use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::json_schema::{Policy, Registry, SchemaSource, lower_reported};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde_json::{Value, json};

use super::compare_seeds;
use super::differential::orders;
use super::generate::{self, Rng};
use super::support::any_spelling;

/// Instances of each schema; half of them are mutations of others.
const INSTANCES: usize = 16;

/// Patterns whose automata have hundreds of states.
const LARGE_PATTERNS: [&str; 3] = ["a[ab]{8}$", "^(a|b)*a[ab]{9}$", "b.{7}(a|\u{e9})$"];

#[derive(Debug, Default)]
struct Counts {
    enforced: usize,
    relaxed: usize,
    unsatisfiable: usize,
    instances: usize,
    valid: usize,
    wrongly_accepted: usize,
}

/// Makes some keywords costly.
fn enlarge(schema: &mut Value, rng: &mut Rng) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| enlarge(item, rng)),
        Value::Object(map) => {
            for (keyword, value) in map.iter_mut() {
                match &**keyword {
                    "const" | "required" => {}
                    "enum" if value.is_array() => {}
                    "pattern" if rng.chance(60) => *value = json!(rng.pick(&LARGE_PATTERNS)),
                    "oneOf" | "anyOf" if rng.chance(30) => {
                        let Value::Array(branches) = value else { continue };
                        for _ in 0..4 + rng.next(8) {
                            branches.push(generate::schema(rng, 1));
                        }
                    }
                    _ => enlarge(value, rng),
                }
            }
        }
        _ => {}
    }
}

/// Limits of which some are low; JSON itself stays within all of them.
fn low_limits(rng: &mut Rng) -> Limits {
    let limits = Limits::default();
    match rng.next(5) {
        0 => limits.with_automaton_states(*rng.pick(&[100, 200, 500])),
        1 => limits.with_compile_fuel(*rng.pick(&[3_000, 10_000, 30_000, 100_000])),
        2 => limits.with_nodes(*rng.pick(&[10, 20, 40])),
        3 => limits.with_depth(2 + rng.next(8)),
        _ => limits
            .with_automaton_states(*rng.pick(&[100, 200]))
            .with_compile_fuel(*rng.pick(&[10_000, 30_000])),
    }
}

fn compare(seed: u64, counts: &mut Counts) {
    let mut rng = Rng::new(seed);
    let mut root = generate::document(&mut rng);
    enlarge(&mut root, &mut rng);
    let mut instances: Vec<Value> =
        (0..INSTANCES / 2).map(|_| generate::instance(&mut rng, 2)).collect();
    for i in 0..INSTANCES / 2 {
        instances.push(generate::mutation(&mut rng, &instances[i]));
    }
    let limits = low_limits(&mut rng);
    let (schema, registry) = (Json::from(&root), Registry::new());
    let lower = |policy| {
        let options = any_spelling().with_policy(policy);
        let (schema, registry, limits) = (&schema, &registry, &limits);
        lower_reported(SchemaSource { schema, registry, options, limits })
    };
    let strict = lower(Policy::Strict);
    let relaxed = lower(Policy::BestEffort);
    let context = format!("seed {seed}\nlimits {limits:?}\nschema {root}");
    let (mut recognizer, report) = match relaxed {
        Ok(lowered) => {
            let compiled = Compiled::new(&lowered.grammar, &Limits::default())
                .unwrap_or_else(|error| panic!("{error}\n{context}"));
            (Some(Recognizer::new(Arc::new(compiled))), lowered.relaxed)
        }
        Err(errors) => {
            assert!(errors.is_unsatisfiable(), "{errors}\n{context}");
            counts.unsatisfiable += 1;
            (None, Vec::new())
        }
    };
    assert!(strict.is_err() || report.is_empty(), "{report:?}\n{context}");
    counts.enforced += usize::from(strict.is_ok());
    counts.relaxed += usize::from(!report.is_empty());
    let oracle = jsonschema::draft202012::new(&root).unwrap_or_else(|e| panic!("{e}\n{context}"));
    for instance in &instances {
        let valid = oracle.is_valid(instance);
        counts.instances += 1;
        counts.valid += usize::from(valid);
        let accepted = orders(instance).iter().any(|text| {
            recognizer.as_mut().is_some_and(|recognizer| {
                recognizer.reset();
                recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete()
            })
        });
        assert!(accepted || !valid, "{context}\ninstance {instance} is rejected: {report:?}");
        let is_reported = valid || !accepted || !report.is_empty();
        assert!(is_reported, "{context}\ninstance {instance} is accepted, and nothing reported");
        counts.wrongly_accepted += usize::from(accepted && !valid);
    }
}

#[test]
fn relaxed_schemas_keep_their_instances() {
    let mut counts = Counts::default();
    compare_seeds("LOUVER_RELAXED", 700, |seed| {
        compare(seed, &mut counts);
        counts.instances
    });
    println!("{counts:?}");
    assert!(counts.relaxed * 10 > counts.enforced && counts.valid * 10 > counts.instances);
    assert!(counts.wrongly_accepted > 0, "{counts:?}");
}
