//! Derived formats write what their templates write: byte for byte, over random turns.

use louver_formats::{ArgumentStyle, Call, PythonLiterals, TextPlace, Turn};
use serde_json::{Value, json};

use super::samples::NAMES;
use super::*;
use crate::turns::{TurnContext, TurnInput, TurnRenderer};

/// A generator of numbers: a linear congruence, its upper bits.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 12] =
            ["Oslo", " ", "天", "é\"", "a<b>", "\\", "\n", "'x'", "{", "}", "[1]", "&amp;"];
        // Neither a number nor white space at an end, which raw strings do not keep apart.
        let middle: String = (0..self.below(6)).map(|_| WORDS[self.below(WORDS.len())]).collect();
        format!("s{middle}t")
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => json!(self.below(1000)),
            1 => json!(0.5 + self.below(9) as f64),
            2 | 3 => json!(self.text()),
            4 => (0..self.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => (0..self.below(3)).map(|k| (format!("m{k}"), self.value(depth - 1))).collect(),
        }
    }
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// A random turn of text and calls, as a template takes it.
fn turn(numbers: &mut Numbers, format: &WireFormat) -> TurnInput {
    let most = match format.call.parallel {
        louver_formats::ParallelPolicy::Many => 3,
        louver_formats::ParallelPolicy::One => 1,
    };
    let calls: Vec<(&'static str, Value)> = (0..numbers.below(most + 1))
        .map(|_| {
            let name = NAMES[numbers.below(2)];
            let arguments = (0..numbers.below(4)).map(|k| (format!("a{k}"), numbers.value(2)));
            (name, arguments.collect())
        })
        .collect();
    let has_text = match format.text.place {
        TextPlace::InsteadOfCalls => calls.is_empty(),
        TextPlace::BeforeCalls => calls.is_empty() || numbers.below(2) == 0,
        // A template that writes text after calls is not what the renderer writes.
        TextPlace::Anywhere => calls.is_empty(),
    };
    let words = if has_text { format!("Text {}.", numbers.below(1000)) } else { String::new() };
    TurnInput { text: leaked(words), calls, ..TurnInput::default() }
}

#[derive(serde::Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    tokens: Vec<String>,
    derived: String,
    /// The template writes line feeds around text, which the derived format counts to the text.
    #[serde(default)]
    has_line_feeds_in_text: bool,
    template: String,
}

/// Compares random turns as the template and as the derived format write them, and returns their
/// number or the first difference.
fn compare(
    template: &ChatTemplate,
    probed: &Probed,
    tokens: &[String],
    is_comparable: impl Fn(&TurnInput) -> bool,
) -> Result<usize, String> {
    let (tools, mut compared, mut numbers) = (samples::tools(), 0, Numbers(7));
    let turns = TurnRenderer::new(template, &tools, tokens, probed.style, TurnContext::LAST)
        .map_err(|error| error.to_string())?;
    for _ in 0..300 {
        let input = turn(&mut numbers, &probed.format);
        if !is_comparable(&input) {
            continue;
        }
        let wire = turns.render(&input).map_err(|error| error.to_string())?.wire;
        let calls = input.calls.iter().enumerate().map(|(k, (name, arguments))| {
            Call::new(*name, louver_formats::python_json(arguments))
                .with_id(probed.style.id(k, name))
        });
        let turn = Turn::default().with_text(input.text).with_calls(calls.collect());
        // What cannot be written in the style (a string with its own end) is not a turn.
        let Ok(written) = probed.format.render(&turn) else { continue };
        let block = reasoning_block(&probed.format, &wire);
        if !wire[block..].trim_start().starts_with(written.trim_start()) {
            return Err(format!("the template writes {wire:?}, the format {written:?}"));
        }
        compared += 1;
    }
    Ok(compared)
}

#[test]
fn derived_formats_write_what_templates_write() {
    let file: File = toml::from_str(include_str!("../../tests/data/templates.toml")).expect("TOML");
    let mut compared = 0;
    for case in file.case.iter().filter(|case| case.derived == "confirmed") {
        let tokens = [None, Some(case.tokens[0].clone()), None];
        let template = ChatTemplate::new(&case.template, tokens).expect("template");
        let probed = probe("test", &template, &case.tokens).expect("a format");
        let style = match &probed.format.call.arguments {
            ArgumentStyle::Tagged(style) => style.python,
            _ => None,
        };
        // The renderer writes JSON for what this template prints as Python does.
        if style == Some(PythonLiterals::Values) {
            continue;
        }
        let is_comparable = |turn: &TurnInput| !case.has_line_feeds_in_text || turn.text.is_empty();
        let found = compare(&template, &probed, &case.tokens, is_comparable);
        compared += found.unwrap_or_else(|difference| panic!("{}: {difference}", case.name));
    }
    assert!(compared > 2000, "{compared}");
}

