//! Cases of function calling: a question, tools, and the expected calls.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bench::random::SplitMix64;
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

/// Reads the cases of some categories and draws `sample` of each, in the file's order.
pub(super) fn read(
    path: &Path,
    categories: &[String],
    sample: usize,
    seed: u64,
) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (number, line) in jsonl::read(path)? {
        let context = || format!("{}, line {number}", path.display());
        let mut case: Case = serde_json::from_str(&line).with_context(context)?;
        case.category = category(&case.id).to_owned();
        case.tools.as_array_mut().into_iter().flatten().for_each(wrap);
        cases.push(case);
    }
    let mut out = Vec::new();
    for name in categories {
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
    fn samples_are_drawn_by_the_seed() {
        assert_eq!(draw(3, 5, 1), [0, 1, 2]);
        let (first, other) = (draw(200, 40, 1), draw(200, 40, 2));
        assert_eq!(first.len(), 40);
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]) && first != other);
        assert_eq!(first, draw(200, 40, 1));
        assert_eq!(category("parallel_multiple_17"), "parallel_multiple");
    }
}
