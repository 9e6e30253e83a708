//! Abstract syntax tree of a Lark text.

use std::ops::Range;

use crate::front::diagnostic::UniqueKeys;

/// A value with its byte range in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// The statements of a grammar, or of a nested grammar in `%lark { ... }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct File<'t> {
    pub(super) definitions: Vec<Definition<'t>>,
    pub(super) imports: Vec<Import<'t>>,
    pub(super) ignores: Vec<Node<'t>>,
    pub(super) options: Options,
    pub(super) span: Range<usize>,
}

/// Options set by `%llguidance` and `%grammar_options`. Later ones override earlier ones, with a
/// warning.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    /// Ignored text is also allowed before the first terminal.
    pub(super) initial_skip: bool,
    /// Ignored text occurs at most once between two terminals.
    pub(super) skip_once: bool,
    /// The options set so far.
    pub(super) keys: UniqueKeys,
}

/// `%import common.NAME`, with an optional alias.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Import<'t> {
    pub(super) name: Spanned<&'t str>,
    pub(super) alias: Spanned<&'t str>,
}

/// The definition of a rule or a terminal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition<'t> {
    pub(super) name: Spanned<&'t str>,
    pub(super) attributes: RuleAttributes<'t>,
    pub(super) body: Node<'t>,
}

/// The attributes in brackets after the name of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RuleAttributes<'t> {
    /// The rule is a shortest match.
    pub(super) lazy: bool,
    /// `suffix=` or `stop=`.
    pub(super) marker: Option<Marker<'t>>,
    /// Name of the capture of the marker.
    pub(super) stop_capture: Option<Spanned<String>>,
    /// Budget of tokens.
    pub(super) max_tokens: Option<u32>,
    /// Budget of code points.
    pub(super) max_chars: Option<u32>,
    /// Name of the capture of the rule.
    pub(super) capture: Option<String>,
    /// Sampling temperature within the rule.
    pub(super) temperature: Option<f32>,
}

impl RuleAttributes<'_> {
    /// Whether the rule is a single shortest match.
    pub(super) fn is_shortest(&self) -> bool {
        self.lazy || self.marker.is_some()
    }

    /// Whether a budget leaves the rule nothing but the empty text.
    pub(super) fn allow_nothing(&self) -> bool {
        [self.max_tokens, self.max_chars].contains(&Some(0))
    }

    /// Whether there are no attributes.
    pub(super) fn is_empty(&self) -> bool {
        *self == RuleAttributes::default()
    }
}

/// The text that ends a shortest match.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marker<'t> {
    pub(super) kind: MarkerKind,
    pub(super) node: Node<'t>,
}

/// Kind of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerKind {
    /// `suffix=`: the marker is part of the rule's text.
    Suffix,
    /// `stop=`: the marker is hidden from the rule's text, or not part of it.
    Stop,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<'t> {
    pub(super) kind: NodeKind<'t>,
    pub(super) span: Range<usize>,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeKind<'t> {
    /// A reference to a rule or a terminal.
    Name(&'t str),
    /// A text, and whether the case of its ASCII letters is ignored.
    Text(String, bool),
    /// One code point of a range.
    Range(char, char),
    /// A pattern and its flags. The pattern begins one byte after the start of the node.
    Regex(&'t str, &'t str),
    /// `<...>`: a special token.
    Special(&'t str),
    /// `@name`: a named grammar.
    Grammar(&'t str),
    /// `%json { ... }`: a schema.
    Json(Spanned<&'t str>),
    /// `%regex { ... }`: substrings of a text.
    Substring(Spanned<&'t str>),
    /// `%lark { ... }`: a nested grammar.
    Lark(Box<File<'t>>),
    /// A sequence.
    Seq(Vec<Node<'t>>),
    /// Alternatives.
    Alt(Vec<Node<'t>>),
    /// A repeat with a lower and an upper bound.
    Repeat(Box<Node<'t>>, u32, Option<u32>),
    /// `a & b`: an intersection.
    And(Vec<Node<'t>>),
    /// `~a`: a complement.
    Not(Box<Node<'t>>),
}

/// Whether a name is that of a terminal: its first letter is upper-case.
pub(super) fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

impl<'t> Node<'t> {
    /// The only node of a list, or else the node of a kind that has them all.
    pub(super) fn of_list(
        mut list: Vec<Node<'t>>,
        kind: fn(Vec<Node<'t>>) -> NodeKind<'t>,
        span: Range<usize>,
    ) -> Node<'t> {
        match list.len() {
            1 => list.swap_remove(0),
            _ => Node { kind: kind(list), span },
        }
    }

    /// The operands of an expression.
    pub(super) fn operands(&self) -> &[Node<'t>] {
        match &self.kind {
            NodeKind::Seq(parts) | NodeKind::Alt(parts) | NodeKind::And(parts) => parts,
            NodeKind::Repeat(body, ..) | NodeKind::Not(body) => std::slice::from_ref(body),
            _ => &[],
        }
    }
}

/// Calls `visit` with every name in an expression, without nested grammars.
pub(super) fn for_each_name<'t>(node: &Node<'t>, visit: &mut dyn FnMut(&'t str, &Range<usize>)) {
    if let NodeKind::Name(name) = node.kind {
        visit(name, &node.span);
    }
    node.operands().iter().for_each(|operand| for_each_name(operand, visit));
}
