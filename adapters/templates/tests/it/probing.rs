//! Formats from chat templates alone.

use louver_formats::{ArgumentStyle, Catalog, IdStyle, Marker, Part, TagPart, WireFormat};
use louver_templates::{
    ChatTemplate, Checkpoint, FamilyError, FormatSource, SourceError, confirm, probe, resolve,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    name: String,
    tokens: Vec<String>,
    derived: String,
    #[serde(default)]
    begins: Option<String>,
    #[serde(default)]
    reports: String,
    #[serde(default)]
    id: Option<IdStyle>,
    #[serde(default)]
    notes: Vec<String>,
    template: String,
}

fn cases() -> Vec<Case> {
    let file: File = toml::from_str(include_str!("../data/templates.toml")).expect("TOML");
    file.case
}

/// The case of this name.
pub(crate) fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).expect("case")
}

pub(crate) fn checkpoint(case: &Case) -> Checkpoint {
    let template = ChatTemplate::new(&case.template, [None, Some(case.tokens[0].clone()), None]);
    Checkpoint::default().with_template(template).with_special_tokens(case.tokens.clone())
}

/// What is wrong with the outcome of a case.
fn problem(case: &Case) -> Option<String> {
    let found = resolve(&checkpoint(case), &Catalog::empty(), "test");
    match (found, case.derived.as_str()) {
        (Ok(found), "confirmed") => {
            let is_derived = matches!(found.source, FormatSource::ChatTemplate);
            let begin = found.format.calls_begin_marker().map(Marker::write);
            let outcomes = found.confirmation.iter().flat_map(|confirmation| &confirmation.cases);
            let reports = outcomes.map(|case| format!("{case}\n")).collect::<String>();
            let id = found.format.call.header.iter().find_map(|part| match part {
                Part::Id { id } => Some(*id),
                _ => None,
            });
            let is_right = found.is_confirmed()
                && is_derived
                && begin == case.begins
                && reports.contains(&case.reports)
                && case.id.is_none_or(|expected| id == Some(expected))
                && found.notes.len() == case.notes.len()
                && case.notes.iter().zip(&found.notes).all(|(note, found)| found.contains(note));
            (!is_right).then(|| format!("{found:#?}"))
        }
        (Err(error), expected) => {
            let mut told = error.to_string();
            if let SourceError::Unconfirmed(found) = &*error.chat_template {
                let confirmation = found.confirmation.as_ref().expect("a chat template");
                told += &confirmation.lines_by_result()[0].join("\n");
            }
            (!told.contains(expected)).then_some(told)
        }
        (Ok(found), _) => Some(format!("{found:#?}")),
    }
}

