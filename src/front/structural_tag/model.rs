//! Typed values of structural tags: the syntax tree of a document.

use crate::front::ebnf::EbnfDialect;
use crate::ir::SpecialToken;
use crate::spec::json::Json;

/// A structural tag document.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuralTag {
    /// The format of the whole text.
    pub format: Format,
}

/// The format of a piece of text.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// A fixed text.
    ConstString {
        /// The text; may be empty.
        value: String,
    },
    /// A value that satisfies a JSON Schema.
    JsonSchema(JsonSchema),
    /// Any text.
    AnyText {
        /// Texts that do not occur in it.
        excludes: Vec<String>,
        /// Maximum number of tokens.
        max_tokens: Option<u32>,
        /// Maximum number of code points.
        max_chars: Option<u32>,
    },
    /// A sentence of a grammar.
    Grammar {
        /// The grammar's text.
        grammar: String,
        /// Its notation.
        syntax: GrammarSyntax,
    },
    /// A text that matches a regular expression as a whole.
    Regex {
        /// The expression.
        pattern: String,
    },
    /// All elements, one after the other.
    Sequence {
        /// The elements, at least one.
        elements: Vec<Format>,
    },
    /// One of the elements.
    Or {
        /// The elements, at least one.
        elements: Vec<Format>,
    },
    /// The content or nothing.
    Optional {
        /// The optional format.
        content: Box<Format>,
    },
    /// The content, one or more times.
    Plus {
        /// The repeated format.
        content: Box<Format>,
    },
    /// The content, any number of times.
    Star {
        /// The repeated format.
        content: Box<Format>,
    },
    /// The content, a bounded number of times.
    Repeat {
        /// Minimum number of times.
        min: u32,
        /// Maximum number of times; `None` (written -1) is unbounded.
        max: Option<u32>,
        /// The repeated format.
        content: Box<Format>,
    },
    /// Content between two markers.
    Tag(Box<Tag>),
    /// Free text with tags. A trigger in free text begins one of the tags that start with it.
    TriggeredTags {
        /// The triggers, at least one. Each tag begins with exactly one of them.
        triggers: Vec<String>,
        /// The tags, at least one. Their beginnings are texts.
        tags: Vec<Tag>,
        /// Texts that do not occur in free text.
        excludes: Vec<String>,
        /// The number of tags.
        count: TagCount,
    },
    /// Tags with a text between consecutive ones, and no free text.
    TagsWithSeparator {
        /// The allowed tags.
        tags: Vec<Tag>,
        /// The text between consecutive tags; may be empty.
        separator: String,
        /// The number of tags.
        count: TagCount,
    },
    /// Free text in which each pattern is followed by its format.
    Dispatch {
        /// Patterns with their formats; at least one.
        rules: Vec<(String, Format)>,
        /// Whether free text continues after a format. Defaults to `true`.
        repeats: bool,
        /// Texts that do not occur in free text.
        excludes: Vec<String>,
    },
    /// One token.
    Token(Token),
    /// One token that is not excluded and does not end the enclosing tag.
    ExcludeToken {
        /// The excluded tokens.
        exclude_tokens: Vec<Token>,
    },
    /// Any number of tokens that are not excluded and do not end the enclosing tag.
    AnyTokens {
        /// The excluded tokens.
        exclude_tokens: Vec<Token>,
        /// Maximum number of tokens.
        max_tokens: Option<u32>,
    },
    /// Free tokens with tags. A trigger token begins one of the tags that start with it.
    TokenTriggeredTags {
        /// The trigger tokens, at least one.
        trigger_tokens: Vec<Token>,
        /// The tags, at least one. Each begins with a trigger token.
        tags: Vec<Tag>,
        /// Tokens that are not free.
        exclude_tokens: Vec<Token>,
        /// The number of tags.
        count: TagCount,
    },
    /// Free tokens in which each trigger token is followed by its format.
    TokenDispatch {
        /// Trigger tokens with their formats; at least one.
        rules: Vec<(Token, Format)>,
        /// Whether free tokens continue after a format. Defaults to `true`.
        repeats: bool,
        /// Tokens that are not free.
        exclude_tokens: Vec<Token>,
    },
}

/// The notation of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrammarSyntax {
    /// A dialect of EBNF; the start rule is `root`.
    Ebnf(EbnfDialect),
    /// Lark; the start rule is `start`.
    Lark,
}

impl GrammarSyntax {
    /// All notations with their names in documents. The first one is the default.
    pub const ALL: [(GrammarSyntax, &str); 5] = [
        (GrammarSyntax::Ebnf(EbnfDialect::Common), "ebnf"),
        (GrammarSyntax::Ebnf(EbnfDialect::Gbnf), "gbnf"),
        (GrammarSyntax::Ebnf(EbnfDialect::Kbnf), "kbnf"),
        (GrammarSyntax::Ebnf(EbnfDialect::Xgrammar), "xgrammar"),
        (GrammarSyntax::Lark, "lark"),
    ];

    /// The name of the notation in documents.
    pub fn name(self) -> &'static str {
        GrammarSyntax::ALL.iter().find(|(syntax, _)| *syntax == self).map_or("ebnf", |(_, n)| n)
    }
}

