//! Lowers the syntax tree of an EBNF text to a grammar: resolves names, and lowers classes and
//! patterns.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{
    ByteSpan, DispatchNode, MembersNode, Name, Node, RegexNode, RuleDef, SyntaxKind,
    TokenDispatchNode, TriggerNode,
};
use super::foreign::kbnf_class_help;
use super::parse::ParsedText;
use super::warn;
use super::{EbnfDialect, EbnfOptions};
use crate::front::LoweredGrammar;
use crate::front::diagnostic::{Diagnostic, Diagnostics, similar};
use crate::front::factors::substring;
use crate::front::regex::{Pattern, RegexError, SCALARS, spell_dfa, spell_utf8};
use crate::fsm::Dfa;
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::ids::RuleId;
use crate::ir::regular::{self, BYTES, NotRegular};
use crate::ir::{
    AfterTag, CallGraph, Dispatch, Expr, Grammar, GrammarBuilder, MACROS, Member, Members,
    SpecialToken, Trigger,
};
use crate::limits::Limits;

/// Maximum number of names that are candidates for suggestions.
const MAX_CANDIDATES: usize = 5_000;

/// Maximum number of recursive lazy rules for which the grammar is simplified.
const MAX_SIMPLIFIED: usize = 16;

/// The start rule of KBNF, unless the rule named by the options exists.
const KBNF_START: &str = "start";

/// Code points that must be escaped in a JSON string: controls, the quote, the backslash.
const NOT_IN_JSON: [(u32, u32); 3] = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)];

