//! The types that a schema declares: what a reader of arguments needs where the schema is not
//! enforced. Between tags, `5` is a number or a string by the type of the argument alone.

use louver::front::json_schema::JsonTypes;
use louver::spec::json::{Json, Object};

/// The deepest nesting of schemas, and of references, that is looked at.
const MAX_DEPTH: usize = 8;
/// The largest number of schemas that are looked at.
const MAX_SCHEMAS: usize = 1_000;

/// The schema of objects whose declared members have the declared types. Other members are allowed,
/// and none is required. `is_deep`: the same at any depth, up to a bound. Members whose names the
/// style cannot write are left out. Cost: linear in the schema, up to a bound.
pub(crate) fn declared_types(
    schema: &Json,
    is_deep: bool,
    can_write: &dyn Fn(&str) -> bool,
) -> Json {
    let mut reader = DeclaredTypes { root: schema, can_write, remaining: MAX_SCHEMAS };
    let depth = if is_deep { MAX_DEPTH } else { 1 };
    let mut out = vec![("type".to_owned(), Json::String("object".to_owned()))];
    out.extend(reader.members(reader.resolved(schema), depth));
    object(out)
}

fn object(members: Vec<(String, Json)>) -> Json {
    Json::Object(Object::new(members).unwrap_or_default())
}

struct DeclaredTypes<'s> {
    root: &'s Json,
    /// Whether a member can have this name.
    can_write: &'s dyn Fn(&str) -> bool,
    /// The number of schemas that may still be looked at.
    remaining: usize,
}

impl<'s> DeclaredTypes<'s> {
    /// The schema of the types of a value and, to this depth, of the values in it.
    fn value(&mut self, schema: &'s Json, depth: usize) -> Json {
        let types = self.types(schema, MAX_DEPTH);
        let mut names: Vec<Json> = Vec::new();
        for (name, named) in JsonTypes::NAMES {
            let is_covered = named == JsonTypes::INTEGER && types.meets(JsonTypes::FRACTION);
            if types.intersect(named) == named && !is_covered {
                names.push(Json::String(name.to_owned()));
            }
        }
        let mut out = match names.len() {
            _ if types == JsonTypes::ALL => Vec::new(),
            1 => vec![("type".to_owned(), names.remove(0))],
            _ => vec![("type".to_owned(), Json::Array(names))],
        };
        let target = self.resolved(schema);
        if depth > 0 && types == JsonTypes::OBJECT {
            out.extend(self.members(target, depth));
        }
        if depth > 0
            && types == JsonTypes::ARRAY
            && let Some(items @ Json::Object(_)) = target.get("items")
        {
            out.push(("items".to_owned(), self.value(items, depth - 1)));
        }
        object(out)
    }

    /// The keywords of the types of an object's members.
    fn members(&mut self, schema: &'s Json, depth: usize) -> Vec<(String, Json)> {
        let can_write = self.can_write;
        let declared = schema.get("properties").and_then(Json::as_object);
        let declared = declared.into_iter().flat_map(Object::iter);
        let properties: Vec<(String, Json)> = declared
            .filter(|(name, _)| can_write(name))
            .map(|(name, schema)| (name.to_owned(), self.value(schema, depth - 1)))
            .collect();
        let others = match schema.get("additionalProperties") {
            Some(others @ Json::Object(_)) => self.value(others, depth - 1),
            _ => Json::Bool(true),
        };
        let properties = ("properties".to_owned(), object(properties));
        vec![properties, ("additionalProperties".to_owned(), others)]
    }

