//! How much work validating is, found before it is done. Validators recurse: a schema that refers to itself in place would
//! never end, and one that says everything twice at each level takes time exponential in the depth. So the walk that a
//! validator would do is done here first, with a bound on its steps and on its depth.

use serde_json::{Map, Value};

/// Most steps of a walk over a text.
const TEXT_STEPS: u64 = 1_000_000;
/// Most steps of a walk over a schema: making validators costs more than using them.
const SCHEMA_STEPS: u64 = 100_000;
/// Deepest nesting of subschemas, references followed.
const MOST_DEPTH: usize = 192;
/// What a regular expression counts beside the text it reads.
const PATTERN: u64 = 200;

/// Why nothing is validated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMuch {
    /// Too many steps.
    #[error("validating would take too long")]
    Steps,
    /// Too deep, or endless.
    #[error("the schema is nested too deeply, or refers to itself in place")]
    Depth,
    /// A reference that is not followed here.
    #[error("{0} is not followed when texts are validated")]
    Reference(String),
}

/// Whether a validator of the schema can be made: the schema with its references written out is not too large.
pub(super) fn schema(root: &Value) -> Result<(), TooMuch> {
    Meter { root, left: SCHEMA_STEPS, open: Vec::new() }.walk(root, None, 0)
}

/// Whether a text's value can be validated.
pub(super) fn text(root: &Value, value: &Value) -> Result<(), TooMuch> {
    Meter { root, left: TEXT_STEPS, open: Vec::new() }.walk(root, Some(value), 0)
}

struct Meter<'s> {
    root: &'s Value,
    /// Steps that are left.
    left: u64,
    /// References that are being followed, where the schema alone is looked at.
    open: Vec<&'s str>,
}

impl<'s> Meter<'s> {
    fn spend(&mut self, steps: usize) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(steps as u64).ok_or(TooMuch::Steps)?;
        Ok(())
    }

    /// Looks at what a validator would look at. Without a value, at every subschema once, and at references that lead back to
    /// where they are not at all.
    fn walk(
        &mut self,
        schema: &'s Value,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), TooMuch> {
        self.spend(1)?;
        if depth > MOST_DEPTH {
            return Err(TooMuch::Depth);
        }
        let Value::Object(members) = schema else { return Ok(()) };
        if depth > 0
            && let Some(name) = ["$id", "id"]
                .into_iter()
                .find(|name| members.get(*name).is_some_and(Value::is_string))
        {
            return Err(TooMuch::Reference(format!("a nested {name:?}")));
        }
        self.scalars(members, value)?;
        // What is not evaluated is found by evaluating the rest again.
        let unevaluated = ["unevaluatedProperties", "unevaluatedItems"]
            .iter()
            .any(|name| members.contains_key(*name));
        let again = if unevaluated { 1 + value.map_or(1, children) } else { 0 };
        for _ in 0..=again {
            self.in_place(members, value, depth)?;
        }
        self.below(members, value, depth)
    }

    fn scalars(
        &mut self,
        members: &'s Map<String, Value>,
        value: Option<&Value>,
    ) -> Result<(), TooMuch> {
        let list = |name: &str| members.get(name).and_then(Value::as_array).map_or(0, Vec::len);
        self.spend(members.len() + list("enum") + list("required"))?;
        if members.contains_key("pattern") || members.contains_key("format") {
            self.spend(PATTERN as usize + value.and_then(Value::as_str).map_or(0, str::len))?;
        }
        if let (Some(Value::Bool(true)), Some(Value::Array(items))) =
            (members.get("uniqueItems"), value)
        {
            self.spend(items.len().saturating_mul(items.len()))?;
        }
        Ok(())
    }

    /// Subschemas of the same value.
    fn in_place(
        &mut self,
        members: &'s Map<String, Value>,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), TooMuch> {
        for (name, inner) in members {
            match (name.as_str(), inner) {
                ("$ref", Value::String(reference)) => self.follow(reference, value, depth)?,
                ("$dynamicRef" | "$recursiveRef", _) => {
                    return Err(TooMuch::Reference(name.clone()));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    all.iter().try_for_each(|inner| self.walk(inner, value, depth + 1))?;
                }
                ("not" | "if" | "then" | "else", _) => self.walk(inner, value, depth + 1)?,
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    all.values().try_for_each(|inner| self.walk(inner, value, depth + 1))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn follow(
        &mut self,
        reference: &'s str,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), TooMuch> {
        if value.is_none() && self.open.contains(&reference) {
            return Ok(());
        }
        let target = reference.strip_prefix('#').and_then(|fragment| self.root.pointer(fragment));
        let target =
            target.ok_or_else(|| TooMuch::Reference(format!("the reference {reference:?}")))?;
        self.open.push(reference);
        self.walk(target, value, depth + 1)?;
        self.open.pop();
        Ok(())
    }

    /// Subschemas of what is in the value.
    fn below(
        &mut self,
        members: &'s Map<String, Value>,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), TooMuch> {
        for (name, inner) in members {
            match (name.as_str(), inner) {
                ("properties", Value::Object(all)) => {
                    for (key, inner) in all {
                        let found = value.map(|value| value.get(key));
                        if found != Some(None) {
                            self.walk(inner, found.flatten(), depth + 1)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(all)) => {
                    for inner in all.values() {
                        self.spend(PATTERN as usize * value.map_or(1, children))?;
                        self.each(inner, value, depth)?;
                    }
                }
                ("$defs" | "definitions", Value::Object(all)) if value.is_none() => {
                    all.values().try_for_each(|inner| self.walk(inner, None, depth + 1))?;
                }
                ("prefixItems" | "items", Value::Array(all)) => {
                    for (at, inner) in all.iter().enumerate() {
                        let found = value.map(|value| value.get(at));
                        if found != Some(None) {
                            self.walk(inner, found.flatten(), depth + 1)?;
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
                ) => self.each(inner, value, depth)?,
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

    /// A subschema of each member or element.
    fn each(
        &mut self,
        inner: &'s Value,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), TooMuch> {
        match value {
            None => self.walk(inner, None, depth + 1),
            Some(Value::Object(all)) => {
                all.values().try_for_each(|value| self.walk(inner, Some(value), depth + 1))
            }
            Some(Value::Array(all)) => {
                all.iter().try_for_each(|value| self.walk(inner, Some(value), depth + 1))
            }
            Some(_) => Ok(()),
        }
    }
}

fn children(value: &Value) -> usize {
    match value {
        Value::Object(all) => all.len(),
        Value::Array(all) => all.len(),
        _ => 0,
    }
}
