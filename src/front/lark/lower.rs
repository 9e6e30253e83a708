//! Rules to the grammar.

use super::ast::{Definition, File, MarkerKind, Node, NodeKind, Spanned, is_terminal};
use super::{LarkOptions, NamedGrammar, common, parse, pattern, substring, token};
use crate::front::Lowered;
use crate::front::diagnostic::{Diagnostic, Diagnostics, Severity, similar};
use crate::front::json_schema;
use crate::fsm::Dfa;
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Attributes, Budget, Expr, GrammarBuilder, SpecialToken, Spent};
use crate::limits::Limits;
use crate::spec::json::Json;

/// How many times [`Limits::nodes`] all parts of a text may come to together.
const NODES: usize = 10;
/// How many times [`Limits::automaton_states`] all automata of a text may come to together.
const STATES: usize = 3;
/// Most names that an unknown one is compared with.
const MAX_COMPARED: usize = 5_000;
/// Most unknown names for which a similar one is looked for.
const MAX_SIMILAR: usize = 20;
/// What a rule of a schema counts as, in nodes.
const NODES_OF_A_RULE: usize = 8;

/// What all grammars of one text share.
pub(super) struct Session<'o> {
    pub(super) builder: GrammarBuilder,
    pub(super) diagnostics: Diagnostics,
    options: &'o LarkOptions,
    pub(super) limits: &'o Limits,
    /// Rules of named grammars met so far.
    named: HashMap<&'o str, RuleId>,
    /// Named grammars still to be read, with where they were first named.
    queue: Vec<(&'o str, &'o str, RuleId, std::ops::Range<usize>)>,
    /// Rules of schemas, by their text.
    schemas: HashMap<String, RuleId>,
    /// All texts, once it was needed.
    pub(super) any: Option<Dfa>,
    /// Nodes there may still be: ranges of code points, token ids, chunks, what schemas come to.
    pub(super) nodes: usize,
    /// States of automata there may still be.
    states: usize,
}

impl<'o> Session<'o> {
    pub(super) fn new(
        diagnostics: Diagnostics,
        options: &'o LarkOptions,
        limits: &'o Limits,
    ) -> Self {
        Session {
            builder: GrammarBuilder::new(),
            diagnostics,
            options,
            limits,
            named: HashMap::default(),
            queue: Vec::new(),
            schemas: HashMap::default(),
            any: None,
            nodes: limits.nodes.saturating_mul(NODES),
            states: limits.automaton_states.saturating_mul(STATES),
        }
    }

    /// Takes nodes off what is left; reports if there are too few.
    pub(super) fn spend(&mut self, nodes: usize, span: &std::ops::Range<usize>) -> bool {
        let enough = nodes <= self.nodes;
        self.nodes = self.nodes.saturating_sub(nodes);
        if !enough {
            let message = format!(
                "the grammar comes to more than {} nodes",
                self.limits.nodes.saturating_mul(NODES)
            );
            self.report(Diagnostic::error(span.clone(), message));
        }
        match fuel::spend(nodes) {
            Ok(()) => enough,
            Err(out) => {
                self.report(Diagnostic::error(span.clone(), out.to_string()));
                false
            }
        }
    }

    /// Most states of the next automaton.
    pub(super) fn states(&self) -> usize {
        self.states.min(self.limits.automaton_states)
    }

    /// Takes what an automaton has come to off what is left.
    pub(super) fn built<T, E>(
        &mut self,
        result: Result<T, E>,
        limit: usize,
        states: impl Fn(&T) -> usize,
    ) -> Result<T, E> {
        // A small one has cost something, too.
        let spent = result.as_ref().map_or(limit, |value| states(value).saturating_add(8));
        self.states = self.states.saturating_sub(spent);
        result
    }

