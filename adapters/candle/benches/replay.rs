//! Steps of the decode loop on recorded tool calls: a model that wants the recorded tokens, with
//! and without forced tokens and drafts. And the bytes of masks that a device would be sent, with
//! and without a store. Counts only; times do not matter.
//!
//! ```text
//! cargo bench -p louver-candle --bench replay -- FOLDER CASES.jsonl [FORMAT] [LIMIT]
//! ```
//!
//! FOLDER has `tokenizer.json` and `tokenizer_config.json`, whose chat template makes the prompts.
//! Cases are lines `{"id", "question", "tools", "calls": [{"name", "arguments"}]}`.

#[path = "../tests/decode/replay.rs"]
mod replay;
#[path = "../examples/decode/serving/mod.rs"]
#[allow(dead_code, reason = "the example uses the rest")]
mod serving;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use louver::front::json_schema::Whitespace;
use louver::spec::json::Json;
use louver::{Constraint, Engine, EngineOptions, Limits, SchemaOptions, TokenId, Vocabulary};
use louver_candle::HostCopy;
use louver_formats::{Call, Catalog, Tool, ToolRequest, Turn, WireFormat, python_json};
use louver_hf_tokenizers::{Encoder, VocabOptions};
use serde_json::Value;
use tokenizers::Tokenizer;

use crate::replay::Replay;
use crate::serving::draw::Sampling;
use crate::serving::scheduler::DecodeLoop;
use crate::serving::sequence::{Output, Request};
use crate::serving::settings::{Forced, Settings};

/// A recorded case in tokens.
struct Case {
    prompt: Vec<u32>,
    answer: Vec<u32>,
    tools: Vec<Tool>,
}

struct Bench {
    vocab: Arc<Vocabulary>,
    tokenizer: Arc<Tokenizer>,
    format: WireFormat,
    template: String,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [folder, cases, rest @ ..] = &arguments[..] else {
        println!("needs a tokenizer's folder and cases: see the head of benches/replay.rs");
        return Ok(());
    };
    let format = rest.first().map_or("qwen3", |name| name);
    let limit = rest.get(1).map_or(Ok(usize::MAX), |n| n.parse())?;
    let bench = Bench::load(Path::new(folder), format)?;
    let cases = std::fs::read_to_string(cases).context("the cases")?;
    let cases: Vec<Case> = cases
        .lines()
        .take(limit)
        .filter_map(|line| bench.case(line).transpose())
        .collect::<Result<_>>()?;
    println!(
        "{} cases, {} tokens of calls",
        cases.len(),
        cases.iter().map(|c| c.answer.len()).sum::<usize>()
    );
    println!("white space  forced draft |  steps  saved | forced drafted agreed | other texts");
    let flexible = SchemaOptions::default().whitespace;
    for (name, whitespace) in [("flexible", flexible), ("as Python", Whitespace::PythonLike)] {
        for (is_forced, draft) in [(false, 0), (true, 0), (false, DRAFT), (true, DRAFT)] {
            let forced = if is_forced { bench.forced() } else { Forced::Draw };
            let settings = Settings { max_rows: ROWS, forced, draft, ..Settings::default() };
            let run = bench.run(&cases, whitespace, settings)?;
            println!("{name:<12} {is_forced:>6} {draft:>5} | {}", bench.row(&cases, &run.outputs));
        }
    }
    println!("\nforced draft kept masks, MiB | steps of the batch | masks sent, KiB a step");
    for (is_forced, draft) in [(false, 0), (true, DRAFT)] {
        for kept in [0, 4, 16, 64] {
            let forced = if is_forced { bench.forced() } else { Forced::Draw };
            let kept_masks = kept << 20;
            let settings =
                Settings { max_rows: ROWS, forced, draft, kept_masks, ..Settings::default() };
            let Run { steps, sent, .. } = bench.run(&cases, flexible, settings)?;
            let each = sent as f64 / 1024.0 / steps as f64;
            println!("{is_forced:>6} {draft:>5} {kept:>16} | {steps:>18} | {each:.0}");
        }
    }
    Ok(())
}

/// Most rows of the batch.
const ROWS: usize = 32;
/// Most tokens of a draft.
const DRAFT: usize = 8;

/// The result of one run.
struct Run {
    outputs: Vec<Output>,
    /// Forward passes of the batch.
    steps: usize,
    /// Bytes that a device would be sent.
    sent: usize,
}

impl Bench {
    fn load(folder: &Path, format: &str) -> Result<Self> {
        let path: PathBuf = folder.join("tokenizer.json");
        let loaded = louver_hf_tokenizers::load(path, &VocabOptions::default())?;
        let config = std::fs::read_to_string(folder.join("tokenizer_config.json"))?;
        let config: Value = serde_json::from_str(&config)?;
        let template = config["chat_template"].as_str().context("no `chat_template`")?;
        let format = Catalog::shipped().get(format)?.bind(&loaded.vocab);
        Ok(Self {
            vocab: Arc::new(loaded.vocab),
            tokenizer: Arc::new(loaded.tokenizer),
            format,
            template: template.to_owned(),
        })
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(Encoder::new(&self.tokenizer, &self.vocab).encode(text)?)
    }

