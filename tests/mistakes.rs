//! Mistakes that users make in schemas, grammars, patterns and structural tags, and what they are
//! told: `mistakes.jsonl`, one a line.

use louver::compile::Compiled;
use louver::front::ebnf::{self, EbnfDialect, EbnfOptions};
use louver::front::{json_schema, lark, regex, structural_tag};
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::spec::json::Json;
use serde::Deserialize;

/// A malformed spec with parts of its expected error message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    kind: String,
    spec: String,
    #[serde(default)]
    dialect: EbnfDialect,
    /// Parts of the expected message.
    says: Vec<String>,
}

impl Mistake {
    /// The error message; `None` if the spec has no error.
    fn message(&self) -> Option<String> {
        let limits = Limits::default();
        let spec = &self.spec;
        let lowered: Result<Grammar, String> = match &*self.kind {
            "json_schema" => {
                Json::parse(spec, &limits).map_err(|e| e.to_string()).and_then(|schema| {
                    json_schema::lower(&schema, &Default::default(), &limits)
                        .map_err(|errors| errors.to_string())
                })
            }
            "ebnf" => {
                let options = EbnfOptions::default().with_dialect(self.dialect);
                ebnf::lower(spec, &options, &limits).map(|l| l.grammar).map_err(|e| e.to_string())
            }
            "lark" => lark::lower(spec, &Default::default(), &limits)
                .map(|l| l.grammar)
                .map_err(|e| e.to_string()),
            "regex" => regex::lower(spec, &Default::default(), &limits).map_err(|e| e.to_string()),
            "structural_tag" => {
                let lowered = structural_tag::lower(spec, &Default::default(), &limits);
                lowered.map(|l| l.grammar).map_err(|e| e.to_string())
            }
            other => panic!("no kind {other}"),
        };
        match lowered {
            Ok(grammar) => Compiled::new(&grammar, &limits).err().map(|error| error.to_string()),
            Err(message) => Some(message),
        }
    }
}

#[test]
fn mistakes_are_told() {
    let text = include_str!("mistakes.jsonl");
    let mut failures = Vec::new();
    for line in text.lines() {
        let mistake: Mistake = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        match mistake.message() {
            Some(message)
                if !mistake.says.is_empty()
                    && mistake.says.iter().all(|part| message.contains(&**part)) => {}
            message => failures.push(format!("{line}\n    {message:?}")),
        }
    }
    assert!(text.lines().count() >= 60);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Grammars that the references show are grammars, without warnings.
#[test]
fn documented_grammars_are_grammars() {
    let lark = |text: &str| {
        let lowered = lark::lower(text, &Default::default(), &Limits::default());
        lowered.map(|lowered| lowered.warnings)
    };
    let ebnf = |text: &str| {
        let lowered = ebnf::lower(text, &Default::default(), &Limits::default());
        lowered.map(|lowered| lowered.warnings)
    };
    let mut grammars = 0;
    for text in include_str!("../docs/LARK.md").split("```text\n").skip(1) {
        let grammar = text.split("```").next().unwrap();
        let warnings = lark(grammar).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(warnings.is_empty(), "{warnings}");
        grammars += 1;
    }
    for text in include_str!("../docs/EBNF.md").split("```text\n").skip(1) {
        let Some(grammar) = text.split("```").next().filter(|text| text.starts_with("root")) else {
            continue;
        };
        let warnings = ebnf(grammar).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(warnings.is_empty(), "{warnings}");
        grammars += 1;
    }
    assert!(grammars >= 3);
}