    pub(super) fn run(mut self, file: &File<'_>) -> Result<Lowered, Diagnostics> {
        let start = self.file(file);
        while let Some((name, text, rule, span)) = self.queue.pop() {
            self.named(name, text, rule, &span);
        }
        if self.diagnostics.has_errors() {
            return Err(self.diagnostics);
        }
        match self.builder.finish(start) {
            Ok(grammar) => Ok(Lowered { grammar, warnings: self.diagnostics }),
            Err(error) => {
                self.diagnostics.push(Diagnostic::error(0..0, error.to_string()));
                Err(self.diagnostics)
            }
        }
    }

    /// Reports, but nothing twice.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let known = |d: &Diagnostic| d.span == diagnostic.span && d.message == diagnostic.message;
        if !self.diagnostics.list().iter().any(known) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Lowers the statements of a text; returns the rule its sentences derive from.
    fn file(&mut self, file: &File<'_>) -> RuleId {
        Scope::new(self, file).run()
    }

    /// Reads a named grammar. What is wrong with it is reported at `span` of the text that names it.
    fn named(&mut self, name: &str, text: &str, rule: RuleId, span: &std::ops::Range<usize>) {
        if text.len() > self.limits.source_bytes {
            let message =
                format!("grammar `@{name}` is longer than {} bytes", self.limits.source_bytes);
            return self.report(Diagnostic::error(span.clone(), message));
        }
        let mut inner = Diagnostics::new(name, text);
        let tokens = token::tokens(text, &mut inner);
        let file = parse::parse(&tokens, &mut inner, self.limits);
        // Grammars that it names for the first time are reported at the same place.
        let before = self.queue.len();
        let outer = std::mem::replace(&mut self.diagnostics, inner);
        let start = self.file(&file);
        let inner = std::mem::replace(&mut self.diagnostics, outer);
        self.queue[before..].iter_mut().for_each(|(_, _, _, place)| *place = span.clone());
        self.builder.define(rule, Expr::Ref(start));
        for diagnostic in inner.list().iter().filter(|d| d.severity == Severity::Error) {
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

    fn grammar(&mut self, name: &str, span: &std::ops::Range<usize>) -> Expr {
        if let Some(&rule) = self.named.get(name) {
            return Expr::Ref(rule);
        }
        let rule = match self.options.named.get_key_value(name) {
            None => {
                let help = similar(name, self.options.named.keys().map(String::as_str));
                let help = help.map(|name| format!("is `@{name}` meant?"));
                let message = format!("there is no grammar `{name}`");
                self.report(Diagnostic { help, ..Diagnostic::error(span.clone(), message) });
                return Expr::Never;
            }
            Some((key, NamedGrammar::Grammar(grammar))) => {
                let rule = self.builder.import(grammar);
                self.named.insert(key, rule);
                rule
            }
            Some((key, NamedGrammar::Lark(text))) => {
                let rule = self.builder.declare(key.clone());
                self.named.insert(key, rule);
                self.queue.push((key, text, rule, span.clone()));
                rule
            }
        };
        Expr::Ref(rule)
    }

    fn schema(&mut self, text: &Spanned<&str>) -> Expr {
        if let Some(&rule) = self.schemas.get(text.value) {
            return Expr::Ref(rule);
        }
        let rule = match Json::parse(text.value, self.limits) {
            Err(error) => {
                self.report(Diagnostic::error(
                    text.span.clone(),
                    format!("the schema is not JSON: {error}"),
                ));
                return Expr::Never;
            }
            Ok(schema) => {
                let before = self.builder.len();
                let rule = json_schema::lower_into(
                    &mut self.builder,
                    &schema,
                    &self.options.schema,
                    self.limits,
                );
                let nodes = (self.builder.len() - before).saturating_mul(NODES_OF_A_RULE);
                if !self.spend(nodes, &text.span) {
                    return Expr::Never;
                }
                rule
            }
        };
        match rule {
            Ok(rule) => {
                self.schemas.insert(text.value.to_owned(), rule);
                Expr::Ref(rule)
            }
            Err(errors) => {
                for error in errors.iter() {
                    let message = format!("the schema is refused at {error}");
                    self.report(Diagnostic::error(text.span.clone(), message).help(error.hint()));
                }
                Expr::Never
            }
        }
    }
}

/// What is known of a definition as text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    New,
    Open,
    /// Not text; that is reported.
    Failed,
    Done(Expr),
}

/// One grammar: names mean something inside it.
pub(super) struct Scope<'s, 'o, 'a, 't> {
    pub(super) session: &'s mut Session<'o>,
    pub(super) file: &'a File<'t>,
    /// Definitions by name.
    pub(super) index: HashMap<&'t str, usize>,
    /// Imported terminals by the name they have here, as text and as rules.
    pub(super) imports: HashMap<&'t str, (Expr, RuleId)>,
    /// Rules of regular expressions and their flags.
    patterns: HashMap<(&'t str, &'t str), RuleId>,
    /// The rule of each definition.
    pub(super) rules: Vec<RuleId>,
    /// Each definition as text.
    pub(super) texts: Vec<Text>,
    /// What may stand behind every terminal.
    pub(super) ignore: Option<RuleId>,
    /// Which definitions are rules that are plain text.
    pub(super) plain: Vec<bool>,
}

impl<'s, 'o, 'a, 't> Scope<'s, 'o, 'a, 't> {
    fn new(session: &'s mut Session<'o>, file: &'a File<'t>) -> Self {
        let rules =
            file.definitions.iter().map(|d| session.builder.declare(d.name.value)).collect();
        let texts = vec![Text::New; file.definitions.len()];
        let (index, imports, patterns) = Default::default();
        Scope {
            session,
            file,
            index,
            imports,
            patterns,
            rules,
            texts,
            ignore: None,
            plain: Vec::new(),
        }
    }