/// A template of random pieces around names, arguments, texts and calls.
fn random_template(numbers: &mut Numbers) -> String {
    const PIECES: [&str; 20] = [
        "",
        "",
        "<a>",
        "</a>",
        "<b c='",
        "é",
        "è",
        "\u{65e5}",
        "\n",
        " ",
        "{{ '{' }}",
        "}",
        "[",
        "]",
        "0",
        "1",
        "<|x|>",
        "[T]",
        ":",
        "call ",
    ];
    const ARGUMENTS: [&str; 4] = [
        "{{ c.function.arguments | tojson }}",
        "{{ c.function.arguments }}",
        "{% for k, v in c.function.arguments | items %}<p={{ k }}>{{ v }}</p>{% endfor %}",
        "({% for k, v in c.function.arguments | items %}{{ k }}={{ v | tojson }}, {% endfor %})",
    ];
    let mut pieces = || {
        let n = numbers.below(3) + 1;
        (0..n).map(|_| PIECES[numbers.below(PIECES.len())]).collect::<String>()
    };
    let [turn, before, name, after, between, section, end] = std::array::from_fn(|_| pieces());
    let begin = ["", "<t>", "[CALL]"][numbers.below(3)];
    let arguments = ARGUMENTS[numbers.below(ARGUMENTS.len())];
    let index = ["", "{{ loop.index0 }}", "{{ loop.index }}", "{{ c.id }}"][numbers.below(4)];
    format!(
        "{{% for m in messages %}}<{{{{ m.role }}}}>{turn}{{{{ m.content or '' }}}}\
         {{%- if m.tool_calls %}}{section}{{% for c in m.tool_calls -%}}\
         {begin}{before}{index}{{{{ c.function.name }}}}{name}{arguments}{after}\
         {{%- if not loop.last %}}{between}{{% endif %}}{{% endfor %}}{section}{{% endif -%}}\
         {end}<|end|>{{% endfor %}}{{% if add_generation_prompt %}}<assistant>{turn}{{% endif %}}"
    )
}

#[test]
fn random_templates_are_derived_or_refused() {
    let tokens = ["<|end|>".to_owned(), "<|x|>".to_owned()];
    let (mut numbers, mut derived, mut confirmed) = (Numbers(3), 0, 0);
    for _ in 0..400 {
        let source = random_template(&mut numbers);
        let Ok(template) = ChatTemplate::new(&source, [None, Some(tokens[0].clone()), None]) else {
            continue;
        };
        let Ok(probed) = probe("test", &template, &tokens) else { continue };
        derived += 1;
        confirmed += usize::from(crate::confirm(&probed.format, &template, &tokens).is_full());
    }
    assert!(derived > 40 && confirmed > 20, "{derived} derived, {confirmed} confirmed");
}

/// The same for the checkpoints in the folder that `LOUVER_TEMPLATES` names. Templates may write
/// more than one spelling of a value or of white space, where the renderer has one: what differs is
/// printed, and most are equal.
#[test]
fn formats_derived_from_checkpoints_write_what_their_templates_write() {
    let Some(folder) = std::env::var_os("LOUVER_TEMPLATES") else {
        println!("skipped: LOUVER_TEMPLATES names no folder of checkpoints");
        return;
    };
    let (mut derived, mut equal, mut turns) = (0, 0, 0);
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        let Ok(checkpoint) = crate::Checkpoint::read(&path) else { continue };
        let Ok(template) = &checkpoint.template else { continue };
        let Ok(probed) = probe("test", template, &checkpoint.special_tokens) else { continue };
        if !crate::confirm(&probed.format, template, &checkpoint.special_tokens).is_full() {
            continue;
        }
        derived += 1;
        match compare(template, &probed, &checkpoint.special_tokens, |_| true) {
            Ok(compared) => (equal, turns) = (equal + 1, turns + compared),
            Err(difference) => println!("{}: {difference}", path.display()),
        }
    }
    println!("{derived} derived and confirmed, {equal} equal in {turns} turns");
    assert!(equal * 4 >= derived * 3);
}

/// The length of an empty block of reasoning at the start of a turn.
fn reasoning_block(format: &WireFormat, wire: &str) -> usize {
    format.reasoning.as_ref().map_or(0, |found| reasoning::block_len(found, wire))
}
