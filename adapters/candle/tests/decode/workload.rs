//! Requests for the loop, and running them.

use std::sync::Arc;

use candle_core::DType;
use louver::front::json_schema::Whitespace;
use louver::spec::json::Json;
use louver::{
    Constraint, EbnfOptions, Engine, EngineOptions, Limits, RegexOptions, SchemaOptions, TokenId,
    Vocabulary,
};
use louver_formats::{Catalog, Parallel, Reasoning, Tool, ToolChoice, ToolRequest};

use crate::model::random_llama;
use crate::serving::draw::{Sampling, mix};
use crate::serving::model::Model;
use crate::serving::scheduler::DecodeLoop;
use crate::serving::sequence::{Output, Request};
use crate::serving::settings::Settings;

/// Ids of the logits beyond the vocabulary, as in real models.
pub(crate) const PADDING: usize = 13;

pub(crate) const PERSON: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 6},
        "born": {"type": "string", "format": "date"},
        "member": {"type": "boolean"}
    },
    "required": ["name", "born", "member"],
    "additionalProperties": false
}"#;
pub(crate) const NUMBERS: &str = r#"{
    "type": "array",
    "items": {"type": "integer", "minimum": 0, "maximum": 99},
    "minItems": 3, "maxItems": 7
}"#;
pub(crate) const CHOICE: &str = r#"{"enum": ["accepted", "rejected", {"retry": [1, 2, 3]}]}"#;
pub(crate) const TOOLS: &str = r#"[
    {"name": "move", "parameters": {
        "type": "object",
        "properties": {
            "direction": {"enum": ["north", "east", "south", "west"]},
            "steps": {"type": "integer", "minimum": 1, "maximum": 20}
        },
        "required": ["direction", "steps"], "additionalProperties": false
    }},
    {"name": "say", "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 8}},
        "required": ["text"], "additionalProperties": false
    }}
]"#;

/// What a row generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Schema(&'static str),
    Calls,
    Regex,
    Ebnf,
    Free,
}

pub(crate) const KINDS: [Kind; 7] = [
    Kind::Schema(PERSON),
    Kind::Calls,
    Kind::Free,
    Kind::Schema(NUMBERS),
    Kind::Regex,
    Kind::Schema(CHOICE),
    Kind::Ebnf,
];

/// One token a byte: there is only one way to cut a text into tokens.
pub(crate) fn bytes() -> Arc<Vocabulary> {
    Arc::new(Vocabulary::toy(&[]))
}

/// Bytes and pieces of words and of JSON, so that a text can be cut in many ways.
pub(crate) fn words() -> Arc<Vocabulary> {
    let pieces = [
        "{\"",
        "\":",
        "\": ",
        "\": \"",
        "\", \"",
        "\"}",
        ", ",
        "\":\"",
        "na",
        "name",
        "born",
        "member",
        "true",
        "alse",
        "acc",
        "ept",
        "ed",
        "re",
        "retry",
        "ject",
        "no",
        "north",
        "east",
        "direction",
        "steps",
        "st",
        "move",
        "say",
        "arguments",
        "\"arguments",
        "<tool",
        "_call>",
        "</tool",
        "</",
        "19",
        "20",
        "00",
        "-0",
        "in",
        "an",
        "er",
        "th",
        " the",
        "aaa",
        "ab",
    ];
    Arc::new(Vocabulary::toy(&pieces.map(str::as_bytes)))
}

/// The bytes of tokens as text.
pub(crate) fn text(vocab: &Vocabulary, tokens: &[u32]) -> String {
    let bytes = |&id: &u32| vocab.bytes(TokenId::from_raw(id)).expect("a token of the vocabulary");
    String::from_utf8(tokens.iter().flat_map(bytes).copied().collect()).expect("UTF-8")
}

