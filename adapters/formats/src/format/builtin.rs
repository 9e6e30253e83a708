//! Calls of built-in tools: tools that the model was trained with, such as a browser or an
//! interpreter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ArgumentStyle, Marker, Part, WireFormat};

/// Calls of built-in tools: `begin header ARGUMENTS trailer end`. A tool without a schema is called
/// with code in place of the arguments and the trailer, and with `bare_code` of the header, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BuiltinFormat {
    /// Opens a call, where turns are not sequences of messages. In free text it starts the call.
    /// The turn ends with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Marker>,
    /// From `begin` to the arguments. Names the tool.
    pub header: Vec<Part>,
    /// Other headers that are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Part>>,
    /// How arguments are written.
    #[serde(default = "json")]
    pub arguments: ArgumentStyle,
    /// From the arguments to `end`. Missing after code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailer: Vec<Part>,
    /// Closes the call. By default, as other calls are closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// Code has no header, so that a call does not name the tool that runs it.
    #[serde(default)]
    pub bare_code: bool,
    /// The JSON Schemas of tools that the family's models know, by name. Any other tool without a
    /// schema in the request is called with code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, Value>,
}

fn json() -> ArgumentStyle {
    ArgumentStyle::Json
}

impl WireFormat {
    /// The marker that opens a call of a built-in tool, where turns are not sequences of messages.
    pub(crate) fn builtin_begin(&self) -> Option<&Marker> {
        self.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref())
    }
}