    fn run(mut self) -> RuleId {
        self.names();
        self.find_plain();
        self.ignored();
        for i in 0..self.file.definitions.len() {
            let body = if is_terminal(self.file.definitions[i].name.value) {
                self.definition_text(i)
            } else {
                self.rule(i)
            };
            self.session.builder.define(self.rules[i], body);
        }
        let Some(&start) = self.index.get("start") else {
            let message = "there is no rule `start`, from which sentences derive";
            self.session.report(Diagnostic::error(self.file.span.clone(), message));
            return self.session.builder.declare("start");
        };
        self.unreachable(start);
        let rule = self.rules[start];
        match self.ignore.filter(|_| self.file.options.initial_skip) {
            Some(ignore) => {
                self.session.builder.rule("start", Expr::seq([Expr::Ref(ignore), Expr::Ref(rule)]))
            }
            None => rule,
        }
    }

    /// Finds out what is called how.
    fn names(&mut self) {
        let file = self.file;
        let mut first: HashMap<&'t str, std::ops::Range<usize>> = HashMap::default();
        for import in &file.imports {
            let Some(source) = common::pattern(import.name.value) else {
                let help = match similar(import.name.value, common::names()) {
                    Some(name) => format!("is `{name}` meant?"),
                    None => format!("it has {}", common::names().collect::<Vec<_>>().join(", ")),
                };
                let message = format!("`common` has no terminal `{}`", import.name.value);
                self.session
                    .report(Diagnostic::error(import.name.span.clone(), message).help(help));
                continue;
            };
            let mut left = usize::MAX;
            let body = pattern::lower(source, "", &Limits::default(), &mut left);
            let body = self.compact(body.expect("the library's patterns are well-formed"));
            self.declare(&mut first, &import.alias);
            if !is_terminal(import.alias.value) {
                let message = format!("a terminal cannot be called `{}`", import.alias.value);
                self.session.report(
                    Diagnostic::error(import.alias.span.clone(), message)
                        .help("write it in capitals"),
                );
            }
            let rule = self.session.builder.rule(import.alias.value, body.clone());
            self.imports.insert(import.alias.value, (body, rule));
        }
        for (i, definition) in file.definitions.iter().enumerate() {
            if self.declare(&mut first, &definition.name) {
                self.index.insert(definition.name.value, i);
            }
        }
    }