/// The tokens of a text, by longest match.
pub(crate) fn tokens(vocab: &Vocabulary, text: &str) -> Vec<u32> {
    let (mut rest, mut out) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let found = (1..=rest.len().min(16)).rev().find_map(|n| Some((n, vocab.find(&rest[..n])?)));
        let (n, token) = found.expect("every byte is a token");
        out.push(token.raw());
        rest = &rest[n..];
    }
    out
}

pub(crate) fn engine(vocab: &Arc<Vocabulary>) -> Arc<Engine> {
    Arc::new(Engine::new(vocab.clone(), EngineOptions::default()))
}

pub(crate) fn tools() -> Vec<Tool> {
    Tool::parse_list(&Json::parse(TOOLS, &Limits::default()).expect("JSON")).expect("tools")
}

/// White space is exact, so that random models come to an end.
pub(crate) fn constraint(engine: &Engine, kind: Kind) -> Option<Constraint> {
    let options = SchemaOptions::default().with_whitespace(Whitespace::PythonLike);
    let constraint = match kind {
        Kind::Free => return None,
        Kind::Schema(schema) => engine.compile_json_schema(schema, &options).expect("a schema"),
        Kind::Regex => engine
            .compile_regex("id=[0-9]{4}; path=(/[a-z]{1,5}){2,4}; end", &RegexOptions::default())
            .expect("a pattern"),
        Kind::Ebnf => {
            let grammar = r#"root ::= "(" list ")"
                list ::= item | item "," item | item "," item "," item
                item ::= [a-c] [a-c] | "[" [x-z] [x-z] [x-z] "]""#;
            engine.compile_ebnf(grammar, &EbnfOptions::default()).expect("a grammar")
        }
        Kind::Calls => {
            let request = ToolRequest::default()
                .with_tools(tools())
                .with_tool_choice(ToolChoice::Required)
                .with_parallel(Parallel::One)
                .with_reasoning(Reasoning::Off)
                .with_schema_options(options);
            let format = Catalog::shipped().get("qwen3").expect("a family").with_text_markers();
            let lowered = format.lower(&request).expect("lowers");
            engine.compile(lowered.grammar().clone()).expect("a grammar")
        }
    };
    Some(constraint)
}

/// A request of this kind, with a prompt that names what can be generated and some noise.
pub(crate) fn request(engine: &Engine, kind: Kind, number: usize) -> Request {
    let hint = match kind {
        Kind::Schema(PERSON) => "name, born, member: true or false, 2020-11-30",
        Kind::Schema(_) => "retry 1, 2, 3, accepted",
        Kind::Calls => r#"{"name": "move", "arguments": {"direction": "north"}}"#,
        _ => "id=00; path=/aaa/aaa",
    };
    let noise = mix(number as u64) % 1_000_000;
    let prompt = tokens(engine.vocab(), &format!("{hint}{}#{noise}", number % 3));
    Request {
        prompt,
        constraint: constraint(engine, kind),
        max_tokens: if kind == Kind::Free { 24 } else { 160 },
        sampling: Sampling::GREEDY,
    }
}

/// A loop over a random model. Its numbers have 64 bits, so that the order of sums, which depends
/// on the batch, does not decide between two tokens.
pub(crate) fn random_loop(vocab: &Arc<Vocabulary>, settings: Settings) -> DecodeLoop<impl Model> {
    let model = random_llama(vocab.width() + PADDING, DType::F64);
    DecodeLoop::new(model, engine(vocab), settings)
}

/// Submits the requests, `burst` of them before each step, and runs to the end. Outputs are in the
/// order of the requests.
pub(crate) fn run<M: Model + Sync>(
    decode: &mut DecodeLoop<M>,
    requests: &[Request],
    burst: usize,
) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut requests = requests.iter();
    let mut more = true;
    while more || !decode.is_idle() {
        let arrived: Vec<_> = requests.by_ref().take(burst).cloned().collect();
        more = !arrived.is_empty();
        for request in arrived {
            decode.submit(request).expect("a request that fits");
        }
        outputs.extend(decode.step().expect("a step"));
    }
    outputs.sort_by_key(|output| output.id);
    outputs
}
