//! The kinds of constraints of mistral.rs on the tiny model: n = 3, streaming and not, with and
//! without the prefix cache; and the texts at temperature 0 beside those of the original.
//!
//! The tiny model has more logits than its tokenizer has tokens. mistral.rs samples one of those
//! before it asks for a mask, and the original ends the request with an error there. So the texts
//! beside the original's are those of a model of the tokenizer's width.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mistralrs::llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use mistralrs::llguidance::toktrie::ApproximateTokEnv;
use mistralrs::llguidance::{Matcher, ParserFactory};
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

/// The schema without white space between its parts.
fn compact(mut schema: Value) -> Value {
    schema["x-guidance"] = json!({"whitespace_flexible": false});
    schema
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
            name: "compact-json-schema",
            constraint: Constraint::JsonSchema(compact(person())),
            is_valid: |text| is_person(text) && !text.contains(['\n', '\t']),
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

/// Whether a text is the beginning of a valid one: byte by byte, without a model.
fn is_beginning(case: &Case, text: &str) -> bool {
    let grammar = match &case.constraint {
        Constraint::Regex(pattern) => TopLevelGrammar::from_regex(pattern),
        Constraint::Lark(lark) => TopLevelGrammar::from_lark(lark.clone()),
        Constraint::JsonSchema(schema) => TopLevelGrammar::from_json_schema(schema.clone()),
        Constraint::Llguidance(list) => list.clone(),
        Constraint::None => return true,
    };
    let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    let mut matcher = Matcher::new(factory.create_parser(grammar));
    let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
    matcher.try_consume_tokens(&bytes).unwrap() == bytes.len()
}

/// The folder of the tiny model.
fn tiny() -> PathBuf {
    louver_tiny_model::ensure(&std::env::temp_dir().join("louver-tests")).unwrap().dir
}

/// Loads a model.
async fn load(folder: PathBuf, with_prefix_cache: bool) -> Model {
    let mut builder =
        TextModelBuilder::new(folder.display()).with_force_cpu().with_dtype(ModelDType::F32);
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
        let model = load(tiny(), with_prefix_cache).await;
        for case in cases() {
            for temperature in [0.7, 1.5] {
                let three = || request(&case, Some(temperature)).set_sampler_n_choices(3);
                let whole = texts(&model, three()).await;
                let streamed = streamed_texts(&model, three()).await;
                assert_eq!((whole.len(), streamed.len()), (3, 3), "{}", case.name);
                for text in &whole {
                    assert!((case.is_valid)(text), "{}: {text:?}", case.name);
                }
                // mistral.rs sends a chunk when it has n of them. The last ones, of choices that
                // end after the others, are fewer and are not sent.
                let cut: Vec<_> = streamed.iter().filter(|text| !(case.is_valid)(text)).collect();
                assert!(cut.len() <= 2, "{}: {streamed:?}", case.name);
                for text in cut {
                    assert!(is_beginning(&case, text), "{}: {text:?}", case.name);
                }
                let one = streamed_texts(&model, request(&case, Some(temperature))).await;
                assert!((case.is_valid)(&one[0]), "{}: {one:?}", case.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_at_temperature_0_are_the_same_streamed_or_not() {
    let model = load(tiny(), false).await;
    for case in cases() {
        let whole = texts(&model, request(&case, None)).await;
        assert!((case.is_valid)(&whole[0]), "{}: {whole:?}", case.name);
        assert_eq!(texts(&model, request(&case, None)).await, whole);
        assert_eq!(streamed_texts(&model, request(&case, None)).await, whole);
    }
}

/// A text up to the 30th character of white space in a row: Louver writes at most 40, the original
/// any number.
fn comparable(text: &str) -> &str {
    let mut run = 0;
    let end = text.char_indices().find(|(_, c)| {
        run = if c.is_whitespace() { run + 1 } else { 0 };
        run == 30
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The texts of the original were recorded by this test, built without the patch, with
/// `LOUVER_RECORD=1`: `just door-record`.
#[tokio::test(flavor = "multi_thread")]
async fn texts_at_temperature_0_are_those_of_the_original() {
    let parent = std::env::temp_dir().join("louver-tests");
    let tokenizer = tiny().join("tokenizer.json");
    let narrow = louver_tiny_model::ensure_around(&parent, &tokenizer).unwrap().dir;
    let model = load(narrow, false).await;
    let mut found = BTreeMap::new();
    for case in cases() {
        // The end-of-sequence token that is found by its name is none of this model's: mistral.rs
        // repeats it up to the longest length.
        let three = request(&case, None).set_sampler_n_choices(3).set_sampler_max_len(250);
        let mut all = texts(&model, three).await;
        let end = |text: &str| text.find("<|endoftext|>").unwrap_or(text.len());
        all.iter_mut().for_each(|text| text.truncate(end(text)));
        all.dedup();
        assert_eq!(all.len(), 1, "{}: {all:?}", case.name);
        assert!(is_beginning(&case, &all[0]), "{}: {all:?}", case.name);
        found.insert(case.name.to_owned(), all.remove(0));
    }
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/original.json");
    if std::env::var_os("LOUVER_RECORD").is_some() {
        std::fs::write(&file, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
    }
    let recorded = std::fs::read_to_string(&file).expect("the texts of the original");
    let recorded: BTreeMap<String, String> = serde_json::from_str(&recorded).unwrap();
    let comparable = |texts: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        texts.iter().map(|(name, text)| (name.clone(), comparable(text).to_owned())).collect()
    };
    assert_eq!(comparable(&found), comparable(&recorded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_grammar_is_an_error_of_its_request() {
    let model = load(tiny(), false).await;
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
