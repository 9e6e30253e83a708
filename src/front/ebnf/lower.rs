//! What a text says becomes a grammar: names get their rules, classes their bytes, patterns their automata.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{
    DispatchNode, Kind, MembersNode, Name, Node, Regex, RuleDef, Span, TokenDispatch, TriggerNode,
};
use super::parse::Text;
use super::warn;
use super::{Dialect, EbnfOptions};
use crate::front::Lowered;
use crate::front::diagnostic::{Diagnostic, Diagnostics, similar};
use crate::front::factors::substring;
use crate::front::regex::{Pattern, RegexError, SCALARS, spell_dfa, spell_utf8};
use crate::fsm::Dfa;
use crate::hash::{HashMap, HashSet};
use crate::ids::RuleId;
use crate::ir::regular::{self, BYTES, NotRegular};
use crate::ir::{
    AfterTag, Dispatch, Expr, Grammar, GrammarBuilder, Graph, Member, Members, Simplify,
    SpecialToken, Trigger,
};
use crate::limits::Limits;

/// Most unknown names for which a similar one is looked for, and most names among which.
const MAX_SIMILAR: usize = 20;
const MAX_KNOWN: usize = 5_000;

/// Most lazy rules whose grammar is simplified because they are recursive.
const MAX_SIMPLIFIED: usize = 16;

/// The rule in which derivations begin in KBNF, unless there is one that the options name.
const KBNF_START: &str = "start";

/// What may not stand raw between the quotes of a JSON string: controls, the quote, the backslash.
const NOT_IN_JSON: [(u32, u32); 3] = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)];

