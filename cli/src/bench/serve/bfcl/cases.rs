//! Cases of function calling: a question, tools, and the expected calls.

use std::path::Path;

use anyhow::{Context, Result};
use louver::internals::SplitMix64;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::jsonl;

/// One case.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Case {
    pub(super) id: String,
    /// The id without its number.
    #[serde(skip)]
    pub(super) category: String,
    pub(super) question: String,
    /// The tools in OpenAI's format.
    pub(super) tools: Value,
    /// The expected calls.
    pub(super) calls: Vec<ExpectedCall>,
}

/// An expected call.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ExpectedCall {
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// Cases that need no file.
const BUILTIN: &str = include_str!("builtin.jsonl");

/// Reads the cases of a file, or else the built-in ones. Draws `sample` of each of the categories,
/// in the file's order; without a list, of every category.
pub(super) fn read(
    path: Option<&Path>,
    categories: &[String],
    sample: usize,
    seed: u64,
) -> Result<Vec<Case>> {
    let lines = match path {
        Some(path) => jsonl::read(path)?,
        None => BUILTIN.lines().map(str::to_owned).enumerate().collect(),
    };
    let mut cases: Vec<Case> = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let context = || match path {
            Some(path) => format!("{}: line {number}", path.display()),
            None => format!("built-in case {number}"),
        };
        let mut case: Case = serde_json::from_str(&line).with_context(context)?;
        case.category = category(&case.id).to_owned();
        case.tools.as_array_mut().into_iter().flatten().for_each(wrap);
        cases.push(case);
    }
    let mut names: Vec<&str> = categories.iter().map(String::as_str).collect();
    if names.is_empty() {
        for case in &cases {
            if !names.contains(&case.category.as_str()) {
                names.push(&case.category);
            }
        }
    }
    let mut out = Vec::new();
    for name in names {
        let own: Vec<&Case> = cases.iter().filter(|case| case.category == *name).collect();
        out.extend(draw(own.len(), sample, seed).into_iter().map(|index| own[index].clone()));
    }
    Ok(out)
}

/// The id without its number: `simple_python` of `simple_python_3`.
fn category(id: &str) -> &str {
    id.rsplit_once('_').map_or(id, |(category, _)| category)
}

/// Brings a tool into OpenAI's nested format.
fn wrap(tool: &mut Value) {
    if tool.get("function").is_none() {
        *tool = json!({"type": "function", "function": tool.take()});
    }
}

/// Draws `sample` of `n` indexes, in order.
fn draw(n: usize, sample: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64::new(seed);
    let mut indexes: Vec<usize> = (0..n).collect();
    let sample = sample.min(n);
    for at in 0..sample {
        indexes.swap(at, at + random.below(n - at));
    }
    indexes.truncate(sample);
    indexes.sort_unstable();
    indexes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_cases_have_calls_of_their_tools() {
        let cases = read(None, &[], 40, 1).unwrap();
        let categories: Vec<&str> = cases.iter().map(|case| &*case.category).collect();
        assert_eq!(categories, ["one", "one", "choice", "several"]);
        for case in &cases {
            let validators = crate::tool_turn::ToolValidators::new(&case.tools).unwrap();
            for call in &case.calls {
                let call = louver_mistralrs::Call::new(&call.name, call.arguments.to_string());
                assert_eq!(validators.fault(&call), None, "{}", case.id);
            }
        }
        assert_eq!(read(None, &["choice".to_owned()], 40, 1).unwrap().len(), 1);
    }

    #[test]
    fn samples_are_drawn_by_the_seed() {
        assert_eq!(draw(3, 5, 1), [0, 1, 2]);
        let (first, other) = (draw(200, 40, 1), draw(200, 40, 2));
        assert_eq!(first.len(), 40);
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]) && first != other);
        assert_eq!(first, draw(200, 40, 1));
        assert_eq!(category("parallel_multiple_17"), "parallel_multiple");
    }
}
