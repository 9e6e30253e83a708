//! Case files: one TOML format for all front ends.
//!
//! ```toml
//! [[case]]
//! name = "enum-shares-prefix"
//! # or: regex = '...', with regex-options = { scope = "search" }; lark = '...'; ebnf = '...', with
//! # dialect = "gbnf"; ebnf-file = 'name'; structural-tag = '{"format": ...}'
//! json-schema = '{"enum": ["on", "only"]}'
//! # or "toy-bytes"; every vocabulary has the 256 bytes and <|end|>
//! vocab = ["on", "ly"]
//! accepts = ['"on"', '"only"']               # whole sentences
//! rejects = ['"o"']                          # anything else
//! prefixes = ['"o']                          # beginnings of sentences
//! dead = ['"x']                              # beginnings of none
//! mask-after = { '"on' = ['"', 'l', 'ly'] }  # exactly these tokens, <|end|> for the stop token
//! ```
//!
//! A spec that must be refused has `refused` instead: a part of the error's text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use louver::engine::{Constraint, Engine};
use louver::front::ebnf::{self, EbnfDialect, EbnfOptions};
use louver::front::lark::{self, LarkOptions, NamedGrammar};
use louver::front::structural_tag::{self, LoweredTag, StructuralTagOptions};
use louver::front::{json_schema, regex};
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Case {
    pub(crate) name: String,
    json_schema: Option<String>,
    #[serde(default)]
    schema_options: json_schema::SchemaOptions,
    regex: Option<String>,
    #[serde(default)]
    regex_options: regex::RegexOptions,
    structural_tag: Option<String>,
    ebnf: Option<String>,
    ebnf_file: Option<String>,
    #[serde(default)]
    dialect: EbnfDialect,
    /// Parts of the expected warnings, in the order of the text.
    #[serde(default)]
    warnings: Vec<String>,
    lark: Option<String>,
    /// Lark grammars that `lark` may refer to as `@name`.
    #[serde(default)]
    named: BTreeMap<String, String>,
    #[serde(default)]
    vocab: CaseVocabulary,
    #[serde(default)]
    pub(crate) accepts: Vec<String>,
    #[serde(default)]
    pub(crate) rejects: Vec<String>,
    #[serde(default)]
    pub(crate) prefixes: Vec<String>,
    #[serde(default)]
    pub(crate) dead: Vec<String>,
    #[serde(default)]
    pub(crate) mask_after: BTreeMap<String, Vec<String>>,
    pub(crate) refused: Option<String>,
}

/// The tokens beside the bytes and the stop token.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CaseVocabulary {
    Named(ToyBytes),
    Extra(Vec<String>),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ToyBytes {
    ToyBytes,
}

impl Default for CaseVocabulary {
    fn default() -> Self {
        CaseVocabulary::Named(ToyBytes::ToyBytes)
    }
}

impl Case {
    /// The grammar of the case, or why it is rejected.
    pub(crate) fn grammar(&self) -> Result<Grammar, String> {
        let limits = Limits::default();
        if let Some(tag) = &self.structural_tag {
            let options = StructuralTagOptions::default();
            let lowered = structural_tag::lower(tag, &options, &limits);
            let LoweredTag { grammar, warnings } = lowered.map_err(|e| e.to_string())?;
            let warnings = warnings.iter().map(ToString::to_string);
            return self.with_warnings(grammar, warnings, false);
        }
        match (&self.json_schema, &self.regex, &self.lark, &self.ebnf) {
            (Some(schema), None, None, None) => {
                let schema = Json::parse(schema, &limits).map_err(|e| e.to_string())?;
                json_schema::lower(&schema, &self.schema_options, &limits)
                    .map_err(|e| e.to_string())
            }
            (None, Some(pattern), None, None) => {
                regex::lower(pattern, &self.regex_options, &limits).map_err(|e| e.to_string())
            }
            (None, None, Some(text), None) => {
                let named = self
                    .named
                    .iter()
                    .map(|(name, text)| (name.clone(), NamedGrammar::Lark(text.clone())));
                let options = LarkOptions::default().with_named(named.collect());
                let lowered = lark::lower(text, &options, &limits).map_err(|e| e.to_string())?;
                self.with_warnings(lowered.grammar, lowered.warnings.lines(), false)
            }
            (None, None, None, Some(text)) => self.ebnf(text, &limits),
            _ => {
                panic!("{}: a case has exactly one of json-schema, regex, lark and ebnf", self.name)
            }
        }
    }

    fn ebnf(&self, text: &str, limits: &Limits) -> Result<Grammar, String> {
        let options = EbnfOptions::default().with_dialect(self.dialect);
        let lowered = ebnf::lower(text, &options, limits).map_err(|e| e.to_string())?;
        self.with_warnings(lowered.grammar, lowered.warnings.lines(), true)
    }

    /// The grammar, if it has the expected warnings. Where `all` is false, a case without warnings
    /// does not check them.
    fn with_warnings(
        &self,
        grammar: Grammar,
        warnings: impl Iterator<Item = String>,
        all: bool,
    ) -> Result<Grammar, String> {
        if self.warnings.is_empty() && !all {
            return Ok(grammar);
        }
        let warnings: Vec<String> = warnings.collect();
        let expected = warnings.len() == self.warnings.len()
            && warnings.iter().zip(&self.warnings).all(|(got, want)| got.contains(&**want));
        if expected { Ok(grammar) } else { Err(format!("warnings are {warnings:?}")) }
    }

    /// The 256 bytes, the stop token, then the case's own tokens.
    pub(crate) fn vocabulary(&self) -> Vocabulary {
        match &self.vocab {
            CaseVocabulary::Named(ToyBytes::ToyBytes) => Vocabulary::toy(&[]),
            CaseVocabulary::Extra(words) => {
                Vocabulary::toy(&words.iter().map(String::as_bytes).collect::<Vec<_>>())
            }
        }
    }

    /// The case's constraint, by a new engine.
    pub(crate) fn constraint(&self, grammar: &Grammar) -> Result<Constraint, String> {
        let engine = Engine::new(self.vocabulary().into(), Default::default());
        engine.compile(grammar).map_err(|e| e.to_string())
    }
}

/// Every case of every file below `tests/data`, with the file's path.
pub(crate) fn all() -> Vec<(PathBuf, Case)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files = Vec::new();
    collect_files(&root, &mut files);
    files.sort();
    let mut out = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a readable case file");
        let file: File =
            toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for mut case in file.case {
            if let Some(name) = &case.ebnf_file {
                let text = std::fs::read_to_string(path.with_file_name(name));
                case.ebnf =
                    Some(text.unwrap_or_else(|e| panic!("{}: {name}: {e}", path.display())));
            }
            out.push((path.clone(), case));
        }
    }
    out
}

fn collect_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("tests/data is there") {
        let path = entry.expect("an entry").path();
        // Cases of simplification have another format.
        if path.is_dir() && path.ends_with("simplify") {
        } else if path.is_dir() {
            collect_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "toml") {
            out.push(path);
        }
    }
}