    /// Whether a name is new; reports it otherwise.
    fn declare(
        &mut self,
        first: &mut HashMap<&'t str, std::ops::Range<usize>>,
        name: &Spanned<&'t str>,
    ) -> bool {
        if let Some(place) = first.get(name.value) {
            let message = format!("`{}` is defined twice", name.value);
            let diagnostic = Diagnostic::error(name.span.clone(), message)
                .related(place.clone(), "first defined here");
            self.session.report(diagnostic);
            return false;
        }
        first.insert(name.value, name.span.clone());
        true
    }

    fn ignored(&mut self) {
        if self.file.ignores.is_empty() {
            return;
        }
        let file = self.file;
        let parts: Vec<Expr> = file.ignores.iter().map(|node| self.text(node)).collect();
        let most = if file.options.skip_once { Some(1) } else { None };
        let body = self.compact(Expr::repeat(Expr::alt(parts), 0, most));
        self.ignore = Some(self.session.builder.rule("ignore", body));
    }

    /// Warns of what no sentence uses.
    fn unreachable(&mut self, start: usize) {
        let file = self.file;
        let mut seen = vec![false; file.definitions.len()];
        let mut stack = vec![start];
        seen[start] = true;
        let visit = |node: &Node<'t>,
                     seen: &mut Vec<bool>,
                     stack: &mut Vec<usize>,
                     index: &HashMap<&'t str, usize>| {
            super::terminal::names(node, &mut |name, _| {
                if let Some(&i) = index.get(name)
                    && !std::mem::replace(&mut seen[i], true)
                {
                    stack.push(i);
                }
            });
        };
        file.ignores.iter().for_each(|node| visit(node, &mut seen, &mut stack, &self.index));
        while let Some(i) = stack.pop() {
            visit(&file.definitions[i].body, &mut seen, &mut stack, &self.index);
            if let Some(marker) = &file.definitions[i].attributes.marker {
                visit(&marker.node, &mut seen, &mut stack, &self.index);
            }
        }
        for (definition, _) in file.definitions.iter().zip(seen).filter(|(_, seen)| !seen) {
            let message = format!("`{}` is never used", definition.name.value);
            self.session.report(Diagnostic::warning(definition.name.span.clone(), message));
        }
    }

    /// With what is ignored behind it.
    pub(super) fn spaced(&self, expr: Expr) -> Expr {
        match self.ignore {
            Some(ignore) if expr != Expr::Empty => Expr::seq([expr, Expr::Ref(ignore)]),
            _ => expr,
        }
    }

    /// The body of a rule's definition; its attributes are set.
    fn rule(&mut self, i: usize) -> Expr {
        let definition: &'a Definition<'t> = &self.file.definitions[i];
        let own = attributes(definition);
        if definition.attributes.is_shortest() {
            let body = self.shortest(definition, None);
            return self.attributed(i, own, body);
        }
        if !own.is_empty() && is_lexeme(&definition.body) {
            let body = self.lexeme(&definition.body);
            return self.attributed(i, own, body);
        }
        *self.session.builder.attributes(self.rules[i]) = own;
        self.node(&definition.body)
    }

    /// One terminal with attributes; what is ignored behind it is no part of it.
    fn attributed(&mut self, i: usize, own: Attributes, body: Expr) -> Expr {
        if self.ignore.is_none() || own.is_empty() {
            *self.session.builder.attributes(self.rules[i]) = own;
            return self.spaced(body);
        }
        let inner = self.session.builder.rule(self.file.definitions[i].name.value, body);
        *self.session.builder.attributes(inner) = own;
        self.spaced(Expr::Ref(inner))
    }

