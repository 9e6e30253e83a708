//! The kinds of constraints of mistral.rs on the tiny model: n = 3, streaming and not, with and
//! without the prefix cache.
//!
//! The tiny model has more logits than its tokenizer has tokens. mistral.rs samples one of those
//! before it asks for a mask, and the original ends the request with an error there.

use std::collections::BTreeMap;

use mistralrs::llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use mistralrs::{
    Constraint, Model, ModelDType, RequestBuilder, Response, SamplingParams, TextMessageRole,
    TextModelBuilder,
};
use serde_json::{Value, json};

/// A constraint, and whether a text satisfies it.
struct Case {
    name: &'static str,
    constraint: Constraint,
    is_valid: fn(&str) -> bool,
}

fn matches(pattern: &str, text: &str) -> bool {
    use regex_automata::meta::Regex;
    let regex = Regex::new(&format!("^(?:{pattern})$")).expect("a regular expression");
    regex.is_match(text)
}

const CODE: &str = "[a-z]{3,12}-[0-9]{2}";

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "likes": {"type": "array", "items": {"enum": ["tea", "coffee"]}, "maxItems": 3}
        },
        "required": ["name", "age", "likes"],
        "additionalProperties": false
    })
}

fn is_person(text: &str) -> bool {
    let Ok(Value::Object(person)) = serde_json::from_str(text) else { return false };
    let name = person["name"].as_str().is_some_and(|name| name.chars().count() <= 8);
    let likes = person["likes"].as_array().is_some_and(|likes| {
        likes.len() <= 3 && likes.iter().all(|like| like == "tea" || like == "coffee")
    });
    // `-0` is an integer, too.
    let age = person["age"].as_f64().is_some_and(|age| (0.0..=150.0).contains(&age));
    name && likes && age && person.len() == 3
}

/// The constraint's kinds.
fn cases() -> Vec<Case> {
    let lark = "start: \"sum \" NUM (\" + \" NUM){1,3} \" = \" NUM\nNUM: /[0-9]{1,4}/\n";
    let list = TopLevelGrammar {
        grammars: vec![
            GrammarWithLexer::from_lark("start: \"call \" /[a-z]{2,5}/ \" \" @person \";\"".into()),
            GrammarWithLexer {
                name: Some("person".to_owned()),
                json_schema: Some(person()),
                ..GrammarWithLexer::default()
            },
        ],
        max_tokens: None,
    };
    vec![
        Case {
            name: "regex",
            constraint: Constraint::Regex(CODE.to_owned()),
            is_valid: |text| matches(CODE, text),
        },
        Case {
            name: "lark",
            constraint: Constraint::Lark(lark.to_owned()),
            is_valid: |text| matches(r"sum [0-9]{1,4}( \+ [0-9]{1,4}){1,3} = [0-9]{1,4}", text),
        },
        Case {
            name: "json-schema",
            constraint: Constraint::JsonSchema(person()),
            is_valid: is_person,
        },
        Case {
            name: "llguidance",
            constraint: Constraint::Llguidance(list),
            is_valid: |text| {
                let inner = text.strip_prefix("call ").and_then(|rest| rest.strip_suffix(";"));
                inner
                    .and_then(|rest| rest.split_once(' '))
                    .is_some_and(|(word, rest)| matches("[a-z]{2,5}", word) && is_person(rest))
            },
        },
    ]
}

/// Loads the tiny model.
async fn load(with_prefix_cache: bool) -> Model {
    let tiny = louver_tiny_model::ensure(&std::env::temp_dir().join("louver-tests")).unwrap();
    let mut builder =
        TextModelBuilder::new(tiny.dir.display()).with_force_cpu().with_dtype(ModelDType::F32);
    if !with_prefix_cache {
        builder = builder.with_prefix_cache_n(None);
    }
    builder.build().await.unwrap()
}

/// A request with the constraint of a case. `None` is temperature 0.
fn request(case: &Case, temperature: Option<f64>) -> RequestBuilder {
    let sampling = match temperature {
        None => SamplingParams::deterministic(),
        Some(temperature) => {
            SamplingParams { temperature: Some(temperature), ..SamplingParams::neutral() }
        }
    };
    RequestBuilder::new()
        .add_message(TextMessageRole::User, "Please answer.")
        .set_sampling(sampling)
        .set_sampler_max_len(2000)
        .set_constraint(case.constraint.clone())
}

/// The texts of all choices.
async fn texts(model: &Model, request: RequestBuilder) -> Vec<String> {
    let response = model.send_chat_request(request).await.unwrap();
    response.choices.into_iter().map(|choice| choice.message.content.unwrap_or_default()).collect()
}

/// The texts of all choices of a stream.
async fn streamed_texts(model: &Model, request: RequestBuilder) -> Vec<String> {
    let mut stream = model.stream_chat_request(request).await.unwrap();
    let mut texts = BTreeMap::<usize, String>::new();
    while let Some(response) = stream.next().await {
        let chunk = match response {
            Response::Chunk(chunk) => chunk,
            Response::ValidationError(error) | Response::InternalError(error) => panic!("{error}"),
            _ => panic!("neither a chunk nor an error"),
        };
        for choice in chunk.choices {
            *texts.entry(choice.index).or_default() += &choice.delta.content.unwrap_or_default();
        }
    }
    texts.into_values().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_choice_satisfies_its_constraint() {
    for with_prefix_cache in [false, true] {
        let model = load(with_prefix_cache).await;
        for case in cases() {
            for temperature in [0.7, 1.5] {
                let three = || request(&case, Some(temperature)).set_sampler_n_choices(3);
                let whole = texts(&model, three()).await;
                let streamed = streamed_texts(&model, three()).await;
                assert_eq!((whole.len(), streamed.len()), (3, 3), "{}", case.name);
                for text in whole.iter().chain(&streamed) {
                    assert!((case.is_valid)(text), "{}: {text:?}", case.name);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_at_temperature_0_are_the_same_streamed_or_not() {
    let model = load(false).await;
    for case in cases() {
        let whole = texts(&model, request(&case, None)).await;
        assert!((case.is_valid)(&whole[0]), "{}: {whole:?}", case.name);
        assert_eq!(texts(&model, request(&case, None)).await, whole);
        assert_eq!(streamed_texts(&model, request(&case, None)).await, whole);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_grammar_is_an_error_of_its_request() {
    let model = load(false).await;
    let bad = Case {
        name: "bad",
        constraint: Constraint::Lark("start: nothing".to_owned()),
        is_valid: |_| true,
    };
    let error = model.send_chat_request(request(&bad, None)).await.unwrap_err().to_string();
    assert!(error.contains("Invalid grammar") && error.contains("nothing"), "{error}");
    let good = cases().remove(0);
    let text = texts(&model, request(&good, None)).await.remove(0);
    assert!((good.is_valid)(&text), "{text:?}");
}
