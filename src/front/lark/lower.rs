//! Lowers the syntax trees of Lark files to grammar rules.

use super::ast::{Definition, File, MarkerKind, Node, NodeKind, Spanned, is_terminal};
use super::session::Session;
use super::{parse, substring, token};
use crate::front::LoweredGrammar;
use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Attributes, Budget, BudgetPolicy, Expr, SpecialToken};
use crate::spec::json::Json;

impl Session<'_> {
    /// Lowers the file and all named grammars that it refers to.
    pub(super) fn run(mut self, file: &File<'_>) -> Result<LoweredGrammar, Diagnostics> {
        let start = self.file(file);
        while let Some((name, text, rule, span)) = self.queue.pop() {
            self.named_grammar(name, text, rule, &span);
        }
        if self.diagnostics.has_errors() {
            return Err(self.diagnostics);
        }
        match self.builder.finish(start) {
            Ok(grammar) => Ok(LoweredGrammar { grammar, warnings: self.diagnostics }),
            Err(error) => {
                self.diagnostics.push(Diagnostic::error(0..0, error.to_string()));
                Err(self.diagnostics)
            }
        }
    }

    /// Lowers the statements of a file; returns its start rule.
    fn file(&mut self, file: &File<'_>) -> RuleId {
        FileLowering::new(self, file).run()
    }

    /// Lowers a named grammar. Reports its diagnostics at `span` of the text that refers to it.
    fn named_grammar(
        &mut self,
        name: &str,
        text: &str,
        rule: RuleId,
        span: &std::ops::Range<usize>,
    ) {
        if text.len() > self.limits.source_bytes {
            let message =
                format!("grammar `@{name}` is longer than {} bytes", self.limits.source_bytes);
            return self.report(Diagnostic::error(span.clone(), message));
        }
        let mut inner = Diagnostics::new(name, text);
        let tokens = token::tokenize(text, &mut inner);
        let file = parse::parse(&tokens, &mut inner, self.limits);
        // Errors in grammars that it refers to first are reported at the same position.
        let before = self.queue.len();
        self.has_syntax_errors = inner.has_errors();
        let outer = std::mem::replace(&mut self.diagnostics, inner);
        let start = self.file(&file);
        let inner = std::mem::replace(&mut self.diagnostics, outer);
        self.queue[before..].iter_mut().for_each(|(_, _, _, position)| *position = span.clone());
        self.builder.define(rule, Expr::Ref(start));
        for diagnostic in inner.list() {
            let (line, column) = inner.place(diagnostic.span.start);
            let message = format!(
                "in grammar `@{name}`, line {line}, column {column}: {}",
                diagnostic.message
            );
            self.report(Diagnostic {
                related: None,
                ..Diagnostic { message, span: span.clone(), ..diagnostic.clone() }
            });
        }
    }
}

/// State of lowering a definition to text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextState {
    /// Not begun.
    New,
    /// Being lowered.
    Open,
    /// Not text; the error is reported.
    Failed,
    /// Lowered.
    Done(Expr),
}

/// Lowers one file. Names are local to a file.
pub(super) struct FileLowering<'s, 'o, 'a, 't> {
    pub(super) session: &'s mut Session<'o>,
    pub(super) file: &'a File<'t>,
    /// Definitions by name.
    pub(super) index: HashMap<&'t str, usize>,
    /// Imported terminals by local name, as text and as rules.
    pub(super) imports: HashMap<&'t str, (Expr, RuleId)>,
    /// Rules of regular expressions, by pattern and flags.
    patterns: HashMap<(&'t str, &'t str), RuleId>,
    /// The rule of each definition.
    pub(super) rules: Vec<RuleId>,
    /// The definitions as text.
    pub(super) texts: Vec<TextState>,
    /// The rule of ignored text, allowed after every terminal.
    pub(super) ignore: Option<RuleId>,
    /// Per definition, whether it is a plain-text rule.
    pub(super) plain: Vec<bool>,
    /// Per definition, whether what follows the rule reads its marker.
    pub(super) kept: Vec<bool>,
}