    /// An expression of a rule.
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
                self.spaced(lexeme)
            }
        }
    }

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

    /// Something that white space cannot interrupt.
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
            NodeKind::Grammar(name) => self.session.grammar(name, &node.span),
            NodeKind::Json(schema) => self.session.schema(schema),
            NodeKind::Lark(file) => Expr::Ref(self.session.file(file)),
            NodeKind::Regex(source, flags) => {
                // A rule of its own, which all places share: so are its masks.
                if let Some(&rule) = self.patterns.get(&(*source, *flags)) {
                    return Expr::Ref(rule);
                }
                let body = self.text(node);
                let body = self.compact(body);
                let rule = self.session.builder.rule("regex", body);
                self.patterns.insert((source, flags), rule);
                Expr::Ref(rule)
            }
            NodeKind::Structured(_) => {
                let body = self.text(node);
                Expr::Ref(self.session.builder.rule("substring", body))
            }
            _ => self.text(node),
        }
    }

    pub(super) fn undefined(&mut self, name: &str, span: &std::ops::Range<usize>) -> Expr {
        // Of very many names, which one is nearest would take too long, as would the nearest to each of many.
        let few = self.index.len() + self.imports.len() <= MAX_COMPARED
            && self.session.diagnostics.list().len() < MAX_SIMILAR;
        let known = self.index.keys().chain(self.imports.keys()).copied().filter(|_| few);
        let mut known: Vec<&str> = known.filter(|k| is_terminal(k) == is_terminal(name)).collect();
        known.sort_unstable();
        let what = if is_terminal(name) { "terminal" } else { "rule" };
        let help = match similar(name, known) {
            Some(known) => Some(format!("is `{known}` meant?")),
            None => common::pattern(name).map(|_| format!("`%import common.{name}` has one")),
        };
        let message = format!("there is no {what} `{name}`");
        self.session.report(Diagnostic { help, ..Diagnostic::error(span.clone(), message) });
        Expr::Never
    }

    /// The JSON of `%regex` to text.
    pub(super) fn structured(&mut self, json: &Spanned<&str>) -> Expr {
        let lowered =
            Json::parse(json.value, self.session.limits).map_err(|error| error.to_string());
        match lowered.and_then(|object| substring::lower(&object, self.session.limits)) {
            // At most three edges a chunk, and one chunk takes a byte at least.
            Ok(expr) if self.session.spend(json.value.len(), &json.span) => expr,
            Ok(_) => Expr::Never,
            Err(message) => {
                self.session
                    .report(Diagnostic::error(json.span.clone(), format!("`%regex`: {message}")));
                Expr::Never
            }
        }
    }

    fn special(&mut self, token: &str, span: &std::ops::Range<usize>) -> Expr {
        let token = match token.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>")) {
            None => Ok(SpecialToken::Name(token.to_owned())),
            Some(ids) => token_ids(ids, &mut self.session.nodes),
        };
        match token {
            Ok(token) => Expr::Special(self.session.builder.special(token)),
            Err(message) => {
                self.session.report(Diagnostic::error(span.clone(), message));
                Expr::Never
            }
        }
    }
}

/// The tokens of `<[...]>`.
fn token_ids(text: &str, left: &mut usize) -> Result<SpecialToken, String> {
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
                .ok_or(format!("{part:?} is no token id and no range of ids"))
        };
        let (low, high) = (id(low)?, id(high)?);
        if low > high {
            return Err(format!("the ids of {part:?} are out of order"));
        }
        match left.checked_sub((high - low) as usize + 1) {
            Some(rest) => *left = rest,
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

/// Whether white space cannot stand inside, as the rule's body is one terminal.
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

/// The attributes of the rule itself. With a suffix, only the text before it has the capture; a stop is hidden from it.
pub(super) fn attributes(definition: &Definition<'_>) -> Attributes {
    let said = &definition.attributes;
    let spent = if said.is_shortest() { Spent::Cut } else { Spent::Finish };
    let budget = (said.max_tokens.is_some() || said.max_chars.is_some()).then_some(Budget {
        tokens: said.max_tokens,
        chars: said.max_chars,
        spent,
    });
    let has_suffix = said.marker.as_ref().is_some_and(|marker| marker.kind == MarkerKind::Suffix);
    let capture = if has_suffix { None } else { said.capture.clone() };
    Attributes { capture, temperature: said.temperature, budget, ..Attributes::default() }
}