/// Lowers the rules of a text to a grammar, or returns all errors.
pub(super) fn lower(
    text: ParsedText,
    options: &EbnfOptions,
    limits: &Limits,
) -> Result<LoweredGrammar, Diagnostics> {
    let ParsedText { rules, broken, diagnostics } = text;
    let mut lowering = EbnfLowering {
        options,
        limits,
        builder: GrammarBuilder::new(),
        names: HashMap::default(),
        broken: broken.into_iter().collect(),
        candidates: rules.iter().take(MAX_CANDIDATES).map(|rule| rule.name.text.clone()).collect(),
        imports: BTreeMap::new(),
        operations: HashMap::default(),
        diagnostics,
    };
    let start = lowering.declare(&rules);
    for (i, rule) in rules.iter().enumerate().take_while(|_| !fuel::is_cancelled()) {
        let body = lowering.expr(&rule.body);
        let id = RuleId::new(i);
        lowering.builder.define(id, body);
        *lowering.builder.attributes(id) = rule.attributes.clone();
    }
    let builder = std::mem::take(&mut lowering.builder);
    let operations = std::mem::take(&mut lowering.operations);
    // Of look-aheads, only the names are checked.
    rules.iter().filter_map(|rule| rule.look_ahead.as_ref()).for_each(|node| {
        lowering.expr(node);
    });
    lowering.operations = operations;
    let mut diagnostics =
        std::mem::replace(&mut lowering.diagnostics, Diagnostics::new(&options.name, ""));
    let Some(start) = start.filter(|_| !diagnostics.has_errors()) else { return Err(diagnostics) };
    let mut grammar = match builder.finish(start) {
        Ok(grammar) => grammar,
        Err(error) => {
            diagnostics.push(Diagnostic::error(0..0, error.to_string()));
            return Err(diagnostics);
        }
    };
    warn::warnings(&grammar, &rules, &mut diagnostics);
    apply_operations(&mut grammar, &lowering, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(LoweredGrammar { grammar, warnings: diagnostics })
}

/// An operation on the language of a rule, applied when all rules are lowered.
enum LanguageOperation {
    /// The texts that have no shorter text of the rule as a prefix.
    Shortest,
    /// The texts that contain none of the rule's texts, of at most `max` code points (in KBNF,
    /// bytes).
    Without { max: Option<u32> },
}

/// Replaces the bodies of rules with an operation by automata, callees first.
fn apply_operations(
    grammar: &mut Grammar,
    lowering: &EbnfLowering<'_>,
    diagnostics: &mut Diagnostics,
) {
    if lowering.operations.is_empty() {
        return;
    }
    let limit = lowering.limits.automaton_states;
    let mut simplified = 0;
    let order = CallGraph::build(&grammar.rules).all_callees_first();
    for id in order.into_iter().map(RuleId::from_raw) {
        let Some((operation, span)) = lowering.operations.get(&id) else { continue };
        let body = &grammar.rules[id.index()].body;
        let mut automaton = regular::automaton(body, &grammar.rules, limit);
        if matches!(automaton, Err(NotRegular::Recursive { .. })) && simplified < MAX_SIMPLIFIED {
            // Left and right recursion are repetition; simplification makes them repeats.
            simplified += 1;
            let whole = Grammar { start: id, ..grammar.clone() };
            if let Ok(simple) = whole.simplify() {
                let body = &simple.rules[simple.start.index()].body;
                automaton = regular::automaton(body, &simple.rules, limit);
            }
        }
        let bytes = lowering.options.dialect == EbnfDialect::Kbnf;
        let result = automaton.and_then(|dfa| match operation {
            LanguageOperation::Shortest => Ok(dfa.shortest()),
            LanguageOperation::Without { max } => texts_without(&dfa, *max, bytes, limit),
        });
        let error = match result {
            Ok(dfa) if dfa.is_empty() && matches!(operation, LanguageOperation::Without { .. }) => {
                Diagnostic::error(span.clone(), "nothing is left: every text has a match in it")
                    .label("the empty text matches")
            }
            Ok(dfa) => {
                grammar.rules[id.index()].body = Expr::Automaton(Arc::new(dfa));
                continue;
            }
            Err(why) => {
                let name = &grammar.rules[id.index()].name;
                let message = match operation {
                    LanguageOperation::Shortest => {
                        format!("`{name}` cannot be lazy: it is not regular")
                    }
                    LanguageOperation::Without { .. } => {
                        "what is left out has no automaton".to_owned()
                    }
                };
                Diagnostic::error(span.clone(), message).label(why.to_string())
            }
        };
        diagnostics.push(error);
    }
}

/// The automaton over bytes of the texts that contain no text of `excluded`.
fn texts_without(
    excluded: &Dfa,
    max: Option<u32>,
    bytes: bool,
    limit: usize,
) -> Result<Dfa, NotRegular> {
    let characters = max.filter(|_| !bytes);
    let text = regular::automaton(&Expr::repeat(spell_utf8(&SCALARS), 0, characters), &[], limit)?;
    let any = Dfa::counted(&BYTES, 0, None, limit)?;
    let free = text.without_prefix(&any.concat(excluded, limit)?, &BYTES, limit)?;
    Ok(if bytes { free.of_length(0, max, limit)?.minimize() } else { free })
}

/// State of lowering one text.
struct EbnfLowering<'o> {
    options: &'o EbnfOptions,
    limits: &'o Limits,
    builder: GrammarBuilder,
    /// Rules by name.
    names: HashMap<String, RuleId>,
    /// Names of rules that could not be parsed.
    broken: HashSet<String>,
    /// Candidates for suggestions.
    candidates: Vec<String>,
    /// Rules of imported grammars.
    imports: BTreeMap<String, RuleId>,
    /// Rules with an operation on their language, and the range of the construct that requires it.
    operations: HashMap<RuleId, (LanguageOperation, ByteSpan)>,
    diagnostics: Diagnostics,
}

