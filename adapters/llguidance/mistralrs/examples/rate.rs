//! Tokens per second of mistral.rs with and without its own constraints.
//!
//! Built with the patch, constraints run on Louver; in a copy without it, on the original
//! (`just door-rate`). The model is tiny, so that the time of a step is mostly what the host and
//! the constraint need. It has the vocabulary of a given tokenizer.
//!
//! Usage: `rate TOKENIZER.json [ROUNDS]`

use std::path::Path;
use std::time::Instant;

use mistralrs::{
    Constraint, Model, ModelDType, RequestBuilder, SamplingParams, TextMessageRole,
    TextModelBuilder,
};
use serde_json::json;

/// Tokens of one generation.
const TOKENS: usize = 120;
/// Numbers of generations at the same time.
const CONCURRENCY: [usize; 2] = [1, 8];

/// The kinds of constraints. No text of any is complete before [`TOKENS`] tokens.
fn constraints() -> Vec<(&'static str, Constraint)> {
    let person = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 40},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "mail": {"type": "string"},
            "likes": {"type": "array", "items": {"enum": ["tea", "coffee", "milk"]}, "maxItems": 3}
        },
        "required": ["name", "age", "mail", "likes"],
        "additionalProperties": false
    });
    let people = json!({"type": "array", "items": person, "minItems": 200});
    let sums = "start: line{200,}\nline: NUM (\" + \" NUM){1,3} \" = \" NUM \"\\n\"\n\
                NUM: /[0-9]{1,4}/\n";
    vec![
        ("none", Constraint::None),
        ("json schema", Constraint::JsonSchema(people)),
        ("regex", Constraint::Regex("([a-z]{3,12}-[0-9]{2} ){400,}".to_owned())),
        ("lark", Constraint::Lark(sums.to_owned())),
    ]
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let tokenizer = arguments.next().expect("usage: rate TOKENIZER.json [ROUNDS]");
    let rounds: u64 = arguments.next().map_or(5, |rounds| rounds.parse().expect("a number"));
    let parent = std::env::temp_dir().join("louver-tests");
    let folder = louver_tiny_model::ensure_around(&parent, Path::new(&tokenizer)).unwrap().dir;
    let model = TextModelBuilder::new(folder.display())
        .with_force_cpu()
        .with_dtype(ModelDType::F32)
        .with_prefix_cache_n(None)
        .build()
        .await
        .unwrap();
    println!("| constraint | at once | tokens/s, median | least | most |\n|:--|--:|--:|--:|--:|");
    for concurrency in CONCURRENCY {
        let mut rates: Vec<(&str, Vec<f64>)> = Vec::new();
        for round in 0..=rounds {
            for (name, constraint) in constraints() {
                let rate = rate(&model, &constraint, concurrency).await;
                // The first round is not counted: it reads the model and makes the first grammars.
                match rates.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, rates)) if round > 0 => rates.push(rate),
                    Some(_) => {}
                    None => rates.push((name, Vec::new())),
                }
            }
        }
        for (name, mut rates) in rates {
            rates.sort_by(f64::total_cmp);
            let [median, least, most] = [rates.len() / 2, 0, rates.len() - 1].map(|i| rates[i]);
            println!("| {name} | {concurrency} | {median:.0} | {least:.0} | {most:.0} |");
        }
    }
}

/// Tokens per second of all generations together.
async fn rate(model: &Model, constraint: &Constraint, concurrency: usize) -> f64 {
    let request = || {
        let sampling = SamplingParams { temperature: Some(1.0), ..SamplingParams::neutral() };
        let request = RequestBuilder::new()
            .add_message(TextMessageRole::User, "Please answer.")
            .set_sampling(sampling)
            .set_sampler_max_len(TOKENS)
            .set_constraint(constraint.clone());
        async { model.send_chat_request(request).await.unwrap().usage.completion_tokens }
    };
    let begin = Instant::now();
    let tokens = futures::future::join_all((0..concurrency).map(|_| request())).await;
    tokens.into_iter().sum::<usize>() as f64 / begin.elapsed().as_secs_f64()
}