    /// The tokenizer, to cut forced text.
    fn forced(&self) -> Forced {
        let (tokenizer, vocab) = (self.tokenizer.clone(), self.vocab.clone());
        Forced::Tokenizer(Arc::new(move |bytes| {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let ids = Encoder::new(&tokenizer, &vocab).encode(text).unwrap_or_default();
            ids.into_iter().map(TokenId::from_raw).collect()
        }))
    }

    /// `None` for a case without a call.
    fn case(&self, line: &str) -> Result<Option<Case>> {
        let case: Value = serde_json::from_str(line)?;
        let calls = case["calls"].as_array().context("no `calls`")?;
        let call = |call: &Value| {
            Call::new(call["name"].as_str().unwrap_or_default(), python_json(&call["arguments"]))
        };
        let turn = Turn::default().with_calls(calls.iter().map(call).collect());
        if turn.calls.is_empty() {
            return Ok(None);
        }
        let tools = Json::parse(&case["tools"].to_string(), &Limits::default())?;
        Ok(Some(Case {
            prompt: self.encode(&self.prompt(&case)?)?,
            answer: self.encode(&self.format.render(&turn)?)?,
            tools: Tool::parse_list(&tools)?,
        }))
    }

    /// The prompt by the model's chat template.
    fn prompt(&self, case: &Value) -> Result<String> {
        let mut environment = minijinja::Environment::new();
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", |value: minijinja::Value| {
            let value = serde_json::to_value(&value).unwrap_or_default();
            minijinja::Value::from_safe_string(python_json(&value))
        });
        environment.add_template("chat", &self.template)?;
        Ok(environment.get_template("chat")?.render(minijinja::context! {
            messages => [serde_json::json!({"role": "user", "content": case["question"]})],
            tools => case["tools"],
            add_generation_prompt => true,
            enable_thinking => false,
        })?)
    }

    fn run(&self, cases: &[Case], whitespace: Whitespace, settings: Settings) -> Result<Run> {
        let engine = Arc::new(Engine::new(self.vocab.clone(), EngineOptions::default()));
        let stop = self.vocab.stops().first().context("no stop token")?.raw();
        let mut model = Replay::new(self.vocab.clone(), stop);
        for case in cases {
            model.record(case.prompt.clone(), &case.answer);
        }
        let mut decode = DecodeLoop::new(model, engine.clone(), settings);
        for case in cases {
            decode.submit(Request {
                prompt: case.prompt.clone(),
                constraint: Some(self.constraint(&engine, &case.tools, whitespace)?),
                max_tokens: 4 * case.answer.len(),
                sampling: Sampling::GREEDY,
            })?;
        }
        let mut run = Run { outputs: Vec::new(), steps: 0, sent: 0 };
        let mut device = HostCopy::new(ROWS * (1 + DRAFT));
        while !decode.is_idle() {
            run.outputs.extend(decode.step()?);
            run.steps += 1;
            let words: usize = device.update(decode.masks()).iter().map(|part| part.len()).sum();
            run.sent += 4 * words;
        }
        run.outputs.sort_by_key(|output| output.id);
        Ok(run)
    }

    fn constraint(
        &self,
        engine: &Engine,
        tools: &[Tool],
        whitespace: Whitespace,
    ) -> Result<Constraint> {
        let schema_options = SchemaOptions::default().with_whitespace(whitespace);
        let request =
            ToolRequest::default().with_tools(tools.to_vec()).with_schema_options(schema_options);
        let plan = self.format.lower(&request).map_err(|error| anyhow!("{error}"))?;
        Ok(engine.compile(plan.grammar().clone())?)
    }

    /// Steps against those of a model alone: one a token, and one for the stop token.
    fn row(&self, cases: &[Case], outputs: &[Output]) -> String {
        let text = |tokens: &[u32]| -> Vec<u8> {
            let model = Replay::new(self.vocab.clone(), 0);
            tokens.iter().flat_map(|&token| model.spelling(token).to_vec()).collect()
        };
        let other = |(case, output): &(&Case, &Output)| text(&case.answer) != text(&output.tokens);
        let others = cases.iter().zip(outputs).filter(other).count();
        let total = |of: fn(&Output) -> usize| outputs.iter().map(of).sum::<usize>();
        let plain: usize = cases.iter().map(|case| case.answer.len() + 1).sum();
        let steps = total(|output| output.usage.steps);
        format!(
            "{steps:>6} {:>5.1}% | {:>6} {:>7} {:>6} | {others}",
            100.0 - 100.0 * steps as f64 / plain as f64,
            total(|output| output.usage.forced),
            total(|output| output.usage.drafted),
            total(|output| output.usage.agreed),
        )
    }
}