impl<'s, 'o, 'a, 't> FileLowering<'s, 'o, 'a, 't> {
    /// Declares all definitions of a file.
    fn new(session: &'s mut Session<'o>, file: &'a File<'t>) -> Self {
        let rules =
            file.definitions.iter().map(|d| session.builder.declare(d.name.value)).collect();
        let texts = vec![TextState::New; file.definitions.len()];
        let (index, imports, patterns) = Default::default();
        FileLowering {
            session,
            file,
            index,
            imports,
            patterns,
            rules,
            texts,
            ignore: None,
            plain: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Lowers all definitions; returns the start rule.
    fn run(mut self) -> RuleId {
        self.resolve_names();
        self.mark_plain_rules();
        self.lower_ignored();
        self.find_kept_markers();
        for i in 0..self.file.definitions.len() {
            let body = if is_terminal(self.file.definitions[i].name.value) {
                self.definition_text(i)
            } else {
                self.rule(i)
            };
            self.session.builder.define(self.rules[i], body);
        }
        let Some(&start) = self.index.get("start") else {
            if !self.session.has_syntax_errors {
                let message = "there is no rule `start`, from which sentences derive";
                self.session.report(Diagnostic::error(self.file.span.clone(), message));
            }
            return self.session.builder.declare("start");
        };
        if !self.session.has_syntax_errors {
            self.warn_unused(start);
        }
        let rule = self.rules[start];
        match self.ignore.filter(|_| self.file.options.initial_skip) {
            Some(ignore) => {
                self.session.builder.rule("start", Expr::seq([Expr::Ref(ignore), Expr::Ref(rule)]))
            }
            None => rule,
        }
    }

    /// Lowers the `%ignore` statements.
    fn lower_ignored(&mut self) {
        if self.file.ignores.is_empty() {
            return;
        }
        let file = self.file;
        let parts: Vec<Expr> = file.ignores.iter().map(|node| self.text(node)).collect();
        let most = if file.options.skip_once { Some(1) } else { None };
        let body = self.compact(Expr::repeat(Expr::alt(parts), 0, most));
        self.ignore = Some(self.session.builder.rule("ignore", body));
    }

    /// Appends ignored text to an expression.
    pub(super) fn with_ignored(&self, expr: Expr) -> Expr {
        match self.ignore {
            Some(ignore) if expr != Expr::Empty => Expr::seq([expr, Expr::Ref(ignore)]),
            _ => expr,
        }
    }

    /// Lowers the body of a rule and sets the rule's attributes.
    fn rule(&mut self, i: usize) -> Expr {
        let definition: &'a Definition<'t> = &self.file.definitions[i];
        let attributes = attributes(definition);
        if definition.attributes.allow_nothing() {
            return Expr::Empty;
        }
        if definition.attributes.is_shortest() {
            let body = self.shortest_match(definition, None);
            return self.rule_with_attributes(i, attributes, body);
        }
        if !attributes.is_empty() && is_lexeme(&definition.body) {
            let body = self.lexeme(&definition.body);
            return self.rule_with_attributes(i, attributes, body);
        }
        *self.session.builder.attributes(self.rules[i]) = attributes;
        self.node(&definition.body)
    }

    /// A rule that is one terminal with attributes. Ignored text after it is not part of the rule.
    fn rule_with_attributes(&mut self, i: usize, attributes: Attributes, body: Expr) -> Expr {
        if self.ignore.is_none() || attributes.is_empty() {
            *self.session.builder.attributes(self.rules[i]) = attributes;
            return self.with_ignored(body);
        }
        let name = self.file.definitions[i].name.value;
        let inner = self.session.rule_with(name, body, attributes);
        self.with_ignored(inner)
    }

    /// Lowers an expression of a rule.
    pub(super) fn node(&mut self, node: &'a Node<'t>) -> Expr {
        match &node.kind {
            NodeKind::Name(name) if !is_terminal(name) => match self.index.get(name) {
                Some(&i) => Expr::Ref(self.rules[i]),
                None => self.undefined(name, &node.span),
            },
            NodeKind::Seq(items) => self.sequence(items),
            NodeKind::Alt(list) => {
                let parts: Vec<Expr> = list.iter().map(|part| self.node(part)).collect();
                Expr::alt(parts)
            }
            NodeKind::Repeat(body, min, max) => Expr::repeat(self.node(body), *min, *max),
            NodeKind::And(_) | NodeKind::Not(_) => {
                let message = "`&` and `~` are for terminals";
                self.session.report(
                    Diagnostic::error(node.span.clone(), message)
                        .help("define a terminal for this"),
                );
                Expr::Never
            }
            _ => {
                let lexeme = self.lexeme(node);
                self.with_ignored(lexeme)
            }
        }
    }

    /// Lowers a sequence, with tool repeats as dispatches.
    pub(super) fn sequence(&mut self, items: &'a [Node<'t>]) -> Expr {
        let mut parts = Vec::with_capacity(items.len());
        let mut i = 0;
        while let Some(item) = items.get(i) {
            if let Some(next) = items.get(i + 1)
                && let Some(tools) = self.tools(item, next)
            {
                parts.push(tools);
                i += 2;
                continue;
            }
            parts.push(self.node(item));
            i += 1;
        }
        Expr::seq(parts)
    }

    /// Lowers a single terminal, which ignored text cannot interrupt.
    fn lexeme(&mut self, node: &'a Node<'t>) -> Expr {
        match &node.kind {
            NodeKind::Name(name) => match self.index.get(name) {
                Some(&i) => Expr::Ref(self.rules[i]),
                None => match self.imports.get(name) {
                    Some((_, rule)) => Expr::Ref(*rule),
                    None => self.undefined(name, &node.span),
                },
            },
            NodeKind::Special(token) => self.special(token, &node.span),
            NodeKind::Grammar(name) => self.session.grammar_reference(name, &node.span),
            NodeKind::Json(schema) => self.session.schema(schema),
            NodeKind::Lark(file) => Expr::Ref(self.session.file(file)),
            NodeKind::Regex(source, flags) => {
                // Equal patterns share one rule, and with it their masks.
                if let Some(&rule) = self.patterns.get(&(*source, *flags)) {
                    return Expr::Ref(rule);
                }
                let body = self.text(node);
                let body = self.compact(body);
                let rule = self.session.builder.rule("regex", body);
                self.patterns.insert((source, flags), rule);
                Expr::Ref(rule)
            }
            NodeKind::Substring(_) => {
                let body = self.text(node);
                Expr::Ref(self.session.builder.rule("substring", body))
            }
            _ => self.text(node),
        }
    }

    /// Lowers the JSON of `%regex`.
    pub(super) fn substring(&mut self, json: &Spanned<&str>) -> Expr {
        let lowered =
            Json::parse(json.value, self.session.limits).map_err(|error| error.to_string());
        match lowered.and_then(|object| substring::lower(&object, self.session.limits)) {
            // At most three edges per chunk, and each chunk takes at least one byte.
            Ok(expr) if self.session.spend(json.value.len(), &json.span) => expr,
            Ok(_) => Expr::Never,
            Err(message) => self.session.refuse(json.span.clone(), format!("`%regex`: {message}")),
        }
    }

    /// Lowers a special token or token ids.
    fn special(&mut self, token: &str, span: &std::ops::Range<usize>) -> Expr {
        let token = match token.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>")) {
            None => Ok(SpecialToken::Name(token.to_owned())),
            Some(ids) => token_ids(ids, &mut self.session.nodes),
        };
        match token {
            Ok(token) => Expr::Special(self.session.builder.special(token)),
            Err(message) => self.session.refuse(span.clone(), message),
        }
    }
}

