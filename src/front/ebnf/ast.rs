//! What a text says, with places, before names mean anything.

use std::ops::Range;
use std::sync::Arc;

use crate::front::regex::RegexOptions;
use crate::fsm::{ByteSet, Dfa};
use crate::ir::{AfterTag, Attributes, DispatchEnd, SpecialToken};

/// A place in the text.
pub(super) type Span = Range<usize>;

/// A name where it stands.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) span: Span,
}

/// One rule.
#[derive(Debug)]
pub(super) struct RuleDef {
    pub(super) name: Name,
    pub(super) attributes: Attributes,
    /// Only the shortest matches: `[lazy]`.
    pub(super) lazy: Option<Span>,
    /// Derivations begin here: `[start]`.
    pub(super) start: Option<Span>,
    pub(super) body: Node,
}

/// An expression where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum Kind {
    Empty,
    Bytes(Vec<u8>),
    /// Code points, as ranges in any order.
    Class {
        ranges: Vec<(u32, u32)>,
        negated: bool,
    },
    ByteClass(ByteSet),
    /// Any code point.
    Any,
    Token(SpecialToken),
    Ref(String),
    /// A grammar of the options: `@name`.
    Import(String),
    Seq(Vec<Node>),
    Alt(Vec<Node>),
    Repeat {
        body: Box<Node>,
        min: u32,
        max: Option<u32>,
    },
    Regex(Box<Regex>),
    /// Chunks that follow each other in this order.
    Substring(Vec<Vec<u8>>),
    /// Texts in which no match of an expression occurs, of at most so many code points (in KBNF,
    /// bytes).
    Except {
        excluded: Box<Node>,
        max: Option<u32>,
    },
    Dispatch(Box<DispatchNode>),
    TokenDispatch(Box<TokenDispatch>),
    Members(Box<MembersNode>),
    Automaton(Arc<Dfa>),
    Graph {
        nodes: u32,
        start: u32,
        ends: Vec<u32>,
        edges: Vec<(u32, Node, u32)>,
    },
}

/// A pattern inside a grammar.
#[derive(Debug)]
pub(super) struct Regex {
    pub(super) pattern: String,
    /// Where the pattern's text stands, without its quotes, if it stands there as it is.
    pub(super) verbatim: Option<usize>,
    pub(super) options: RegexOptions,
    /// Only what may stand between the quotes of a JSON string.
    pub(super) json_string: bool,
    /// Only the shortest matches.
    pub(super) lazy: bool,
}

/// Text or a token that interrupts free text.
#[derive(Debug)]
pub(super) enum TriggerNode {
    Text(Vec<u8>),
    Token(SpecialToken),
    /// A text right before a token.
    Led(Vec<u8>, SpecialToken),
}

#[derive(Debug)]
pub(super) struct DispatchNode {
    pub(super) tags: Vec<(TriggerNode, Span, Name)>,
    pub(super) stops: Vec<TriggerNode>,
    pub(super) excludes: Vec<Vec<u8>>,
    pub(super) after: AfterTag,
    pub(super) end: DispatchEnd,
}

/// Members in any order.
#[derive(Debug)]
pub(super) struct MembersNode {
    pub(super) separator: Node,
    /// Those that come at most once, and whether they must.
    pub(super) once: Vec<(Node, bool)>,
    pub(super) often: Vec<Node>,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
}

/// Free tokens that tokens interrupt.
#[derive(Debug)]
pub(super) struct TokenDispatch {
    pub(super) tags: Vec<(SpecialToken, Name)>,
    pub(super) excludes: Vec<SpecialToken>,
    pub(super) after: AfterTag,
}
