//! The grammars that users send, limits, and results.

use std::collections::HashSet;
use std::fmt;

use anyhow::{Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::regex_to_lark;

pub use crate::earley::ValidationResult;

/// A grammar: a list of Lark texts and schemas, of which the first is the one to generate by and
/// the others are there to refer to, as `@name` in Lark.
///
/// ```
/// use llguidance::api::TopLevelGrammar;
///
/// let grammar = TopLevelGrammar::from_regex("a/b");
/// assert_eq!(grammar.grammars[0].lark_grammar.as_deref(), Some(r"start: /a\/b/"));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopLevelGrammar {
    /// The grammars; the first one begins.
    pub grammars: Vec<GrammarWithLexer>,
    /// How many tokens may be consumed.
    pub max_tokens: Option<usize>,
}

impl TopLevelGrammar {
    /// A regular expression that the whole text matches.
    pub fn from_regex(rx: &str) -> Self {
        Self::from_grammar(GrammarWithLexer::from_regex(rx))
    }

    /// A grammar in Lark.
    pub fn from_lark(lark_grammar: String) -> Self {
        Self::from_grammar(GrammarWithLexer::from_lark(lark_grammar))
    }

    /// A JSON Schema.
    pub fn from_json_schema(json_schema: Value) -> Self {
        Self::from_grammar(GrammarWithLexer::from_json_schema(json_schema))
    }

    /// A list of one.
    pub fn from_grammar(grammar: GrammarWithLexer) -> Self {
        TopLevelGrammar { grammars: vec![grammar], max_tokens: None }
    }

    /// The JSON of a list, or a Lark text.
    pub fn from_lark_or_grammar_list(data: &str) -> Result<Self> {
        match data.trim_start().chars().next() {
            None => bail!("Empty grammar"),
            Some('{') => Ok(serde_json::from_str(data)?),
            Some(_) => Ok(Self::from_lark(data.to_owned())),
        }
    }

    /// A grammar of a kind: `regex`, `json`, `json_schema`, `json_object`, `lark`, `llguidance` or
    /// `guidance`.
    pub fn from_tagged_str(tag: &str, data: &str) -> Result<Self> {
        Ok(match tag {
            "regex" => Self::from_regex(data),
            "json" | "json_schema" => Self::from_json_schema(serde_json::from_str(data)?),
            "json_object" => Self::from_json_schema(json!({"type": "object"})),
            "lark" => Self::from_lark(data.to_owned()),
            "llguidance" | "guidance" => Self::from_lark_or_grammar_list(data)?,
            _ => bail!("unknown constraint type: {tag}"),
        })
    }
}

/// One grammar of a list: a Lark text or a JSON Schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GrammarWithLexer {
    /// The name that others refer to.
    pub name: Option<String>,
    /// A JSON Schema.
    pub json_schema: Option<Value>,
    /// A Lark text.
    pub lark_grammar: Option<String>,
}

impl GrammarWithLexer {
    /// A Lark text named `lark_grammar`.
    pub fn from_lark(lark_grammar: String) -> Self {
        let name = Some("lark_grammar".to_owned());
        GrammarWithLexer { name, lark_grammar: Some(lark_grammar), ..Self::default() }
    }

    /// A schema named `json_schema`.
    pub fn from_json_schema(json_schema: Value) -> Self {
        let name = Some("json_schema".to_owned());
        GrammarWithLexer { name, json_schema: Some(json_schema), ..Self::default() }
    }

    /// A regular expression named `regex`, as Lark.
    pub fn from_regex(rx: &str) -> Self {
        // Two slashes begin a comment.
        let rx = if rx.is_empty() { "()" } else { rx };
        let lark = format!("start: /{}/", regex_to_lark(rx, ""));
        GrammarWithLexer { name: Some("regex".to_owned()), ..Self::from_lark(lark) }
    }
}

/// What a parser is made from.
#[derive(Clone, Debug)]
pub enum GrammarInit {
    /// A list of grammars.
    Serialized(TopLevelGrammar),
}

/// Why a parser has stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// It has not.
    #[default]
    NotStopped,
    /// The grammar-wide number of tokens is used up.
    MaxTokensTotal,
    /// Not used.
    MaxTokensParser,
    /// Nothing can follow, and the text is complete.
    NoExtension,
    /// No token can follow.
    NoExtensionBias,
    /// An end-of-sequence token was consumed.
    EndOfSentence,
    /// A call that cannot be right, or an error.
    InternalError,
    /// The fuel of a mask or a token is used up.
    LexerTooComplex,
    /// Another limit of the parser, or a token that the grammar does not allow.
    ParserTooComplex,
    /// The work was cancelled.
    Cancelled,
}

impl StopReason {
    /// Whether the text is right as far as it goes.
    pub fn is_ok(&self) -> bool {
        use StopReason::{EndOfSentence, NoExtension, NoExtensionBias, NotStopped};
        matches!(self, NotStopped | EndOfSentence | NoExtension | NoExtensionBias)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Bounds on work. Louver counts other units: its own limits are scaled in proportion to how far
/// these are from their defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[repr(C)]
pub struct ParserLimits {
    /// Scales the items of a configuration.
    pub max_items_in_row: usize,
    /// Scales the fuel of a compilation.
    pub initial_lexer_fuel: u64,
    /// Scales the fuel of a mask.
    pub step_lexer_fuel: u64,
    /// Scales the fuel of a mask, too; the lower counts.
    pub step_max_items: usize,
    /// Scales the states of an automaton.
    pub max_lexer_states: usize,
    /// Scales the nodes of a grammar.
    pub max_grammar_size: usize,
    /// Without effect.
    pub precompute_large_lexemes: bool,
    /// Whether errors have a dump of the parser's state.
    pub verbose_errors: bool,
}

impl Default for ParserLimits {
    fn default() -> Self {
        ParserLimits {
            max_items_in_row: 2_000,
            initial_lexer_fuel: 1_000_000,
            step_lexer_fuel: 200_000,
            step_max_items: 50_000,
            max_lexer_states: 250_000,
            max_grammar_size: 500_000,
            precompute_large_lexemes: true,
            verbose_errors: true,
        }
    }
}

/// The grammars of a list, checked: each has one text, and names differ.
pub(crate) fn check_list(list: &TopLevelGrammar) -> Result<&GrammarWithLexer> {
    let mut names = HashSet::new();
    for grammar in &list.grammars {
        let (is_lark, is_schema) = (grammar.lark_grammar.is_some(), grammar.json_schema.is_some());
        ensure!(is_lark || is_schema, "grammar must have either lark_grammar or json_schema");
        ensure!(!(is_lark && is_schema), "cannot have both lark_grammar and json_schema");
        if let Some(name) = &grammar.name {
            ensure!(names.insert(name), "duplicate grammar name: @{name}");
        }
    }
    list.grammars.first().ok_or_else(|| anyhow!("empty grammars array"))
}
