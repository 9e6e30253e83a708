//! Benchmark cases: constraints, with texts that should or should not be accepted.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use louver::limits::Limits;
use louver::spec::json::Json;
use louver_hf_tokenizers::Encoder;
use serde_json::Value;

use crate::options::Common;
use crate::python;
use crate::tool_format::ToolFormat;

/// A constraint for an engine.
pub(crate) enum Task {
    Schema(Schema),
    Tools(Tools),
    Ambiguous(Ambiguous),
}

/// A JSON Schema in the input formats of all engines.
pub(crate) struct Schema {
    pub(crate) text: String,
    pub(crate) json: Json,
    pub(crate) value: Value,
}

/// Tools in free text.
pub(crate) struct Tools {
    pub(crate) format: ToolFormat,
    /// The request's `tools`.
    pub(crate) list: Json,
    pub(crate) each: Vec<Tool>,
}

/// One tool.
#[derive(Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) parameters: Value,
}

/// Grammars with exponentially many derivations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ambiguous {
    /// `S -> S S | "a"`
    Concatenation,
    /// `("a"?){0,200} "a"{0,200}`
    Optionals,
}

/// A token sequence, and whether it should be accepted.
pub(crate) type Instance = (Vec<u32>, bool);

/// One case.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) task: Task,
    pub(crate) instances: Vec<Instance>,
}

impl Schema {
    pub(crate) fn new(json: Json) -> Result<Schema> {
        let text = json.to_string();
        let value =
            serde_json::from_str(&text).context("the schema is beyond what serde_json reads")?;
        Ok(Schema { text, json, value })
    }
}

impl Tools {
    /// From a request's `tools`.
    pub(crate) fn new(list: Json, format: ToolFormat) -> Result<Tools> {
        let value: Value = serde_json::from_str(&list.to_string())?;
        let tool = |tool: &Value| -> Result<Tool> {
            let name =
                tool["function"]["name"].as_str().context("a tool without a name")?.to_owned();
            Ok(Tool { name, parameters: tool["function"]["parameters"].clone() })
        };
        let each = value
            .as_array()
            .context("`tools` is no list")?
            .iter()
            .map(tool)
            .collect::<Result<_>>()?;
        Ok(Tools { format, list, each })
    }

    /// From single tools.
    pub(crate) fn of(each: Vec<Tool>, format: ToolFormat) -> Tools {
        let wrap = |tool: &Tool| {
            let function = serde_json::json!({"name": tool.name, "parameters": tool.parameters});
            serde_json::json!({"type": "function", "function": function})
        };
        let list = Json::from(Value::Array(each.iter().map(wrap).collect()));
        Tools { format, list, each }
    }
}

/// The lines of a cases file after `--limit` and `--every`, one at a time; `None`, with a message,
/// if the file is missing.
pub(crate) fn lines(
    common: &Common,
    file: &str,
) -> Result<Option<impl Iterator<Item = Result<String>>>> {
    let path = common.cases.clone().unwrap_or_else(|| common.data(file));
    if !path.is_file() {
        eprintln!("skipped: {} is not there (see --data and --cases)", path.display());
        return Ok(None);
    }
    let lines = open(&path)?.step_by(common.every.get()).take(common.limit.unwrap_or(usize::MAX));
    Ok(Some(lines))
}

fn open(path: &Path) -> Result<impl Iterator<Item = Result<String>> + use<>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::new(file).lines().map(|line| line.context("cannot read a line")))
}

/// A line of MaskBench: `{"id", "schema", "tests": [{"valid", "data"}]}`.
pub(crate) fn schema_case(line: &str, encoder: &Encoder<'_>) -> Result<Case> {
    let line = read(line)?;
    let mut instances = Vec::new();
    for test in line.get("tests").and_then(Json::as_array).unwrap_or_default() {
        let data = test.get("data").context("a test without `data`")?;
        instances.push((
            encoder.encode(&python::dumps(data))?,
            matches!(test.get("valid"), Some(Json::Bool(true))),
        ));
    }
    let schema = line.get("schema").context("`schema` is missing")?.clone();
    Ok(Case { id: string(&line, "id")?, task: Task::Schema(Schema::new(schema)?), instances })
}

/// A line of tool calls: `{"id", "question", "tools", "calls": [{"name", "arguments"}]}`.
pub(crate) fn tools_case(line: &str, encoder: &Encoder<'_>, format: ToolFormat) -> Result<Case> {
    let (line, calls) = tool_calls(line)?;
    let question = string(&line, "question").unwrap_or_default();
    let text = format.turn(&format!("I will look into this: {question}\n"), &calls)?;
    let list = line.get("tools").context("`tools` is missing")?.clone();
    Ok(Case {
        id: string(&line, "id")?,
        task: Task::Tools(Tools::new(list, format)?),
        instances: vec![(encoder.encode(&text)?, true)],
    })
}

/// Parses a line of tool calls, with its calls: the name and the arguments.
pub(crate) fn tool_calls(line: &str) -> Result<(Json, Vec<(String, String)>)> {
    let line = read(line)?;
    let mut calls = Vec::new();
    for call in line.get("calls").and_then(Json::as_array).context("`calls` is missing")? {
        let arguments = call.get("arguments").context("a call without `arguments`")?;
        calls.push((string(call, "name")?, python::dumps(arguments)));
    }
    Ok((line, calls))
}

/// Parses a line with exact numbers. A case contains its schema, so it may be nested more deeply
/// than a schema.
fn read(line: &str) -> Result<Json> {
    let limits = Limits::default();
    let depth = limits.depth + 8;
    Ok(Json::parse(line, &limits.with_depth(depth))?)
}

fn string(object: &Json, name: &str) -> Result<String> {
    match object.get(name).and_then(Json::as_str) {
        Some(text) => Ok(text.to_owned()),
        None => bail!("`{name}` is missing"),
    }
}
