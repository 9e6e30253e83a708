//! Structural tags as values: what a document says, before it means anything.

use crate::spec::json::Json;

/// A whole document.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuralTag {
    /// What the text must look like.
    pub format: Format,
}

/// What a piece of text must look like.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// Exactly this text.
    ConstString {
        /// The text; may be empty.
        value: String,
    },
    /// A value of a JSON Schema.
    JsonSchema(JsonSchema),
    /// Any text.
    AnyText {
        /// Texts that do not occur in it.
        excludes: Vec<String>,
        /// Most tokens.
        max_tokens: Option<u32>,
        /// Most code points.
        max_chars: Option<u32>,
    },
    /// A sentence of a grammar.
    Grammar {
        /// The grammar's text.
        grammar: String,
        /// Its language.
        syntax: GrammarSyntax,
    },
    /// A text that matches a regular expression as a whole.
    Regex {
        /// The expression.
        pattern: String,
    },
    /// All, one after the other.
    Sequence {
        /// At least one.
        elements: Vec<Format>,
    },
    /// Any one.
    Or {
        /// At least one.
        elements: Vec<Format>,
    },
    /// Or nothing.
    Optional {
        /// What there may be.
        content: Box<Format>,
    },
    /// At least once.
    Plus {
        /// What is repeated.
        content: Box<Format>,
    },
    /// Any number of times.
    Star {
        /// What is repeated.
        content: Box<Format>,
    },
    /// So many times.
    Repeat {
        /// Fewest times.
        min: u32,
        /// Most times; `None` (written -1) for any number.
        max: Option<u32>,
        /// What is repeated.
        content: Box<Format>,
    },
    /// Something between two markers.
    Tag(Box<Tag>),
    /// Free text; where it has a trigger, one of the tags that begin with it goes on.
    TriggeredTags {
        /// At least one. Each tag begins with exactly one of them.
        triggers: Vec<String>,
        /// At least one; their beginnings are texts.
        tags: Vec<Tag>,
        /// Texts that do not occur in free text.
        excludes: Vec<String>,
        /// How many tags.
        count: TagCount,
    },
    /// Tags with a text between each two, and nothing else.
    TagsWithSeparator {
        /// The tags there may be.
        tags: Vec<Tag>,
        /// What stands between two; may be empty.
        separator: String,
        /// How many tags.
        count: TagCount,
    },
    /// Free text; behind a pattern its format follows.
    Dispatch {
        /// Pattern and format; at least one.
        rules: Vec<(String, Format)>,
        /// Whether free text goes on behind a format. `true` if not written.
        repeats: bool,
        /// Texts that do not occur in free text.
        excludes: Vec<String>,
    },
    /// One token.
    Token(Token),
    /// One token that is none of these (and does not end the tag around it).
    ExcludeToken {
        /// Those that are left out.
        exclude_tokens: Vec<Token>,
    },
    /// Tokens that are none of these (and do not end the tag around them).
    AnyTokens {
        /// Those that are left out.
        exclude_tokens: Vec<Token>,
        /// Most tokens.
        max_tokens: Option<u32>,
    },
    /// Free tokens; behind a trigger, one of the tags that begin with it goes on.
    TokenTriggeredTags {
        /// At least one.
        trigger_tokens: Vec<Token>,
        /// At least one; their beginnings are tokens, each a trigger.
        tags: Vec<Tag>,
        /// Tokens that are not free.
        exclude_tokens: Vec<Token>,
        /// How many tags.
        count: TagCount,
    },
    /// Free tokens; behind one of these its format follows.
    TokenDispatch {
        /// Token and format; at least one.
        rules: Vec<(Token, Format)>,
        /// Whether free tokens go on behind a format. `true` if not written.
        repeats: bool,
        /// Tokens that are not free.
        exclude_tokens: Vec<Token>,
    },
}

/// The language of a grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GrammarSyntax {
    /// EBNF or GBNF; the start is the rule `root`.
    #[default]
    Ebnf,
    /// Lark; the start is the rule `start`.
    Lark,
}

/// The `json_schema` format.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonSchema {
    /// The schema: an object, `true` or `false`.
    pub schema: Json,
    /// How the value is written.
    pub style: Style,
    /// Whether members may come in any order.
    pub any_order: bool,
    /// Most bytes of white space in one gap; `None`: as the options say.
    pub max_whitespace: Option<u32>,
    /// Written as `qwen_xml_parameter`, the older name of the style `qwen_xml`.
    pub older_name: bool,
}

/// How a value of a JSON Schema is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// As JSON.
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
    /// `<cofl:value name="K" type="raw|json|dict|list">V</cofl:value>` for each member, and for what is inside.
    CohereXml,
    /// `<|open|>argument key="K" type="T"<|sep|>V<|close|>argument<|sep|>` for each member.
    KimiK3Xml,
}

impl Style {
    /// All of them with their names.
    pub const ALL: [(Style, &str); 7] = [
        (Style::Json, "json"),
        (Style::QwenXml, "qwen_xml"),
        (Style::MinimaxXml, "minimax_xml"),
        (Style::DeepseekXml, "deepseek_xml"),
        (Style::GlmXml, "glm_xml"),
        (Style::CohereXml, "cohere_xml"),
        (Style::KimiK3Xml, "kimi_k3_xml"),
    ];

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        Style::ALL.iter().find(|(style, _)| *style == self).map_or("json", |(_, name)| name)
    }
}

/// Something between two markers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// How it begins.
    pub begin: Begin,
    /// What stands inside.
    pub content: Format,
    /// How it ends.
    pub end: End,
}

/// How a tag begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// With a text; may be empty.
    Text(String),
    /// With a token.
    Token(Token),
}

/// How a tag ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// With a text; may be empty where what it ends is bounded.
    Text(String),
    /// With any of these.
    Texts(Vec<String>),
    /// With a token.
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

/// How many tags there may be: `at_least_one` and `stop_after_first` of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TagCount {
    /// Any number.
    #[default]
    Any,
    /// One or more. Nothing stands before the first.
    AtLeastOne,
    /// One or none; then it ends.
    AtMostOne,
    /// One.
    One,
}

impl TagCount {
    /// From the two members of a document.
    pub fn new(at_least_one: bool, stop_after_first: bool) -> TagCount {
        match (at_least_one, stop_after_first) {
            (false, false) => TagCount::Any,
            (true, false) => TagCount::AtLeastOne,
            (false, true) => TagCount::AtMostOne,
            (true, true) => TagCount::One,
        }
    }

    /// `at_least_one`.
    pub fn at_least_one(self) -> bool {
        matches!(self, TagCount::AtLeastOne | TagCount::One)
    }

    /// `stop_after_first`.
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