/// The grammar of these rules, or all that is wrong.
pub(super) fn lower(
    text: Text,
    options: &EbnfOptions,
    limits: &Limits,
) -> Result<Lowered, Diagnostics> {
    let Text { rules, broken, diagnostics } = text;
    let mut lowering = Lowering {
        options,
        limits,
        builder: GrammarBuilder::new(),
        names: HashMap::default(),
        broken: broken.into_iter().collect(),
        known: rules.iter().take(MAX_KNOWN).map(|rule| rule.name.text.clone()).collect(),
        imports: BTreeMap::new(),
        derived: HashMap::default(),
        unknown: 0,
        diagnostics,
    };
    let start = lowering.declare(&rules);
    for (i, rule) in rules.iter().enumerate() {
        let body = lowering.expr(&rule.body);
        let id = RuleId::new(i);
        lowering.builder.define(id, body);
        *lowering.builder.attributes(id) = rule.attributes.clone();
    }
    let builder = std::mem::take(&mut lowering.builder);
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
    derive(&mut grammar, &lowering, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(Lowered { grammar, warnings: diagnostics })
}

/// What becomes of the texts of a rule, once all rules are known.
enum Derived {
    /// Those that have no shorter one as a prefix.
    Shortest,
    /// Texts that contain none of them, of at most so many code points (in KBNF, bytes).
    Without { max: Option<u32> },
}

/// Rules whose texts are derived from those of others become automata, callees first.
fn derive(grammar: &mut Grammar, lowering: &Lowering<'_>, diagnostics: &mut Diagnostics) {
    if lowering.derived.is_empty() {
        return;
    }
    let limit = lowering.limits.automaton_states;
    let mut simplified = 0;
    for id in warn::callees_first(grammar) {
        let Some((derived, span)) = lowering.derived.get(&id) else { continue };
        let body = &grammar.rules[id.index()].body;
        let mut found = regular::automaton(body, &grammar.rules, limit);
        if matches!(found, Err(NotRegular::Recursive { .. })) && simplified < MAX_SIMPLIFIED {
            // Recursion at the ends of rules is repetition, written otherwise.
            simplified += 1;
            let whole = Grammar { start: id, ..grammar.clone() };
            if let Ok(simple) = whole.simplify(Simplify::Full) {
                let body = &simple.rules[simple.start.index()].body;
                found = regular::automaton(body, &simple.rules, limit);
            }
        }
        let bytes = lowering.options.dialect == Dialect::Kbnf;
        let result = found.and_then(|dfa| match derived {
            Derived::Shortest => Ok(dfa.shortest()),
            Derived::Without { max } => avoiding(&dfa, *max, bytes, limit),
        });
        let error = match result {
            Ok(dfa) if dfa.is_empty() && matches!(derived, Derived::Without { .. }) => {
                Diagnostic::error(span.clone(), "nothing is left: every text has a match in it")
                    .label("the empty text matches")
            }
            Ok(dfa) => {
                grammar.rules[id.index()].body = Expr::Automaton(Arc::new(dfa));
                continue;
            }
            Err(why) => {
                let name = &grammar.rules[id.index()].name;
                let message = match derived {
                    Derived::Shortest => format!("`{name}` cannot be lazy: it is not regular"),
                    Derived::Without { .. } => "what is left out has no automaton".to_owned(),
                };
                Diagnostic::error(span.clone(), message).label(why.to_string())
            }
        };
        diagnostics.push(error);
    }
}

/// Texts that contain no word of `excluded`, which is about bytes.
fn avoiding(
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

struct Lowering<'o> {
    options: &'o EbnfOptions,
    limits: &'o Limits,
    builder: GrammarBuilder,
    names: HashMap<String, RuleId>,
    broken: HashSet<String>,
    /// Names to suggest.
    known: Vec<String>,
    imports: BTreeMap<String, RuleId>,
    /// Rules whose texts are derived from those of their bodies, and what asks for that.
    derived: HashMap<RuleId, (Derived, Span)>,
    unknown: usize,
    diagnostics: Diagnostics,
}

impl Lowering<'_> {
    /// Declares all rules; returns the one in which derivations begin.
    fn declare(&mut self, rules: &[RuleDef]) -> Option<RuleId> {
        let mut start: Option<(usize, Span)> = None;
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
                self.derived.insert(id, (Derived::Shortest, span.clone()));
            }
        }
        let root = &self.options.root;
        match start {
            Some((i, _)) => Some(RuleId::new(i)),
            None => {
                let mut found = self.names.get(root).copied();
                if found.is_none() && self.options.dialect == Dialect::Kbnf {
                    found = self.names.get(KBNF_START).copied();
                }
                if found.is_none() && !self.diagnostics.has_errors() {
                    let message = format!("there is no rule `{root}`, in which derivations begin");
                    let first = rules.first().map(|rule| rule.name.span.clone());
                    let mut diagnostic = Diagnostic::error(first.unwrap_or(0..0), message);
                    if let Some(name) = similar(root, self.known.iter().map(String::as_str)) {
                        diagnostic = diagnostic.help(format!("is `{name}` meant?"));
                    }
                    self.diagnostics.push(diagnostic);
                }
                found
            }
        }
    }

    fn rule(&mut self, name: &str, span: &Span) -> Expr {
        match self.names.get(name) {
            Some(&id) => Expr::Ref(id),
            None if self.broken.contains(name) => Expr::Never,
            None => {
                self.unknown += 1;
                let mut diagnostic =
                    Diagnostic::error(span.clone(), format!("there is no rule `{name}`"));
                if self.unknown <= MAX_SIMILAR {
                    let known = self.known.iter().map(String::as_str);
                    diagnostic.help =
                        similar(name, known).map(|name| format!("is `{name}` meant?"));
                }
                self.diagnostics.push(diagnostic);
                Expr::Never
            }
        }
    }

    fn body(&mut self, name: &Name) -> RuleId {
        match self.rule(&name.text, &name.span) {
            Expr::Ref(id) => id,
            _ => RuleId::new(0),
        }
    }

    fn special(&mut self, token: &SpecialToken) -> Expr {
        Expr::Special(self.builder.special(token.clone()))
    }

    /// Mirrors the text: what is written nested stays nested, so that printed grammars are read back as they were.
    fn expr(&mut self, node: &Node) -> Expr {
        match &node.kind {
            Kind::Empty => Expr::Empty,
            Kind::Bytes(bytes) => Expr::bytes(bytes),
            Kind::Class { ranges, negated } => spell_utf8(&code_points(ranges, *negated)),
            Kind::ByteClass(set) => Expr::class(*set),
            Kind::Any => spell_utf8(&SCALARS),
            Kind::Token(token) => self.special(token),
            // Where dots may be names, one that is none is any character.
            Kind::Ref(name) if &**name == "." && !self.names.contains_key(name) => {
                spell_utf8(&SCALARS)
            }
            Kind::Ref(name) => self.rule(name, &node.span),
            Kind::Import(name) => self.import(name, &node.span),
            Kind::Seq(parts) => Expr::Seq(parts.iter().map(|part| self.expr(part)).collect()),
            Kind::Alt(parts) => Expr::Alt(parts.iter().map(|part| self.expr(part)).collect()),
            Kind::Repeat { body, min, max } => {
                Expr::Repeat { body: Box::new(self.expr(body)), min: *min, max: *max }
            }
            Kind::Regex(regex) => self.regex(regex, &node.span),
            Kind::Substring(chunks) => substring(chunks),
            Kind::Except { excluded, max } => {
                let body = self.expr(excluded);
                let rule = self.builder.rule("except", body);
                self.derived.insert(rule, (Derived::Without { max: *max }, node.span.clone()));
                Expr::Ref(rule)
            }
            Kind::Dispatch(dispatch) => self.dispatch(dispatch, &node.span),
            Kind::TokenDispatch(dispatch) => self.token_dispatch(dispatch),
            Kind::Members(members) => self.members(members),
            Kind::Automaton(dfa) => Expr::Automaton(dfa.clone()),
            Kind::Graph { nodes, start, ends, edges } => {
                let edges =
                    edges.iter().map(|(from, expr, to)| (*from, self.expr(expr), *to)).collect();
                Expr::Graph(Box::new(Graph {
                    nodes: *nodes,
                    start: *start,
                    ends: ends.clone(),
                    edges,
                }))
            }
        }
    }

    fn members(&mut self, node: &MembersNode) -> Expr {
        let once = node
            .once
            .iter()
            .map(|(body, required)| Member { body: self.expr(body), required: *required });
        let once = once.collect();
        let often = node.often.iter().map(|body| self.expr(body)).collect();
        let separator = self.expr(&node.separator);
        Expr::Members(Box::new(Members { once, often, separator, min: node.min, max: node.max }))
    }

    fn import(&mut self, name: &str, span: &Span) -> Expr {
        if let Some(&id) = self.imports.get(name) {
            return Expr::Ref(id);
        }
        let Some(grammar) = self.options.grammars.get(name) else {
            let help = similar(name, self.options.grammars.keys().map(String::as_str));
            let help = help.map(|name| format!("is `@{name}` meant?"));
            let message = format!("there is no grammar `{name}`");
            self.diagnostics.push(Diagnostic { help, ..Diagnostic::error(span.clone(), message) });
            return Expr::Never;
        };
        let id = self.builder.import(grammar);
        self.imports.insert(name.to_owned(), id);
        Expr::Ref(id)
    }

    fn regex(&mut self, regex: &Regex, span: &Span) -> Expr {
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
                    return Ok(spell_dfa(&pattern.match_dfa(limit)?.shortest(), &mut spell));
                }
                Ok(match pattern.branches(&mut spell) {
                    Some(branches) => Expr::alt(branches.into_iter().map(|b| b.body)),
                    None => spell_dfa(&pattern.match_dfa(limit)?, &mut spell),
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
            let place = match (regex.verbatim, offset) {
                (Some(begin), Some(offset)) => begin + offset..begin + offset + 1,
                _ => span.clone(),
            };
            self.diagnostics.push(Diagnostic::error(place, error.to_string()));
            Expr::Never
        })
    }

    fn trigger(&mut self, trigger: &TriggerNode) -> Trigger {
        match trigger {
            TriggerNode::Text(text) => Trigger::Text(text.clone()),
            TriggerNode::Token(token) => Trigger::Special(self.builder.special(token.clone())),
            TriggerNode::Led(text, token) => {
                Trigger::Led(text.clone(), self.builder.special(token.clone()))
            }
        }
    }

    fn dispatch(&mut self, dispatch: &DispatchNode, span: &Span) -> Expr {
        let mut tags = Vec::with_capacity(dispatch.tags.len());
        for (trigger, _, body) in &dispatch.tags {
            tags.push((self.trigger(trigger), self.body(body)));
        }
        let stops = dispatch.stops.iter().map(|stop| self.trigger(stop)).collect();
        let excludes = dispatch.excludes.clone();
        let dispatch = Dispatch { tags, stops, excludes, after: dispatch.after, end: dispatch.end };
        let most = self.limits.dispatch_bytes;
        if dispatch.bytes() > most {
            let message = format!("the triggers, stops and excludes have more than {most} bytes");
            self.diagnostics.push(Diagnostic::error(span.clone(), message));
            return Expr::Never;
        }
        Expr::Dispatch(Box::new(dispatch))
    }

    /// Any tokens but the triggers and the excluded ones, and behind each trigger its rule.
    fn token_dispatch(&mut self, dispatch: &TokenDispatch) -> Expr {
        let triggers = dispatch.tags.iter().map(|(trigger, _)| trigger);
        let free = SpecialToken::AnyBut(triggers.chain(&dispatch.excludes).cloned().collect());
        let free = self.special(&free);
        let mut tags = Vec::with_capacity(dispatch.tags.len());
        for (trigger, body) in &dispatch.tags {
            tags.push(Expr::seq([self.special(trigger), Expr::Ref(self.body(body))]));
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

/// A class as sorted, disjoint ranges of scalar values.
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

/// Sorted ranges without what is in others, which are sorted too.
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
