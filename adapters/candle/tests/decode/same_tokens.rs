//! The same tokens whatever is switched on.

use std::sync::Arc;

use louver::{TokenId, Vocabulary};
use louver_formats::Tool;

use crate::replay::Replay;
use crate::serving::draw::Sampling;
use crate::serving::scheduler::DecodeLoop;
use crate::serving::sequence::{Finish, Output, Request};
use crate::serving::settings::{Forced, Settings, Tokenize};
use crate::workload::{
    CHOICE, KINDS, Kind, NUMBERS, PERSON, bytes, constraint, engine, random_loop, request, run,
    text, tokens, tools, words,
};

/// One row at a time, one token a step.
fn plain() -> Settings {
    Settings {
        max_rows: 1,
        max_chunk: 512,
        overlap: false,
        forced: Forced::Draw,
        draft: 0,
        kept_masks: 0,
    }
}

fn requests(vocab: &Arc<Vocabulary>, sampling: Sampling) -> Vec<Request> {
    let engine = engine(vocab);
    let one = |number| {
        let request = request(&engine, KINDS[number % KINDS.len()], number);
        Request { sampling: Sampling { seed: number as u64, ..sampling }, ..request }
    };
    (0..2 * KINDS.len()).map(one).collect()
}

/// The outputs of these settings, with `burst` requests arriving before each step.
fn outputs(
    vocab: &Arc<Vocabulary>,
    sampling: Sampling,
    (settings, burst): (Settings, usize),
) -> Vec<Output> {
    run(&mut random_loop(vocab, settings), &requests(vocab, sampling), burst)
}

fn generated(outputs: &[Output]) -> Vec<(&[u32], Finish)> {
    outputs.iter().map(|output| (&output.tokens[..], output.finish)).collect()
}

fn total(outputs: &[Output], of: impl Fn(&Output) -> usize) -> usize {
    outputs.iter().map(of).sum()
}

/// Each switch alone and all of them, at temperature 0 and with seeded draws.
fn check_switches(vocab: &Arc<Vocabulary>, base: &Settings, forced: &[Forced]) {
    let drawn = Sampling { temperature: 0.8, top_k: 20, seed: 0 };
    for sampling in [Sampling::GREEDY, drawn] {
        let expected = outputs(vocab, sampling, (base.clone(), usize::MAX));
        check_texts(vocab, &expected);
        let check = |settings: Settings, burst| {
            let outputs = outputs(vocab, sampling, (settings, burst));
            assert_eq!(generated(&outputs), generated(&expected));
            outputs
        };
        // Rows that come and go: two arrive before each step, and five run at once.
        check(Settings { max_rows: 5, ..base.clone() }, 2);
        check(Settings { max_chunk: 7, ..base.clone() }, usize::MAX);
        check(Settings { overlap: true, ..base.clone() }, usize::MAX);
        let drafted = check(Settings { draft: 4, ..base.clone() }, usize::MAX);
        let (proposed, agreed) =
            (total(&drafted, |o| o.usage.drafted), total(&drafted, |o| o.usage.agreed));
        assert!(0 < agreed && agreed < proposed, "{agreed} of {proposed}");
        for forced in forced {
            let forced = check(Settings { forced: forced.clone(), ..base.clone() }, usize::MAX);
            let steps = |outputs: &[Output]| total(outputs, |o| o.usage.steps);
            assert!(total(&forced, |o| o.usage.forced) > 0);
            assert_eq!(
                steps(&forced),
                steps(&expected) - total(&forced, |o| o.usage.forced),
                "a forced token is a step less"
            );
        }
        let all = Settings {
            max_rows: 5,
            max_chunk: 7,
            overlap: true,
            forced: forced.last().cloned().unwrap_or(base.forced.clone()),
            draft: 4,
            kept_masks: 1 << 12,
        };
        check(all, 2);
    }
}

/// Constrained texts end and are what their grammar describes.
fn check_texts(vocab: &Vocabulary, outputs: &[Output]) {
    for output in outputs {
        let text = match KINDS[output.id % KINDS.len()] {
            Kind::Free => continue,
            _ => text(vocab, &output.tokens),
        };
        assert_eq!(output.finish, Finish::Stop, "{text}");
        let is_instance = |schema: &str, value: &serde_json::Value| {
            jsonschema::is_valid(&serde_json::from_str(schema).expect("JSON"), value)
        };
        match KINDS[output.id % KINDS.len()] {
            Kind::Schema(schema) => {
                assert!(is_instance(schema, &serde_json::from_str(&text).expect("JSON")), "{text}");
            }
            Kind::Calls => {
                let calls = text.split("</tool_call>").filter(|part| !part.trim().is_empty());
                for call in calls {
                    let call = call.trim().strip_prefix("<tool_call>").expect("a call");
                    let call: serde_json::Value = serde_json::from_str(call).expect("JSON");
                    let tool = tools().into_iter().find(|tool| call["name"] == tool.name());
                    let schema =
                        tool.as_ref().and_then(Tool::parameters).expect("a schema").to_string();
                    assert!(is_instance(&schema, &call["arguments"]), "{text}");
                }
            }
            Kind::Regex => assert!(text.starts_with("id=") && text.ends_with("; end"), "{text}"),
            Kind::Ebnf => {
                assert!(text.starts_with('(') && text.ends_with(')'), "{text}");
            }
            Kind::Free => {}
        }
    }
}