impl EbnfLowering<'_> {
    /// Declares all rules; returns the start rule.
    fn declare(&mut self, rules: &[RuleDef]) -> Option<RuleId> {
        let mut start: Option<(usize, ByteSpan)> = None;
        for (i, rule) in rules.iter().enumerate() {
            let id = self.builder.declare(&*rule.name.text);
            match self.names.get(&rule.name.text) {
                None => drop(self.names.insert(rule.name.text.clone(), id)),
                Some(first) => {
                    let message = format!("a second rule `{}`", rule.name.text);
                    let first = rules[first.index()].name.span.clone();
                    self.diagnostics.push(
                        Diagnostic::error(rule.name.span.clone(), message)
                            .related(first, "the first one")
                            .help("alternatives of one rule are written `a | b`"),
                    );
                }
            }
            match (&rule.start, &start) {
                (Some(span), None) => start = Some((i, span.clone())),
                (Some(span), Some((_, first))) => self.diagnostics.push(
                    Diagnostic::error(span.clone(), "a second rule to start with")
                        .related(first.clone(), "the first one"),
                ),
                (None, _) => {}
            }
            if let Some(span) = &rule.lazy {
                self.operations.insert(id, (LanguageOperation::Shortest, span.clone()));
            }
        }
        let root = &self.options.root;
        match start {
            Some((i, _)) => Some(RuleId::new(i)),
            None => {
                let mut root_rule = self.names.get(root).copied();
                let is_kbnf = self.options.dialect == EbnfDialect::Kbnf;
                if root_rule.is_none() && is_kbnf {
                    root_rule = self.names.get(KBNF_START).copied();
                }
                if root_rule.is_none() && !self.diagnostics.has_errors() {
                    let or_start =
                        if is_kbnf { format!(" or `{KBNF_START}`") } else { String::new() };
                    let message =
                        format!("there is no rule `{root}`{or_start}, in which derivations begin");
                    let first = rules.first().map(|rule| rule.name.span.clone());
                    let candidates = self.candidates.iter().map(String::as_str);
                    let help =
                        similar(root, candidates, 0).map(|name| format!("is `{name}` meant?"));
                    let error = Diagnostic::error(first.unwrap_or(0..0), message);
                    self.diagnostics.push(Diagnostic { help, ..error });
                }
                root_rule
            }
        }
    }

    /// Resolves a reference to a rule.
    fn rule(&mut self, name: &str, span: &ByteSpan) -> Expr {
        match self.names.get(name) {
            Some(&id) => Expr::Ref(id),
            None if self.broken.contains(name) => Expr::Never,
            None => {
                let help = self.help_for(name, span);
                let message = format!("there is no rule `{name}`");
                self.diagnostics
                    .push(Diagnostic { help, ..Diagnostic::error(span.clone(), message) });
                Expr::Never
            }
        }
    }

    /// Advice for a reference to a rule that does not exist.
    fn help_for(&self, name: &str, span: &ByteSpan) -> Option<String> {
        let text = self.diagnostics.text();
        let (before, after) = (&text[..span.start], &text[span.end..]);
        // Only the dialect `kbnf` reads references in brackets.
        if before.ends_with('[') && after.starts_with(']') && name.contains('-') {
            return Some(kbnf_class_help(name));
        }
        if name == "i" && before.ends_with(['"', '\'']) {
            let help = "a text in either case is written `Regex(\"(?i:abc)\")`";
            return Some(help.to_owned());
        }
        let macros: &[&str] = if after.starts_with('(') { &MACROS } else { &[] };
        let rules = self.candidates.iter().map(String::as_str);
        self.diagnostics.suggest(name, rules.chain(macros.iter().copied()))
    }

    /// Resolves the name of a tag's body.
    fn tag_body(&mut self, name: &Name) -> RuleId {
        match self.rule(&name.text, &name.span) {
            Expr::Ref(id) => id,
            _ => RuleId::new(0),
        }
    }

    /// Lowers a special token.
    fn special(&mut self, token: &SpecialToken) -> Expr {
        Expr::Special(self.builder.special(token.clone()))
    }

    /// Lowers an expression. Keeps the nesting of the text, so that printed grammars are parsed
    /// back unchanged.
    fn expr(&mut self, node: &Node) -> Expr {
        match &node.kind {
            SyntaxKind::Empty => Expr::Empty,
            SyntaxKind::Bytes(bytes) => Expr::bytes(bytes),
            SyntaxKind::Class { ranges, negated } => spell_utf8(&code_points(ranges, *negated)),
            SyntaxKind::ByteClass(set) => Expr::class(*set),
            SyntaxKind::Any => spell_utf8(&SCALARS),
            SyntaxKind::Token(token) => self.special(token),
            // In dialects where a dot may be a name, an undefined one is any character.
            SyntaxKind::Ref(name) if &**name == "." && !self.names.contains_key(name) => {
                spell_utf8(&SCALARS)
            }
            SyntaxKind::Ref(name) => self.rule(name, &node.span),
            SyntaxKind::Import(name) => self.import(name, &node.span),
            SyntaxKind::Seq(parts) => Expr::Seq(parts.iter().map(|part| self.expr(part)).collect()),
            SyntaxKind::Alt(parts) => Expr::Alt(parts.iter().map(|part| self.expr(part)).collect()),
            SyntaxKind::Repeat { body, min, max } => {
                Expr::Repeat { body: Box::new(self.expr(body)), min: *min, max: *max }
            }
            SyntaxKind::Regex(regex) => self.regex(regex, &node.span),
            SyntaxKind::Substring(chunks) => substring(chunks),
            SyntaxKind::Except { excluded, max } => {
                let body = self.expr(excluded);
                let rule = self.builder.rule("except", body);
                self.operations
                    .insert(rule, (LanguageOperation::Without { max: *max }, node.span.clone()));
                Expr::Ref(rule)
            }
            SyntaxKind::Dispatch(dispatch) => self.dispatch(dispatch, &node.span),
            SyntaxKind::TokenDispatch(dispatch) => self.token_dispatch(dispatch),
            SyntaxKind::Members(members) => self.members(members),
            SyntaxKind::Automaton(dfa) => Expr::Automaton(dfa.clone()),
            SyntaxKind::Graph(graph) => Expr::Graph(Box::new(graph.map(|node| self.expr(node)))),
        }
    }

    /// Lowers a member set.
    fn members(&mut self, node: &MembersNode) -> Expr {
        let unique = node
            .unique
            .iter()
            .map(|(body, required)| Member { body: self.expr(body), required: *required });
        let unique = unique.collect();
        let repeatable = node.repeatable.iter().map(|body| self.expr(body)).collect();
        let separator = self.expr(&node.separator);
        let MembersNode { min, count_repeatable, max, .. } = *node;
        let clauses = node.clauses.clone();
        Expr::Members(Box::new(Members {
            unique,
            repeatable,
            separator,
            min,
            count_repeatable,
            max,
            clauses,
        }))
    }

    /// Lowers a reference to another grammar.
    fn import(&mut self, name: &str, span: &ByteSpan) -> Expr {
        if let Some(&id) = self.imports.get(name) {
            return Expr::Ref(id);
        }
        let Some(grammar) = self.options.grammars.get(name) else {
            let known = self.options.grammars.keys();
            self.diagnostics.push(self.diagnostics.unknown_grammar(name, span, known));
            return Expr::Never;
        };
        let id = self.builder.import(grammar);
        self.imports.insert(name.to_owned(), id);
        Expr::Ref(id)
    }

    /// Lowers a regular expression.
    fn regex(&mut self, regex: &RegexNode, span: &ByteSpan) -> Expr {
        let limit = self.limits.automaton_states;
        let mut spell = |ranges: &[(u32, u32)]| {
            if regex.json_string {
                spell_utf8(&without(ranges, &NOT_IN_JSON))
            } else {
                spell_utf8(ranges)
            }
        };
        let lowered = Pattern::with_options(&regex.pattern, &regex.options, self.limits).and_then(
            |pattern| {
                if regex.lazy {
                    return Ok(spell_dfa(&pattern.match_dfa(limit)?.shortest(), &mut spell)?);
                }
                Ok(match pattern.branches(&mut spell) {
                    Some(branches) => Expr::alt(branches.into_iter().map(|b| b.body)),
                    None => spell_dfa(&pattern.match_dfa(limit)?, &mut spell)?,
                })
            },
        );
        lowered.unwrap_or_else(|error| {
            let offset = match &error {
                RegexError::Syntax { offset, .. } | RegexError::Unsupported { offset, .. } => {
                    Some(*offset)
                }
                _ => None,
            };
            let span = match (regex.verbatim, offset) {
                (Some(begin), Some(offset)) => begin + offset..begin + offset + 1,
                _ => span.clone(),
            };
            self.diagnostics.push(Diagnostic::error(span, error.to_string()));
            Expr::Never
        })
    }

    /// Lowers a trigger.
    fn trigger(&mut self, trigger: &TriggerNode) -> Trigger {
        let token = trigger.token.clone().map(|token| self.builder.special(token));
        Trigger::new(&trigger.text[..], token)
    }

    /// Lowers a tag dispatch.
    fn dispatch(&mut self, dispatch: &DispatchNode, span: &ByteSpan) -> Expr {
        let mut tags = Vec::with_capacity(dispatch.tags.len());
        for (trigger, _, body) in &dispatch.tags {
            tags.push((self.trigger(trigger), self.tag_body(body)));
        }
        let stops = dispatch.stops.iter().map(|stop| self.trigger(stop)).collect();
        let excludes = dispatch.excludes.clone();
        let dispatch = Dispatch { tags, stops, excludes, after: dispatch.after, end: dispatch.end };
        let limit = self.limits.dispatch_bytes;
        if dispatch.bytes() > limit {
            let message = format!("the triggers, stops and excludes have more than {limit} bytes");
            self.diagnostics.push(Diagnostic::error(span.clone(), message));
            return Expr::Never;
        }
        dispatch.into()
    }

    /// Lowers a tag dispatch over tokens: any tokens except triggers and excluded ones, and each
    /// trigger with its rule.
    fn token_dispatch(&mut self, dispatch: &TokenDispatchNode) -> Expr {
        let triggers = dispatch.tags.iter().map(|(trigger, _)| trigger);
        let free = SpecialToken::AnyBut(triggers.chain(&dispatch.excludes).cloned().collect());
        let free = self.special(&free);
        let mut tags = Vec::with_capacity(dispatch.tags.len());
        for (trigger, body) in &dispatch.tags {
            tags.push(Expr::seq([self.special(trigger), Expr::Ref(self.tag_body(body))]));
        }
        match dispatch.after {
            AfterTag::Loop => {
                tags.insert(0, free);
                Expr::star(Expr::alt(tags))
            }
            AfterTag::End => Expr::seq([Expr::star(free), Expr::optional(Expr::alt(tags))]),
        }
    }
}

/// The scalar values of a class, as sorted, disjoint ranges.
fn code_points(ranges: &[(u32, u32)], negated: bool) -> Vec<(u32, u32)> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    if negated {
        return SCALARS.into_iter().flat_map(|range| without(&[range], &sorted)).collect();
    }
    let mut out: Vec<(u32, u32)> = Vec::new();
    for (lo, hi) in sorted {
        match out.last_mut() {
            Some(last) if lo <= last.1.saturating_add(1) => last.1 = last.1.max(hi),
            _ => out.push((lo, hi)),
        }
    }
    out
}

/// Removes sorted ranges from sorted ranges.
fn without(ranges: &[(u32, u32)], others: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    for &(lo, hi) in ranges {
        let mut from = lo;
        for &(skip, until) in others.iter().filter(|&&(skip, until)| until >= lo && skip <= hi) {
            if skip > from {
                out.push((from, skip - 1));
            }
            from = from.max(until + 1);
        }
        if from <= hi {
            out.push((from, hi));
        }
    }
    out
}