#[test]
fn formats_are_derived_or_refused() {
    let problems = cases().into_iter().filter_map(|case| Some((problem(&case)?, case.name)));
    let problems: Vec<String> =
        problems.map(|(problem, name)| format!("{name}: {problem}")).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// A description with one word for two types is refused if the template has two.
#[test]
fn wrong_words_for_types_are_not_confirmed() {
    let template = |name: &str| checkpoint(&case(name)).template.expect("compiles");
    let own = template("a word for each type, null with its own");
    let other = template("words for integers and for other numbers");
    let tokens = ["<|end|>".to_owned()];
    let format = probe("test", &own, &tokens).expect("is told").format;
    let with = |number: &str, null: &str| {
        let mut format = format.clone();
        let ArgumentStyle::Tagged(style) = &mut format.call.arguments else { panic!("no tags") };
        for part in &mut style.open {
            if let TagPart::Kind { kind } = part {
                (kind.number, kind.null) = (number.to_owned(), null.to_owned());
            }
        }
        format
    };
    for (template, number, null, expected) in [
        (&own, "num", "null", &[][..]),
        (&own, "num", "num", &["null and the word for its type"]),
        (&other, "num", "null", &["one call", "two calls"]),
        (&other, "int", "null", &["a fraction"]),
    ] {
        let confirmation = confirm(&with(number, null), template, &tokens);
        let names: Vec<&str> = confirmation.unconfirmed().map(|case| case.name).collect();
        assert!(expected.iter().all(|name| names.contains(name)), "{number} {null}: {names:?}");
        assert_eq!(names.is_empty(), expected.is_empty(), "{number} {null}: {names:?}");
    }
}

/// A template may write the last turn of a conversation otherwise than earlier ones.
#[test]
fn turns_before_another_question_confirm_a_format() {
    let template = |opened: &str, last: &str| {
        let source = r#"{%- for m in messages -%}
            {{- '<|' + m.role + '|>' -}}
            {%- if m.role == 'assistant' and loop.last -%}LAST{%- endif -%}
            {{- m.content -}}
            {%- for c in m.tool_calls or [] -%}<call>{{ c.function | tojson }}</call>{%- endfor -%}
            {{- '<|end|>' -}}
        {%- endfor -%}
        {%- if add_generation_prompt -%}{{ '<|assistant|>OPENED' }}{%- endif -%}"#;
        let source = source.replace("OPENED", opened).replace("LAST", last);
        ChatTemplate::new(&source, [None, Some("<|end|>".to_owned()), None]).expect("compiles")
    };
    let tokens = ["<think>", "</think>", "<|end|>"].map(str::to_owned);
    let mut format = probe("test", &template("", ""), &tokens).expect("is told").format;
    format.reasoning = Catalog::shipped().get("qwen3").expect("qwen3").reasoning.clone();
    let confirmed = |opened, last| confirm(&format, &template(opened, last), &tokens).is_full();
    assert!(confirmed("", ""));
    // The block of reasoning never ends.
    assert!(confirmed("<think>", "<think>"));
    // Only the last turn shows reasoning, and otherwise than the format.
    assert!(!confirmed("", "{{- m.reasoning_content or '' -}}"));
}

/// Reasoning that the prompt opens would be read as text by a format without reasoning.
#[test]
fn prompts_that_open_reasoning_do_not_confirm_formats_without_it() {
    let source = include_str!("../data/families/qwen2_5.jinja");
    let catalog = Catalog::shipped();
    let format = catalog.get("qwen2_5").expect("qwen2_5");
    let tokens = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"].map(str::to_owned);
    let confirmed = |source: &str| {
        let template = ChatTemplate::new(source, [None, Some("<|im_end|>".to_owned()), None]);
        confirm(format, &template.expect("compiles"), &tokens).is_full()
    };
    assert!(confirmed(source));
    let prompt = "'<|im_start|>assistant\\n' -}}{%- endif";
    assert!(source.contains(prompt));
    let opened = "'<|im_start|>assistant\\n<think>\\n' -}}{%- endif";
    assert!(!confirmed(&source.replace(prompt, opened)));
}

/// A family whose calls the template writes otherwise is refused, whatever the template does with
/// text, unless the configuration names this family only.
#[test]
fn contradicted_families_are_refused() {
    for begin in ["", "### "] {
        let source = r#"{%- for m in messages -%}
            {{- '<|im_start|>' + m.role + '\n' }}{{ 'BEGIN' if m.role == 'assistant' }}
            {{- m.content -}}
            {%- for c in m.tool_calls or [] -%}
            {{- '<tool_call>\n{"name": "' + c.function.name + '", "arguments": ' }}
            {{- c.function.arguments | tojson | tojson }}{{ '}\n</tool_call>' }}
            {%- endfor -%}{{- '<|im_end|>' -}}
        {%- endfor -%}
        {%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif -%}"#;
        let source = source.replace("BEGIN", begin);
        let template = ChatTemplate::new(&source, [None, Some("<|im_end|>".to_owned()), None]);
        let mut checkpoint = Checkpoint::default().with_template(template);
        let refused = |checkpoint: &Checkpoint| {
            let found = resolve(checkpoint, &Catalog::shipped(), "test");
            matches!(found, Err(error) if matches!(*error.family, FamilyError::Contradicted { .. }))
        };
        assert!(refused(&checkpoint), "{begin:?}");
        // Several families list it.
        checkpoint.model_type = Some("llama".to_owned());
        assert!(refused(&checkpoint), "{begin:?}");
    }
}

#[test]
fn added_tokens_that_are_not_special_are_text() {
    // As in Gemma's tokenizers, which have them for line breaks and HTML tags.
    let mut checkpoint = checkpoint(&case("a tag for each parameter"));
    let added = ["\n", "\n\n", "  ", "<b>", "</b>", "<parameter=origin>"];
    checkpoint.tokens = added.map(str::to_owned).to_vec();
    let found = resolve(&checkpoint, &Catalog::empty(), "test").expect("a format");
    assert!(found.is_confirmed());
}

/// A template that refuses the ids that Louver makes up would fail at the second request of a
/// conversation.
#[test]
fn formats_are_confirmed_with_the_ids_that_calls_get() {
    let source = include_str!("../data/families/mistral_v11.jinja");
    let calls = "{%- for c in m.tool_calls or [] -%}";
    assert_eq!(source.matches(calls).count(), 1);
    let refusal = "{%- if c.id | length != 9 -%}{{ raise_exception('another id') }}{%- endif -%}";
    let strict = source.replace(calls, &(calls.to_owned() + refusal));
    let catalog = Catalog::shipped();
    let format = catalog.get("mistral_v11").expect("mistral_v11");
    let mut without_ids = format.clone();
    without_ids.call.header.retain(|part| !matches!(part, Part::Maybe { .. }));
    let confirmed = |format: &WireFormat, source: &str| {
        let template = ChatTemplate::new(source, [None, Some("</s>".to_owned()), None]);
        confirm(format, &template.expect("compiles"), &[]).is_full()
    };
    assert!(confirmed(format, source) && confirmed(&without_ids, source));
    assert!(confirmed(format, &strict));
    assert!(!confirmed(&without_ids, &strict));
}

/// A turn after a result that begins otherwise than its prompt is no turn of the format. Published
/// templates of Gemma 4 differ in where they write the begin of a turn after a result.
#[test]
fn turns_after_results_begin_as_their_prompts() {
    let source = include_str!("../data/families/gemma4.jinja");
    let catalog = Catalog::shipped();
    let format = catalog.get("gemma4").expect("gemma4");
    let tokens = ["<|turn>", "<turn|>", "<|tool_response>", "<tool_response|>", "<|tool_call>"];
    let tokens = tokens.map(str::to_owned);
    let differing = |prompt_condition: &str, turn_condition: &str| {
        let begin = "{{- '<|turn>model\\n' -}}";
        assert_eq!(source.matches(begin).count(), 2);
        let (turn, prompt) = source.rsplit_once(begin).expect("two");
        let only_if = |condition| format!("{{%- if {condition} -%}}{begin}{{%- endif -%}}");
        let turn = turn.replace(begin, &only_if(turn_condition));
        let source = turn + &only_if(prompt_condition) + prompt;
        let template = ChatTemplate::new(&source, [None, Some("<turn|>".to_owned()), None]);
        let confirmation = confirm(format, &template.expect("compiles"), &tokens);
        confirmation.unconfirmed().map(|case| case.name).collect::<Vec<_>>()
    };
    let never_after_results = "loop.first or loop.previtem.role != 'tool'";
    let no_result_before_the_prompt = "messages[-1].role != 'tool'";
    let nothing: [&str; 0] = [];
    assert_eq!(differing("true", "true"), nothing);
    assert_eq!(differing(no_result_before_the_prompt, never_after_results), nothing);
    assert_eq!(differing(no_result_before_the_prompt, "true"), ["text after a result"]);
}
