//! What a Lark text says, as it says it.

use std::ops::Range;

/// A piece of the text and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// The statements of a grammar, or of one inside `%lark { ... }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct File<'t> {
    pub(super) definitions: Vec<Definition<'t>>,
    pub(super) imports: Vec<Import<'t>>,
    pub(super) ignores: Vec<Node<'t>>,
    pub(super) options: Options,
    pub(super) span: Range<usize>,
}

/// `%llguidance` and `%grammar_options`, later ones over earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Options {
    /// What is ignored may also stand before the first terminal.
    pub(super) initial_skip: bool,
    /// What is ignored stands at most once between two terminals.
    pub(super) skip_once: bool,
}

/// `%import common.NAME`, perhaps under another name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Import<'t> {
    pub(super) name: Spanned<&'t str>,
    pub(super) alias: Spanned<&'t str>,
}

/// A rule or a terminal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition<'t> {
    pub(super) name: Spanned<&'t str>,
    pub(super) attributes: Attributes<'t>,
    pub(super) body: Node<'t>,
}

/// What stands in brackets behind a rule's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Attributes<'t> {
    pub(super) lazy: bool,
    pub(super) marker: Option<Marker<'t>>,
    pub(super) stop_capture: Option<Spanned<String>>,
    pub(super) max_tokens: Option<u32>,
    pub(super) max_chars: Option<u32>,
    pub(super) capture: Option<String>,
    pub(super) temperature: Option<f32>,
}

impl Attributes<'_> {
    /// Whether the rule is one match that ends as early as it can.
    pub(super) fn is_shortest(&self) -> bool {
        self.lazy || self.marker.is_some()
    }

    /// Whether nothing is said.
    pub(super) fn is_empty(&self) -> bool {
        *self == Attributes::default()
    }
}

/// `suffix=` and `stop=`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marker<'t> {
    pub(super) kind: MarkerKind,
    pub(super) node: Node<'t>,
}

/// Whether a marker is text of the rules around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerKind {
    Suffix,
    Stop,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<'t> {
    pub(super) kind: NodeKind<'t>,
    pub(super) span: Range<usize>,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeKind<'t> {
    /// A rule or a terminal.
    Name(&'t str),
    /// A text; whether the case of ASCII letters does not matter.
    Text(String, bool),
    /// One code point of a range.
    Range(char, char),
    /// A pattern and its flags; the pattern begins one byte behind the node's beginning.
    Regex(&'t str, &'t str),
    /// `<...>`
    Special(&'t str),
    /// `@name`
    Grammar(&'t str),
    /// `%json { ... }`: the schema and where it begins.
    Json(Spanned<&'t str>),
    /// `%regex { ... }`
    Structured(Spanned<&'t str>),
    /// `%lark { ... }`
    Lark(Box<File<'t>>),
    Seq(Vec<Node<'t>>),
    Alt(Vec<Node<'t>>),
    Repeat(Box<Node<'t>>, u32, Option<u32>),
    /// `a & b`
    And(Vec<Node<'t>>),
    /// `~a`
    Not(Box<Node<'t>>),
}

/// Whether a name is a terminal's: its first letter is a capital one.
pub(super) fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}
