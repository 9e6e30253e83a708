//! Abstract syntax tree of an EBNF text, with byte ranges and unresolved names.

use std::ops::Range;
use std::sync::Arc;

use crate::front::regex::RegexOptions;
use crate::fsm::{ByteSet, Dfa};
use crate::ir::{AfterTag, Attributes, DispatchEnd, Graph, PresenceClause, SpecialToken};

/// A byte range of the text.
pub(super) type ByteSpan = Range<usize>;

/// A name with its range.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) span: ByteSpan,
}

/// The definition of a rule.
#[derive(Debug)]
pub(super) struct RuleDef {
    pub(super) name: Name,
    pub(super) attributes: Attributes,
    /// Range of the option `lazy`: the rule matches only shortest texts.
    pub(super) lazy: Option<ByteSpan>,
    /// Range of the option `start`: this is the start rule.
    pub(super) start: Option<ByteSpan>,
    pub(super) body: Node,
    /// The look-ahead after the body. It restricts nothing.
    pub(super) look_ahead: Option<Node>,
}

/// The options of a rule.
#[derive(Default)]
pub(super) struct RuleOptions {
    /// The attributes of the grammar rule.
    pub(super) attributes: Attributes,
    /// Range of `lazy`.
    pub(super) lazy: Option<ByteSpan>,
    /// Range of `start`.
    pub(super) start: Option<ByteSpan>,
    /// `capture` without a value: a capture named after the rule.
    pub(super) capture_by_rule_name: bool,
}

/// An expression with its range.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: SyntaxKind,
    pub(super) span: ByteSpan,
}

/// The kinds of expressions.
#[derive(Debug)]
pub(super) enum SyntaxKind {
    /// The empty text.
    Empty,
    /// A text.
    Bytes(Vec<u8>),
    /// A class of code points, as ranges in any order.
    Class { ranges: Vec<(u32, u32)>, negated: bool },
    /// A class of bytes.
    ByteClass(ByteSet),
    /// Any code point.
    Any,
    /// A special token.
    Token(SpecialToken),
    /// A reference to a rule.
    Ref(String),
    /// `@name`: a grammar of the options.
    Import(String),
    /// A sequence.
    Seq(Vec<Node>),
    /// Alternatives.
    Alt(Vec<Node>),
    /// A repeat with a lower and an upper bound.
    Repeat { body: Box<Node>, min: u32, max: Option<u32> },
    /// A regular expression.
    Regex(Box<RegexNode>),
    /// A run of consecutive chunks of this list.
    Substring(Vec<Vec<u8>>),
    /// Texts that contain no match of an expression, of at most `max` code points (in KBNF, bytes).
    Except { excluded: Box<Node>, max: Option<u32> },
    /// A tag dispatch.
    Dispatch(Box<DispatchNode>),
    /// A tag dispatch over whole tokens.
    TokenDispatch(Box<TokenDispatchNode>),
    /// A member set.
    Members(Box<MembersNode>),
    /// An automaton over bytes.
    Automaton(Arc<Dfa>),
    /// A graph of expressions.
    Graph(Graph<Node>),
}

/// A regular expression in a grammar.
#[derive(Debug)]
pub(super) struct RegexNode {
    pub(super) pattern: String,
    /// Offset of the pattern in the text, if it occurs there verbatim.
    pub(super) verbatim: Option<usize>,
    pub(super) options: RegexOptions,
    /// Match only texts that are allowed between the quotes of a JSON string.
    pub(super) json_string: bool,
    /// Match only shortest texts.
    pub(super) lazy: bool,
}

/// A trigger, which interrupts free text: a text, a token, or a text directly before a token.
#[derive(Debug)]
pub(super) struct TriggerNode {
    pub(super) text: Vec<u8>,
    pub(super) token: Option<SpecialToken>,
}

/// A tag dispatch.
#[derive(Debug)]
pub(super) struct DispatchNode {
    pub(super) tags: Vec<(TriggerNode, ByteSpan, Name)>,
    pub(super) stops: Vec<TriggerNode>,
    pub(super) excludes: Vec<Vec<u8>>,
    pub(super) after: AfterTag,
    pub(super) end: DispatchEnd,
}

/// A member set: members in any order.
#[derive(Debug)]
pub(super) struct MembersNode {
    pub(super) separator: Node,
    /// Members that occur at most once, and whether they are required.
    pub(super) unique: Vec<(Node, bool)>,
    /// Members that may repeat.
    pub(super) repeatable: Vec<Node>,
    pub(super) min: u32,
    /// Whether each member that may repeat counts towards `min`.
    pub(super) count_repeatable: bool,
    pub(super) max: Option<u32>,
    pub(super) clauses: Vec<PresenceClause>,
}

/// A tag dispatch over whole tokens.
#[derive(Debug)]
pub(super) struct TokenDispatchNode {
    pub(super) tags: Vec<(SpecialToken, Name)>,
    pub(super) excludes: Vec<SpecialToken>,
    pub(super) after: AfterTag,
}