/// Parses the token ids of `<[...]>`, and charges them to `nodes`.
fn token_ids(text: &str, nodes: &mut usize) -> Result<SpecialToken, String> {
    if text == "*" {
        return Ok(SpecialToken::AnyBut(Vec::new()));
    }
    let (negated, list) = match text.strip_prefix('^') {
        Some(list) => (true, list),
        None => (false, text),
    };
    let mut ids = Vec::new();
    for part in list.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let id = |digits: &str| {
            let digits = digits.trim();
            let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            all.then(|| digits.parse::<u32>().ok())
                .flatten()
                .ok_or(format!("{part:?} is neither a token id nor a range of ids"))
        };
        let (low, high) = (id(low)?, id(high)?);
        if low > high {
            return Err(format!("the ids of {part:?} are out of order"));
        }
        match nodes.checked_sub((high - low) as usize + 1) {
            Some(rest) => *nodes = rest,
            None => return Err("too many token ids in all of the grammar".to_owned()),
        }
        ids.extend(low..=high);
    }
    ids.sort_unstable();
    ids.dedup();
    let mut tokens: Vec<SpecialToken> = ids.into_iter().map(SpecialToken::Id).collect();
    Ok(match (negated, tokens.len()) {
        (true, _) => SpecialToken::AnyBut(tokens),
        (false, 1) => tokens.swap_remove(0),
        (false, _) => SpecialToken::AnyOf(tokens),
    })
}

/// Whether a rule body is a single terminal, which ignored text cannot interrupt.
fn is_lexeme(node: &Node<'_>) -> bool {
    match &node.kind {
        NodeKind::Name(name) => is_terminal(name),
        NodeKind::Seq(_)
        | NodeKind::Alt(_)
        | NodeKind::Repeat(..)
        | NodeKind::And(_)
        | NodeKind::Not(_) => false,
        _ => true,
    }
}

/// The attributes of the grammar rule. With a suffix, the capture belongs to the text before the
/// suffix instead. A stop marker is hidden from the capture.
pub(super) fn attributes(definition: &Definition<'_>) -> Attributes {
    let syntax = &definition.attributes;
    let on_exhausted = if syntax.is_shortest() { BudgetPolicy::Cut } else { BudgetPolicy::Finish };
    let budget = (syntax.max_tokens.is_some() || syntax.max_chars.is_some()).then_some(Budget {
        tokens: syntax.max_tokens,
        chars: syntax.max_chars,
        on_exhausted,
    });
    let has_suffix = syntax.marker.as_ref().is_some_and(|marker| marker.kind == MarkerKind::Suffix);
    let capture = if has_suffix { None } else { syntax.capture.clone() };
    Attributes { capture, temperature: syntax.temperature, budget, ..Attributes::default() }
}