/// With one token a byte, forced tokens are the only ones that the masks allow, so that forcing
/// them changes nothing either.
#[test]
fn no_switch_changes_a_token() {
    check_switches(&bytes(), &plain(), &[Forced::LongestMatch]);
}

/// With tokens of several bytes, forced tokens are one of several ways to cut the forced text, and
/// are taken in all runs.
#[test]
fn no_switch_changes_a_token_of_many_bytes() {
    let base = Settings { forced: Forced::LongestMatch, ..plain() };
    check_switches(&words(), &base, &[]);
}

/// A model that wants texts in the tokenizer's own tokens gets them, forced or not, and forcing
/// saves a step a token.
#[test]
fn forced_tokens_are_those_that_a_model_of_these_texts_draws() {
    let vocab = words();
    let answers = [
        (Kind::Schema(PERSON), r#"{"name": "nora", "born": "2020-11-30", "member": false}"#),
        (Kind::Schema(CHOICE), r#"{"retry": [1, 2, 3]}"#),
        (Kind::Schema(NUMBERS), "[1, 20, 0, 19]"),
        (
            Kind::Calls,
            "<tool_call>\n{\"name\": \"move\", \"arguments\": {\"direction\": \"north\", \
             \"steps\": 19}}\n</tool_call>",
        ),
    ];
    let engine = engine(&vocab);
    let requests: Vec<Request> =
        (0..answers.len()).map(|i| request(&engine, answers[i].0, i)).collect();
    let replayed = |settings| {
        let mut model = Replay::new(vocab.clone(), vocab.stops()[0].raw());
        for (request, (_, answer)) in requests.iter().zip(answers) {
            model.record(request.prompt.clone(), &tokens(&vocab, answer));
        }
        run(&mut DecodeLoop::new(model, self::engine(&vocab), settings), &requests, 2)
    };
    let expected = replayed(plain());
    for (output, (_, answer)) in expected.iter().zip(answers) {
        assert_eq!((output.finish, text(&vocab, &output.tokens)), (Finish::Stop, answer.into()));
    }
    let steps = |outputs: &[Output]| total(outputs, |o| o.usage.steps);
    let cut: Arc<Tokenize> = {
        let vocab = vocab.clone();
        Arc::new(move |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).expect("UTF-8");
            tokens(&vocab, text).into_iter().map(TokenId::from_raw).collect()
        })
    };
    for forced in [Forced::LongestMatch, Forced::Tokenizer(cut)] {
        let outputs = replayed(Settings { forced, ..plain() });
        assert_eq!(generated(&outputs), generated(&expected));
        let forced = total(&outputs, |o| o.usage.forced);
        assert!(forced > 20, "{forced}");
        assert_eq!(steps(&outputs), steps(&expected) - forced);
    }
    let all = replayed(Settings::default());
    assert_eq!(generated(&all), generated(&expected));
    assert!(2 * steps(&all) < steps(&expected), "{} of {}", steps(&all), steps(&expected));
}

/// Cancelled rows leave at once, and the others do not notice.
#[test]
fn cancelled_rows_leave_the_batch() {
    let vocab = bytes();
    let requests = requests(&vocab, Sampling::GREEDY);
    let settings = Settings { max_rows: 4, ..Settings::default() };
    let expected = run(&mut random_loop(&vocab, settings.clone()), &requests, usize::MAX);
    let mut decode = random_loop(&vocab, settings);
    for request in &requests {
        decode.submit(request.clone()).expect("a request that fits");
    }
    let mut outputs = decode.step().expect("a step");
    assert!(outputs.is_empty());
    // One that runs, and one that waits.
    for id in [1, 9] {
        let output = decode.cancel(id).expect("it is there");
        assert_eq!(output.finish, Finish::Cancelled);
        assert!(expected[id].tokens.starts_with(&output.tokens));
        assert!(decode.cancel(id).is_none());
    }
    while !decode.is_idle() {
        outputs.extend(decode.step().expect("a step"));
    }
    outputs.sort_by_key(|output| output.id);
    let others: Vec<Output> =
        expected.into_iter().filter(|output| ![1, 9].contains(&output.id)).collect();
    assert_eq!(generated(&outputs), generated(&others));
}

/// Lengths are kept exactly, also within forced text and drafts.
#[test]
fn lengths_end_within_forced_text_and_drafts() {
    let vocab = bytes();
    let engine = engine(&vocab);
    for max_tokens in 0..14 {
        let request = |kind| Request { max_tokens, ..request(&engine, kind, 5) };
        let kinds = [Kind::Schema(PERSON), Kind::Schema(NUMBERS), Kind::Schema(CHOICE)];
        let requests: Vec<Request> = kinds.map(request).into();
        let expected = run(&mut random_loop(&vocab, plain()), &requests, 3);
        let all = run(&mut random_loop(&vocab, Settings::default()), &requests, 3);
        assert_eq!(generated(&all), generated(&expected));
        assert!(all.iter().all(|output| output.tokens.len() <= max_tokens));
        assert_eq!(all[0].finish, Finish::Length);
    }
    let mut decode = random_loop(&vocab, Settings::default());
    let request = |prompt| Request {
        prompt,
        constraint: constraint(&engine, Kind::Regex),
        max_tokens: 1,
        sampling: Sampling::GREEDY,
    };
    assert!(decode.submit(request(vec![])).is_err());
    assert!(decode.submit(request(vec![65; 1025])).is_err());
    assert!(decode.submit(request(vec![65; 1024])).is_ok());
    assert_eq!(decode.step().expect("a step")[0].finish, Finish::Length);
}