impl Default for GrammarSyntax {
    fn default() -> Self {
        GrammarSyntax::Ebnf(EbnfDialect::Common)
    }
}

/// The `json_schema` format.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonSchema {
    /// The schema: an object, `true` or `false`.
    pub schema: Json,
    /// The syntax of the value.
    pub style: Style,
    /// Whether members may come in any order; `None` leaves it to the options.
    pub any_order: Option<bool>,
    /// Maximum number of white-space bytes between two JSON tokens; `None` leaves it to the
    /// options.
    pub max_whitespace: Option<u32>,
    /// The format is written as `qwen_xml_parameter`, the older name of the style `qwen_xml`.
    pub older_name: bool,
}

/// The syntax of a value of a JSON Schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// JSON.
    #[default]
    Json,
    /// `<parameter=K>V</parameter>` for each member.
    QwenXml,
    /// `<parameter name="K">V</parameter>` for each member.
    MinimaxXml,
    /// `<｜DSML｜parameter name="K" string="true|false">V</｜DSML｜parameter>` for each member.
    DeepseekXml,
    /// `<arg_key>K</arg_key><arg_value>V</arg_value>` for each member.
    GlmXml,
    /// `<cofl:value name="K" type="raw|json|dict|list">V</cofl:value>` for each member and nested
    /// value.
    CohereXml,
    /// `<|open|>argument key="K" type="T"<|sep|>V<|close|>argument<|sep|>` for each member.
    KimiK3Xml,
}

impl Style {
    /// All styles with their names.
    pub const ALL: [(Style, &str); 7] = [
        (Style::Json, "json"),
        (Style::QwenXml, "qwen_xml"),
        (Style::MinimaxXml, "minimax_xml"),
        (Style::DeepseekXml, "deepseek_xml"),
        (Style::GlmXml, "glm_xml"),
        (Style::CohereXml, "cohere_xml"),
        (Style::KimiK3Xml, "kimi_k3_xml"),
    ];

    /// The name of the style in documents.
    pub fn name(self) -> &'static str {
        Style::ALL.iter().find(|(style, _)| *style == self).map_or("json", |(_, name)| name)
    }
}

/// Content between two markers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// The beginning.
    pub begin: Begin,
    /// The format between the markers.
    pub content: Format,
    /// The end.
    pub end: End,
}

/// The beginning of a tag.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// A text; may be empty.
    Text(String),
    /// A token.
    Token(Token),
}

/// The end of a tag.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// A text; may be empty if the content has an end of its own.
    Text(String),
    /// One of several texts.
    Texts(Vec<String>),
    /// A token.
    Token(Token),
}

/// A token of the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// By its id.
    Id(u32),
    /// By its text.
    Text(String),
}

impl Token {
    /// The token as a special token of a grammar.
    pub(super) fn special(&self) -> SpecialToken {
        match self {
            Token::Id(id) => SpecialToken::Id(*id),
            Token::Text(text) => SpecialToken::Name(text.clone()),
        }
    }
}

/// The number of tags: the members `at_least_one` and `stop_after_first` of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TagCount {
    /// Any number.
    #[default]
    Any,
    /// One or more, without free text before the first.
    AtLeastOne,
    /// None or one, with no free text after it.
    AtMostOne,
    /// Exactly one, without free text.
    One,
}

impl TagCount {
    /// The count for the two members of a document.
    pub fn new(at_least_one: bool, stop_after_first: bool) -> TagCount {
        match (at_least_one, stop_after_first) {
            (false, false) => TagCount::Any,
            (true, false) => TagCount::AtLeastOne,
            (false, true) => TagCount::AtMostOne,
            (true, true) => TagCount::One,
        }
    }

    /// The member `at_least_one`.
    pub fn at_least_one(self) -> bool {
        matches!(self, TagCount::AtLeastOne | TagCount::One)
    }

    /// The member `stop_after_first`.
    pub fn stop_after_first(self) -> bool {
        matches!(self, TagCount::AtMostOne | TagCount::One)
    }
}

impl Format {
    /// The name of the format's type in documents.
    pub fn kind(&self) -> &'static str {
        match self {
            Format::ConstString { .. } => "const_string",
            Format::JsonSchema(JsonSchema { older_name: true, .. }) => "qwen_xml_parameter",
            Format::JsonSchema(_) => "json_schema",
            Format::AnyText { .. } => "any_text",
            Format::Grammar { .. } => "grammar",
            Format::Regex { .. } => "regex",
            Format::Sequence { .. } => "sequence",
            Format::Or { .. } => "or",
            Format::Optional { .. } => "optional",
            Format::Plus { .. } => "plus",
            Format::Star { .. } => "star",
            Format::Repeat { .. } => "repeat",
            Format::Tag(_) => "tag",
            Format::TriggeredTags { .. } => "triggered_tags",
            Format::TagsWithSeparator { .. } => "tags_with_separator",
            Format::Dispatch { .. } => "dispatch",
            Format::Token(_) => "token",
            Format::ExcludeToken { .. } => "exclude_token",
            Format::AnyTokens { .. } => "any_tokens",
            Format::TokenTriggeredTags { .. } => "token_triggered_tags",
            Format::TokenDispatch { .. } => "token_dispatch",
        }
    }
}
