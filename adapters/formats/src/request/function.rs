//! Functions: tools whose arguments match a JSON Schema.

use louver::spec::json::Json;
use serde_json::json;

use super::members::{
    MemberError, MemberErrorKind, MemberReader, ToolShape, check_name, unknown_members,
};
use super::schema_shape::expected_instead;

/// A function.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FunctionTool {
    /// The name: any characters except control characters. It is never interpreted as syntax.
    pub name: String,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: Json,
    /// OpenAI's flag `strict`; see [`Strictness`](crate::Strictness).
    pub strict: bool,
    /// The form of the tool in the request, for JSON pointers.
    pub shape: ToolShape,
}

impl FunctionTool {
    /// A function that is not from a request. Fails if the name is not allowed.
    pub fn new(name: impl Into<String>, parameters: Json) -> Result<FunctionTool, MemberErrorKind> {
        let name = name.into();
        check_name(&name)?;
        let shape = ToolShape::Wrapped;
        Ok(FunctionTool { name, description: None, parameters, strict: false, shape })
    }

    /// The JSON pointer of the parameters of tool `k`, if it is this function.
    pub(crate) fn parameters_pointer(&self, k: usize) -> String {
        self.shape.pointer(k, "function") + "/parameters"
    }

    /// Parses entry `k` of a request's tools, wrapped or bare.
    ///
    /// A function without `parameters` takes none (an empty object). Members other than `name`,
    /// `description`, `parameters`, `strict` and `type` are errors, unless they are `null` or do
    /// not affect the output of the model.
    pub(super) fn parse(k: usize, entry: &Json) -> Result<FunctionTool, Vec<MemberError>> {
        let pointer = format!("/tools/{k}");
        let fail =
            |below: &str, kind| Err(vec![MemberError::new(format!("{pointer}{below}"), kind)]);
        let Json::Object(members) = entry else {
            return fail("", MemberErrorKind::Expected("an object"));
        };
        match members.get("type") {
            None => {}
            Some(Json::String(kind)) if kind == "function" => {}
            Some(Json::String(kind)) => {
                return fail("/type", MemberErrorKind::UnsupportedType(kind.clone()));
            }
            Some(_) => return fail("/type", MemberErrorKind::Expected("a string")),
        }
        let (shape, function) = match members.get("function") {
            Some(Json::Object(function)) => (ToolShape::Wrapped, function),
            Some(_) => return fail("/function", MemberErrorKind::Expected("an object")),
            None => (ToolShape::Bare, members),
        };
        let mut errors = Vec::new();
        if shape == ToolShape::Wrapped {
            unknown_members(&pointer, members, &["type", "function"], &mut errors);
        }
        let pointer = shape.pointer(k, "function");
        let mut reader = MemberReader { pointer, members: function, errors };
        let type_member: &[&str] = if shape == ToolShape::Bare { &["type"] } else { &[] };
        let known = ["name", "description", "parameters", "strict"];
        reader.check_unknown(&[type_member, &known].concat());
        let tool = FunctionTool {
            name: reader.name(),
            description: reader.description(),
            parameters: schema(&mut reader).unwrap_or_else(no_parameters),
            strict: strict(&mut reader),
            shape,
        };
        if reader.errors.is_empty() { Ok(tool) } else { Err(reader.errors) }
    }
}

/// The schema in the member `parameters` of a tool, if there is one.
pub(super) fn schema(reader: &mut MemberReader<'_>) -> Option<Json> {
    let schema = reader.members.get_non_null("parameters")?;
    let in_properties = "a JSON Schema: the arguments belong in its `properties`";
    let expected = match schema {
        Json::String(_) => "a JSON Schema, as an object and not as text",
        schema => match expected_instead(schema, in_properties) {
            Some(expected) => expected,
            None => return Some(schema.clone()),
        },
    };
    reader.fail("/parameters", MemberErrorKind::Expected(expected));
    None
}

/// The member `strict` of a tool.
pub(super) fn strict(reader: &mut MemberReader<'_>) -> bool {
    match reader.members.get_non_null("strict") {
        None => false,
        Some(Json::Bool(strict)) => *strict,
        Some(_) => {
            reader.fail("/strict", MemberErrorKind::Expected("a boolean"));
            false
        }
    }
}

/// The schema of a function without parameters.
fn no_parameters() -> Json {
    Json::from(json!({"type": "object", "properties": {}, "additionalProperties": false}))
}
