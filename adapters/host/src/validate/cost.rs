//! Cost bounds of validation, computed before validating. Validators recurse: a schema that refers
//! to itself in place never ends, and one that repeats subschemas at each level takes time
//! exponential in the depth. So this module first simulates the validator's walk, with limits on
//! its steps and depth.

use serde_json::{Map, Value};

/// Maximum steps of a walk over a value.
const MAX_VALUE_STEPS: u64 = 1_000_000;
/// Maximum steps of a walk over a schema. Building validators costs more than using them.
const MAX_SCHEMA_STEPS: u64 = 100_000;
/// Maximum nesting of subschemas, including references.
const MAX_DEPTH: usize = 192;
/// Steps of a regular expression, in addition to the length of its text.
const PATTERN_STEPS: u64 = 200;

/// Why a value is not validated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CostError {
    /// Too many steps.
    #[error("validating would take too long")]
    Steps,
    /// Too deep or infinite.
    #[error("the schema is nested too deeply, or refers to itself in place")]
    Depth,
    /// An unsupported reference.
    #[error("{0} is not supported by validation")]
    Reference(String),
}

/// Checks that a validator of the schema can be built: the schema with expanded references is small
/// enough.
pub(super) fn check_schema(root: &Value) -> Result<(), CostError> {
    CostMeter { root, remaining: MAX_SCHEMA_STEPS, followed: Vec::new() }.walk(root, None, 0)
}

/// Checks that a value can be validated.
pub(super) fn check_value(root: &Value, value: &Value) -> Result<(), CostError> {
    CostMeter { root, remaining: MAX_VALUE_STEPS, followed: Vec::new() }.walk(root, Some(value), 0)
}

struct CostMeter<'s> {
    root: &'s Value,
    /// Remaining steps.
    remaining: u64,
    /// References being followed, in a walk over the schema alone.
    followed: Vec<&'s str>,
}

impl<'s> CostMeter<'s> {
    fn spend(&mut self, steps: usize) -> Result<(), CostError> {
        self.remaining = self.remaining.checked_sub(steps as u64).ok_or(CostError::Steps)?;
        Ok(())
    }

    /// Visits what a validator would visit. Without a value, visits every subschema once and does
    /// not follow circular references.
    fn walk(
        &mut self,
        schema: &'s Value,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), CostError> {
        self.spend(1)?;
        if depth > MAX_DEPTH {
            return Err(CostError::Depth);
        }
        let Value::Object(members) = schema else { return Ok(()) };
        if depth > 0
            && let Some(name) = ["$id", "id"]
                .into_iter()
                .find(|name| members.get(*name).is_some_and(Value::is_string))
        {
            return Err(CostError::Reference(format!("a nested {name:?}")));
        }
        self.scalar_keywords(members, value)?;
        // Validators find unevaluated members by evaluating the other keywords again.
        let unevaluated = ["unevaluatedProperties", "unevaluatedItems"]
            .iter()
            .any(|name| members.contains_key(*name));
        let repetitions = if unevaluated { 1 + value.map_or(1, child_count) } else { 0 };
        for _ in 0..=repetitions {
            self.in_place(members, value, depth)?;
        }
        self.child_keywords(members, value, depth)
    }

    fn scalar_keywords(
        &mut self,
        members: &'s Map<String, Value>,
        value: Option<&Value>,
    ) -> Result<(), CostError> {
        let list = |name: &str| members.get(name).and_then(Value::as_array).map_or(0, Vec::len);
        self.spend(members.len() + list("enum") + list("required"))?;
        if members.contains_key("pattern") || members.contains_key("format") {
            self.spend(PATTERN_STEPS as usize + value.and_then(Value::as_str).map_or(0, str::len))?;
        }
        if let (Some(Value::Bool(true)), Some(Value::Array(items))) =
            (members.get("uniqueItems"), value)
        {
            self.spend(items.len().saturating_mul(items.len()))?;
        }
        Ok(())
    }

    /// Visits subschemas that apply to the same value.
    fn in_place(
        &mut self,
        members: &'s Map<String, Value>,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), CostError> {
        for (name, inner) in members {
            match (name.as_str(), inner) {
                ("$ref", Value::String(reference)) => {
                    self.follow_reference(reference, value, depth)?
                }
                ("$dynamicRef" | "$recursiveRef", _) => {
                    return Err(CostError::Reference(name.clone()));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(subschemas)) => {
                    subschemas.iter().try_for_each(|inner| self.walk(inner, value, depth + 1))?;
                }
                ("not" | "if" | "then" | "else", _) => self.walk(inner, value, depth + 1)?,
                ("dependentSchemas" | "dependencies", Value::Object(subschemas)) => {
                    subschemas.values().try_for_each(|inner| self.walk(inner, value, depth + 1))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn follow_reference(
        &mut self,
        reference: &'s str,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), CostError> {
        if value.is_none() && self.followed.contains(&reference) {
            return Ok(());
        }
        let target = reference.strip_prefix('#').and_then(|fragment| self.root.pointer(fragment));
        let target =
            target.ok_or_else(|| CostError::Reference(format!("the reference {reference:?}")))?;
        self.followed.push(reference);
        self.walk(target, value, depth + 1)?;
        self.followed.pop();
        Ok(())
    }

    /// Visits subschemas that apply to members or elements.
    fn child_keywords(
        &mut self,
        members: &'s Map<String, Value>,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), CostError> {
        for (name, inner) in members {
            match (name.as_str(), inner) {
                ("properties", Value::Object(subschemas)) => {
                    for (key, inner) in subschemas {
                        let member = value.map(|value| value.get(key));
                        if member != Some(None) {
                            self.walk(inner, member.flatten(), depth + 1)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(subschemas)) => {
                    for inner in subschemas.values() {
                        self.spend(PATTERN_STEPS as usize * value.map_or(1, child_count))?;
                        self.for_each_child(inner, value, depth)?;
                    }
                }
                ("$defs" | "definitions", Value::Object(subschemas)) if value.is_none() => {
                    subschemas.values().try_for_each(|inner| self.walk(inner, None, depth + 1))?;
                }
                ("prefixItems" | "items", Value::Array(subschemas)) => {
                    for (index, inner) in subschemas.iter().enumerate() {
                        let member = value.map(|value| value.get(index));
                        if member != Some(None) {
                            self.walk(inner, member.flatten(), depth + 1)?;
                        }
                    }
                }
                (
                    "additionalProperties"
                    | "unevaluatedProperties"
                    | "items"
                    | "additionalItems"
                    | "contains"
                    | "unevaluatedItems",
                    _,
                ) => self.for_each_child(inner, value, depth)?,
                ("propertyNames", _) => match value {
                    None => self.walk(inner, None, depth + 1)?,
                    Some(Value::Object(names)) => {
                        for name in names.keys() {
                            self.walk(inner, Some(&Value::String(name.clone())), depth + 1)?;
                        }
                    }
                    Some(_) => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Visits a subschema for each member or element.
    fn for_each_child(
        &mut self,
        inner: &'s Value,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), CostError> {
        match value {
            None => self.walk(inner, None, depth + 1),
            Some(Value::Object(members)) => {
                members.values().try_for_each(|value| self.walk(inner, Some(value), depth + 1))
            }
            Some(Value::Array(items)) => {
                items.iter().try_for_each(|value| self.walk(inner, Some(value), depth + 1))
            }
            Some(_) => Ok(()),
        }
    }
}

fn child_count(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}