    /// The types that a schema allows, as far as type, listed values, references within the schema
    /// and its branches say. All types, if they contradict each other.
    fn types(&mut self, schema: &'s Json, depth: usize) -> JsonTypes {
        let Json::Object(members) = schema else { return JsonTypes::ALL };
        if depth == 0 || self.remaining == 0 {
            return JsonTypes::ALL;
        }
        self.remaining -= 1;
        let none = JsonTypes::default();
        let types = members.iter().fold(JsonTypes::ALL, |types, (keyword, value)| {
            let list = value.as_array().unwrap_or_default();
            let allowed = match keyword {
                "type" if list.is_empty() => named(value),
                "type" => list.iter().fold(none, |types, name| types.union(named(name))),
                "const" => JsonTypes::of_listed([value]),
                "enum" => JsonTypes::of_listed(list),
                "$ref" => self.target(schema).map_or(types, |schema| self.types(schema, depth - 1)),
                "anyOf" | "oneOf" => list
                    .iter()
                    .fold(none, |types, branch| types.union(self.types(branch, depth - 1))),
                "allOf" => list
                    .iter()
                    .fold(types, |types, part| types.intersect(self.types(part, depth - 1))),
                _ => types,
            };
            types.intersect(allowed)
        });
        if types.is_empty() { JsonTypes::ALL } else { types }
    }

    /// The schema that a reference leads to within the root schema.
    fn target(&self, schema: &Json) -> Option<&'s Json> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// The schema, or that to which its references lead.
    fn resolved(&self, schema: &'s Json) -> &'s Json {
        let next = |schema: &&'s Json| self.target(schema);
        std::iter::successors(Some(schema), next).take(MAX_DEPTH).last().unwrap_or(schema)
    }
}

/// The types of a name; all types, if it is none.
fn named(name: &Json) -> JsonTypes {
    name.as_str().and_then(JsonTypes::named).unwrap_or(JsonTypes::ALL)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn declared(schema: Value, is_deep: bool) -> Json {
        declared_types(&Json::from(schema), is_deep, &|name| name != "<")
    }

    #[test]
    fn members_have_their_types_alone() {
        let nested = json!({"type": "object", "properties": {"x": {"type": "string"}}});
        let schema = json!({
            "properties": {
                "a": {"type": "string", "maxLength": 3}, "b": {"type": ["integer", "null"]},
                "c": {"enum": ["x", "y"]}, "d": {"$ref": "#/$defs/d"}, "e": true,
                "f": {"anyOf": [{"type": "integer"}, {"type": "number"}, {"const": null}]},
                "g": {"allOf": [{"type": ["string", "array"]}, {"type": "string"}]},
                "h": {"type": "text"}, "i": {"type": "null", "const": 5},
                "j": {"$ref": "#/properties/j"}, "k": nested, "<": {"type": "string"},
                "l": {"type": "array", "items": {"$ref": "#/$defs/d"}}, "m": {"oneOf": [{}, nested]}
            },
            "required": ["a"], "additionalProperties": false,
            "$defs": {"d": {"$ref": "#/$defs/~0"}, "~": {"type": "boolean"}}
        });
        let want = |k: Value, l: Value| {
            let of = |types: Value| json!({"type": types});
            Json::from(json!({"type": "object", "additionalProperties": true, "properties": {
                "a": of(json!("string")), "b": of(json!(["null", "integer"])),
                "c": of(json!("string")), "d": of(json!("boolean")), "e": {},
                "f": of(json!(["null", "number"])), "g": of(json!("string")), "h": {}, "i": {},
                "j": {}, "k": k, "l": l, "m": {}
            }}))
        };
        let (object, array) = (json!({"type": "object"}), json!({"type": "array"}));
        assert!(same(&declared(schema.clone(), false), &want(object, array)));
        let k = json!({"type": "object", "properties": {"x": {"type": "string"}},
            "additionalProperties": true});
        let l = json!({"type": "array", "items": {"type": "boolean"}});
        assert!(same(&declared(schema, true), &want(k, l)));
    }

    /// Whether the schemas are equal, in whatever order their members are.
    fn same(one: &Json, other: &Json) -> bool {
        let value = |json: &Json| serde_json::from_str::<Value>(&json.to_string()).expect("JSON");
        let (one, other) = (value(one), value(other));
        if one != other {
            println!("{one}\n{other}");
        }
        one == other
    }

    #[test]
    fn recursive_schemas_end() {
        let node = json!({"$ref": "#"});
        let names = (0..50).map(|n| (n.to_string(), node.clone()));
        let schema = json!({"type": "object", "properties": Value::from_iter(names),
            "additionalProperties": {"anyOf": [node, node]}});
        assert!(declared(schema, true).bytes() < 1 << 20);
    }
}
